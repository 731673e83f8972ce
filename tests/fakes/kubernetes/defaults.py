"""Defaults that a server sets in objects, by kind."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.kubernetes.kinds import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    POLICIES,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    Json,
    Kind,
)

TOLERATED_S = 300
"""Seconds that a pod stays on a node that is not ready, unless it sets another toleration."""


def fill(kind: Kind, body: Json) -> None:
    """Set the defaults of a spec."""
    if filled := _FILLED.get(kind):
        filled(body)


def requests_of(container: Json) -> Json:
    """Return the requests of a container, with its limits as default."""
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def _fill_pod_spec(spec: Json) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        container.setdefault("resources", {})
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        image = str(container.get("image", ""))
        latest = image.endswith(":latest") or ":" not in image.rpartition("/")[2]
        container.setdefault("imagePullPolicy", "Always" if latest and "@" not in image else "IfNotPresent")
        for port in container.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _fill_template(body: Json) -> Json:
    spec: Json = body.setdefault("spec", {})
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    _fill_pod_spec(template.setdefault("spec", {}))
    return spec


def fill_pod(body: Json) -> None:
    """Set the defaults of a pod."""
    spec = body.setdefault("spec", {})
    _fill_pod_spec(spec)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        if container["resources"].get("limits"):
            container["resources"]["requests"] = requests_of(container)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("priority", 0)
    tolerations = spec.setdefault("tolerations", [])
    for taint in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(one.get("key") == taint for one in tolerations):
            tolerations.append(
                {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_S}
            )
    body.setdefault("status", {}).setdefault("phase", "Pending")
    body["status"].setdefault("qosClass", _quality(spec))


def _quality(spec: Json) -> str:
    sums = [container.get("resources") or {} for container in spec.get("containers") or ()]
    basic = ("cpu", "memory")
    if all(
        set(basic) <= set(one.get("limits") or ()) and requests_of({"resources": one}) == one["limits"] for one in sums
    ):
        return "Guaranteed"
    asked = any(name in (one.get(part) or ()) for one in sums for part in ("limits", "requests") for name in basic)
    return "Burstable" if asked else "BestEffort"


def _fill_deployment(body: Json) -> None:
    spec = _fill_template(body)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def _fill_replica_set(body: Json) -> None:
    _fill_template(body).setdefault("replicas", 1)


def _fill_job(body: Json) -> None:
    spec = _fill_template(body)
    spec.setdefault("completionMode", "NonIndexed")
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    uid, name = body["metadata"]["uid"], body["metadata"]["name"]
    if not spec["manualSelector"]:
        labels = spec["template"]["metadata"].setdefault("labels", {})
        for prefix in ("batch.kubernetes.io/", ""):
            labels.setdefault(f"{prefix}controller-uid", uid)
            labels.setdefault(f"{prefix}job-name", name)
        spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    template = spec["template"]["metadata"].get("labels")
    if template and not body["metadata"].get("labels"):
        body["metadata"]["labels"] = dict(template)


def _fill_service(body: Json) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    body.setdefault("status", {}).setdefault("loadBalancer", {})


def _fill_namespace(body: Json) -> None:
    body.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    body.setdefault("status", {}).setdefault("phase", "Active")
    body["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = body["metadata"]["name"]


_NODE_INFO = (
    *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion"),
    *("machineID", "operatingSystem", "osImage", "systemUUID"),
)


def _fill_node(body: Json) -> None:
    body.setdefault("spec", {})
    status = body.setdefault("status", {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    status.setdefault("nodeInfo", dict.fromkeys(_NODE_INFO, ""))


def _fill_event(body: Json) -> None:
    for name in ("eventTime", "firstTimestamp", "lastTimestamp"):
        body.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        body.setdefault(name, "")
    body.setdefault("source", {})


def _fill_policy(body: Json) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("conflictResolution", "Abort")
    spec.setdefault("priority", 0)
    spec.setdefault("preemption", "Never")
    for one in spec.get("resourceSelectors") or ():
        one.setdefault("namespace", body["metadata"]["namespace"])


_FILLED: dict[Kind, Callable[[Json], None]] = {
    NODES: _fill_node,
    EVENTS: _fill_event,
    PODS: fill_pod,
    DEPLOYMENTS: _fill_deployment,
    REPLICA_SETS: _fill_replica_set,
    STATEFUL_SETS: _fill_replica_set,
    JOBS: _fill_job,
    SERVICES: _fill_service,
    NAMESPACES: _fill_namespace,
    POLICIES: _fill_policy,
}
