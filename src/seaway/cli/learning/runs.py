"""Arguments of `seaway train`, and the runs that they describe."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path

import typer

from seaway.cli.errors import note
from seaway.cli.learning.tables import watched
from seaway.cli.learning.watch import ENDING, Ended
from seaway.domain.errors import RejectedError
from seaway.learning.algos import ALGOS, check_installed
from seaway.learning.instances.instance import folders_of
from seaway.learning.parallel import Spread
from seaway.learning.runs.assemble import new_run, option
from seaway.learning.runs.folder import RunFolder
from seaway.learning.runs.options import unused
from seaway.learning.runs.run import resume, train
from seaway.learning.settings import Run
from seaway.learning.training.listener import Listener, NullListener, TrainingResult

RUNS = Path("runs")
"""Default folder of runs."""


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """Arguments of a run.

    Attributes
    ----------
    algo
        Name of the algorithm; None if omitted.
    instances, draw
        Folders, and kinds of generated instances.
    named, pairs
        Settings with their own options, and those of ``--set``, by name.
    out
        The run's folder; None if omitted.
    """

    algo: str | None
    instances: tuple[str, ...]
    draw: tuple[str, ...]
    named: Mapping[str, object]
    pairs: Mapping[str, str]
    out: Path | None

    @property
    def given(self) -> dict[str, object]:
        """All settings.

        Raises
        ------
        RejectedError
            When a setting is given twice.
        """
        for name in self.pairs:
            if name in self.named:
                raise RejectedError(f"{name} is also given by {option(name)}", where="--set")
        return {**self.named, **self.pairs}

    def where(self, name: str) -> str:
        """Return the option of a setting."""
        return f"--set {name}" if name in self.pairs else option(name)

    def run(self) -> Run:
        """Return the run that the arguments describe."""
        if self.algo is None:
            raise RejectedError(f"choose an algorithm: {', '.join(ALGOS)}", where="--algo")
        return new_run(self.algo, self.instances, self.draw, self.given, self.where)

    def idle(self, run: Run) -> list[str]:
        """Describe settings without effect in the run, and the condition for each setting."""
        return [f"{self.where(name)} changes nothing: {why}" for name, why in unused(run.learner, self.given).items()]


def begin(asked: TrainingRequest, watch: Listener, print_error: Callable[[str], None]) -> tuple[Path, TrainingResult]:
    """Train from the start; return the run's folder and its result.

    Parameters
    ----------
    print_error
        Called with options that have no effect.
    """
    run = asked.run()
    for text in asked.idle(run):
        print_error(text)
    folder = asked.out or folder_of(run)
    return folder, train(run, folder, watch)


def go_on(asked: TrainingRequest, watch: Listener, print_error: Callable[[str], None]) -> tuple[Path, TrainingResult]:
    """Continue a run. If there is none, begin it as `begin` does if its options are given."""
    if asked.out is None and asked.algo is None:
        raise RejectedError("name the run to resume: --out runs/...", where="--resume")
    folder = asked.out or folder_of(asked.run())
    if asked.algo is not None and not RunFolder(folder).has_run:
        return begin(asked, watch, print_error)
    before, _ = RunFolder(folder).read_config()
    _check_same(asked, before)
    return folder, resume(folder, asked.given, asked.instances, watch, asked.where)


def folder_of(run: Run) -> Path:
    """Return the default folder of a run, named after its settings."""
    names = [Path(path).resolve().name for path in run.instances] + list(run.draw)
    on = names[0] if len(names) == 1 else f"{names[0]}-and-{len(names) - 1}-more"
    return RUNS / f"{run.algo}-{on}-seed{run.settings.seed}"


def _check_same(asked: TrainingRequest, before: Run) -> None:
    """Reject options that differ from the run's algorithm or its kinds of instances."""
    if asked.algo not in (None, before.algo):
        raise RejectedError(f"the run began with {before.algo}, not {asked.algo}", where="--algo")
    if asked.draw and asked.draw != before.draw:
        raise RejectedError(f"the run began with {' '.join(before.draw) or 'none'}", where="--draw")


