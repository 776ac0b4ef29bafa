"""What --help teaches: every command with an example, and nothing that is secret."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command

from citeledger.cli.app import app
from citeledger.cli.exits import Exit
from support.deploy import REPOSITORY

from .conftest import run_alone

GROUP: object = get_command(app)
COMMANDS = sorted(getattr(GROUP, "commands", {}))
PAGE = REPOSITORY / "docs" / "cli.md"


def flat(text: str) -> str:
    """Return the text without boxes and line breaks."""
    return re.sub(r"[\s│╭╮╰╯─]+", " ", text)


def test_there_are_the_commands() -> None:
    assert {
        "demo", "deploy", "status", "ingest", "crossref", "finalize", "trace", "cite", "citations",
        "check",
    } <= set(COMMANDS)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(command: str) -> None:
    ran = run_alone(command, "--help")
    assert ran.code == 0
    assert re.search(rf"Examples?: .*citeledger {command}\b", flat(ran.out))


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_help_can_be_read_at_any_width(width: str) -> None:
    ran = run_alone("--help", COLUMNS=width, TERMINAL_WIDTH=width)
    assert ran.code == 0
    for command in COMMANDS:
        assert command in ran.out


def test_help_and_page_list_the_exit_codes() -> None:
    shown = flat(run_alone("--help").out)
    page = PAGE.read_text(encoding="utf-8")
    for code in Exit:
        assert re.search(rf"[:;] {int(code)} \w", shown), code
        assert f"| {int(code)} |" in page, code


def test_no_command_shows_the_help_and_is_an_error_of_use() -> None:
    ran = run_alone()
    assert ran.code == Exit.USAGE
    assert "citeledger" in ran.out


def test_version() -> None:
    ran = run_alone("--version")
    assert (ran.code, ran.out.startswith("citeledger ")) == (0, True)


@pytest.mark.parametrize("command", ["check", "status"])
def test_help_does_not_show_what_the_environment_holds(command: str) -> None:
    ran = run_alone(command, "--help", DATABASE_URL="postgresql://u:hunter2@h/db")
    assert "DATABASE_URL" in ran.out
    assert "hunter2" not in ran.out + ran.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section_of_the_page(command: str) -> None:
    assert f"\n### `citeledger {command}" in PAGE.read_text(encoding="utf-8")


def test_the_page_names_only_options_that_there_are() -> None:
    known = {
        option
        for command in getattr(GROUP, "commands", {}).values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help", "--version"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.read_text(encoding="utf-8")))
    assert named <= known
