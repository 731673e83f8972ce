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
from seaway.adapters.kubernetes.templates.pinning import devices_of
from seaway.adapters.kubernetes.templates.plain import port_service
from seaway.adapters.kubernetes.templates.pods import VOLCANO_SCHEDULER, Pod, pod_template

HAMI_SCHEDULER = "hami-scheduler"
"""Scheduler name in HAMi's chart."""


def render(context: Context) -> list[Manifest]:
    """Return one Job with a task for each part.

    A failed or evicted replica ends the whole Job, because Seaway must decide about a replacement, not Volcano.

    Pods with HAMi's devices use HAMi's scheduler, because Volcano's scheduler does not support these devices. Volcano
    then delays a gang's pods until the cluster has room, but does not start them at the same time.
    """
    tasks: list[dict[str, Any]] = []
    pins: list[Pin] = []
    claims: list[Manifest] = []
    for place, group in enumerate(context.groups):
        pod = Pod(scheduler=_scheduler(context, group))
        template = pod_template(context, group, pod, ("spec", "tasks", place, "template"))
        tasks.append({"name": f"p{group.digest}", "replicas": len(group.replicas), "template": template.body})
        pins += template.pins
        claims += template.claims
    spec: dict[str, Any] = {
        "schedulerName": VOLCANO_SCHEDULER,
        "minAvailable": len(context.replicas) if context.spec.gang else 1,
        "maxRetry": 0,
        "policies": [{"events": ["PodFailed", "PodEvicted"], "action": "TerminateJob"}],
        "plugins": {"env": [], "svc": []},
        "tasks": tasks,
    }
    if context.options.volcano_queue:
        spec["queue"] = context.options.volcano_queue
    body = context.workload("batch.volcano.sh/v1alpha1", "Job", spec)
    return [*port_service(context), *claims, Manifest(body, tuple(pins), context.replicas)]


def _scheduler(context: Context, group: Group) -> str:
    devices = devices_of(group, context.options.accesses)
    if devices and devices.terms.plugin in (DevicePlugin.HAMI, DevicePlugin.HAMI_STATUS):
        return context.options.hami_scheduler or HAMI_SCHEDULER
    return ""
