"""Generators of instances in the style of the study of EADE-DDPG: small clusters and slices of GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.job import Demand, Job, ResourceRequest
from seaway.domain.network import Gateway, Link, NetworkNeed
from seaway.domain.node import Node
from seaway.learning.instances.instance import Instance
from seaway.scheduling.arrays import Float64, Int64

GIB = 1024
"""MiB in a GiB."""

SHARE_LIMIT = 1000
"""Maximum number of slices of a device, so high that only memory and cores are limits."""

CORE_MILLI = 1000
"""Thousandths of a CPU core."""

Span = tuple[float, float]
"""Minimum and maximum of a uniform distribution."""


def node(name: str, shape: tuple[int, int], gpus: int, model: str, gpu_memory_mib: int) -> Node:
    """Return a node with the given cores and GiB of memory. Devices have names derived from its name."""
    cores, memory_gib = shape
    devices = tuple(
        Device(f"{name}/{index}", index, model, gpu_memory_mib, share_limit=SHARE_LIMIT) for index in range(gpus)
    )
    return Node(name, cores * CORE_MILLI, memory_gib * GIB, devices)


def jobs_of(demands: Iterable[Demand], prefix: str = "job") -> tuple[Job, ...]:
    """Return a job with one replica for each demand, in order."""
    return tuple(Job(f"{prefix}-{number:04}", demand) for number, demand in enumerate(demands))


def uniform(random: np.random.Generator, span: Span) -> float:
    """Sample a number uniformly."""
    return float(random.uniform(*span))


def sample_indices(random: np.random.Generator, weights: Sequence[float], count: int) -> Int64:
    """Sample indices with probabilities proportional to weights, shape (count,)."""
    return random.choice(len(weights), count, p=np.array(weights) / sum(weights))


def rounded(amounts: Float64, step: int, minimum: int, maximum: int) -> list[int]:
    """Round amounts to multiples of a step, and clip them to limits that are also multiples."""
    whole: list[int] = np.clip(np.rint(amounts / step).astype(np.int64) * step, minimum, maximum).tolist()
    return whole


CARD_MIB = 16 * GIB
MAX_GPUS = 4

SHAPES: dict[int, tuple[tuple[int, int], ...]] = {
    1: ((8, 48), (12, 64), (48, 256)),
    2: ((16, 128), (24, 128), (96, 512)),
    3: ((24, 128), (32, 160), (64, 384)),
    4: ((32, 128), (40, 192), (64, 256)),
}
"""Cores and GiB of memory of nodes by number of GPUs, with equal probabilities."""

SMALL_CORES, LARGE_CORES = 2.4, 8.5
"""Median CPU requests in cores. Half of the jobs are small, the others are large."""

HEAVINESS: Span = (0.6, 1.0)
"""Factor of the medians, the same for all jobs of an instance."""

GIB_PER_CORE: Span = (2.0, 5.5)


@dataclass(frozen=True, slots=True)
class PlacementKind:
    """Generator of instances with GPU memory as the bottleneck.

    Nodes have 1 to 4 cards of 16 GiB; the total follows from the load of the jobs. Cores and memory depend on the
    number of cards (`SHAPES`). Seven of ten jobs request 12-75 % of a card's memory, the others 55-100 %. They request
    0.6 to 1.2 times that share of its cores. One job in twenty-five requests two such slices on one node. CPU requests
    are log-normal around one of two medians, which vary by instance. Memory is 2 to 5.5 GiB per core.

    Attributes
    ----------
    clusters, nodes
        Number of clusters, and of nodes in each.
    jobs
        Number of jobs, and of past jobs.
    load
        Total request of all jobs as a multiple of all GPU memory; uniformly distributed.
    """

    clusters: int = 16
    nodes: int = 4
    jobs: int = 220
    load: Span = (0.97, 1.11)

    def __call__(self, random: np.random.Generator) -> Instance:
        """Return a random instance."""
        demands = draw_demands(random, self.jobs)
        requested_mib = sum(demand.request.gpus * demand.request.gpu_memory_mib for demand in demands)
        gpus = round(requested_mib / CARD_MIB / uniform(random, self.load))
        nodes = draw_nodes(random, self.clusters * self.nodes, gpus)
        clusters = tuple(
            Cluster(f"c{c:02}", tuple(nodes[c * self.nodes : (c + 1) * self.nodes])) for c in range(self.clusters)
        )
        past = jobs_of(draw_demands(random, self.jobs), "past")
        return Instance("placement", Fleet(clusters), jobs_of(demands), past)


def draw_nodes(random: np.random.Generator, count: int, gpus: int) -> list[Node]:
    """Return random nodes with the given total of GPUs, as far as 1 to 4 per node permit."""
    counts = np.ones(count, np.int64)
    while counts.sum() < min(gpus, count * MAX_GPUS):
        counts[random.choice(np.flatnonzero(counts < MAX_GPUS))] += 1
    shapes = random.integers(0, 3, count).tolist()
    return [
        node(f"n{number:03}", SHAPES[cards][shape], cards, "P100", CARD_MIB)
        for number, (cards, shape) in enumerate(zip(counts.tolist(), shapes, strict=True))
    ]


def draw_demands(random: np.random.Generator, count: int) -> list[Demand]:
    """Return the demands of random jobs."""
    share = np.where(random.random(count) < 0.7, random.uniform(0.12, 0.75, count), random.uniform(0.55, 1.0, count))
    milli = rounded(1000 * share * random.uniform(0.6, 1.2, count), 10, 10, 1000)
    gpu_memory = rounded(CARD_MIB * share, 64, 64, CARD_MIB)
    cores = np.array([SMALL_CORES, LARGE_CORES])[sample_indices(random, (0.5, 0.5), count)]
    cores = cores * uniform(random, HEAVINESS) * np.exp(random.normal(0, 0.3, count))
    cpu = rounded(1000 * cores, 100, 500, 32_000)
    memory = rounded(GIB * cores * random.uniform(*GIB_PER_CORE, count), 512, 1024, 128 * GIB)
    gpus = np.where(random.random(count) < 0.04, 2, 1).tolist()
    requests = zip(cpu, memory, gpus, gpu_memory, [0] * count, milli, strict=True)
    return [Demand(ResourceRequest(*amounts)) for amounts in requests]


CARDS = (("RTX 2080 Ti", 11 * GIB), ("GTX 1660 SUPER", 6 * GIB))
USER = "gw-user"

US = 1_000
"""Nanoseconds in a microsecond."""

MBPS = (200, 500, 1_000, 2_000, 5_000, 10_000)
LOSS_PPM = (0, 2_000, 10_000, 30_000)
LATENCY_BOUNDS_US = (20_000, 40_000, 60_000)
JITTER_BOUNDS_US = (3_000, 6_000)
LOSS_BOUNDS_PPM = (5_000, 20_000)
REQUESTED_MBPS = (50, 100, 300)


@dataclass(frozen=True, slots=True)
class NetworkKind:
    """Generator of instances with network bounds.

    Each cluster has two or three nodes of 32 cores and 128 GiB with 2 or 4 cards, each node of one of two models.
    Between any two gateways, of clusters and of the users, latency is 5 to 60 ms, jitter 0.5 to 6 ms, loss one of
    `LOSS_PPM` and bandwidth one of `MBPS`, equal in both directions. Jobs request a slice of 1,000 to 2,750 MiB and
    100 to 500 thousandths of a card, 1 to 4 cores and 2 to 16 GiB. About half of them set each bound on the link to
    their users.

    Attributes
    ----------
    clusters
        Number of clusters.
    jobs
        Number of jobs, and of past jobs.
    """

    clusters: int = 3
    jobs: int = 80

    def __call__(self, random: np.random.Generator) -> Instance:
        """Return a random instance."""
        clusters = tuple(_cluster(random, f"cluster{number}") for number in range(1, self.clusters + 1))
        names = (*(cluster.gateway for cluster in clusters), USER)
        fleet = Fleet(clusters, tuple(Gateway(name) for name in names), draw_links(random, names))
        past = jobs_of(draw_network_demands(random, self.jobs), "past")
        return Instance("network", fleet, jobs_of(draw_network_demands(random, self.jobs)), past)


def draw_links(random: np.random.Generator, gateways: tuple[str, ...]) -> tuple[Link, ...]:
    """Return random links between all pairs of gateways, equal in both directions."""
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
    """Return random bounds on links; about half of the jobs set each bound."""
    choices = (LATENCY_BOUNDS_US, JITTER_BOUNDS_US, LOSS_BOUNDS_PPM, REQUESTED_MBPS)
    bounds = zip(*(_draw_bounds(random, each, count) for each in choices), strict=True)
    return [NetworkNeed(latency * US, jitter * US, loss, mbps) for latency, jitter, loss, mbps in bounds]


def draw_network_demands(random: np.random.Generator, count: int) -> list[Demand]:
    """Return the demands of random jobs."""
    requests = zip(
        (1000 * random.integers(1, 5, count)).tolist(),
        (GIB * random.integers(2, 17, count)).tolist(),
        [1] * count,
        rounded(random.uniform(1_000, 2_750, count), 50, 1_000, 2_750),
        [0] * count,
        (100 * random.integers(1, 6, count)).tolist(),
        strict=True,
    )
    pairs = zip(requests, draw_needs(random, count), strict=True)
    return [Demand(ResourceRequest(*amounts), gateway=USER, network=need) for amounts, need in pairs]


def _cluster(random: np.random.Generator, name: str) -> Cluster:
    nodes = []
    for number in range(int(random.integers(2, 4))):
        model, memory_mib = CARDS[int(random.integers(len(CARDS)))]
        nodes.append(node(f"{name}-n{number}", (32, 128), int(random.choice((2, 2, 4))), model, memory_mib))
    return Cluster(name, tuple(nodes), gateway=f"gw-{name}")


def _draw_bounds(random: np.random.Generator, bounds: tuple[int, ...], count: int) -> list[int]:
    """Sample bounds with equal probabilities, or 0 for no bound with a probability of one half."""
    return np.array((0, *bounds))[sample_indices(random, (len(bounds), *([1] * len(bounds))), count)].tolist()
