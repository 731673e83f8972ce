"""Karmada: from policy and template to pods in members, and back."""

from __future__ import annotations

import doctest
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.fakes.kubernetes import ApiServer, KarmadaPace, KarmadaWorld
from tests.fakes.kubernetes.karmada import words
from tests.fakes.kubernetes.kinds import (
    BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    WORKS,
    Json,
    Kind,
)
from tests.unit.fakes.kubernetes.bodies import deployment, job, node

BINDINGS_PATH = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings"
POLICIES_PATH = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
MERGE = {"content-type": "application/merge-patch+json"}


@pytest.fixture
def world() -> Iterator[KarmadaWorld]:
    """Return a control plane with two members of two nodes each."""
    with KarmadaWorld() as world:
        for server in world.members.values():
            for name in ("n1", "n2"):
                server.create(node(f"{server.name}-{name}", cards=2))
        world.settle()
        yield world


@pytest.fixture
def api(world: KarmadaWorld) -> Iterator[httpx.Client]:
    """Return a client of the control plane."""
    with httpx.Client(base_url=world.control.url, headers=world.control.headers, timeout=10) as client:
        yield client


def policy(name: str, kind: str = "Deployment", scheduler: str = "seaway", **spec: object) -> Json:
    """Return a policy for one object."""
    version = {"Deployment": "apps/v1", "Job": "batch/v1", "ConfigMap": "v1"}[kind]
    selector = {"apiVersion": version, "kind": kind, "name": name}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name},
        "spec": {"schedulerName": scheduler, "resourceSelectors": [selector], **spec},
    }


def pin(name: str, **nodes: str) -> Json:
    """Return an override that brings the pods of a deployment to one node in each cluster."""
    rules = [
        {
            "targetCluster": {"clusterNames": [cluster]},
            "overriders": {
                "plaintext": [
                    {
                        "path": "/spec/template/spec/nodeSelector",
                        "operator": "add",
                        "value": {"kubernetes.io/hostname": host},
                    }
                ]
            },
        }
        for cluster, host in nodes.items()
    ]
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": name},
        "spec": {"resourceSelectors": [selector], "overrideRules": rules},
    }


def choose(world: KarmadaWorld, name: str, **replicas: int) -> Json:
    """Patch the clusters of a binding and return it when everything is done."""
    clusters = [{"name": cluster, "replicas": count} for cluster, count in replicas.items()]
    world.control.patch(BINDINGS, "default", name, {"spec": {"clusters": clusters}})
    world.settle()
    return found(world.control, BINDINGS, name)


def found(server: ApiServer, kind: Kind, name: str, namespace: str = "default") -> Json:
    """Return an object that must be there."""
    body = server.get(kind, namespace, name)
    assert body is not None, f"{kind.kind} {name}"
    return body


def conditions(body: Json) -> dict[str, str]:
    """Return the conditions of an object."""
    return {one["type"]: one["status"] for one in body.get("status", {}).get("conditions", [])}


def test_policy_and_workload_make_a_binding(world: KarmadaWorld) -> None:
    """A binding `<name>-<kind>` says what it is about and how many replicas there are; no one schedules it."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=3))
    world.settle()
    binding = found(world.control, BINDINGS, "web-deployment")
    assert binding["spec"]["replicas"] == 3
    assert binding["spec"]["schedulerName"] == "seaway"
    assert binding["spec"]["resource"]["name"] == "web"
    assert "clusters" not in binding["spec"]
    assert "Scheduled" not in conditions(binding)
    assert not world.members["member1"].list(DEPLOYMENTS)


def test_chosen_clusters_run_the_workload(world: KarmadaWorld) -> None:
    """Patched clusters get the workload with their replicas, and tell when it is healthy."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=3))
    world.settle()
    binding = choose(world, "web-deployment", member1=2, member2=1)
    for name, replicas in (("member1", 2), ("member2", 1)):
        member = world.members[name]
        assert len(member.list(PODS)) == replicas
        assert found(member, DEPLOYMENTS, "web")["metadata"]["labels"]["karmada.io/managed"] == "true"
        (work,) = world.control.list(WORKS, f"karmada-es-{name}")
        assert work["metadata"]["name"].startswith("web-")
        assert conditions(work)["Applied"] == "True"
    items = {one["clusterName"]: one for one in binding["status"]["aggregatedStatus"]}
    assert items["member1"]["health"] == "Healthy"
    assert items["member1"]["applied"] is True
    assert items["member1"]["status"]["availableReplicas"] == 2
    assert items["member1"]["status"]["resourceTemplateGeneration"] == 2
    assert conditions(binding)["FullyApplied"] == "True"
    assert found(world.control, DEPLOYMENTS, "web")["status"]["availableReplicas"] == 3


