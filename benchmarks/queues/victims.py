"""Victims of waiting jobs on small random fleets, compared with the optimum of an integer program."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import lcm
from random import Random

from benchmarks.record import ROOT, Result
from seaway.domain.amounts import CPU, GPUS, RESOURCES, Amounts, requested_amounts
from seaway.domain.job import Job
from seaway.domain.queues import Reclaim
from seaway.learning.packing.integer_program import IntegerProgram, Solution
from seaway.scheduling.columns import (
    DEVICE_CORE_FREE,
    DEVICE_MEMORY,
    DEVICE_MEMORY_FREE,
    NODE_CPU_FREE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    PLAN_NODE,
    SLICE_CORE,
    SLICE_DEVICE,
    SLICE_MEMORY,
)
from seaway.scheduling.queueing.preemption import Candidate, Displacement, displaces_by_priority
from tests.unit.scheduling.queueing.displacing import World, allowed, random_world

FLEETS = 1000
EQUAL = 0.95
"""Number of fleets with victims, and the bound on the share of them on which the cost equals the optimum."""

DRAWN = 250
"""Number of fleets that are drawn together."""

FINE = 10_000
"""Lost work counts in parts of so many."""

JOB, LAST = 10_000, 10**17
"""Cost of a job in that of replicas, and of the first elastic job that ends, which outweighs all others."""

SOLVER = "benchmarks.queues.optimum"


@dataclass(slots=True)
class Comparison:
    """Costs of the victims that were found, and of the best ones.

    Attributes
    ----------
    compared, equal
        Number of fleets on which victims exist, and of those on which the cost equals the optimum.
    shrinks, ends
        Number of fleets on which elastic jobs shrink in the optimum, and on which one ends.
    needless
        Fleets on which a victim was needless, by seed.
    """

    compared: int = 0
    equal: int = 0
    shrinks: int = 0
    ends: int = 0
    needless: list[int] = field(default_factory=list)

    def add(self, other: Comparison) -> None:
        """Add the figures of other fleets."""
        self.compared += other.compared
        self.equal += other.equal
        self.shrinks += other.shrinks
        self.ends += other.ends
        self.needless += other.needless


def compare(seeds: Sequence[int]) -> Comparison:
    """Search for victims on random fleets, and compare them with the optimum."""
    worlds = {seed: random_world(Random(seed)) for seed in seeds}
    worlds = {seed: each for seed, each in worlds.items() if not each[0].fits_without(*each[1:], ())}
    programs = [VictimProgram(*each) for each in worlds.values()]
    done = subprocess.run(
        [sys.executable, "-m", SOLVER],
        cwd=ROOT,
        input=pickle.dumps([each.program for each in programs]),
        stdout=subprocess.PIPE,
        check=True,
    )
    solutions: list[Solution] = pickle.loads(done.stdout)
    result = Comparison()
    for (seed, (world, queue, like)), program, solution in zip(worlds.items(), programs, solutions, strict=True):
        found, best = world.victims(queue, like), program.victims(solution)
        if best is None:
            assert found is None, f"{seed}: the program has no solution"
            continue
        assert world.fits_without(queue, like, best), f"{seed}: the job does not fit"
        assert allowed(world, queue, like, best), f"{seed}: the victims of the program are protected"
        result.compared += 1
        result.shrinks += any(each.whole for each in best)
        result.ends += any(_ends_elastic(each) for each in best)
        result.equal += found is not None and whole_cost(found.victims) <= whole_cost(best)
        if found and _has_needless(world, queue, like, found):
            result.needless.append(seed)
    return result


def queue_victims(seed: int) -> Result:
    """Compare the victims of waiting jobs with the optimum on small random fleets, until 1,000 need victims."""
    found, drawn = Comparison(), 0
    while found.compared < FLEETS:
        found.add(compare(range(seed + drawn, seed + drawn + DRAWN)))
        drawn += DRAWN
    share = found.equal / found.compared
    row = {
        "fleets": drawn,
        "with_victims": found.compared,
        "with_shrinking": found.shrinks,
        "with_elastic_ends": found.ends,
        "optimal_percent": round(100 * share, 1),
        "needless": len(found.needless),
    }
    missed = [f"the victims cost the least on {share:.1%} of the fleets"] if share < EQUAL else []
    missed += [f"needless victims on the fleets {found.needless}"] if found.needless else []
    notes = [
        "up to 16 GPUs, jobs with halves, whole GPUs and gangs; optimum: CP-SAT, with the rules as constraints",
        "two of five running jobs are elastic: replicas beyond the minimum go first, and whole elastic jobs last",
    ]
    return Result("queue-victims", [row], notes, missed)


def _has_needless(world: World, queue: str, like: Job, found: Displacement) -> bool:
    """Report whether the job fits, by the rules, although one of the victims stays."""
    for each in found.victims:
        fewer = [other for other in found.victims if other is not each]
        if any(other.before is each for other in fewer):
            continue
        instead = _ways_to_shrink(world.replicas[each.key[0]]) if _ends_elastic(each) else ()
        for victims in (fewer, *([*fewer, *replicas] for replicas in instead)):
            if victims and world.fits_without(queue, like, victims) and allowed(world, queue, like, victims):
                return True
    return False


def _ways_to_shrink(replicas: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    """Yield the sets of replicas that an elastic job can lose."""
    for number in range(1, (replicas[0].spare or 0) + 1 if replicas else 0):
        for some in combinations(replicas, number):
            if all(each.before is None or each.before in some for each in some):
                yield some


def _ends_elastic(each: Candidate) -> bool:
    return each.whole is None and each.spare is not None


def whole_cost(found: Sequence[Candidate]) -> int:
    """Return the cost of victims as one whole number.

    The end of any elastic job is first, then lost work, priorities and the number of jobs, then the number of replicas
    and their priorities.
    """
    return sum(_cost(each) for each in found) + LAST * any(_ends_elastic(each) for each in found)


def _cost(each: Candidate) -> int:
    if each.whole:
        return 100 + each.priority
    return (round(each.lost * FINE) * 10_000 + each.priority * 100 + 1) * JOB


class VictimProgram:
    """The cheapest victims as an integer program, without an order of removal.

    The rules must allow each victim as the last one that is removed.

    Parameters
    ----------
    world, queue, like
        Fleet with running jobs, and the waiting job with its queue. All weights are 1, and all queues are siblings.
    """

    def __init__(self, world: World, queue: str, like: Job) -> None:
        self.program = IntegerProgram()
        self._world, self._queue, self._like = world, queue, like
        self._requested = requested_amounts(like.demand, like.replicas)
        self._candidates = [each for name in world.running for each in (world.running[name], *world.replicas[name])]
        self._taken = [self.program.add_variable(int(self._may_ever(each))) for each in self._candidates]
        self._keep_minimum()
        self._fit()
        mine = world.tree.node(queue)
        within = self._flag()  # the queue stays within its guarantee
        guarantee, held = mine.guarantee.get(GPUS, 0), mine.use.held.get(GPUS, 0) + self._requested.get(GPUS, 0)
        freed = [(-each.amounts.get(GPUS, 0), x) for each, x in self._of(queue)]
        self._if(within, freed, guarantee - held)
        for other in {each.owner.queue for each in self._candidates} - {queue}:
            self._allow(other, within)
        self._minimise()

    def victims(self, solution: Solution) -> list[Candidate] | None:
        """Return the victims of a solution; None if there are none."""
        if solution.values is None:
            return None
        return [each for each, x in zip(self._candidates, self._taken, strict=True) if solution.values[x]]

    def _may_ever(self, each: Candidate) -> bool:
        mine = self._world.tree.node(self._queue).queue
        other = each.owner.queue != self._queue
        return (other and mine.reclaim is not Reclaim.NEVER) or self._by_priority(each)

    def _by_priority(self, each: Candidate) -> bool:
        within, mine = each.owner.queue == self._queue, self._world.tree.node(self._queue).queue
        return each.priority < self._like.priority and displaces_by_priority(mine, within=within)

    def _of(self, queue: str) -> list[tuple[Candidate, int]]:
        pairs = zip(self._candidates, self._taken, strict=True)
        return [(each, x) for each, x in pairs if each.owner.queue == queue]

    def _flag(self) -> int:
        return self.program.add_variable(1)

    def _if(self, flag: int, terms: Sequence[tuple[int, int]], most: int) -> None:
        """Limit a sum of 0-1 variables if a flag is set."""
        largest = sum(max(0, times) for times, _ in terms)
        if largest > most:
            self.program.add_constraint([*terms, (largest - most, flag)], largest)

    def _at_most(self, terms: Sequence[tuple[int, int]], more: Sequence[tuple[int, int]], most: int = 0) -> None:
        """Keep a sum of terms at most another one plus a number."""
        self.program.add_constraint([*terms, *((-times, variable) for times, variable in more)], most)

    # Elastic jobs.

    def _keep_minimum(self) -> None:
        """Let an elastic job keep its minimum, or end whole, and let its replicas leave in order."""
        taken = dict(zip(self._candidates, self._taken, strict=True))
        replicas = defaultdict[Candidate, list[tuple[int, int]]](list)
        for each, x in taken.items():
            if each.whole:
                replicas[each.whole].append((1, x))
            if each.before:
                self._at_most([(1, x)], [(1, taken[each.before])])
        for whole, terms in replicas.items():
            spare = whole.spare or 0
            self.program.add_constraint([*terms, (spare, taken[whole])], spare)

    # Room on nodes and devices.

    def _fit(self) -> None:
        """Place all replicas on nodes and devices, beside the jobs that stay."""
        nodes, devices = self._world.snapshot.arrays.nodes, self._world.snapshot.arrays.devices
        request = self._like.demand.request.filled()
        freed: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for each, x in zip(self._candidates, self._taken, strict=True):
            on = each.allocation.decisions[:, PLAN_NODE].tolist()
            for n in on:
                freed[CPU, n].append((each.amounts.get(CPU, 0) // len(on), x))
            for row in each.allocation.slices:
                freed["cores", int(row[SLICE_DEVICE])].append((int(row[SLICE_CORE]), x))
                freed["memory", int(row[SLICE_DEVICE])].append((int(row[SLICE_MEMORY]), x))
        replicas = []
        for n in range(nodes.shape[1]):
            replicas.append(self.program.add_variable(self._like.replicas))
            self._at_most([(request.cpu_milli, replicas[n])], freed[CPU, n], int(nodes[NODE_CPU_FREE, n]))
            slices = []
            for d in range(int(nodes[NODE_DEVICE_FIRST, n]), int(nodes[NODE_DEVICE_END, n])):
                part = self.program.add_variable(self._like.replicas)
                memory_mib = int(devices[DEVICE_MEMORY, d]) * request.gpu_memory_percent // 100
                self._at_most([(1, part)], [(1, replicas[n])])  # a replica uses each device once
                self._at_most([(request.gpu_milli, part)], freed["cores", d], int(devices[DEVICE_CORE_FREE, d]))
                self._at_most([(memory_mib, part)], freed["memory", d], int(devices[DEVICE_MEMORY_FREE, d]))
                slices.append((1, part))
            terms = [*slices, (-request.gpus, replicas[n])]
            self.program.add_constraint(terms, 0, lower=0)
        self.program.add_constraint([(1, each) for each in replicas], self._like.replicas, lower=self._like.replicas)

    # Rules.

    def _allow(self, other: str, within: int) -> None:
        """Allow victims of another queue, by its guarantee or by shares."""
        by_share = self._flag()
        if self._world.tree.node(self._queue).queue.reclaim is not Reclaim.FAIR_SHARE:
            self.program.add_constraint([(1, by_share)], 0)
        own, members, theirs = self._of(self._queue), self._of(other), self._beyond(other, {})
        first = [each for each, _ in own if each.priority >= self._like.priority]
        now = max(share.without_all(own, but=first) for share in self._beyond(self._queue, {}).values())
        for victim, x in members:
            first = [each for each, _ in members if each.priority >= victim.priority]
            borrows, larger, keeps = dict[str, int](), [], []
            for name, share in theirs.items():
                removed = [(share.amount(each), y) for each, y in members]
                after = [(share.amount(each), y) for each, y in members if each in first]
                stays, least = (-share.amount(victim), x), share.without_all(members, but=first)
                borrows[name], keep, more = self._flag(), self._flag(), self._flag()
                self._if(borrows[name], [*after, stays], least - 1)
                self._if(keep, after, least - now - 1)
                self._if(more, [*removed, stays], share.held - 1)
                for mine in self._beyond(self._queue, self._requested).values():
                    freed = [(-mine.amount(each), y) for each, y in own]
                    self._if(more, [*removed, stays, *freed], share.held - mine.held - 1)
                keeps.append(keep)
                larger.append(more)
            self._at_most([(1, x)], [(1, borrows[GPUS])])  # the resource that the guarantee names
            if self._by_priority(victim):
                continue
            self._at_most([(1, x)], [(1, within), (1, by_share)])
            for flags in (larger, keeps):
                self._at_most([(1, x)], [(1, within), *((1, flag) for flag in flags)])

    def _beyond(self, queue: str, more: Amounts) -> dict[str, _Scaled]:
        """Return what a queue holds beyond its guarantee of each resource, on a scale common to all resources."""
        node = self._world.tree.node(queue)
        capacity = {name: amount for name, amount in node.capacity.items() if name in RESOURCES and amount}
        whole = lcm(*capacity.values())
        guaranteed = node.guarantee.get(GPUS, 0) * (whole // capacity[GPUS])
        return {
            name: _Scaled(
                name, whole // most, (node.use.amount(name) + more.get(name, 0)) * (whole // most) - guaranteed
            )
            for name, most in capacity.items()
        }

    # Cost.

    def _minimise(self) -> None:
        """Make the cost of what stays as large as possible."""
        terms = [(_cost(each), x) for each, x in zip(self._candidates, self._taken, strict=True)]
        last = self._flag()
        for each, x in zip(self._candidates, self._taken, strict=True):
            if _ends_elastic(each):
                self._at_most([(1, x)], [(1, last)])
        terms.append((LAST, last))
        total = sum(cost for cost, _ in terms)
        stays = self.program.add_variable(total)
        self.program.add_constraint([(1, stays), *terms], total)
        self.program.objective = [stays]


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A resource of a queue on a common scale, with the held amount beyond the guarantee."""

    name: str
    scale: int
    held: int

    def amount(self, each: Candidate) -> int:
        """Return what a running job holds."""
        return each.amounts.get(self.name, 0) * self.scale

    def without_all(self, jobs: Sequence[tuple[Candidate, int]], but: Sequence[Candidate]) -> int:
        """Return the held amount without all jobs but some."""
        return self.held - sum(self.amount(each) for each, _ in jobs if each.whole is None and each not in but)
