"""`seaway notebook` and `seaway serve`: jobs with a web server, and the address of the server with its token.

The container makes the token. Seaway reads it by a session, so that the job, its log and the audit log do not have it.
"""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from seaway.cli.errors import note
from seaway.cli.jobs.access import forward
from seaway.cli.jobs.file import Written, merged, pairs, read_jobs, written_jobs
from seaway.cli.remote import Body, connect, target
from seaway.domain.errors import RejectedError, SeawayError, UnavailableError
from seaway.domain.job_spec import ServiceType

if TYPE_CHECKING:
    from seaway.client.sync import Client

CONNECT_S = 3.0
"""Time limit to reach the address of a job, in seconds."""

LARGEST_TOKEN = 1_000

FOLDER = "/run/seaway-token"
"""Mount path of the folder with the token. It stays when the container is restarted."""

MAKE_TOKEN = """\
file={folder}/token
[ -w {folder} ] || file=${{TMPDIR:-/tmp}}/seaway-token
before=$(umask)
umask 077
if [ -n "${{{variable}-}}" ]; then
  printf %s "${variable}" > "$file"
elif [ ! -s "$file" ]; then
  od -An -N24 -tx1 /dev/urandom | tr -d ' \\n' > "$file"
fi
umask "$before"
export {variable}="$(cat "$file")"
"""
"""Script that makes the token, unless the container has one already, or a Secret of the job has it."""

READ_TOKEN = (
    "command -v python3 > /dev/null || {{ echo 'the image has no python3' >&2; exit 1; }}; "
    "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 1)' 2> /dev/null; "
    f'do sleep 0.5; done; cat {FOLDER}/token 2> /dev/null || cat "${{{{TMPDIR:-/tmp}}}}/seaway-token"'
)
"""Script that waits until the server listens, and prints its token."""


@dataclass(frozen=True, slots=True)
class App:
    """Template of a job with a web server.

    Attributes
    ----------
    what
        Name in messages.
    command
        Command that opens a running one again.
    variable
        Variable with the token.
    start
        Script that starts the server, after the token was made.
    fields
        Other fields of the job.
    port
        Port of the server.
    lines
        Lines to print, with `{url}` and `{token}`.
    """

    what: str
    command: str
    variable: str
    start: str
    fields: Body
    port: int
    lines: tuple[str, ...]

    def job(self, options: Written, base: Written, arguments: list[str]) -> Written:
        """Return the job with fields from a file and from options."""
        token = MAKE_TOKEN.format(folder=FOLDER, variable=self.variable)
        script = f"{token}{self.start.format(port=self.port)}"
        fields = merged(merged(self.fields, base.fields), options.fields)
        own: Body = {"run": {"command": ["sh", "-c", script, self.command, *arguments]}}
        given = fields.get("volumes") or []
        if isinstance(given, list):  # else its error is that of a job
            own["volumes"] = [*given, {"path": FOLDER, "empty_dir": "1Mi"}]
        return replace(base, fields=merged(fields, own), options=options.options)


NOTEBOOK = App(
    what="notebook",
    command="seaway notebook",
    variable="JUPYTER_TOKEN",
    start="""\
command -v jupyter-lab > /dev/null || python3 -m pip install --quiet --no-cache-dir jupyterlab || exit
exec jupyter-lab --port={port} --no-browser --allow-root "$@"
""",
    fields={
        "name": "notebook",
        "lease": "8h",
        "retries": 0,
        "resources": {"cpu": 2, "memory": "8GB", "gpus": 1},
        "run": {"image": "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"},
    },
    port=8888,
    lines=("{url}/lab?token={token}",),
)

