"""Deployments, jobs, kubelets and nodes."""

from __future__ import annotations

import httpx
import pytest

from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import DEPLOYMENTS, EVENTS, JOBS, NAMESPACES, NODES, PODS, REPLICA_SETS, Json
from tests.unit.fakes.kubernetes.bodies import deployment, job, node, pod

BACKGROUND = "Background"


@pytest.fixture(autouse=True)
def nodes(cluster: ApiServer) -> None:
    """Give the cluster two nodes."""
    for name in ("n1", "n2"):
        cluster.create(node(name))


def phases(cluster: ApiServer) -> dict[str, str]:
    """Return the phases of all pods."""
    return {one["metadata"]["name"]: one["status"]["phase"] for one in cluster.list(PODS)}


def conditions(body: Json | None) -> dict[str, str]:
    """Return the conditions of an object."""
    assert body is not None
    return {one["type"]: one["status"] for one in body["status"].get("conditions", [])}


def test_deployment_runs_its_pods(cluster: ApiServer) -> None:
    """A deployment makes a replica set, which makes pods; the deployment is available when they are ready."""
    cluster.create(deployment(replicas=3))
    cluster.settle()
    pods = cluster.list(PODS, labels="app=web")
    assert [one["status"]["phase"] for one in pods] == ["Running"] * 3
    assert all(one["metadata"]["labels"]["pod-template-hash"] for one in pods)
    found = cluster.get(DEPLOYMENTS, "default", "web")
    assert found is not None
    assert found["status"]["availableReplicas"] == found["status"]["updatedReplicas"] == 3
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    assert conditions(found)["Available"] == "True"
    assert cluster.list(REPLICA_SETS)[0]["metadata"]["ownerReferences"][0]["name"] == "web"


def test_deployment_is_scaled(cluster: ApiServer) -> None:
    """Fewer replicas mean fewer pods."""
    cluster.create(deployment(replicas=3))
    cluster.settle()
    cluster.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 1}})
    cluster.settle()
    assert len(phases(cluster)) == 1


