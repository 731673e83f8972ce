"""Kueue's fake lets Jobs in as their queues have room, and says why not, as Kueue does."""

from __future__ import annotations

from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import CLUSTER_QUEUES, JOBS, KUEUE_WORKLOADS, PODS, Json
from tests.unit.fakes.kubernetes.bodies import job, node

API = "kueue.x-k8s.io/v1beta2"
NO = "couldn't assign flavors to pod set main"


def queues(cluster: ApiServer, cpus: int) -> None:
    """Set a queue up that has so many CPUs."""
    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpus}]}
    spec: Json = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}
    cluster.put({"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": "shared"}, "spec": spec})
    local = {"apiVersion": API, "kind": "LocalQueue", "metadata": {"name": "gpu"}, "spec": {"clusterQueue": "shared"}}
    cluster.put(local)


def queued(name: str, cpus: int, runs: str = "forever") -> Json:
    """Write a Job that names the queue."""
    made = job(name, annotations={"testbed/run-seconds": runs} if runs != "forever" else {}, suspend=True)
    made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "gpu"}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": str(cpus)}}
    return made


def said(cluster: ApiServer, name: str) -> tuple[str, str]:
    """Return the reason and message of the quota that a Job did not get; empty when it did."""
    cluster.settle()
    (found,) = [
        each
        for each in cluster.list(KUEUE_WORKLOADS, "default")
        if each["metadata"]["ownerReferences"][0]["name"] == name
    ]
    quota = next(each for each in found["status"]["conditions"] if each["type"] == "QuotaReserved")
    return ("", "") if quota["status"] == "True" else (quota["reason"], quota["message"])


def test_a_job_waits_for_its_queue(cluster: ApiServer) -> None:
    """Until a user makes it; then its pods are made."""
    cluster.create(node("n1"))
    cluster.create(queued("one", 2))
    assert said(cluster, "one") == ("Misconfigured", "LocalQueue gpu doesn't exist")
    assert not cluster.list(PODS, "default")
    queues(cluster, 4)
    assert said(cluster, "one") == ("", "")
    assert len(cluster.list(PODS, "default")) == 1


def test_one_that_does_not_fit_waits_for_another_to_end(cluster: ApiServer) -> None:
    """Anything that is too much altogether is reported otherwise."""
    cluster.create(node("n1"))
    queues(cluster, 4)
    cluster.create(queued("one", 3))
    cluster.settle()
    cluster.create(queued("two", 2))
    cluster.create(queued("three", 5))
    lacks = f"{NO}: insufficient unused quota for cpu in flavor default, 1 more needed"
    assert said(cluster, "two") == ("WaitingForQuota", lacks)
    assert said(cluster, "three")[0] == "ExceedsMaxQuota"
    cluster.delete(JOBS, "default", "one", propagation="Background")
    assert said(cluster, "two") == ("", "")


def test_who_ended_gives_quota_back(cluster: ApiServer) -> None:
    """Also while the Job is still there."""
    cluster.create(node("n1"))
    queues(cluster, 2)
    cluster.create(queued("one", 2, runs="0"))
    cluster.settle()
    cluster.create(queued("two", 2))
    assert said(cluster, "two") == ("", "")


def test_a_stopped_queue_lets_no_one_in(cluster: ApiServer) -> None:
    """Until it goes on."""
    cluster.create(node("n1"))
    queues(cluster, 2)
    cluster.patch(CLUSTER_QUEUES, "", "shared", {"spec": {"stopPolicy": "Hold"}})
    cluster.create(queued("one", 1))
    assert said(cluster, "one") == ("Suspended", "ClusterQueue shared is inactive")
    cluster.patch(CLUSTER_QUEUES, "", "shared", {"spec": {"stopPolicy": "None"}})
    assert said(cluster, "one") == ("", "")


def test_a_server_without_kueue_works(cluster: ApiServer) -> None:
    """No one is at work there who has none of his kinds, and Jobs that name no queue are no one's elsewhere."""
    cluster.create(job("plain", suspend=True))
    cluster.settle()
    assert not cluster.list(KUEUE_WORKLOADS, "default")
    with ApiServer(without=["kueue.x-k8s.io"]) as other:
        other.create(queued("one", 1))
        other.settle()
        found = other.get(JOBS, "default", "one")
        assert found is not None
        assert found["spec"]["suspend"]
