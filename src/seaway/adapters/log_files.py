"""Stored logs of ended jobs: a compressed file for each container, in a folder for each tenant, up to a total size."""

from __future__ import annotations

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MIB = 1 << 20
ROOM = 0.9
"""Share of the limit down to which the oldest files are removed."""

_NAME = re.compile(r"[a-z0-9-]{1,100}")


class LogFiles:
    """`seaway.application.ports.logs.LogArchive` in a folder that no other process writes.

    Parameters
    ----------
    folder
        The folder; created with the first log.
    limit_mib
        Maximum size of all files. Beyond it, the tenant with the largest files loses its oldest ones, so that a tenant
        never displaces the logs of tenants with less.
    """

    def __init__(self, folder: Path, limit_mib: int) -> None:
        self._folder, self._limit = folder, limit_mib * MIB
        self._size = sum(each.stat().st_size for each in self._logs())

    @property
    def position(self) -> int | None:
        """ID of the last event that the writer handled; None before its first run."""
        with suppress(OSError, ValueError):
            return int((self._folder / "position").read_text(encoding="ascii"))
        return None

    def advance(self, position: int) -> None:
        """Store the ID of an event as the position."""
        self._write(self._folder / "position", str(position).encode())

    def put(self, tenant: str, copy: str, replica: int, container: str, lines: Sequence[str]) -> None:
        """Store the log of a container of a replica, and remove logs beyond the limit."""
        path, text = self._folder / tenant / _file(copy, replica, container), "\n".join(lines)
        with suppress(OSError):
            self._size -= path.stat().st_size
        self._write(path, gzip.compress(text.encode("utf-8", "replace"), mtime=0))
        self._size += path.stat().st_size
        if self._size > self._limit:
            self._make_room()

    def get(self, copy: str, replica: int, container: str) -> list[str] | None:
        """Return a stored log; None if there is none."""
        if not _NAME.fullmatch(copy) or not _NAME.fullmatch(container or "first"):
            return None
        for path in self._folder.glob(f"*/{_file(copy, replica, container)}"):
            with suppress(OSError, EOFError, zlib.error):
                if data := path.read_bytes():  # a full disk leaves an empty file
                    return gzip.decompress(data).decode("utf-8", "replace").split("\n")
        return None

    def drop(self, job_id: str) -> None:
        """Remove the logs of all attempts of a job."""
        if _NAME.fullmatch(job_id):
            for each in self._folder.glob(f"*/sw-{job_id}-*.gz"):
                self._size -= each.stat().st_size
                each.unlink()

    def _logs(self) -> list[Path]:
        return list(self._folder.glob("*/*.gz"))

    def _write(self, path: Path, data: bytes) -> None:
        for folder in (self._folder, path.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = path.with_name(f".{path.name}.part")
        unfinished.write_bytes(data)
        unfinished.replace(path)

    def _make_room(self) -> None:
        of_tenant: defaultdict[Path, list[tuple[int, int, Path]]] = defaultdict(list)
        for path in self._logs():
            of_tenant[path.parent].append((-path.stat().st_mtime_ns, path.stat().st_size, path))
        for aged in of_tenant.values():
            aged.sort()
        sizes = {tenant: sum(size for _, size, _ in aged) for tenant, aged in of_tenant.items()}
        self._size = sum(sizes.values())
        while self._size > ROOM * self._limit:
            tenant = max(sizes, key=lambda each: sizes[each])
            _, size, path = of_tenant[tenant].pop()
            path.unlink()
            sizes[tenant] -= size
            self._size -= size


def _file(copy: str, replica: int, container: str) -> str:
    return f"{copy}.{replica}.{container}.gz"
