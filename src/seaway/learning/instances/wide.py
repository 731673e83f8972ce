"""Generators of instances with diverse fleets and loads, and the registry of all generators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, DeviceRules, ResourceRequest
from seaway.domain.network import NO_NEED, Gateway, NetworkNeed
from seaway.domain.node import Node
from seaway.learning.instances.instance import Instance
from seaway.learning.instances.study import (
    GIB,
    USER,
    NetworkKind,
    PlacementKind,
    Span,
    draw_links,
    draw_needs,
    jobs_of,
    node,
    rounded,
    sample_indices,
    uniform,
)
from seaway.scheduling.arrays import Float64, Int64
from seaway.simulation.replay import arrivals_until_requested

CARDS = (("T4", 15), ("P100", 16), ("V100", 32), ("A10", 23), ("A100", 40), ("L40S", 45), ("H100", 80))
"""Models, and GiB of memory of each."""

GPUS = (0, 1, 2, 3, 4, 6, 8)
GPU_WEIGHTS = (1, 3, 4, 2, 4, 1, 3)
WHOLE, SEVERAL, NONE, PART = range(4)
"""Categories of jobs by their request: one whole card, several, none, or a part of one."""

MAX_JOBS = 600
"""Maximum number of jobs of an instance."""


@dataclass(frozen=True, slots=True)
class WideKind:
    """Generator of diverse instances.

    The numbers of clusters and nodes are drawn on a logarithmic scale, so that small fleets are as frequent as large
    ones. Each cluster has one or two kinds of nodes: 0 to 8 cards of one of `CARDS`, 4 to 32 cores per card, 2 to 8 GiB
    per core. Each instance has its own distribution of jobs: shares of requests for whole, several and no cards; sizes
    of slices; correlation of cores and memory; CPU and memory per card; requests for models. There are few kinds of
    requests, or each is different. In a third of the instances, clusters have gateways, and half of the jobs set bounds
    on links. Jobs arrive until they request a random multiple of all cards, up to `MAX_JOBS`. Few are infeasible on the
    empty fleet.

    Attributes
    ----------
    clusters, nodes
        Number of clusters, and maximum number of all nodes; minimum and maximum.
    load
        Multiple of all cards that jobs request.
    """

    clusters: tuple[int, int] = (1, 24)
    nodes: tuple[int, int] = (2, 96)
    load: Span = (0.7, 1.6)

    def __call__(self, random: np.random.Generator) -> Instance:
        """Return a random instance."""
        clusters = self._clusters(random)
        linked = random.random() < 1 / 3
        names = (*(cluster.gateway for cluster in clusters), USER) if linked else ()
        if not linked:
            clusters = [Cluster(cluster.name, cluster.nodes) for cluster in clusters]
        fleet = Fleet(tuple(clusters), tuple(Gateway(name) for name in names), draw_links(random, names))
        mix = _JobMix.sample(random, fleet)
        jobs = jobs_of(mix.demands(random, MAX_JOBS, linked=linked))
        coming = arrivals_until_requested(fleet, jobs, uniform(random, self.load))
        past = mix.demands(random, len(coming), linked=linked)
        return Instance("any", fleet, tuple(coming), jobs_of(past, "past"))

    def _clusters(self, random: np.random.Generator) -> list[Cluster]:
        count = _log_uniform(random, *self.clusters)
        nodes = max(_log_uniform(random, *self.nodes), count)
        sizes = 1 + np.bincount(random.integers(0, count, nodes - count), minlength=count)
        clusters = [
            Cluster(f"c{c:02}", tuple(_nodes(random, f"c{c:02}", int(size))), gateway=f"gw-{c:02}")
            for c, size in enumerate(sizes)
        ]
        if any(each.devices for cluster in clusters for each in cluster.nodes):
            return clusters
        return self._clusters(random)


@dataclass(frozen=True, slots=True)
class _JobMix:
    """Distribution of the jobs of an instance.

    Attributes
    ----------
    category_weights
        Weights of jobs with one whole card, with several, with none, and with a part.
    part
        Size of parts as a share of a card.
    correlated
        Whether the cores of a slice are proportional to its memory; otherwise they are independent.
    cores, gib_per_core
        Mean cores per card, and GiB per core.
    constrained
        Share of jobs that require certain models.
    distinct
        Number of distinct requests; 0 for one per job.
    models
        Models of the fleet, sorted.
    max_gpus
        Maximum number of cards of a node.
    cards_mib
        Memory of the fleet's cards, shape (D,).
    """

    category_weights: tuple[float, ...]
    part: Span
    correlated: bool
    cores: float
    gib_per_core: Span
    constrained: float
    distinct: int
    models: tuple[str, ...]
    max_gpus: int
    cards_mib: Int64

    @classmethod
    def sample(cls, random: np.random.Generator, fleet: Fleet) -> _JobMix:
        """Return a random distribution for a fleet with cards."""
        cards = list(fleet.devices)
        cores = sum(each.cpu_milli for _, each in fleet.nodes) / 1000
        low = uniform(random, (0.05, 0.6))
        return cls(
            category_weights=tuple(random.dirichlet((1.0, 0.3, 0.5, 3.0)).tolist()),
            part=(low, uniform(random, (low, 1.0))),
            correlated=bool(random.random() < 0.5),
            cores=cores / len(cards) * uniform(random, (0.2, 1.1)),
            gib_per_core=(1.0, uniform(random, (2.0, 8.0))),
            constrained=uniform(random, (0.0, 0.3)) if random.random() < 0.5 else 0.0,
            distinct=int(random.choice((0, 0, 8, 30))),
            models=tuple(sorted({card.model for card in cards})),
            max_gpus=max(len(each.devices) for _, each in fleet.nodes),
            cards_mib=np.array([card.memory_mib for card in cards]),
        )

    def demands(self, random: np.random.Generator, count: int, *, linked: bool) -> list[Demand]:
        """Return the demands of random jobs."""
        distinct = min(self.distinct or count, count)
        category = sample_indices(random, self.category_weights, distinct)
        part = category == PART
        share = np.where(part, random.uniform(*self.part, distinct), 1.0)
        several = np.minimum(random.choice((2, 2, 3, 4, 8), distinct), self.max_gpus)
        gpus = np.where(category == SEVERAL, several, np.where(category == NONE, 0, 1))
        milli = share if self.correlated else np.where(part, share * random.uniform(0.5, 1.5, distinct), 1.0)
        cores = self.cores * np.where(gpus > 0, share * gpus, 1.0) * np.exp(random.normal(0, 0.4, distinct))
        memory = cores * random.uniform(*self.gib_per_core, distinct)
        amounts = zip(
            rounded(1000 * cores, 100, 100, 128_000),
            rounded(GIB * memory, 256, 256, 1024 * GIB),
            gpus.tolist(),
            rounded(share * random.choice(self.cards_mib, distinct), 64, 64, 1024 * GIB),
            rounded(1000 * milli, 10, 10, WHOLE_DEVICE_MILLI),
            strict=True,
        )
        models = [
            self._sample_models(random) if constrained else frozenset()
            for constrained in random.random(distinct) < self.constrained
        ]
        needs = draw_needs(random, distinct) if linked else [NO_NEED] * distinct
        user = USER if linked else ""
        demands = [_demand(*parts, user) for parts in zip(amounts, models, needs, strict=True)]
        return [demands[at] for at in random.integers(0, distinct, count)] if self.distinct else demands

    def _sample_models(self, random: np.random.Generator) -> frozenset[str]:
        """Return a random subset of the fleet's models."""
        return frozenset(random.choice(self.models, int(random.integers(1, len(self.models) + 1))).tolist())


