"""Trained policies as contestants: policy files, and the folders of the runs that made them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.evaluation.actors import ActorPlayer, LearnedPlayer
from seaway.learning.evaluation.contestants import Contestant
from seaway.learning.evaluation.seen import Seen, seen_by
from seaway.learning.policies.file import PolicyFile, read_policy
from seaway.learning.policies.manifest import Level
from seaway.learning.runs.folder import RunFolder

NO_POLICY = "the run has made no policy yet: go on with it by seaway train --resume"


def from_file(file: PolicyFile) -> Contestant:
    """Return a trained policy as a contestant: as published at level cluster, in the engine at level node."""
    manifest = file.manifest
    trained_on = seen_by(manifest.config)
    if manifest.level is Level.CLUSTER:
        return Contestant(manifest.name, "cluster", ActorPlayer(file), trained_on=trained_on)
    return Contestant(manifest.name, "node", LearnedPlayer(file), trained_on=trained_on)


def from_run(path: Path) -> Contestant:
    """Return the best policy of a run as a contestant, named like its folder.

    Raises
    ------
    RejectedError
        When there is no run, or it has made no policy yet.
    """
    folder = RunFolder(path)
    run, digests = folder.read_config()
    if not folder.policy.is_file():
        raise RejectedError(NO_POLICY, where=str(path))
    made = from_file(read_policy(folder.policy))
    return replace(
        made,
        name=path.resolve().name,
        seed=run.settings.seed,
        trained_on=Seen(frozenset(digests.values())),
        episodes=folder.episodes,
    )


def from_runs(path: Path, tell: Callable[[str], None]) -> list[Contestant]:
    """Return the runs of a folder, each under its algorithm's name, to be measured on what it was trained on.

    A run that has made no policy yet is left out; so is one that cannot be read.

    Parameters
    ----------
    tell
        Told of each that cannot be read.
    """
    found = []
    for each in runs_in(path):
        folder = RunFolder(each)
        if folder.policy.is_file():
            try:
                found.append(replace(from_run(each), name=folder.read_config()[0].algo, own_only=True))
            except RejectedError as error:
                tell(f"without the run {each}: {error}")
    return found


def runs_in(path: Path) -> list[Path]:
    """List the folders of runs in a folder, sorted by name."""
    return sorted(each for each in path.iterdir() if is_run(each))


def is_run(path: Path) -> bool:
    """Tell whether a run began in a folder."""
    return RunFolder(path).has_run
