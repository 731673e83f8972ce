"""Runtime environment of pods: variables of Secrets and ConfigMaps, volumes and shared memory.

Volumes are those that the Pod Security Standard "restricted" allows. Objects are in the namespace of the pod, which is
that of the tenant.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from seaway.application.ports.templates import NO_DELIVERY, Delivery
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.job import ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.pod import parts_of
from seaway.domain.reasons import Reason
from seaway.domain.runtime import (
    FETCHER,
    SEAWAY_STATE,
    WORKDIR,
    Container,
    RestartPolicy,
    Run,
    Runtime,
    Volume,
    VolumeKind,
    programs,
)

SHM, STATE = "shm", "state"
"""Names of the volumes with the shared memory, and with the first start of a program that restarts in its place."""


@dataclass(frozen=True, slots=True)
class Mounting:
    """Volumes that an operator allows.

    Attributes
    ----------
    csi_drivers
        CSI drivers that jobs may name.
    shared_namespace
        True if all tenants share one namespace. Jobs then name no claims and ConfigMaps, which belong to any tenant.
    delivery
        Way in which pods get the working directories of jobs.
    """

    csi_drivers: tuple[str, ...] = ()
    shared_namespace: bool = False
    delivery: Delivery = NO_DELIVERY


NO_DRIVERS = Mounting()


def forbidden_objects(spec: JobSpec, mounting: Mounting) -> Iterator[RejectedError]:
    """Yield an error for each volume or ConfigMap that the operator does not allow, or cannot deliver."""
    if spec.runtime.workdir and not mounting.delivery.url:
        said = Reason("workdir_without_address")
        yield RejectedError(said, where="workdir")
    for at, each in enumerate(spec.runtime.volumes):
        if each.kind is VolumeKind.CSI and each.name not in mounting.csi_drivers:
            allowed = ", ".join(mounting.csi_drivers) or "none"
            said = Reason("driver_forbidden", name=each.name, allowed=allowed)
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
        said = Reason("shared_namespace")
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
    kernel protects process 1, so a program without a handler ignores the signal. If the program restarts in its place,
    the time counts from its first start, which is in a file of the pod. A program that starts later than its warning
    gets the signal after a second.
    """
    script = list(spec.runtime.setup)
    if (warning := spec.runtime.warning) and spec.time_limit_s:
        wait = str(spec.time_limit_s - warning.before_s)
        name = warning.signal.removeprefix("SIG")
        lines = [f"(sleep {wait}; kill -s {name} $$) &"]
        if _counts_starts(spec):
            begun = f"{SEAWAY_STATE}/started"
            lines = [
                f"[ -s {begun} ] || date +%s > {begun}",
                f"wait=$(($(cat {begun}) + {wait} - $(date +%s)))",
                f'(sleep "$((wait > 0 ? wait : 1))"; kill -s {name} $$) &',
            ]
        script = lines + script
    if not script:
        return command
    return ("/bin/sh", "-ec", _escaped("\n".join((*script, 'exec "$@"'))), "sh", *command)


def _escaped(script: str) -> str:
    """Escape a script, because Kubernetes replaces ``$(NAME)`` and ``$$`` in commands."""
    return re.sub(r"\$([$(])", lambda match: "$$$$" if match[1] == "$" else "$$(", script)


def _counts_starts(spec: JobSpec) -> bool:
    """Report whether the program of a job may restart in its place, and must be warned by its first start."""
    restarts = spec.restarts or spec.runtime.restart_policy is RestartPolicy.ON_FAILURE
    return restarts and spec.runtime.warning is not None


def setup_text(runtime: Runtime) -> str:
    """Return the setup commands as one shell command; empty without any."""
    return shlex.join(("/bin/sh", "-ec", _escaped("\n".join(runtime.setup)))) if runtime.setup else ""


