"""Plugins of other packages, through the control loop: each extension point has a scenario."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from seaway.application.changes import Change
from seaway.domain.placement import Placement
from seaway.domain.queues import Queue
from seaway.domain.tenancy import DEFAULT, Tenant
from seaway.scheduling.arrays import Int64
from seaway.scheduling.framework import EXTENSION_POINTS, PASS, Codes, Cycle, DeviceScore, Scores, Status, Verdict
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins.priority_sort import PrioritySort
from seaway.scheduling.policies.registry import make_profile
from seaway.scheduling.profile import WeightedPlugin
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec

REFUSED = Status(Verdict.REJECT, "not today")
WAIT = Status(Verdict.WAIT, "something better comes")


@dataclass
class Recorder:
    """A plugin at every extension point that records its calls and answers as configured."""

    name: str = "Recorder"
    reasons: tuple[str, ...] = ("node is not wanted",)
    answers: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    reserved: set[tuple[str, int]] = field(default_factory=set)

    def _called(self, point: str) -> Status:
        self.calls.append(point)
        answer = self.answers.get(point, PASS)
        if isinstance(answer, Exception):
            raise answer
        status: Status = answer
        return status

    def order(self, queue: JobQueue) -> Int64:
        """Decide the last job first."""
        self.calls.append("order")
        return np.arange(len(queue), dtype=np.int64)[::-1].copy()

    def pre_filter(self, cycle: Cycle) -> Status:
        """Answer as configured."""
        return self._called("pre_filter")

    def filter(self, cycle: Cycle) -> Codes:
        """Reject the nodes whose names are configured."""
        self.calls.append("filter")
        refused = self.answers.get("filter", ())
        return np.array([each.name in refused for each in cycle.snapshot.nodes], np.uint8)

    def post_filter(self, cycle: Cycle) -> Status:
        """Reject another try."""
        self.calls.append("post_filter")
        return REFUSED

    def pre_score(self, cycle: Cycle) -> Status:
        """Answer as configured."""
        return self._called("pre_score")

    def score(self, cycle: Cycle) -> Scores:
        """Prefer the node whose name is configured."""
        self.calls.append("score")
        best = self.answers.get("score", "")
        return np.array([100 * (each.name == best) for each in cycle.snapshot.nodes], np.int64)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Prefer the last device of a node."""
        self.calls.append("device_keys")
        return -np.arange(len(cycle.snapshot.nodes[node].devices), dtype=np.int64)

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Record the reservation."""
        status = self._called("reserve")
        if status.passes:
            self.reserved.add((placement.job, placement.replica))
        return status

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Record the release."""
        self.calls.append("unreserve")
        self.reserved.discard((placement.job, placement.replica))

    def permit(self, cycle: Cycle, placement: Placement) -> Status:
        """Answer as configured."""
        return self._called("permit")

    def pre_bind(self, placement: Placement) -> Status:
        """Answer as configured."""
        return self._called("pre_bind")

    def bind(self, placement: Placement) -> Status:
        """Answer as configured."""
        return self._called("bind")

    def post_bind(self, placement: Placement) -> None:
        """Record the call, or fail as configured."""
        self._called("post_bind")


METHODS = {
    "QueueSort": "order",
    "PreFilter": "pre_filter",
    "Filter": "filter",
    "PostFilter": "post_filter",
    "PreScore": "pre_score",
    "Score": "score",
    "DeviceScore": "device_keys",
    "Reserve": "reserve",
    "Permit": "permit",
    "PreBind": "pre_bind",
    "Bind": "bind",
    "PostBind": "post_bind",
}
"""The method that each extension point calls."""


def with_plugins(*plugins: Any, gpus: int = 2) -> Scene:  # noqa: ANN401  # any object may be a plugin
    """Return a scene of nodes ``one`` and ``two`` whose default queue decides by best fit and these plugins."""
    made = scene(fleet(cluster(*(node(*[gpu() for _ in range(gpus)], name=name) for name in ("one", "two")))))
    own = make_profile("bestfit")
    profile = replace(own, plugins=(*map(WeightedPlugin, plugins), *own.plugins))
    made.plane.make = lambda name, _: profile if name == "mine" else make_profile(name)
    made.plane.restart()
    made.plane.writer.commit([Change(put=[Queue(DEFAULT, policy="mine")])])
    made.plane.settle()
    return made


def test_each_extension_point_has_a_scenario() -> None:
    """An extension point that is added must be called by the control loop."""
    assert {point.__name__ for point in EXTENSION_POINTS} == METHODS.keys()


@pytest.mark.parametrize("point", METHODS)
def test_the_control_loop_calls_every_point(point: str) -> None:
    """A job that fits passes every point but PostFilter; one that fits nowhere reaches PostFilter."""
    plugin = Recorder()
    made = with_plugins(plugin)
    fits = made.submit()
    assert made.state(fits) == "deploying"
    if point == "PostFilter":
        assert "post_filter" not in plugin.calls
        made.submit(gpus=3)
    assert METHODS[point] in plugin.calls


