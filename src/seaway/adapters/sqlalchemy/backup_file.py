"""Format of backup files: compressed lines of JSON, equal for all databases.

The first line is the header. Each table follows as a line with its name and columns, a line for each row, and a line
with the number of rows and their checksum. The last line marks the file as complete.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage
from types import TracebackType
from typing import Any

import orjson

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

FORMAT = 2
"""Format version; increased when older versions of Seaway cannot read the files. Format 1 was never released."""

RESERVE = 256 << 20
"""Bytes of a disk that a backup leaves free, at most a twentieth of the disk. The database may be on the same disk."""

Progress = Callable[[int, int], None]
"""Callback for progress: completed amount and total amount."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a backup.

    Attributes
    ----------
    schema
        Schema version of the tables.
    taken_ns
        Time of the backup, nanoseconds since 1970.
    source
        Kind of the database.
    """

    schema: str
    taken_ns: int
    source: str


def require_room(folder: Path, size: int) -> None:
    """Check that a disk has room for a file.

    Raises
    ------
    RejectedError
        If less than the reserve would remain free after `size` more bytes.
    """
    disk = disk_usage(folder)
    reserve = min(RESERVE, disk.total // 20)
    if disk.free < size + reserve:
        raise RejectedError(
            f"a backup needs about {_mib(size)} and leaves {_mib(reserve)} free, but the disk has {_mib(disk.free)}: "
            "free some space, or store fewer backups",
            where=str(folder),
        )


def _mib(size: int) -> str:
    return f"{max(1, size >> 20):,} MiB"


class BackupWriter:
    """Writer of a backup. The file appears under its name only when it is complete.

    It stops when the disk is almost full.

    Parameters
    ----------
    path
        Path of the file; an existing file is replaced.
    header
        Header of the backup.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._path = path
        self._draft = path.with_name(f".{path.name}.{os.getpid()}")
        self._raw = self._draft.open("wb")
        self._draft.chmod(0o600)
        self._file = gzip.GzipFile("", "wb", 5, self._raw)
        head = {"format": FORMAT, "schema": header.schema, "taken_ns": header.taken_ns, "source": header.source}
        self._line({"seaway": head})

    def __enter__(self) -> BackupWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Move the file to its path, or delete the incomplete file."""
        try:
            if kind is None:
                self._line({"whole": True})
                self._file.close()
                self._raw.flush()
                os.fsync(self._raw.fileno())
                self._draft.replace(self._path)
        finally:
            with suppress(OSError):
                self._raw.close()
            self._draft.unlink(missing_ok=True)

    def table(self, name: str, columns: Sequence[str], pages: Iterable[Sequence[Sequence[Any]]]) -> None:
        """Write a table with pages of rows."""
        self._line({"table": name, "columns": list(columns)})
        digest, count = hashlib.sha256(), 0
        for page in pages:
            require_room(self._path.parent, 0)
            text = b"".join([orjson.dumps(list(row), option=orjson.OPT_APPEND_NEWLINE) for row in page])
            digest.update(text)
            count += len(page)
            self._file.write(text)
        self._line({"rows": count, "sha256": digest.hexdigest()})

    def _line(self, value: object) -> None:
        self._file.write(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE))


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table from a backup."""

    table: str
    columns: tuple[str, ...]
    rows: list[list[Any]]


class BackupReader:
    """Reader of a backup that verifies the whole file.

    Parameters
    ----------
    path
        Path of the file.

    Raises
    ------
    RejectedError
        When it is not a backup, or a Seaway wrote it that is newer or was never released.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        first = next(self._lines(None), b"")
        try:
            head = orjson.loads(first)["seaway"]
            version = int(head["format"])
            self.header = Header(str(head["schema"]), int(head["taken_ns"]), str(head["source"]))
        except (ValueError, KeyError, TypeError):
            raise RejectedError("this is not a backup of Seaway", where=str(path)) from None
        if version > FORMAT:
            raise RejectedError(f"written by a newer Seaway (format {version}): restore it with that", where=str(path))
        if version == 1:
            raise RejectedError(Reason("before_first_release"), where=str(path))

    def pages(self, size: int, progress: Progress | None = None) -> Iterator[TableRows]:
        """Yield all rows in pages of at most `size` rows.

        Raises
        ------
        RejectedError
            When the file is incomplete or damaged.
        """
        lines = self._lines(progress)
        next(lines)
        for line in lines:
            head = self._value(line)
            if "whole" in head:
                return
            yield from self._table(head, lines, size)
        raise self._damaged("it ends too early")

    def _table(self, head: Any, lines: Iterator[bytes], size: int) -> Iterator[TableRows]:  # noqa: ANN401
        """Yield the rows of one table, and verify its checksum."""
        try:
            name, columns = str(head["table"]), tuple(map(str, head["columns"]))
        except (KeyError, TypeError):
            raise self._damaged("a table has no name") from None
        digest, page = hashlib.sha256(), TableRows(name, columns, [])
        for count, line in enumerate(lines):
            value = self._value(line)
            if isinstance(value, dict):
                if value != {"rows": count, "sha256": digest.hexdigest()}:
                    raise self._damaged(f"the rows of {name} are not those that were written")
                yield page
                return
            digest.update(line)
            page.rows.append(value)
            if len(page.rows) == size:
                yield page
                page = TableRows(name, columns, [])

    def _value(self, line: bytes) -> Any:  # noqa: ANN401
        try:
            return orjson.loads(line)
        except ValueError:
            raise self._damaged("a line is not as it was written") from None

    def _lines(self, progress: Progress | None) -> Iterator[bytes]:
        """Yield the lines, and report progress."""
        try:
            with self._path.open("rb") as raw, gzip.GzipFile("", "rb", fileobj=raw) as file:
                size = self._path.stat().st_size
                for at, line in enumerate(file):
                    yield line
                    if progress and at % 1000 == 0:
                        progress(raw.tell(), size)
                if progress:
                    progress(size, size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise self._damaged("it cannot be unpacked") from None
        except OSError as error:
            raise RejectedError(f"cannot be read: {error.strerror or error}", where=str(self._path)) from None

    def _damaged(self, how: str) -> RejectedError:
        return RejectedError(f"the backup is damaged: {how}; take another one", where=str(self._path))
