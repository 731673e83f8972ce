"""Manifests of Kubernetes: jobs, services and clusters of several API groups.

References
----------
Kubernetes ``batch/v1`` and ``apps/v1``; Kubeflow training operator ``kubeflow.org/v1``; KubeRay ``ray.io/v1``;
Volcano ``batch.volcano.sh/v1alpha1``; JobSet ``jobset.x-k8s.io/v1alpha2``; LeaderWorkerSet
``leaderworkerset.x-k8s.io/v1``.
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
    if out.least:
        out.refuse(out.least[0], f"is for a Job, not for a {kind}")
    top.finish({"status": "belongs to the object in its cluster"}, {})


def _job(out: Converted, spec: Section) -> None:
    indexed = _completions(out, spec)
    limit = spec.number("backoffLimit")
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
    parallelism, completions = spec.number("parallelism"), spec.number("completions")
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
    _put_least(out)
    return indexed


def _put_least(out: Converted) -> None:
    """Make a job elastic that may start with fewer replicas."""
    if out.least is None:
        return
    (where, least), replicas = out.least, out.get("replicas") or 1
    out.least = None
    if out.get("array"):
        out.drop(where, "tasks of an array start one by one")
    elif not isinstance(replicas, int) or least > replicas:
        out.refuse(where, f"is {least}, but the job has {replicas} replicas")
    elif least < replicas:
        text = "starts with fewer replicas, and grows when there is room"
        out.change(where, "replicas", {"min": least, "max": replicas}, text, over=True)


def _put_index(out: Converted, where: str) -> None:
    """Let the command see the index of its task as that of an indexed Job."""
    run = out.fields.setdefault("run", {})
    if not run.get("command"):
        out.refuse(where, "is Indexed, but the command is that of the image: give it, so that it gets its index")
        return
    set_index = 'export JOB_COMPLETION_INDEX="$SEAWAY_ARRAY_TASK_ID"; exec "$@"'
    command = ["/bin/sh", "-c", set_index, "sh", *run["command"]]
    text = "a shell sets JOB_COMPLETION_INDEX to the index of the task"
    out.change(where, "run.command", command, text, over=True)


def _suspend(out: Converted, spec: Section, name: str = "suspend") -> None:
    if not spec.take(name):
        return
    if out.get("queue"):
        out.note(spec.at(name), "the queue starts the job")
    else:
        out.refuse(spec.at(name), "is true: submit the job when it may start")


def _limit(out: Converted, spec: Section) -> None:
    if limit := spec.number("activeDeadlineSeconds"):
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
        number = role.number("replicas")
        count += 1 if number is None else number
        template = role.take("template", dict)
        _restarts(out, role)
        role.finish({}, {})
        if first is not None and not same_pods(first, template):
            out.refuse(role.path, _EQUAL)
        if first is None:
            first, where = template, role.at("template")
    elastic = spec.section("elasticPolicy")
    low, high = elastic.number("minReplicas", 1), elastic.number("maxReplicas", 1)
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


def _restarts(out: Converted, role: Section) -> None:
    """Report the restarts of the pods of a role."""
    policy, where = role.text("restartPolicy"), role.at("restartPolicy")
    if policy == "ExitCode":
        out.note(where, "exit codes have no rules: each failure uses a retry", Result.CHANGED)
    elif policy in ("Always", "OnFailure"):
        out.note(where, f"{policy}: Seaway restarts by retries")
    elif policy == "Never":
        out.note(where, "Never: Seaway restarts by retries, of which there are none without backoffLimit")
    elif policy:
        out.refuse(where, f"is {policy}: use Never, OnFailure, Always or ExitCode")


def _run_policy(out: Converted, policy: Section) -> None:
    if (limit := policy.number("backoffLimit")) is not None:
        out.keep(policy.at("backoffLimit"), "retries", limit)
    _limit(out, policy)
    _suspend(out, policy)
    scheduling = policy.section("schedulingPolicy")
    if queue := scheduling.text("queue"):
        put_name(out, scheduling.at("queue"), "queue", queue)
    text = "all replicas start together"
    scheduling.change(
        {"minAvailable": text, "minResources": text, "priorityClass": "has no value here: give --priority"}
    )
    scheduling.finish({"scheduleTimeoutSeconds": "the job waits until there is room"}, {})
    policy.finish(
        {"cleanPodPolicy": _CLEANUP, "ttlSecondsAfterFinished": _CLEANUP, "managedBy": "Seaway manages it"}, {}
    )


def _rayjob(out: Converted, spec: Section) -> None:
    out.keep("kind", "template", "rayjob")
    entry = spec.text("entrypoint")
    _ray_nodes(out, spec.section("rayClusterSpec"))
    if entry:
        command = ["sh", "-c", entry] if re.search(r"[&|;<>$`*?~#\n]", entry) else shlex.split(entry)
        out.keep(spec.at("entrypoint"), "run.command", command)
    else:
        out.refuse(spec.at("entrypoint"), "is missing: it becomes the command")
    _limit(out, spec)
    if (retries := spec.number("backoffLimit")) is not None:
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


def _raycluster(out: Converted, spec: Section) -> None:
    out.change("kind", "template", "raycluster", "it runs until it is cancelled")
    _suspend(out, spec)
    _ray_nodes(out, spec)


def _ray_nodes(out: Converted, cluster: Section) -> None:
    """Set the replicas and their pod from the head and the workers of a Ray cluster."""
    head = cluster.section("headGroupSpec")
    template = head.take("template", dict)
    count = 1
    groups = cluster.sections("workerGroupSpecs")
    for group in groups:
        number = group.number("replicas")
        low, high = group.number("minReplicas"), group.number("maxReplicas")
        count += 1 if number is None else number
        if len({each for each in (number, low, high) if each is not None}) > 1:
            out.drop(group.path, f"the number of workers is fixed: {1 if number is None else number}")
        worker = group.take("template", dict)
        if not same_pods(_bare(template), _bare(worker)):
            text = f"{_EQUAL}, and the head is one of them; give head and workers the same pods"
            out.refuse(group.at("template"), text)
        group.take("groupName")
        _start_params(out, group)
        if (group.number("numOfHosts") or 1) > 1:
            out.refuse(group.at("numOfHosts"), "is more than 1: give a group with as many replicas")
        group.finish({"scaleStrategy": _CLEANUP}, {})
    if count > 1:
        out.keep(cluster.path, "replicas", count)
        out.keep(cluster.path, "gang", value=True)
    put_pod(out, Section(out, template, head.at("template")))
    _start_params(out, head)
    head.finish({"serviceType": "give --expose"}, {})
    if cluster.take("enableInTreeAutoscaling"):
        out.refuse(cluster.at("enableInTreeAutoscaling"), "Ray cannot add pods by itself: the number is fixed")
    cluster.finish({"rayVersion": "is that of the image", "autoscalerOptions": "the number of workers is fixed"}, {})
    run = out.fields.setdefault("run", {})
    if run.pop("args", None) or run.pop("command", None):
        out.drop(head.at("template"), "the commands of Ray's pods are set by KubeRay")


def _start_params(out: Converted, group: Section) -> None:
    """Refuse parameters of Ray that change what its nodes offer; the template sets the others."""
    for name, value in group.pairs("rayStartParams").items():
        where = f"{group.at('rayStartParams')}.{name}"
        if name in ("num-cpus", "num-gpus", "resources", "labels", "memory", "object-store-memory"):
            text = f"is {value}, but the nodes of Ray offer what their pods request: leave it out if that is right"
            out.refuse(where, text)
        else:
            out.drop(where, "the template sets the parameters of Ray")


def _bare(template: object) -> object:
    """Return a pod template of Ray without commands and ports, which differ between head and workers."""
    spec = template.get("spec") if isinstance(template, Mapping) else None
    given = spec.get("containers") if isinstance(spec, Mapping) else None
    if not isinstance(template, Mapping) or not isinstance(spec, Mapping) or not isinstance(given, list):
        return template
    skipped = ("ports", "command", "args", "lifecycle")
    containers = [
        {key: each for key, each in one.items() if key not in skipped} if isinstance(one, Mapping) else one
        for one in given
    ]
    return {**template, "spec": {**spec, "containers": containers}}


def _volcano(out: Converted, spec: Section) -> None:
    out.keep("kind", "template", "volcanojob")
    if queue := spec.text("queue"):
        put_name(out, spec.at("queue"), "queue", queue)
    count, first, where = 0, None, spec.at("tasks")
    for task in spec.sections("tasks"):
        number = task.number("replicas")
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
    least = spec.number("minAvailable")
    if least is not None and least < count:
        text = f"starts with {least}, and grows when there is room"
        out.change(spec.at("minAvailable"), "replicas", {"min": max(least, 1), "max": count}, text)
    else:
        out.keep(spec.at("tasks"), "replicas", count)
        out.keep(spec.at("tasks"), "gang", value=True)
    if (retries := spec.number("maxRetry")) is not None:
        out.keep(spec.at("maxRetry"), "retries", retries)
    _policies(out, spec)
    for name, arguments in (spec.take("plugins", dict) or {}).items():
        where_plugin = f"{spec.at('plugins')}.{name}"
        if name not in ("env", "svc"):
            out.refuse(where_plugin, "is not in the template, which has env and svc")
        elif arguments:
            out.note(where_plugin, "has no arguments in the template", Result.CHANGED)
        else:
            out.drop(where_plugin, "the template has it")
    put_pod(out, Section(out, first, where))
    spec.change({"priorityClassName": "classes have no value here: give --priority"})
    spec.finish(
        {
            "schedulerName": "Seaway selects the node",
            "ttlSecondsAfterFinished": _CLEANUP,
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


def _deployment(out: Converted, spec: Section) -> None:
    replicas = spec.number("replicas")
    out.keep("kind", "template", "deployment")
    if replicas == 0:
        out.refuse(spec.at("replicas"), "is 0: submit the job when it may start")
    elif replicas and replicas > 1:
        out.keep(spec.at("replicas"), "replicas", replicas)
    _suspend(out, spec, "paused")
    put_pod(out, spec.section("template"))
    spec.change(
        {
            "strategy": "a changed job starts again with all replicas",
            "updateStrategy": "a changed job starts again with all replicas",
            "minReadySeconds": "a replica is ready when its program runs",
        }
    )
    spec.finish(
        {
            "selector": "names of pods are generated",
            "revisionHistoryLimit": "events of the job have its changes",
            "progressDeadlineSeconds": "the job waits until there is room",
            "serviceName": "ports of the job have a Service: give --expose",
            "persistentVolumeClaimRetentionPolicy": "claims are not created",
        },
        {
            "volumeClaimTemplates": "a claim for each replica has no counterpart: give one claim in volumes",
            "ordinals": "replicas are numbered from 0",
        },
    )


def _statefulset(out: Converted, spec: Section) -> None:
    text = "replicas have no names or volumes of their own, and start in any order"
    if spec.text("podManagementPolicy") == "Parallel":
        text = "replicas have no names or volumes of their own"
    out.note("kind", text, Result.CHANGED)
    _deployment(out, spec)


def _jobset(out: Converted, spec: Section) -> None:
    count, first, where = 0, None, spec.at("replicatedJobs")
    for role in spec.sections("replicatedJobs"):
        number = role.number("replicas")
        role.take("name")
        template = role.section("template")
        template.section("metadata").finish({}, dict.fromkeys(("labels", "annotations"), "is for one of the jobs"))
        job = template.section("spec")
        template.finish({}, {})
        pods = _jobset_pods(out, job)
        count += (1 if number is None else number) * pods
        pod = job.take("template", dict)
        if first is not None and not same_pods(first, pod):
            out.refuse(role.path, _EQUAL)
        if first is None:
            first, where = pod, job.at("template")
        text = "the whole job has one number of retries: that of failurePolicy"
        job.finish({"backoffLimit": text, "podReplacementPolicy": "all pods restart together"},
                   {"suspend": "is for one of the jobs", "podFailurePolicy": "exit codes have no rules"})  # fmt: skip
        role.finish({"groupName": "all replicas are equal"}, {"dependsOn": "all replicas start together"})
    if count > 1:
        out.keep(spec.at("replicatedJobs"), "replicas", count)
        out.keep(spec.at("replicatedJobs"), "gang", value=True)
        text = "template: torchrun, which gives each replica its rank"
        out.keep(spec.at("replicatedJobs"), "template", "torchrun", text)
    failure = spec.section("failurePolicy")
    out.keep(failure.at("maxRestarts"), "retries", failure.number("maxRestarts") or 0)
    failure.finish({"restartStrategy": "all replicas restart together"}, {"rules": "exit codes have no rules"})
    success = spec.section("successPolicy")
    if success.text("operator") not in ("", "All") or success.take("targetReplicatedJobs"):
        out.refuse(success.path, "ends the job with some of its pods: a job ends when all replicas have ended")
    success.finish({}, {})
    _suspend(out, spec)
    put_pod(out, Section(out, first, where))
    spec.change(
        {
            "network": "replicas find the first one by MASTER_ADDR, and all by SEAWAY_HOSTFILE",
            "coordinator": "the first replica has the address MASTER_ADDR",
            "startupPolicy": "all replicas start together",
        }
    )
    spec.finish({"ttlSecondsAfterFinished": _CLEANUP, "managedBy": "Seaway manages the job"}, {})


def _jobset_pods(out: Converted, job: Section) -> int:
    """Return the number of pods of a job that run together."""
    parallelism, completions = job.number("parallelism", 1), job.number("completions", 1)
    pods = parallelism or 1
    if completions is not None and completions != pods:
        out.refuse(job.at("completions"), f"is {completions}, but {pods} pods run together")
    if job.text("completionMode") == "Indexed":
        out.note(job.at("completionMode"), "a replica has the index NODE_RANK", Result.CHANGED)
    _limit(out, job)
    return pods


def _leaderworkerset(out: Converted, spec: Section) -> None:
    groups = spec.number("replicas")
    if groups is not None and groups != 1:
        text = f"is {groups}: each group is a job of its own, so submit {groups or 'no'} jobs, and --ignore replicas"
        out.refuse(spec.at("replicas"), text)
    template = spec.section("leaderWorkerTemplate")
    size = template.number("size", 1) or 1
    leader, worker = template.take("leaderTemplate", dict), template.take("workerTemplate", dict)
    if leader and size > 1 and not same_pods(leader, worker):
        out.refuse(template.at("leaderTemplate"), _EQUAL)
    if size > 1:
        out.keep(template.at("size"), "replicas", size)
        out.keep(template.at("size"), "gang", value=True)
    out.keep(template.path, "template", "torchrun", "template: torchrun, which gives each replica its rank")
    text = "LWS_LEADER_ADDRESS and LWS_WORKER_INDEX are MASTER_ADDR and NODE_RANK"
    out.note(template.path, text, Result.CHANGED)
    policy = template.text("restartPolicy")
    if policy and policy != "RecreateGroupOnPodRestart":
        out.note(template.at("restartPolicy"), "all replicas restart together", Result.CHANGED)
    template.finish(
        {"resizePolicy": "the number of replicas is fixed"},
        {
            "volumeClaimTemplates": "a claim for each replica has no counterpart: give one claim in volumes",
            "subGroupPolicy": "groups in a group have no counterpart",
        },
    )
    where = "leaderTemplate" if size == 1 and leader else "workerTemplate"
    put_pod(out, Section(out, leader if where == "leaderTemplate" else worker, template.at(where)))
    spec.change({"startupPolicy": "all replicas start together", "rolloutStrategy": "a changed job starts again"})
    spec.finish({"networkConfig": "replicas find the first one by MASTER_ADDR"}, {})


KINDS: Mapping[str, Callable[[Converted, Section], None]] = {
    "Job": _job,
    "Pod": _pod,
    "PyTorchJob.kubeflow.org": _pytorchjob,
    "RayJob.ray.io": _rayjob,
    "Job.batch.volcano.sh": _volcano,
    "Deployment": _deployment,
    "StatefulSet": _statefulset,
    "RayCluster.ray.io": _raycluster,
    "JobSet.jobset.x-k8s.io": _jobset,
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": _leaderworkerset,
}
"""Conversion of each kind of objects."""
