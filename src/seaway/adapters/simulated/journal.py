"""Journal of a cluster: an append-only file of JSON lines with all events.

A cluster restores its state from it after a restart. Tests read it to verify the executed workloads independently of
the control plane (`seaway.adapters.simulated.ledger`).
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from pydantic import Discriminator, TypeAdapter, ValidationError

from seaway.domain.deployment import Cause
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.job_spec import NOT_EXPOSED, Expose
from seaway.domain.placement import Placement

SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class Opened:
    """Start of the cluster's process; `times` counts the starts."""

    at_ns: int
    times: int
    kind: Literal["opened"] = "opened"


@dataclass(frozen=True, slots=True)
class Created:
    """Creation of a workload, which allocates its devices.

    Attributes
    ----------
    at_ns
        Time, as in all entries: nanoseconds since 1970, never less than in earlier entries.
    name, tenant, image
        Fields of its job.
    cpu_milli, memory_mib
        Resources of each replica.
    placements
        Its replicas with nodes and devices.
    starts_ns, ends_ns, fails, vanishes_ns
        Planned course without interventions: start, end (None for never), reason of its failure (empty for success),
        and time when it vanishes (None for never).
    ports
        Ports of each replica.
    expose
        How clients outside its cluster reach them.
    service
        ID in the names for clients; empty for that of the job.
    rank_0
        Whether it has rank 0 of a ring over several clusters.
    elastic
        Whether its replicas share one amount of work, so that it ends earlier with more of them.
    """

    at_ns: int
    job_id: str
    attempt: int
    name: str
    tenant: str
    image: str
    cpu_milli: int
    memory_mib: int
    placements: tuple[Placement, ...]
    starts_ns: int
    ends_ns: int | None
    fails: str = ""
    vanishes_ns: int | None = None
    ports: tuple[int, ...] = ()
    expose: Expose = NOT_EXPOSED
    service: str = ""
    elastic: bool = False
    rank_0: bool = False
    kind: Literal["created"] = "created"


@dataclass(frozen=True, slots=True)
class Refused:
    """Permanent refusal of a deployment."""

    at_ns: int
    job_id: str
    attempt: int
    reason: str
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class Started:
    """Start of a workload."""

    at_ns: int
    job_id: str
    attempt: int
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Resized:
    """Other replicas of a live workload.

    Attributes
    ----------
    placements
        All its replicas from now on. Those that it had before have the same place.
    ready_ns
        Time at which its new replicas run.
    """

    at_ns: int
    job_id: str
    attempt: int
    placements: tuple[Placement, ...]
    ready_ns: int
    kind: Literal["resized"] = "resized"


@dataclass(frozen=True, slots=True)
class ReplicasLost:
    """Failure of the nodes or devices of some replicas of a live workload. The others continue."""

    at_ns: int
    job_id: str
    attempt: int
    replicas: tuple[int, ...]
    reason: str
    kind: Literal["replicas_lost"] = "replicas_lost"


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a workload by success or failure, which frees its devices.

    Attributes
    ----------
    replicas
        Replicas that failed by themselves; empty if all ended in the same way.
    cause
        Cause of a failure.
    """

    at_ns: int
    job_id: str
    attempt: int
    succeeded: bool
    reason: str = ""
    replicas: tuple[int, ...] = ()
    cause: Cause = Cause.WORKLOAD
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True, slots=True)
class Removed:
    """Removal of a workload, by a command or because it vanished."""

    at_ns: int
    job_id: str
    attempt: int
    vanished: bool = False
    kind: Literal["removed"] = "removed"


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """Failure or recovery of a node; `until_ns` is the time of its automatic recovery."""

    at_ns: int
    node: str
    ready: bool
    until_ns: int | None = None
    kind: Literal["node"] = "node"


@dataclass(frozen=True, slots=True)
class DeviceChanged:
    """Change of a device's health; `until_ns` is the time of its automatic recovery."""

    at_ns: int
    node: str
    uuid: str
    healthy: bool
    until_ns: int | None = None
    kind: Literal["device"] = "device"


Entry = Opened | Created | Refused | Started | Resized | ReplicasLost | Ended | Removed | NodeChanged | DeviceChanged

_ENTRY: TypeAdapter[Any] = TypeAdapter(Annotated[Entry, Discriminator("kind")])


def journal_path(folder: Path, cluster: str) -> Path:
    """Return the path of a cluster's journal in a data folder."""
    return folder / (quote(cluster, safe="") + SUFFIX)


def read_journal(path: Path) -> list[Entry]:
    """Read a journal. A missing file counts as empty, and an incomplete last line is skipped.

    Raises
    ------
    RejectedError
        When another line is invalid. The error contains the line number.
    """
    entries: list[Entry] = []
    for number, line in enumerate(_whole_lines(path), 1):
        try:
            entries.append(_ENTRY.validate_json(line))
        except (ValidationError, RejectedError) as error:
            what = str(error).splitlines()[0]
            raise RejectedError(f"no entry of a journal: {what}", where=f"{path}:{number}") from None
    return entries


class Journal:
    """Writer of a journal; entries are durable after `flush`.

    Parameters
    ----------
    path
        Path of the file, which is created if missing; None for no file.

    Raises
    ------
    UnavailableError
        When the file cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        self._lines: list[bytes] = []
        self._file = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = path.open("ab", buffering=0)
                self._size = sum(len(line) + 1 for line in _whole_lines(path))
                self._file.truncate(self._size)
            except OSError as error:
                raise UnavailableError(f"journal {path}: {error}") from error

    def add(self, entry: Entry) -> None:
        """Add an entry, which the next `flush` writes."""
        if self._file is not None:
            self._lines.append(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))

    def flush(self) -> None:
        """Write the added entries.

        Raises
        ------
        UnavailableError
            When the entries cannot be written now. The next call retries them.
        """
        if self._file is None or not self._lines:
            return
        block = b"".join(self._lines)
        try:
            written = self._file.write(block)
            if written != len(block):
                raise OSError(f"only {written} of {len(block)} bytes were written")
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._size)
            raise UnavailableError(f"the journal cannot be written: {error}") from error
        self._size += len(block)
        self._lines.clear()

    def close(self) -> None:
        """Write the added entries, and close the file."""
        try:
            self.flush()
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None


def compact(path: Path, entries: Iterable[Entry]) -> None:
    """Replace a journal by `entries` atomically."""
    beside = path.with_suffix(".new")
    beside.write_bytes(b"".join(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE) for entry in entries))
    beside.replace(path)


def _whole_lines(path: Path) -> list[bytes]:
    """Return the complete lines, without line ends."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    return text.split(b"\n")[:-1]


@contextmanager
def locked(data: Path | None) -> Iterator[None]:
    """Lock a data folder against other processes, and create it if missing; None locks nothing.

    Raises
    ------
    RejectedError
        When another process has locked it.
    UnavailableError
        When it cannot be created.
    """
    if data is None:
        yield
        return
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = (data / "lock").open("w")
    except OSError as error:
        raise UnavailableError(f"data folder {data}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RejectedError(f"data folder {data} is in use by another process") from None
        yield
