"""The age of a cluster's data begins with the first failure, so that settings are exact.

The tests use a clock that they advance, then API servers in memory that stop and hang.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions
from seaway.adapters.kubernetes.collect.changes import UNREACHABLE_TIMEOUT_S, Limits
from seaway.adapters.kubernetes.collect.health import LIVEZ, Health
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.objects.core import NodeObject
from seaway.adapters.kubernetes.objects.decode import read_item
from seaway.application import views
from seaway.application.control.settings import ControlSettings
from seaway.application.ports.backend import Answer, Changes, Command
from seaway.application.ports.clock import SystemClock
from seaway.application.views import ClusterState
from seaway.bootstrap.control_plane import ControlPlane, make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.cluster import Cluster
from seaway.testing.clocks import VirtualClock
from tests.conformance.test_kubernetes_backends import gpu_node, wait
from tests.fakes.control_plane import SmallControlPlane
from tests.fakes.kubernetes import ApiServer
from tests.fakes.memory_store import MemoryStore
from tests.unit.application.scene import spec

NAMES = ("alpha", "beta", "gamma")
STEP_S = 0.5
STALE_S, GRACE_S = 15.0, 60.0
NODES_SOURCE, OPTIONAL = "nodes", "rays"


@dataclass
class Observation:
    """A cluster with sources that a test controls; it accepts all commands.

    Attributes
    ----------
    now_s
        The clock that the test advances.
    """

    name: str
    now_s: Callable[[], float]
    patience_s: float
    health: Health = field(init=False)
    view: ClusterView = field(init=False)

    def __post_init__(self) -> None:
        """Begin with a node and up-to-date sources."""
        self.health = Health((LIVEZ, NODES_SOURCE, OPTIONAL), self.now_s)
        self.view = ClusterView(
            Cluster(self.name), self.health, lambda _, __: None, Limits(unreachable_timeout_s=self.patience_s)
        )
        node = read_item(json.dumps(gpu_node(f"{self.name}-0", 2)).encode(), NodeObject)
        assert isinstance(node, NodeObject)
        self.view.put_node(node)
        for source in (LIVEZ, NODES_SOURCE, OPTIONAL):
            self.health.succeeded(source)

    @property
    def cluster(self) -> str:
        """Its name."""
        return self.name

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return the changes of its view."""
        return self.view.changes(cursor, wait_s)

    def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Accept all commands."""
        return [Answer(done=True)] * len(commands)

    def manifests(self, _: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # a deployment
        """Return no manifests."""
        return []

    def logs(self, *_: object, **__: object) -> Iterator[str]:
        """Return no lines."""
        return iter(())


@dataclass
class History:
    """A control plane over clusters with sources that a test controls."""

    clock: VirtualClock
    clusters: dict[str, Observation]
    plane: SmallControlPlane

    def state(self, name: str = "alpha") -> ClusterState:
        """Return the state of a cluster."""
        return self.plane.controller.live.fleet.clusters[name].state

    def views(self) -> dict[str, views.ClusterView]:
        """Return the clusters, as users see them."""
        return {each.name: each for each in self.plane.overview.clusters()}

    def last_seen_s(self) -> float:
        """Return the reported seconds since the first cluster was last observed."""
        (found,) = (each for each in self.plane.overview.clusters() if each.name == "alpha")
        return found.last_seen_s

    def until(self, what: Callable[[], bool], each: Callable[[], object] = lambda: None) -> float:
        """Advance time, with an action at every step, until a condition is met; return the duration."""
        began_ns = self.clock.monotonic_ns()
        while not what():
            each()
            self.plane.run(STEP_S, STEP_S)
            assert self.clock.monotonic_ns() - began_ns < 10 * GRACE_S * 1e9
        return (self.clock.monotonic_ns() - began_ns) / 1e9


@dataclass(frozen=True)
class _Clusters:
    """These clusters, without a network."""

    of: Sequence[Observation]

    def clusters(self) -> Sequence[Observation]:
        """Return the clusters."""
        return self.of

    def gateways(self) -> Sequence[Any]:
        """Return none."""
        return ()

    def links(self) -> Sequence[Any]:
        """Return none."""
        return ()


def history(patience_s: float = 10, stale_after_s: float = STALE_S, grace_period_s: float = GRACE_S) -> History:
    """Create three clusters and wait until they are observed."""
    clock = VirtualClock()
    clusters = {name: Observation(name, lambda: clock.monotonic_ns() / 1e9, patience_s) for name in NAMES}
    settings = ControlSettings(assume_timeout_s=1000, stale_after_s=stale_after_s, grace_period_s=grace_period_s)
    plane = SmallControlPlane(_Clusters([*clusters.values()]), clock=clock, settings=settings)
    plane.run(5)
    return History(clock, clusters, plane)


@pytest.mark.parametrize("source", [LIVEZ, NODES_SOURCE])
@pytest.mark.parametrize(
    ("patience_s", "stale_after_s", "grace_period_s"), [(10, STALE_S, GRACE_S), (10, 4, 10), (10, 4, 30), (1, 4, 10)]
)
def test_age_of_data_counts_from_the_first_failure(
    source: str, patience_s: float, stale_after_s: float, grace_period_s: float
) -> None:
    """With any reporting timeout, new jobs stop after `stale_after_s`, and jobs move after `grace_period_s`."""
    made = history(patience_s, stale_after_s, grace_period_s)
    (job_id,) = made.plane.submit(spec(gpus=1))
    made.plane.run(1)
    assert made.plane.job(job_id).clusters == ("alpha",)

    def fail() -> None:
        made.clusters["alpha"].health.failed(source, "no route to host")

    assert made.until(lambda: made.state() is ClusterState.STALE, fail) == stale_after_s + STEP_S
    assert made.plane.job(job_id).attempt == 1
    assert made.last_seen_s() == int(stale_after_s + STEP_S)
    (other_id,) = made.plane.submit(spec(gpus=1))
    assert made.until(lambda: made.state() is ClusterState.LOST, fail) == grace_period_s - stale_after_s
    assert made.plane.job(other_id).clusters != ("alpha",)
    assert (made.plane.job(job_id).attempt, made.plane.job(job_id).clusters != ("alpha",)) == (2, True)
    made.clusters["alpha"].health.succeeded(source)
    assert made.until(lambda: made.state() is ClusterState.UP) == STEP_S
    assert made.last_seen_s() == 0


def test_hanging_request_counts_from_its_start() -> None:
    """A hanging server is not reporting from the start of the request, not only from its timeout."""
    made = history()
    made.clusters["alpha"].health.ping_started()
    assert made.until(lambda: made.last_seen_s() >= 9) == 9
    made.clusters["alpha"].health.failed(LIVEZ, "no answer within 10 s")
    assert made.until(lambda: made.state() is ClusterState.STALE) == STALE_S + STEP_S - 9
    made.clusters["alpha"].health.ping_started()
    assert made.until(lambda: made.state() is ClusterState.LOST) == GRACE_S - STALE_S


def test_reopened_watches_make_no_cluster_stale() -> None:
    """Each interruption of a watch is short."""
    made = history()
    health = made.clusters["alpha"].health

    def flap() -> None:
        if health.age_s:
            health.succeeded(NODES_SOURCE)
        else:
            health.failed(NODES_SOURCE, "the watch was cut")
        assert made.state() is ClusterState.UP

    made.until(lambda: made.clock.monotonic_ns() > 5 * GRACE_S * 1e9, flap)
    assert made.last_seen_s() == 0


def test_broken_optional_kind_makes_no_cluster_stale() -> None:
    """Kinds of other operators are optional."""
    made = history()
    health = made.clusters["alpha"].health
    now_ns = made.clock.monotonic_ns()
    made.until(
        lambda: made.clock.monotonic_ns() - now_ns > 2 * GRACE_S * 1e9,
        lambda: health.failed(OPTIONAL, "its webhook is down", optional=True),
    )
    assert (made.state(), made.last_seen_s()) == (ClusterState.UP, 0)


def test_suspended_seaway_makes_no_cluster_stale() -> None:
    """A request from before the machine was suspended makes nothing stale when the machine resumes."""
    made = history()
    health = made.clusters["alpha"].health
    health.ping_started()
    made.plane.run(1)
    made.clock.advance_s(10 * GRACE_S)
    made.plane.settle()
    assert made.state() is not ClusterState.LOST
    health.succeeded(LIVEZ)
    made.plane.run(1)
    assert (made.state(), made.last_seen_s()) == (ClusterState.UP, 0)


def test_a_restart_knows_the_last_report_of_a_silent_cluster() -> None:
    """Its state, inventory and the age of its report stay. The time without a server is no silence of the others."""
    made = history()

    def fail() -> None:
        made.clusters["alpha"].health.failed(LIVEZ, "no route to host")

    made.until(lambda: made.state() is ClusterState.LOST, fail)
    before, age_s = made.views(), made.last_seen_s()
    made.clock.advance_s(10 * GRACE_S)
    made.plane.restart()
    made.plane.settle()
    made.until(lambda: made.state("beta") is ClusterState.UP, fail)
    after = made.views()
    assert after["alpha"].state is ClusterState.LOST
    assert after["alpha"].last_seen_s - age_s == pytest.approx(10 * GRACE_S, abs=1)
    assert (after["alpha"].reason, after["alpha"].gpus) == ("no route to host", 2)
    assert {name: view.gpu_milli.total for name, view in after.items()} == {
        name: view.gpu_milli.total for name, view in before.items()
    }
    events = [each.reason for each in made.plane.store.fleet_events(9)]
    made.clusters["alpha"].health.succeeded(LIVEZ)
    made.until(lambda: made.state() is ClusterState.UP)
    (answers,) = [each.reason for each in made.plane.store.fleet_events(9) if each.reason not in events]
    assert answers.startswith("alpha answers")
    assert not any(each.startswith("beta") for each in events)


def test_a_cluster_that_fails_while_no_server_runs_gets_its_grace_period() -> None:
    """It is lost only after a grace period without reports to a server, and shows its inventory meanwhile."""
    made = history()
    made.clusters["alpha"].health.failed(LIVEZ, "no route to host")
    made.clock.advance_s(10 * GRACE_S)
    made.plane.restart()
    made.plane.settle()
    view = made.views()["alpha"]
    assert (view.state, view.gpus, view.last_seen_s >= 10 * GRACE_S) == (ClusterState.STALE, 2, True)
    assert made.until(lambda: made.state() is ClusterState.LOST) == pytest.approx(GRACE_S, abs=1)


# Real time: the states are reached, and not too early. The tests above check exact times with another clock.

QUICK = ControlSettings(assume_timeout_s=30, stale_after_s=1.5, grace_period_s=4.0, poll_interval_s=0.1)
WITHIN = Limits.within(QUICK.stale_after_s, pod_start_timeout_s=300)
EARLY_S = 0.1
"""Maximum age of the last observation at the first failure."""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, ApiServer]]:
    """Start three servers with a node each."""
    made = {name: ApiServer(name).open() for name in NAMES}
    for name, server in made.items():
        server.put(gpu_node(f"{name}-0", 2))
        server.kubeconfig(tmp_path / name)
    yield made
    for server in made.values():
        server.faults.clear()
        server.close()


@contextmanager
def joined(folder: Path, patience_s: float) -> Iterator[ControlPlane]:
    """Run a control plane over them with this reporting timeout."""
    backends = KubernetesBackends(
        folder, ClusterOptions(request_timeout_s=3, limits=Limits(unreachable_timeout_s=patience_s)), seed=1
    )
    plane = make_plane(Settings(control=QUICK), MemoryStore(), backends, SystemClock(), random=Random(1))
    plane.start()
    try:
        wait(lambda: [each.state for each in plane.overview.clusters()] == [ClusterState.UP] * 3, "the clusters")
        yield plane
    finally:
        plane.stop()
        backends.close()


def reached(plane: ControlPlane, state: ClusterState) -> float:
    """Wait until the first cluster is in a state; return the time."""
    wait(lambda: plane.overview.clusters()[0].state is state, f"that it is {state.value}")
    return time.monotonic()


@pytest.mark.slow
@pytest.mark.parametrize("patience_s", [UNREACHABLE_TIMEOUT_S, WITHIN.unreachable_timeout_s])
def test_stopped_server_is_not_reporting_from_then_on(
    patience_s: float, servers: dict[str, ApiServer], tmp_path: Path
) -> None:
    """The cluster gets no new jobs after `stale_after_s` and is lost after `grace_period_s`."""
    with joined(tmp_path, patience_s) as plane:
        began_s = time.monotonic()
        servers["alpha"].stop()
        stale_after_s = reached(plane, ClusterState.STALE) - began_s
        lost_s = reached(plane, ClusterState.LOST) - began_s
        servers["alpha"].start()
        reached(plane, ClusterState.UP)
    assert stale_after_s >= QUICK.stale_after_s - EARLY_S
    assert lost_s >= QUICK.grace_period_s - EARLY_S


@pytest.mark.slow
def test_hanging_server_is_not_reporting_from_the_next_request(servers: dict[str, ApiServer], tmp_path: Path) -> None:
    """Its connections stay open, and no call has timed out."""
    with joined(tmp_path, WITHIN.unreachable_timeout_s) as plane:
        began_s = time.monotonic()
        servers["alpha"].faults.hang()
        stale_after_s = reached(plane, ClusterState.STALE) - began_s
        lost_s = reached(plane, ClusterState.LOST) - began_s
    assert stale_after_s >= QUICK.stale_after_s - EARLY_S
    assert lost_s >= QUICK.grace_period_s - EARLY_S