@pytest.mark.parametrize("order", [PrioritySort(), Recorder()])
def test_queue_sort_gives_each_job_its_own_place(order: object) -> None:
    """A plugin takes the jobs in another order than the tenants' turns; each job still gets its own resources."""
    made = with_plugins(order)
    made.plane.writer.commit([Change(put=[Tenant("a"), Tenant("b")])])
    sizes = {
        made.plane.submit(spec(tenant=tenant, gpu_memory_mib=memory, priority=priority))[0]: memory
        for tenant, memory, priority in (("a", 10_000, 2), ("a", 5_000, 1), ("b", 20_000, 0))
    }
    made.plane.settle()
    got = {each: made.plane.attempt(each).placements[0].slices[0].memory_mib for each in sizes}
    assert got == sizes


def test_queue_sort_changes_nothing_in_the_order_of_a_queue() -> None:
    """With room for one of two jobs, the first one is placed, though the plugin puts the last one first."""
    made = with_plugins(Recorder(answers={"filter": ("two",)}), gpus=1)
    first, last = made.plane.submit(spec(), spec())
    made.plane.settle()
    assert (made.state(first), made.state(last)) == ("deploying", "queued")


@pytest.mark.parametrize("point", ["pre_filter", "pre_score", "permit", "reserve"])
def test_a_refusal_leaves_the_job_queued(point: str) -> None:
    """A job that a plugin rejects waits, and nothing is reserved for it."""
    plugin = Recorder(answers={point: REFUSED})
    made = with_plugins(plugin)
    waits = made.submit()
    assert made.state(waits) == "queued"
    assert not plugin.reserved
    assert not list(made.plane.store.held_attempts())


def test_filter_and_score_choose_the_node() -> None:
    """A node that a Filter rejects gets nothing; of the others the highest Score wins."""
    refusing = with_plugins(Recorder(answers={"filter": ("one",)}))
    assert refusing.job(refusing.submit()).nodes == ("two",)
    preferring = with_plugins(Recorder(answers={"score": "two"}))
    assert preferring.job(preferring.submit()).nodes == ("two",)


def test_device_score_chooses_the_device() -> None:
    """Of a node's devices the one with the lowest key is chosen."""
    assert isinstance(Recorder(), DeviceScore)
    made = with_plugins(Recorder(answers={"score": "one"}))
    placement = made.plane.attempt(made.submit()).placements[0]
    (chosen,) = [each for each in made.plane.controller.live.fleet.snapshot.nodes if each.name == placement.node]
    assert placement.slices[0].uuid == chosen.devices[-1].uuid


@pytest.mark.parametrize("point", ["pre_bind", "bind"])
@pytest.mark.parametrize("answer", [REFUSED, RuntimeError("not today")], ids=["refuses", "fails"])
def test_a_job_that_is_not_bound_is_tried_again_later(point: str, answer: object) -> None:
    """A rejection or an exception releases all and reports the reason; after a back-off the job is tried again."""
    plugin = Recorder(answers={point: answer})
    made = with_plugins(plugin)
    waits = made.submit(replicas=2)
    assert made.state(waits) == "queued"
    assert "not today; next attempt in 5 s" in made.job(waits).reason
    assert not plugin.reserved
    assert not list(made.plane.store.held_attempts())
    assert not made.plane.controller.live.bookings
    plugin.answers.clear()
    made.plane.run(4)
    assert made.state(waits) == "queued"
    made.plane.run(20)
    assert made.state(waits) == "running"


def test_the_back_off_doubles() -> None:
    """Each rejection in a row doubles the pause before the next attempt."""
    plugin = Recorder(answers={"pre_bind": REFUSED})
    made = with_plugins(plugin)
    waits = made.submit()
    made.plane.run(6)
    assert "next attempt in 10 s" in made.job(waits).reason


def test_a_plugin_that_fails_after_binding_changes_nothing() -> None:
    """An exception in PostBind is logged; the job runs."""
    made = with_plugins(Recorder(answers={"post_bind": RuntimeError("not today")}))
    runs = made.submit()
    made.plane.run(5)
    assert made.state(runs) == "running"


def test_post_bind_follows_the_commit() -> None:
    """PostBind is not called for a placement that could not be stored; its reservation is released."""
    plugin = Recorder()
    made = with_plugins(plugin)
    (job,) = made.plane.submit(spec())
    made.plane.writer.meanwhile.append(lambda: made.plane.jobs.cancel(job, "ada"))
    made.plane.settle()
    assert "post_bind" not in plugin.calls
    assert not plugin.reserved


def test_a_dry_run_reserves_nothing() -> None:
    """A try on a copy is released in Reserve plugins."""
    plugin = Recorder()
    made = with_plugins(plugin)
    made.plane.overview.dry_run(spec())
    assert not plugin.reserved


def test_deferred_by_permit_or_pre_score() -> None:
    """WAIT defers a job until its policy admits it."""
    plugin = Recorder(answers={"pre_score": WAIT})
    made = with_plugins(plugin)
    waits = made.submit()
    assert made.state(waits) == "queued"
    plugin.answers.clear()
    made.plane.run(600, step_s=30)
    assert made.state(waits) == "running"
