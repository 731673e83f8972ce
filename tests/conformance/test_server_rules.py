"""Rules of Kubernetes' API, checked on the fake and, if SEAWAY_TEST_MEMBERS names some, on real servers.

Nothing here is about Seaway. The fake server is trustworthy as far as this file checks it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.conformance.real_servers import eventually
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.real import MEMBERS, connect, kubeconfigs, new_name
from tests.fakes.kubernetes.server import CONTROLLERS

Json = dict[str, Any]
MERGE = {"content-type": "application/merge-patch+json"}
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}
PATCH = {"content-type": "application/json-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}


@pytest.fixture(scope="module", params=["memory", *kubeconfigs(MEMBERS)], ids=lambda one: getattr(one, "stem", one))
def api(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """Return a client of a server without kubelets."""
    if request.param != "memory":
        with connect(request.param) as client:
            yield client
        return
    with (
        ApiServer(controllers=set(CONTROLLERS) - {"kubelet"}) as server,
        httpx.Client(base_url=server.url, headers=server.headers, timeout=10) as client,
    ):
        yield client


def test_real_servers_are_held_to_the_same_rules() -> None:
    """The real servers in SEAWAY_TEST_MEMBERS follow every rule here."""
    if not kubeconfigs(MEMBERS):
        pytest.skip(f"{MEMBERS} names no kubeconfig of a real server; the rules were put to the one in memory only")


@pytest.fixture
def space(api: httpx.Client) -> Iterator[str]:
    """Create a namespace for the test and return its path."""
    name = new_name()
    assert api.post("/api/v1/namespaces", json={"metadata": {"name": name}}).status_code == 201
    yield f"/namespaces/{name}"
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def maps(space: str) -> str:
    """Return the path of the ConfigMaps of the test's namespace."""
    return f"/api/v1{space}/configmaps"


@pytest.fixture
def deployments(space: str) -> str:
    """Return the path of the deployments of the test's namespace."""
    return f"/apis/apps/v1{space}/deployments"


@pytest.fixture
def pods(space: str) -> str:
    """Return the path of the pods of the test's namespace."""
    return f"/api/v1{space}/pods"


def made(answer: httpx.Response, code: int = 201) -> Json:
    """Return the body of an answer that must have a code."""
    assert answer.status_code == code, answer.text
    body: Json = answer.json()
    return body


def refused(answer: httpx.Response, code: int, reason: str) -> str:
    """Check the error of a rejected request, and return the message."""
    body = answer.json()
    assert (answer.status_code, body["kind"], body["status"]) == (code, "Status", "Failure"), answer.text
    assert (body["code"], body.get("reason", "")) == (code, reason), answer.text
    return str(body["message"])


def config_map(name: str = "a", labels: Json | None = None, **data: str) -> Json:
    """Return a ConfigMap."""
    return {"metadata": {"name": name, **({"labels": labels} if labels else {})}, "data": data}


def pod_spec(**more: Any) -> Json:  # noqa: ANN401, any field
    """Return the spec of a pod."""
    return {"containers": [{"name": "main", "image": "busybox:1"}], **more}


def pod(name: str = "a", **more: Any) -> Json:  # noqa: ANN401, any field
    """Return a pod that no scheduler processes, unless `more` names one."""
    return {"metadata": {"name": name}, "spec": pod_spec(**{"schedulerName": "nobody", **more})}


def deployment(name: str = "web", replicas: int = 0, **more: Any) -> Json:  # noqa: ANN401, any field
    """Return a deployment."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(schedulerName="nobody")}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template, **more},
    }


def job(name: str = "train", **more: Any) -> Json:  # noqa: ANN401, any field
    """Return a job."""
    template = {"spec": pod_spec(restartPolicy="Never", schedulerName="nobody")}
    return {"metadata": {"name": name}, "spec": {"template": template, **more}}


def names(answer: httpx.Response) -> list[str]:
    """Return the names in a list."""
    assert answer.status_code == 200, answer.text
    return [one["metadata"]["name"] for one in answer.json()["items"]]


@contextmanager
def watch(api: httpx.Client, path: str, **query: str) -> Iterator[Iterator[Json]]:
    """Watch a path; yields the events."""
    query = {"watch": "1", "timeoutSeconds": "30", **query}
    with api.stream("GET", path, params=query, timeout=40) as response:
        assert response.status_code == 200
        yield (json.loads(line) for line in response.iter_lines())


def of_kubernetes(event: Json) -> bool:
    """Report whether an event is about a certificate that Kubernetes puts into every namespace."""
    return str(event["object"].get("metadata", {}).get("name", "")).endswith("ca.crt")


def reported(events: Iterator[Json], count: int) -> list[str]:
    """Return the types and names of the next events, without bookmarks."""
    found = (one for one in events if one["type"] != "BOOKMARK" and not of_kubernetes(one))
    said = (next(found) for _ in range(count))
    return [f"{event['type']} {event['object']['metadata']['name']}" for event in said]


# Objects -------------------------------------------------------------------------------------------------------------


def test_created_object_is_identified(api: httpx.Client, maps: str) -> None:
    """A new object has uid, version, time of creation and manager; no generation if it has no spec."""
    meta = made(api.post(maps, json=config_map(b="c")))["metadata"]
    assert meta["uid"]
    assert meta["creationTimestamp"].endswith("Z")
    assert int(meta["resourceVersion"]) > 0
    assert "generation" not in meta
    (entry,) = meta["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("python-httpx", "Update")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:b": {}}}


def test_errors_are_reported_in_full(api: httpx.Client, maps: str, deployments: str) -> None:
    """NotFound, AlreadyExists and missing namespaces get a Status that names the object."""
    missing = api.get(f"{deployments}/none").json()
    assert missing == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "none" not found',
        "reason": "NotFound",
        "details": {"name": "none", "group": "apps", "kind": "deployments"},
        "code": 404,
    }
    made(api.post(maps, json=config_map()))
    assert refused(api.post(maps, json=config_map()), 409, "AlreadyExists") == 'configmaps "a" already exists'
    nowhere = api.post("/api/v1/namespaces/seaway-none/configmaps", json=config_map())
    assert refused(nowhere, 404, "NotFound") == 'namespaces "seaway-none" not found'


def test_requests_have_to_fit_their_path(api: httpx.Client, maps: str) -> None:
    """Another namespace, version or name than the path's gets 400; an unknown path 404; a bad name 422."""
    body = config_map()
    body["metadata"]["namespace"] = "other"
    message = "the namespace of the provided object does not match the namespace sent on the request"
    assert refused(api.post(maps, json=body), 400, "BadRequest") == message
    refused(api.post(maps, json={**config_map(), "apiVersion": "v2", "kind": "ConfigMap"}), 400, "BadRequest")
    made(api.post(maps, json=config_map()))
    refused(api.put(f"{maps}/a", json=config_map("b")), 400, "BadRequest")
    assert api.get("/apis/none.io/v1/things").status_code == 404
    assert "a lowercase RFC 1123 subdomain" in refused(api.post(maps, json=config_map("A_b")), 422, "Invalid")
    refused(api.post(maps, content=b"{", headers={"content-type": "application/json"}), 400, "BadRequest")


