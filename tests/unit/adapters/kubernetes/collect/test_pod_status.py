from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seaway.adapters.kubernetes.collect.pod_status import Wait, pod_state
from seaway.adapters.kubernetes.objects.core import PodObject
from seaway.domain.deployment import Cause, WorkloadPhase


def pod(node: str = "node-1", **status: Any) -> PodObject:  # noqa: ANN401  # whatever a kubelet writes
    """Create a pod with this status."""
    written = {"metadata": {"name": "p"}, "spec": {"nodeName": node, "containers": [{"name": "main"}]}}
    return msgspec.convert(written | {"status": status}, PodObject)


def ended(reason: str = "Error", code: int = 1, message: str = "") -> list[dict[str, Any]]:
    """Write the status of a terminated container."""
    state = {"terminated": {"reason": reason, "exitCode": code, "message": message}}
    return [{"name": "main", "state": state}]


def waits(reason: str, message: str = "", times: int = 0, last: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Write the status of a waiting container."""
    state = {"waiting": {"reason": reason, "message": message}}
    return [{"name": "main", "state": state, "restartCount": times, "lastState": last or {}}]


RUNS = [{"name": "main", "ready": True, "state": {"running": {"startedAt": "2026-11-21T00:00:00Z"}}}]


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ({"phase": "Pending"}, WorkloadPhase.STARTING),
        ({"phase": "Pending", "containerStatuses": waits("ContainerCreating")}, WorkloadPhase.STARTING),
        ({"phase": "Running", "containerStatuses": RUNS}, WorkloadPhase.RUNNING),
        ({"phase": "Running"}, WorkloadPhase.STARTING),
        ({"phase": "Running", "containerStatuses": RUNS + ended("Completed", 0)}, WorkloadPhase.RUNNING),
        ({"phase": "Running", "containerStatuses": RUNS + ended()}, WorkloadPhase.STARTING),
        ({"phase": "Succeeded"}, WorkloadPhase.SUCCEEDED),
        ({"phase": "Failed"}, WorkloadPhase.FAILED),
        ({"phase": "Unknown"}, WorkloadPhase.STARTING),
    ],
)
def test_a_pods_phase_is_its_replicas(status: dict[str, Any], phase: WorkloadPhase) -> None:
    """A replica runs when every container of it runs or has succeeded."""
    assert pod_state(pod(**status)).phase is phase


@pytest.mark.parametrize(
    ("most", "statuses", "phase"),
    [
        ("2", waits("CrashLoopBackOff", times=1), WorkloadPhase.STARTING),
        ("2", waits("CrashLoopBackOff", times=2), WorkloadPhase.FAILED),
        ("2", [{**RUNS[0], "restartCount": 2}], WorkloadPhase.RUNNING),
        ("2", [{**RUNS[0], "restartCount": 3}], WorkloadPhase.FAILED),
        ("0", ended(code=3), WorkloadPhase.STARTING),
        ("0", waits("CrashLoopBackOff", last=ended(code=3)[0]["state"]), WorkloadPhase.FAILED),
        ("many", waits("CrashLoopBackOff", times=9), WorkloadPhase.STARTING),
    ],
)
def test_a_replica_fails_after_its_restarts_in_place(
    most: str, statuses: list[dict[str, Any]], phase: WorkloadPhase
) -> None:
    """A container may be restarted this often; one that waits for a further restart is the failure of its replica."""
    written = {"metadata": {"name": "p", "annotations": {"seaway.io/max-restarts": most}}}
    status = {"phase": "Running", "containerStatuses": statuses}
    state = pod_state(msgspec.convert(written | {"spec": {"nodeName": "node-1"}, "status": status}, PodObject))
    assert state.phase is phase
    assert (phase is WorkloadPhase.FAILED) == (f"after {most} restarts in its place" in state.reason)


@pytest.mark.parametrize(
    ("restart", "phase"),
    [("Never", WorkloadPhase.RUNNING), ("OnFailure", WorkloadPhase.STARTING), ("Always", WorkloadPhase.STARTING)],
)
def test_a_helper_that_failed_is_reported(restart: str, phase: WorkloadPhase) -> None:
    """Without a restart the replica continues without it; with one it will recover. Both report the reason."""
    helper = [{**ended(code=3)[0], "name": "helper"}]
    written = {"metadata": {"name": "p"}, "spec": {"nodeName": "node-1", "restartPolicy": restart}}
    status = {"phase": "Running", "containerStatuses": RUNS + helper}
    verdict = pod_state(msgspec.convert(written | {"status": status}, PodObject))
    assert (verdict.phase, verdict.reason) == (phase, "container helper exited with 3")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"containerStatuses": ended(code=3)}, "container main exited with 3"),
        ({"containerStatuses": ended(code=3, message="no data")}, "container main exited with 3: no data"),
        ({"containerStatuses": ended("OOMKilled", 137)}, "container main ran out of memory and was killed"),
        ({"containerStatuses": ended(code=143)}, "container main was ended by SIGTERM"),
        ({"containerStatuses": ended(code=137)}, "container main was ended by SIGKILL"),
        ({"initContainerStatuses": ended(code=2)}, "container main exited with 2"),
        ({"reason": "DeadlineExceeded", "message": "too slow"}, "too slow"),
        ({}, "its pod failed without a reason"),
    ],
)
def test_a_failure_of_what_ran_is_reported_in_plain_words(status: dict[str, Any], reason: str) -> None:
    """The end of its container explains more than Kubernetes' reason."""
    verdict = pod_state(pod(phase="Failed", **status))
    assert (verdict.reason, verdict.cause) == (reason, Cause.WORKLOAD)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"reason": "Evicted", "message": "The node was low on memory."}, "evicted: The node was low on memory."),
        ({"reason": "NodeLost"}, "node lost"),
        (
            {
                "containerStatuses": ended(code=137),
                "conditions": [{"type": "DisruptionTarget", "status": "True", "message": "preempted by web-0"}],
            },
            "disrupted: preempted by web-0",
        ),
    ],
)
def test_what_its_cluster_did_to_a_pod_is_not_the_jobs_fault(status: dict[str, Any], reason: str) -> None:
    """Evictions and lost nodes count as the cluster's fault."""
    verdict = pod_state(pod(phase="Failed", **status))
    assert verdict.cause is Cause.INFRASTRUCTURE
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"reason": "UnexpectedAdmissionError", "message": "Allocate failed"}, "unexpected admission error: Allocate"),
        ({"reason": "OutOfnvidia.com/gpu"}, "out of nvidia.com/gpu"),
    ],
)
def test_a_node_that_would_not_have_a_pod_refused_it(status: dict[str, Any], reason: str) -> None:
    """A pod that a kubelet rejects must not be placed on the same node again."""
    verdict = pod_state(pod(phase="Failed", **status))
    assert verdict.cause is Cause.UNSCHEDULABLE
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize(
    ("containers", "cause"),
    [
        (ended(code=143), Cause.INFRASTRUCTURE),
        (ended(code=137), Cause.INFRASTRUCTURE),
        (ended("OOMKilled", 137), Cause.WORKLOAD),
        (ended(code=3), Cause.WORKLOAD),
    ],
)
def test_who_deletes_a_pod_does_not_fail_its_job(containers: list[dict[str, Any]], cause: Cause) -> None:
    """A deleted pod that was ended by a signal did not fail; one that ended by itself may have."""
    leaving = {"name": "p", "deletionTimestamp": "2026-11-21T00:00:00Z"}
    written = {"metadata": leaving, "spec": {"nodeName": "node-1", "containers": [{"name": "main"}]}}
    status: dict[str, Any] = {"phase": "Failed", "containerStatuses": containers}
    assert pod_state(msgspec.convert(written | {"status": status}, PodObject)).cause is cause
    assert pod_state(pod(**status)).cause is Cause.WORKLOAD


