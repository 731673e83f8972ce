"""Curves of a soak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.soak.levels import WARM_UP, Trend
from seaway.cli.learning.pictures import figure_of, save

COLUMNS = 2
PANEL_INCHES = 2.4


def draw(
    times_s: Sequence[float], curves: Mapping[str, Sequence[float]], trends: Mapping[str, Trend], path: Path
) -> list[Path]:
    """Draw a panel for each figure, with the warm-up in grey; return the files."""
    rows = -(-len(curves) // COLUMNS)
    figure = figure_of(13, PANEL_INCHES * rows)
    panels = list(figure.subplots(rows, COLUMNS, squeeze=False, sharex=True).flat)
    minutes = [(each - times_s[0]) / 60 for each in times_s]
    for axes, (name, values) in zip(panels, curves.items(), strict=False):
        axes.plot(minutes, values, linewidth=1)
        axes.axvspan(0, minutes[int(len(minutes) * WARM_UP)], color="#eeeeee")
        axes.set_ylim(bottom=0)
        axes.set_title(f"{name}: {'level' if trends[name].level else 'grows'}", loc="left", fontsize="medium")
        axes.set_xlabel("minutes")
    for axes in panels[len(curves) :]:
        axes.remove()
    return save(figure, path)