def test_names_are_generated(api: httpx.Client, maps: str) -> None:
    """A generated name ends with five characters; an object without any name gets 422."""
    name = made(api.post(maps, json={"metadata": {"generateName": "a-"}}))["metadata"]["name"]
    assert name.startswith("a-")
    assert len(name) == 7
    refused(api.post(maps, json={"metadata": {}}), 422, "Invalid")


def test_stale_writes_are_refused(api: httpx.Client, maps: str) -> None:
    """PUT and PATCH with an old version get 409; without a version they succeed."""
    first = made(api.post(maps, json=config_map(b="1")))
    made(api.put(f"{maps}/a", json={**first, "data": {"b": "2"}}), 200)
    message = refused(api.put(f"{maps}/a", json={**first, "data": {"b": "3"}}), 409, "Conflict")
    assert message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    change = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {"b": "3"}}
    refused(api.patch(f"{maps}/a", json=change, headers=MERGE), 409, "Conflict")
    made(api.put(f"{maps}/a", json=config_map(b="4")), 200)
    other = {**first, "metadata": {**first["metadata"], "resourceVersion": "", "uid": "other"}}
    assert "Precondition failed: UID in precondition" in refused(api.put(f"{maps}/a", json=other), 409, "Conflict")


def test_new_objects_have_no_version(api: httpx.Client, maps: str) -> None:
    """A create with a version is rejected."""
    body = config_map()
    body["metadata"]["resourceVersion"] = "5"
    answer = api.post(maps, json=body)
    assert "resourceVersion should not be set on objects to be created" in answer.json()["message"]
    assert answer.status_code == 500


def test_writes_that_change_nothing_make_no_version(api: httpx.Client, maps: str) -> None:
    """A write without changes leaves the object and its version as they are."""
    first = made(api.post(maps, json=config_map(b="1")))
    assert made(api.put(f"{maps}/a", json=first), 200) == first
    assert made(api.patch(f"{maps}/a", json={"data": {"b": "1"}}, headers=MERGE), 200) == first


def test_generation_counts_specs(api: httpx.Client, deployments: str) -> None:
    """The generation rises with the spec, and a deployment's with annotations; not with labels or the status."""
    assert made(api.post(deployments, json=deployment()))["metadata"]["generation"] == 1
    path = f"{deployments}/web"

    def generation(change: Json, part: str = "") -> int:
        return int(made(api.patch(path + part, json=change, headers=MERGE), 200)["metadata"]["generation"])

    assert generation({"metadata": {"labels": {"a": "b"}}}) == 1
    assert generation({"status": {"collisionCount": 3}}, "/status") == 1
    assert generation({"spec": {"paused": True}}) == 2
    assert generation({"metadata": {"annotations": {"a": "b"}}}) == 3


def test_status_is_written_apart(api: httpx.Client, deployments: str) -> None:
    """A write to the object leaves the status, one to /status the spec; a new object has no status."""
    first = made(api.post(deployments, json={**deployment(), "status": {"collisionCount": 9}}))
    assert "collisionCount" not in first["status"]
    path = f"{deployments}/web"
    both = {"spec": {"minReadySeconds": 5}, "status": {"collisionCount": 5}}
    assert "collisionCount" not in made(api.patch(path, json=both, headers=MERGE), 200)["status"]
    both = {"spec": {"minReadySeconds": 7}, "status": {"collisionCount": 5}}
    found = made(api.patch(f"{path}/status", json=both, headers=MERGE), 200)
    assert found["status"]["collisionCount"] == 5
    assert found["spec"]["minReadySeconds"] == 5


def test_dry_runs_store_nothing(api: httpx.Client, maps: str) -> None:
    """With dryRun=All the answer is as usual and nothing is stored."""
    assert made(api.post(f"{maps}?dryRun=All", json=config_map()))["metadata"]["uid"]
    assert api.get(f"{maps}/a").status_code == 404
    before = made(api.post(maps, json=config_map(b="1")))
    assert made(api.put(f"{maps}/a?dryRun=All", json=config_map(b="2")), 200)["data"] == {"b": "2"}
    made(api.delete(f"{maps}/a?dryRun=All"), 200)
    assert api.get(f"{maps}/a").json() == before


def test_patches_of_each_kind(api: httpx.Client, maps: str, deployments: str) -> None:
    """Merge, JSON and strategic patches change the given fields; a failed test gets 422, an unknown type 415."""
    made(api.post(maps, json=config_map("a", {"x.io/a": "b"}, b="1", c="2")))
    assert made(api.patch(f"{maps}/a", json={"data": {"b": None}}, headers=MERGE), 200)["data"] == {"c": "2"}
    changes = [
        {"op": "test", "path": "/data/c", "value": "2"},
        {"op": "add", "path": "/metadata/labels/x.io~1y", "value": "3"},
    ]
    found = made(api.patch(f"{maps}/a", json=changes, headers=PATCH), 200)
    assert found["metadata"]["labels"] == {"x.io/a": "b", "x.io/y": "3"}
    changes[0]["value"] = "9"
    refused(api.patch(f"{maps}/a", json=changes, headers=PATCH), 422, "Invalid")
    refused(api.patch(f"{maps}/a", json=[{"op": "remove", "path": "/data/none"}], headers=PATCH), 422, "Invalid")
    plain = {"content-type": "application/json"}
    refused(api.patch(f"{maps}/a", json={}, headers=plain), 415, "UnsupportedMediaType")
    body = deployment()
    body["spec"]["template"]["spec"]["containers"].append({"name": "other", "image": "b:1"})
    made(api.post(deployments, json=body))
    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "c:1"}]}}}}
    found = made(api.patch(f"{deployments}/web", json=change, headers=STRATEGIC), 200)
    images = {one["name"]: one["image"] for one in found["spec"]["template"]["spec"]["containers"]}
    assert images == {"main": "c:1", "other": "b:1"}


def test_scale_is_read_and_written(api: httpx.Client, deployments: str) -> None:
    """/scale has the number of replicas and nothing else."""
    made(api.post(deployments, json=deployment()))
    found = made(api.get(f"{deployments}/web/scale"), 200)
    assert (found["kind"], found["apiVersion"], found["spec"]) == ("Scale", "autoscaling/v1", {})
    assert found["status"]["selector"] == "app=web"
    made(api.patch(f"{deployments}/web/scale", json={"spec": {"replicas": 2}}, headers=MERGE), 200)
    assert api.get(f"{deployments}/web").json()["spec"]["replicas"] == 2


