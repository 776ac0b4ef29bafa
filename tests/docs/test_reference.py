"""docs/reference.md is what the deployed database says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.pages import REPOSITORY
from support.server import DEPLOYER
from support.tools import tool

if TYPE_CHECKING:
    from conftest import Database

REFERENCE = REPOSITORY / "docs" / "reference.md"


# Which the other one imports.
tool("build_sql")
reference_md = tool("reference_md")


def rendered(db: Database) -> str:
    with db.connect(DEPLOYER) as connection:
        return str(reference_md.render(reference_md.read(connection)))


def test_it_is_fresh(deployed: Database) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert text == rendered(deployed), "stale: run tools/reference_md.py"


def test_everything_has_a_meaning(deployed: Database) -> None:
    """A missing comment would print as None or as nothing."""
    text = rendered(deployed)
    assert "None" not in text
    assert "|  |\n" not in text


@pytest.mark.parametrize(
    "change",
    [
        "comment on function citeledger.version() is 'Another meaning.'",
        "comment on column citeledger.chats.title is 'Another meaning.'",
        "comment on policy chats_of_the_firm on citeledger.chats is 'Another meaning.'",
        "comment on trigger messages_seal on citeledger.messages is 'Another meaning.'",
        "comment on index citeledger.chats_project_idx is 'Another meaning.'",
        "comment on constraint chats_pkey on citeledger.chats is 'Another meaning.'",
        "alter table citeledger.chats no force row level security",
        "alter table citeledger.chats alter column title set not null",
        "alter function citeledger.version() stable",
        "grant execute on function citeledger.firm_ids() to citeledger_app",
        "grant update (title) on citeledger.chats to citeledger_app",
        "drop index citeledger.chats_project_idx",
    ],
)
def test_it_goes_stale(db: Database, change: str) -> None:
    before = rendered(db)
    with db.connect(autocommit=True) as superuser:
        superuser.execute(change)
    assert rendered(db) != before
