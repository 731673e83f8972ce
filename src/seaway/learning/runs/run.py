"""A run: an algorithm learns in a folder, from the beginning or from a checkpoint."""

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
from seaway.learning.runs.assemble import Where, going_on, option
from seaway.learning.runs.export import curve_of, export
from seaway.learning.runs.folder import FOREIGN, RunFolder, check_nothing_lost, read_best, read_saved
from seaway.learning.runs.instances import MIX, digest_of, digest_of_mix, read_all
from seaway.learning.runs.table import EpisodeTable, read_rows
from seaway.learning.settings import Run
from seaway.learning.training.learner import Learner, State
from seaway.learning.training.listener import Evaluated, Listener, NullListener, Plan, Play, Reached, Row, Together


class Events(NullListener):
    """Writes figures of each episode as events; what an earlier part of the run wrote after its checkpoint is hidden.

    Parameters
    ----------
    folder
        Where `tensorboard --logdir` is to look.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None

    def begins(self, plan: Plan) -> None:
        """Begin a file of events."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._folder), purge_step=plan.done + 1)

    def played(self, row: Row) -> None:
        """Write what there is of an episode."""
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
        """Have on the disk what a checkpoint says is done."""
        self._writer.flush()

    def ends(self, reached: Reached) -> None:
        """Close the file."""
        self._writer.close()


def evaluated(plays: Sequence[Play]) -> Evaluated:
    """Sum up how a policy did on several instances, one play of each."""
    return Evaluated(
        jobs=sum(each.jobs for each in plays),
        placed=sum(each.placed for each in plays),
        refused=sum(each.refused for each in plays),
        gpu_load_variance=sum(each.gpu_load_variance or 0.0 for each in plays) / len(plays),
        reward=sum(each.reward for each in plays) / len(plays),
    )


class Selection:
    """Remembers the best: most jobs placed, of those the lowest GPU load variance, of those the first.

    Parameters
    ----------
    patience
        After how many evaluations without a better one it is tired; 0 for never.

    Attributes
    ----------
    best
        None before anything was evaluated.
    episode
        After which episode it was evaluated.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._since = 0
        self.best: Evaluated | None = None
        self.episode = 0

    @property
    def tired(self) -> bool:
        """True if there is nothing better to come, as far as patience goes."""
        return 0 < self._patience <= self._since

    def take(self, found: Evaluated, episode: int) -> bool:
        """Look at what was evaluated after an episode; True when it is the best until now."""
        if self.best is None or _rank(found) > _rank(self.best):
            self.best, self.episode, self._since = found, episode, 0
            return True
        self._since += 1
        return False

    def state(self) -> dict[str, Any]:
        """Return what it needs to go on."""
        return {"best": asdict(self.best) if self.best else None, "episode": self.episode, "since": self._since}

    def restore(self, state: dict[str, Any]) -> None:
        """Take such a state up."""
        self.best = Evaluated(**state["best"]) if state["best"] else None
        self.episode, self._since = state["episode"], state["since"]


def _rank(found: Evaluated) -> tuple[int, float]:
    return found.placed, -found.gpu_load_variance


SETTING_UP = "setting up what learns"
PLAYED, TIRED, STOPPED = "all episodes played", "no better for {} evaluations", "stopped"

MISFIT = (KeyError, TypeError, ValueError, RuntimeError, AttributeError)
"""What learners raise that are given what another kept."""


def train(run: Run, path: Path, listener: Listener | None = None) -> Reached:
    """Learn from the beginning.

    Parameters
    ----------
    run
        All that it depends on.
    path
        Where it writes; made where it is not there.
    listener
        Who watches; None for nobody.

    Raises
    ------
    RejectedError
        When there is a run already, nothing can be written there, something is not installed, or it cannot learn on
        these instances.
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
) -> Reached:
    """Learn on from where a run was stopped, as if it had never been; with one thread, to the bit.

    A run that was stopped before its first episode starts over.

    Parameters
    ----------
    path
        Its folder. Only what stands there is believed: nothing in it is run, so no checkpoint can do harm.
    given
        Settings to change, by name, of those that a run may go on with others of, see `assemble.MAY_CHANGE`.
    instances
        Where its instances are now; empty for where they were.
    listener
        Who watches; None for nobody.
    where
        Says where a setting was given.

    Raises
    ------
    RejectedError
        When there is no run, something of it is missing or cannot be read, its instances are others now, or other
        settings were given, or fewer episodes than were played.
    """
    watching = listener or NullListener()
    folder = RunFolder(path)
    before, digests = folder.read_config()
    run = going_on(replace(before, instances=tuple(instances) or before.instances), given, where)
    check_installed(run.algo)
    with folder.locked():
        state = read_saved(folder, run.settings.episodes, where("episodes"))  # before what may take long
        watching.doing("reading instances")
        read = read_all(run)
        _same_instances(digests, _digests(run, read), path)
        watching.doing(SETTING_UP)
        with repeatable(run):
            folder.write_config(run, digests)
            return _Training(run, folder, digests, make_learner(run, read), watching).go(state)


