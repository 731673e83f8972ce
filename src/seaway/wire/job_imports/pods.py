"""Pod templates of Kubernetes: containers, resources, and rules for nodes."""

from __future__ import annotations

from typing import Any

from seaway.domain.errors import RejectedError
from seaway.wire.job_imports.converted import NEVER, Converted, Result, Section, put_name
from seaway.wire.queue_imports.found import quantity

_PRIVILEGE = "containers have no privileges: the cluster sets user and rights"
_FIXED = "Seaway sets it"
_HEALTH = "a replica is ready when its program runs"

DROPPED = {
    "schedulerName": "Seaway selects the node", "priorityClassName": "give --priority", "priority": "give --priority",
    "preemptionPolicy": "give --preemptible", "runtimeClassName": "the operator sets it for each cluster",
    "enableServiceLinks": _FIXED, "automountServiceAccountToken": "pods have no token", "dnsPolicy": _FIXED,
    "topologySpreadConstraints": "the policy of the queue selects nodes", "overhead": _FIXED,
}  # fmt: skip
REFUSED = {
    "initContainers": "is not converted: add init_containers to the job file",
    "serviceAccountName": _PRIVILEGE, "serviceAccount": _PRIVILEGE, "securityContext": _PRIVILEGE,
    "hostNetwork": _PRIVILEGE, "hostPID": _PRIVILEGE, "hostIPC": _PRIVILEGE, "shareProcessNamespace": _PRIVILEGE,
    "imagePullSecrets": "the operator sets pull secrets for each cluster", "resourceClaims": "give resources.gpus",
    "nodeName": "names a node: give --cluster, or placement.node_labels", "hostAliases": "has no counterpart",
    "dnsConfig": "has no counterpart", "hostname": "names of pods are generated", "subdomain": "names are generated",
    "resources": "is for the whole pod: give the resources of the container",
}  # fmt: skip
DROPPED_CONTAINER = {
    "imagePullPolicy": "the cluster's default is used", "terminationMessagePath": _FIXED,
    "terminationMessagePolicy": _FIXED, "livenessProbe": "a replica that fails is restarted by --retries",
    "readinessProbe": _HEALTH, "startupProbe": _HEALTH, "stdin": "containers have no standard input",
    "stdinOnce": "containers have no standard input", "tty": "seaway exec has a terminal",
}  # fmt: skip
REFUSED_CONTAINER = {
    "envFrom": "is not supported: list the variables in env",
    "volumeDevices": "is not supported", "securityContext": _PRIVILEGE,
    "workingDir": "has no counterpart: use cd in the command", "lifecycle": "has no counterpart",
    "restartPolicy": "has no counterpart", "resizePolicy": "has no counterpart",
}  # fmt: skip
ANNOTATIONS = {
    "nvidia.com/use-gputype": "gpu_use_types", "nvidia.com/nouse-gputype": "gpu_avoid_types",
    "nvidia.com/use-gpuuuid": "gpu_uuids", "nvidia.com/nouse-gpuuuid": "gpu_avoid_uuids",
}  # fmt: skip
"""Annotations of HAMi, and the fields of a job."""

GPUS = ("nvidia.com/gpu", "volcano.sh/vgpu-number", "amd.com/gpu")
MEMORY = ("nvidia.com/gpumem", "volcano.sh/vgpu-memory")
CORES = ("nvidia.com/gpucores", "volcano.sh/vgpu-cores")
PERCENT = "nvidia.com/gpumem-percentage"
QUEUE = "kueue.x-k8s.io/queue-name"


def put_metadata(out: Converted, metadata: Section, stem: str) -> None:
    """Set the name, the queue and the labels from the metadata of an object."""
    name, prefix = metadata.text("name"), metadata.text("generateName")
    put_name(
        out, metadata.at("name" if name else "generateName") if name or prefix else "", "name", name or prefix or stem
    )
    labels = metadata.pairs("labels")
    if queue := labels.pop(QUEUE, ""):
        put_name(out, f"{metadata.at('labels')}.{QUEUE}", "queue", queue)
    _labels(out, metadata, labels)
    _annotations(metadata, out)
    if metadata.take("namespace"):
        out.drop(metadata.at("namespace"), "a tenant has a namespace in each cluster: give --tenant")
    known = ("creationTimestamp", "uid", "resourceVersion", "generation", "managedFields", "selfLink")
    metadata.finish(dict.fromkeys(known, "belongs to the object in its cluster"), {})


