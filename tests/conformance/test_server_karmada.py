"""Rules of Karmada, checked on the fake and, if SEAWAY_TEST_KARMADA names one, on a real control plane.

Members are reached through the cluster proxy. No kubelet is needed: where pods must run, the test writes their status.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.conformance.real_servers import eventually
from tests.fakes.kubernetes import ApiServer, KarmadaWorld
from tests.fakes.kubernetes.real import KARMADA, connect, kubeconfigs, new_name
from tests.fakes.kubernetes.server import CONTROLLERS

Json = dict[str, Any]
MERGE = {"content-type": "application/merge-patch+json"}
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


@pytest.fixture(scope="module", params=["memory", *kubeconfigs(KARMADA)], ids=lambda one: getattr(one, "stem", one))
def api(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """Return a client of a control plane with at least two members, without kubelets."""
    if request.param != "memory":
        with connect(request.param) as client:
            yield client
        return
    members = [ApiServer(name, controllers=set(CONTROLLERS) - {"kubelet"}) for name in ("member1", "member2")]
    with (
        KarmadaWorld(members) as world,
        httpx.Client(base_url=world.control.url, headers=world.control.headers, timeout=10) as client,
    ):
        yield client


def test_real_control_planes_are_held_to_the_same_rules() -> None:
    """The real control planes in SEAWAY_TEST_KARMADA follow every rule here."""
    if not kubeconfigs(KARMADA):
        pytest.skip(f"{KARMADA} names no kubeconfig of a real control plane; the rules were put to memory only")


@pytest.fixture(scope="module")
def members(api: httpx.Client) -> list[str]:
    """Return the names of two members."""
    found = sorted(one["metadata"]["name"] for one in api.get(CLUSTERS).json()["items"])
    assert len(found) >= 2
    return found[:2]


@pytest.fixture
def space(api: httpx.Client, members: list[str]) -> Iterator[str]:
    """Create a namespace for the test and return its path."""
    name = new_name()
    assert api.post("/api/v1/namespaces", json={"metadata": {"name": name}}).status_code == 201
    yield f"/namespaces/{name}"
    api.delete(f"/api/v1/namespaces/{name}")
    for member in members:
        api.delete(proxy(member, f"/api/v1/namespaces/{name}"))


def proxy(member: str, path: str) -> str:
    """Return the path of a member's path behind the proxy."""
    return f"{CLUSTERS}/{member}/proxy{path}"


def made(answer: httpx.Response, code: int = 201) -> Json:
    """Return the body of an answer that must have a code."""
    assert answer.status_code == code, answer.text
    body: Json = answer.json()
    return body


def deployment(name: str = "web", replicas: int = 2) -> Json:
    """Return a deployment whose pods no scheduler processes."""
    spec = {"containers": [{"name": "main", "image": "busybox:1"}], "schedulerName": "nobody"}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": selector, "template": template}}


def policy(name: str, kind: str = "Deployment", version: str = "apps/v1", **spec: Any) -> Json:  # noqa: ANN401
    """Return a policy for one object whose binding Seaway schedules."""
    selector = {"apiVersion": version, "kind": kind, "name": name}
    return of_policies("PropagationPolicy", name, {"schedulerName": "seaway", "resourceSelectors": [selector], **spec})


def of_policies(kind: str, name: str, spec: Json) -> Json:
    """Return a policy of a kind."""
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


