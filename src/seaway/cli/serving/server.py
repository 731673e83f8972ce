"""Server process, from its settings to its shutdown."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from rich.console import Console

from seaway.adapters.log_files import LogFiles
from seaway.adapters.sqlalchemy.backups import back_up_before, backup
from seaway.adapters.sqlalchemy.engines import read_url
from seaway.adapters.sqlalchemy.store import open_store
from seaway.api.app import make_app
from seaway.api.http.server import make_server
from seaway.application.access import USE_S, is_loopback, require_loopback
from seaway.application.clusters import ClusterNames
from seaway.application.fleet import log_storage
from seaway.application.fleet.gpu_use import INTERVAL_S
from seaway.application.fleet.log_storage import LogStorage
from seaway.application.maintenance import Maintenance, ScheduledTask
from seaway.application.ports.clock import SystemClock
from seaway.bootstrap.cluster_join import joined
from seaway.bootstrap.clusters import Kind, make_clusters
from seaway.bootstrap.control_plane import ControlPlane, make_bearer, make_plane
from seaway.bootstrap.data import DataFolder
from seaway.bootstrap.policies import warm_up
from seaway.bootstrap.scheduled_tasks import S_PER_H, scheduled_tasks
from seaway.bootstrap.settings import ServerSettings, Settings, load_settings
from seaway.bootstrap.workdirs import make_workdirs
from seaway.cli.serving.leader import LeaderSession, LedSession
from seaway.cli.serving.stopping import StoppedError, StopSignals
from seaway.client.config import data_folder, found_by_commands
from seaway.domain.errors import RejectedError, UnavailableError

log = logging.getLogger(__name__)

M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3
"""Parameters of `mallopt`."""

SWITCH_S = 0.001
"""Switch interval of threads in seconds. It is short, so that requests are answered during decisions."""

CURRENCY = "USD"
"""Currency of the prices of the demo's fleet."""

FIRST_USE_S = 5
"""Delay until the stored samples of GPU use are read after the start."""

FIRST_COSTS_S = 30
"""Delay until the uses of ended attempts are read after the start, so that the first page with costs is fast."""

BACKLOG = 2048

HELLO = "seaway submit --name hello --gpus 1 --gpu-memory 8GB --image ubuntu -- nvidia-smi"
"""Command for a first job, which simulated and real clusters both accept."""

JOIN = "seaway cluster join --kubeconfig FILE"
"""Command that adds the first cluster."""

IMPORTED_S = time.monotonic()
"""Monotonic time of the import of this module."""


def serve(config: Path | None, flags: Mapping[tuple[str, str], object], data: Path | None, stop: StopSignals) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises
    ------
    RejectedError
        When settings are invalid, the port is in use, or the data folder is in use.
    UnavailableError
        When another process has taken over the database.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = load_settings(config, os.environ, flags)
    if settings.server.no_auth:
        require_loopback(settings.server.host)
    require_tls(settings.server)
    _warn_without_tls(settings.server)
    sys.setswitchinterval(SWITCH_S)
    _bound_malloc()
    folder = DataFolder(data or data_folder())
    stop.begin()
    try:
        with (
            suppress(StoppedError),
            _listening(settings.server) as listener,
            _wait_for_leadership(settings, listener, stop) as turn,
        ):
            if turn.came:
                _serve(settings, folder, listener, turn, str(config.absolute()) if config else "")
    finally:
        folder.close()


def _bound_malloc() -> None:
    """Let glibc return large blocks to the system when they are freed, and share few arenas between threads.

    Its defaults kept 100 MiB of freed memory while the server was attacked.
    """
    if "CS_GNU_LIBC_VERSION" in os.confstr_names:
        libc = ctypes.CDLL(None)
        libc.mallopt(M_ARENA_MAX, 2)
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 18)


