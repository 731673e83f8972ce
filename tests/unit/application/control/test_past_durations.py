"""Durations learned from past runs, through the control plane."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.domain.attempt import Attempt
from seaway.domain.job_state import AttemptState
from seaway.domain.queues import Order, Queue
from seaway.domain.tenancy import DEFAULT
from seaway.scheduling.queueing.past_durations import PastRuns
from seaway.testing.plugins import cluster, fleet, gpu, node
from seaway.wire.explanations import reason_fields
from tests.unit.application.scene import START_S, Scene, scene, spec

NS = 1_000_000_000


def with_past(*runs_s: int, learn_durations: bool = True, gpus: int = 2) -> Scene:
    """Create a node of some GPUs, on which user ada ran jobs ``eval-1``, ``eval-2`` and so on."""
    made = scene(fleet(cluster(node(*[gpu() for _ in range(gpus)]), name="alpha")), learn_durations=learn_durations)
    for number, run_s in enumerate(runs_s, 1):
        made.submit(name=f"eval-{number}", expected_duration_s=run_s)
        made.plane.run(run_s + 10)
    return made


def reserve(made: Scene) -> str:
    """Reserve all GPUs in 100 s, while one is free until then; return the job that has the reservation."""
    made.submit(name="blocker", expected_duration_s=100)
    return made.submit(name="head", gpus=2, expected_duration_s=10)


def finish(made: Scene, job_id: str) -> None:
    """End the program of a running job."""
    state = made.cluster("alpha")._state  # noqa: SLF001  # a simulated program without a duration never ends by itself
    record = state.records[job_id, 1]
    record.made = replace(record.made, ends_ns=made.clock.now_ns())
    state.later(record.due_ns, state._step, record)  # noqa: SLF001
    made.plane.run(1)


@pytest.mark.parametrize(
    ("learns", "restarts", "expected"),
    [(False, False, "queued"), (True, False, "deploying"), (True, True, "deploying")],
)
def test_a_job_backfills_if_its_past_runs_were_short(*, learns: bool, restarts: bool, expected: str) -> None:
    """If the setting is on and past runs were short, a job uses a reservation of another one, also after a restart."""
    made = with_past(20, learn_durations=learns)
    if restarts:
        made.plane.restart()
        made.plane.settle()
    reserve(made)
    assert made.state(made.submit(name="eval-2")) == expected


@pytest.mark.parametrize("fields", [{"tenant": "other"}, {"actor": "bob"}, {"template": "deployment"}])
def test_only_runs_of_the_same_tenant_and_user_count(fields: dict[str, str]) -> None:
    """Without past runs of its user, a job does not use a reservation, and neither does a service."""
    made = with_past(20)
    made.plane.operations.put_queue(Queue(DEFAULT, order=Order.FIFO), "ada")
    reserve(made)
    fields = {"name": "eval-2", **fields}
    actor = fields.pop("actor", "ada")
    job = made.plane.submit(spec(**fields), actor=actor)[0]
    made.plane.settle()
    assert made.state(job) == "queued"


@pytest.mark.parametrize(("name", "expected"), [("long-2", "queued"), ("long2", "deploying"), ("new", "deploying")])
def test_runs_of_other_names_count_without_any_of_the_same(name: str, expected: str) -> None:
    """The last two runs of a user stand for those of a name that never completed, and only for these."""
    made = with_past(300)
    made.submit(name="long-1", expected_duration_s=300)
    made.plane.run(310)
    for _ in range(2):
        made.submit(name="short", expected_duration_s=20)
        made.plane.run(30)
    reserve(made)
    assert made.state(made.submit(name=name)) == expected


@pytest.mark.parametrize("learns", [False, True])
def test_starts_behind_unknown_durations_are_expected_by_the_latest_runs(*, learns: bool) -> None:
    """If durations are learned, the median of all latest runs stands for those of which nothing is known."""
    made = with_past(600, 20, 20, learn_durations=learns)
    _, *waits = made.plane.submit(*[spec(name=name, gpus=2) for name in ("new", "next", "last")], actor="bob")
    made.plane.run(START_S)
    starts_ns = [made.plane.overview.reason(made.job(each)).estimated_start_ns for each in waits]
    expected_s = [pytest.approx(20 * number, abs=5) for number in (1, 2)] if learns else [None, None]
    assert [each and (each - made.clock.now_ns()) / NS for each in starts_ns] == expected_s


@pytest.mark.parametrize(
    ("runs_s", "expected"), [((20, 300), "queued"), ((300, 20), "queued"), ((300, 20, 20), "deploying")]
)
def test_the_longer_of_the_last_two_runs_is_expected(runs_s: tuple[int, ...], expected: str) -> None:
    """Two short runs are enough to forget a long one; one is not."""
    made = with_past(*runs_s)
    reserve(made)
    assert made.state(made.submit(name="eval")) == expected


def test_jobs_that_wait_already_learn_from_the_first_run() -> None:
    """The first run of a name to complete lets waiting jobs of the same name use a reservation."""
    made = with_past(gpus=3)
    made.submit(name="sweep-0", expected_duration_s=20)
    made.submit(name="blocker", expected_duration_s=200)
    made.submit(name="head", gpus=3, expected_duration_s=10)
    waits = made.submit(name="sweep-1")
    assert made.state(waits) == "queued"
    made.plane.run(30)
    assert made.state(waits) == "running"


def test_names_with_similar_past_runs_are_of_one_kind() -> None:
    """Thousands of names are not as many kinds, each of which would be tried separately."""
    made = with_past(gpus=1)
    for name, run_s in (("eval", 40), ("test", 60), ("train", 600)):
        made.submit(name=name, expected_duration_s=run_s)
        made.plane.run(run_s + 10)
    made.submit(name="blocker", expected_duration_s=100)
    waiting = made.plane.controller.live.waiting
    kinds = []
    for name in ("eval", "test", "train"):
        entry = waiting.get(made.submit(name=name))
        assert entry
        kinds.append(entry.kind)
    assert kinds[0] is kinds[1] is not kinds[2]


@pytest.mark.parametrize("learns", [False, True])
def test_a_short_job_does_not_wait_behind_a_longer_one_of_its_kind(*, learns: bool) -> None:
    """Of jobs with similar durations, known or learned, those that end before a reservation begins start."""
    made = with_past(40)
    for run_s in (40, 120) if learns else ():
        made.submit(name="test", expected_duration_s=run_s)
        made.plane.run(run_s + 10)
    reserve(made)
    long_s, short_s = (None, None) if learns else (120, 70)
    long, short = made.plane.submit(
        spec(name="test", expected_duration_s=long_s), spec(name="eval", expected_duration_s=short_s)
    )
    made.plane.settle()
    assert [made.state(each) for each in (long, short)] == ["queued", "deploying"]


def test_a_name_changes_its_kind_only_for_a_far_duration() -> None:
    """The class of a name follows its expected duration only from two powers of two away."""
    runs = PastRuns()
    assert [runs.add(run_s) for run_s in (300, 550, 300, 40, 40, 3000)] == [True, False, False, False, True, True]


def test_a_wrong_estimate_ends_no_job() -> None:
    """A job that runs for longer than learned continues, its learned duration doubles, and the error is counted."""
    made = with_past(20)
    head = reserve(made)
    job = made.submit(name="eval-2")
    made.plane.run(250)
    assert (made.state(job), made.state(head)) == ("running", "queued")
    planned = made.plane.overview.reason(made.job(head)).estimated_start_ns
    assert planned is not None
    ran_s = 250 - START_S
    assert (planned - made.clock.now_ns()) / NS == pytest.approx(20 * 16 - ran_s, abs=5)
    finish(made, job)
    assert made.state(job) == "completed"
    error = made.plane.overview.duration_errors()
    assert sum(error.counts) == 1
    assert error.total_s == pytest.approx(ran_s - 20, abs=5)
    made.plane.run(5)
    assert made.state(head) == "running"


def test_starts_behind_learned_durations_are_expected() -> None:
    """Behind a running job with past runs, the expected start is known; without them, it is not."""
    for runs_s, known in (((50,), True), ((), False)):
        made = with_past(*runs_s, gpus=1)
        made.submit(name="eval-8")
        waits = made.submit(name="head", expected_duration_s=10)
        planned = made.plane.overview.reason(made.job(waits)).estimated_start_ns
        assert (planned is not None) is known
        assert planned is None or (planned - made.clock.now_ns()) / NS == pytest.approx(50, abs=5)


def test_a_learned_duration_is_shown_with_its_runs() -> None:
    """The explanation of a waiting job, and the reason of its placement, say that its duration is learned."""
    made = with_past(20, 20)
    made.submit(name="blocker", gpus=2, expected_duration_s=100)
    job = made.submit(name="eval-3")
    fields = reason_fields(made.plane.overview.reason(made.job(job)))
    assert (fields["learned_duration"], fields["learned_runs"]) == ("20s", 2)
    made.plane.run(110)
    fields = reason_fields(made.plane.overview.reason(made.job(job)))
    assert fields["placement_reason"]["message"].split("; ")[1] == "expected to run for 20s, learned from 2 runs"
    assert (fields["learned_duration"], fields["learned_runs"]) == (None, 0)
    (new,) = made.plane.submit(spec(name="train", gpus=2), actor="bob")
    made.plane.settle()
    unknown = reason_fields(made.plane.overview.reason(made.job(new)))
    assert (unknown["learned_duration"], unknown["learned_runs"]) == (None, 0)


def test_failed_and_cancelled_runs_do_not_count() -> None:
    """A job that ended early by a failure or by its user says nothing about the duration of the next one."""
    made = with_past()
    for end in ("fail", "cancel"):
        job = made.submit(name="eval-1", expected_duration_s=60)
        made.plane.run(5)
        if end == "fail":
            made.cluster("alpha").fail_copy(job, 1, "exit code 1")
        else:
            made.plane.jobs.cancel(job, "ada")
        made.plane.run(5)
    reserve(made)
    assert made.state(made.submit(name="eval-2")) == "queued"


@pytest.mark.parametrize(("ran_s", "rest_s"), [(0, 10), (9, 1), (10, 10), (19, 1), (20, 20), (45, 35)])
def test_a_learned_duration_doubles_until_it_is_not_exceeded(ran_s: int, rest_s: int) -> None:
    """The remaining time is positive at all times, and never longer than the attempt ran already."""
    attempt = Attempt("a", 1, AttemptState.RUNNING, spec(), "", (), 0, 0, running_ns=5 * NS)
    assert attempt.expected_rest_ns((5 + ran_s) * NS, 10) == rest_s * NS