class Case:
    """A namespace of a control plane, with the test's actions in it."""

    def __init__(self, api: httpx.Client, space: str) -> None:
        self.api = api
        self.space = space
        self.policies = f"/apis/policy.karmada.io/v1alpha1{space}/propagationpolicies"
        self.overrides = f"/apis/policy.karmada.io/v1alpha1{space}/overridepolicies"
        self.bindings = f"/apis/work.karmada.io/v1alpha2{space}/resourcebindings"
        self.deployments = f"/apis/apps/v1{space}/deployments"
        self.jobs = f"/apis/batch/v1{space}/jobs"
        self.pods = f"/api/v1{space}/pods"

    def binding(self, name: str) -> Json:
        """Return a binding, once it exists."""

        def look() -> Json | None:
            answer = self.api.get(f"{self.bindings}/{name}")
            return answer.json() if answer.status_code == 200 else None

        return eventually(look, f"there is a binding {name}")

    def deploy(self, replicas: int = 2) -> Json:
        """Write a policy and a deployment, and return its binding."""
        made(self.api.post(self.policies, json=policy("web")))
        made(self.api.post(self.deployments, json=deployment(replicas=replicas)))
        return self.binding("web-deployment")

    def choose(self, name: str, **replicas: int) -> Json:
        """Patch the clusters of a binding."""
        clusters = [{"name": one, "replicas": count} for one, count in replicas.items()]
        return made(
            self.api.patch(f"{self.bindings}/{name}", json={"spec": {"clusters": clusters}}, headers=MERGE), 200
        )

    def there(self, member: str, path: str) -> Json:
        """Return an object of a member, once it exists."""

        def look() -> Json | None:
            answer = self.api.get(proxy(member, path))
            return answer.json() if answer.status_code == 200 else None

        return eventually(look, f"there is {path} in {member}")

    def gone(self, member: str, path: str) -> None:
        """Wait until an object of a member is gone."""
        eventually(lambda: self.api.get(proxy(member, path)).status_code == 404, f"{path} goes from {member}")

    def works(self, member: str) -> list[Json]:
        """Return the works of this namespace's bindings in a member."""
        found = self.api.get(f"/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{member}/works").json()["items"]
        name = self.space.rpartition("/")[2]
        key = "resourcebinding.karmada.io/namespace"
        return [one for one in found if (one["metadata"].get("annotations") or {}).get(key) == name]

    def said(self, name: str, member: str) -> Json:
        """Return the status of a cluster in a binding, or nothing yet."""
        items = self.binding(name).get("status", {}).get("aggregatedStatus") or ()
        return next((one for one in items if one["clusterName"] == member), {})


@pytest.fixture
def case(api: httpx.Client, space: str) -> Case:
    """Return a namespace for a test."""
    return Case(api, space)


def conditions(body: Json) -> dict[str, str]:
    """Return the conditions of an object."""
    return {one["type"]: one["status"] for one in body.get("status", {}).get("conditions") or ()}


def test_policy_and_workload_make_a_binding(case: Case) -> None:
    """The binding `<name>-<kind>` describes the workload; Karmada does not schedule that of another scheduler."""
    binding = case.deploy(3)
    spec = binding["spec"]
    assert (spec["replicas"], spec["schedulerName"]) == (3, "seaway")
    resource = {key: spec["resource"][key] for key in ("apiVersion", "kind", "name")}
    assert resource == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    meta = binding["metadata"]
    assert meta["ownerReferences"][0]["kind"] == "Deployment"
    assert meta["finalizers"] == ["karmada.io/binding-controller"]
    assert meta["labels"]["resourcebinding.karmada.io/permanent-id"]
    assert meta["annotations"]["propagationpolicy.karmada.io/name"] == "web"
    template = case.api.get(f"{case.deployments}/web").json()
    assert template["metadata"]["annotations"]["propagationpolicy.karmada.io/name"] == "web"
    assert template["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"]
    assert "clusters" not in spec
    assert "Scheduled" not in conditions(binding)


def test_chosen_clusters_get_the_workload(case: Case, members: list[str]) -> None:
    """Each cluster gets a Work and the workload with its own number of replicas, labelled as Karmada's."""
    one, two = members
    case.deploy(3)
    case.choose("web-deployment", **{one: 2, two: 1})
    for member, replicas in ((one, 2), (two, 1)):
        found = case.there(member, f"{case.deployments}/web")
        assert found["spec"]["replicas"] == replicas
        assert found["metadata"]["labels"]["karmada.io/managed"] == "true"
        annotations = found["metadata"]["annotations"]
        assert annotations["resourcebinding.karmada.io/name"] == "web-deployment"
        assert annotations["work.karmada.io/namespace"] == f"karmada-es-{member}"
        (work,) = eventually(lambda member=member: case.works(member), "there is a work")  # type: ignore[misc]
        assert work["metadata"]["name"].startswith("web-")
        assert work["metadata"]["finalizers"] == ["karmada.io/execution-controller"]
        (manifest,) = work["spec"]["workload"]["manifests"]
        assert manifest["spec"]["replicas"] == replicas
        eventually(lambda member=member: case.said("web-deployment", member).get("applied"), "it is applied")  # type: ignore[misc]

    def fully() -> bool:
        return conditions(case.binding("web-deployment")).get("FullyApplied") == "True"

    eventually(fully, "it is fully applied")