def _serve(settings: Settings, folder: DataFolder, listener: socket.socket, turn: LeaderSession, config: str) -> None:
    with _running(settings, folder, turn) as (plane, kind):
        url = _url(settings.server, listener)
        first_token = _first_token(plane, folder)

        def welcome() -> None:
            database = settings.database.url
            folder.announce(url, kind, config, read_url(database).render_as_string() if database else "")
            _print_welcome(plane, folder, url, first=first_token, waited_s=turn.waited_s)
            if kind is Kind.JOINED and not joined(folder.path):
                Console(highlight=False, soft_wrap=True).print(f"No cluster is joined: {JOIN}")

        server = make_server(_application(plane, settings, turn.stop), settings.server, welcome)
        plane.writer.on_superseded(server.end)
        turn.on_lost(server.end)
        turn.stop.on_stop(server.end_by_signal)
        turn.begin()
        if not turn.stop.count:
            server.run(sockets=[listener])
        if why := plane.writer.superseded or turn.lost:
            raise UnavailableError(why)


def _application(plane: ControlPlane, settings: Settings, stop: StopSignals) -> FastAPI:
    """Return the application: the API, and pages unless they are disabled."""
    app = make_app(plane, home=not settings.server.web)
    if settings.server.web:
        stop.starting("loads the pages")
        from seaway.web.addresses import LOGIN_CALLBACK
        from seaway.web.mount import mount  # takes a second to import
        from seaway.web.provider import ProviderSettings, require_whole

        oidc, public_url = settings.oidc, settings.server.public_url.rstrip("/")
        provider = ProviderSettings(
            issuer=oidc.issuer,
            audience=oidc.audience,
            client_id=oidc.client_id,
            client_secret=oidc.client_secret,
            redirect=oidc.redirect or (public_url and public_url + LOGIN_CALLBACK),
            scopes=oidc.scopes,
        )
        if oidc.client_id:
            require_whole(provider)
        mount(app, app.inside, provider if oidc.client_id else None, public_url, lambda: plane.controller.overload.on)
    return app


@contextmanager
def _wait_for_leadership(settings: Settings, listener: socket.socket, stop: StopSignals) -> Iterator[LeaderSession]:
    """Wait until the engine is compiled and this process is the leader, and answer health checks in the meantime."""
    turn = (LedSession if settings.leader.lease else LeaderSession)(settings, stop)
    try:
        turn.wait(listener)
        yield turn
    finally:
        turn.close()


def _warn_without_tls(server: ServerSettings) -> None:
    """Warn if tokens could be read on the network."""
    if server.tls_certificate or server.public_url.startswith("https:") or is_loopback(server.host):
        return
    log.warning(
        "WITHOUT TLS: everyone on the network between %s and its clients can read tokens. Set [server] tls_certificate "
        "and tls_key, or put a proxy with TLS in front and set [server] public_url",
        server.host,
    )


def require_tls(server: ServerSettings) -> None:
    """Check that the certificate and the key exist and match, before other components start.

    Raises
    ------
    RejectedError
        When they do not exist or do not match.
    """
    if not server.tls_certificate:
        return
    for path, where in ((server.tls_certificate, "tls_certificate"), (server.tls_key, "tls_key")):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise RejectedError(f"cannot read {path}: {error.strerror}", where=f"[server] {where}") from error
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(server.tls_certificate, server.tls_key, lambda: "")
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        text = (
            f"{server.tls_certificate} and {server.tls_key} are not a certificate and its key in PEM format: {reason}"
        )
        raise RejectedError(text, where="[server] tls_certificate") from error


