"""Instances that a run learns on: read from folders, and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.instances.drawn.kinds import drawn
from seaway.learning.instances.folder import read_instances
from seaway.learning.instances.instance import Instance
from seaway.learning.training.settings import Run


def read_all(run: Run) -> Sequence[Instance]:
    """Read and draw the instances of a run, those from folders first.

    Raises
    ------
    RejectedError
        When a folder has none, a file is wrong, or instances of a kind cannot be drawn.
    """
    found = read_instances([Path(path) for path in run.instances])
    for kind in run.draw:
        try:
            found += drawn(kind, run.settings.draws, run.settings.draw_seed)
        except RejectedError as error:
            raise RejectedError(error.message, where="--draw") from None
    return found
