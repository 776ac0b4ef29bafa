"""Inside a foreign key's cascade, where PostgreSQL lets the owner of a table pass row security.

======================================  ========================================================
attack                                  what must come of it
======================================  ========================================================
every function and every write of the   it answers what it answers outside, for nobody's rows
battery, from a row trigger in a        but the caller's
cascade between temporary tables
the oracles, from there, with the ids   the one error
of other firms and walled matters
direct statements of the attacker       row security holds: the attacker is not the owner
a plan that was made inside, used       it filters again
outside
triggers of the attacker's on temporary they run as the attacker
tables that call ours
our trigger functions on an attacker's  42501
table
======================================  ========================================================
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from attack.asking import said, sqlstate
from attack.battery import ANY_TIME, ANY_UUID, FUNCTIONS, LEAST, WRITES, outcome, play
from attack.scene import FOREIGN, WALLED, Connection, Scene
from support.cascade import SETUP, inside, outside


def literal(connection: Connection, statement: str, arguments: tuple[Any, ...]) -> str:
    """Return a statement with its arguments written into it."""
    row = connection.execute(
        "select format(%s, variadic %s::text[])",
        (
            statement.replace("%s", "%L"),
            [
                "{" + ",".join("NULL" if v is None else f'"{v}"' for v in a) + "}"
                if isinstance(a, list)
                else str(a)
                for a in arguments
            ],
        ),
    ).fetchone()
    assert row is not None
    return str(row[0])


@pytest.fixture
def plotter(scene: Scene, insider: Connection) -> Connection:
    """Give the app's session, with the cascade set up."""
    insider.execute(SETUP)
    return insider


def test_the_cascade_does_let_an_owner_pass(scene: Scene) -> None:
    """What this module is afraid of is real: else its tests would prove nothing."""
    with scene.database.connect("deployer") as connection:
        connection.execute("set local role citeledger_owner")
        connection.execute(SETUP)
        count = "select count(*) as n from citeledger.messages"
        assert said(connection, count) == "[(0,)]"
        assert json.loads(inside(connection, count))["n"] == scene.before["messages"][0]
        connection.rollback()


def normal(text: str) -> str:
    """Leave out what is new at each call: ids and times."""
    return ANY_TIME.sub("<time>", ANY_UUID.sub("<id>", text))


@pytest.mark.parametrize("name", [*FUNCTIONS, *WRITES])
def test_everything_answers_inside_as_it_does_outside(
    scene: Scene, plotter: Connection, name: str
) -> None:
    probe = (FUNCTIONS | WRITES)[name]
    if probe.least not in LEAST["t_app"]:
        assert "42501" in outcome(plotter, probe, scene)
        return
    statement = literal(plotter, probe.statement, probe.arguments(scene))
    if name in WRITES and not statement.startswith("select"):
        # A loop over rows wants rows.
        statement += " returning 1 as one"
    within = inside(plotter, statement)
    assert normal(within) == normal(outside(plotter, statement))
    assert FOREIGN not in within
    if name != "all that one sees":
        assert WALLED not in within


@pytest.mark.parametrize(
    "statement",
    [
        "select citeledger.cite('{matter}', '{span}')",
        "select * from citeledger.read_pages('{matter}', '{document}')",
        "select * from citeledger.suggest_spans('{matter}', '{span}')",
        "select citeledger.ledger_trace('{chat}')",
        "select citeledger.get_citations('{document}')",
    ],
)
def test_the_oracles_give_their_one_error_inside_the_cascade_too(
    scene: Scene, plotter: Connection, statement: str
) -> None:
    targets = (
        (scene.records.walled, scene.graph["hidden"], scene.walled.chat),
        (scene.foreign.matter, scene.graph["secret"], scene.foreign.chat),
        (uuid4(), uuid4(), uuid4()),
    )
    answers = {
        inside(
            plotter,
            statement.format(
                matter=matter,
                document=document,
                chat=chat,
                span=json.dumps(scene.records.span(document=document)).replace("'", "''"),
            ),
        )
        for matter, document, chat in targets
    }
    assert len(answers) == 1, answers
    assert answers.pop().startswith("P0002")


def test_the_attackers_own_statements_are_filtered_inside_as_outside(
    scene: Scene, plotter: Connection
) -> None:
    for table in scene.tables:
        count = f"select count(*) as n, min(t::text) as first from citeledger.{table} as t"
        within = inside(plotter, count)
        assert within == outside(plotter, count), table
        assert FOREIGN not in within


def test_another_firm_is_neither_read_nor_written_inside(scene: Scene, plotter: Connection) -> None:
    """The functions of the owner would pass row security here; they name the firm themselves."""
    for call in (
        f"select citeledger.finalize_turn('{scene.foreign.open}')",
        f"select citeledger.finalize_turns('{{{scene.foreign.open}}}')",
        f"select citeledger.assemble_ledger_entries('{scene.foreign.open}')",
        f"select to_jsonb(citeledger.compute_and_record_gate('{scene.foreign.open}')) as g",
        "select citeledger.finalize_pending()",
    ):
        theirs = inside(plotter, call).replace(str(scene.foreign.open), "<id>")
        nobody = uuid4()
        none = inside(plotter, call.replace(str(scene.foreign.open), str(nobody)))
        assert theirs == none.replace(str(nobody), "<id>"), call
    page = f"select citeledger.replace_document_pages('{scene.graph['secret']}', '[]')"
    assert inside(plotter, page).startswith("P0002")


def test_a_plan_made_inside_filters_when_it_is_used_outside(
    scene: Scene, plotter: Connection
) -> None:
    """The same session, the same functions, their plans kept: first inside, then outside."""
    plotter.execute("set local plan_cache_mode = force_generic_plan")
    walled = f"select citeledger.ledger_trace('{scene.walled.chat}')"
    own = f"select citeledger.ledger_trace('{scene.own.chat}')"
    for statement in (walled, own, "select * from citeledger.check_integrity()"):
        inside(plotter, statement)
    assert said(plotter, walled).startswith("P0002")
    assert said(plotter, own).startswith("[(")
    plotter.commit()
    with scene.database.connect("t_app") as fresh:
        undisturbed = play(fresh, scene, "t_app")
    assert play(plotter, scene, "t_app") == undisturbed


def test_our_trigger_functions_are_not_for_an_attackers_table(
    scene: Scene, insider: Connection, spy: Connection
) -> None:
    """On a table of the attacker's they would work as the owner, for rows made up."""
    functions = scene.superuser.execute(
        "select p.oid::regprocedure::text from pg_proc as p"
        " where p.prorettype = 'trigger'::regtype"
        " and p.pronamespace = 'citeledger_private'::regnamespace"
    ).fetchall()
    assert len(functions) >= 10
    for connection in (insider, spy):
        connection.execute("create temporary table bait (firm_id uuid, id uuid, message_id uuid)")
        for (function,) in functions:
            made = (
                f"create trigger t before insert on bait for each row execute function {function}"
            )
            assert sqlstate(connection, made) == "42501", function
