"""Observation at cluster level: features of the clusters and of a job.

Without a network, it is the state of the study of EADE-DDPG: four free shares of each cluster, cluster after cluster,
then the four requests of the job. With a network, each cluster and the job have four more features. Free shares count
all nodes of a cluster, or only nodes that fit the job, because sums over all nodes do not show whether one node fits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite
from weakref import WeakKeyDictionary

import numpy as np

from seaway.domain.errors import RejectedError
from seaway.domain.network import PPM
from seaway.scheduling.arrays import Float32
from seaway.scheduling.kernels.candidates import RESOURCES, write_fitting_shares, write_links, write_shares
from seaway.scheduling.snapshot.demands import FleetVersion
from seaway.scheduling.snapshot.snapshot import Snapshot

VERSION = 1
"""Version of the features. Policies for other versions are rejected."""

CLUSTER_FEATURES = RESOURCES
"""Number of features of a cluster and of the job: CPU, memory, GPU memory, GPU cores."""

NETWORK_FEATURES = 2 * RESOURCES
"""Number of features with a network: additionally latency, jitter, loss and bandwidth."""

HALF_LATENCY_NS = 50_000_000
HALF_JITTER_NS = 5_000_000
HALF_LOSS_PPM = 0.01 * PPM
HALF_MBPS = 1_000.0
"""Values of a link whose feature is one half. A feature is ``x / (x + half)``, 0 to 1."""

UNKNOWN = 1.0
"""Feature of latency, jitter and loss of an unknown link, and of bounds that the job does not set."""

_cached: WeakKeyDictionary[FleetVersion, Float32] = WeakKeyDictionary()


def observation_size(clusters: int, *, network: bool) -> int:
    """Return the length of the result of `observe`, or with `network` of `observe_network`."""
    return (clusters + 1) * (NETWORK_FEATURES if network else CLUSTER_FEATURES)


def observe(snapshot: Snapshot, line: int, *, fitting: bool = False) -> Float32:
    """Return the observation of clusters and a job.

    Parameters
    ----------
    snapshot
        The fleet.
    line
        Index of the job's demand in `snapshot.demands`; -1 for no job, whose features are 0.
    fitting
        Whether only nodes that fit the job count; without a job all count.

    Returns
    -------
    Float32
        Shape (4 C + 4,). For each cluster: the free shares of CPU, memory, GPU memory and GPU cores, 0 for an absent
        resource. Then the job's requests of the four, as shares of the mean cluster, at most C.
    """
    observation = np.empty((len(snapshot.clusters) + 1) * CLUSTER_FEATURES, np.float32)
    _write(fitting=fitting)(snapshot.arrays, snapshot.demands.arrays, line, CLUSTER_FEATURES, observation)
    return observation


def observe_network(snapshot: Snapshot, line: int, *, fitting: bool = False) -> Float32:
    """Return the observation of clusters and a job, with links and the job's bounds on them.

    Parameters
    ----------
    snapshot, line, fitting
        As in `observe`.

    Returns
    -------
    Float32
        Shape (8 C + 8,). For each cluster: the four free shares, then latency, jitter, loss and free bandwidth of the
        link from the job's user gateway, each as ``x / (x + half)`` with the constants above. If user and cluster are
        behind the same gateway, or the job names none, latency, jitter and loss are 0 and bandwidth is 1. Then the
        four requests of the job, and its bounds on the link in the same form: 1 for no bound on latency, jitter or
        loss, and 0 for no bandwidth. A link is sufficient if its first three features are at most the job's, and its
        bandwidth is at least the job's.
    """
    observation = np.empty((len(snapshot.clusters) + 1) * NETWORK_FEATURES, np.float32)
    arrays, demands = snapshot.arrays, snapshot.demands.arrays
    _write(fitting=fitting)(arrays, demands, line, NETWORK_FEATURES, observation)
    write_links(arrays, demands, line, link_features(snapshot), HALF_MBPS, observation)
    observation[-RESOURCES:] = _bounds(snapshot, line)
    return observation


def observer(*, network: bool, fitting: bool) -> Callable[[Snapshot, int], Float32]:
    """Return the observation function, the same for training, evaluation and the engine."""
    return partial(observe_network if network else observe, fitting=fitting)


def _write(*, fitting: bool) -> Callable[..., None]:
    return write_fitting_shares if fitting else write_shares


def link_features(snapshot: Snapshot) -> Float32:
    """Return latency, jitter and loss from each gateway to each cluster, scaled, shape (G, 3 C)."""
    known = _cached.get(snapshot.demands.fleet_version)
    if known is None:
        known = _cached[snapshot.demands.fleet_version] = _compute_link_features(snapshot)
    return known


def _compute_link_features(snapshot: Snapshot) -> Float32:
    gateways = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
    behind: dict[str, list[int]] = {}
    for c, cluster in enumerate(snapshot.clusters):
        behind.setdefault(cluster.gateway, []).append(c)
    figures = np.full((len(gateways), len(snapshot.clusters), 3), UNKNOWN, np.float32)
    for link in snapshot.links:
        if link.latency_ns is not None:
            scaled = (
                half_scaled(link.latency_ns, HALF_LATENCY_NS),
                half_scaled(link.jitter_ns, HALF_JITTER_NS),
                half_scaled(link.loss_ppm, HALF_LOSS_PPM),
            )
            figures[gateways[link.source], behind.get(link.target, [])] = scaled
    return figures.reshape(len(gateways), -1)


def _bounds(snapshot: Snapshot, line: int) -> tuple[float, float, float, float]:
    """Return the bounds of a job, scaled like links."""
    if line < 0:
        return UNKNOWN, UNKNOWN, UNKNOWN, 0.0
    need = snapshot.demands.demand(line).network
    return (
        half_scaled(need.max_latency_ns, HALF_LATENCY_NS) if need.max_latency_ns else UNKNOWN,
        half_scaled(need.max_jitter_ns, HALF_JITTER_NS) if need.max_jitter_ns else UNKNOWN,
        half_scaled(need.max_loss_ppm, HALF_LOSS_PPM) if need.max_loss_ppm else UNKNOWN,
        half_scaled(need.min_bandwidth_mbps, HALF_MBPS),
    )


def half_scaled(value: float, half: float) -> float:
    """Scale a non-negative value to 0-1, with one half at `half`."""
    return value / (value + half)


def choice_of(action: float, clusters: int) -> int:
    """Return the choice of a continuous action, by C + 1 bins of equal width from -1 to 1.

    Returns
    -------
    int
        A cluster, or C to wait. Actions are clipped to -1 and 1.

    Raises
    ------
    RejectedError
        When the action is not finite.
    """
    if not isfinite(action):
        raise RejectedError(f"an action is a number from -1 to 1, not {action}")
    return min(max(int((action + 1.0) / 2.0 * (clusters + 1)), 0), clusters)


def checked(number: int, most: int) -> int:
    """Return the number of an action.

    Raises
    ------
    RejectedError
        When the action does not exist.
    """
    if not 0 <= number <= most:
        raise RejectedError(f"action {number} not found: actions are 0 to {most}")
    return number


def action_of(choice: int, clusters: int) -> float:
    """Return the action at the midpoint of the bin of a choice."""
    return (choice + 0.5) * 2.0 / (clusters + 1) - 1.0
