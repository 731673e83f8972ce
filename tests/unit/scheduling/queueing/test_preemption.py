"""Victims of preemption and reclaim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from random import Random

import pytest

from benchmarks.queues.victims import compare
from seaway.domain.amounts import Amounts, capacity_of
from seaway.domain.job import Job
from seaway.domain.queues import Preempts, Queue, Reclaim
from seaway.scheduling.queueing.tree import NO_WEIGHTS, GpuWeights, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.unit.scheduling.queueing.displacing import (
    FAIR,
    LOWER,
    World,
    mixed_world,
    nested_world,
    random_job,
    random_world,
)

QUICK_SEEDS = (28, 106, *range(50, 90))
"""Fleets on which queues took turns under earlier rules, and some others."""

NESTED_SEEDS = (125, 586, *range(4))
"""Fleets with a tree of several levels. On the first two, jobs take turns if they may displace another one twice."""

TOO_MANY = 20
"""Multiple of the number of jobs that is too large a number of displacements."""

FLEETS = 200
"""Number of fleets with an optimum; the benchmark has five times as many."""


def size(cores: float, priority: int = 0) -> Job:
    """Return a job of some CPU cores."""
    return job("new", cpu_milli=int(1000 * cores), priority=priority)


def queues(*, weights: Mapping[str, int] | None = None, guarantees: Mapping[str, int] | None = None) -> list[Queue]:
    """Return queues a, b and c with a guarantee of 3 cores each, and one without."""
    cores = {"a": 3, "b": 3, "c": 3, "s": 0} | dict(guarantees or {})
    return [
        Queue(
            name,
            guarantee={"cpu": 1000 * each} if each else {},
            weight=(weights or {}).get(name, 1),
            preemption=LOWER,
            preempts=Preempts.OWN,
            reclaim=FAIR,
        )
        for name, each in cores.items()
    ]


def one_node(cores: float, tree: Sequence[Queue]) -> World:
    """Return a fleet of one node."""
    parts = fleet(cluster(node(cpu_milli=int(1000 * cores), memory_mib=1 << 20)))
    return World(Snapshot(parts), QueueTree(tree, {"default": {"cpu": int(1000 * cores)}}))


Running = tuple[str, float, int]


def units(text: str) -> list[Running]:
    """Parse jobs: `a3` for three of one core in queue a, `a2:-1` for two of priority -1, `a=2` for one of two cores."""
    found: list[Running] = []
    for each in text.split():
        part, _, priority = each.partition(":")
        queue, is_one, cores = (part[0], True, float(part[2:])) if "=" in part else (part[0], False, int(part[1:]))
        found += [(queue, cores if is_one else 1.0, int(priority or 0))] * (1 if is_one else int(cores))
    return found


CASES = [
    # running, queue and size of the new job, victims, reason
    ("a3 b5 c1", "c", 1, "b1", "within the own guarantee, from the queue that borrows"),
    ("a3 b5 c1", "a", 1, "b1", "a borrows less with it than b without"),
    ("a=3 a=1 b=2 b=3", "c", 3, "a=3", "one job instead of two that lose as much"),
    ("a=.5 a=.5 a=3 b=.5 b=.5 b=3", "c", 2, "a=.5 a=.5", "the peer takes one of each: the cost is the same"),
    ("a3 b3 c3", "c", 1, "", "all are within their guarantees"),
    ("a3 b5", "a", 2, "", "it would turn the imbalance round"),
    ("a2:-1 a2 b5", "a", 2, "a2", "lower priorities of the own queue"),
    ("a1:-1 a2 b6", "a", 2, "a1 b1", "the lower priority of the own queue, and what b borrows"),
    ("b=9", "a", 2, "b=9", "no other way, and a stays within its guarantee"),
    ("a=2 b=7", "a", 5, "", "a would have as much as b has now"),
    ("a=2:-1 a=1:-1 b=3 b=3", "a", 4, "a=2 b=3", "with both, a has less than b had"),
    ("b=2 b=2.5 c=2 c=2.5", "a", 3.5, "b=2 c=2", "one of each, since each keeps its guarantee"),
    ("a=3.5 b=2.5 c=2.5", "b", 2, "", "and none of them takes it back"),
    ("a3 b3 s3:-3", "a", 2, "", "priority alone does not decide between queues"),
]
"""Cases of Kueue's fair sharing. Queues a, b and c have a guarantee of 3 of 9 cores each, and s has none.

