"""Clusters and a job as the figures that a cluster-level policy is shown.

What is shown without a network is the state of the study of EADE-DDPG: four free shares of each cluster, cluster
after cluster, then the four demands of the job. With a network each cluster and the job have four figures more. What
is free may be counted on all nodes of a cluster, or on those alone that fit the job: sums over all nodes do not tell
whether any one of them has room.
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
"""Version of the figures. Policies trained on others are rejected."""

FIGURES = RESOURCES
"""Figures of a cluster, and of the job: CPU, memory, GPU memory, GPU cores."""

NETWORK_FIGURES = 2 * RESOURCES
"""Figures with a network: additionally latency, jitter, loss and bandwidth."""

HALF_LATENCY_NS = 50_000_000
HALF_JITTER_NS = 5_000_000
HALF_LOSS_PPM = 0.01 * PPM
HALF_MBPS = 1_000.0
"""Figures of a link that are shown as one half: ``x / (x + half)`` goes from 0 to 1 for any ``x``."""

NO_ANSWER = 1.0
"""Latency, jitter and loss of an unknown or unreachable link, and value of a bound that a job does not set."""

_of_links: WeakKeyDictionary[FleetVersion, Float32] = WeakKeyDictionary()


def observation_size(clusters: int, *, network: bool) -> int:
    """Return how many figures `observe`, or `observe_network`, shows of so many clusters."""
    return (clusters + 1) * (NETWORK_FIGURES if network else FIGURES)


def observe(snapshot: Snapshot, line: int, *, fitting: bool = False) -> Float32:
    """Return the observation of clusters and a job.

    Parameters
    ----------
    snapshot
        The fleet.
    line
        Line of the job's demand in its `demands`; -1 for no job, whose figures are 0.
    fitting
        Whether only free resources on nodes that fit the job count; without a job all count.

    Returns
    -------
    Float32
        Shape (4 C + 4,). For each cluster: the free shares of CPU, memory, GPU memory and GPU cores, 0 for an absent
        resource. Then the job's requests of the four, as shares of the mean cluster, at most C.
    """
    shown = np.empty((len(snapshot.clusters) + 1) * FIGURES, np.float32)
    _write(fitting=fitting)(snapshot.arrays, snapshot.demands.arrays, line, FIGURES, shown)
    return shown


def observe_network(snapshot: Snapshot, line: int, *, fitting: bool = False) -> Float32:
    """Show the clusters, what lies between them and the job's user, and the job.

    Parameters
    ----------
    snapshot, line, fitting
        As `observe` takes them.

    Returns
    -------
    Float32
        Shape (8 C + 8,). Of each cluster the four free shares, then latency, jitter, loss and free bandwidth of the
        link from the job's user gateway, each as ``x / (x + half)`` with the halves above: so 0 to 1. No link is
        crossed, latency, jitter and loss are 0 and bandwidth is 1, where user and cluster are behind one gateway, or
        the job names none. Of the job the four demands, then its bounds on the four, alike: 1 where it does not
        bound latency, jitter or loss, 0 where it asks for no bandwidth. A link is good enough where its first three
        figures are at most the job's, and its bandwidth at least the job's.
    """
    shown = np.empty((len(snapshot.clusters) + 1) * NETWORK_FIGURES, np.float32)
    arrays, demands = snapshot.arrays, snapshot.demands.arrays
    _write(fitting=fitting)(arrays, demands, line, NETWORK_FIGURES, shown)
    write_links(arrays, demands, line, link_figures(snapshot), HALF_MBPS, shown)
    shown[-RESOURCES:] = _bounds(snapshot, line)
    return shown


def observer(*, network: bool, fitting: bool) -> Callable[[Snapshot, int], Float32]:
    """Return what shows clusters and a job, so that training, evaluation and the engine show the same."""
    return partial(observe_network if network else observe, fitting=fitting)


def _write(*, fitting: bool) -> Callable[..., None]:
    return write_fitting_shares if fitting else write_shares


def link_figures(snapshot: Snapshot) -> Float32:
    """Return latency, jitter and loss from each gateway to each cluster, scaled, shape (G, 3 C)."""
    known = _of_links.get(snapshot.demands.fleet_version)
    if known is None:
        known = _of_links[snapshot.demands.fleet_version] = _link_figures(snapshot)
    return known


def _link_figures(snapshot: Snapshot) -> Float32:
    gateways = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
    behind: dict[str, list[int]] = {}
    for c, cluster in enumerate(snapshot.clusters):
        behind.setdefault(cluster.gateway, []).append(c)
    figures = np.full((len(gateways), len(snapshot.clusters), 3), NO_ANSWER, np.float32)
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
    """Return a job's bounds, scaled as the links are."""
    if line < 0:
        return NO_ANSWER, NO_ANSWER, NO_ANSWER, 0.0
    need = snapshot.demands.demand(line).network
    return (
        half_scaled(need.max_latency_ns, HALF_LATENCY_NS) if need.max_latency_ns else NO_ANSWER,
        half_scaled(need.max_jitter_ns, HALF_JITTER_NS) if need.max_jitter_ns else NO_ANSWER,
        half_scaled(need.max_loss_ppm, HALF_LOSS_PPM) if need.max_loss_ppm else NO_ANSWER,
        half_scaled(need.min_bandwidth_mbps, HALF_MBPS),
    )


def half_scaled(figure: float, half: float) -> float:
    """Return a figure from 0 up as a share from 0 to 1 that is one half at `half`."""
    return figure / (figure + half)


def choice_of(action: float, clusters: int) -> int:
    """Return what an action stands for: the interval from -1 to 1 is cut into C + 1 bins of one width.

    Returns
    -------
    int
        A cluster, or C, of the last bin, to wait. What lies beyond the interval counts as its nearer end.

    Raises
    ------
    RejectedError
        When it is not a finite number.
    """
    if not isfinite(action):
        raise RejectedError(f"an action is a number from -1 to 1, not {action}")
    return min(max(int((action + 1.0) / 2.0 * (clusters + 1)), 0), clusters)


def checked(number: int, most: int) -> int:
    """Return the number of an action.

    Raises
    ------
    RejectedError
        When there is none of that number.
    """
    if not 0 <= number <= most:
        raise RejectedError(f"action {number} not found: actions are 0 to {most}")
    return number


def action_of(choice: int, clusters: int) -> float:
    """Return the action in the middle of the bin of a choice."""
    return (choice + 0.5) * 2.0 / (clusters + 1) - 1.0
