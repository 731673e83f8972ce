"""Manifests of Kubernetes: Job, Pod, PyTorchJob, RayJob and Volcano's Job.

References
----------
Kubernetes ``batch/v1``; Kubeflow training operator ``kubeflow.org/v1``; KubeRay ``ray.io/v1``; Volcano
``batch.volcano.sh/v1alpha1``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping

from seaway.wire.job_imports.converted import Converted, Fields, Result, Section, put_name
from seaway.wire.job_imports.pods import put_metadata, put_pod, put_pod_spec, same_pods

_CLEANUP = "Seaway removes ended workloads"
_EQUAL = "has pods of other kinds: all replicas of a job are equal"


def is_manifest(document: Fields) -> bool:
    """Report whether a document is an object of Kubernetes."""
    return isinstance(document.get("apiVersion"), str) and isinstance(document.get("kind"), str)


def kind_of(document: Fields) -> str:
    """Return the kind of a document, with its API group if that is not Kubernetes' own."""
    group = str(document["apiVersion"]).rpartition("/")[0]
    return f"{document['kind']}.{group}" if group not in ("", "batch", "apps") else str(document["kind"])


def keys_of(documents: Iterable[Fields]) -> dict[tuple[str, str], list[str]]:
    """Return the keys of the Secrets and ConfigMaps among documents, by kind and name."""
    found: dict[tuple[str, str], list[str]] = {}
    for document in documents:
        kind, metadata = document.get("kind"), document.get("metadata")
        if kind in ("Secret", "ConfigMap") and isinstance(metadata, Mapping):
            parts = (document.get(each) for each in ("data", "stringData"))
            keys = [str(key) for part in parts if isinstance(part, Mapping) for key in part]
            found[kind, str(metadata.get("name"))] = keys
    return found


def read_manifest(document: Fields, out: Converted, stem: str) -> None:
    """Convert an object, or refuse it by its kind."""
    kind = kind_of(document)
    convert = KINDS.get(kind)
    if convert is None:
        supported = ", ".join(KINDS)
        text = f"is not a job that can be converted: use {supported}; or create it with kubectl, and --ignore {kind}"
        out.refuse(f"kind {kind}", text)
        return
    top = Section(out, document)
    top.take("apiVersion")
    top.take("kind")
    put_metadata(out, top.section("metadata"), stem)
    convert(out, top.section("spec"))
    top.finish({"status": "belongs to the object in its cluster"}, {})


def _job(out: Converted, spec: Section) -> None:
    indexed = _completions(out, spec)
    limit = spec.take("backoffLimit", int)
    out.keep(spec.at("backoffLimit") if limit is not None else "", "retries", 6 if limit is None else limit)
    _limit(out, spec)
    _suspend(out, spec)
    put_pod(out, spec.section("template"))
    if indexed and out.get("array"):
        _put_index(out, spec.at("completionMode"))
    spec.finish(
        {
            "ttlSecondsAfterFinished": _CLEANUP,
            "podReplacementPolicy": "Seaway replaces pods when they have ended",
            "managedBy": "Seaway manages the job",
            "manualSelector": "names of pods are generated",
            "selector": "names of pods are generated",
        },
        {
            "podFailurePolicy": "rules for exit codes have no counterpart: a failure uses a retry",
            "successPolicy": "a job ends when all replicas have ended",
            "backoffLimitPerIndex": "retries are for the whole job: use an array, whose tasks are retried on their own",
            "maxFailedIndexes": "an array runs all of its tasks",
        },
    )


def _completions(out: Converted, spec: Section) -> bool:
    """Set replicas, or an array; return True if its tasks have an index of Kubernetes."""
    parallelism, completions = spec.take("parallelism", int), spec.take("completions", int)
    indexed = spec.text("completionMode") == "Indexed"
    at_once = 1 if parallelism is None else parallelism
    where = spec.at("completions" if completions else "parallelism")
    if at_once < 1:
        out.refuse(spec.at("parallelism"), "is 0: the job would not start")
    elif completions is None and at_once > 1:
        text = "the first success does not end the others, as it does for a work queue"
        out.change(where, "replicas", at_once, text)
    elif completions and (indexed or completions > at_once):
        out.keep(where, "array", f"0-{completions - 1}" + (f"%{at_once}" if at_once < completions else ""))
        if "backoffLimit" in spec.names():
            out.note(spec.at("backoffLimit"), "is for each task of the array", Result.CHANGED)
    elif completions and completions > 1:
        out.keep(where, "replicas", completions)
    return indexed


def _put_index(out: Converted, where: str) -> None:
    """Let the command see the index of its task as that of an indexed Job."""
    run = out.fields.setdefault("run", {})
    if not run.get("command"):
        out.refuse(where, "is Indexed, but the command is that of the image: give it, so that it gets its index")
        return
    set_index = 'export JOB_COMPLETION_INDEX="$SEAWAY_ARRAY_TASK_ID"; exec "$@"'
    command = ["/bin/sh", "-c", set_index, "sh", *run["command"]]
    text = "a shell sets JOB_COMPLETION_INDEX to the index of the task"
    out.change(where, "run.command", command, text)


