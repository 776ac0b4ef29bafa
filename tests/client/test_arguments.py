"""Arguments are checked before any SQL is sent: one form passes, the rest is refused by name."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from citeledger import CiteLedger, InvalidArgument
from citeledger import arguments as check

TEXT = "550e8400-e29b-41d4-a716-446655440000"

BAD_IDS: dict[str, Any] = {
    "words": "not-a-uuid",
    "empty": "",
    "null": "null",
    "dashes": "-" * 36,
    "newline": TEXT + "\n",
    "space": " " + TEXT,
    "braces": "{" + TEXT + "}",
    "urn": "urn:uuid:" + TEXT,
    "bare hex": TEXT.replace("-", ""),
    "full-width digits": TEXT.replace("5", "\uff15"),
    "arabic digits": TEXT.replace("5", "\u0665"),
    "misplaced dashes": "550e840-0e29b-41d4-a716-446655440000",
    "NUL": TEXT[:-1] + "\0",
    "bytes": TEXT.encode(),
    "int": 5,
    "bool": True,
    "none": None,
    "list": [TEXT],
}


@pytest.mark.parametrize("value", BAD_IDS.values(), ids=BAD_IDS)
def test_a_malformed_id_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check.uuid_argument("message_id", value)
    assert caught.value.sqlstate is None
    assert "message_id" in caught.value.message
    assert (caught.value.detail or "").startswith("message_id: ")
    assert caught.value.hint


def test_a_refusal_does_not_repeat_the_value() -> None:
    with pytest.raises(InvalidArgument) as caught:
        check.uuid_argument("message_id", "the client's secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", [TEXT, TEXT.upper(), UUID(TEXT)])
def test_the_canonical_form_passes(value: object) -> None:
    assert check.uuid_argument("message_id", value) == UUID(TEXT)


def test_optional_ids() -> None:
    assert check.optional_uuid_argument("user_id", None) is None
    with pytest.raises(InvalidArgument, match="user_id"):
        check.optional_uuid_argument("user_id", "")


def test_lists_of_ids() -> None:
    one = uuid4()
    assert check.uuids_argument("message_ids", []) == []
    assert check.uuids_argument("message_ids", (str(one), one)) == [one, one]
    assert check.uuids_argument("message_ids", (i for i in [one])) == [one]
    with pytest.raises(InvalidArgument, match=r"message_ids\[1\]"):
        check.uuids_argument("message_ids", [one, "x"])


@pytest.mark.parametrize("value", [TEXT, TEXT.encode(), {TEXT: 1}, None, 5])
def test_no_list_of_ids(value: object) -> None:
    with pytest.raises(InvalidArgument, match="message_ids"):
        check.uuids_argument("message_ids", value)


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "a\udfffb", b"bytes", 5, None])
def test_text_that_postgresql_cannot_store(value: object) -> None:
    with pytest.raises(InvalidArgument, match="title"):
        check.text_argument("title", value)


@pytest.mark.parametrize("value", ["", "100% of %s {x}", "O'Brien; drop table x --", "𝔘 é"])
def test_any_other_text_passes_as_it_is(value: str) -> None:
    assert check.text_argument("title", value) == value


@pytest.mark.parametrize("value", ["matters:read", b"x", {"a": 1}, None, 5, [b"x"], [None], ["\0"]])
def test_no_list_of_permissions(value: object) -> None:
    with pytest.raises(InvalidArgument, match="permissions"):
        check.texts_argument("permissions", value)


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, 2**31, -(2**31) - 1])
def test_no_int(value: object) -> None:
    with pytest.raises(InvalidArgument, match="limit"):
        check.int_argument("limit", value)


@pytest.mark.parametrize("value", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_ints(value: int) -> None:
    assert check.int_argument("limit", value) == value


def test_no_sql_is_sent_for_a_refused_argument(app: psycopg.Connection[Any]) -> None:
    client = CiteLedger(app)
    bad: Any = "nope"
    for call in (
        lambda: client.finalize_turn(bad),
        lambda: client.finalize_turns(bad),
        lambda: client.finalize_pending(bad),
        lambda: client.assemble_ledger_entries(bad),
        lambda: client.compute_and_record_gate(bad),
        lambda: client.ledger_trace(bad),
        lambda: client.ledger_trace(uuid4(), bad),
        lambda: client.context(firm_id=bad).__enter__(),
        lambda: client.context(firm_id=uuid4(), user_id=bad).__enter__(),
        lambda: client.context(firm_id=uuid4(), permissions="matters:read").__enter__(),
    ):
        with pytest.raises(InvalidArgument):
            call()
    # The connection would have begun a transaction otherwise.
    assert app.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.parametrize("value", [None, "postgresql:///x", 5])
def test_neither_connection_nor_pool(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="connection_or_pool"):
        CiteLedger(value)


@pytest.mark.parametrize("value", [-1, True, "5", 1.5])
def test_no_prepare_threshold(app: psycopg.Connection[Any], value: Any) -> None:
    with pytest.raises(InvalidArgument, match="prepare_threshold"):
        CiteLedger(app, prepare_threshold=value)
