"""Drawn instances in the shape of the study's network setting: few small clusters, and bounds on links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.learning.instances.drawn.parts import GIB, jobs_of, node, picked, rounded
from seaway.learning.instances.instance import Instance

CARDS = (("RTX 2080 Ti", 11 * GIB), ("GTX 1660 SUPER", 6 * GIB))
USER = "gw-user"

US = 1_000
"""Nanoseconds in a microsecond."""

MBPS = (200, 500, 1_000, 2_000, 5_000, 10_000)
LOSS_PPM = (0, 2_000, 10_000, 30_000)
LATENCY_BOUNDS_US = (20_000, 40_000, 60_000)
JITTER_BOUNDS_US = (3_000, 6_000)
LOSS_BOUNDS_PPM = (5_000, 20_000)
ASKED_MBPS = (50, 100, 300)


@dataclass(frozen=True, slots=True)
class NetworkKind:
    """How such instances are drawn.

    Each cluster has two or three nodes of 32 cores and 128 GiB with 2 or 4 cards, each node of one of two models.
    Between any two gateways, of clusters and of the users, latency is 5 to 60 ms, jitter 0.5 to 6 ms, loss one of
    `LOSS_PPM` and bandwidth one of `MBPS`, both ways alike. Jobs ask for a slice of 1,000 to 2,750 MiB and 100 to 500
    thousandths of a card, 1 to 4 cores and 2 to 16 GiB; each bound on the link to their users is set by about half of
    them.

    Attributes
    ----------
    clusters
        How many.
    jobs
        How many, and as many of the past.
    """

    clusters: int = 3
    jobs: int = 80

    def __call__(self, random: np.random.Generator) -> Instance:
        """Draw one."""
        clusters = tuple(_cluster(random, f"cluster{number}") for number in range(1, self.clusters + 1))
        names = (*(cluster.gateway for cluster in clusters), USER)
        fleet = Fleet(clusters, tuple(Gateway(name) for name in names), draw_links(random, names))
        past = jobs_of(draw_demands(random, self.jobs), "past")
        return Instance("network", fleet, jobs_of(draw_demands(random, self.jobs)), past)


def draw_links(random: np.random.Generator, gateways: tuple[str, ...]) -> tuple[Link, ...]:
    """Draw what lies between any two gateways, both ways alike."""
    links: list[Link] = []
    for at, one in enumerate(gateways):
        for other in gateways[at + 1 :]:
            figures = (
                int(random.integers(5_000, 60_000)) * US,
                int(random.integers(500, 6_000)) * US,
                int(random.choice(LOSS_PPM)),
                int(random.choice(MBPS)),
            )
            links += [Link(one, other, *figures), Link(other, one, *figures)]
    return tuple(links)


def draw_needs(random: np.random.Generator, count: int) -> list[NetworkNeed]:
    """Draw bounds on links; each is set by about half."""
    choices = (LATENCY_BOUNDS_US, JITTER_BOUNDS_US, LOSS_BOUNDS_PPM, ASKED_MBPS)
    bounds = zip(*(_some(random, each, count) for each in choices), strict=True)
    return [NetworkNeed(latency * US, jitter * US, loss, mbps) for latency, jitter, loss, mbps in bounds]


def draw_demands(random: np.random.Generator, count: int) -> list[Demand]:
    """Draw what jobs ask for."""
    requests = zip(
        (1000 * random.integers(1, 5, count)).tolist(),
        (GIB * random.integers(2, 17, count)).tolist(),
        [1] * count,
        rounded(random.uniform(1_000, 2_750, count), 50, 1_000, 2_750),
        [0] * count,
        (100 * random.integers(1, 6, count)).tolist(),
        strict=True,
    )
    both = zip(requests, draw_needs(random, count), strict=True)
    return [Demand(ResourceRequest(*one), gateway=USER, network=need) for one, need in both]


def _cluster(random: np.random.Generator, name: str) -> Cluster:
    nodes = []
    for number in range(int(random.integers(2, 4))):
        model, memory_mib = CARDS[int(random.integers(len(CARDS)))]
        nodes.append(node(f"{name}-n{number}", (32, 128), int(random.choice((2, 2, 4))), model, memory_mib))
    return Cluster(name, tuple(nodes), gateway=f"gw-{name}")


def _some(random: np.random.Generator, bounds: tuple[int, ...], count: int) -> list[int]:
    """Draw one of some bounds, or 0 for none, as often as all of them together."""
    return np.array((0, *bounds))[picked(random, (len(bounds), *([1] * len(bounds))), count)].tolist()
