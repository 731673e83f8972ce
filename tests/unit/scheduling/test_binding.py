"""Carrying a plan out."""

from __future__ import annotations

from dataclasses import dataclass, field

from seaway.domain.placement import Placement
from seaway.scheduling.binding import carry_out
from seaway.scheduling.engine import decide
from seaway.scheduling.framework import PASS, Cycle, Status, Verdict
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import make_profile
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.builders import fleet, gpu, job, node
from tests.fakes.node_admission import Kubelets

FLEET = fleet(node(gpu(), name="one"), node(gpu(), name="two"))
JOBS = [job(name=f"job-{number}", gpus=1, gpu_memory_mib=30_000, gpu_milli=400) for number in range(4)]


@dataclass
class Binder:
    """Carries out what it is for, and keeps a diary of every call."""

    name: str = "Binder"
    answers: dict[str, Status] = field(default_factory=dict)
    diary: list[str] = field(default_factory=list)

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Note it."""
        self.diary.append(f"reserve {placement.job}")
        return PASS

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Note it."""
        self.diary.append(f"unreserve {placement.job}")

    def pre_bind(self, placement: Placement) -> Status:
        """Note it, and answer as told."""
        self.diary.append(f"pre_bind {placement.job}")
        return self.answers.get(f"pre_bind {placement.job}", PASS)

    def bind(self, placement: Placement) -> Status:
        """Note it, and answer as told."""
        self.diary.append(f"bind {placement.job}")
        return self.answers.get(placement.job, PASS)

    def post_bind(self, placement: Placement) -> None:
        """Note it."""
        self.diary.append(f"post_bind {placement.job}")


def planned(snapshot: Snapshot, profile: Profile) -> Plan:
    """Decide all jobs."""
    return decide(snapshot, JobQueue(snapshot, JOBS), profile)


def test_points_are_called_in_order() -> None:
    """Every placement goes through PreBind, Bind and PostBind, one after the other."""
    binder = Binder()
    profile = make_profile("bestfit").joined_by(binder)
    plan = planned(Snapshot(FLEET), profile)
    binder.diary.clear()
    assert all(each.status.passes for each in carry_out(plan, profile))
    assert binder.diary[:3] == ["pre_bind job-0", "bind job-0", "post_bind job-0"]
    assert len(binder.diary) == 3 * len(JOBS)


def test_a_refused_placement_is_given_back() -> None:
    """When a binding fails, Reserve plugins are told and the fleet is as if it had not been placed."""
    refused = Status(Verdict.REFUSE, "the cluster said no")
    binder = Binder(answers={"job-1": refused, "pre_bind job-2": refused})
    profile = make_profile("bestfit").joined_by(binder)
    snapshot, without = Snapshot(FLEET), Snapshot(FLEET)
    plan = planned(snapshot, profile)
    results = carry_out(plan, profile)
    assert [each.status.passes for each in results] == [True, False, False, True]
    assert [line for line in binder.diary if line.startswith("unreserve")] == ["unreserve job-1", "unreserve job-2"]
    assert "bind job-2" not in binder.diary
    snapshot.release(plan.lines, plan.slices, plan.rows_of(0))
    snapshot.release(plan.lines, plan.slices, plan.rows_of(3))
    assert (snapshot.arrays.devices == without.arrays.devices).all()
    assert (snapshot.arrays.nodes == without.arrays.nodes).all()


def test_a_binder_may_leave_a_placement_to_the_next() -> None:
    """The first Bind plugin that does not answer WAIT has carried the placement out."""
    first = Binder("First", answers={each.name: Status(Verdict.WAIT, "not mine") for each in JOBS})
    second = Binder("Second")
    profile = make_profile("bestfit").joined_by(first, second)
    carry_out(planned(Snapshot(FLEET), profile), profile)
    assert [line for line in second.diary if line.startswith("bind")] == [f"bind {each.name}" for each in JOBS]


def test_without_a_binder_nothing_is_carried_out() -> None:
    """A profile that cannot carry anything out says so of every placement, and holds nothing."""
    profile = make_profile("bestfit")
    plan = planned(Snapshot(FLEET), profile)
    results = carry_out(plan, profile)
    assert {each.status.reason for each in results} == {"no plugin carries this placement out"}
    assert not plan.placed.any()


def test_simulated_nodes_admit_a_plan_and_no_more() -> None:
    """Nodes that keep their own books admit all of a plan, and refuse it when it comes twice."""
    kubelets = Kubelets(FLEET, JOBS)
    profile = make_profile("bestfit").joined_by(kubelets)
    plan = planned(Snapshot(FLEET), profile)
    assert all(each.status.passes for each in carry_out(plan, profile))
    assert kubelets.running.total() == len(JOBS)
    again = carry_out(planned(Snapshot(FLEET), profile), profile)
    assert not any(each.status.passes for each in again)
    assert {each.status.reason.split(" has ")[1] for each in again} == {"too little memory or cores"}
