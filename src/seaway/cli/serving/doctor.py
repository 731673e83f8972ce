"""`seaway doctor`: checks of an installation, of its clusters and of its server."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.bootstrap.cluster_checks import Finding, Findings, Level, examine_cluster, examine_rights, examine_token
from seaway.cli.output import Output, OutputOption, console, show
from seaway.domain.errors import RejectedError, SeawayError, UnavailableError
from seaway.domain.reasons import Reason, reason_of
from seaway.domain.runtime import FETCHER

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.bootstrap.settings import ServerSettings, Settings
    from seaway.client.sync import Client

FREE_GIB = 5
"""Minimum free space of the data folder before a warning, GiB. A database with 1.5 million jobs takes 2."""

CERTIFICATE_DAYS = 30
"""Remaining lifetime of a certificate that is a warning, days."""

FETCH_S = 180
"""Time for which a pod may start and fetch an archive, seconds."""

KARMADA_REMEDY = "apply deploy/kubernetes/karmada.yaml and namespaces.yaml there"

COLOURS = {Level.OK: "green", Level.NOTE: "cyan", Level.WARNING: "yellow", Level.ERROR: "bold red"}


def doctor(
    context: typer.Context,
    config: Annotated[Path | None, typer.Option(help="Settings file of the server: docs/settings.md.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Data folder of the server.", show_default="~/.local/share/seaway")
    ] = None,
    pod_image: Annotated[
        str,
        typer.Option(
            metavar="IMAGE",
            help="Also start a pod in each cluster, which fetches a working directory as those of jobs do. The image"
            " needs a shell, and curl, python3 or wget.",
        ),
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Check settings, database, clusters, rights, GPUs and network, and say what to do.

    It changes nothing, and works with and without a running server. With --server or a profile for another machine, it
    checks only that server. With --pod-image, the server runs a short job in each cluster, which is then deleted. Exits
    with 1 if a check found an error.

    [bold]Examples[/bold]

      [cyan]seaway doctor --config seaway.toml[/cyan]
      [cyan]seaway --server https://seaway.example doctor[/cyan]
      [cyan]seaway doctor --pod-image python:3.12-slim[/cyan]
    """
    findings = list(_with_progress(_examine(context, config, data, pod_image)))
    counts = Counter(each.level for each in findings)
    body = {"checks": [asdict(each) for each in findings], "errors": counts[Level.ERROR]}
    show(output, body, lambda _: picture(findings), lambda: (each.check for each in findings))
    if counts[Level.ERROR]:
        raise typer.Exit(1)


def _with_progress(findings: Findings) -> Findings:
    with console(err=True).status("checking ...") as status:
        for each in findings:
            status.update(f"checked {each.check} ...")
            yield each


def _examine(context: typer.Context, config: Path | None, data: Path | None, pod_image: str) -> Findings:
    """Make all checks that concern the server that the command selects."""
    from seaway.bootstrap.data import clusters_driven
    from seaway.cli.remote import target
    from seaway.client.config import SERVER_FILE, data_folder

    folder = data or data_folder()
    os.environ["SEAWAY_DATA"] = str(folder)  # for the address and the token of its server
    try:
        selected = target(context)
    except UnavailableError:
        selected = None
    if selected and not selected.loopback:
        yield from _server(context, pod_image)
        return
    yield from examine_machine(config, folder)
    if selected and (clusters_driven(folder) or selected.server_from != str(folder / SERVER_FILE)):
        yield from _server(context, pod_image)
    else:
        level = Level.ERROR if pod_image else Level.NOTE
        yield Finding("server", level, "none runs on this data folder", "start it: seaway up")


def examine_machine(config: Path | None, data: Path) -> Findings:
    """Check the settings of a server, and what they name on this machine: folders, database and clusters.

    Without a settings file, it is the one of the server that runs on the data folder.
    """
    from seaway.bootstrap.data import running_server
    from seaway.bootstrap.settings import load_settings

    text = f"{config} is valid" if config else "defaults and environment variables"
    if not config and (own := running_server(data).get("config")):
        config, text = Path(own), f"{own} is valid, the file of the running server"
    try:
        settings = load_settings(config, os.environ, {})
    except RejectedError as error:
        for each in (error, *error.also):
            yield Finding("settings", Level.ERROR, str(each), "see docs/settings.md")
        return
    yield Finding("settings", Level.OK, text)
    yield from _tls(settings.server)
    yield from _engine()
    yield from _folder(data)
    yield from _guarded("database", lambda: _database(settings, data))
    yield from _guarded("workdirs", lambda: _workdirs(settings))
    yield from _guarded("clusters", lambda: _clusters(settings, data))