FETCH = r"""
set -eu
fail() { echo "the working directory is missing: $1" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
archive=$SEAWAY_WORKDIR/.seaway-archive
ca=
if [ -n "${SEAWAY_WORKDIR_CA-}" ]; then
  ca=$SEAWAY_WORKDIR/.seaway-ca
  printf '%s\n' "$SEAWAY_WORKDIR_CA" >"$ca"
  export CURL_CA_BUNDLE="$ca" SSL_CERT_FILE="$ca"
fi
python='
import sys, urllib.request
headers = dict(each.split(": ", 1) for each in sys.argv[3:])
try:
    with urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=headers), timeout=60) as reply:
        with open(sys.argv[2], "wb") as file:
            for block in iter(lambda: reply.read(1 << 16), b""):
                file.write(block)
except OSError as error:
    sys.exit(str(error))
'
check='
import hashlib, sys
digest = hashlib.sha256()
with open(sys.argv[1], "rb") as file:
    for block in iter(lambda: file.read(1 << 20), b""):
        digest.update(block)
sys.exit(sys.argv[2] != "sha256:" + digest.hexdigest())
'
get() { # URL FILE HEADER HEADER
  if has curl; then
    curl -fsS --connect-timeout 10 -H "$3" -H "$4" -o "$2" "$1"
  elif has python3; then
    python3 -c "$python" "$@"
  elif has wget; then
    wget -q -T 60 ${ca:+"--ca-certificate=$ca"} --header "$3" --header "$4" -O "$2" "$1"
  else
    fail "the image has no curl, python3 or wget; the operator can name another one in workdirs.image"
  fi
}
fetch() {
  token="Authorization: Bearer $SEAWAY_WORKDIR_TOKEN"
  if [ -z "${SEAWAY_WORKDIR_BUCKET-}" ]; then
    get "$SEAWAY_WORKDIR_URL" "$archive" "$token" "Accept: */*"
  else
    get "$SEAWAY_WORKDIR_URL" "$archive.url" "$token" "Accept: text/uri-list" || return 1
    read -r source <"$archive.url"
    rm "$archive.url"
    get "$source" "$archive" "Accept: */*" "Cache-Control: no-store"
  fi
}
tries=1
until fetch; do
  [ "$tries" -lt "$SEAWAY_WORKDIR_TRIES" ] || fail "$SEAWAY_WORKDIR_URL did not send it"
  tries=$((tries + 1))
  sleep 3
done
if has sha256sum; then
  echo "${SEAWAY_WORKDIR_ARCHIVE#sha256:}  $archive" | sha256sum -c >/dev/null 2>&1 || fail "its archive is damaged"
elif has python3; then
  python3 -c "$check" "$archive" "$SEAWAY_WORKDIR_ARCHIVE" || fail "its archive is damaged"
fi
if has tar; then
  tar -xzof "$archive" -C "$SEAWAY_WORKDIR" || fail "its archive cannot be unpacked"
else
  python3 -m tarfile -e "$archive" "$SEAWAY_WORKDIR" || fail "the image has neither tar nor python3"
fi
rm "$archive" ${ca:+"$ca"}
"""
"""Shell script that fetches an archive, with the program for downloads that the image has."""

TRIES = 20


def workdir_container(deployment: Deployment, delivery: Delivery) -> Container:
    """Return the init container that fetches the working directory of a job into its volume."""
    archive = deployment.spec.runtime.workdir
    env = {
        "SEAWAY_WORKDIR": WORKDIR,
        "SEAWAY_WORKDIR_ARCHIVE": archive,
        "SEAWAY_WORKDIR_URL": f"{delivery.url}/api/v1/workdirs/{archive}",
        "SEAWAY_WORKDIR_TOKEN": delivery.token(deployment),
        "SEAWAY_WORKDIR_TRIES": str(TRIES),
    }
    if delivery.in_bucket(deployment):
        env["SEAWAY_WORKDIR_BUCKET"] = "true"
    if delivery.ca:
        env["SEAWAY_WORKDIR_CA"] = delivery.ca
    return Container(FETCHER, Run(delivery.image, ("/bin/sh", "-c", FETCH), env=tuple(env.items())))


def program_request(spec: JobSpec) -> ResourceRequest:
    """Return the request of the program's container: that of the replica, less the parts of containers beside it."""
    beside = [*spec.runtime.containers, *(each for each in spec.runtime.init_containers if each.sidecar)]
    request = spec.demand.request
    cpu_milli, memory_mib = parts_of(json.loads(spec.run.pod)) if spec.run.pod else (0, 0)
    return replace(
        request,
        cpu_milli=request.cpu_milli - sum((each.cpu_milli for each in beside), cpu_milli),
        memory_mib=request.memory_mib - sum((each.memory_mib for each in beside), memory_mib),
    )


def restart_policy(spec: JobSpec, own: str) -> str:
    """Return the restart policy of the pods; `own` is that of the template."""
    return spec.runtime.restart_policy.value if spec.runtime.restart_policy is RestartPolicy.ON_FAILURE else own


UNLIMITED = 1_000_000
"""Number of restarts that no controller counts, because Seaway does."""


def backoff_limit(spec: JobSpec) -> int:
    """Return the number of failures that a controller accepts. Some controllers count restarts in place as failures."""
    return 0 if spec.runtime.restart_policy is RestartPolicy.NEVER else UNLIMITED


def volumes(spec: JobSpec, *, large_shm: bool = False) -> list[dict[str, Any]]:
    """Return the volumes of a pod.

    Parameters
    ----------
    large_shm
        True if only the replica's memory limits the shared memory of jobs that set no size.
    """
    runtime = spec.runtime
    found = [{"name": f"volume-{at}", **_source(each)} for at, each in enumerate(runtime.volumes)]
    if _counts_starts(spec):
        found.insert(0, {"name": STATE, "emptyDir": {"sizeLimit": "1Mi"}})
    if runtime.workdir:
        found.insert(0, {"name": "workdir", "emptyDir": {}})
    if runtime.shm_mib or large_shm:
        size = {"sizeLimit": f"{runtime.shm_mib}Mi"} if runtime.shm_mib else {}
        found.insert(0, {"name": SHM, "emptyDir": {"medium": "Memory", **size}})
    return found


def mounts(spec: JobSpec, *, large_shm: bool = False) -> list[dict[str, Any]]:
    """Return the mounts of the volumes in a container."""
    runtime = spec.runtime
    found = [_mount(f"volume-{at}", each) for at, each in enumerate(runtime.volumes)]
    if _counts_starts(spec):
        found.insert(0, {"name": STATE, "mountPath": SEAWAY_STATE})
    if runtime.workdir:
        found.insert(0, {"name": "workdir", "mountPath": WORKDIR})
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
