"""Jobs whose kubeconfigs are added, removed and renamed, and restarts of Seaway."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions
from seaway.application.clusters import ClusterNames
from seaway.application.control.settings import ControlSettings
from seaway.application.ports.clock import SystemClock
from seaway.application.transitions import accepted
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobIds, JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.runtime import Run
from tests.conformance.test_kubernetes_backends import gpu_node
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import PODS
from tests.fakes.memory_store import MemoryStore

pytestmark = pytest.mark.slow

WAIT_S = 20.0
CONTROL = ControlSettings(
    stale_after_s=0.5,
    grace_period_s=1,
    initial_backoff_s=0.1,
    max_backoff_s=0.5,
    reservation_timeout_s=0.5,
    poll_interval_s=0.1,
)


@contextmanager
def running(folder: Path, store: MemoryStore, control: ControlSettings = CONTROL) -> Iterator[ControlPlane]:
    """Run a control plane on a folder of kubeconfigs."""
    backends = KubernetesBackends(folder, ClusterOptions(request_timeout_s=1), names=ClusterNames(store))
    plane = make_plane(Settings(control=control), store, backends, SystemClock())
    plane.start()
    try:
        yield plane
    finally:
        plane.stop()
        backends.close()


def wait(what: Callable[[], object], why: str) -> None:
    """Wait until a condition is met."""
    give_up_s = time.monotonic() + WAIT_S
    while not what():
        if time.monotonic() > give_up_s:
            pytest.fail(f"never seen: {why}")
        time.sleep(0.02)


def up(plane: ControlPlane) -> set[str]:
    """Return the clusters that answer."""
    return {each.name for each in plane.overview.clusters() if each.state.value == "up"}


def submit(plane: ControlPlane) -> str:
    """Submit a service; return its id."""
    now_ns = time.time_ns()
    spec = JobSpec("work", Demand(ResourceRequest(500, 256, 1, 20_000)), template="deployment", run=Run("image"))
    record = JobRecord(JobIds(Random(1)).generate(now_ns), spec, JobState.PENDING, now_ns, now_ns, "ada", "accepted")
    plane.writer.commit([accepted(record)])
    return record.id


def test_job_keeps_its_attempt_when_kubeconfig_names_change(tmp_path: Path) -> None:
    """The attempt is the same with another cluster of that name, after a restart, and with another context."""
    folder, store = tmp_path, MemoryStore()
    patient = replace(CONTROL, grace_period_s=WAIT_S)
    with ApiServer("gpu", seed=1) as first, ApiServer("gpu", seed=2) as second:
        for number, server in enumerate((first, second)):
            server.put(gpu_node(f"n{number}", 2))
        file = first.kubeconfig(folder / "zeta")
        with running(folder, store, patient) as plane:
            wait(lambda: up(plane) == {"gpu"}, "the cluster")
            job_id = submit(plane)
            wait(lambda: (job := store.job(job_id)) and job.state is JobState.RUNNING, "the job")
            second.kubeconfig(folder / "alpha")
            wait(lambda: up(plane) == {"gpu", "gpu-alpha"}, "the other cluster")
        with running(folder, store, patient) as plane:
            wait(lambda: up(plane) == {"gpu", "gpu-alpha"}, "both clusters after a restart")
        text = file.read_text(encoding="utf-8").replace("gpu", "renamed")
        file.unlink()
        (folder / "beta").write_text(text, encoding="utf-8")
        with running(folder, store, patient) as plane:
            wait(lambda: up(plane) == {"gpu", "gpu-alpha"}, "both clusters by another context")
            time.sleep(1.0)  # several rounds
            job = store.job(job_id)
            assert job
            assert (job.state, job.attempt, job.clusters) == (JobState.RUNNING, 1, ("gpu",))
        assert (len(first.list(PODS, "seaway-default")), len(second.list(PODS, "seaway-default"))) == (1, 0)


def test_job_moves_when_its_kubeconfig_names_another_cluster(tmp_path: Path) -> None:
    """The job's cluster is lost; the job moves after the grace period."""
    folder, store = tmp_path, MemoryStore()
    with ApiServer("gpu", seed=1) as first, ApiServer("gpu", seed=2) as second:
        for number, server in enumerate((first, second)):
            server.put(gpu_node(f"n{number}", 2))
        first.kubeconfig(folder / "one")
        with running(folder, store) as plane:
            wait(lambda: up(plane) == {"gpu"}, "the cluster")
            job_id = submit(plane)
            wait(lambda: (job := store.job(job_id)) and job.state is JobState.RUNNING, "the job")
            second.kubeconfig(folder / "one")
            wait(lambda: up(plane) == {"gpu-one"}, "the other cluster")
            wait(
                lambda: (job := store.job(job_id)) and (job.state, job.attempt) == (JobState.RUNNING, 2),
                "the job again",
            )
        events = "\n".join(each.reason for each in store.events(0, 1000, job_id=job_id))
        assert "gpu is not in the fleet any more; it is queued for another place" in events
        assert "made again" not in events
