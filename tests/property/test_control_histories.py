"""Invariants of a control plane under any events in it, its clusters and its database."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seaway.adapters.simulated.faults import NO_FAULTS, Faults
from seaway.application.changes import Change
from seaway.domain.errors import UnavailableError
from seaway.domain.job_spec import Standby, StandbyMode
from seaway.domain.network import NO_NEED, NetworkNeed
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.scaling import Metric, Trigger
from tests.property.control_world import BOUNDS, ELASTIC_SERVICE, CrashError, World

VERBS = ("cancel", "suspend", "resume", "delete", "reprioritize", "change", "failover", "scale")
STANDBYS = (None, None, None, Standby(), Standby(StandbyMode.COLD))
PROBLEMS = ("node", "device", "refuse", "accept", "vanish", "crash")
OUTAGES = ("cut", "leave", "join")
NS = 1_000_000_000

WHICH = st.integers(0, 99)
FIELDS = st.fixed_dictionaries(
    {
        "expected_duration_s": st.sampled_from([5, 20, 60, 200]),
        "priority": st.sampled_from([0, 0, 5, -3]),
        "retries": st.sampled_from([0, 2]),
        "time_limit_s": st.sampled_from([None, None, 40]),
        "tenant": st.sampled_from(["default", "other"]),
        "queue": st.sampled_from(["default", "default", "west", "spread"]),
        "standby": st.sampled_from(STANDBYS),
    }
)
COMMON = st.one_of(
    st.tuples(st.just("submit"), st.integers(1, 5), st.integers(0, 9), FIELDS),
    st.tuples(st.just("advance"), st.sampled_from([0.5, 5, 20, 40, 70])),
    st.tuples(st.just("step"), st.integers(1, 3)),
    st.tuples(st.just("ask"), st.sampled_from(VERBS), WHICH, st.integers(0, 9)),
    st.tuples(st.just("interrupt"), st.sampled_from(VERBS), WHICH, st.integers(0, 9)),
    st.tuples(st.just("trouble"), st.sampled_from(PROBLEMS), WHICH, st.sampled_from([10, 50, 300])),
    st.tuples(st.just("jump"), st.sampled_from([-86_400, -100, 100, 86_400])),
    st.tuples(st.just("lose_store"), st.just(30)),
    st.tuples(st.just("die"), st.integers(0, 3), st.booleans(), st.booleans()),
    st.tuples(st.just("restart")),
    st.tuples(st.just("cordon"), WHICH, st.booleans(), st.booleans()),
)
OUTAGE = st.tuples(st.just("trouble"), st.sampled_from(OUTAGES), WHICH, st.sampled_from([10, 50, 100, 300]))


def make_faults(seed: int, *, outages: bool) -> Faults:
    """Return rare faults of every kind."""
    return Faults(
        seed=seed,
        refused=0.05,
        slow=0.1,
        slow_s=30,
        start_fails=0.05,
        run_fails=0.1,
        vanishes=0.1,
        request_lost=0.1,
        answer_lost=0.1,
        node_failures_per_h=2,
        device_failures_per_h=2,
        repair_s=60,
        outages_per_h=4 if outages else 0,
        outage_s=40,
    )


def live_through(world: World, step: tuple[object, ...]) -> None:
    """Apply one event."""
    what, *given = step
    if what == "submit":
        count, kind, fields = given
        world.submit(count, kind, **fields)  # type: ignore[arg-type]  # drawn above
    elif what == "jump":
        world.clock.jump(given[0] * NS)  # type: ignore[operator]
    elif what == "die":
        commits, after, crash = given
        error = CrashError() if crash else UnavailableError("the answer was lost")
        world.store.die(commits, after=bool(after), error=error)  # type: ignore[arg-type]
    elif what == "cordon":
        world.cordon(given[0], whole=bool(given[1]), drain=bool(given[2]))  # type: ignore[arg-type]
    else:
        getattr(world, str(what))(*given)


@given(st.lists(COMMON, min_size=10, max_size=40), st.booleans(), st.integers(0, 9))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_nothing_is_lost_or_doubled_while_clusters_answer(
    steps: list[tuple[object, ...]], reserve: bool, seed: int
) -> None:
    """No job is lost or runs twice, no device is over capacity, memory equals the store, and all jobs finish.

    That is valid for any actions, failures, crashes and outages; after them, every feasible job has run, and none of
    its objects is left.
    """
    world = World(make_faults(seed, outages=False) if seed else NO_FAULTS, reserve=reserve)
    for step in steps:
        live_through(world, step)
    world.end_well()


@given(st.lists(st.one_of(COMMON, OUTAGE), min_size=10, max_size=40), st.integers(0, 9))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_nothing_is_lost_or_doubled_when_clusters_are_unreachable(steps: list[tuple[object, ...]], seed: int) -> None:
    """A job has one live attempt at most, also when clusters are unreachable, leave and return.

    Only workloads that were given up with their cluster run beside it, until the cluster returns.
    """
    world = World(make_faults(seed, outages=True) if seed else NO_FAULTS)
    world.cuts = True
    for step in steps:
        live_through(world, step)
    world.end_well()


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_no_resize_breaks_a_quota_a_minimum_or_a_network_bound(seed: int) -> None:
    """Elastic jobs grow, shrink and are scaled within all limits, while other jobs come and displace them.

    Nodes and devices fail, and nodes are drained; jobs with their minimum elsewhere run on. `World.check` compares
    every attempt with its minimum, its bounds, and the limits of queues, tenants and users after each step.
    """
    random = Random(seed)
    world = World(make_faults(seed, outages=False) if seed % 3 else NO_FAULTS, reserve=bool(seed % 2))
    queues = [replace(each, grow_cooldown_s=0) for each in world.store.queues()]
    world.plane.writer.commit([Change(put=[*queues])])
    world.submit(3, 8, expected_duration_s=200)
    world.advance(30)
    world.trouble("node", 0, 20)
    world.advance(30)
    for _ in range(2):  # drain a node, and end that
        world.cordon(1, whole=False, drain=True)
        world.advance(10)
    world.ask("scale", 0, 0)
    for _ in range(50):
        step = draw(random, outages=False)
        if step[0] == "submit" and random.random() < 0.7:
            near = random.choice([NO_NEED, NetworkNeed(max_latency_ns=1_000_000)])
            fields = {**step[3], "standby": None, "between_replicas": near}  # type: ignore[dict-item]  # drawn there
            step = ("submit", 1, random.choice([*BOUNDS]), fields)
        if step[0] == "advance" and random.random() < 0.3:
            step = ("ask", "scale", random.randrange(100), random.randrange(10))
        if step[0] == "step":
            losses = [("trouble", what, random.randrange(100), 50) for what in ("node", "device")]
            step = random.choice([*losses, ("cordon", random.randrange(100), False, True)])
        live_through(world, step)
    world.end_well()
    reasons = [each.reason for each in world.store.events(0, 10_000) if each.kind == "resized"]
    wanted = "grows from", "shrinks from", " failed", " is drained"
    assert all(any(what in each for each in reasons) for what in wanted), reasons


@pytest.mark.parametrize("seed", [5, 22])
def test_both_copies_of_an_elastic_service_keep_their_minimum_in_their_clusters(seed: int) -> None:
    """They grow, shrink and are scaled while faults and users let them switch; no other invariant breaks.

    `World.check` compares both copies after each step: their clusters, their bounds, and the number that they ask for.
    """
    random = Random(seed)
    outages = seed % 2 == 0
    world = World(make_faults(seed, outages=outages), reserve=bool(seed % 4))
    world.cuts = outages
    queues = [replace(each, grow_cooldown_s=0) for each in world.store.queues()]
    world.plane.writer.commit([Change(put=[*queues])])
    for mode in StandbyMode:
        world.submit(1, ELASTIC_SERVICE, expected_duration_s=300, standby=Standby(mode))
    world.advance(60)
    for _ in range(80):
        step = draw(random, outages=outages)
        if step[0] == "submit" and random.random() < 0.5:
            fields = {**step[3], "standby": Standby(random.choice([*StandbyMode]))}  # type: ignore[dict-item]
            step = ("submit", 1, ELASTIC_SERVICE, fields)
        if step[0] in ("ask", "interrupt") and random.random() < 0.7:
            verb = random.choice(["scale", "scale", "failover", "change"])
            step = (step[0], verb, random.randrange(100), random.randrange(10))
        live_through(world, step)
    world.end_well()
    events = Counter(each.kind for each in world.store.events(0, 10_000))
    assert events["resized"]
    assert events["failover"]


def test_each_answer_about_a_job_has_the_same_reason() -> None:
    """Lists, the head of a job, explanations and the page of its queue agree at every step, and stored reasons follow.

    Queues have limits, order and preemption; nodes are cordoned, clusters are lost, and some capacity is reserved.
    """
    codes = Counter[str]()
    for seed in (1, 4, 7):
        random = Random(seed)
        world = World(make_faults(seed, outages=True) if seed % 2 else NO_FAULTS, reserve=bool(seed % 3))
        world.cuts = True
        for kind in range(8):
            world.submit(2, kind, expected_duration_s=60, queue=random.choice(["default", "west", "spread"]))
        for at in range(50):
            if at % 15 == 5:
                begin_ns, holder = world.clock.now_ns() + 20 * NS, random.choice(["", "other"])
                period = begin_ns, begin_ns + 60 * NS
                world.reserve(AdvanceReservation(f"r{at}", *period, holder, clusters=frozenset({"beta"})))
            live_through(world, draw(random, outages=True))
            codes.update(world.check_reasons())
        world.advance(30)
        world.check_stored_reasons()
    kinds = {"backoff", "queue_limit", "user_quota", "no_node_fits", "reserved", "behind_earlier_jobs"}
    assert kinds <= {*codes}, codes


TRIGGERS = (
    (Trigger(Metric.REQUESTS, 10_000, shrink_after_s=20),),
    (Trigger(start="*/4 * * * *", end="2-59/4 * * * *", replicas=4, shrink_after_s=0),),
    (Trigger(Metric.UTILIZATION, 500, shrink_after_s=40), Trigger(Metric.QUEUE_DEPTH, 1000, shrink_after_s=10)),
    (
        Trigger(Metric.REQUESTS, 10_000, shrink_after_s=0),
        Trigger(Metric.UTILIZATION, 500, shrink_after_s=0),
        Trigger(start="1-59/4 * * * *", end="3-59/4 * * * *", replicas=2, shrink_after_s=30),
    ),
)


@pytest.mark.parametrize("seed", [2, 6])
def test_triggers_scale_both_copies_of_a_service(seed: int) -> None:
    """They grow, shrink, end at zero and start again by metrics and windows, while faults and users let them switch.

    `World.check` compares both copies after each step: they have the same number, and hold nothing at zero.
    """
    random = Random(seed)
    outages = seed % 2 == 0
    world = World(make_faults(seed, outages=outages) if seed % 3 else NO_FAULTS, reserve=bool(seed % 4))
    world.cuts = outages
    queues = [replace(each, grow_cooldown_s=0) for each in world.store.queues()]
    world.plane.writer.commit([Change(put=[*queues])])
    for scale, standby in product(TRIGGERS[:2], (None, Standby(), Standby(StandbyMode.COLD))):
        least = int(standby is None)
        world.submit(
            1, ELASTIC_SERVICE, expected_duration_s=900, standby=standby, scale=scale, replicas=1, min_replicas=least
        )
    world.advance(60)
    for _ in range(80):
        step = draw(random, outages=outages)
        if step[0] == "submit" and random.random() < 0.5:
            standby, least = random.choice(STANDBYS), random.choice([0, 1, 2])
            scale = random.choice(TRIGGERS)
            least = least or int(not any(each.wakes for each in scale))
            fields: dict[str, object] = {**step[3]}  # type: ignore[dict-item]  # drawn there
            fields |= {"standby": standby, "scale": scale, "min_replicas": least, "replicas": max(least, 1)}
            fields["expected_duration_s"] = 600
            step = ("submit", 1, ELASTIC_SERVICE, fields)
        if step[0] in ("ask", "interrupt") and random.random() < 0.5:
            verb = random.choice(["scale", "failover", "suspend", "resume"])
            step = (step[0], verb, random.randrange(100), random.randrange(10))
        if step[0] in ("step", "trouble") and random.random() < 0.5:
            step = ("measure", random.choice([-1.0, 0.0, 0.0, 5.0, 18.0, 80.0]), random.choice([0.0, 0.4, 0.9]))
        live_through(world, step)
    world.end_well()
    events = world.store.events(0, 10_000)
    assert any(each.kind == "resized" for each in events)
    assert any("scaled to zero" in each.reason for each in events)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_long_histories_succeed(seed: int) -> None:
    """The same is valid over many more steps, with a seed instead of a search."""
    random = Random(seed)
    outages = seed % 2 == 0
    world = World(make_faults(seed, outages=outages) if seed % 3 else NO_FAULTS, reserve=bool(seed % 4))
    world.cuts = outages
    for _ in range(120):
        live_through(world, draw(random, outages=outages))
    world.end_well()


@pytest.mark.parametrize("seed", [4016, 4031])
def test_no_job_waits_while_its_last_attempt_is_removed(seed: int) -> None:
    """That is valid also for a service whose standby changes with it. The seeds found it otherwise."""
    random = Random(seed)
    world = World(make_faults(seed, outages=True) if seed % 3 else NO_FAULTS, reserve=bool(seed % 4))
    world.cuts = True
    for _ in range(60):
        live_through(world, draw(random, outages=True))
    world.end_well()


def draw(random: Random, *, outages: bool) -> tuple[object, ...]:
    """Generate the next event; time passes most often."""
    fields = {
        "expected_duration_s": random.choice([5, 20, 60, 200]),
        "priority": random.choice([0, 0, 5, -3]),
        "retries": random.choice([0, 2]),
        "time_limit_s": random.choice([None, None, 40]),
        "tenant": random.choice(["default", "other"]),
        "queue": random.choice(["default", "default", "west", "spread"]),
        "standby": random.choice(STANDBYS),
    }
    which, verb = random.randrange(100), random.choice(VERBS)
    drawn: list[tuple[int, tuple[object, ...]]] = [
        (25, ("advance", random.choice([0.5, 5, 20, 40, 70]))),
        (10, ("submit", random.choice([1, 1, 2, 5]), random.randrange(10), fields)),
        (10, ("step", random.randint(1, 3))),
        (8, ("ask", verb, which, random.randrange(10))),
        (8, ("interrupt", verb, which, random.randrange(10))),
        (9, ("trouble", random.choice(PROBLEMS), which, random.choice([10, 50, 300]))),
        (3 if outages else 0, ("trouble", random.choice(OUTAGES), which, random.choice([10, 100, 300]))),
        (2, ("jump", random.choice([-86_400, -100, 100, 86_400]))),
        (2, ("lose_store", 30)),
        (4, ("die", random.randrange(4), random.random() < 0.5, random.random() < 0.5)),
        (3, ("restart",)),
        (2, ("cordon", which, random.random() < 0.3, random.random() < 0.5)),
    ]
    return random.choices([step for _, step in drawn], [weight for weight, _ in drawn])[0]
