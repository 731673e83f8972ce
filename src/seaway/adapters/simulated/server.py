"""Server process for simulated clusters, which survives a crash of the control plane.

`application` creates the HTTP interface; `Server` serves it on the loopback interface.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from socket import create_server, socket
from threading import Thread
from typing import Any

import orjson
import uvicorn
from anyio.to_thread import current_default_thread_limiter
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from seaway.adapters.simulated import messages
from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.cluster import SimulatedCluster
from seaway.adapters.simulated.messages import cause, heal
from seaway.domain.errors import InvariantError, RejectedError, UnavailableError
from seaway.domain.reasons import reason_of

LOOPBACK = "127.0.0.1"
MAX_WAIT_S = 60.0
"""Maximum wait of `changes`, in seconds."""

LARGEST_NS = 2.0**63

LARGEST_BODY = 256 << 20
"""Maximum size of a body, bytes. A batch of commands has up to 64 jobs of a megabyte each."""

HEARTBEAT_S = 1
"""Grace period for running requests at shutdown, in seconds."""

IDLE_S = 30
"""Time for which idle connections stay open, in seconds: longer than clients leave theirs open, which is 5 s."""

Handler = Callable[[Request], Awaitable[Response]]
Work = Callable[[SimulatedCluster, Request, bytes], Any]


def application(backends: SimulatedBackends) -> Starlette:
    """Create the HTTP interface of simulated clusters.

    ``GET /about`` returns clusters, gateways and links. For each cluster, ``POST /clusters/NAME/commands`` executes a
    batch, ``GET .../changes?cursor=&wait_s=`` waits for changes, ``POST .../manifests`` returns objects, and ``GET
    .../logs?copy=&replica=&tail=`` returns lines. ``POST .../faults`` and ``POST .../heal`` start and end faults.

    A rejected request gets status 422, an unavailable cluster 503, each with a `Problem`. Requests of pages in a
    browser and bodies that are too large are rejected.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = 64 + 4 * len(backends.clusters())
        yield

    async def about(_: Request) -> Response:
        names = tuple(each.cluster for each in backends.clusters())
        found = messages.About(names, tuple(backends.gateways()), tuple(backends.links()))
        return _json(messages.ABOUT.dump_json(found))

    def route(path: str, method: str, work: Work) -> Route:
        return Route(f"/clusters/{{name:path}}/{path}", _handler(backends, work), methods=[method])

    return Starlette(
        routes=[
            Route("/about", about),
            route("changes", "GET", _changes),
            route("commands", "POST", _commands),
            route("manifests", "POST", _manifests),
            route("logs", "GET", _logs),
            route("faults", "POST", _cause),
            route("heal", "POST", _heal),
        ],
        lifespan=lifespan,
    )


class Server:
    """HTTP server for simulated clusters on this machine.

    Parameters
    ----------
    backends
        The clusters, which are closed with the server.
    port
        Port to listen on; 0 for any free port. From now on, connections wait in the socket instead of being refused.

    Raises
    ------
    RejectedError
        When the port is in use.
    """

    def __init__(self, backends: SimulatedBackends, port: int = 0) -> None:
        self._backends = backends
        try:
            self._socket = create_server((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise RejectedError(f"cannot listen on {port}: {error}; choose another", where="port") from None
        config = uvicorn.Config(
            application(backends),
            log_level="warning",
            access_log=False,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=HEARTBEAT_S,
        )
        self._server = _Uvicorn(config, backends)
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://{LOOPBACK}:{self._socket.getsockname()[1]}"

    def run(self) -> None:
        """Serve until a signal (SIGINT, SIGTERM) or `stop`."""
        try:
            self._server.run([self._socket])
        finally:
            self._backends.close()
            self._socket.close()

    def start(self) -> None:
        """Serve in a thread. Earlier requests wait in the socket."""
        self._thread = Thread(target=self.run, name="simulated-clusters", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the server of `start`."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._backends.close()
        self._socket.close()


class _Uvicorn(uvicorn.Server):
    """Server that ends long polls when its shutdown begins, so that no request is cut off."""

    def __init__(self, config: uvicorn.Config, backends: SimulatedBackends) -> None:
        super().__init__(config)
        self._backends = backends

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """End the waiting calls, and then the server."""
        self._backends.stop_waiting()
        await super().shutdown(sockets)


def _changes(cluster: SimulatedCluster, request: Request, _: bytes) -> bytes:
    wait_s = min(_number(request, "wait_s", 0.0), MAX_WAIT_S)
    return messages.write_changes(cluster.changes(request.query_params.get("cursor", ""), wait_s))


def _commands(cluster: SimulatedCluster, _: Request, body: bytes) -> bytes:
    return messages.write_answers(cluster.send(messages.read_commands(body)))


def _manifests(cluster: SimulatedCluster, _: Request, body: bytes) -> bytes:
    return orjson.dumps(cluster.manifests(messages.DEPLOYMENT.validate_json(body)))


def _logs(cluster: SimulatedCluster, request: Request, _: bytes) -> bytes:
    replica, tail = (int(_number(request, name, 0)) for name in ("replica", "tail"))
    since_ns, times = int(_number(request, "since_ns", 0, LARGEST_NS)), bool(_number(request, "times", 0))
    copy = request.query_params.get("copy", "")
    return orjson.dumps(list(cluster.logs(copy, replica, tail, since_ns=since_ns, times=times)))


def _cause(cluster: SimulatedCluster, _: Request, body: bytes) -> bytes:
    cause(cluster, messages.FAULT_REQUEST.validate_json(body))
    return b"null"


def _heal(cluster: SimulatedCluster, _: Request, body: bytes) -> bytes:
    healing = messages.HEALING.validate_json(body)
    heal(cluster, healing.kind, healing.target)
    return b"null"


async def _body(request: Request) -> bytes:
    if "origin" in request.headers:
        raise RejectedError("a page of a browser may not use simulated clusters", where="Origin")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            raise RejectedError(f"the body may have {LARGEST_BODY} bytes at most")
    return bytes(body)


def _handler(backends: SimulatedBackends, work: Work) -> Handler:
    """Return a handler that runs `work` in a thread, because it may block, and converts errors to a `Problem`."""

    async def handle(request: Request) -> Response:
        try:
            body = await _body(request)
        except ClientDisconnect:  # the client is gone, for example a killed control plane
            return Response()
        except RejectedError as error:
            return _json(messages.PROBLEM.dump_json(messages.problem_of(error.message, error.where)), 422)
        try:
            cluster = backends.cluster(request.path_params["name"])
            return _json(await run_in_threadpool(work, cluster, request, body))
        except UnavailableError as error:
            problem = messages.problem_of(reason_of(error), retry_after_s=error.retry_after_s)
            return _json(messages.PROBLEM.dump_json(problem), 503)
        except RejectedError as error:
            return _json(messages.PROBLEM.dump_json(messages.problem_of(error.message, error.where)), 422)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            return _json(messages.PROBLEM.dump_json(messages.Problem(first["msg"], where)), 422)

    return handle


def _number(request: Request, name: str, default: float, above: float = 1e9) -> float:
    text = request.query_params.get(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < above:
        raise RejectedError(f"{text!r} is not a number from 0 up", where=name)
    return value


def _json(body: bytes, status: int = 200) -> Response:
    if not body:
        raise InvariantError("an answer has a body")
    return Response(body, status, media_type="application/json")
