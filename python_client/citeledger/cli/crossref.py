"""``citeledger crossref``: works and their reference lists into the citation graph."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer

from citeledger.client import CiteLedger
from citeledger.ingest import queries
from citeledger.ingest.crossref import Works, open_works
from citeledger.ingest.works import Counts, Skipped, record_works

from .connection import Access, DatabaseUrl, Firm, Permissions, User, connected
from .exits import CommandError, Exit
from .firms import require_firm
from .output import AsJson, one_line, print_error, print_facts, print_json, progress

_LISTED: Final = 1000
"""How many skipped records are listed; all are counted."""


def crossref(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON or JSON Lines, also gzipped.")],
    create: Annotated[
        bool,
        typer.Option(
            "--create/--no-create",
            help="Make a publication of a work whose DOI no document has; or skip it.",
        ),
    ] = True,
    batch: Annotated[
        int,
        typer.Option("--batch", min=1, max=100_000, help="Works in one transaction."),
    ] = 200,
    database_url: DatabaseUrl = None,
    firm: Firm = None,
    user: User = None,
    permission: Permissions = None,
    as_json: AsJson = False,
) -> None:
    """Record works as Crossref describes them: a document for each DOI, and its reference list.

    FILE is a list of works, one work, one work a line, or Crossref's answer with its items; each
    may be wrapped in a message. It is read as a stream, so it may be larger than memory.

    The references resolve at once where the cited document is there, and otherwise when it comes.
    Running it again changes nothing that is the same. A record that is no work is listed with its
    position and skipped; the others go in, and the exit code is 1.

    Examples:

        citeledger crossref works.json.gz
        citeledger crossref works.jsonl --no-create --json
    """
    access = Access(database_url, firm, user, permission)
    run = _Run(access, create=create)
    try:
        size = file.stat().st_size
        with open_works(file) as works:
            if works.empty:
                msg = f"{file} is empty"
                raise CommandError(msg, code=Exit.NO)
            with connected(access.database_url) as connection:
                run.record(CiteLedger(connection), works, batch, one_line(file.name), size)
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror or error}"
        raise CommandError(msg) from None
    run.show(as_json)
    if run.counts.skipped:
        raise typer.Exit(Exit.NO)


class _Run:
    """The records of one file, batch by batch."""

    def __init__(self, access: Access, *, create: bool) -> None:
        self.access = access
        self.create = create
        self.counts = Counts()
        self.listed: list[Skipped] = []
        self.edges_before = 0
        self.edges = 0

    def record(self, client: CiteLedger, works: Works, batch: int, name: str, size: int) -> None:
        """Record every work, each batch in a transaction of its own."""
        with client.context(**self.access.identity()) as bound:
            require_firm(bound)
            self.edges_before = queries.crossref_edges(bound)
        records = iter(works)
        try:
            with progress("bytes") as bar:
                task = bar.add_task(name, total=size)
                while found := list(islice(records, batch)):
                    with client.context(**self.access.identity()) as bound:
                        counts, skipped = record_works(bound, found, create=self.create)
                    self.counts.add(counts)
                    for record in skipped:
                        self._say(record)
                    bar.update(task, completed=works.taken)
        except KeyboardInterrupt:
            print_error(f"{self.counts.works} works are recorded", label="note")
            raise
        with client.context(**self.access.identity()) as bound:
            self.edges = queries.crossref_edges(bound)

    def _say(self, skipped: Skipped) -> None:
        if len(self.listed) < _LISTED:
            self.listed.append(skipped)
            print_error(f"{_place(skipped)}: {skipped.reason}", label="skipped")

    def show(self, as_json: bool) -> None:
        """Print the counts."""
        counts = self.counts
        if as_json:
            print_json(
                {
                    **asdict(counts),
                    "resolved": self.edges,
                    "resolved_new": self.edges - self.edges_before,
                    "skipped": [asdict(s) for s in self.listed],
                    "skipped_count": counts.skipped,
                }
            )
            return
        print_facts(
            (
                ("works", counts.works),
                ("documents created", counts.documents_created),
                ("references", counts.references),
                (
                    "resolved",
                    f"{self.edges} of the firm's references by Crossref, "
                    f"{self.edges - self.edges_before} more than before",
                ),
                ("ambiguous", counts.ambiguous or None),
                ("self-citations", counts.self_citations or None),
                ("unusable", f"{counts.unusable} references without a usable DOI"),
                ("skipped", counts.skipped),
            )
        )


def _place(skipped: Skipped) -> str:
    doi = "" if skipped.doi is None else f" ({skipped.doi})"
    return f"record {skipped.position}{doi}"
