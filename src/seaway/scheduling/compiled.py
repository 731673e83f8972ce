"""Compiled placement, for profiles with one compiled score and the engine's built-in filters."""

from __future__ import annotations

from typing import Any

from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import JOB_GANG, JOB_REPLICAS
from seaway.scheduling.framework import Compiled
from seaway.scheduling.kernels.decide import decide_queue
from seaway.scheduling.kernels.queries import choose_node
from seaway.scheduling.kernels.score_cache import resized
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement


class CompiledPlacer:
    """Placer that decides a run of jobs in one call of compiled code.

    Parameters
    ----------
    snapshot
        Snapshot for which the policy's parameters are created.
    score
        Compiled score of the policy.
    seed
        Seed of random choices.
    """

    def __init__(self, snapshot: Snapshot, score: Compiled, seed: int) -> None:
        self._params: Any = score.params(snapshot)
        self._seed = seed
        self.divides = False  # compiled code chooses nodes, not clusters

    def place(self, statement: Statement, first: int, end: int) -> None:
        """Decide the queue's jobs from `first` up to, but not including, `end` and append them to the statement."""
        self._decide(statement, statement.queue.rows[first:end], first, 0)

    def place_replicas(self, statement: Statement, job: int, first: int, end: int) -> None:
        """Decide replicas `first` to `end` - 1 of one job individually, and append them to the statement."""
        alone = statement.queue.rows[job : job + 1].copy()
        alone[0, JOB_REPLICAS], alone[0, JOB_GANG] = end, 0
        self._decide(statement, alone, job, first)

    def choose_node(self, snapshot: Snapshot, demand_index: int, random_bits: int) -> int:
        """Return the node that the policy chooses for a replica of the demand, without placing it; -1 for none."""
        demands = snapshot.demands.arrays
        self._params = resized(self._params, demands.amounts.shape[0])
        return int(choose_node(self._params, snapshot.arrays, demands, demand_index, random_bits))

    def _decide(self, statement: Statement, jobs: Int64, first_job: int, first_replica: int) -> None:
        snapshot = statement.snapshot
        self._params = resized(self._params, snapshot.demands.arrays.amounts.shape[0])
        rows, slices = decide_queue(
            self._params,
            self._seed,
            snapshot.arrays,
            snapshot.demands.arrays,
            jobs,
            first_job,
            first_replica,
            statement.decisions,
            statement.slices,
            statement.length,
            statement.slice_end,
        )
        statement.length, statement.slice_end = rows, slices
