"""Request pipeline: authentication, authorization, response, and an entry in the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, Semaphore, to_thread
from fastapi import Request, Response

from seaway.api.http.replies import RETRY_AFTER_S, answer
from seaway.api.http.sockets import SOCKET
from seaway.application.access import Caller
from seaway.application.audit import AuditLog
from seaway.application.changes import Change
from seaway.application.differences import differences
from seaway.application.records import AuditEntry, PolicyRecord, Role, Token
from seaway.application.workdirs import PREFIX
from seaway.application.writer import REQUEST_ENTRY, RequestEntry
from seaway.bootstrap.control_plane import ControlPlane
from seaway.domain.errors import SeawayError, UnavailableError
from seaway.domain.reasons import Reason

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

READERS = 8
WRITERS = 64
"""Number of threads that wait for the writer, which stores concurrent changes together."""

PARSERS = 2
"""Number of threads that parse YAML, each of which uses up to 20 MiB."""

WAITING_FOR_PARSER = 16
"""Maximum number of bodies in YAML of one caller, in progress or queued."""

ADMISSIONS = 4
"""Number of threads for long admission checks."""

ISSUER = 4
"""Number of threads for tokens of an external issuer."""

OF_CLUSTER = 8
"""Number of threads that wait for one cluster."""

OF_CLUSTERS = 64
"""Number of threads that wait for clusters, in total."""

HEAVY = 2
"""Number of concurrent slow responses, such as the objects of thousands of replicas."""

IN_LINE = 14
"""Maximum number of queued slow responses. Further requests are rejected and can be retried."""

IN_LINE_FOR_CLUSTER = 16
"""The same for requests of one caller to one cluster."""

CALLER: ContextVar[str] = ContextVar("caller", default="")
"""Caller of the current request: the token or the name, and the address before the authentication."""

UNLIMITED = 1 << 30


class _Caller:
    """Requests of one caller in one pool."""

    __slots__ = ("count", "running")

    def __init__(self, limit: int) -> None:
        self.count = 0
        self.running = Semaphore(limit, fast_acquire=True)


class _Pool:
    """Threads for one kind of work, half of them for one caller.

    Parameters
    ----------
    threads
        Number of threads.
    in_line
        Maximum number of requests of one caller, in progress or queued.
    shared
        Limit on threads of several pools.
    """

    def __init__(self, threads: int, in_line: int = UNLIMITED, shared: CapacityLimiter | None = None) -> None:
        self._limiter = CapacityLimiter(threads)
        self._shared = shared
        self._share = max(threads // 2, 1)
        self._in_line = in_line
        self._callers: dict[str, _Caller] = {}

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run work in a thread.

        Raises
        ------
        UnavailableError
            If too many requests of the caller are queued.
        """
        key = CALLER.get()
        caller = self._callers.get(key)
        if caller is None:
            caller = self._callers[key] = _Caller(self._share)
        if caller.count >= self._in_line:
            raise UnavailableError(Reason("too_many_slow"), retry_after_s=RETRY_AFTER_S)
        caller.count += 1
        try:
            async with caller.running:
                if self._shared is None:
                    return await to_thread.run_sync(work, limiter=self._limiter)
                async with self._limiter:
                    return await to_thread.run_sync(work, limiter=self._shared)
        except SeawayError as error:
            # Its frames refer to the future that holds it. Such cycles stay for long, see `tuned_gc`.
            error.__context__ = error.__cause__ = None
            raise error.with_traceback(None) from None
        finally:
            caller.count -= 1
            if not caller.count:
                del self._callers[key]

    def __bool__(self) -> bool:
        return bool(self._callers)


