"""Namespaces of tenants: created once with their content, and refused with a reason; on API servers in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.cluster import ClusterOptions, KubernetesCluster
from seaway.adapters.kubernetes.deploy import namespaces as module
from seaway.adapters.kubernetes.templates.namespace_objects import BASELINE, EVERY_TENANT, NamespaceOptions
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.deployment import Deployment, WorkloadPhase
from seaway.testing.backends import deploy, removal
from tests.conformance.test_kubernetes_backends import OPTIONS, Under, furnish, wait
from tests.conformance.test_own_templates import answer, phases
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.exchange import Answer, Request
from tests.fakes.kubernetes.kinds import JOBS, NAMESPACES, NETWORK_POLICIES, PODS, RESOURCE_QUOTAS

ISOLATION = ["seaway-isolation", "seaway-ray"]


class Requests:
    """Counts requests by method and kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    async def __call__(self, request: Request) -> Answer | None:
        """Count a request that is no watch, list or health check, and leave it to the server."""
        parts = request.path.split("/")
        if request.method != "GET" or parts[-2] == "namespaces":
            self.counts[f"{request.method} {parts[-1 if request.method == 'POST' else -2]}"] += 1
        return None


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Start a server with two nodes."""
    with ApiServer("alpha") as made:
        furnish(made)
        yield made


def join(server: ApiServer, folder: Path, options: ClusterOptions = OPTIONS) -> KubernetesBackends:
    """Begin to follow a server."""
    server.kubeconfig(folder / "alpha")
    return KubernetesBackends(folder, options, seed=1)


def job(cluster: KubernetesCluster, server: ApiServer, tenant: str = "vision", name: str = "own") -> Deployment:
    """Return a job of a tenant."""
    made = deploy(Under(server, cluster, lambda: None, server).made(), name)
    return replace(made, spec=replace(made.spec, tenant=tenant))


@pytest.fixture
def cluster(server: ApiServer, tmp_path: Path) -> Iterator[KubernetesCluster]:
    """Join the cluster."""
    backends = join(server, tmp_path)
    yield backends.clusters()[0]
    backends.close()


def names(server: ApiServer, namespace: str) -> list[str]:
    """Return the names of the network policies of a namespace."""
    return [each["metadata"]["name"] for each in server.list(NETWORK_POLICIES, namespace)]


def test_a_known_namespace_costs_no_request(cluster: KubernetesCluster, server: ApiServer) -> None:
    """The first job of a tenant prepares its namespace; each later job writes its own objects and nothing else."""
    seen = Requests()
    job(cluster, server)  # waits until the cluster is identified
    server.app.before.append(seen)
    for number, expected in enumerate(
        [{"GET namespaces": 1, "POST namespaces": 1, "PATCH networkpolicies": 2, "PATCH jobs": 1}, {"PATCH jobs": 1}]
    ):
        seen.counts.clear()
        assert answer(cluster, job(cluster, server, name=f"job-{number}")).done
        assert seen.counts == expected


def test_content_that_was_removed_is_written_again(
    cluster: KubernetesCluster, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next job after a while renews it, and a namespace that is gone is created with it before the job."""
    assert answer(cluster, job(cluster, server)).done
    server.delete(NETWORK_POLICIES, "seaway-vision", "seaway-isolation")
    monkeypatch.setattr(module, "RENEWAL_S", 0.0)
    assert answer(cluster, job(cluster, server, name="second")).done
    assert names(server, "seaway-vision") == ISOLATION
    monkeypatch.setattr(module, "RENEWAL_S", 600.0)
    assert answer(cluster, job(cluster, server, name="third")).done
    server.delete(NAMESPACES, "", "seaway-vision")
    wait(lambda: not server.list(JOBS, "seaway-vision"), "the end of the namespace")
    wait(lambda: not cluster.changes("", 0).workloads, "the view without jobs")
    assert answer(cluster, job(cluster, server, name="fourth")).done
    assert names(server, "seaway-vision") == ISOLATION


