"""The exceptions: what the catalogue says, and what errors of the database become."""

from __future__ import annotations

import copy
import pickle
import re
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import citeledger
from citeledger import (
    CiteLedger,
    CiteLedgerError,
    IntegrityError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    SchemaVersionError,
    WrongIsolation,
    WrongState,
)
from citeledger.errors import catalogue, exception_for, translated
from support.deploy import REPOSITORY, checked
from support.world import World

if TYPE_CHECKING:
    from conftest import Database

EXPECTED = {
    "42501": PermissionDenied,
    "P0002": NotFound,
    "22023": InvalidArgument,
    "22P02": InvalidArgument,
    "22P05": InvalidArgument,
    "23503": IntegrityError,
    "23505": IntegrityError,
    "23514": IntegrityError,
    "55000": WrongState,
    "25000": WrongIsolation,
    # Not citeledger's to explain.
    "40001": None,
    "40P01": None,
    "57014": None,
    "25006": None,
    "25P02": None,
    "42883": None,
    "55P03": None,
    None: None,
}


@pytest.mark.parametrize(("sqlstate", "expected"), EXPECTED.items())
def test_a_sqlstate_becomes_an_exception(sqlstate: str | None, expected: type | None) -> None:
    assert exception_for(sqlstate) is expected


def test_the_catalogue_is_whole() -> None:
    entries = catalogue()
    assert len({e.key for e in entries}) == len(entries)
    assert len({(e.message, e.sqlstate) for e in entries}) == len(entries)
    for entry in entries:
        assert entry.raised_by, entry
        assert entry.meaning.endswith((".", "._:- .")), entry
        assert entry.remedy, entry
        assert bool(entry.sqlstate) == bool(entry.condition), entry
        if entry.sqlstate == "01000":
            assert entry.exception is None
        elif entry.sqlstate:
            assert entry.exception is exception_for(entry.sqlstate), entry
        else:
            assert entry.raised_by == ("client",)
            assert entry.exception is not None


def test_conditions_are_postgresqls_names(su: psycopg.Connection[Any]) -> None:
    for entry in catalogue():
        if entry.sqlstate and entry.exception is not None:
            # PL/pgSQL knows every name, and raises its SQLSTATE.
            with pytest.raises(psycopg.Error) as caught:
                su.execute(f"do $$ begin raise {entry.condition}; end $$".encode())
            assert caught.value.sqlstate == entry.sqlstate, entry


def test_the_clients_own_messages_are_in_the_catalogue() -> None:
    package = REPOSITORY / "python_client" / "citeledger"
    text = "".join(
        (package / n).read_text()
        for n in ("client.py", "async_client.py", "shared.py", "arguments.py")
    )
    raised = set(
        re.findall(r'(?:InvalidArgument|WrongState|SchemaVersionError)\(\s*f?"([^"]+)"', text)
    )
    known = {e.message for e in catalogue() if e.raised_by == ("client",)}
    assert {
        re.sub(r"^(\{field\}|[a-z_]+) is not valid$", "%s is not valid", m) for m in raised
    } == (known)


def test_every_exception_is_exported_and_used() -> None:
    classes = {
        c
        for c in vars(citeledger).values()
        if isinstance(c, type) and issubclass(c, CiteLedgerError) and c is not CiteLedgerError
    }
    assert {c.__name__ for c in classes} <= set(citeledger.__all__)
    mapped = {c for c in EXPECTED.values() if c is not None} | {SchemaVersionError}
    assert classes == mapped


def test_an_error_keeps_its_parts_and_its_cause(su: psycopg.Connection[Any]) -> None:
    with pytest.raises(NotFound) as caught, translated():
        su.execute(
            "do $$ begin raise 'gone' using errcode = 'P0002', detail = 'd', hint = 'h'; end $$"
        )
    error = caught.value
    assert (error.sqlstate, error.message, error.detail, error.hint) == ("P0002", "gone", "d", "h")
    assert str(error) == "gone\nDETAIL:  d\nHINT:  h"
    assert isinstance(error.__cause__, psycopg.errors.NoDataFound)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is NotFound
        assert (twin.sqlstate, twin.detail, str(twin)) == ("P0002", "d", str(error))


def test_an_integrity_error_does_not_print_the_row(
    su: psycopg.Connection[Any], world: World
) -> None:
    with pytest.raises(IntegrityError) as caught, translated():
        su.execute(
            "insert into citeledger.messages (firm_id, chat_id, role, content)"
            " values (%s, %s, 'nobody', 'very secret')",
            (world.firm_id, world.chat()),
        )
    assert "secret" not in str(caught.value)


def test_other_errors_pass_as_they_are(su: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable), translated():
        su.execute("select from no_such_table")


def test_a_lost_connection_stays_psycopgs(db: Database, su: psycopg.Connection[Any]) -> None:
    connection = db.connect("t_app")
    client = CiteLedger(connection)
    client.version()
    su.execute("select pg_catalog.pg_terminate_backend(%s)", (connection.info.backend_pid,))
    with pytest.raises(psycopg.OperationalError):
        client.version()
    connection.close()


def test_the_page_is_made_from_the_catalogue() -> None:
    import subprocess
    import sys

    checked(
        subprocess.run(
            [sys.executable, str(REPOSITORY / "tools" / "errors_md.py"), "--check"],
            check=False,
            capture_output=True,
            encoding="utf-8",
        )
    )
