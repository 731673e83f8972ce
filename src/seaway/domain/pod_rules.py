"""Rules for pod specs that users and templates write: fields that give access to nodes or to others are rejected.

References
----------
Kubernetes' Pod Security Standards, "baseline" and "restricted".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

HOST, HOST_PATH, PRIVILEGED = "host", "host-path", "privileged"
SERVICE_ACCOUNT, SCHEDULER = "service-account", "scheduler"
PRIVILEGES = (HOST, HOST_PATH, PRIVILEGED, SERVICE_ACCOUNT, SCHEDULER)
"""Privileges that an operator may grant to all templates."""

FORBIDDEN = {
    "hostNetwork": HOST,
    "hostPID": HOST,
    "hostIPC": HOST,
    "hostPort": HOST,
    "hostPath": HOST_PATH,
    "privileged": PRIVILEGED,
    "allowPrivilegeEscalation": PRIVILEGED,
    "procMount": PRIVILEGED,
    "sysctls": PRIVILEGED,
    "seLinuxOptions": PRIVILEGED,
    "windowsOptions": PRIVILEGED,
    "serviceAccount": SERVICE_ACCOUNT,
    "serviceAccountName": SERVICE_ACCOUNT,
    "serviceAccountToken": SERVICE_ACCOUNT,
    "automountServiceAccountToken": SERVICE_ACCOUNT,
    "schedulerName": SCHEDULER,
    "nodeName": "",
    "externalIPs": "",
    "resourceClaims": "",
    "ephemeralContainers": "",
}
"""Forbidden fields, with the privilege that allows each field. An empty text means that no privilege allows it."""

CONNECTIONS = (("httpGet",), ("tcpSocket",))
"""Connections of nodes to containers. Since Kubernetes 1.34, "baseline" does not allow another host there."""

PROFILES = frozenset({"seccompProfile", "appArmorProfile"})
FREE_RESOURCES = frozenset({"cpu", "memory", "storage", "ephemeral-storage"})
FOR_DEVICES = "is set by Seaway: request devices in the job's resources"

_PLACEHOLDER = re.compile(r"\$\{")

Path = tuple[str | int, ...]


def field_problem(path: Path, key: str, value: object, privileges: Collection[str] = ()) -> str:
    """Return the reason why a field of a pod spec is rejected; empty for none."""
    return (
        _forbidden(key, value, privileges)
        or _probed(path, key, value, privileges)
        or _profile(key, value, privileges)
        or _device(path, key)
    )


def fields_of(value: object, path: Path = ()) -> Iterator[tuple[Path, str, Any]]:
    """Yield all fields of a document, each with the path of its mapping."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield path, str(key), each
            yield from fields_of(each, (*path, str(key)))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from fields_of(each, (*path, place))


def _forbidden(key: str, value: object, privileges: Collection[str]) -> str:
    if key == "capabilities":
        if isinstance(value, dict) and not value.get("add") and not _PLACEHOLDER.search(str(value)):
            return ""
        return "" if PRIVILEGED in privileges else f"adds capabilities, which needs the power {PRIVILEGED!r}"
    if key not in FORBIDDEN or value in (None, False, 0) or FORBIDDEN[key] in privileges:
        return ""
    return _power(FORBIDDEN[key]) if FORBIDDEN[key] else "is not for templates to set"


def _power(privilege: str) -> str:
    return f"needs the power {privilege!r}, which templates have not"


def _probed(path: Path, key: str, value: object, privileges: Collection[str]) -> str:
    """Return an error if a probe or hook makes nodes connect to a host other than the pod."""
    if key != "host" or path[-1:] not in CONNECTIONS or not value or HOST in privileges:
        return ""
    return _power(HOST)


def _profile(key: str, value: object, privileges: Collection[str]) -> str:
    if key not in PROFILES or PRIVILEGED in privileges:
        return ""
    kind = value.get("type") if isinstance(value, dict) else None
    return "" if kind in ("RuntimeDefault", "Localhost") else "may not leave a container unconfined"


def _device(path: Path, key: str) -> str:
    """Return an error for a request of devices."""
    if path and path[-1] == "resources":
        return FOR_DEVICES if key == "claims" else ""
    if path[-2:] in (("resources", "limits"), ("resources", "requests")):
        return "" if key in FREE_RESOURCES or key.startswith("hugepages-") else FOR_DEVICES
    return ""
