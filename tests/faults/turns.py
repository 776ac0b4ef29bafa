"""What the tests of faults and races look at: a turn's verdict, its log, and whether all agrees.

The oracle counts the source rows itself, without any function of the package, so that a fault of
the package cannot hide behind its own recount.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from support.races import DEADLINE, Session
from support.world import set_context

Connection = psycopg.Connection[Any]

# One row for each assistant's message: what its sources say, what is stored, what is logged.
_TURNS = """
with source as (
  select
    s.firm_id, s.message_id, s.id,
    case when s.verified then s.verification_method else 'unverified' end as status,
    case when s.verified then s.verification_confidence::numeric end as confidence
  from citeledger.message_citations as s
  union all
  select
    s.firm_id, s.message_id, s.id,
    case when s.verified then s.verification_method else 'unverified' end,
    case when s.verified then s.verification_confidence::numeric end
  from citeledger.message_caselaw_citations as s
  union all
  select s.firm_id, s.message_id, s.id, 'provenance', null
  from citeledger.message_tool_sources as s
),
entry as (
  select
    e.firm_id, e.message_id, e.verification_status,
    coalesce(e.message_citation_id, e.message_caselaw_citation_id, e.message_tool_source_id)
      as source_id
  from citeledger.citation_ledger_entry as e
),
said as (
  select
    m.firm_id, m.id, m.finalized_at,
    count(s.id) filter (where s.status in ('exact_match', 'tolerant_match')) as passed,
    count(s.id) filter (
      where s.status in ('paraphrase_judge', 'ensemble_strict', 'ensemble_majority')
    ) as supported,
    count(s.id) filter (where s.status in ('unverified', 'failed')) as failed,
    (avg(s.confidence) filter (where s.status <> 'provenance'))::double precision as confidence,
    count(s.id) filter (
      where not exists (
        select
        from entry as e
        where e.firm_id = s.firm_id
          and e.message_id = s.message_id
          and e.source_id = s.id
          and e.verification_status = s.status
      )
    ) as without_entry,
    count(s.id) as sources,
    (
      select count(*) from entry as e where e.firm_id = m.firm_id and e.message_id = m.id
    ) as entries
  from citeledger.messages as m
  left join source as s on s.firm_id = m.firm_id and s.message_id = m.id
  where m.role = 'assistant' and m.firm_id = %s
  group by m.firm_id, m.id
)
select
  t.id,
  t.finalized_at is not null as finalized,
  g.id is not null as has_verdict,
  t.without_entry,
  t.entries - t.sources as superfluous,
  g.id is null or (
    g.pass_count, g.supported_count, g.fail_count, g.unrecognized_count, g.confidence,
    g.gate_status
  ) is not distinct from (
    t.passed, t.supported, t.failed, 0, t.confidence,
    case
      when t.failed > 0 then 'flagged'
      when t.supported > 0 then 'supported_only'
      else 'fiduciary_grade'
    end
  ) as agrees,
  exists (
    select
    from citeledger.finalize_failure as f
    where f.firm_id = t.firm_id and f.message_id = t.id
  ) as logged
from said as t
left join citeledger.work_product_fiduciary_gate as g
  on g.firm_id = t.firm_id and g.message_id = t.id
