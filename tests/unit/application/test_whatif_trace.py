"""Replays of traces on a copy of the live fleet."""

from __future__ import annotations

from typing import Any

import pytest

from seaway.application.changes import Change
from seaway.application.ports.store import JobFilter
from seaway.application.whatif.question import Question
from seaway.application.whatif.queues import MovedJobs, QueueChanges
from seaway.application.whatif.trace import LOOK_JOBS, TraceChanges, TraceJob, past_jobs
from seaway.application.whatif.trial import NewNodes
from seaway.application.whatif.whatif import WhatIf
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.queues import Elastic, Order, Queue
from seaway.domain.tenancy import Pool, Tenant
from seaway.learning.parallel import Processes
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec
from tests.unit.application.test_whatif import what_if
from tests.unit.application.test_whatif_queues import of


def jobs(count: int, every_s: int = 10, lasts_s: int = 100, **fields: Any) -> tuple[TraceJob, ...]:  # noqa: ANN401
    """Make equal jobs that arrive one after the other."""
    return tuple(TraceJob(spec(name=f"job-{at}", **fields), at * every_s, lasts_s) for at in range(count))


def replayed(made: Scene, **question: Any) -> TraceChanges:  # noqa: ANN401  # of `Question`
    """Return the replays of a question."""
    found = what_if(made).ask(Question(**question)).trace
    assert found is not None
    return found


def test_a_trace_waits_on_the_empty_fleet_whatever_runs_now() -> None:
    """Four GPUs serve four jobs at a time; what runs at present is no part of the replay."""
    made = scene()
    for _ in range(4):
        made.submit(expected_duration_s=10_000)
    made.plane.run(3)
    answer = what_if(made).ask(Question(trace=jobs(8, every_s=0)))
    trace = answer.trace
    assert trace is not None
    assert (trace.jobs, trace.rejected_before, trace.skipped, trace.policy) == (8, 0, 0, "bestfit")
    assert trace.before == trace.after
    row = of(trace.queues, "default").after
    assert (row.waiting, row.unknown, row.mean_s, row.p50_s, row.p95_s) == (8, 0, 50, 0, 100)
    assert answer.message.endswith("the 8 jobs of the trace wait 50 s on average (now 50 s)")


def test_a_question_ends_while_its_jobs_are_prepared() -> None:
    """A long trace is left soon after its client, not only when the replays begin."""
    looks = iter(["", "", "the client left"])
    with pytest.raises(UnavailableError, match="the client left"):
        what_if(scene()).ask(Question(trace=jobs(3 * LOOK_JOBS)), lambda: next(looks))
    assert next(looks, None) is None


def test_nodes_and_drains_change_a_replay() -> None:
    """With half of the nodes jobs wait longer, with more nodes less; a job that fits no more is rejected."""
    made = scene()
    trace = (*jobs(8, every_s=0), TraceJob(spec(name="gang", gpus=2, replicas=2, gang=True), 5, 10))
    lost = replayed(made, trace=trace, drain=("beta",))
    assert (lost.rejected_before, lost.rejected_after) == (0, 1)
    before, after = (each.waits for each in (lost.before, lost.after))
    assert before is not None
    assert after is not None
    assert before.queue_wait_mean_s is not None
    assert after.queue_wait_mean_s is not None
    assert after.queue_wait_mean_s > before.queue_wait_mean_s
    more = replayed(made, trace=trace, add_nodes=(NewNodes("alpha", "node-0", 4),))
    assert more.after.waits is not None
    assert more.after.waits.queue_wait_mean_s == 0