def _demand(amounts: tuple[int, int, int, int, int], models: frozenset[str], need: NetworkNeed, user: str) -> Demand:
    """Return a demand of CPU, memory, cards, and memory and cores per card."""
    cpu, memory, gpus, gpu_memory, milli = amounts
    if not gpus:
        return Demand(ResourceRequest(cpu, memory), gateway=user, network=need)
    request = ResourceRequest(cpu, memory, gpus, gpu_memory, 0, milli)
    return Demand(request, DeviceRules(models=models), gateway=user, network=need)


def _nodes(random: np.random.Generator, cluster: str, count: int) -> list[Node]:
    """Return the random nodes of a cluster, of one or two kinds."""
    kinds = []
    for _ in range(int(random.integers(1, 3))):
        gpus = GPUS[int(sample_indices(random, GPU_WEIGHTS, 1)[0])]
        cores = max(gpus, 1) * int(random.choice((4, 8, 12, 16, 24, 32)))
        model, gib = CARDS[int(random.integers(len(CARDS)))]
        shape = (cores, cores * int(random.choice((2, 4, 8))))
        kinds.append((shape, gpus, model, gib * GIB))
    of_kind = random.integers(0, len(kinds), count).tolist()
    return [node(f"{cluster}-n{number:02}", *kinds[kind]) for number, kind in enumerate(of_kind)]