class Threads:
    """Separate thread pools, so that one kind of work, one cluster or one caller does not block others."""

    def __init__(self) -> None:
        self._readers = _Pool(READERS)
        self._writers = _Pool(WRITERS)
        self._parsers = _Pool(PARSERS, WAITING_FOR_PARSER)
        self._admissions = _Pool(ADMISSIONS)
        self._issuer = _Pool(ISSUER)
        self._waiting_for_clusters = CapacityLimiter(OF_CLUSTERS)
        self._clusters: dict[str, _Pool] = {}
        self._heavy = _Pool(HEAVY, (HEAVY + IN_LINE) // 2)
        self.heavy_ahead = 0
        """Number of slow responses in progress or queued."""

    async def read(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a read."""
        return await self._readers.run(partial(work, *args, **kwargs))

    async def write(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a write, which waits for the writer."""
        return await self._writers.run(partial(work, *args, **kwargs))

    async def parse(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Parse YAML, which takes much memory and time.

        Raises
        ------
        UnavailableError
            If too many bodies of the caller are queued.
        """
        return await self._parsers.run(partial(work, *args, **kwargs))

    async def admit(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a long admission check."""
        return await self._admissions.run(partial(work, *args, **kwargs))

    async def verify(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a verification, which may wait for an external issuer."""
        return await self._issuer.run(partial(work, *args, **kwargs))

    async def ask_cluster(
        self, cluster: str, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a read that waits for a cluster.

        Raises
        ------
        UnavailableError
            If too many such requests of the caller are queued.
        """
        pool = self._clusters.get(cluster)
        if pool is None:
            pool = self._clusters[cluster] = _Pool(OF_CLUSTER, IN_LINE_FOR_CLUSTER, self._waiting_for_clusters)
        try:
            return await pool.run(partial(work, *args, **kwargs))
        finally:
            if not pool:
                self._clusters.pop(cluster, None)

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
            raise UnavailableError(Reason("too_many_slow"), retry_after_s=RETRY_AFTER_S)
        self.heavy_ahead += 1
        try:
            return await self._heavy.run(partial(work, *args, **kwargs))
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

TARGET = "seaway.target"
"""Key in a request's scope: text for the audit log instead of the path, for a session with a container."""

NOTED = "seaway.noted"
"""Key in a request's scope: True if the audit log already has an entry."""

INSIDE = "seaway.inside"
"""Key in a request's scope: True if the request comes from a page of this process."""

POD = f"Bearer {PREFIX}_"
"""Begin of the header with the token of a pod."""

AUDIT_FLUSH_S = 0.1
ANONYMOUS_S = 60.0
"""Time after which further requests without a valid credential are recorded, seconds."""

Call = Callable[[Request], Awaitable[Response]]


class RequestPipeline:
    """Request pipeline of a control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.threads = Threads()
        self.audit = AuditLog(plane.writer)
        self._storing: asyncio.Task[None] | None = None
        self._minute: asyncio.Task[None] | None = None

    async def serve(
        self, request: Request, operation: str, role: Role, call: Call, *, changed: int | None = None
    ) -> Response:
        """Handle a request of an operation that requires `role`.

        Parameters
        ----------
        changed
            Status of the response after a change. The audit entry is then stored together with the change, unless the
            operation stores its own.
        """
        who: Caller | None = None
        request.scope[OPERATION] = operation
        entry = None
        if changed is not None and request.scope["method"] in CHANGING:
            entry = RequestEntry(
                lambda change: replace(
                    self._entry(request, request.scope[WHO], changed, _created(change)),
                    changes=change.differences or differences(change, self.plane.store),
                )
            )
        REQUEST_ENTRY.set(entry)
        try:
            who = request.scope[WHO] = await self._who(request)
            CALLER.set(who.key)
            who.require(role)
            reply = await call(request)
        except Exception as error:  # noqa: BLE001  # internal errors: details are in the log only
            reply = answer(error, request.scope["path"])
        REQUEST_ENTRY.set(None)
        if request.scope["method"] in CHANGING or SOCKET in request.scope:
            await self._note(request, who, reply.status_code, entry)
        return reply

    async def note_end(self, request: Request, outcome: str) -> None:
        """Add an entry for the end of a session, whose begin has one like other requests."""
        entry = self._entry(request, caller_of(request), 200, "")
        verb, target = f"END {request.scope[OPERATION]}", f"{outcome}: {entry.target}"
        self.audit.note(replace(entry, verb=verb, target=target[:LONGEST_TARGET]))
        await self.audit.store()

    async def _who(self, request: Request) -> Caller:
        """Authenticate the caller. Only uncached tokens need a database query.

        Tokens of pods are valid for the archive of their job only, so that other operations do not know them.
        """
        access, header, address = self.plane.access, header_of(request, b"authorization"), address_of(request)
        if request.scope[OPERATION] == "get_workdir" and header and header.startswith(POD):
            CALLER.set(address)
            token, digest = header.removeprefix("Bearer "), request.path_params["digest"]
            return await self.threads.verify(self.plane.workdirs.caller, token, digest)
        who = access.known(header, address, page=bool(request.scope.get(INSIDE)))
        if who is not None:
            return who
        CALLER.set(address)
        return await self.threads.verify(access.verify, header, address)

    async def _note(self, request: Request, who: Caller | None, status: int, stored: RequestEntry | None) -> None:
        """Add an entry to the audit log, unless a change of the request stored it with this status."""
        if stored and stored.stored and stored.stored.status == status:
            return
        if status == 408 or request.scope.get(DRY_RUN) or request.scope.get(NOTED):
            return
        entry = self._entry(request, who, status, request.scope.get(MADE, ""))
        if who is None:
            if self.audit.note_anonymous(entry):
                self._minute = asyncio.create_task(self._end_minute())
        elif status != 429:
            self.audit.note(entry)
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
            token_id=who.token_id if who else "",
            issuer=who.issuer if who else "",
        )

    async def _flush_audit(self) -> None:
        """Store audit entries after a short delay, in one transaction."""
        await asyncio.sleep(AUDIT_FLUSH_S)
        self._storing = None
        await self.audit.store()

    async def _end_minute(self) -> None:
        """Record the further requests of a minute without a valid credential."""
        await asyncio.sleep(ANONYMOUS_S)
        self.audit.end_minute()
        await self.audit.store()


def _created(change: Change) -> str:
    """Return the ID of the object that a change creates, unless the path of the request names it."""
    for record in (*change.insert, *change.put):
        if isinstance(record, Token):
            return record.id
        if isinstance(record, PolicyRecord):
            return record.name
    return ""


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
    path = _printable(request.scope.get(TARGET) or request.scope["path"])
    return f"{path}/{made}" if made else path


def _printable(path: str) -> str:
    return path if path.isprintable() else ascii(path)[1:-1]
