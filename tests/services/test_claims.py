"""PostgREST's requests: a login that may do nothing, a role by SET LOCAL, and claims."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from services import provider
from support.deploy import checked, deploy_with_psql
from support.pages import REPOSITORY, named
from support.server import DEPLOYER, Server, running_server
from support.world import World

PAGE = "docs/services.md"
PERSON = uuid4()


@dataclass(frozen=True, slots=True)
class Service:
    """A database behind PostgREST, with two firms in it."""

    server: Server
    dbname: str
    firm_id: UUID
    chat_id: UUID
    message_id: UUID
    matter_id: UUID
    document_id: UUID
    walled_chat_id: UUID
    other_firm_id: UUID
    other_chat_id: UUID


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """Deploy on a server with Supabase's roles, and expose the schema of the page."""
    with running_server() as server:
        provider.make_roles(server)
        with server.database() as dbname:
            provider.furnish(
                server, dbname, provider.IMPOSTORS, provider.DEFAULT_PRIVILEGES,
                provider.EVENT_TRIGGERS,
            )  # fmt: skip
            deploy_with_psql(server, dbname)
            for block in ("api-grant", "api"):
                checked(
                    server.psql("-q", user=DEPLOYER, dbname=dbname, stdin=named(PAGE, block).text)
                )
            with server.connect(dbname=dbname) as superuser:
                world = World.make(superuser)
                matter = world.project()
                chat = world.chat(matter)
                message = world.message(chat)
                document = world.document(matter)
                world.citation(message, source_document_id=document)
                superuser.execute(
                    "update citeledger.messages set finalized_at = pg_catalog.now() where id = %s",
                    (message,),
                )
                walled = world.project()
                world.member(walled, PERSON)
                other = World.make(superuser, "Harbour Legal")
                yielded = Service(
                    server, dbname, world.firm_id, chat, message, matter, document,
                    world.chat(walled), other.firm_id, other.chat(),
                )  # fmt: skip
            yield yielded


def claims_of(service: Service, **more: object) -> dict[str, object]:
    return {
        "role": "authenticated",
        "sub": str(uuid4()),
        "firm_id": str(service.firm_id),
        "permissions": ["matters:read"],
    } | more


@contextmanager
def request(
    service: Service, claims: object, *, role: str = "authenticated", mode: str = "read only"
) -> Iterator[psycopg.Connection[Any]]:
    """Open the transaction that PostgREST opens for a request."""
    with service.server.connect(provider.AUTHENTICATOR, service.dbname) as connection:
        connection.execute(f"set transaction isolation level read committed {mode}")
        connection.execute(
            "select pg_catalog.set_config('role', %s, true),"
            " pg_catalog.set_config('request.jwt.claims', %s, true)",
            (role, claims if isinstance(claims, str) else json.dumps(claims)),
        )
        yield connection
        connection.rollback()


def call(connection: psycopg.Connection[Any], function: str, *arguments: object) -> Any:
    row = connection.execute(
        f"select {function}({', '.join(['%s'] * len(arguments))})", arguments
    ).fetchone()
    assert row is not None
    return row[0]


def test_the_claims_are_the_context(service: Service) -> None:
    with request(service, claims_of(service)) as connection:
        trace = call(connection, "api.ledger_trace", service.chat_id)
        assert [g["gate_status"] for g in trace["gates"]] == ["fiduciary_grade"]


def test_the_person_of_the_claims_stands_behind_the_wall(service: Service) -> None:
    with request(service, claims_of(service, sub=str(PERSON))) as connection:
        assert call(connection, "api.ledger_trace", service.walled_chat_id)["gates"] == []
    with request(service, claims_of(service)) as connection, pytest.raises(psycopg.Error) as caught:
        call(connection, "api.ledger_trace", service.walled_chat_id)
    assert caught.value.sqlstate == "PT404"


def test_nothing_is_left_for_the_next_request(service: Service) -> None:
    """On one pooled connection, between two users."""
    with service.server.connect(provider.AUTHENTICATOR, service.dbname) as connection:
        for claims, visible in ((claims_of(service), True), ({"role": "authenticated"}, False)):
            connection.execute(
                "select pg_catalog.set_config('role', 'authenticated', true),"
                " pg_catalog.set_config('request.jwt.claims', %s, true)",
                (json.dumps(claims),),
            )
            if visible:
                call(connection, "api.ledger_trace", service.chat_id)
                connection.commit()
            else:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    call(connection, "api.ledger_trace", service.chat_id)
                connection.rollback()


