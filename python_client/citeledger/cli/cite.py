"""``citeledger cite``: whether a quote stands on its page, now."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from citeledger.rows import CiteError

from .connection import Access, DatabaseUrl, Firm, Permissions, User, acting
from .exits import CommandError, Exit
from .ids import given_id
from .matters import Matter, matter_id
from .output import AsJson, print_facts, print_json, print_table

if TYPE_CHECKING:
    from citeledger.rows import CiteResolution


def cite(
    matter: Matter,
    quote: Annotated[
        str | None,
        typer.Argument(metavar="QUOTE", help="The quote, character by character; - for stdin."),
    ] = None,
    document: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="The document.")
    ] = None,
    page: Annotated[
        int | None, typer.Option("--page", min=1, metavar="N", help="Its page, from 1.")
    ] = None,
    block: Annotated[
        int | None,
        typer.Option("--block", metavar="N", help="The block of the page, from 0. Default: any."),
    ] = None,
    start: Annotated[
        int | None,
        typer.Option(
            "--start",
            metavar="N",
            help="Where the quote begins, in characters from 0, in the block or else in the page.",
        ),
    ] = None,
    end: Annotated[
        int | None, typer.Option("--end", metavar="N", help="Where it ends, exclusive.")
    ] = None,
    spans: Annotated[
        Path | None,
        typer.Option(
            "--spans",
            metavar="FILE",
            help="Check a JSON list of spans instead of one QUOTE; - for stdin.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
    firm: Firm = None,
    user: User = None,
    permission: Permissions = None,
    as_json: AsJson = False,
) -> None:
    """Check a quote of a matter's record against the live page, byte for byte.

    What stands there gets a link, what does not gets a reason, and the exit code is 1. Nothing is
    normalised: a ligature, a no-break space or another line end is another quote.

    Examples:

        citeledger cite --matter 2026-0147 --document $ID --page 7 "ninety (90) days"
        citeledger cite --matter 2026-0147 --spans spans.json --json
    """
    access = Access(database_url, firm, user, permission)
    if spans is not None:
        if any(given is not None for given in (quote, document, page, block, start, end)):
            raise CommandError("--spans takes the place of QUOTE and of what says where it stands")
        many = _spans(spans)
        with acting(access) as bound:
            found = bound.cite_many(matter_id(bound, matter), many)
        _show_many(found, as_json)
        if not all(_holds(answer) for answer in found):
            raise typer.Exit(Exit.NO)
        return
    if quote is None or document is None or page is None:
        raise CommandError("give QUOTE with --document and --page, or --spans FILE")
    words = sys.stdin.read() if quote == "-" else quote
    if not words:
        raise CommandError("QUOTE is empty")
    span = {
        "document_id": given_id("--document", document),
        "page_number": page,
        "block_index": block,
        "char_start": start,
        "char_end": end,
        "quote": words,
    }
    given = {key: value for key, value in span.items() if value is not None}
    with acting(access) as bound:
        answer = bound.cite(matter_id(bound, matter), given)
    if as_json:
        print_json(answer)
    else:
        print_facts(
            (
                ("verified", "yes" if answer.verified else "no"),
                ("reason", answer.reason),
                ("link", answer.deep_link),
                ("checked at", answer.checked_at.isoformat()),
            )
        )
    if not answer.verified:
        raise typer.Exit(Exit.NO)


def _holds(answer: CiteResolution | CiteError) -> bool:
    return not isinstance(answer, CiteError) and answer.verified


def _show_many(found: list[CiteResolution | CiteError], as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"error": {"sqlstate": answer.sqlstate, "message": answer.message}}
                if isinstance(answer, CiteError)
                else answer
                for answer in found
            ]
        )
        return
    print_table(
        ("", "verified", "reason or link"),
        [
            (number, "error", f"{answer.sqlstate}: {answer.message}")
            if isinstance(answer, CiteError)
            else (number, "yes" if answer.verified else "no", answer.deep_link or answer.reason)
            for number, answer in enumerate(found, start=1)
        ],
    )


def _spans(file: Path) -> list[Any]:
    """Read the list of spans; what each of them means is for the database to judge."""
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_object)
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror or error}"
        raise CommandError(msg) from None
    except (ValueError, RecursionError):
        msg = f"{file} is not JSON in UTF-8 with every key once"
        raise CommandError(msg) from None
    if not isinstance(value, list) or not all(isinstance(span, Mapping) for span in value):
        msg = f"{file} is not a list of spans"
        raise CommandError(msg)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Take an object whose keys are all there once: of two equal ones, which is meant?"""
    found = dict(pairs)
    if len(found) < len(pairs):
        msg = "a key is given twice"
        raise ValueError(msg)
    return found
