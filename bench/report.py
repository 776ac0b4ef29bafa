"""Writes what results.json holds as Markdown: the table, and the parts of docs/performance.md.

Everything is made from the JSON alone, so that a test can say whether the pages still agree with
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Results = dict[str, Any]


def _ratio(value: float) -> str:
    """Write a ratio with three digits that say something."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _time(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _measure(figure: dict[str, Any], side: str) -> str:
    value = figure[f"{side}_seconds"][1]
    return f"{value:.0f} a second" if "per second" in figure["a"] else _time(value)


def figures_table(results: Results) -> str:
    """Return the table of every figure: aim, result, met or not."""
    lines = [
        "| figure | A, against B | aim | result | quartiles | A | B | met |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for f in results["figures"]:
        met = "" if f["met"] is None else "yes" if f["met"] else "**no**"
        low, high = f["quartiles"]
        lines.append(
            f"| `{f['name']}` | {f['a']}, against {f['b']}<br>{f['sizes']} | {f['aim'] or ''}"
            f" | {_ratio(f['ratio'])} | {_ratio(low)} to {_ratio(high)}"
            f" | {_measure(f, 'a')} | {_measure(f, 'b')} | {met} |"
        )
    return "\n".join(lines)


def summary_table(results: Results) -> str:
    """Return the short table of docs/performance.md: the figures that have an aim."""
    lines = ["| figure | A, against B | aim | result |", "|---|---|---|---|"]
    for f in results["figures"]:
        if f["aim"] is not None:
            mark = "" if f["met"] else ", missed"
            lines.append(
                f"| `{f['name']}` | {f['a']}, against {f['b']} | {f['aim']}"
                f" | {_ratio(f['ratio'])}{mark} |"
            )
    return "\n".join(lines)


def costs_table(results: Results) -> str:
    """Return what a row costs on disk and a turn in the log."""
    costs = results["costs"]
    lines = [
        f"With {costs['entries']:,} entries in the ledger:",
        "",
        "| table | bytes a row | bytes of indexes a row |",
        "|---|---|---|",
        *(
            f"| `{name}` | {table['bytes_a_row']:,} | {table['index_bytes_a_row']:,} |"
            for name, table in costs["tables"].items()
        ),
        "",
        "| index of `citation_ledger_entry` | bytes an entry of the table | megabytes |",
        "|---|---|---|",
        *(
            f"| `{name}` | {index['bytes_a_ledger_row']:g} | {index['megabytes']:,g} |"
            for name, index in costs["ledger_indexes"].items()
        ),
        "",
        "| a turn with 10 sources | bytes of log |",
        "|---|---|",
        *(f"| {side} | {size:,} |" for side, size in costs["log_bytes_a_turn"].items()),
    ]
    return "\n".join(lines)


def profiles_table(results: Results) -> str:
    """Return which functions the time of a call goes to."""
    lines = [
        "| call | function | times a call | own µs a call | share |",
        "|---|---|---|---|---|",
    ]
    for call, functions in results["profiles"].items():
        for number, f in enumerate(functions):
            name, times = f"`{f['function']}`", f"{f['calls']}"
            if f["calls"] is None:
                name, times = f["function"], ""
            lines.append(
                f"| {call if number == 0 else ''} | {name} | {times}"
                f" | {f['microseconds']:,g} | {f['share']:.0%} |"
            )
    return "\n".join(lines)


def conditions(results: Results) -> str:
    """Return a sentence on where and how it was measured."""
    server, machine = results["server"], results["machine"]
    settings = ", ".join(
        f"`{name}` {value}" for name, value in server.items() if name != "server_version"
    )
    return (
        f"Measured in the mode `{results['mode']}` on PostgreSQL {server['server_version']} with"
        f" {settings}; {machine['cores']} cores, {machine['memory_gb']} GB of memory,"
        " client and server on the same machine."
    )


def full_summary(results: Results) -> str:
    """Return what a run in the full mode says of itself in docs/performance.md."""
    return f"{conditions(results)}\n\n{summary_table(results)}"


PARTS: Final[dict[str, Callable[[Results], str]]] = {
    "conditions": conditions,
    "figures": summary_table,
    "costs": costs_table,
    "profiles": profiles_table,
}
FULL_PARTS: Final[dict[str, Callable[[Results], str]]] = {"full": full_summary}


def results_page(results: Results) -> str:
    """Return the whole of RESULTS.md."""
    plots = "\n\n".join(f"![{g['title']}](plots/{g['name']}.svg)" for g in results["growth"])
    notes = "\n".join(f"- `{f['name']}`: {f['note']}." for f in results["figures"] if f["note"])
    return (
        "# Results of the benchmarks\n\n"
        "Made by `python -m bench`; not edited by hand. A result is the ratio of the medians of A"
        " and of B, which ran in turn (A B A B) on one server; the quartiles are of the ratio"
        " within a round.\n\n"
        f"{conditions(results)}\n\n{figures_table(results)}\n\n{notes}\n\n"
        f"## What it costs\n\n{costs_table(results)}\n\n"
        f"## Where the time goes\n\n{profiles_table(results)}\n\n"
        f"## How it grows\n\n{plots}\n"
    )


def filled(page: str, results: Results) -> str:
    """Return a page with the parts between its markers, those of the run's mode, made anew."""
    for name, part in (FULL_PARTS if results["mode"] == "full" else PARTS).items():
        begin, end = f"<!-- bench: {name} -->", "<!-- bench: end -->"
        before, found, rest = page.partition(begin)
        if found:
            page = f"{before}{begin}\n{part(results)}\n{end}{rest.partition(end)[2]}"
    return page


def write(results: Results, folder: Path, page: Path) -> None:
    """Write RESULTS.md beside results.json, and fill the page's parts."""
    (folder / "RESULTS.md").write_text(results_page(results))
    if page.exists():
        page.write_text(filled(page.read_text(), results))
