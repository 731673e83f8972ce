"""Environment in which the programs of a job run: variables, volumes and containers."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from seaway.domain.errors import RejectedError
from seaway.domain.pod import MAX_BYTES, require_pod
from seaway.domain.reasons import Reason, also

OBJECT_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Pattern of the name of an object in Kubernetes (a DNS subdomain)."""

CONTAINER_NAME = re.compile(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
"""Pattern of the name of a container (a DNS label)."""

OBJECT_KEY = re.compile(r"(?=.{1,253}$)(?!\.\.?$)[-._a-zA-Z0-9]+")
"""Pattern of a key of a Secret or ConfigMap."""


@dataclass(frozen=True, slots=True)
class Run:
    """Program of each replica.

    Attributes
    ----------
    image
        Container image.
    command, args
        As in Kubernetes; empty for those of the image.
    env
        Environment variables, by name.
    ports
        TCP ports that the container listens on.
    env_from_secret, env_from_config_map
        Variables with the value of a key of an object, by name: ``OBJECT/KEY``.
    pod
        Own fields of the pods, a pod spec of Kubernetes in JSON; empty for none.
    """

    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    ports: tuple[int, ...] = ()
    env_from_secret: tuple[tuple[str, str], ...] = ()
    env_from_config_map: tuple[tuple[str, str], ...] = ()
    pod: str = ""

    def __post_init__(self) -> None:
        """Check the pod spec, the references, and that each variable has one value."""
        if self.pod:
            if len(self.pod) > MAX_BYTES:
                raise RejectedError(Reason("pod_too_large", most=MAX_BYTES // 1024), where="run.pod")
            require_pod(json.loads(self.pod), path_problem, RESERVED_NAMES)
        seen = dict.fromkeys((name for name, _ in self.env), "env")
        for field in ("env_from_secret", "env_from_config_map"):
            for name, reference in getattr(self, field):
                what, slash, key = reference.partition("/")
                if not slash or not OBJECT_NAME.fullmatch(what) or not OBJECT_KEY.fullmatch(key):
                    said = Reason("use_reference", value=reference)
                    raise RejectedError(said, where=f"run.{field}.{name}")
                if name in seen:
                    raise RejectedError(Reason("set_in_run", field=seen[name]), where=f"run.{field}.{name}")
                seen[name] = field


class VolumeKind(StrEnum):
    """Source of a volume."""

    CLAIM = "claim"
    """A PersistentVolumeClaim."""
    SECRET = "secret"
    CONFIG_MAP = "config_map"
    EMPTY_DIR = "empty_dir"
    """An empty folder of the node, removed with the pod."""
    CSI = "csi"
    """An object store, read through a CSI driver."""


READ_ONLY = frozenset({VolumeKind.SECRET, VolumeKind.CONFIG_MAP, VolumeKind.CSI})
"""Volumes that programs can only read."""

WORKDIR = "/workdir"
"""Path of the working directory of a job that sends a folder."""

ARCHIVE = re.compile(r"sha256:[0-9a-f]{64}")
"""Pattern of the digest of an archive with a folder."""

SEAWAY_FILES = "/etc/seaway"
"""Path of the files that Seaway adds to containers, such as the list of hosts of a gang."""

SEAWAY_STATE = "/run/seaway"
"""Path of the files that outlast a restart of the program in its place."""

_RESERVED = (
    "/dev",
    "/proc",
    "/sys",
    "/etc/ld.so.preload",
    "/usr/local/vgpu",
    "/tmp/vgpu",
    "/tmp/vgpulock",
    SEAWAY_FILES,
    SEAWAY_STATE,
)
"""Paths of the kernel, of the libraries that limit shares of devices, and of Seaway."""


def path_problem(path: str) -> str:
    """Return the reason why no volume may be mounted at a path; empty for none."""
    try:
        mount_path(path)
    except RejectedError as error:
        return error.message
    return ""


def mount_path(given: str) -> str:
    """Return the path of a mount as container runtimes normalise it.

    Raises
    ------
    RejectedError
        If it is not absolute, or reserved.
    """
    path = posixpath.normpath(f"/{given.lstrip('/')}")
    if not given.startswith("/") or path == "/" or ".." in given.split("/") or ":" in given:
        raise RejectedError(Reason("use_absolute_path", value=given), where="path")
    if reserved := next((each for each in _RESERVED if f"{path}/".startswith(f"{each}/")), ""):
        hint = Reason("use_shm_size") if reserved == "/dev" else ""
        said = also(Reason("path_reserved", path=given, reserved=reserved), hint)
        raise RejectedError(said, where="path")
    return path


@dataclass(frozen=True, slots=True)
class Volume:
    """Volume of each replica, mounted in all its containers.

    Attributes
    ----------
    path
        Absolute path in the containers.
    name
        Name of the object, or of the CSI driver; empty for an empty folder.
    size_mib
        Maximum size of an empty folder, MiB.
    read_only
        True if programs can only read it.
    sub_path
        Path within the volume that is mounted; empty for all of it.
    attributes
        Options of the CSI driver, such as the name of the bucket.
    secret
        Secret with the credentials for the CSI driver; empty for none.
    """

    path: str
    kind: VolumeKind
    name: str = ""
    size_mib: int = 0
    read_only: bool = False
    sub_path: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    secret: str = ""

    def __post_init__(self) -> None:
        """Check the paths and names. Paths are normalised as container runtimes do, so that each has one form."""
        path = mount_path(self.path)
        if self.sub_path.startswith("/") or ".." in self.sub_path.split("/"):
            raise RejectedError(Reason("use_relative_path", value=self.sub_path), where="sub_path")
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "sub_path", posixpath.normpath(self.sub_path) if self.sub_path.strip("/.") else "")
        for field, name in ((self.kind.value, self.name), ("csi.secret", self.secret)):
            if name and not OBJECT_NAME.fullmatch(name):
                said = Reason("use_object_name", value=name)
                raise RejectedError(said, where=field)
        if self.kind is VolumeKind.EMPTY_DIR and self.size_mib < 1:
            raise RejectedError(Reason("one_mib"), where="empty_dir")


class PortProtocol(StrEnum):
    """Protocol of a port."""

    TCP = "TCP"
    UDP = "UDP"


PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
"""Pattern of the name of a port in Kubernetes (an IANA service name)."""

PROGRAM = "main"
"""Name of the container of the program in the addresses of a job."""


@dataclass(frozen=True, slots=True)
class ContainerPort:
    """Port on which a container listens; the name may be empty."""

    number: int
    name: str = ""
    protocol: PortProtocol = PortProtocol.TCP
    container: str = PROGRAM

    def __post_init__(self) -> None:
        """Check the name."""
        if self.name and not PORT_NAME.fullmatch(self.name):
            raise RejectedError(Reason("use_port_name", value=self.name), where="name")


@dataclass(frozen=True, slots=True)
class Container:
    """Container of a replica besides the one with its program.

    Attributes
    ----------
    run
        Its program. It has the image of the job if it names none.
    cpu_milli, memory_mib
        Its part of the CPU and memory of the replica. An init container that ends may use all of them, and does with 0.
    sidecar
        True for an init container that runs beside the program, and ends with it.
    ports
        Ports on which it listens.
    """

    name: str
    run: Run
    cpu_milli: int = 0
    memory_mib: int = 0
    sidecar: bool = False
    ports: tuple[ContainerPort, ...] = ()

    def __post_init__(self) -> None:
        """Check the name."""
        if not CONTAINER_NAME.fullmatch(self.name):
            said = Reason("use_container_name", value=self.name)
            raise RejectedError(said, where="name")


class RestartPolicy(StrEnum):
    """Reaction of a node to a program that ended, by the names of Kubernetes."""

    NEVER = "Never"
    """The replica ends."""
    ON_FAILURE = "OnFailure"
    """A failed program is started again in its place. It keeps its devices."""


SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
"""Signals that a program may get before it is stopped."""


@dataclass(frozen=True, slots=True)
class LimitWarning:
    """Signal that a program gets before its time limit.

    Attributes
    ----------
    before_s
        Time before the limit, seconds.
    """

    signal: str = "SIGUSR1"
    before_s: int = 60

    def __post_init__(self) -> None:
        """Check the values."""
        if self.signal not in SIGNALS:
            raise RejectedError(
                Reason("is_not_use", value=self.signal, names=tuple(SIGNALS)), where="time_limit_warning.signal"
            )
        if self.before_s < 1:
            raise RejectedError(Reason("one_second"), where="time_limit_warning.before")


FETCHER = "seaway-workdir"
"""Name of the container that fetches the working directory of a job."""

PROGRAM_NAMES = frozenset({"main", "pytorch", "ray-head", "ray-worker"})
"""Names of the containers that run the program of a job."""

RESERVED_NAMES = PROGRAM_NAMES | {FETCHER}


@dataclass(frozen=True, slots=True)
class Runtime:
    """Environment of each replica, besides its program.

    Attributes
    ----------
    volumes
        Volumes, mounted in all containers.
    shm_mib
        Maximum size of the shared memory in ``/dev/shm``, MiB; 0 for the default of the template.
    setup
        Shell commands that run before the program, in its container.
    init_containers
        Containers that end one after the other before the program starts, and sidecars.
    containers
        Containers that run beside the program. The replica ends when all have ended.
    restart_policy
        Reaction to a failed program; services always restart.
    max_restarts
        Maximum number of restarts of the containers of a replica in its place; None for no maximum.
    warning
        Signal before the time limit; None for none.
    workdir
        Digest of the stored archive with the content of the working directory; empty for the directory of the image.
    """

    volumes: tuple[Volume, ...] = ()
    shm_mib: int = 0
    setup: tuple[str, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    restart_policy: RestartPolicy = RestartPolicy.NEVER
    max_restarts: int | None = None
    warning: LimitWarning | None = None
    workdir: str = ""

    def __post_init__(self) -> None:
        """Check that paths and names differ, and that the fields agree."""
        if self.workdir and not ARCHIVE.fullmatch(self.workdir):
            raise RejectedError(Reason("archive_digest"), where="workdir")
        names = set(RESERVED_NAMES)
        for field in ("init_containers", "containers"):
            for at, each in enumerate(getattr(self, field)):
                if each.name in names:
                    raise RejectedError(Reason("name_in_use", value=each.name), where=f"{field}[{at}].name")
                names.add(each.name)
        paths = [each.path for each in self.volumes]
        if self.workdir and WORKDIR in paths:
            said = Reason("path_is_workdir", path=WORKDIR)
            raise RejectedError(said, where=f"volumes[{paths.index(WORKDIR)}].path")
        for at, path in enumerate(paths):
            if path in paths[:at]:
                raise RejectedError(Reason("path_mounted", path=path), where=f"volumes[{at}].path")


NO_PROGRAM, NO_RUNTIME = Run(), Runtime()


def programs(run: Run, runtime: Runtime) -> Iterator[tuple[str, Run]]:
    """Yield the programs of all containers, each with its field."""
    yield "run", run
    for field in ("init_containers", "containers"):
        for at, each in enumerate(getattr(runtime, field)):
            yield f"{field}[{at}]", each.run


def ports_of(run: Run, runtime: Runtime) -> Iterator[tuple[str, ContainerPort]]:
    """Yield the ports of all containers in the order of their names in Kubernetes, each with its field."""
    for at, port in enumerate(run.ports):
        yield f"run.ports[{at}]", ContainerPort(port)
    for field in ("init_containers", "containers"):
        for place, each in enumerate(getattr(runtime, field)):
            for at, own in enumerate(each.ports):
                yield f"{field}[{place}].ports[{at}]", own


def secrets_of(run: Run, runtime: Runtime) -> Iterator[tuple[str, str]]:
    """Yield the Secrets that a job names, each with its field."""
    for where, program in programs(run, runtime):
        for name, reference in program.env_from_secret:
            yield f"{where}.env_from_secret.{name}", reference.partition("/")[0]
    for at, each in enumerate(runtime.volumes):
        if each.kind is VolumeKind.SECRET:
            yield f"volumes[{at}].secret", each.name
        if each.secret:
            yield f"volumes[{at}].csi.secret", each.secret
