"""finalize: turns by their ids, and the backfill in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest

from citeledger.cli.exits import Exit
from support.world import World

from .conftest import Run

if TYPE_CHECKING:
    from conftest import Database

Superuser = psycopg.Connection[Any]


def verdicts(su: Superuser, firm_id: UUID) -> int:
    ((count,),) = su.execute(
        "select count(*) from citeledger.work_product_fiduciary_gate where firm_id = %s",
        (firm_id,),
    ).fetchall()
    return int(count)


@pytest.fixture
def backfill(su: Superuser, world: World) -> list[World]:
    """Make five finalized turns without a verdict in one firm, and three in another."""
    firms = [world, World.make(su, "Another firm")]
    # As turns are that were there before the package was.
    su.execute("alter table citeledger.messages disable trigger user")
    for firm, turns in zip(firms, (5, 3), strict=True):
        chat = firm.chat()
        for _ in range(turns):
            firm.message(chat, finalized_at="2026-01-01")
    su.execute("alter table citeledger.messages enable trigger user")
    return firms


def test_the_backfill_goes_in_batches(
    run: Run, su: Superuser, backfill: list[World], monkeypatch: pytest.MonkeyPatch
) -> None:
    from citeledger.client import Bound

    sizes: list[int] = []
    whole = Bound.finalize_pending

    def counted(self: Bound, limit: int = 1000) -> int:
        sizes.append(limit)
        return whole(self, limit)

    monkeypatch.setattr(Bound, "finalize_pending", counted)
    ran = run("finalize", "--pending", "--batch", 2, "--json")
    assert (ran.code, ran.json) == (Exit.DONE, {"turns": 5, "verdicts": 5, "remaining": 0})
    assert sizes == [2, 2, 2]
    assert [verdicts(su, firm.firm_id) for firm in backfill] == [5, 0]
    ran = run("finalize", "--pending")
    assert (ran.code, "turns      0" in ran.out) == (Exit.DONE, True)


def test_every_firm(run: Run, su: Superuser, backfill: list[World]) -> None:
    ran = run("finalize", "--pending", "--all-firms", "--json", user="t_admin")
    assert (ran.code, ran.json["verdicts"]) == (Exit.DONE, 8)
    assert [verdicts(su, firm.firm_id) for firm in backfill] == [5, 3]


def test_turns_that_fail_again_do_not_keep_it_going(
    run: Run, su: Superuser, backfill: list[World]
) -> None:
    su.execute(
        "create function public.fail() returns trigger language plpgsql"
        " as $$ begin raise exception using errcode = '58000'; end $$;"
        "create trigger fail before insert on citeledger.work_product_fiduciary_gate"
        " for each row execute function public.fail()"
    )
    ran = run("finalize", "--pending", "--batch", 2, "--json")
    assert (ran.code, ran.json) == (Exit.NO, {"turns": 5, "verdicts": 0, "remaining": 5})


def test_turns_by_their_ids(run: Run, su: Superuser, world: World, db: Database) -> None:
    turns = [world.turn() for _ in range(3)]
    ran = run("finalize", *turns, turns[0], "--batch", 2, "--json")
    assert (ran.code, ran.json) == (Exit.DONE, {"turns": 3, "verdicts": 3, "remaining": 0})
    ran = run("finalize", turns[0], uuid4(), "--json")
    assert (ran.code, ran.json["remaining"]) == (Exit.NO, 1)
    assert verdicts(su, world.firm_id) == 3
