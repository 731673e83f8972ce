"""Pod templates of Kubernetes: containers, resources, and rules for nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.domain.gpu_models import AMD, NVIDIA
from seaway.domain.runtime import RESERVED_NAMES
from seaway.domain.units import cpu_text, memory_text
from seaway.wire.fields import cpu_milli, memory_mib
from seaway.wire.job_imports.converted import NEVER, Converted, Result, Section, put_name, shown
from seaway.wire.job_imports.foreign_marks import OF_KUBERNETES, put_mark
from seaway.wire.queue_imports.found import quantity

_PRIVILEGE = "containers have no privileges: the cluster sets user and rights"
_FIXED = "Seaway sets it"
CHANGED = {
    "priorityClassName": "classes have no value here: give --priority", "priority": "scales differ: give --priority",
    "preemptionPolicy": "the queue has rules for preemption: give --preemptible",
}  # fmt: skip
CHANGED_CONTAINER = {
    "livenessProbe": "a program that hangs is not restarted: give --time-limit",
    "readinessProbe": "a replica is ready when its program runs", "startupProbe": "a program may start for any time",
}  # fmt: skip

DROPPED = {
    "schedulerName": "Seaway selects the node", "runtimeClassName": "the operator sets it for each cluster",
    "enableServiceLinks": _FIXED, "automountServiceAccountToken": "pods have no token", "dnsPolicy": _FIXED,
    "overhead": _FIXED,
}  # fmt: skip
REFUSED = {
    "serviceAccountName": _PRIVILEGE, "serviceAccount": _PRIVILEGE, "securityContext": _PRIVILEGE,
    "hostNetwork": _PRIVILEGE, "hostPID": _PRIVILEGE, "hostIPC": _PRIVILEGE, "shareProcessNamespace": _PRIVILEGE,
    "imagePullSecrets": "the operator sets pull secrets for each cluster", "resourceClaims": "give resources.gpus",
    "nodeName": "names a node: give --cluster, or placement.node_labels", "hostAliases": "has no counterpart",
    "dnsConfig": "has no counterpart", "hostname": "names of pods are generated", "subdomain": "names are generated",
    "resources": "is for the whole pod: give the resources of the container",
}  # fmt: skip
DROPPED_CONTAINER = {
    "imagePullPolicy": "the cluster's default is used", "terminationMessagePath": _FIXED,
    "terminationMessagePolicy": _FIXED, "stdin": "containers have no standard input",
    "stdinOnce": "containers have no standard input", "tty": "seaway exec has a terminal",
}  # fmt: skip
REFUSED_CONTAINER = {
    "volumeDevices": "is not supported", "securityContext": _PRIVILEGE,
    "workingDir": "has no counterpart: use cd in the command", "lifecycle": "has no counterpart",
    "restartPolicy": "has no counterpart", "resizePolicy": "has no counterpart",
}  # fmt: skip
GPUS = ("nvidia.com/gpu", "volcano.sh/vgpu-number", "amd.com/gpu")
MEMORY = ("nvidia.com/gpumem", "volcano.sh/vgpu-memory")
CORES = ("nvidia.com/gpucores", "volcano.sh/vgpu-cores")
MIG = "nvidia.com/mig-"
MAX_AMOUNT, MAX_SECONDS = 1 << 40, 10**9
PERCENT = "nvidia.com/gpumem-percentage"


def put_metadata(out: Converted, metadata: Section, stem: str) -> None:
    """Set the name, the queue and the labels from the metadata of an object."""
    name, prefix = metadata.text("name"), metadata.text("generateName")
    put_name(
        out, metadata.at("name" if name else "generateName") if name or prefix else "", "name", name or prefix or stem
    )
    _labels(out, metadata)
    _annotations(out, metadata)
    if metadata.take("namespace"):
        out.drop(metadata.at("namespace"), "a tenant has a namespace in each cluster: give --tenant")
    known = ("creationTimestamp", "uid", "resourceVersion", "generation", "managedFields", "selfLink")
    metadata.finish(dict.fromkeys(known, "belongs to the object in its cluster"), {})


def _labels(out: Converted, metadata: Section) -> None:
    """Add labels, except those that Kubernetes sets, and those of schedulers, which set fields of the job."""
    where, own, ours = metadata.at("labels"), dict[str, str](), False
    for key, value in metadata.pairs("labels").items():
        if key in OF_KUBERNETES:
            ours = True
        elif not put_mark(out, f"{where}.{key}", key, value):
            own[key] = value
    if ours:
        out.drop(where, "those of the object in its cluster are set again")
    if own:
        out.keep(where, "labels", {**(out.get("labels") or {}), **own}, over=True)


def _annotations(out: Converted, metadata: Section) -> None:
    for key, value in metadata.pairs("annotations").items():
        where = f"{metadata.at('annotations')}.{key}"
        if not put_mark(out, where, key, value):
            out.drop(where, "annotations are not sent")


def put_pod(out: Converted, template: Section) -> None:
    """Set the fields of a job from a pod template."""
    metadata = template.section("metadata")
    _labels(out, metadata)
    _annotations(out, metadata)
    metadata.finish(dict.fromkeys(("name", "creationTimestamp", "namespace"), "names of pods are generated"), {})
    put_pod_spec(out, template.section("spec"))
    template.finish({}, {})


def put_pod_spec(out: Converted, spec: Section) -> None:
    """Set the fields of a job from the spec of a pod."""
    _containers(out, spec)
    labels = spec.pairs("nodeSelector")
    if labels:
        out.keep(spec.at("nodeSelector"), "placement.node_labels", labels)
    tolerations = [_toleration(out, each) for each in spec.sections("tolerations")]
    if tolerations:
        text = "" if all(each["key"] for each in tolerations) else "placement.tolerations: every taint"
        out.keep(spec.at("tolerations"), "placement.tolerations", tolerations, text)
    _affinity(out, spec.section("affinity"), labels)
    if grace := spec.number("terminationGracePeriodSeconds", most=MAX_SECONDS):
        where = spec.at("terminationGracePeriodSeconds")
        out.keep(where, "checkpoint", {"signal": "SIGTERM", "grace": f"{grace}s"})
    if limit := spec.number("activeDeadlineSeconds", most=MAX_SECONDS):
        out.keep(spec.at("activeDeadlineSeconds"), "time_limit", f"{limit}s")
    if policy := spec.text("restartPolicy"):
        out.note(spec.at("restartPolicy"), f"{policy}: Seaway restarts by retries")
    for name in ("serviceAccountName", "serviceAccount"):
        if spec.take(name) not in (None, "default"):
            out.refuse(spec.at(name), _PRIVILEGE)
    for each in spec.sections("topologySpreadConstraints"):
        if each.text("whenUnsatisfiable") == "ScheduleAnyway":
            out.drop(each.path, "is a preference: the policy of the queue selects nodes")
        else:
            out.refuse(each.path, "requires a spread of the replicas: the policy of the queue selects nodes")
    spec.change(CHANGED)
    spec.finish(DROPPED, REFUSED)


CPU_MILLI, MEMORY_MIB = 100, 128
"""Part of a container that runs beside the program and requests nothing."""


def _containers(out: Converted, spec: Section) -> None:
    """Set the program, which is the container with the GPUs or else the first, and the containers beside it."""
    given: list[Any] = spec.take("containers", list) or []
    sections = [Section(out, each, f"{spec.at('containers')}[{at}]") for at, each in enumerate(given)]
    with_gpus = [at for at, each in enumerate(given) if _has_gpus(each)]
    if not given or len(with_gpus) > 1:
        text = f"has GPUs in {len(with_gpus)} containers: one program has them" if given else "has no container"
        out.refuse(spec.at("containers"), text)
    main = with_gpus[0] if with_gpus else 0
    volumes = Volumes(out, {each.text("name"): each for each in spec.sections("volumes")})
    parts = []
    for at, each in enumerate(sections):
        volumes.mount(each)
        if at == main:
            each.take("name")
            _program(out, each, partial(_put_program, out))
            _resources(out, each.section("resources"))
            each.change(CHANGED_CONTAINER)
            each.finish(DROPPED_CONTAINER, REFUSED_CONTAINER)
        else:
            parts.append(_beside(out, "containers", each))
    first = spec.sections("initContainers")
    for each in first:
        volumes.mount(each)
    parts += [_beside(out, "init_containers", each) for each in first]
    volumes.finish(len(sections) + len(first))
    if parts:
        _add_parts(out, spec.at("containers" if len(sections) > 1 else "initContainers"), parts)


def _put_program(out: Converted, where: str, name: str, value: Any) -> None:  # noqa: ANN401  # any value of a job
    """Set a field of the program, whose ports are TCP and have no names."""
    if name != "ports":
        out.keep(where, f"run.{name}", value)
        return
    if udp := [each["port"] for each in value if "protocol" in each]:
        out.refuse(where, f"has UDP port {udp[0]}: only containers beside the program have UDP ports")
    named = [each["name"] for each in value if "name" in each]
    numbers = list(dict.fromkeys(each["port"] for each in value))
    if named:
        out.change(where, "run.ports", numbers, "ports of the program have no names")
    else:
        out.keep(where, "run.ports", numbers)


def _has_gpus(container: object) -> bool:
    resources = container.get("resources") if isinstance(container, dict) else None
    amounts = [resources.get(kind) for kind in ("limits", "requests")] if isinstance(resources, dict) else []
    return any(isinstance(each, dict) and any(map(_is_device, each)) for each in amounts)


def _is_device(name: object) -> bool:
    return name in GPUS or str(name).startswith(MIG)


@dataclass(slots=True)
class Part:
    """Container besides that of the program.

    Attributes
    ----------
    fields
        Its fields in the job.
    where
        Its path in the file.
    ends
        True for an init container that ends before the program starts.
    """

    fields: dict[str, Any]
    where: str
    cpu_milli: int
    memory_mib: int
    ends: bool


def _beside(out: Converted, field: str, container: Section) -> Part:
    """Add a container to those of the job."""
    listed = out.fields.setdefault(field, [])
    name = container.text("name") or f"container-{len(listed) + 1}"
    if name in RESERVED_NAMES:
        out.note(container.at("name"), f"is side-{name}: the program has such a name", Result.CHANGED)
        name = f"side-{name}"
    fields: dict[str, Any] = {"name": name}
    listed.append(fields)
    out.lines[f"{field}[{len(listed) - 1}]"] = out.line(container.path)
    ends = field == "init_containers" and container.text("restartPolicy") != "Always"
    if field == "init_containers" and not ends:
        fields["restart_policy"] = "Always"

    def put(where: str, path: str, value: Any) -> None:  # noqa: ANN401  # any value of a job
        outer, _, inner = path.partition(".")
        if inner:
            fields.setdefault(outer, {})[inner] = value
        else:
            fields[outer] = value
        out.note(where, f"{field}: {name}: {path}: {shown(value)}")

    _program(out, container, put)
    amounts = Converted(out.kind, out.lines_of, out.ignored)
    _resources(amounts, container.section("resources"))
    for kind in ("gpus", "mig", "gpu_memory", "gpu_cores"):
        if amounts.get(f"resources.{kind}"):
            out.refuse(f"{container.path}.resources", "has GPUs, but only the program of a job has them")
            break
    out.refused += amounts.refused
    out.notes += [each for each in amounts.notes if each.result is Result.DROPPED]
    container.change(CHANGED_CONTAINER)
    container.finish(DROPPED_CONTAINER, REFUSED_CONTAINER)
    cpu, memory = amounts.get("resources.cpu") or 0, amounts.get("resources.memory") or 0
    if ends and (cpu or memory):
        out.note(f"{container.path}.resources", "may use all CPU and memory of the replica", Result.CHANGED)
    return Part(fields, container.path, cpu_milli(cpu), memory_mib(memory), ends)


def _add_parts(out: Converted, where: str, parts: list[Part]) -> None:
    """Give each container its part of the resources, which are the sum of those of all containers."""
    for name, figure, least, read, text in (
        ("cpu", "cpu_milli", CPU_MILLI, cpu_milli, cpu_text),
        ("memory", "memory_mib", MEMORY_MIB, memory_mib, memory_text),
    ):
        own, beside = read(out.get(f"resources.{name}") or 0), [each for each in parts if not each.ends]
        if not own and not any(getattr(each, figure) for each in parts):
            continue
        for each in beside:
            if not getattr(each, figure):
                setattr(each, figure, least)
                out.note(each.where, f"requests no {name}, and gets {text(least)}", Result.CHANGED)
            each.fields[name] = text(getattr(each, figure))
        total = max(own, least if beside else 0) + sum(getattr(each, figure) for each in beside)
        first = max((getattr(each, figure) for each in parts if each.ends), default=0)
        if beside or first > total:
            said = "the sum of all containers" if first <= total else "that of an init container"
            out.change(where, f"resources.{name}", text(max(total, first)), said, over=True)


Put = Callable[[str, str, Any], None]
"""Sets a field of a program from a path in the file: its name, and its value."""


def _program(out: Converted, container: Section, put: Put) -> None:
    """Set image, command, variables and ports from a container."""
    for name in ("image", "command", "args"):
        value = container.take(name, str if name == "image" else list)
        if value:
            put(container.at(name), name, [str(each) for each in value] if isinstance(value, list) else value)
    known = set()
    for each in container.sections("env"):
        name, value = each.text("name"), each.take("value")
        known.add(name)
        if "valueFrom" in each.names():
            _reference(name, each.section("valueFrom"), put)
        else:
            put(each.path, f"env.{name}", "" if value is None else str(value))
        each.finish({}, {})
    for each in reversed(container.sections("envFrom")):  # the last one takes precedence
        _all_keys(out, each, known, put)
    ports = [_port(out, each) for each in container.sections("ports")]
    if found := [each for each in ports if each]:
        put(container.at("ports"), "ports", found)


def _port(out: Converted, port: Section) -> dict[str, Any]:
    """Return a port of a container; empty if it is refused."""
    number, name, protocol = port.number("containerPort", 1, 65_535), port.text("name"), port.text("protocol") or "TCP"
    for field in ("hostPort", "hostIP"):
        if port.take(field):
            out.refuse(port.at(field), _PRIVILEGE)
    port.finish({}, {})
    if protocol not in ("TCP", "UDP"):
        out.refuse(port.at("protocol"), f"is {protocol}: only TCP and UDP ports have a counterpart")
        return {}
    if number is None:
        return {}
    return {"port": number} | ({"name": name} if name else {}) | ({"protocol": "UDP"} if protocol == "UDP" else {})


REFERENCES = (("secret", "Secret", "env_from_secret"), ("configMap", "ConfigMap", "env_from_config_map"))
"""Begin of the names of references, kind of the object, and field of the job."""


def _reference(name: str, given: Section, put: Put) -> None:
    """Set a variable with the value of a key of an object."""
    for kind, _, path in REFERENCES:
        if f"{kind}KeyRef" in given.names():
            key = given.section(f"{kind}KeyRef")
            put(given.at(f"{kind}KeyRef"), f"{path}.{name}", f"{key.text('name')}/{key.text('key')}")
            key.finish({"optional": "the object must exist"}, {})
    given.finish({}, dict.fromkeys(given.names(), "has no counterpart: give a value"))


def _all_keys(out: Converted, given: Section, known: set[str], put: Put) -> None:
    """Set a variable for each key of an object that is in the file."""
    prefix = given.text("prefix")
    for begin, kind, path in REFERENCES:
        if f"{begin}Ref" not in given.names():
            continue
        reference = given.section(f"{begin}Ref")
        name = reference.text("name")
        reference.finish({"optional": "the object must exist"}, {})
        keys = out.objects.get((kind, name))
        if keys is None:
            option = f"--{path.replace('_', '-')} NAME={name}/KEY"
            text = f"the keys of {kind} {name} are not in the file: give each with {option}, and --ignore envFrom"
            out.refuse(given.path, text)
        for key in keys or ():
            if f"{prefix}{key}" not in known:
                known.add(f"{prefix}{key}")
                put(given.path, f"{path}.{prefix}{key}", f"{name}/{key}")
    given.finish({}, {})


SOURCES = {
    "persistentVolumeClaim": ("claim", "claimName"),
    "secret": ("secret", "secretName"),
    "configMap": ("config_map", "name"),
}
"""Field of a volume of a job, and field with the name of the object, for each source in Kubernetes."""

EMPTY_DIR = "10Gi"
"""Maximum size of an empty folder without a limit."""


class Volumes:
    """Volumes of a pod, which are at the same path in all containers of a job.

    Parameters
    ----------
    volumes
        Volumes of the pod by name.
    """

    def __init__(self, out: Converted, volumes: dict[str, Section]) -> None:
        self._out, self._volumes = out, volumes
        self._sources: dict[str, dict[str, Any] | None] = {}
        self._mounted: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        self._mounts = 0

    def mount(self, container: Section) -> None:
        """Add the volumes that a container mounts."""
        for mount in container.sections("volumeMounts"):
            name, path = mount.text("name"), mount.text("mountPath")
            sub_path, read_only = mount.text("subPath"), mount.take("readOnly")
            mount.finish({"mountPropagation": _FIXED}, {})
            if name not in self._volumes:
                self._out.refuse(mount.path, "names no volume of the pod")
                continue
            if name not in self._sources:
                self._sources[name] = _source(self._out, self._volumes[name], path)
            if not (source := self._sources[name]):
                continue
            extra = {key: value for key, value in (("sub_path", sub_path), ("read_only", read_only)) if value}
            self._add(mount.path, name, {"path": path, **source, **extra})

    def finish(self, containers: int) -> None:
        """Report volumes that no container mounts, and those that not all of them mount."""
        if self._mounted and self._mounts < containers * len(self._mounted):
            self._out.note("", "volumes are mounted in all containers", Result.CHANGED)
        for each in self._volumes.values():
            why = "is not a volume of a job: use a claim, a Secret or a ConfigMap"
            each.finish({}, dict.fromkeys(each.names(), why))

    def _add(self, where: str, name: str, volume: dict[str, Any]) -> None:
        path = volume["path"]
        known = self._mounted.setdefault(path, volume)
        self._mounts += 1
        if self._names.setdefault(path, name) != name or known.get("sub_path") != volume.get("sub_path"):
            self._out.refuse(where, f"mounts another volume at {path}: all containers have the same volumes")
        elif known is not volume and known.get("read_only") and not volume.get("read_only"):
            del known["read_only"]
            self._out.note(where, "can be written by all containers", Result.CHANGED)
        self._out.keep(where, "volumes", list(self._mounted.values()), f"volumes: {path}", over=True)


def _source(out: Converted, volume: Section, path: str) -> dict[str, Any]:
    """Return the source of a volume; empty for shared memory, which is a resource."""
    for kind, (name, key) in SOURCES.items():
        if kind in volume.names():
            source = volume.section(kind)
            found = {name: source.text(key)}
            read_only = source.take("readOnly", bool)
            source.finish({"defaultMode": "files can be read by all", "optional": "the object must exist"}, {})
            return found | ({"read_only": True} if read_only else {})
    if (given := volume.take("emptyDir")) is None:
        return {}
    empty = Section(out, given, volume.at("emptyDir"))
    limit, medium = empty.text("sizeLimit"), empty.text("medium")
    empty.finish({}, {})
    if medium == "Memory" and path == "/dev/shm" and limit:
        out.keep(empty.at("sizeLimit"), "resources.shm_size", limit)
        return {}
    if medium:
        out.refuse(empty.at("medium"), "is for /dev/shm with a sizeLimit only")
    if not limit:
        out.note(empty.path, f"is limited to {EMPTY_DIR}", Result.CHANGED)
    return {"empty_dir": limit or EMPTY_DIR}


def _resources(out: Converted, resources: Section) -> None:
    """Set the resources. A request takes precedence over a limit, as it does for Kubernetes' scheduler."""
    given: dict[str, tuple[str, Any]] = {}
    for kind in ("limits", "requests"):
        for name, value in (resources.take(kind, dict) or {}).items():
            where = f"{resources.path}.{kind}.{name}"
            if name in given and given[name][1] != value:
                out.drop(given[name][0], "the limit is that of the request")
            given[str(name)] = (where, value)
    resources.finish({}, {"claims": "give resources.gpus"})
    devices = [name for name in given if _is_device(name)]
    for name in devices[1:]:
        out.refuse(given[name][0], f"is given with {devices[0]}: a replica has devices of one kind")
        del given[name]
    for name, (where, value) in given.items():
        try:
            _resource(out, name, where, value)
        except RejectedError as error:
            out.refuse(where, error.message)
    for name, (where, _) in given.items():
        if vendor := vendor_of(name):
            out.keep(where, "resources.gpu_vendor", [vendor])
            break


