"""Jobs whose replicas start one by one, through the control loop: on API servers in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.domain.job import ResourceRequest
from seaway.domain.job_state import JobState
from tests.integration.test_cluster_faults import PATIENT, World

pytestmark = pytest.mark.slow

CARDS = 4


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "karmada"])
def test_of_ten_replicas_four_run_and_six_wait(tmp_path: Path, karmada: bool) -> None:
    """Each attempt has the replicas that fit, under their own numbers, until all ten have completed."""
    world = World(tmp_path, karmada=karmada, names=("alpha",), options=PATIENT)
    try:
        request = ResourceRequest(100, 64, gpus=1)
        job = world.submit(replicas=10, one_by_one=True, request=request)
        for done in (0, 4, 8):
            world.wait(lambda done=done: world.job(job).completed == done, "the earlier replicas")  # type: ignore[misc]
            world.wait(lambda: world.state(job) is JobState.RUNNING, "its replicas run")
            placed = [each.replica for each in world.store.attempts(job)[-1].placements]
            assert placed == list(range(10))[done : done + CARDS]
            world.wait(lambda placed=placed: len(world.pods(job)) == len(placed), "their pods")  # type: ignore[misc]
            world.finish(job)
        world.wait(lambda: world.state(job) is JobState.COMPLETED, "all have completed")
    finally:
        world.close()