def test_status_returns(case: Case, members: list[str]) -> None:
    """The binding reports the replicas and the health of each cluster; the template has their sum."""
    member = members[0]
    case.deploy(1)
    case.choose("web-deployment", **{member: 1})

    def pods() -> list[Json]:
        found: list[Json] = case.api.get(proxy(member, case.pods)).json()["items"]
        return found

    (pod,) = eventually(pods, "a pod is made")
    eventually(lambda: case.said("web-deployment", member).get("health") == "Unhealthy", "it is not healthy yet")
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T00:00:00Z"}]
    change = {"status": {"phase": "Running", "conditions": ready}}
    path = proxy(member, f"{case.pods}/{pod['metadata']['name']}/status")
    made(case.api.patch(path, json=change, headers=STRATEGIC), 200)
    eventually(lambda: case.said("web-deployment", member).get("health") == "Healthy", "it is healthy")
    assert case.said("web-deployment", member) == {
        "applied": True,
        "clusterName": member,
        "health": "Healthy",
        "status": {
            "availableReplicas": 1,
            "generation": 1,
            "observedGeneration": 1,
            "readyReplicas": 1,
            "replicas": 1,
            "resourceTemplateGeneration": 2,
            "updatedReplicas": 1,
        },
    }

    def summed() -> bool:
        status = case.api.get(f"{case.deployments}/web").json()["status"]
        return bool(status.get("availableReplicas") == 1 and status.get("observedGeneration") == 2)

    eventually(summed, "the template says so too")


def test_overrides_change_one_cluster(case: Case, members: list[str]) -> None:
    """A plaintext override adds a nodeSelector for its clusters, and a later one changes the existing value."""
    one, two = members

    def override(value: str) -> Json:
        rule = {"path": "/spec/template/spec/nodeSelector", "operator": "add", "value": {"a": value}}
        rules = [{"targetCluster": {"clusterNames": [one]}, "overriders": {"plaintext": [rule]}}]
        selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        return of_policies("OverridePolicy", "web", {"resourceSelectors": [selector], "overrideRules": rules})

    made(case.api.post(case.overrides, json=override("b")))
    case.deploy(2)
    case.choose("web-deployment", **{one: 1, two: 1})
    path = f"{case.deployments}/web"
    assert case.there(one, path)["spec"]["template"]["spec"]["nodeSelector"] == {"a": "b"}
    assert "nodeSelector" not in case.there(two, path)["spec"]["template"]["spec"]
    note = case.works(one)[0]["metadata"]["annotations"]["policy.karmada.io/applied-overrides"]
    assert json.loads(note)[0]["policyName"] == "web"
    made(case.api.patch(f"{case.overrides}/web", json={"spec": override("c")["spec"]}, headers=MERGE), 200)

    def changed() -> bool:
        return bool(case.there(one, path)["spec"]["template"]["spec"]["nodeSelector"] == {"a": "c"})

    eventually(changed, "the override is carried out again")


def test_scaling_leaves_the_clusters(case: Case, members: list[str]) -> None:
    """A scaled template changes spec.replicas of the binding; its clusters stay until they are patched."""
    member = members[0]
    case.deploy(1)
    case.choose("web-deployment", **{member: 1})
    case.there(member, f"{case.deployments}/web")
    made(case.api.patch(f"{case.deployments}/web", json={"spec": {"replicas": 4}}, headers=MERGE), 200)
    eventually(lambda: case.binding("web-deployment")["spec"]["replicas"] == 4, "the new number in the binding")
    assert case.binding("web-deployment")["spec"]["clusters"] == [{"name": member, "replicas": 1}]
    case.choose("web-deployment", **{member: 4})
    eventually(lambda: case.there(member, f"{case.deployments}/web")["spec"]["replicas"] == 4, "it is scaled")


def test_clusters_that_are_taken_away_lose_the_workload(case: Case, members: list[str]) -> None:
    """A cluster that is removed from spec.clusters loses Work and workload, and another gets it."""
    one, two = members
    case.deploy(1)
    case.choose("web-deployment", **{one: 1})
    case.there(one, f"{case.deployments}/web")
    case.choose("web-deployment", **{two: 1})
    case.there(two, f"{case.deployments}/web")
    case.gone(one, f"{case.deployments}/web")
    eventually(lambda: not case.works(one), "the work goes")