def _guarded(check: str, findings: Callable[[], Findings]) -> Findings:
    """Report an error of a check as its finding."""
    try:
        yield from findings()
    except SeawayError as error:
        yield Finding(check, Level.ERROR, str(error))


def _tls(server: ServerSettings) -> Findings:
    from seaway.application.access import is_loopback
    from seaway.cli.serving.server import require_tls

    if not server.tls_certificate:
        if not is_loopback(server.host) and not server.public_url.startswith("https:"):
            remedy = "set [server] tls_certificate and tls_key, or put a proxy with TLS in front and set public_url"
            yield Finding("TLS", Level.WARNING, f"tokens cross the network to {server.host} unencrypted", remedy)
        return
    from cryptography.x509 import load_pem_x509_certificate

    try:
        require_tls(server)
        certificate = load_pem_x509_certificate(Path(server.tls_certificate).read_bytes())
    except (RejectedError, ValueError) as error:
        yield Finding("TLS", Level.ERROR, str(error))
        return
    left = certificate.not_valid_after_utc - datetime.now(UTC)
    level = Level.ERROR if left <= timedelta() else Level.WARNING if left.days < CERTIFICATE_DAYS else Level.OK
    text = f"{server.tls_certificate} is valid until {certificate.not_valid_after_utc:%Y-%m-%d}"
    yield Finding("TLS", level, text, "" if level is Level.OK else "renew the certificate")


def _engine() -> Findings:
    from seaway.bootstrap.policies import POLICIES, uncompiled

    if missing := uncompiled(POLICIES):
        text = f"{', '.join(missing)} not compiled yet: the first start takes about a minute"
        yield Finding("engine", Level.NOTE, text, "compile ahead of time: seaway policy compile")
    else:
        yield Finding("engine", Level.OK, "compiled")


def _folder(data: Path) -> Findings:
    if not data.exists():
        yield Finding("data folder", Level.NOTE, f"{data} does not exist yet; the first start creates it")
        return
    free_gib = shutil.disk_usage(data).free / 2**30
    if not os.access(data, os.W_OK | os.X_OK):
        yield Finding("data folder", Level.ERROR, f"{data} is not writable for this user")
    elif free_gib < FREE_GIB:
        yield Finding("data folder", Level.WARNING, f"{free_gib:.1f} GiB free at {data}", "free space, or move --data")
    else:
        yield Finding("data folder", Level.OK, f"{data}, {free_gib:.0f} GiB free")


def _database(settings: Settings, data: Path) -> Findings:
    from seaway.adapters.sqlalchemy.engines import read_url
    from seaway.adapters.sqlalchemy.schema import NEWEST, current, require_known
    from seaway.bootstrap.data import running_server

    own = data.absolute() / "seaway.db"
    if not settings.database.url and (served := running_server(data).get("database")):
        yield Finding("database", Level.NOTE, f"{served}: set for the running server by option or environment")
        return
    if not settings.database.url and not own.exists():
        yield Finding("database", Level.NOTE, f"{own} does not exist yet; the first start creates it")
        return
    name = read_url(settings.database.url).render_as_string() if settings.database.url else str(own)
    try:
        found = require_known(current(settings.database.url or f"sqlite:///{own}"))
    except UnavailableError as error:
        yield Finding("database", Level.ERROR, f"{name}: {error}", "check [database] url, and that it runs")
        return
    if found == NEWEST:
        yield Finding("database", Level.OK, name)
    elif found:
        text = f"{name} has tables of an older version ({found}, newest {NEWEST})"
        yield Finding("database", Level.NOTE, text, "`seaway up` migrates them; make a backup first: seaway db backup")
    else:
        yield Finding("database", Level.NOTE, f"{name} is empty; the first start creates the tables")
    yield from _backups(settings, data / "backups")


