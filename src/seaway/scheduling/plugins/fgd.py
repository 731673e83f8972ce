"""Fragmentation gradient descent: the node on which unusable fragments grow least."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from seaway.domain.job import Job
from seaway.scheduling.columns import DEMAND_CPU, DEMAND_GPUS, NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.fgd import FgdParams, frag_column, frag_of_devices
from seaway.scheduling.kernels.rows import row_cache
from seaway.scheduling.mix import NodeKinds, node_kinds, typical_jobs
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.state import Int64
from seaway.scheduling.static import Kept, OfFleet

WHOLE = 1000


class Fgd:
    """Scores a node by how much of its idle GPU becomes useless to the job mix.

    Parameters
    ----------
    mix
        Jobs of the past.

    References
    ----------
    Weng et al.: Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
    Gradient Descent. USENIX ATC 2023.
    """

    name = "Fgd"

    def __init__(self, mix: Sequence[Job]) -> None:
        self._typical = typical_jobs(mix)
        self._known = Kept(self.params)
        self._tables = OfFleet(self._work_out)

    def score(self, cycle: Cycle) -> Scores:
        """Score every node, shape (N,), 0-100; -1 where the replica does not fit."""
        snapshot = cycle.snapshot
        return frag_column(self._known(snapshot), snapshot.arrays, snapshot.demands.arrays, cycle.line)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank devices: one alone by its score, several by what is left on them, least first."""
        snapshot = cycle.snapshot
        arrays, demands = snapshot.arrays, snapshot.demands.arrays
        first, end = arrays.nodes[NODE_DEVICE_FIRST, node], arrays.nodes[NODE_DEVICE_END, node]
        return frag_of_devices(self._known(snapshot), arrays, demands, cycle.line, first, end)

    def params(self, snapshot: Snapshot) -> FgdParams:
        """Return the policy for the compiled path, with room of its own for scores."""
        return self._tables(snapshot)._replace(cache=row_cache(len(snapshot.nodes), len(snapshot.demands)))

    def _work_out(self, snapshot: Snapshot) -> FgdParams:
        """Table what the nodes of a fleet can hold of the mix, without room for scores."""
        kinds = node_kinds(snapshot, self._typical)
        lines = [snapshot.demands.line(each.demand) for each in self._typical]
        amounts = snapshot.demands.arrays.amounts[lines]
        counts = np.array([each.count for each in self._typical], np.int64)
        cpu_steps = np.unique(amounts[:, DEMAND_CPU])
        weight = max(int(counts.sum()), 1)
        level, sharing = _sharing_tables(kinds, amounts, counts, cpu_steps)
        return FgdParams(
            kind=kinds.kind,
            cpu_steps=cpu_steps,
            level=level,
            sharing=sharing,
            whole=_whole_table(kinds, amounts, counts, cpu_steps, _most_devices(snapshot)),
            steps=_score_steps(weight),
            weight=np.array([weight], np.int64),
            cache=row_cache(0, 0),
        )


def _most_devices(snapshot: Snapshot) -> int:
    nodes = snapshot.arrays.nodes
    return int((nodes[NODE_DEVICE_END] - nodes[NODE_DEVICE_FIRST]).max(initial=0))


def _sharing_tables(kinds: NodeKinds, amounts: Int64, counts: Int64, cpu_steps: Int64) -> tuple[Int64, Int64]:
    """Table how many jobs of one device fit what CPU is free and what a device has left."""
    single = amounts[:, DEMAND_GPUS] == 1
    sizes = np.unique(kinds.share[:, single])
    sizes = sizes[sizes <= WHOLE]
    level = np.searchsorted(sizes, np.arange(WHOLE + 1), side="right").astype(np.int64)
    table = np.zeros((len(kinds.share), len(cpu_steps) + 1, len(sizes) + 1), np.int64)
    for t in np.flatnonzero(single):
        step = np.searchsorted(cpu_steps, amounts[t, DEMAND_CPU], side="right")
        for kind, share in enumerate(kinds.share[:, t]):
            if share <= WHOLE:
                table[kind, step:, np.searchsorted(sizes, share, side="right") :] += counts[t]
    return level, table.reshape(-1, len(sizes) + 1)


def _whole_table(kinds: NodeKinds, amounts: Int64, counts: Int64, cpu_steps: Int64, most: int) -> Int64:
    """Table how many jobs of several devices fit what CPU is free and how many devices are idle."""
    table = np.zeros((len(kinds.share), len(cpu_steps) + 1, most + 1), np.int64)
    for t in np.flatnonzero(amounts[:, DEMAND_GPUS] > 1):
        step = np.searchsorted(cpu_steps, amounts[t, DEMAND_CPU], side="right")
        for kind in np.flatnonzero(kinds.share[:, t] <= WHOLE):
            table[kind, step:, amounts[t, DEMAND_GPUS] :] += counts[t]
    return table.reshape(-1, most + 1)


def _score_steps(weight: int) -> Int64:
    """Least gain for each score from 1 to 99: 1000 W ln(s / (100 - s)), rounded up."""
    return np.array([math.ceil(WHOLE * weight * math.log(s / (100 - s))) for s in range(1, 100)], np.int64)
