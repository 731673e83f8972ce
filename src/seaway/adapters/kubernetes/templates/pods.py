"""Pod templates: commands, requests, node and device selection of a replica."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seaway.adapters.kubernetes.device_plugins.views import DevicePlugin
from seaway.adapters.kubernetes.templates.context import Context, PodTemplate
from seaway.adapters.kubernetes.templates.environment import NO_DEVICES
from seaway.adapters.kubernetes.templates.manifest import Group, Manifest, Path, Pin, find
from seaway.adapters.kubernetes.templates.names import HOSTFILE, MAX_RESTARTS, RANK_0, REPLICAS, labels, port_name
from seaway.adapters.kubernetes.templates.pinning import (
    CLAIM,
    Devices,
    claim_pins,
    claim_spec,
    device_limits,
    device_pins,
    devices_of,
    node_pin,
)
from seaway.adapters.kubernetes.templates.runtime import (
    command_of,
    mounts,
    program_request,
    references,
    restart_policy,
    volumes,
    workdir_container,
)
from seaway.domain.errors import RejectedError
from seaway.domain.job import ResourceRequest
from seaway.domain.job_spec import Checkpoint, JobSpec
from seaway.domain.node import Toleration
from seaway.domain.pod import program_place
from seaway.domain.reasons import Reason
from seaway.domain.runtime import FETCHER, PROGRAM, SEAWAY_FILES, WORKDIR, PortProtocol, Run

VOLCANO_SCHEDULER = "volcano"

SIGTERM_BEFORE_KILL_S = 5
"""Seconds that a program has after SIGTERM, if it got another signal for its checkpoint first."""


@dataclass(frozen=True, slots=True)
class Pod:
    """Options of a template for its pods.

    Attributes
    ----------
    container
        Name of the container; some controllers require one.
    restart
        Restart policy. Jobs never restart, so that Seaway sees failed replicas.
    role
        Role in the workload.
    env
        Variables besides the job's, which take precedence.
    command, args
        Replacements for those of the job; None for no replacement.
    wrapped
        True if a shell runs the setup commands before the command.
    ports
        True if it listens on the job's ports.
    rank_0_port
        Port on which rank 0 serves the others; 0 for none.
    shared_memory
        True if only the replica's memory limits the shared memory, instead of the default of 64 MiB.
    scheduler
        Name of the scheduler; empty for that of the vGPU device plugin or the cluster.
    fields
        Additional fields of its spec.
    hostfile
        Text of the file with the hosts of the job; empty for none.
    """

    container: str = "main"
    restart: str = "Never"
    role: str = ""
    env: tuple[tuple[str, str], ...] = ()
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    wrapped: bool = True
    ports: bool = True
    rank_0_port: int = 0
    shared_memory: bool = False
    scheduler: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    hostfile: str = ""


def container_security() -> dict[str, Any]:
    """Return the security context of a container, for the Pod Security Standard "restricted"."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pod_security(user: int) -> dict[str, Any]:
    """Return the security context of a pod, for the Pod Security Standard "restricted".

    Parameters
    ----------
    user
        User and group ID; 0 for those of the image.

    References
    ----------
    https://kubernetes.io/docs/concepts/security/pod-security-standards/
    """
    own = {"runAsUser": user, "runAsGroup": user, "fsGroup": user} if user else {}
    return {"runAsNonRoot": True, **own, "seccompProfile": {"type": "RuntimeDefault"}}


@dataclass(frozen=True, slots=True)
class PinnedFields:
    """Fields that Seaway adds to a pod template from any source.

    Attributes
    ----------
    fields
        Fields of the pod's spec.
    resources
        Resources of the main container.
    env
        Variables of the main container.
    pins, claims
        As in `PodTemplate`.
    """

    fields: dict[str, Any]
    resources: dict[str, Any]
    env: tuple[tuple[str, str], ...]
    pins: tuple[Pin, ...]
    claims: tuple[Manifest, ...]


