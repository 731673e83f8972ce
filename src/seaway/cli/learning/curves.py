"""Allocation curves as CSV and as charts."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.simulation.outcome import Curve, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from seaway.domain.job import Job

PICTURES = (".png", ".svg", ".pdf")

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8B6F00")
"""Colours that are distinguishable with colour blindness (Okabe and Ito, 2008)."""

DASHES = ("-", "--", "-.", ":")

CLOSE_UP_PCT = (70.0, 130.0)
"""Range of arrivals in the close-up, in percent. Policies hardly differ below it."""

SECONDS_PER_HOUR = 3600


def picture_file(path: Path) -> None:
    """Check the extension of a picture file."""
    if path.suffix.lower() not in PICTURES:
        raise RejectedError(f"{path}: the name has to end in {', '.join(PICTURES)}", where="--plot")


def write_curves(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the curves as CSV.

    Columns are ``policy``, ``arrived_pct``, ``allocated_pct`` and, with departures, ``time_s``.

    Raises
    ------
    RejectedError
        When the file cannot be written.
    """
    timed = any(outcome.curve.time_s is not None for outcome in outcomes)
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["policy", "arrived_pct", "allocated_pct", *(["time_s"] if timed else [])])
            for outcome in outcomes:
                writer.writerows([outcome.policy, *cells] for cells in _rows(outcome.curve))
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(path)) from None


def write_starts(jobs: Sequence[Job], outcome: Outcome, path: Path) -> None:
    """Write the start and the end of each job as CSV, in the order of arrival; empty for a job that did not start.

    Raises
    ------
    RejectedError
        When the file cannot be written.
    """
    assert outcome.starts_s is not None
    arrivals = sorted(jobs, key=lambda job: job.arrives_s)
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["job", "submit_s", "start_s", "end_s"])
            for job, start_s in zip(arrivals, outcome.starts_s.tolist(), strict=True):
                lasts_s = job.expected_duration_s
                start: int | str = start_s if start_s >= 0 else ""
                end: int | str = start_s + lasts_s if start_s >= 0 and lasts_s is not None else ""
                writer.writerow([job.name, job.arrives_s, start, end])
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(path)) from None


def _rows(curve: Curve) -> list[tuple[str, ...]]:
    percent = [
        ["" if np.isnan(value) else f"{value:.4f}" for value in values]
        for values in (curve.arrived_pct, curve.allocated_pct)
    ]
    timed = [] if curve.time_s is None else [[f"{value:.0f}" for value in curve.time_s]]
    return list(zip(*percent, *timed, strict=True))


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw allocated over requested GPU cores, with a close-up of their differences; with departures, draw over time.

    Raises
    ------
    RejectedError
        When the file cannot be written, or there are no data.
    """
    if not any(np.nan_to_num(outcome.curve.arrived_pct).any() for outcome in outcomes):
        raise RejectedError("no GPUs are requested or available: nothing to plot", where="--plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    timed = any(outcome.curve.time_s is not None for outcome in outcomes)
    figure = Figure(figsize=(9, 4.8) if timed else (11, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    if timed:
        _draw_over_time(figure.subplots(), outcomes)
    else:
        whole, close_up = figure.subplots(1, 2)
        _draw_over_arrivals(whole, outcomes)
        _draw_over_arrivals(close_up, outcomes)
        _close_up(close_up, outcomes)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(path)) from None


def _style(at: int) -> dict[str, Any]:
    return {
        "color": COLOURS[at % len(COLOURS)],
        "linestyle": DASHES[at // len(COLOURS) % len(DASHES)],
        "linewidth": 1.6,
    }


def _finish(axes: Axes, across: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel("GPU cores allocated, % of the fleet")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_over_arrivals(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    for at, outcome in enumerate(outcomes):
        axes.plot(outcome.curve.arrived_pct, outcome.curve.allocated_pct, label=outcome.policy, **_style(at))
    end = max((float(np.nanmax(outcome.curve.arrived_pct)) for outcome in outcomes), default=0.0)
    axes.plot([0, min(end, 100)], [0, min(end, 100)], color="#999999", linewidth=0.8, zorder=0, label="all placed")
    axes.set_xlim(0, end)
    axes.set_ylim(0, 102)
    axes.set_title("all arrivals", loc="left", fontsize="medium")
    _finish(axes, "requested GPU cores, % of the fleet")
    axes.legend(frameon=False, loc="lower right")


def _close_up(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    """Limit axes to the range in which the fleet fills up."""
    end = max(float(outcome.curve.arrived_pct[-1]) for outcome in outcomes)
    begin = min(CLOSE_UP_PCT[0], 0.6 * end)
    seen = [outcome.curve.allocated_pct[outcome.curve.arrived_pct >= begin] for outcome in outcomes]
    lowest = min(float(values.min()) for values in seen if values.size)
    highest = max(float(values.max()) for values in seen if values.size)
    axes.set_xlim(begin, end)
    axes.set_ylim(lowest, min(100.0, highest + 0.08 * (highest - lowest) + 0.1))
    axes.set_title("where the fleet fills up", loc="left", fontsize="medium")


def _draw_over_time(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    for at, outcome in enumerate(outcomes):
        if outcome.curve.time_s is not None:
            hours = (outcome.curve.time_s - outcome.curve.time_s[0]) / SECONDS_PER_HOUR
            axes.step(hours, outcome.curve.allocated_pct, where="post", label=outcome.policy, **_style(at))
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    _finish(axes, "hours since the first arrival")
    axes.legend(frameon=False)
