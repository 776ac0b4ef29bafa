"""What must be there afterwards: the transactions that happened, played again in Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg

from citeledger import CiteLedger
from soak.clients import PAGES, Firm
from soak.journal import Journal
from soak.server import Server, connected

PASS = {"exact_match", "tolerant_match"}
SUPPORTED = {"paraphrase_judge", "ensemble_strict", "ensemble_majority"}

Status = tuple[str, str | None, float | None]


@dataclass(slots=True)
class Expected:
    """All rows of the clients, as they must be."""

    turns: dict[UUID, UUID] = field(default_factory=dict)
    finalized: set[UUID] = field(default_factory=set)
    sources: dict[UUID, dict[UUID, Status]] = field(default_factory=lambda: defaultdict(dict))
    lists: dict[UUID, tuple[str, ...]] = field(default_factory=dict)
    live: dict[UUID, bool] = field(default_factory=dict)
    scanned: dict[UUID, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, journal: Journal, happened: set[UUID]) -> Expected:
        """Play what happened again: each row in the order of the one client that changes it."""
        found = cls()
        gone: set[UUID] = set()
        home: dict[UUID, UUID] = {}
        for transaction in journal.transactions:
            for effect in transaction.effects if transaction.id in happened else ():
                match effect:
                    case ("turn", chat, turn):
                        found.turns[turn] = chat
                    case ("finalized", turn):
                        found.finalized.add(turn)
                    case ("source", turn, table, source, status, confidence):
                        found.sources[turn][source] = (table, status, confidence)
                        home[source] = turn
                    case ("verdict", source, status, confidence):
                        table, *_ = found.sources[home[source]][source]
                        found.sources[home[source]][source] = (table, status, confidence)
                    case ("gone", source):
                        del found.sources[home[source]][source]
                    case ("turn gone", turn):
                        gone.add(turn)
                    case ("pages", record):
                        found.scanned[record].add(str(transaction.id))
                    case ("references", paper, dois):
                        found.lists[paper] = dois
                    case ("live", paper, live):
                        found.live[paper] = live
        for turn in gone:
            found.turns.pop(turn, None)
            found.sources.pop(turn, None)
            found.finalized.discard(turn)
        return found


def verdict(statuses: list[Status]) -> tuple[Any, ...]:
    """Return what the gate must say of a turn with these sources."""
    counts = Counter(
        "pass" if s in PASS else "supported" if s in SUPPORTED else "fail"
        for _, s, _ in statuses
        if s != "provenance"
    )
    confidences = [Decimal(str(c)) for _, s, c in statuses if c is not None and s != "provenance"]
    grade = (
        "flagged"
        if counts["fail"]
        else "supported_only"
        if counts["supported"]
        else "fiduciary_grade"
    )
    mean = round(float(sum(confidences) / len(confidences)), 9) if confidences else None
    return grade, counts["pass"], counts["supported"], counts["fail"], mean


@dataclass(slots=True)
class Report:
    """What was found in the end."""

    figures: dict[str, int] = field(default_factory=dict)
    losses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def loss(self, kind: str, what: object) -> None:
        """Count something that is not as it must be."""
        self.losses[kind] += 1
        if self.losses[kind] <= 5:
            self.problems.append(f"{kind}: {what}")


KINDS = (
    "acknowledged transactions lost",
    "turns lost",
    "turns that nobody made",
    "sources lost or different",
    "sources that nobody recorded",
    "finalized turns that are not",
    "turns finalized by nobody",
    "entries missing",
    "entries doubled",
    "entries different",
    "verdicts missing",
    "verdicts doubled",
    "verdicts different",
    "pages mixed",
    "reference lists different",
    "edges different",
    "integrity",
)


def examined(server: Server, journal: Journal, firms: list[Firm]) -> Report:
    """Finish what is pending, and compare every row with what must be there."""
    report = Report(losses=Counter(dict.fromkeys(KINDS, 0)))
    _finish_pending(server, firms, report)
    with connected(server) as superuser:
        happened = {i for (i,) in superuser.execute("select id from soak.transaction")}
        writers = [t for t in journal.transactions if t.effects]
        for transaction in writers:
            if transaction.acknowledged and transaction.id not in happened:
                report.loss("acknowledged transactions lost", transaction)
        expected = Expected.of(journal, happened)
        _turns(superuser, expected, report)
        _ledger(superuser, expected, report)
        _pages(superuser, expected, firms, report)
        _graph(superuser, expected, firms, report)
    report.figures |= {
        "turns": len(expected.turns),
        "finalized turns": len(expected.finalized),
        "sources": sum(map(len, expected.sources.values())),
        "commits": len(happened),
        "commits acknowledged": sum(t.acknowledged for t in writers),
        "commits without an answer": len(happened - {t.id for t in writers if t.acknowledged}),
        "transactions undone": len(
            [t for t in journal.transactions if not t.acknowledged and t.id not in happened]
        ),
        "transactions run again": journal.again,
        "reads": journal.reads,
    }
    return report


def _finish_pending(server: Server, firms: list[Firm], report: Report) -> None:
    """Do as the operator's job does, until nothing is pending; then ask for the integrity."""
    with connected(server, "soak_admin") as admin:
        client = CiteLedger(admin)
        settled = 0
        for firm in firms:
            for _ in range(1_000):
                with client.context(firm_id=firm.id, permissions=["matters:read"]):
                    done = client.finalize_pending(500)
                settled += done
                if not done:
                    break
            with client.context(firm_id=firm.id, permissions=["matters:read"]):
                for problem in client.check_integrity():
                    report.loss("integrity", problem)
        report.figures["turns settled afterwards"] = settled