def pinned_fields(
    context: Context, group: Group, at: Path, scheduler: str = "", labels: Mapping[str, str] | None = None
) -> PinnedFields:
    """Return the fields that bind a group of replicas to its nodes and devices.

    Parameters
    ----------
    at
        Path of the pod template in its workload.
    scheduler
        Name of the scheduler; empty for that of the vGPU device plugin or the cluster.
    labels
        Required node labels besides those of the job.

    Raises
    ------
    RejectedError
        When Kubernetes cannot express a request of the job.
    """
    devices = devices_of(group, context.options.accesses)
    claimed = devices is not None and devices.terms.plugin is DevicePlugin.DRA
    nodes = context.spec.demand.nodes
    selected = {**(labels or {}), **(devices.selector if devices else {}), **dict(nodes.node_labels)}
    fields: dict[str, Any] = {}
    if context.spec.checkpoint:
        fields["terminationGracePeriodSeconds"] = context.spec.checkpoint.grace_s
    if scheduler := scheduler or _scheduler(context, devices):
        fields["schedulerName"] = scheduler
    if selected:
        fields["nodeSelector"] = selected
    if bears := tolerations(nodes.tolerations):
        fields["tolerations"] = bears
    if context.options.pull_secrets:
        fields["imagePullSecrets"] = [{"name": name} for name in context.options.pull_secrets]
    if claimed:
        fields["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": context.name(group.digest)}]
    pins = [node_pin(group, context.options.hostname, selected, (*at, "spec"))]
    if devices:
        pins += device_pins(devices, (*at, "metadata", "annotations"), context.spec.demand.devices.topology)
    claims = (_claim(context, group, devices),) if devices and claimed else ()
    env = () if devices else NO_DEVICES
    return PinnedFields(fields, resources(program_request(context.spec), devices), env, tuple(pins), claims)


def pod_template(context: Context, group: Group, pod: Pod, at: Path) -> PodTemplate:
    """Return the pod template of a group of replicas, with its pins.

    Parameters
    ----------
    at
        Path of the pod template in its workload.

    Raises
    ------
    RejectedError
        When the job specifies no image, or Kubernetes cannot express one of its requests.
    """
    tied = pinned_fields(context, group, at, pod.scheduler)
    spec: dict[str, Any] = {
        "restartPolicy": restart_policy(context.spec, pod.restart),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(context.options.run_as_user),
        **pod.fields,
        **tied.fields,
        "containers": [_container(context, pod, tied), *more_containers(context, "containers")],
    }
    if first := more_containers(context, "init_containers"):
        spec["initContainers"] = first
    metadata = labels_of(context, group, pod.role)
    found = volumes(context.spec, large_shm=pod.shared_memory)
    if pod.hostfile:
        metadata["annotations"][HOSTFILE] = pod.hostfile
        found.append({"name": "hosts", "downwardAPI": {"items": [_HOSTFILE]}})
    if found:
        spec["volumes"] = found
    if context.spec.run.pod:
        spec = _with_own_fields(json.loads(context.spec.run.pod), spec)
    return PodTemplate({"metadata": metadata, "spec": spec}, tied.pins, tied.claims)


