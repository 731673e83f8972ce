"""Sessions with containers of jobs: commands, attached processes, and connections to ports.

A session is a web socket whose messages are frames of `seaway.application.ports.sessions`. Seaway checks the caller,
records the session in the audit log, and passes on frames in both directions, each only after the previous one. All
connections of a caller to a forwarded port are one entry.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request, Response
from starlette.types import Receive, Scope, Send

from seaway.api.http.pipeline import NOTED, TARGET, caller_of, pipeline_of
from seaway.api.http.queries import find
from seaway.api.http.routes import operation, router
from seaway.api.http.sockets import SWITCHED, Socket, socket_of
from seaway.api.hub import Hub, Listener, Subscription
from seaway.api.job_views import MAX_REPLICA, ContainerName
from seaway.api.jobs import JobRef
from seaway.application.ports.sessions import (
    MAX_FRAME_BYTES,
    SUBPROTOCOL,
    Accessible,
    Channel,
    Outcome,
    Session,
    SessionKind,
    SessionRequest,
    status_frame,
)
from seaway.application.records import Role
from seaway.domain.errors import ConflictError, RejectedError, SeawayError, UnavailableError
from seaway.domain.job_record import JobRecord
from seaway.domain.reasons import Reason

MAX_SESSIONS, MAX_PER_CALLER = 512, 32
"""Maximum numbers of open sessions."""

IDLE_S = 3600.0
"""Time without a frame in either direction after which a session ends, seconds."""

LINGER_S = 600.0
"""Time after its last connection at which the audit log has the end of a forwarded port, seconds."""

MAX_ARGUMENTS = 256

FROM_CLIENT = frozenset({Channel.STDIN, Channel.RESIZE, Channel.CLOSE})
"""Channels of frames that clients send."""

SHELL = ("sh", "-c", "command -v bash >/dev/null && exec bash || exec sh")
"""Default command."""

SESSION: dict[int, Any] = {
    SWITCHED: {
        "description": f"A web socket with the subprotocol `{SUBPROTOCOL}`. Each binary message begins with the number "
        "of its channel: 0 input, 1 output, 2 errors, 3 outcome, 4 size of the terminal, 255 end of a channel. The "
        "outcome is a `Status` of Kubernetes, and the last message.",
    }
}

Replica = Annotated[int, Query(ge=0, le=MAX_REPLICA)]
Stdin = Annotated[bool, Query(description="Whether you send input.")]
Tty = Annotated[bool, Query(description="Whether there is a terminal.")]

routes = router("jobs")


@operation(routes, "GET", "/jobs/{job}/exec", Role.USER, SESSION, errors=(404, 409, 426))
async def exec_job(
    request: Request,
    job: JobRef,
    command: Annotated[
        list[str], Query(max_length=MAX_ARGUMENTS, description="Command and arguments; default: a shell.")
    ] = [],  # noqa: B006  # a default value of the framework, which copies it
    replica: Replica = 0,
    container: ContainerName = "",
    stdin: Stdin = False,
    tty: Tty = False,
) -> Response:
    """Run a command in a container of a running job, over a web socket."""
    wanted = SessionRequest(SessionKind.EXEC, container, tuple(command) or SHELL, stdin, tty)
    return await _open(request, job, replica, wanted)


@operation(routes, "GET", "/jobs/{job}/attach", Role.USER, SESSION, errors=(404, 409, 426))
async def attach_job(
    request: Request,
    job: JobRef,
    replica: Replica = 0,
    container: ContainerName = "",
    stdin: Stdin = False,
    tty: Tty = False,
) -> Response:
    """Attach to the main process of a container of a running job, over a web socket."""
    return await _open(request, job, replica, SessionRequest(SessionKind.ATTACH, container, (), stdin, tty))


@operation(routes, "GET", "/jobs/{job}/port-forward", Role.USER, SESSION, errors=(404, 409, 426))
async def forward_port(
    request: Request, job: JobRef, port: Annotated[int, Query(ge=1, le=65_535)], replica: Replica = 0
) -> Response:
    """Connect to a port of a replica of a running job, over a web socket for each connection."""
    return await _open(request, job, replica, SessionRequest(SessionKind.PORT_FORWARD, port=port, stdin=True))


async def _open(request: Request, job: str, replica: int, wanted: SessionRequest) -> Response:
    """Open a session; raise the errors of `Accessible.open_session`, which are responses before the handshake."""
    who, pipeline = caller_of(request), pipeline_of(request)
    found = await find(request, job)
    request.scope[TARGET] = _target(found, replica, wanted)
    placed, socket = found.state.placed or found.is_array, socket_of(request, SUBPROTOCOL)
    if isinstance(socket, Response) and not placed:
        return socket
    if not placed:
        raise ConflictError(Reason("only_running_connect", state=found.state.value))
    place = await pipeline.threads.read(pipeline.plane.overview.latest_log, found, replica, wanted.container)
    if not isinstance(place.backend, Accessible):
        raise ConflictError(Reason("simulated_no_containers", cluster=place.backend.cluster))
    if isinstance(socket, Response):  # a client that asks before it listens on ports of its own
        return socket
    table: SessionTable = request.app.state.sessions
    hub: Hub = request.app.state.hub
    listener = Listener(who, Subscription("", found.id, confined=True))
    table.enter(who.key, wanted.kind)
    try:
        await hub.join(listener)
        ask = pipeline.threads.ask_cluster
        opening = await ask(place.backend.cluster, place.backend.open_session, place.copy, replica, wanted)
        session = await asyncio.wrap_future(opening)
    except BaseException:
        hub.leave(listener)
        table.leave(who.key, wanted.kind)
        raise
    port = None
    if wanted.kind is SessionKind.PORT_FORWARD:
        port = (who.key, request.scope[TARGET])
        request.scope[NOTED] = table.connected(port, request)
    return SessionReply(request, socket, session, listener, found.id, wanted.kind, port)


def _target(job: JobRecord, replica: int, wanted: SessionRequest) -> str:
    """Describe a session for the audit log."""
    container = f" --container {wanted.container}" if wanted.container else ""
    what = {
        SessionKind.EXEC: f" -- {shlex.join(wanted.command)}",
        SessionKind.ATTACH: "",
        SessionKind.PORT_FORWARD: f" --port {wanted.port}",
    }
    return f"/api/v1/jobs/{job.id} --replica {replica}{container}{what[wanted.kind]}"


Port = tuple[str, str]
"""Key of the caller, and description of a forwarded port."""


@dataclass(slots=True)
class _Forwarding:
    """Connections of a caller to a forwarded port."""

    request: Request
    began_s: float
    open: int = 0
    connections: int = 0
    ending: asyncio.Task[None] | None = None


class SessionTable:
    """Numbers of open sessions, in total, by caller and by kind; and forwarded ports, for the audit log."""

    def __init__(self) -> None:
        self._ports: dict[Port, _Forwarding] = {}
        self._callers: Counter[str] = Counter()
        self._kinds = Counter(dict.fromkeys(SessionKind, 0))

    def __len__(self) -> int:
        return self._callers.total()

    def by_kind(self) -> dict[str, int]:
        """Return the number of open sessions of each kind."""
        return {kind.value: count for kind, count in self._kinds.items()}

    def enter(self, caller: str, kind: SessionKind) -> None:
        """Add a session.

        Raises
        ------
        UnavailableError
            If a limit is reached.
        """
        if self._callers[caller] >= MAX_PER_CALLER:
            raise UnavailableError(Reason("sessions_of_token", most=MAX_PER_CALLER))
        if len(self) >= MAX_SESSIONS:
            raise UnavailableError(Reason("sessions_full"))
        self._callers[caller] += 1
        self._kinds[kind] += 1

    def leave(self, caller: str, kind: SessionKind) -> None:
        """Remove a session."""
        self._kinds[kind] -= 1
        self._callers[caller] -= 1
        self._callers += Counter()  # removes callers without sessions

    def connected(self, port: Port, request: Request) -> bool:
        """Count a connection of a forwarded port; report whether an earlier one is in the audit log."""
        known = port in self._ports
        found = self._ports.setdefault(port, _Forwarding(request, asyncio.get_running_loop().time()))
        found.open += 1
        found.connections += 1
        if found.ending:
            found.ending.cancel()
            found.ending = None
        return known

    def disconnected(self, port: Port) -> None:
        """Count the end of a connection. After the last one, the forwarding ends unless there is a new one soon."""
        found = self._ports.get(port)
        if found is None:
            return
        found.open -= 1
        if not found.open:
            found.ending = asyncio.create_task(self._end_later(port))

    async def _end_later(self, port: Port) -> None:
        await asyncio.sleep(LINGER_S)
        await self._end(port)

    async def _end(self, port: Port) -> None:
        found = self._ports.pop(port)
        many = f"{found.connections} connection{'s' if found.connections != 1 else ''}"
        outcome = f"{many} in {asyncio.get_running_loop().time() - found.began_s:.0f} s"
        await pipeline_of(found.request).note_end(found.request, outcome)

    async def end_ports(self) -> None:
        """Add the ends of all forwarded ports to the audit log, because the server stops."""
        for port, each in list(self._ports.items()):
            if each.ending:
                each.ending.cancel()
            await self._end(port)


class SessionReply(Response):
    """Response that passes frames on until the session ends, or its client leaves.

    The session also ends if it is idle, the token is revoked, or the server stops.
    """

    def __init__(
        self,
        request: Request,
        socket: Socket,
        session: Session,
        listener: Listener,
        job_id: str,
        kind: SessionKind,
        port: Port | None,
    ) -> None:
        super().__init__(status_code=SWITCHED)
        self._port = port
        self._request, self._socket, self._session = request, socket, session
        self._listener, self._job_id, self._kind = listener, job_id, kind
        loop = asyncio.get_running_loop()
        self._began_s = self._used_s = loop.time()
        self._renewed_s = 0.0
        self._outcome = Outcome(None, "the client left")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the session."""
        del scope, receive, send  # the web socket has its own
        try:
            await self._socket.accept(SUBPROTOCOL)
            await self._pass_on()
            await self._socket.close()
        except OSError:
            pass  # the client left
        finally:
            self._session.close()
            self._request.app.state.hub.leave(self._listener)
            self._request.app.state.sessions.leave(self._listener.who.key, self._kind)
            if self._port:
                self._request.app.state.sessions.disconnected(self._port)
            else:
                await pipeline_of(self._request).note_end(self._request, self._describe())

    def _describe(self) -> str:
        code = self._outcome.exit_code
        ended = f"exit code {code}" if code is not None else self._outcome.message
        return f"{ended} after {asyncio.get_running_loop().time() - self._began_s:.0f} s"

    async def _pass_on(self) -> None:
        """Pass frames on in both directions until the first end."""
        try:
            await self._renew_lease()  # a session may be over before its watch begins
        except SeawayError as error:
            await self._end(str(error))
            return
        down = asyncio.create_task(self._send_down())
        others = [asyncio.create_task(self._send_up()), asyncio.create_task(self._watch())]
        try:
            done, _ = await asyncio.wait([down, *others], return_when=asyncio.FIRST_COMPLETED)
            (down if down in done else done.pop()).result()
        except SeawayError as error:
            await self._end(str(error))
        finally:
            for each in (down, *others):
                each.cancel()
            await asyncio.gather(down, *others, return_exceptions=True)

    async def _send_down(self) -> None:
        """Pass on frames of the container."""
        while frame := await asyncio.wrap_future(self._session.receive()):
            self._used_s = asyncio.get_running_loop().time()
            if frame[0] == Channel.STATUS:
                self._outcome = Outcome.of(frame)  # before the client has it, which then leaves at once
            await self._socket.send(frame)
            if frame[0] == Channel.STATUS:
                return
        await self._end(f"the connection to the container broke{await self._state()}")

    async def _send_up(self) -> None:
        """Pass on frames of the client."""
        while (frame := await self._socket.receive()) is not None:
            if not frame or frame[0] not in FROM_CLIENT or len(frame) > MAX_FRAME_BYTES:
                raise RejectedError(Reason("frame_invalid"))
            self._used_s = asyncio.get_running_loop().time()
            try:
                await asyncio.wrap_future(self._session.send(frame))
            except UnavailableError:  # the container does not read any more, but its last frames may be on the way
                await asyncio.Event().wait()

    async def _watch(self) -> None:
        """Wait until the session must end. The hub wakes all listeners several times a minute."""
        while not self._listener.closed:
            await self._renew_lease()
            await self._listener.wake.wait()
            if self._listener.lagging:
                self._listener.catch_up(0)
            self._listener.take()
            if asyncio.get_running_loop().time() - self._used_s > IDLE_S:
                await self._end(f"the session was idle for {IDLE_S / 60:.0f} minutes")
                return
        await self._end("the server stops, or the token is no longer valid")

    async def _renew_lease(self) -> None:
        """Renew the lease of the job if the session was used since the last time."""
        if self._used_s > self._renewed_s:
            self._renewed_s = self._used_s
            pipeline = pipeline_of(self._request)
            await pipeline.threads.write(pipeline.plane.jobs.used, self._job_id, self._listener.who.name)

    async def _end(self, why: str) -> None:
        """Send the reason of an end to the client, which the container did not send."""
        self._outcome = Outcome(None, why)
        with suppress(OSError):
            await self._socket.send(status_frame(why))

    async def _state(self) -> str:
        """Describe the job after a connection broke."""
        pipeline = pipeline_of(self._request)
        with suppress(SeawayError):
            if job := await pipeline.threads.read(pipeline.plane.store.job, self._job_id):
                return f"; the job is {job.state.value}"
        return ""