def test_overrides_pin_pods_in_each_cluster(world: KarmadaWorld) -> None:
    """A plaintext override adds a nodeSelector in one cluster only."""
    world.control.create(pin("web", member1="member1-n2"))
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=2))
    world.settle()
    choose(world, "web-deployment", member1=1, member2=1)
    (pod,) = world.members["member1"].list(PODS)
    assert pod["spec"]["nodeName"] == "member1-n2"
    assert "nodeSelector" not in found(world.members["member2"], DEPLOYMENTS, "web")["spec"]["template"]["spec"]
    (work,) = world.control.list(WORKS, "karmada-es-member1")
    assert "web" in work["metadata"]["annotations"]["policy.karmada.io/applied-overrides"]


def test_override_that_comes_late_is_carried_out(world: KarmadaWorld) -> None:
    """An override made after the workload changes it in its cluster."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    choose(world, "web-deployment", member1=1)
    world.control.create(pin("web", member1="member1-n1"))
    world.settle()
    template = found(world.members["member1"], DEPLOYMENTS, "web")["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "member1-n1"}


def test_scaling_the_template_leaves_the_clusters(world: KarmadaWorld) -> None:
    """A scaled template changes the binding's replicas; its clusters must be patched again."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    choose(world, "web-deployment", member1=1)
    world.control.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 4}})
    world.settle()
    binding = found(world.control, BINDINGS, "web-deployment")
    assert binding["spec"]["replicas"] == 4
    assert binding["spec"]["clusters"] == [{"name": "member1", "replicas": 1}]
    assert len(world.members["member1"].list(PODS)) == 1


def test_job_goes_to_a_member_and_its_end_returns(world: KarmadaWorld) -> None:
    """A job's parallelism is its replicas; when it is complete in its member, the template is, too."""
    world.control.create(policy("train", "Job"))
    world.control.create(job(parallelism=2, completions=2))
    world.settle()
    assert found(world.control, BINDINGS, "train-job")["spec"]["replicas"] == 2
    binding = choose(world, "train-job", member2=2)
    assert conditions(found(world.members["member2"], JOBS, "train"))["Complete"] == "True"
    (item,) = binding["status"]["aggregatedStatus"]
    assert item["status"]["succeeded"] == 2
    assert conditions(found(world.control, JOBS, "train"))["Complete"] == "True"


def test_what_a_member_denies_is_reported_by_the_binding(world: KarmadaWorld) -> None:
    """As on real servers: `applied` is left out, the message is the member's, and it is tried again."""
    end = world.members["member2"].deny(JOBS, "exceeded quota: team")
    world.control.create(policy("train", "Job"))
    world.control.create(job(parallelism=1, completions=1))
    world.settle()
    binding = choose(world, "train-job", member2=1)
    (item,) = binding["status"]["aggregatedStatus"]
    text = 'Failed to apply all manifests (0/1): jobs.batch "train" is forbidden: exceeded quota: team'
    assert item == {"clusterName": "member2", "health": "Unknown", "appliedMessage": text}
    assert conditions(binding)["FullyApplied"] == "False"
    end()
    assert world.members["member2"].wait_for(lambda: any(world.members["member2"].store.all(JOBS)))