class _Training:
    """A run as it goes."""

    def __init__(
        self, run: Run, folder: RunFolder, digests: Mapping[str, str], learner: Learner, listener: Listener
    ) -> None:
        self._run, self._folder, self._digests, self._learner = run, folder, digests, learner
        self._settings = run.settings
        self._listener = Together((EpisodeTable(folder.episodes), Events(folder.path), listener))
        self._selection = Selection(run.settings.patience)
        self._done = self._saved = 0
        self._saved_at_s = -inf  # the first episode has a checkpoint: from then on a kill does not lose all

    def go(self, retained: State | None = None) -> Reached:
        """Learn until the end, from a checkpoint where there is one."""
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
        ):  # before an end of `prepare` none is kept
            self._save()
        unfinished = why == STOPPED
        policy = self._policy(unfinished=unfinished)
        reached = Reached(self._done, self._selection.best, self._selection.episode, why, unfinished, policy)
        self._listener.ends(reached)
        return reached

    def _play(self) -> str:
        coming = self._learner.plays()
        while not (why := self._over()):
            self._note(next(coming)[: self._settings.episodes - self._done])
            if self._due():
                self._save()
        return why

    def _over(self) -> str:
        """Say why the run is over; empty while it is not."""
        if self._done >= self._settings.episodes:
            return PLAYED
        if self._selection.tired:
            return TIRED.format(self._settings.patience)
        return STOPPED if self._listener.stopping else ""

    def _note(self, plays: Sequence[Play]) -> None:
        """Count episodes, and have the policy evaluated where it is time."""
        before, self._done = self._done, self._done + len(plays)
        every = self._settings.evaluate_every
        found, best = None, False
        if self._done // every > before // every or self._done >= self._settings.episodes:
            found, best = self._evaluate()
        for at, play in enumerate(plays, before + 1):
            last = at == self._done
            self._listener.played(Row(at, play, found if last else None, best and last))

    def _evaluate(self) -> tuple[Evaluated, bool]:
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
        """Write the best as a policy file; where there is none, or a stop found none of its weights, return None."""
        best = self._selection.best
        if best is None:
            return None
        self._listener.doing("writing the policy file")
        retained = read_best(self._folder)
        if retained["episode"] == self._selection.episode:
            return self._export(best, retained["weights"])
        if unfinished:
            return None  # after a kill they are of a later episode, which is played again
        raise RejectedError(
            f"has weights of episode {retained['episode']}, the checkpoint's best is of {self._selection.episode}: "
            "continue with --resume --episodes, or start a new run",
            where=str(self._folder.best),
        )

    def _export(self, best: Evaluated, weights: State) -> Path:
        try:
            self._learner.wear(weights)
        except MISFIT:
            raise RejectedError(FOREIGN, where=str(self._folder.best)) from None
        curve = curve_of(read_rows(self._folder.episodes))
        export(self._folder.policy, self._learner.decider(), self._run, self._digests, best, curve)
        return self._folder.policy


@contextmanager
def repeatable(run: Run) -> Iterator[None]:
    """Have torch do the same each time, as far as it costs nothing, and as before when it is over."""
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
    """Reject a folder where a run began, or that still has what one learned."""
    if folder.has_run:
        raise RejectedError(
            "has a run already: add --resume to continue it, or choose another folder", where=str(folder.path)
        )
    check_nothing_lost(folder)


def _digests(run: Run, instances: Sequence[Instance]) -> dict[str, str]:
    """Digest all that a run learns on, by what it is called."""
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