def _suspend(out: Converted, spec: Section) -> None:
    if not spec.take("suspend"):
        return
    if out.get("queue"):
        out.note(spec.at("suspend"), "the queue starts the job")
    else:
        out.refuse(spec.at("suspend"), "is true: submit the job when it may start")


def _limit(out: Converted, spec: Section) -> None:
    if limit := spec.take("activeDeadlineSeconds", int):
        out.keep(spec.at("activeDeadlineSeconds"), "time_limit", f"{limit}s")


def _pod(out: Converted, spec: Section) -> None:
    if spec.take("restartPolicy") != "Never":
        out.note(spec.at("restartPolicy"), "a job ends with its program, and restarts by --retries", Result.CHANGED)
    put_pod_spec(out, spec)


def _pytorchjob(out: Converted, spec: Section) -> None:
    out.keep("kind", "template", "pytorchjob")
    roles = spec.section("pytorchReplicaSpecs")
    count, first, where = 0, None, roles.path
    for name in roles.names():
        role = roles.section(name)
        number = role.take("replicas", int)
        count += 1 if number is None else number
        template = role.take("template", dict)
        if (policy := role.text("restartPolicy")) in ("Always", "OnFailure"):
            out.note(role.at("restartPolicy"), f"{policy}: Seaway restarts by retries")
        role.finish({}, {})
        if first is not None and not same_pods(first, template):
            out.refuse(role.path, _EQUAL)
        if first is None:
            first, where = template, role.at("template")
    elastic = spec.section("elasticPolicy")
    low, high = elastic.take("minReplicas", int), elastic.take("maxReplicas", int)
    if low and high and low != high:
        out.keep(elastic.path, "replicas", {"min": low, "max": high})
    else:
        out.keep(roles.path, "replicas", count)
    out.keep(roles.path, "gang", value=True)
    dropped = ("rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId", "rdzvConf", "standalone", "nProcPerNode", "maxRestarts")
    elastic.finish(dict.fromkeys(dropped, "the template sets the rendezvous"), {"metrics": "replicas do not follow it"})
    _run_policy(out, spec.section("runPolicy"))
    put_pod(out, Section(out, first, where))
    processes = spec.text("nprocPerNode")
    if processes and processes not in ("auto", "gpu", str(out.get("resources.gpus") or 1)):
        out.refuse(spec.at("nprocPerNode"), f"is {processes}, but each replica has a process for each GPU")
    spec.finish({}, {})


def _run_policy(out: Converted, policy: Section) -> None:
    if (limit := policy.take("backoffLimit", int)) is not None:
        out.keep(policy.at("backoffLimit"), "retries", limit)
    _limit(out, policy)
    _suspend(out, policy)
    scheduling = policy.section("schedulingPolicy")
    if queue := scheduling.text("queue"):
        put_name(out, scheduling.at("queue"), "queue", queue)
    text = "all replicas start together"
    scheduling.finish({"minAvailable": text, "minResources": text, "scheduleTimeoutSeconds": text,
                       "priorityClass": "give --priority"}, {})  # fmt: skip
    policy.finish(
        {"cleanPodPolicy": _CLEANUP, "ttlSecondsAfterFinished": _CLEANUP, "managedBy": "Seaway manages it"}, {}
    )


