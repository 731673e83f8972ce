"""What a server fills in and refuses, kind by kind: the part of Kubernetes' defaults and checks that clients meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from seaway.testing.kubernetes.failures import denied, invalid
from seaway.testing.kubernetes.kinds import (
    CLUSTERS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    OVERRIDES,
    PODS,
    POLICIES,
    REPLICA_SETS,
    SERVICES,
    Json,
    Kind,
)
from seaway.testing.kubernetes.selectors import object_rule
from seaway.testing.kubernetes.store import Store

Causes = list[tuple[str, str, str]]

TOLERATED_S = 300
"""How long a pod stays on a node that is not ready, unless it says otherwise."""
KARMADA_HOOK = "propagationpolicy.karmada.io"


def on_create(kind: Kind, body: Json, store: Store) -> None:
    """Fill in what a new object leaves out; drop what a user may not set."""
    if kind.status and not kind.keeps_status:
        body.pop("status", None)
        if not kind.custom:
            body["status"] = {}
    fill(kind, body)
    if kind is SERVICES:
        _address(body, store)


def fill(kind: Kind, body: Json) -> None:
    """Fill in what a spec leaves out."""
    if filled := _FILLED.get(kind):
        filled(body)


def on_update(kind: Kind, body: Json, before: Json, part: str) -> None:
    """Fill in what an update leaves out."""
    if part in ("", "scale"):
        fill(kind, body)
    if kind is SERVICES and not part:
        for name in ("clusterIP", "clusterIPs"):
            body["spec"].setdefault(name, before["spec"].get(name))


def check(kind: Kind, body: Json, before: Json | None) -> None:
    """Refuse an object that breaks a rule of its kind, or changes what may not change.

    Raises
    ------
    FailureError
        422 with every cause, or 403 as Karmada's webhooks say it.
    """
    causes: Causes = []
    if checked := _CHECKED.get(kind):
        checked(body, causes)
    if before is not None:
        _check_fixed(kind, body, before, causes)
    if causes:
        raise invalid(kind, body["metadata"]["name"], causes)
    if kind in (POLICIES, OVERRIDES):
        _check_policy(kind, body)


def spec_changed(kind: Kind, body: Json, before: Json) -> bool:
    """Tell whether anything but metadata and status differs; of a deployment, annotations count as well."""
    if kind is DEPLOYMENTS and body["metadata"].get("annotations") != before["metadata"].get("annotations"):
        return True
    keys = {*body, *before} - {"metadata", "status", "kind", "apiVersion"}
    return any(body.get(key) != before.get(key) for key in keys)


def requests_of(container: Json) -> Json:
    """Return what a container asks for: requests, and limits where there is none."""
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


# What is filled in ---------------------------------------------------------------------------------------------------


def _fill_pod_spec(spec: Json) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        container.setdefault("resources", {})
        if container["resources"].get("limits"):
            container["resources"]["requests"] = requests_of(container)
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


def _fill_pod(body: Json) -> None:
    spec = body.setdefault("spec", {})
    _fill_pod_spec(spec)
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
            labels[f"{prefix}controller-uid"] = uid
            labels[f"{prefix}job-name"] = name
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


def _address(body: Json, store: Store) -> None:
    spec = body["spec"]
    if spec["type"] == "ExternalName":
        return
    number = len(store.shelves[SERVICES].items) + 10 + store.version % 50_000
    spec.setdefault("clusterIP", f"10.96.{number // 250 % 250}.{number % 250 + 1}")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])


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


def _fill_cluster(body: Json) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("resourceModels", [])
    body["metadata"].setdefault("finalizers", [])


_FILLED: dict[Kind, Callable[[Json], None]] = {
    NODES: _fill_node,
    EVENTS: _fill_event,
    PODS: _fill_pod,
    DEPLOYMENTS: _fill_deployment,
    REPLICA_SETS: _fill_replica_set,
    JOBS: _fill_job,
    SERVICES: _fill_service,
    NAMESPACES: _fill_namespace,
    POLICIES: _fill_policy,
}

# What is refused -----------------------------------------------------------------------------------------------------


def _need(causes: Causes, field: str, value: object) -> bool:
    if value in (None, "", [], {}):
        causes.append((field, "FieldValueRequired", "Required value"))
        return False
    return True


def _check_pod_spec(spec: Json, where: str, causes: Causes) -> None:
    if not _need(causes, f"{where}.containers", spec.get("containers")):
        return
    seen: set[str] = set()
    for at, container in enumerate(spec["containers"]):
        field = f"{where}.containers[{at}]"
        if _need(causes, f"{field}.name", container.get("name")):
            if container["name"] in seen:
                causes.append((f"{field}.name", "FieldValueDuplicate", f'Duplicate value: "{container["name"]}"'))
            seen.add(container["name"])
        _need(causes, f"{field}.image", container.get("image"))
        _check_resources(container.get("resources") or {}, f"{field}.resources", causes)


def _check_resources(resources: Json, where: str, causes: Causes) -> None:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, value in requests.items():
        if "/" not in name or name.startswith("kubernetes.io/"):
            continue
        if name not in limits:
            causes.append(
                (
                    f"{where}.limits",
                    "FieldValueRequired",
                    f"Required value: Limit must be set for non overcommitable resources: {name}",
                )
            )
        elif str(limits[name]) != str(value):
            why = f'Invalid value: "{value}": must be equal to {name} limit of {limits[name]}'
            causes.append((f"{where}.requests", "FieldValueInvalid", why))


def _check_pod(body: Json, causes: Causes) -> None:
    _check_pod_spec(body["spec"], "spec", causes)


def _check_workload(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels") or {}
    rule = object_rule(selector)
    if not _need(causes, "spec.selector", selector) or (rule and not rule(labels)):
        why = f"Invalid value: {_go_map(labels)}: `selector` does not match template `labels`"
        causes.append(("spec.template.metadata.labels", "FieldValueInvalid", why))
    _check_pod_spec(spec["template"]["spec"], "spec.template.spec", causes)
    if int(spec.get("replicas", 0)) < 0:
        why = f"Invalid value: {spec['replicas']}: must be greater than or equal to 0"
        causes.append(("spec.replicas", "FieldValueInvalid", why))


def _check_job(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    _check_pod_spec(spec["template"]["spec"], "spec.template.spec", causes)
    policy = spec["template"]["spec"].get("restartPolicy")
    if policy not in ("Never", "OnFailure"):
        why = f'Unsupported value: "{policy}": supported values: "OnFailure", "Never"'
        causes.append(("spec.template.spec.restartPolicy", "FieldValueNotSupported", why))
    if spec["completionMode"] == "Indexed" and spec.get("completions") is None:
        why = "Required value: when completion mode is Indexed"
        causes.append(("spec.completions", "FieldValueRequired", why))


def _check_service(body: Json, causes: Causes) -> None:
    spec = body["spec"]
    if spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        _need(causes, "spec.ports", spec.get("ports"))
    names = [port.get("name") for port in spec.get("ports") or ()]
    for at, name in enumerate(names):
        if len(names) > 1:
            _need(causes, f"spec.ports[{at}].name", name)


def _check_event(body: Json, causes: Causes) -> None:
    involved = body.get("involvedObject") or {}
    if involved.get("namespace", "default") != body["metadata"]["namespace"]:
        why = f'Invalid value: "{involved.get("namespace", "")}": does not match event.namespace'
        causes.append(("involvedObject.namespace", "FieldValueInvalid", why))


def _check_propagation(body: Json, causes: Causes) -> None:
    selectors = body["spec"].get("resourceSelectors")
    if selectors is None:
        causes.append(("spec.resourceSelectors", "FieldValueRequired", "Required value"))
    elif not selectors:
        why = "Invalid value: 0: spec.resourceSelectors in body should have at least 1 items"
        causes.append(("spec.resourceSelectors", "FieldValueInvalid", why))
    for at, one in enumerate(selectors or ()):
        _need(causes, f"spec.resourceSelectors[{at}].kind", one.get("kind"))


def _check_cluster(body: Json, causes: Causes) -> None:
    mode = body.get("spec", {}).get("syncMode")
    if mode not in ("Push", "Pull"):
        why = f'Unsupported value: "{mode or ""}": supported values: "Pull", "Push"'
        causes.append(("spec.syncMode", "FieldValueNotSupported", why))


_CHECKED: dict[Kind, Callable[[Json, Causes], None]] = {
    PODS: _check_pod,
    DEPLOYMENTS: _check_workload,
    REPLICA_SETS: _check_workload,
    JOBS: _check_job,
    SERVICES: _check_service,
    EVENTS: _check_event,
    POLICIES: _check_propagation,
    CLUSTERS: _check_cluster,
}


def _check_policy(kind: Kind, body: Json) -> None:
    """Refuse what Karmada's webhooks refuse."""
    namespace = body["metadata"]["namespace"]
    for one in body["spec"].get("resourceSelectors") or ():
        if one.get("namespace", namespace) != namespace:
            raise denied(
                f"{kind.kind.lower()}.karmada.io",
                f"the namespace of resource selector should be the same as the {kind.kind}'s, which is {namespace}",
            )
    placement = body["spec"].get("placement") or {}
    if placement.get("clusterAffinity") is not None and placement.get("clusterAffinities"):
        raise denied(
            KARMADA_HOOK,
            "[spec.placement: Invalid value: clusterAffinities cannot co-exist with clusterAffinity]",
        )