SERVE = App(
    what="service",
    command="seaway serve",
    variable="VLLM_API_KEY",
    start="""\
exec vllm serve "$@" --host 0.0.0.0 --port {port}
""",
    fields={
        "template": "deployment",
        "resources": {"cpu": 4, "memory": "32GB", "gpus": 1, "shm_size": "4GB"},
        "run": {"image": "vllm/vllm-openai:v0.11.0", "ports": [8000]},
    },
    port=8000,
    lines=("OPENAI_BASE_URL={url}/v1", "OPENAI_API_KEY={token}"),
)

NameOption = Annotated[str | None, typer.Option("--name", "-n", help="Name of the job.")]
FileOption = Annotated[
    Path | None, typer.Option("--file", "-f", help="Job YAML with further fields, such as placement and network.")
]
GpusOption = Annotated[int | None, typer.Option(min=0, help="Devices; default: 1.")]
GpuMemoryOption = Annotated[str | None, typer.Option(help="Memory of each device: 24GB or 50%.")]
GpuModelOption = Annotated[list[str] | None, typer.Option(help="Accepted GPU model. Repeatable.")]
CpuOption = Annotated[str | None, typer.Option(help="CPU cores: 2 or 500m.")]
MemoryOption = Annotated[str | None, typer.Option(help="Memory of the node: 16GB.")]
QueueOption = Annotated[str | None, typer.Option("--queue", "-q", help="Queue of the job.")]
SecretOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=SECRET/KEY", help="Environment variable with a key of a Secret. Repeatable."),
]
VolumeOption = Annotated[
    list[str] | None, typer.Option(metavar="KIND=NAME:PATH[:ro]", help="Volume, as in `seaway submit`. Repeatable.")
]
ExposeOption = Annotated[ServiceType | None, typer.Option(help="How clients outside the cluster reach it.")]
HostOption = Annotated[str | None, typer.Option(help="Host name for --expose Ingress or HTTPRoute.")]
PortOption = Annotated[int | None, typer.Option(min=1, max=65_535, help="Local port; default: as in the job.")]
OpenOption = Annotated[
    str | None, typer.Option("--open", metavar="JOB", help="Print the address of a running one, and start none.")
]
DetachOption = Annotated[
    bool, typer.Option("--detach", "-d", help="Print the address and return, without forwarding a port.")
]


def notebook(  # options by name
    context: typer.Context,
    name: NameOption = None,
    gpus: GpusOption = None,
    gpu_memory: GpuMemoryOption = None,
    gpu_model: GpuModelOption = None,
    cpu: CpuOption = None,
    memory: MemoryOption = None,
    image: Annotated[
        str | None, typer.Option(help="Image with Python 3, and with JupyterLab or access to a package index.")
    ] = None,
    lease: Annotated[
        str | None, typer.Option(help="Time without use after which the notebook is stopped; default: 8h.")
    ] = None,
    queue: QueueOption = None,
    env_from_secret: SecretOption = None,
    volume: VolumeOption = None,
    expose: ExposeOption = None,
    host: HostOption = None,
    file: FileOption = None,
    port: PortOption = None,
    open_: OpenOption = None,
    detach: DetachOption = False,
) -> None:
    """Start a notebook with JupyterLab, and print its address with a token.

    Without --expose, or if its address cannot be reached from here, forward a port of this machine until Ctrl-C. The
    notebook continues until its lease ends. Use renews the lease.

    [bold]Examples[/bold]

      [cyan]seaway notebook --gpus 1[/cyan]
      [cyan]seaway notebook --gpus 1 --gpu-memory 16GB --volume claim=home:/workspace[/cyan]
      [cyan]seaway notebook --open notebook[/cyan]
    """
    given = {
        "name": name,
        "resources.gpus": gpus,
        "resources.gpu_memory": gpu_memory,
        "resources.gpu_model": gpu_model,
        "resources.cpu": cpu,
        "resources.memory": memory,
        "run.image": image,
        "run.env_from_secret": pairs(env_from_secret, "--env-from-secret"),
        # A notebook without a service accepts connections from its own pod only, such as forwarded ones.
        "run.ports": [NOTEBOOK.port] if expose else None,
        "lease": lease,
        "queue": queue,
        "volumes": volume,
        "expose.type": expose.value if expose else None,
        "expose.host": host,
    }
    arguments = ["--ip=0.0.0.0" if expose else "--ip=127.0.0.1"]
    open_app(context, NOTEBOOK, given, arguments, file=file, port=port, job=open_, detach=detach)


