"""The command line, the extra ``citeledger[cli]``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

_NEEDED: Final = ("typer", "rich", "jinja2", "ijson")


def main() -> int:
    """Run the command line, or say what to install for it."""
    if any(find_spec(name) is None for name in _NEEDED):
        print(
            "citeledger: the command line needs the extra cli: in the folder of citeledger, run "
            "pip install '.[cli]'",
            file=sys.stderr,
        )
        return 2
    from .app import run

    return run()