def _with_own_fields(own: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    """Return the pod spec of a job with the fields of its own pod spec, which Seaway's fields complete."""
    place = program_place(own)
    program, *more = spec["containers"]
    theirs = own["containers"][place]
    container: dict[str, Any] = {**theirs, **program, "volumeMounts": theirs.get("volumeMounts") or []}
    _extend(container, "volumeMounts", program.get("volumeMounts", []), "mountPath")
    given = program.get("env", [])
    named = {each["name"] for each in given}
    container["env"] = [*(each for each in theirs.get("env") or () if each["name"] not in named), *given]
    container["securityContext"] = {**container_security(), **(theirs.get("securityContext") or {})}
    others = [dict(each) for at, each in enumerate(own["containers"]) if at != place]
    first = [dict(each) for each in own.get("initContainers") or ()]
    for each in (*others, *first):
        _add_variables(each, NO_DEVICES)
        _add_fields(each, "securityContext", container_security())
    merged = {**own, **spec, "containers": [{name: value for name, value in container.items() if value}, *others]}
    merged["securityContext"] = {**spec["securityContext"], **(own.get("securityContext") or {})}
    merged["initContainers"] = first
    merged["volumes"] = own.get("volumes") or []
    _extend(merged, "containers", more, "name")
    _extend(merged, "initContainers", spec.get("initContainers", []), "name")
    _extend(merged, "volumes", spec.get("volumes", []), "name")
    return {name: value for name, value in merged.items() if value not in ([], {})}


_HOSTFILE = {"path": "hostfile", "fieldRef": {"fieldPath": f"metadata.annotations['{HOSTFILE}']"}}
"""File with the hosts of a job, from the annotation of its pods."""


def labels_of(context: Context, group: Group, role: str = "") -> dict[str, Any]:
    """Return the labels and annotations of pods."""
    annotations = {REPLICAS: group.began_with}
    if context.spec.runtime.max_restarts is not None:
        annotations[MAX_RESTARTS] = str(context.spec.runtime.max_restarts)
    return {"labels": labels(context.deployment, group.digest, role), "annotations": annotations}


def tolerations(given: tuple[Toleration, ...]) -> list[dict[str, str]]:
    """Return tolerations in the form of Kubernetes.

    Raises
    ------
    RejectedError
        When a toleration has a value without a key, which Kubernetes cannot express.
    """
    written = []
    for each in given:
        if not each.key and each.value is not None:
            raise RejectedError(Reason("toleration_needs_key"), where="placement.tolerations")
        one = {"key": each.key} if each.key else {}
        one["operator"] = "Exists" if each.value is None else "Equal"
        if each.value is not None:
            one["value"] = each.value
        if each.effect:
            one["effect"] = each.effect.value
        written.append(one)
    return written


def resources(request: ResourceRequest, devices: Devices | None) -> dict[str, Any]:
    """Return a container's resources. Limits and requests of CPU and memory are equal."""
    own = {}
    if request.cpu_milli:
        own["cpu"] = f"{request.cpu_milli}m"
    if request.memory_mib:
        own["memory"] = f"{request.memory_mib}Mi"
    written: dict[str, Any] = {}
    if limits := {**own, **(device_limits(devices, request) if devices else {})}:
        written["limits"] = limits
    if own:
        written["requests"] = own
    if devices and devices.terms.plugin is DevicePlugin.DRA:
        written["claims"] = [{"name": CLAIM}]
    return written


def image_of(context: Context) -> str:
    """Return the image of the replicas.

    Raises
    ------
    RejectedError
        When the job specifies no image and there is no default.
    """
    image = context.spec.run.image or context.options.default_image
    if not image:
        raise RejectedError(Reason("name_the_image"), where="run.image")
    return image


def variables(run: Run, env: tuple[tuple[str, str], ...] = ()) -> list[dict[str, Any]]:
    """Return environment variables; those of the job take precedence."""
    own = references(run)
    plain = {**dict(env), **dict(run.env)}
    for each in own:
        plain.pop(each["name"], None)
    return [*({"name": name, "value": value} for name, value in plain.items()), *own]


def container_ports(spec: JobSpec, container: str) -> list[dict[str, Any]]:
    """Return the ports of a container. The NetworkPolicy of the namespace opens them by their names."""
    return [
        {"name": port_name(index), "containerPort": each.number}
        | ({} if each.protocol is PortProtocol.TCP else {"protocol": each.protocol.value})
        for index, each in enumerate(spec.ports)
        if each.container == container
    ]


def more_containers(context: Context, field: str) -> list[dict[str, Any]]:
    """Return the containers of a job besides that of its program; `field` is that of the job.

    They get no devices. Init containers that end may use all CPU and memory that sidecars leave.
    """
    spec, found = context.spec, list[dict[str, Any]]()
    program, beside = program_request(spec), spec.runtime.containers
    free = ResourceRequest(
        program.cpu_milli + sum(each.cpu_milli for each in beside),
        program.memory_mib + sum(each.memory_mib for each in beside),
    )
    given = getattr(spec.runtime, field)
    if spec.runtime.workdir and field == "init_containers":
        given = (workdir_container(context.deployment, context.options.mounting.delivery), *given)
    for each in given:
        ends = field == "init_containers" and not each.sidecar
        request = ResourceRequest(
            each.cpu_milli or (free.cpu_milli if ends else 0), each.memory_mib or (free.memory_mib if ends else 0)
        )
        container: dict[str, Any] = {
            "name": each.name,
            "image": each.run.image or image_of(context),
            "securityContext": container_security(),
            "env": variables(each.run, NO_DEVICES),
        }
        if each.sidecar:
            container["restartPolicy"] = "Always"
        if spec.runtime.workdir:
            container["workingDir"] = WORKDIR
            container["terminationMessagePolicy"] = "FallbackToLogsOnError"
        written = {
            "command": list(each.run.command),
            "args": list(each.run.args),
            "ports": container_ports(spec, each.name),
            "volumeMounts": mounts(spec),
            "resources": resources(request, None),
        }
        found.append(container | {name: value for name, value in written.items() if value})
    return found


def _container(context: Context, pod: Pod, tied: PinnedFields) -> dict[str, Any]:
    run = context.spec.run
    container: dict[str, Any] = {
        "name": pod.container,
        "image": image_of(context),
        "securityContext": container_security(),
    }
    command = run.command if pod.command is None else pod.command
    if command := command_of(context.spec, command) if pod.wrapped else command:
        container["command"] = list(command)
    if args := run.args if pod.args is None else pod.args:
        container["args"] = list(args)
    if env := variables(run, (*pod.env, *tied.env)):
        container["env"] = env
    ports = container_ports(context.spec, PROGRAM) if pod.ports else []
    if pod.rank_0_port and context.deployment.ranks:
        ports.append({"name": RANK_0, "containerPort": pod.rank_0_port})
    if ports:
        container["ports"] = ports
    found = mounts(context.spec, large_shm=pod.shared_memory)
    if pod.hostfile:
        found.append({"name": "hosts", "mountPath": SEAWAY_FILES, "readOnly": True})
    more = {
        "workingDir": WORKDIR if context.spec.runtime.workdir else "",
        "volumeMounts": found,
        "resources": tied.resources,
        "lifecycle": _lifecycle(context.spec.checkpoint),
    }
    return container | {name: value for name, value in more.items() if value}


def _lifecycle(checkpoint: Checkpoint | None) -> dict[str, Any]:
    """Return the hook that sends the signal for a checkpoint; empty for SIGTERM, which Kubernetes sends.

    Kubernetes sends SIGTERM after the hook. The hook waits until shortly before the program is killed, and ends with
    the container.
    """
    if checkpoint is None or checkpoint.signal == "SIGTERM":
        return {}
    wait_s = max(1, checkpoint.grace_s - SIGTERM_BEFORE_KILL_S)
    command = f"kill -s {checkpoint.signal.removeprefix('SIG')} 1; sleep {wait_s}"
    return {"preStop": {"exec": {"command": ["/bin/sh", "-c", command]}}}


def _scheduler(context: Context, devices: Devices | None) -> str:
    if devices and devices.terms.plugin is DevicePlugin.VOLCANO:
        return VOLCANO_SCHEDULER
    if devices and devices.terms.plugin in (DevicePlugin.HAMI, DevicePlugin.HAMI_STATUS):
        return context.options.hami_scheduler
    return ""


def _claim(context: Context, group: Group, devices: Devices) -> Manifest:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": context.metadata(group.digest, group.replicas),
        "spec": claim_spec(devices),
    }
    return Manifest(body, claim_pins(devices))


