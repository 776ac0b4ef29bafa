"""The benchmarks run, at toy sizes: nothing here passes or fails on time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.deploy import REPOSITORY
from support.server import server_kind

NAMES = {
    "finalize_vs_floor",
    "finalize_tps_vs_floor_1",
    "finalize_tps_vs_floor_4",
    "finalize_tps_vs_floor_8",
    "finalize_1e6_vs_1e4",
    "orm_vs_finalize",
    "backfill_vs_floor",
    "cite_many_40k_vs_page_read",
    "cite_single_vs_pk_read",
    "trace_vs_peer",
    "walk_1hop_recursive_vs_ours",
    "walk_2hop_recursive_vs_ours",
    "walk_3hop_recursive_vs_ours",
    "resolve_vs_floor",
    "rebuild_peer_vs_resolve",
    "ingest_one_trigger_cost",
    "ingest_bulk_trigger_cost",
    "late_insert_cost",
    "client_overhead",
}


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.mark.skipif(
    server_kind() == "debian",
    reason="the benchmarks bring a server of their own: the run on the embedded one shows them",
)
def test_a_quick_run_measures_every_figure_and_finds_both_sides_equal(tmp_path: Path) -> None:
    done = bench("quick", "--out", str(tmp_path), "--no-plots")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "unfinished.json").exists()
    results = json.loads((tmp_path / "results.json").read_text())
    figures = {figure["name"]: figure for figure in results["figures"]}
    assert set(figures) >= NAMES
    assert all(figure["ratio"] > 0 for figure in figures.values())
    assert all(figures[name]["aim"] is not None for name in NAMES)
    assert all(points for plot in results["growth"] for points in plot["lines"].values())
    assert results["server"]["fsync"] == "on"
    page = (tmp_path / "RESULTS.md").read_text()
    assert all(f"`{name}`" in page for name in NAMES)


def test_a_figure_that_is_not_there_is_refused() -> None:
    done = bench("quick", "--only", "finalize_vs_wishes")
    assert done.returncode == 1
    assert "finalize_vs_wishes" in done.stderr
