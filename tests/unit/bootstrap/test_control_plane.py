from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event

import pytest

from seaway.adapters.kubernetes.templates.registry import BUILT_IN
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.changes import Change
from seaway.application.clusters import ClusterNames
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.clusters import Kind, kind_of, make_clusters, make_faults, read_fleet
from seaway.bootstrap.control_plane import make_bearer, make_plane
from seaway.bootstrap.settings import ClusterSettings, IdentitySettings, Settings
from seaway.domain.errors import RejectedError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.runtime import Run
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryDatabase, MemoryStore
from tests.unit.application.scene import spec, two_clusters


def test_a_plane_runs_jobs_and_stops_quickly() -> None:
    """Put together with its own threads it takes a job to its run; stopping ends all within a second."""
    clock, database, runs = SystemClock(), MemoryDatabase(), Event()
    backends = SimulatedBackends(two_clusters(), clock, Options(start_delay_s=0))
    plane = make_plane(Settings(), MemoryStore(database), backends, clock, random=Random(3))

    def look(changes: list[Change]) -> None:
        rows = [row for change in changes for row in change.update]
        if any(isinstance(row, JobRecord) and row.state is JobState.RUNNING for row in rows):
            runs.set()

    plane.writer.listen(look)  # type: ignore[arg-type]  # a sequence is as good as a list here
    plane.start()
    (job,), _ = asyncio.run(plane.jobs.submit([spec()], "ada"))
    assert runs.wait(30)
    begun_ns = clock.monotonic_ns()
    plane.stop()
    assert clock.monotonic_ns() - begun_ns < 10**9
    backends.close()
    stored = MemoryStore(database).job(job.id)
    assert stored is not None
    assert stored.state is JobState.RUNNING


def test_policies_are_made_ready_before_a_plane_decides_by_them() -> None:
    """The default is ready from the start, any other only once it was compiled, which wakes the loop."""
    clock = VirtualClock()
    plane = make_plane(Settings(), MemoryStore(), SimulatedBackends(two_clusters(), clock), clock)
    readiness = plane.controller.scheduler.readiness
    assert [readiness.has(name) for name in ("bestfit", "greedy", "random")] == [True, True, False]
    assert readiness.on_ready == plane.controller.wake
    assert readiness.wait("random", most_s=300)


def test_the_same_seed_draws_the_same_ids() -> None:
    """Runs that are to be repeated give the randomness in."""
    ids = []
    for _ in range(2):
        clock = VirtualClock()
        plane = make_plane(Settings(), MemoryStore(), SimulatedBackends(two_clusters(), clock), clock, random=Random(1))
        ids.append(asyncio.run(plane.jobs.submit([spec()], "ada"))[0][0].id)
    assert ids[0] == ids[1]


def test_clusters_come_from_the_settings(tmp_path: Path) -> None:
    """A fleet by name or file, with state in the data folder, and faults where a seed is given."""
    made = make_clusters(ClusterSettings(fleet="demo"), SystemClock(), tmp_path, ClusterNames())
    backends = made.backends
    assert isinstance(backends, SimulatedBackends)
    assert made.templates.purposes().keys() == BUILT_IN.keys()
    ray = made.templates.with_template_traits(replace(spec(), template="raycluster"))
    assert (ray.single_cluster, ray.restarts) == (True, True)
    assert list((tmp_path / "clusters").iterdir())
    backends.close()
    assert make_faults(7).seed == 7
    with pytest.raises(RejectedError):
        read_fleet(str(tmp_path / "none.yaml"))


def test_where_a_cluster_was_ever_joined_nothing_is_simulated(tmp_path: Path) -> None:
    """Not even when the last was left; clusters that settings name go before those that were joined."""
    assert kind_of(ClusterSettings(), tmp_path) is Kind.SIMULATED
    (tmp_path / "kubeconfigs").mkdir()
    assert kind_of(ClusterSettings(), tmp_path) is Kind.JOINED
    made = make_clusters(ClusterSettings(), SystemClock(), tmp_path, ClusterNames())
    assert (made.kind, list(made.backends.clusters())) == (Kind.JOINED, [])
    made.close()
    assert kind_of(ClusterSettings(fleet="fleet.yaml"), tmp_path) is Kind.SIMULATED
    assert kind_of(ClusterSettings(simulated_url="http://localhost:1"), tmp_path) is Kind.SIMULATED
    assert kind_of(ClusterSettings(kubeconfig_dir="elsewhere"), tmp_path) is Kind.SET


@pytest.mark.parametrize(("default_image", "wrong"), [("", ["run.image"]), ("ubuntu:24.04", [])])
def test_services_need_an_image_on_simulated_clusters_too(tmp_path: Path, default_image: str, wrong: list[str]) -> None:
    """A service without an image is rejected at its field, unless the operator sets a default; other jobs are not."""
    settings = ClusterSettings(fleet="demo", default_image=default_image)
    made = make_clusters(settings, SystemClock(), tmp_path, ClusterNames())
    service = spec(template="deployment", restarts=True)
    assert [each.where for each in made.templates.problems(service)] == wrong
    assert not made.templates.problems(replace(service, run=Run("server:1")))
    assert not made.templates.problems(spec())
    made.close()


IMPORTED = """
import sys
from pathlib import Path
from seaway.application.clusters import ClusterNames
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.clusters import make_clusters
from seaway.bootstrap.settings import ClusterSettings
settings = ClusterSettings(kubeconfig_dir=sys.argv[1])
made = make_clusters(settings, SystemClock(), Path(sys.argv[1]), ClusterNames())
print("kubernetes" in sys.modules)
made.close()
"""


def test_client_library_is_imported_before_threads_of_clusters_start(tmp_path: Path) -> None:
    """Concurrent imports of the library and of the pages can fail, and a cluster would then never be identified."""
    ended = subprocess.run([sys.executable, "-c", IMPORTED, tmp_path], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"


def test_without_an_issuer_there_are_no_bearers() -> None:
    """An identity provider is only spoken to when one is named."""
    assert make_bearer(IdentitySettings(), SystemClock()) is None
