"""`seaway init`: the first step of an operator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.errors import note
from seaway.cli.output import console
from seaway.domain.errors import ConflictError, RejectedError, SeawayError, UnavailableError
from seaway.domain.numbers import whole_number

if TYPE_CHECKING:
    from seaway.client.sync import Client

START_S = 900.0
"""Maximum time that the server needs to start. A new installation compiles the engine first."""

POLL_S = 0.1
KUBECONFIGS = ("KUBECONFIG", "~/.kube/config")


@dataclass(frozen=True, slots=True)
class Team:
    """A team: a tenant, with a queue and a token of the same name.

    Attributes
    ----------
    gpus
        GPUs that its queue guarantees.
    """

    name: str
    gpus: int

    @classmethod
    def read(cls, text: str) -> Team:
        """Return the team of ``NAME`` or ``NAME=GPUS``.

        Raises
        ------
        RejectedError
            If the name or the number is invalid.
        """
        from seaway.domain.tenancy import require_name

        name, _, gpus = text.strip().partition("=")
        require_name("tenant", name)
        number = whole_number(gpus or 0)
        if number is None:
            raise RejectedError(f"{gpus[:80]!r} is not a number of GPUs, like {name}=16", where="--tenant")
        return cls(name, number)


@dataclass(slots=True)
class Plan:
    """Choices of an operator."""

    host: str
    port: int
    database: str
    certificate: str = ""
    key: str = ""
    kubeconfig: Path | None = None
    contexts: tuple[str, ...] = ()
    karmada: Path | None = None
    teams: list[Team] = field(default_factory=list)

    def settings(self) -> str:
        """Return the settings file."""
        lines = ["# Settings of `seaway up`. docs/settings.md describes all of them.", "[server]"]
        lines += [f"host = {json.dumps(self.host)}", f"port = {self.port}"]
        if self.certificate:
            lines += [f"tls_certificate = {json.dumps(self.certificate)}", f"tls_key = {json.dumps(self.key)}"]
        if self.database:
            lines += ["", "[database]", f"url = {json.dumps(self.database)}"]
        if self.karmada:
            lines += ["", "[clusters.karmada]", f"kubeconfig = {json.dumps(str(self.karmada.absolute()))}"]
        return "\n".join(lines) + "\n"


def init(  # one option for each question
    config: Annotated[Path, typer.Option(help="Settings file to write.")] = Path("seaway.toml"),
    data: Annotated[
        Path | None, typer.Option(help="Data folder of the server.", show_default="~/.local/share/seaway")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.", show_default="8080")] = None,
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="mysql:// or postgresql://.", show_default="SQLite in the data folder"),
    ] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="TLS certificate in PEM format.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key in PEM format.")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Kubeconfig with clusters to join.")] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(help="Context in the kubeconfig to join. Repeatable.", show_default="the current one"),
    ] = None,
    karmada: Annotated[
        Path | None, typer.Option(help="Kubeconfig of a control plane of Karmada, instead of clusters.")
    ] = None,
    tenant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=GPUS]",
            help="Team that gets a tenant, a queue with that many guaranteed GPUs, and a token. Repeatable.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; use the options and their defaults.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the settings file.")] = False,
) -> None:
    """Set up a server: settings, clusters, tenants, queues and tokens, and check the result.

    On a terminal, it asks for what the options leave open. It starts the server once to store tenants, queues and
    tokens. Standard output has a line with name and token for each team; a token is shown only once.

    [bold]Examples[/bold]

      [cyan]seaway init[/cyan]

    Without questions, with two clusters and two teams:

      [cyan]seaway init --yes --kubeconfig ~/.kube/config --context gpu-east --context gpu-west --tenant vision=16
      --tenant speech=8 > tokens[/cyan]
    """
    from seaway.client.config import data_folder

    if config.exists() and not force:
        raise RejectedError("exists already; choose another --config, or --force", where=str(config))
    if karmada and (kubeconfig or context):
        raise RejectedError("use either --karmada, or --kubeconfig and --context", where="--karmada")
    if context and not kubeconfig:
        raise RejectedError("requires --kubeconfig", where="--context")
    if bool(tls_certificate) != bool(tls_key):
        raise RejectedError("use --tls-certificate and --tls-key together", where="--tls-certificate")
    asks = not yes and sys.stdin.isatty()
    folder = data or (Path(_ask("Data folder", str(data_folder()))) if asks else data_folder())
    plan = Plan(
        host=host or (_ask("Address to listen on", "127.0.0.1") if asks else "127.0.0.1"),
        port=port or (_ask_port(8080) if asks else 8080),
        database=database or (_ask("URL of a MySQL or PostgreSQL database (empty: SQLite)", "") if asks else ""),
        certificate=str(tls_certificate.absolute()) if tls_certificate else "",
        key=str(tls_key.absolute()) if tls_key else "",
        kubeconfig=kubeconfig,
        contexts=tuple(context or ()),
        karmada=karmada,
        teams=[Team.read(each) for each in tenant or ()],
    )
    if asks and not (kubeconfig or karmada):
        _ask_clusters(plan)
    if asks and not tenant:
        _ask_teams(plan)
    _require_distinct(plan.teams)
    _require_valid(config, plan)
    _join(plan, folder)
    new = not config.exists()
    _write_settings(config, plan)
    note(f"settings are in {config}")
    os.environ["SEAWAY_DATA"] = str(folder)
    try:
        with _server(config, folder) as client:
            for team in plan.teams:
                _create(client, team)
    except SeawayError:
        if new:  # so that the command can be repeated
            config.unlink(missing_ok=True)
            note(f"{config} is removed again")
        raise
    _check(config, folder)


def _ask(question: str, default: str) -> str:
    """Ask on standard error, because standard output has the tokens.

    Raises
    ------
    typer.Abort
        If the input ends.
    """
    typer.echo(f"{question}{f' [{default}]' if default else ''}: ", nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line.strip() or default


def _ask_port(default: int) -> int:
    while (port := whole_number(answer := _ask("Port", str(default)), 65_535)) is None:
        note(f"{answer[:80]!r} is not a port")
    return port


def _ask_clusters(plan: Plan) -> None:
    """Ask for the clusters to join."""
    from seaway.adapters.kubernetes.connection.contexts import context_names, current_context

    found = next((path for each in KUBECONFIGS if (path := _kubeconfig(each)).is_file()), None)
    answer = _ask("Kubeconfig with clusters to join (- for simulated clusters)", str(found or "-"))
    if answer == "-":
        return
    plan.kubeconfig = Path(answer).expanduser()
    names = context_names(plan.kubeconfig)
    note(f"contexts: {', '.join(names)}")
    asked = _ask("Contexts to join, separated by commas", current_context(plan.kubeconfig))
    plan.contexts = tuple(each.strip() for each in asked.split(",") if each.strip())


def _kubeconfig(where: str) -> Path:
    """Return the path in a variable, or a path below the home folder."""
    return Path(where).expanduser() if "/" in where else Path(os.environ.get(where, "-"))


def _ask_teams(plan: Plan) -> None:
    """Ask for teams until the answer is empty."""
    while answer := _ask("Team, as NAME or NAME=GUARANTEED_GPUS (empty: no more)", ""):
        try:
            plan.teams.append(Team.read(answer))
        except RejectedError as error:
            note(str(error))


def _require_distinct(teams: Sequence[Team]) -> None:
    names = [each.name for each in teams]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RejectedError(f"{', '.join(twice)} is given twice", where="--tenant")


def _require_valid(config: Path, plan: Plan) -> None:
    """Check the settings before anything is changed.

    Raises
    ------
    RejectedError
        If a setting is invalid, or no file can be written there.
    """
    from seaway.adapters.sqlalchemy.engines import read_url
    from seaway.bootstrap.settings import load_settings
    from seaway.cli.serving.server import require_tls

    if plan.database:
        read_url(plan.database)
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".toml", dir=config.parent, encoding="utf-8") as draft:
            draft.write(plan.settings())
            draft.flush()
            try:
                require_tls(load_settings(Path(draft.name), os.environ, {}).server)
            except RejectedError as error:
                raise RejectedError(str(error).replace(draft.name, str(config))) from None
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(config)) from None


def _write_settings(config: Path, plan: Plan) -> None:
    """Write the settings file, readable for its owner only, since a database URL may contain a password."""
    try:
        with os.fdopen(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(plan.settings())
    except OSError as error:
        raise RejectedError(f"cannot be written: {error.strerror}", where=str(config)) from None


def _join(plan: Plan, folder: Path) -> None:
    """Join the clusters; one that joined before gets its new kubeconfig."""
    if plan.kubeconfig is None:
        return
    from seaway.bootstrap.cluster_join import join

    for context in plan.contexts or ("",):
        with console(err=True).status(f"reading the inventory of {context or 'the cluster'} ..."):
            found = join(plan.kubeconfig, context, "", folder, replace=True)
        note(f"cluster {found.name} is joined")


@contextmanager
def _server(config: Path, folder: Path) -> Iterator[Client]:
    """Yield a client for the server of a data folder; start it for the time of the block if none runs."""
    from seaway.bootstrap.data import clusters_driven
    from seaway.client.config import Target
    from seaway.client.sync import Client

    process = None
    if not clusters_driven(folder):
        command = [sys.executable, "-m", "seaway", "up", "--config", str(config), "--data", str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        with console(err=True).status(
            "starting the server once; a new installation compiles the engine first, about a minute ..."
        ):
            _wait(process, folder)
        found = Target.find()
        with Client(found.server, found.token) as client:
            yield client
    finally:
        if process:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def _wait(process: subprocess.Popen[str] | None, folder: Path) -> None:
    """Wait until the server has announced its address.

    Raises
    ------
    RejectedError
        If it ended before, with its last line.
    UnavailableError
        If it takes too long.
    """
    from seaway.bootstrap.data import SERVER_FILE

    give_up_s = time.monotonic() + START_S
    while process and not (folder / SERVER_FILE).exists():
        if process.poll() is not None:
            said = process.stderr.read().strip().splitlines() if process.stderr else []
            reason = said[-1].removeprefix("error: ") if said else "it gave no reason"
            raise RejectedError(f"the server does not start: {reason}")
        if time.monotonic() > give_up_s:
            raise UnavailableError(f"the server did not start within {START_S:.0f} s")
        time.sleep(POLL_S)


def _create(client: Client, team: Team) -> None:
    """Create what is missing of a team: its tenant, its queue and its token."""
    from seaway.cli.admin.queue_change import based_on_newest, change
    from seaway.client.calls.service import create_token
    from seaway.client.calls.tenancy import put_tenant, tenant

    based_on_newest(
        client,
        tenant(team.name),
        lambda there, seen: put_tenant(
            team.name,
            there.get("description", ""),
            weight=there.get("weight", 1),
            quotas=there.get("quotas"),
            secrets=there.get("secrets", ()),
            seen=seen,
        ),
    )
    guarantee = {"gpus": team.gpus} if team.gpus else None
    change(client, team.name, {"tenant": team.name, "guarantee": guarantee})
    gpus = f", with {team.gpus} GPU{'s' if team.gpus != 1 else ''} guaranteed" if team.gpus else ""
    note(f"tenant and queue {team.name} are ready{gpus}")
    try:
        token = client.send(create_token(team.name, tenant=team.name))
    except ConflictError:
        note(f"token {team.name} exists already; its secret is not stored")
    else:
        typer.echo(f"{team.name} {token.secret}")


def _check(config: Path, folder: Path) -> None:
    """Print the findings of the doctor, and how to start the server.

    Raises
    ------
    typer.Exit
        If there is an error.
    """
    from seaway.bootstrap.cluster_checks import Level
    from seaway.cli.serving.doctor import examine_machine, picture

    with console(err=True).status("checking ..."):
        findings = list(examine_machine(config, folder))
    console(err=True).print(picture(findings))
    if any(each.level is Level.ERROR for each in findings):
        note("mend the errors, and check again: seaway doctor")
        raise typer.Exit(1)
    note(f"start the server: seaway up --config {config} --data {folder}")
