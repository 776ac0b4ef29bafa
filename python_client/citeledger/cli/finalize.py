"""``citeledger finalize``: ledgers and verdicts for turns that lack them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from citeledger.client import CiteLedger
from citeledger.ingest import queries

from .connection import Access, AllFirms, DatabaseUrl, Firm, Permissions, User, connected
from .exits import CommandError, Exit
from .firms import chosen_firms
from .ids import given_id
from .output import AsJson, print_error, print_facts, print_json, progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID


@dataclass(slots=True)
class Done:
    """What the batches did so far."""

    turns: int = 0
    """How many were to be done."""
    verdicts: int = 0
    """How many of those have a verdict now."""
    remaining: int = 0
    """How many are left without one, or with a failure."""


def finalize(
    messages: Annotated[
        list[str] | None, typer.Argument(metavar="MESSAGE", help="The ids of turns.")
    ] = None,
    pending: Annotated[
        bool,
        typer.Option(
            "--pending", help="All finalized turns that lack a verdict or whose finalize failed."
        ),
    ] = False,
    batch: Annotated[
        int,
        typer.Option("--batch", min=1, max=100_000, help="Turns in one transaction."),
    ] = 1000,
    all_firms: AllFirms = False,
    database_url: DatabaseUrl = None,
    firm: Firm = None,
    user: User = None,
    permission: Permissions = None,
    as_json: AsJson = False,
) -> None:
    """Finalize turns: seal them, write their ledgers, record their verdicts.

    Give the turns, or --pending for the backfill. Each batch is a transaction of its own: Ctrl-C
    leaves whole batches, and running it again goes on with what is left. The exit code is 1 when a
    turn is left without a verdict, or with a failure.

    Examples:

        citeledger finalize 01234567-89ab-cdef-0123-456789abcdef
        citeledger finalize --pending --batch 500
        citeledger finalize --pending --all-firms
    """
    if pending == bool(messages):
        raise CommandError("give the ids of turns, or --pending")
    if all_firms and not pending:
        raise CommandError("--all-firms goes with --pending")
    access = Access(database_url, firm, user, permission)
    ids = list(dict.fromkeys(given_id("MESSAGE", message) for message in messages or ()))
    done = Done()
    with connected(access.database_url) as connection:
        client = CiteLedger(connection)
        batches = (
            _pending(client, access, batch, done, all_firms=all_firms)
            if pending
            else _given(client, access, ids, batch, done)
        )
        try:
            with progress("turns") as bar:
                task = bar.add_task("finalize", total=None)
                for _ in batches:
                    bar.update(task, total=done.turns, completed=done.verdicts)
        except KeyboardInterrupt:
            print_error(f"{done.verdicts} turns have their verdict", label="note")
            raise
    if as_json:
        print_json(asdict(done))
    else:
        print_facts(asdict(done).items())
    if done.remaining:
        raise typer.Exit(Exit.NO)


def _given(
    client: CiteLedger, access: Access, ids: list[UUID], batch: int, done: Done
) -> Iterator[None]:
    done.turns = len(ids)
    for start in range(0, len(ids), batch):
        with client.context(**access.identity()) as bound:
            verdicts = bound.finalize_turns(ids[start : start + batch])
        done.verdicts += verdicts
        yield
    done.remaining = done.turns - done.verdicts


def _pending(
    client: CiteLedger, access: Access, batch: int, done: Done, *, all_firms: bool
) -> Iterator[None]:
    for firm in chosen_firms(client, access, all_firms=all_firms, default_all=False):
        with client.context(**access.identity(firm)) as bound:
            turns = queries.pending_turns(bound)
        done.turns += turns
        # The database takes those that failed last, so this many batches come by all of them once,
        # also where some fail again.
        for _ in range(-(-turns // batch)):
            with client.context(**access.identity(firm)) as bound:
                verdicts = bound.finalize_pending(batch)
            done.verdicts += verdicts
            yield
        with client.context(**access.identity(firm)) as bound:
            done.remaining += queries.pending_turns(bound)
