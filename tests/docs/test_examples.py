"""Runs what the pages show: every SQL block in a real psql, every Python block in Python.

The SQL blocks of a page are one session of psql, in order, so that a later block may use what an
earlier one kept with ``\\gset``. Then the Python blocks run, in order, in one namespace that
begins with the ids that were kept. Where a block shows output, it must have printed those lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from support.pages import REPOSITORY, Block, blocks, named
from support.server import DEPLOYER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Database

PAGES = (
    "README.md", "docs/guide.md", "docs/http.md", "docs/operations.md", "docs/services.md",
    "docs/threat-model.md",
)  # fmt: skip
WITH_PYTHON = ("README.md", "docs/guide.md")
LOGINS = {
    "admin": "t_admin",
    "authenticator": "authenticator",
    "deployer": DEPLOYER,
    "superuser": "postgres",
}
# Roles that a page makes; they belong to the cluster, so a test has to take them away again.
MADE = ("authenticated", "authenticator", "citeledger_backup")
KEPT = ("firm_id", "project_id", "chat_id", "document_id")

_ROW_COUNT = re.compile(r"\(\d+ rows?\)")


@pytest.fixture
def page_db(db: Database) -> Iterator[Database]:
    """Give a database, and drop the roles that a page made."""
    yield db
    with db.connect(autocommit=True) as superuser:
        for role in MADE:
            superuser.execute(f"drop role if exists {role}")


def script(statements: list[Block]) -> str:
    """Write the session: each block by the login it names, its output between marks."""
    parts = []
    login = ""
    for number, block in enumerate(statements):
        wanted = LOGINS[block.asks.get("as", "admin")]
        if wanted != login:
            parts.append(f"\\connect - {wanted}")
            login = wanted
        parts.append(f"\\echo <<{number}>>")
        if "raises" in block.asks:
            parts += [
                "\\set ON_ERROR_STOP off",
                block.text,
                "\\echo :ERROR :SQLSTATE",
                "rollback;",
                "\\set ON_ERROR_STOP on",
            ]
        else:
            parts.append(block.text)
    parts.append(f"\\echo <<{len(statements)}>>")
    parts += [f"\\echo {name} :{name}" for name in KEPT]
    return "\n".join(parts)


def lines(text: str) -> list[str]:
    """Return the lines that matter, without psql's row counts."""
    stripped = (line.rstrip() for line in text.splitlines())
    return [line for line in stripped if line and not _ROW_COUNT.fullmatch(line)]


def assert_shown(block: Block, printed: list[str]) -> None:
    """Fail unless the lines of the block were printed, in their order."""
    rest = iter(printed)
    for line in lines(block.text):
        # […] stands for what differs each time.
        wanted = re.compile(".+".join(map(re.escape, line.split("[…]"))))
        if not any(map(wanted.fullmatch, rest)):
            shown = "\n".join(printed)
            pytest.fail(f"{block.page}:{block.line}: {line!r} was not printed, but\n{shown}")


def showing(all_blocks: list[Block]) -> Iterator[tuple[Block, Block]]:
    """Pair each block that shows an output with the block whose output it is."""
    last: Block | None = None
    for block in all_blocks:
        if "output" in block.asks:
            assert last is not None, f"{block.page}:{block.line}"
            yield last, block
        elif block.language in ("sql", "python") or block.asks.get("as") == "shell":
            last = block


def run_page(db: Database, page: str) -> dict[str, UUID]:
    """Run the SQL of a page, check what it shows, and return the ids that it kept."""
    all_blocks = blocks(page)
    statements = [b for b in all_blocks if b.language == "sql"]
    done = db.server.psql("-q", user=LOGINS["admin"], dbname=db.name, stdin=script(statements))
    printed = re.split(r"^<<\d+>>\n", done.stdout, flags=re.MULTILINE)[1:]
    at = statements[len(printed) - 1] if 0 < len(printed) <= len(statements) else None
    where = f"{page}:{at.line}" if at else page
    assert done.returncode == 0, f"{where}\n{done.stderr}"
    outputs: dict[int, list[str]] = {}
    for number, block in enumerate(statements):
        outputs[block.line] = lines(printed[number])
        if "raises" in block.asks:
            assert outputs[block.line][-1] == f"true {block.asks['raises']}", (
                f"{page}:{block.line}\n{done.stderr}"
            )
    for block, shown in showing(all_blocks):
        if block.language == "sql":
            assert_shown(shown, outputs[block.line])
    kept = dict(line.split(" ", 1) for line in lines(printed[-1]))
    return {k: UUID(v) for k, v in kept.items() if not v.startswith(":")}


@pytest.mark.parametrize("page", PAGES)
def test_sql(page_db: Database, page: str) -> None:
    run_page(page_db, page)