def vendor_of(resource: str) -> str:
    """Return the vendor of the GPUs that a resource of pods stands for; empty for other resources."""
    if resource.startswith("amd.com/"):
        return AMD
    return NVIDIA if resource.startswith(("nvidia.com/", "volcano.sh/vgpu-")) else ""


def _resource(out: Converted, name: str, where: str, value: object) -> None:
    amount = quantity(value)
    text = str(value)
    if name == "cpu":
        milli = -(-amount * 1000 // 1)
        out.keep(where, "resources.cpu", int(amount) if amount.denominator == 1 else f"{milli}m")
    elif name == "memory":
        mib = -(-amount // (1 << 20))
        out.keep(where, "resources.memory", text if text[-1:].isalpha() and text[-1] not in "mun" else f"{mib}Mi")
    elif _is_device(name):
        if name.startswith(MIG):
            out.keep(where, "resources.mig", name.removeprefix(MIG).replace("gb.", "gb+"))
        out.keep(where, "resources.gpus", _whole(amount), over=out.get("resources.gpus") == 1)
    elif name in (*MEMORY, PERCENT, *CORES):
        path = "gpu_cores" if name in CORES else "gpu_memory"
        if _whole(amount):
            out.keep(where, f"resources.{path}", f"{amount}{'Mi' if name in MEMORY else '%'}")
        else:
            out.drop(where, "is 0: there is no limit")
    elif name == "ephemeral-storage":
        out.drop(where, "local disks are not counted")
    else:
        out.refuse(where, "is a resource without a counterpart")


def _whole(amount: Fraction) -> int:
    if amount.denominator != 1 or amount > MAX_AMOUNT:
        raise RejectedError("must be a whole number")
    return int(amount)


def _toleration(out: Converted, given: Section) -> dict[str, Any]:
    key, operator = given.text("key"), given.text("operator") or "Equal"
    value, effect = given.take("value"), given.text("effect")
    if given.take("tolerationSeconds"):
        out.note(given.at("tolerationSeconds"), "the taint is always tolerated", Result.CHANGED)
    given.finish({}, {})
    if operator not in ("Equal", "Exists"):
        out.refuse(given.at("operator"), f"is {operator}: use Equal or Exists")
    found: dict[str, Any] = {"key": key}
    if operator == "Equal" and key:
        found["value"] = "" if value is None else str(value)
    return found | ({"effect": effect} if effect else {})


def _affinity(out: Converted, affinity: Section, labels: dict[str, str]) -> None:
    nodes = affinity.section("nodeAffinity")
    required = nodes.section("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required.sections("nodeSelectorTerms")
    for term in terms:
        rules = term.sections("matchExpressions")
        found: dict[str, str] = {}
        for rule in rules:
            values = rule.take("values", list) or []
            if rule.text("operator") == "In" and len(values) == 1:
                found[rule.text("key")] = str(values[0])
            else:
                out.refuse(rule.path, "is not one value of a label: only operator In with one value has a counterpart")
                return
            rule.finish({}, {})
        if len(terms) > 1:
            out.refuse(required.at("nodeSelectorTerms"), "has alternatives: a job requires one set of labels")
            return
        if any(labels.get(key, value) != value for key, value in found.items()):
            out.refuse(term.path, "has another value of a label than nodeSelector: no node has both")
        elif found:
            out.keep(term.path, "placement.node_labels", {**labels, **found}, over=True)
        term.finish({}, {})
    required.finish({}, {})
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    nodes.finish({preferred: "is a preference: the policy of the queue selects nodes"}, {})
    for name in ("podAffinity", "podAntiAffinity"):
        pods = affinity.section(name)
        pods.finish(
            {preferred: "is a preference: the policy of the queue selects nodes"},
            {"requiredDuringSchedulingIgnoredDuringExecution": "relations between pods have no counterpart: give gpus"},
        )
    affinity.finish({}, {})


def same_pods(one: object, other: object) -> bool:
    """Report whether two pod templates are equal, apart from names of containers and empty fields."""
    return _plain(one) == _plain(other)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if each not in NEVER and key != "name"}
    return [_plain(each) for each in value] if isinstance(value, list) else value
