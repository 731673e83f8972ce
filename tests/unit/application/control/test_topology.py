from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from seaway.application.control import topology as topology_module
from seaway.application.control.topology import Map, Topology, with_network
from seaway.application.network.link_table import NO_NETWORK_SNAPSHOT, NetworkSnapshot
from seaway.application.ports.backend import Answers, Backend, Changes, Command
from seaway.application.views import ClusterState
from seaway.domain.errors import UnavailableError
from seaway.domain.network import Gateway, Link
from tests.unit.application.scene import Scene, known, scene

PATIENCE_S = 10


class World:
    """Backends that can be unreachable, or hang."""

    def __init__(self, backends: Any) -> None:  # noqa: ANN401  # of any kind
        self.backends = backends
        self.away = ""
        self.open = threading.Event()
        self.open.set()
        self.asked = threading.Semaphore(0)

    def _answer(self) -> Any:  # noqa: ANN401
        self.asked.release()
        assert self.open.wait(PATIENCE_S)
        if self.away:
            raise UnavailableError(self.away)
        return self.backends

    def clusters(self) -> Any:  # noqa: ANN401
        """Return the clusters."""
        return self._answer().clusters()

    def gateways(self) -> Any:  # noqa: ANN401
        """Return the gateways."""
        return self._answer().gateways()

    def links(self) -> Any:  # noqa: ANN401
        """Return the links."""
        return self._answer().links()


@pytest.fixture
def world() -> Iterator[tuple[Scene, World]]:
    """Create a scene whose clusters can be unreachable."""
    made = scene(stale_after_s=15, grace_period_s=60)
    between = World(made.clusters)
    made.plane.backends = between
    yield made, between
    between.open.set()


class Way:
    """A connection to a cluster, which can be closed."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.cluster = backend.cluster
        self.open = True

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return the changes."""
        return self._through().changes(cursor, wait_s)

    def send(self, commands: Sequence[Command]) -> Answers:
        """Forward commands."""
        return self._through().send(commands)

    def _through(self) -> Backend:
        if not self.open:
            raise UnavailableError("closed")
        return self.backend


def test_another_way_to_a_cluster_is_taken(world: tuple[Scene, World]) -> None:
    """A cluster with a new connection under its name, as by another kubeconfig, gets its pending commands."""
    made, _ = world
    before, after = Way(made.cluster("alpha")), Way(made.cluster("alpha"))
    made.clusters.clusters = lambda: [before]  # type: ignore[list-item, method-assign]
    made.plane.run(5)
    before.open = False
    job_id = made.submit()
    made.plane.run(5)
    assert made.state(job_id) == "scheduled"
    made.clusters.clusters = lambda: [after]  # type: ignore[list-item, method-assign]
    made.plane.run(10)
    assert (made.state(job_id), made.where(job_id)) == ("running", "alpha")


def test_the_last_that_was_known_stands(world: tuple[Scene, World], caplog: pytest.LogCaptureFixture) -> None:
    """While the clusters cannot be listed, jobs are placed and run; it is logged once."""
    made, between = world
    made.plane.restart()
    made.plane.settle()
    between.away = "the server does not answer"
    with caplog.at_level(logging.WARNING):
        job_id = made.submit()
        made.plane.run(10)
    assert made.state(job_id) == "running"
    assert made.plane.controller.loaded
    assert made.plane.controller.unready() == ""
    assert [record.message for record in caplog.records] == [
        "the list of clusters is unavailable, the last known list stays: the server does not answer"
    ]


def test_clusters_age_though_no_one_can_list_them(world: tuple[Scene, World]) -> None:
    """When list and clusters fail together, the clusters become stale and lost as usual."""
    made, between = world
    made.plane.restart()
    made.plane.run(2)
    between.away = "the server does not answer"
    for name in ("alpha", "beta"):
        made.cluster(name).disconnect()
    made.plane.run(17)
    assert known(made, "alpha") is ClusterState.STALE
    made.plane.run(50)
    assert known(made, "alpha") is ClusterState.LOST
    between.away = ""
    for name in ("alpha", "beta"):
        made.cluster(name).reconnect()
    made.plane.run(2)
    assert known(made, "alpha") is ClusterState.UP


def test_a_start_without_clusters_is_reported_and_mends_itself(world: tuple[Scene, World]) -> None:
    """Before the first list of clusters, the loop has the stored state and reports what is missing."""
    made, between = world
    job_id = made.submit()
    made.plane.run(5)
    between.away = "no one listens there"
    made.plane.restart()
    made.plane.run(200)
    assert made.plane.controller.loaded
    assert made.plane.controller.unready() == "the clusters are not known yet: no one listens there"
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)
    between.away = ""
    made.plane.run(5)
    assert made.plane.controller.unready() == ""
    assert (made.state(job_id), made.job(job_id).attempt) == ("running", 1)


