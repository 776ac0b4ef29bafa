"""A firm's ledger of any size, and open turns to finalize in it.

Everything follows from the number of a turn, so that a ledger can grow in steps, and two turns
whose numbers are a pair (2k and 2k + 1) have sources that differ in their ids only. Rows are
loaded without triggers and foreign keys, as a restore would; ``check_integrity`` then says that
they are what the triggers would have left.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .server import Connection

FIRM: Final = UUID("00000000-0000-4000-8000-000000000001")
SOURCES_PER_TURN: Final = 10
TURNS_PER_CHAT: Final = 10
CHATS_PER_MATTER: Final = 10
CITATIONS_PER_DOCUMENT: Final = 50
# Open turns have numbers from here on; below are those of the ledger.
OPEN: Final = 1_000_000_000

_HELPERS: Final = """
create schema bench;
create function bench.id(p_kind text, p_number bigint, p_place integer default null)
returns uuid language sql immutable parallel safe
return pg_catalog.md5(p_kind || p_number || coalesce('.' || p_place, ''))::uuid;
create function bench.method(p_turn bigint, p_place integer)
returns text language sql immutable parallel safe
return (array['exact_match', 'tolerant_match', 'paraphrase_judge', 'ensemble_strict'])
  [1 + (p_turn / 2 + p_place) % 4];
create function bench.is_verified(p_turn bigint, p_place integer)
returns boolean language sql immutable parallel safe
return (p_turn / 2 * 3 + p_place) % 13 <> 0;
"""

_PARENTS: Final = """
insert into citeledger.projects (firm_id, id, matter_number, name)
select %(firm)s, bench.id('matter', n), 'M-' || n, 'A matter'
from pg_catalog.generate_series(%(first)s / 100, (%(last)s - 1) / 100) as n
on conflict do nothing;
insert into citeledger.chats (firm_id, id, project_id, title)
select %(firm)s, bench.id('chat', n), bench.id('matter', n / 10), 'A chat'
from pg_catalog.generate_series(%(first)s / 10, (%(last)s - 1) / 10) as n
on conflict do nothing;
insert into citeledger.documents (firm_id, id, project_id, title)
select %(firm)s, bench.id('document', n), bench.id('matter', n / 10), 'A document'
from pg_catalog.generate_series(%(first)s / 10, (%(last)s - 1) / 10) as n
on conflict do nothing;
insert into citeledger.messages (firm_id, id, chat_id, role, content, finalized_at)
select %(firm)s, bench.id('turn', n), bench.id('chat', n / 10), 'assistant', 'An answer.',
  case when %(finalized)s then pg_catalog.now() end
from pg_catalog.generate_series(%(first)s, %(last)s - 1) as n;
"""

_SOURCES: Final = """
insert into citeledger.message_citations (
  firm_id, id, message_id, source_document_id, source_page, source_text,
  verified, verification_method, verification_confidence
)
select %(firm)s, bench.id('source', n, j), bench.id('turn', n), bench.id('document', n / 10), 1 + j,
  'The tenant shall give not less than ninety days'' written notice of it.',
  bench.is_verified(n, j),
  case when bench.is_verified(n, j) then bench.method(n, j) else 'failed' end,
  0.5 + (n / 2 + j) %% 50 / 100.0
from pg_catalog.generate_series(%(first)s, %(last)s - 1) as n,
  pg_catalog.generate_series(0, %(sources)s - 1) as j
where j %% 10 < 5;
insert into citeledger.message_caselaw_citations (
  firm_id, id, message_id, opinion_id, cluster_id, source_text,
  verified, verification_method, verification_confidence
)
select %(firm)s, bench.id('source', n, j), bench.id('turn', n), n, n / 10,
  'Notice is measured from the day of its receipt by the landlord.',
  bench.is_verified(n, j),
  case when bench.is_verified(n, j) then bench.method(n, j) else 'failed' end,
  0.5 + (n / 2 + j) %% 50 / 100.0
from pg_catalog.generate_series(%(first)s, %(last)s - 1) as n,
  pg_catalog.generate_series(0, %(sources)s - 1) as j
where j %% 10 in (5, 6, 7);
insert into citeledger.message_tool_sources (
  firm_id, id, message_id, source_kind, label, url, provider, tool
)
select %(firm)s, bench.id('source', n, j), bench.id('turn', n), 'web_search', 'A result',
  'https://search.example/' || n, 'example-search', 'search'
from pg_catalog.generate_series(%(first)s, %(last)s - 1) as n,
  pg_catalog.generate_series(0, %(sources)s - 1) as j
where j %% 10 > 7;
"""

_LEDGER: Final = """
insert into citeledger.citation_ledger_entry (
  firm_id, id, project_id, chat_id, message_id, source_kind,
  message_citation_id, message_caselaw_citation_id, message_tool_source_id,
  verification_status, confidence, provider, retrieved_at
)
select s.firm_id, pg_catalog.gen_random_uuid(), c.project_id, c.id, m.id, s.source_kind,
  s.citation, s.caselaw, s.tool, s.status, s.confidence, s.provider, s.retrieved_at
