"""HTTP server that ends event streams before it waits for connections to close."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Network, ip_network
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from seaway.api.http.connections import BoundedServer, Connections, raise_file_limit
from seaway.application.access import require_loopback
from seaway.bootstrap.settings import ServerSettings, names_in

GRACE_S = 10
"""Maximum time for running requests during shutdown, seconds."""

GC_THRESHOLDS = (3_000, 2, 1)
"""Thresholds of the garbage collector. A run delays all responses, so each visits few objects: 20,000 take 20 ms."""

MAX_RUN_S = 0.015
"""CPU time of a run after which later ones skip the objects that it visited; 20,000 objects take it."""

FULL_GC_INTERVAL_S = 3600
"""Time between garbage collections of all objects, seconds. Such a run delays all responses."""

IDLE_S = 30

LONGEST_MESSAGE = 2 << 20
"""Maximum size of a web-socket message, bytes; sufficient for pasted text."""

BACKLOG = 2048


class Server(BoundedServer):
    """Server of an application from `seaway.api.app.make_app`.

    Parameters
    ----------
    on_start
        Called when the server accepts connections.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections, on_start: Callable[[], None]) -> None:
        super().__init__(config, connections)
        self._on_start = on_start
        self._gc = ExitStack()
        self._full_gc: asyncio.TimerHandle | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, and reduce garbage collection."""
        await super().startup(sockets)
        self._gc.enter_context(tuned_gc())
        self._collect_later()
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End event streams, then shut down."""
        app = self.config.app
        if isinstance(app, FastAPI):
            app.state.hub.close()
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()  # uvicorn leaves it out, and cancels it with a traceback
        if self._full_gc:
            self._full_gc.cancel()
        self._gc.close()

    def _collect_later(self) -> None:
        self._full_gc = asyncio.get_running_loop().call_later(FULL_GC_INTERVAL_S, self._collect)

    def _collect(self) -> None:
        """Collect the garbage among the objects that `tuned_gc` excluded."""
        gc.unfreeze()
        gc.collect()
        self._collect_later()

    def end(self) -> None:
        """Request a shutdown. Any thread may call it."""
        self.should_exit = True

    def end_by_signal(self, count: int) -> None:
        """Request a shutdown; from the second signal on, one that does not wait for open requests."""
        self.end()
        self.force_exit = count > 1

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process, which also handles them before and after the server runs."""
        yield


@contextmanager
def tuned_gc() -> Iterator[None]:
    """Keep pauses for garbage collection short: exclude the existing objects, and later survivors once they are many.

    A server holds many jobs for days. A collector that visits all of them delays every response for a second. Thus
    garbage cycles among excluded objects stay until `gc.unfreeze` and `gc.collect`. Most are of requests that were in
    progress when objects were excluded, so this is rare.

    Objects are not counted with `gc.get_objects`: it refers to tuples that other threads have just begun to fill, which
    makes them fail.
    """
    begun_s = 0.0

    def exclude(phase: str, info: dict[str, int]) -> None:
        nonlocal begun_s
        if info["generation"] == 2:
            if phase == "start":
                begun_s = time.thread_time()
            elif time.thread_time() - begun_s > MAX_RUN_S:
                gc.freeze()

    often = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.callbacks.append(exclude)
    gc.enable()
    try:
        yield
    finally:
        gc.callbacks.remove(exclude)
        gc.set_threshold(*often)
        gc.unfreeze()


def make_server(app: FastAPI, settings: ServerSettings, on_start: Callable[[], None] = lambda: None) -> Server:
    """Create a server; its `run` returns after `end`. The caller handles signals.

    The process may open fewer files than the settings allow connections. Then it accepts fewer connections.

    Raises
    ------
    RejectedError
        If authentication is disabled and other machines could reach it.
    """
    if settings.no_auth:
        require_loopback(settings.host)
    tls = bool(settings.tls_certificate)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=LONGEST_MESSAGE,
        lifespan="on",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=trusted(settings.trusted_proxies),
        log_config=None,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=Path(settings.tls_certificate) if tls else None,
        ssl_keyfile=Path(settings.tls_key) if tls else None,
    )
    proxies = [ip_network(each) for each in trusted(settings.trusted_proxies)]
    limit = raise_file_limit(settings.max_connections)
    app.state.connections = Connections(limit, settings.max_connections_per_address, proxies)
    return Server(config, app.state.connections, on_start)


def trusted(proxies: str) -> list[str]:
    """Return the networks of trusted proxies for uvicorn; IPv4 networks also as IPv4-mapped IPv6 networks.

    Parameters
    ----------
    proxies
        Addresses and networks, separated by ``,``.

    References
    ----------
    RFC 4291, section 2.5.5.2: IPv4-mapped addresses, which dual-stack sockets report for IPv4 clients.
    """
    networks = [ip_network(each) for each in names_in(proxies)]
    mapped = [
        f"::ffff:{each.network_address}/{96 + each.prefixlen}" for each in networks if isinstance(each, IPv4Network)
    ]
    return [*map(str, networks), *mapped]
