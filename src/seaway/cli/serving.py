"""Serving: from settings to a process that answers, and down again."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console

from seaway.adapters.sqlalchemy.backups import backup
from seaway.adapters.sqlalchemy.opening import open_store
from seaway.api.app import make_app
from seaway.api.server import make_server
from seaway.application.access import require_loopback
from seaway.application.maintenance import Maintenance
from seaway.application.system_clock import SystemClock
from seaway.bootstrap.data import DataFolder
from seaway.bootstrap.duties import duties
from seaway.bootstrap.plane import Plane, make_backends, make_bearer, make_plane
from seaway.bootstrap.settings import ServerSettings, Settings, load_settings
from seaway.client.where import data_folder
from seaway.domain.errors import RejectedError

SWITCH_S = 0.0005
"""How long a thread computes before another may: short, so that requests are answered while jobs are decided."""

BACKLOG = 2048


def serve(config: Path | None, flags: Mapping[tuple[str, str], object], data: Path | None) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises
    ------
    RejectedError
        When settings are wrong, the port is taken, or the data folder is in use.
    """
    started = time.monotonic()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = load_settings(config, os.environ, flags)
    if settings.server.no_auth:
        require_loopback(settings.server.host)
    sys.setswitchinterval(SWITCH_S)
    folder = DataFolder(data or data_folder())
    try:
        with _listening(settings.server) as listener, _running(settings, folder) as plane:
            url = _url(settings.server, listener)
            folder.announce(url)
            _welcome(plane, folder, url, time.monotonic() - started)
            with _ending_by_itself():
                make_server(make_app(plane), settings.server).run(sockets=[listener])
    finally:
        folder.close()


@contextmanager
def _running(settings: Settings, folder: DataFolder) -> Iterator[Plane]:
    """Have a control plane run."""
    clock = SystemClock()
    url = settings.database.url or folder.database_url
    store = open_store(url)
    backends = make_backends(settings.clusters, clock, folder.path)
    plane = make_plane(settings, store, backends, clock, bearer=make_bearer(settings.oidc, clock))
    back_up = partial(backup, url)
    maintenance = Maintenance(
        duties(settings.database, store, clock, folder.backups, lambda file: back_up(file, clock.now_ns())), clock
    )
    plane.start()
    maintenance.start()
    try:
        yield plane
    finally:
        maintenance.stop()
        plane.stop()


@contextmanager
def _listening(server: ServerSettings) -> Iterator[socket.socket]:
    """Take the port before anything else is begun."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((server.host, server.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        where = f"{server.host}:{server.port}"
        raise RejectedError(f"cannot listen there: {error.strerror}; choose another --port", where=where) from error
    with listener:
        yield listener


@contextmanager
def _ending_by_itself() -> Iterator[None]:
    """Let the server answer to SIGTERM and Ctrl-C, and what comes after it end in peace.

    When it is done the server raises the signal once more, which by default would end the process at once.
    """
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _url(server: ServerSettings, listener: socket.socket) -> str:
    scheme = "https" if server.tls_certificate else "http"
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


def _welcome(plane: Plane, folder: DataFolder, url: str, seconds: float) -> None:
    """Say where the server is, and how to get in."""
    console = Console(highlight=False, soft_wrap=True)
    plane.access.refresh()
    secret = plane.access.first_token()
    if secret:
        folder.write_token(secret)
    console.print(f"Seaway listens on [bold]{url}[/bold] (ready after {seconds:.1f} s)")
    console.print(f"Data in {folder.path}; the API is described at {url}/docs")
    if secret:
        console.print(f"A first admin token is in {folder.admin_token}; commands on this machine find it there.")
    if plane.settings.server.no_auth:
        console.print("[bold red]--no-auth: everybody who reaches this port is an admin.[/bold red]")
    console.print("Try: [bold]seaway submit --name hello --gpus 1 --gpu-memory 8GB[/bold]    Stop with Ctrl-C.")
