"""Addresses of services for clients outside a cluster, through the control loop: on API servers in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.adapters.kubernetes.templates.catalog import TemplateCatalog
from seaway.adapters.kubernetes.templates.context import Exposure
from seaway.domain.deployment import Endpoint, Reach
from seaway.domain.job import ResourceRequest
from seaway.domain.job_spec import Expose, ServiceType
from seaway.domain.job_state import JobState
from tests.fakes.kubernetes.kinds import HTTP_ROUTES, INGRESSES, JOBS, NODES, SERVICES, Kind
from tests.integration.test_cluster_faults import PATIENT, World

pytestmark = pytest.mark.slow

EXPOSURE = Exposure(tuple(ServiceType), domain="apps.example.com", https=True, gateway="infra/public")
OWN = replace(
    PATIENT,
    exposure=EXPOSURE,
    templates=TemplateCatalog(exposure=EXPOSURE).templates,
    limits=replace(PATIENT.limits, unschedulable_timeout_s=1),
)
SPACE = "seaway-default"
EVENT = "endpoint"


@pytest.fixture(params=[False, True], ids=["directly", "karmada"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], World]:
    """Return a function that starts a control plane with one cluster."""
    return lambda: World(tmp_path, karmada=request.param, names=("alpha",), options=OWN)


@contextmanager
def serving(made: Callable[[], World], expose: Expose) -> Iterator[tuple[World, str]]:
    """Run a service, and check afterwards that nothing of it is left."""
    world = made()
    try:
        job = world.submit(template="deployment", restarts=True, ports=(8080,), expose=expose)
        world.wait(lambda: world.state(job) is JobState.RUNNING, "it runs")
        yield world, job
        world.plane.jobs.cancel(job, "ada")
        world.wait(lambda: not world.left(), "nothing is left")
        assert not any(server.list(kind) for server in world.writes_to for kind in (INGRESSES, HTTP_ROUTES))
    finally:
        world.close()


def seen(world: World, job: str) -> list[Endpoint]:
    """Return the addresses of a job."""
    return [each for copy in world.plane.overview.workloads(world.job(job)) for each in copy.endpoints]


def reported(world: World, job: str) -> list[str]:
    """Return the events on addresses of a job."""
    return [each.reason for each in world.store.events(0, 1000, job_id=job) if each.kind == EVENT]


def test_a_node_port_is_reached_at_a_node_and_its_service_keeps_its_name(made: Callable[[], World]) -> None:
    """The address is that of a node, an external one as soon as there is one; each attempt has the same service."""
    with serving(made, Expose(ServiceType.NODE_PORT)) as (world, job):
        member = world.members["alpha"]
        world.wait(lambda: any("no node of the cluster" in each.reason for each in seen(world, job)), "a reason")
        (service,) = member.list(SERVICES, SPACE)
        port = service["spec"]["ports"][0]["nodePort"]
        kinds = (("InternalIP", "10.0.0.1"), ("ExternalIP", "192.0.2.1"))
        status = {"addresses": [{"type": kind, "address": each} for kind, each in kinds]}
        member.patch(NODES, "", "alpha-0", {"status": status}, "status")
        member.patch(NODES, "", "alpha-1", {"status": status}, "status")
        first = world.store.attempts(job)[-1].number
        world.plane.jobs.suspend(job, "ada")
        world.wait(lambda: not member.list(SERVICES, SPACE), "its service is gone")
        world.plane.jobs.resume(job, "ada")
        world.wait(lambda: world.state(job) is JobState.RUNNING, "it runs again")
        assert world.store.attempts(job)[-1].number > first
        (again,) = member.list(SERVICES, SPACE)
        assert again["metadata"]["name"] == service["metadata"]["name"]
        port = again["spec"]["ports"][0]["nodePort"]
        outside = Endpoint(f"192.0.2.1:{port}", 8080, Reach.OUTSIDE)
        world.wait(lambda: seen(world, job)[:1] == [outside], "its address")
        world.wait(lambda: reported(world, job)[-1:] == [f"port 8080 answers at {outside.address}"], "the event")


def test_a_load_balancer_is_reached_once_it_has_an_address(made: Callable[[], World]) -> None:
    """Until the cluster assigns an address, a reason is shown; then the address is shown and reported."""
    with serving(made, Expose(ServiceType.LOAD_BALANCER)) as (world, job):
        member = world.members["alpha"]
        world.wait(lambda: any("has not assigned" in each.reason for each in seen(world, job)), "the reason")
        (service,) = member.list(SERVICES, SPACE)
        status = {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}}
        member.patch(SERVICES, SPACE, service["metadata"]["name"], {"status": status}, "status")
        world.wait(lambda: reported(world, job) == ["port 8080 answers at lb.example.com:8080"], "the event")
        assert seen(world, job) == [Endpoint("lb.example.com:8080", 8080, Reach.OUTSIDE)]


INGRESS_STATUS = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}
ROUTE_STATUS = {"parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]}


@pytest.mark.parametrize(
    ("by", "kind", "status"),
    [(ServiceType.INGRESS, INGRESSES, INGRESS_STATUS), (ServiceType.HTTP_ROUTE, HTTP_ROUTES, ROUTE_STATUS)],
    ids=["ingress", "gateway"],
)
def test_a_host_name_is_reached_once_a_controller_accepts_it(
    made: Callable[[], World], by: ServiceType, kind: Kind, status: dict[str, object]
) -> None:
    """An Ingress or HTTPRoute leads to the first port, and its URL is reported after its controller accepted it."""
    with serving(made, Expose(by, "chat.apps.example.com")) as (world, job):
        member = world.members["alpha"]
        world.wait(lambda: bool(member.list(kind, SPACE)), "the route")
        world.wait(lambda: any("has accepted it yet" in each.reason for each in seen(world, job)), "the reason")
        (route,) = member.list(kind, SPACE)
        member.patch(kind, SPACE, route["metadata"]["name"], {"status": status}, "status")
        url = "https://chat.apps.example.com"
        world.wait(lambda: reported(world, job) == [f"port 8080 answers at {url}"], "the event")
        assert seen(world, job)[0] == Endpoint(url, 8080, Reach.OUTSIDE)


def test_a_service_that_a_cluster_denies_rejects_the_job(made: Callable[[], World]) -> None:
    """The cluster counts as unsuitable, with its reason, although the name of the service does not have the attempt."""
    world = made()
    try:
        world.members["alpha"].deny(SERVICES, "no ports of nodes here")
        job = world.submit(template="deployment", restarts=True, ports=(8080,), expose=Expose(ServiceType.NODE_PORT))
        world.wait(lambda: "refused it: " in world.reasons(job), "the rejection")
        assert "no ports of nodes here" in world.reasons(job)
    finally:
        world.close()


@pytest.mark.parametrize(
    ("how", "expected"),
    [("NodePort", r"192\.0\.2\.\d:3\d{4}"), ("LoadBalancer", r"lb\.example\.com:29500"), ("Pod", r"10\.244\..*:29500")],
)
@pytest.mark.parametrize("karmada", [False, True], ids=["directly", "karmada"])
def test_pods_of_other_clusters_get_the_address_of_rank_0(
    tmp_path: Path, how: str, expected: str, *, karmada: bool
) -> None:
    """A ring over two clusters starts in that of rank 0; pods elsewhere get an address that leads there."""
    options = replace(OWN, exposure=replace(EXPOSURE, ring=how))
    world = World(tmp_path, karmada=karmada, names=("alpha", "beta"), options=options)
    try:
        for number, member in enumerate(world.members.values()):
            status = {"addresses": [{"type": "ExternalIP", "address": f"192.0.2.{number + 1}"}]}
            for at in range(2):
                member.patch(NODES, "", f"{member.name}-{at}", {"status": status}, "status")
        job = world.submit(template="torchrun", replicas=3, ring=True, command=("train",), request=WHOLE_NODES)
        world.wait(lambda: bool(world.store.attempts(job)), "it is placed")
        home, other = dict.fromkeys(each.cluster for each in world.store.attempts(job)[-1].placements)
        world.wait(lambda: bool(world.members[home].list(JOBS, SPACE)), "it starts where rank 0 is")
        if how == "LoadBalancer":
            assert not world.members[other].list(JOBS, SPACE)
            (service,) = [each for each in world.members[home].list(SERVICES, SPACE) if of_rank_0(each)]
            assigned = {"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}}}
            world.members[home].patch(SERVICES, SPACE, service["metadata"]["name"], assigned, "status")
        world.wait(lambda: world.state(job) is JobState.RUNNING, "it runs")
        (there,) = world.members[other].list(JOBS, SPACE)
        (container,) = there["spec"]["template"]["spec"]["containers"]
        env = {each["name"]: each["value"] for each in container["env"]}
        assert re.fullmatch(expected, f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}")
        assert env["NODE_RANK"] == "2"
        assert [each for each in seen(world, job) if each.reach is Reach.CLUSTERS]
        world.plane.jobs.cancel(job, "ada")
        world.wait(lambda: not world.left(), "nothing is left")
    finally:
        world.close()


WHOLE_NODES = ResourceRequest(500, 256, 2, 60_000, 0, 1000)


def of_rank_0(service: dict[str, Any]) -> bool:
    """Report whether a service leads to rank 0 of a ring."""
    return "seaway.io/rank-0" in service["metadata"]["annotations"]
