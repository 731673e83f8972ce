"""Commands to clusters that are slow, unreachable, or not yet observed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import PODS_TERMINATING, KubernetesCluster
from seaway.adapters.kubernetes.deploy import deployer, writing
from seaway.adapters.kubernetes.deploy.deployer import name_of
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.application.ports.backend import Answer, Command
from seaway.domain.errors import UnavailableError
from seaway.domain.placement import DeviceSlice
from seaway.domain.runtime import Run
from seaway.testing.backends import BackendUnderTest, deploy, removal
from tests.conformance.test_kubernetes_backends import OPTIONS, Under, furnish, wait
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import JOBS, NODES, PODS
from tests.fakes.kubernetes.server import CONTROLLERS

WAIT_S = 30.0
WRITES = "/apis/batch/*"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Return a server without a garbage collector."""
    with ApiServer("alpha", controllers=set(CONTROLLERS) - {"garbage"}) as made:
        furnish(made)
        yield made


@pytest.fixture
def under(server: ApiServer, tmp_path: Path) -> Iterator[BackendUnderTest]:
    """Join it."""
    backends = join(server, tmp_path)
    yield Under(server, backends.clusters()[0], backends.close, server).made()
    backends.close()


def join(server: ApiServer, folder: Path) -> KubernetesBackends:
    """Begin to follow a server."""
    server.kubeconfig(folder / "alpha")
    return KubernetesBackends(folder, OPTIONS, seed=1)


def answer(cluster: object, command: Command) -> Answer:
    """Send a command, and wait for its result."""
    assert isinstance(cluster, KubernetesCluster)
    (sent,) = cluster.send([command])
    assert isinstance(sent, Future)
    return sent.result(WAIT_S)


def tried(cluster: object, command: Command) -> bool:
    """Send a command again; report whether it was carried out now."""
    try:
        return answer(cluster, command).done
    except UnavailableError:
        return False


