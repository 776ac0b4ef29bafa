"""The citation graph rebuilt in the ORM: every document and every list as objects, edges anew.

It differs from resolve_references in that it holds no lock, so an ingest at the same time is
lost; knows nothing of two spellings of a DOI but case and space around it; and writes every edge
although none may have changed. It passes row security.
"""

from __future__ import annotations

import time
from collections import defaultdict
from uuid import UUID

from sqlalchemy import delete, select

from .models import Document, Edge, Peer, Reference


class Rebuilder(Peer):
    """Rebuilds the graph of a firm."""

    async def rebuild(self) -> float:
        """Delete every edge and write them anew; return how many seconds it took."""
        start = time.perf_counter()
        async with self.session() as session, session.begin():
            documents = (
                await session.scalars(
                    select(Document).where(
                        Document.firm_id == self.firm_id, Document.deleted_at.is_(None)
                    )
                )
            ).all()
            holders: dict[str, list[Document]] = defaultdict(list)
            for document in documents:
                if document.doi is not None:
                    holders[document.doi.strip().lower()].append(document)
            live = {document.id for document in documents}
            references = (
                await session.scalars(
                    select(Reference)
                    .where(Reference.firm_id == self.firm_id)
                    .order_by(Reference.document_id, Reference.source, Reference.position)
                )
            ).all()
            await session.execute(delete(Edge).where(Edge.firm_id == self.firm_id))
            edges: dict[tuple[UUID, UUID], Edge] = {}
            for reference in references:
                found = holders.get(reference.cited_doi.strip().lower(), ())
                if reference.document_id not in live or len(found) != 1:
                    continue
                (cited,) = found
                if cited.id != reference.document_id:
                    edges.setdefault(
                        (reference.document_id, cited.id),
                        Edge(
                            firm_id=self.firm_id,
                            citing_document_id=reference.document_id,
                            cited_document_id=cited.id,
                            cited_doi=reference.cited_doi,
                            source=reference.source,
                        ),
                    )
            session.add_all(edges.values())
        return time.perf_counter() - start
