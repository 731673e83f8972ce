"""Plot of training progress by the values of each effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from seaway.cli.learning.pictures import figure_of, plot_band, save
from seaway.learning.evaluation.statistics import learning_curve

COLUMNS = 2
"""Number of panels per row."""


def draw(files: Mapping[str, Mapping[str, Sequence[Path]]], path: Path) -> list[Path]:
    """Draw a panel for each effect with the reward over episodes for each value; return the files.

    Parameters
    ----------
    files
        Episode files by effect and value; values without files are omitted.
    """
    rows = -(-len(files) // COLUMNS)
    figure = figure_of(13, 4 * rows)
    panels = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for axes in panels[len(files) :]:
        axes.remove()
    for axes, (effect, values) in zip(panels, files.items(), strict=False):
        for at, (value, each) in enumerate(values.items()):
            curve = learning_curve(each)
            if curve:
                plot_band(axes, curve.episode, curve.reward, value, at)
        axes.set_title(effect, loc="left", fontsize="medium")
        axes.set_xlabel("episode")
        axes.set_ylabel("reward of an episode")
        if axes.lines:
            axes.legend(frameon=False, loc="lower right")
    return save(figure, path)
