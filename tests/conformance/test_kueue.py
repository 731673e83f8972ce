"""A job that waits for Kueue reports Kueue's reason, and runs after admission: on API servers in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.backends import KubernetesBackends
from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.domain.deployment import Cause, Deployment, Workload, WorkloadPhase
from tests.conformance.test_kubernetes_backends import OPTIONS, Under, furnish, wait
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import JOBS, KUBERNETES, KUEUE_WORKLOADS
from tests.unit.adapters.kubernetes.templates.sample import deployment, share
from tests.unit.fakes.kubernetes.test_kueue import API

POD_START_S = 0.5
MISSING = "Kueue does not admit it: LocalQueue default doesn't exist"


def queues(server: ApiServer) -> None:
    """Create a queue with room for any job."""
    names = ("cpu", "memory", "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores")
    flavor = {"name": "any", "resources": [{"name": name, "nominalQuota": "1T"} for name in names]}
    spec = {"resourceGroups": [{"coveredResources": list(names), "flavors": [flavor]}]}
    server.put({"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": spec})
    meta = {"name": "default", "namespace": "seaway-default"}
    server.put({"apiVersion": API, "kind": "LocalQueue", "metadata": meta, "spec": {"clusterQueue": "all"}})


def queued() -> Deployment:
    """Create a deployment that goes through Kueue."""
    made = deployment("kueue", [("node-1", (share("GPU-node-1-0"),))])
    return replace(made, cluster="alpha")


def workloads(under: Under) -> list[Workload]:
    """Return its workloads."""
    return list(under.cluster.changes("", 0).workloads)


@pytest.fixture
def under(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Under]:
    """Start a server, by default one with a current Kueue, and join it."""
    kinds = getattr(request, "param", None)
    with ApiServer("alpha", **({"kinds": kinds} if kinds else {})) as server:
        furnish(server)
        server.kubeconfig(tmp_path / "alpha")
        limits = Limits(unreachable_timeout_s=0.4, unschedulable_timeout_s=0.2, pod_start_timeout_s=POD_START_S)
        backends = KubernetesBackends(tmp_path, replace(OPTIONS, limits=limits), seed=1)
        made = Under(server, backends.clusters()[0], backends.close, server)
        wait(made.received, "the first list")
        yield made
        backends.close()


def test_a_job_is_let_in_by_kueue(under: Under) -> None:
    """A job reports the missing queue until a user creates it; then it runs."""
    assert under.cluster.send([queued()])[0].result(10).done
    wait(lambda: [each.reason for each in workloads(under)] == [MISSING], "Kueue's words")
    queues(under.member)
    wait(lambda: [each.phase for each in workloads(under)] == [WorkloadPhase.RUNNING], "that it runs")


def test_a_queue_that_is_missing_for_long_refuses(under: Under) -> None:
    """A job without its queue is rejected after a while and frees its devices: another cluster may have the queue."""
    assert under.cluster.send([queued()])[0].result(10).done
    wait(lambda: [each.phase for each in workloads(under)] == [WorkloadPhase.FAILED], "that it is refused")
    (reported,) = workloads(under)
    assert (reported.cause, reported.reason) == (Cause.REJECTED, MISSING)


OLDER = (*KUBERNETES, replace(KUEUE_WORKLOADS, version="v1beta1"))


@pytest.mark.parametrize("under", [OLDER], indirect=True, ids=["v1beta1"])
def test_an_older_kueue_is_understood(under: Under) -> None:
    """Workloads of an older API version, with fewer reasons, are read."""
    assert under.cluster.send([queued()])[0].result(10).done
    job = under.member.list(JOBS, "seaway-default")[0]["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["name"], "uid": job["uid"], "controller": True}
    said = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "no quota"}
    meta = {"name": "job-sw", "namespace": "seaway-default", "ownerReferences": [owner]}
    body = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": meta}
    under.member.put({**body, "status": {"conditions": [said]}})
    wait(lambda: [each.reason for each in workloads(under)] == ["Kueue does not admit it: no quota"], "Kueue's words")


def test_a_view_does_without_kueue_where_it_may_not_see_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without the right to list Workloads everything else works; the missing right is logged once."""
    with ApiServer("alpha") as server:
        furnish(server)
        fault = server.faults.error(403, "*/workloads*")
        server.kubeconfig(tmp_path / "alpha")
        with caplog.at_level(logging.WARNING):
            backends = KubernetesBackends(tmp_path, OPTIONS, seed=1)
            made = Under(server, backends.clusters()[0], backends.close, server)
            wait(made.received, "the first list")
            wait(lambda: fault.hits > 2, "that it is tried again")
        assert made.received()
        backends.close()
    assert caplog.text.count("Kueue's Workloads cannot be followed") == 1
