"""Requests that the infeasibility cache skips would not fit: compared with trying all of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.changes import Change
from seaway.application.control.settings import ControlSettings
from seaway.domain.cluster import Fleet
from seaway.domain.job import Demand, DeviceRules, Job, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Pool, Tenant
from seaway.scheduling.engine import decide
from seaway.scheduling.infeasibility_cache import InfeasibilityCache, RequestedAmounts, dominates, requested_amounts
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.clocks import VirtualClock
from tests.fakes.control_plane import SmallControlPlane
from tests.property.control_world import world_fleet
from tests.property.strategies import fleets, jobs


@st.composite
def requests(draw: st.DrawFn) -> ResourceRequest:
    """Requests with few amounts, so that many of them include one another."""
    gpus = draw(st.sampled_from((0, 1, 1, 1, 2, 3)))
    cpu, memory = draw(st.sampled_from((0, 1_000, 5_000, 20_000))), draw(st.sampled_from((0, 4_000, 60_000)))
    if not gpus:
        return ResourceRequest(cpu, memory)
    size, percent = draw(st.sampled_from(((4_000, 0), (9_000, 0), (17_000, 0), (0, 0), (0, 20), (0, 50), (0, 100))))
    return ResourceRequest(cpu, memory, gpus, size, percent, draw(st.sampled_from((0, 200, 300, 600, 1_000))))


RULES = st.sampled_from((DeviceRules(), DeviceRules(), DeviceRules(same_numa=True), DeviceRules(exclusive=True)))


def fits(snapshot: Snapshot, name: str, requesting: Job) -> bool:
    """Try a job on a copy."""
    copy = snapshot.copy()
    return bool(decide(copy, JobQueue(copy, [requesting]), make_policy(name)).jobs_placed[0])


@settings(max_examples=settings().max_examples // 3)
@given(
    fleets(),
    jobs(),
    RULES,
    st.lists(requests(), min_size=2, max_size=12, unique=True),
    st.sampled_from(("bestfit", "fgd", "seaway", "random")),
)
def test_nothing_fits_that_includes_what_does_not(
    parts: Fleet, before: list[Job], rules: DeviceRules, asked: list[ResourceRequest], name: str
) -> None:
    """If one replica fits nowhere, no job with at least the same request fits, for any number of replicas."""
    snapshot = Snapshot(parts)
    decide(snapshot, JobQueue(snapshot, before), make_policy(name, PolicyOptions(mix=before)))
    demands = [Demand(each, rules) for each in asked]
    least = InfeasibilityCache()
    for demand in demands:
        if not fits(snapshot, name, Job("small", demand)):
            least.add("rules", requested_amounts(demand))
    for demand in demands:
        if least.is_infeasible("rules", requested_amounts(demand)):
            assert not fits(snapshot, name, Job("one", demand))
            assert not fits(snapshot, name, Job("gang", demand, 2, gang=True))
            assert not fits(snapshot, name, Job("several", demand, 3))


AMOUNTS = st.integers(0, 2)
ASKED = st.tuples(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS)


@given(st.lists(ASKED, max_size=20), st.lists(ASKED, max_size=20))
def test_the_least_say_what_all_say(noted: list[RequestedAmounts], asked: list[RequestedAmounts]) -> None:
    """The reduced cache answers as all recorded requests would, in any order, and separates rules."""
    least = InfeasibilityCache()
    for each in noted:
        least.add("rules", each)
    assert len(least) <= len(set(noted))
    for each in asked * 2:
        assert least.is_infeasible("rules", each) == any(dominates(each, known) for known in noted)
        assert not least.is_infeasible("others", each)
    least.clear()
    assert not any(least.is_infeasible("rules", each) for each in noted)


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    """Different jobs of some tenants and queues; some are short enough to use reserved resources."""
    return JobSpec(
        "work",
        Demand(draw(requests()), draw(RULES)),
        *draw(st.sampled_from(((1, False), (1, False), (1, False), (2, True), (3, False)))),
        priority=draw(st.sampled_from((0, 0, 3))),
        tenant=draw(st.sampled_from(("default", "other"))),
        queue=draw(st.sampled_from(("default", "default", "west", "fgd"))),
        expected_duration_s=draw(st.sampled_from((None, 10, 60, 600))),
    )


def plane(*, reserve: bool) -> SmallControlPlane:
    """Create a control plane over a small fleet."""
    clock = VirtualClock()
    clusters = SimulatedBackends(world_fleet(), clock, Options(waits=False))
    made = SmallControlPlane(
        clusters, clock=clock, settings=ControlSettings(batch_size=4, max_tried_per_cycle=8, reservations=reserve)
    )
    made.writer.commit(
        [
            Change(put=[Tenant("other"), Pool("west", frozenset({"alpha", "beta"}))]),
            Change(put=[Queue("west", pool="west"), Queue("fgd", policy="fgd")]),
        ]
    )
    return made


def fitting(made: SmallControlPlane) -> list[str]:
    """Try every pending job, one by one, on the fleet as each of them sees it; return those that fit."""
    live, scheduler, found = made.controller.live, made.controller.scheduler, []
    for entry in list(live.waiting.entries()):
        with scheduler.reservations.seen_by(entry):
            copy = live.fleet.snapshot.copy()
            plan = decide(copy, JobQueue(copy, [entry.job]), scheduler.profile(entry.queue))
        if plan.jobs_placed[0]:
            found.append(str(entry))
    return found


@settings(max_examples=settings().max_examples // 3)
@given(st.lists(st.lists(specs(), min_size=4, max_size=16), min_size=1, max_size=4), st.booleans())
def test_no_one_is_passed_over_who_would_fit(rounds: list[list[JobSpec]], reserve: bool) -> None:
    """After any submits and ends, no settled pending job would fit if it were tried, with reservations."""
    made = plane(reserve=reserve)
    for batch in rounds:
        made.submit(*batch)
        made.run(15, 5)
        assert not fitting(made)
