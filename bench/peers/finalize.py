"""A finalize in the ORM: read the turn and its lists, add objects, flush, count, put the verdict.

It differs from finalize_turn in that it locks nothing, so two at once may lose a source; guards
no step; keeps no revision and clears no logged failure; leaves ``finalized_at`` alone; and reads
and writes as a role that passes row security.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from sqlalchemy import delete, select

from .models import Caselaw, Chat, Citation, Entry, Gate, Message, Peer, ToolSource

if TYPE_CHECKING:
    from decimal import Decimal

PASS = frozenset({"exact_match", "tolerant_match"})
SUPPORTED = frozenset({"paraphrase_judge", "ensemble_strict", "ensemble_majority"})
FAIL = frozenset({"unverified", "failed"})


def _status(verified: bool, method: str | None) -> str:
    return method if verified and method is not None else "unverified"


def _confidence(verified: bool, confidence: Decimal | float | None) -> float | None:
    return float(confidence) if verified and confidence is not None else None


class Finalizer(Peer):
    """Finalizes turns, one transaction each."""

    async def finalize(self, message_id: UUID) -> float:
        """Finalize a turn; return how many seconds it took."""
        start = time.perf_counter()
        async with self.session() as session, session.begin():
            message = await session.get_one(Message, (self.firm_id, message_id))
            chat = await session.get_one(Chat, (self.firm_id, message.chat_id))
            place = {
                "firm_id": self.firm_id,
                "project_id": chat.project_id,
                "chat_id": chat.id,
                "message_id": message.id,
            }
            citations = await session.scalars(
                select(Citation).where(
                    Citation.firm_id == self.firm_id, Citation.message_id == message_id
                )
            )
            session.add_all(
                Entry(
                    **place,
                    id=uuid4(),
                    source_kind="kb_document",
                    message_citation_id=c.id,
                    verification_status=_status(c.verified, c.verification_method),
                    confidence=_confidence(c.verified, c.verification_confidence),
                )
                for c in citations
            )
            opinions = await session.scalars(
                select(Caselaw).where(
                    Caselaw.firm_id == self.firm_id, Caselaw.message_id == message_id
                )
            )
            session.add_all(
                Entry(
                    **place,
                    id=uuid4(),
                    source_kind="caselaw",
                    message_caselaw_citation_id=o.id,
                    verification_status=_status(o.verified, o.verification_method),
                    confidence=_confidence(o.verified, o.verification_confidence),
                    provider="courtlistener",
                    retrieved_at=o.created_at,
                )
                for o in opinions
            )
            tools = await session.scalars(
                select(ToolSource).where(
                    ToolSource.firm_id == self.firm_id, ToolSource.message_id == message_id
                )
            )
            session.add_all(
                Entry(
                    **place,
                    id=uuid4(),
                    source_kind=t.source_kind,
                    message_tool_source_id=t.id,
                    verification_status="provenance",
                    provider=t.provider,
                    retrieved_at=t.created_at,
                )
                for t in tools
            )
            await session.flush()

            entries = (
                await session.scalars(
                    select(Entry).where(
                        Entry.firm_id == self.firm_id, Entry.message_id == message_id
                    )
                )
            ).all()
            passed = sum(e.verification_status in PASS for e in entries)
            supported = sum(e.verification_status in SUPPORTED for e in entries)
            failed = sum(e.verification_status in FAIL for e in entries)
            # Of two decimals each.
            found = [
                round(100 * e.confidence)
                for e in entries
                if e.confidence is not None and e.verification_status != "provenance"
            ]
            await session.execute(
                delete(Gate).where(Gate.firm_id == self.firm_id, Gate.message_id == message_id)
            )
            session.add(
                Gate(
                    **place,
                    id=uuid4(),
                    gate_status=(
                        "flagged"
                        if failed
                        else "supported_only"
                        if supported
                        else "fiduciary_grade"
                    ),
                    pass_count=passed,
                    supported_count=supported,
                    fail_count=failed,
                    total_assertions=passed + supported + failed,
                    unrecognized_count=0,
                    confidence=sum(found) / (100 * len(found)) if found else None,
                )
            )
        return time.perf_counter() - start
