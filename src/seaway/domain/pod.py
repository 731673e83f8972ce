"""Pod specs of jobs: a user's own fields of the pods of a job, which Seaway completes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.domain.pod_rules import field_problem, fields_of
from seaway.domain.reasons import Reason
from seaway.domain.units import cpu_milli, memory_mib

Pod = Mapping[str, Any]

MAIN = "main"
"""Name of the container of the program. Without this container, the first one is that of the program."""

MAX_BYTES = 64 * 1024

OWN = frozenset({
    "containers", "initContainers", "volumes", "securityContext", "dnsConfig", "dnsPolicy", "hostAliases",
    "shareProcessNamespace", "runtimeClassName", "readinessGates", "os",
})  # fmt: skip
"""Fields that a pod spec of a job may have."""

INSTEAD = {
    "nodeSelector": "placement.node_labels", "tolerations": "placement.tolerations", "affinity": "placement",
    "topologySpreadConstraints": "placement", "restartPolicy": "restart_policy", "activeDeadlineSeconds": "time_limit",
    "terminationGracePeriodSeconds": "checkpoint", "priorityClassName": "priority", "priority": "priority",
    "preemptionPolicy": "preemptible", "nodeName": "placement.clusters",
}  # fmt: skip
"""Fields of a job to use instead of fields of its pods."""

OF_CONTAINER = frozenset({
    "name", "image", "command", "args", "workingDir", "env", "ports", "volumeMounts", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle", "securityContext", "terminationMessagePath", "terminationMessagePolicy",
    "imagePullPolicy", "stdin", "stdinOnce", "tty", "resources", "restartPolicy",
})  # fmt: skip
"""Fields that a container may have."""

_NAME = re.compile(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_OURS = re.compile(r"volume-[0-9]+|workdir|hosts|shm|dshm|state|seaway.*")
"""Names of volumes that Seaway adds."""

_FREE_SOURCES = frozenset({"emptyDir", "downwardAPI"})
_FREE_VALUES = frozenset({"fieldRef", "resourceFieldRef"})


def program_place(pod: Pod) -> int:
    """Return the position of the program among the containers of a valid pod spec."""
    containers = pod["containers"]
    return next((at for at, each in enumerate(containers) if each.get("name") == MAIN), 0)


def parts_of(pod: Pod) -> tuple[int, int]:
    """Return the CPU, thousandths of a core, and memory, MiB, of the containers beside the program.

    Raises
    ------
    RejectedError
        If an amount is invalid.
    """
    beside = [each for at, each in enumerate(pod["containers"]) if at != program_place(pod)]
    beside += [each for each in pod.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    cpu = memory = 0
    for each in beside:
        given = each.get("resources") or {}
        amounts = {**(given.get("limits") or {}), **(given.get("requests") or {})}
        cpu += cpu_milli(amounts.get("cpu", 0), where="run.pod")
        memory += memory_mib(amounts.get("memory", 0), where="run.pod")
    return cpu, memory


def require_pod(pod: object, reserved: Callable[[str], str], names: Collection[str] = ()) -> None:
    """Check the pod spec of a job.

    Parameters
    ----------
    reserved
        Returns the reason why no volume may be mounted at a path; empty for none.
    names
        Names of containers that only the program may have.

    Raises
    ------
    RejectedError
        If it has a field that a job may not set. `also` has all other reasons.
    """
    errors = [RejectedError(text, where=f"run.pod{path}") for path, text in _problems(pod, reserved, names)]
    if errors:
        raise RejectedError.together(errors)


def _problems(pod: object, reserved: Callable[[str], str], taken: Collection[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(pod, Mapping):
        yield "", Reason("pod_not_a_spec")
        return
    yield from _top(pod)
    for path, key, value in fields_of(pod):
        if path and (root := _as_root(path, key, value)):
            yield _text((*path, key)), root
        elif path and field_problem(path, key, value):
            yield _text((*path, key)), Reason("pod_forbidden")
    yield from _containers(pod, reserved, taken)
    for at, each in enumerate(_list(pod, "volumes")):
        if not isinstance(each, Mapping) or not isinstance(each.get("name"), str) or _OURS.fullmatch(each["name"]):
            yield f".volumes[{at}].name", Reason("pod_volume_name")
        elif others := each.keys() - _FREE_SOURCES - {"name"}:
            yield f".volumes[{at}]", Reason("pod_volume_kind", kind=str(min(others, key=str)))


def _top(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the fields of the pod that a job has itself, or may not set, and those of another type."""
    for name in pod:
        if name in INSTEAD:
            yield f".{name}", Reason("pod_use_field", field=INSTEAD[name])
        elif name not in OWN:
            forbidden = field_problem((), str(name), pod[name])
            yield f".{name}", Reason("pod_forbidden" if forbidden else "pod_unknown_field")
    for name in ("securityContext", "dnsConfig"):
        if not isinstance(pod.get(name, {}), Mapping):
            yield f".{name}", Reason("pod_needs_fields")
    for name in ("volumes", "initContainers"):
        if not isinstance(pod.get(name, []), list):
            yield f".{name}", Reason("pod_needs_list")


