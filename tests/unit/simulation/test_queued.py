"""Replay of jobs in a tree of queues: the same starts as without queues, shares, limits and preemption."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.queues.elastic import run
from seaway.domain.amounts import held_amounts
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, Job, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.queues import Backfill, Elastic, Order, Preemption, Queue, Reclaim, children_of
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import make_policy
from seaway.scheduling.queueing.tree import QueueTree
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.outcome import Outcome, Sharing
from seaway.simulation.timeline import replay_with_departures
from seaway.simulation.waiting.discipline import Discipline
from seaway.simulation.waiting.shares import fair_amounts
from seaway.testing.plugins import cluster, fleet, gpu, job, node
from tests.unit.application.control.test_fair_shares import Entitlements, random_tree
from tests.unit.simulation.test_backfill import Task, jobs_of, logs, replayed


def replay(jobs: Sequence[Job], gpus: int, *queues: Queue, order: Order = Order.FAIR) -> Outcome:
    """Replay jobs on nodes with one GPU each."""
    discipline = Discipline(order, Backfill.EASY, queues)
    where = fleet(*[node(gpu()) for _ in range(gpus)])
    return replay_with_departures(where, jobs, lambda: make_policy("bestfit"), discipline=discipline)


def sharing(outcome: Outcome) -> Sharing:
    """Return the shares of a replay with queues."""
    assert outcome.sharing is not None
    return outcome.sharing


def stream(name: str, count: int, arrives_s: int = 0, lasts_s: int = 10, **fields: object) -> list[Job]:
    """Return equal jobs with one GPU each, of a tenant or queue."""
    given = {"gpus": 1, "arrives_s": arrives_s, "expected_duration_s": lasts_s, **fields}
    return [job(f"{name}-{at}", **given) for at in range(count)]


@given(logs, st.integers(4, 6), st.sampled_from(["fifo", "priority", "shortest"]))
def test_one_queue_without_limits_changes_no_start(log: Sequence[Task], processors: int, order: str) -> None:
    """The rules of queues and those for a single line of numbers agree to the second.

    Without reservations, that is: a line reserves amounts, and a queue places, as the control loop does.
    """
    queue = Queue("default", order=Order(order), backfill=Backfill.NONE, reclaim=Reclaim.NEVER)
    outcome = replay(jobs_of(log), processors, queue)
    assert outcome.starts_s is not None
    assert outcome.starts_s.tolist() == replayed(log, processors, order, "none")


@given(st.integers(0, 3), st.integers(1, 1000), st.integers(0, 40_000), st.integers(1, 4))
def test_amounts_of_plans_are_those_of_their_placements(
    gpus: int, gpu_milli: int, gpu_memory_mib: int, replicas: int
) -> None:
    """The amounts from the columns of a plan are those that the control loop stores with a placement."""
    models = [gpu(model="A100", memory_mib=40_000), gpu(model="L4", memory_mib=24_000)]
    request = ResourceRequest(1000, 0, gpus, gpu_memory_mib if gpus else 0, 0, gpu_milli if gpus else 0)
    snapshot = Snapshot(fleet(node(*models[:1] * 4), node(*models[1:] * 4)))
    asked = Job("job", Demand(request), replicas)
    plan = decide(snapshot, JobQueue(snapshot, [asked]), make_policy("bestfit"))
    held = held_amounts(asked.demand, plan.placements(), snapshot.device)
    assert plan.amounts(request) == held


def test_tenants_share_a_fair_queue() -> None:
    """A tenant that comes later gets its half at once as jobs end; the distance from fair shares is small."""
    jobs = stream("a", 40, tenant="a") + stream("b", 20, arrives_s=5, tenant="b")
    fair, fifo = replay(jobs, 4), replay(jobs, 4, Queue("default", order=Order.FIFO))
    assert (sharing(fair).share_error or 0) < 0.1 < (sharing(fifo).share_error or 0)
    assert fair.starts_s is not None
    assert fair.starts_s[40:].max() == 10 * 10


def test_a_limit_and_a_guarantee_are_kept() -> None:
    """A queue never runs more than its limit, and another takes back what it is guaranteed."""
    queues = Queue("x", limit={"gpus": 3000}), Queue("y", guarantee={"gpus": 2000})
    jobs = stream("x", 8, queue="x", lasts_s=100) + stream("y", 3, arrives_s=10, queue="y", lasts_s=50)
    outcome = replay(jobs, 4, *queues)
    assert outcome.starts_s is not None
    assert sorted(outcome.starts_s[8:].tolist()) == [10, 10, 60]
    assert (sharing(outcome).preempted, sharing(outcome).preempted_gpu_hours) == (1, 10 / 3600)
    assert outcome.counts.placed == 11


def test_a_job_of_higher_priority_displaces_others() -> None:
    """With preemption, an urgent job starts at once, and the displaced one runs from its beginning later."""
    jobs = [*stream("low", 2, lasts_s=100), *stream("high", 1, arrives_s=30, lasts_s=10, priority=5)]
    plain = Queue("default", order=Order.PRIORITY)
    for queue, begun, preempted in (
        (plain, 100, 0),
        (replace(plain, preemption=Preemption.PREEMPT_LOWER_PRIORITY), 30, 1),
    ):
        outcome = replay(jobs, 2, queue)
        assert outcome.starts_s is not None
        assert (outcome.starts_s[2], sharing(outcome).preempted) == (begun, preempted)
        assert outcome.counts.placed == 3
        assert sorted(outcome.starts_s[:2].tolist()) == ([0, 40] if preempted else [0, 0])


def test_a_job_that_displaces_delays_no_reservation() -> None:
    """A job behind one with a reservation displaces others only if it ends in time."""
    running = [*stream("low", 1, lasts_s=100), *stream("high", 1, lasts_s=100, priority=9)]
    wide = job("wide", gpus=1, replicas=2, gang=True, arrives_s=10, expected_duration_s=50, priority=9)
    queue = Queue("default", order=Order.PRIORITY, preemption=Preemption.PREEMPT_LOWER_PRIORITY)
    for lasts_s, starts_s in ((80, [0, 100, 20]), (81, [0, 100, 150])):
        outcome = replay([*running, wide, *stream("late", 1, arrives_s=20, lasts_s=lasts_s, priority=5)], 2, queue)
        assert outcome.starts_s is not None
        assert outcome.starts_s[1:].tolist() == starts_s


def test_a_displaced_job_that_goes_first_waits_again() -> None:
    """In the order of arrival, a displaced job is before the one that displaced it. Both run in the end."""
    jobs = [*stream("low", 1, lasts_s=100), *stream("high", 1, arrives_s=30, lasts_s=10, priority=5)]
    outcome = replay(jobs, 1, Queue("default", order=Order.FIFO, preemption=Preemption.PREEMPT_LOWER_PRIORITY))
    assert outcome.starts_s is not None
    assert (outcome.starts_s.tolist(), sharing(outcome).preempted) == ([40, 30], 1)


@pytest.mark.parametrize(
    ("demands", "expected"),
    [
        ({"x": 40, "y": 0}, {"x": 32, "y": 0}),
        ({"x": 10, "y": 8}, {"x": 10, "y": 8}),
        ({"x": 40, "y": 40}, {"x": 16 + 8 * 2 / 3, "y": 8 + 8 / 3}),
        ({"x": 40, "y": 40, "z": 40}, {"x": 16 + 8 * 2 / 3, "y": 8 + 8 / 3, "z": 8}),
    ],
)
def test_fair_amounts_are_those_of_the_documentation(demands: Mapping[str, int], expected: Mapping[str, float]) -> None:
    """Guarantees go first, then the rest is divided by weight, up to the limit of the parent."""
    queues = [
        Queue("lab", limit={"gpus": 32}, weight=4),
        Queue("x", parent="lab", weight=2, guarantee={"gpus": 16}),
        Queue("y", parent="lab", guarantee={"gpus": 8}),
        Queue("z"),
    ]
    tree = QueueTree(queues, {"default": {"gpus": 40}})
    lanes = {(name, "default"): amount for name, amount in demands.items()}
    fair = fair_amounts(tree, children_of(queues), lanes, "gpus")
    assert {name: fair[name, "default"] for name in demands} == pytest.approx(expected)


def of_models(models: Sequence[str], gpus: int) -> Fleet:
    """Return nodes of eight equal GPUs, as many of each model."""
    nodes = [node(*[gpu(model=model) for _ in range(8)]) for model in models for _ in range(gpus // 8)]
    return fleet(cluster(*nodes))


def test_queues_leave_models_to_those_that_need_them() -> None:
    """A queue that could use all models leaves each to the queue that needs it, as the control loop does."""
    models = [f"model-{at}" for at in range(6)]
    jobs = stream("any", 60, queue="any")
    for model in models:
        jobs += stream(model, 10, queue=model, models={model})
    queues = (Queue("any", weight=2), *map(Queue, models))
    discipline = Discipline(queues=queues)
    outcome = replay_with_departures(of_models(models, 8), jobs, lambda: make_policy("bestfit"), discipline=discipline)
    assert outcome.starts_s is not None
    first = Counter(each.queue for each, starts_s in zip(jobs, outcome.starts_s, strict=True) if not starts_s)
    assert first == {"any": 12, **dict.fromkeys(models, 6)}


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 4, 6))])
def test_queues_that_need_one_model_get_their_shares(seed: int) -> None:
    """In a tree, the mean shares of a saturated replay are those of a linear programme, within 3 %."""
    random, models, gpus = Random(seed), ("A100", "H100", "L4"), 128
    queues, needs, entitled = [Queue("none")], dict[str, str](), {"none": 0.0}
    while min(entitled.values()) < 40:
        queues = [replace(each, guarantee={}) for each in random_tree(random, 3, 3 * gpus, limits=False)]
        leaves = [each.name for each in queues if each.name not in children_of(queues)]
        needs = {leaf: random.choice(("", *models)) for leaf in leaves}
        usable = {leaf: model for leaf, model in needs.items() if model}
        optimum = Entitlements(queues, dict.fromkeys(models, gpus), dict.fromkeys(models, 1.0), usable)
        entitled = {leaf: optimum.gpus(leaf) for leaf in leaves}
    jobs: list[Job] = []
    for leaf, model in needs.items():
        of = {"models": {model}} if model else {}
        lasts_s = [random.randrange(130, 250) for _ in range(int(6 * entitled[leaf]))]
        jobs += [job(f"{leaf}-{at}", gpus=1, queue=leaf, expected_duration_s=s, **of) for at, s in enumerate(lasts_s)]
    discipline = Discipline(queues=tuple(queues))
    where = of_models(models, gpus)
    outcome = replay_with_departures(where, jobs, lambda: make_policy("bestfit"), discipline=discipline)
    assert outcome.starts_s is not None
    seen, begin_s, end_s = defaultdict[str, float](float), 200, 600
    for each, starts_s in zip(jobs, outcome.starts_s.tolist(), strict=True):
        ends_s = starts_s + (each.expected_duration_s or 0)
        seen[each.queue] += max(0, min(ends_s, end_s) - max(starts_s, begin_s)) / (end_s - begin_s)
    assert seen == pytest.approx(entitled, rel=0.03)


BY_PRIORITY = Queue("default", order=Order.PRIORITY, preemption=Preemption.PREEMPT_LOWER_PRIORITY, grow_cooldown_s=60)


def elastic(name: str, most: int, lasts_s: int, **fields: object) -> Job:
    """Return an elastic job of single GPUs, which runs for a time with its minimum."""
    given = {"gpus": 1, "expected_duration_s": lasts_s, **fields}
    return replace(job(name, **given), max_replicas=most)


def starts_of(outcome: Outcome) -> list[int]:
    """Return the start of each job in the order of arrival."""
    assert outcome.starts_s is not None
    return [*map(int, outcome.starts_s)]


def test_an_elastic_job_grows_into_free_gpus_and_shares_its_work() -> None:
    """With four times as many replicas it ends after a quarter of the time.

    A job that comes meanwhile gets a lent replica back at once, and waits for the end where the queue keeps them.
    """
    keeps = Queue("default", elastic=Elastic.KEEP)
    late = stream("late", 1, arrives_s=10)
    assert starts_of(replay([elastic("e", 8, 100), *late], 4, keeps)) == [0, 25]
    assert starts_of(replay([elastic("e", 8, 100), *late], 4)) == [0, 10]
    assert starts_of(replay([elastic("e", 2, 100), *late], 4, keeps)) == [0, 10]
    assert starts_of(replay([elastic("e", 2, 101), *stream("late", 3, arrives_s=10)], 4, keeps)) == [0, 10, 10, 20]
    assert starts_of(replay([elastic("e", 2, 101), *stream("late", 3, arrives_s=10)], 4)) == [0, 10, 10, 10]


def test_an_elastic_job_shrinks_before_another_is_displaced() -> None:
    """It gives up as many replicas as needed, then others end; after the cool-down it grows again."""
    rigid, job = stream("rigid", 1, lasts_s=1000), elastic("e", 3, 1000)
    urgent = [*stream("urgent", 2, arrives_s=10, lasts_s=20, priority=5)]
    outcome = replay([*rigid, job, *urgent], 4, BY_PRIORITY)
    assert (starts_of(outcome), sharing(outcome).preempted) == ([0, 0, 10, 10], 0)
    # 30 of 1,000 replica-seconds until 10, 60 alone until 70, and then three replicas again, for 910 / 3 seconds.
    assert outcome.waits is not None
    assert outcome.curve.time_s is not None
    assert [int(each) for each in outcome.curve.time_s] == [0, 10, 30, 70, 373, 1000]
    assert outcome.curve.allocated_pct.tolist() == [100, 100, 50, 100, 25, 0]
    more = replay([*rigid, job, *urgent, *stream("last", 1, arrives_s=11, lasts_s=20, priority=5)], 4, BY_PRIORITY)
    assert (starts_of(more)[2:], sharing(more).preempted) == ([10, 10, 11], 1)


@pytest.mark.parametrize(("backfill", "most"), [("none", 1), ("easy", 1), ("conservative", 1), ("greedy", 3)])
def test_an_elastic_job_grows_into_no_reservation(backfill: str, most: int) -> None:
    """It leaves free what the first waiting job needs, unless the queue has no reservations."""
    queue = Queue("default", order=Order.FIFO, backfill=Backfill(backfill))
    wide = job("wide", gpus=1, replicas=4, gang=True, arrives_s=1, expected_duration_s=10)
    outcome = replay([*stream("short", 3, lasts_s=20), elastic("e", 3, 200), wide], 4, queue)
    # From 20 on, three GPUs are free.
    assert starts_of(outcome)[-1] == (200 if most == 1 else 20 + 180 // 3)


def test_limits_bound_elastic_jobs() -> None:
    """A job grows up to the limit of its queue, and another queue takes back what it is guaranteed by a shrink."""
    queues = Queue("x", limit={"gpus": 3000}), Queue("y", guarantee={"gpus": 2000})
    jobs = [elastic("e", 8, 300, queue="x"), *stream("y", 2, arrives_s=10, queue="y", lasts_s=1000)]
    outcome = replay(jobs, 4, *queues)
    assert (starts_of(outcome), sharing(outcome).preempted) == ([0, 10, 10], 0)
    assert outcome.curve.time_s is not None
    # Three replicas until 10, and two after that: 270 / 2. At 70, the job could grow again.
    assert [int(each) for each in outcome.curve.time_s][:4] == [0, 10, 70, 145]


@given(st.integers(0, 10_000))
def test_elastic_jobs_do_all_their_work(seed: int) -> None:
    """Whatever grows, shrinks and is displaced, all jobs run, no GPU has two jobs, and all are free at the end."""
    random = Random(seed)
    queues = [
        replace(BY_PRIORITY, name="x", backfill=random.choice([*Backfill]), grow_cooldown_s=random.choice([0, 30])),
        Queue("y", guarantee={"gpus": 2000}, reclaim=random.choice([*Reclaim]), backfill=random.choice([*Backfill])),
    ]
    jobs = []
    for at in range(random.randint(1, 12)):
        fields = {"priority": random.randrange(3), "queue": random.choice("xy"), "arrives_s": random.randrange(100)}
        replicas, lasts_s = random.randint(1, 3), random.randrange(200)
        own = job(f"j{at}", gpus=1, replicas=replicas, gang=True, expected_duration_s=lasts_s, **fields)
        jobs.append(replace(own, max_replicas=random.choice([0, replicas + 1, 8])))
    outcome = replay(jobs, 4, *queues)
    assert outcome.counts.placed == len(jobs)
    assert outcome.curve.allocated_pct.max() <= 100
    assert outcome.curve.allocated_pct[-1] == 0


@pytest.mark.parametrize("seed", range(2))
def test_elastic_jobs_start_as_in_the_control_loop(seed: int) -> None:
    """A replay has the starts that a control plane has on simulated clusters, with some seconds for its cycles."""
    random, arrives_s, jobs, specs = Random(seed), 0, list[Job](), list[JobSpec]()
    for at in range(20):
        least, most, lasts_s = random.choice([1, 1, 2]), random.choice([0, 4, 8]), random.randrange(100, 2000)
        arrives_s += random.choice([100, 200, 400])
        one = job(f"job-{at}", gpus=1, replicas=least, gang=True, arrives_s=arrives_s, expected_duration_s=lasts_s)
        jobs.append(replace(one, max_replicas=most))
        rigid = JobSpec(one.name, one.demand, least, gang=True, expected_duration_s=lasts_s)
        specs.append(replace(rigid, replicas=most, min_replicas=least, max_replicas=most) if most else rigid)
    queue, parts = Queue("default", order=Order.FIFO, backfill=Backfill.GREEDY), [node(gpu()) for _ in range(6)]
    course = run(fleet(*parts), jobs, specs, queue)
    outcome = replay(jobs, len(parts), queue)
    assert course.resizes > 5
    assert starts_of(outcome) == pytest.approx(course.starts_s, abs=5)


@pytest.mark.parametrize("seed", range(6))
def test_jobs_in_a_tree_start_as_in_the_control_loop(seed: int) -> None:
    """Gangs in a tree, of any order and with reservations or none, have the starts of a control plane."""
    random, arrives_s, jobs, specs = Random(seed), 100, list[Job](), list[JobSpec]()
    backfills = Backfill.NONE, Backfill.GREEDY, Backfill.EASY  # plans of the loop are some tenths of a second old
    queues = [
        Queue("a", weight=2),
        Queue("a1", parent="a", order=random.choice([*Order]), guarantee=random.choice([{}, {"gpus": 2000}])),
        Queue("a2", parent="a"),
        Queue("b", limit=random.choice([{}, {"gpus": 4000}])),
    ]
    queues = [replace(each, backfill=random.choice(backfills), reclaim=Reclaim.NEVER) for each in queues]
    for at in range(24):
        arrives_s += random.choice([0, 0, 7, 13, 40, 100])
        wanted, lasts_s = random.choice([1, 1, 2, 3, 4]), random.choice([20, 50, 100, 333, 700])
        where, priority = random.choice(["a1", "a2", "b"]), random.randrange(3)
        fields = {"queue": where, "priority": priority, "arrives_s": arrives_s, "expected_duration_s": lasts_s}
        one = job(f"job-{at}", gpus=1, replicas=wanted, gang=True, **fields)
        jobs.append(one)
        submitted = JobSpec(one.name, one.demand, wanted, gang=True, priority=priority, queue=where)
        specs.append(replace(submitted, expected_duration_s=lasts_s))
    parts = [node(gpu()) for _ in range(6)]
    course = run(fleet(*parts), jobs, specs, *queues)
    assert starts_of(replay(jobs, len(parts), *queues)) == pytest.approx(course.starts_s, abs=5)


def test_a_policy_that_decides_all_jobs_at_once_has_no_queues() -> None:
    """The error names the policy."""
    with pytest.raises(RejectedError, match="'volcano-divided' decides all jobs at once"):
        replay_with_departures(
            fleet(node(gpu())),
            stream("a", 2),
            lambda: make_policy("volcano-divided"),
            discipline=Discipline(queues=(Queue("default"),)),
        )