def _rayjob(out: Converted, spec: Section) -> None:
    out.keep("kind", "template", "rayjob")
    entry = spec.text("entrypoint")
    cluster = spec.section("rayClusterSpec")
    head = cluster.section("headGroupSpec")
    template = head.take("template", dict)
    count = 1
    groups = cluster.sections("workerGroupSpecs")
    for group in groups:
        number = group.take("replicas", int)
        low, high = group.take("minReplicas", int), group.take("maxReplicas", int)
        count += 1 if number is None else number
        if len({each for each in (number, low, high) if each is not None}) > 1:
            out.drop(group.path, f"the number of workers is fixed: {1 if number is None else number}")
        worker = group.take("template", dict)
        if not same_pods(_bare(template), _bare(worker)):
            text = f"{_EQUAL}, and the head is one of them; give head and workers the same pods"
            out.refuse(group.at("template"), text)
        group.take("groupName")
        group.finish({"rayStartParams": "the template sets them", "scaleStrategy": _CLEANUP, "numOfHosts": "is 1"}, {})
    if count > 1:
        out.keep(cluster.path, "replicas", count)
        out.keep(cluster.path, "gang", value=True)
    put_pod(out, Section(out, template, head.at("template")))
    head.finish({"rayStartParams": "the template sets them", "serviceType": "give --expose"}, {})
    if cluster.take("enableInTreeAutoscaling"):
        out.refuse(cluster.at("enableInTreeAutoscaling"), "Ray cannot add pods by itself: the number is fixed")
    cluster.finish({"rayVersion": "is that of the image", "autoscalerOptions": "the number of workers is fixed"}, {})
    run = out.fields.setdefault("run", {})
    if run.pop("args", None) or run.pop("command", None):
        out.drop(head.at("template"), "the commands of Ray's pods are set by KubeRay")
    if entry:
        command = ["sh", "-c", entry] if re.search(r"[&|;<>$`*?~#\n]", entry) else shlex.split(entry)
        out.keep(spec.at("entrypoint"), "run.command", command)
    else:
        out.refuse(spec.at("entrypoint"), "is missing: it becomes the command")
    _limit(out, spec)
    if (retries := spec.take("backoffLimit", int)) is not None:
        out.keep(spec.at("backoffLimit"), "retries", retries)
    _suspend(out, spec)
    spec.finish(
        {
            "shutdownAfterJobFinishes": _CLEANUP,
            "ttlSecondsAfterFinished": _CLEANUP,
            "submissionMode": "Seaway submits over HTTP",
            "jobId": "is generated",
            "deletionStrategy": _CLEANUP,
        },
        {
            "runtimeEnvYAML": "environments of Ray have no counterpart: put the packages in the image",
            "clusterSelector": "names a running cluster: each job has a cluster of its own",
            "submitterPodTemplate": "Seaway submits over HTTP without a pod",
            "entrypointNumGpus": "the entry point has the GPUs of the head",
            "entrypointNumCpus": "the entry point has the CPUs of the head",
            "metadata": "labels of a Ray job have no counterpart",
        },
    )


def _bare(template: object) -> object:
    """Return a pod template of Ray without commands and ports, which differ between head and workers."""
    if not isinstance(template, Mapping):
        return template
    spec = template.get("spec") or {}
    skipped = ("ports", "command", "args", "lifecycle")
    containers = [
        {key: each for key, each in one.items() if key not in skipped} for one in spec.get("containers") or []
    ]
    return {**template, "spec": {**spec, "containers": containers}}


def _volcano(out: Converted, spec: Section) -> None:
    out.keep("kind", "template", "volcanojob")
    if queue := spec.text("queue"):
        put_name(out, spec.at("queue"), "queue", queue)
    count, first, where = 0, None, spec.at("tasks")
    for task in spec.sections("tasks"):
        number = task.take("replicas", int)
        count += 1 if number is None else number
        template = task.take("template", dict)
        _policies(out, task)
        task.finish(
            dict.fromkeys(("name", "minAvailable", "maxRetry"), "all replicas are one task"),
            {
                "dependsOn": "tasks of a job start together: use --after with another job",
                "topologyPolicy": "use same_numa",
            },
        )
        if first is not None and not same_pods(first, template):
            out.refuse(task.path, _EQUAL)
        if first is None:
            first, where = template, task.at("template")
    least = spec.take("minAvailable", int)
    if least is not None and least < count:
        text = f"starts with {least}, and grows when there is room"
        out.change(spec.at("minAvailable"), "replicas", {"min": max(least, 1), "max": count}, text)
    else:
        out.keep(spec.at("tasks"), "replicas", count)
        out.keep(spec.at("tasks"), "gang", value=True)
    if (retries := spec.take("maxRetry", int)) is not None:
        out.keep(spec.at("maxRetry"), "retries", retries)
    _policies(out, spec)
    put_pod(out, Section(out, first, where))
    spec.finish(
        {
            "schedulerName": "Seaway selects the node",
            "priorityClassName": "give --priority",
            "ttlSecondsAfterFinished": _CLEANUP,
            "plugins": "the template has env and svc",
            "runningEstimate": "give --expected-duration",
        },
        {"volumes": "is not supported: put the files in the image", "networkTopology": "use resources.gpu_topology"},
    )


def _policies(out: Converted, section: Section) -> None:
    for policy in section.sections("policies"):
        action = policy.text("action")
        policy.take("event")
        policy.take("events")
        if action in ("RestartJob", "TerminateJob", "AbortJob"):
            out.drop(policy.path, "a replica that fails ends the attempt, and retries start another")
        elif action == "CompleteJob":
            out.refuse(policy.path, "ends the job with one task: a job ends when all replicas have ended")
        else:
            out.refuse(policy.path, f"{action or 'a policy without action'} has no counterpart")
        policy.finish({"timeout": "a failure has no delay"}, {"exitCode": "exit codes have no rules"})


KINDS: Mapping[str, Callable[[Converted, Section], None]] = {
    "Job": _job,
    "Pod": _pod,
    "PyTorchJob.kubeflow.org": _pytorchjob,
    "RayJob.ray.io": _rayjob,
    "Job.batch.volcano.sh": _volcano,
}
"""Conversion of each kind of objects."""
