"""A member reports objects that remain only in Karmada, but not those on their way to it."""

from __future__ import annotations

from seaway.adapters.kubernetes.collect.owned import OwnedSink, OwnerIndex
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.karmada import LeftoverTracker
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.deployment import WorkloadPhase
from tests.unit.adapters.kubernetes.collect.test_owned import JOBS, POLICIES, item
from tests.unit.adapters.kubernetes.collect.test_view import JOB, Timers, copy, timers, view

__all__ = ["timers", "view"]  # fixtures


def reported(view: ClusterView) -> list[tuple[str, int, WorkloadPhase]]:
    """Return the workloads that a member reports."""
    return [(each.job_id, each.attempt, each.phase) for each in view.changes("", 0).workloads]


def test_what_stays_without_a_copy_is_left(view: ClusterView, timers: Timers) -> None:
    """At the first look the member may not have received it yet."""
    owned = OwnerIndex(Namespaces(), lambda _: None)
    policies, left = OwnedSink(owned, POLICIES), LeftoverTracker(owned)
    policies.put(item("sw"))
    before = view.changes("", 0).cursor
    left.look({"alpha": view})
    assert not timers.due
    assert not reported(view)
    left.look({"alpha": view})
    timers.pass_by()
    assert view.changes(before, 0).complete, "a request with an old cursor gets everything"
    assert reported(view) == [(JOB, 1, WorkloadPhase.GONE)]
    left.look({"alpha": view})
    assert not timers.due, "once is enough"
    policies.drop(item("sw"))
    left.look({"alpha": view})
    assert not reported(view)


def test_what_has_its_workload_is_on_its_way(view: ClusterView, timers: Timers) -> None:
    """Karmada may need long until a member has a workload: it is not reported as gone, which would re-create it."""
    owned = OwnerIndex(Namespaces(), lambda _: None)
    policies, jobs, left = OwnedSink(owned, POLICIES), OwnedSink(owned, JOBS, runs=True), LeftoverTracker(owned)
    policies.put(item("sw"))
    jobs.put(item("sw"))
    left.look({"alpha": view})
    left.look({"alpha": view})
    assert not timers.due
    assert not reported(view)


def test_what_a_member_has_or_that_is_for_another_is_not(view: ClusterView, timers: Timers) -> None:
    """The member's own objects report it; and an absent member cannot report anything."""
    owned = OwnerIndex(Namespaces(), lambda _: None)
    OwnedSink(owned, POLICIES).put(item("sw"))
    left = LeftoverTracker(owned)
    left.look({"beta": view})
    left.look({"beta": view})
    assert not reported(view)
    view.put_pod(copy("n1"))
    left.look({"alpha": view})
    left.look({"alpha": view})
    assert reported(view) == [(JOB, 1, WorkloadPhase.STARTING)]
    assert not timers.due