def test_cluster_taken_from_the_binding_loses_the_workload(world: KarmadaWorld) -> None:
    """A cluster that is no longer in spec.clusters loses the workload, and another gets it."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    choose(world, "web-deployment", member1=1)
    binding = choose(world, "web-deployment", member2=1)
    assert not world.members["member1"].list(PODS)
    assert len(world.members["member2"].list(PODS)) == 1
    assert [one["clusterName"] for one in binding["status"]["aggregatedStatus"]] == ["member2"]


def test_deleted_template_takes_everything_along(world: KarmadaWorld) -> None:
    """Deleting the template removes binding, works and what runs; deleting the policy does not."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    choose(world, "web-deployment", member1=1)
    path = f"{POLICIES_PATH}/web"
    httpx.delete(f"{world.control.url}{path}", headers=world.control.headers)
    world.settle()
    assert len(world.members["member1"].list(PODS)) == 1
    world.control.delete(DEPLOYMENTS, "default", "web")
    world.settle()
    assert not world.control.list(BINDINGS)
    assert not world.control.list(WORKS)
    assert not world.members["member1"].list(DEPLOYMENTS)
    assert not world.members["member1"].list(PODS)


def test_same_name_again_makes_a_new_binding(world: KarmadaWorld) -> None:
    """A template deleted and made again gets a binding of its own, without clusters."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    first = choose(world, "web-deployment", member1=1)
    world.control.delete(DEPLOYMENTS, "default", "web")
    world.control.create(deployment(replicas=1))
    world.settle()
    second = found(world.control, BINDINGS, "web-deployment")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert "clusters" not in second["spec"]


def test_direct_edits_in_a_member_are_put_right(world: KarmadaWorld) -> None:
    """Anything that a user changes or deletes in a member returns as the work says."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    choose(world, "web-deployment", member1=1)
    member = world.members["member1"]
    member.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 5}})
    world.settle()
    assert found(member, DEPLOYMENTS, "web")["spec"]["replicas"] == 1
    member.delete(DEPLOYMENTS, "default", "web")
    world.settle()
    assert len(member.list(PODS)) == 1


def test_objects_of_others_are_not_taken_over(world: KarmadaWorld) -> None:
    """An object that is there already and not Karmada's stays, and the binding says so."""
    member = world.members["member1"]
    member.create(deployment(replicas=2))
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    binding = choose(world, "web-deployment", member1=1)
    (item,) = binding["status"]["aggregatedStatus"]
    assert "applied" not in item
    assert "already exists" in item["appliedMessage"]
    assert found(member, DEPLOYMENTS, "web")["spec"]["replicas"] == 2
    assert conditions(binding)["FullyApplied"] == "False"


def test_namespaces_follow(world: KarmadaWorld) -> None:
    """A namespace that a member lacks is made there."""
    world.control.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    body = policy("settings", "ConfigMap")
    world.control.create({**body, "metadata": {"name": "settings", "namespace": "team"}})
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
    world.control.create(made, "team")
    world.settle()
    world.control.patch(BINDINGS, "team", "settings-configmap", {"spec": {"clusters": [{"name": "member1"}]}})
    world.settle()
    assert found(world.members["member1"], CONFIG_MAPS, "settings", "team")["data"] == {"a": "b"}
    assert found(world.members["member1"], NAMESPACES, "team", "")