def test_specs_are_checked(api: httpx.Client, deployments: str, space: str) -> None:
    """A missing field or a changed immutable field gets 422, with a cause for each field."""
    made(api.post(deployments, json=deployment()))

    def fields(answer: httpx.Response) -> set[str]:
        refused(answer, 422, "Invalid")
        return {one["field"] for one in answer.json()["details"]["causes"]}

    def change(spec: Json) -> set[str]:
        return fields(api.patch(f"{deployments}/web", json={"spec": spec}, headers=MERGE))

    assert "spec.selector" in change({"selector": {"matchLabels": {"app": "other"}}})
    assert "spec.template.metadata.labels" in change({"template": {"metadata": {"labels": {"app": "other"}}}})
    assert change({"template": {"spec": {"containers": []}}}) == {"spec.template.spec.containers"}
    jobs = f"/apis/batch/v1{space}/jobs"
    body = job()
    body["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    assert fields(api.post(jobs, json=body)) == {"spec.template.spec.restartPolicy"}
    made(api.post(jobs, json=job(suspend=False)))
    template = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}}
    assert "spec.template" in fields(api.patch(f"{jobs}/train", json=template, headers=MERGE))


LONG = "x" * 64


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        ("labels", {"a": "a b!"}),
        ("labels", {"a": LONG}),
        ("labels", {"a": "-a"}),
        ("labels", {"x y/a": "a"}),
        ("labels", {"X.io/a": "a"}),
        ("labels", {"a/b/c": "a"}),
        ("labels", {"x.io/": "a"}),
        ("labels", {LONG: "a"}),
        ("annotations", {"x y": "a"}),
        ("annotations", {"a": "x" * 262_144}),
    ],
    ids=lambda given: given if isinstance(given, str) else next(iter(given.items()))[0][:9] or None,
)
def test_labels_and_annotations_are_checked(
    api: httpx.Client, maps: str, deployments: str, part: str, texts: Json
) -> None:
    """Names have a domain and 63 characters, labels 63 characters of a few kinds, annotations 256 KiB in total: 422."""
    body = config_map()
    body["metadata"][part] = texts
    assert f"metadata.{part}: " in refused(api.post(maps, json=body), 422, "Invalid")
    applied = {**body, "apiVersion": "v1", "kind": "ConfigMap"}
    refused(api.patch(f"{maps}/a", params={"fieldManager": "m"}, json=applied, headers=APPLY), 422, "Invalid")
    made(api.post(maps, json=config_map()))
    refused(api.patch(f"{maps}/a", json={"metadata": {part: texts}}, headers=MERGE), 422, "Invalid")
    body = deployment()
    body["spec"]["template"]["metadata"][part] = {"app": "web", **texts}
    body["spec"]["template"]["metadata"]["labels"] = {"app": "web", **(texts if part == "labels" else {})}
    assert f"spec.template.{part}: " in refused(api.post(deployments, json=body), 422, "Invalid")


def test_labels_and_annotations_may_be_what_they_may_be(api: httpx.Client, maps: str) -> None:
    """Labels with 63 characters, capitals, dots, underscores or no text are valid; annotations have up to 256 KiB."""
    body = config_map("a", {"x.io/A_b.c-1": "A_b.c-1", "b": "", "c": LONG[1:], f"x.io/{LONG[1:]}": "1"})
    body["metadata"]["annotations"] = {"A/b": "any text: {}", "c": "x" * (262_144 - 17)}
    made(api.post(maps, json=body))
    body["metadata"]["annotations"]["c"] += "xx"
    refused(api.put(f"{maps}/a", json=body), 422, "Invalid")


def test_what_is_too_large_is_refused(api: httpx.Client, maps: str) -> None:
    """A request of more than 3 MiB gets 413, a ConfigMap of more than 1 MiB 422."""
    refused(api.post(maps, json=config_map(b="x" * 3 * 1024 * 1024)), 413, "RequestEntityTooLarge")
    refused(api.post(maps, json=config_map(b="x" * (1024 * 1024 + 1))), 422, "Invalid")
    made(api.post(maps, json=config_map(b="x" * 1024 * 1024)))


def test_fields_that_no_one_knows(api: httpx.Client, space: str) -> None:
    """Unknown fields are dropped with a warning, rejected under strict validation, and always rejected in an apply."""
    jobs = f"/apis/batch/v1{space}/jobs"
    body = job(noSuchField=1)
    body["spec"]["template"]["spec"]["containers"][0]["imag"] = "x"
    answer = api.post(jobs, json=body)
    assert "noSuchField" not in made(answer)["spec"]
    for unknown in ("spec.noSuchField", "spec.template.spec.containers[0].imag"):
        assert f'unknown field \\"{unknown}\\"' in answer.headers["warning"]
    strict = api.post(jobs, params={"fieldValidation": "Strict"}, json={**body, "metadata": {"name": "b"}})
    assert "strict decoding error: unknown field" in refused(strict, 400, "BadRequest")
    applied = {**body, "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "c"}}
    answer = api.patch(f"{jobs}/c", params={"fieldManager": "m"}, json=applied, headers=APPLY)
    assert ".spec.noSuchField: field not declared in schema" in refused(answer, 500, "")


@pytest.mark.parametrize(
    ("field", "value"),
    [("nodeSelector", [1]), ("nodeSelector", {"a": 1}), ("containers", {"a": "b"})],
)
def test_what_is_of_another_type_cannot_be_read(api: httpx.Client, space: str, field: str, value: object) -> None:
    """A list instead of a map, or a number instead of a text, gets 400."""
    body = job()
    body["spec"]["template"]["spec"][field] = value
    refused(api.post(f"/apis/batch/v1{space}/jobs", json=body), 400, "BadRequest")


@pytest.mark.parametrize("quantity", ["words", "1 Gi", "1Gb", "", "1.2.3"])
def test_quantities_are_read(api: httpx.Client, space: str, quantity: str) -> None:
    """An invalid quantity gets 400, and 500 in an apply; a negative one gets 422."""
    jobs = f"/apis/batch/v1{space}/jobs"
    body = {**job(), "apiVersion": "batch/v1", "kind": "Job"}
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"cpu": quantity}}
    refused(api.post(jobs, json=body), 400, "BadRequest")
    applied = refused(api.patch(f"{jobs}/train", params={"fieldManager": "m"}, json=body, headers=APPLY), 500, "")
    assert "failed to convert new object" in applied
    container["resources"] = {"limits": {"cpu": "-1"}}
    refused(api.post(jobs, json=body), 422, "Invalid")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Main_1"}, "name"),
        ({"name": LONG}, "name"),
        ({"ports": [{"containerPort": 99_999}]}, "ports[0].containerPort"),
        ({"ports": [{"name": "a"}]}, "ports[0].containerPort"),
        ({"env": [{"value": "x"}]}, "env[0].name"),
        ({"env": [{"name": "a=b"}]}, "env[0].name"),
    ],
)
def test_containers_are_checked(api: httpx.Client, space: str, change: Json, field: str) -> None:
    """Container names are DNS labels, ports have numbers, variables have names: 422 for the field."""
    body = job()
    body["spec"]["template"]["spec"]["containers"][0] |= change
    said = refused(api.post(f"/apis/batch/v1{space}/jobs", json=body), 422, "Invalid")
    assert f"spec.template.spec.containers[0].{field}: " in said


