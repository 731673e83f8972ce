"""`seaway reservation`: capacity for a later time, and maintenance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from seaway.cli import arguments
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect

app = typer.Typer(rich_markup_mode="rich")


@app.callback(invoke_without_command=True)
def reservations(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List, create and remove advance reservations and maintenance windows.

    Before a reservation begins, only jobs whose time limit ends in time use its capacity. While it is active, only jobs
    of its tenant or queue do. Maintenance cordons its clusters or nodes, and uncordons them at its end.

    [bold]Examples[/bold]

      [cyan]seaway reservation[/cyan]
      [cyan]seaway reservation show demo[/cyan]
      [cyan]seaway reservation create demo --tenant vision --gpus 8 --gpu-model A100 --from 14:00 --to 18:00[/cyan]
      [cyan]seaway reservation create upgrade --cluster paris --drain --from "2026-11-28 06:00" --for 8h[/cyan]
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

    return moment(text).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def _holder(row: dict[str, str]) -> str:
    if row["maintenance"]:
        return "maintenance, drain" if row["drain"] else "maintenance"
    return ", ".join(f"{kind} {row[kind]}" for kind in ("tenant", "queue") if row[kind])


def _where(row: dict[str, list[str]]) -> str:
    places = [f"{cluster}/{node}" for cluster in row["clusters"] for node in row["nodes"]]
    return ", ".join(filter(None, (str(row["gpu_model"]), *(places or row["clusters"])))) or "all clusters"


@app.command("show")
def show_reservation(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the reservation.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a reservation or maintenance: time, holder, place and GPUs."""
    from seaway.client.calls.tenancy import reservations as call
    from seaway.domain.errors import UnknownError
    from seaway.terminal.tables import details

    with connect(context) as client:
        rows = {each["name"]: each for each in client.body(call())["reservations"]}
    body = rows.get(name)
    if body is None:
        raise UnknownError(f"reservation {name!r} not found; available: {', '.join(rows) or 'none'}")
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


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the reservation.")],
    start: Annotated[
        str, typer.Option("--from", help="Begin: 14:00 (the next), '2026-11-28 14:00' (local time) or +2h.")
    ] = "now",
    end: Annotated[str, typer.Option("--to", help="End, as --from; +2h counts from the begin.")] = "",
    duration: Annotated[str, typer.Option("--for", help="Duration instead of --to, such as 4h.")] = "",
    tenant: Annotated[str, typer.Option(help="Tenant whose jobs may use it.")] = "",
    queue: Annotated[str, typer.Option(help="Queue whose jobs may use it.", autocompletion=arguments.queues)] = "",
    gpus: Annotated[int, typer.Option(min=0, help="Number of whole GPUs. Default: all of the clusters or nodes.")] = 0,
    gpu_model: Annotated[str, typer.Option(help="Model of the GPUs, like A100. Default: any.")] = "",
    cluster: Annotated[
        list[str] | None,
        typer.Option("--cluster", "-c", help="Cluster. Repeatable. Default: all.", autocompletion=arguments.clusters),
    ] = None,
    node: Annotated[list[str] | None, typer.Option("--node", help="Node of the cluster. Repeatable.")] = None,
    drain: Annotated[bool, typer.Option("--drain", help="Maintenance moves running jobs at the begin.")] = False,
    description: Annotated[str, typer.Option(help="Description.")] = "",
) -> None:
    """Create or replace a reservation. Without a tenant and a queue it is maintenance."""
    from seaway.client.calls.tenancy import put_reservation
    from seaway.domain.errors import RejectedError
    from seaway.terminal.words import point_in_time

    if bool(end) == bool(duration):
        raise RejectedError("give the end with --to, or the duration with --for")
    starts = point_in_time(start, datetime.now(UTC))
    ends = point_in_time(end or f"+{duration}", starts)
    call = put_reservation(
        name,
        starts=starts.isoformat(),
        ends=ends.isoformat(),
        tenant=tenant,
        queue=queue,
        gpus=gpus,
        gpu_model=gpu_model,
        clusters=cluster or (),
        nodes=node or (),
        drain=drain,
        description=description,
    )
    with connect(context) as client:
        after = client.body(call)
    typer.echo(f"reservation {name}: {_holder(after)}, {after['gpus_ready']} of {after['gpus_reserved']} GPUs ready")


@app.command()
def delete(context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the reservation.")]) -> None:
    """Remove a reservation, or end maintenance."""
    from seaway.client.calls.tenancy import delete_reservation

    with connect(context) as client:
        client.send(delete_reservation(name))
    typer.echo(f"reservation {name} is removed")
