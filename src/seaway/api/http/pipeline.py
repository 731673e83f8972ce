"""Request pipeline: authentication, authorization, response, and an entry in the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response

from seaway.api.http.replies import answer
from seaway.application.access import Caller
from seaway.application.audit import AuditLog
from seaway.application.records import AuditEntry, Role
from seaway.bootstrap.control_plane import ControlPlane
from seaway.domain.errors import UnavailableError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

READERS = 8
WRITERS = 64
"""Number of threads that wait for the writer, which stores concurrent changes together."""

MAX_THREADS = 4
"""Number of threads for long admission checks."""

HEAVY = 2
"""Number of concurrent slow responses, such as the objects of thousands of replicas."""

IN_LINE = 14
"""Maximum number of queued slow responses. Further requests are rejected and can be retried."""

RETRY_AFTER_S = 2


class Threads:
    """Separate thread pools, so that one kind of work does not block others."""

    def __init__(self) -> None:
        self._readers = CapacityLimiter(READERS)
        self._writers = CapacityLimiter(WRITERS)
        self._limiter = CapacityLimiter(MAX_THREADS)
        self._heavy = CapacityLimiter(HEAVY)
        self.heavy_ahead = 0
        """Number of slow responses in progress or queued."""

    async def read(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a read."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._readers)

    async def write(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a write, which waits for the writer."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._writers)

    async def admit(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a long admission check."""
        return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._limiter)

    async def heavy(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a slow request.

        Raises
        ------
        UnavailableError
            If too many slow requests are queued.
        """
        if self.heavy_ahead >= HEAVY + IN_LINE:
            raise UnavailableError("too many slow requests; try again soon", retry_after_s=RETRY_AFTER_S)
        self.heavy_ahead += 1
        try:
            return await to_thread.run_sync(partial(work, *args, **kwargs), limiter=self._heavy)
        finally:
            self.heavy_ahead -= 1


CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LONGEST_TARGET = 512
LONGEST_ADDRESS = 64
"""Maximum length of a recorded client address. A trusted proxy may send any text."""

WHO = "seaway.who"
"""Key in a request's scope: the caller."""

HEADERS = "seaway.headers"
"""Key in a request's scope: headers by name, for fast access."""

OPERATION = "seaway.operation"
DRY_RUN = "seaway.dry_run"
MADE = "seaway.made"
"""Key in a request's scope: ID of the created object, unless the path names it."""

NOTED = "seaway.noted"
"""Key in a request's scope: True if the audit log already has an entry."""

INSIDE = "seaway.inside"
"""Key in a request's scope: True if the request comes from a page of this process."""

AUDIT_FLUSH_S = 0.1

Call = Callable[[Request], Awaitable[Response]]


class RequestPipeline:
    """Request pipeline of a control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.threads = Threads()
        self.audit = AuditLog(plane.writer)
        self._storing: asyncio.Task[None] | None = None

    async def serve(self, request: Request, operation: str, role: Role, call: Call) -> Response:
        """Handle a request of an operation that requires `role`."""
        who: Caller | None = None
        request.scope[OPERATION] = operation
        try:
            who = request.scope[WHO] = await self._who(request)
            who.require(role)
            reply = await call(request)
        except Exception as error:  # noqa: BLE001  # internal errors: details are in the log only
            reply = answer(error, request.scope["path"])
        if request.scope["method"] in CHANGING:
            await self._note(request, who, reply.status_code)
        return reply

    async def _who(self, request: Request) -> Caller:
        """Authenticate the caller. Only uncached tokens need a database query."""
        access, header, address = self.plane.access, header_of(request, b"authorization"), address_of(request)
        who = access.known(header, address)
        return who if who is not None else await self.threads.read(access.verify, header, address)

    async def _note(self, request: Request, who: Caller | None, status: int) -> None:
        """Add an entry to the audit log. Successful changes wait until the entry is stored."""
        if status in {408, 429} or request.scope.get(DRY_RUN) or request.scope.get(NOTED):
            return
        self.audit.note(self._entry(request, who, status, request.scope.get(MADE, "")))
        if request.scope[OPERATION] != "submit_job" and status < 400:
            await self.audit.store()
        elif self._storing is None:
            self._storing = asyncio.create_task(self._flush_audit())

    def accepted(self, request: Request, job_id: str) -> AuditEntry:
        """Return the audit entry of a submit, which is stored with the job."""
        return self._entry(request, request.scope[WHO], 201, job_id)

    def _entry(self, request: Request, who: Caller | None, status: int, made: str) -> AuditEntry:
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

    async def _flush_audit(self) -> None:
        """Store audit entries after a short delay, in one transaction."""
        await asyncio.sleep(AUDIT_FLUSH_S)
        self._storing = None
        await self.audit.store()


def header_of(request: Request, name: bytes) -> str | None:
    """Return a header by its lower-case name; None if it is absent."""
    value: bytes | None = request.scope[HEADERS].get(name)
    return None if value is None else value.decode("latin-1")


def address_of(request: Request) -> str:
    """Return the address of the client."""
    client = request.scope.get("client")
    return str(client[0])[:LONGEST_ADDRESS] if client else ""


def pipeline_of(request: Request) -> RequestPipeline:
    """Return the pipeline that received a request."""
    pipeline: RequestPipeline = request.app.state.pipeline
    return pipeline


def plane_of(request: Request) -> ControlPlane:
    """Return the control plane of a request."""
    return pipeline_of(request).plane


def caller_of(request: Request) -> Caller:
    """Return the caller."""
    who: Caller = request.scope[WHO]
    return who


def _target(request: Request, made: str) -> str:
    path = _printable(request.scope["path"])
    return f"{path}/{made}" if made else path


def _printable(path: str) -> str:
    return path if path.isprintable() else ascii(path)[1:-1]
