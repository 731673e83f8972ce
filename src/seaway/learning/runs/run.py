"""Training of an algorithm in a folder, from the beginning or from a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

from seaway.domain.errors import RejectedError, UnavailableError
from seaway.learning.algos import algo_of, check_installed, make_learner
from seaway.learning.instances.instance import Instance
from seaway.learning.runs import folder as checkpoint
from seaway.learning.runs.assemble import Where, option, resumed_run
from seaway.learning.runs.export import curve_of, export
from seaway.learning.runs.folder import FOREIGN, RunFolder, check_nothing_lost, read_best, read_saved
from seaway.learning.runs.instances import MIX, digest_of, digest_of_mix, read_all
from seaway.learning.runs.table import EpisodeTable, read_rows
from seaway.learning.settings import Run
from seaway.learning.training.learner import Learner, State
from seaway.learning.training.listener import (
    CombinedListener,
    EpisodeResult,
    Evaluation,
    Listener,
    NullListener,
    Plan,
    Row,
    TrainingResult,
)


class Events(NullListener):
    """Writer of the figures of each episode as TensorBoard events.

    Events after the checkpoint of a resumed run are hidden.

    Parameters
    ----------
    folder
        Log directory for `tensorboard --logdir`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None

    def begins(self, plan: Plan) -> None:
        """Begin a file of events."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._folder), purge_step=plan.done + 1)

    def played(self, row: Row) -> None:
        """Write the figures of an episode."""
        play, evaluated = row.play, row.evaluated
        figures = {
            "episode/reward": play.reward,
            "episode/placed": play.placed,
            "episode/failed": play.failed,
            "episode/fragmentation": play.fragmentation,
            "episode/gpu_load_variance": play.gpu_load_variance,
            "episode/seconds": play.seconds,
            **{f"learning/{name}": value for name, value in play.figures.items()},
        }
        if evaluated:
            figures["evaluated/placed"] = evaluated.placed
            figures["evaluated/gpu_load_variance"] = evaluated.gpu_load_variance
            figures["evaluated/reward"] = evaluated.reward
        for name, value in figures.items():
            if value is not None:
                self._writer.add_scalar(name, value, row.episode)

    def saved(self, episode: int) -> None:
        """Flush the events before a checkpoint."""
        self._writer.flush()

    def ends(self, result: TrainingResult) -> None:
        """Close the file."""
        self._writer.close()


def evaluated(results: Sequence[EpisodeResult]) -> Evaluation:
    """Summarise one play of each instance."""
    return Evaluation(
        jobs=sum(each.jobs for each in results),
        placed=sum(each.placed for each in results),
        refused=sum(each.refused for each in results),
        gpu_load_variance=sum(each.gpu_load_variance or 0.0 for each in results) / len(results),
        reward=sum(each.reward for each in results) / len(results),
    )


class Selection:
    """Selection of the best evaluation: most placed jobs, then lowest GPU load variance, then the first.

    Parameters
    ----------
    patience
        Number of evaluations without an improvement after which the run ends; 0 for no such end.

    Attributes
    ----------
    best
        Best evaluation; None before the first.
    episode
        Number of its episode.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._since = 0
        self.best: Evaluation | None = None
        self.episode = 0

    @property
    def tired(self) -> bool:
        """True if the patience is exhausted."""
        return 0 < self._patience <= self._since

    def take(self, found: Evaluation, episode: int) -> bool:
        """Record an evaluation; return whether it is the best so far."""
        if self.best is None or _rank(found) > _rank(self.best):
            self.best, self.episode, self._since = found, episode, 0
            return True
        self._since += 1
        return False

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"best": asdict(self.best) if self.best else None, "episode": self.episode, "since": self._since}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        self.best = Evaluation(**state["best"]) if state["best"] else None
        self.episode, self._since = state["episode"], state["since"]


def _rank(found: Evaluation) -> tuple[int, float]:
    return found.placed, -found.gpu_load_variance


SETTING_UP = "setting up what learns"
PLAYED, TIRED, STOPPED = "all episodes played", "no better for {} evaluations", "stopped"

