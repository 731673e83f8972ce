"""Guarantees on different resources, against a plain search through sets of victims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from seaway.domain.amounts import Amounts, requested_amounts, total_of
from seaway.domain.job import Job
from seaway.domain.queues import Preemption, Queue, Reclaim
from seaway.scheduling.queueing.preemption import Candidate
from seaway.scheduling.queueing.tree import QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.unit.scheduling.queueing.displacing import World

CAPACITY = {"gpus": 6000, "cpu": 24_000, "memory": 24_576}
NAMES = tuple(CAPACITY)
LIKES = (
    {"gpus": 1, "cpu_milli": 1000, "memory_mib": 1024},
    {"gpus": 1, "cpu_milli": 6000, "memory_mib": 1024},
    {"gpus": 2, "cpu_milli": 1000, "memory_mib": 6144},
    {"gpus": 0, "gpu_milli": 0, "cpu_milli": 6000, "memory_mib": 1024},
    {"gpus": 0, "gpu_milli": 0, "cpu_milli": 1000, "memory_mib": 8192},
)
"""Requests that exhaust one resource or another of a single node."""

TRIES = 60
"""Multiple of the number of jobs that is too large a number of tries."""


def like(random: Random) -> Job:
    """Return a job."""
    return job("new", **random.choice(LIKES))


def guaranteed_world(random: Random) -> World:
    """Return a node with three queues, each with guarantees of some resources, and running jobs."""
    parts = cluster(node(*[gpu() for _ in range(6)], cpu_milli=CAPACITY["cpu"], memory_mib=CAPACITY["memory"]))
    queues = [
        Queue(
            name,
            guarantee={each: CAPACITY[each] // 3 for each in random.sample(NAMES, random.randrange(3))},
            preemption=Preemption.NEVER,
            reclaim=Reclaim.GUARANTEE,
        )
        for name in "abc"
    ]
    world = World(Snapshot(fleet(parts)), QueueTree(queues, {"default": CAPACITY}))
    for at in range(10):
        world.run(f"job-{at}", random.choice("aab"), like(random))
    return world


def held(world: World, queue: str, name: str, without: Sequence[Candidate] = ()) -> int:
    """Return what the jobs of a queue hold of a resource."""
    jobs = [each for each in world.running.values() if each.owner.queue == queue and each not in without]
    return sum(each.amounts.get(name, 0) for each in jobs)


def free(world: World, name: str, without: Sequence[Candidate] = ()) -> int:
    """Return what no job holds of a resource."""
    return CAPACITY[name] - sum(held(world, queue, name, without) for queue in "abc")


def may_take(world: World, queue: str, asked: Amounts, victims: Sequence[Candidate]) -> bool:
    """Report whether all victims may go for a job: each holds what is owed to it, and not guaranteed to its queue."""
    mine = world.tree.node(queue).guarantee
    lacks = {name for name in NAMES if asked.get(name, 0) > free(world, name)} | {"gpus"}
    owed = {name for name in mine if asked.get(name) and held(world, queue, name) + asked[name] <= mine[name]}
    named = {name for name in mine if asked.get(name)}
    whole = bool(owed) and owed == named and ("gpus" in owed or not asked.get("gpus"))
    for victim in victims:
        others = [each for each in victims if each is not victim]
        theirs = world.tree.node(victim.owner.queue).guarantee
        covered = {
            name
            for name in theirs
            if victim.amounts.get(name) and held(world, victim.owner.queue, name, others) <= theirs[name]
        }
        takes = {name for name in owed & lacks if victim.amounts.get(name)} - covered
        if victim.owner.queue == queue or not (takes or (whole and not covered)):
            return False
    return True


def sets(world: World, spared: set[str]) -> Iterator[Sequence[Candidate]]:
    """Yield all sets of one or two running jobs without some. Of larger sets, the search tries only the cheapest."""
    jobs = [each for name, each in world.running.items() if name not in spared]
    for number in (1, 2):
        yield from combinations(jobs, number)


@pytest.mark.parametrize("seed", range(60))
def test_guarantees_hold_resource_by_resource(seed: int) -> None:
    """Each victim holds what its queue has beyond its guarantee, and what is owed to the job that takes it.

    Displacements end. Then no waiting job could take the place of one or two more jobs that it did not displace before.
    """
    random = Random(seed)
    world = guaranteed_world(random)
    jobs = dict(world.jobs) | {f"new-{at}": (random.choice("abc"), like(random)) for at in range(5)}
    waiting, in_vain = [name for name in jobs if name not in world.running], 0
    for _ in range(TRIES * len(jobs)):
        if in_vain >= len(waiting):
            break
        name = waiting.pop(0)
        queue, wanted = jobs[name][0], replace(jobs[name][1], name=name)
        if world.run(name, queue, wanted):
            in_vain = 0
            continue
        found = world.victims(queue, wanted, name)
        if found is None:
            waiting.append(name)
            in_vain += 1
            continue
        assert may_take(world, queue, requested_amounts(wanted.demand, 1), found.victims), "a guarantee is broken"
        world.take(name, queue, found.victims)
        waiting += [each.key[0] for each in found.victims]
        assert world.run(name, queue, wanted)
        in_vain = 0
    assert in_vain >= len(waiting), "queues displace each other for ever"
    for name in waiting:
        queue, wanted = jobs[name]
        asked = requested_amounts(wanted.demand, 1)
        for some in sets(world, world.taken.get(name, set())):
            freed = total_of(each.amounts for each in some)
            if all(asked.get(each, 0) <= free(world, each) + freed.get(each, 0) for each in NAMES):
                assert not may_take(world, queue, asked, some), f"{name} waits for what is owed to it"
