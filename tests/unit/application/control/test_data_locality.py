"""Jobs with data locality: their places, and the reported transfer times."""

from __future__ import annotations

from seaway.application.whatif.dry_run import DryRuns
from seaway.domain.job import DataSource
from seaway.domain.job_spec import Checkpoint
from seaway.domain.network import Link
from seaway.domain.queues import Preemption, Queue
from seaway.domain.tenancy import DEFAULT
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.unit.application.scene import Scene, scene, spec

DATA = DataSource("beta", 190_735)


def three() -> Scene:
    """Create three clusters of one device; data in beta reaches gamma in half an hour, alpha in five."""
    parts = [cluster(node(gpu()), name=name, gateway=f"gw-{name}") for name in ("alpha", "beta", "gamma")]
    ties = [Link("gw-beta", f"gw-{name}", 1, bandwidth_mbps=mbps) for name, mbps in (("alpha", 100), ("gamma", 1_000))]
    return scene(fleet(*parts, links=ties))


def test_an_attempt_says_how_far_its_data_was() -> None:
    """Each job is placed as near to the data as there is room, and its attempt has the transfer time."""
    made = three()
    jobs = [made.submit(data=DATA) for _ in range(3)]
    assert [made.where(each) for each in jobs] == ["beta", "gamma", "alpha"]
    why = [made.plane.store.attempts(each)[0].why.split("; scores")[0].split("; ", 1)[1] for each in jobs]
    assert why == [
        "its data is at beta; its data is closer than to gamma/node-0, the next best",
        "its data is at beta; 200GB take 27 min to gamma; its data is closer than to alpha/node-0, the next best",
        "its data is at beta; 200GB take 4 h to alpha; no other node fits",
    ]


def test_a_trial_says_how_far_the_data_is_for_each_job_its_own() -> None:
    """Dry runs use the same engine, and distinguish jobs that differ only in their data."""
    made = three()
    tries = DryRuns(made.plane.controller)
    first = tries.dry_run(spec(data=DATA))
    assert [each.cluster for each in first.placements] == ["beta"]
    assert [each.cluster for each in first.candidates] == ["beta", "gamma", "alpha"]
    assert first.message.endswith("its data is at beta; 200GB take 27 min to gamma, 4 h to alpha")
    assert "data" not in tries.dry_run(spec()).message


def test_why_a_job_waits_is_not_what_another_was_reported() -> None:
    """Explanations are cached for equal jobs, and data makes jobs unequal."""
    made = three()
    tries = DryRuns(made.plane.controller)
    waiting = [made.submit(replicas=4, gang=True, data=data) for data in (DATA, DataSource("alpha", 5))]
    reported = [tries.reason(made.job(each), None).explanation for each in waiting]
    assert [each.data.split(";")[0] for each in reported if each] == ["its data is at beta", "its data is at alpha"]


def test_of_equally_cheap_victims_those_near_the_data_end() -> None:
    """A job of a higher priority gets the place at its data; its victim returns to the next nearest that is free."""
    made = three()
    made.plane.operations.put_queue(Queue(DEFAULT, preemption=Preemption.PREEMPT_LOWER_PRIORITY), "ada")
    low = [made.submit(data=DATA, checkpoint=Checkpoint("SIGUSR1", 5)) for _ in range(3)]
    made.plane.run(10)
    high = made.submit(data=DATA, priority=5)
    made.plane.run(10)
    assert (made.state(high), made.where(high), made.state(low[0])) == ("running", "beta", "queued")
    assert "its data is at beta" in made.plane.attempt(high).why
    for job in low[1:]:
        made.plane.jobs.cancel(job, "ada")
    made.plane.run(10)
    assert (made.state(low[0]), made.where(low[0])) == ("running", "gamma")


def test_a_job_with_a_place_far_from_its_data_displaces_no_other() -> None:
    """A free place is used, however far it is, as without preemption."""
    made = three()
    made.plane.operations.put_queue(Queue(DEFAULT, preemption=Preemption.PREEMPT_LOWER_PRIORITY), "ada")
    low = [made.submit(data=DATA) for _ in range(2)]
    made.plane.run(10)
    high = made.submit(data=DATA, priority=5)
    made.plane.run(10)
    assert (made.where(high), [made.state(each) for each in low]) == ("alpha", ["running", "running"])