def test_nothing_is_written_before_the_nodes_are_known(server: ApiServer, tmp_path: Path) -> None:
    """After a restart labels and devices are unknown: a job is not rejected, nor pinned to the wrong label."""
    server.patch(NODES, "", "node-1", {"metadata": {"labels": {"kubernetes.io/hostname": "host-of-node-1"}}})
    backends = join(server, tmp_path)
    first = Under(server, backends.clusters()[0], backends.close, server).made()
    deployment = deploy(first)
    backends.close()

    hangs = server.faults.hang("/api/v1/nodes")
    backends = join(server, tmp_path)
    (cluster,) = backends.clusters()
    with pytest.raises(UnavailableError, match="alpha"):
        answer(cluster, deployment)
    assert not server.list(JOBS, "seaway-default")
    server.faults.end(hangs)
    wait(lambda: tried(cluster, deployment), "the job written")
    (job,) = server.list(JOBS, "seaway-default")
    assert job["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] == "host-of-node-1"
    backends.close()


def test_a_device_that_is_gone_keeps_a_job_from_no_other(under: BackendUnderTest) -> None:
    """The device existed at the decision; the rest of its cluster may still fit."""
    made = deploy(under)
    (place,) = made.placements
    gone = replace(place, slices=(DeviceSlice("GPU-gone", 1, 1),))
    said = answer(under.backend, replace(made, placements=(gone,)))
    assert (said.refused, said.everywhere) == (True, False)
    assert said.reason == "node 'node-1' has no device 'GPU-gone' any more"


def test_what_was_perhaps_written_is_removed_where_it_is(under: BackendUnderTest, server: ApiServer) -> None:
    """A write whose answer is lost may have succeeded: a removal checks, and fails while the server does not answer."""
    deployment = deploy(under)
    late = server.faults.drop(WRITES, "PATCH")
    unreachable = server.faults.hang("*/jobs", "GET")
    with pytest.raises(UnavailableError):
        answer(under.backend, deployment)
    server.faults.end(late)
    dead = server.faults.hang(WRITES, "DELETE")
    with pytest.raises(UnavailableError):
        answer(under.backend, removal(deployment))
    server.faults.end(dead)
    server.faults.end(unreachable)
    wait(lambda: tried(under.backend, removal(deployment)), "the removal done")


def test_a_removal_waits_for_pods_without_a_node(under: BackendUnderTest, server: ApiServer) -> None:
    """Until the garbage collector deletes them they may be bound, and run beside the next attempt."""
    server.patch(NODES, "", "node-1", {"spec": {"unschedulable": True}})
    deployment = deploy(under)
    cluster = under.backend
    assert isinstance(cluster, KubernetesCluster)
    assert answer(cluster, deployment).done
    wait(lambda: bool(cluster.view.pods_of((deployment.job_id, 1))), "the pod")
    assert answer(cluster, removal(deployment)) == PODS_TERMINATING
    assert not server.list(JOBS, "seaway-default")
    (pod,) = server.list(PODS, "seaway-default")
    server.delete(PODS, "seaway-default", pod["metadata"]["name"], grace_period_s=0)
    wait(lambda: tried(cluster, removal(deployment)), "the removal done")


def test_what_runs_is_not_taken_for_refused_because_it_may_not_be_changed(
    under: BackendUnderTest, server: ApiServer
) -> None:
    """Others may change a Job's template, as Kueue does while it is suspended; a second command leaves it as it is."""
    deployment = deploy(under)
    assert answer(under.backend, deployment).done
    (name,) = (each["metadata"]["name"] for each in server.list(JOBS, "seaway-default"))
    labels = {"flavor": "a100", "kubernetes.io/hostname": "node-1"}
    server.patch(JOBS, "seaway-default", name, {"spec": {"suspend": True}})
    server.patch(JOBS, "seaway-default", name, {"spec": {"template": {"spec": {"nodeSelector": labels}}}})
    server.patch(JOBS, "seaway-default", name, {"spec": {"suspend": False}})
    assert answer(under.backend, deployment).done
    (job,) = server.list(JOBS, "seaway-default")
    assert job["spec"]["template"]["spec"]["nodeSelector"] == labels


def test_what_is_another_ones_is_not_taken_for_written(under: BackendUnderTest, server: ApiServer) -> None:
    """A Job of the same name that is not this attempt's stays, and the attempt is rejected."""
    deployment = deploy(under)
    assert answer(under.backend, deployment).done
    (job,) = server.list(JOBS, "seaway-default")
    server.patch(JOBS, "seaway-default", job["metadata"]["name"], {"metadata": {"labels": {"seaway.io/attempt": "7"}}})
    changed = replace(deployment, spec=replace(deployment.spec, run=Run("other:2")))
    said = answer(under.backend, changed)
    assert said.refused
    assert "immutable" in said.reason


def test_objects_of_one_name_in_two_groups_are_two() -> None:
    """A Service differs from a kind of the same name in another group; writing one leaves the other."""
    plain, other = (
        Manifest({"apiVersion": version, "kind": "Service", "metadata": {"name": "same"}})
        for version in ("v1", "serving.example.com/v1")
    )
    assert name_of(plain) != name_of(other)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a short time limit for a command, and one write at a time."""
    monkeypatch.setattr(deployer, "COMMAND_TIMEOUT_S", 0.5)
    monkeypatch.setattr(writing, "MAX_CONCURRENT_WRITES", 1)


@pytest.mark.usefixtures("narrow")
def test_a_try_goes_on_where_the_one_before_ended(server: ApiServer, tmp_path: Path) -> None:
    """An attempt of many objects gets them all, however slow its cluster; after that, a new command writes them all."""
    backends = join(server, tmp_path)
    under = Under(server, backends.clusters()[0], backends.close, server).made()
    made = deploy(under, replicas=8)
    server.faults.slow(0.1, WRITES, "PATCH")
    tries = 1
    while not tried(under.backend, made):
        tries += 1
        assert tries < 8
    written = server.app.requests["PATCH"]
    assert tries > 1
    assert 10 <= written <= 10 + tries  # none twice but the last one of each timed-out try; two network policies
    assert len(server.list(JOBS, "seaway-default")) == 8
    server.faults.clear()
    assert answer(under.backend, made).done
    assert server.app.requests["PATCH"] == written + 8
    backends.close()
