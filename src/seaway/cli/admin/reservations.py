"""`seaway reservation`: capacity for a later time, and maintenance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli import arguments
from seaway.cli.admin.queue_change import Seen
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect

if TYPE_CHECKING:
    from seaway.client.sync import Client

FIELDS = ("tenant", "queue", "gpus", "gpu_model", "clusters", "nodes", "drain", "description")
"""Fields of a reservation besides its times, in the order of the options."""

app = typer.Typer(rich_markup_mode="rich")


@app.callback(invoke_without_command=True)
def reservations(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List, create, change and remove advance reservations and maintenance windows.

    Before a reservation begins, only jobs whose time limit ends in time use its capacity. While it is active, only jobs
    of its tenant or queue do. Maintenance cordons its clusters or nodes, and uncordons them at its end.

    [bold]Examples[/bold]

      [cyan]seaway reservation[/cyan]
      [cyan]seaway reservation show demo[/cyan]
      [cyan]seaway reservation create demo --tenant vision --gpus 8 --gpu-model A100 --from 14:00 --to 18:00[/cyan]
      [cyan]seaway reservation create upgrade --cluster paris --drain --from "2026-11-28 06:00" --for 8h[/cyan]
      [cyan]seaway reservation set upgrade --for 10h[/cyan]
      [cyan]seaway reservation delete upgrade[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.tenancy import reservations as call
    from seaway.terminal.tables import Column, Rows

    with connect(context) as client:
        body = client.body(call())
    rows = body["reservations"]
    columns = (
        Column("RESERVATION", lambda each: each["name"]),
        Column("STATE", lambda each: each["state"]),
        Column("FROM", lambda each: _minute(each["starts"])),
        Column("TO", lambda each: _minute(each["ends"])),
        Column("FOR", _holder),
        Column("GPUS READY", lambda each: f"{each['gpus_ready']}/{each['gpus'] or each['gpus_reserved']}"),
        Column("WHERE", _where, cut=True),
        Column("DESCRIPTION", lambda each: each["description"], cut=True, drop=1),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))


def _minute(text: str) -> str:
    from seaway.terminal.words import moment

    at = moment(text).astimezone()
    return at.strftime("%Y-%m-%d %H:%M:%S %Z" if at.second else "%Y-%m-%d %H:%M %Z")


def _holder(row: dict[str, str]) -> str:
    if row["maintenance"]:
        return "maintenance, drain" if row["drain"] else "maintenance"
    return ", ".join(f"{kind} {row[kind]}" for kind in ("tenant", "queue") if row[kind])


def _where(row: dict[str, list[str]]) -> str:
    places = [f"{cluster}/{node}" for cluster in row["clusters"] for node in row["nodes"]]
    return ", ".join(filter(None, (str(row["gpu_model"]), *(places or row["clusters"])))) or "all clusters"


def _stored(client: Client, name: str) -> Body:
    from seaway.client.calls.tenancy import reservations as call
    from seaway.domain.errors import UnknownError

    rows: dict[str, Body] = {each["name"]: each for each in client.body(call())["reservations"]}
    if name not in rows:
        raise UnknownError(f"reservation {name!r} not found; available: {', '.join(rows) or 'none'}")
    return rows[name]


@app.command("show")
def show_reservation(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the reservation.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a reservation or maintenance: time, holder, place and GPUs."""
    from seaway.terminal.tables import details

    with connect(context) as client:
        body = _stored(client, name)
    facts = (
        ("reservation", name),
        ("state", body["state"]),
        ("from", _minute(body["starts"])),
        ("to", _minute(body["ends"])),
        ("for", _holder(body)),
        ("where", _where(body)),
        ("GPUs", f"{body['gpus_ready']} of {body['gpus'] or body['gpus_reserved']} ready"),
        ("description", body["description"]),
    )
    show(output, body, lambda _: details(facts), lambda: [name])