def _log_uniform(random: np.random.Generator, minimum: int, maximum: int) -> int:
    """Sample an integer from a log-uniform distribution."""
    return min(int(np.exp(random.uniform(np.log(minimum), np.log(maximum + 1)))), maximum)


MODELS = ("G2", "G3", "T4", "P100", "V100")

TRACE_GPUS = (1, 2, 4, 8)
TRACE_GPU_WEIGHTS = (1, 4, 2, 5)
CORES_PER_GPU = (8, 12, 16, 32, 48)
GIB_PER_CORE = (4, 6, 8)
MAX_CORES = 128

CPU_DEVIATION = 0.3
"""Standard deviation of the logarithm of CPU requests around the share of the cards."""


@dataclass(frozen=True, slots=True)
class TraceKind:
    """Generator of instances that resemble traces.

    There are three to six kinds of nodes, and a few kinds have most nodes. A kind has 1, 2, 4 or 8 cards of one model,
    8 to 48 cores per card (128 at most) and 4 to 8 GiB per core. Memory and cores of cards are both in thousandths.
    Jobs are of few kinds with very different frequencies, because users submit equal jobs repeatedly. They request
    whole cards (one, or 2, 4 or 8 of a node), 50 to 900 thousandths of a card, or none. Their CPU is proportional to
    their share of a node, and larger without cards. Some require certain models. Jobs arrive until they request a given
    multiple of all cards.

    Attributes
    ----------
    nodes
        Minimum and maximum number of nodes.
    kinds
        Minimum and maximum number of kinds of jobs.
    whole, several, without
        Shares of jobs with one whole card, with more than one, and with none; uniformly distributed.
    constrained
        Share of kinds that require certain models.
    load
        Multiple of all cards at which arrivals end.
    """

    nodes: tuple[int, int] = (24, 96)
    kinds: tuple[int, int] = (15, 60)
    whole: Span = (0.25, 0.6)
    several: Span = (0.0, 0.08)
    without: Span = (0.05, 0.25)
    constrained: Span = (0.0, 0.15)
    load: float = 1.3

    def __call__(self, random: np.random.Generator) -> Instance:
        """Return a random instance."""
        nodes = draw_nodes(random, int(random.integers(self.nodes[0], self.nodes[1] + 1)))
        fleet = Fleet((Cluster("cluster", tuple(nodes)),))
        cards = sum(len(each.devices) for each in nodes)
        cores_per_card = sum(each.cpu_milli for each in nodes) / 1000 / cards
        demands, weights = self._kinds(random, cores_per_card)
        milli = np.array([demand.request.gpus * demand.request.gpu_milli for demand in demands])
        mean = float(weights @ milli)
        enough = int(1.5 * self.load * cards * WHOLE_DEVICE_MILLI / mean) + 50
        order = random.choice(len(demands), 2 * enough, p=weights)
        coming = arrivals_until_requested(
            fleet, jobs_of([demands[kind] for kind in order[:enough].tolist()]), self.load
        )
        past = order[enough : enough + len(coming)]
        return Instance("trace", fleet, tuple(coming), jobs_of([demands[kind] for kind in past.tolist()], "past"))

    def _kinds(self, random: np.random.Generator, cores_per_card: float) -> tuple[list[Demand], Float64]:
        """Return random kinds of jobs, and their frequencies."""
        count = int(random.integers(self.kinds[0], self.kinds[1] + 1))
        shares = [uniform(random, self.whole), uniform(random, self.several), uniform(random, self.without)]
        category = sample_indices(random, (3, 1, 2, 6), count)
        category[:4] = (WHOLE, SEVERAL, NONE, PART)  # at least one of each
        weights = random.pareto(1.2, count) + 0.1
        for number, share in enumerate((*shares, 1 - sum(shares))):
            weights[category == number] *= share / weights[category == number].sum()
        constrained = random.random(count) < uniform(random, self.constrained)
        demands = [
            _trace_demand(random, int(kind), cores_per_card, constrained=bool(models))
            for kind, models in zip(category, constrained, strict=True)
        ]
        return demands, weights / weights.sum()


