"""Seaway is restarted while clusters are still to be told what was decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.control_plane import make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.job_state import JobState
from tests.fakes.kubernetes.kinds import JOBS
from tests.integration.test_cluster_faults import CONTROL, WISHES, World

pytestmark = pytest.mark.slow

PATIENT = replace(
    CONTROL, assume_timeout_s=60, stale_after_s=15, grace_period_s=60, initial_backoff_s=0.5, exclusion_period_s=600
)
"""So that nothing is given up, or forgiven, while the test lasts."""

COUNT = 6
SLOW_S = 1.0
"""How long nodes take to be listed after the restart: far longer than to read what is stored."""


def restart(world: World, folder: Path) -> None:
    """End the control plane, in peace, and have another go on with its store."""
    world.plane.stop()
    world.backends.close()
    cluster_options = replace(WISHES, request_timeout_s=5)
    world.backends = (
        KarmadaBackends(folder / "karmada", cluster_options, 1)
        if world.karmada
        else KubernetesBackends(folder, cluster_options, 1)
    )
    settings = Settings(control=PATIENT)
    world.plane = make_plane(settings, world.store, world.backends, SystemClock(), random=Random(1))
    world.plane.start()


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "karmada"])
def test_what_was_still_to_be_told_is_told_after_a_restart(tmp_path: Path, *, karmada: bool) -> None:
    """What was decided before is carried out as it was, once nodes are known again: no job is refused, none doubled."""
    world = World(tmp_path, karmada=karmada, names=("alpha", "beta"))
    try:
        restart(world, tmp_path)
        world.wait(lambda: len(world.plane.controller.live.fleet.clusters) == 2, "both clusters are there")
        for server in world.writes_to:
            server.faults.hang("*/jobs/*", "PATCH")
        jobs = [world.submit() for _ in range(COUNT)]
        world.wait(lambda: all(world.state(each) is JobState.SCHEDULED for each in jobs), "all are placed")
        for server in world.writes_to:
            assert server.list(JOBS, "seaway") == []
        decided = {each: world.store.attempts(each)[-1].placements for each in jobs}
        world.plane.stop()
        world.recover()
        for server in world.members.values():
            server.faults.slow(SLOW_S, "/api/v1/nodes")
        restart(world, tmp_path)
        world.wait(lambda: all(world.state(each) is JobState.RUNNING for each in jobs), "all run")
        assert {each: world.store.attempts(each)[-1].placements for each in jobs} == decided
        assert {each: len(world.store.attempts(each)) for each in jobs} == dict.fromkeys(jobs, 1)
        assert [each for each in jobs if "refused" in world.reasons(each)] == []
        assert sorted(pod["metadata"]["labels"]["seaway.io/job"] for _, pod in world.pods()) == sorted(jobs)
        assert world.seen.overbooked == []
    finally:
        world.close()
