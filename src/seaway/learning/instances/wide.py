"""Random instances of many kinds of fleets and loads."""

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
from seaway.learning.instances.instance import GIB, Instance, Span, in_span, jobs_of, node, picked, rounded
from seaway.learning.instances.study import USER, NetworkKind, PlacementKind, draw_links, draw_needs
from seaway.scheduling.arrays import Float64, Int64
from seaway.simulation.replay import arrivals_until_requested

CARDS = (("T4", 15), ("P100", 16), ("V100", 32), ("A10", 23), ("A100", 40), ("L40S", 45), ("H100", 80))
"""Models, and GiB of memory of each."""

GPUS = (0, 1, 2, 3, 4, 6, 8)
GPU_WEIGHTS = (1, 3, 4, 2, 4, 1, 3)
WHOLE, SEVERAL, NONE, PART = range(4)
"""Kinds of jobs by request: one whole card, several, none, a part of one."""

MAX_JOBS = 600
"""Jobs of one instance: of fleets so large that more would come, the first ones are drawn."""


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
        """Draw one."""
        clusters = self._clusters(random)
        linked = random.random() < 1 / 3
        names = (*(cluster.gateway for cluster in clusters), USER) if linked else ()
        if not linked:
            clusters = [Cluster(cluster.name, cluster.nodes) for cluster in clusters]
        fleet = Fleet(tuple(clusters), tuple(Gateway(name) for name in names), draw_links(random, names))
        taste = _Taste.drawn(random, fleet)
        jobs = jobs_of(taste.demands(random, MAX_JOBS, linked=linked))
        coming = arrivals_until_requested(fleet, jobs, in_span(random, self.load))
        past = taste.demands(random, len(coming), linked=linked)
        return Instance("any", fleet, tuple(coming), jobs_of(past, "past"))

    def _clusters(self, random: np.random.Generator) -> list[Cluster]:
        count = _spread(random, *self.clusters)
        nodes = max(_spread(random, *self.nodes), count)
        sizes = 1 + np.bincount(random.integers(0, count, nodes - count), minlength=count)
        clusters = [
            Cluster(f"c{c:02}", tuple(_nodes(random, f"c{c:02}", int(size))), gateway=f"gw-{c:02}")
            for c, size in enumerate(sizes)
        ]
        if any(each.devices for cluster in clusters for each in cluster.nodes):
            return clusters
        return self._clusters(random)


@dataclass(frozen=True, slots=True)
class _Taste:
    """Properties of the jobs of one instance.

    Attributes
    ----------
    sorts
        Weights of jobs with one whole card, with several, with none, and with parts.
    part
        Size of parts as a share of a card, lowest and highest.
    tied
        Whether cores of a slice go with its memory; else each is drawn for itself.
    cores, gib_per_core
        Cores for a whole card in the mean, and GiB for each of them.
    named
        Share of jobs that name models.
    kinds
        Number of different requests; 0 for one per job.
    models
        Those of the fleet, in order.
    most_gpus
        Cards of the node that has most.
    cards_mib
        Memory of the fleet's cards, shape (D,).
    """

    sorts: tuple[float, ...]
    part: Span
    tied: bool
    cores: float
    gib_per_core: Span
    named: float
    kinds: int
    models: tuple[str, ...]
    most_gpus: int
    cards_mib: Int64

    @classmethod
    def drawn(cls, random: np.random.Generator, fleet: Fleet) -> _Taste:
        """Draw a taste for a fleet with cards."""
        cards = list(fleet.devices)
        cores = sum(each.cpu_milli for _, each in fleet.nodes) / 1000
        low = in_span(random, (0.05, 0.6))
        return cls(
            sorts=tuple(random.dirichlet((1.0, 0.3, 0.5, 3.0)).tolist()),
            part=(low, in_span(random, (low, 1.0))),
            tied=bool(random.random() < 0.5),
            cores=cores / len(cards) * in_span(random, (0.2, 1.1)),
            gib_per_core=(1.0, in_span(random, (2.0, 8.0))),
            named=in_span(random, (0.0, 0.3)) if random.random() < 0.5 else 0.0,
            kinds=int(random.choice((0, 0, 8, 30))),
            models=tuple(sorted({card.model for card in cards})),
            most_gpus=max(len(each.devices) for _, each in fleet.nodes),
            cards_mib=np.array([card.memory_mib for card in cards]),
        )

    def demands(self, random: np.random.Generator, count: int, *, linked: bool) -> list[Demand]:
        """Draw what so many jobs ask for."""
        different = min(self.kinds or count, count)
        sort = picked(random, self.sorts, different)
        share = np.where(sort == PART, random.uniform(*self.part, different), 1.0)
        several = np.minimum(random.choice((2, 2, 3, 4, 8), different), self.most_gpus)
        gpus = np.where(sort == SEVERAL, several, np.where(sort == NONE, 0, 1))
        milli = share if self.tied else np.where(sort == PART, share * random.uniform(0.5, 1.5, different), 1.0)
        cores = self.cores * np.where(gpus > 0, share * gpus, 1.0) * np.exp(random.normal(0, 0.4, different))
        memory = cores * random.uniform(*self.gib_per_core, different)
        amounts = zip(
            rounded(1000 * cores, 100, 100, 128_000),
            rounded(GIB * memory, 256, 256, 1024 * GIB),
            gpus.tolist(),
            rounded(share * random.choice(self.cards_mib, different), 64, 64, 1024 * GIB),
            rounded(1000 * milli, 10, 10, WHOLE_DEVICE_MILLI),
            strict=True,
        )
        models = [
            self._draw_models(random) if named else frozenset() for named in random.random(different) < self.named
        ]
        needs = draw_needs(random, different) if linked else [NO_NEED] * different
        user = USER if linked else ""
        kinds = [_demand(*three, user) for three in zip(amounts, models, needs, strict=True)]
        return [kinds[at] for at in random.integers(0, different, count)] if self.kinds else kinds

    def _draw_models(self, random: np.random.Generator) -> frozenset[str]:
        """Draw some of the fleet's models."""
        return frozenset(random.choice(self.models, int(random.integers(1, len(self.models) + 1))).tolist())


