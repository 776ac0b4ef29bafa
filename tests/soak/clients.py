"""What the clients do: turns with their sources, judges, deletes, pages, references, and clicks.

A source row, a paper and a turn each have one client that changes them, so that each client knows
what its rows must say in the end. Turns are shared: all clients of a firm add to them and finalize
them, so that they meet at their locks.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg

from citeledger import Bound, CiteLedger, CiteLedgerError, LedgerTrace
from soak.journal import Journal, Transaction
from soak.server import Server, connected

QUOTE = "The tenant shall give ninety days' notice."
PAGES = 3
METHODS = (
    "exact_match",
    "tolerant_match",
    "paraphrase_judge",
    "ensemble_strict",
    "ensemble_majority",
)
CITATIONS, OPINIONS, TOOLS = (
    "message_citations",
    "message_caselaw_citations",
    "message_tool_sources",
)
INSERT = {
    CITATIONS: "insert into citeledger.message_citations (id, message_id, source_document_id,"
    " source_page, source_text, verified, verification_method, verification_confidence)"
    " values (%s, %s, %s, 1, %s, %s, %s, %s)",
    OPINIONS: "insert into citeledger.message_caselaw_citations (id, message_id, opinion_id,"
    " cluster_id, source_text, verified, verification_method, verification_confidence)"
    " values (%s, %s, 1, 1, %s, %s, %s, %s)",
    TOOLS: "insert into citeledger.message_tool_sources (id, message_id, source_kind, label,"
    " provider) values (%s, %s, 'web_search', 'A result', 'example-search')",
}
# How often the clients do what, of a hundred.
WEIGHTS = {
    "turn_at_once": 20,
    "turn_for_later": 16,
    "late_sources": 12,
    "finalize": 12,
    "judge": 10,
    "delete_source": 6,
    "delete_turn": 2,
    "scan_again": 5,
    "references": 5,
    "withdraw": 2,
    "pending": 2,
    "cite": 4,
    "trace": 4,
}


@dataclass(slots=True)
class Firm:
    """A firm, and the turns that its clients share."""

    id: UUID
    matters: list[UUID]
    records: list[UUID]
    papers: list[tuple[UUID, str]]
    turns: list[tuple[UUID, UUID]] = field(default_factory=list)
    """Chat and message of each turn whose creation was acknowledged."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an action works with, inside its transaction and context."""

    client: CiteLedger
    connection: psycopg.Connection[Any]
    id: UUID
    effects: list[tuple[Any, ...]]