def test_a_list_that_hangs_holds_up_no_one(world: tuple[Scene, World]) -> None:
    """With a separate thread for the list, a cycle does not wait for a hanging connection."""
    made, between = world
    topology = Topology(between)
    seen = threading.Event()
    topology.on_change = seen.set
    topology.start()
    assert seen.wait(PATIENCE_S)
    assert topology.known is not None
    assert [each.cluster for each in topology.known.backends] == ["alpha", "beta"]
    topology.stop()

    between.open.clear()
    made.plane.restart()
    controller = made.plane.controller
    controller.start()
    try:
        assert between.asked.acquire(timeout=PATIENCE_S)
        with controller.lock:
            pass
        assert "the clusters are not known yet" in _once_loaded(made)
    finally:
        controller.stop()


def _once_loaded(made: Scene) -> str:
    """Wait until the loop has read the store; return what it lacks then."""
    while not made.plane.controller.loaded:
        threading.Event().wait(0.001)
    return made.plane.controller.unready()


def test_an_error_no_one_foresaw_leaves_the_last_that_was_known(world: tuple[Scene, World]) -> None:
    """After any error of a list, the last one stays, and the next may succeed."""
    made, between = world
    topology, changed = Topology(between), []
    topology.on_change = lambda: changed.append(1)
    topology.refresh()
    before = topology.known
    between.backends = None
    topology.refresh()
    assert topology.known is before
    assert "NoneType" in topology.trouble
    between.backends = made.clusters
    topology.refresh()
    assert (topology.trouble, changed) == ("", [1])
    made.clusters.links = lambda: (Link("a", "b", 1, bandwidth_mbps=1),)  # type: ignore[method-assign]
    topology.refresh()
    assert changed == [1, 1]


def test_an_error_in_what_is_added_leaves_the_last_that_was_known(
    world: tuple[Scene, World], caplog: pytest.LogCaptureFixture
) -> None:
    """Errors of measurements are like those of the list: logged once, and the thread continues."""
    _, between = world
    surveys: list[NetworkSnapshot | None] = [NetworkSnapshot((Gateway("gw-1"),))]
    topology = Topology(between, lambda seen: with_network(seen, surveys[0]))  # type: ignore[arg-type]
    topology.refresh()
    before = topology.known
    surveys[0] = None
    with caplog.at_level(logging.WARNING):
        topology.refresh()
        topology.refresh()
    assert topology.known is before
    assert "NoneType" in topology.trouble
    assert [record.message for record in caplog.records] == ["looking for clusters failed"]
    surveys[0] = NetworkSnapshot((Gateway("gw-2"),))
    topology.refresh()
    assert topology.trouble == ""
    assert topology.known is not before


def test_what_is_measured_is_followed_while_clusters_cannot_be_listed(world: tuple[Scene, World]) -> None:
    """Links have another source: an unavailable Karmada control plane does not freeze them."""
    _, between = world
    surveys = [NetworkSnapshot((Gateway("gw-1"),)), NetworkSnapshot((Gateway("gw-1"), Gateway("gw-2")))]
    topology = Topology(between, lambda seen: with_network(seen, surveys[0]))
    topology.refresh()
    between.away = "no one listens there"
    surveys.pop(0)
    topology.refresh()
    assert topology.trouble
    assert topology.known is not None
    assert len(topology.known.network_snapshot.gateways) == 2


def test_new_measurements_are_used_without_a_query_of_clusters(
    world: tuple[Scene, World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push updates the network at once, and several pushes within the batch cause one update."""
    monkeypatch.setattr(topology_module, "REFRESH_S", 3600)
    _, between = world
    snapshots, updates, seen = [NetworkSnapshot((Gateway("gw-1"),))], threading.Semaphore(0), threading.Event()

    def add(reported: Map) -> Map:
        updates.release()
        return with_network(reported, snapshots[-1])

    topology = Topology(between, add)
    topology.on_change = seen.set
    topology.start()
    try:
        assert seen.wait(PATIENCE_S)
        assert updates.acquire(timeout=PATIENCE_S)
        asked = sum(iter(lambda: between.asked.acquire(blocking=False), False))
        seen.clear()
        snapshots.append(NetworkSnapshot((Gateway("gw-1"), Gateway("gw-2"))))
        for _ in range(100):
            topology.push()
        assert seen.wait(PATIENCE_S)
        assert topology.known is not None
        assert topology.known.network_snapshot is snapshots[-1]
        assert updates.acquire(timeout=PATIENCE_S)
        assert not updates.acquire(timeout=3 * topology_module.BATCH_S)
        assert (asked, between.asked.acquire(blocking=False)) == (3, False)
    finally:
        topology.stop()


def test_a_configured_network_goes_before_what_clusters_tell() -> None:
    """It overrides gateways and links between them; reports of others stay."""
    reported = Map(
        (),
        (Gateway("gw-1", "reported"), Gateway("far")),
        (Link("gw-1", "gw-2", 1), Link("far", "gw-1", 2)),
    )
    network_snapshot = NetworkSnapshot((Gateway("gw-1", "::1"), Gateway("gw-2", "::2")))
    seen = with_network(reported, network_snapshot)
    assert (seen.gateways, seen.links, seen.network_snapshot) == (
        (Gateway("far"),),
        (Link("far", "gw-1", 2),),
        network_snapshot,
    )
    assert with_network(reported, NO_NETWORK_SNAPSHOT) is reported