def test_a_pod_that_no_node_takes_is_refused() -> None:
    """The scheduler's own message is reported."""
    conditions = [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available: 1 CardInsufficientMemory.",
        }
    ]
    verdict = pod_state(pod(node="", phase="Pending", conditions=conditions))
    assert verdict.wait is Wait.NODE
    assert verdict.phase is WorkloadPhase.STARTING
    assert verdict.reason == "no node accepts it: 0/3 nodes are available: 1 CardInsufficientMemory."


def unbound(message: str, **status: Any) -> PodObject:  # noqa: ANN401  # fields of a status
    """Create a pod with this message of its scheduler."""
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return pod(node="", phase="Pending", conditions=[said], **status)


@pytest.mark.parametrize(
    "message",
    [
        "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        '0/3 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "a-b".',
        'persistentvolumeclaim "data-0" not found',
        'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded',
        'pod "seaway/a": ResourceClaim not created yet',
        '0/3 nodes are available: persistentvolumeclaim "data-0" is being deleted.',
        '0/3 nodes are available: waiting for dynamic resource controller to create the resourceclaim "a-gpus".',
    ],
)
def test_what_has_to_be_made_first_is_no_nodes_decision(message: str) -> None:
    """Pending volumes and claims are not a node's decision yet; if they never bind, the cluster cannot provide them."""
    verdict = pod_state(unbound(message))
    assert (verdict.phase, verdict.wait, verdict.cause) == (WorkloadPhase.STARTING, Wait.PROVISIONING, Cause.REJECTED)
    assert verdict.reason.startswith("waits for objects that its cluster creates first: ")
    assert verdict.reason.endswith(message.rstrip())


