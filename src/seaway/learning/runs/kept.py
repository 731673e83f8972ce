"""What a run kept in its folder, looked at before a run begins or goes on there: none of it is written over."""

from __future__ import annotations

from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.runs import checkpoint
from seaway.learning.runs.folder import RunFolder
from seaway.learning.runs.table import kept_rows
from seaway.learning.training.learner import State

FOREIGN = "is of another run, or of another version: put the run's own back from a copy, or begin a new run"


def check_nothing_lost(folder: RunFolder) -> None:
    """See that nothing was learned yet where what tells how to go on is not there: a run begins anew over the rest.

    Raises
    ------
    RejectedError
        When there are episodes, weights or a policy without a checkpoint, or any of these without a configuration.
    """
    there = [path.name for path in (folder.policy, folder.best) if path.exists()]
    if folder.episodes.exists() and folder.episodes.read_bytes().count(b"\n") > 1:
        there.append(folder.episodes.name)
    if not folder.checkpoint.exists():
        _check_none(there, folder.checkpoint)
    elif not folder.has_run:
        _check_none([folder.checkpoint.name, *there], folder.config)


def read_kept(folder: RunFolder, episodes: int, where: str) -> State | None:
    """Read the checkpoint of a run that is to go on, and see that all else is there that its end will need.

    Parameters
    ----------
    episodes
        How many there are to be in all.
    where
        Where that was given.

    Returns
    -------
    None where the run begins anew.

    Raises
    ------
    RejectedError
        When something is missing or spoilt, or more episodes were played.
    """
    check_nothing_lost(folder)
    if not folder.checkpoint.exists():
        return None
    state = checkpoint.read(folder.checkpoint)
    try:
        done, best = int(state["episodes"]), state["selection"]["best"]
    except (KeyError, TypeError, ValueError):
        raise RejectedError(FOREIGN, where=str(folder.checkpoint)) from None
    if done > episodes:
        raise RejectedError(
            f"{episodes} is fewer than the {done} episodes that were played: give {done} or more", where=where
        )
    kept_rows(folder.episodes, done)
    if best is not None:
        read_best(folder)
    return state


def read_best(folder: RunFolder) -> State:
    """Read the weights of a run's best policy, and after which episode it had them.

    Raises
    ------
    RejectedError
        When they are not there, or damaged.
    """
    kept = checkpoint.read(folder.best)
    if kept.keys() != {"episode", "weights"}:
        raise RejectedError(FOREIGN, where=str(folder.best))
    return kept


def _check_none(there: list[str], missing: Path) -> None:
    if there:
        raise RejectedError(
            f"is missing, and what the run learned would be written over ({', '.join(there)}): put the file back, "
            "choose another folder with --out, or remove this folder to begin anew",
            where=str(missing),
        )
