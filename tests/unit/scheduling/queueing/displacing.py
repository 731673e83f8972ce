"""Small fleets with running jobs, for tests and benchmarks of the victims of a waiting job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from seaway.domain.amounts import CPU, GPU_MEMORY, GPUS, capacity_of, held_amounts, requested_amounts
from seaway.domain.job import Job
from seaway.domain.placement import Placement
from seaway.domain.queues import Elastic, Preemption, Preempts, Queue, Reclaim
from seaway.scheduling.allocations import allocate
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import make_profile
from seaway.scheduling.queueing.preemption import (
    Candidate,
    Displacement,
    DisplacementRules,
    VictimSearch,
    by_queue,
    priority_below,
    replicas_of,
)
from seaway.scheduling.queueing.tree import NO_WEIGHTS, Owner, QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node

PROFILE = make_profile("bestfit")
MODELS = {"H100": 81_920, "A100": 40_960, "L4": 24_576}
"""Memory of GPU models, MiB."""

GUARANTEED = (
    (),
    (GPUS,),
    (GPU_MEMORY,),
    (GPUS, GPU_MEMORY),
    ("gpus/h100", "gpus/l4"),
    (GPUS, "gpus/h100"),
    (CPU, GPUS),
)
"""Resources that queues of mixed fleets guarantee."""

NESTED_GUARANTEES = (*([*each] for each in GUARANTEED[1:]), [])
PARTS = (1 / 8, 1 / 4, 1 / 3)
NESTED_SHARES: tuple[dict[str, int], ...] = (
    {"gpu_milli": 500, "gpu_memory_percent": 50},
    {},
    {},
    {"gpus": 2},
    {"gpus": 4},
    {"gpu_milli": 300, "gpu_memory_mib": 10_000},
    {"gpus": 0, "gpu_milli": 0},
)
"""Parts of guarantees, and requests, in trees of several levels."""

ELASTIC = 0.4
"""Share of elastic jobs on random fleets."""

LOWER, FAIR = Preemption.PREEMPT_LOWER_PRIORITY, Reclaim.FAIR_SHARE


@dataclass
class World:
    """A fleet with running jobs.

    Attributes
    ----------
    least
        Minimum number of replicas of elastic jobs, and whether these leave in order.
    """

    snapshot: Snapshot
    tree: QueueTree
    running: dict[str, Candidate] = field(default_factory=dict)
    jobs: dict[str, tuple[str, Job]] = field(default_factory=dict)
    taken: dict[str, set[str]] = field(default_factory=dict)
    least: dict[str, tuple[int, bool]] = field(default_factory=dict)
    replicas: dict[str, list[Candidate]] = field(default_factory=dict)
    places: dict[str, dict[int, Placement]] = field(default_factory=dict)

    def run(self, name: str, queue: str, like: Job, *, seconds: float = 1.0) -> bool:
        """Start a job where it fits; report whether it does."""
        places = self._place(like)
        if not places:
            return False
        self.jobs[name] = (queue, like)
        self._set(name, places, seconds)
        return True

    def run_elastic(self, name: str, queue: str, like: Job, random: Random) -> None:
        """Start a job where it fits, and let it shrink to some smaller number of replicas."""
        self.least[name] = random.randrange(1, like.replicas + 1), random.random() < 0.3
        self.run(name, queue, like, seconds=random.randrange(1, 1000))

    def _place(self, like: Job) -> dict[int, Placement]:
        plan = decide(self.snapshot, JobQueue(self.snapshot, [like]), PROFILE)
        places = {each.replica: each for each in plan.placements()} if plan.jobs_placed[0] else {}
        self.snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
        return places

    def _set(self, name: str, places: dict[int, Placement], seconds: float = 1.0) -> None:
        """Let a job run in some places, instead of earlier ones."""
        (queue, like), key = self.jobs[name], (name, 1)
        if name in self.running:
            self.running[name].allocation.release(self.snapshot)
        amounts = held_amounts(like.demand, list(places.values()), self.snapshot.device)
        allocation = allocate(self.snapshot, replace(like, replicas=len(places)), list(places.values()))
        owner, lost = Owner(queue, "default"), self.tree.loss(queue, amounts, seconds)
        least, in_order = self.least.get(name, (0, False))
        whole = Candidate(key, owner, amounts, allocation, allocation.nodes, like.priority, lost)
        whole.spare = len(places) - least if least else None
        numbers = sorted(places, reverse=True)
        each_amounts = {n: held_amounts(like.demand, [places[n]], self.snapshot.device) for n in numbers}
        self.replicas[name] = replicas_of(whole, [numbers] if in_order else [[n] for n in numbers], each_amounts)
        self.running[name], self.places[name] = whole, places
        self.tree.hold(key, owner, amounts)

    def grow(self) -> bool:
        """Let elastic jobs have one more replica each, where there is room; report whether any has."""
        grown = False
        for name in self.least.keys() & self.running.keys():
            places, like = self.places[name], self.jobs[name][1]
            more = self._place(replace(like, replicas=1, gang=False)) if len(places) < like.replicas else {}
            for each in more.values():
                number = next(n for n in range(like.replicas) if n not in places)
                self._set(name, {**places, number: replace(each, replica=number)})
                grown = True
        return grown

    def end(self, name: str) -> None:
        """End a job."""
        gone = self.running.pop(name)
        gone.allocation.release(self.snapshot)
        self.tree.release(gone.key)

    def victims(self, queue: str, like: Job, name: str = "") -> Displacement | None:
        """Search for the victims of a new job, or of one that displaced others before. The world stays as it is."""
        arrays = self.snapshot.copy().arrays
        mine = self.tree.node(queue).queue
        rules = self.rules(queue, like, name)
        parts = [part for name in self.running for part in (*self.replicas[name], self.running[name])]
        found = VictimSearch(self.snapshot, PROFILE, like, rules).find(
            [each for each in parts if each.priority < priority_below(mine, like.priority, each.owner.queue)]
        )
        assert all((was == now).all() for was, now in zip(arrays.nodes, self.snapshot.arrays.nodes, strict=True))
        assert all((was == now).all() for was, now in zip(arrays.devices, self.snapshot.arrays.devices, strict=True))
        return found

    def rules(self, queue: str, like: Job, name: str = "") -> DisplacementRules:
        """Return the rules for the victims of a job."""
        amounts, running = requested_amounts(like.demand, like.replicas), by_queue(self.running.values())
        owner, spared = Owner(queue, "default"), self.taken.get(name, ())
        return DisplacementRules(self.tree, owner, like.priority, amounts, running, spared)

    def take(self, name: str, queue: str, victims: Sequence[Candidate]) -> None:
        """End the victims of a job, or let them shrink, and remember those of other queues that ended."""
        ends = [each for each in victims if each.whole is None]
        self.taken.setdefault(name, set()).update(each.key[0] for each in ends if each.owner.queue != queue)
        for each in ends:
            self.end(each.key[0])
        leaving = defaultdict[str, set[int]](set)
        for each in victims:
            if each.whole:
                leaving[each.key[0]].add(-1 - each.key[1])
        for job_name, gone in leaving.items():
            assert job_name in self.running, "a job shrinks or ends"
            stay = {n: each for n, each in self.places[job_name].items() if n not in gone}
            assert len(stay) >= self.least[job_name][0], "a job keeps its minimum"
            self._set(job_name, stay)

    def fits_without(self, queue: str, like: Job, victims: Sequence[Candidate]) -> bool:
        """Report whether a job fits once other jobs have ended."""
        copy = self.snapshot.copy()
        for each in victims:
            each.allocation.copy().release(copy)
        return bool(decide(copy, JobQueue(copy, [like]), PROFILE, dry_run=True).jobs_placed[0])


def random_world(random: Random, preempts: Sequence[Preempts] = tuple(Preempts)) -> tuple[World, str, Job]:
    """Return a small loaded fleet with GPUs, and a new job with its queue. Elastic jobs lend no replicas."""
    tree = [
        Queue("root"),
        *(
            Queue(
                name,
                parent="root",
                guarantee={"gpus": 1000 * random.randrange(4)},
                preemption=random.choice((LOWER, LOWER, Preemption.NEVER)),
                preempts=random.choice(preempts),
                elastic=Elastic.KEEP,
                reclaim=random.choice((FAIR, Reclaim.GUARANTEE)),
            )
            for name in "abc"
        ),
    ]
    nodes = [
        node(*[gpu() for _ in range(random.choice((1, 2, 4)))], cpu_milli=16_000) for _ in range(random.randrange(1, 5))
    ]
    gpus = sum(len(each.devices) for each in nodes)
    capacity = {"gpus": 1000 * gpus, "gpu_cores": 1000 * gpus, "gpu_memory": 81_920 * gpus, "cpu": 16_000 * len(nodes)}
    world = World(Snapshot(fleet(cluster(*nodes))), QueueTree(tree, {"default": capacity}))
    for at in range(3 * gpus):
        name, queue = f"job-{at:02}", random.choice("abc")
        if random.random() < ELASTIC:
            world.run_elastic(name, queue, random_job(random, replicas=random.randrange(1, 5)), random)
        else:
            world.run(name, queue, random_job(random), seconds=random.randrange(1, 1000))
    return world, random.choice("abc"), random_job(random, priority=random.randrange(4))


def mixed_world(
    random: Random, *, elastic: bool = False, preempts: Preempts = Preempts.ALL
) -> tuple[World, list[tuple[str, Job]]]:
    """Return a small loaded fleet of several GPU models, and new jobs with their queues.

    With `elastic`, running jobs with several replicas can shrink.
    """
    models = random.sample([*MODELS], random.choice((2, 2, 3)))
    per_node = random.choice((1, 2, 4, 8))
    nodes = []
    for model in (*models, *random.sample(models, random.randrange(2))):
        count = random.choice((per_node, 1, 2, 4))
        nodes.append(node(*[gpu(model=model, memory_mib=MODELS[model]) for _ in range(count)], cpu_milli=32_000))
    parts = cluster(*nodes)
    capacity = capacity_of(parts)
    named = random.choice(GUARANTEED)
    preemption = random.choice((LOWER, Preemption.NEVER))
    tree = [
        Queue(
            name,
            weight=random.choice((1, 1, 1, 2, 3, 0)),
            guarantee={each: capacity[each] // random.choice((3, 4, 8)) for each in named if each in capacity},
            preemption=preemption,
            preempts=preempts,
            reclaim=random.choice((FAIR, FAIR, FAIR, Reclaim.GUARANTEE)),
        )
        for name in "abc"[: random.choice((2, 2, 3))]
    ]
    weights = random.choice((NO_WEIGHTS, NO_WEIGHTS, {"gpus/h100": 4.0, "gpus/l4": 0.5}))
    world = World(Snapshot(fleet(parts)), QueueTree(tree, {"default": capacity}, gpu_weights=weights))
    jobs = [(random.choice(tree).name, mixed_job(random, models)) for _ in range(capacity[GPUS] // 500 + 12)]
    for at, (queue, like) in enumerate(jobs[:-12]):
        if elastic:
            several = replace(like, replicas=random.randrange(1, 5), gang=True)
            world.run_elastic(f"job-{at:02}", queue, several, random)
        else:
            world.run(f"job-{at:02}", queue, like, seconds=random.randrange(1, 1000))
    return world, jobs[-12:]


def nested_world(random: Random) -> tuple[World, list[tuple[str, Job]]]:
    """Return a small loaded fleet with a tree of several levels, in which queues also displace by priority."""
    models = random.sample([*MODELS.items()], random.choice((1, 2, 2, 3)))
    nodes = []
    for _ in range(random.randrange(2, 5)):
        model, memory_mib = random.choice(models)
        devices = [gpu(model=model, memory_mib=memory_mib) for _ in range(random.choice((1, 2, 4, 8)))]
        nodes.append(node(*devices, cpu_milli=random.choice((16_000, 32_000))))
    parts = cluster(*nodes)
    capacity = capacity_of(parts)
    named = random.choice(NESTED_GUARANTEES)
    weights = random.choice((NO_WEIGHTS, NO_WEIGHTS, {"gpus/h100": 4.0, "gpus/l4": 0.5}))

    def leaf(name: str, parent: str) -> Queue:
        weight = random.choice((1, 1, 1, 2, 3, 0))
        guaranteed = random.sample(named, random.randrange(len(named) + 1))
        amounts = {each: int(capacity[each] * random.choice(PARTS)) for each in guaranteed if each in capacity}
        whole = {each: n // 1000 * 1000 if each.startswith(GPUS) else n for each, n in amounts.items()}
        reclaim = random.choice((FAIR, FAIR, Reclaim.GUARANTEE))
        guarantee = {each: amount for each, amount in whole.items() if amount}
        return Queue(name, parent=parent, weight=weight, guarantee=guarantee, preemption=LOWER, reclaim=reclaim)

    tree, leaves = [Queue("root")], list[str]()
    for name in "abc"[: random.choice((2, 3))]:
        if random.random() < 0.6:
            tree.append(Queue(name, parent="root", weight=random.choice((1, 2))))
            tree += [leaf(name + child, name) for child in "xy"]
            leaves += [name + child for child in "xy"]
        else:
            tree.append(leaf(name, "root"))
            leaves.append(name)
    world = World(Snapshot(fleet(parts)), QueueTree(tree, {"default": capacity}, gpu_weights=weights))

    def like() -> Job:
        share = random.choice(NESTED_SHARES)
        replicas, priority = random.choice((1, 1, 1, 2)), random.randrange(3)
        one = {"models": {random.choice(models)[0]}} if random.random() < 0.4 and share.get("gpus", 1) else {}
        figures = {"gpus": 1, "cpu_milli": random.choice((1000, 1000, 4000, 8000)), **share}
        return job("new", **figures, **one, replicas=replicas, gang=replicas > 1, priority=priority)

    for at in range(2 * sum(len(each.devices) for each in nodes)):
        world.run(f"job-{at:02}", random.choice(leaves), like(), seconds=random.randrange(1, 1000))
    return world, [(random.choice(leaves), like()) for _ in range(random.choice((6, 10, 16)))]


def mixed_job(random: Random, models: Sequence[str]) -> Job:
    """Return a job with GPUs of any model or of one, by number, by a share or by memory, alone or as a gang."""
    share = random.choice(
        (
            {},
            {},
            {"gpus": 2},
            {"gpus": 4},
            {"gpu_milli": 500, "gpu_memory_percent": 50},
            {"gpu_memory_percent": 50},
            {"gpu_milli": 200, "gpu_memory_mib": 10_000},
            {"gpu_memory_mib": 20_000},
        )
    )
    one = {"models": {random.choice(models)}} if random.random() < 0.3 else {}
    replicas, priority = random.choice((1, 1, 1, 2)), random.randrange(3)
    figures = {"gpus": 1, "cpu_milli": random.choice((1000, 1000, 4000, 8000)), **share}
    return job("new", **figures, **one, replicas=replicas, gang=replicas > 1, priority=priority)


def random_job(random: Random, **fields: int) -> Job:
    """Return a job with whole GPUs or a share of one, alone or as a gang."""
    share = random.choice(({"gpu_milli": 500, "gpu_memory_percent": 50}, {}, {}, {"gpus": 2}))
    replicas = fields.get("replicas") or random.choice((1, 1, 1, 2))
    priority = fields.get("priority", random.randrange(3))
    figures = {"gpus": 1, "cpu_milli": 1000, **share}
    return job("new", **figures, replicas=replicas, gang=replicas > 1, priority=priority)


def allowed(world: World, queue: str, like: Job, victims: Sequence[Candidate]) -> bool:
    """Report whether the rules allow to displace all of some jobs and replicas."""
    rules = world.rules(queue, like)
    for each in victims:
        rules.remove(each)
    allows = rules.allow_all(victims)
    for each in victims:
        rules.restore(each)
    return allows
