"""The way how the network is meant to be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from seaway.application.changes import Change
from seaway.application.network.configuration import differences
from seaway.application.records import NetworkRecord
from seaway.domain.errors import ConflictError, StaleError, UnavailableError, UnknownError
from seaway.domain.gateways import NetworkConfig, ProbeConfig
from seaway.domain.job import Demand, ResourceRequest
from seaway.domain.job_state import AttemptState
from seaway.domain.network import NetworkNeed
from seaway.domain.placement import DeviceSlice, Placement
from tests.fakes import records as make
from tests.unit.application.network.scene import Scene, gateway, network

REQUESTS = ResourceRequest(cpu_milli=1)


@pytest.fixture
def scene() -> Scene:
    """Make a control plane without a network."""
    return Scene()


def test_a_network_is_stored(scene: Scene) -> None:
    """Anything that is set is there after, for one who restarts too, and followers hear of it."""
    received: list[NetworkConfig | None] = []
    scene.configuration.follow(received.append)
    plan = scene.configuration.put(network(), "ada")
    assert (plan.version, len(plan.changes), plan.impact) == (1, 4, ())
    for configuration in (scene.configuration, scene.again().configuration):
        now = configuration.now
        assert now is not None
        assert (now.config, now.version, now.actor, now.at_ns) == (network(), 1, "ada", scene.clock.now_ns())
    assert received == [None, network()]
    (said,) = scene.reported("network")
    assert "gateway gw-1 is added; gateway gw-2 is added" in said


def test_what_changes_nothing_stores_nothing(scene: Scene) -> None:
    """The same network set again is no change, has the same version and makes no event."""
    scene.configuration.put(network(), "ada")
    plan = scene.configuration.put(network(), "bob")
    assert (plan.version, plan.changes) == (1, ())
    assert len(scene.reported("network")) == 1


def test_versions_go_on_after_a_removal(scene: Scene) -> None:
    """A network that is set after one was removed has a version that none had, also after a start in between."""
    with pytest.raises(UnknownError):
        scene.configuration.delete("ada")
    scene.configuration.put(network(), "ada")
    scene.configuration.delete("ada")
    assert scene.configuration.now is None
    with pytest.raises(UnknownError):
        scene.configuration.delete("ada")
    again = scene.again().configuration
    assert (again.now, again.version) == (None, 2)
    assert again.put(NetworkConfig(), "ada").version == 3  # even one without gateways is one


def test_a_try_changes_nothing(scene: Scene) -> None:
    """A plan says what a change would come to, and all stays as it is."""
    plan = scene.configuration.plan(network())
    assert (plan.version, len(plan.changes)) == (1, 4)
    assert (scene.configuration.now, scene.store.network(), scene.reported("network")) == (None, None, [])


def test_a_change_that_cannot_be_stored_is_none(scene: Scene) -> None:
    """When the database does not answer, the network stays as it was."""
    scene.configuration.put(network(), "ada")
    scene.store.fail_next()
    with pytest.raises(UnavailableError):
        scene.configuration.put(network(2, pairs=()), "ada")
    assert scene.configuration.now is not None
    assert scene.configuration.now.config == network()


def test_a_change_meant_for_another_version_is_refused(scene: Scene) -> None:
    """A change is made only to what it was meant for, a removal too."""
    scene.configuration.put(network(), "ada", lambda there: there is None)
    for act in (
        lambda: scene.configuration.put(network(2), "ada", lambda there: there is None),
        lambda: scene.configuration.delete("ada", lambda _: False),
    ):
        with pytest.raises(StaleError):
            act()
    scene.configuration.delete("ada", lambda there: there is not None and there.version == 1)


def running(
    scene: Scene,
    name: str,
    cluster: str = "c9",
    state: AttemptState = AttemptState.RUNNING,
    **spec: Any,  # noqa: ANN401  # fields of the spec
) -> None:
    """Let a job hold something in a cluster."""
    job = make.job_record(spec=make.spec(name, **spec))
    placement = Placement(job.id, 0, cluster, "n1", (DeviceSlice("GPU-1", 1, 1),))
    attempt = make.attempt_of(job, state=state, placements=(placement,))
    scene.store.commit([Change(insert=[job, attempt])])


def test_a_gateway_that_running_jobs_use_is_not_removed(scene: Scene) -> None:
    """Jobs that use the measurements of a gateway prevent its removal, unless it is forced. Others do not."""
    scene.configuration.put(network(), "ada")
    running(scene, "user-side", demand=Demand(REQUESTS, gateway="gw-3"))
    running(scene, "far-side", "cluster-3", demand=Demand(REQUESTS, gateway="gw-1"))
    running(scene, "spread", "cluster-3", between_replicas=NetworkNeed(max_latency_ns=1))
    running(scene, "careless", "cluster-3")
    running(scene, "elsewhere", "cluster-2", demand=Demand(REQUESTS, gateway="gw-1"))
    running(scene, "over", "cluster-3", AttemptState.ENDED, demand=Demand(REQUESTS, gateway="gw-3"))
    fewer = network(2, pairs=())
    assert [each.split(" is used by ")[0] for each in scene.configuration.plan(fewer).impact] == ["gw-3"]
    with pytest.raises(ConflictError) as caught:
        scene.configuration.put(fewer, "ada")
    named = str(caught.value).split("used by ")[1].split(".")[0].split(", ")
    assert sorted(named) == ["far-side", "spread", "user-side"]
    with pytest.raises(ConflictError):
        scene.configuration.delete("ada")
    scene.configuration.put(replace(network(), probe=ProbeConfig(interval_s=1)), "ada")
    assert scene.configuration.put(fewer, "ada", force=True).impact
    scene.configuration.delete("ada", force=True)


def test_a_stored_network_that_makes_no_sense_stops_nothing(scene: Scene) -> None:
    """Anything that an older Seaway took and this one does not is not used, and can be set again."""
    scene.store.commit([Change(put=[NetworkRecord('{"gateways": [{"name": "gw-1"}]}', 7, "ada", 1)])])
    again = scene.again().configuration
    assert (again.now, again.version) == (None, 7)
    assert again.put(network(), "ada").version == 8


def test_what_becomes_different_is_reported() -> None:
    """Each thing that differs has its sentence, with how it was and how it becomes."""
    before = network()
    changed = replace(gateway(1), mtu=9000, cluster="", site="office", prefixes=())
    after = replace(
        before,
        gateways=(before.gateways[1], changed, gateway(4)),
        pairs=(),
        mesh=False,
        probe=ProbeConfig(interval_s=5, timeout_s=1),
    )
    assert differences(before, after) == [
        "gateway gw-4 is added",
        "gateway gw-3 is removed",
        "gateway gw-1: cluster cluster-1 -> none, site none -> office, prefixes fd00:a:1::/64 -> none, "
        "mtu none -> 9000",
        "paths gw-1 to gw-2: as the mesh has them, no own ones",
        "pairs without paths are not connected",
        "probe: interval 10 -> 5",
    ]
    assert differences(before, replace(before, gateways=before.gateways[::-1])) == ["the order of gateways changes"]
    shared = replace(before, pairs=(replace(before.pairs[0], load_balance=True),))
    (said,) = differences(before, shared)
    assert said.endswith("weight 1), around (fd00:51d:3::e>fd00:51d:2::d6, weight 1), shared")
    assert differences(replace(before, pairs=()), before)[0].endswith("in place of the mesh's")
