"""The Job controller: creates pods until enough have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.fakes.kubernetes.controllers.deployments import is_ready, owner_of
from tests.fakes.kubernetes.controllers.staff import Controller, Staff, condition, owner_reference, set_condition
from tests.fakes.kubernetes.failures import FailureError
from tests.fakes.kubernetes.kinds import JOBS, PODS, Json
from tests.fakes.kubernetes.options import DeleteOptions
from tests.fakes.kubernetes.store import Event, Stored
from tests.fakes.kubernetes.verbs import ENDED

INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class _Past:
    """Finished pods of a job: success and index by uid, and the pods that the job deleted itself."""

    ended: dict[str, tuple[bool, str]] = field(default_factory=dict)
    dismissed: set[str] = field(default_factory=set)

    def indexes(self) -> set[int]:
        return {int(index) for well, index in self.ended.values() if well and index}

    def count(self, *, well: bool) -> int:
        return sum(one is well for one, _ in self.ended.values())


class Jobs(Controller[tuple[str, str]]):
    """Runs jobs: parallelism, completions, indexes, back-off limit, deadline, suspension and time to live."""

    kinds = (JOBS, PODS)

    def __init__(self, staff: Staff) -> None:
        super().__init__(staff)
        self._past: dict[str, _Past] = {}

    def receive(self, event: Event) -> Iterator[tuple[str, str]]:
        """Return the job that changed, or that owns a pod that changed; a pod that a user deletes counts as failed."""
        now = event.now
        if now.kind is JOBS:
            if event.type == "DELETED":
                self._past.pop(now.uid, None)
            else:
                yield now.namespace, now.name
        elif now.owners and (name := owner_of(now, "Job")):
            past = self._past.setdefault(now.owners[0], _Past())
            gone = now.deleting or event.type == "DELETED"
            if now.fields[1] in ENDED or (gone and now.uid not in past.dismissed | past.ended.keys()):
                past.ended[now.uid] = (now.fields[1] == "Succeeded", now.labels.get(INDEX, ""))
            yield now.namespace, name

    def look(self, key: tuple[str, str]) -> None:
        """Create or delete pods, and update the status."""
        found = self.store.find(JOBS, *key)
        if found is None or found.deleting:
            return
        body = found.view()
        status = body.get("status") or {}
        if condition(status, "Complete") == "True" or condition(status, "Failed") == "True":
            self._retire(found, body)
            return
        past = self._past.setdefault(found.uid, _Past())
        active = [pod for pod in self.owned(found, PODS) if not pod.deleting and pod.fields[1] not in ENDED]
        if verdict := self._verdict(found, body, past, active):
            self._dismiss(past, active)
            self._tell(found, body, past, [], verdict)
            return
        if body["spec"].get("suspend"):
            self._dismiss(past, active)
            active = []
        else:
            try:
                self._fill(found, body, past, active)
            except FailureError as failure:
                self.report_denied(found, failure, "job-controller", key)
            active = [pod for pod in self.owned(found, PODS) if not pod.deleting and pod.fields[1] not in ENDED]
        self._tell(found, body, past, active, None)

    def _verdict(self, job: Stored, body: Json, past: _Past, active: Sequence[Stored]) -> tuple[str, str, str] | None:
        """Return the outcome of a job if it has ended: condition, reason and message."""
        spec = body["spec"]
        failed, done = past.count(well=False), self._done(body, past)
        completions = spec.get("completions")
        if failed > spec["backoffLimit"]:
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if completions is not None and done >= completions:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        if completions is None and done and not active:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        start = (body.get("status") or {}).get("startTime")
        if spec.get("activeDeadlineSeconds") and start:
            left = spec["activeDeadlineSeconds"] - _age_s(start, self.verbs.now())
            if left <= 0:
                return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
            self.staff.later(left, self, (job.namespace, job.name))
        return None

    @staticmethod
    def _done(body: Json, past: _Past) -> int:
        if body["spec"]["completionMode"] == "Indexed":
            return len(past.indexes())
        return past.count(well=True)

    def _fill(self, job: Stored, body: Json, past: _Past, active: Sequence[Stored]) -> None:
        spec = body["spec"]
        completions = spec.get("completions")
        wanted = int(spec["parallelism"])
        if completions is not None:
            wanted = min(wanted, completions - self._done(body, past))
        elif past.count(well=True):
            wanted = 0
        if spec["completionMode"] == "Indexed":
            taken = past.indexes() | {int(pod.labels[INDEX]) for pod in active}
            free = [index for index in range(completions) if index not in taken]
            for index in free[: max(0, wanted - len(active))]:
                self._make(job, body, index)
            active = sorted(active, key=lambda pod: int(pod.labels[INDEX]))  # the highest indexes end first
        else:
            for _ in range(wanted - len(active)):
                self._make(job, body, None)
        self._dismiss(past, list(active)[max(0, wanted) :])

    def _make(self, job: Stored, body: Json, index: int | None) -> None:
        template = deepcopy(body["spec"]["template"])
        meta, spec = template.setdefault("metadata", {}), template["spec"]
        stem = job.name[:240] if index is None else f"{job.name[:240]}-{index}"
        meta["name"], meta["generateName"] = f"{stem}-{self.store.new_suffix()}", f"{stem}-"
        meta["ownerReferences"] = [owner_reference(job)]
        if index is not None:
            meta.setdefault("annotations", {})[INDEX] = str(index)
            meta.setdefault("labels", {})[INDEX] = str(index)
            spec["hostname"] = stem
            for container in spec["containers"]:
                source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
                container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
        made = self.verbs.create(PODS, job.namespace, {"metadata": meta, "spec": spec})
        self.report(job, "SuccessfulCreate", f"Created pod: {made.name}", source="job-controller")

    def _dismiss(self, past: _Past, pods: Sequence[Stored]) -> None:
        for pod in pods:
            past.dismissed.add(pod.uid)
            self.verbs.delete(PODS, pod.namespace, pod.name, DeleteOptions())

    def _tell(
        self, job: Stored, body: Json, past: _Past, active: Sequence[Stored], verdict: tuple[str, str, str] | None
    ) -> None:
        now = self.stamp()
        suspended = bool(body["spec"].get("suspend"))

        def tell(status: Json) -> None:
            counts = {
                "active": len(active),
                "succeeded": self._done(body, past),
                "failed": past.count(well=False),
            }
            for name, count in counts.items():
                if count:
                    status[name] = count
                else:
                    status.pop(name, None)
            status["ready"] = sum(is_ready(pod) for pod in active)
            status["terminating"] = 0
            status["uncountedTerminatedPods"] = {}
            if body["spec"]["completionMode"] == "Indexed":
                status["completedIndexes"] = _ranges(sorted(past.indexes()))
            if suspended:
                status.pop("startTime", None)
                set_condition(status, "Suspended", "True", now, "JobSuspended", "Job suspended")
            else:
                status.setdefault("startTime", now)
                if condition(status, "Suspended") == "True":
                    set_condition(status, "Suspended", "False", now, "JobResumed", "Job resumed")
            if verdict:
                kind, reason, message = verdict
                target = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
                set_condition(status, target, "True", now, reason, message)
                set_condition(status, kind, "True", now, reason, message)
                if kind == "Complete":
                    status["completionTime"] = now

        self.write_status(job, tell)
        if verdict:
            event = "Completed" if verdict[0] == "Complete" else verdict[1]
            self.report(job, event, verdict[2], kind="Normal" if event == "Completed" else "Warning")

    def _retire(self, job: Stored, body: Json) -> None:
        seconds = body["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return
        ended = max(
            one["lastTransitionTime"] for one in body["status"]["conditions"] if one["type"] in ("Complete", "Failed")
        )
        left = seconds - _age_s(ended, self.verbs.now())
        if left <= 0:
            self.verbs.delete(JOBS, job.namespace, job.name, DeleteOptions(propagation="Foreground"))
        else:
            self.staff.later(left, self, (job.namespace, job.name))


def _age_s(moment: str, now: datetime) -> float:
    return (now - datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)).total_seconds()


def _ranges(indexes: Sequence[int]) -> str:
    """Write sorted numbers as ``0-2,4``.

    Examples
    --------
    >>> _ranges([0, 1, 2, 4, 6, 7])
    '0-2,4,6,7'
    """
    runs: list[list[int]] = []
    for index in indexes:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = []
    for run in runs:
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(one) for one in run]
    return ",".join(parts)
