"""Request pipeline: authentication, authorization, response, and an entry in the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import Request, Response

from seaway.api.http.errors import answer
from seaway.api.http.threads import Threads
from seaway.application.access import Who
from seaway.application.audit import AuditLog
from seaway.application.records import AuditEntry, Role
from seaway.bootstrap.control_plane import ControlPlane

CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LONGEST_TARGET = 512
LONGEST_ADDRESS = 64
"""Letters of a visitor's address that are kept: a proxy that is believed may say anything."""

WHO = "seaway.who"
"""Key in a request's scope: the caller."""

HEADERS = "seaway.headers"
"""Key in a request's scope: its headers by name, for fast access."""

OPERATION = "seaway.operation"
DRY_RUN = "seaway.dry_run"
MADE = "seaway.made"
"""Key in a request's scope: the ID of the created object, if its path does not name it."""

NOTED = "seaway.noted"
"""Key in a request's scope: whether the audit log has it already."""

INSIDE = "seaway.inside"
"""Key in a request's scope: whether it comes from a page of this process."""

AUDIT_SOON_S = 0.1

Call = Callable[[Request], Awaitable[Response]]


class RequestPipeline:
    """Receives requests for a control plane.

    Parameters
    ----------
    plane
        Which one.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.threads = Threads()
        self.audit = AuditLog(plane.writer)
        self._storing: asyncio.Task[None] | None = None

    async def serve(self, request: Request, operation: str, role: Role, call: Call) -> Response:
        """Answer a request whose operation takes `role`."""
        who: Who | None = None
        request.scope[OPERATION] = operation
        try:
            who = request.scope[WHO] = await self._who(request)
            who.require(role)
            reply = await call(request)
        except Exception as error:  # noqa: BLE001  # our own fault: the answer says no more, the log does
            reply = answer(error, request.scope["path"])
        if request.scope["method"] in CHANGING:
            await self._note(request, who, reply.status_code)
        return reply

    async def _who(self, request: Request) -> Who:
        """Find out who asks; waits only for tokens that another user gave out."""
        access, header, address = self.plane.access, header_of(request, b"authorization"), address_of(request)
        who = access.known(header, address)
        return who if who is not None else await self.threads.read(access.verify, header, address)

    async def _note(self, request: Request, who: Who | None, status: int) -> None:
        """Put down who asked for what; what changed anything waits until that is stored."""
        if status in {408, 429} or request.scope.get(DRY_RUN) or request.scope.get(NOTED):
            return
        self.audit.note(self._entry(request, who, status, request.scope.get(MADE, "")))
        if request.scope[OPERATION] != "submit_job" and status < 400:
            await self.audit.store()
        elif self._storing is None:
            self._storing = asyncio.create_task(self._store_soon())

    def accepted(self, request: Request, job_id: str) -> AuditEntry:
        """Write who submitted a job, to be stored with it."""
        return self._entry(request, request.scope[WHO], 201, job_id)

    def _entry(self, request: Request, who: Who | None, status: int, made: str) -> AuditEntry:
        return AuditEntry(
            at_ns=self.plane.clock.now_ns(),
            actor=who.name if who else "",
            role=who.role.value if who else "",
            tenant=who.tenant if who else "",
            verb=f"{request.scope['method']} {request.scope[OPERATION]}",
            target=_target(request, made)[:LONGEST_TARGET],
            status=status,
            address=address_of(request),
        )

    async def _store_soon(self) -> None:
        """Store audit entries a little later, with those that come meanwhile."""
        await asyncio.sleep(AUDIT_SOON_S)
        self._storing = None
        await self.audit.store()


def header_of(request: Request, name: bytes) -> str | None:
    """Return a header by its name in small letters; None when it was not sent."""
    value: bytes | None = request.scope[HEADERS].get(name)
    return None if value is None else value.decode("latin-1")


def address_of(request: Request) -> str:
    """Return where a request comes from."""
    client = request.scope.get("client")
    return str(client[0])[:LONGEST_ADDRESS] if client else ""


def pipeline_of(request: Request) -> RequestPipeline:
    """Return the pipeline that received a request."""
    pipeline: RequestPipeline = request.app.state.pipeline
    return pipeline


def plane_of(request: Request) -> ControlPlane:
    """Return the control plane that is asked."""
    return pipeline_of(request).plane


def who_of(request: Request) -> Who:
    """Return who asks."""
    who: Who = request.scope[WHO]
    return who


def _target(request: Request, made: str) -> str:
    path = _printable(request.scope["path"])
    return f"{path}/{made}" if made else path


def _printable(path: str) -> str:
    return path if path.isprintable() else ascii(path)[1:-1]
