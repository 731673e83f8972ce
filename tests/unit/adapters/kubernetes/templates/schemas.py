"""Checks of objects: Kubernetes' own by schema, others by their controllers' requirements."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # ships no types

VERSION = "1.36"
NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def validate(manifest: dict[str, Any]) -> None:
    """Validate an object with the schema of its kind; unknown fields are errors."""
    kind = (manifest["apiVersion"], manifest["kind"])
    check_metadata(manifest["metadata"], within=63)
    if kind in CUSTOM:
        CUSTOM[kind](manifest["spec"])
    else:
        kubernetes_validate.validate(manifest, VERSION, strict=True)


def check_metadata(metadata: dict[str, Any], within: int) -> None:
    """Check names and labels, which schemas leave to the server."""
    assert NAME.fullmatch(metadata["name"]), metadata["name"]
    assert len(metadata["name"]) <= within
    for value in metadata["labels"].values():
        assert LABEL.fullmatch(value), value


def check_pods(template: dict[str, Any], container: str = "", restart: str = "Never") -> None:
    """Check a pod template by the schema of a Job."""
    assert template["spec"]["restartPolicy"] == restart
    assert not container or template["spec"]["containers"][0]["name"] == container
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"template": template}}
    kubernetes_validate.validate(job, VERSION, strict=True)


def _pytorchjob(spec: dict[str, Any]) -> None:
    assert set(spec) == {"nprocPerNode", "runPolicy", "pytorchReplicaSpecs"}
    assert isinstance(spec["nprocPerNode"], str)
    assert set(spec["pytorchReplicaSpecs"]) <= {"Master", "Worker"}
    assert spec["pytorchReplicaSpecs"]["Master"]["replicas"] == 1
    for role in spec["pytorchReplicaSpecs"].values():
        assert set(role) == {"replicas", "restartPolicy", "template"}
        assert role["restartPolicy"] == "Never"
        check_pods(role["template"], "pytorch")


def _ray(spec: dict[str, Any]) -> None:
    assert set(spec) <= {"headGroupSpec", "workerGroupSpecs"}
    assert set(spec["headGroupSpec"]) == {"rayStartParams", "template"}
    check_pods(spec["headGroupSpec"]["template"], "ray-head")
    names = [group["groupName"] for group in spec.get("workerGroupSpecs", [])]
    assert len(set(names)) == len(names)
    assert all(NAME.fullmatch(name) for name in names)
    for group in spec.get("workerGroupSpecs", []):
        assert group["replicas"] == group["minReplicas"] == group["maxReplicas"] >= 1
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        check_pods(group["template"], "ray-worker")


def _rayjob(spec: dict[str, Any]) -> None:
    assert isinstance(spec["entrypoint"], str)
    assert spec["entrypoint"]
    assert spec["submissionMode"] in {"K8sJobMode", "HTTPMode"}
    assert isinstance(spec["shutdownAfterJobFinishes"], bool)
    _ray(spec["rayClusterSpec"])


def _volcano(spec: dict[str, Any]) -> None:
    names = [task["name"] for task in spec["tasks"]]
    assert len(set(names)) == len(names)
    assert 1 <= spec["minAvailable"] <= sum(task["replicas"] for task in spec["tasks"])
    for task in spec["tasks"]:
        assert set(task) == {"name", "replicas", "template"}
        assert NAME.fullmatch(task["name"])
        check_pods(task["template"])
    for policy in spec["policies"]:
        assert set(policy["events"]) <= {"PodFailed", "PodEvicted"}
        assert policy["action"] == "TerminateJob"


def _propagation(spec: dict[str, Any]) -> None:
    assert spec["schedulerName"] == "seaway"
    assert spec["resourceSelectors"]
    for selector in spec["resourceSelectors"]:
        assert set(selector) == {"apiVersion", "kind", "namespace", "name"}
    assert "clusterAffinities" not in spec["placement"]


def _override(spec: dict[str, Any]) -> None:
    assert len(spec["resourceSelectors"]) == 1
    for rule in spec["overrideRules"]:
        assert rule["targetCluster"]["clusterNames"]
        for patch in rule["overriders"]["plaintext"]:
            assert set(patch) == {"path", "operator", "value"}
            assert patch["path"].startswith("/")
            assert patch["operator"] in {"add", "replace", "remove"}


CUSTOM: dict[tuple[str, str], Callable[[dict[str, Any]], None]] = {
    ("kubeflow.org/v1", "PyTorchJob"): _pytorchjob,
    ("ray.io/v1", "RayCluster"): _ray,
    ("ray.io/v1", "RayJob"): _rayjob,
    ("batch.volcano.sh/v1alpha1", "Job"): _volcano,
    ("policy.karmada.io/v1alpha1", "PropagationPolicy"): _propagation,
    ("policy.karmada.io/v1alpha1", "OverridePolicy"): _override,
}
