"""Draws how costs grow, as SVG on a white ground that any page can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

COLOURS: Final = ("#2a6f97", "#c1666b", "#5b8c5a", "#8d6a9f", "#b8860b", "#4f5d75")


def draw(growth: list[dict[str, Any]], folder: Path) -> None:
    """Draw each plot into the folder."""
    # Only a run that draws needs it.
    import matplotlib as mpl

    mpl.use("svg")
    # The same figures give the same bytes.
    mpl.rcParams |= {"svg.hashsalt": "citeledger", "svg.fonttype": "none", "font.size": 10}
    folder.mkdir(parents=True, exist_ok=True)
    for plot in growth:
        _draw(plot, folder / f"{plot['name']}.svg")


def _draw(plot: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    values = [point[0] for points in plot["lines"].values() for point in points]
    # More than two lines come in pairs of ours and theirs, and bands would only blur them.
    many = len(plot["lines"]) > 2
    for number, (label, points) in enumerate(plot["lines"].items()):
        x = [point[0] for point in points]
        colour = COLOURS[(number // 2 if many else number) % len(COLOURS)]
        axes.plot(
            x,
            [p[2] * 1e3 for p in points],
            linestyle="--" if many and number % 2 else "-",
            marker="o",
            markersize=4,
            color=colour,
            label=label,
        )
        if not many:
            # Between the quartiles.
            axes.fill_between(
                x,
                [p[1] * 1e3 for p in points],
                [p[3] * 1e3 for p in points],
                color=colour,
                alpha=0.2,
                linewidth=0,
            )
    plain = FuncFormatter(lambda value, _: f"{value:,g}")
    if max(values) > 20 * min(values):
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    axes.xaxis.set_minor_formatter("")
    times = [point[2] for points in plot["lines"].values() for point in points]
    # Within less than a decade there may be no other label.
    axes.yaxis.set_minor_formatter(plain if max(times) < 10 * min(times) else "")
    axes.set_xticks(sorted(set(values)))
    axes.set_title(plot["title"])
    axes.set_xlabel(plot["x"])
    axes.set_ylabel(plot["y"])
    axes.grid(visible=True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "citeledger bench"})
