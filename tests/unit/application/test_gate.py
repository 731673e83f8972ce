"""A trained policy decides for a queue only after it was that queue's shadow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from seaway.domain.errors import ConflictError
from seaway.domain.job import Job
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT
from seaway.scheduling.framework import PASS, Cycle, Decider, Status
from seaway.scheduling.policies.registry import PolicyOptions, make_profile
from seaway.scheduling.profile import Profile
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene

NAME = "fgd"
"""Stands for a trained policy: it decides as `fgd` does, and has a model."""

ASKED = 3


class Maker:
    """Makes policies, of which one has a model that can be exchanged."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.answers = True

    def __call__(self, name: str, mix: Sequence[Job]) -> Profile:
        """Make a policy."""
        profile = make_profile(name, PolicyOptions(mix=mix))
        return profile.with_plugins(Deciding(self)).with_version(self.digest) if name == NAME else profile


class Deciding:
    """Says who decided, as trained policies do."""

    name = "Deciding"

    def __init__(self, maker: Maker) -> None:
        self._maker = maker

    def pre_score(self, cycle: Cycle) -> Status:
        """Say it."""
        cycle.decider = Decider(NAME) if self._maker.answers else Decider("seaway", "it is too slow")
        return PASS


def with_model(digest: str) -> Scene:
    """Make a control plane where a model of that digest may decide after three jobs."""
    stage = scene()
    stage.plane.make, stage.plane.shadow_jobs = Maker(digest), ASKED
    stage.plane.restart()
    stage.plane.settle()
    return stage


def set_queue(stage: Scene, **fields: Any) -> None:  # noqa: ANN401  # as `Queue` has them
    """Change the queue that is always there."""
    stage.plane.operations.put_queue(Queue(DEFAULT, **fields), "ada")
    stage.plane.settle()


def exchange(stage: Scene, digest: str) -> None:
    """Put another model in the place of the one that there was, while the control plane goes on."""
    assert isinstance(stage.plane.make, Maker)
    stage.plane.make.digest = digest
    stage.plane.policies.on_change(NAME)


def test_a_policy_decides_after_enough_jobs_in_the_shadow_of_its_queue() -> None:
    """Until then it is refused, with what is missing and what to do next; its comparisons name the model."""
    stage = with_model("aaa")
    with pytest.raises(ConflictError, match=r"fgd@aaa may not .* 0 of 3 jobs .*; make it .* fgd --queue default --s"):
        set_queue(stage, policy=NAME)
    set_queue(stage, shadow=NAME)
    stage.submit()
    stage.submit()
    with pytest.raises(ConflictError, match=r"2 of 3 jobs .*, 1 to go .*; let more jobs come"):
        set_queue(stage, policy=NAME)
    stage.submit()
    set_queue(stage, policy=NAME)
    assert stage.plane.controller.live.queues[DEFAULT].policy == NAME
    assert {row.shadow for row in stage.plane.store.shadows(DEFAULT, 9)} == {"fgd@aaa"}


def test_fall_backs_do_not_count() -> None:
    """Anything that something else decided says nothing of a policy.

    How often that was is reported with what is left to do.
    """
    stage = with_model("aaa")
    set_queue(stage, shadow=NAME)
    assert isinstance(stage.plane.make, Maker)
    stage.plane.make.answers = False
    for _ in range(ASKED):
        stage.submit()
    with pytest.raises(ConflictError, match=r"decided 0 of 3 jobs .* \(for 3 more it had no answer"):
        set_queue(stage, policy=NAME)


def test_another_model_under_the_same_name_begins_again() -> None:
    """Anything that one model showed says nothing of another that bears its name."""
    stage = with_model("aaa")
    set_queue(stage, shadow=NAME)
    for _ in range(ASKED):
        stage.submit()
    exchange(stage, "bbb")
    with pytest.raises(ConflictError, match=r"fgd@bbb may not .* 0 of 3"):
        set_queue(stage, policy=NAME)
    stage.submit()
    assert stage.plane.store.shadows(DEFAULT, 1)[0].shadow == "fgd@bbb"