MAIN = "main"
"""Name of the container that gets a replica's resources. Without this container, the first container gets them."""


def pin_pod_template(body: dict[str, Any], at: Path, context: Context, group: Group) -> PodTemplate:
    """Add labels, resources and pins to the pod template of a custom workload.

    Keep the template's own fields, with these exceptions: Seaway's labels and resources replace equal ones. Node labels
    and tolerations are merged. Seaway's variables are added only if the template does not set them.

    Parameters
    ----------
    body
        The workload, which is modified.
    at
        Path of the pod template in it.
    """
    template = find(body, at)
    spec = template["spec"]
    tied = pinned_fields(context, group, at, labels=spec.get("nodeSelector"))
    both = {name: [*(spec.get(name) or []), *tied.fields.get(name, [])] for name in ("tolerations", "imagePullSecrets")}
    spec |= {name: value for name, value in {**tied.fields, **both}.items() if value}
    spec.setdefault("automountServiceAccountToken", False)
    spec.setdefault("enableServiceLinks", False)
    _add_fields(spec, "securityContext", pod_security(context.options.run_as_user))
    main = next((each for each in spec["containers"] if each.get("name") == MAIN), spec["containers"][0])
    main["resources"] = _resources(main.get("resources") or {}, tied.resources)
    _extend(spec, "volumes", volumes(context.spec), "name")
    added = {
        name: more_containers(context, field)
        for name, field in (("initContainers", "init_containers"), ("containers", "containers"))
    }
    for each in (*(spec.get("initContainers") or ()), *spec["containers"]):
        _extend(each, "volumeMounts", mounts(context.spec), "mountPath")
        if context.spec.runtime.workdir:
            each.setdefault("workingDir", WORKDIR)
        _add_variables(each, tied.env if each is main else NO_DEVICES)
        _add_fields(each, "securityContext", container_security())
    for name, more in added.items():
        _extend(spec, name, more, "name")
    if context.spec.runtime.workdir:
        spec["initContainers"].sort(key=lambda each: each.get("name") != FETCHER)
    own = labels_of(context, group)
    metadata = template["metadata"] = template.get("metadata") or {}
    for name, marked in own.items():
        metadata[name] = {**(metadata.get(name) or {}), **marked}
    return PodTemplate(template, tied.pins, tied.claims)


