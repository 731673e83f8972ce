"""Kueue's admission of Jobs that name a queue: each has a Workload, and its pods start once that has quota.

The part that Seaway sees: ClusterQueues of one flavor, first come, first served; no cohorts, preemption, or checks.

References
----------
Kueue 0.19: ``pkg/controller/core/workload_controller.go`` and ``pkg/scheduler/flavorassigner`` for its words, finer
reasons switched on (``UnadmittedWorkloadsObservability``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.fakes.kubernetes.controllers.staff import Controller, condition, owner_reference, set_condition
from tests.fakes.kubernetes.kinds import CLUSTER_QUEUES, JOBS, KUEUE_WORKLOADS, LOCAL_QUEUES, Json
from tests.fakes.kubernetes.quantities import milli, written
from tests.fakes.kubernetes.store import Event, Stored

QUEUE = "kueue.x-k8s.io/queue-name"
JOB_UID = "kueue.x-k8s.io/job-uid"


class Kueue(Controller[tuple[str, str]]):
    """Admits Jobs."""

    kinds = (JOBS, KUEUE_WORKLOADS, LOCAL_QUEUES, CLUSTER_QUEUES)

    def receive(self, event: Event) -> Iterator[tuple[str, str]]:
        """Return a Job that names a queue, or all of them when quota is freed or a queue changes."""
        now = event.now
        if now.kind is JOBS:
            if QUEUE in now.labels:
                yield now.namespace, now.name
        elif now.kind is not KUEUE_WORKLOADS or event.type == "DELETED" or _has(now, "Finished"):
            yield from ((one.namespace, one.name) for one in self.store.all(JOBS) if QUEUE in one.labels)

    def look(self, key: tuple[str, str]) -> None:
        """Admit a Job, or report the reason against it."""
        job = self.store.find(JOBS, *key)
        if job is None or job.deleting:
            return
        workload = next(iter(self.owned(job, KUEUE_WORKLOADS)), None) or self._make(job)
        if _has(job, "Complete") or _has(job, "Failed"):
            how = "Succeeded" if _has(job, "Complete") else "Failed"
            self.write_status(workload, lambda status: set_condition(status, "Finished", "True", self.stamp(), how))
            return
        if not _has(workload, "Admitted"):
            blocked = self._blocked(workload)
            self.write_status(workload, lambda status: self._tell(status, blocked))
            self._suspend(job, suspended=bool(blocked))
        else:
            self._suspend(job, suspended=False)

    def _make(self, job: Stored) -> Stored:
        body = job.view()
        meta = {
            "name": f"job-{job.name[:50]}-{self.store.new_suffix()}",
            "labels": {JOB_UID: job.uid},
            "ownerReferences": [owner_reference(job)],
        }
        sets = [{"name": "main", "count": body["spec"]["parallelism"], "template": body["spec"]["template"]}]
        spec = {"active": True, "queueName": job.labels[QUEUE], "podSets": sets}
        return self.verbs.create(KUEUE_WORKLOADS, job.namespace, {"metadata": meta, "spec": spec})

    def _suspend(self, job: Stored, *, suspended: bool) -> None:
        body = job.read()
        if bool(body["spec"].get("suspend")) != suspended:
            body["spec"]["suspend"] = suspended
            self.store.put(JOBS, body)

    def _tell(self, status: Json, blocked: tuple[str, str] | None) -> None:
        now = self.stamp()
        if blocked:
            set_condition(status, "QuotaReserved", "False", now, *blocked)
            return
        set_condition(status, "QuotaReserved", "True", now, "QuotaReserved", "Quota reserved")
        set_condition(status, "Admitted", "True", now, "Admitted", "The workload is admitted")

    def _blocked(self, workload: Stored) -> tuple[str, str] | None:
        """Return the reason and message that block a Workload; None if nothing does."""
        name = workload.view()["spec"]["queueName"]
        local = self.store.find(LOCAL_QUEUES, workload.namespace, name)
        if local is None:
            return "Misconfigured", f"LocalQueue {name} doesn't exist"
        shared = local.view()["spec"]["clusterQueue"]
        queue = self.store.find(CLUSTER_QUEUES, "", shared)
        if queue is None:
            return "Misconfigured", f"ClusterQueue {shared} doesn't exist"
        if queue.view()["spec"].get("stopPolicy", "None") != "None":
            return "Suspended", f"ClusterQueue {shared} is inactive"
        return self._short(workload, queue, shared)

    def _short(self, workload: Stored, queue: Stored, shared: str) -> tuple[str, str] | None:
        """Return the reason and message for the resource that a queue lacks."""
        (flavor,) = queue.view()["spec"]["resourceGroups"][0]["flavors"]
        quotas = {each["name"]: milli(each["nominalQuota"]) for each in flavor["resources"]}
        used: Counter[str] = Counter()
        for one in self.store.all(KUEUE_WORKLOADS):
            if _has(one, "Admitted") and not _has(one, "Finished") and self._queue_of(one) == shared:
                used += _wanted(one)
        no = "couldn't assign flavors to pod set main"
        for name, wanted in _wanted(workload).items():
            if name not in quotas:
                return "NoMatchingFlavor", f"{no}: resource {name} unavailable in ClusterQueue"
            quota, of = quotas[name], f"{name} in flavor {flavor['name']}"
            if wanted > quota:
                asked = f"previously considered podsets requests (0) + current podset request ({written(wanted)})"
                most = f"{asked} > maximum capacity ({written(quota)})"
                return "ExceedsMaxQuota", f"{no}: insufficient quota for {of}, {most}"
            if (lack := used[name] + wanted - quota) > 0:
                return "WaitingForQuota", f"{no}: insufficient unused quota for {of}, {written(lack)} more needed"
        return None

    def _queue_of(self, workload: Stored) -> str:
        local = self.store.find(LOCAL_QUEUES, workload.namespace, workload.view()["spec"]["queueName"])
        return str(local.view()["spec"]["clusterQueue"]) if local else ""


def _wanted(workload: Stored) -> Counter[str]:
    """Return the total request of a Workload, in thousandths."""
    wanted: Counter[str] = Counter()
    for group in workload.view()["spec"]["podSets"]:
        for container in group["template"]["spec"]["containers"]:
            resources = container.get("resources") or {}
            for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
                wanted[name] += milli(amount) * int(group["count"])
    return wanted


def _has(one: Stored, kind: str) -> bool:
    return condition(one.view().get("status") or {}, kind) == "True"
