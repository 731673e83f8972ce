"""How training goes by the values of each effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from seaway.cli.evaluate_pictures import figure_of, plot_band, save
from seaway.learning.evaluation.courses import course_of


def draw(files: Mapping[str, Mapping[str, Sequence[Path]]], path: Path) -> list[Path]:
    """Draw a panel for each effect with the reward over episodes for each value; return the files.

    Parameters
    ----------
    files
        Files of episodes by effect and value; a value without any is left out.
    """
    figure = figure_of(13, 8)
    for axes, (effect, values) in zip(figure.subplots(2, 2).flat, files.items(), strict=True):
        for at, (value, each) in enumerate(values.items()):
            course = course_of(each)
            if course:
                plot_band(axes, course.episode, course.reward, value, at)
        axes.set_title(f"reward of an episode by {effect}", loc="left", fontsize="medium")
        axes.set_xlabel("episode")
        if axes.lines:
            axes.legend(frameon=False, loc="lower right")
    return save(figure, path)