def test_names_of_jobs_are_short_enough_for_their_pods(api: httpx.Client, space: str) -> None:
    """A Job's name is a label of its pods, an Indexed Job's with the index their host name: 63 characters in all."""
    jobs = f"/apis/batch/v1{space}/jobs"
    refused(api.post(jobs, json=job(LONG)), 422, "Invalid")
    made(api.post(jobs, json=job("x" * 63, suspend=True)))
    indexed = {"completionMode": "Indexed", "completions": 11, "suspend": True}
    refused(api.post(jobs, json=job("y" * 61, **indexed)), 422, "Invalid")
    made(api.post(jobs, json=job("y" * 60, **indexed)))


@pytest.mark.parametrize("label", ["job-name", "batch.kubernetes.io/job-name", "controller-uid"])
def test_pods_of_jobs_cannot_be_anothers(api: httpx.Client, space: str, label: str) -> None:
    """A template whose labels name another Job gets 422."""
    body = job()
    body["spec"]["template"]["metadata"] = {"labels": {label: "other"}}
    said = refused(api.post(f"/apis/batch/v1{space}/jobs", json=body), 422, "Invalid")
    assert f"spec.template.metadata.labels[{label}]: " in said


def test_extended_resources_are_limits_and_requests_alike(api: httpx.Client, pods: str) -> None:
    """GPUs need a limit, which is the request; another request gets 422."""
    body = pod()
    body["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    found = made(api.post(pods, json=body))
    assert found["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "1"}
    body = pod("b")
    body["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "1"}}
    refused(api.post(pods, json=body), 422, "Invalid")
    body["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "2"}
    refused(api.post(pods, json=body), 422, "Invalid")


def test_limits_become_requests_in_pods_only(api: httpx.Client, deployments: str) -> None:
    """The template of a Deployment keeps the limits without requests."""
    body = deployment()
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    found = made(api.post(deployments, json=body))
    assert found["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


def test_selectors_are_owned_and_applied_as_a_whole(api: httpx.Client, space: str) -> None:
    """An apply removes what others added to the selector of a service, and owns one field."""
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    body |= {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    path = f"/api/v1{space}/services/a"
    apply = {"fieldManager": "one", "force": "true"}
    made(api.patch(path, params=apply, json=body, headers=APPLY))
    change = {"spec": {"selector": {"more": "x"}}}
    edited = made(api.patch(f"{path}?fieldManager=two", json=change, headers=MERGE), 200)
    owned = {
        each["manager"]: each["fieldsV1"]["f:spec"].get("f:selector") for each in edited["metadata"]["managedFields"]
    }
    assert owned == {"one": None, "two": {}}
    assert made(api.patch(path, params=apply, json=body, headers=APPLY), 200)["spec"]["selector"] == {"app": "web"}


def test_pods_are_made_whole_and_hardly_change(api: httpx.Client, pods: str) -> None:
    """A pod gets defaults and the phase Pending; of its spec the image may change, and hardly anything else."""
    found = made(api.post(pods, json=pod()))
    assert found["status"]["phase"] == "Pending"
    assert found["spec"]["restartPolicy"] == "Always"
    assert found["spec"]["terminationGracePeriodSeconds"] == 30
    seconds = {one["key"]: one["tolerationSeconds"] for one in found["spec"]["tolerations"]}
    assert seconds == {"node.kubernetes.io/not-ready": 300, "node.kubernetes.io/unreachable": 300}
    container = found["spec"]["containers"][0]
    assert (container["imagePullPolicy"], container["resources"]) == ("IfNotPresent", {})
    change = {"spec": {"hostNetwork": True}}
    refused(api.patch(f"{pods}/a", json=change, headers=STRATEGIC), 422, "Invalid")
    image = {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}
    made(api.patch(f"{pods}/a", json=image, headers=STRATEGIC), 200)


SECURE = {
    "schedulerName": "nobody",
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "main",
            "image": "busybox",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}


@pytest.mark.parametrize(
    ("level", "change"),
    [
        ("baseline", {"hostNetwork": True}),
        ("baseline", {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}),
        ("baseline", {"livenessProbe": {"httpGet": {"host": "192.0.2.1", "port": 80}}}),
        ("baseline", {"lifecycle": {"preStop": {"httpGet": {"host": "192.0.2.1", "port": 80}}}}),
        ("restricted", {"securityContext": {"allowPrivilegeEscalation": False}}),
        ("restricted", {"securityContext": {"capabilities": {"drop": ["ALL"]}}}),
    ],
    ids=lambda one: one if isinstance(one, str) else next(iter(one)),
)
def test_namespaces_enforce_pod_security(api: httpx.Client, space: str, pods: str, level: str, change: Json) -> None:
    """A pod that breaks the standard of its namespace gets 403; one that keeps it is created."""
    labels = {"pod-security.kubernetes.io/enforce": level}
    made(api.patch(f"/api/v1{space}", json={"metadata": {"labels": labels}}, headers=MERGE), 200)
    made(api.post(pods, json={**pod(), "spec": SECURE}))
    broken = json.loads(json.dumps(SECURE))
    (broken if change.keys() & {"hostNetwork", "volumes"} else broken["containers"][0]).update(change)
    said = refused(api.post(pods, json={**pod("b"), "spec": broken}), 403, "Forbidden")
    assert f'violates PodSecurity "{level}:latest"' in said


def test_requests_that_make_no_sense(api: httpx.Client, maps: str, deployments: str) -> None:
    """Each kind of unreadable request gets its own error."""
    refused(api.patch(f"{maps}/x?fieldManager=m", json=config_map("x"), headers=APPLY), 400, "BadRequest")
    named = {"apiVersion": "v1", "kind": "ConfigMap"}
    refused(api.patch(f"{maps}/x?fieldManager=m", json=named, headers=APPLY), 400, "BadRequest")
    made(api.post(deployments, json=deployment()))
    refused(api.patch(f"{deployments}/web", json=[{"op": "nope", "path": "/a"}], headers=PATCH), 422, "Invalid")
    refused(api.patch(f"{deployments}/web", json={"spec": {"replicas": "two"}}, headers=MERGE), 422, "Invalid")
    refused(api.delete(f"{deployments}/web", params={"propagationPolicy": "Never"}), 422, "Invalid")
    refused(api.put(deployments, json=deployment()), 405, "MethodNotAllowed")
    refused(api.get(deployments, params={"limit": "x"}), 400, "BadRequest")
    refused(api.get(deployments, params={"resourceVersion": "x"}), 400, "BadRequest")
    assert api.get(deployments, params={"watch": "1", "resourceVersion": "x"}).status_code == 500
    assert api.get("/nothing").text == "404 page not found\n"
    refused(api.get("/apis/apps/v9"), 404, "NotFound")


def test_events_and_nodes_say_null_and_empty(api: httpx.Client, space: str) -> None:
    """Unknown times are null, and fields that a kubelet has not set yet are empty: readers must accept both."""
    about = {"namespace": space.rpartition("/")[2], "kind": "Pod", "name": "a"}
    event = made(api.post(f"/api/v1{space}/events", json={"metadata": {"name": "e"}, "involvedObject": about}))
    assert [event[name] for name in ("eventTime", "firstTimestamp", "lastTimestamp")] == [None, None, None]
    assert (event["source"], event["reportingComponent"]) == ({}, "")
    name = new_name("seaway-node")
    node = made(api.post("/api/v1/nodes", json={"metadata": {"name": name}}))
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""

    def taints() -> list[Json]:
        found: list[Json] = api.get(f"/api/v1/nodes/{name}").json()["spec"].get("taints", [])
        return [one for one in found if one["key"] == "node.kubernetes.io/not-ready"]

    (taint,) = eventually(taints, "a node that was never ready is tainted")
    assert taint["effect"] == "NoSchedule"
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    made(api.patch(f"/api/v1/nodes/{name}/status", json=ready, headers=STRATEGIC), 200)
    eventually(lambda: not taints(), "a node that is ready is not")
    made(api.delete(f"/api/v1/nodes/{name}"), 200)


def test_logs_of_pods_without_a_node_are_empty(api: httpx.Client, pods: str) -> None:
    """The log of a pod without a node is 204."""
    made(api.post(pods, json=pod()))
    assert api.get(f"{pods}/a/log").status_code == 204


# Lists ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def five(api: httpx.Client, maps: str) -> str:
    """Fill the namespace with five ConfigMaps and return their path."""
    for number, name in enumerate("abcde"):
        made(api.post(maps, json=config_map(name, {"number": str(number)} | ({"odd": ""} if number % 2 else {}))))
    return maps


@pytest.mark.parametrize(
    ("selector", "picked"),
    [
        ("number=1", "b"),
        ("number==1", "b"),
        ("number!=1", "acde"),
        ("number in (1, 3)", "bd"),
        ("number notin (1,3)", "ace"),
        ("odd", "bd"),
        ("!odd", "ace"),
        ("odd,number!=1", "d"),
        ("none=1", ""),
    ],
)
def test_labels_select(api: httpx.Client, five: str, selector: str, picked: str) -> None:
    """Label selectors select the objects that meet all requirements, in the order of names."""
    found = names(api.get(five, params={"labelSelector": selector}))
    assert "".join(name for name in found if len(name) == 1) == picked


def test_fields_select(api: httpx.Client, five: str, pods: str) -> None:
    """Names can be selected for every kind, other fields for kinds that have them; others get 400."""
    assert names(api.get(five, params={"fieldSelector": "metadata.name=c"})) == ["c"]
    message = refused(api.get(five, params={"fieldSelector": "data.x=1"}), 400, "BadRequest")
    assert message == '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"'
    message = refused(api.get(pods, params={"fieldSelector": "spec.x=1"}), 400, "BadRequest")
    assert "field label not supported: spec.x" in message
    refused(api.get(five, params={"labelSelector": "a in"}), 400, "BadRequest")
    made(api.post(pods, json=pod("p")))
    assert names(api.get(pods, params={"fieldSelector": "spec.nodeName="})) == ["p"]
    assert names(api.get(pods, params={"fieldSelector": "spec.nodeName!="})) == []
    assert names(api.get(pods, params={"fieldSelector": "status.phase=Pending"})) == ["p"]


def test_pages_are_of_one_state(api: httpx.Client, five: str) -> None:
    """Pages show the state of the first one, and report how many items remain."""
    first = made(api.get(five, params={"limit": 2, "labelSelector": ""}), 200)
    assert first["metadata"]["remainingItemCount"] >= 3
    api.delete(f"{five}/c")
    made(api.post(five, json=config_map("bb")))
    found, page = [one["metadata"]["name"] for one in first["items"]], first
    while page["metadata"].get("continue"):
        page = made(api.get(five, params={"limit": 2, "continue": page["metadata"]["continue"]}), 200)
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        found += [one["metadata"]["name"] for one in page["items"]]
    assert [name for name in found if len(name) <= 2] == list("abcde")
    refused(api.get(five, params={"limit": 2, "continue": "!"}), 400, "BadRequest")


def test_versions_of_lists(api: httpx.Client, five: str) -> None:
    """A list may be of any version not older than the given one; a future version is an error."""
    version = api.get(five).json()["metadata"]["resourceVersion"]
    assert "a" in names(api.get(five, params={"resourceVersion": "0"}))
    assert "a" in names(api.get(five, params={"resourceVersion": version}))
    future = api.get(five, params={"resourceVersion": str(int(version) + 100_000)})
    refused(future, 504, "Timeout")
    assert future.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    wrong = api.get(five, params={"resourceVersionMatch": "Exact"})
    refused(wrong, 422, "Invalid")


def test_items_of_builtin_kinds_are_not_named(api: httpx.Client, five: str) -> None:
    """A list names the kind of its items once."""
    found = api.get(five).json()
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert "kind" not in found["items"][0]


def test_selected_objects_are_deleted_together(api: httpx.Client, five: str) -> None:
    """DELETE of a collection removes the selected objects."""
    made(api.delete(five, params={"labelSelector": "odd"}), 200)
    assert [name for name in names(api.get(five)) if len(name) == 1] == ["a", "c", "e"]


# Watches -------------------------------------------------------------------------------------------------------------


def test_watches_go_on_from_a_version(api: httpx.Client, maps: str) -> None:
    """A watch from a version sends every later change; a deleted object has the version of its deletion."""
    version = made(api.post(maps, json=config_map("a")))["metadata"]["resourceVersion"]
    made(api.post(maps, json=config_map("b")))
    api.delete(f"{maps}/a")
    with watch(api, maps, resourceVersion=version) as events:
        assert reported(events, 1) == ["ADDED b"]
        gone = next(one for one in events if not of_kubernetes(one))
        assert (gone["type"], gone["object"]["metadata"]["name"]) == ("DELETED", "a")
        assert int(gone["object"]["metadata"]["resourceVersion"]) > int(version)
        assert gone["object"]["kind"] == "ConfigMap"
        api.patch(f"{maps}/b", json={"data": {"x": "y"}}, headers=MERGE)
        assert reported(events, 1) == ["MODIFIED b"]


def test_watches_without_a_version_begin_with_what_there_is(api: httpx.Client, maps: str) -> None:
    """Without a version, or from 0, existing objects are sent first as ADDED."""
    made(api.post(maps, json=config_map("a")))
    for query in ({}, {"resourceVersion": "0"}):
        with watch(api, maps, fieldSelector="metadata.name=a", **query) as events:
            assert reported(events, 1) == ["ADDED a"]


def test_selectors_of_watches(api: httpx.Client, maps: str) -> None:
    """An object that enters a selection is ADDED, one that leaves it is DELETED, with its current state."""
    version = made(api.post(maps, json=config_map("a")))["metadata"]["resourceVersion"]
    with watch(api, maps, resourceVersion=version, labelSelector="x=y") as events:
        for value in ({"x": "y"}, {"z": "1"}, {"x": None}, {"z": "2"}, {"x": "y"}):
            api.patch(f"{maps}/a", json={"metadata": {"labels": value}}, headers=MERGE)
        assert reported(events, 4) == ["ADDED a", "MODIFIED a", "DELETED a", "ADDED a"]


def test_watches_end_in_time(api: httpx.Client, maps: str) -> None:
    """After timeoutSeconds a watch ends without an error; a client that allows bookmarks gets one before."""
    version = api.get(maps).json()["metadata"]["resourceVersion"]
    query = {"resourceVersion": version, "timeoutSeconds": "2"}
    with watch(api, maps, **query) as events:
        assert [one for one in events if not of_kubernetes(one)] == []


def test_watches_from_too_long_ago_fail(api: httpx.Client, maps: str) -> None:
    """From a version before the history the first event is an ERROR with code 410, or all changes since."""
    with watch(api, maps, resourceVersion="1", timeoutSeconds="1") as events:
        for event in events:
            if event["type"] == "ERROR":
                assert event["object"]["code"] == 410
                assert event["object"]["reason"] in ("Expired", "Gone")


def test_initial_events_end_with_a_bookmark(api: httpx.Client, maps: str) -> None:
    """With sendInitialEvents a bookmark with an annotation ends the existing objects."""
    made(api.post(maps, json=config_map("a")))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with watch(api, maps, **query) as events:
        found = []
        for event in events:
            found.append(event)
            if event["type"] == "BOOKMARK":
                break
        assert "a" in [one["object"]["metadata"]["name"] for one in found[:-1]]
        assert found[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


# Server-side apply ---------------------------------------------------------------------------------------------------


def apply(api: httpx.Client, path: str, body: Json, manager: str = "one", **query: str) -> httpx.Response:
    """Apply a configuration."""
    return api.patch(path, params={"fieldManager": manager, **query}, json=body, headers=APPLY)


def applied(**data: str) -> Json:
    """Return a ConfigMap to apply."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def managers(body: Json) -> dict[str, Json]:
    """Return the fields of each manager."""
    return {f"{one['manager']} {one['operation']}": one["fieldsV1"] for one in body["metadata"]["managedFields"]}


def test_apply_creates_changes_and_repeats(api: httpx.Client, maps: str) -> None:
    """An apply creates (201), changes (200), and changes nothing when repeated."""
    made(apply(api, f"{maps}/a", applied(b="1")))
    second = made(apply(api, f"{maps}/a", applied(b="2")), 200)
    assert made(apply(api, f"{maps}/a", applied(b="2")), 200) == second
    assert managers(second) == {"one Apply": {"f:data": {"f:b": {}}}}


def test_apply_needs_a_manager_and_no_managed_fields(api: httpx.Client, maps: str) -> None:
    """Without fieldManager an apply gets 422, with managedFields 400."""
    refused(api.patch(f"{maps}/a", json=applied(), headers=APPLY), 422, "Invalid")
    body = applied()
    body["metadata"]["managedFields"] = [{"manager": "x"}]
    refused(apply(api, f"{maps}/a", body), 400, "BadRequest")


def test_apply_over_others_is_a_conflict(api: httpx.Client, maps: str) -> None:
    """Changing a field of another manager's apply is a conflict; a forced apply takes the field over."""
    made(apply(api, f"{maps}/a", applied(b="1", c="1")))
    answer = apply(api, f"{maps}/a", applied(b="2"), "two")
    message = refused(answer, 409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "one": .data.b'
    assert answer.json()["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.b"}
    ]
    forced = made(apply(api, f"{maps}/a", applied(b="2"), "two", force="true"), 200)
    assert forced["data"] == {"b": "2", "c": "1"}
    assert managers(forced) == {"one Apply": {"f:data": {"f:c": {}}}, "two Apply": {"f:data": {"f:b": {}}}}


def test_apply_over_an_update_is_a_conflict(api: httpx.Client, deployments: str) -> None:
    """A manager that patches a field owns it, and an apply of another value is a conflict."""
    made(apply(api, f"{deployments}/web", deployment()))
    change = {"spec": {"paused": True, "minReadySeconds": 3}}
    found = made(api.patch(f"{deployments}/web?fieldManager=other", json=change, headers=MERGE), 200)
    assert managers(found)["other Update"] == {"f:spec": {"f:minReadySeconds": {}, "f:paused": {}}}
    message = refused(apply(api, f"{deployments}/web", deployment(minReadySeconds=4)), 409, "Conflict")
    assert message == 'Apply failed with 1 conflict: conflict with "other" using apps/v1: .spec.minReadySeconds'
    both = refused(apply(api, f"{deployments}/web", deployment(minReadySeconds=4, paused=False)), 409, "Conflict")
    assert both.startswith('Apply failed with 2 conflicts: conflicts with "other" using apps/v1:\n- .spec.')


def test_apply_removes_what_it_no_longer_says(api: httpx.Client, deployments: str, maps: str) -> None:
    """Fields and items that a manager leaves out are removed, unless another one also owns them."""
    made(apply(api, f"{deployments}/web", deployment(minReadySeconds=5)))
    body = deployment()
    body["spec"]["template"]["spec"]["containers"].append({"name": "other", "image": "b:1"})
    assert "minReadySeconds" not in made(apply(api, f"{deployments}/web", body), 200)["spec"]
    found = made(apply(api, f"{deployments}/web", deployment()), 200)
    assert [one["name"] for one in found["spec"]["template"]["spec"]["containers"]] == ["main"]
    made(apply(api, f"{maps}/a", applied(b="1")))
    made(apply(api, f"{maps}/a", applied(b="1"), "two"), 200)
    assert made(apply(api, f"{maps}/a", applied()), 200)["data"] == {"b": "1"}
    assert not made(apply(api, f"{maps}/a", applied(), "two"), 200).get("data")


def test_apply_of_containers_goes_by_name(api: httpx.Client, deployments: str) -> None:
    """Two managers may own fields of one container, and conflicts name it by its key."""
    made(apply(api, f"{deployments}/web", deployment()))
    template = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": template}}
    found = made(apply(api, f"{deployments}/web", body, "two"), 200)
    (container,) = found["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["resources"]["limits"]) == ("busybox:1", {"cpu": "1"})
    template["spec"]["containers"][0]["image"] = "busybox:2"
    message = refused(apply(api, f"{deployments}/web", body, "two"), 409, "Conflict")
    assert message.endswith('.spec.template.spec.containers[name="main"].image')


def test_apply_of_a_status_goes_apart(api: httpx.Client, deployments: str) -> None:
    """An apply to /status has its own entry and changes only the status."""
    made(apply(api, f"{deployments}/web", deployment()))
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"collisionCount": 2}}
    found = made(apply(api, f"{deployments}/web/status", body, "two"), 200)
    assert found["status"]["collisionCount"] == 2
    entry = next(one for one in found["metadata"]["managedFields"] if one["manager"] == "two")
    assert (entry["operation"], entry["subresource"]) == ("Apply", "status")


# Deletion ------------------------------------------------------------------------------------------------------------


def test_deletion_answers(api: httpx.Client, maps: str, deployments: str, pods: str) -> None:
    """A delete returns a Status, or the pod itself for a pod; preconditions that fail get 409."""
    uid = made(api.post(maps, json=config_map()))["metadata"]["uid"]
    options = {"preconditions": {"uid": "other"}}
    refused(api.request("DELETE", f"{maps}/a", json=options), 409, "Conflict")
    answer = made(api.request("DELETE", f"{maps}/a", json={"preconditions": {"uid": uid}}), 200)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    refused(api.delete(f"{maps}/a"), 404, "NotFound")
    made(api.post(pods, json=pod()))
    assert made(api.delete(f"{pods}/a"), 200)["kind"] == "Pod"
    assert api.get(f"{pods}/a").status_code == 404
    del deployments


def test_bound_pods_wait_for_their_kubelet(api: httpx.Client, pods: str) -> None:
    """A bound pod is marked first, with its grace period; without grace it is removed immediately."""
    made(api.post(pods, json=pod()))
    target = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "seaway-none"}}
    made(api.post(f"{pods}/a/binding", json=target))
    refused(api.post(f"{pods}/a/binding", json=target), 409, "Conflict")
    meta = made(api.delete(f"{pods}/a"), 200)["metadata"]
    assert meta["deletionTimestamp"]
    assert meta["deletionGracePeriodSeconds"] == 30
    assert api.get(f"{pods}/a").json()["metadata"]["deletionTimestamp"] == meta["deletionTimestamp"]
    made(api.request("DELETE", f"{pods}/a", json={"gracePeriodSeconds": 0}), 200)
    assert api.get(f"{pods}/a").status_code == 404


def test_finalizers_keep_an_object(api: httpx.Client, maps: str) -> None:
    """An object with finalizers stays until they are gone, and accepts no new ones."""
    body = config_map()
    body["metadata"]["finalizers"] = ["x.io/y"]
    made(api.post(maps, json=body))
    assert made(api.delete(f"{maps}/a"), 200)["metadata"]["deletionTimestamp"]
    more = {"metadata": {"finalizers": ["x.io/y", "x.io/z"]}}
    refused(api.patch(f"{maps}/a", json=more, headers=MERGE), 422, "Invalid")
    made(api.patch(f"{maps}/a", json={"metadata": {"finalizers": None}}, headers=MERGE), 200)
    refused(api.get(f"{maps}/a"), 404, "NotFound")


def test_owners_take_along_what_they_own(api: httpx.Client, deployments: str, space: str) -> None:
    """A deleted deployment's replica set and pods are deleted too; with Orphan the replica set stays."""
    sets, pods = f"/apis/apps/v1{space}/replicasets", f"/api/v1{space}/pods"
    for propagation, left in (("Background", 0), ("Foreground", 0), ("Orphan", 1)):
        name = propagation.lower()
        made(api.post(deployments, json=deployment(name, 1)))
        labels = {"labelSelector": f"app={name}"}
        eventually(lambda labels=labels: names(api.get(pods, params=labels)), "a pod is made")  # type: ignore[misc]
        api.request("DELETE", f"{deployments}/{name}", json={"propagationPolicy": propagation})

        def gone(name: str = name) -> bool:
            return api.get(f"{deployments}/{name}").status_code == 404

        eventually(gone, f"the deployment goes by {propagation}")
        if left:
            (one,) = api.get(sets, params=labels).json()["items"]
            assert "ownerReferences" not in one["metadata"]
        else:
            eventually(lambda labels=labels: not names(api.get(pods, params=labels)), "its pods go")  # type: ignore[misc]
            eventually(lambda labels=labels: not names(api.get(sets, params=labels)), "its set goes")  # type: ignore[misc]


def test_jobs_orphan_their_pods_by_default(api: httpx.Client, space: str) -> None:
    """DELETE of a batch/v1 job without propagationPolicy leaves its pods."""
    jobs, pods = f"/apis/batch/v1{space}/jobs", f"/api/v1{space}/pods"
    made(api.post(jobs, json=job()))
    eventually(lambda: names(api.get(pods)), "a pod is made")
    made(api.delete(f"{jobs}/train"), 200)
    eventually(lambda: api.get(f"{jobs}/train").status_code == 404, "the job goes")
    (one,) = api.get(pods).json()["items"]
    assert not one["metadata"].get("ownerReferences")


def test_namespaces_go_with_what_is_in_them(api: httpx.Client) -> None:
    """A deleted namespace is Terminating while a finalizer remains, and rejects new objects with 403."""
    name = new_name()
    made(api.post("/api/v1/namespaces", json={"metadata": {"name": name}}))
    path = f"/api/v1/namespaces/{name}"
    body = config_map()
    body["metadata"]["finalizers"] = ["x.io/y"]
    made(api.post(f"{path}/configmaps", json=body))
    made(api.delete(path), 200)
    assert api.get(path).json()["status"]["phase"] == "Terminating"
    message = refused(api.post(f"{path}/configmaps", json=config_map("b")), 403, "Forbidden")
    assert f"unable to create new content in namespace {name} because it is being terminated" in message

    def marked() -> bool:
        return "deletionTimestamp" in api.get(f"{path}/configmaps/a").json()["metadata"]

    eventually(marked, "what is in it is deleted")
    made(api.patch(f"{path}/configmaps/a", json={"metadata": {"finalizers": None}}, headers=MERGE), 200)
    eventually(lambda: api.get(path).status_code == 404, "the namespace goes")


# Workloads -----------------------------------------------------------------------------------------------------------


def test_deployments_make_pods(api: httpx.Client, deployments: str, space: str) -> None:
    """A deployment's pods have its labels, a hash, and a replica set as owner; the status reports their numbers."""
    made(api.post(deployments, json=deployment(replicas=2)))
    pods = f"/api/v1{space}/pods"
    eventually(lambda: len(names(api.get(pods))) == 2, "two pods are made")
    one = api.get(pods).json()["items"][0]
    assert one["metadata"]["labels"]["pod-template-hash"]
    assert one["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    assert one["metadata"]["name"].startswith("web-")

    def counted() -> bool:
        status = api.get(f"{deployments}/web").json()["status"]
        return bool(status.get("replicas") == 2 and status.get("unavailableReplicas") == 2)

    eventually(counted, "the status says two")
    assert api.get(f"{deployments}/web").json()["status"]["observedGeneration"] == 1


def test_indexed_jobs_tell_their_pods_apart(api: httpx.Client, space: str) -> None:
    """Each pod has its index as annotation, label and in its host name, and names its job."""
    jobs, pods = f"/apis/batch/v1{space}/jobs", f"/api/v1{space}/pods"
    made(api.post(jobs, json=job(parallelism=2, completions=2, completionMode="Indexed")))
    eventually(lambda: len(names(api.get(pods))) == 2, "two pods are made")
    index = "batch.kubernetes.io/job-completion-index"
    found = api.get(pods).json()["items"]
    assert sorted(one["metadata"]["annotations"][index] for one in found) == ["0", "1"]
    for one in found:
        number = one["metadata"]["labels"][index]
        assert one["spec"]["hostname"] == f"train-{number}"
        assert one["metadata"]["name"].startswith(f"train-{number}-")
        assert one["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "train"
        assert "JOB_COMPLETION_INDEX" in [env["name"] for env in one["spec"]["containers"][0]["env"]]
    status = eventually(lambda: api.get(f"{jobs}/train").json()["status"], "the job has a status")
    assert status["active"] == 2
    assert status["startTime"]


def test_jobs_end_when_their_pods_do(api: httpx.Client, space: str) -> None:
    """A job is complete when its pods have succeeded, and failed when more failed than its limit allows."""
    jobs, pods = f"/apis/batch/v1{space}/jobs", f"/api/v1{space}/pods"
    for name, phase, kind in (("good", "Succeeded", "Complete"), ("bad", "Failed", "Failed")):
        made(api.post(jobs, json=job(name, backoffLimit=0)))
        labels = {"labelSelector": f"job-name={name}"}
        (found,) = eventually(lambda labels=labels: names(api.get(pods, params=labels)), "a pod is made")  # type: ignore[misc]
        change = {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "False"}]}}
        made(api.patch(f"{pods}/{found}/status", json=change, headers=STRATEGIC), 200)

        def ended(name: str = name, kind: str = kind) -> Json | None:
            status = api.get(f"{jobs}/{name}").json().get("status", {})
            reported = {one["type"]: one for one in status.get("conditions", ())}
            return status if reported.get(kind, {}).get("status") == "True" else None

        status = eventually(ended, f"the job is {kind}")
        reasons = {one["type"]: one.get("reason") for one in status["conditions"]}
        if kind == "Complete":
            assert status["succeeded"] == 1
            assert status["completionTime"]
            assert "SuccessCriteriaMet" in reasons
        else:
            assert status["failed"] == 1
            assert reasons[kind] == "BackoffLimitExceeded"
            assert "FailureTarget" in reasons


def node(api: httpx.Client, name: str, **resources: str) -> None:
    """Create a node that is ready."""
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10", **resources}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
    made(api.post("/api/v1/nodes", json={"metadata": meta, "status": status}))

    def open_for_pods() -> bool:
        return not api.get(f"/api/v1/nodes/{name}").json()["spec"].get("taints")

    eventually(open_for_pods, "the node has no taint")


@pytest.fixture
def host(api: httpx.Client) -> Iterator[str]:
    """Return a node for the test, with two GPUs."""
    name = new_name("seaway-node")
    node(api, name, **{"nvidia.com/gpu": "2"})
    yield name
    api.delete(f"/api/v1/nodes/{name}")


def test_scheduler_binds_by_selector_and_affinity(api: httpx.Client, pods: str, host: str) -> None:
    """A nodeSelector on the host name and an affinity on the node's name bind a pod to the node."""
    field = {"key": "metadata.name", "operator": "In", "values": [host]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    ways: tuple[Json, Json] = ({"nodeSelector": {"kubernetes.io/hostname": host}}, {"affinity": affinity})
    for name, way in zip("ab", ways, strict=True):
        made(api.post(pods, json=pod(name, schedulerName="default-scheduler", **way)))

        def bound(name: str = name) -> Json | None:
            found: Json = api.get(f"{pods}/{name}").json()
            return found if found["spec"].get("nodeName") else None

        found = eventually(bound, "the pod is bound")
        assert found["spec"]["nodeName"] == host
        (one,) = [one for one in found["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert one["status"] == "True"
        api.request("DELETE", f"{pods}/{name}", json={"gracePeriodSeconds": 0})


def test_scheduler_says_why_not(api: httpx.Client, pods: str, host: str, space: str) -> None:
    """A pod without a feasible node has PodScheduled False with Unschedulable and the reason, and an event."""
    body = pod(schedulerName="default-scheduler", nodeSelector={"kubernetes.io/hostname": host})
    body["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "3"}}
    made(api.post(pods, json=body))

    def reported() -> Json | None:
        conditions = api.get(f"{pods}/a").json()["status"].get("conditions") or ()
        return next((one for one in conditions if one["type"] == "PodScheduled"), None)

    condition = eventually(reported, "the scheduler has tried")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert "nodes are available" in condition["message"]
    assert "1 Insufficient nvidia.com/gpu" in condition["message"]

    def event() -> Json | None:
        query = {"fieldSelector": "involvedObject.name=a,reason=FailedScheduling"}
        found: list[Json] = api.get(f"/api/v1{space}/events", params=query).json()["items"]
        return found[0] if found else None

    assert eventually(event, "an event is written")["type"] == "Warning"


def test_services_get_an_address(api: httpx.Client, space: str) -> None:
    """A service gets a stable cluster address; ports need a protocol, TCP by default."""
    path = f"/api/v1{space}/services"
    found = made(api.post(path, json={"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}))
    address = found["spec"]["clusterIP"]
    assert address.count(".") == 3
    assert found["spec"]["ports"][0] == {"port": 80, "protocol": "TCP", "targetPort": 80}
    body = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 81}], "selector": {"a": "b"}}}
    assert made(api.put(f"{path}/a", json=body), 200)["spec"]["clusterIP"] == address
    refused(api.post(path, json={"metadata": {"name": "b"}, "spec": {}}), 422, "Invalid")


def test_leases_are_taken_at_their_version(api: httpx.Client, space: str) -> None:
    """Of two updates of a lease at the same version, one gets 409."""
    path = f"/apis/coordination.k8s.io/v1{space}/leases"
    first = made(api.post(path, json={"metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 15}}))
    first["spec"]["holderIdentity"] = "one"
    made(api.put(f"{path}/a", json=first), 200)
    first["spec"]["holderIdentity"] = "two"
    refused(api.put(f"{path}/a", json=first), 409, "Conflict")


def test_servers_say_what_they_serve(api: httpx.Client) -> None:
    """Discovery names groups, versions and resources; health is plain text."""
    assert api.get("/readyz").text == "ok"
    assert int(api.get("/version").json()["major"]) == 1
    assert "apps" in [one["name"] for one in api.get("/apis").json()["groups"]]
    resources = {one["name"]: one for one in api.get("/apis/apps/v1").json()["resources"]}
    assert resources["deployments"]["kind"] == "Deployment"
    assert {"deployments/status", "deployments/scale"} <= set(resources)
    assert {"pods", "nodes", "services"} <= {one["name"] for one in api.get("/api/v1").json()["resources"]}
    assert httpx.Headers(api.get("/apis").headers)["content-type"] == "application/json"


def test_strangers_are_stored_out(api: httpx.Client) -> None:
    """An unknown token gets 401, even where none is required."""
    for path in ("/api/v1/namespaces", "/readyz"):
        answer = api.get(path, headers={"Authorization": "Bearer wrong"})
        assert refused(answer, 401, "Unauthorized") == "Unauthorized"
