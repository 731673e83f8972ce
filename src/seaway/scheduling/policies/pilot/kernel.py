"""Compiled form of the learned policy `pilot` for training: its network and whole episodes.

The engine runs the same network from its policy file. Here a decision takes about 30 microseconds, so that an hour of
training has ten million decisions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from seaway.scheduling.arrays import DemandArrays, FleetArrays, Int32, Int64, UInt8
from seaway.scheduling.columns import (
    CLUSTERS_USABLE,
    JOB_DEMAND,
    NODE_CLUSTER,
)
from seaway.scheduling.kernels.compile import compiled
from seaway.scheduling.kernels.decide import allocate_replica, find_usable_clusters, reset_bandwidth, start_row
from seaway.scheduling.kernels.shared_arrays import borrowed
from seaway.scheduling.policies.pilot.features import (
    FLEET_GPU_CORE_FREE,
    JOB_FEATURES,
    JOB_RANK,
    NODE_FEATURES,
    SHORTLIST_SIZE,
    FeatureParams,
    Float32,
    build_shortlist,
    write_features,
)

MIN_RANK: Final = 0.5
"""Minimum rank, among jobs of the mix, of jobs that are deferred."""

MAX_FREE: Final = 0.75
"""Maximum free share of the fleet's GPU cores for a deferral."""

STEEP: Final = 10.0
"""Slope of the bound on the score of waiting, at each of the two limits."""


class PilotWeights(NamedTuple):
    """Weights of the network, with width H and A attention heads. `seaway.learning.pilot.network` defines the network.

    Attributes
    ----------
    node_in, job_in, bias_in
        First layer, shapes (NODE_FEATURES, H), (JOB_FEATURES, H) and (H,).
    hidden, bias_hidden
        Second layer, shapes (H, H) and (H,).
    attend
        Attention vector of each head, shape (H, A).
    own, pooled, bias_out
        Third layer, for the node itself and for the output of the heads, shapes (H, H), (A * H, H) and (H,).
    last, skip
        Score, shapes (H,) and (NODE_FEATURES,).
    wait_job, wait_pooled, bias_wait
        First layer of the score of waiting, shapes (JOB_FEATURES, H), (A * H, H) and (H,).
    wait_last, wait_skip
        Score of waiting, shapes (H,) and (JOB_FEATURES + 1,); the last entry is a constant.
    """

    node_in: Float32
    job_in: Float32
    bias_in: Float32
    hidden: Float32
    bias_hidden: Float32
    attend: Float32
    own: Float32
    pooled: Float32
    bias_out: Float32
    last: Float32
    skip: Float32
    wait_job: Float32
    wait_pooled: Float32
    bias_wait: Float32
    wait_last: Float32
    wait_skip: Float32


@compiled
def add_product(vector: Float32, size: int, matrix: Float32, out: Float32) -> None:
    """Add the product of the first `size` entries of a vector with a matrix to `out`."""
    for i in range(size):
        x = vector[i]
        if x != 0.0:
            for j in range(out.shape[0]):
                out[j] += x * matrix[i, j]


@compiled
def rectify(vector: Float32) -> None:
    """Set negative entries to 0."""
    for j in range(vector.shape[0]):
        vector[j] = max(vector[j], np.float32(0.0))


@compiled
def pool(hidden: Float32, count: int, attend: Float32, pooled: Float32) -> None:
    """Compute the output of each attention head over `count` nodes: means weighted by a softmax."""
    width = hidden.shape[1]
    weights = np.empty(count, np.float32)
    for head in range(attend.shape[1]):
        most = np.float32(-np.inf)
        for at in range(count):
            total = np.float32(0.0)
            for j in range(width):
                total += hidden[at, j] * attend[j, head]
            weights[at] = total
            most = max(most, total)
        whole = np.float32(0.0)
        for at in range(count):
            weights[at] = np.exp(weights[at] - most)
            whole += weights[at]
        for at in range(count):
            part = weights[at] / whole
            for j in range(width):
                pooled[head * width + j] += part * hidden[at, j]


