"""Interpretation of a pod's status: the state of the replica, its reason and its cause.

References
----------
Kubernetes documentation, "Pod Lifecycle", "Disruptions" (the condition ``DisruptionTarget``) and "Pod Priority and
Preemption" (``nominatedNodeName``). Messages of kube-scheduler's plugins VolumeBinding and DynamicResources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from seaway.adapters.kubernetes.objects.core import Condition, ContainerStatus, PodObject
from seaway.adapters.kubernetes.templates.names import MAX_RESTARTS
from seaway.domain.deployment import Cause, WorkloadPhase
from seaway.domain.reasons import Reason

MAX_REASON_LENGTH = 500

PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"})
PERMANENT = frozenset({"InvalidImageName", "ErrImageNeverPull"})
"""Reasons of waiting containers that never start, because kubelets do not retry."""

STARTS = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons of waiting containers that start normally."""

INFRASTRUCTURE = frozenset(
    {
        "Evicted",
        "NodeAffinity",
        "NodeLost",
        "NodeShutdown",
        "Preempting",
        "Shutdown",
        "Terminated",
    }
)
"""Reasons of kubelets for ending or rejecting pods that caused no error themselves."""

UNSCHEDULABLE_PREFIX = ("UnexpectedAdmissionError", "OutOf")
"""Prefixes of a kubelet's reasons for rejecting a bound pod.

The device plugin assigned no device, or the node has fewer resources than the scheduler assumed.
"""

SIGNALS = {9: "SIGKILL", 15: "SIGTERM", 11: "SIGSEGV", 6: "SIGABRT"}
SIGNALLED = 128
STOPS = frozenset({9, 15})
"""Signals that kubelets send to stop containers."""


PROVISIONING_MESSAGE = re.compile(
    r"persistentvolumeclaim(?!.*readwriteoncepod)|binding volumes|waiting for dynamic resource controller|"
    r"resourceclaim.* (not (created|found)|is being deleted)",
    re.IGNORECASE,
)
"""Messages of a scheduler that waits for objects, such as volumes, before it filters nodes for a pod.

Messages about a claim for one pod (``ReadWriteOncePod``) that another pod uses do not match: they depend on the
node.
"""


class Wait(Enum):
    """Reason why a replica does not start. It determines the result of a timeout."""

    NONE = "none"
    """No problem, or a problem that requires no action of Seaway."""
    SCHEDULER = "turn"
    """The cluster's scheduler. The wait is reported only if it lasts."""
    NODE = "node"
    """A suitable node. The cluster's scheduler rejects the node that Seaway chose."""
    PREEMPTION = "room"
    """The end of other pods on the node that the cluster's scheduler nominated."""
    PROVISIONING = "made"
    """Objects that the cluster must provision before scheduling, such as volumes."""
    USER_FIX = "mending"
    """A fix by a user. The replica holds its devices."""
    NEVER_STARTS = "nothing"
    """Nothing. The replica never starts, but holds its devices."""


UNSTARTABLE = frozenset({Wait.USER_FIX, Wait.NEVER_STARTS})
"""Waits of pods that are bound to a node and therefore hold devices, regardless of their reported state."""

NODE_WAITS = frozenset({Wait.NODE, Wait.PREEMPTION})
"""Waits whose cause depends on the node that the pod is pinned to."""


@dataclass(frozen=True, slots=True)
class PodState:
    """State of a replica."""

    phase: WorkloadPhase
    reason: str = ""
    cause: Cause = Cause.WORKLOAD
    wait: Wait = Wait.NONE


def pod_state(pod: PodObject) -> PodState:
    """Return the state of a pod's replica."""
    status = pod.status
    if status.phase == "Succeeded":
        return PodState(WorkloadPhase.SUCCEEDED)
    if status.phase == "Failed":
        return _failed(pod)
    if status.phase == "Pending" and not pod.spec.node_name:
        return _unbound(pod)
    if status.phase == "Unknown":
        why = Reason("node_silent", node=pod.spec.node_name)
        return PodState(WorkloadPhase.STARTING, why, Cause.INFRASTRUCTURE)
    return _bound(pod)


def _bound(pod: PodObject) -> PodState:
    """Return the state of a pod that has a node."""
    status = pod.status
    if failed := _restarted(pod):
        return failed
    waits = _waits((*status.init_container_statuses, *status.container_statuses))
    if waits:
        return waits
    containers = status.container_statuses
    up = status.phase == "Running" and containers and all(each.state.running or _done(each) for each in containers)
    if up:
        return PodState(WorkloadPhase.RUNNING)
    ended = _ended(each for each in containers if each.state.terminated)
    continues = pod.spec.restart_policy == "Never" and any(each.state.running for each in containers)
    return PodState(WorkloadPhase.RUNNING if continues else WorkloadPhase.STARTING, ended)


def _restarted(pod: PodObject) -> PodState | None:
    """Return the failure of a pod whose containers were restarted more often than allowed; None otherwise.

    A container that waits for its next restart counts as restarted.
    """
    most = pod.metadata.annotations.get(MAX_RESTARTS, "")
    if not most.isdecimal():
        return None
    containers = pod.status.container_statuses
    reasons = [each.state.waiting.reason for each in containers if each.state.waiting]
    if sum(each.restart_count for each in containers) + reasons.count("CrashLoopBackOff") <= int(most):
        return None
    last = _ended(containers) or Reason("ended_itself")
    return PodState(WorkloadPhase.FAILED, Reason("after_restarts", what=last, times=int(most)))


