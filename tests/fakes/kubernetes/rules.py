"""Validation by kind: the part of Kubernetes' checks that clients meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from tests.fakes.kubernetes.defaults import fill, fill_pod
from tests.fakes.kubernetes.failures import denied, invalid
from tests.fakes.kubernetes.kinds import (
    CLUSTERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    OVERRIDES,
    PODS,
    POLICIES,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    Json,
    Kind,
)
from tests.fakes.kubernetes.selectors import object_rule
from tests.fakes.kubernetes.store import Store
from tests.fakes.kubernetes.syntax import (
    check_container,
    check_data,
    check_generated,
    check_indexed,
    check_metadata,
    check_types,
)

Causes = list[tuple[str, str, str]]

KARMADA_HOOK = "propagationpolicy.karmada.io"


def _address(body: Json, store: Store) -> None:
    spec = body["spec"]
    if spec["type"] == "ExternalName":
        return
    number = len(store.shelves[SERVICES].items) + 10 + store.version % 50_000
    spec.setdefault("clusterIP", f"10.96.{number // 250 % 250}.{number % 250 + 1}")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        for at, port in enumerate(spec.get("ports") or ()):
            port.setdefault("nodePort", 30_000 + (number * 16 + at) % 2_768)


def on_create(kind: Kind, body: Json, store: Store) -> None:
    """Set the defaults of a new object; drop fields that a user may not set.

    Raises
    ------
    UnreadableError
        If a server could not decode it.
    """
    check_types(kind, body)
    if kind.status and not kind.keeps_status:
        body.pop("status", None)
        if not kind.custom:
            body["status"] = {}
    fill(kind, body)
    if kind is SERVICES:
        _address(body, store)


def on_update(kind: Kind, body: Json, before: Json, part: str) -> None:
    """Set the defaults of an update; raises as `on_create`."""
    check_types(kind, body)
    if part in ("", "scale"):
        fill(kind, body)
    if kind is SERVICES and not part:
        for name in ("clusterIP", "clusterIPs"):
            body["spec"].setdefault(name, before["spec"].get(name))
        known = {one["port"]: one["nodePort"] for one in before["spec"].get("ports") or () if one.get("nodePort")}
        for port in body["spec"].get("ports") or ():
            if body["spec"]["type"] != "ClusterIP" and port["port"] in known:
                port.setdefault("nodePort", known[port["port"]])


def check(kind: Kind, body: Json, before: Json | None) -> None:
    """Reject an object that breaks a rule of its kind, or changes an immutable field.

    Raises
    ------
    FailureError
        422 with every cause, or 403 as Karmada's webhooks report it.
    """
    causes: Causes = []
    check_metadata(body["metadata"], "metadata", causes)
    if checked := _CHECKED.get(kind):
        checked(body, causes)
    if before is not None:
        _check_fixed(kind, body, before, causes)
    if causes:
        raise invalid(kind, body["metadata"]["name"], causes)
    if kind in (POLICIES, OVERRIDES):
        _check_policy(kind, body)


def spec_changed(kind: Kind, body: Json, before: Json) -> bool:
    """Report whether anything but metadata and status differs; for a deployment, annotations also count."""
    if kind is DEPLOYMENTS and body["metadata"].get("annotations") != before["metadata"].get("annotations"):
        return True
    keys = {*body, *before} - {"metadata", "status", "kind", "apiVersion"}
    return any(body.get(key) != before.get(key) for key in keys)


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
        check_container(container, field, causes)
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
    check_metadata(spec["template"]["metadata"], "spec.template", causes)
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
    check_metadata(spec["template"]["metadata"], "spec.template", causes)
    check_generated(body, causes)
    check_indexed(body, causes)
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
    STATEFUL_SETS: _check_workload,
    JOBS: _check_job,
    SERVICES: _check_service,
    CONFIG_MAPS: check_data,
    EVENTS: _check_event,
    POLICIES: _check_propagation,
    CLUSTERS: _check_cluster,
}


def _check_policy(kind: Kind, body: Json) -> None:
    """Reject what Karmada's webhooks reject."""
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


_IMMUTABLE = "field is immutable"
_FIXED: dict[Kind, tuple[tuple[str, ...], ...]] = {
    DEPLOYMENTS: (("selector",),),
    REPLICA_SETS: (("selector",),),
    STATEFUL_SETS: (("selector",), ("serviceName",), ("podManagementPolicy",), ("volumeClaimTemplates",)),
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
    """Report whether an immutable field of a pod's spec changed; an object stored past the rules may lack defaults."""
    now = _fixed(body["spec"])
    if now == _fixed(before["spec"]):
        return False
    whole = orjson.loads(orjson.dumps(before))
    fill_pod(whole)
    return now != _fixed(whole["spec"])


def _fixed(spec: Json) -> Json:
    """Return the immutable part of a pod's spec."""
    retained = {
        key: value for key, value in spec.items() if key not in ("activeDeadlineSeconds", "tolerations", "nodeName")
    }
    retained["nodeName"] = spec.get("nodeName", "")
    for name in ("containers", "initContainers"):
        items: Sequence[Json] = spec.get(name) or ()
        retained[name] = [{key: value for key, value in one.items() if key not in _MAY_CHANGE} for one in items]
    return retained


def _go_map(labels: Json) -> str:
    return "{" + ",".join(f'"{key}":"{value}"' for key, value in labels.items()) + "}"