# What may not change -------------------------------------------------------------------------------------------------

_IMMUTABLE = "field is immutable"
_FIXED: dict[Kind, tuple[tuple[str, ...], ...]] = {
    DEPLOYMENTS: (("selector",),),
    REPLICA_SETS: (("selector",),),
    JOBS: (("selector",), ("completionMode",), ("template",)),
}
_MAY_CHANGE = ("image",)


def _check_fixed(kind: Kind, body: Json, before: Json, causes: Causes) -> None:
    for path in _FIXED.get(kind, ()):
        old, new = before["spec"].get(path[0]), body["spec"].get(path[0])
        if old != new and not (path == ("template",) and before["spec"].get("suspend")):
            causes.append((f"spec.{'.'.join(path)}", "FieldValueInvalid", f"Invalid value: {_IMMUTABLE}"))
    if kind is JOBS and body["spec"].get("completions") != before["spec"].get("completions"):
        elastic = body["spec"].get("completionMode") == "Indexed" and (
            body["spec"].get("completions") == body["spec"].get("parallelism")
        )
        if not elastic:
            causes.append(("spec.completions", "FieldValueInvalid", f"Invalid value: {_IMMUTABLE}"))
    if kind is SERVICES and body["spec"].get("clusterIP") != before["spec"].get("clusterIP"):
        why = f'Invalid value: "{body["spec"].get("clusterIP")}": may not change once set'
        causes.append(("spec.clusterIP", "FieldValueInvalid", why))
    if kind is PODS and _respecified(body, before):
        why = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
            "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
            "negative)"
        )
        causes.append(("spec", "FieldValueForbidden", why))


def _respecified(body: Json, before: Json) -> bool:
    """Tell whether more of a pod's spec changed than may; what was stored past the rules may lack defaults."""
    now = _fixed(body["spec"])
    if now == _fixed(before["spec"]):
        return False
    whole = orjson.loads(orjson.dumps(before))
    _fill_pod(whole)
    return now != _fixed(whole["spec"])


def _fixed(spec: Json) -> Json:
    """Return of a pod's spec what may not change."""
    kept = {
        key: value for key, value in spec.items() if key not in ("activeDeadlineSeconds", "tolerations", "nodeName")
    }
    kept["nodeName"] = spec.get("nodeName", "")
    for name in ("containers", "initContainers"):
        items: Sequence[Json] = spec.get(name) or ()
        kept[name] = [{key: value for key, value in one.items() if key not in _MAY_CHANGE} for one in items]
    return kept


def _go_map(labels: Json) -> str:
    return "{" + ",".join(f'"{key}":"{value}"' for key, value in labels.items()) + "}"
