"""Charts of an evaluation: bars of the comparison, use by cluster, training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seaway.cli.learning.curves import COLOURS, DASHES
from seaway.domain.errors import RejectedError
from seaway.learning.evaluation.contestants import Contestant
from seaway.learning.evaluation.measure import Trial
from seaway.learning.evaluation.statistics import Band, Estimate, LearningCurve, learning_curve
from seaway.learning.evaluation.summary import Summary, summarise
from seaway.learning.instances.instance import Instance
from seaway.simulation.outcome import CPU, GPU_CORE, GPU_MEMORY, MEMORY, Float64

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("png", "svg")
"""File formats of each chart."""

NODE_COLOUR, CLUSTER_COLOUR = COLOURS[0], COLOURS[1]
BARS = (
    ("placed", "jobs placed"),
    ("gpu_load_variance", "GPU load variance"),
    ("gpu_memory_pct", "mean GPU memory use, %"),
    ("fragmentation", "fragmentation"),
)
RESOURCES = ((GPU_MEMORY, "GPU memory"), (GPU_CORE, "GPU cores"), (CPU, "CPU"), (MEMORY, "memory"))
ROW_INCHES = 0.32
ROOM = 0.28
"""Free space for figures, as a fraction of the longest bar."""


def draw_all(
    folder: Path, trials: Sequence[Trial], instances: Sequence[Instance], contestants: Sequence[Contestant]
) -> list[Path]:
    """Draw all charts that have data, and return the files.

    Raises
    ------
    RejectedError
        When a file cannot be written.
    """
    lines = [line for line in summarise([trial.row for trial in trials]) if line.instances]
    written = []
    if lines:
        written += save(comparison(lines), folder / "comparison")
    for instance in instances:
        used = use_of(trials, instance.name, lines)
        if used:
            clusters = [each.name for each in instance.fleet.clusters]
            written += save(use(used, clusters, instance.name), folder / f"use-{instance.name}")
    files: dict[str, list[Path]] = {}
    for each in contestants:
        if each.episodes:
            files.setdefault(each.name, []).append(each.episodes)
    found = {name: curve for name, each in files.items() if (curve := learning_curve(each))}
    return written + (save(training(found), folder / "training") if found else [])


def comparison(lines: Sequence[Summary]) -> Figure:
    """Draw a panel for each measure, with bars and intervals of all policies in the order of placed jobs."""
    figure = figure_of(13, 1.3 + ROW_INCHES * len(lines))
    panels = figure.subplots(1, len(BARS), sharey=True)
    names = [f"{line.policy}  ({line.level})" for line in lines]
    colours = [NODE_COLOUR if line.level == "node" else CLUSTER_COLOUR for line in lines]
    for axes, (name, title) in zip(panels, BARS, strict=True):
        _bars(axes, [line.figures.get(name) for line in lines], colours)
        axes.set_title(title, loc="left", fontsize="medium")
    best = lines[0].figures.get("best_known")
    if best:
        panels[0].axvline(best.mean, color="#666666", linestyle="--", linewidth=1)
        panels[0].set_title("jobs placed (dashed: best known)", loc="left", fontsize="medium")
    panels[0].set_yticks(range(len(lines)), names)
    panels[0].invert_yaxis()
    figure.supxlabel("mean over instances, with 95 % confidence interval", fontsize="small", x=0.99, ha="right")
    return figure


def _bars(axes: Axes, figures: Sequence[Estimate | None], colours: Sequence[str]) -> None:
    means = np.array([each.mean if each else np.nan for each in figures])
    off = np.array([each.ci95 or 0.0 if each else 0.0 for each in figures])
    axes.barh(np.arange(len(means)), means, color=colours, height=0.72)
    axes.errorbar(means, np.arange(len(means)), xerr=off, fmt="none", ecolor="#333333", elinewidth=1, capsize=2)
    for at, (mean, ends) in enumerate(zip(means, means + off, strict=True)):
        if not np.isnan(mean):
            axes.text(ends, at, f"  {mean:.4g}", va="center", color="#222222", fontsize="small")
    _hide_frame(axes)
    longest = float(np.nanmax(means + off, initial=0.0))
    axes.set_xlim(0, longest * (1 + ROOM) if longest > 0 else None)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)


def use_of(trials: Sequence[Trial], instance: str, lines: Sequence[Summary]) -> dict[str, Float64]:
    """Return the shares in use at the end, shape (4, C), by policy in the order of `lines`.

    Values are means over seeds.
    """
    found: dict[tuple[str, str], list[Float64]] = {}
    for trial in trials:
        if trial.row.instance == instance and trial.used is not None:
            found.setdefault((trial.row.policy, trial.row.level), []).append(trial.used)
    known = [line for line in lines if (line.policy, line.level) in found]
    return {f"{line.policy}  ({line.level})": np.mean(found[line.policy, line.level], axis=0) for line in known}


def use(used: Mapping[str, Float64], clusters: Sequence[str], title: str) -> Figure:
    """Draw a heat map of each resource, with a row per policy and a column per cluster."""
    figure = figure_of(15, 1.8 + ROW_INCHES * len(used))
    panels = figure.subplots(1, len(RESOURCES), sharey=True)
    for axes, (resource, name) in zip(panels, RESOURCES, strict=True):
        table = 100 * np.array([shares[resource] for shares in used.values()])
        image = axes.imshow(table, aspect="auto", vmin=0, vmax=100, cmap="viridis", interpolation="nearest")
        axes.set_title(name, loc="left", fontsize="medium")
        axes.set_xticks(range(len(clusters)), clusters, rotation=90, fontsize="x-small")
    panels[0].set_yticks(range(len(used)), list(used))
    figure.colorbar(image, ax=panels, label="in use, %", fraction=0.02, pad=0.01)
    figure.suptitle(f"use by cluster: {title}", x=0.01, ha="left")
    return figure


def training(found: Mapping[str, LearningCurve]) -> Figure:
    """Draw reward and placed jobs over episodes: mean, minimum and maximum of an algorithm's runs."""
    figure = figure_of(12, 4.6)
    panels = figure.subplots(1, 2)
    for at, (name, curve) in enumerate(found.items()):
        for axes, band in zip(panels, (curve.reward, curve.placed), strict=True):
            plot_band(axes, curve.episode, band, name, at)
    for axes, title in zip(panels, ("reward of an episode", "jobs placed in an episode"), strict=True):
        axes.set_title(title, loc="left", fontsize="medium")
        axes.set_xlabel("episode")
    panels[1].legend(frameon=False, loc="lower right")
    return figure


def plot_band(axes: Axes, across: Float64, band: Band, name: str, number: int) -> None:
    """Draw a named curve and the band of its runs, in the colour of an index."""
    colour = COLOURS[number % len(COLOURS)]
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    axes.plot(across, band.mean, label=name, linewidth=1.6, color=colour, linestyle=dash)
    axes.fill_between(across, band.minimum, band.maximum, color=colour, alpha=0.15, linewidth=0)
    _hide_frame(axes)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.margins(x=0)


def figure_of(width: float, height: float) -> Figure:
    """Return an empty figure; width and height are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _hide_frame(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a chart in all formats, and return the files.

    Raises
    ------
    RejectedError
        When one cannot be written.
    """
    files = [path.with_name(f"{path.name}.{kind}") for kind in KINDS]
    for file in files:
        # Without a date, and with stable ids, equal figures give equal files.
        details: dict[str, Any] = {"metadata": {"Date": None}} if file.suffix == ".svg" else {}
        try:
            figure.savefig(file, dpi=150, **details)
        except OSError as error:
            raise RejectedError(f"cannot be written: {error.strerror}", where=str(file)) from None
    return files