def _workdirs(settings: Settings) -> Findings:
    """Check the bucket of archives."""
    from seaway.bootstrap.workdirs import make_bucket

    if bucket := make_bucket(settings.workdirs):
        bucket.size("doctor")  # its errors say what to do
        yield Finding("workdirs", Level.OK, f"{bucket.address} at {bucket.endpoint} accepts the credentials")


def _backups(settings: Settings, folder: Path) -> Findings:
    from seaway.bootstrap.scheduled_tasks import newest_backup_s

    interval_h = settings.database.backup_interval_h
    if not interval_h:
        yield Finding("backups", Level.WARNING, "no automatic backups", "set [database] backup_interval_h")
        return
    newest_s = newest_backup_s(folder, time.time_ns())
    if not newest_s:
        yield Finding("backups", Level.NOTE, f"none in {folder} yet; the server writes one every {interval_h} h")
        return
    age_h = (time.time() - newest_s) / 3600
    level = Level.OK if age_h <= 2 * interval_h else Level.WARNING
    text = f"newest {age_h:.0f} h old, one every {interval_h} h while the server runs"
    yield Finding("backups", level, text)


def _clusters(settings: Settings, data: Path) -> Findings:
    """Check real clusters: the connection, the rights, and the GPUs that device plugins report."""
    from seaway.application.clusters import ClusterNames
    from seaway.application.ports.clock import SystemClock
    from seaway.bootstrap.clusters import KUBECONFIGS, Kind, kind_of, make_clusters
    from seaway.bootstrap.data import clusters_driven

    kind = kind_of(settings.clusters, data)
    if (driven := clusters_driven(data)) and driven != kind:
        yield Finding(
            "clusters", Level.NOTE, f"the running server has others, by its options: {driven}", "seaway fleet"
        )
        return
    if kind is Kind.SIMULATED:
        yield Finding("clusters", Level.NOTE, "simulated", "join a real one: seaway cluster join --kubeconfig FILE")
        return
    from seaway.adapters.kubernetes.backends import KubernetesBackends
    from seaway.adapters.kubernetes.connection.contexts import find, read_kubeconfig, user_of
    from seaway.adapters.kubernetes.karmada import KarmadaBackends

    folder = str(data / KUBECONFIGS) if kind is Kind.JOINED else settings.clusters.kubeconfig_dir
    for each in find(Path(folder)).contexts if folder else ():
        yield from examine_token(f"token of {each.context}", user_of(read_kubeconfig(each.file), each.context))
    made = make_clusters(settings.clusters, SystemClock(), data, ClusterNames())
    backends = made.backends
    assert isinstance(backends, KubernetesBackends | KarmadaBackends)
    try:
        if isinstance(backends, KarmadaBackends):
            yield examine_rights("Karmada", backends.missing_rights, KARMADA_REMEDY)
        clusters = backends.clusters()
        for cluster in clusters:
            yield from examine_cluster(cluster, through_karmada=isinstance(backends, KarmadaBackends))
        if not clusters:
            yield Finding("clusters", Level.WARNING, "none", "join one: seaway cluster join --kubeconfig FILE")
    finally:
        made.close()


def _server(context: typer.Context, pod_image: str) -> Findings:
    """Check a running server: its readiness, its clusters, its network, its alerts, and its pods with an image."""
    from seaway.cli.remote import connect

    with connect(context) as client:
        url = client.target.server
        try:
            yield from _running(client, url)
        except SeawayError as error:
            yield Finding("server", Level.ERROR, f"{url}: {error}", server_remedy(error))
            return
        if pod_image:
            yield from _guarded("pods", lambda: examine_pods(client, pod_image))


def server_remedy(error: SeawayError) -> str:
    """Return what to do about an error of a server, which runs unless it cannot be reached."""
    from seaway.cli.errors import hint_of

    reason = reason_of(error)
    if isinstance(reason, Reason) and reason.code == "server_unreachable":
        return "start it: seaway up"
    if isinstance(error, UnavailableError):
        return "it runs, and continues by itself when this is mended"
    return hint_of(error)