def _failed(pod: PodObject) -> PodState:
    status = pod.status
    disrupted = _condition(status.conditions, "DisruptionTarget")
    if disrupted:
        why = disrupted.message or disrupted.reason or status.message
        return PodState(WorkloadPhase.FAILED, Reason("disrupted", why=_short(why)), Cause.INFRASTRUCTURE)
    if status.reason in INFRASTRUCTURE or status.reason.startswith(UNSCHEDULABLE_PREFIX):
        why = f"{_readable(status.reason)}: {status.message}" if status.message else _readable(status.reason)
        refused = status.reason.startswith(UNSCHEDULABLE_PREFIX)
        return PodState(WorkloadPhase.FAILED, _short(why), Cause.UNSCHEDULABLE if refused else Cause.INFRASTRUCTURE)
    containers = (*status.init_container_statuses, *status.container_statuses)
    ended = _ended(containers)
    if pod.metadata.deletion_timestamp and any(map(_stopped, containers)):
        return PodState(WorkloadPhase.FAILED, Reason("pod_deleted", why=ended), Cause.INFRASTRUCTURE)
    return PodState(WorkloadPhase.FAILED, ended or _short(status.message or status.reason) or Reason("pod_failed"))


def _unbound(pod: PodObject) -> PodState:
    """Return the state of a pod that has no node yet."""
    scheduled = _condition(pod.status.conditions, "PodScheduled", "False")
    if scheduled is None:
        return PodState(WorkloadPhase.STARTING, Reason("waits_for_scheduler"), wait=Wait.SCHEDULER)
    if scheduled.reason == "SchedulingGated":
        return PodState(WorkloadPhase.STARTING, Reason("scheduling_gate"))
    said = scheduled.message or scheduled.reason
    if pod.status.nominated_node_name:
        why = Reason("waits_for_preemption", node=pod.status.nominated_node_name, why=_short(said))
        return PodState(WorkloadPhase.STARTING, why, Cause.INFRASTRUCTURE, Wait.PREEMPTION)
    if PROVISIONING_MESSAGE.search(said):
        why = Reason("waits_for_objects", why=_short(said))
        return PodState(WorkloadPhase.STARTING, why, Cause.REJECTED, Wait.PROVISIONING)
    wait = Wait.NODE if scheduled.reason == "Unschedulable" else Wait.NONE
    return PodState(WorkloadPhase.STARTING, Reason("no_node_accepts", why=_short(said)), Cause.INFRASTRUCTURE, wait)


def _waits(containers: Iterable[ContainerStatus]) -> PodState | None:
    """Return the state if a container cannot run; None without a problem."""
    for each in containers:
        waiting = each.state.waiting
        if waiting is None or waiting.reason in STARTS:
            continue
        if waiting.reason == "CrashLoopBackOff":  # the kubelet restarts it repeatedly
            last = _ending(each.name, each) or _short(waiting.message)
            return PodState(WorkloadPhase.STARTING, Reason("keeps_crashing", times=each.restart_count, why=last))
        if waiting.reason in PULLING:
            why = Reason("image_not_pulled", container=each.name, why=_short(waiting.message or waiting.reason))
        else:
            cause = _readable(waiting.reason)
            why = Reason("container_not_started", container=each.name, cause=cause, why=_short(waiting.message))
        wait = Wait.NEVER_STARTS if waiting.reason in PERMANENT else Wait.USER_FIX
        return PodState(WorkloadPhase.STARTING, why, wait=wait)
    return None


def _ended(containers: Iterable[ContainerStatus]) -> str:
    """Describe the end of the first container that failed."""
    return next(filter(None, (_ending(each.name, each) for each in containers)), "")


def _ending(name: str, status: ContainerStatus) -> str:
    ended = status.state.terminated or status.last_state.terminated
    if ended is None or (ended.exit_code == 0 and ended.reason in {"", "Completed"}):
        return ""
    if ended.reason == "OOMKilled":
        return Reason("out_of_memory", container=name)
    number = ended.signal or (ended.exit_code - SIGNALLED if ended.exit_code > SIGNALLED else 0)
    said = _short(ended.message or (ended.reason if ended.reason not in {"", "Error", "Completed"} else ""))
    if number:
        return Reason("container_signalled", container=name, signal=SIGNALS.get(number, f"signal {number}"), why=said)
    return Reason("container_exited", container=name, exit_code=ended.exit_code, why=said)


def _stopped(status: ContainerStatus) -> bool:
    """Report whether a stop signal ended a container, and not a lack of memory."""
    ended = status.state.terminated
    return ended is not None and ended.reason != "OOMKilled" and ended.exit_code - SIGNALLED in STOPS


def _done(status: ContainerStatus) -> bool:
    return status.state.terminated is not None and status.state.terminated.exit_code == 0


def _condition(conditions: Iterable[Condition], kind: str, status: str = "True") -> Condition | None:
    return next((each for each in conditions if each.type == kind and each.status == status), None)


def _readable(word: str) -> str:
    """Split a CamelCase reason of Kubernetes into words."""
    if word.startswith("OutOf"):
        return f"out of {word.removeprefix('OutOf')}"
    text = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in word)
    return text.strip()


def _short(text: str) -> str:
    """Convert a text to one line of limited length."""
    line = " ".join(text.split()).rstrip(": ")
    return line if len(line) <= MAX_REASON_LENGTH else f"{line[:MAX_REASON_LENGTH]}…"