def test_a_replay_of_too_many_submitted_jobs_names_the_time_that_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading stops at the maximum, and that many jobs of the time that the error names are replayed."""
    made = scene()
    for _ in range(6):
        made.submit(expected_duration_s=5)
        made.plane.run(10)
    monkeypatch.setattr("seaway.application.whatif.trace.MAX_PAST", 4)
    with pytest.raises(RejectedError, match=r"more than 4 jobs, the maximum of a replay; use at most 40s") as error:
        what_if(made).ask(Question(last_s=3600))
    assert error.value.where == "last"
    assert replayed(made, last_s=40).jobs == 4


def test_shares_of_tenants_apply_to_a_replay() -> None:
    """With three times the weight, the jobs of a tenant wait less, and those of the other more."""
    made = scene()
    for name in ("x", "y"):
        made.plane.operations.put_tenant(Tenant(name), "ada")
    trace = (*jobs(20, every_s=1, tenant="x"), *jobs(20, every_s=1, tenant="y"))
    changes = QueueChanges(tenants=(("x", {"weight": 3}),))
    found = replayed(made, trace=trace, changes=changes)
    x, y = of(found.tenants, "x"), of(found.tenants, "y")
    assert x.before.mean_s is not None
    assert x.after.mean_s is not None
    assert y.before.mean_s is not None
    assert y.after.mean_s is not None
    assert x.after.mean_s < x.before.mean_s
    assert y.after.mean_s > y.before.mean_s


def test_limits_and_pools_of_queues_apply_to_a_replay() -> None:
    """A job beyond a limit is rejected, as at submit; a queue uses only the clusters of its pool."""
    made = scene()
    made.plane.operations.put_pool(Pool("half", frozenset({"alpha"})), "ada")
    made.plane.operations.put_queue(Queue("small", limit={"gpus": 1000}, order=Order.FIFO), "ada")
    made.plane.operations.put_queue(Queue("near", pool="half"), "ada")
    trace = (*jobs(3, every_s=0, queue="small"), TraceJob(spec(name="large", gpus=2, queue="small"), 0, 5))
    found = replayed(made, trace=trace, changes=QueueChanges(queues=(("small", {"limit": {"gpus": 2000}}),)))
    assert (found.rejected_before, found.rejected_after) == (1, 0)
    assert of(found.queues, "small").before.p95_s is None, "the rejected job never starts"
    near = of(replayed(made, trace=jobs(4, every_s=0, queue="near")).queues, "near").after
    assert near.mean_s == 50, "two of four GPUs"


def test_jobs_of_unknown_queues_wait_in_the_default_queue() -> None:
    """A trace from elsewhere needs no queues here. Moves and new queues of the question apply to its jobs."""
    made = scene()
    trace = jobs(4, queue="elsewhere")
    found = replayed(made, trace=trace)
    assert (found.defaulted, [each.name for each in found.queues]) == (4, ["default"])
    new = QueueChanges(queues=(("elsewhere", {}),))
    assert of(replayed(made, trace=trace, changes=new).queues, "elsewhere").after.waiting == 4
    move = QueueChanges(queues=(("q", {}),), moved=(MovedJobs("default", "q"),))
    assert of(replayed(made, trace=trace, changes=move).queues, "q").after.waiting == 4


def test_past_jobs_are_replayed_as_they_ran() -> None:
    """Jobs of the last hours arrive when they were submitted and last as long as they ran, whatever they expected."""
    made = scene()
    made.submit(name="old", expected_duration_s=10)
    made.plane.run(100)
    made.clock.advance_s(7200)
    for _ in range(6):
        made.submit(name="done", gpus=2, expected_duration_s=60)
    made.plane.jobs.cancel(made.submit(name="never-ran", gpus=2), "ada", "enough")
    for _ in range(20):
        made.plane.run(30)
    running = made.submit(name="runs", expected_duration_s=500)
    made.plane.run(5)
    assert made.state(running) == "running"
    found = replayed(made, last_s=3600)
    assert (found.jobs, found.skipped) == (7, 1)
    row = of(found.queues, "default").after
    assert (row.waiting, row.unknown) == (7, 0)
    assert row.p50_s == pytest.approx(60, abs=10)
    assert row.p95_s == pytest.approx(120, abs=15)


def test_a_trace_without_a_job_that_fits_is_rejected() -> None:
    """The error names the part of the question."""
    made = scene()
    for question, where, says in (
        ({"last_s": 60}, "trace", "has no job to replay"),
        ({"trace": jobs(2, gpus=9)}, "trace", "no job that fits"),
        ({"trace": jobs(2), "drain": ("alpha", "beta")}, "trace", "no job that fits"),
    ):
        with pytest.raises(RejectedError, match=says) as error:
            replayed(made, **question)
        assert error.value.where == where


@pytest.mark.slow
def test_replays_run_in_processes() -> None:
    """Long replays leave the control loop alone, and have the same results there."""
    made = scene()
    question = Question(trace=jobs(8, every_s=0), add_nodes=(NewNodes("alpha", "node-0", 1),))
    spread = Processes(2, pytest.fail)
    apart = WhatIf(made.plane.controller, made.plane.admission, made.plane.store, spread).ask(question).trace
    here = what_if(made).ask(question).trace
    assert apart is not None
    assert here is not None
    assert apart.queues == here.queues


def test_elastic_jobs_grow_in_a_replay_and_shrink_for_others() -> None:
    """One with four replicas takes a quarter of the time. If its queue keeps these, others wait; else it shrinks."""
    made = scene()
    made.plane.writer.commit([Change(put=[Queue("default", elastic=Elastic.KEEP)])])
    made.plane.settle()
    whole = TraceJob(spec(name="elastic", replicas=4, min_replicas=1, max_replicas=8), 0, 400)
    urgent = TraceJob(spec(name="urgent", priority=5), 10, 40)
    lends = QueueChanges(queues=(("default", {"elastic": Elastic.LEND}),))
    found = replayed(made, trace=(whole, urgent), changes=lends)
    assert (of(found.queues, "default").before.p95_s, of(found.queues, "default").after.p95_s) == (90, 0)
    assert found.after.sharing is not None
    assert found.after.sharing.preempted == 0
    assert found.before.waits is not None
    assert found.before.waits.makespan_s == 100 + 40


def test_the_work_of_a_past_elastic_job_is_that_of_its_replicas() -> None:
    """A job that ran on four GPUs is replayed as four times as much work of one, so it takes as long again."""
    made = scene(fleet(cluster(node(*[gpu()] * 4), name="alpha")))
    made.submit(name="elastic", replicas=4, min_replicas=1, max_replicas=4, expected_duration_s=400)
    made.plane.run(150)
    (row,) = made.plane.store.jobs(JobFilter(), 10)
    assert row.started_ns is not None
    assert row.ended_ns is not None
    ran_s = (row.ended_ns - row.started_ns) / 1e9
    assert ran_s < 150
    ((job,), skipped) = past_jobs(made.plane.store, 3600, made.clock.now_ns())
    assert skipped == 0
    assert job.lasts_s == pytest.approx(4 * ran_s, abs=30)


def test_a_limit_of_a_model_holds_in_a_replay_for_jobs_of_any_model() -> None:
    """Of two jobs that may use any GPU of a fleet of A100s, the second one waits for a limit of one A100."""
    made = scene()
    jobs = [TraceJob(spec(name=name), 0, 100) for name in ("one", "two")]
    limited = QueueChanges(queues=(("default", {"limit": {"gpus/a100": 1000}}),))
    found = replayed(made, trace=tuple(jobs), changes=limited)
    assert of(found.queues, "default").after.p95_s == 100


def test_a_limit_of_a_model_holds_in_a_replay_for_jobs_that_name_it() -> None:
    """Names in the limit and in the jobs may differ, as in the loop."""
    made = scene()
    jobs = [TraceJob(spec(name=name, models={"A100-80GB"}), 0, 100) for name in ("one", "two")]
    limited = QueueChanges(queues=(("default", {"limit": {"gpus/a100": 1000}}),))
    found = replayed(made, trace=tuple(jobs), changes=limited)
    assert (of(found.queues, "default").before.p95_s, of(found.queues, "default").after.p95_s) == (0, 100)
