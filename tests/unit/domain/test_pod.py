"""Own pod specs of jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.sqlalchemy.codec import read_spec, spec_text
from seaway.domain.errors import RejectedError
from seaway.domain.pod_rules import FORBIDDEN
from seaway.domain.runtime import Run
from seaway.wire.job_in import JobIn
from seaway.wire.job_text import described_text, job_text
from seaway.wire.reading import read_value

POD: dict[str, Any] = {
    "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["store"]}],
    "securityContext": {"fsGroup": 2000},
    "containers": [
        {"name": "log", "image": "log:1", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
        {
            "name": "main",
            "image": "torch:2",
            "command": ["python"],
            "args": ["fit.py"],
            "workingDir": "/src",
            "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "ports": [{"containerPort": 8000}],
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
            "livenessProbe": {"exec": {"command": ["true"]}},
        },
    ],
    "initContainers": [{"name": "fetch-data", "image": "curl:8"}],
    "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
}
JOB = {"name": "own", "resources": {"cpu": 4, "memory": "8Gi", "gpus": 1}}


def read(pod: object, **run: Any) -> Any:  # noqa: ANN401  # a specification
    """Return the job with a pod spec."""
    return read_value(JobIn, {**JOB, "run": {"pod": pod, **run}}).spec()


def test_the_program_is_that_of_the_main_container() -> None:
    """Image, command and ports of the pod are those of the job, unless the job has its own."""
    spec = read(POD)
    assert (spec.run.image, spec.run.command, spec.run.args, spec.run.ports) == (
        "torch:2",
        ("python",),
        ("fit.py",),
        (8000,),
    )
    spec = read(POD, image="torch:3", command=["bash"])
    assert (spec.run.image, spec.run.command, spec.run.args) == ("torch:3", ("bash",), ())


def test_a_pod_spec_survives_a_round_trip_and_is_content() -> None:
    """It is stored and written as it was read, and only callers with access to the content of jobs see it."""
    spec = read(POD)
    assert JobIn.of(spec).spec() == spec
    assert read_spec(spec_text(spec)) == spec
    assert job_text(spec)["run"]["pod"]["hostAliases"] == POD["hostAliases"]
    assert "pod" not in described_text(job_text(spec))["run"]


def changed(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  # of a pod
    """Return a pod spec with other fields."""
    return {"containers": [{"name": "main", "image": "a:1"}], **fields}


def with_container(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  # of a container
    """Return a pod spec with other fields of its container."""
    return changed(containers=[{"name": "main", "image": "a:1", **fields}])


@pytest.mark.parametrize(
    ("pod", "where"),
    [
        (changed(hostNetwork=True), "hostNetwork"),
        (changed(hostPID=True), "hostPID"),
        (changed(serviceAccountName="admin"), "serviceAccountName"),
        (changed(automountServiceAccountToken=True), "automountServiceAccountToken"),
        (changed(schedulerName="mine"), "schedulerName"),
        (changed(nodeName="n1"), "nodeName"),
        (changed(nodeSelector={"a": "b"}), "nodeSelector"),
        (changed(tolerations=[{}]), "tolerations"),
        (changed(priorityClassName="x"), "priorityClassName"),
        (changed(unheardOf=1), "unheardOf"),
        (changed(containers=[]), "containers"),
        (changed(securityContext={"runAsUser": 0}), "securityContext.runAsUser"),
        (changed(securityContext={"sysctls": [{"name": "a"}]}), "securityContext.sysctls"),
        (changed(volumes=[{"name": "a", "hostPath": {"path": "/"}}]), "volumes[0].hostPath"),
        (changed(volumes=[{"name": "a", "secret": {"secretName": "b"}}]), "volumes[0]"),
        (changed(volumes=[{"name": "volume-0", "emptyDir": {}}]), "volumes[0].name"),
        (with_container(securityContext={"privileged": True}), "containers[0].securityContext.privileged"),
        (with_container(securityContext={"capabilities": {"add": ["NET_ADMIN"]}}),
         "containers[0].securityContext.capabilities"),
        (with_container(ports=[{"containerPort": 1, "hostPort": 1}]), "containers[0].ports[0].hostPort"),
        (with_container(resources={"limits": {"nvidia.com/gpu": 8}}), "containers[0].resources"),
        (with_container(envFrom=[{"secretRef": {"name": "a"}}]), "containers[0].envFrom"),
        (with_container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "b", "key": "c"}}}]),
         "containers[0].env[0].valueFrom"),
        (with_container(volumeMounts=[{"name": "a", "mountPath": "/usr/local/./vgpu"}]),
         "containers[0].volumeMounts[0].mountPath"),
        (with_container(volumeMounts=[{"name": "a", "mountPath": "/dev/x"}]),
         "containers[0].volumeMounts[0].mountPath"),
        (with_container(livenessProbe={"httpGet": {"host": "10.0.0.1", "port": 1}}),
         "containers[0].livenessProbe.httpGet.host"),
        (changed(containers=[{"name": "a"}, {"name": "pytorch"}]), "containers[1].name"),
        (changed(containers=[{"name": "main"}, {"name": "b", "resources": {"requests": {"cpu": 4}}}]), "containers"),
    ],
)  # fmt: skip
def test_fields_that_reach_nodes_or_others_are_refused(pod: dict[str, Any], where: str) -> None:
    """The rules are those of templates, without any privilege; objects and places are given by fields of the job."""
    with pytest.raises(RejectedError) as refused:
        read(pod)
    assert f"run.pod.{where}" in {each.where for each in (refused.value, *refused.value.also)}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*FORBIDDEN, *POD, "name", "ports"]), inner)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*FORBIDDEN, *POD]), VALUES) | VALUES)
def test_no_pod_spec_raises_anything_but_a_rejection(pod: object) -> None:
    """A value of any shape is a pod spec without forbidden fields, or rejected."""
    try:
        run = Run(pod=json.dumps(pod))
    except RejectedError:
        return
    assert not FORBIDDEN.keys() & {name for name, value in json.loads(run.pod).items() if value}
