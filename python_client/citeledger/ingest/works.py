"""Records Crossref's works: the document of each DOI, and its reference list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from citeledger.errors import IntegrityError, InvalidArgument

from . import queries
from .characters import is_storable, storable

if TYPE_CHECKING:
    from citeledger.client import Bound

    from .crossref import Record

_DATES: Final = ("issued", "published", "published-print", "published-online")
_LATEST_YEAR: Final = 9999


class UnusableWorkError(Exception):
    """A work that cannot be recorded, and why."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that did not go in."""

    position: int
    reason: str
    doi: str | None = None


@dataclass(slots=True)
class Counts:
    """What went in, and how many records did not."""

    works: int = 0
    documents_created: int = 0
    references: int = 0
    unusable: int = 0
    ambiguous: int = 0
    self_citations: int = 0
    skipped: int = 0

    def add(self, other: Counts) -> None:
        """Add what a batch brought."""
        for counted in fields(self):
            total = getattr(self, counted.name) + getattr(other, counted.name)
            setattr(self, counted.name, total)


def record_works(
    bound: Bound, records: Iterable[Record], *, create: bool = True
) -> tuple[Counts, list[Skipped]]:
    """Record a batch; return what went in, and what did not."""
    counts = Counts()
    skipped: list[Skipped] = []
    queries.hold_works(bound)
    for record in records:
        if record.work is None:
            skipped.append(Skipped(record.position, record.reason or ""))
            continue
        try:
            record_work(bound, record.work, counts, create=create)
        except UnusableWorkError as error:
            skipped.append(Skipped(record.position, str(error), doi_of(record.work)))
    counts.skipped = len(skipped)
    return counts, skipped


def record_work(
    bound: Bound, work: Mapping[str, Any], counts: Counts, *, create: bool = True
) -> None:
    """Record one work, whole or not at all; what it brought is added to the counts."""
    doi = doi_of(work)
    if doi is None:
        msg = "it has no DOI"
        raise UnusableWorkError(msg)
    try:
        # A savepoint, so that a refusal costs this work and not its batch.
        with bound.connection.transaction():
            is_doi, documents = queries.documents_of_doi(bound, doi)
            if not is_doi:
                msg = "its DOI is none"
                raise UnusableWorkError(msg)
            if len(documents) > 1:
                msg = f"{len(documents)} documents have its DOI"
                raise UnusableWorkError(msg)
            if not documents and not create:
                msg = "no document has its DOI"
                raise UnusableWorkError(msg)
            document = (
                documents[0]
                if documents
                else queries.insert_publication(bound, title_of(work) or doi, doi, year_of(work))
            )
            report = bound.record_crossref_work(document, {"reference": _references_of(work)})
    except (InvalidArgument, IntegrityError) as error:
        reason = f"{error.message}: {error.detail}" if error.detail else error.message
        if isinstance(error, IntegrityError):
            reason = error.message
        raise UnusableWorkError(reason) from error
    counts.works += 1
    counts.documents_created += not documents
    counts.references += report.references_found
    counts.unusable += report.unusable
    counts.ambiguous += report.ambiguous
    counts.self_citations += report.self_citations_skipped


def doi_of(work: Mapping[str, Any]) -> str | None:
    """Return the DOI as the work has it; what PostgreSQL cannot store is none."""
    doi = work.get("DOI")
    return doi if isinstance(doi, str) and doi.strip() and is_storable(doi) else None


def title_of(work: Mapping[str, Any]) -> str | None:
    """Return the first title that says something."""
    given = work.get("title")
    for title in given if isinstance(given, list) else [given]:
        if isinstance(title, str) and title.strip():
            return storable(title)[0]
    return None


def year_of(work: Mapping[str, Any]) -> int | None:
    """Return the year of the first date that has one."""
    for name in _DATES:
        date = work.get(name)
        parts = date.get("date-parts") if isinstance(date, Mapping) else None
        first = parts[0] if isinstance(parts, list) and parts else None
        year = first[0] if isinstance(first, list) and first else None
        if isinstance(year, int) and not isinstance(year, bool) and 0 < year <= _LATEST_YEAR:
            return year
    return None


def _references_of(work: Mapping[str, Any]) -> object:
    """Return the list with the DOIs alone: nothing else of an entry needs to travel.

    A DOI that PostgreSQL cannot store goes as none, and is counted as unusable with the others.
    """
    given = work.get("reference")
    if not isinstance(given, list):
        return given if given is None or isinstance(given, str | bool | int) else {}
    return [{"DOI": _storable_doi(entry)} for entry in given]


def _storable_doi(entry: object) -> str | None:
    doi = entry.get("DOI") if isinstance(entry, Mapping) else None
    return doi if isinstance(doi, str) and is_storable(doi) else None
