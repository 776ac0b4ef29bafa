"""The report of coverage adds up what the profiler counted, and goes red for what nobody ran."""

from __future__ import annotations

import json
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "coverage.py"


def load() -> Any:
    """Import the tool under a name of its own: another package is called coverage."""
    spec = util.spec_from_file_location("coverage_of_sql", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules["coverage_of_sql"] = module
    spec.loader.exec_module(module)
    return module


coverage = load()


def run(counts: list[int], *, name: str = "s.f()", body: str = "b") -> str:
    """Write what one database counted of a function: begin if … then return end if; return end."""
    form = [
        (0, None, None, 2, "statement block"),
        (1, 0, "body", 3, "IF"),
        (2, 1, "then body", 4, "RETURN"),
        (3, 0, "body", 6, "RETURN"),
    ]
    return json.dumps([[name, body, *f, n] for f, n in zip(form, counts, strict=True)])


def test_databases_are_added_up() -> None:
    """Each test has a database of its own; together they run everything."""
    (function,) = coverage.add_up([run([1, 1, 1, 0]), run([1, 1, 0, 1])])
    assert [s.count for s in function.statements.values()] == [2, 2, 1, 1]
    assert list(function.missing()) == []


def test_a_statement_that_was_never_executed_is_missing() -> None:
    (function,) = coverage.add_up([run([1, 1, 0, 1])])
    assert list(function.missing()) == [(4, "RETURN")]


def test_the_way_past_an_if_is_a_branch() -> None:
    (function,) = coverage.add_up([run([2, 2, 2, 1])])
    assert list(function.missing()) == [(3, "past the IF")]


def test_a_function_that_a_test_renamed_or_replaced_is_no_other_function() -> None:
    lines = [
        run([1, 1, 1, 0]),
        run([1, 1, 0, 1]),
        run([0, 0, 0, 0], name="s.away()"),
        run([0, 0, 0, 0], body="another"),
    ]
    (function,) = coverage.add_up(lines)
    assert function.name == "s.f()"
    assert list(function.missing()) == []


def test_the_report_fails_for_what_is_missing_and_for_an_excuse_that_is_not_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = coverage.add_up([run([1, 1, 0, 1])])
    assert coverage.report(part) == 1
    assert "never executed: s.f(), line 4 of the body: RETURN" in capsys.readouterr().out
    monkeypatch.setitem(coverage.NOT_COVERED, ("s.f()", 4, "RETURN"), "it is for this test")
    assert coverage.report(part) == 0
    assert coverage.report(coverage.add_up([run([2, 2, 1, 1])])) == 1
    assert "is covered or gone" in capsys.readouterr().out


def test_nothing_profiled_is_no_success() -> None:
    """A server without the profiler must not look like full coverage."""
    assert coverage.report([]) == 1