def _turns(superuser: psycopg.Connection[Any], expected: Expected, report: Report) -> None:
    found = {
        turn: (chat, finalized)
        for turn, chat, finalized in superuser.execute(
            "select id, chat_id, finalized_at is not null from citeledger.messages"
        )
    }
    for turn, chat in expected.turns.items():
        if found.get(turn, (None, False))[0] != chat:
            report.loss("turns lost", turn)
        elif turn in expected.finalized and not found[turn][1]:
            report.loss("finalized turns that are not", turn)
    for turn, (_, finalized) in found.items():
        if turn not in expected.turns:
            report.loss("turns that nobody made", turn)
        elif finalized and turn not in expected.finalized:
            report.loss("turns finalized by nobody", turn)


SOURCES = """
select s.message_id, s.id, 'message_citations',
  case when s.verified then s.verification_method else 'unverified' end,
  case when s.verified then s.verification_confidence::double precision end
from citeledger.message_citations as s
union all
select s.message_id, s.id, 'message_caselaw_citations',
  case when s.verified then s.verification_method else 'unverified' end,
  case when s.verified then s.verification_confidence end
from citeledger.message_caselaw_citations as s
union all
select s.message_id, s.id, 'message_tool_sources', 'provenance', null
from citeledger.message_tool_sources as s
"""
ENTRIES = """
select e.message_id,
  coalesce(e.message_citation_id, e.message_caselaw_citation_id, e.message_tool_source_id),
  e.verification_status, e.confidence
from citeledger.citation_ledger_entry as e
"""
VERDICTS = """
select g.message_id, g.gate_status, g.pass_count, g.supported_count, g.fail_count, g.confidence
from citeledger.work_product_fiduciary_gate as g
"""


def _ledger(superuser: psycopg.Connection[Any], expected: Expected, report: Report) -> None:
    stored: dict[UUID, dict[UUID, Status]] = defaultdict(dict)
    for turn, source, *status in superuser.execute(SOURCES):
        stored[turn][source] = (status[0], status[1], status[2])
    entries: dict[UUID, dict[UUID, list[tuple[Any, ...]]]] = defaultdict(lambda: defaultdict(list))
    for turn, source, *said in superuser.execute(ENTRIES):
        entries[turn][source].append(tuple(said))
    verdicts: dict[UUID, list[tuple[Any, ...]]] = defaultdict(list)
    for turn, *counts, mean in superuser.execute(VERDICTS):
        verdicts[turn].append((*counts, None if mean is None else round(mean, 9)))

    for turn in expected.turns:
        sources = expected.sources.get(turn, {})
        for source, status in sources.items():
            if stored[turn].get(source) != status:
                report.loss("sources lost or different", (turn, source, status))
        for source in stored[turn].keys() - sources.keys():
            report.loss("sources that nobody recorded", (turn, source))
        if turn not in expected.finalized:
            continue
        for source, (_, state, confidence) in sources.items():
            found = entries[turn].get(source, [])
            if not found:
                report.loss("entries missing", (turn, source))
            elif len(found) > 1:
                report.loss("entries doubled", (turn, source))
            elif found[0] != (state, confidence):
                report.loss("entries different", (turn, source, found, state, confidence))
        if len(entries[turn]) > len(sources):
            report.loss("entries different", (turn, "there are more than sources"))
        if not verdicts[turn]:
            report.loss("verdicts missing", turn)
        elif len(verdicts[turn]) > 1:
            report.loss("verdicts doubled", turn)
        elif verdicts[turn][0] != verdict(list(sources.values())):
            report.loss(
                "verdicts different", (turn, verdicts[turn], verdict(list(sources.values())))
            )


def _pages(
    superuser: psycopg.Connection[Any], expected: Expected, firms: list[Firm], report: Report
) -> None:
    marks: dict[UUID, list[str]] = defaultdict(list)
    for record, content in superuser.execute(
        "select document_id, content from citeledger.document_page_blocks"
    ):
        marks[record].append(content.partition(" ")[0])
    for firm in firms:
        for record in firm.records:
            allowed = expected.scanned[record] or {"first"}
            if len(set(marks[record])) != 1 or len(marks[record]) != 2 * PAGES:
                report.loss("pages mixed", (record, Counter(marks[record])))
            elif marks[record][0] not in allowed:
                report.loss("pages mixed", (record, "written by nobody", marks[record][0]))


def _graph(
    superuser: psycopg.Connection[Any], expected: Expected, firms: list[Firm], report: Report
) -> None:
    lists: dict[UUID, list[str]] = defaultdict(list)
    for paper, doi in superuser.execute(
        "select document_id, cited_doi from citeledger.document_references"
        " order by document_id, position"
    ):
        lists[paper].append(doi)
    edges = set(
        superuser.execute(
            "select citing_document_id, cited_document_id from citeledger.document_citations"
        ).fetchall()
    )
    due = set()
    for firm in firms:
        holders: dict[str, list[UUID]] = defaultdict(list)
        for paper, doi in firm.papers:
            if expected.live.get(paper, True):
                holders[doi].append(paper)
        for paper, _ in firm.papers:
            dois = expected.lists.get(paper, ())
            # Repeats of a DOI are one reference, at its first place.
            if lists[paper] != list(dict.fromkeys(dois)):
                report.loss("reference lists different", (paper, lists[paper], dois))
            if expected.live.get(paper, True):
                due |= {
                    (paper, holders[doi][0])
                    for doi in dois
                    if len(holders[doi]) == 1 and holders[doi][0] != paper
                }
    for edge in edges ^ due:
        report.loss("edges different", (edge, "missing" if edge in due else "superfluous"))
