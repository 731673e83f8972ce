"""Triggers of elastic jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from seaway.adapters.simulated.faults import Options
from seaway.application.changes import Change
from seaway.application.control.scaling import is_open
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Elastic, Queue
from seaway.domain.scaling import Metric, Trigger
from tests.fakes.control_plane import SetMetrics
from tests.unit.application.control.test_resizer import nodes_of_four
from tests.unit.application.scene import Scene, spec

NS_PER_S = 1_000_000_000
REQUESTS = Trigger(Metric.REQUESTS, 20_000)


def scaled_service(
    made: Scene, *triggers: Trigger, least: int = 1, most: int = 6, **values: float | str
) -> tuple[str, SetMetrics]:
    """Start an elastic service with triggers and values of metrics."""
    metrics = made.plane.controller.scaler.metrics = SetMetrics({Metric(name): value for name, value in values.items()})
    made.plane.writer.commit([Change(put=[Queue("default", grow_cooldown_s=0)])])
    fields = {"replicas": max(least, 1), "min_replicas": least, "max_replicas": most, "scale": triggers}
    job = made.plane.submit(spec(gpus=1, template="deployment", restarts=True, **fields))[0]
    made.plane.run(10)
    return job, metrics


def size(made: Scene, job: str) -> int:
    """Return the number of replicas of a job that are placed."""
    attempt = made.plane.attempt(job)
    return len(attempt.placements) if attempt.state.live else 0


def reasons(made: Scene, job: str, kind: str) -> list[str]:
    """Return the reasons of the events of one kind."""
    return [each.reason for each in made.plane.store.events(0, 1000, job_id=job) if each.kind == kind]


def test_a_service_follows_its_requests() -> None:
    """It grows at once, and shrinks when fewer replicas have sufficed for five minutes. Each resize has its reason."""
    made = nodes_of_four()
    job, metrics = scaled_service(made, REQUESTS, requests=85.0)
    made.plane.run(40)
    assert size(made, job) == 5
    metrics.values[Metric.REQUESTS] = 30.0
    made.plane.run(280, 10)
    assert size(made, job) == 5
    made.plane.run(60, 10)
    assert size(made, job) == 2
    assert reasons(made, job, "resized")[0].startswith(
        "grows from 1 to 5 replicas: there are 85 requests a second, the target is 20 for each replica, and there is"
    )
    assert reasons(made, job, "resized")[-1] == (
        "shrinks from 5 to 2 replicas: there are 30 requests a second, the target is 20 for each replica"
    )
    assert reasons(made, job, "updated")[0].startswith("wants 5 replicas instead of 1: there are 85 requests")


def test_the_wait_before_a_job_shrinks_survives_a_restart() -> None:
    """A new process continues with the stored numbers, which end with the job or with a larger number."""
    made = nodes_of_four()
    job, metrics = scaled_service(made, REQUESTS, requests=85.0)
    made.plane.run(40)
    assert made.plane.store.scale_windows() == []
    metrics.values[Metric.REQUESTS] = 30.0
    made.plane.run(200, 10)
    (window,) = made.plane.store.scale_windows()
    assert (window.job_id, window.replicas) == (job, 5)
    made.plane.restart()
    made.plane.controller.scaler.metrics = metrics
    made.plane.run(60, 10)
    (after,) = made.plane.store.scale_windows()
    assert json.loads(after.numbers)[0] == json.loads(window.numbers)[0]
    assert (size(made, job), reasons(made, job, "blocked")) == (5, [])
    made.plane.run(60, 10)
    assert size(made, job) == 2
    assert made.plane.store.scale_windows() == []
    for value, stored in ((10.0, 1), (85.0, 0), (10.0, 1)):
        metrics.values[Metric.REQUESTS] = value
        made.plane.run(40)
        assert len(made.plane.store.scale_windows()) == stored
    made.plane.jobs.cancel(job, "ada")
    made.plane.run(40)
    assert made.plane.store.scale_windows() == []


def test_a_value_near_its_target_changes_nothing() -> None:
    """Within a tenth of the target for the present replicas, the number stays."""
    for value, number in ((42.0, 2), (36.5, 2), (45.0, 3), (35.0, 2), (20.0, 1)):
        assert REQUESTS.number_for(round(value * 1000), 2) == number
    latency = Trigger(Metric.LATENCY, 200)
    assert [latency.number_for(each, 4) for each in (200, 215, 300, 100, 0)] == [4, 4, 6, 2, 0]


def test_a_service_without_requests_ends_and_starts_again() -> None:
    """With a minimum of 0 it is suspended, holds nothing, and returns to its queue with the first requests."""
    made = nodes_of_four()
    job, metrics = scaled_service(made, REQUESTS, least=0, requests=0.0)
    made.plane.run(400, 10)
    assert made.state(job) == "suspended"
    assert made.job(job).reason.startswith("scaled to zero: there are 0 requests a second")
    assert not made.plane.controller.live.tree.node("default").use.held.get("gpus")
    made.plane.restart()
    made.plane.controller.scaler.metrics = metrics
    made.plane.run(30)
    assert made.state(job) == "suspended"
    metrics.values[Metric.REQUESTS] = 50.0
    made.plane.run(60)
    assert (made.state(job), size(made, job)) == ("running", 3)


def test_a_user_decides_about_a_job_without_replicas() -> None:
    """A user starts it with resume, and keeps it stopped with suspend, whatever its triggers want."""
    made = nodes_of_four()
    job, metrics = scaled_service(made, REQUESTS, least=0, requests=0.0)
    made.plane.run(400, 10)
    made.plane.jobs.resume(job, "ada")
    made.plane.run(20)
    assert (made.state(job), size(made, job)) == ("running", 1)
    made.plane.run(400, 10)
    assert made.state(job) == "suspended"
    made.plane.jobs.suspend(job, "ada")
    metrics.values[Metric.REQUESTS] = 50.0
    made.plane.run(60)
    assert (made.state(job), made.job(job).reason) == ("suspended", "suspended by ada")


def test_without_a_value_a_job_does_not_shrink() -> None:
    """Its number stays, and an event has the reason, once."""
    made = nodes_of_four()
    job, metrics = scaled_service(made, REQUESTS, requests=85.0)
    made.plane.run(40)
    metrics.values[Metric.REQUESTS] = "Prometheus does not answer"
    made.plane.run(800, 10)
    assert size(made, job) == 5
    assert reasons(made, job, "blocked") == ["the number of replicas cannot be reduced: Prometheus does not answer"]


def test_the_largest_number_of_all_triggers_counts() -> None:
    """A trigger with fewer replicas does not take any from another one, and the bounds of the job apply."""
    made = nodes_of_four()
    latency = Trigger(Metric.LATENCY, 200)
    job, metrics = scaled_service(made, REQUESTS, latency, most=4, requests=55.0, latency=0.1)
    made.plane.run(60)
    assert size(made, job) == 3
    metrics.values[Metric.LATENCY] = 1.0
    made.plane.run(60)
    assert size(made, job) == 4


def test_an_elastic_job_shrinks_while_its_queue_is_deep() -> None:
    """It takes what is free, gives up replicas while more jobs wait than its target, and these run in their place."""
    made = nodes_of_four(1)
    made.plane.writer.commit([Change(put=[Queue("default", grow_cooldown_s=0, elastic=Elastic.KEEP)])])
    trigger = Trigger(Metric.QUEUE_DEPTH, 1000, shrink_after_s=30)
    fields = {"replicas": 1, "min_replicas": 1, "max_replicas": 4, "scale": (trigger,)}
    job = made.plane.submit(spec(gpus=1, expected_duration_s=100_000, **fields))[0]
    made.plane.run(60)
    assert size(made, job) == 4
    waits = made.plane.submit(*[spec(gpus=1, expected_duration_s=500)] * 2)
    made.plane.run(100)
    assert size(made, job) == 2
    assert [made.state(each) for each in waits] == ["running"] * 2
    assert "2 jobs wait in its queue, the target is 1" in reasons(made, job, "resized")[-1]
    made.plane.run(800, 10)
    assert size(made, job) == 4


def test_a_job_follows_the_use_of_its_gpus_that_exporters_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas that use more cores than the target get others beside them."""
    made = nodes_of_four()
    monkeypatch.setattr(made.cluster("alpha"), "_options", Options(waits=False, measures=True))
    trigger = Trigger(Metric.UTILIZATION, 10)
    job, _ = scaled_service(made, trigger)
    made.plane.run(60)
    assert size(made, job) == 6
    assert "% of its GPU cores are used, the target is 1%" in reasons(made, job, "updated")[0]


