"""Plugin of Seaway's own policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seaway.domain.job import Job
from seaway.scheduling.columns import NODE_DEVICE_END, NODE_DEVICE_FIRST
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.score_cache import row_cache
from seaway.scheduling.policies.seaway.kernel import SeawayParams, node_values, value_column, value_of_devices
from seaway.scheduling.policies.seaway.node_value import (
    bound_groups,
    device_worths,
    hosting_table,
    mix_figures,
    served_tables,
)
from seaway.scheduling.snapshot.rule_masks import FleetCache, SnapshotCache
from seaway.scheduling.snapshot.snapshot import Snapshot


class Seaway:
    """Score by the loss of the node's value to the job mix, least first.

    Parameters
    ----------
    mix
        Past jobs.

    Attributes
    ----------
    tables
        Cache of the tables of a snapshot, until its fleet changes.

    References
    ----------
    ``docs/adr/0006-what-a-node-is-worth.md``
    """

    name = "Seaway"

    def __init__(self, mix: Sequence[Job]) -> None:
        self._mix = mix
        self.tables = SnapshotCache(self.params)
        self._worths = FleetCache(self._work_out)

    def score(self, cycle: Cycle) -> Scores:
        """Return the score of each node by its remaining value, shape (N,), in steps of 16 thousandths of a device."""
        snapshot = cycle.snapshot
        return value_column(self.tables(snapshot), snapshot.arrays, snapshot.demands.arrays, cycle.demand_index)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return keys of devices: by remaining value for one device, by free resources for several, least first."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        first, end = arrays.nodes[NODE_DEVICE_FIRST, node], arrays.nodes[NODE_DEVICE_END, node]
        return value_of_devices(self.tables(cycle.snapshot), arrays, demands, cycle.demand_index, first, end)

    def params(self, snapshot: Snapshot) -> SeawayParams:
        """Return the policy for the compiled path, with its own mutable arrays."""
        worths = self._worths(snapshot)
        return worths._replace(
            price=np.zeros_like(worths.price),
            free=np.zeros_like(worths.free),
            priced=np.full(1, -1, np.int64),
            node_values=node_values(len(snapshot.nodes)),
            cache=row_cache(len(snapshot.nodes), len(snapshot.demands)),
        )

    def _work_out(self, snapshot: Snapshot) -> SeawayParams:
        """Return the tables of a fleet, with empty mutable arrays."""
        figures = mix_figures(snapshot, self._mix)
        nodes = snapshot.arrays.nodes
        most = int((nodes[NODE_DEVICE_END] - nodes[NODE_DEVICE_FIRST]).max(initial=0))
        served, served_step = served_tables(figures)
        cpu_steps, hosting = hosting_table(figures, most)
        group, group_work = bound_groups(figures)
        return SeawayParams(
            kind=figures.kind,
            size=figures.size,
            worth=device_worths(figures),
            served=served,
            served_step=served_step,
            cpu_steps=cpu_steps,
            hosting=hosting,
            group=group,
            group_work=group_work,
            price=np.zeros(len(figures.allowed)),
            free=np.zeros(len(figures.allowed)),
            priced=np.full(1, -1, np.int64),
            node_values=node_values(0),
            cache=row_cache(0, 0),
        )
