"""What docs/reader.md shows runs as it stands there."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from psycopg_pool import ConnectionPool

from citeledger.cli.app import run
from citeledger.http import create_app
from reader.conftest import Room
from reader.library import FAR, Library
from support.door import principal, running
from support.pages import blocks

if TYPE_CHECKING:
    from conftest import Database

PAGE = "docs/reader.md"


def text_of(language: str) -> list[str]:
    return [block.text for block in blocks(PAGE) if block.language == language]


def test_the_commands_of_the_report(
    shelf: Database, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", shelf.dsn("t_app"))
    monkeypatch.setenv("CITELEDGER_FIRM_ID", str(library.firm_id))
    (commands,) = (text for text in text_of("sh") if "report" in text)
    for line in commands.splitlines():
        program, *arguments = shlex.split(line.partition(" > ")[0])
        assert program == "citeledger"
        assert run([str(library.chat) if a == "CHAT" else a for a in arguments]) == 0
    assert [f.name for f in tmp_path.iterdir()] == ["report.html"]


def test_the_login_of_the_reading_room(shelf: Database, library: Library) -> None:
    (statements,) = text_of("sql")
    with shelf.connect(autocommit=True) as superuser:
        try:
            superuser.execute(statements.encode())
            dsn = shelf.dsn("my_reading_room")
            with running(create_app(dsn, principal=principal()), library.records) as door:
                assert FAR in Room(door, library).text(library.path("far"))
                assert door.cite().json["verified"]
        finally:
            superuser.execute("drop role if exists my_reading_room")


def test_a_reader_of_ones_own(shelf: Database, library: Library) -> None:
    (code,) = text_of("python")
    with ConnectionPool(shelf.dsn("t_app"), min_size=1, max_size=2) as pool:
        scope: dict[str, Any] = {
            "pool": pool,
            "firm_id": library.firm_id,
            "user_id": None,
            "chat_id": library.chat,
            "entry_id": library.entries["far"],
        }
        exec(compile(code, PAGE, "exec"), scope)
    assert scope["html"].count("<mark") == 1
    assert "Verified now" in scope["whole"]
