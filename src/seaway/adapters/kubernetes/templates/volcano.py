"""Template ``volcanojob``: a batch job with Volcano, which starts a gang together.

References
----------
batch.volcano.sh/v1alpha1 Job.
"""

from __future__ import annotations

from typing import Any

from seaway.adapters.kubernetes.device_plugins.views import DevicePlugin
from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Group, Manifest, Pin
from seaway.adapters.kubernetes.templates.names import digest
from seaway.adapters.kubernetes.templates.pinning import devices_of
from seaway.adapters.kubernetes.templates.plain import port_service
from seaway.adapters.kubernetes.templates.pods import VOLCANO_SCHEDULER, Pod, pod_template

HAMI_SCHEDULER = "hami-scheduler"
"""Scheduler name in HAMi's chart."""


def render(context: Context) -> list[Manifest]:
    """Return one Job with a task for each part. Replicas that are added later get a Job of their own.

    Volcano accepts no other change of a running Job than the numbers of replicas of its tasks.

    A failed or evicted replica ends the whole Job, because Seaway must decide about a replacement, not Volcano.

    Pods with HAMi's devices use HAMi's scheduler, because Volcano's scheduler does not support these devices. Volcano
    then delays a gang's pods until the cluster has room, but does not start them at the same time.
    """
    waves: dict[int, list[Group]] = {}
    for group in context.groups:
        waves.setdefault(group.wave, []).append(group)
    return [*port_service(context), *(each for wave, groups in waves.items() for each in _jobs(context, wave, groups))]


def _jobs(context: Context, wave: int, groups: list[Group]) -> list[Manifest]:
    """Return the Job of the replicas that were added together, and the claims of its pods."""
    tasks: list[dict[str, Any]] = []
    pins: list[Pin] = []
    claims: list[Manifest] = []
    replicas = tuple(sorted(replica for group in groups for replica in group.replicas))
    what = digest([context.deployment.cluster, wave]) if wave else context.whole
    body: dict[str, Any] = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    body["metadata"] = context.metadata(what, replicas)
    if not replicas:
        return [Manifest(body, absent=True)]
    for place, group in enumerate(groups):
        pod = Pod(scheduler=_scheduler(context, group))
        template = pod_template(context, group, pod, ("spec", "tasks", place, "template"))
        tasks.append({"name": f"p{group.digest}", "replicas": len(group.replicas), "template": template.body})
        pins += template.pins
        claims += template.claims
    spec: dict[str, Any] = {
        "schedulerName": VOLCANO_SCHEDULER,
        "minAvailable": len(replicas) if context.spec.gang and not wave else 1,
        "maxRetry": 0,
        "policies": [{"events": ["PodFailed", "PodEvicted"], "action": "TerminateJob"}],
        "plugins": {"env": [], "svc": []},
        "tasks": tasks,
    }
    if context.options.volcano_queue:
        spec["queue"] = context.options.volcano_queue
    return [*claims, Manifest({**body, "spec": spec}, tuple(pins), replicas)]


def _scheduler(context: Context, group: Group) -> str:
    devices = devices_of(group, context.options.accesses)
    if devices and devices.terms.plugin in (DevicePlugin.HAMI, DevicePlugin.HAMI_STATUS):
        return context.options.hami_scheduler or HAMI_SCHEDULER
    return ""