from pg_catalog.generate_series(%(first)s, %(last)s - 1) as n
join citeledger.messages as m on m.firm_id = %(firm)s and m.id = bench.id('turn', n)
join citeledger.chats as c on c.firm_id = %(firm)s and c.id = m.chat_id
join (
  select k.firm_id, k.message_id, 'kb_document' as source_kind,
    k.id as citation, null::uuid as caselaw, null::uuid as tool,
    case when k.verified then k.verification_method else 'unverified' end as status,
    case when k.verified then k.verification_confidence::double precision end as confidence,
    null as provider, null::timestamptz as retrieved_at
  from citeledger.message_citations as k
  union all
  select l.firm_id, l.message_id, 'caselaw', null, l.id, null,
    case when l.verified then l.verification_method else 'unverified' end,
    case when l.verified then l.verification_confidence end,
    'courtlistener', l.created_at
  from citeledger.message_caselaw_citations as l
  union all
  select t.firm_id, t.message_id, t.source_kind, null, null, t.id,
    'provenance', null, t.provider, t.created_at
  from citeledger.message_tool_sources as t
) as s on s.firm_id = m.firm_id and s.message_id = m.id;
insert into citeledger.work_product_fiduciary_gate (
  firm_id, message_id, chat_id, project_id, gate_status,
  pass_count, supported_count, fail_count, total_assertions, unrecognized_count, confidence
)
select g.firm_id, g.message_id, g.chat_id, g.project_id,
  case when g.failed > 0 then 'flagged' when g.supported > 0 then 'supported_only'
    else 'fiduciary_grade' end,
  g.passed, g.supported, g.failed, g.passed + g.supported + g.failed, 0, g.confidence
