"""Queue disciplines: the suite for all of them, and the order of the default one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.domain.amounts import GPUS, Amounts
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.queues import Order, Queue
from seaway.scheduling.queueing.discipline import QueueDiscipline, SortKey
from seaway.scheduling.queueing.registry import BUILT_IN, FairShare, make_queue_discipline, queue_discipline_names
from seaway.scheduling.queueing.tree import GpuWeights, Owner, QueueNode, QueueTree, TenantNode
from seaway.testing.plugins import check_queue_discipline, job
from tests.unit.scheduling.test_registry import offer


class Counting(FairShare):
    """A discipline whose keys depend on the number of calls."""

    asked = 0

    def job_key(self, job: Job, submitted_ns: int, queue: Queue) -> SortKey:
        """Count the call."""
        self.asked += 1
        return self.asked, job.name


class Mixed(FairShare):
    """A discipline whose keys have no common order."""

    def queue_key(self, queue: QueueNode, requested: Amounts) -> SortKey:
        """Return a number for some queues, and a name for others."""
        return (queue.queue.weight,) if queue.queue.weight % 2 else (queue.queue.name,)


class Indifferent(FairShare):
    """A discipline that does not distinguish tenants."""

    def tenant_key(self, queue: QueueNode, tenant: TenantNode, first: SortKey, requested: Amounts) -> SortKey:
        """Return the same key for all."""
        return (0,)


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_built_in_discipline_passes_the_suite(name: str) -> None:
    """A discipline goes by its own name, and keeps the rules that the control loop relies on."""
    assert make_queue_discipline(name).name == name
    check_queue_discipline(lambda: make_queue_discipline(name))


@pytest.mark.parametrize(
    ("make", "rule"),
    [(Counting, "depends on its arguments"), (Indifferent, "no tenant has the key of another")],
)
def test_the_suite_finds_what_breaks_a_rule(make: Callable[[], QueueDiscipline], rule: str) -> None:
    """A discipline that would confuse the control loop fails the suite, which names the rule."""
    with pytest.raises(AssertionError, match=rule):
        check_queue_discipline(make)


def test_the_suite_finds_keys_that_cannot_be_compared() -> None:
    """Keys of siblings have a common order."""
    with pytest.raises(TypeError):
        check_queue_discipline(Mixed)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order.FIFO, "ebdac"),
        (Order.PRIORITY, "cbdae"),
        (Order.FAIR, "cbdae"),
        (Order.SHORTEST, "bdeca"),
    ],
)
def test_each_queue_orders_the_jobs_of_a_tenant(order: Order, expected: str) -> None:
    """By submission, by priority, or by expected duration with unknown ones last; ties by submission, then by ID."""
    asked = [("a", 0, 2, None), ("b", 0, 1, 60), ("c", 5, 9, 3600), ("d", 0, 1, 60), ("e", -1, 0, 600)]
    keys = {
        name: FairShare().job_key(
            replace(job(name=name), priority=priority, expected_duration_s=duration_s), at, Queue("fast", order=order)
        )
        for name, priority, at, duration_s in asked
    }
    assert "".join(sorted(keys, key=lambda name: keys[name])) == expected


def served(tree: QueueTree, queues: Sequence[str], rounds: int, gpus_milli: int = 1000) -> list[str]:
    """Give one job after another to the queue that goes first; return the queues."""
    order = []
    before = sum(tree.node(name).use.attempts for name in queues)
    for at in range(before, before + rounds):
        asked = {"gpus": gpus_milli}
        nodes = [tree.node(name) for name in queues]
        order.append(min(nodes, key=lambda node: FairShare().queue_key(node, asked)).queue.name)
        tree.hold((f"job-{at}", 1), Owner(order[-1], "default"), asked)
    return order


def test_siblings_go_by_guarantee_then_priority_then_weight() -> None:
    """A guarantee comes before a priority, a priority before a weight, and weight 0 after all."""
    tree = QueueTree(
        [
            Queue("guaranteed", guarantee={"gpus": 2000}, weight=0),
            Queue("heavy", weight=2),
            Queue("light"),
            Queue("urgent", priority=1, limit={"gpus": 1000}),
        ],
        {"default": {"gpus": 12_000}},
    )
    assert served(tree, ["guaranteed", "heavy", "light", "urgent"], 3) == ["guaranteed", "guaranteed", "urgent"]
    assert sorted(served(tree, ["guaranteed", "heavy", "light"], 6)) == [*["heavy"] * 4, *["light"] * 2]
    assert served(tree, ["guaranteed"], 1) == ["guaranteed"], "it gets what its siblings do not ask for"


def test_a_guarantee_stands_for_the_same_share_of_other_resources() -> None:
    """Memory and CPU that go with guaranteed GPUs do not count as used beyond the guarantee."""
    tree = QueueTree([Queue("a", guarantee={"gpus": 4000})], {"default": {"gpus": 8000, "cpu": 64_000}})
    tree.hold(("job", 1), Owner("a", "default"), {"gpus": 4000, "cpu": 32_000})
    assert tree.node("a").share_beyond_guarantee() == 0
    tree.hold(("more", 1), Owner("a", "default"), {"cpu": 16_000})
    assert tree.node("a").share_beyond_guarantee() == pytest.approx(0.25)


@pytest.mark.parametrize("weights", [{}, {"gpus/h100": 9.0}])
def test_a_guarantee_of_a_model_stands_for_gpus(weights: GpuWeights) -> None:
    """Guaranteed GPUs of one model do not count as used beyond the guarantee, with and without weights of models."""
    capacity = {"gpus": 16_000, "gpus/h100": 8000, "gpus/l4": 8000, "gpu_memory": 16 * 80, "cpu": 64_000}
    tree = QueueTree([Queue("a", guarantee={"gpus/h100": 4000})], {"default": capacity}, gpu_weights=weights)
    tree.hold(("job", 1), Owner("a", "default"), {"gpus": 4000, "gpus/h100": 4000, "gpu_memory": 4 * 80, "cpu": 8000})
    assert tree.node("a").share_beyond_guarantee() == 0


@pytest.mark.parametrize(("model", "number", "beyond"), [("l4", 8, 0.0), ("h100", 4, 0.0), ("h100", 8, 0.4)])
def test_a_guarantee_of_gpus_stands_for_its_part_of_all_gpus(model: str, number: int, beyond: float) -> None:
    """With weights of models, half of all GPUs are half of the pool, whatever the models that a queue gets.

    The guarantee itself counts GPUs by number.
    """
    capacity = {"gpus": 16_000, "gpus/h100": 8000, "gpus/l4": 8000}
    tree = QueueTree([Queue("a", guarantee={GPUS: 8000})], {"default": capacity}, gpu_weights={"gpus/h100": 9.0})
    tree.hold(("job", 1), Owner("a", "default"), {GPUS: 1000 * number, f"gpus/{model}": 1000 * number})
    assert tree.node("a").share_beyond_guarantee() == pytest.approx(beyond)
    assert tree.node("a").guarantees({GPUS: 1000}) == (number < 8)


def test_weights_of_models_replace_their_memory_and_cores() -> None:
    """With weights, an L4 counts as its weight says, whatever its memory; without, the memory counts."""
    held = {"gpus": 4000, "gpus/l4": 4000, "gpu_cores": 4000, "gpu_memory": 4 * 24, "cpu": 4000}
    capacity = {"gpus": 8000, "gpus/l4": 4000, "gpu_cores": 8000, "gpu_memory": 4 * (24 + 80), "cpu": 64_000}
    weighed = QueueTree([Queue("a")], {"default": capacity}, gpu_weights={"gpus/l4": 1.0, "gpus/h100": 9.0})
    capacity["gpus/h100"] = 4000
    assert weighed.node("a").share_of(held) == pytest.approx(0.1)
    assert QueueTree([Queue("a")], {"default": capacity}).node("a").share_of(held) == pytest.approx(0.5)


def test_disciplines_of_other_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package adds a discipline by an entry point; an unknown name is rejected with the known ones."""
    offer(tmp_path, "other", queue_disciplines="mine = seaway.scheduling.queueing.registry:FairShare")
    monkeypatch.syspath_prepend(tmp_path)
    assert queue_discipline_names() == ["fair-share", "mine"]
    assert isinstance(make_queue_discipline("mine"), FairShare)
    with pytest.raises(RejectedError, match="queue discipline 'fair' not found; available: fair-share, mine"):
        make_queue_discipline("fair")


@pytest.mark.parametrize(
    ("order", "fields", "first"),
    [
        (Order.PRIORITY, ({"priority": 0}, {"priority": 5}), 0),
        (Order.PRIORITY, ({"priority": 0}, {"priority": 7}), 1),
        (Order.SHORTEST, ({"expected_duration_s": 3200}, {"expected_duration_s": 100}), 0),
        (Order.SHORTEST, ({"expected_duration_s": 12_800}, {"expected_duration_s": 100}), 1),
        (Order.FIFO, ({"priority": 0}, {"priority": 100}), 0),
    ],
)
def test_a_job_ages_by_a_point_of_priority_or_half_of_its_duration(
    order: Order, fields: Sequence[dict[str, Any]], first: int
) -> None:
    """A job that waited six hours longer, with an ageing of one hour, makes up for less than six points or halvings."""
    queue, discipline = Queue("q", order=order, ageing_s=3600), FairShare()
    hour_ns = 3600 * 10**9
    keys = [
        discipline.job_key(replace(job(name=str(at)), **each), (400_000 + 6 * at) * hour_ns, queue)
        for at, each in enumerate(fields)
    ]
    assert keys.index(min(keys)) == first
