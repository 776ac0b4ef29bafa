#!/usr/bin/env python3
"""Make openapi/citeledger.json from the HTTP door.

``openapi_json.py`` writes the file, ``openapi_json.py --check`` fails when it is stale. It needs
the extra ``citeledger[http]``, and no database.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
TARGET = REPOSITORY / "openapi" / "citeledger.json"

sys.path.insert(0, str(REPOSITORY / "python_client"))

from citeledger.http import JwtPrincipal, create_app  # noqa: E402


def render() -> str:
    """Write the document as text; neither the key nor the database matters to it."""
    principal = JwtPrincipal("x" * 32, algorithms=["HS256"], audience="citeledger")
    document = create_app("", principal=principal).openapi()
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> int:
    """Write the file, or say whether it is stale."""
    text = render()
    if "--check" in sys.argv[1:]:
        if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
            print(f"{TARGET.relative_to(REPOSITORY)} is stale; run 'make docs'", file=sys.stderr)
            return 1
        return 0
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