def _add_fields(owner: dict[str, Any], name: str, given: Mapping[str, Any]) -> None:
    """Add the fields that an object does not set itself. Ignore an invalid value, because clusters reject it."""
    theirs = owner.get(name) or {}
    if isinstance(theirs, dict):
        owner[name] = {**given, **theirs}


def _extend(owner: dict[str, Any], name: str, more: list[dict[str, Any]], key: str) -> None:
    """Add the job's entries to a list of a template.

    Raises
    ------
    RejectedError
        When the template has no list there, or an entry with the same key.
    """
    if not more:
        return
    theirs = owner.get(name) or []
    if not isinstance(theirs, list) or not all(isinstance(each, dict) for each in theirs):
        raise RejectedError(f"its template has {name} that are no list of objects", where="template")
    known = {each.get(key) for each in theirs}
    if both := next((each[key] for each in more if each[key] in known), ""):
        raise RejectedError(f"its template has {both!r} in {name} itself", where="template")
    owner[name] = [*theirs, *more]


def _add_variables(container: dict[str, Any], env: tuple[tuple[str, str], ...]) -> None:
    """Add missing variables to a container. Ignore an invalid list, because clusters reject it."""
    theirs = container.get("env") or []
    if not isinstance(theirs, list) or not all(isinstance(each, dict) for each in theirs):
        return
    said = {each.get("name") for each in theirs}
    if more := [{"name": name, "value": value} for name, value in env if name not in said]:
        container["env"] = [*theirs, *more]


def _resources(theirs: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Merge the job's CPU, memory and devices with the template's other resources."""
    merged: dict[str, Any] = {}
    for name in ("limits", "requests"):
        retained = {key: value for key, value in (theirs.get(name) or {}).items() if key not in ("cpu", "memory")}
        if both := {**retained, **own.get(name, {})}:
            merged[name] = both
    if claims := own.get("claims"):
        merged["claims"] = claims
    return merged
