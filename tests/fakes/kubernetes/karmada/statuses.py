"""Status and health of a member's object for the control plane, and the aggregated status."""

from __future__ import annotations

from tests.fakes.kubernetes.controllers.staff import condition, set_condition
from tests.fakes.kubernetes.karmada.words import TEMPLATE_GENERATION
from tests.fakes.kubernetes.kinds import DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, SERVICES, Json, Kind

_DEPLOYMENT = (
    *("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"),
    "observedGeneration",
)
_JOB = ("active", "succeeded", "failed", "conditions", "startTime", "completionTime")


def reflect(kind: Kind, body: Json) -> Json | None:
    """Return the status of an object in a member as reported; None if nothing is."""
    status = body.get("status") or {}
    if kind in (DEPLOYMENTS, REPLICA_SETS):
        meta = body["metadata"]
        reported = {name: status[name] for name in _DEPLOYMENT if status.get(name)}
        reported["generation"] = meta["generation"]
        template = (meta.get("annotations") or {}).get(TEMPLATE_GENERATION)
        return {**reported, "resourceTemplateGeneration": int(template)} if template else reported
    if kind is JOBS:
        return {name: status[name] for name in _JOB if status.get(name)}
    if kind is SERVICES:
        return {"loadBalancer": {}} if body["spec"].get("type") == "LoadBalancer" else None
    return status or None


def health(kind: Kind, body: Json) -> str:
    """Return the health of an object in a member: ``Healthy``, ``Unhealthy`` or ``Unknown``."""
    status = body.get("status") or {}
    if kind is DEPLOYMENTS:
        updated = status.get("updatedReplicas", 0)
        well = (
            status.get("observedGeneration") == body["metadata"]["generation"]
            and updated >= body["spec"].get("replicas", 0)
            and status.get("availableReplicas", 0) >= updated
        )
    elif kind is PODS:
        well = status.get("phase") == "Succeeded" or condition(status, "Ready") == "True"
    elif kind is SERVICES:
        well = True
    else:
        return "Unknown"
    return "Healthy" if well else "Unhealthy"


def gather(kind: Kind, template: Json, items: list[Json], status: Json, moment: str) -> None:
    """Aggregate the reports of the clusters into a template's status."""
    reported = [one["status"] for one in items if one.get("status")]
    if kind is DEPLOYMENTS:
        for name in _DEPLOYMENT[:-1]:
            if total := sum(one.get(name, 0) for one in reported):
                status[name] = total
            else:
                status.pop(name, None)
        generation = template["metadata"].get("generation", 0)
        seen = [
            one
            for one in reported
            if one.get("observedGeneration", 0) >= one.get("generation", 0)
            and one.get("resourceTemplateGeneration", 0) >= generation
        ]
        if items and len(seen) == len(items):
            status["observedGeneration"] = generation
    elif kind is JOBS and reported:
        _gather_job(items, reported, status, moment)


def _gather_job(items: list[Json], reported: list[Json], status: Json, moment: str) -> None:
    if any(condition(status, kind) == "True" for kind in ("Complete", "Failed")):
        return
    for name in ("active", "succeeded", "failed"):
        if total := sum(one.get(name, 0) for one in reported):
            status[name] = total
        else:
            status.pop(name, None)
    starts = [one["startTime"] for one in reported if one.get("startTime")]
    if starts:
        status["startTime"] = min(starts)
    failed = [one["clusterName"] for one in items if condition(one.get("status") or {}, "Failed") == "True"]
    done = [one for one in reported if condition(one, "Complete") == "True"]
    if failed:
        message = f"Job executed failed in member clusters {','.join(failed)}"
        set_condition(status, "Failed", "True", moment, "JobFailed", message)
    elif len(done) == len(items):
        set_condition(status, "Complete", "True", moment, "Completed", "Job completed")
        ends = [one["completionTime"] for one in done if one.get("completionTime")]
        if ends:
            status["completionTime"] = max(ends)
