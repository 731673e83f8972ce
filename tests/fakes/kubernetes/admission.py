"""Rules of a namespace for its pods: LimitRanges, Pod Security Standards and ResourceQuotas, in the order of a server.

References
----------
Kubernetes 1.36: ``plugin/pkg/admission/limitranger``, ``plugin/pkg/admission/resourcequota``,
``pod-security-admission/policy``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.fakes.kubernetes.defaults import requests_of
from tests.fakes.kubernetes.failures import forbidden
from tests.fakes.kubernetes.kinds import LIMIT_RANGES, NAMESPACES, PODS, RESOURCE_QUOTAS, Json, Kind
from tests.fakes.kubernetes.quantities import milli, written
from tests.fakes.kubernetes.store import Store

ENFORCE = "pod-security.kubernetes.io/enforce"
ENDED = ("Succeeded", "Failed")
VOLUMES = {
    *("name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim"),
    *("projected", "secret"),
}


class NamespaceAdmission:
    """Admission of new pods by the rules of their namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, kind: Kind, body: Json, old: Json | None) -> None:
        """Set the defaults of a new pod, and reject it if it breaks a rule."""
        if kind is not PODS or old is not None:
            return
        meta = body["metadata"]
        for limits in self._all(LIMIT_RANGES, meta["namespace"]):
            _set_defaults(body, limits)
        namespace = self._store.get(NAMESPACES, "", meta["namespace"])
        level = namespace.labels.get(ENFORCE, "privileged")
        if broken := list(violations(body["spec"], level)):
            raise forbidden(kind, meta["name"], f'violates PodSecurity "{level}:latest": {", ".join(broken)}')
        for quota in self._all(RESOURCE_QUOTAS, meta["namespace"]):
            self._charge(kind, body, quota)

    def _all(self, kind: Kind, namespace: str) -> list[Json]:
        known = kind in self._store.shelves
        return [each.view() for each in self._store.all(kind, namespace)] if known else []

    def _charge(self, kind: Kind, body: Json, quota: Json) -> None:
        """Reject a pod for which the quota has no room, or that lacks a value that the quota limits."""
        hard, name = (quota.get("spec") or {}).get("hard") or {}, body["metadata"]["name"]
        asked = _use(body)
        limited = {key: value for key, value in hard.items() if key == "pods" or "." in key}
        if lacking := sorted(key for key in limited if key.split(".")[-1] in ("cpu", "memory") and key not in asked):
            raise forbidden(kind, name, f"failed quota: {quota['metadata']['name']}: must specify {','.join(lacking)}")
        used: Counter[str] = Counter()
        for each in self._store.all(PODS, body["metadata"]["namespace"]):
            if (each.view().get("status") or {}).get("phase") not in ENDED:
                used.update(_use(each.view()))
        over = sorted(key for key in limited if asked.get(key) and used[key] + asked[key] > milli(limited[key]))
        if over:
            said = [",".join(f"{key}={written(of[key])}" for key in over) for of in (asked, used)]
            most = ",".join(f"{key}={limited[key]}" for key in over)
            why = f"exceeded quota: {quota['metadata']['name']}, requested: {said[0]}, used: {said[1]}, limited: {most}"
            raise forbidden(kind, name, why)


def _use(pod: Json) -> Counter[str]:
    """Return the use of a pod as quotas count it, in thousandths."""
    found = Counter({"pods": 1000})
    for container in pod["spec"].get("containers") or ():
        found.update({f"requests.{key}": milli(value) for key, value in requests_of(container).items()})
        limits = (container.get("resources") or {}).get("limits") or {}
        found.update({f"limits.{key}": milli(value) for key, value in limits.items()})
    return found


def _set_defaults(pod: Json, limits: Json) -> None:
    for rule in (limits.get("spec") or {}).get("limits") or ():
        if rule.get("type") != "Container":
            continue
        for container in pod["spec"].get("containers") or ():
            resources = container.setdefault("resources", {})
            for name, given in (("limits", "default"), ("requests", "defaultRequest")):
                if more := {**(rule.get(given) or {}), **(resources.get(name) or {})}:
                    resources[name] = more


def violations(spec: Json, level: str) -> Iterator[str]:
    """Yield the rules of a Pod Security Standard that a pod breaks, as far as tests need them."""
    if level == "privileged":
        return
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    contexts = [each.get("securityContext") or {} for each in containers]
    pod = spec.get("securityContext") or {}
    if any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC")):
        yield "host namespaces"
    if any("hostPath" in each for each in spec.get("volumes") or ()):
        yield "hostPath volumes"
    if any(each.get("privileged") for each in contexts):
        yield "privileged"
    if any(map(_names_hosts, containers)):
        yield "probe or lifecycle host"
    if level == "restricted":
        yield from _restricted(spec, pod, contexts)


def _names_hosts(container: Json) -> bool:
    """Report whether a probe or hook of a container names a host, which Kubernetes forbids since 1.34."""
    hooks = container.get("lifecycle") or {}
    called = [container.get(f"{name}Probe") for name in ("liveness", "readiness", "startup")]
    called += [hooks.get(name) for name in ("postStart", "preStop")]
    return any(((each or {}).get(how) or {}).get("host") for each in called for how in ("httpGet", "tcpSocket"))


def _restricted(spec: Json, pod: Json, contexts: list[Json]) -> Iterator[str]:
    if any(each.get("allowPrivilegeEscalation") is not False for each in contexts):
        yield "allowPrivilegeEscalation != false"
    if any("ALL" not in ((each.get("capabilities") or {}).get("drop") or ()) for each in contexts):
        yield "unrestricted capabilities"
    if any(each.keys() - VOLUMES for each in spec.get("volumes") or ()):
        yield "restricted volume types"
    if any(each.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True for each in contexts):
        yield "runAsNonRoot != true"
    if any(each.get("runAsUser", pod.get("runAsUser")) == 0 for each in contexts):
        yield "runAsUser=0"
    profiles = [each.get("seccompProfile") or pod.get("seccompProfile") or {} for each in contexts]
    if any(each.get("type") not in ("RuntimeDefault", "Localhost") for each in profiles):
        yield "seccompProfile"