def serve(  # options by name
    context: typer.Context,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="Name of the model, or its path.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTIONS...]", help="Further options of `vllm serve`.")
    ] = None,
    name: NameOption = None,
    gpus: GpusOption = None,
    gpu_memory: GpuMemoryOption = None,
    gpu_model: GpuModelOption = None,
    cpu: CpuOption = None,
    memory: MemoryOption = None,
    image: Annotated[str | None, typer.Option(help="Image with vLLM.")] = None,
    lease: Annotated[
        str | None, typer.Option(help="Time until the service is stopped unless it is renewed; default: none.")
    ] = None,
    queue: QueueOption = None,
    env_from_secret: SecretOption = None,
    volume: VolumeOption = None,
    expose: ExposeOption = None,
    host: HostOption = None,
    file: FileOption = None,
    port: PortOption = None,
    open_: OpenOption = None,
    detach: DetachOption = False,
) -> None:
    """Serve a model with vLLM, and print the address and the key of its API.

    Without --expose, or if its address cannot be reached from here, forward a port of this machine until Ctrl-C. The
    service continues until it is cancelled.

    [bold]Examples[/bold]

      [cyan]seaway serve Qwen/Qwen3-8B[/cyan]
      [cyan]seaway serve Qwen/Qwen3-32B --gpus 2 --expose Ingress -- --max-model-len 8192[/cyan]
      [cyan]seaway serve --open qwen3-8b[/cyan]
    """
    if bool(model) == bool(open_):
        raise RejectedError("name a model, or a running service with --open", where="MODEL")
    options = list(arguments or ())
    if gpus and gpus > 1 and not any(each.startswith("--tensor-parallel-size") for each in options):
        options.append(f"--tensor-parallel-size={gpus}")
    given = {
        "name": name or name_of(model or ""),
        "resources.gpus": gpus,
        "resources.gpu_memory": gpu_memory,
        "resources.gpu_model": gpu_model,
        "resources.cpu": cpu,
        "resources.memory": memory,
        "run.image": image,
        "run.env_from_secret": pairs(env_from_secret, "--env-from-secret"),
        "lease": lease,
        "queue": queue,
        "volumes": volume,
        "expose.type": expose.value if expose else None,
        "expose.host": host,
    }
    open_app(context, SERVE, given, [model or "", *options], file=file, port=port, job=open_, detach=detach)


def name_of(model: str) -> str:
    """Return the name of a job for a model.

    Examples
    --------
    >>> name_of("Qwen/Qwen2.5-7B-Instruct"), name_of("/models/")
    ('qwen2-5-7b-instruct', 'models')
    """
    return re.sub(r"[^a-z0-9]+", "-", model.rstrip("/").rpartition("/")[2].lower()).strip("-")[:50] or "model"


