"""Objects in and out, by the rules of Kubernetes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import PODS, Json

PODS_PATH = "/api/v1/namespaces/default/pods"
MAPS_PATH = "/api/v1/namespaces/default/configmaps"
RAY_JOB: Json = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "a"}}
DEPLOYMENTS_PATH = "/apis/apps/v1/namespaces/default/deployments"
MERGE = {"content-type": "application/merge-patch+json"}


def pod(name: str = "a", **spec: Any) -> Json:  # noqa: ANN401, any field
    """Return a pod."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "busybox:1"}], **spec}}


def deployment(name: str = "web", replicas: int = 1) -> Json:
    """Return a deployment."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod()["spec"]}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def config_map(name: str = "a", **data: str) -> Json:
    """Return a ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


def test_new_object_is_given_what_identifies_it(api: httpx.Client) -> None:
    """A new object has uid, resourceVersion and creationTimestamp, and is what is read afterwards."""
    made = api.post(MAPS_PATH, json=config_map(b="c"))
    assert made.status_code == 201
    meta = made.json()["metadata"]
    assert meta["uid"]
    assert int(meta["resourceVersion"]) > 0
    assert meta["creationTimestamp"].endswith("Z")
    assert api.get(f"{MAPS_PATH}/a").json() == made.json()


def test_name_is_taken_once(api: httpx.Client) -> None:
    """A second object of the same name gets 409 AlreadyExists."""
    api.post(MAPS_PATH, json=config_map())
    again = api.post(MAPS_PATH, json=config_map())
    assert again.status_code == 409
    assert again.json()["reason"] == "AlreadyExists"
    assert again.json()["message"] == 'configmaps "a" already exists'
    assert again.json()["details"] == {"name": "a", "kind": "configmaps"}


def test_missing_object_is_not_found(api: httpx.Client) -> None:
    """A missing object gets 404 with a Status that names it."""
    body = api.get(f"{DEPLOYMENTS_PATH}/none").json()
    assert body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "none" not found',
        "reason": "NotFound",
        "details": {"name": "none", "group": "apps", "kind": "deployments"},
        "code": 404,
    }


def test_name_is_generated(api: httpx.Client) -> None:
    """A name that is to be generated gets five characters more."""
    name = api.post(MAPS_PATH, json={"metadata": {"generateName": "a-"}}).json()["metadata"]["name"]
    assert name.startswith("a-")
    assert len(name) == 7


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a" * 254])
def test_bad_name_is_invalid(api: httpx.Client, name: str) -> None:
    """A name that DNS does not take gets 422 with the field as cause."""
    refused = api.post(MAPS_PATH, json=config_map(name))
    assert refused.status_code == 422
    assert refused.json()["details"]["causes"][0]["field"] == "metadata.name"


def test_namespace_has_to_exist(api: httpx.Client) -> None:
    """An object in a namespace that does not exist gets 404 of the namespace."""
    refused = api.post("/api/v1/namespaces/none/configmaps", json=config_map())
    assert refused.status_code == 404
    assert refused.json()["message"] == 'namespaces "none" not found'


def test_stale_write_is_refused(api: httpx.Client) -> None:
    """A PUT based on an old version gets 409 Conflict and changes nothing; one without a version goes through."""
    first = api.post(MAPS_PATH, json=config_map(b="1")).json()
    second = api.put(f"{MAPS_PATH}/a", json={**first, "data": {"b": "2"}}).json()
    stale = api.put(f"{MAPS_PATH}/a", json={**first, "data": {"b": "3"}})
    assert stale.status_code == 409
    assert stale.json()["reason"] == "Conflict"
    assert api.get(f"{MAPS_PATH}/a").json() == second
    assert api.put(f"{MAPS_PATH}/a", json=config_map(b="4")).status_code == 200


def test_stale_patch_is_refused(api: httpx.Client) -> None:
    """A patch that names an old version gets 409; one that names none goes through."""
    first = api.post(MAPS_PATH, json=config_map(b="1")).json()["metadata"]["resourceVersion"]
    assert api.patch(f"{MAPS_PATH}/a", json={"data": {"b": "2"}}, headers=MERGE).status_code == 200
    change = {"metadata": {"resourceVersion": first}, "data": {"b": "3"}}
    assert api.patch(f"{MAPS_PATH}/a", json=change, headers=MERGE).status_code == 409


def test_write_that_changes_nothing_makes_no_version(api: httpx.Client) -> None:
    """Writing the present state already leaves the version as it is."""
    first = api.post(MAPS_PATH, json=config_map(b="1")).json()
    assert api.put(f"{MAPS_PATH}/a", json=first).json() == first
    assert api.patch(f"{MAPS_PATH}/a", json={"data": {"b": "1"}}, headers=MERGE).json() == first