@pytest.mark.parametrize(
    "message",
    [
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector.",
        "0/1 nodes are available: 1 node(s) had volume node affinity conflict.",
        "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.",
        "0/1 nodes are available: 1 cannot allocate all claims.",
        "0/2 nodes are available: 1 CardInsufficientMemory, 1 NodeUnfitPod.",
        "0/1 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
        "access mode.",
    ],
)
def test_what_a_node_lacks_is_its_refusal(message: str) -> None:
    """Unreachable volumes and allocated devices do not change by waiting: another node may have them."""
    assert pod_state(unbound(message)).wait is Wait.NODE


def test_room_that_is_being_made_is_waited_for() -> None:
    """A pod with a nominated node, whose scheduler preempts others, reports that, and is not rejected."""
    message = "0/3 nodes are available: 3 Insufficient cpu."
    verdict = pod_state(unbound(message, nominatedNodeName="node-1"))
    assert (verdict.phase, verdict.wait) == (WorkloadPhase.STARTING, Wait.PREEMPTION)
    assert verdict.reason == f"waits for preemption on node-1: {message}"


def test_a_gated_pod_and_one_that_no_one_looked_at_yet_are_not_refused() -> None:
    """Admission by a queue of the cluster, or a slow scheduler, has no timeout."""
    gated = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    assert pod_state(pod(node="", phase="Pending", conditions=gated)).wait is Wait.NONE
    assert pod_state(pod(node="", phase="Pending")).wait is Wait.SCHEDULER


@pytest.mark.parametrize(
    ("containers", "reason"),
    [
        (waits("ImagePullBackOff", "manifest unknown"), "the image of container main cannot be pulled: manifest unk"),
        (waits("ErrImagePull"), "the image of container main cannot be pulled: ErrImagePull"),
        (
            waits("CreateContainerConfigError", 'secret "x" not found'),
            'container main cannot start, create container config error: secret "x" not found',
        ),
        (
            waits("CrashLoopBackOff", times=4, last=ended(code=2)[0]["state"]),
            "keeps crashing, 4 times so far: container main exited with 2",
        ),
    ],
)
def test_what_keeps_a_container_from_starting_is_reported(containers: list[dict[str, Any]], reason: str) -> None:
    """Such a replica is still starting: its cluster retries."""
    verdict = pod_state(pod(phase="Pending", containerStatuses=containers))
    assert verdict.phase is WorkloadPhase.STARTING
    assert verdict.reason.startswith(reason)


@pytest.mark.parametrize(
    ("reason", "wait"),
    [
        ("ImagePullBackOff", Wait.USER_FIX),
        ("CreateContainerConfigError", Wait.USER_FIX),
        ("InvalidImageName", Wait.NEVER_STARTS),
        ("ErrImageNeverPull", Wait.NEVER_STARTS),
        ("CrashLoopBackOff", Wait.NONE),
        ("ContainerCreating", Wait.NONE),
    ],
)
def test_what_cannot_start_waits_for_a_user_or_for_nothing(reason: str, wait: Wait) -> None:
    """A container that a kubelet never starts does not recover; a crashing one is restarted."""
    assert pod_state(pod(phase="Pending", containerStatuses=waits(reason))).wait is wait


def test_a_reason_is_one_line_that_is_not_too_long() -> None:
    """Any message of a cluster fits in a table."""
    verdict = pod_state(pod(phase="Failed", reason="Evicted", message="a\nb " * 1000))
    assert "\n" not in verdict.reason
    assert len(verdict.reason) <= 501