def draw_nodes(random: np.random.Generator, count: int) -> list[Node]:
    """Return random nodes of few kinds, grouped by kind."""
    kinds = int(random.integers(3, 7))
    weights = random.pareto(1.0, kinds) + 0.2
    nodes: list[Node] = []
    counts = np.bincount(sample_indices(random, weights.tolist(), count), minlength=kinds)
    for kind, number in enumerate(counts.tolist()):
        gpus = TRACE_GPUS[int(sample_indices(random, TRACE_GPU_WEIGHTS, 1)[0])]
        cores = min(gpus * int(random.choice(CORES_PER_GPU)), MAX_CORES)
        memory_gib = cores * int(random.choice(GIB_PER_CORE))
        model = MODELS[int(random.integers(len(MODELS)))]
        shape = (cores, memory_gib)
        nodes += [node(f"k{kind}-n{at:03}", shape, gpus, model, WHOLE_DEVICE_MILLI) for at in range(number)]
    return nodes


def _trace_demand(random: np.random.Generator, category: int, cores_per_card: float, *, constrained: bool) -> Demand:
    """Return the random demand of a kind of job, by its category."""
    gpus, milli = 1, WHOLE_DEVICE_MILLI
    if category == SEVERAL:
        gpus = int(random.choice((2, 4, 8), p=(0.4, 0.3, 0.3)))
    elif category == NONE:
        gpus, milli = 0, 0
    elif category == PART:
        milli = int(random.integers(5, 91)) * 10
    share = gpus * milli / WHOLE_DEVICE_MILLI if gpus else uniform(random, (0.5, 2.0))
    cores = 0.75 * cores_per_card * share * np.exp(random.normal(0, CPU_DEVIATION))
    cpu = rounded(np.array([1000 * cores]), 100, 500, 96_000)[0]
    memory = rounded(np.array([cpu / 1000 * uniform(random, (1.5, 5.0)) * GIB]), 256, 512, 512 * GIB)[0]
    models = frozenset(random.choice(MODELS, 3).tolist()) if constrained and gpus else frozenset()
    return Demand(ResourceRequest(cpu, memory, gpus, milli, 0, milli), DeviceRules(models=models))


Draw = Callable[[np.random.Generator], Instance]
"""Generator of instances; a function of the state of the random generator."""

KINDS: Mapping[str, Draw] = MappingProxyType(
    {"placement": PlacementKind(), "network": NetworkKind(), "trace": TraceKind(), "any": WideKind()}
)
"""Generators by name."""


def kind_of(name: str) -> Draw:
    """Return a generator by name.

    Raises
    ------
    RejectedError
        When it does not exist.
    """
    if name not in KINDS:
        raise RejectedError(f"instances of the kind {name!r} cannot be generated; available: {', '.join(KINDS)}")
    return KINDS[name]


def drawn(kind: str, count: int, seed: int) -> list[Instance]:
    """Return random instances. Each depends on its number and the seed only; raises as `kind_of`."""
    return [generate_one(kind, number, seed) for number in range(count)]


def generate_one(kind: str, number: int, seed: int) -> Instance:
    """Return the random instance of a number, with a name of kind, seed and number; raises as `kind_of`."""
    instance = kind_of(kind)(np.random.default_rng((seed, number)))
    return replace(instance, name=f"{family_of(kind, seed)}{number}")


def family_of(kind: str, seed: int) -> str:
    """Return the prefix of the names of generated instances."""
    return f"{kind}-seed{seed}-"