def test_a_time_window_has_its_own_number() -> None:
    """The number of the window applies between its cron expressions, in its time zone, across changes of the clock."""
    window = Trigger(start="0 8 * * 1-5", end="0 18 * * 1-5", timezone="Europe/Berlin", replicas=3)

    def opens(month: int, day: int, hour: int) -> bool:
        return is_open(window, int(datetime(2026, month, day, hour, 30, tzinfo=UTC).timestamp()) * NS_PER_S)

    assert [opens(11, 27, hour) for hour in (6, 7, 16, 17)] == [False, True, True, False]
    assert [opens(7, 3, hour) for hour in (5, 6, 15, 16)] == [False, True, True, False]
    assert not opens(11, 28, 9)
    made = nodes_of_four()  # its clock starts on Thursday, 1 January 2026, at 0:00 UTC
    job, _ = scaled_service(made, replace(window, timezone="UTC", shrink_after_s=0))
    made.plane.run(1800, 600)
    assert size(made, job) == 1
    made.plane.run(7.6 * 3600, 600)
    assert size(made, job) == 3
    made.plane.run(10 * 3600, 600)
    assert size(made, job) == 1
    assert reasons(made, job, "resized")[-1] == (
        "shrinks from 3 to 1 replica: its time window ended at 0 18 * * 1-5 (UTC)"
    )