def test_policies_go_without_the_workload(case: Case, members: list[str]) -> None:
    """Deleting the policy leaves all objects; deleting the template removes them."""
    member = members[0]
    case.deploy(1)
    case.choose("web-deployment", **{member: 1})
    case.there(member, f"{case.deployments}/web")
    made(case.api.delete(f"{case.policies}/web"), 200)
    assert case.api.get(f"{case.bindings}/web-deployment").status_code == 200
    case.there(member, f"{case.deployments}/web")
    made(case.api.delete(f"{case.deployments}/web"), 200)
    case.gone(member, f"{case.deployments}/web")
    eventually(lambda: case.api.get(f"{case.bindings}/web-deployment").status_code == 404, "the binding goes")
    eventually(lambda: not case.works(member), "the work goes")


def test_edits_in_members_are_put_right(case: Case, members: list[str]) -> None:
    """Karmada restores objects that are changed or deleted in a member."""
    member = members[0]
    case.deploy(1)
    case.choose("web-deployment", **{member: 1})
    path = f"{case.deployments}/web"
    uid = case.there(member, path)["metadata"]["uid"]
    eventually(lambda: case.said("web-deployment", member).get("applied"), "it is applied")
    made(case.api.patch(proxy(member, path), json={"spec": {"replicas": 5}}, headers=MERGE), 200)
    eventually(lambda: case.there(member, path)["spec"]["replicas"] == 1, "the replicas are put right")
    made(case.api.delete(proxy(member, path)), 200)
    eventually(lambda: case.there(member, path)["metadata"]["uid"] != uid, "it is made again")


def test_objects_of_others_are_left_alone(case: Case, members: list[str]) -> None:
    """An existing object that is not Karmada's is not taken over, and the binding reports that."""
    member = members[0]
    path = f"{case.deployments}/web"
    case.there(member, f"/api/v1{case.space}")
    made(case.api.post(proxy(member, case.deployments), json=deployment(replicas=0)))
    case.deploy(1)
    case.choose("web-deployment", **{member: 1})
    eventually(lambda: case.said("web-deployment", member).get("appliedMessage"), "it is refused")
    item = case.said("web-deployment", member)
    assert "already exists" in item["appliedMessage"]
    assert not item.get("applied")
    assert case.there(member, path)["spec"]["replicas"] == 0
    assert conditions(case.binding("web-deployment"))["FullyApplied"] == "False"


def test_jobs_are_divided(case: Case, members: list[str]) -> None:
    """A job's replicas are its parallelism; divided among clusters, its completions are divided too."""
    one, two = members
    spec = {"containers": [{"name": "main", "image": "busybox:1"}], "restartPolicy": "Never", "schedulerName": "nobody"}
    divided = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
    made(case.api.post(case.policies, json=policy("train", "Job", "batch/v1", placement=divided)))
    job = {"metadata": {"name": "train"}, "spec": {"parallelism": 3, "completions": 6, "template": {"spec": spec}}}
    made(case.api.post(case.jobs, json=job))
    assert case.binding("train-job")["spec"]["replicas"] == 3
    case.choose("train-job", **{one: 2, two: 1})
    found = [case.there(member, f"{case.jobs}/train")["spec"] for member in members]
    assert [(one["parallelism"], one["completions"]) for one in found] == [(2, 4), (1, 2)]
    eventually(lambda: case.said("train-job", one).get("status", {}).get("active") == 2, "the status of the member")


