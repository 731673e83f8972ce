"""Entitlements of queues whose jobs can use different GPU models, compared with a linear programme."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from seaway.domain.amounts import GPUS, model_resource
from seaway.domain.queues import Queue, children_of
from seaway.scheduling.queueing.entitlements import FITTED, Entitlements
from seaway.scheduling.queueing.tree import QueueTree
from tests.unit.application.control.test_fair_shares import Entitlements as Optimum
from tests.unit.application.control.test_fair_shares import random_tree

WEIGHTS = {"A100": 2.0, "L4": 1.0, "T4": 0.5, "H100": 3.0, "L40S": 1.5, "V100": 0.75, "A10": 0.8, "H200": 4.0}


@pytest.mark.parametrize("guaranteed", [False, True])
@pytest.mark.parametrize("number", [2, 3, 8])
@pytest.mark.parametrize("seed", range(6))
def test_entitlements_equal_the_optimum(seed: int, number: int, *, guaranteed: bool) -> None:
    """In trees of up to three levels, they are the weighted max-min shares level by level, whatever jobs can use."""
    random = Random(seed if not guaranteed else 10 + seed)
    models = random.sample(sorted(WEIGHTS), number)
    counts = {model: random.choice((50, 100, 200)) for model in models}
    queues = random_tree(random, 1 + seed % 3, sum(counts.values()), limits=False)
    leaves = [each.name for each in queues if each.name not in children_of(queues)]
    needs = {leaf: random.choice(("", *models)) for leaf in leaves}
    if not guaranteed:
        queues = [replace(each, guarantee={}) for each in queues]
    else:  # jobs that need one model can be too many for it
        needs = dict.fromkeys(leaves, "")
    optimum = Optimum(queues, counts, WEIGHTS, {leaf: model for leaf, model in needs.items() if model})
    capacity = {GPUS: 1000 * sum(counts.values()), **{model_resource(name): 1000 * n for name, n in counts.items()}}
    tree = QueueTree(
        queues, {"default": capacity}, gpu_weights={model_resource(name): WEIGHTS[name] for name in models}
    )
    total = sum(WEIGHTS[name] * n for name, n in counts.items())
    usable = {tree.node(leaf): frozenset([model] if model else models) for leaf, model in needs.items()}
    found = Entitlements(usable, {name: WEIGHTS[name] * n / total for name, n in counts.items()}, {})
    for leaf in usable:
        assert found.shares[leaf] * total == pytest.approx(optimum.gpus(leaf.key), abs=0.05)


def test_queues_leave_models_to_those_that_need_them() -> None:
    """Jobs of any model use none of which others need all for their shares; shares of idle queues count first."""
    tree = QueueTree([Queue("any", weight=2), Queue("one"), Queue("other"), Queue("idle")])
    any_, one, other, idle = (tree.node(name) for name in ("any", "one", "other", "idle"))
    both, a, b = frozenset("ab"), frozenset("a"), frozenset("b")
    found = Entitlements({any_: both, one: a, other: b}, {"a": 0.2, "b": 0.6}, {idle: 0.2})
    assert found.shares == pytest.approx({any_: 0.4, one: 0.2, other: 0.2})
    assert found.parts == pytest.approx({(both, "b"): 0.4, (a, "a"): 0.2, (b, "b"): 0.2})


class ByAllSets(Entitlements):
    """Entitlements with a bound for each set of models."""

    @property
    def _sets(self) -> list[frozenset[str]]:
        names = sorted(self.capacity)
        return [frozenset(each) for size in range(len(names)) for each in combinations(names, size + 1)]


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_sets_that_overlap_imply_all_others(seed: int) -> None:
    """The shares and parts are those with a bound for each set of models, in trees whose jobs use any sets."""
    random = Random(seed)
    models = "abcdef"
    queues, usable = random_tree(random, 1 + seed % 3, 100, limits=False), {}
    tree = QueueTree(queues)
    for name in [each.name for each in queues if each.name not in children_of(queues)]:
        usable[tree.node(name)] = frozenset(random.sample(models, random.choice((1, 1, 2, 3, 6))))
    capacity = {model: random.uniform(0.02, 0.3) for model in models}
    found, twin = Entitlements(usable, capacity, {}), ByAllSets(usable, capacity, {})
    assert found.shares == pytest.approx(twin.shares)
    assert found.parts == pytest.approx(twin.parts)


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_models_add_up(seed: int) -> None:
    """The parts of each queue are its share, and those of a model are no more than it has, whatever jobs can use."""
    random = Random(seed)
    models = "abcdefgh"[: random.randrange(2, 9)]
    tree = QueueTree([Queue(str(at), weight=random.randrange(1, 5)) for at in range(8)])
    usable = {tree.node(str(at)): frozenset(random.sample(models, random.randint(1, len(models)))) for at in range(8)}
    capacity = {model: random.uniform(0.1, 1.0) for model in models}
    found = Entitlements(usable, capacity, {})
    for used in set(usable.values()):
        total = sum(found.shares[leaf] for leaf, of in usable.items() if of == used)
        assert sum(found.parts.get((used, model), 0.0) for model in used) == pytest.approx(total)
    for model, most in capacity.items():
        assert sum(part for (_, of), part in found.parts.items() if of == model) <= most * (1 + FITTED)
