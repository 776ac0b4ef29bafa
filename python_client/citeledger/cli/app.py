"""The command line: which commands there are, and in which order ``--help`` shows them."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer

from citeledger._version import __version__

from .check import check
from .citations import citations
from .cite import cite
from .crossref import crossref
from .demo import demo
from .deploy import deploy, status
from .exits import Exit
from .finalize import finalize
from .group import CommandLine
from .ingest import ingest
from .report import report
from .serve import serve
from .trace import trace

app = typer.Typer(
    name="citeledger",
    cls=CommandLine,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Exit codes: 0 done; 1 the answer is no (something was found, does not hold, or was "
    "skipped); 2 usage, or an extra is missing; 3 no connection to the database; 4 refused by the "
    "database; 70 a bug; 130 interrupted, with whole batches left.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"citeledger {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def citeledger(
    ctx: typer.Context,
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Citations that stand up: ledger, verdicts and live checks inside PostgreSQL.

    Which database: DATABASE_URL, or libpq's own variables (PGHOST, PGDATABASE, ...). For whom:
    CITELEDGER_FIRM_ID, and CITELEDGER_USER_ID for walled matters. Every command has an example
    in its own --help.
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(Exit.USAGE)


for _command in (
    demo,
    deploy,
    status,
    ingest,
    crossref,
    finalize,
    trace,
    cite,
    citations,
    report,
    check,
    serve,
):
    app.command(_command.__name__)(_command)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; return what the process is to exit with."""
    # A character that the output cannot show must not end a command.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    result: Any = app(arguments, prog_name="citeledger", standalone_mode=False)
    return int(result)
