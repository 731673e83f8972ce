"""What a run kept in its folder, looked at before a run begins or goes on there: none of it is written over."""

from __future__ import annotations

from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.runs.folder import RunFolder
from seaway.learning.runs.table import read_rows


def check_nothing_lost(folder: RunFolder) -> None:
    """See that nothing was learned yet where what tells how to go on is not there: a run begins anew over the rest.

    Raises
    ------
    RejectedError
        When there are episodes, weights or a policy without a checkpoint, or any of these without a configuration.
    """
    there = [path.name for path in (folder.policy, folder.best) if path.exists()]
    there += [folder.episodes.name] if read_rows(folder.episodes) else []
    if not folder.checkpoint.exists():
        _check_none(there, folder.checkpoint)
    elif not folder.has_run:
        _check_none([folder.checkpoint.name, *there], folder.config)


def _check_none(there: list[str], missing: Path) -> None:
    if there:
        raise RejectedError(
            f"is missing, and what the run learned would be written over ({', '.join(there)}): put the file back, "
            "choose another folder with --out, or remove this folder to begin anew",
            where=str(missing),
        )