class Client(threading.Thread):
    """One client: a connection, a firm, and rows of its own."""

    def __init__(
        self,
        number: int,
        seed: str,
        server: Server,
        firm: Firm,
        papers: list[tuple[UUID, str]],
        journal: Journal,
    ) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.number = number
        self.firm = firm
        self._chance = random.Random(f"{seed}/{number}")
        self._server = server
        self._journal = journal
        self._ended = threading.Event()
        self._turns: list[tuple[UUID, UUID]] = []
        self._sources: dict[UUID, str] = {}
        self._papers = papers

    def end(self) -> None:
        """Let it finish what it does, and then no more."""
        self._ended.set()

    def run(self) -> None:
        """Work until the end; when the connection is lost, connect again."""
        while not self._ended.is_set():
            try:
                with connected(self._server, "soak_app", patience=5) as connection:
                    connection.autocommit = False
                    while not (self._ended.is_set() or connection.broken):
                        self._step(connection)
            except psycopg.Error as error:
                self._journal.error(error.sqlstate, repr(error))
                self._ended.wait(self._chance.uniform(0.02, 0.2))
            except Exception as error:
                # A client that dies must not go unnoticed.
                self._journal.finding(f"client {self.number}: {error!r}")
                self._ended.wait(1)

    # One transaction

    def _step(self, connection: psycopg.Connection[Any]) -> None:
        (name,) = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        action: Callable[[Work], None] = getattr(self, f"_{name}")
        transaction = Transaction(self._uuid(), self.number)
        # Decided once, so that another attempt does the same.
        timeouts = self._timeouts()
        state = self._chance.getstate()
        attempts = 0

        def work(bound: Bound) -> None:
            nonlocal attempts
            attempts += 1
            if attempts > 1:
                self._journal.run_again()
            self._chance.setstate(state)
            transaction.effects.clear()
            for timeout in timeouts:
                bound.connection.execute(timeout)
            with client.context(firm_id=self.firm.id, permissions=["matters:read"]):
                action(Work(client, bound.connection, transaction.id, transaction.effects))
                if transaction.effects:
                    bound.connection.execute(
                        "insert into soak.transaction (id, client) values (%s, %s)",
                        (transaction.id, self.number),
                    )

        connection.isolation_level = (
            psycopg.IsolationLevel.REPEATABLE_READ
            if name in ("turn_at_once", "late_sources", "judge") and self._chance.random() < 0.08
            else psycopg.IsolationLevel.READ_COMMITTED
        )
        self._journal.begin(transaction)
        used = connection
        try:
            if name == "delete_turn":
                with connected(self._server, "soak_admin", patience=5) as used:
                    client = CiteLedger(used)
                    client.retry(work)
            else:
                client = CiteLedger(used)
                client.retry(work)
        except (psycopg.Error, CiteLedgerError) as error:
            self._journal.error(error.sqlstate, f"{name}: {error!r}")
            # On a connection that lives it was undone; else nobody knows yet.
            if used.broken:
                self._forget(transaction)
            return
        transaction.acknowledged = True
        if not transaction.effects:
            self._journal.read()
        self._remember(transaction)

    def _timeouts(self) -> list[str]:
        """Return timeouts that strike now and then."""
        found = []
        if self._chance.random() < 0.05:
            found.append(f"set local statement_timeout = {self._chance.randint(1, 40)}")
        if self._chance.random() < 0.05:
            found.append(f"set local lock_timeout = {self._chance.randint(1, 20)}")
        return found

    def _remember(self, transaction: Transaction) -> None:
        for effect in transaction.effects:
            match effect:
                case ("turn", chat, turn):
                    self._turns.append((chat, turn))
                    self.firm.turns.append((chat, turn))
                case ("source", _, table, source, *_):
                    self._sources[source] = table
                case ("gone", source):
                    self._sources.pop(source, None)

    def _forget(self, transaction: Transaction) -> None:
        """What became of it is not known before the end: its rows are touched no more."""
        for effect in transaction.effects:
            match effect:
                case ("verdict" | "gone", source, *_):
                    self._sources.pop(source, None)
                case ("references" | "live", paper, *_):
                    self._papers = [p for p in self._papers if p[0] != paper]

    def _uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)

    # What is written

    def _some_sources(self, work: Work, turn: UUID, most: int) -> None:
        for _ in range(self._chance.randint(1, most)):
            table = self._chance.choice((CITATIONS, CITATIONS, OPINIONS, TOOLS))
            source = self._uuid()
            if table == TOOLS:
                work.connection.execute(INSERT[table], (source, turn))
                work.effects.append(("source", turn, table, source, "provenance", None))
                continue
            verified, method, confidence = self._verification()
            values: list[Any] = [QUOTE, verified, method, confidence]
            if table == CITATIONS:
                values.insert(0, self._chance.choice(self.firm.records))
            work.connection.execute(INSERT[table], (source, turn, *values))
            status = method if verified else "unverified"
            work.effects.append(
                ("source", turn, table, source, status, confidence if verified else None)
            )

    def _verification(self) -> tuple[bool, str | None, float | None]:
        chance = self._chance.random()
        if chance < 0.1:
            return False, None, None
        if chance < 0.15:
            return False, "failed", 0.1
        return True, self._chance.choice(METHODS), self._chance.randint(0, 100) / 100

    def _new_turn(self, work: Work, finalized: str) -> UUID:
        chat = self._uuid()
        work.connection.execute(
            "insert into citeledger.chats (id, project_id, title) values (%s, %s, 'A chat')",
            (chat, self._chance.choice(self.firm.matters)),
        )
        turn = self._uuid()
        work.connection.execute(
            "insert into citeledger.messages (id, chat_id, role, content, finalized_at)"
            f" values (%s, %s, 'assistant', 'An answer.', {finalized})",
            (turn, chat),
        )
        work.effects.append(("turn", chat, turn))
        return turn

    def _turn_at_once(self, work: Work) -> None:
        way = self._chance.randrange(3)
        turn = self._new_turn(work, "now()" if way == 0 else "null")
        self._some_sources(work, turn, 8)
        if way == 0:
            work.effects.append(("finalized", turn))
        else:
            self._finalize_one(work, turn, by_function=way == 1)

    def _turn_for_later(self, work: Work) -> None:
        turn = self._new_turn(work, "null")
        self._some_sources(work, turn, 8)
        if self._chance.random() < 0.2:
            work.client.assemble_ledger_entries(turn)
            work.client.compute_and_record_gate(turn)

    def _late_sources(self, work: Work) -> None:
        if turn := self._any_turn():
            self._some_sources(work, turn[1], 3)

    def _finalize(self, work: Work) -> None:
        turns = [turn for turn in (self._any_turn() for _ in range(4)) if turn]
        way = self._chance.randrange(3)
        if way == 0 and turns:
            work.client.finalize_turns([turn for _, turn in turns])
            work.effects.extend([("finalized", turn) for _, turn in turns])
        elif turns:
            self._finalize_one(work, turns[0][1], by_function=way == 1)

    def _finalize_one(
        self,
        work: Work,
        turn: UUID,
        *,
        by_function: bool,
    ) -> None:
        if by_function:
            if work.client.finalize_turn(turn).finalized:
                work.effects.append(("finalized", turn))
        elif work.connection.execute(
            "update citeledger.messages set finalized_at = now()"
            " where id = %s and finalized_at is null",
            (turn,),
        ).rowcount:
            work.effects.append(("finalized", turn))

    def _judge(self, work: Work) -> None:
        judged = [(s, t) for s, t in self._sources.items() if t != TOOLS]
        for source, table in self._chance.sample(judged[-80:], min(2, len(judged))):
            verified, method, confidence = self._verification()
            if work.connection.execute(
                f"update citeledger.{table} set verified = %s, verification_method = %s,"
                " verification_confidence = %s where id = %s",
                (verified, method, confidence, source),
            ).rowcount:
                status = method if verified else "unverified"
                work.effects.append(("verdict", source, status, confidence if verified else None))

    def _delete_source(self, work: Work) -> None:
        if self._sources:
            source, table = self._chance.choice(list(self._sources.items())[-40:])
            if work.connection.execute(
                f"delete from citeledger.{table} where id = %s", (source,)
            ).rowcount:
                work.effects.append(("gone", source))

    def _delete_turn(self, work: Work) -> None:
        if self._turns:
            _, turn = self._chance.choice(self._turns[-30:])
            if work.connection.execute(
                "delete from citeledger.messages where id = %s", (turn,)
            ).rowcount:
                work.effects.append(("turn gone", turn))

    def _scan_again(self, work: Work) -> None:
        record = self._chance.choice(self.firm.records)
        work.client.replace_document_pages(record, pages(str(work.id)))
        work.effects.append(("pages", record))

    def _references(self, work: Work) -> None:
        if self._papers:
            paper, _ = self._chance.choice(self._papers)
            dois = self._chance.sample([doi for _, doi in self.firm.papers] + ["10.1/none"], 4)
            work.client.record_references(paper, dois)
            work.effects.append(("references", paper, tuple(dois)))

    def _withdraw(self, work: Work) -> None:
        if self._papers:
            paper, _ = self._chance.choice(self._papers)
            live = self._chance.random() < 0.6
            work.connection.execute(
                "update citeledger.documents set deleted_at = case when %s then null else now() end"
                " where id = %s",
                (live, paper),
            )
            work.effects.append(("live", paper, live))

    def _pending(self, work: Work) -> None:
        work.client.finalize_pending(100)

    # What is only read, and must be right at every moment

    def _cite(self, work: Work) -> None:
        number = self._chance.randrange(len(self.firm.records))
        record = self.firm.records[number]
        matter = self.firm.matters[number % len(self.firm.matters)]
        page = self._chance.randint(1, PAGES)
        span = {"document_id": record, "page_number": page, "quote": QUOTE}
        if not work.client.cite(matter, span).verified:
            self._journal.finding(f"a quote that is on every page did not verify on {record}")
        if work.client.cite(matter, span | {"quote": "nowhere"}).deep_link is not None:
            self._journal.finding(f"a quote that is on no page has a link to {record}")
        read = work.client.read_pages(matter, record)
        if len({block.content.partition(" ")[0] for block in read}) != 1:
            self._journal.finding(f"pages of {record} are a mixture of two replacements")

    def _trace(self, work: Work) -> None:
        turn = self._any_turn()
        if turn and (mixed := disagreement(work.client.ledger_trace(turn[0]))):
            self._journal.finding(f"a trace shows a verdict that its entries do not: {mixed}")

    def _any_turn(self) -> tuple[UUID, UUID] | None:
        turns = self.firm.turns[-60:]
        return self._chance.choice(turns) if turns else None