def test_new_template_replaces_the_pods(cluster: ApiServer) -> None:
    """A change of the template leads to a new replica set, and the old one is scaled down."""
    cluster.create(deployment())
    cluster.settle()
    before = set(phases(cluster))
    change = {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    cluster.patch(DEPLOYMENTS, "default", "web", change)
    cluster.settle()
    assert len(phases(cluster)) == 2
    assert not before & set(phases(cluster))
    assert len(cluster.list(REPLICA_SETS)) == 2


def test_deleted_pods_are_made_again(cluster: ApiServer) -> None:
    """A replica set makes up for a pod that was deleted."""
    cluster.create(deployment(replicas=1))
    cluster.settle()
    (name,) = phases(cluster)
    cluster.delete(PODS, "default", name)
    cluster.settle()
    assert len(phases(cluster)) == 1
    assert name not in phases(cluster)


@pytest.mark.parametrize("propagation", ["Background", "Foreground", ""])
def test_deletion_takes_what_is_owned_along(cluster: ApiServer, propagation: str) -> None:
    """A deleted deployment takes its replica sets and pods with it."""
    cluster.create(deployment())
    cluster.settle()
    cluster.delete(DEPLOYMENTS, "default", "web", propagation=propagation)
    cluster.settle()
    assert not cluster.list(DEPLOYMENTS)
    assert not cluster.list(REPLICA_SETS)
    assert not phases(cluster)


def test_foreground_deletion_waits_for_what_is_owned(cluster: ApiServer) -> None:
    """With Foreground an object stays until what it owns is gone."""
    cluster.create(deployment())
    cluster.settle()
    cluster.fail_node("n1")
    cluster.settle()
    cluster.fail_node("n2")
    cluster.delete(DEPLOYMENTS, "default", "web", propagation="Foreground")
    cluster.settle()
    found = cluster.get(DEPLOYMENTS, "default", "web")
    assert found is not None
    assert found["metadata"]["finalizers"] == ["foregroundDeletion"]
    cluster.heal_node("n1")
    cluster.heal_node("n2")
    cluster.settle()
    assert cluster.get(DEPLOYMENTS, "default", "web") is None


def test_orphans_stay(cluster: ApiServer) -> None:
    """With Orphan what was owned stays, without an owner."""
    cluster.create(deployment())
    cluster.settle()
    cluster.delete(DEPLOYMENTS, "default", "web", propagation="Orphan")
    cluster.settle()
    assert not cluster.list(DEPLOYMENTS)
    (left,) = cluster.list(REPLICA_SETS)
    assert "ownerReferences" not in left["metadata"]
    assert len(phases(cluster)) == 2


def test_job_orphans_its_pods_unless_reported_otherwise(cluster: ApiServer) -> None:
    """DELETE of a batch/v1 job without a propagation policy leaves its pods, as on real servers."""
    cluster.create(job(annotations={}))
    cluster.settle()
    cluster.delete(JOBS, "default", "train")
    cluster.settle()
    assert len(phases(cluster)) == 1


def test_job_runs_until_enough_have_succeeded(cluster: ApiServer) -> None:
    """A job runs `parallelism` pods at once until `completions` have succeeded."""
    cluster.create(job(parallelism=2, completions=5))
    cluster.settle()
    found = cluster.get(JOBS, "default", "train")
    assert found is not None
    assert found["status"]["succeeded"] == 5
    assert conditions(found)["Complete"] == "True"
    assert found["status"]["completionTime"]
    assert list(phases(cluster).values()) == ["Succeeded"] * 5


def test_indexed_job_tells_its_pods_apart(cluster: ApiServer) -> None:
    """Each pod of an indexed job has its index as annotation and label, and in its host name."""
    cluster.create(job(parallelism=3, completions=3, completionMode="Indexed", annotations={}))
    cluster.settle()
    name = "batch.kubernetes.io/job-completion-index"
    pods = cluster.list(PODS)
    assert sorted(one["metadata"]["annotations"][name] for one in pods) == ["0", "1", "2"]
    for one in pods:
        index = one["metadata"]["labels"][name]
        assert one["spec"]["hostname"] == f"train-{index}"
        assert one["metadata"]["name"].startswith(f"train-{index}-")


def test_indexed_job_counts_indexes(cluster: ApiServer) -> None:
    """An indexed job is complete when every index has succeeded."""
    cluster.create(job(parallelism=3, completions=3, completionMode="Indexed"))
    cluster.settle()
    found = cluster.get(JOBS, "default", "train")
    assert found is not None
    assert found["status"]["completedIndexes"] == "0-2"


def test_job_fails_after_its_backoff_limit(cluster: ApiServer) -> None:
    """Pods that fail are made again, as often as backoffLimit says."""
    cluster.create(job(image="fail/x:1", backoffLimit=2))
    cluster.settle()
    found = cluster.get(JOBS, "default", "train")
    assert conditions(found)["Failed"] == "True"
    assert list(phases(cluster).values()) == ["Failed"] * 3


def test_pod_that_a_user_deletes_counts_as_failed(cluster: ApiServer) -> None:
    """A Job makes another while its limit allows, and fails when it does not; what it deletes itself does not count."""
    cluster.create(job(annotations={}, backoffLimit=1))
    for left, ends in ((1, {}), (0, {"FailureTarget": "True", "Failed": "True"})):
        cluster.settle()
        (name,) = phases(cluster)
        cluster.delete(PODS, "default", name)
        cluster.settle()
        assert len(phases(cluster)) == left
        assert conditions(cluster.get(JOBS, "default", "train")) == ends
    cluster.create(job("other", annotations={}, backoffLimit=0))
    cluster.settle()
    cluster.patch(JOBS, "default", "other", {"spec": {"suspend": True}})
    cluster.settle()
    cluster.patch(JOBS, "default", "other", {"spec": {"suspend": False}})
    cluster.settle()
    assert list(phases(cluster).values()) == ["Running"]


def test_suspended_job_has_no_pods(cluster: ApiServer) -> None:
    """A suspended job runs nothing until it is resumed."""
    cluster.create(job(suspend=True))
    cluster.settle()
    assert not phases(cluster)
    cluster.patch(JOBS, "default", "train", {"spec": {"suspend": False}})
    cluster.settle()
    assert list(phases(cluster).values()) == ["Succeeded"]


def test_pod_runs_for_as_long_as_it_says(cluster: ApiServer) -> None:
    """A pod that is not to be restarted succeeds after `testbed/run-seconds`."""
    cluster.create(pod(annotations={"testbed/run-seconds": "0.05"}, restartPolicy="Never"))
    cluster.settle()
    assert phases(cluster) == {"a": "Running"}

    def over() -> bool:
        return cluster.store.get(PODS, "default", "a").fields[1] == "Succeeded"

    assert cluster.wait_for(over)


@pytest.mark.parametrize(("image", "reason", "code"), [("oom/x:1", "OOMKilled", 137), ("fail/x:1", "Error", 1)])
def test_images_decide_how_pods_end(cluster: ApiServer, image: str, reason: str, code: int) -> None:
    """An image oom/... is killed for memory, one fail/... exits with 1."""
    cluster.create(pod(image=image, restartPolicy="Never"))
    cluster.settle()
    (found,) = cluster.list(PODS)
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (found["status"]["phase"], ended["reason"], ended["exitCode"]) == ("Failed", reason, code)


def test_image_that_is_missing_keeps_the_pod_waiting(cluster: ApiServer) -> None:
    """A pod whose image cannot be pulled stays Pending with the reason ImagePullBackOff."""
    cluster.create(pod(image="missing/x:1"))
    cluster.settle()
    (found,) = cluster.list(PODS)
    assert found["status"]["phase"] == "Pending"
    assert found["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"


def test_containers_are_restarted(cluster: ApiServer) -> None:
    """With restartPolicy Always a container that failed waits in CrashLoopBackOff and starts again."""
    cluster.create(pod(image="fail/x:1"))
    cluster.settle()

    def restarted() -> bool:
        found = cluster.store.get(PODS, "default", "a").read()["status"]["containerStatuses"][0]
        return int(found["restartCount"]) >= 2

    assert cluster.wait_for(restarted)
    (found,) = cluster.list(PODS)
    assert found["status"]["phase"] == "Running"
    assert found["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1


def test_bound_pods_are_deleted_in_grace(cluster: ApiServer) -> None:
    """A bound pod has a deletionTimestamp first; the kubelet lets it go."""
    cluster.create(pod())
    cluster.settle()
    with httpx.Client(base_url=cluster.url, headers=cluster.headers) as api:
        answer = api.delete("/api/v1/namespaces/default/pods/a").json()
    assert answer["metadata"]["deletionTimestamp"]
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 30
    cluster.settle()
    assert not phases(cluster)


def test_node_that_fails_loses_its_pods(cluster: ApiServer) -> None:
    """A silent node is not ready and tainted, and its pods stay Terminating until it is back."""
    cluster.create(pod(nodeSelector={"kubernetes.io/hostname": "n1"}))
    cluster.settle()
    cluster.fail_node("n1")
    cluster.settle()
    found = cluster.get(NODES, "", "n1")
    assert conditions(found)["Ready"] == "Unknown"
    assert found is not None
    assert {one["effect"] for one in found["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
    (left,) = cluster.list(PODS)
    assert left["metadata"]["deletionTimestamp"]
    cluster.heal_node("n1")
    cluster.settle()
    assert conditions(cluster.get(NODES, "", "n1"))["Ready"] == "True"
    assert not phases(cluster)


def test_pods_of_a_failed_node_run_elsewhere(cluster: ApiServer) -> None:
    """A deployment's pods that were evicted are made again on a node that is there."""
    cluster.create(deployment(replicas=2))
    cluster.settle()
    cluster.fail_node("n1")
    cluster.settle()
    live = [one for one in cluster.list(PODS) if "deletionTimestamp" not in one["metadata"]]
    assert [one["spec"]["nodeName"] for one in live] == ["n2", "n2"]


def test_no_one_works_while_the_server_is_stopped(cluster: ApiServer) -> None:
    """Controllers cannot do anything at a server that is stopped; they catch up afterwards."""
    cluster.stop()
    cluster.create(deployment(replicas=1))
    cluster.settle()
    assert not phases(cluster)
    cluster.start()
    cluster.settle()
    assert list(phases(cluster).values()) == ["Running"]


def test_namespace_takes_its_objects_along(cluster: ApiServer) -> None:
    """A deleted namespace is Terminating, takes no new objects, and goes when it is empty."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    cluster.create(deployment(), "x")
    cluster.settle()
    cluster.fail_node("n1")
    cluster.fail_node("n2")
    cluster.delete(NAMESPACES, "", "x")
    cluster.settle()
    with httpx.Client(base_url=cluster.url, headers=cluster.headers) as api:
        assert api.get("/api/v1/namespaces/x").json()["status"]["phase"] == "Terminating"
        refused = api.post("/api/v1/namespaces/x/configmaps", json={"metadata": {"name": "a"}})
        assert refused.status_code == 403
    cluster.heal_node("n1")
    cluster.heal_node("n2")
    cluster.settle()
    assert cluster.get(NAMESPACES, "", "x") is None
    assert not cluster.list(DEPLOYMENTS)


def test_finalizers_keep_an_object(cluster: ApiServer) -> None:
    """An object with finalizers stays, marked for deletion, until they are gone."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["x.io/y"]}}
    cluster.create(body)
    with httpx.Client(base_url=cluster.url, headers=cluster.headers) as api:
        path = "/api/v1/namespaces/default/configmaps/a"
        assert api.delete(path).json()["metadata"]["deletionTimestamp"]
        assert api.get(path).status_code == 200
        kind = {"content-type": "application/merge-patch+json"}
        assert api.patch(path, json={"metadata": {"finalizers": None}}, headers=kind).status_code == 200
        assert api.get(path).status_code == 404


def test_logs_are_what_the_table_says(cluster: ApiServer) -> None:
    """Logs come from what a test writes; with follow they go on until the pod ends."""
    cluster.create(pod(restartPolicy="Never"))
    cluster.settle()
    cluster.write_log("default", "a", "one\ntwo\nthree")
    path = "/api/v1/namespaces/default/pods/a/log"
    with httpx.Client(base_url=cluster.url, headers=cluster.headers) as api:
        assert api.get(path).text == "one\ntwo\nthree\n"
        assert api.get(path, params={"tailLines": 2}).text == "two\nthree\n"
        assert api.get(path, params={"container": "other"}).status_code == 400
        with api.stream("GET", path, params={"follow": "true", "tailLines": "1"}) as response:
            lines = response.iter_lines()
            assert next(lines) == "three"
            cluster.write_log("default", "a", "four")
            assert next(lines) == "four"
            cluster.delete(PODS, "default", "a")
            assert list(lines) == []


def test_logs_of_a_container_that_waits_are_refused(cluster: ApiServer) -> None:
    """There is no log before a container has started."""
    cluster.create(pod(image="missing/x:1"))
    cluster.settle()
    found = httpx.get(f"{cluster.url}/api/v1/namespaces/default/pods/a/log", headers=cluster.headers)
    assert found.status_code == 400
    assert "pull image" in found.json()["message"]


def test_events_tell_what_happened(cluster: ApiServer) -> None:
    """Events about a pod can be selected by its name."""
    cluster.create(pod())
    cluster.settle()
    reasons = [one["reason"] for one in cluster.list(EVENTS, fields="involvedObject.name=a")]
    assert set(reasons) >= {"Scheduled", "Started"}


def warnings(cluster: ApiServer, kind: str) -> list[tuple[str, str]]:
    """Return the reasons and messages of events that warn of objects of a kind."""
    found = cluster.list(EVENTS, fields=f"type=Warning,involvedObject.kind={kind}")
    return [(one["reason"], one["message"]) for one in found]


def test_pods_of_a_job_that_are_denied_are_reported_by_events(cluster: ApiServer) -> None:
    """A Job has no condition for it; it is tried again, and runs once pods are let in."""
    end = cluster.deny(PODS, "exceeded quota: team")
    cluster.create(job())
    cluster.settle()
    found = cluster.list(JOBS)[0]
    assert conditions(found) == {}
    said = warnings(cluster, "Job")
    assert {reason for reason, _ in said} == {"FailedCreate"}
    assert all(text.startswith('Error creating: pods "') for _, text in said)
    assert all(text.endswith('" is forbidden: exceeded quota: team') for _, text in said)
    end()
    assert cluster.wait_for(lambda: any(cluster.store.all(PODS)))


def test_pods_of_a_deployment_that_are_denied_are_a_condition(cluster: ApiServer) -> None:
    """The replica set says it, and the deployment after it, until pods are let in."""
    end = cluster.deny(PODS, "no cards for you", webhook="gpu.example")
    cluster.create(deployment(replicas=1))
    cluster.settle()
    assert conditions(cluster.get(DEPLOYMENTS, "default", "web"))["ReplicaFailure"] == "True"
    text = 'Error creating: admission webhook "gpu.example" denied the request: no cards for you'
    assert warnings(cluster, "ReplicaSet") == [("FailedCreate", text)]
    end()
    assert cluster.wait_for(lambda: any(cluster.store.all(PODS)))
    cluster.settle()
    assert "ReplicaFailure" not in conditions(cluster.get(DEPLOYMENTS, "default", "web"))
