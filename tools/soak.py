"""Let many clients work while things go wrong, and see that nothing is lost.

It starts a server of its own, lets clients of several firms record, judge, finalize, delete, scan
and cite, and meanwhile ends and kills backends, cancels statements, and shuts the server down
immediately. Afterwards every row is compared with what the clients' acknowledged commits say. The
summary is JSON on standard output; the exit status is 1 when something was lost or unexpected.

``python tools/soak.py --seconds 300 --clients 32 --firms 8``
"""

from __future__ import annotations

import argparse
import json
import logging
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# In place of this folder, in which this file would stand for the package of the same name.
sys.path[:1] = [str(ROOT / "tests"), str(ROOT / "python_client")]


def main() -> int:
    """Read the options, soak, print the summary."""
    from soak.run import Options, soak

    usual = Options()
    parser = argparse.ArgumentParser(description="Soak citeledger under faults; lose nothing.")
    parser.add_argument("--seconds", type=float, default=usual.seconds, help="how long")
    parser.add_argument("--clients", type=int, default=usual.clients, help="how many clients")
    parser.add_argument("--firms", type=int, default=usual.firms, help="how many firms")
    parser.add_argument("--seed", default=secrets.token_hex(4), help="to do the same again")
    parser.add_argument(
        "--server", default=usual.server, help="embedded (the default), debian, or pg15 to pg18"
    )
    parser.add_argument(
        "--faults", type=float, default=usual.faults, help="how many times the usual faults"
    )
    parser.add_argument("--directory", type=Path, help="keep the server's data here")
    given = parser.parse_args()
    # Of connections that break in the middle, which is what this is about.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    print(f"soaking for {given.seconds:g} s, seed {given.seed}", file=sys.stderr)
    summary = soak(Options(**vars(given)))
    print(json.dumps(summary, indent=2))
    return 1 if summary["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