def _labels(out: Converted, metadata: Section, labels: dict[str, str]) -> None:
    """Add labels, except those that Kubernetes sets."""
    where = metadata.at("labels")
    own = {key: value for key, value in labels.items() if not key.endswith(("controller-uid", "job-name"))}
    if len(own) < len(labels):
        out.drop(where, "those of the object in its cluster are set again")
    if own:
        out.keep(where, "labels", {**(out.get("labels") or {}), **own})


def put_pod(out: Converted, template: Section) -> None:
    """Set the fields of a job from a pod template."""
    metadata = template.section("metadata")
    _labels(out, metadata, metadata.pairs("labels"))
    _annotations(metadata, out)
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
        out.keep(spec.at("tolerations"), "placement.tolerations", [each for each in tolerations if each])
    _affinity(out, spec.section("affinity"), labels)
    if grace := spec.take("terminationGracePeriodSeconds", int):
        where = spec.at("terminationGracePeriodSeconds")
        out.keep(where, "checkpoint", {"signal": "SIGTERM", "grace": f"{grace}s"})
    if limit := spec.take("activeDeadlineSeconds", int):
        out.keep(spec.at("activeDeadlineSeconds"), "time_limit", f"{limit}s")
    if policy := spec.text("restartPolicy"):
        out.note(spec.at("restartPolicy"), f"{policy}: Seaway restarts by retries")
    for name in ("serviceAccountName", "serviceAccount"):
        if spec.take(name) not in (None, "default"):
            out.refuse(spec.at(name), _PRIVILEGE)
    spec.finish(DROPPED, REFUSED)


def _containers(out: Converted, spec: Section) -> None:
    containers = spec.sections("containers")
    volumes = {each.text("name"): each for each in spec.sections("volumes")}
    if len(containers) != 1:
        out.refuse(
            spec.at("containers"),
            f"has {len(containers)} containers, of which one can be converted: add others to the job file",
        )
    for each in containers[:1]:
        _volumes(out, each.sections("volumeMounts"), volumes)
        _container(out, each)
    for each in volumes.values():
        each.finish({}, dict.fromkeys(each.names(), "is not a volume of a job: use a claim, a Secret or a ConfigMap"))


def _annotations(metadata: Section, out: Converted) -> None:
    for key, value in metadata.pairs("annotations").items():
        where = f"{metadata.at('annotations')}.{key}"
        if key in ANNOTATIONS:
            out.keep(where, f"resources.{ANNOTATIONS[key]}", [each.strip() for each in value.split(",")])
        elif key == "nvidia.com/vgpu-mode":
            out.keep(where, "resources.gpu_mode", [value])
        else:
            out.drop(where, "annotations are not sent")


def _container(out: Converted, container: Section) -> None:
    container.take("name")
    for name in ("image", "command", "args"):
        value = container.take(name, str if name == "image" else list)
        if value:
            listed = [str(each) for each in value] if isinstance(value, list) else value
            out.keep(container.at(name), f"run.{name}", listed)
    for each in container.sections("env"):
        name, value = each.text("name"), each.take("value")
        if "valueFrom" in each.names():
            _reference(out, name, each.section("valueFrom"))
        else:
            out.keep(each.path, f"run.env.{name}", "" if value is None else str(value))
        each.finish({}, {})
    ports = [each for each in container.sections("ports") if _is_tcp(out, each)]
    if ports:
        out.keep(container.at("ports"), "run.ports", [each.take("containerPort", int) for each in ports])
    _resources(out, container.section("resources"))
    container.finish(DROPPED_CONTAINER, REFUSED_CONTAINER)


def _reference(out: Converted, name: str, given: Section) -> None:
    """Set a variable with the value of a key of an object."""
    for kind, path in (("secretKeyRef", "env_from_secret"), ("configMapKeyRef", "env_from_config_map")):
        if kind in given.names():
            key = given.section(kind)
            out.keep(given.at(kind), f"run.{path}.{name}", f"{key.text('name')}/{key.text('key')}")
            key.finish({"optional": "the object must exist"}, {})
    given.finish({}, dict.fromkeys(given.names(), "has no counterpart: give a value"))


