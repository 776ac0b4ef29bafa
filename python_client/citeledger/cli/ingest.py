"""``citeledger ingest``: documents into a matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import psycopg
import typer

from citeledger.client import CiteLedger
from citeledger.errors import IntegrityError, InvalidArgument
from citeledger.ingest import UnreadableFileError, pdf, read_file
from citeledger.ingest.characters import storable
from citeledger.ingest.store import Description, Stored, store

from .connection import Access, DatabaseUrl, Firm, Permissions, User, connected
from .exits import CommandError, Exit
from .extras import require_extra
from .ids import optional_id
from .matters import Matter, matter_id
from .output import AsJson, one_line, print_error, print_json, print_line, print_table, progress

if TYPE_CHECKING:
    from uuid import UUID


class Kind(StrEnum):
    """The kinds of documents that the database has."""

    record = "record"
    work_product = "work_product"
    authority = "authority"
    publication = "publication"


@dataclass(frozen=True, slots=True)
class Skip:
    """A file that did not go in."""

    file: str
    reason: str


def ingest(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="PDF files, or UTF-8 text with form feeds."),
    ],
    matter: Matter,
    title: Annotated[
        str | None,
        typer.Option(
            "--title", metavar="TEXT", help="The title, of one FILE only. Default: the file's name."
        ),
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="What the document is. Default: record.")
    ] = None,
    doi: Annotated[
        str | None, typer.Option("--doi", metavar="DOI", help="Its DOI, of one FILE only.")
    ] = None,
    privileged: Annotated[
        bool | None,
        typer.Option(
            "--privileged/--not-privileged",
            help="A privileged document is never cited. Default: not privileged.",
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            "--document",
            metavar="ID",
            help="Replace the pages of this document, of one FILE only, whatever its title.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
    firm: Firm = None,
    user: User = None,
    permission: Permissions = None,
    as_json: AsJson = False,
) -> None:
    """Put documents into a matter: the pages and blocks of PDF files and of plain text.

    A block is a paragraph: blank lines separate blocks, and nothing else of the text is changed. In
    plain text a form feed begins the next page. A page without text stays a page without blocks.

    The same file again, with the same title in the same matter, replaces the pages of its document,
    and the citations that no longer hold are listed. An option that describes the document then
    changes it only if it is given.

    Each file is a transaction of its own. A file that cannot be read is told of in one line and
    changes nothing; the others go in, and the exit code is 1.

    Examples:

        citeledger ingest lease.pdf letter.txt --matter 2026-0147
        citeledger ingest scan-2.pdf --title "Lease" --matter 2026-0147
        citeledger ingest memo.pdf --matter 2026-0147 --kind work_product --privileged
    """
    if len(files) > 1 and (title is not None or doi is not None or document is not None):
        raise CommandError("--title, --doi and --document are for one FILE only")
    access = Access(database_url, firm, user, permission)
    described = Description(title, None if kind is None else kind.value, doi, privileged)
    document_id = optional_id("--document", document)
    run = _Run(described, document_id)
    with connected(access.database_url) as connection:
        client = CiteLedger(connection)
        with client.context(**access.identity()) as bound:
            matter_found = matter_id(bound, matter)
        with progress("files") as bar:
            task = bar.add_task("", total=len(files))
            for path in files:
                name = one_line(path.name)
                bar.update(task, description=name)
                run.take(
                    client,
                    access,
                    matter_found,
                    path,
                    lambda page, pages, name=name: bar.update(  # type: ignore[misc]
                        task, description=f"{name} {page}/{pages}"
                    ),
                )
                bar.advance(task)
    run.show(as_json)
    if run.skipped:
        raise typer.Exit(Exit.NO)


class _Run:
    """The files of one run, one after the other."""

    def __init__(self, described: Description, document_id: UUID | None) -> None:
        self.described = described
        self.document_id = document_id
        self.stored: list[tuple[str, Stored]] = []
        self.skipped: list[Skip] = []
        self._titles: set[str] = set()

    def take(
        self,
        client: CiteLedger,
        access: Access,
        matter: UUID,
        path: Path,
        on_page: Callable[[int, int], None],
    ) -> None:
        """Put one file in, or say why not."""
        # A file's name may be anything; as a title it must be text.
        name = storable(path.name)[0]
        try:
            self._refuse_second(name)
            if path.is_file() and pdf.looks_like_pdf(path):
                require_extra("pdf", "pypdf")
            read = read_file(path, on_page)
            self._titles.add(name)
            with client.context(**access.identity()) as bound:
                stored = store(bound, matter, read, name, self.described, self.document_id)
        except UnreadableFileError as error:
            self._skip(path, str(error))
        except (InvalidArgument, IntegrityError) as error:
            self._skip(path, f"was refused: {error.message}")
        except (psycopg.DataError, psycopg.errors.ProgramLimitExceeded) as error:
            self._skip(path, f"was refused: {error.diag.message_primary or error}")
        else:
            self.stored.append((str(path), stored))

    def _refuse_second(self, name: str) -> None:
        """Let no file replace the one before it that has its name in another folder."""
        if name in self._titles:
            msg = "has the name of another file of this run; put it in by itself with --title"
            raise UnreadableFileError(msg)

    def _skip(self, path: Path, reason: str) -> None:
        self.skipped.append(Skip(one_line(path), reason))
        print_error(f"{path} {reason}", label="skipped")

    def show(self, as_json: bool) -> None:
        """Print what went in."""
        if as_json:
            documents = [{"file": one_line(f), **asdict(stored)} for f, stored in self.stored]
            print_json({"documents": documents, "skipped": [asdict(s) for s in self.skipped]})
            return
        if self.stored:
            print_table(
                ("document", "title", "", "pages", "blocks"),
                [(s.document_id, s.title, s.outcome, s.pages, s.blocks) for _, s in self.stored],
            )
        for file, stored in self.stored:
            _show_notes(file, stored)


def _show_notes(file: str, stored: Stored) -> None:
    """Say what a person should know of a file that went in."""
    if stored.empty_pages:
        print_line(f"{file}: {stored.empty_pages} of its pages have no text")
    if stored.replaced_characters:
        print_line(
            f"{file}: {stored.replaced_characters} characters that cannot be stored became U+FFFD"
        )
    drifted = [drift for drift in stored.not_holding if drift.held_before]
    if stored.outcome == "replaced":
        print_line(f"{file}: {len(drifted)} of {stored.citations} stored citations drifted")
    if len(stored.not_holding) > len(drifted):
        print_line(
            f"{file}: {len(stored.not_holding) - len(drifted)} more did not hold before either"
        )
    if drifted:
        print_table(
            ("citation", "turn", "reason"),
            [(d.message_citation_id, d.message_id, d.reason) for d in drifted],
        )