def pages(mark: str) -> list[dict[str, Any]]:
    """Return pages that all carry the mark of who wrote them, and the one quote."""
    return [
        {"page_number": number, "blocks": [f"{mark} {QUOTE}", f"{mark} end"]}
        for number in range(1, PAGES + 1)
    ]


def disagreement(trace: LedgerTrace) -> str | None:
    """Return a verdict of a trace that is not what its entries say, in the same snapshot."""
    for gate in trace.gates:
        tiers = [e.tier for e in trace.entries if e.message_id == gate.message_id]
        said = tuple(tiers.count(t) for t in ("pass", "supported", "fail"))
        if said != (gate.pass_count, gate.supported_count, gate.fail_count):
            return f"{gate.message_id} {said} {gate}"
    return None


def make_firm(connection: psycopg.Connection[Any], name: str, chance: random.Random) -> Firm:
    """Make a firm with its matters, records and papers, as the admin."""
    client = CiteLedger(connection)

    def uuid() -> UUID:
        return UUID(int=chance.getrandbits(128), version=4)

    firm = Firm(client.create_firm(name), [uuid() for _ in range(2)], [], [])
    with client.context(firm_id=firm.id, permissions=["matters:read"]) as bound:
        for matter in firm.matters:
            bound.connection.execute(
                "insert into citeledger.projects (id, matter_number, name)"
                " values (%s, %s, 'A matter')",
                (matter, str(matter)[:8]),
            )
        for number in range(4):
            record = uuid()
            bound.connection.execute(
                "insert into citeledger.documents (id, project_id, title)"
                " values (%s, %s, 'A lease')",
                (record, firm.matters[number % 2]),
            )
            client.replace_document_pages(record, pages("first"))
            firm.records.append(record)
        for number in range(12):
            paper, doi = uuid(), f"10.5555/{number % 11}"
            bound.connection.execute(
                "insert into citeledger.documents (id, title, doi) values (%s, 'A paper', %s)",
                (paper, doi),
            )
            firm.papers.append((paper, doi))
    return firm


def started(clients: list[Client]) -> None:
    """Start all clients at nearly the same moment."""
    for client in clients:
        client.start()


def ended(clients: list[Client], patience: float) -> list[str]:
    """Let all clients end; return the names of those that do not."""
    for client in clients:
        client.end()
    deadline = time.monotonic() + patience
    for client in clients:
        client.join(max(0.0, deadline - time.monotonic()))
    return [client.name for client in clients if client.is_alive()]
