"""Policy `utilization`: the node whose free resources match the replica's request best."""

from __future__ import annotations

from typing import NamedTuple

from seaway.scheduling.arrays import DemandArrays, FleetArrays
from seaway.scheduling.columns import (
    DEMAND_CPU,
    DEMAND_GPU_CORE,
    DEMAND_GPUS,
    DEMAND_MEMORY,
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_GPU_CORE,
    NODE_GPU_CORE_FREE,
    NODE_GPU_MEMORY,
    NODE_GPU_MEMORY_FREE,
    NODE_MEMORY,
    NODE_MEMORY_FREE,
)
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.kernels.compile import compiled, specialises
from seaway.scheduling.kernels.fit import memory_requested
from seaway.scheduling.kernels.policy_stubs import (
    ANY_SCORE,
    device_key,
    key_column,
    left_bound,
    node_score,
    prepare,
    score_column,
)
from seaway.scheduling.kernels.scan import scanned
from seaway.scheduling.snapshot.snapshot import Snapshot

WHOLE_PPM = 1_000_000


@scanned
class UtilizationParams(NamedTuple):
    """Parameters of `utilization`: none."""


@compiled
def share_ppm(amount: int, total: int) -> int:
    """Return `amount` as a share of `total`, parts per million; 0 if `total` is 0."""
    return amount * WHOLE_PPM // total if total > 0 else 0


@compiled
def node_mismatch(fleet: FleetArrays, demands: DemandArrays, k: int, n: int) -> int:
    """Return the sum of abs(free - demand)/total of node `n` over the four resources, parts per million."""
    nodes, amounts = fleet.nodes, demands.amounts
    core = amounts[k, DEMAND_GPU_CORE] * amounts[k, DEMAND_GPUS]
    memory = memory_requested(fleet, demands, k, n)
    return (
        share_ppm(abs(nodes[NODE_CPU_FREE, n] - amounts[k, DEMAND_CPU]), nodes[NODE_CPU, n])
        + share_ppm(abs(nodes[NODE_MEMORY_FREE, n] - amounts[k, DEMAND_MEMORY]), nodes[NODE_MEMORY, n])
        + share_ppm(abs(nodes[NODE_GPU_MEMORY_FREE, n] - memory), nodes[NODE_GPU_MEMORY, n])
        + share_ppm(abs(nodes[NODE_GPU_CORE_FREE, n] - core), nodes[NODE_GPU_CORE, n])
    )


@specialises(prepare, UtilizationParams)
def _prepare(params: UtilizationParams, fleet: FleetArrays, demands: DemandArrays, k: int, random_bits: int) -> None:
    pass


@specialises(node_score, UtilizationParams)
def _node_score(
    params: UtilizationParams, fleet: FleetArrays, demands: DemandArrays, k: int, n: int, random_bits: int
) -> int:
    return -node_mismatch(fleet, demands, k, n)


@specialises(left_bound, UtilizationParams)
def _left_bound(params: UtilizationParams, fleet: FleetArrays, demands: DemandArrays, k: int, left: int) -> int:
    return ANY_SCORE


@specialises(device_key, UtilizationParams)
def _device_key(
    params: UtilizationParams, fleet: FleetArrays, demands: DemandArrays, k: int, d: int, random_bits: int
) -> int:
    return 0


class Utilization:
    """Score by the difference between the replica's request and the free amount of each resource."""

    name = "Utilization"

    def score(self, cycle: Cycle) -> Scores:
        """Return the negative sum of abs(free - demand)/total for each node, shape (N,), parts per million."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return score_column(UtilizationParams(), arrays, demands, cycle.demand_index, cycle.random_bits)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Return equal keys for all devices."""
        arrays, demands = cycle.snapshot.arrays, cycle.snapshot.demands.arrays
        return key_column(UtilizationParams(), arrays, demands, cycle.demand_index, node, cycle.random_bits)

    def params(self, snapshot: Snapshot) -> UtilizationParams:
        """Return the policy for the compiled path."""
        return UtilizationParams()
