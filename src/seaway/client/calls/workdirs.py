"""Calls about archives with working directories of jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from seaway.client.call import PREFIX, Answer, Bytes, Call, Model, Nothing, get, part, send

if TYPE_CHECKING:
    from seaway.wire.workdirs import WorkdirList, WorkdirSent

_WIRE = "seaway.wire.workdirs"
_FILE = "application/octet-stream"

LIST: Answer[WorkdirList] = Model(_WIRE, "WorkdirList")
SENT: Answer[WorkdirSent] = Model(_WIRE, "WorkdirSent")

T = TypeVar("T")


def workdirs(*, tenant: str = "") -> Call[WorkdirList]:
    """List the stored archives of a tenant, and the limits of their sizes."""
    return _of(tenant, get("/workdirs", LIST))


def complete_workdir(digest: str, size_bytes: int, *, tenant: str = "") -> Call[WorkdirSent]:
    """Complete an archive; the answer lists the parts that are missing. See `seaway.client.workdirs.send_folder`."""
    return _of(tenant, send("PUT", f"/workdirs/{part(digest)}", SENT, {"size_bytes": size_bytes}))


def send_workdir_part(digest: str, number: int, content: bytes, *, tenant: str = "") -> Call[None]:
    """Store a part of an archive."""
    path = f"{PREFIX}/workdirs/{part(digest)}/parts/{number}"
    return _of(tenant, Call("PUT", path, Nothing(), {}, {"Content-Type": _FILE}, content))


def get_workdir(digest: str, *, tenant: str = "") -> Call[bytes]:
    """Return an archive."""
    return _of(tenant, get(f"/workdirs/{part(digest)}", Bytes()))


def delete_workdir(digest: str, *, tenant: str = "") -> Call[None]:
    """Remove an archive that no unfinished job needs."""
    return _of(tenant, send("DELETE", f"/workdirs/{part(digest)}", Nothing()))


def _of(tenant: str, call: Call[T]) -> Call[T]:
    return replace(call, query={**call.query, "tenant": tenant or None})