@dataclass(frozen=True, slots=True)
class RunTask:
    """One of several runs.

    Attributes
    ----------
    asked
        Arguments of the run.
    folder
        Folder of the run, for output.
    """

    asked: TrainingRequest
    folder: Path


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run, or the error that ended it."""

    reached: TrainingResult | None
    error: str = ""


def run_tasks(asked: TrainingRequest, seeds: Sequence[int] | None, *, each: bool, resume: bool) -> list[RunTask]:
    """Return the runs for all algorithms, instances and seeds.

    Parameters
    ----------
    asked
        Arguments; `algo` can have several names, separated by commas, and `out` is the parent folder of all runs.
    seeds
        Seeds of the runs; None for the seed in `asked`.
    each
        True if each instance has its own run, instead of one run for all.

    Raises
    ------
    RejectedError
        When a run is invalid, exists already without `resume`, or requires a missing package.
    """
    if seeds and "seed" in asked.given:
        raise RejectedError("give --seed or --seeds, not both", where="--seeds")
    if each and not asked.instances:
        raise RejectedError("needs folders of instances: --instances", where="--each")
    paths = [folders_of(Path(name)) for name in asked.instances]  # absolute, for workers on other machines
    places: list[tuple[str, ...]] = [tuple(map(str, chain(*paths)))]
    if each:
        places = [(str(path),) for path in chain(*paths)]
    numbers: Sequence[int | None] = seeds or [None]
    found = []
    for algo, instances, seed in product((asked.algo or "").split(","), places, numbers):
        named = asked.named if seed is None else {**asked.named, "seed": seed}
        one = replace(asked, algo=algo or None, instances=instances, named=named)
        folder = (asked.out or RUNS) / folder_of(one.run()).name
        if RunFolder(folder).has_run and not resume:
            raise RejectedError(
                "has a run already: add --resume to continue it, or choose another --out", where=str(folder)
            )
        found.append(RunTask(replace(one, out=folder.absolute()), folder))
    for one in {task.asked.algo: task.asked for task in found}.values():
        run = one.run()
        check_installed(run.algo)
        for text in one.idle(run):
            note(f"{run.algo}: {text}")
    return found


def learn(task: RunTask) -> RunResult:
    """Train one run until it ends or the process is stopped."""
    with _stop_on_signal() as watch:
        try:
            _, reached = go_on(task.asked, watch, _discard)  # continues a run whose worker died
        except RejectedError as error:
            return RunResult(None, str(error))
    return RunResult(reached)


def sweep(runs: Sequence[RunTask], spread: Spread) -> int:
    """Train all runs, and print the result of each when it ends; return the number of unfinished runs."""
    unfinished = len(runs)
    with _interrupted_by_sigterm(), closing(spread.map(learn, runs)) as results:  # type: ignore[type-var]
        for at, came in watched(results, len(runs), "training"):
            typer.echo(f"{runs[at].folder}: {describe_result(came)}")
            unfinished -= came.reached is not None and not came.reached.unfinished
            if came.reached and came.reached.unfinished:
                break
    return unfinished


def announce_all(asked: TrainingRequest, unfinished: int) -> None:
    """Print the next commands."""
    where = asked.out or RUNS
    if unfinished:
        note(f"{unfinished} not finished; repeat the command with --resume to continue")
    elif asked.instances:
        typer.echo(f"compare: seaway evaluate --instances {' '.join(asked.instances)} --policy {where}")
    typer.echo(f"curves:  tensorboard --logdir {where}")


def describe_result(came: RunResult) -> str:
    """Describe the result of a run."""
    if came.reached is None:
        return came.error
    best = came.reached.best
    placed = (
        f"best: {best.placed} of {best.jobs} jobs placed, after episode {came.reached.best_episode}" if best else ""
    )
    return f"{came.reached.why}: {came.reached.episodes}; {placed}"


def _discard(_: str) -> None:
    """Print nothing, because options without effect are reported once, before the runs."""


class _NoOutput(NullListener):
    """Listener without output that stops the run when the process is stopped."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended

    @property
    def stopping(self) -> bool:  # type: ignore[override]
        """True if the process was stopped."""
        return bool(self._ended.signal)


@contextmanager
def _stop_on_signal() -> Iterator[_NoOutput]:
    """Stop the run at a checkpoint when the process is stopped.

    A worker does not handle Ctrl-C; its parent does.
    """
    ended = Ended()

    def noted(number: int, _: object) -> None:
        ended.signal = number

    here = threading.current_thread() is threading.main_thread()
    heeded = [each for each in ENDING if here and signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, noted) for each in heeded}
    try:
        yield _NoOutput(ended)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that workers end with this process."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
