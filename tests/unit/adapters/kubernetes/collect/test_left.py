"""What is left in Karmada's control plane only is told by its member, but not what is on its way there."""

from __future__ import annotations

from seaway.adapters.kubernetes.collect.owned import OwnedSink, OwnerIndex
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.karmada import LeftoverTracker
from seaway.domain.deployment import WorkloadPhase
from tests.unit.adapters.kubernetes.collect.test_owned import JOBS, POLICIES, item
from tests.unit.adapters.kubernetes.collect.test_view import JOB, Timers, copy, timers, view

__all__ = ["timers", "view"]  # fixtures


def told(view: ClusterView) -> list[tuple[str, int, WorkloadPhase]]:
    """Return what a member tells of copies."""
    return [(each.job_id, each.attempt, each.phase) for each in view.changes("", 0).workloads]


def test_what_stays_without_a_copy_is_left(view: ClusterView, timers: Timers) -> None:
    """A look that finds it the first time may be before its member has it."""
    owned = OwnerIndex("seaway", lambda _: None)
    policies, left = OwnedSink(owned, POLICIES), LeftoverTracker(owned)
    policies.put(item("sw"))
    before = view.changes("", 0).cursor
    left.look({"alpha": view})
    assert not timers.due
    assert not told(view)
    left.look({"alpha": view})
    timers.pass_by()
    assert view.changes(before, 0).complete, "who asks by a cursor is told of everything"
    assert told(view) == [(JOB, 1, WorkloadPhase.GONE)]
    left.look({"alpha": view})
    assert not timers.due, "once is enough"
    policies.drop(item("sw"))
    left.look({"alpha": view})
    assert not told(view)


def test_what_has_its_workload_is_on_its_way(view: ClusterView, timers: Timers) -> None:
    """Karmada may take long until a member has it: that is no reason to say that it is gone, and to make it again."""
    owned = OwnerIndex("seaway", lambda _: None)
    policies, jobs, left = OwnedSink(owned, POLICIES), OwnedSink(owned, JOBS, runs=True), LeftoverTracker(owned)
    policies.put(item("sw"))
    jobs.put(item("sw"))
    left.look({"alpha": view})
    left.look({"alpha": view})
    assert not timers.due
    assert not told(view)


def test_what_a_member_has_or_that_is_for_another_is_not(view: ClusterView, timers: Timers) -> None:
    """Its own objects tell of it; and of a member that is not there no one can."""
    owned = OwnerIndex("seaway", lambda _: None)
    OwnedSink(owned, POLICIES).put(item("sw"))
    left = LeftoverTracker(owned)
    left.look({"beta": view})
    left.look({"beta": view})
    assert not told(view)
    view.put_pod(copy("n1"))
    left.look({"alpha": view})
    left.look({"alpha": view})
    assert told(view) == [(JOB, 1, WorkloadPhase.STARTING)]
    assert not timers.due
