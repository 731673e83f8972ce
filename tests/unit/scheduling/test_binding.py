"""The binding cycle of a job."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from seaway.domain.placement import Placement
from seaway.scheduling.allocations import allocations_of
from seaway.scheduling.binding import bind, post_bind, unreserve
from seaway.scheduling.engine import decide
from seaway.scheduling.framework import PASS, Cycle, Status, Verdict
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import make_profile
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import fleet, gpu, job, node
from tests.fakes.node_admission import Kubelets

FLEET = fleet(node(gpu(), name="one"), node(gpu(), name="two"))
JOBS = [job(name=f"job-{number}", gpus=1, gpu_memory_mib=30_000, gpu_milli=400) for number in range(4)]
REFUSED = Status(Verdict.REJECT, "the cluster said no")


@dataclass
class Binder:
    """A plugin that records every call and returns the configured status."""

    name: str = "Binder"
    answers: dict[str, Status] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Record the call."""
        self.calls.append(f"reserve {placement.job}")
        return PASS

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Record the call."""
        self.calls.append(f"unreserve {placement.job}")

    def pre_bind(self, placement: Placement) -> Status:
        """Record the call."""
        self.calls.append(f"pre_bind {placement.job}")
        return self.answers.get(f"pre_bind {placement.job}", PASS)

    def bind(self, placement: Placement) -> Status:
        """Record the call."""
        self.calls.append(f"bind {placement.job}")
        return self.answers.get(placement.job, PASS)

    def post_bind(self, placement: Placement) -> None:
        """Record the call."""
        self.calls.append(f"post_bind {placement.job}")


class Broken(Binder):
    """A plugin that fails at every call of the binding cycle."""

    def pre_bind(self, placement: Placement) -> Status:
        """Fail."""
        raise RuntimeError("no connection")

    def post_bind(self, placement: Placement) -> None:
        """Fail."""
        raise RuntimeError("no connection")

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Fail."""
        raise RuntimeError("no connection")


def planned(snapshot: Snapshot, profile: Profile) -> Plan:
    """Plan all jobs."""
    return decide(snapshot, JobQueue(snapshot, JOBS), profile)


def placements(plan: Plan, number: int) -> list[Placement]:
    """Return the placements of a job."""
    return [plan.placement(int(row)) for row in plan.rows_of(number)]


def test_pre_bind_runs_before_bind() -> None:
    """Every placement goes through PreBind, then Bind; PostBind is called separately."""
    binder = Binder()
    profile = make_profile("bestfit").with_plugins(binder)
    plan = planned(Snapshot(FLEET), profile)
    binder.calls.clear()
    assert bind(profile, placements(plan, 0)) is PASS
    post_bind(profile, placements(plan, 0))
    assert binder.calls == ["pre_bind job-0", "bind job-0", "post_bind job-0"]


def test_rejection_ends_binding_cycle_and_resources_can_be_released() -> None:
    """After a rejection no other plugin is called, and a release restores the fleet."""
    binder = Binder(answers={"job-1": REFUSED, "pre_bind job-2": REFUSED})
    profile = make_profile("bestfit").with_plugins(binder)
    snapshot, without = Snapshot(FLEET), Snapshot(FLEET)
    plan = planned(snapshot, profile)
    assert [bind(profile, placements(plan, number)) for number in range(4)] == [PASS, REFUSED, REFUSED, PASS]
    assert "bind job-2" not in binder.calls
    given_back = [placements(plan, number) for number in range(4)]
    for number, booking in enumerate(allocations_of(plan)):
        booking.release(snapshot)
        unreserve(profile, snapshot, JOBS[number], given_back[number])
    assert [line for line in binder.calls if line.startswith("unreserve")] == [f"unreserve {job.name}" for job in JOBS]
    assert np.array_equal(snapshot.arrays.devices, without.arrays.devices)
    assert np.array_equal(snapshot.arrays.nodes, without.arrays.nodes)


def test_bind_plugin_may_skip_a_placement() -> None:
    """The first Bind plugin that does not return WAIT binds the placement."""
    first = Binder("First", answers={each.name: Status(Verdict.WAIT, "not mine") for each in JOBS})
    second, third = Binder("Second"), Binder("Third")
    profile = make_profile("bestfit").with_plugins(first, second, third)
    plan = planned(Snapshot(FLEET), profile)
    assert all(bind(profile, placements(plan, number)).passes for number in range(4))
    assert [line for line in second.calls if line.startswith("bind")] == [f"bind {each.name}" for each in JOBS]
    assert not [line for line in third.calls if line.startswith("bind")]


def test_exception_counts_as_rejection(caplog: pytest.LogCaptureFixture) -> None:
    """A plugin that raises rejects the binding with its name and its error; other points only log."""
    profile = make_profile("bestfit").with_plugins(Broken())
    snapshot = Snapshot(FLEET)
    plan = planned(snapshot, profile)
    assert bind(profile, placements(plan, 0)) == Status(Verdict.REJECT, "plugin Binder failed: no connection")
    post_bind(profile, placements(plan, 0))
    unreserve(profile, snapshot, JOBS[0], placements(plan, 0))
    assert len(caplog.records) == 3


def test_profile_without_bind_plugins_binds_nothing() -> None:
    """The profile has no PreBind and Bind plugins."""
    profile = make_profile("bestfit")
    assert not profile.binds
    assert bind(profile, placements(planned(Snapshot(FLEET), profile), 0)) is PASS


def test_simulated_nodes_admit_a_plan_once() -> None:
    """Nodes that count allocations admit all of a plan, and reject its duplicate."""
    kubelets = Kubelets(FLEET, JOBS)
    profile = make_profile("bestfit").with_plugins(kubelets)
    plan = planned(Snapshot(FLEET), profile)
    assert all(bind(profile, placements(plan, number)).passes for number in range(4))
    assert kubelets.running.total() == len(JOBS)
    again = [bind(profile, placements(plan, number)) for number in range(4)]
    assert not any(each.passes for each in again)
    assert {each.reason.split(" has ")[1] for each in again} == {"too little memory or cores"}
