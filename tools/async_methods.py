#!/usr/bin/env python3
"""Make python_client/citeledger/async_methods.py from methods.py: the same calls, awaited.

``async_methods.py`` writes the file, ``async_methods.py --check`` fails when it is stale. It needs
neither the package nor a database.
"""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "python_client" / "citeledger"
SOURCE = PACKAGE / "methods.py"
TARGET = PACKAGE / "async_methods.py"

# Each text of the source, and what stands in its place; each must be there.
CHANGES = (
    (
        '"""The calls, named as in SQL, for a client that waits for each answer."""\n',
        '"""The calls, named as in SQL, for a client that awaits each answer."""\n\n'
        "# Made by tools/async_methods.py from methods.py: change that, and run 'make docs'.\n",
    ),
    ("\nclass Methods:\n", "\nclass AsyncMethods:\n"),
    ("\n    def ", "\n    async def "),
    ("        return self._run(", "        return await self._run("),
)


def render() -> str:
    """Write the asynchronous methods as text."""
    text = SOURCE.read_text(encoding="utf-8")
    for old, new in CHANGES:
        if old not in text:
            msg = f"{SOURCE.name} has no {old!r}"
            raise ValueError(msg)
        text = text.replace(old, new)
    return text


def main() -> int:
    """Write the file, or say whether it is stale."""
    text = render()
    if "--check" in sys.argv[1:]:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
            print(f"{TARGET.name} is stale; run 'make docs'", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