def open_app(
    context: typer.Context,
    app: App,
    given: dict[str, Any],
    arguments: list[str],
    *,
    file: Path | None,
    port: int | None,
    job: str | None,
    detach: bool,
) -> None:
    """Start a server, or take a running one, and print its address; else forward a local port to it."""
    from seaway.cli.jobs.events import attach
    from seaway.client.calls.jobs import job as read_job

    with connect(context) as client:
        if job is None:
            body = submit(client, app, given, arguments, file)
            note(f"submitted {body['name']} as {body['id']}")
        else:
            body = client.body(read_job(job))
        if body["state"] != "running":
            code = attach(client, body, until_running=True)
            body = client.body(read_job(body["id"]))
            if body["state"] != "running":
                raise typer.Exit(code)
        again = f"open it again: {app.command} --open {body['id']}; end it: seaway cancel {body['id']}"
        note(f"waiting for its server; its log: seaway logs -f {body['id']}")
        try:
            token = read_token(context, app, body["id"])
        except (SeawayError, KeyboardInterrupt):
            note(f"the {app.what} continues; {again}")
            raise
        body = client.body(read_job(body["id"]))
    if url := reachable_url(body, app.port):
        show(app, url, token)
        note(again)
        return
    local = port or free_port(app.port)
    if detach:
        note(f"forward its port first: seaway port-forward {body['id']} {local}:{app.port}; {again}")
        show(app, f"http://127.0.0.1:{local}", token)
        return

    def ready(ports: list[int]) -> None:
        show(app, f"http://127.0.0.1:{ports[0]}", token)

    try:
        asyncio.run(forward(context, body["id"], 0, "127.0.0.1", [(local, app.port)], ready))
    except KeyboardInterrupt:
        lease = f" until its lease ends, now at {body['expires_at']}" if body.get("expires_at") else ""
        note(f"\nthe {app.what} continues{lease}; {again}")


def submit(client: Client, app: App, given: dict[str, Any], arguments: list[str], file: Path | None) -> Body:
    """Submit the job of a template, with fields from a file and from options."""
    from seaway.cli.jobs.submit import send

    base = read_jobs(str(file)) if file else [Written({})]
    if len(base) > 1:
        raise RejectedError(f"has {len(base)} jobs; use one", where=str(file))
    known = {path: value for path, value in given.items() if value is not None}
    options = written_jobs([], known)[0] if known else Written({})
    return send(client, [app.job(options, base[0], arguments)], "")[0]


def read_token(context: typer.Context, app: App, job: str) -> str:
    """Wait until the server listens, and return its token.

    Raises
    ------
    UnavailableError
        When the session ends before.
    """
    from seaway.client.calls.jobs import exec_session
    from seaway.client.sessions import Channel, Outcome, open_session

    call = exec_session(job, ["sh", "-c", READ_TOKEN.format(port=app.port)])

    async def read() -> str:
        said = {Channel.STDOUT: b"", Channel.STDERR: b""}
        async with open_session(target(context), call) as session:
            while frame := await session.receive():
                channel = Channel(frame[0])
                if channel == Channel.STATUS:
                    outcome = Outcome.of(frame)
                    if outcome.exit_code == 0:
                        return said[Channel.STDOUT].decode().strip()
                    why = outcome.message or said[Channel.STDERR].decode(errors="replace").strip()
                    raise UnavailableError(f"its token cannot be read: {why or 'unknown reason'}")
                said[channel] = (said.get(channel, b"") + frame[1:])[:LARGEST_TOKEN]
        raise UnavailableError("the connection broke before its server was ready")

    return asyncio.run(read())


def show(app: App, url: str, token: str) -> None:
    """Print the address of a server."""
    for line in app.lines:
        typer.echo(line.format(url=url, token=token))


def reachable_url(body: Body, port: int) -> str:
    """Return the URL of a job's port for this machine; empty if it has none, or does not answer."""
    for each in body.get("endpoints") or ():
        if each["port"] != port or each["reach"] not in ("outside", "nodes") or not each["address"]:
            continue
        url = each["address"] if "://" in each["address"] else f"http://{each['address']}"
        parts = urlsplit(url)
        place = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        with suppress(OSError):
            socket.create_connection(place, CONNECT_S).close()
            return url.rstrip("/")
        note(f"{url} cannot be reached from this machine")
    return ""


def free_port(wanted: int) -> int:
    """Return a local port if it is free, or any free one."""
    for port in (wanted, 0):
        with closing(socket.socket()) as tried, suppress(OSError):
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))
            return int(tried.getsockname()[1])
    raise UnavailableError("no local port is free")