SOURCES = {
    "persistentVolumeClaim": ("claim", "claimName"),
    "secret": ("secret", "secretName"),
    "configMap": ("config_map", "name"),
}
"""Field of a volume of a job, and field with the name of the object, for each source in Kubernetes."""

EMPTY_DIR = "10Gi"
"""Maximum size of an empty folder without a limit."""


def _volumes(out: Converted, mounts: list[Section], volumes: dict[str, Section]) -> None:
    """Set the volumes that the container mounts."""
    found: list[dict[str, Any]] = []
    for mount in mounts:
        volume = volumes.get(mount.text("name"))
        path, sub_path, read_only = mount.text("mountPath"), mount.text("subPath"), mount.take("readOnly")
        mount.finish({"mountPropagation": _FIXED}, {})
        if volume is None:
            out.refuse(mount.path, "names no volume of the pod")
        elif source := _source(out, volume, path):
            extra = {name: value for name, value in (("sub_path", sub_path), ("read_only", read_only)) if value}
            found.append({"path": path, **source, **extra})
            out.keep(mount.path, "volumes", found, f"volumes: {path}")


def _source(out: Converted, volume: Section, path: str) -> dict[str, Any]:
    """Return the source of a volume; empty for shared memory, which is a resource."""
    for kind, (name, key) in SOURCES.items():
        if kind in volume.names():
            source = volume.section(kind)
            found = {name: source.text(key)}
            source.take("readOnly")
            source.finish({"defaultMode": "files can be read by all", "optional": "the object must exist"}, {})
            return found
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


def _is_tcp(out: Converted, port: Section) -> bool:
    if port.take("hostPort"):
        out.refuse(port.at("hostPort"), _PRIVILEGE)
    if (protocol := port.text("protocol")) not in ("", "TCP"):
        out.refuse(port.at("protocol"), f"is {protocol}: only TCP ports have a counterpart")
        return False
    return True


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
    gpus = next((name for name in GPUS if name in given), "")
    for name, (where, value) in given.items():
        try:
            _resource(out, name, where, value)
        except RejectedError as error:
            out.refuse(where, error.message)
    if gpus == "amd.com/gpu":
        out.keep(given[gpus][0], "resources.gpu_vendor", ["AMD"])


def _resource(out: Converted, name: str, where: str, value: object) -> None:
    amount = quantity(value)
    text = str(value)
    if name == "cpu":
        milli = -(-amount * 1000 // 1)
        out.keep(where, "resources.cpu", int(amount) if amount.denominator == 1 else f"{milli}m")
    elif name == "memory":
        mib = -(-amount // (1 << 20))
        out.keep(where, "resources.memory", text if text[-1:].isalpha() and text[-1] not in "mun" else f"{mib}Mi")
    elif name in GPUS:
        out.keep(where, "resources.gpus", int(amount))
    elif name in MEMORY:
        out.keep(where, "resources.gpu_memory", f"{int(amount)}Mi")
    elif name == PERCENT:
        out.keep(where, "resources.gpu_memory", f"{int(amount)}%")
    elif name in CORES:
        out.keep(where, "resources.gpu_cores", f"{int(amount)}%")
    elif name.startswith("nvidia.com/mig-"):
        out.keep(where, "resources.mig", name.removeprefix("nvidia.com/mig-").replace("gb.", "gb+"))
        out.keep(where, "resources.gpus", int(amount))
    elif name == "ephemeral-storage":
        out.drop(where, "local disks are not counted")
    else:
        out.refuse(where, "is a resource without a counterpart")


def _toleration(out: Converted, given: Section) -> dict[str, Any]:
    key, operator = given.text("key"), given.text("operator") or "Equal"
    value, effect = given.take("value"), given.text("effect")
    if given.take("tolerationSeconds"):
        out.drop(given.at("tolerationSeconds"), "the taint is always tolerated")
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
        if len(terms) > 1:
            out.refuse(required.at("nodeSelectorTerms"), "has alternatives: a job requires one set of labels")
            return
        if found:
            out.keep(term.path, "placement.node_labels", {**labels, **found})
        term.finish({}, {})
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
