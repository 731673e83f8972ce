"""Traps that users of other queueing systems report, through the control loop.

Others are in the tests of preemption: jobs that end for one that does not fit, and jobs that displace each other in
turns. Those of reservations have the large job that neither blocks its queue nor starves.
"""

from __future__ import annotations

import pytest

from seaway.adapters.simulated.faults import NO_FAULTS, Faults
from seaway.application.changes import Change
from seaway.domain.amounts import GPUS
from seaway.domain.cluster import Fleet
from seaway.domain.queues import Queue, Reclaim
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


def test_borrowed_gpus_return_without_preemption() -> None:
    """A guarantee is met as borrowed jobs end, before any other job starts, although nothing is displaced."""
    made = with_queues(gpus(4), Queue("x", guarantee={GPUS: 2000}, reclaim=Reclaim.NEVER), Queue("y", weight=100))
    made.plane.submit(*[spec(queue="y", expected_duration_s=60 + at) for at in range(8)])
    made.plane.run(10)
    made.plane.submit(*[spec(queue="x") for _ in range(2)])
    made.plane.run(40, 10)
    assert (held(made, "x"), held(made, "y")) == (0, 4000)
    made.plane.run(30, 10)
    assert (held(made, "x"), held(made, "y")) == (2000, 2000)
    assert not made.plane.controller.scheduler.preemptor.displaced


def test_a_job_that_cannot_start_gives_its_quota_back() -> None:
    """While a job waits for its next attempt after a failed start, another one uses the limit."""
    made = with_queues(gpus(2), Queue("x", limit={GPUS: 1000}), faults=Faults(start_fails=1.0), initial_backoff_s=60)
    first, second = made.plane.submit(*[spec(queue="x", retries=3) for _ in range(2)])
    made.plane.run(6)
    attempts = [made.job(each).attempt for each in (first, second)]
    assert attempts == [1, 1]
    assert held(made, "x") <= 1000


@pytest.mark.parametrize(("weights", "expected"), [("H100=5", (1000, 5000)), ("H100=1, T4=1", (3000, 3000))])
def test_a_small_gpu_does_not_count_like_a_large_one(weights: str, expected: tuple[int, int]) -> None:
    """A queue on T4 gets five times as many as one on H100, if the weights of the models say so."""
    large = [gpu(model="H100", memory_mib=81_920) for _ in range(4)]
    small = [gpu(model="T4", memory_mib=16_384) for _ in range(8)]
    parts = fleet(cluster(node(*large), name="alpha"), cluster(node(*small), name="beta"))
    made = with_queues(
        parts, Queue("all", limit={GPUS: 6000}), Queue("x", parent="all"), Queue("y", parent="all"), gpu_weights=weights
    )
    jobs = [spec(queue=name, models={model}) for name, model in (("x", "H100"), ("y", "T4")) for _ in range(8)]
    made.plane.submit(*jobs)
    made.plane.settle()
    assert (held(made, "x"), held(made, "y")) == expected


def test_queues_of_weight_zero_share_what_others_leave() -> None:
    """They get nothing while another queue has jobs that fit, share the rest equally, and displace no job."""
    lowest = [Queue(name, weight=0, reclaim=Reclaim.FAIR_SHARE) for name in "xy"]
    made = with_queues(gpus(6), *lowest, Queue("z", limit={GPUS: 2000}))
    made.plane.submit(*[spec(queue=name) for name in "xyz" for _ in range(6)])
    made.plane.run(30)
    assert [held(made, name) for name in "xyz"] == [2000, 2000, 2000]
    assert not made.plane.controller.scheduler.preemptor.displaced


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


def test_a_cycle_counts_the_jobs_that_it_decided_on() -> None:
    """Many jobs that are decided together neither exceed a limit nor the share of their queue."""
    made = with_queues(gpus(12), Queue("x", limit={GPUS: 3000}), Queue("y"), Queue("z", weight=2))
    made.plane.submit(*[spec(queue=name) for name in "xyz" for _ in range(20)])
    made.plane.controller.step()
    assert [held(made, name) for name in "xyz"] == [3000, 3000, 6000]