def _running(client: Client, url: str) -> Findings:
    from seaway.client.calls.fleet import clusters, gateways
    from seaway.client.calls.network import agents
    from seaway.client.calls.service import alerts, me, ready

    client.send(ready())
    if not client.target.token:
        yield Finding("server", Level.WARNING, f"{url} is ready", "log in for more checks: seaway login")
        return
    who = client.send(me())
    yield Finding("server", Level.OK, f"{url} is ready; you are {who.name}, {who.role}")
    for each in client.body(clusters())["clusters"]:
        if each["state"] != "up":
            text = each["message"] or f"no report since {each['last_seen_s']} s"
            yield Finding(f"cluster {each['name']}", Level.ERROR, f"{each['state']}: {text}", "seaway fleet")
    if not client.body(gateways())["gateways"]:
        text = "no gateways: jobs with network bounds have no cluster"
        yield Finding("network", Level.NOTE, text, "seaway network put FILE; see docs/network.md")
    else:
        yield from _agents(client.body(agents())["agents"])
    found = client.body(alerts())["alerts"]
    for each in found:
        level = Level.NOTE if each["severity"] == "info" else Level.WARNING
        yield Finding("alert", level, f"{each['name']}: {each['message']}, since {each['since']}")
    if not found:
        yield Finding("alerts", Level.OK, "none")


def examine_pods(client: Client, image: str) -> Findings:
    """Let a job in each cluster fetch an archive with one file, from the server or from the bucket."""
    from seaway.client.calls.fleet import clusters
    from seaway.client.calls.jobs import delete, submit
    from seaway.client.workdirs import send_folder

    names = [each["name"] for each in client.body(clusters())["clusters"] if each["state"] == "up"]
    with TemporaryDirectory() as folder:
        (Path(folder) / "doctor.txt").write_text("from seaway doctor\n", encoding="utf-8")
        digest = send_folder(client, Path(folder))
    run = {"image": image, "command": ["cat", "doctor.txt"]}
    like = {"name": "doctor", "workdir": digest, "run": run, "resources": {"cpu": "100m", "memory": "64MB"}}
    started: dict[str, str] = {}
    try:
        for name in names:
            placed = {"placement": {"clusters": [name]}, "time_limit": f"{FETCH_S}s", "expected_duration": "1s"}
            started[name] = client.send(submit({**like, **placed})).id
        for name, job_id in started.items():
            yield _fetched(client, name, job_id)
    finally:
        for job_id in started.values():
            with suppress(SeawayError):
                client.send(delete(job_id))


def _fetched(client: Client, cluster: str, job_id: str) -> Finding:
    """Report whether the pod of a job got its archive."""
    from seaway.client.calls.jobs import job, logs, manifest
    from seaway.client.errors import WaitedTooLongError

    check, remedy = f"pods of {cluster}", "set [workdirs] url, ca, image and [clusters] egress: docs/settings.md"
    try:
        found = client.wait(job_id, timeout_s=FETCH_S)
    except WaitedTooLongError:
        found = client.send(job(job_id))
    if not found.attempt:
        return Finding(check, Level.ERROR, f"no pod could start: {found.message}")
    if FETCHER not in client.send(manifest(job_id)):
        return Finding(check, Level.NOTE, "a simulated cluster has no pods")
    if found.state == "completed":
        return Finding(check, Level.OK, "a pod fetched a working directory")
    try:
        said = client.send(logs(job_id, container=FETCHER, tail=1)).strip()
    except SeawayError:
        said = ""
    return Finding(check, Level.ERROR, ": ".join(filter(None, (found.state, found.message, said))), remedy)


def _agents(agents: list[dict[str, Any]]) -> Findings:
    for each in agents:
        check = f"gateway {each['gateway']}"
        if each["state"] == "reporting":
            yield Finding(check, Level.OK, "its agent reports")
        else:
            text = f"no report for {each['age_s']:.0f} s" if each["age_s"] is not None else "its agent never reported"
            yield Finding(check, Level.WARNING, text, "start it there: seaway agent; see docs/gateways.md")


def picture(findings: Sequence[Finding]) -> RenderableType:
    """Return a table of findings, and a line with their number."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table("CHECK", "RESULT", "DETAIL", box=None, pad_edge=False, header_style="bold")
    for each in findings:
        detail = Text(each.text)
        if each.remedy:
            detail.append(f"\n→ {each.remedy}", "bold")
        table.add_row(each.check, Text(each.level, COLOURS[each.level]), detail)
    counts = Counter(each.level for each in findings)
    said = (f"{counts[level]} {level}{'s' if counts[level] != 1 else ''}" for level in (Level.ERROR, Level.WARNING))
    return Group(table, "", Text(", ".join(said)))
