"""A hot call plans nothing anew: each statement that it runs has a plan that the session keeps.

A statement with an array among its parameters does not come by this by itself: the generic plan
counts on ten elements, so that a plan for the one that is there looks cheaper each time, and to
make it takes longer than to run it.
"""

from __future__ import annotations

import psycopg
import pytest

from support.world import set_context

from .conftest import Loaded
from .test_hot_statements import HOT

# For a list of turns: planned for as many as there are, once for all of them.
LISTS = {"finalize_turns"}
# After five calls PostgreSQL decides between the plans that it made and a generic one.
CALLS = 8


def planned(loaded: Loaded, role: str, statement: str, *arguments: object) -> list[str]:
    """Return where the last of several calls, each of them undone, made a plan."""
    heard: list[str] = []

    def hear(diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.message_primary == "PLANNER STATISTICS":
            heard.append(diagnostic.context or "the call itself")

    connection = loaded.connection
    connection.add_notice_handler(hear)
    try:
        for _ in range(CALLS):
            with connection.transaction(force_rollback=True):
                connection.execute("set local plan_cache_mode = auto")
                connection.execute("set local auto_explain.log_min_duration = -1")
                connection.execute("set local client_min_messages = log")
                connection.execute("set local log_planner_stats = on")
                set_context(connection, loaded.firm_id)
                connection.execute(f"set local role {role}")
                heard.clear()
                connection.execute(statement, arguments)
    finally:
        connection.remove_notice_handler(hear)
    assert heard.count("the call itself") == 1, "it is not prepared"
    return [context for context in heard if context != "the call itself"]


@pytest.mark.parametrize("call", [call for call in HOT if call not in LISTS])
def test_a_hot_call_plans_nothing_anew(loaded: Loaded, call: str) -> None:
    hot = HOT[call]
    arguments = [loaded.one(query) for query in hot.arguments]
    assert planned(loaded, hot.role, hot.statement, *arguments) == []


def test_planning_would_be_heard(loaded: Loaded) -> None:
    statement = "select citeledger.set_context(%s)"
    assert planned(loaded, "t_app", statement, loaded.firm_id) == []
    # What is executed is planned each time.
    loaded.connection.execute(
        "create or replace function public.executes() returns void language plpgsql as"
        " $$begin execute 'select 1'; end$$"
    )
    (context,) = planned(loaded, "t_app", "select public.executes()")
    assert "executes()" in context