def _containers(pod: Pod, reserved: Callable[[str], str], taken: Collection[str]) -> Iterator[tuple[str, str]]:
    names, listed = set[str](), _list(pod, "containers")
    if not listed:
        yield ".containers", Reason("pod_needs_container")
    main = program_place({"containers": [each if isinstance(each, Mapping) else {} for each in listed] or [{}]})
    for field in ("containers", "initContainers"):
        for at, each in enumerate(_list(pod, field)):
            where = f".{field}[{at}]"
            if not isinstance(each, Mapping):
                yield where, Reason("pod_needs_fields")
                continue
            name, own = each.get("name"), field == "containers" and at == main
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names or (name in taken and not own):
                yield f"{where}.name", Reason("pod_container_name")
            else:
                names.add(name)
            for key in each.keys() - OF_CONTAINER:
                yield f"{where}.{key}", Reason("pod_unknown_field")
            if own and each.get("resources"):
                yield f"{where}.resources", Reason("pod_use_field", field="resources")
            yield from _shapes(each, where)
            yield from _mounts(each, where, reserved)
            yield from _values(each, where)


def _shapes(container: Pod, where: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a container that have another type."""
    resources = container.get("resources", {})
    if not isinstance(resources, Mapping) or not all(isinstance(each, Mapping) for each in resources.values()):
        yield f"{where}.resources", Reason("pod_needs_fields")
    if not isinstance(container.get("securityContext", {}), Mapping):
        yield f"{where}.securityContext", Reason("pod_needs_fields")
    for key in ("ports", "env", "volumeMounts"):
        given = container.get(key, [])
        if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
            yield f"{where}.{key}", Reason("pod_needs_list")


def _mounts(container: Pod, where: str, reserved: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    for at, each in enumerate(_list(container, "volumeMounts")):
        path = each.get("mountPath") if isinstance(each, Mapping) else None
        if not isinstance(path, str):
            yield f"{where}.volumeMounts[{at}]", Reason("pod_needs_fields")
        elif why := reserved(path):
            yield f"{where}.volumeMounts[{at}].mountPath", why


def _values(container: Pod, where: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that read objects, for which the job has fields."""
    for at, each in enumerate(_list(container, "env")):
        source = each.get("valueFrom") if isinstance(each, Mapping) else None
        if not isinstance(each, Mapping) or not isinstance(each.get("name"), str):
            yield f"{where}.env[{at}]", Reason("pod_needs_fields")
        elif source is not None and not (isinstance(source, Mapping) and source.keys() <= _FREE_VALUES):
            yield f"{where}.env[{at}].valueFrom", Reason("pod_use_field", field="env_from_secret")


def _as_root(path: tuple[str | int, ...], key: str, value: object) -> str:
    if path[-1] != "securityContext":
        return ""
    if key == "capabilities":
        if isinstance(value, Mapping) and value.get("add"):
            return ""  # forbidden
        drops = value.get("drop") if isinstance(value, Mapping) else None
        return "" if isinstance(drops, list) and "ALL" in drops else Reason("pod_drop_all")
    is_root = (key == "runAsNonRoot" and value is False) or (key == "runAsUser" and value == 0)
    return Reason("pod_root") if is_root else ""


def _list(owner: Pod, name: str) -> list[Any]:
    value = owner.get(name)
    return value if isinstance(value, list) else []


def _text(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
