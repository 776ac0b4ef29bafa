"""Every raise of the package, the catalogue of errors, the page and the exceptions agree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import citeledger
from support.pages import REPOSITORY
from support.tools import tool

CLIENT = REPOSITORY / "python_client" / "citeledger"
CATALOGUE: dict[str, Any] = tomllib.loads((CLIENT / "errors.toml").read_text(encoding="utf-8"))
ERRORS: dict[str, dict[str, Any]] = CATALOGUE["errors"]
PAGE = (REPOSITORY / "docs" / "errors.md").read_text(encoding="utf-8")

# PostgreSQL's names of the SQLSTATEs that the package raises.
CONDITIONS = {
    "01000": "warning",
    "22023": "invalid_parameter_value",
    "25000": "invalid_transaction_state",
    "40001": "serialization_failure",
    "42501": "insufficient_privilege",
    "55000": "object_not_in_prerequisite_state",
    "P0002": "no_data_found",
}

# A string of SQL, with its doubled quotes; and a statement that raises something of its own, which
# a bare RAISE does not.
_STRING = r"'(?:[^']|'')*'"
_RAISE = re.compile(
    rf"^\s*raise\b(?!\s*;)(?P<rest>(?:{_STRING}|[^';])*);", re.MULTILINE | re.IGNORECASE
)
_LEVEL = re.compile(r"\s+(?P<level>exception|warning)\s+using\s", re.IGNORECASE)
_OWNER = re.compile(
    r"^create (?:or replace )?function (?P<function>[\w.]+)\s*\(|^(?P<block>do) \$\$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Site:
    """One RAISE in a deploy script."""

    where: str
    raised_by: str
    level: str
    sqlstate: str
    message: str
    options: frozenset[str]


def _option(name: str, text: str) -> re.Match[str] | None:
    return re.search(rf"\b{name}\s*=\s*(?:format\(\s*)?(?P<value>{_STRING})", text)


def _site(path: Path, text: str, found: re.Match[str]) -> Site:
    change = path.relative_to(REPOSITORY / "deploy").with_suffix("").as_posix()
    where = f"{change}:{text.count(chr(10), 0, found.start('rest')) + 1}"
    level = _LEVEL.match(found["rest"])
    assert level is not None, f"{where}: not of the form raise exception|warning using"
    owners = list(_OWNER.finditer(text, 0, found.start()))
    assert owners, f"{where}: in no function and no block"
    raised_by = owners[-1]["function"] or f"deploy {change}"
    errcode = _option("errcode", found["rest"])
    message = _option("message", found["rest"])
    assert message is not None, f"{where}: no message that can be read"
    return Site(
        where=where,
        raised_by=raised_by,
        level=level["level"].lower(),
        sqlstate=errcode["value"][1:-1] if errcode else "",
        message=message["value"][1:-1].replace("''", "'"),
        options=frozenset(re.findall(r"\b(errcode|message|detail|hint)\s*=(?!=)", found["rest"])),
    )


def planned() -> list[Path]:
    """Return the deploy script of every change of the plan: the rest is no part of the package."""
    build_sql = tool("build_sql")
    plan = (REPOSITORY / "sqitch.plan").read_text(encoding="utf-8")
    return [REPOSITORY / "deploy" / f"{name}.sql" for name in build_sql.planned_changes(plan)]


def sites_of(path: Path) -> tuple[list[Site], set[str]]:
    """Read every RAISE of a deploy script, and which functions it makes."""
    text = path.read_text(encoding="utf-8")
    # Comments may speak of raising; a line of code never starts with one.
    text = re.sub(r"^\s*--.*$", "", text, flags=re.MULTILINE)
    made = {owner["function"] for owner in _OWNER.finditer(text) if owner["function"]}
    return [_site(path, text, match) for match in _RAISE.finditer(text)], made


def sites() -> list[Site]:
    """Read every RAISE of the deploy scripts, but for those of functions that were reworked."""
    found: list[Site] = []
    for path in planned():
        more, made = sites_of(path)
        found = [site for site in found if site.raised_by not in made] + more
    return found


SITES = sites()


def test_there_are_sites() -> None:
    """The reader of SQL must not fall silent: it finds as many as a plain search does."""
    plain = 0
    for path in planned():
        lines = path.read_text(encoding="utf-8").splitlines()
        plain += sum(bool(re.match(r"\s*raise\s+(?!;)", line)) for line in lines)
    assert sum(len(sites_of(path)[0]) for path in planned()) == plain > 0
    assert len(SITES) > plain / 2


@pytest.mark.parametrize("site", SITES, ids=lambda s: s.where)
def test_a_raise_says_everything(site: Site) -> None:
    wanted = {"message", "detail", "hint"}
    if site.level == "exception":
        wanted.add("errcode")
    assert site.options >= wanted


def test_the_database_and_the_catalogue_agree() -> None:
    """Nothing is raised that the catalogue lacks, and it lists nothing that is not raised."""
    raised = {
        (s.sqlstate or ("01000" if s.level == "warning" else "P0001"), s.message, s.raised_by)
        for s in SITES
    }
    listed = {
        (e["sqlstate"], e["message"], by)
        for e in ERRORS.values()
        if e["sqlstate"]
        for by in e["raised_by"]
    }
    assert raised == listed


def test_a_warning_is_no_exception() -> None:
    levels = {s.message: s.level for s in SITES}
    for key, error in ERRORS.items():
        if error["sqlstate"]:
            assert (levels[error["message"]] == "warning") == (error["exception"] == ""), key


def client_sites() -> list[tuple[str, str, str]]:
    """Return where the client raises, which class, and its message with %s for what varies."""
    found = []
    for path in sorted(CLIENT.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            cls = getattr(citeledger, node.func.id, None)
            if not (isinstance(cls, type) and issubclass(cls, citeledger.CiteLedgerError)):
                continue
            first = node.args[0]
            if isinstance(first, ast.Constant):
                message = str(first.value)
            else:
                assert isinstance(first, ast.JoinedStr), f"{path.name}:{node.lineno}"
                message = "".join(
                    str(p.value) if isinstance(p, ast.Constant) else "%s" for p in first.values
                )
            keywords = {k.arg for k in node.keywords}
            assert "hint" in keywords, f"{path.name}:{node.lineno} has no hint"
            found.append((f"{path.name}:{node.lineno}", node.func.id, message))
    return found


def test_the_client_and_the_catalogue_agree() -> None:
    patterns = {
        key: (e["exception"], re.escape(e["message"]).replace("%s", ".+"))
        for key, e in ERRORS.items()
        if "client" in e["raised_by"]
    }
    unused = set(patterns)
    for where, cls, message in client_sites():
        keys = {k for k, (c, p) in patterns.items() if c == cls and re.fullmatch(p, message)}
        assert keys, f"{where}: {cls}({message!r}) is not in the catalogue"
        unused -= keys
    assert not unused


@pytest.mark.parametrize("key", ERRORS)
def test_an_entry_is_whole(key: str) -> None:
    error = ERRORS[key]
    assert set(error) == {
        "sqlstate", "condition", "exception", "message", "raised_by", "meaning", "remedy",
    }  # fmt: skip
    assert error["message"]
    assert error["raised_by"]
    assert error["meaning"].endswith(".")
    assert error["remedy"].endswith(".")
    assert error["condition"] == CONDITIONS.get(error["sqlstate"], "")
    if error["exception"]:
        cls = getattr(citeledger, error["exception"])
        assert issubclass(cls, citeledger.CiteLedgerError)
        assert error["exception"] in citeledger.__all__
        if error["sqlstate"]:
            mapping = CATALOGUE["mapping"]
            code = error["sqlstate"]
            assert mapping.get(code, mapping.get(code[:2])) == error["exception"]


def test_the_mapping_names_exceptions() -> None:
    for name in CATALOGUE["mapping"].values():
        assert issubclass(getattr(citeledger, name), citeledger.CiteLedgerError)


def test_the_page_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "tools/errors_md.py", "--check"],
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("key", ERRORS)
def test_the_page_has_every_error(key: str) -> None:
    """Message, SQLSTATE and exception stand in one section of the page."""
    error = ERRORS[key]
    heading = f"### {error['message'].replace('%s', '…')}\n"
    assert PAGE.count(heading) == 1
    section = PAGE.split(heading)[1].split("\n### ")[0]
    assert error["meaning"] in section
    assert error["remedy"] in section
    if error["sqlstate"]:
        assert f"`{error['sqlstate']}`" in section
    if error["exception"]:
        assert f"`{error['exception']}`" in section