def test_generation_counts_changes_of_the_spec(api: httpx.Client) -> None:
    """The generation goes up when the spec changes, and neither with labels nor with the status."""
    api.post(DEPLOYMENTS_PATH, json=deployment())
    path = f"{DEPLOYMENTS_PATH}/web"

    def generation(change: Json, part: str = "") -> int:
        return int(api.patch(path + part, json=change, headers=MERGE).json()["metadata"]["generation"])

    assert generation({"metadata": {"labels": {"a": "b"}}}) == 1
    assert generation({"status": {"replicas": 3}}, "/status") == 1
    assert generation({"spec": {"paused": True}}) == 2


def test_status_and_spec_are_written_apart(api: httpx.Client) -> None:
    """A write to the object leaves the status alone, one to /status the spec."""
    api.post(DEPLOYMENTS_PATH, json={**deployment(), "status": {"replicas": 9}})
    path = f"{DEPLOYMENTS_PATH}/web"
    assert "replicas" not in api.get(path).json().get("status", {})
    both = {"spec": {"paused": True}, "status": {"replicas": 5}}
    assert api.patch(path, json=both, headers=MERGE).json().get("status", {}).get("replicas") is None
    api.patch(f"{path}/status", json={"spec": {"paused": False}, "status": {"replicas": 5}}, headers=MERGE)
    found = api.get(path).json()
    assert found["spec"]["paused"] is True
    assert found["status"]["replicas"] == 5


def test_dry_run_stores_nothing(api: httpx.Client) -> None:
    """With dryRun=All the answer is as ever, and nothing has happened."""
    assert api.post(f"{MAPS_PATH}?dryRun=All", json=config_map()).status_code == 201
    assert api.get(f"{MAPS_PATH}/a").status_code == 404
    before = api.post(MAPS_PATH, json=config_map(b="1")).json()
    assert api.put(f"{MAPS_PATH}/a?dryRun=All", json=config_map(b="2")).json()["data"] == {"b": "2"}
    assert api.delete(f"{MAPS_PATH}/a?dryRun=All").status_code == 200
    assert api.get(f"{MAPS_PATH}/a").json() == before


def test_json_patch_is_applied_or_refused_whole(api: httpx.Client) -> None:
    """JSON patch operations are carried out in order; a failed test gets 422 and changes nothing."""
    api.post(MAPS_PATH, json=config_map(b="1"))
    kind = {"content-type": "application/json-patch+json"}
    changes = [
        {"op": "test", "path": "/data/b", "value": "1"},
        {"op": "add", "path": "/data/c~1d", "value": "2"},
        {"op": "remove", "path": "/data/b"},
    ]
    assert api.patch(f"{MAPS_PATH}/a", json=changes, headers=kind).json()["data"] == {"c/d": "2"}
    assert api.patch(f"{MAPS_PATH}/a", json=changes, headers=kind).status_code == 422
    assert api.get(f"{MAPS_PATH}/a").json()["data"] == {"c/d": "2"}


def test_strategic_patch_merges_containers_by_name(api: httpx.Client) -> None:
    """A strategic merge patch changes the item of the same name and keeps the others."""
    body = deployment()
    body["spec"]["template"]["spec"]["containers"].append({"name": "other", "image": "b:1"})
    api.post(DEPLOYMENTS_PATH, json=body)
    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "c:1"}]}}}}
    kind = {"content-type": "application/strategic-merge-patch+json"}
    found = api.patch(f"{DEPLOYMENTS_PATH}/web", json=change, headers=kind).json()
    images = {one["name"]: one["image"] for one in found["spec"]["template"]["spec"]["containers"]}
    assert images == {"main": "c:1", "other": "b:1"}


def test_unknown_patch_is_refused(api: httpx.Client) -> None:
    """A patch of another media type gets 415, and custom resources take no strategic merge."""
    api.post(MAPS_PATH, json=config_map())
    assert api.patch(f"{MAPS_PATH}/a", json={}, headers={"content-type": "application/json"}).status_code == 415
    path = "/apis/ray.io/v1/namespaces/default/rayjobs"
    api.post(path, json={**RAY_JOB, "spec": {}})
    kind = {"content-type": "application/strategic-merge-patch+json"}
    assert api.patch(f"{path}/a", json={"spec": {"b": 1}}, headers=kind).status_code == 415


def test_custom_resource_is_replaced_with_its_version_only(api: httpx.Client) -> None:
    """A PUT of a custom resource without resourceVersion gets 422."""
    path = "/apis/ray.io/v1/namespaces/default/rayjobs"
    made = api.post(path, json={**RAY_JOB, "spec": {"b": 1}}).json()
    assert api.put(f"{path}/a", json={**RAY_JOB, "spec": {"b": 2}}).status_code == 422
    assert api.put(f"{path}/a", json={**made, "spec": {"b": 2}}).status_code == 200