@pytest.mark.parametrize(
    ("start", "end", "opens"),
    [
        ("15 7 * * 1-4", "45 21 * * *", ["Mo 07", "Mo 15", "Tu 07", "Tu 15", "We 07", "We 15", "Th 07", "Th 15"]),
        ("0 9 * * *", "0 17 * * 2", ["Mo 07", "Mo 15", "Mo 23", "Tu 07", "Tu 15", "We 15", "We 23", "Th 07", "Th 15",
                                     "Th 23", "Fr 07", "Fr 15", "Fr 23", "Sa 07", "Sa 15", "Sa 23", "Su 07", "Su 15",
                                     "Su 23"]),
        ("0 22 * * 5", "0 6 * * 1", ["Fr 23", "Sa 07", "Sa 15", "Sa 23", "Su 07", "Su 15", "Su 23"]),
        ("0 20 * * *", "0 10 * * *", [f"{day} {hour}" for day in ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
                                      for hour in ("07", "23")]),
    ],
)  # fmt: skip
def test_a_window_is_open_from_its_start_to_the_next_end(start: str, end: str, opens: list[str]) -> None:
    """A window whose start and end have different days closes at the first end after its start."""
    window = Trigger(start=start, end=end, timezone="UTC", replicas=3)
    found = []
    for at in range(7 * 3):
        moment = datetime(2026, 11, 23, 7, 30, tzinfo=UTC) + timedelta(hours=8 * at)  # a Monday
        if is_open(window, int(moment.timestamp()) * NS_PER_S):
            found.append(f"{moment:%a}"[:2] + f" {moment:%H}")
    assert found == opens


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_replicas": 0, "min_replicas": 0}, "needs bounds of the number"),
        ({"scale": ()}, "use 1 <= min <= max"),
        ({"scale": (Trigger(Metric.UTILIZATION, 700),)}, "which can start the first replica again"),
        ({"scale": (Trigger(start="0 1 * * *", end="0 2 * * *", replicas=9),)}, "is 9, but the job has at most 4"),
        ({"scale": (REQUESTS,) * 9}, "has 9 triggers; at most 8"),
    ],
)
def test_triggers_that_make_no_sense_are_rejected(fields: dict[str, object], said: str) -> None:
    """The error names what is missing."""
    good = {"template": "deployment", "replicas": 1, "min_replicas": 0, "max_replicas": 4, "scale": (REQUESTS,)}
    spec(gpus=1, **good)
    with pytest.raises(RejectedError, match=said):
        spec(gpus=1, **{**good, **fields})


def test_a_metric_without_a_source_is_rejected_at_the_submit() -> None:
    """Without a Prometheus server, the error names the setting."""
    made = nodes_of_four()
    fields = {"template": "deployment", "replicas": 1, "min_replicas": 1, "max_replicas": 4}
    with pytest.raises(RejectedError, match=r"needs a Prometheus server: set \[scaling\] url"):
        made.plane.admission.admit(spec(gpus=1, **fields, scale=(REQUESTS,)))
    made.plane.admission.admit(spec(gpus=1, **fields, scale=(Trigger(Metric.UTILIZATION, 700),)))
