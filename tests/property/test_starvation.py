"""No job starves in a queue with ageing, whatever other jobs arrive."""

from __future__ import annotations

from itertools import cycle, islice

from hypothesis import example, given, settings
from hypothesis import strategies as st

from seaway.application.changes import Change
from seaway.domain.queues import Backfill, Order, Preemption, Queue
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import scene, spec

GPUS, LONGEST_S, AGEING_S, WAITING, STEP_S = 4, 40, 30, 3, 5

OTHERS = st.lists(st.tuples(st.integers(1, GPUS), st.integers(0, 4), st.integers(5, LONGEST_S)), min_size=1, max_size=8)
"""GPUs, priority and duration of jobs that arrive again and again."""


@given(
    OTHERS,
    st.integers(1, GPUS),
    st.sampled_from([Order.PRIORITY, Order.FAIR]),
    st.sampled_from([Backfill.NONE, Backfill.EASY, Backfill.CONSERVATIVE]),
    st.sampled_from(Preemption),
)
@example([(1, 4, LONGEST_S)], 1, Order.PRIORITY, Backfill.EASY, Preemption.PREEMPT_LOWER_PRIORITY)
@example([(1, 0, 20), (1, 0, LONGEST_S), (1, 0, 30)], GPUS, Order.FAIR, Backfill.EASY, Preemption.NEVER)
@settings(max_examples=10)
def test_a_job_ends_within_a_bound(
    others: list[tuple[int, int, int]], size: int, order: Order, backfill: Backfill, preemption: Preemption
) -> None:
    """Behind an endless stream of jobs, a job ends soon after its age makes up for its priority.

    Until then, the stream can pass and displace it. Then only the jobs that already waited go before it, one after the
    other at worst, and it can lose one more run to them.
    """
    made = scene(fleet(cluster(node(*[gpu() for _ in range(GPUS)]), name="alpha")))
    made.plane.writer.commit(
        [Change(put=[Queue("x", order=order, backfill=backfill, preemption=preemption, ageing_s=AGEING_S)])]
    )
    made.plane.settle()
    arriving = cycle(others)
    waiting = made.plane.controller.live.waiting

    def arrive() -> None:
        while (missing := WAITING + 1 - len(waiting)) > 0:
            some = [
                spec(queue="x", gpus=gpus, priority=priority, expected_duration_s=lasts_s, time_limit_s=lasts_s + 5)
                for gpus, priority, lasts_s in islice(arriving, missing)
            ]
            made.plane.submit(*some)
            made.plane.settle()

    arrive()
    job, waited_s = made.submit(queue="x", gpus=size, expected_duration_s=LONGEST_S), 0
    priorities = AGEING_S * max(priority for _, priority, _ in others)
    bound_s = priorities + (WAITING + 4) * (LONGEST_S + 3 * STEP_S)
    while made.state(job) != "completed":
        assert waited_s <= bound_s, f"{made.state(job)} after {waited_s} s: {made.job(job).reason}"
        arrive()
        made.plane.run(STEP_S, STEP_S)
        waited_s += STEP_S
