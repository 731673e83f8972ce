"""What was asked of `seaway train`, and the run that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.algos import ALGOS
from seaway.learning.runs.assemble import new_run, option
from seaway.learning.runs.folder import RunFolder
from seaway.learning.runs.relations import unused
from seaway.learning.runs.run import resume, train
from seaway.learning.training.listener import Listener, Reached
from seaway.learning.training.settings import Run

RUNS = Path("runs")
"""Where runs are kept that nobody gave a place."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed.

    Attributes
    ----------
    algo
        None where it was left out.
    instances, draw
        Folders, and kinds of instances to draw.
    named, pairs
        Settings with options of their own, and those of ``--set``, by name.
    out
        The run's folder; None where it was left out.
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
            When one was given twice.
        """
        for name in self.pairs:
            if name in self.named:
                raise RejectedError(f"{name} is also given by {option(name)}", where="--set")
        return {**self.named, **self.pairs}

    def where(self, name: str) -> str:
        """Say where a setting was given."""
        return f"--set {name}" if name in self.pairs else option(name)

    def run(self) -> Run:
        """Return the run that it stands for, from the beginning."""
        if self.algo is None:
            raise RejectedError(f"choose an algorithm: {', '.join(ALGOS)}", where="--algo")
        return new_run(self.algo, self.instances, self.draw, self.given, self.where)

    def idle(self, run: Run) -> list[str]:
        """Say which of the settings that were given change nothing in the run, and what would make each count."""
        return [f"{self.where(name)} changes nothing: {why}" for name, why in unused(run.learner, self.given).items()]


def begin(asked: Asked, watch: Listener, tell: Callable[[str], None]) -> tuple[Path, Reached]:
    """Learn from the beginning; return the run's folder and what it came to.

    Parameters
    ----------
    tell
        Told what was asked for in vain.
    """
    run = asked.run()
    for text in asked.idle(run):
        tell(text)
    folder = asked.out or folder_of(run)
    return folder, train(run, folder, watch)


def go_on(asked: Asked, watch: Listener, tell: Callable[[str], None]) -> tuple[Path, Reached]:
    """Learn on; or from the beginning, as `begin` does, where there is no run, but it is said which one it would be."""
    if asked.out is None and asked.algo is None:
        raise RejectedError("say which run to resume: --out runs/...", where="--resume")
    folder = asked.out or folder_of(asked.run())
    if asked.algo is not None and not RunFolder(folder).has_run:
        return begin(asked, watch, tell)
    before, _ = RunFolder(folder).read_config()
    _check_same(asked, before)
    return folder, resume(folder, asked.given, asked.instances, watch, asked.where)


def folder_of(run: Run) -> Path:
    """Name the folder of a run after what it is."""
    names = [Path(path).resolve().name for path in run.instances] + list(run.draw)
    on = names[0] if len(names) == 1 else f"{names[0]}-and-{len(names) - 1}-more"
    return RUNS / f"{run.algo}-{on}-seed{run.settings.seed}"


def _check_same(asked: Asked, before: Run) -> None:
    """Reject another algorithm, or other kinds of instances, than the run began with."""
    if asked.algo not in (None, before.algo):
        raise RejectedError(f"the run began with {before.algo}, not {asked.algo}", where="--algo")
    if asked.draw and asked.draw != before.draw:
        raise RejectedError(f"the run began with {' '.join(before.draw) or 'none'}", where="--draw")