def test_own_scheduler_serves_bindings_that_name_it(world: KarmadaWorld) -> None:
    """A policy without a scheduler's name is scheduled by Karmada: repeated in all clusters that it allows."""
    placement = {"clusterAffinity": {"clusterNames": ["member2"]}}
    world.control.create(policy("web", scheduler="default-scheduler", placement=placement))
    world.control.create(deployment(replicas=2))
    world.settle()
    binding = found(world.control, BINDINGS, "web-deployment")
    assert binding["spec"]["clusters"] == [{"name": "member2", "replicas": 2}]
    assert conditions(binding)["Scheduled"] == "True"
    assert len(world.members["member2"].list(PODS)) == 2


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"resourceSelectors": None}, 422),
        ({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "other"}]}, 403),
        (
            {
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "placement": {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]},
            },
            403,
        ),
        ({"resourceSelectors": [{"kind": "Deployment"}]}, 201),
        ({"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "placement": {}}, 201),
    ],
)
def test_policies_are_checked(api: httpx.Client, spec: Json, code: int) -> None:
    """A policy needs selectors of its own namespace, and one kind of affinity."""
    spec = {key: value for key, value in spec.items() if value is not None}
    answer = api.post(POLICIES_PATH, json={**policy("p"), "spec": spec})
    assert answer.status_code == code, answer.text


def test_binding_is_written_at_its_version(world: KarmadaWorld, api: httpx.Client) -> None:
    """A stale patch of a binding gets 409; an unknown cluster is taken without a word."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    stale = api.get(f"{BINDINGS_PATH}/web-deployment").json()["metadata"]["resourceVersion"]
    change: Json = {"spec": {"clusters": [{"name": "nowhere", "replicas": 9}]}}
    assert api.patch(f"{BINDINGS_PATH}/web-deployment", json=change, headers=MERGE).status_code == 200
    change["metadata"] = {"resourceVersion": stale}
    assert api.patch(f"{BINDINGS_PATH}/web-deployment", json=change, headers=MERGE).status_code == 409


def test_clusters_tell_what_they_have(world: KarmadaWorld) -> None:
    """A cluster's status sums up nodes and pods, leaves out what is zero, and is ready."""
    world.members["member1"].create(deployment(replicas=2, limits={"cpu": "500m"}))

    def summed() -> bool:
        status = world.control.store.get(CLUSTERS, "", "member1").read()["status"]
        return bool(status["resourceSummary"].get("allocated", {}).get("pods") == "2")

    assert world.control.wait_for(summed)
    status = found(world.control, CLUSTERS, "member1", "")["status"]
    assert status["nodeSummary"] == {"totalNum": 2, "readyNum": 2}
    assert status["resourceSummary"]["allocated"] == {"cpu": "1", "pods": "2"}
    assert status["resourceSummary"]["allocatable"]["nvidia.com/gpu"] == "40"
    assert "allocating" not in status["resourceSummary"]
    assert conditions({"status": status})["Ready"] == "True"


def test_cluster_that_is_unreachable_is_not_ready(world: KarmadaWorld) -> None:
    """A member that does not answer is tainted; what is to be done there is done when it is back."""
    world.control.create(policy("web"))
    world.control.create(deployment(replicas=1))
    world.settle()
    member = world.members["member1"]
    member.stop()
    world.settle()
    cluster = found(world.control, CLUSTERS, "member1", "")
    assert conditions(cluster)["Ready"] == "False"
    assert cluster["status"]["conditions"][0]["reason"] == "ClusterNotReachable"
    assert cluster["spec"]["taints"][0]["key"] == "cluster.karmada.io/not-ready"
    choose(world, "web-deployment", member1=1)
    assert not member.list(DEPLOYMENTS)
    member.start()
    world.settle()
    assert conditions(found(world.control, CLUSTERS, "member1", ""))["Ready"] == "True"
    assert "taints" not in found(world.control, CLUSTERS, "member1", "")["spec"]
    assert len(member.list(PODS)) == 1


def test_notice_takes_its_time() -> None:
    """With a pace of its own, Karmada takes as long as it is reported to."""
    with KarmadaWorld(["member1"], pace=KarmadaPace(not_ready_s=60)) as world:
        world.members["member1"].stop()
        world.settle()
        assert conditions(found(world.control, CLUSTERS, "member1", ""))["Ready"] == "True"


