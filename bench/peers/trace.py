"""A trace in the ORM: the chat's entries, one query for the sources of each kind, then assembly.

It differs from ledger_trace in that it asks for no permission and knows no wall, and does all of
it as a role that passes row security.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select

from .finalize import FAIL, PASS, SUPPORTED
from .models import Caselaw, Chat, Citation, Document, Entry, Gate, Message, Peer, ToolSource


def _tier(status: str) -> str | None:
    if status in PASS:
        return "pass"
    if status in SUPPORTED:
        return "supported"
    if status in FAIL:
        return "fail"
    return "provenance" if status == "provenance" else None


def _passages(source: Citation | Caselaw) -> list[dict[str, Any]]:
    return [
        {
            "text": source.source_text,
            "offset_start": source.source_offset_start,
            "offset_end": source.source_offset_end,
        }
    ]


class Tracer(Peer):
    """Traces chats."""

    last: dict[str, Any]

    async def trace(self, chat_id: UUID) -> float:
        """Trace a chat and keep the result; return how many seconds it took."""
        start = time.perf_counter()
        async with self.session() as session, session.begin():
            chat = await session.get_one(Chat, (self.firm_id, chat_id))
            entries = (
                await session.scalars(
                    select(Entry).where(Entry.firm_id == self.firm_id, Entry.chat_id == chat.id)
                )
            ).all()
            citations = {
                c.id: c
                for c in await session.scalars(
                    select(Citation).where(
                        Citation.firm_id == self.firm_id,
                        Citation.id.in_([e.message_citation_id for e in entries
                                         if e.message_citation_id is not None]),
                    )
                )
            }  # fmt: skip
            opinions = {
                o.id: o
                for o in await session.scalars(
                    select(Caselaw).where(
                        Caselaw.firm_id == self.firm_id,
                        Caselaw.id.in_([e.message_caselaw_citation_id for e in entries
                                        if e.message_caselaw_citation_id is not None]),
                    )
                )
            }  # fmt: skip
            tools = {
                t.id: t
                for t in await session.scalars(
                    select(ToolSource).where(
                        ToolSource.firm_id == self.firm_id,
                        ToolSource.id.in_([e.message_tool_source_id for e in entries
                                           if e.message_tool_source_id is not None]),
                    )
                )
            }  # fmt: skip
            documents = {
                d.id: d
                for d in await session.scalars(
                    select(Document).where(
                        Document.firm_id == self.firm_id,
                        Document.id.in_({c.source_document_id for c in citations.values()
                                         if c.source_document_id is not None}),
                    )
                )
            }  # fmt: skip
            gates = (
                await session.scalars(
                    select(Gate)
                    .join(
                        Message,
                        (Message.firm_id == Gate.firm_id) & (Message.id == Gate.message_id),
                    )
                    .where(Gate.firm_id == self.firm_id, Gate.chat_id == chat.id)
                    .order_by(Message.created_at, Message.id)
                )
            ).all()
            traced = []
            for e in entries:
                source: dict[str, Any]
                if e.message_citation_id is not None:
                    c = citations[e.message_citation_id]
                    recorded = c.created_at
                    d = None if c.source_document_id is None else documents[c.source_document_id]
                    source = {
                        "kind": "kb_document",
                        "document_id": c.source_document_id,
                        "page": c.source_page,
                        "block": c.source_block,
                    }
                    if d is not None and (d.is_privileged or d.deleted_at is not None):
                        source |= {"passages": None, "withheld": True}
                    else:
                        source |= {"passages": _passages(c)}
                elif e.message_caselaw_citation_id is not None:
                    o = opinions[e.message_caselaw_citation_id]
                    recorded = o.created_at
                    source = {
                        "kind": "caselaw",
                        "opinion_id": o.opinion_id,
                        "cluster_id": o.cluster_id,
                        "partial": o.partial,
                        "passages": _passages(o),
                    }
                else:
                    assert e.message_tool_source_id is not None
                    t = tools[e.message_tool_source_id]
                    recorded = t.created_at
                    source = {
                        "kind": t.source_kind,
                        "label": t.label,
                        "subtitle": t.subtitle,
                        "url": t.url,
                        "external_ref": t.external_ref,
                        "tool": t.tool,
                    }
                traced.append(
                    (
                        (recorded, e.id),
                        {
                            "id": e.id,
                            "message_id": e.message_id,
                            "source_kind": e.source_kind,
                            "verification_status": e.verification_status,
                            "tier": _tier(e.verification_status),
                            "confidence": e.confidence,
                            "provider": e.provider,
                            "retrieved_at": e.retrieved_at,
                            "treatment_id": e.treatment_id,
                            "created_at": e.created_at,
                            "source": source,
                        },
                    )
                )
            traced.sort(key=lambda pair: pair[0])
            self.last = {
                "chat_id": chat.id,
                "entries": [entry for _, entry in traced],
                "gates": [
                    {
                        column.key: getattr(g, column.key)
                        for column in Gate.__table__.columns
                        if column.key != "firm_id"
                    }
                    for g in gates
                ],
            }
        return time.perf_counter() - start

    def says_the_same(self, ours: dict[str, Any]) -> bool:
        """Say whether the last trace is what ledger_trace returned."""
        return bool(_plain(self.last) == _plain(ours))


def _plain(value: Any) -> Any:
    """Write ids as text and times as seconds, wherever they are."""
    if isinstance(value, dict):
        return {
            key: _moment(item) if key.endswith("_at") else _plain(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, UUID) else value


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.timestamp() if isinstance(value, datetime) else value
