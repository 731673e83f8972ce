"""Drawn instances in the shape of a production trace: one large cluster of unlike nodes, cards whole and in parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import WHOLE_DEVICE_MILLI
from seaway.domain.job import Demand, DeviceRules, ResourceRequest
from seaway.domain.node import Node
from seaway.learning.instances.generated.parts import GIB, Span, in_span, jobs_of, node, picked, rounded
from seaway.learning.instances.instance import Instance
from seaway.scheduling.arrays import Float64
from seaway.simulation.replay import arrivals_until_requested

MODELS = ("G2", "G3", "T4", "P100", "V100")

GPUS = (1, 2, 4, 8)
GPU_WEIGHTS = (1, 4, 2, 5)
CORES_PER_GPU = (8, 12, 16, 32, 48)
GIB_PER_CORE = (4, 6, 8)
MAX_CORES = 128

LEFTOVERS = 0.3
"""Spread of the CPU of one kind of job around the share of its cards, as the deviation of a logarithm."""


@dataclass(frozen=True, slots=True)
class TraceKind:
    """Generator of instances that resemble traces.

    Of three to six kinds of nodes, each has 1, 2, 4 or 8 cards of one model, 8 to 48 cores a card (128 at most)
    and 4 to 8 GiB a core; a few hold most of the nodes. Memory of cards is not told apart from their cores: both are
    counted in thousandths. Jobs are of few kinds, some much more frequent than others, as users send the same again and
    again: whole cards (one, or 2, 4 or 8 of a node), parts of 50 to 900 thousandths, and those without any. Their CPU
    is about what their share of a node has, and more of those without cards. Some name the models that will do. Jobs
    come until they ask for a given multiple of all cards.

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
            _demand(random, int(which), cores_per_card, named=bool(name))
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
        gpus = GPUS[int(picked(random, GPU_WEIGHTS, 1)[0])]
        cores = min(gpus * int(random.choice(CORES_PER_GPU)), MAX_CORES)
        memory_gib = cores * int(random.choice(GIB_PER_CORE))
        model = MODELS[int(random.integers(len(MODELS)))]
        shape = (cores, memory_gib)
        nodes += [node(f"k{kind}-n{at:03}", shape, gpus, model, WHOLE_DEVICE_MILLI) for at in range(number)]
    return nodes


def _demand(random: np.random.Generator, sort: int, cores_per_card: float, *, named: bool) -> Demand:
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
