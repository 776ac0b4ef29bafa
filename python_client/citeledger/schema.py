"""The schema that belongs to this client, as the one SQL text that installs it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2] / "sql" / "citeledger.sql"


def installation_sql() -> str:
    """Return the text of ``citeledger.sql``: from the wheel, or from the checkout it runs in.

    It holds no transaction control, so run it in one: ``psql -X -v ON_ERROR_STOP=1 -1 -f -``.
    """
    bundled = files(__package__).joinpath("sql", "citeledger.sql")
    if bundled.is_file():
        return bundled.read_text(encoding="utf-8")
    if _CHECKOUT.is_file():
        return _CHECKOUT.read_text(encoding="utf-8")
    msg = f"citeledger.sql is neither in the package nor at {_CHECKOUT}; run 'make sql'"
    raise FileNotFoundError(msg)
