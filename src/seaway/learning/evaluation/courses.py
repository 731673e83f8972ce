"""How training went: figures of the episodes of runs, put together by algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seaway.learning.runs.table import read_rows
from seaway.simulation.measures import Float64

SMOOTHED = 20
"""A figure is shown as the mean of so many episodes up to each, or of a tenth of all where that is less."""


@dataclass(frozen=True, slots=True)
class Band:
    """A figure over episodes, of several runs: mean, least and most, each of shape (E,)."""

    mean: Float64
    least: Float64
    most: Float64


@dataclass(frozen=True, slots=True)
class Course:
    """How some runs went.

    Attributes
    ----------
    episode
        Numbers of the episodes, shape (E,): as many as the longest run has. A run counts as far as it goes.
    reward, placed
        Smoothed.
    """

    episode: Float64
    reward: Band
    placed: Band


def course_of(files: Sequence[Path]) -> Course | None:
    """Put the runs of some files together; None where none has an episode."""
    runs = [rows for file in files if (rows := read_rows(file))]
    if not runs:
        return None
    episode = np.arange(1, max(map(len, runs)) + 1, dtype=np.float64)
    bands = [_band([[float(row[name]) for row in rows] for rows in runs]) for name in ("reward", "placed")]
    return Course(episode, *bands)


def smoothed(values: Float64) -> Float64:
    """Return the mean of each value and those before it, up to `SMOOTHED` in all."""
    width = max(1, min(SMOOTHED, len(values) // 10))
    sums = np.concatenate(([0.0], np.cumsum(values)))
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(ends - width, 0)
    means: Float64 = (sums[ends] - sums[begins]) / (ends - begins)
    return means


def _band(runs: Sequence[Sequence[float]]) -> Band:
    table = np.full((len(runs), max(map(len, runs))), np.nan)
    for at, values in enumerate(runs):
        table[at, : len(values)] = smoothed(np.array(values))
    return Band(np.nanmean(table, axis=0), np.nanmin(table, axis=0), np.nanmax(table, axis=0))