@compiled
def run_network(weights: PilotWeights, features: Float32, job: Float32, count: int, scores: Float32) -> float:
    """Compute the scores of the first `count` nodes. Return the score of waiting: above 0, the job waits."""
    width, heads = weights.hidden.shape[0], weights.attend.shape[1]
    hidden, pooled = np.empty((count, width), np.float32), np.zeros(heads * width, np.float32)
    first, layer = np.empty(width, np.float32), np.empty(width, np.float32)
    first[:] = weights.bias_in
    add_product(job, JOB_FEATURES, weights.job_in, first)
    for at in range(count):
        layer[:] = first
        add_product(features[at], NODE_FEATURES, weights.node_in, layer)
        rectify(layer)
        hidden[at] = weights.bias_hidden
        add_product(layer, width, weights.hidden, hidden[at])
        rectify(hidden[at])
    pool(hidden, count, weights.attend, pooled)
    first[:] = weights.bias_out
    add_product(pooled, heads * width, weights.pooled, first)
    for at in range(count):
        layer[:] = first
        add_product(hidden[at], width, weights.own, layer)
        rectify(layer)
        total = np.float32(0.0)
        for j in range(width):
            total += layer[j] * weights.last[j]
        for f in range(NODE_FEATURES):
            total += features[at, f] * weights.skip[f]
        scores[at] = total
    layer[:] = weights.bias_wait
    add_product(job, JOB_FEATURES, weights.wait_job, layer)
    add_product(pooled, heads * width, weights.wait_pooled, layer)
    rectify(layer)
    wait_score = weights.wait_skip[JOB_FEATURES]
    for j in range(width):
        wait_score += layer[j] * weights.wait_last[j]
    for f in range(JOB_FEATURES):
        wait_score += job[f] * weights.wait_skip[f]
    return clamp_wait_score(wait_score, job)


@compiled
def clamp_wait_score(score: float, job: Float32) -> float:
    """Limit the score of waiting: at most 0 for the smaller half of jobs, and while most of the fleet is free."""
    size = STEEP * (job[JOB_RANK] - MIN_RANK)
    return min(score, size, STEEP * (MAX_FREE - job[FLEET_GPU_CORE_FREE]))


@compiled
def mark_allowed(fleet: FleetArrays, allowed: UInt8) -> None:
    """Mark the nodes of clusters that the current job may use."""
    for n in range(allowed.shape[0]):
        allowed[n] = fleet.clusters_open[CLUSTERS_USABLE, fleet.nodes[NODE_CLUSTER, n]]


@compiled
def run_episode(
    params: FeatureParams,
    weights: PilotWeights,
    fleet: FleetArrays,
    demands: DemandArrays,
    jobs: Int64,
    offers: int,
    row: Int64,
    slices: Int32,
    placed: Int64,
    waited: UInt8,
) -> int:
    """Run one episode: offer each job once, and those that waited once more at the end.

    Parameters
    ----------
    fleet
        Fleet without allocations; updated.
    jobs
        Jobs with one replica each, shape (J, JOB_ROWS).
    offers
        Number of offers of each job; with 1, no job may wait.
    row
        Row of a plan, shape (PLAN_ROWS,); scratch memory.
    slices
        Slices, with a row for each device of the largest request; scratch memory.
    placed
        Node of each job, -1 for none, shape (J,); output.
    waited
        1 for each job that waited although it fitted, shape (J,); output, initially 0.

    Returns
    -------
    int
        Number of placed jobs.
    """
    lent_params, lent, requested = borrowed(params), borrowed(fleet), borrowed(demands)
    lent_row, lent_slices = borrowed(row), borrowed(slices)
    nodes, values = np.empty(SHORTLIST_SIZE, np.int64), np.empty(SHORTLIST_SIZE, np.int64)
    features, job = np.zeros((SHORTLIST_SIZE, NODE_FEATURES), np.float32), np.zeros(JOB_FEATURES, np.float32)
    scores, allowed = np.empty(SHORTLIST_SIZE, np.float32), np.empty(fleet.nodes.shape[1], np.uint8)
    total = 0
    for offer in range(offers):
        for j in range(jobs.shape[0]):
            if offer > 0 and not waited[j]:
                continue
            k = jobs[j, JOB_DEMAND]
            reset_bandwidth(lent)
            find_usable_clusters(lent, requested, k)
            mark_allowed(lent, borrowed(allowed))
            count = build_shortlist(
                lent_params.seaway,
                lent,
                requested,
                k,
                None,
                borrowed(allowed),
                borrowed(nodes),
                borrowed(values),
            )
            placed[j] = -1
            if count == 0:
                continue
            write_features(
                lent_params,
                lent,
                requested,
                k,
                borrowed(nodes),
                borrowed(values),
                count,
                borrowed(features),
                borrowed(job),
            )
            wait_score = run_network(weights, features, job, count, scores)
            if wait_score > 0 and offer + 1 < offers:
                waited[j] = 1
                continue
            best = 0
            for at in range(1, count):
                if scores[at] > scores[best]:
                    best = at
            start_row(lent_row, 0, 0, k, 0)
            allocate_replica(lent_params.seaway, lent, requested, nodes[best], 0, lent_row, lent_slices)
            placed[j] = nodes[best]
            total += 1
    return total
