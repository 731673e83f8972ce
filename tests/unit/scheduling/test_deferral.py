"""Plugins that defer a feasible job until it is overdue."""

from __future__ import annotations

import pytest

from seaway.domain.placement import Placement
from seaway.scheduling.engine import decide
from seaway.scheduling.explain import explain, summary
from seaway.scheduling.framework import Cycle, Plugin, Status, Verdict
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.policies.bestfit import BestFit
from seaway.scheduling.profile import Profile, WeightedPlugin
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import fleet, job, node

WAITS = Status(Verdict.WAIT, "waits for the tide")


class Early:
    """A plugin that defers jobs by name, before scores."""

    name = "Early"

    def __init__(self, *names: str) -> None:
        self._names = names

    def pre_score(self, cycle: Cycle) -> Status:
        """Defer."""
        return WAITS if cycle.job.name in self._names else Status()


class Late:
    """A plugin that defers every job after its placement."""

    name = "Late"

    def permit(self, cycle: Cycle, placement: Placement) -> Status:
        """Defer."""
        return WAITS


def profile(*plugins: Plugin) -> Profile:
    """Create a profile of the filters, best fit and some more."""
    every: tuple[Plugin, ...] = (*rules_of_fit(), BestFit(), *plugins)
    return Profile("tidal", tuple(map(WeightedPlugin, every)))


@pytest.mark.parametrize("plugin", [Early("one", "two"), Late()])
def test_deferred_job_reserves_nothing_and_has_a_reason(plugin: Plugin) -> None:
    """The plan lists the deferred job with its reason; an overdue one is placed."""
    snapshot = Snapshot(fleet(node()))
    queue = JobQueue(snapshot, [job("one"), job("two")])
    plan = decide(snapshot, queue, profile(plugin), overdue={1})
    assert plan.jobs_placed.tolist() == [False, True]
    assert plan.deferred == {0: "waits for the tide"}
    free = snapshot.arrays.nodes.copy()
    snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
    assert (snapshot.arrays.nodes == free).all()


def test_infeasible_job_is_not_deferred() -> None:
    """A job that fits no node is unschedulable, not deferred."""
    snapshot = Snapshot(fleet(node(cpu_milli=1)))
    plan = decide(snapshot, JobQueue(snapshot, [job("one", cpu_milli=2)]), profile(Early("one")))
    assert not plan.jobs_placed[0]
    assert plan.deferred == {}


def test_explanation_of_deferred_job_has_candidates_and_reason() -> None:
    """A deferred job fits: it has candidates and a reason, and needs no remedy."""
    snapshot = Snapshot(fleet(node(name="n1")))
    reported = explain(snapshot, job("one"), profile(Early("one")))
    assert reported.fits
    assert reported.deferral_reason == "waits for the tide"
    assert reported.remedies == ()
    assert summary(reported).endswith("; waits for the tide")