from (
  select e.firm_id, e.message_id, e.chat_id, e.project_id,
    count(*) filter (where e.verification_status in ('exact_match', 'tolerant_match')) as passed,
    count(*) filter (
      where e.verification_status in ('paraphrase_judge', 'ensemble_strict')
    ) as supported,
    count(*) filter (where e.verification_status = 'unverified') as failed,
    avg(e.confidence::numeric)::double precision as confidence
  from pg_catalog.generate_series(%(first)s, %(last)s - 1) as n
  join citeledger.citation_ledger_entry as e
    on e.firm_id = %(firm)s and e.message_id = bench.id('turn', n)
  group by e.firm_id, e.message_id, e.chat_id, e.project_id
) as g;
"""


def prepare(connection: Connection) -> None:
    """Make the firm, in a database that has nothing in it yet."""
    connection.execute(_HELPERS)
    connection.execute("insert into citeledger.firms (id, name) values (%s, 'A firm')", (FIRM,))


def grow(connection: Connection, first: int, last: int) -> None:
    """Add the finalized turns from ``first`` up to, but not with, ``last``."""
    _load(connection, (_PARENTS, _SOURCES), first, last, finalized=True)
    connection.execute("analyze")
    _load(connection, (_LEDGER,), first, last)
    connection.execute("vacuum (analyze)")


def open_turns(
    connection: Connection, first: int, count: int, sources: int = SOURCES_PER_TURN
) -> list[UUID]:
    """Add turns with sources that nobody has finalized; return their ids by number."""
    last = first + count
    _load(connection, (_PARENTS, _SOURCES), first, last, sources=sources, finalized=False)
    rows = connection.execute(
        "select bench.id('turn', n) from pg_catalog.generate_series(%s::bigint, %s) as n"
        " order by n",
        (first, last - 1),
    ).fetchall()
    return [row[0] for row in rows]


def _load(connection: Connection, parts: Sequence[str], first: int, last: int, **more: Any) -> None:
    parameters = {"firm": FIRM, "first": first, "last": last, "sources": SOURCES_PER_TURN} | more
    with connection.transaction():
        # No triggers: neither ours nor those of foreign keys.
        connection.execute("set local session_replication_role = replica")
        for part in parts:
            for statement in part.split(";\n"):
                if statement.strip():
                    connection.execute(statement, parameters)


@dataclass(frozen=True, slots=True)
class Entry:
    """What the ledger holds of one source."""

    source_kind: str
    citation: UUID | None
    caselaw: UUID | None
    tool: UUID | None
    status: str
    confidence: float | None
    provider: str | None
    retrieved_at: str | None


@dataclass(frozen=True, slots=True)
class Turn:
    """What a client knows that has read a turn: where it belongs, and its entries to be."""

    message_id: UUID
    chat_id: UUID
    project_id: UUID
    entries: tuple[Entry, ...]

    @property
    def gate(self) -> tuple[object, ...]:
        """The verdict: its status, the four counts and the unrecognized, the confidence."""
        statuses = [entry.status for entry in self.entries]
        passed = sum(status in ("exact_match", "tolerant_match") for status in statuses)
        supported = sum(status in ("paraphrase_judge", "ensemble_strict") for status in statuses)
        failed = statuses.count("unverified")
        # Of two decimals each, as the database counts them.
        found = [round(e.confidence * 100) for e in self.entries if e.confidence is not None]
        status = "flagged" if failed else "supported_only" if supported else "fiduciary_grade"
        return (
            status, passed, supported, failed, passed + supported + failed, 0,
            sum(found) / (100 * len(found)) if found else None,
        )  # fmt: skip


def read_turns(connection: Connection, message_ids: Sequence[UUID]) -> list[Turn]:
    """Read turns as a client would that then writes their ledger by hand."""
    entries: dict[UUID, list[Entry]] = defaultdict(list)
    for message_id, *values in connection.execute(
        "select k.message_id, 'kb_document', k.id, null::uuid, null::uuid,"
        " case when k.verified then k.verification_method else 'unverified' end,"
        " case when k.verified then k.verification_confidence::double precision end,"
        " null, null from citeledger.message_citations as k"
        " where k.firm_id = %(firm)s and k.message_id = any(%(ids)s)"
        " union all select l.message_id, 'caselaw', null, l.id, null,"
        " case when l.verified then l.verification_method else 'unverified' end,"
        " case when l.verified then l.verification_confidence end,"
        " 'courtlistener', l.created_at::text from citeledger.message_caselaw_citations as l"
        " where l.firm_id = %(firm)s and l.message_id = any(%(ids)s)"
        " union all select t.message_id, t.source_kind, null, null, t.id, 'provenance', null,"
        " t.provider, t.created_at::text from citeledger.message_tool_sources as t"
        " where t.firm_id = %(firm)s and t.message_id = any(%(ids)s)",
        {"firm": FIRM, "ids": list(message_ids)},
    ).fetchall():
        entries[message_id].append(Entry(*values))
    places: dict[UUID, tuple[UUID, UUID]] = {
        row[0]: (row[1], row[2])
        for row in connection.execute(
            "select m.id, c.id, c.project_id from citeledger.messages as m"
            " join citeledger.chats as c on c.firm_id = m.firm_id and c.id = m.chat_id"
            " where m.firm_id = %s and m.id = any(%s)",
            (FIRM, list(message_ids)),
        ).fetchall()
    }
    return [Turn(i, *places[i], tuple(entries[i])) for i in message_ids]


def ledger_of(connection: Connection, message_ids: Sequence[UUID]) -> list[tuple[Any, ...]]:
    """Return what turns have in the ledger and as verdicts, without what differs by nature.

    Turn by turn in the order given: the entries' mirrored values, whether each is in the right
    chat, matter and turn and mirrors its source's time, and the verdict.
    """
    rows = connection.execute(
        """
        select t.place, 'entry', e.source_kind, e.verification_status, e.confidence, e.provider,
          (e.chat_id, e.project_id) = (c.id, c.project_id)
            and e.retrieved_at is not distinct from coalesce(l.created_at, t2.created_at)
            and coalesce(k.message_id, l.message_id, t2.message_id) = m.id
            and e.treatment_id is null,
          null::integer, null::integer, null::integer, null::integer, null::integer
        from unnest(%(ids)s::uuid[]) with ordinality as t (id, place)
        join citeledger.messages as m on m.firm_id = %(firm)s and m.id = t.id
        join citeledger.chats as c on c.firm_id = %(firm)s and c.id = m.chat_id
        join citeledger.citation_ledger_entry as e
          on e.firm_id = %(firm)s and e.message_id = m.id
        left join citeledger.message_citations as k
          on k.firm_id = %(firm)s and k.id = e.message_citation_id
        left join citeledger.message_caselaw_citations as l
          on l.firm_id = %(firm)s and l.id = e.message_caselaw_citation_id
        left join citeledger.message_tool_sources as t2
          on t2.firm_id = %(firm)s and t2.id = e.message_tool_source_id
        union all
        select t.place, 'gate', g.gate_status, null, g.confidence, null,
          (g.chat_id, g.project_id) = (c.id, c.project_id),
          g.pass_count, g.supported_count, g.fail_count, g.total_assertions, g.unrecognized_count
        from unnest(%(ids)s::uuid[]) with ordinality as t (id, place)
        join citeledger.messages as m on m.firm_id = %(firm)s and m.id = t.id
        join citeledger.chats as c on c.firm_id = %(firm)s and c.id = m.chat_id
        join citeledger.work_product_fiduciary_gate as g
          on g.firm_id = %(firm)s and g.message_id = m.id
        order by 1, 2, 3, 4, 5, 6
        """,
        {"firm": FIRM, "ids": list(message_ids)},
    ).fetchall()
    return [tuple(row) for row in rows]


class NotEqualError(AssertionError):
    """The two sides of a comparison did not leave the same rows, so their times mean nothing."""


def same_ledger(connection: Connection, ours: Sequence[UUID], theirs: Sequence[UUID]) -> None:
    """Raise unless both lists of turns, of the same sources one by one, have equal ledgers."""
    left, right = ledger_of(connection, ours), ledger_of(connection, theirs)
    if left != right or not left or not all(row[6] for row in left):
        msg = f"the ledgers differ: {len(left)} rows against {len(right)}"
        raise NotEqualError(msg)