@pytest.mark.parametrize(
    ("path", "method", "says"),
    [
        ("/api/v1/namespaces/seaway-vision", "GET", "namespace 'seaway-vision' cannot be read"),
        (
            "/api/v1/namespaces",
            "POST",
            "create it as in deploy/kubernetes/tenant.yaml, or apply deploy/",
        ),
        ("*/networkpolicies/*", "PATCH", "NetworkPolicy seaway-vision/seaway-isolation cannot be written"),
    ],
)
def test_a_missing_right_is_a_reason(
    path: str, method: str, says: str, cluster: KubernetesCluster, server: ApiServer
) -> None:
    """Nothing of the job is written without the isolation of its tenant."""
    one = job(cluster, server)
    server.faults.error(403, path, method)
    said = answer(cluster, one)
    assert (said.done, said.refused, said.everywhere) == (False, True, True)
    assert says in said.reason
    assert "deploy/kubernetes/" in said.reason
    assert not server.list(JOBS, "seaway-vision")


def test_a_namespace_of_others_is_not_used(cluster: KubernetesCluster, server: ApiServer) -> None:
    """An existing namespace needs the label of the tenant; its Pod Security level stays as an operator set it."""
    one = job(cluster, server)
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seaway-vision"}})
    assert "kubectl label namespace seaway-vision seaway.io/tenant=vision" in answer(cluster, one).reason
    assert names(server, "seaway-vision") == []
    server.patch(NAMESPACES, "", "seaway-vision", {"metadata": {"labels": {"seaway.io/tenant": "vision"}}})
    assert answer(cluster, one).done
    (namespace,) = (each for each in server.list(NAMESPACES) if each["metadata"]["name"] == "seaway-vision")
    assert "pod-security.kubernetes.io/enforce" not in namespace["metadata"]["labels"]


def test_a_quota_holds_in_the_namespace_of_its_tenant(server: ApiServer, tmp_path: Path) -> None:
    """The second pod of the tenant is denied with the cluster's reason; a pod of another tenant is not."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota"},
        "spec": {"hard": {"pods": "1"}},
    }
    content = NamespaceOptions(pod_security=BASELINE, own={EVERY_TENANT: (quota,)})
    backends = join(server, tmp_path, replace(OPTIONS, namespace_options=content))
    (cluster,) = backends.clusters()
    for name, tenant in (("first", "vision"), ("second", "vision"), ("third", "speech")):
        assert answer(cluster, job(cluster, server, tenant, name)).done
    running = WorkloadPhase.RUNNING
    wait(lambda: sorted(phases(cluster), key=str) == [WorkloadPhase.FAILED, running, running], "one denial")
    (denied,) = (each for each in cluster.changes("", 0).workloads if each.phase is WorkloadPhase.FAILED)
    assert "exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1" in denied.reason
    assert len(server.list(RESOURCE_QUOTAS)) == 2
    backends.close()


def test_one_namespace_for_all_tenants_is_left_as_it_is(server: ApiServer, tmp_path: Path) -> None:
    """It may be that of others, who would be cut off by a policy for all pods."""
    backends = join(server, tmp_path, replace(OPTIONS, namespaces=Namespaces("gpu")))
    (cluster,) = backends.clusters()
    assert answer(cluster, job(cluster, server)).done
    assert (len(server.list(JOBS, "gpu")), names(server, "gpu")) == (1, [])
    backends.close()


def test_rights_of_an_earlier_version_suffice_for_its_jobs(server: ApiServer, tmp_path: Path) -> None:
    """Before an operator grants rights in all namespaces, jobs in the shared one are observed and removed."""
    earlier = join(server, tmp_path, replace(OPTIONS, namespaces=Namespaces("seaway")))
    one = job(earlier.clusters()[0], server)
    assert answer(earlier.clusters()[0], one).done
    earlier.close()
    kinds = ("/api/v1/services", "/api/v1/events", "/apis/apps/v1/deployments", "/apis/batch/v1/jobs")
    for each in kinds:
        server.faults.error(403, each, "GET")
    backends = join(server, tmp_path)
    (cluster,) = backends.clusters()
    Under(server, cluster, backends.close, server).made()
    wait(lambda: phases(cluster) == [WorkloadPhase.RUNNING], "the job running")
    wait(lambda: answer(cluster, removal(one)).done, "the removal")
    assert not server.list(JOBS) + server.list(PODS, "seaway")
    backends.close()