def proxy(member: str, path: str) -> str:
    """Return the path of a member's path behind the proxy."""
    return f"/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy{path}"


def test_proxy_reaches_members(world: KarmadaWorld, api: httpx.Client) -> None:
    """Get, list, create and patch work through the proxy, with the control plane's token."""
    made = api.post(proxy("member1", "/api/v1/namespaces/default/configmaps"), json={"metadata": {"name": "a"}})
    assert made.status_code == 201
    path = proxy("member1", "/api/v1/namespaces/default/configmaps/a")
    assert api.patch(path, json={"data": {"b": "c"}}, headers=MERGE).json()["data"] == {"b": "c"}
    assert found(world.members["member1"], CONFIG_MAPS, "a")["data"] == {"b": "c"}
    listed = api.get(proxy("member1", "/api/v1/nodes"), params={"limit": 1}).json()
    assert listed["metadata"]["continue"]
    assert api.get(proxy("member1", "/api/v1/namespaces/default/pods/x")).status_code == 404
    assert api.get(proxy("nowhere", "/api/v1/nodes")).status_code == 404


def test_proxy_streams_watches(world: KarmadaWorld, api: httpx.Client) -> None:
    """A watch through the proxy tells of changes at once, and ends when either side cuts it."""
    path = proxy("member1", "/api/v1/namespaces/default/configmaps")
    member = world.members["member1"]

    def make(name: str) -> None:
        member.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})

    for at, server in enumerate((member, world.control)):
        query = {"watch": "1", "resourceVersion": str(member.version)}
        with api.stream("GET", path, params=query) as response:
            lines = response.iter_lines()
            make(f"a{at}")
            assert json.loads(next(lines))["object"]["metadata"]["name"] == f"a{at}"
            assert server.faults.cut_watches() == 1
            with pytest.raises(httpx.RemoteProtocolError):
                next(lines)


def test_proxy_hangs_with_its_member(world: KarmadaWorld, api: httpx.Client) -> None:
    """A call to a member that hangs hangs; the others answer."""
    with world.members["member1"].faults.during(world.members["member1"].faults.hang()):
        with pytest.raises(httpx.ReadTimeout):
            api.get(proxy("member1", "/api/v1/nodes"), timeout=0.1)
        assert api.get(proxy("member2", "/api/v1/nodes")).status_code == 200


def test_proxy_says_that_a_member_is_gone(world: KarmadaWorld, api: httpx.Client) -> None:
    """A call to a member that is stopped gets 500, and open watches break off."""
    path = proxy("member1", "/api/v1/nodes")
    with api.stream("GET", path, params={"watch": "1"}) as response:
        lines = response.iter_lines()
        next(lines)
        world.members["member1"].stop()
        with pytest.raises(httpx.RemoteProtocolError):
            for _ in lines:
                pass
    assert api.get(path).status_code == 500


def test_one_way_can_be_cut_alone(world: KarmadaWorld, api: httpx.Client) -> None:
    """A fault on the proxy's path disconnects a member from clients of the proxy, not from Karmada."""
    world.control.faults.hang(proxy("member1", "*"))
    with pytest.raises(httpx.ReadTimeout):
        api.get(proxy("member1", "/api/v1/nodes"), timeout=0.1)
    assert httpx.get(f"{world.members['member1'].url}/readyz").text == "ok"
    world.settle()
    assert conditions(found(world.control, CLUSTERS, "member1", ""))["Ready"] == "True"


def test_kubeconfig_has_the_control_plane_first(world: KarmadaWorld, tmp_path: Path) -> None:
    """The kubeconfig of a world may name the members as well."""
    config = yaml.safe_load(world.kubeconfig(tmp_path / "all", members=True).read_text())
    assert [one["name"] for one in config["contexts"]] == ["karmada", "member1", "member2"]


def test_examples_run() -> None:
    """Examples in docstrings are right."""
    assert doctest.testmod(words).failed == 0
