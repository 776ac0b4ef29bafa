"""Runs what the pages show: every SQL block in a real psql, every Python block in Python.

The SQL blocks of a page are one session of psql, in order, so that a later block may use what an
earlier one kept with ``\\gset``. Where a block shows output, psql must have printed those lines.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from support.pages import REPOSITORY, Block, blocks
from support.server import DEPLOYER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Database

PAGES = (
    "README.md", "docs/guide.md", "docs/http.md", "docs/operations.md", "docs/threat-model.md",
)  # fmt: skip
WITH_PYTHON = ("README.md", "docs/guide.md")
LOGINS = {"admin": "t_admin", "deployer": DEPLOYER, "superuser": "postgres"}
# Roles that a page makes; they belong to the cluster, so a test has to take them away again.
MADE = ("citeledger_backup",)
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
        if line not in rest:
            shown = "\n".join(printed)
            pytest.fail(f"{block.page}:{block.line}: {line!r} was not printed, but\n{shown}")


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
    last: Block | None = None
    for block in all_blocks:
        if "output" in block.asks:
            assert last is not None
            assert_shown(block, outputs[last.line])
        elif block.language == "sql":
            last = block
    kept = dict(line.split(" ", 1) for line in lines(printed[-1]))
    return {k: UUID(v) for k, v in kept.items() if not v.startswith(":")}


@pytest.mark.parametrize("page", PAGES)
def test_sql(page_db: Database, page: str) -> None:
    run_page(page_db, page)


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python(page_db: Database, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = dict(run_page(page_db, page))
    shown = [b for b in blocks(page) if b.language == "python"]
    assert shown
    for block in shown:
        # The lines keep their numbers, so that a traceback points into the page.
        text = "\n" * (block.line - 1) + block.text.replace("dbname=mydb", page_db.dsn("t_app"))
        exec(compile(text, str(REPOSITORY / page), "exec"), scope)
    if page == "README.md":
        assert capsys.readouterr().out == "fiduciary_grade 1.0\n"
    else:
        assert scope["storable"]("Total\x00 due \ud83d") == ("Total\ufffd due ?", False)
        assert scope["storable"]("Total due") == ("Total due", True)


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
    pages = [*PAGES, "CHANGELOG.md"]
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
