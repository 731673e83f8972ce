"""Traps that users of other queueing systems report, through the control loop.

Others are in the tests of preemption: jobs that end for one that does not fit, and jobs that displace each other in
turns. Those of reservations have the large job that neither blocks its queue nor starves.
"""

from __future__ import annotations

from seaway.adapters.simulated.faults import NO_FAULTS, Faults
from seaway.application.changes import Change
from seaway.domain.amounts import GPUS
from seaway.domain.cluster import Fleet
from seaway.domain.queues import Queue
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec


def with_queues(parts: Fleet, *queues: Queue, faults: Faults = NO_FAULTS, **settings: object) -> Scene:
    """Create a control plane with queues."""
    made = scene(parts, faults, **settings)
    made.plane.writer.commit([Change(put=[*queues])])
    made.plane.settle()
    return made


def gpus(count: int, **figures: object) -> Fleet:
    """Return a fleet of one node."""
    return fleet(cluster(node(*[gpu(**figures) for _ in range(count)]), name="alpha"))


def held(made: Scene, queue: str) -> int:
    """Return the GPUs that a queue holds, thousandths."""
    return made.plane.controller.live.tree.use(queue).held.get(GPUS, 0)


def test_a_job_that_cannot_start_gives_its_quota_back() -> None:
    """While a job waits for its next attempt after a failed start, another one uses the limit."""
    made = with_queues(gpus(2), Queue("x", limit={GPUS: 1000}), faults=Faults(start_fails=1.0), initial_backoff_s=60)
    first, second = made.plane.submit(*[spec(queue="x", retries=3) for _ in range(2)])
    made.plane.run(6)
    attempts = [made.job(each).attempt for each in (first, second)]
    assert attempts == [1, 1]
    assert held(made, "x") <= 1000


def test_a_new_queue_takes_no_guarantee_and_everything_only_for_a_while() -> None:
    """A queue without past use goes first at first, but not before a guarantee, and its advantage decays."""
    half_life_s = 600
    queues = Queue("old", guarantee={GPUS: 1000}), Queue("new")
    made = with_queues(gpus(8), *queues, usage_half_life_s=half_life_s)
    made.plane.submit(*[spec(queue="old", expected_duration_s=110) for _ in range(240)])
    made.plane.run(3 * half_life_s, 60)
    assert held(made, "old") == 8000
    made.plane.submit(*[spec(queue="new", expected_duration_s=110) for _ in range(100)])
    made.plane.run(180, 60)
    assert 1000 <= held(made, "old") < held(made, "new")
    made.plane.run(2 * half_life_s, 60)
    assert held(made, "old") >= held(made, "new")