def _demand(amounts: tuple[int, int, int, int, int], models: frozenset[str], need: NetworkNeed, user: str) -> Demand:
    """Make a demand of CPU, memory, cards, memory and cores of each; without cards nothing is asked of them."""
    cpu, memory, gpus, gpu_memory, milli = amounts
    if not gpus:
        return Demand(ResourceRequest(cpu, memory), gateway=user, network=need)
    request = ResourceRequest(cpu, memory, gpus, gpu_memory, 0, milli)
    return Demand(request, DeviceRules(models=models), gateway=user, network=need)


def _nodes(random: np.random.Generator, cluster: str, count: int) -> list[Node]:
    """Draw a cluster's nodes: of one kind or of two."""
    kinds = []
    for _ in range(int(random.integers(1, 3))):
        gpus = GPUS[int(picked(random, GPU_WEIGHTS, 1)[0])]
        cores = max(gpus, 1) * int(random.choice((4, 8, 12, 16, 24, 32)))
        model, gib = CARDS[int(random.integers(len(CARDS)))]
        shape = (cores, cores * int(random.choice((2, 4, 8))))
        kinds.append((shape, gpus, model, gib * GIB))
    of_kind = random.integers(0, len(kinds), count).tolist()
    return [node(f"{cluster}-n{number:02}", *kinds[kind]) for number, kind in enumerate(of_kind)]


def _spread(random: np.random.Generator, least: int, most: int) -> int:
    """Draw a whole number evenly on a logarithmic scale."""
    return min(int(np.exp(random.uniform(np.log(least), np.log(most + 1)))), most)


MODELS = ("G2", "G3", "T4", "P100", "V100")

TRACE_GPUS = (1, 2, 4, 8)
TRACE_GPU_WEIGHTS = (1, 4, 2, 5)
CORES_PER_GPU = (8, 12, 16, 32, 48)
GIB_PER_CORE = (4, 6, 8)
MAX_CORES = 128