def test_scale_changes_replicas_and_nothing_else(api: httpx.Client) -> None:
    """/scale reads and writes the number of replicas."""
    api.post(DEPLOYMENTS_PATH, json=deployment())
    path = f"{DEPLOYMENTS_PATH}/web/scale"
    assert api.get(path).json()["spec"] == {"replicas": 1}
    assert api.patch(path, json={"spec": {"replicas": 4}}, headers=MERGE).json()["kind"] == "Scale"
    assert api.get(f"{DEPLOYMENTS_PATH}/web").json()["spec"]["replicas"] == 4


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"selector": {"matchLabels": {"app": "other"}}}, "spec.selector"),
        ({"template": {"metadata": {"labels": {"app": "other"}}}}, "spec.template.metadata.labels"),
        ({"template": {"spec": {"containers": []}}}, "spec.template.spec.containers"),
    ],
)
def test_deployment_is_checked(api: httpx.Client, change: Json, field: str) -> None:
    """A selector cannot change, has to match the template, and a pod needs containers."""
    api.post(DEPLOYMENTS_PATH, json=deployment())
    refused = api.patch(f"{DEPLOYMENTS_PATH}/web", json={"spec": change}, headers=MERGE)
    assert refused.status_code == 422
    assert field in [cause["field"] for cause in refused.json()["details"]["causes"]]


def test_pod_keeps_its_spec(api: httpx.Client) -> None:
    """Of a pod's spec hardly anything can be changed; its image can."""
    api.post(PODS_PATH, json=pod())
    refused = api.patch(f"{PODS_PATH}/a", json={"spec": {"nodeName": "n"}}, headers=MERGE)
    assert refused.status_code == 422
    images = {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}
    kind = {"content-type": "application/strategic-merge-patch+json"}
    assert api.patch(f"{PODS_PATH}/a", json=images, headers=kind).status_code == 200


def test_pod_is_bound_once(api: httpx.Client) -> None:
    """/binding puts a pod on a node; a second time it gets 409."""
    api.post(PODS_PATH, json=pod(schedulerName="mine"))
    bound = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert api.post(f"{PODS_PATH}/a/binding", json=bound).status_code == 201
    assert api.get(f"{PODS_PATH}/a").json()["spec"]["nodeName"] == "n1"
    assert api.post(f"{PODS_PATH}/a/binding", json=bound).status_code == 409


def test_strangers_are_stored_out(server: ApiServer) -> None:
    """Without a token that is known, everything but the version and health gets 401."""
    assert httpx.get(f"{server.url}/api/v1/nodes").status_code == 401
    assert httpx.get(f"{server.url}/readyz").text == "ok"
    old = server.headers
    server.new_token(only=True)
    assert httpx.get(f"{server.url}/api/v1/nodes", headers=old).json()["reason"] == "Unauthorized"
    assert httpx.get(f"{server.url}/api/v1/nodes", headers=server.headers).status_code == 200


def test_server_says_what_it_serves(api: httpx.Client) -> None:
    """Discovery lists groups, versions and resources; what is not served gets 404."""
    groups = [group["name"] for group in api.get("/apis").json()["groups"]]
    assert {"apps", "batch", "resource.k8s.io", "ray.io"} <= set(groups)
    resources = api.get("/apis/apps/v1").json()["resources"]
    assert {"deployments", "deployments/status", "deployments/scale"} <= {one["name"] for one in resources}
    assert api.get("/apis/none.io/v1").status_code == 404
    assert api.get("/apis/apps/v1/nothings").status_code == 404
    assert api.get("/version").json()["major"] == "1"


def test_groups_can_be_left_out() -> None:
    """A server without a group answers 404 for its kinds, as a cluster of an older version does."""
    with ApiServer(without=["resource.k8s.io"]) as server:
        found = httpx.get(f"{server.url}/apis/resource.k8s.io/v1/resourceslices", headers=server.headers)
        assert found.status_code == 404


def test_objects_can_be_placed_past_the_rules(server: ApiServer) -> None:
    """`put` stores an object with its status, in any state."""
    body = {"apiVersion": "v1", "kind": "Pod", **pod(nodeName="n1"), "status": {"phase": "Failed"}}
    server.put(body)
    found = server.get(PODS, "default", "a")
    assert found is not None
    assert found["status"] == {"phase": "Failed"}
    assert [one["metadata"]["name"] for one in server.list(PODS, fields="status.phase=Failed")] == ["a"]
