"""Workloads that a cluster holds are released after a time-out: through the control loop, on API servers in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seaway.application.changes import Change
from seaway.domain.job_state import JobState
from seaway.domain.queues import Queue
from tests.conformance.test_kueue import queues
from tests.fakes.kubernetes.kinds import CLUSTER_QUEUES, JOBS
from tests.integration.test_cluster_faults import PATIENT, World

pytestmark = pytest.mark.slow

SPACE = "seaway-default"
TIMEOUT_S = 4
ENDED = "so its devices are released"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Run a control plane with two clusters, and a short time-out of the queue."""
    made = World(tmp_path, karmada=False, names=("alpha", "beta"), options=PATIENT)
    made.plane.writer.require(Change(put=[Queue("default", start_timeout_s=TIMEOUT_S)]))
    yield made
    made.close()


def test_a_job_that_kueue_holds_is_released_and_runs_elsewhere(world: World) -> None:
    """Devices of a job that waits for Kueue's quota are released after the time-out, with Kueue's reason."""
    for server in world.members.values():
        queues(server)
    alpha = world.members["alpha"]
    flavor = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": "100m"}]}
    full = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}
    alpha.patch(CLUSTER_QUEUES, "", "all", {"spec": full})
    job = world.submit(template="kueue", clusters=("alpha",))

    def released() -> bool:
        said = (each for each in world.reasons(job).splitlines() if ENDED in each)
        return any("Kueue does not admit it" in each for each in said)

    world.wait(released, "the release with Kueue's reason")
    open_to_all = world.submit(template="kueue")
    world.wait(lambda: world.state(open_to_all) is JobState.RUNNING, "another job finds the cluster with quota")
    assert world.place(open_to_all) == "beta"


def test_a_running_job_that_a_user_suspends_is_released(world: World) -> None:
    """It is no longer shown as running, and after the time-out it runs as another attempt."""
    job = world.submit()
    world.wait(lambda: world.state(job) is JobState.RUNNING, "it runs")
    server = world.members[world.place(job)]
    found = server.list(JOBS, SPACE, f"seaway.io/attempt={world.job(job).attempt}")[0]
    server.patch(JOBS, SPACE, found["metadata"]["name"], {"spec": {"suspend": True}})
    world.wait(lambda: "it is suspended there" in world.reasons(job), "the reason")
    world.wait(lambda: ENDED in world.reasons(job), "the release")
    world.wait(lambda: world.state(job) is JobState.RUNNING and world.job(job).attempt > 1, "it runs again")
    states = [each.state for each in world.store.events(0, 1000, job_id=job) if each.kind == "state"]
    assert states[states.index("running") :][:3] == ["running", "deploying", "queued"]