From = Annotated[str, typer.Option("--from", help="Begin: 14:00 (the next), '2026-11-28 14:00' (local time) or +2h.")]
To = Annotated[str, typer.Option("--to", help="End, as --from; +2h counts from the begin.")]
For = Annotated[str, typer.Option("--for", help="Duration instead of --to, such as 4h.")]
Tenant = Annotated[str | None, typer.Option(help="Tenant whose jobs may use it.")]
Queue = Annotated[str | None, typer.Option(help="Queue whose jobs may use it.", autocompletion=arguments.queues)]
Gpus = Annotated[int | None, typer.Option(min=0, help="Number of whole GPUs. Default: all of the clusters or nodes.")]
GpuModel = Annotated[str | None, typer.Option(help="Model of the GPUs, like A100. Default: any.")]
InClusters = Annotated[
    list[str] | None,
    typer.Option("--cluster", "-c", help="Cluster. Repeatable. Default: all.", autocompletion=arguments.clusters),
]
OnNodes = Annotated[list[str] | None, typer.Option("--node", help="Node of the cluster. Repeatable.")]
Drain = Annotated[bool | None, typer.Option("--drain/--no-drain", help="Maintenance moves running jobs at the begin.")]
Description = Annotated[str | None, typer.Option(help="Description.")]


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the new reservation.")],
    start: From = "now",
    end: To = "",
    duration: For = "",
    tenant: Tenant = None,
    queue: Queue = None,
    gpus: Gpus = None,
    gpu_model: GpuModel = None,
    cluster: InClusters = None,
    node: OnNodes = None,
    drain: Drain = None,
    description: Description = None,
) -> None:
    """Create a reservation. Without a tenant and a queue it is maintenance."""
    from seaway.client.calls.tenancy import create_reservation
    from seaway.domain.errors import ConflictError, RejectedError, StaleError

    if bool(end) == bool(duration):
        raise RejectedError("give the end with --to, or the duration with --for")
    given = _given(tenant, queue, gpus, gpu_model, cluster, node, drain, description)
    call = create_reservation(name, **_times(start, end, duration), **given)
    with connect(context) as client:
        try:
            after = client.body(call)
        except StaleError:
            text = f"reservation {name!r} exists already; change it with `seaway reservation set {name}`"
            raise ConflictError(text) from None
    _print_stored(name, after)


@app.command("set")
def set_(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the reservation.")],
    start: From = "",
    end: To = "",
    duration: For = "",
    tenant: Tenant = None,
    queue: Queue = None,
    gpus: Gpus = None,
    gpu_model: GpuModel = None,
    cluster: InClusters = None,
    node: OnNodes = None,
    drain: Drain = None,
    description: Description = None,
) -> None:
    """Change a reservation. Omitted options keep their values; '' clears a text."""
    from seaway.client.calls.tenancy import put_reservation
    from seaway.domain.errors import RejectedError

    if end and duration:
        raise RejectedError("give either --to or --for")
    given = _given(tenant, queue, gpus, gpu_model, cluster, node, drain, description)
    with connect(context) as client:
        there = _stored(client, name)
        fields = {field: there[field] for field in FIELDS}
        times = _times(start or there["starts"], end or ("" if duration else there["ends"]), duration)
        after = client.body(put_reservation(name, seen=Seen(there["version"]), **{**fields, **times, **given}))
    _print_stored(name, after)


def _given(  # one parameter for each option
    tenant: str | None,
    queue: str | None,
    gpus: int | None,
    gpu_model: str | None,
    clusters: list[str] | None,
    nodes: list[str] | None,
    drain: bool | None,
    description: str | None,
) -> dict[str, Any]:
    """Return the fields of the options that were given."""
    fields = (tenant, queue, gpus, gpu_model, clusters, nodes, drain, description)
    return {name: value for name, value in zip(FIELDS, fields, strict=True) if value is not None}


def _times(start: str, end: str, duration: str) -> dict[str, Any]:
    from seaway.terminal.words import point_in_time

    starts = point_in_time(start, datetime.now(UTC))
    ends = point_in_time(end or f"+{duration}", starts)
    return {"starts": starts.isoformat(), "ends": ends.isoformat()}


def _print_stored(name: str, after: Body) -> None:
    typer.echo(f"reservation {name}: {_holder(after)}, {after['gpus_ready']} of {after['gpus_reserved']} GPUs ready")


@app.command()
def delete(context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the reservation.")]) -> None:
    """Remove a reservation, or end maintenance."""
    from seaway.client.calls.tenancy import delete_reservation

    with connect(context) as client:
        client.send(delete_reservation(name))
    typer.echo(f"reservation {name} is removed")