def test_karmada_schedules_what_names_it(case: Case, members: list[str]) -> None:
    """Karmada schedules a policy that names no scheduler, and reports it in a condition."""
    body = policy("web", placement={"clusterAffinity": {"clusterNames": [members[1]]}})
    del body["spec"]["schedulerName"]
    made(case.api.post(case.policies, json=body))
    made(case.api.post(case.deployments, json=deployment()))

    def scheduled() -> bool:
        return conditions(case.binding("web-deployment")).get("Scheduled") == "True"

    eventually(scheduled, "it is scheduled")
    binding = case.binding("web-deployment")
    assert binding["spec"]["schedulerName"] == "default-scheduler"
    assert binding["spec"]["clusters"] == [{"name": members[1], "replicas": 2}]
    assert binding["status"]["schedulerObservedGeneration"] >= 1


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({}, 422),
        ({"resourceSelectors": []}, 422),
        ({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "other"}]}, 403),
        (
            {
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "placement": {
                    "clusterAffinity": {"clusterNames": ["a"]},
                    "clusterAffinities": [{"affinityName": "a", "clusterNames": ["a"]}],
                },
            },
            403,
        ),
        ({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "schedulerName": "seaway"}, 201),
    ],
)
def test_policies_are_checked(case: Case, spec: Json, code: int) -> None:
    """A policy needs selectors of its own namespace, and one kind of affinity; it needs no placement."""
    answer = case.api.post(case.policies, json=of_policies("PropagationPolicy", "p", spec))
    assert answer.status_code == code, answer.text


def test_custom_resources_say_what_they_are(case: Case) -> None:
    """A custom resource without kind and apiVersion gets 400, and one without its version cannot be replaced."""
    body = policy("p")
    for name in ("kind", "apiVersion"):
        answer = case.api.post(case.policies, json={key: value for key, value in body.items() if key != name})
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
    found = made(case.api.post(case.policies, json=body))
    assert case.api.put(f"{case.policies}/p", json=body).status_code == 422
    made(case.api.put(f"{case.policies}/p", json=found), 200)
    item = case.api.get(case.policies).json()["items"][0]
    assert (item["kind"], item["apiVersion"]) == (body["kind"], body["apiVersion"])
    strategic = case.api.patch(f"{case.policies}/p", json={"spec": {"priority": 1}}, headers=STRATEGIC)
    assert strategic.status_code == 415


def test_bindings_are_written_at_their_version(case: Case) -> None:
    """A stale patch of a binding gets 409; an unknown cluster is accepted without an error."""
    stale = case.deploy(1)["metadata"]["resourceVersion"]
    case.choose("web-deployment", nowhere=9)
    change = {"metadata": {"resourceVersion": stale}, "spec": {"clusters": []}}
    answer = case.api.patch(f"{case.bindings}/web-deployment", json=change, headers=MERGE)
    assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")


def test_clusters_tell_how_they_are(api: httpx.Client, members: list[str]) -> None:
    """A cluster that answers is ready, has no taint, and sums up its resources."""
    for member in members:
        cluster = api.get(f"{CLUSTERS}/{member}").json()
        assert cluster["spec"]["syncMode"] == "Push"
        assert not cluster["spec"].get("taints")
        (ready,) = [one for one in cluster["status"]["conditions"] if one["type"] == "Ready"]
        assert (ready["status"], ready["reason"]) == ("True", "ClusterReady")
        assert {"kubernetesVersion", "apiEnablements", "nodeSummary"} <= set(cluster["status"])


def test_proxies_lead_to_members(case: Case, members: list[str]) -> None:
    """Get, list, create, patch and watch work through the proxy; errors are those of the member."""
    member = members[0]
    case.there(member, f"/api/v1{case.space}")
    path = proxy(member, f"/api/v1{case.space}/configmaps")
    version = made(case.api.post(path, json={"metadata": {"name": "a"}}))["metadata"]["resourceVersion"]
    query = {"watch": "1", "resourceVersion": version, "fieldSelector": "metadata.name=a", "timeoutSeconds": "10"}
    with case.api.stream("GET", path, params=query) as response:
        lines = response.iter_lines()
        changed = case.api.patch(f"{path}/a", json={"data": {"b": "c"}}, headers=MERGE)
        assert made(changed, 200)["data"] == {"b": "c"}
        event = json.loads(next(lines))
        assert (event["type"], event["object"]["data"]) == ("MODIFIED", {"b": "c"})
    assert "a" in [one["metadata"]["name"] for one in case.api.get(path).json()["items"]]
    assert made(case.api.get(f"{path}/none"), 404)["message"] == 'configmaps "none" not found'
    assert case.api.get(proxy("seaway-none", "/api/v1/nodes")).status_code == 404


def test_namespaces_follow(case: Case, members: list[str]) -> None:
    """A namespace of the control plane is created in every member, before any object needs it."""
    for member in members:
        case.there(member, f"/api/v1{case.space}")