LEFTOVERS = 0.3
"""Spread of the CPU of one kind of job around the share of its cards, as the deviation of a logarithm."""


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
        Number of nodes, lowest and highest.
    kinds
        Number of kinds of jobs, likewise.
    whole, several, without
        Shares of jobs with one whole card, with more than one, and with none; uniformly distributed.
    constrained
        Share of kinds that name models.
    asked
        Multiple of all cards at which arrivals end.
    """

    nodes: tuple[int, int] = (24, 96)
    kinds: tuple[int, int] = (15, 60)
    whole: Span = (0.25, 0.6)
    several: Span = (0.0, 0.08)
    without: Span = (0.05, 0.25)
    constrained: Span = (0.0, 0.15)
    asked: float = 1.3

    def __call__(self, random: np.random.Generator) -> Instance:
        """Draw one."""
        nodes = draw_nodes(random, int(random.integers(self.nodes[0], self.nodes[1] + 1)))
        fleet = Fleet((Cluster("cluster", tuple(nodes)),))
        cards = sum(len(each.devices) for each in nodes)
        cores_per_card = sum(each.cpu_milli for each in nodes) / 1000 / cards
        demands, weights = self._kinds(random, cores_per_card)
        milli = np.array([demand.request.gpus * demand.request.gpu_milli for demand in demands])
        mean = float(weights @ milli)
        enough = int(1.5 * self.asked * cards * WHOLE_DEVICE_MILLI / mean) + 50
        order = random.choice(len(demands), 2 * enough, p=weights)
        coming = arrivals_until_requested(
            fleet, jobs_of([demands[kind] for kind in order[:enough].tolist()]), self.asked
        )
        past = order[enough : enough + len(coming)]
        return Instance("trace", fleet, tuple(coming), jobs_of([demands[kind] for kind in past.tolist()], "past"))

    def _kinds(self, random: np.random.Generator, cores_per_card: float) -> tuple[list[Demand], Float64]:
        """Draw kinds of jobs, and how frequent each is."""
        count = int(random.integers(self.kinds[0], self.kinds[1] + 1))
        shares = [in_span(random, self.whole), in_span(random, self.several), in_span(random, self.without)]
        sort = picked(random, (3, 1, 2, 6), count)
        sort[:4] = (0, 1, 2, 3)  # at least one of each
        weights = random.pareto(1.2, count) + 0.1
        for number, share in enumerate((*shares, 1 - sum(shares))):
            weights[sort == number] *= share / weights[sort == number].sum()
        named = random.random(count) < in_span(random, self.constrained)
        demands = [
            _trace_demand(random, int(which), cores_per_card, named=bool(name))
            for which, name in zip(sort, named, strict=True)
        ]
        return demands, weights / weights.sum()


def draw_nodes(random: np.random.Generator, count: int) -> list[Node]:
    """Draw nodes of few kinds; a kind's are neighbours."""
    kinds = int(random.integers(3, 7))
    weights = random.pareto(1.0, kinds) + 0.2
    nodes: list[Node] = []
    counts = np.bincount(picked(random, weights.tolist(), count), minlength=kinds)
    for kind, number in enumerate(counts.tolist()):
        gpus = TRACE_GPUS[int(picked(random, TRACE_GPU_WEIGHTS, 1)[0])]
        cores = min(gpus * int(random.choice(CORES_PER_GPU)), MAX_CORES)
        memory_gib = cores * int(random.choice(GIB_PER_CORE))
        model = MODELS[int(random.integers(len(MODELS)))]
        shape = (cores, memory_gib)
        nodes += [node(f"k{kind}-n{at:03}", shape, gpus, model, WHOLE_DEVICE_MILLI) for at in range(number)]
    return nodes


def _trace_demand(random: np.random.Generator, sort: int, cores_per_card: float, *, named: bool) -> Demand:
    """Draw what a kind of job asks for: one whole card, several, none, or a part of one."""
    gpus, milli = 1, WHOLE_DEVICE_MILLI
    if sort == 1:
        gpus = int(random.choice((2, 4, 8), p=(0.4, 0.3, 0.3)))
    elif sort == 2:
        gpus, milli = 0, 0
    elif sort == 3:
        milli = int(random.integers(5, 91)) * 10
    share = gpus * milli / WHOLE_DEVICE_MILLI if gpus else in_span(random, (0.5, 2.0))
    cores = 0.75 * cores_per_card * share * np.exp(random.normal(0, LEFTOVERS))
    cpu = rounded(np.array([1000 * cores]), 100, 500, 96_000)[0]
    memory = rounded(np.array([cpu / 1000 * in_span(random, (1.5, 5.0)) * GIB]), 256, 512, 512 * GIB)[0]
    models = frozenset(random.choice(MODELS, 3).tolist()) if named and gpus else frozenset()
    return Demand(ResourceRequest(cpu, memory, gpus, milli, 0, milli), DeviceRules(models=models))


Draw = Callable[[np.random.Generator], Instance]
"""Draws an instance; from the same state of the generator, the same instance."""

KINDS: Mapping[str, Draw] = MappingProxyType(
    {"placement": PlacementKind(), "network": NetworkKind(), "trace": TraceKind(), "any": WideKind()}
)
"""Generators by name."""


def kind_of(name: str) -> Draw:
    """Return what draws instances of a kind.

    Raises
    ------
    RejectedError
        When there is none of that name.
    """
    if name not in KINDS:
        raise RejectedError(f"instances of the kind {name!r} cannot be generated; available: {', '.join(KINDS)}")
    return KINDS[name]


def drawn(kind: str, count: int, seed: int) -> list[Instance]:
    """Draw instances, each from its own number and the seed; raises as `kind_of` does."""
    return [generate_one(kind, number, seed) for number in range(count)]


def generate_one(kind: str, number: int, seed: int) -> Instance:
    """Draw the instance of a number, named after what it is drawn from; raises as `kind_of` does."""
    instance = kind_of(kind)(np.random.default_rng((seed, number)))
    return replace(instance, name=f"{family_of(kind, seed)}{number}")


def family_of(kind: str, seed: int) -> str:
    """Return what the names of drawn instances have before their numbers."""
    return f"{kind}-seed{seed}-"
