"""Puts the pages of one file into a matter, and says what that does to the citations of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from citeledger.errors import NotFound

from . import queries
from .errors import UnreadableFileError

if TYPE_CHECKING:
    from citeledger.client import Bound

    from .files import ReadFile


@dataclass(frozen=True, slots=True)
class Description:
    """What is said of a document; None leaves it to the default, or to what it was."""

    title: str | None = None
    kind: str | None = None
    doi: str | None = None
    privileged: bool | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """A stored citation that does not hold on the pages as they are now."""

    message_citation_id: UUID
    message_id: UUID
    reason: str | None
    held_before: bool


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a file."""

    document_id: UUID
    title: str
    outcome: Literal["new", "replaced"]
    pages: int
    blocks: int
    empty_pages: int
    replaced_characters: int
    citations: int
    """How many stored citations the document has."""
    not_holding: tuple[Drift, ...]


def store(
    bound: Bound,
    matter_id: UUID,
    read: ReadFile,
    file_name: str,
    described: Description,
    document_id: UUID | None = None,
) -> Stored:
    """Put the pages in: as a new document, or in place of those of the one that is there already.

    That one is the given document, or the live one of the matter with the title.
    """
    title = described.title or file_name
    queries.hold_title(bound, matter_id, title)
    found = _document(bound, matter_id, title, document_id)
    before: dict[UUID, bool] = {}
    if found is None:
        outcome: Literal["new", "replaced"] = "new"
        found = queries.insert_record(
            bound,
            matter_id,
            title,
            described.kind or "record",
            described.doi,
            bool(described.privileged),
        )
    else:
        outcome = "replaced"
        before = {c.message_citation_id: c.verified for c in bound.recheck_document(found)}
        if described != Description():
            queries.describe_document(
                bound,
                found,
                title=described.title,
                kind=described.kind,
                doi=described.doi,
                privileged=described.privileged,
            )
    bound.replace_document_pages(found, [page.as_json() for page in read.pages])
    after = bound.recheck_document(found) if outcome == "replaced" else []
    return Stored(
        document_id=found,
        title=title,
        outcome=outcome,
        pages=len(read.pages),
        blocks=sum(len(page.blocks) for page in read.pages),
        empty_pages=sum(not page.blocks for page in read.pages),
        replaced_characters=read.replaced,
        citations=len(after),
        not_holding=tuple(
            Drift(
                c.message_citation_id,
                c.message_id,
                c.reason,
                before.get(c.message_citation_id, False),
            )
            for c in after
            if not c.verified
        ),
    )


def _document(bound: Bound, matter_id: UUID, title: str, document_id: UUID | None) -> UUID | None:
    if document_id is not None:
        found = queries.live_documents(bound, matter_id, document_id=document_id)
        if not found:
            raise NotFound(
                "document not found",
                sqlstate="P0002",
                detail="No live document of this id is in the matter.",
                hint="Check --document and --matter.",
            )
        return found[0]
    found = queries.live_documents(bound, matter_id, title=title)
    if len(found) > 1:
        msg = (
            f"could replace any of {len(found)} documents that have its title in this matter; "
            "say which with --document"
        )
        raise UnreadableFileError(msg)
    return found[0] if found else None
