"""Which suites run on one server only, where two servers are tested together.

What is Python's alone, or the same calls through one more door, need not run twice in one go, nor
what takes minutes of CI's fifteen: each of these has one of the two servers. Alone, and in turn,
every server runs them all.
"""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

SHARES = {
    "attack": "embedded",
    "bench": "embedded",
    "cite/test_oracle.py": "debian",
    "cli": "embedded",
    "demo": "embedded",
    "docs": "debian",
    "doors": "embedded",
    "graph/test_crossref.py": "debian",
    "graph/test_scale.py": "embedded",
    "migrations/test_reversible.py": "debian",
    "packaging": "embedded",
    "pages": "embedded",
    "reader": "embedded",
    "restore": "debian",
    "settings": "debian",
    "soak": "embedded",
    "static": "debian",
    "upgrade": "embedded",
}
"""The folder, or the file, and the server that runs it for both."""


def left_to_others(kind: str) -> list[str]:
    """Return what this run leaves to another that runs at the same time."""
    together = os.environ.get("CITELEDGER_TOGETHER", "").split()
    if kind not in together:
        return []
    return sorted(folder for folder, other in SHARES.items() if other != kind and other in together)


def is_left_to_others(path: Path, kind: str) -> bool:
    """Tell whether a folder or a file of the tests is one of them."""
    if not path.is_relative_to(TESTS):
        return False
    return path.relative_to(TESTS).as_posix() in left_to_others(kind)
