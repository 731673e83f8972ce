"""Plugins may hold a job back that would fit, until it is overdue."""

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
    """Holds jobs back by name, before scores."""

    name = "Early"

    def __init__(self, *names: str) -> None:
        self._names = names

    def pre_score(self, cycle: Cycle) -> Status:
        """Hold back."""
        return WAITS if cycle.job.name in self._names else Status()


class Late:
    """Holds every job back, when it has its place."""

    name = "Late"

    def permit(self, cycle: Cycle, placement: Placement) -> Status:
        """Hold back."""
        return WAITS


def profile(*plugins: Plugin) -> Profile:
    """Make a profile of the rules of fit, best fit and some more."""
    every: tuple[Plugin, ...] = (*rules_of_fit(), BestFit(), *plugins)
    return Profile("tidal", tuple(map(WeightedPlugin, every)))


@pytest.mark.parametrize("plugin", [Early("one", "two"), Late()])
def test_who_is_held_back_holds_nothing_and_is_named_with_the_reason(plugin: Plugin) -> None:
    """A job that is held back takes nothing, and the plan says why; an overdue one is placed."""
    snapshot = Snapshot(fleet(node()))
    queue = JobQueue(snapshot, [job("one"), job("two")])
    plan = decide(snapshot, queue, profile(plugin), overdue={1})
    assert plan.jobs_placed.tolist() == [False, True]
    assert plan.deferred == {0: "waits for the tide"}
    free = snapshot.arrays.nodes.copy()
    snapshot.release(plan.decisions, plan.slices, plan.rows_of(0))
    assert (snapshot.arrays.nodes == free).all()


def test_who_fits_nowhere_is_not_held_back() -> None:
    """A job that no node can take is refused: no one holds it back."""
    snapshot = Snapshot(fleet(node(cpu_milli=1)))
    plan = decide(snapshot, JobQueue(snapshot, [job("one", cpu_milli=2)]), profile(Early("one")))
    assert not plan.jobs_placed[0]
    assert plan.deferred == {}


def test_an_explanation_names_places_and_why_they_are_not_taken() -> None:
    """Who is held back fits: its candidates are named, and what it waits for; nothing must be mended."""
    snapshot = Snapshot(fleet(node(name="n1")))
    reported = explain(snapshot, job("one"), profile(Early("one")))
    assert reported.fits
    assert reported.deferral_reason == "waits for the tide"
    assert reported.remedies == ()
    assert summary(reported).endswith("; waits for the tide")