@contextmanager
def _running(settings: Settings, folder: DataFolder, turn: LeaderSession) -> Iterator[tuple[ControlPlane, Kind]]:
    """Run a control plane; yield it with the kind of its clusters."""
    loading = threading.Thread(target=warm_up, name="warm up", daemon=True)
    loading.start()
    clock = SystemClock()
    url = settings.database.url or folder.database_url
    turn.stop.starting("opens the database")
    if before := back_up_before(url, folder.backups, clock.now_ns()):
        log.warning("the tables are of an older version; a backup from before their migration is %s", before)
    store = open_store(url)
    workdirs, delivery = make_workdirs(settings.workdirs, settings.server.public_url, store, clock)
    clusters = make_clusters(
        settings.clusters, clock, folder.path, ClusterNames(store), settings.control.stale_after_s, delivery
    )
    if clusters.kind is Kind.SIMULATED and not settings.server.currency and settings.clusters.fleet == "demo":
        settings = replace(settings, server=replace(settings.server, currency=CURRENCY))
    bearer = make_bearer(settings.oidc, clock)
    talker = turn.dispatcher(clock, settings.control.stale_after_s)
    plane = make_plane(
        settings,
        store,
        clusters.backends,
        clock,
        dispatcher=talker,
        bearer=bearer,
        templates=clusters.templates,
        folder=folder.path,
        workdirs=workdirs,
    )
    turn.on_lost(plane.dispatcher.stop)
    back_up = partial(backup, url)
    maintenance = Maintenance(
        [
            *scheduled_tasks(
                settings.database, store, clock, folder.backups, lambda file: back_up(file, clock.now_ns())
            ),
            ScheduledTask("gpu_use", INTERVAL_S, plane.overview.record_gpu_use, FIRST_USE_S),
            *_log_storage(settings.database.stored_logs_mib, folder.path / "logs", plane),
            ScheduledTask("last uses", USE_S, plane.access.store_uses),
            ScheduledTask("workdirs", S_PER_H, workdirs.collect),
            ScheduledTask("costs", S_PER_H, plane.overview.costs.by_lane, FIRST_COSTS_S),
        ],
        clock,
        plane.overview.failing_tasks,
    )
    try:
        turn.stop.starting("reads jobs and clusters")
    except StoppedError:
        clusters.close()
        store.close()
        raise
    plane.start()
    maintenance.start()
    loading.join()  # no request waits for the engine
    try:
        yield plane, clusters.kind
    finally:
        maintenance.stop()
        plane.stop()
        clusters.close()


def _log_storage(limit_mib: int, folder: Path, plane: ControlPlane) -> list[ScheduledTask]:
    """Return the task that stores logs of ended jobs; empty if it is off."""
    if not limit_mib:
        return []
    plane.overview.archive = archive = LogFiles(folder, limit_mib)
    storage = LogStorage(plane.overview, plane.store, archive, plane.controller)
    return [ScheduledTask("job_logs", log_storage.INTERVAL_S, storage.run)]


@contextmanager
def _listening(server: ServerSettings) -> Iterator[socket.socket]:
    """Bind the port before other components start."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((server.host, server.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        where = f"{server.host}:{server.port}"
        other = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise RejectedError(f"cannot listen there: {error.strerror}; choose another {other}", where=where) from error
    with listener:
        yield listener


def _url(server: ServerSettings, listener: socket.socket) -> str:
    scheme = "https" if server.tls_certificate else "http"
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


def _first_token(plane: ControlPlane, folder: DataFolder) -> bool:
    """Create the first token if there is none; return whether it was created."""
    plane.access.refresh()
    secret = plane.access.first_token()
    if secret:
        folder.write_token(secret)
    return bool(secret)


def _print_welcome(plane: ControlPlane, folder: DataFolder, url: str, *, first: bool, waited_s: float) -> None:
    """Print the server's URL, the location of the first token, and the start time without the wait for leadership."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Seaway listens on [bold]{url}[/bold] (ready after {_ready_after(waited_s)})")
    console.print(f"Data in {folder.path}; the API is described at {url}/docs")
    if first:
        console.print(f"A first admin token is in {folder.admin_token}{found_by_commands(folder.path)}")
    elif not plane.settings.server.no_auth and not folder.admin_token.exists():
        console.print(
            "No admin token is in the data folder. Sign in with a token of yours (seaway login), or stop the server "
            "and run seaway db new-admin-token"
        )
    if plane.settings.server.no_auth:
        console.print("[bold red]--no-auth: everybody who reaches this port is an admin.[/bold red]")
    console.print(f"Try: [bold]{HELLO}[/bold]    Stop with Ctrl-C.")


def _ready_after(waited_s: float) -> str:
    """Format the start time, and separately the wait for leadership if there was one."""
    started = f"{age_s() - waited_s:.1f} s"
    return f"{started}, and {waited_s:.1f} s until it became the leader" if waited_s else started


def age_s() -> float:
    """Return the age of this process in seconds, including its own start.

    Only the operating system reports it. Otherwise, the time counts from the import of this module.

    References
    ----------
    proc_pid_stat(5): field 22, counted from the boot, in ticks.
    """
    since_import_s = time.monotonic() - IMPORTED_S
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, IndexError, ValueError):
        return since_import_s
    return max(age, since_import_s)
