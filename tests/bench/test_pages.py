"""What the pages say of the benchmarks is what results.json holds."""

from __future__ import annotations

import json
import sys

import pytest

from support.deploy import REPOSITORY

sys.path.append(str(REPOSITORY))
from bench.__main__ import FOLDERS

from bench import report

PAGE = REPOSITORY / "docs" / "performance.md"
EXAMPLE = {
    "mode": "standard",
    "server": {"server_version": "18.1", "fsync": "on"},
    "machine": {"cores": 2, "memory_gb": 8},
    "figures": [
        {
            "name": "finalize_vs_floor",
            "a": "finalize_turn",
            "b": "by hand",
            "aim": "≤ 1.3",
            "ratio": 1.25,
            "met": True,
            "quartiles": [1.2, 1.3],
            "rounds": 300,
            "a_seconds": [0.0009, 0.001, 0.0011],
            "b_seconds": [0.0007, 0.0008, 0.0009],
            "sizes": "10 sources a turn",
            "note": "",
        }
    ],
    "growth": [{"name": "finalize_by_sources", "title": "A turn with more sources"}],
    "costs": {
        "entries": 1000,
        "tables": {"citation_ledger_entry": {"bytes_a_row": 200, "index_bytes_a_row": 400}},
        "ledger_indexes": {"a_key": {"bytes_a_ledger_row": 50.5, "megabytes": 1.0}},
        "log_bytes_a_turn": {"finalize_turn": 9000},
    },
    "profiles": {
        "cite": [{"function": "read_span", "calls": 1.0, "microseconds": 30.0, "share": 0.5}]
    },
}


def test_every_part_of_the_page_is_between_markers() -> None:
    page = PAGE.read_text()
    for name in (*report.PARTS, *report.FULL_PARTS):
        assert page.count(f"<!-- bench: {name} -->") == 1, name


def test_filling_the_page_twice_changes_nothing_more() -> None:
    once = report.filled(PAGE.read_text(), EXAMPLE)
    assert "| `finalize_vs_floor` | finalize_turn, against by hand | ≤ 1.3 | 1.25 |" in once
    assert report.filled(once, EXAMPLE) == once


def test_the_results_page_shows_aim_and_result() -> None:
    page = report.results_page(EXAMPLE)
    assert "| ≤ 1.3 | 1.25 | 1.20 to 1.30 | 1 ms | 800 µs | yes |" in page


# A full run takes as long as it takes, and need not have been made.
RUNS = [m for m in FOLDERS if m == "standard" or (FOLDERS[m] / "results.json").exists()]


@pytest.mark.parametrize("mode", RUNS)
def test_the_pages_agree_with_the_results(mode: str) -> None:
    folder = FOLDERS[mode]
    results = json.loads((folder / "results.json").read_text())
    assert results["mode"] == mode
    assert PAGE.read_text() == report.filled(PAGE.read_text(), results)
    assert (folder / "RESULTS.md").read_text() == report.results_page(results)
    for plot in results["growth"]:
        assert (folder / "plots" / f"{plot['name']}.svg").exists()
