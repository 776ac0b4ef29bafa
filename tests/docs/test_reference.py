"""docs/reference.md is what the deployed database says of itself."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from support.pages import REPOSITORY
from support.server import DEPLOYER

if TYPE_CHECKING:
    from conftest import Database

REFERENCE = REPOSITORY / "docs" / "reference.md"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """Load the tool, which is no part of a package."""
    path = REPOSITORY / "tools" / "reference_md.py"
    spec = importlib.util.spec_from_file_location("reference_md", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up by name.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "reference_md", module)
        patch.syspath_prepend(str(path.parent))
        spec.loader.exec_module(module)
    return module


def rendered(tool: ModuleType, db: Database) -> str:
    with db.connect(DEPLOYER) as connection:
        return str(tool.render(tool.read(connection)))


def test_it_is_fresh(tool: ModuleType, deployed: Database) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert text == rendered(tool, deployed), "stale: run tools/reference_md.py"


def test_everything_has_a_meaning(tool: ModuleType, deployed: Database) -> None:
    """A missing comment would print as None or as nothing."""
    text = rendered(tool, deployed)
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
def test_it_goes_stale(tool: ModuleType, db: Database, change: str) -> None:
    before = rendered(tool, db)
    with db.connect(autocommit=True) as superuser:
        superuser.execute(change)
    assert rendered(tool, db) != before
