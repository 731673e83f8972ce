"""Liveness, readiness and firing alerts, also of a standby."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from html import escape

import uvicorn
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from seaway.api.http.bodies import read
from seaway.api.http.connections import BoundedServer, Connections
from seaway.api.http.pipeline import TARGET, caller_of, pipeline_of
from seaway.api.http.replies import RETRY_AFTER_S, json_reply, nothing, problem
from seaway.api.http.routes import operation, router
from seaway.application.monitoring.rules import OF_QUEUES, OF_SEAWAY
from seaway.application.records import Role
from seaway.bootstrap.settings import ServerSettings
from seaway.wire.alerts import AcknowledgeIn, AlertList, alert_fields
from seaway.wire.message import Shown
from seaway.wire.problem import MEDIA_TYPE as PROBLEM_TYPE

open_routes = APIRouter(tags=["health"])


class Health(Shown):
    """Health of the process."""

    status: str


ALIVE, READY_OR_WAITING = "/healthz", "/standbyz"
NEVER_S = 60
"""Retry-After of a process that cannot become ready again, seconds. By then, another process may listen on the port."""

_UNREADY = {
    "description": "Not ready.",
    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


@open_routes.get(ALIVE, operation_id="healthz", response_model=None, responses={200: {"model": Health}})
async def healthz() -> Response:
    """Check liveness: the process runs."""
    return json_reply({"status": "ok"})


@open_routes.get(READY_OR_WAITING, include_in_schema=False)  # for deployments, not for clients
@open_routes.get(
    "/readyz", operation_id="readyz", response_model=None, responses={200: {"model": Health}, 503: _UNREADY}
)
async def readyz(request: Request) -> Response:
    """Check readiness: Seaway accepts and places jobs.

    The process is ready if the database responds, no other process has replaced this one, and stored jobs and clusters
    are loaded. Clusters that stop responding later do not affect readiness. No request waits for the database, which a
    thread of its own checks every second.
    """
    pipeline = pipeline_of(request)
    if pipeline.plane.writer.superseded:
        return _unready(pipeline.plane.writer.superseded, NEVER_S)
    if missing := pipeline.plane.controller.unready():
        return _unready(missing, 1)
    return json_reply({"status": "ok"})


def _unready(why: str, retry_after_s: int) -> Response:
    return problem(503, why, "/readyz", headers={"retry-after": str(retry_after_s)})


routes = router("health")


@operation(routes, "GET", "/alerts", Role.VIEWER, {200: AlertList})
async def list_alerts(request: Request) -> Response:
    """List the firing alerts.

    Thresholds are those of the Prometheus rules, evaluated every 15 s since the start. Faults of nodes, GPUs, clusters,
    agents, jobs and the database are listed within seconds. Tokens of a tenant see alerts of clusters and of their
    queues.
    """
    pipeline, who = pipeline_of(request), caller_of(request)
    wrong = pipeline.plane.alerts.wrong()
    if who.tenant:
        queues = await pipeline.threads.read(pipeline.plane.store.queues) if wrong else []
        seen = {queue.name for queue in queues if who.may_see(queue.tenant)}
        wrong = [
            each for each in wrong if each.rule not in OF_SEAWAY and (each.rule not in OF_QUEUES or each.of in seen)
        ]
    return json_reply({"alerts": [alert_fields(each) for each in wrong]})


@operation(routes, "POST", "/alerts/acknowledge", Role.OPERATOR, {204: None}, errors=(404,), body=AcknowledgeIn)
async def acknowledge_alert(request: Request) -> Response:
    """Acknowledge a firing alert: everyone sees who takes care of it and since when, until it clears."""
    pipeline, given = pipeline_of(request), await read(request, AcknowledgeIn)
    request.scope[TARGET] = f"{given.name} {given.of}".strip()  # for the audit log
    await pipeline.threads.write(pipeline.plane.alerts.acknowledge, given.name, given.of, caller_of(request).name)
    return nothing()


STARTING_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
STARTING = f"""<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta http-equiv="refresh" content="{RETRY_AFTER_S}">
<title>Seaway</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 480px; margin: 20vh auto; padding: 0 16px }}</style>
<h1>Seaway is starting</h1>
<p>This page continues as soon as the server is ready. It says: WHY</p>
<p lang="zh">服务器正在启动。就绪后本页会继续。</p>
"""
"""Page for browsers while the process is not ready."""


class Standby:
    """Server in its own thread, on the port that the API server uses later.

    Parameters
    ----------
    settings
        Settings of the API server.
    why
        Returns the reason why this process is not ready.
    can_follow
        Reports whether it can take over from the leader.
    """

    def __init__(self, settings: ServerSettings, why: Callable[[], str], can_follow: Callable[[], bool]) -> None:
        self._why, self._can_follow = why, can_follow
        tls = bool(settings.tls_certificate)
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            ws="none",
            lifespan="off",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            log_config=None,
            timeout_graceful_shutdown=1,
            ssl_certfile=settings.tls_certificate if tls else None,
            ssl_keyfile=settings.tls_key if tls else None,
        )
        self._server = BoundedServer(config, Connections())
        self._thread: threading.Thread | None = None

    def start(self, listener: socket.socket) -> None:
        """Start the server; `listener` remains open after `stop`."""
        own = listener.dup()
        self._thread = threading.Thread(target=self._server.run, args=([own],), name="standby", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the server; idempotent. New connections wait for the API server."""
        self._server.should_exit = True
        if self._thread:
            self._thread.join()
            self._thread = None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request with any path."""
        if scope["type"] != "http":
            return
        headers = {"retry-after": str(RETRY_AFTER_S), "connection": "close"}
        unready = problem(503, self._why(), scope["path"], headers=headers)
        if "text/html" in Headers(scope=scope).get("accept", ""):
            page = STARTING.replace("WHY", escape(self._why()))
            unready = HTMLResponse(page, 503, {**headers, "content-security-policy": STARTING_POLICY})
        fine = json_reply({"status": "ok"}, headers={"connection": "close"})
        well = scope["path"] == ALIVE or (scope["path"] == READY_OR_WAITING and self._can_follow())
        with suppress(OSError):
            await (fine if well else unready)(scope, receive, send)