def test_what_decides_already_is_not_asked_again() -> None:
    """A queue may be changed otherwise while its policy stays."""
    stage = with_model("aaa")
    set_queue(stage, shadow=NAME)
    for _ in range(ASKED):
        stage.submit()
    set_queue(stage, policy=NAME)
    stage.plane.shadow_jobs = 99
    stage.plane.restart()
    stage.plane.settle()
    set_queue(stage, policy=NAME, description="for the hasty")
    assert stage.plane.controller.live.queues[DEFAULT].description == "for the hasty"


def test_heuristics_decide_at_once() -> None:
    """Anything that was not trained needs no shadow."""
    stage = with_model("aaa")
    set_queue(stage, policy="seaway")
    assert stage.plane.controller.live.queues[DEFAULT].policy == "seaway"


def with_shadow(gpus: int) -> Scene:
    """Make a fleet of one node whose queue has a heuristic as its shadow."""
    stage = scene(fleet(cluster(node(*(gpu() for _ in range(gpus))), name="alpha")))
    set_queue(stage, shadow="greedy")
    return stage


def test_a_waiting_job_counts_once_however_often_it_is_tried() -> None:
    """Each end of another job tries it again. The comparisons then have its placements, and its waits until then."""
    stage = with_shadow(3)
    first, *others = [stage.submit(name=f"small-{at}") for at in range(3)]
    began_ns = stage.clock.now_ns()
    waits = stage.submit(name="large", gpus=3, gpu_memory_mib=1000, gpu_milli=1)
    before, decided = stage.plane.store.shadows(DEFAULT, 99), stage.plane.controller.scheduler.tally.decided
    for each in others:
        stage.clock.advance_s(100)
        stage.plane.jobs.cancel(each, "ada")
        stage.plane.run(5)
    assert stage.state(waits) == "queued"
    assert stage.plane.store.shadows(DEFAULT, 99) == before
    assert stage.plane.controller.scheduler.tally.decided > decided
    stage.plane.jobs.cancel(first, "ada")
    stage.plane.run(5)
    assert stage.state(waits) == "running"
    rows = stage.plane.store.shadows(DEFAULT, 99)
    assert [sum(getattr(each, name) for each in rows) for name in ("jobs", "answered", "live_placed")] == [4, 4, 4]
    last = rows[0]
    assert (last.jobs, last.tries, last.live_placed, last.shadow_placed, last.same_node) == (0, 1, 1, 1, 1)
    assert 200_000 <= last.live_wait_ms == last.shadow_wait_ms <= (stage.clock.now_ns() - began_ns) // 1_000_000


def test_a_job_that_no_policy_places_is_on_no_same_node() -> None:
    """It counts as a job, and in nothing else."""
    stage = with_shadow(2)
    running = stage.submit(gpus=2)
    stage.submit(gpus=2)
    row, placed = stage.plane.store.shadows(DEFAULT, 99)
    assert stage.state(running) == "deploying"
    assert (placed.jobs, placed.same_node, placed.live_wait_ms) == (1, 1, 0)
    assert (row.jobs, row.live_placed, row.shadow_placed, row.same_node, row.live_wait_ms) == (1, 0, 0, 0, 0)


def test_another_shadow_of_a_queue_counts_its_jobs_again() -> None:
    """Its comparisons are its own."""
    stage = with_shadow(1)
    running, waits = stage.submit(), stage.submit()
    set_queue(stage, shadow="spread")
    stage.plane.jobs.cancel(running, "ada")
    stage.plane.run(5)
    assert stage.state(waits) == "running"
    last = stage.plane.store.shadows(DEFAULT, 1)[0]
    assert (last.shadow, last.jobs, last.tries) == ("spread", 1, 1)