Kueue takes from the queue with the highest share first. Here the set that loses the least work goes first, and equal
jobs in the order of their names.
"""


def check(world: World, running: str, queue: str, cores: float, expected: str, why: str) -> None:
    """Start jobs, and compare the victims of a new one."""
    amounts = {}
    for at, (name, amount, priority) in enumerate(units(running)):
        assert world.run(f"{name}{at}", name, size(amount, priority)), why
        amounts[f"{name}{at}"] = (name, amount)
    found = world.victims(queue, size(cores))
    victims = sorted(amounts[each.key[0]] for each in found.victims) if found else []
    assert victims == sorted((name, amount) for name, amount, _ in units(expected)), why


@pytest.mark.parametrize(("running", "queue", "cores", "expected", "why"), CASES)
def test_victims_between_queues(running: str, queue: str, cores: float, expected: str, why: str) -> None:
    """Queues take back what others borrow beyond their guarantees, and share the rest."""
    check(one_node(9, queues()), running, queue, cores, expected, why)


def test_victims_by_weight() -> None:
    """A queue of weight 2 may borrow twice as much; one of weight 0 keeps its guarantee."""
    check(one_node(9, queues(weights={"a": 2})), "a3 b6", "a", 2, "b2", "a borrows 2 by weight 2, and b then 1")
    check(one_node(6, queues(weights={"b": 0})), "a3 b3", "a", 1, "", "b is within its guarantee")
    check(one_node(7, queues(weights={"b": 0})), "a3 b4", "a", 1, "b1", "what b borrows goes first")
    check(one_node(7, queues(weights={"b": 0})), "a4 b3", "b", 1, "", "and it cannot take it back")
    both = queues(weights={"a": 0, "b": 0})
    check(one_node(10, both), "a4 b6", "a", 1, "", "without weights, neither displaces, where Kueue compares shares")


def two_models(guarantee: Amounts, weights: GpuWeights = NO_WEIGHTS, reclaim: Reclaim = FAIR) -> World:
    """Return a node of 8 H100 and one of 8 L4, and queues a and b with a guarantee each."""
    models = (("H100", 81_920), ("L4", 24_576))
    nodes = [node(*[gpu(model=model, memory_mib=size) for _ in range(8)], cpu_milli=64_000) for model, size in models]
    parts = cluster(*nodes)
    tree = [Queue(name, guarantee=guarantee, preemption=LOWER, reclaim=reclaim) for name in "ab"]
    return World(Snapshot(fleet(parts)), QueueTree(tree, {"default": capacity_of(parts)}, gpu_weights=weights))


@pytest.mark.parametrize(
    ("guarantee", "weights"),
    [
        ({"gpus": 8000}, NO_WEIGHTS),
        ({"gpus/h100": 8000}, NO_WEIGHTS),
        ({"gpus": 8000}, {"gpus/h100": 9.0}),
        ({"gpus/h100": 8000, "gpus": 8000}, {"gpus/h100": 9.0}),
    ],
)
def test_a_queue_within_its_guarantee_keeps_the_larger_gpus(guarantee: Amounts, weights: GpuWeights) -> None:
    """Only resources that a guarantee names matter, whatever the memory or weight of the GPUs that the queue got."""
    world = two_models(guarantee, weights)
    large = job("new", gpus=8, cpu_milli=1000, models={"H100"})
    assert world.run("first", "a", large)
    assert world.victims("b", large) is None
    assert world.run("more", "a", job("new", gpus=4, cpu_milli=1000, models={"L4"}))
    assert (world.victims("b", large) is None) == ("gpus" not in guarantee)


def test_a_guarantee_of_gpus_protects_no_jobs_without_gpus() -> None:
    """A guarantee does not cover jobs that hold nothing that it names, so they count by their dominant share."""
    world = two_models({"gpus": 8000})
    assert world.run("one", "a", job("new", gpus=1, cpu_milli=1000))
    assert world.run("other", "a", job("new", cpu_milli=60_000), seconds=100)
    assert world.run("more", "a", job("new", cpu_milli=60_000), seconds=100)
    found = world.victims("b", job("new", gpus=1, cpu_milli=8000))
    assert found
    assert {each.key[0] for each in found.victims} < {"other", "more"}


@pytest.mark.parametrize("replicas", [1, 2])
def test_victims_are_where_the_job_may_run(replicas: int) -> None:
    """Of many jobs, only those on the GPU model of the waiting job end for it, although others would cost less."""
    models = ["L4"] * 40 + ["A100"] * 3
    snapshot = Snapshot(fleet(*[node(gpu(model=model)) for model in models]))
    tree = QueueTree([Queue("q", preemption=LOWER)], {"default": {"gpus": 1000 * len(models)}})
    world = World(snapshot, tree)
    for at, model in enumerate(models):
        assert world.run(f"{model}-{at}", "q", job(gpus=1, models=[model]), seconds=10 if model == "L4" else 1000 + at)
    urgent = job(gpus=1, replicas=replicas, gang=True, models=["A100"], priority=5)
    found = world.victims("q", urgent)
    assert found
    assert sorted(each.key[0] for each in found.victims) == ["A100-40", "A100-41"][:replicas]


def test_of_equal_victims_the_youngest_goes() -> None:
    """Of a queue, the last job that started goes first; of jobs that lose as much, the one of the lowest priority."""
    world = one_node(9, queues())
    for name, seconds, priority in (("old", 100, 0), ("young", 10, 0), ("low", 100, -1)):
        assert world.run(name, "b", size(3, priority), seconds=seconds)
    found = world.victims("a", size(3))
    assert found
    assert [each.key[0] for each in found.victims] == ["young"]
    world.end("young")
    assert world.run("older", "b", size(3), seconds=100)
    found = world.victims("a", size(3))
    assert found
    assert [each.key[0] for each in found.victims] == ["low"]


@pytest.mark.skipif(find_spec("ortools") is None, reason="needs seaway[learn]")
def test_victims_cost_the_least_on_small_fleets() -> None:
    """On random fleets, the cost equals the optimum in at least 95 %, and no victim is ever needless."""
    found = compare(range(FLEETS))
    assert not found.needless
    assert found.compared > FLEETS / 4
    assert found.equal >= 0.95 * found.compared


def let_all_ask(
    world: World, new: Sequence[tuple[str, Job]], random: Random, *, last: bool | None = None, remembers: bool = False
) -> None:
    """Let all new jobs and all displaced jobs ask again and again, until none of them displaces another.

    Elastic jobs grow when no other job starts.

    Parameters
    ----------
    last
        Whether displaced jobs ask last, or at any time; None for either.
    remembers
        Whether a job spares those that it displaced before.
    """
    jobs = dict(world.jobs) | {f"new-{at}": each for at, each in enumerate(new)}
    waiting, displaced, in_vain = [name for name in jobs if name.startswith("new")], 0, 0
    either = random.random() < 0.5
    last = either if last is None else last
    while waiting and (in_vain < len(waiting) or world.grow()):
        in_vain = 0 if in_vain == len(waiting) else in_vain
        name = waiting.pop(0)
        found = None if world.run(name, *jobs[name]) else world.victims(*jobs[name], name if remembers else "")
        if name not in world.running and not found:
            waiting.append(name)
            in_vain += 1
            continue
        in_vain = 0
        if found:
            world.take(name, jobs[name][0], found.victims)
        for each in found.victims if found else ():
            if each.whole is None:
                waiting.insert(len(waiting) if last else random.randrange(len(waiting) + 1), each.key[0])
            displaced += 1
        assert not found or world.run(name, *jobs[name])
        assert displaced < TOO_MANY * len(jobs), "queues displace each other for ever"


@pytest.mark.parametrize("seed", range(20))
def test_queues_do_not_let_all_ask(seed: int) -> None:
    """If all jobs and all displaced jobs ask again and again, displacements end: the smaller share always rises."""
    random = Random(seed)
    world, _, _ = random_world(random, preempts=(Preempts.OWN,))
    let_all_ask(world, [(random.choice("abc"), random_job(random)) for _ in range(8)], random)


@pytest.mark.parametrize(
    "seed",
    [
        *QUICK_SEEDS,
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(400) if seed not in {*QUICK_SEEDS, 392}),
        pytest.param(392, marks=[pytest.mark.slow, pytest.mark.xfail(strict=True, reason="see docs/limits.md")]),
    ],
)
def test_queues_do_not_let_all_ask_on_mixed_fleets(seed: int) -> None:
    """The same is valid whatever the models, their weights, the guarantees and the priorities of jobs."""
    random = Random(seed)
    world, new = mixed_world(random, preempts=Preempts.OWN)
    let_all_ask(world, new, random)


@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 200))])
def test_turns_end_where_jobs_displace_others_of_all_queues_by_priority(seed: int) -> None:
    """A job that lost its place to a higher priority can take it back by its share, but only once."""
    random = Random(seed)
    world, new = mixed_world(random)
    let_all_ask(world, new, random, remembers=True)


@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 400))])
def test_elastic_jobs_do_not_shrink_and_grow_in_turns(seed: int) -> None:
    """Displacements end also if elastic jobs grow wherever there is room. They keep their minimum when they shrink."""
    random = Random(seed)
    world, new = mixed_world(random, elastic=True)
    let_all_ask(world, new, random, remembers=True)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "seed",
    [*NESTED_SEEDS, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(200) if seed not in NESTED_SEEDS)],
)
def test_turns_end_in_trees_of_several_levels(seed: int, *, last: bool) -> None:
    """Below siblings, displacements by priority and by share can lower a share again, but repeat no pair of jobs."""
    random = Random(seed)
    world, new = nested_world(random)
    let_all_ask(world, new, random, last=last, remembers=True)


def test_only_the_memory_of_pairs_ends_some_turns() -> None:
    """Without it, jobs of a tree of several levels displace each other for ever."""
    random = Random(NESTED_SEEDS[0])
    world, new = nested_world(random)
    with pytest.raises(AssertionError, match="for ever"):
        let_all_ask(world, new, random, last=True)


def test_a_job_is_not_displaced_if_its_queue_would_then_have_less() -> None:
    """Without guarantees, a queue with a small job does not take the place of the only large job of another one."""
    check(one_node(9, queues(guarantees=dict.fromkeys("abc", 0))), "b=9", "a", 2, "", "b would have nothing")
    check(one_node(9, queues(guarantees=dict.fromkeys("abc", 0))), "b=6 b=2", "a", 2, "b=2", "b keeps 6")
    check(one_node(9, queues(guarantees=dict.fromkeys("abc", 0))), "a2 b=6 b=1", "a", 4, "", "b would have 1")


def test_a_guarantee_protects_the_highest_priorities_first() -> None:
    """Of a queue beyond its guarantee, jobs of higher priorities that the guarantee covers stay."""
    check(one_node(9, queues()), "b2:1 b3 b4:-1", "a", 2, "b2:-1", "the guarantee covers none of them")
    check(one_node(9, queues()), "b=3:1 b=6", "a", 2, "b=6", "the guarantee covers the job of the higher priority")


def test_what_a_job_gets_must_be_within_the_guarantee() -> None:
    """A job that may use any model takes nothing back for a place with more memory than is guaranteed to its queue."""
    world = two_models({"gpus": 8000, "gpu_memory": 8 * 24_576}, reclaim=Reclaim.GUARANTEE)
    for name in ("one", "other"):
        assert world.run(name, "b", job("new", gpus=8, cpu_milli=1000))
    assert world.victims("a", job("new", gpus=8, cpu_milli=1000, models={"H100"})) is None
    found = world.victims("a", job("new", gpus=8, cpu_milli=1000))
    assert found
    assert found.victims[0].amounts["gpus/l4"] == 8000
