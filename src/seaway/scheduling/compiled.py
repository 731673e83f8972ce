"""Placing by machine code: a profile of one compiled score and the engine's own rules of fit."""

from __future__ import annotations

from typing import Any

from seaway.scheduling.framework import Compiled
from seaway.scheduling.kernels.decide import decide_queue
from seaway.scheduling.kernels.rows import resized
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.statement import Statement


class CompiledPlacer:
    """Places runs of jobs in one call into machine code.

    Parameters
    ----------
    snapshot
        The fleet that the policy's parameters are made for.
    score
        The policy.
    seed
        What random choices hang on.
    """

    def __init__(self, snapshot: Snapshot, score: Compiled, seed: int) -> None:
        self._params: Any = score.params(snapshot)
        self._seed = seed

    def place(self, statement: Statement, first: int, end: int) -> None:
        """Decide the queue's jobs from `first` up to `end` and append to the statement."""
        snapshot, jobs = statement.snapshot, statement.queue.lines[first:end]
        self._params = resized(self._params, snapshot.demands.arrays.amounts.shape[0])
        rows, slices = decide_queue(
            self._params,
            self._seed,
            snapshot.arrays,
            snapshot.demands.arrays,
            jobs,
            first,
            statement.lines,
            statement.slices,
            statement.length,
            statement.slice_end,
        )
        statement.length, statement.slice_end = rows, slices