MISFIT = (KeyError, TypeError, ValueError, RuntimeError, AttributeError)
"""Errors of learners that restore the state of another learner."""


def train(run: Run, path: Path, listener: Listener | None = None) -> TrainingResult:
    """Start a run.

    Parameters
    ----------
    run
        Inputs of the run.
    path
        Output folder, created if necessary.
    listener
        Receiver of progress; None for none.

    Raises
    ------
    RejectedError
        When the folder has a run or is not writable, a package is missing, or the algorithm cannot learn on these
        instances.
    UnavailableError
        When the disk is full.
    """
    watching = listener or NullListener()
    folder = RunFolder(path)
    _check_none(folder)  # before instances are read, which may take long
    watching.doing("reading instances")
    instances = read_all(run)
    check_installed(run.algo)
    watching.doing(SETTING_UP)
    with repeatable(run):
        learner = make_learner(run, instances)
        with folder.locked():
            _check_none(folder)  # another process may have begun one in the meantime
            digests = _digests(run, instances)
            folder.write_config(run, digests)
            return _Training(run, folder, digests, learner, watching).go()


def resume(
    path: Path,
    given: Mapping[str, object],
    instances: Sequence[str] = (),
    listener: Listener | None = None,
    where: Where = option,
) -> TrainingResult:
    """Resume a run from its checkpoint. With one thread, the result equals that of an uninterrupted run to the bit.

    A run that was stopped before its first episode starts over.

    Parameters
    ----------
    path
        Folder of the run. Its files are parsed without running code, so a checkpoint cannot do harm.
    given
        Settings to change, by name; see `assemble.MAY_CHANGE`.
    instances
        New folders of its instances; empty for the recorded ones.
    listener
        Receiver of progress; None for none.
    where
        Returns the place of a setting for errors.

    Raises
    ------
    RejectedError
        When there is no run, a file is missing or unreadable, the instances changed, other settings are given, or fewer
        episodes than were played.
    """
    watching = listener or NullListener()
    folder = RunFolder(path)
    before, digests = folder.read_config()
    run = resumed_run(replace(before, instances=tuple(instances) or before.instances), given, where)
    check_installed(run.algo)
    with folder.locked():
        state = read_saved(folder, run.settings.episodes, where("episodes"))  # before slow steps
        watching.doing("reading instances")
        read = read_all(run)
        _same_instances(digests, _digests(run, read), path)
        watching.doing(SETTING_UP)
        with repeatable(run):
            folder.write_config(run, digests)
            return _Training(run, folder, digests, make_learner(run, read), watching).go(state)


