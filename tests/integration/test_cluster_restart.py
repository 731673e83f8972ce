"""Restart of Seaway with pending commands."""

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
from tests.integration.test_cluster_faults import CONTROL, OPTIONS, World

pytestmark = pytest.mark.slow

PATIENT = replace(
    CONTROL, assume_timeout_s=60, stale_after_s=15, grace_period_s=60, initial_backoff_s=0.5, exclusion_period_s=600
)
"""Settings without timeouts and exclusions during the test."""

COUNT = 6
SLOW_S = 1.0
"""Delay of listing nodes after the restart: far longer than reading the store."""


def restart(world: World, folder: Path) -> None:
    """Stop the control plane gracefully, and start another on its store."""
    world.plane.stop()
    world.backends.close()
    cluster_options = replace(OPTIONS, request_timeout_s=5)
    world.backends = (
        KarmadaBackends(folder / "karmada", cluster_options, 1)
        if world.karmada
        else KubernetesBackends(folder, cluster_options, 1)
    )
    settings = Settings(control=PATIENT)
    world.plane = make_plane(settings, world.store, world.backends, SystemClock(), random=Random(1))
    world.plane.start()


@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "karmada"])
def test_pending_commands_are_sent_after_a_restart(tmp_path: Path, *, karmada: bool) -> None:
    """Commands are sent unchanged when nodes are known again: no job is rejected, none duplicated."""
    world = World(tmp_path, karmada=karmada, names=("alpha", "beta"))
    try:
        restart(world, tmp_path)
        world.wait(lambda: len(world.plane.controller.live.fleet.clusters) == 2, "both clusters are there")
        for server in world.writes_to:
            server.faults.hang("*/jobs/*", "PATCH")
        jobs = [world.submit() for _ in range(COUNT)]
        world.wait(lambda: all(world.state(each) is JobState.SCHEDULED for each in jobs), "all are placed")
        for server in world.writes_to:
            assert server.list(JOBS, "seaway-default") == []
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