order by t.id
"""


def verdict(su: Connection, message_id: UUID) -> str | None:
    """Return the gate_status that is stored for a turn, or None."""
    row = su.execute(
        "select g.gate_status from citeledger.work_product_fiduciary_gate as g"
        " where g.message_id = %s",
        (message_id,),
    ).fetchone()
    return None if row is None else str(row[0])


def failures(su: Connection, message_id: UUID) -> list[tuple[str, str]]:
    """Return the logged failures of a turn as (stage, sqlstate)."""
    return su.execute(
        "select f.stage, f.sqlstate from citeledger.finalize_failure as f"
        " where f.message_id = %s order by f.stage, f.sqlstate",
        (message_id,),
    ).fetchall()


def entries(su: Connection, message_id: UUID) -> int:
    """Count the ledger entries of a turn."""
    row = su.execute(
        "select count(*) from citeledger.citation_ledger_entry as e where e.message_id = %s",
        (message_id,),
    ).fetchone()
    assert row is not None
    return int(row[0])


def sources(su: Connection, message_id: UUID) -> int:
    """Count the source rows of a turn."""
    row = su.execute(
        "select (select count(*) from citeledger.message_citations where message_id = %(m)s)"
        " + (select count(*) from citeledger.message_caselaw_citations where message_id = %(m)s)"
        " + (select count(*) from citeledger.message_tool_sources where message_id = %(m)s)",
        {"m": message_id},
    ).fetchone()
    assert row is not None
    return int(row[0])


def is_finalized(su: Connection, message_id: UUID) -> bool:
    """Tell whether a message is there and finalized."""
    row = su.execute(
        "select m.finalized_at is not null from citeledger.messages as m where m.id = %s",
        (message_id,),
    ).fetchone()
    assert row is not None, "the message is gone"
    return bool(row[0])


def integrity(su: Connection, firm_id: UUID) -> list[Any]:
    """Return what check_integrity finds wrong in a firm."""
    with su.transaction():
        set_context(su, firm_id)
        return su.execute("select * from citeledger.check_integrity()").fetchall()


def assert_no_stale_verdict(su: Connection, firm_id: UUID) -> None:
    """Every verdict agrees with the sources, and a turn without one has its failure logged."""
    for identifier, finalized, has_verdict, without, superfluous, agrees, logged in su.execute(
        _TURNS, (firm_id,)
    ).fetchall():
        assert agrees, f"the verdict of {identifier} is not what its sources say"
        if has_verdict:
            assert without == 0, f"{without} sources of {identifier} are not in the ledger"
            assert superfluous == 0, f"{identifier} has {superfluous} entries without a source"
        if finalized and not has_verdict:
            assert logged, f"{identifier} has neither a verdict nor a logged failure"


def assert_consistent(su: Connection, firm_id: UUID) -> None:
    """No finalized turn lacks its verdict or an entry, and every verdict is what the sources
    say.
    """
    assert_no_stale_verdict(su, firm_id)
    for identifier, finalized, has_verdict, without, _, _, logged in su.execute(
        _TURNS, (firm_id,)
    ).fetchall():
        if finalized:
            assert has_verdict, f"{identifier} is finalized without a verdict"
            assert without == 0, f"{without} sources of {identifier} are not in the ledger"
            assert not logged, f"{identifier} has a verdict and a logged failure"
    assert integrity(su, firm_id) == []


def settle_pending(connection: Connection, firm_id: UUID) -> int:
    """Do as the operator's job: finalize what is pending, in a transaction of its own."""
    connection.rollback()
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    set_context(connection, firm_id)
    row = connection.execute("select citeledger.finalize_pending()").fetchone()
    connection.commit()
    assert row is not None
    return int(row[0])


def first_done(one: Session, other: Session) -> tuple[Session, Session]:
    """Wait until one of two sessions has its answer; return it, and the one that waits on."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        for ended, waits in ((one, other), (other, one)):
            if ended.done:
                return ended, waits
        time.sleep(0.005)
    msg = "neither of two sessions ended"
    raise AssertionError(msg)


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning of the server: a diagnostic itself is empty once its handler has returned."""

    message: str
    detail: str
    hint: str

    def __str__(self) -> str:
        """Give all of its text."""
        return f"{self.message} {self.detail} {self.hint}"


@contextmanager
def warnings_of(connection: Connection) -> Iterator[list[Warned]]:
    """Collect the warnings that the server sends during the block."""
    found: list[Warned] = []

    def handler(diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.severity_nonlocalized == "WARNING":
            found.append(
                Warned(
                    diagnostic.message_primary or "",
                    diagnostic.message_detail or "",
                    diagnostic.message_hint or "",
                )
            )

    connection.add_notice_handler(handler)
    try:
        yield found
    finally:
        connection.remove_notice_handler(handler)
