"""The hunt for mutants tells what is caught from what survives, and forgets no guard (P03)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.tools import tool

if TYPE_CHECKING:
    from conftest import Database

tool("prepared")
mutants = tool("mutants")


@pytest.fixture(scope="module")
def found(deployed: Database) -> list[Any]:
    with deployed.server.connect(dbname=deployed.name) as connection:
        return list(mutants.mutants_of(connection))


def test_every_guard_of_the_schema_is_a_mutant(found: list[Any], deployed: Database) -> None:
    """By another way through the catalogs: what depends on a table of the schema, and guards."""
    names = {(m.table, m.name) for m in found}
    with deployed.server.connect(dbname=deployed.name) as connection:
        tables = connection.execute(
            "select table_name::text from information_schema.tables"
            " where table_schema = 'citeledger' and table_type = 'BASE TABLE'"
        ).fetchall()
        guards = connection.execute(
            """
            select table_name::text, constraint_name::text
            from information_schema.table_constraints
            where table_schema = 'citeledger' and constraint_name not like '%_not_null'
            union
            select event_object_table::text, trigger_name::text
            from information_schema.triggers where trigger_schema = 'citeledger'
            union
            select tablename::text, policyname::text
            from pg_catalog.pg_policies where schemaname = 'citeledger'
            union
            select tablename::text, indexname::text
            from pg_catalog.pg_indexes
            where schemaname = 'citeledger' and indexdef like 'CREATE UNIQUE%'
            """
        ).fetchall()
    assert tables
    assert set(guards) - names == set()
    assert {m.table for m in found if m.kind == "row security"} == {t for (t,) in tables}
    assert {m.table for m in found if m.kind == "forced row security"} == {
        t for (t,) in tables if t != "firms"
    }


def test_every_mutant_can_be_made(found: list[Any], su: psycopg.Connection[Any]) -> None:
    """Each statement works by itself, and changes something that pg_dump would show."""
    for mutant in found:
        with su.transaction(force_rollback=True):
            su.execute(mutant.statement.encode())


@pytest.mark.parametrize(
    "name",
    [
        "check citation_ledger_entry_has_one_source",
        "hollow check work_product_fiduciary_gate_total_is_the_sum",
        "opened policy chats_of_the_firm",
        "trigger messages_seal",
    ],
)
def test_a_mutant_is_caught(found: list[Any], deployed: Database, name: str) -> None:
    (mutant,) = (m for m in found if str(m).startswith(name))
    result = mutants.Hunt(deployed.server, deployed.name).attempt(mutant)
    assert result.caught_by is not None


def test_what_changes_nothing_survives_and_fails_the_hunt(
    deployed: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tool must be able to say no; and a mutant excused in vain is an error as well."""
    nothing = mutants.Mutant("nothing", "chats", "at_all", "select 1")
    real = mutants.Mutant(
        "trigger", "messages", "messages_seal", "drop trigger messages_seal on citeledger.messages"
    )
    two = [mutants.PGTAP / "ledger" / "seal.sql", mutants.PGTAP / "gate" / "tiers.sql"]
    monkeypatch.setattr(mutants, "files", lambda: two)
    monkeypatch.setattr(mutants, "mutants_of", lambda _: [nothing, real])

    def hunt() -> tuple[int, str]:
        status = mutants.hunt(deployed.server, deployed.name, None, 2, listing=False)
        return status, capsys.readouterr().out

    status, output = hunt()
    assert status == 1
    assert "nothing at_all of chats: SURVIVED" in output
    assert "trigger messages_seal of messages: caught by ledger/seal.sql" in output
    assert output.endswith("mutants: 2, 1 caught, 0 equivalent, 1 survived\n")

    monkeypatch.setitem(mutants.EQUIVALENT, "nothing at_all of chats", "it is for this test")
    assert hunt()[0] == 0
    monkeypatch.setitem(mutants.EQUIVALENT, "trigger messages_seal of messages", "it is not")
    status, output = hunt()
    assert status == 1
    assert "is listed as equivalent, but was caught" in output
    monkeypatch.delitem(mutants.EQUIVALENT, "trigger messages_seal of messages")
    monkeypatch.setitem(mutants.EQUIVALENT, "check gone of chats", "it was dropped long ago")
    status, output = hunt()
    assert status == 1
    assert "there is no such mutant" in output


def test_only_files_about_behaviour_count() -> None:
    """A file that compares the catalogs with a list would catch everything and prove nothing."""
    chosen = {str(p.relative_to(mutants.PGTAP)) for p in mutants.files()}
    assert chosen
    assert chosen & mutants.STRUCTURAL == set()
