"""Shares of queues under saturation, through the control loop, compared with a linear programme."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import highspy
import pytest

from seaway.application.changes import Change
from seaway.domain.amounts import GPUS, model_resource
from seaway.domain.cluster import Fleet
from seaway.domain.queues import Queue, children_of
from seaway.scheduling.cycle.displace import DEFAULT_GRACE_S
from seaway.scheduling.queueing.tree import QueueTree
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec

NEAR = 1e-4
"""Error of a solution, GPUs."""

WITHIN = 0.02
"""Largest distance of a share from what a queue is entitled to."""

STEP_S, SETTLES_S, LASTS_S = 10, 200, 600
"""Seconds between two looks at the shares, until they count, and until the end."""

MIN_JOBS, MORE = 40, 60
"""Least number of jobs that a leaf is entitled to, and number of jobs that wait in each beyond those that fit."""

GPUS_IN_ALL = 400
WEIGHTS = {"A100": 2.0, "L4": 1.0}


class Entitlements:
    """Weighted max-min shares of GPUs over a tree of queues, of which each leaf demands as many as there are.

    Level by level, all siblings rise together until one is bounded. That one keeps its share, and the others go on.

    Parameters
    ----------
    capacity
        Number of GPUs of each model.
    weights
        What a GPU of each model counts.
    usable
        Models that the jobs of a leaf may use; all by default.
    """

    def __init__(
        self,
        queues: Sequence[Queue],
        capacity: Mapping[str, int],
        weights: Mapping[str, float],
        usable: Mapping[str, str],
    ) -> None:
        self._children = children_of(queues)
        self._total = sum(weights[model] * count for model, count in capacity.items())
        self._count = sum(capacity.values())
        self._tree = QueueTree(queues)
        self._fixed: dict[str, float] = {}
        self._capacity, self._weights = capacity, weights
        leaves = [each.name for each in queues if each.name not in self._children]
        self._pairs = [(leaf, model) for leaf in leaves for model in capacity if usable.get(leaf, model) == model]
        self._queues = queues
        for siblings in sorted(self._children.values(), key=self._depth):
            self._divide(siblings)

    def _depth(self, siblings: Sequence[Queue]) -> int:
        return len(self._tree.node(siblings[0].name).path)

    def gpus(self, leaf: str) -> float:
        """Return the number of GPUs that a leaf is entitled to, weighted."""
        return self._fixed[leaf]

    def _divide(self, siblings: Sequence[Queue]) -> None:
        rising = {each.name: float(each.weight) for each in siblings}
        while rising:
            level = self._most(rising)
            for name in list(rising):
                most = self._most(rising, name, level)
                if most <= self._guaranteed(name) + level * rising[name] + NEAR:
                    self._fixed[name] = most
                    del rising[name]

    def _guaranteed(self, name: str) -> float:
        """Return the guarantee of a queue: the same share of weighted GPUs."""
        return self._tree.node(name).guarantee.get(GPUS, 0) / 1000 / self._count * self._total

    def _most(self, rising: Mapping[str, float], name: str = "", level: float = 0.0) -> float:
        """Return the highest common level of queues; with a name, the largest share of that one at this level."""
        solver = highspy.Highs()
        solver.silent()
        amounts = {pair: solver.addVariable(lb=0.0) for pair in self._pairs}
        top = solver.addVariable(lb=level - NEAR / 100, ub=level if name else highspy.kHighsInf)
        for model, capacity in self._capacity.items():
            if held := [amount for (_, of), amount in amounts.items() if of == model]:
                solver.addConstr(solver.qsum(held) <= capacity)
        shares = {}
        for queue in self._queues:
            below = [pair for pair in self._pairs if self._tree.node(queue.name) in self._tree.node(pair[0]).path]
            count = solver.qsum([amounts[pair] for pair in below])
            shares[queue.name] = solver.qsum([self._weights[pair[1]] * amounts[pair] for pair in below])
            solver.addConstr(count >= self._tree.node(queue.name).guarantee.get(GPUS, 0) / 1000)
            solver.addConstr(count <= queue.limit.get(GPUS, 1000 * self._count) / 1000)
        for each, share in self._fixed.items():
            solver.addConstr(shares[each] >= share - NEAR / 100)
            solver.addConstr(shares[each] <= share + NEAR / 100)
        for each, weight in rising.items():
            solver.addConstr(shares[each] - weight * top >= self._guaranteed(each))
        goal = shares[name] if name else top
        solver.maximize(goal)
        assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return float(solver.val(goal))


@dataclass(frozen=True, slots=True)
class Saturation:
    """Queues of which each leaf always has more jobs than fit.

    Attributes
    ----------
    models
        Model that the jobs of each leaf need; empty for any.
    entitled
        GPUs that each leaf is entitled to, weighted.
    """

    queues: Sequence[Queue]
    models: Mapping[str, str]
    entitled: Mapping[str, float]

    def shares(self, made: Scene, random: Random) -> dict[str, float]:
        """Let jobs come and go; return the mean number of GPUs that each leaf holds, weighted."""
        tree, waiting = made.plane.controller.live.tree, made.plane.controller.live.waiting
        weights = tree.gpu_weights or {GPUS: 1.0}
        seen = defaultdict[str, float](float)
        for at in range(0, LASTS_S, STEP_S):
            waits = Counter(each.queue for each in waiting.entries())
            for leaf, model in self.models.items():
                missing = MORE - waits[leaf] if at else MORE + 2 * int(self.entitled[leaf])
                of = {"models": {model}} if model else {}
                made.plane.submit(
                    *[spec(queue=leaf, expected_duration_s=random.randrange(130, 250), **of) for _ in range(missing)]
                )
            made.clock.advance_s(STEP_S)
            made.plane.settle()
            for leaf in self.models if at >= SETTLES_S else ():
                held = tree.use(leaf).held
                seen[leaf] += sum(weight * held.get(name, 0) / 1000 for name, weight in weights.items())
        return {leaf: total * STEP_S / (LASTS_S - SETTLES_S) for leaf, total in seen.items()}


def random_tree(random: Random, levels: int, gpus: int, *, limits: bool) -> list[Queue]:
    """Return queues of some levels with four or five leaves, of which some have guarantees and limits."""
    queues: list[Queue] = []

    def add(parent: str, level: int) -> None:
        width = 5 if levels == 1 else 2 if level else 3
        for at in range(width):
            name, is_leaf = f"{parent}{'abcde'[at]}", level + 1 == levels or at > 0
            guarantee = {GPUS: 1000 * random.randrange(gpus // 10)} if is_leaf and random.random() < 0.4 else {}
            limit = {GPUS: 1000 * (gpus // 4)} if limits and is_leaf and random.random() < 0.2 else {}
            queues.append(Queue(name, parent=parent, weight=random.randrange(2, 6), guarantee=guarantee, limit=limit))
            if not is_leaf:
                add(name, level + 1)

    add("", 0)
    return queues


def homogeneous(gpus: int) -> Fleet:
    """Return a fleet of nodes with eight equal GPUs."""
    return fleet(cluster(*[node(*[gpu(model="A100") for _ in range(8)]) for _ in range(gpus // 8)], name="alpha"))


def mixed(gpus: int) -> Fleet:
    """Return a fleet of which half of the GPUs are small."""
    large = [node(*[gpu(model="A100") for _ in range(8)]) for _ in range(gpus // 16)]
    small = [node(*[gpu(model="L4", memory_mib=24_576) for _ in range(8)]) for _ in range(gpus // 16)]
    return fleet(cluster(*large, name="alpha"), cluster(*small, name="beta"))


def draw(parts: Fleet, random: Random, levels: int, *, restrict: bool) -> Saturation:
    """Return random queues of which each leaf is entitled to many jobs; on request, some leaves need one model."""
    capacity = Counter(device.model for each in parts.clusters for n in each.nodes for device in n.devices)
    weights = {model: WEIGHTS[model] if len(capacity) > 1 else 1.0 for model in capacity}
    while True:
        queues = random_tree(random, levels, capacity.total(), limits=len(capacity) == 1)
        leaves = [each.name for each in queues if each.name not in children_of(queues)]
        models = {leaf: random.choice(("", "A100", "L4")) if restrict else "" for leaf in leaves}
        if restrict:  # a number of the smallest GPUs can be less than the same share of all
            queues = [replace(each, guarantee={}) for each in queues]
        shares = Entitlements(queues, capacity, weights, {leaf: model for leaf, model in models.items() if model})
        entitled = {leaf: shares.gpus(leaf) for leaf in leaves}
        if min(entitled.values()) >= MIN_JOBS * max(weights.values()):
            return Saturation(queues, models, entitled)


def check(parts: Fleet, seed: int, levels: int, *, restrict: bool = False) -> None:
    """Compare the mean shares of all leaves under saturation with what they are entitled to."""
    random = Random(seed)
    drawn = draw(parts, random, levels, restrict=restrict)
    weights = ", ".join(f"{model}={weight:g}" for model, weight in WEIGHTS.items()) if len(parts.clusters) > 1 else ""
    made = scene(parts, gpu_weights=weights)
    made.plane.writer.commit([Change(put=list(drawn.queues))])
    found = drawn.shares(made, random)
    assert found == pytest.approx(drawn.entitled, rel=WITHIN)


def test_queues_get_their_shares_of_equal_gpus() -> None:
    """While jobs come and go, each queue holds its weighted max-min share within 2 %, in a tree."""
    check(homogeneous(GPUS_IN_ALL), 3, 3)


def test_queues_get_their_shares_of_mixed_gpus() -> None:
    """With weights of models, shares are sums of weights, whatever the models that each queue gets."""
    check(mixed(GPUS_IN_ALL), 2, 2)


@pytest.mark.parametrize(
    ("levels", "seed"),
    [(3, 2), *(pytest.param(levels, seed, marks=pytest.mark.slow) for levels in (1, 2, 3) for seed in range(10, 18))],
)
def test_queues_that_need_one_model_get_their_shares(levels: int, seed: int) -> None:
    """Some queues need one model: they get its GPUs as far as their shares go, on all levels, and others the rest."""
    check(mixed(GPUS_IN_ALL), seed, levels, restrict=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("make", [homogeneous, mixed])
def test_queues_get_their_shares_in_many_trees(make: Callable[[int], Fleet], levels: int, seed: int) -> None:
    """The same is valid for many random trees, weights, guarantees and limits."""
    check(make(GPUS_IN_ALL), 100 + seed, levels)


def test_a_lower_priority_gets_nothing_while_a_higher_one_waits() -> None:
    """Queues of a lower priority do not get the GPU that is free next, although their first job does not fit either."""
    made, random = scene(homogeneous(16)), Random(1)
    made.plane.writer.commit([Change(put=[Queue("high", priority=1), Queue("low")])])
    for at in range(40):
        names = ["high"] * (4 if at else 50) + ["low"]
        made.plane.submit(*[spec(queue=name, expected_duration_s=random.randrange(30, 200)) for name in names])
        made.clock.advance_s(STEP_S)
        made.plane.settle()
        assert not made.plane.controller.live.tree.use("low").held


@pytest.mark.parametrize("weights", ["", "A100=2, L4=1", "A100=20"])
@pytest.mark.parametrize("seed", range(3))
def test_guarantees_are_met_while_jobs_need_single_models(seed: int, weights: str) -> None:
    """A guarantee counts GPUs by number, of all models or of one, whatever their weights. No more jobs end than needed.

    The jobs of each queue need one model, or any.
    """
    random, gpus = Random(seed), 64
    parts, left = mixed(gpus), {"A100": gpus // 2, "L4": gpus // 2}
    made = scene(parts, gpu_weights=weights)
    queues, needs = [Queue("borrows")], dict[str, str]()
    for at in range(5):
        name, model = f"queue-{at}", ("A100", "L4", "")[(at + seed) % 3]
        number = random.randrange(1, min(left.values()) // 3)
        resource = model_resource(model) if model and random.random() < 0.5 else GPUS
        queues.append(Queue(name, guarantee={resource: 1000 * number}, weight=random.randrange(1, 4)))
        needs[name] = model
        for each in left:  # any model: both
            left[each] -= number if each == model or not model else 0
    made.plane.writer.commit([Change(put=[*queues])])
    made.plane.submit(*[spec(queue="borrows") for _ in range(gpus)])
    made.plane.run(60, 10)
    guaranteed = {each.name: sum(each.guarantee.values()) for each in queues[1:]}
    jobs = [
        spec(queue=name, **({"models": {needs[name]}} if needs[name] else {}))
        for name, amount in guaranteed.items()
        for _ in range(amount // 1000 + 3)
    ]
    made.plane.submit(*random.sample(jobs, len(jobs)))
    made.plane.run(DEFAULT_GRACE_S)
    tree = made.plane.controller.live.tree
    assert {name: tree.use(name).held.get(GPUS, 0) for name in guaranteed} == guaranteed
    assert made.plane.controller.scheduler.preemptor.displaced.total() == sum(guaranteed.values()) // 1000


@pytest.mark.parametrize("seed", range(4))
def test_guarantees_are_met_within_a_grace_period(seed: int) -> None:
    """However much others borrow, all guarantees are met once the victims had their time to end, and no more end."""
    random = Random(seed)
    gpus = 64
    queues = [*random_tree(random, 1 + seed % 3, gpus, limits=False), Queue("borrows")]
    made = scene(homogeneous(gpus))
    made.plane.writer.commit([Change(put=[*queues])])
    made.plane.submit(*[spec(queue="borrows") for _ in range(gpus)])
    made.plane.run(60, 10)
    tree = made.plane.controller.live.tree
    assert tree.use("borrows").held[GPUS] == 1000 * gpus
    guaranteed = {each.name: each.guarantee[GPUS] for each in queues if each.guarantee.get(GPUS)}
    jobs = [spec(queue=name) for name, amount in guaranteed.items() for _ in range(amount // 1000 + 3)]
    made.plane.submit(*random.sample(jobs, len(jobs)))
    made.plane.run(DEFAULT_GRACE_S)
    assert {name: tree.use(name).held.get(GPUS, 0) for name in guaranteed} == guaranteed
    assert made.plane.controller.scheduler.preemptor.displaced.total() == sum(guaranteed.values()) // 1000
