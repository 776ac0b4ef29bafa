"""``citeledger report``: a chat's turns as one page that opens without network."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from citeledger.pages import reading, report_html
from citeledger.pages.render import web_link
from citeledger.pages.words import not_holding_words, plural

from .connection import Access, DatabaseUrl, Firm, Permissions, User, connected
from .exits import CommandError
from .ids import given_id
from .output import AsJson, print_json, print_line

STDOUT: Final = "-"


def report(
    chat: Annotated[str, typer.Argument(metavar="CHAT", help="The id of the chat.")],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write the page; - is standard output."
        ),
    ] = "report.html",
    reader_url: Annotated[
        str | None,
        typer.Option(
            "--reader-url",
            metavar="URL",
            help="Where a reading room answers: the links of what holds then lead there.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
    firm: Firm = None,
    user: User = None,
    permission: Permissions = None,
    as_json: AsJson = False,
) -> None:
    """Write a chat's turns as one HTML page: verdicts, ledger, and each quote checked now.

    Every quote of a document is compared with its live page at the time of the report, in one
    snapshot. The page needs no network, runs nothing, prints well, and escapes everything. An
    older file of the name is replaced at once, or, when something fails, left as it was.

    With --json the same goes to standard output as JSON, and no page is written.

    The login needs citeledger_app.

    Examples:

        citeledger report 0b9d7a52-9a4c-4f0e-9d5d-2f1f6f3c9b11 -o report.html
        citeledger report 0b9d7a52-9a4c-4f0e-9d5d-2f1f6f3c9b11 --json
    """
    if reader_url is not None and web_link(reader_url) is None:
        raise CommandError("--reader-url is no http or https address")
    chat_id = given_id("CHAT", chat)
    access = Access(database_url, firm, user, permission)
    with (
        connected(access.database_url) as connection,
        reading(connection, **access.identity()) as room,
    ):
        found = room.chat(chat_id, check=True)
    if as_json:
        print_json(found)
        return
    text = report_html(found, reader_url=reader_url)
    if output == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
        return
    write_whole(Path(output), text)
    live = found.live_counts
    hold = f"{live.hold} {'holds' if live.hold == 1 else 'hold'}"
    checks = ", ".join((hold, *not_holding_words(live)))
    print_line(
        f"{output}: {plural(len(found.turns), 'turn')}; of {plural(live.total, 'quote')} {checks}"
        if live.total
        else f"{output}: {plural(len(found.turns), 'turn')}; no quote of a document to check"
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all: beside it first, then under its name."""
    # Through a link to the file itself, so that the link stays one.
    target = Path(os.path.realpath(path))
    try:
        number, name = tempfile.mkstemp(prefix=f".{target.name[:100]}-", dir=target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(_mode(target))
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror or error}"
        raise CommandError(msg) from None


def _mode(target: Path) -> int:
    """Return the mode of the file that is replaced, or of one that would be new."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
