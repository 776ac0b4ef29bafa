"""Runs the benchmarks: ``python -m bench [quick | standard | full]``.

A run in the standard mode writes results.json, RESULTS.md and the plots into ``bench/``, one in
the full mode into ``bench/full/``, and both their figures into docs/performance.md; a quick one
shows only that everything runs, unless it is told where to write. A run that is stopped leaves its
figures so far in unfinished.json. With ``--only`` some figures are measured and printed, and
nothing is written.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from . import costs, plots, profiles, report
from .figure import Figure, Result
from .figures import FIGURES, GROWTH
from .lab import Lab
from .scale import SCALES, Scale
from .server import running

HERE = Path(__file__).resolve().parent
FOLDERS = {"standard": HERE, "full": HERE / "full"}
PAGE = HERE.parent / "docs" / "performance.md"


def _machine() -> dict[str, int]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": os.cpu_count() or 0, "memory_gb": round(memory / 2**30)}


def _wanted(scale: Scale, only: list[str]) -> list[Figure]:
    figures = [f for f in FIGURES if scale.name != "standard" or not f.full_only]
    if scale.name == "quick":
        figures = [f for f in figures if not f.full_only]
    unknown = [n for n in only if n not in {f.name for f in FIGURES} | {g for g, _ in GROWTH}]
    if unknown:
        sys.exit(f"there is no figure {', '.join(unknown)}")
    return [f for f in figures if not only or f.name in only]


def _measured(lab: Lab, figure: Figure) -> Result:
    start = time.monotonic()
    result = Result(figure, figure.measure(lab))
    spread = result.measured.pairs.ratios
    met = "" if figure.aim is None else " met" if figure.aim.met(result.ratio) else " MISSED"
    print(
        f"{figure.name:36} {result.ratio:8.3f}  [{spread.low:.3f}, {spread.high:.3f}]"
        f"  aim {figure.aim or '-'}{met}  ({time.monotonic() - start:.0f} s)",
        flush=True,
    )
    return result


def _run(
    scale: Scale, only: list[str], parent: Path | None, unfinished: Path | None
) -> dict[str, Any]:
    start = time.monotonic()
    with ExitStack() as stack:
        bench = stack.enter_context(running(parent))
        lab = stack.enter_context(Lab(bench, scale, lambda said: print(said, flush=True)))
        figures = []
        for figure in _wanted(scale, only):
            figures.append(_measured(lab, figure).as_json())
            if unfinished is not None:
                # A long run that is stopped leaves what it had measured.
                unfinished.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
        growth = []
        for name, measure in GROWTH:
            if not only or name in only:
                print(f"growth: {name}", flush=True)
                growth.append(measure(lab).as_json())
        return {
            "mode": scale.name,
            "server": bench.stated(),
            "machine": _machine(),
            "figures": figures,
            "growth": growth,
            "costs": {} if only else costs.measure(lab),
            "profiles": {} if only else profiles.measure(lab),
            "seconds": round(time.monotonic() - start),
        }


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmarks and write what they gave."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("mode", nargs="?", choices=SCALES, default="standard")
    parser.add_argument("--only", nargs="+", default=[], metavar="FIGURE")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write the results there")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the server's data goes")
    parser.add_argument("--no-plots", action="store_true", help="draw nothing")
    given = parser.parse_args(arguments)
    scale = SCALES[given.mode]
    out: Path | None = None if given.only else given.out or FOLDERS.get(scale.name)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    unfinished = None if out is None else out / "unfinished.json"
    results = _run(scale, given.only, given.data, unfinished)
    print(f"done in {results['seconds']} s")
    if out is None or unfinished is None:
        return
    (out / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if not given.no_plots:
        plots.draw(results["growth"], out / "plots")
    report.write(results, out, out / PAGE.name if given.out else PAGE)
    unfinished.unlink(missing_ok=True)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
