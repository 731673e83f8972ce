"""The journal of a cluster: an append-only file of JSON lines that says all that happened in it.

A cluster that starts again reads its state from it. A test can read it to see what really ran where, whatever
the control plane believes (`seaway.adapters.simulated.audit`).
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
from seaway.domain.placement import Placement

SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class Opened:
    """The cluster's process started, for the `times`-th time."""

    at_ns: int
    times: int
    kind: Literal["opened"] = "opened"


@dataclass(frozen=True, slots=True)
class Created:
    """A copy was created; its devices are taken from now on.

    Attributes
    ----------
    at_ns
        When; as in all entries, nanoseconds since 1970, never before an entry further up.
    name, tenant, image
        Of its job.
    cpu_milli, memory_mib
        What each replica takes of its node.
    placements
        Its replicas, with nodes and devices.
    starts_ns, ends_ns, fails, vanishes_ns
        What will become of it if no one meddles: when it starts, when it ends (None for never) and why in
        failure (empty for success), and when it vanishes (None for never).
    ports
        Where each replica says that it answers.
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
    kind: Literal["created"] = "created"


@dataclass(frozen=True, slots=True)
class Refused:
    """A deployment was refused, permanently."""

    at_ns: int
    job_id: str
    attempt: int
    reason: str
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class Started:
    """A copy runs."""

    at_ns: int
    job_id: str
    attempt: int
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Ended:
    """A copy succeeded, or failed for a reason; it gave its devices back.

    Attributes
    ----------
    replicas
        Those that failed by themselves; empty when all ended alike.
    cause
        What a failure comes from.
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
    """A copy is gone, on command or because it vanished."""

    at_ns: int
    job_id: str
    attempt: int
    vanished: bool = False
    kind: Literal["removed"] = "removed"


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """A node failed or came back; `until_ns` is when it will come back by itself."""

    at_ns: int
    node: str
    ready: bool
    until_ns: int | None = None
    kind: Literal["node"] = "node"


@dataclass(frozen=True, slots=True)
class DeviceChanged:
    """A device became unhealthy or well; `until_ns` is when it will be well by itself."""

    at_ns: int
    node: str
    uuid: str
    healthy: bool
    until_ns: int | None = None
    kind: Literal["device"] = "device"


Entry = Opened | Created | Refused | Started | Ended | Removed | NodeChanged | DeviceChanged

_ENTRY: TypeAdapter[Any] = TypeAdapter(Annotated[Entry, Discriminator("kind")])


def journal_path(folder: Path, cluster: str) -> Path:
    """Return where a cluster's journal lies in a data folder."""
    return folder / (quote(cluster, safe="") + SUFFIX)


def read_journal(path: Path) -> list[Entry]:
    """Read a journal; a file that is not there is empty, and a last line without its end is left out.

    Raises
    ------
    RejectedError
        When another line is no entry; says which.
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
    """Writes entries; what `flush` was called for outlives the process.

    Parameters
    ----------
    path
        The file, which is made when it is not there; None keeps nothing.

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
        """Note an entry, to be written with the next `flush`."""
        if self._file is not None:
            self._lines.append(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))

    def flush(self) -> None:
        """Write what was noted.

        Raises
        ------
        UnavailableError
            When it cannot be written now; it is kept for the next time.
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
        """Write what was noted, and let go of the file."""
        try:
            self.flush()
        finally:
            if self._file is not None:
                self._file.close()
                self._file = None


def compact(path: Path, entries: Iterable[Entry]) -> None:
    """Replace a journal by `entries`, at once or not at all."""
    beside = path.with_suffix(".new")
    beside.write_bytes(b"".join(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE) for entry in entries))
    beside.replace(path)


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines that have their end, without it."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    return text.split(b"\n")[:-1]


@contextmanager
def locked(data: Path | None) -> Iterator[None]:
    """Keep a data folder, which is made when it is not there, from other processes; None is not a folder.

    Raises
    ------
    RejectedError
        When another process has it.
    UnavailableError
        When it cannot be made.
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
