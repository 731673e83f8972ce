"""Runtime environment of pods: variables of Secrets and ConfigMaps, volumes and shared memory.

Volumes are those that the Pod Security Standard "restricted" allows. Objects are in the namespace of the pod, which is
that of the tenant.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.domain.job import ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.runtime import RestartPolicy, Run, Runtime, Volume, VolumeKind, programs

SHM = "shm"
"""Name of the volume with the shared memory."""


@dataclass(frozen=True, slots=True)
class Mounting:
    """Volumes that an operator allows.

    Attributes
    ----------
    csi_drivers
        CSI drivers that jobs may name.
    shared_namespace
        True if all tenants share one namespace. Jobs then name no claims and ConfigMaps, which belong to any tenant.
    """

    csi_drivers: tuple[str, ...] = ()
    shared_namespace: bool = False


NO_DRIVERS = Mounting()


def forbidden_objects(spec: JobSpec, mounting: Mounting) -> Iterator[RejectedError]:
    """Yield an error for each volume or ConfigMap that the operator does not allow."""
    for at, each in enumerate(spec.runtime.volumes):
        if each.kind is VolumeKind.CSI and each.name not in mounting.csi_drivers:
            allowed = ", ".join(mounting.csi_drivers) or "none"
            said = f"driver {each.name!r} is not allowed; the operator allows {allowed} in clusters.csi_drivers"
            yield RejectedError(said, where=f"volumes[{at}].csi.driver")
    if not mounting.shared_namespace:
        return
    named = [
        (f"volumes[{at}].{each.kind}", each.kind in (VolumeKind.CLAIM, VolumeKind.CONFIG_MAP))
        for at, each in enumerate(spec.runtime.volumes)
    ]
    for where, program in programs(spec.run, spec.runtime):
        named += [(f"{where}.env_from_config_map.{name}", True) for name, _ in program.env_from_config_map]
    for where in (where for where, shared in named if shared):
        said = "all tenants share one namespace, so its objects are for no job: use {tenant} in clusters.namespace"
        yield RejectedError(said, where=where)


def references(run: Run) -> list[dict[str, Any]]:
    """Return the variables with values of Secrets and ConfigMaps."""
    found: list[dict[str, Any]] = []
    for source, given in (("secretKeyRef", run.env_from_secret), ("configMapKeyRef", run.env_from_config_map)):
        for name, reference in given:
            what, _, key = reference.partition("/")
            found.append({"name": name, "valueFrom": {source: {"name": what, "key": key}}})
    return found


def command_of(spec: JobSpec, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that first starts the timer of the warning, then runs the setup commands and a command.

    The program replaces the shell, so it has the process number of the shell, ``$$``, which is 1 in a container. The
    kernel protects process 1, so a program without a handler ignores the signal.
    """
    script = list(spec.runtime.setup)
    if (warning := spec.runtime.warning) and spec.time_limit_s:
        wait_s = spec.time_limit_s - warning.before_s
        script.insert(0, f"(sleep {wait_s}; kill -s {warning.signal.removeprefix('SIG')} $$) &")
    if not script:
        return command
    return ("/bin/sh", "-ec", "\n".join((*script, 'exec "$@"')), "sh", *command)


def setup_text(runtime: Runtime) -> str:
    """Return the setup commands as one shell command; empty without any."""
    return shlex.join(("/bin/sh", "-ec", "\n".join(runtime.setup))) if runtime.setup else ""


def program_request(spec: JobSpec) -> ResourceRequest:
    """Return the request of the program's container: that of the replica, less the parts of containers beside it."""
    beside = [*spec.runtime.containers, *(each for each in spec.runtime.init_containers if each.sidecar)]
    request = spec.demand.request
    return replace(
        request,
        cpu_milli=request.cpu_milli - sum(each.cpu_milli for each in beside),
        memory_mib=request.memory_mib - sum(each.memory_mib for each in beside),
    )


def restart_policy(spec: JobSpec, own: str) -> str:
    """Return the restart policy of the pods; `own` is that of the template."""
    return spec.runtime.restart_policy.value if spec.runtime.restart_policy is RestartPolicy.ON_FAILURE else own


UNLIMITED = 1_000_000
"""Number of restarts that no controller counts, because Seaway does."""


def backoff_limit(spec: JobSpec) -> int:
    """Return the number of failures that a controller accepts. Some controllers count restarts in place as failures."""
    return 0 if spec.runtime.restart_policy is RestartPolicy.NEVER else UNLIMITED


def volumes(runtime: Runtime, *, large_shm: bool = False) -> list[dict[str, Any]]:
    """Return the volumes of a pod.

    Parameters
    ----------
    large_shm
        True if only the replica's memory limits the shared memory of jobs that set no size.
    """
    found = [{"name": f"volume-{at}", **_source(each)} for at, each in enumerate(runtime.volumes)]
    if runtime.shm_mib or large_shm:
        size = {"sizeLimit": f"{runtime.shm_mib}Mi"} if runtime.shm_mib else {}
        found.insert(0, {"name": SHM, "emptyDir": {"medium": "Memory", **size}})
    return found


def mounts(runtime: Runtime, *, large_shm: bool = False) -> list[dict[str, Any]]:
    """Return the mounts of the volumes in a container."""
    found = [_mount(f"volume-{at}", each) for at, each in enumerate(runtime.volumes)]
    if runtime.shm_mib or large_shm:
        found.insert(0, {"name": SHM, "mountPath": "/dev/shm"})
    return found


def _source(volume: Volume) -> dict[str, Any]:
    match volume.kind:
        case VolumeKind.CLAIM:
            read_only = {"readOnly": True} if volume.read_only else {}
            return {"persistentVolumeClaim": {"claimName": volume.name, **read_only}}
        case VolumeKind.SECRET:
            return {"secret": {"secretName": volume.name}}
        case VolumeKind.CONFIG_MAP:
            return {"configMap": {"name": volume.name}}
        case VolumeKind.EMPTY_DIR:
            return {"emptyDir": {"sizeLimit": f"{volume.size_mib}Mi"}}
        case VolumeKind.CSI:
            source: dict[str, Any] = {"driver": volume.name, "readOnly": True}
            if volume.attributes:
                source["volumeAttributes"] = dict(volume.attributes)
            if volume.secret:
                source["nodePublishSecretRef"] = {"name": volume.secret}
            return {"csi": source}


def _mount(name: str, volume: Volume) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": name, "mountPath": volume.path}
    if volume.sub_path:
        mount["subPath"] = volume.sub_path
    if volume.read_only:
        mount["readOnly"] = True
    return mount
