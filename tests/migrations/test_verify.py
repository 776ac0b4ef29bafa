"""Verify means it: whatever is taken away or opened by hand, ``sqitch verify`` says so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from support.deploy import REPOSITORY, checked, sqitch
from support.server import DEPLOYER

if TYPE_CHECKING:
    from conftest import Database

TABLE = "citeledger.citation_ledger_entry"
GATE = "citeledger.work_product_fiduciary_gate"
SETTLE = "citeledger_private.settle(uuid, uuid[], uuid[])"

# What is done to the database, and the change whose verify must fail.
TAMPERINGS = {
    "an index dropped": (
        "drop index citeledger.citation_ledger_entry_chat_idx",
        "ledger/citation_ledger_entry",
    ),
    "a unique index dropped": (
        "drop index citeledger.citation_ledger_entry_citation_key",
        "ledger/citation_ledger_entry",
    ),
    "a unique key dropped": (
        f"alter table {GATE} drop constraint work_product_fiduciary_gate_message_key",
        "gate/work_product_fiduciary_gate",
    ),
    "a foreign key dropped": (
        f"alter table {TABLE} drop constraint citation_ledger_entry_message_fkey",
        "ledger/citation_ledger_entry",
    ),
    "a check dropped": (
        f"alter table {GATE} drop constraint work_product_fiduciary_gate_status_is_what_counts_say",
        "gate/work_product_fiduciary_gate",
    ),
    "a check weakened": (
        "alter table citeledger.firms drop constraint firms_name_is_not_blank,"
        " add constraint firms_name_is_not_blank check (length(name) <= 200)",
        "tenancy/firms",
    ),
    "a policy dropped": (
        f"drop policy citation_ledger_entry_of_the_firm on {TABLE}",
        "ledger/citation_ledger_entry",
    ),
    "a policy weakened": (
        "alter policy chats_of_the_firm on citeledger.chats using (true)",
        "ledger/chats",
    ),
    "a policy added": (
        "create policy everything on citeledger.chats using (true);"
        "comment on policy everything on citeledger.chats is 'an open door'",
        "ledger/chats",
    ),
    "a wall torn down": (
        "drop policy projects_behind_a_wall on citeledger.projects",
        "tenancy/walls",
    ),
    "a wall made permissive": (
        "drop policy projects_behind_a_wall on citeledger.projects;"
        "create policy projects_behind_a_wall on citeledger.projects"
        " using (not citeledger_private.is_behind_wall(firm_id, id)) with check (true);"
        "comment on policy projects_behind_a_wall on citeledger.projects is 'not a wall'",
        "tenancy/walls",
    ),
    "force taken off": (
        f"alter table {TABLE} no force row level security",
        "ledger/citation_ledger_entry",
    ),
    "row security off": (
        "alter table citeledger.firms disable row level security",
        "tenancy/firms",
    ),
    "a grant revoked": (
        "revoke insert on citeledger.messages from citeledger_app",
        "ledger/messages",
    ),
    "a column grant revoked": (
        "revoke update (content) on citeledger.messages from citeledger_app",
        "ledger/messages",
    ),
    "a grant added": (
        f"grant update on {GATE} to citeledger_app",
        "gate/work_product_fiduciary_gate",
    ),
    "a column grant added": (
        "grant update (source_text) on citeledger.message_citations to citeledger_app",
        "ledger/message_citations",
    ),
    "a table for PUBLIC": (
        "grant select on citeledger.messages to public",
        "ledger/messages",
    ),
    "a function for PUBLIC": (
        "grant execute on function citeledger.delete_firm(uuid) to public",
        "tenancy/delete_firm",
    ),
    "a function for one role more": (
        "grant execute on function citeledger.firm_ids() to citeledger_app",
        "tenancy/firm_ids",
    ),
    "a function for one role less": (
        "revoke execute on function citeledger.ledger_trace(uuid, uuid) from citeledger_reader",
        "ledger/ledger_trace",
    ),
    "a private function granted": (
        f"grant execute on function {SETTLE} to citeledger_app",
        "gate/settle",
    ),
    "a function dropped": (
        "drop function citeledger.check_integrity()",
        "ops/check_integrity",
    ),
    "a search_path reset": (
        "alter function citeledger.finalize_turn(uuid) reset all",
        "gate/finalize_turn",
    ),
    "a search_path without pg_temp": (
        "alter function citeledger.finalize_turn(uuid) set search_path = pg_catalog",
        "gate/finalize_turn",
    ),
    "a function whose statements may be compiled": (
        "alter function citeledger.cite(uuid, jsonb) reset jit",
        "ops/jit_off",
    ),
    "a function that the planner can no longer put in place": (
        "alter function citeledger.verification_tier(text) set jit = off",
        "ops/jit_off",
    ),
    "a definer made invoker": (
        "alter function citeledger.finalize_turn(uuid) security invoker",
        "gate/finalize_turn",
    ),
    "an invoker made definer": (
        "alter function citeledger.current_firm_id() security definer",
        "tenancy/current_firm_id",
    ),
    "a volatility changed": (
        "alter function citeledger.current_firm_id() immutable",
        "tenancy/current_firm_id",
    ),
    "a function of another owner": (
        "alter function citeledger.version() owner to postgres",
        "ops/version",
    ),
    "a table of another owner": (
        "alter table citeledger.firms owner to deployer",
        "tenancy/firms",
    ),
    "a trigger dropped": (
        "drop trigger messages_seal on citeledger.messages",
        "gate/message_triggers",
    ),
    "a trigger disabled": (
        "alter table citeledger.message_citations disable trigger message_citations_inserted",
        "gate/source_triggers",
    ),
    "a trigger of the ledger dropped": (
        f"drop trigger citation_ledger_entry_keep_deleted on {TABLE}",
        "ledger/keep_revisions",
    ),
    "a comment of a table gone": (
        "comment on table citeledger.chats is null",
        "ledger/chats",
    ),
    "a comment of a column gone": (
        "comment on column citeledger.chats.title is null",
        "ledger/chats",
    ),
    "a comment of a constraint gone": (
        "comment on constraint chats_pkey on citeledger.chats is null",
        "ledger/chats",
    ),
    "a comment of an index gone": (
        "comment on index citeledger.chats_project_idx is null",
        "ledger/chats",
    ),
    "a comment of a trigger blanked": (
        "comment on trigger messages_seal on citeledger.messages is ' '",
        "ledger/messages",
    ),
    "a comment of a function gone": (
        f"comment on function {SETTLE} is null",
        "gate/settle",
    ),
    "a comment of a schema gone": (
        "comment on schema citeledger is null",
        "tenancy/schemas",
    ),
    "not null dropped": (
        f"alter table {GATE} alter column gate_status drop not null",
        "gate/work_product_fiduciary_gate",
    ),
    "a default dropped": (
        "alter table citeledger.chats alter column firm_id drop default",
        "ledger/chats",
    ),
    "the private schema opened": (
        "grant usage on schema citeledger_private to citeledger_app",
        "tenancy/schemas",
    ),
    "create on the schema": (
        "grant create on schema citeledger to public",
        "tenancy/schemas",
    ),
    "default privileges back": (
        "alter default privileges for role citeledger_owner grant execute on functions to public",
        "tenancy/schemas",
    ),
}


def test_nothing_was_done(db: Database) -> None:
    checked(sqitch(db.server, db.name, "verify"))


@pytest.mark.parametrize(("tampering", "change"), TAMPERINGS.values(), ids=TAMPERINGS)
def test_tampering_is_noticed(
    db: Database, su: psycopg.Connection[Any], tampering: str, change: str
) -> None:
    su.execute(tampering)
    # The script of that change alone, as Sqitch runs it; a plain verify runs them all.
    script = REPOSITORY / "verify" / f"{change}.sql"
    done = db.server.psql("-q", "-f", str(script), user=DEPLOYER, dbname=db.name)
    assert done.returncode != 0, "verify did not notice"
    assert re.search(rf"verify/{change}\.sql:\d+: ERROR:", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("tampering", "undo"),
    [
        ("alter role citeledger_reader login", "alter role citeledger_reader nologin"),
        (
            "revoke citeledger_app from citeledger_admin",
            "grant citeledger_app to citeledger_admin",
        ),
    ],
)
def test_a_role_that_was_changed(db: Database, tampering: str, undo: str) -> None:
    """Roles are the cluster's, so the test puts them back."""
    with db.connect("deployer", autocommit=True) as deployer:
        deployer.execute(tampering)
        try:
            done = sqitch(db.server, db.name, "verify")
        finally:
            deployer.execute(undo)
    assert done.returncode != 0
    assert "verify/tenancy/roles.sql" in done.stdout + done.stderr
