"""Jobs whose replicas start one by one, through the control loop: on API servers in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.adapters.kubernetes.templates.registry import BUILT_IN
from seaway.adapters.kubernetes.templates.safety import Rules
from seaway.adapters.kubernetes.templates.user import read_template
from seaway.domain.job import ResourceRequest
from seaway.domain.job_state import JobState
from tests.conformance.test_kueue import queues
from tests.fakes.kubernetes.kinds import JOBS
from tests.integration.test_cluster_faults import PATIENT, World
from tests.unit.adapters.kubernetes.templates.sample import OWN_JOB

pytestmark = pytest.mark.slow

CARDS = 4


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "karmada"])
def test_of_ten_replicas_four_run_and_six_wait(tmp_path: Path, karmada: bool) -> None:
    """Others start as these complete, under numbers of their own, until all ten have completed."""
    world = World(tmp_path, karmada=karmada, names=("alpha",), options=PATIENT)
    try:
        job = world.submit(replicas=10, one_by_one=True, request=ResourceRequest(100, 64, gpus=1))
        world.wait(lambda: len(world.pods(job)) == CARDS and world.state(job) is JobState.RUNNING, "the first replicas")
        assert world.job(job).reason.endswith("6 other replicas wait for room")

        def all_completed() -> bool:
            world.finish(job)
            assert len(world.pods(job)) <= CARDS
            return world.state(job) is JobState.COMPLETED

        world.wait(all_completed, "all have completed")
        placed = [each.replica for attempt in world.store.attempts(job) for each in attempt.placements]
        assert sorted(placed) == list(range(10))
        assert world.seen.overbooked == []
    finally:
        world.close()


@pytest.mark.parametrize(
    ("template", "karmada"),
    [
        ("job", False),
        ("kueue", False),
        ("torchrun", False),
        ("own", False),
        ("job", True),
        ("torchrun", True),
        ("own", True),
    ],
)
def test_completed_replicas_release_their_devices_and_do_not_run_again(
    tmp_path: Path, template: str, karmada: bool
) -> None:
    """The others run on, also if someone deletes the Job that has completed, and another job gets the devices.

    Karmada creates the Job again, but it is suspended there. An own template ends in parts if its workload is a Job.
    """
    templates = {**BUILT_IN, "own": read_template("own", OWN_JOB, Rules())}
    world = World(tmp_path, karmada=karmada, names=("alpha",), options=replace(PATIENT, templates=templates))
    in_parts = templates[template].ends_in_parts
    try:
        whole = ResourceRequest(100, 64, gpus=1, gpu_milli=1000)
        alpha = world.members["alpha"]
        if template == "kueue":
            queues(alpha)
        job = world.submit(replicas=CARDS, request=whole, template=template, command=("train",), ends_in_parts=in_parts)
        world.wait(lambda: world.state(job) is JobState.RUNNING, "its replicas run")
        pods = {pod["metadata"]["name"]: pod for _, pod in world.pods(job)}
        assert len(pods) == CARDS
        ended, *_ = pods.values()
        world.end_pod(alpha, ended)

        def over() -> list[bool]:
            return [each.completed for each in world.store.attempts(job)[-1].placements]

        world.wait(lambda: sum(over()) == 1, "that its devices are released")
        other = world.submit(request=whole)
        world.wait(lambda: world.state(other) is JobState.RUNNING, "the other job")
        name = next(each["name"] for each in ended["metadata"]["ownerReferences"])
        uid = next(each["uid"] for each in ended["metadata"]["ownerReferences"])

        def created_again() -> dict[str, Any] | None:
            found = [each for each in alpha.list(JOBS) if each["metadata"]["name"] == name]
            return next((each for each in found if each["metadata"]["uid"] != uid), None)

        def suspended() -> bool:
            specs = [each["spec"] for each in alpha.list(JOBS) if each["metadata"]["name"] == name]
            return any(each.get("suspend") for each in specs)

        if karmada:
            world.wait(suspended, "the suspension of the Job that has completed")
        alpha.delete(JOBS, ended["metadata"]["namespace"], name)
        if karmada:
            world.wait(lambda: created_again() is not None, "that Karmada creates it again")
        else:
            world.wait(lambda: uid not in {each["metadata"]["uid"] for each in alpha.list(JOBS)}, "the end of the Job")
        world.finish(job)
        world.wait(lambda: world.state(job) is JobState.COMPLETED, "all have completed")
        assert world.job(job).attempt == 1
        assert world.seen.overbooked == []
    finally:
        world.close()