def addressed(text: str, db: Database) -> str:
    """Put the address of the test's database where a page has one of its own."""
    where = urlencode({"host": db.server.host, "port": db.server.port})
    return text.replace("dbname=mydb", db.dsn("t_app")).replace(
        "postgresql+psycopg:///mydb", f"postgresql+psycopg://t_app@/{db.name}?{where}"
    )


def test_the_shell(page_db: Database, tmp_path: Path) -> None:
    """The commands of the README, in a folder of their own, with the ids of its tour."""
    ids = run_page(page_db, "README.md")
    all_blocks = blocks("README.md")
    expected = {block.line: shown for block, shown in showing(all_blocks)}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "CITELEDGER_"))}
    environment = (
        kept
        | {name: str(value) for name, value in ids.items()}
        | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY / "python_client"),
            "DATABASE_URL": page_db.dsn("t_app"),
            "CITELEDGER_FIRM_ID": str(ids["firm_id"]),
        }
    )
    run = [b for b in all_blocks if b.asks.get("as") == "shell"]
    assert run
    for block in run:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            check=False,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, f"README.md:{block.line}\n{done.stdout}{done.stderr}"
        if block.line in expected:
            assert_shown(expected[block.line], lines(done.stdout))
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The Deposit equals two months" in report


def close(scope: dict[str, Any]) -> None:
    """Close what a page leaves open, as a program does when it ends."""
    if "connection" in scope:
        scope["connection"].close()
    if "engine" in scope:
        scope["engine"].dispose()
    # A page's hook is for sessions of its own.
    if "set_context" in scope:
        event.remove(Session, "after_begin", scope["set_context"])


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python(page_db: Database, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = dict(run_page(page_db, page))
    all_blocks = blocks(page)
    expected = {block.line: shown.text for block, shown in showing(all_blocks)}
    run = [b for b in all_blocks if b.language == "python"]
    assert run
    try:
        for block in run:
            # The lines keep their numbers, so that a traceback points into the page.
            text = "\n" * (block.line - 1) + addressed(block.text, page_db)
            capsys.readouterr()
            exec(compile(text, str(REPOSITORY / page), "exec"), scope)
            printed = lines(capsys.readouterr().out)
            assert printed == lines(expected.get(block.line, "")), f"{page}:{block.line}"
    finally:
        close(scope)
    if "storable" in scope:
        assert scope["storable"]("Total\x00 due \ud83d") == ("Total\ufffd due ?", False)
        assert scope["storable"]("Total due") == ("Total due", True)


def test_the_demo_prints_what_the_readme_shows() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "citeledger.demo"],
        check=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "python_client"), "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    at = 0
    for part in named("README.md", "demo").text.split("[…]\n"):
        found = done.stdout.find(part, at)
        assert found >= 0, f"not printed, or not in this order:\n{part}\n{done.stdout}"
        at = found + len(part)


def test_each_task_is_shown_in_three_ways() -> None:
    """Plain SQL, psycopg and SQLAlchemy, side by side, wherever an application does something."""
    text = (REPOSITORY / "docs" / "guide.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^##+ ([^\n]*)\n(.*?)(?=^##+ |\Z)", text, re.MULTILINE | re.DOTALL))
    for task in (
        "Context and permissions", "Recording sources", "Finalizing a turn", "Traces",
        "Pages and blocks", "One quote", "Lists", "Locks, deadlocks and retrying",
    ):  # fmt: skip
        shown = re.findall(r"^```python\n(.*?)^```$", sections[task], re.MULTILINE | re.DOTALL)
        assert any("client." in block or "connection.execute" in block for block in shown), task
        assert any("session" in block for block in shown), task
        assert "```sql" in sections[task] or "In plain SQL" in sections[task], task


def test_every_block_says_what_it_is() -> None:
    """A misspelt comment or language would silently not be tested."""
    for page in PAGES:
        for block in blocks(page):
            assert block.language in {"sql", "sh", "text", "python"}, f"{page}:{block.line}"
            assert set(block.asks) <= {"as", "raises", "output", "id"}, f"{page}:{block.line}"
        assert len(blocks(page)) * 2 == len(
            re.findall(r"^```", (REPOSITORY / page).read_text(encoding="utf-8"), re.MULTILINE)
        )


def test_links_lead_somewhere() -> None:
    """Links between the pages, and to headings of them."""
    pages = ["README.md", "CHANGELOG.md"]
    pages += [f"docs/{file.name}" for file in sorted((REPOSITORY / "docs").glob("*.md"))]
    for page in pages:
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if target.startswith("https://"):
                continue
            path, _, anchor = target.partition("#")
            file = (REPOSITORY / page).parent / path if path else REPOSITORY / page
            assert file.is_file(), f"{page}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = {
                    re.sub(r"[^a-z0-9 _-]", "", h.lower()).replace(" ", "-") for h in headings
                }
                assert anchor in anchors, f"{page}: {target}"