@pytest.mark.parametrize(
    ("claims", "sqlstate"),
    [
        ({"permissions": []}, "42501"),
        ({"permissions": "matters:read"}, "42501"),
        ({"permissions": ["Matters:Read"]}, "42501"),
        ({"firm_id": None}, "42501"),
        ({"firm_id": ""}, "42501"),
        ({"firm_id": "not-a-uuid"}, "42501"),
        ({"firm_id": str(uuid4())}, "PT404"),
    ],
)
def test_claims_that_open_nothing(
    service: Service, claims: dict[str, object], sqlstate: str
) -> None:
    with (
        request(service, claims_of(service, **claims)) as connection,
        pytest.raises(psycopg.Error) as caught,
    ):
        call(connection, "api.ledger_trace", service.chat_id)
    assert caught.value.sqlstate == sqlstate


def test_claims_that_are_no_json(service: Service) -> None:
    with request(service, "{") as connection, pytest.raises(psycopg.Error) as caught:
        call(connection, "api.ledger_trace", service.chat_id)
    assert caught.value.sqlstate == "22P02"


def test_no_request_becomes_another_firm(service: Service) -> None:
    with (
        request(service, claims_of(service)) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        call(connection, "citeledger.set_context", service.other_firm_id)
    with request(service, claims_of(service)) as connection, pytest.raises(psycopg.Error) as caught:
        call(connection, "api.ledger_trace", service.other_chat_id)
    assert caught.value.sqlstate == "PT404"


@pytest.mark.parametrize("role", ["anon", "service_role"])
def test_other_roles_have_nothing(service: Service, role: str) -> None:
    """Not by default privileges, and not by being exempt from row security."""
    for statement in (
        "select * from citeledger.messages",
        "select citeledger.version()",
        "select citeledger.ledger_trace('00000000-0000-4000-8000-000000000000')",
    ):
        with (
            request(service, claims_of(service, role=role), role=role) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement)


def test_the_login_itself_has_nothing(service: Service) -> None:
    """It is a member of a member, and does not inherit."""
    with (
        service.server.connect(provider.AUTHENTICATOR, service.dbname) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("select citeledger.version()")


@contextmanager
def granted(service: Service, text: str, undo: str) -> Iterator[None]:
    with service.server.connect(dbname=service.dbname, autocommit=True) as superuser:
        superuser.execute(text)
        try:
            yield
        finally:
            superuser.execute(undo)


def test_why_the_role_of_a_service_gets_none_of_ours(service: Service) -> None:
    """What the page warns of: who is exempt from row security sees every firm."""
    with (
        granted(
            service,
            "grant citeledger_app to service_role",
            "revoke citeledger_app from service_role",
        ),
        request(service, claims_of(service), role="service_role") as connection,
    ):
        row = connection.execute(
            "select pg_catalog.count(distinct firm_id) from citeledger.chats"
        ).fetchone()
    assert row == (2,)


def test_a_role_that_does_not_inherit_is_refused(service: Service) -> None:
    """And what the page says makes it work."""
    with granted(
        service,
        "create role outsider nologin noinherit; grant citeledger_reader to outsider;"
        f" grant outsider to {provider.AUTHENTICATOR}",
        "drop role outsider",
    ):
        with (
            request(service, claims_of(service), role="outsider") as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            call(connection, "api.ledger_trace", service.chat_id)
        remedy = (
            "grant citeledger_reader to outsider with inherit true"
            if service.server.major >= 16
            else "alter role outsider inherit"
        )
        text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
        assert " ".join(remedy.replace("outsider", "authenticated").split()) in " ".join(
            text.split()
        )
        with service.server.connect(DEPLOYER, service.dbname, autocommit=True) as deployer:
            deployer.execute(remedy)
        with request(service, claims_of(service), role="outsider") as connection:
            assert call(connection, "api.ledger_trace", service.chat_id)["gates"]


def test_an_application_writes_by_claims(service: Service) -> None:
    """A role with citeledger_app, as a server of one's own behind PostgREST has it."""
    with (
        granted(
            service,
            "grant citeledger_app to authenticated",
            "revoke citeledger_app from authenticated",
        ),
        request(service, claims_of(service), mode="read write") as connection,
    ):
        row = connection.execute(
            "insert into citeledger.messages (chat_id, role, content)"
            " values (%s, 'assistant', 'An answer.') returning id, firm_id",
            (service.chat_id,),
        ).fetchone()
        assert row is not None
        assert row[1] == service.firm_id
        report = call(connection, "citeledger.finalize_turn", row[0])
        assert report["gate"]["total_assertions"] == 0
        with pytest.raises(psycopg.Error) as caught:
            call(connection, "api.correct_answer", service.message_id, "Another answer.")
        assert caught.value.sqlstate == "PT409"


def test_the_reader_cannot_write_through_the_wrapper(service: Service) -> None:
    with (
        request(service, claims_of(service), mode="read write") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        call(connection, "api.correct_answer", service.message_id, "Another answer.")


def test_the_wrapper_keeps_what_the_error_says(service: Service) -> None:
    span = {"document_id": str(uuid4()), "page_number": 1, "quote": "rent"}
    found = []
    for schema in ("citeledger", "api"):
        with (
            request(service, claims_of(service)) as connection,
            pytest.raises(psycopg.Error) as caught,
        ):
            call(connection, f"{schema}.cite", service.matter_id, Jsonb(span))
        diagnostic = caught.value.diag
        found.append(
            (diagnostic.message_primary, diagnostic.message_detail, diagnostic.message_hint)
        )
        assert caught.value.sqlstate == ("P0002" if schema == "citeledger" else "PT404")
    assert found[0] == found[1]
    assert all(found[0])


def test_a_quote_is_checked_by_claims(service: Service) -> None:
    span = {"document_id": str(service.document_id), "page_number": 1, "quote": "rent"}
    with request(service, claims_of(service)) as connection:
        found = call(connection, "api.cite", service.matter_id, Jsonb(span))
    assert (found["verified"], found["reason"], found["deep_link"]) == (False, "no_pages", None)


def postgrest_status(sqlstate: str, *, signed_in: bool = True) -> int:
    """Return the status that PostgREST's reference gives to a SQLSTATE."""
    if sqlstate.startswith("PT"):
        return int(sqlstate[2:])
    if sqlstate == "42501":
        return 403 if signed_in else 401
    rules = {
        "23503": 409, "23505": 409, "25006": 405, "42883": 404, "42P01": 404, "P0001": 400,
        "08": 503, "09": 500, "0L": 403, "0P": 403, "25": 500, "28": 403, "2D": 500, "38": 500,
        "39": 500, "3B": 500, "40": 500, "53": 503, "55": 500, "57": 500, "58": 500, "P0": 500,
    }  # fmt: skip
    return rules.get(sqlstate, rules.get(sqlstate[:2], 400))


def test_the_table_of_status_codes(service: Service) -> None:
    """Each row says what PostgREST answers, and what is better is what the wrapper makes of it."""
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w{5}`[^|]*)\| [^|]* \| ([^|]*) \| ([^|]*) ?\|$", text, re.MULTILINE)
    said = set()
    for codes, answers, better in rows:
        for sqlstate in re.findall(r"`(\w{5})`", codes):
            said.add(sqlstate)
            assert answers.startswith(str(postgrest_status(sqlstate))), sqlstate
            if sqlstate == "42501":
                assert str(postgrest_status(sqlstate, signed_in=False)) in answers
            with (
                service.server.connect(DEPLOYER, service.dbname) as connection,
                pytest.raises(psycopg.Error) as caught,
            ):
                call(connection, "api.refuse", sqlstate, "message", "detail", "hint")
            mapped = postgrest_status(caught.value.sqlstate or "")
            assert mapped == int(better.strip() or postgrest_status(sqlstate)), sqlstate
    # Every SQLSTATE that the client has a class for.
    assert {"42501", "P0002", "22023", "23505", "55000", "25000"} <= said
