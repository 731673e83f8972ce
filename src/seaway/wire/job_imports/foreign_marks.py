"""Labels and annotations of other schedulers on objects of Kubernetes, which change jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seaway.domain.numbers import exact_number, whole_number
from seaway.wire.job_imports.converted import MAX_COUNT, Converted, Result, put_name

OF_KUBERNETES = frozenset({
    "controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/job-completion-index", "pod-template-hash", "controller-revision-hash",
    "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
})  # fmt: skip
"""Labels that controllers of Kubernetes set."""

GROUPS = (
    "kueue.x-k8s.io/", "kai.scheduler/", "runai/", "run.ai/", "volcano.sh/", "scheduling.volcano.sh/", "hami.io/",
    "scheduling.x-k8s.io/", "scheduling.k8s.io/", "yunikorn.apache.org/", "nvidia.com/", "4pd.io/", "pod-group.",
    "leaderworkerset.sigs.k8s.io/", "alpha.jobset.sigs.k8s.io/", "ray.io/", "gpu-",
)  # fmt: skip
"""Begins of the names of labels and annotations that schedulers read."""

_SUBDOMAINS = tuple(f".{each[:-1]}" for each in GROUPS if each.endswith("/"))

INJECTORS = (
    "vault.hashicorp.com/", "k8s.v1.cni.cncf.io/", "v1.multus-cni.io/", "networking.gke.io/", "gke-gcsfuse/",
    "container.apparmor.security.beta.kubernetes.io/", "seccomp.security.alpha.kubernetes.io/", "cdi.k8s.io/",
    "sidecar.istio.io/inject", "linkerd.io/inject",
)  # fmt: skip
"""Begins of the names of annotations with which others change pods."""

HAMI = {
    "nvidia.com/use-gputype": "gpu_use_types", "nvidia.com/nouse-gputype": "gpu_avoid_types",
    "nvidia.com/use-gpuuuid": "gpu_uuids", "nvidia.com/nouse-gpuuuid": "gpu_avoid_uuids",
    "nvidia.com/vgpu-mode": "gpu_mode",
}  # fmt: skip
"""Annotations of HAMi, and the fields of a job."""

LOCAL_QUEUE = "a LocalQueue in Kueue; after seaway queue import, give the queue of its ClusterQueue with --queue"

QUEUES = {
    "kueue.x-k8s.io/queue-name": LOCAL_QUEUE,
    "kai.scheduler/queue": "", "runai/queue": "", "scheduling.volcano.sh/queue-name": "", "volcano.sh/queue-name": "",
    "yunikorn.apache.org/queue": "",
}  # fmt: skip
"""Labels and annotations with the name of a queue, and the difference."""

GANG = "belongs to a group of pods that start together: write one job with replicas, or a Job with parallelism"
TOPOLOGY = "requires a place that the job would lose: give placement.node_labels, or same_network in the job"

REFUSED = {
    "kueue.x-k8s.io/pod-group-name": GANG, "kueue.x-k8s.io/pod-group-total-count": GANG,
    "kueue.x-k8s.io/pod-group-fast-admission": GANG, "kueue.x-k8s.io/pod-group-serving": GANG,
    "kueue.x-k8s.io/podset-required-topology": TOPOLOGY, "kueue.x-k8s.io/podset-slice-required-topology": TOPOLOGY,
    "kueue.x-k8s.io/podset-slice-size": TOPOLOGY, "kai.scheduler/topology-required-placement": TOPOLOGY,
    "scheduling.k8s.io/group-name": GANG, "scheduling.volcano.sh/group-name": GANG, "pod-group-name": GANG,
    "scheduling.x-k8s.io/pod-group": GANG, "pod-group.scheduling.sigs.k8s.io": GANG,
    "yunikorn.apache.org/task-groups": GANG, "yunikorn.apache.org/task-group-name": GANG,
}  # fmt: skip
DROPPED = {
    "kueue.x-k8s.io/podset-preferred-topology": "is a preference: the policy of the queue selects nodes",
    "kueue.x-k8s.io/podset-unconstrained-topology": "the policy of the queue selects nodes",
    "kai.scheduler/topology-preferred-placement": "is a preference: the policy of the queue selects nodes",
    "kai.scheduler/topology": "the policy of the queue selects nodes",
    "hami.io/gpu-scheduler-policy": "the policy of the queue selects devices",
    "hami.io/node-scheduler-policy": "the policy of the queue selects nodes",
    "ray.io/cluster": "names of pods are generated",
}  # fmt: skip


def put_mark(out: Converted, where: str, key: str, value: str) -> bool:
    """Set the field of a job for a label or annotation of a scheduler. Report whether it is one.

    A mark of a scheduler that is not known is refused.
    """
    if put := _MARKS.get(key):
        put(out, where, key, value)
    elif key in REFUSED:
        out.refuse(where, REFUSED[key])
    elif key in DROPPED:
        out.drop(where, DROPPED[key])
    elif key.startswith(INJECTORS) and value != "false":
        out.refuse(where, "lets another program change the pod, which has no counterpart")
    elif key.startswith(GROUPS) or key.partition("/")[0].endswith(_SUBDOMAINS):
        out.refuse(where, "is of another scheduler, and unknown, so that its meaning would be lost")
    else:
        return False
    return True


def _put_queue(out: Converted, where: str, key: str, value: str) -> None:
    put_name(out, where, "queue", value)
    if QUEUES[key]:
        out.note(where, QUEUES[key], Result.CHANGED)


def _put_hami(out: Converted, where: str, key: str, value: str) -> None:
    out.keep(where, f"resources.{HAMI[key]}", [each.strip() for each in value.split(",")])


def _put_time(out: Converted, where: str, _: str, value: str) -> None:
    if seconds := whole_number(value):
        out.keep(where, "time_limit", f"{seconds}s")
    else:
        out.refuse(where, f"is {value!r}, not a number of seconds")


def _put_least(out: Converted, where: str, _: str, value: str) -> None:
    if number := whole_number(value, MAX_COUNT):
        out.least = where, number
    else:
        out.refuse(where, f"is {value!r}, not a number of pods")


def _put_priority(out: Converted, where: str, _: str, value: str) -> None:
    out.note(where, f"{value} has no value here: give --priority", Result.CHANGED)


def _put_preemptible(out: Converted, where: str, _: str, value: str) -> None:
    if value == "true":
        out.keep(where, "preemptible", value=True)
    elif value != "false":
        out.refuse(where, f"is {value!r}, not true or false")


def _put_fraction(out: Converted, where: str, key: str, value: str) -> None:
    """Set the part of a GPU that KAI gives to a pod."""
    number = exact_number(value)
    if key == "gpu-fraction" and number and number <= 1:
        out.change(where, "resources.gpu_memory", f"{-(-number * 100 // 1)}%", "a share of memory; cores are shared")
    elif key == "gpu-memory" and number and number.denominator == 1:
        out.change(where, "resources.gpu_memory", f"{number}Mi", "an amount of memory; cores are shared")
    elif key == "gpu-fraction-num-devices" and number and number.denominator == 1:
        out.keep(where, "resources.gpus", int(number), over=True)
        return
    else:
        out.refuse(where, f"is {value!r}, not a part of a GPU")
        return
    out.keep(where, "resources.gpu_vendor", ["NVIDIA"])
    if out.get("resources.gpus") is None:
        out.keep(where, "resources.gpus", 1)


_MARKS: Mapping[str, Callable[[Converted, str, str, str], None]] = {
    **dict.fromkeys(QUEUES, _put_queue),
    **dict.fromkeys(HAMI, _put_hami),
    **dict.fromkeys(("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"), _put_fraction),
    **dict.fromkeys(("kueue.x-k8s.io/priority-class", "runai/priority-class"), _put_priority),
    "kueue.x-k8s.io/max-exec-time-seconds": _put_time,
    "kueue.x-k8s.io/job-min-parallelism": _put_least,
    "volcano.sh/preemptable": _put_preemptible,
}