class _Training:
    """A run in progress."""

    def __init__(
        self, run: Run, folder: RunFolder, digests: Mapping[str, str], learner: Learner, listener: Listener
    ) -> None:
        self._run, self._folder, self._digests, self._learner = run, folder, digests, learner
        self._settings = run.settings
        self._listener = CombinedListener((EpisodeTable(folder.episodes), Events(folder.path), listener))
        self._selection = Selection(run.settings.patience)
        self._done = self._saved = 0
        self._saved_at_s = -inf  # so the first episode has a checkpoint

    def go(self, retained: State | None = None) -> TrainingResult:
        """Train until the end, from a checkpoint if there is one."""
        if retained is not None:
            self._restore(retained)
        else:
            self._learner.prepare(self._listener)
        self._listener.begins(
            Plan(self._folder.path, self._run.algo, self._settings.episodes, self._done, self._selection.best)
        )
        try:
            why = self._play()
        except OSError as error:  # the table, or the curves
            raise UnavailableError(f"{self._folder.path} cannot be written to: {error.strerror}") from error
        if self._saved < self._done or (
            retained is None and not self._listener.stopping
        ):  # no checkpoint if `prepare` was stopped
            self._save()
        unfinished = why == STOPPED
        policy = self._policy(unfinished=unfinished)
        result = TrainingResult(self._done, self._selection.best, self._selection.episode, why, unfinished, policy)
        self._listener.ends(result)
        return result

    def _play(self) -> str:
        results = self._learner.train()
        while not (why := self._over()):
            self._record(next(results)[: self._settings.episodes - self._done])
            if self._due():
                self._save()
        return why

    def _over(self) -> str:
        """Return the reason why the run ends; empty if it continues."""
        if self._done >= self._settings.episodes:
            return PLAYED
        if self._selection.tired:
            return TIRED.format(self._settings.patience)
        return STOPPED if self._listener.stopping else ""

    def _record(self, results: Sequence[EpisodeResult]) -> None:
        """Count episodes, and evaluate the policy when due."""
        before, self._done = self._done, self._done + len(results)
        every = self._settings.evaluate_every
        found, best = None, False
        if self._done // every > before // every or self._done >= self._settings.episodes:
            found, best = self._evaluate()
        for at, each in enumerate(results, before + 1):
            last = at == self._done
            self._listener.played(Row(at, each, found if last else None, best and last))

    def _evaluate(self) -> tuple[Evaluation, bool]:
        found = evaluated(self._learner.evaluate())
        best = self._selection.take(found, self._done)
        if best:
            checkpoint.write(self._folder.best, {"episode": self._done, "weights": self._learner.weights()})
        return found, best

    def _due(self) -> bool:
        if self._done - self._saved >= self._settings.checkpoint_every:
            return True
        return time.monotonic() - self._saved_at_s >= self._settings.checkpoint_s

    def _save(self) -> None:
        state = {"episodes": self._done, "selection": self._selection.state(), "learner": self._learner.state()}
        checkpoint.write(self._folder.checkpoint, state)
        self._saved, self._saved_at_s = self._done, time.monotonic()
        self._listener.saved(self._done)

    def _restore(self, state: State) -> None:
        try:
            self._done = self._saved = int(state["episodes"])
            self._saved_at_s = time.monotonic()
            self._selection.restore(state["selection"])
            self._learner.restore(state["learner"])
        except MISFIT:
            raise RejectedError(FOREIGN, where=str(self._folder.checkpoint)) from None

    def _policy(self, *, unfinished: bool) -> Path | None:
        """Write the best policy file; return None if no best policy was stored."""
        best = self._selection.best
        if best is None:
            return None
        self._listener.doing("writing the policy file")
        retained = read_best(self._folder)
        if retained["episode"] == self._selection.episode:
            return self._export(best, retained["weights"])
        if unfinished:
            return None  # after a kill, they are of a later episode, which is played again
        raise RejectedError(
            f"has weights of episode {retained['episode']}, the checkpoint's best is of {self._selection.episode}: "
            "continue with --resume --episodes, or start a new run",
            where=str(self._folder.best),
        )

    def _export(self, best: Evaluation, weights: State) -> Path:
        try:
            self._learner.load_weights(weights)
        except MISFIT:
            raise RejectedError(FOREIGN, where=str(self._folder.best)) from None
        curve = curve_of(read_rows(self._folder.episodes))
        export(self._folder.policy, self._learner.trained_actor(), self._run, self._digests, best, curve)
        return self._folder.policy


@contextmanager
def repeatable(run: Run) -> Iterator[None]:
    """Make torch deterministic as far as that is free, and restore its settings at the end."""
    import torch

    threads, exact = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.set_num_threads(run.settings.threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # it costs time, and nothing reads such memory
    torch.manual_seed(run.settings.seed)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(exact)
        torch.utils.deterministic.fill_uninitialized_memory = filled


def _check_none(folder: RunFolder) -> None:
    """Reject a folder with a run or with results of one."""
    if folder.has_run:
        raise RejectedError(
            "has a run already: add --resume to continue it, or choose another folder", where=str(folder.path)
        )
    check_nothing_lost(folder)


def _digests(run: Run, instances: Sequence[Instance]) -> dict[str, str]:
    """Return the digests of all training data by name."""
    found = {instance.name: digest_of(instance) for instance in instances}
    if algo_of(run.algo).mixed:
        found |= {f"{MIX}{instance.name}": digest_of_mix(instance) for instance in instances}
    return found


def _same_instances(before: Mapping[str, str], now: Mapping[str, str], path: Path) -> None:
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    if changed:
        raise RejectedError(
            f"instances have changed since the run began: {', '.join(changed)}; put them back, or begin a new run",
            where=str(path),
        )
