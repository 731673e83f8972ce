"""The ASGI application of the REST API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

import seaway
from seaway.api import (
    events,
    fleet,
    job_views,
    jobs,
    joins,
    links,
    log_stream,
    metrics,
    network,
    notifications,
    operators,
    policies,
    queues,
    sessions,
    tokens,
    whatif,
    workdirs,
)
from seaway.api.http import health
from seaway.api.http.connections import Connections
from seaway.api.http.guard import Guard
from seaway.api.http.meter import Meter
from seaway.api.http.openapi import describe, reference, reference_file
from seaway.api.http.pipeline import INSIDE, RequestPipeline
from seaway.api.http.replies import Reply, answer_http, json_reply
from seaway.api.hub import Hub
from seaway.bootstrap.control_plane import ControlPlane
from seaway.domain.errors import SeawayError

NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False}
"""Disabled telemetry of the framework.

Seaway has its own metrics, and the framework's cost more than a whole submit.
"""

DESCRIBE_AFTER_S = 10
"""Time from the start until the API is described, seconds. The start has other work."""

DESCRIPTION_POLICY = "default-src 'none'; frame-ancestors 'none'"


class Application(FastAPI):
    """FastAPI application with the guard in front of all layers of the framework."""

    guard: Guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or the lifespan protocol."""
        scope["app"] = self
        await self.guard(scope, receive, send)

    async def inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request from a page of this process. Such requests are counted separately from those of clients."""
        scope[INSIDE] = True
        await self(scope, receive, send)


def make_app(plane: ControlPlane, *, home: bool = True) -> Application:
    """Create the REST API of a control plane, which the caller starts and stops.

    If the web interface is served too, it has the root path. Otherwise `home` redirects the root to the API reference.
    The state of the application has ``hub``. A server must call its `close`, which ends all event streams, before it
    waits for connections to close. `seaway.api.http.server` does so.
    """
    pipeline, meter = RequestPipeline(plane), Meter()
    app = Application(
        title="Seaway",
        version=seaway.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        telemetry=NO_TELEMETRY,
    )
    app.state.pipeline = pipeline
    app.state.meter = meter
    app.state.description = b""
    app.state.describing = asyncio.Lock()
    app.state.connections = Connections()  # a server replaces it by its own
    app.state.sessions = sessions.SessionTable()
    app.state.hub = Hub(plane.feed, plane.store, plane.access, pipeline.threads)
    for kind in (HTTPException, RequestValidationError, SeawayError):
        app.add_exception_handler(kind, answer_http)
    for each in (
        jobs.routes,
        job_views.routes,
        log_stream.routes,
        sessions.routes,
        workdirs.routes,
        events.routes,
        fleet.routes,
        joins.routes,
        links.routes,
        network.routes,
        network.agent_routes,
        metrics.routes,
        operators.cordons,
        queues.queues,
        operators.pools,
        operators.reservations,
        operators.tenants,
        notifications.routes,
        policies.routes,
        queues.shadows,
        tokens.routes,
        whatif.routes,
        health.routes,
        health.open_routes,
        metrics.text_routes,
    ):
        app.router.routes.extend(each.routes)  # to include a router would create each of its routes again
    if home:
        app.add_api_route("/", _home, include_in_schema=False)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    app.add_api_route("/docs/{name}", _docs_file, include_in_schema=False)
    app.add_api_route("/openapi.json", _description, include_in_schema=False)
    app.guard = Guard(super(Application, app).__call__, pipeline, meter, jobs.submit)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    describing = asyncio.create_task(_describe_soon(app))
    yield
    describing.cancel()
    app.state.hub.close()
    await app.state.sessions.end_ports()
    app.state.pipeline.audit.end_minute()
    await app.state.pipeline.audit.store()
    app.state.pipeline.audit.close()


async def _describe_soon(app: FastAPI) -> None:
    """Write the description before it is requested: a second of CPU time, which delays concurrent responses."""
    await asyncio.sleep(DESCRIBE_AFTER_S)
    await _described(app)


async def _home() -> Response:
    return RedirectResponse("/docs", 307)


async def _docs() -> Response:
    return reference()


async def _docs_file(name: str) -> Response:
    return reference_file(name)


async def _description(request: Request) -> Response:
    return await _described(request.app)


async def _described(app: FastAPI) -> Response:
    """Return the description, written once, because strangers may request it as often as they like."""
    if not app.state.description:
        async with app.state.describing:  # several threads at once may fail
            if not app.state.description:
                app.state.description = await app.state.pipeline.threads.read(_write, app)
    return Reply(app.state.description, headers={"content-security-policy": DESCRIPTION_POLICY})


def _write(app: FastAPI) -> bytes:
    return bytes(json_reply(describe(app)).body)
