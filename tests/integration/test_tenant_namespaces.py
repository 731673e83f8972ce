"""Namespaces of tenants through the control loop: isolation, an upgrade, and missing rights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.karmada import KarmadaBackends
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.control_plane import make_plane
from seaway.bootstrap.settings import Settings
from seaway.domain.job_state import JobState
from tests.fakes.kubernetes.kinds import JOBS, NAMESPACES, NETWORK_POLICIES
from tests.integration.test_cluster_faults import CONTROL, OPTIONS, World

pytestmark = pytest.mark.slow

SHARED = replace(OPTIONS, request_timeout_s=5, namespaces=Namespaces("seaway"))
"""Options of an earlier version."""

OWN = replace(OPTIONS, request_timeout_s=5)


@pytest.fixture(params=[False, True], ids=["directly", "karmada"])
def karmada(request: pytest.FixtureRequest) -> bool:
    """Return whether jobs are deployed through Karmada."""
    return bool(request.param)


@pytest.fixture
def world(tmp_path: Path, *, karmada: bool) -> Iterator[World]:
    """Run a control plane with one cluster."""
    made = World(tmp_path, karmada=karmada, names=("alpha",), options=OWN)
    yield made
    made.close()


def spaces(world: World, job_id: str) -> set[str]:
    """Return the namespaces of a job's pods."""
    return {pod["metadata"]["namespace"] for _, pod in world.pods(job_id)}


def runs(world: World, *jobs: str) -> None:
    """Wait until jobs run."""
    world.wait(lambda: all(world.state(each) is JobState.RUNNING for each in jobs), "all run")


def ends(world: World, *jobs: str) -> None:
    """Let jobs end, and wait until nothing of them is left."""
    for each in jobs:
        world.finish(each)
    world.wait(lambda: all(world.state(each) is JobState.COMPLETED for each in jobs), "all have succeeded")
    world.wait(lambda: not world.left(), "nothing is left")


def test_two_tenants_have_two_isolated_namespaces(world: World) -> None:
    """Their pods are apart, behind network policies and Pod Security; the end of jobs leaves no objects of them."""
    jobs = {tenant: world.submit(tenant=tenant) for tenant in ("vision", "a.b")}
    runs(world, *jobs.values())
    found = {tenant: spaces(world, job_id) for tenant, job_id in jobs.items()}
    assert found == {tenant: {Namespaces().of(tenant)} for tenant in jobs}
    member = world.members["alpha"]
    for tenant in jobs:
        (space,) = found[tenant]
        (namespace,) = (each for each in member.list(NAMESPACES) if each["metadata"]["name"] == space)
        labels = namespace["metadata"]["labels"]
        assert (labels["seaway.io/tenant"], labels["pod-security.kubernetes.io/enforce"]) == (tenant, "restricted")
        policies = {each["metadata"]["name"]: each["spec"] for each in member.list(NETWORK_POLICIES, space)}
        assert policies["seaway-isolation"]["policyTypes"] == ["Ingress", "Egress"]
    ends(world, *jobs.values())


def restart(world: World, folder: Path) -> None:
    """Stop the control plane, and start one with the new settings on its store."""
    world.plane.stop()
    world.backends.close()
    world.backends = (
        KarmadaBackends(folder / "karmada", OWN, 1) if world.karmada else KubernetesBackends(folder, OWN, 1)
    )
    control = replace(CONTROL, stale_after_s=15, grace_period_s=60, assume_timeout_s=60)
    world.plane = make_plane(Settings(control=control), world.store, world.backends, SystemClock(), random=Random(1))
    world.plane.start()


def test_a_job_of_an_earlier_version_stays_where_it_is(tmp_path: Path, *, karmada: bool) -> None:
    """It keeps its attempt in the shared namespace, is observed there, and nothing of it is left after its end."""
    world = World(tmp_path, karmada=karmada, names=("alpha",), options=SHARED)
    try:
        before = world.submit()
        runs(world, before)
        restart(world, tmp_path)
        after = world.submit()
        runs(world, before, after)
        assert (spaces(world, before), spaces(world, after)) == ({"seaway"}, {"seaway-default"})
        assert [len(world.store.attempts(each)) for each in (before, after)] == [1, 1]
        assert not any(server.list(NETWORK_POLICIES, "seaway") for server in world.writes_to)
        ends(world, before, after)
    finally:
        world.close()


def test_a_command_of_an_earlier_version_is_not_carried_out_twice(tmp_path: Path, *, karmada: bool) -> None:
    """If the answer to its create was lost, the new version sends it again, into the namespace of the first try."""
    world = World(tmp_path, karmada=karmada, names=("alpha",), options=SHARED)
    try:
        world.wait(lambda: len(world.plane.controller.live.fleet.clusters) == 1, "the cluster is there")
        faults = [server.faults.slow(3, "*/jobs/*", "PATCH") for server in world.writes_to]
        job = world.submit()
        world.wait(lambda: any(server.list(JOBS, "seaway") for server in world.writes_to), "the Job is written")
        world.plane.stop()
        for server, fault in zip(world.writes_to, faults, strict=True):
            server.faults.end(fault)
        restart(world, tmp_path)
        runs(world, job)
        assert spaces(world, job) == {"seaway"}
        assert {len(server.list(JOBS, "", "seaway.io/job")) for server in world.writes_to} == {1}
        ends(world, job)
    finally:
        world.close()


def test_a_missing_right_is_reported_and_an_operator_can_create_the_namespace(world: World) -> None:
    """The reason says what to do; once an operator has created the namespace with its label, the job runs."""
    faults = [server.faults.error(403, "/api/v1/namespaces", "POST") for server in world.writes_to]
    job = world.submit(tenant="vision")
    world.wait(lambda: "apply deploy/kubernetes/namespaces.yaml" in world.reasons(job), "the reason")
    assert not any(world.left())
    for server, fault in zip(world.writes_to, faults, strict=True):
        server.faults.end(fault)
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seaway-vision"}})
    world.wait(lambda: "kubectl label namespace seaway-vision" in world.reasons(job), "the other reason")
    for server in world.writes_to:
        server.patch(NAMESPACES, "", "seaway-vision", {"metadata": {"labels": {"seaway.io/tenant": "vision"}}})
    runs(world, job)
    ends(world, job)
