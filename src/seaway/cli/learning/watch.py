"""Progress and result of `seaway train`."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import typer

from seaway.cli.errors import note
from seaway.learning.runs.folder import RunFolder
from seaway.learning.training.listener import Evaluation, Plan, Row, TrainingResult

if TYPE_CHECKING:
    from rich.progress import Progress

ENDING = (signal.SIGINT, signal.SIGTERM)

ENDING_SOON = "stopping after this episode, with a checkpoint; a second signal stops immediately"
LAST = "the run has ended and writes its policy file; a second signal stops immediately"

QUIET_INTERVAL_S = 60.0
"""Seconds between progress lines without a progress bar. Each new best result has an additional line."""


@dataclass(slots=True)
class Ended:
    """Stop signal of the process.

    Attributes
    ----------
    signal
        Number of the signal; 0 before it.
    over
        True if all episodes are played and only the policy file remains to be written.
    """

    signal: int = 0
    over: bool = False


@contextmanager
def ended_by_signals(ended: Ended) -> Iterator[None]:
    """Record the first Ctrl-C or SIGTERM. The second one ends the process."""

    def noted(number: int, _: object) -> None:
        ended.signal = number
        note(LAST if ended.over else ENDING_SOON)
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {each: signal.signal(each, noted) for each in ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class RunWatch:
    """Progress bar with the results of the last episode, or occasional lines, on standard error.

    Parameters
    ----------
    ended
        Stop signal of the process.
    """

    def __init__(self, ended: Ended) -> None:
        from rich.console import Console

        self._ended = ended
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._task: Any = None
        self._plan: Plan | None = None
        self._best = ""
        self._said_s = time.monotonic()

    @property
    def stopping(self) -> bool:
        """True if the process was stopped."""
        return bool(self._ended.signal)

    def __enter__(self) -> Self:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, TextColumn("{task.fields[figures]}"), console=self._console, transient=True)
            self._task = self._bar.add_task("", total=None, figures="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def doing(self, text: str) -> None:
        """Show the current activity instead of the algorithm.

        After the first episode, activities occur only at the end of a run.
        """
        self._ended.over = self._plan is not None
        if self._bar:
            self._bar.update(self._task, description=text)
        else:
            note(text)

    def begins(self, plan: Plan) -> None:
        """Show the number of episodes."""
        self._plan = plan
        if plan.best:
            self._best = _placed(plan.best)
        if self._bar:
            self._bar.update(self._task, description=plan.algo, total=plan.episodes, completed=plan.done)
        elif plan.done:
            note(f"{plan.algo} continues after episode {plan.done} of {plan.episodes}")

    def played(self, row: Row) -> None:
        """Show an episode."""
        assert self._plan
        if row.best and row.evaluated:
            self._best = f"{_placed(row.evaluated)} (episode {row.episode})"
        play = row.play
        figures = f"reward {play.reward:.0f} · placed {play.placed} of {play.jobs}"
        figures += f" · best {self._best}" if self._best else ""
        if self._bar:
            self._bar.update(self._task, completed=row.episode, figures=figures)
        elif row.best or time.monotonic() - self._said_s >= QUIET_INTERVAL_S:
            self._said_s = time.monotonic()
            note(f"episode {row.episode} of {self._plan.episodes}: {figures}")

    def saved(self, episode: int) -> None:
        """Print nothing for a checkpoint."""

    def ends(self, reached: TrainingResult) -> None:
        """Print nothing, because `announce` prints the result after the bar is removed."""


def announce(folder: Path, reached: TrainingResult) -> None:
    """Print the result of a run, and the next commands."""
    run, _ = RunFolder(folder).read_config()
    best = f"{_placed(reached.best)} jobs placed, after episode {reached.best_episode}" if reached.best else "none yet"
    if reached.unfinished:
        typer.echo(f"{run.algo} stopped after episode {reached.episodes} of {run.settings.episodes}; best: {best}")
        if reached.policy:
            typer.echo(f"policy:  {reached.policy}, the best until now")
        typer.echo(f"resume:  seaway train --out {folder} --resume")
        return
    typer.echo(f"{run.algo}, {reached.why}: {reached.episodes}; best: {best}{_variance(reached.best)}")
    typer.echo(f"policy:  {reached.policy}")
    if run.instances:
        typer.echo(f"compare: seaway evaluate --instances {' '.join(run.instances)} --policy {reached.policy},seaway")
    typer.echo(f"curves:  tensorboard --logdir {folder}")


def _placed(found: Evaluation) -> str:
    return f"{found.placed} of {found.jobs}"


def _variance(found: Evaluation | None) -> str:
    return f", GPU load variance {found.gpu_load_variance:.4f}" if found else ""
