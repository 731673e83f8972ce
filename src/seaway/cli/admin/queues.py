"""`seaway queues`: queues with their policies and pools."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from seaway.cli import arguments
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect, whole
from seaway.domain.errors import RejectedError, StaleError, UnknownError

app = typer.Typer(rich_markup_mode="rich")

TRIES = 3
FIELDS = (
    "tenant",
    "pool",
    "policy",
    "shadow",
    "open",
    "description",
    "allowed_taints",
    "allowed_node_labels",
)
Name = Annotated[str, typer.Argument(help="Name of the queue.", autocompletion=arguments.queues)]


class Seen(NamedTuple):
    """Version of a queue."""

    version: str


@app.callback(invoke_without_command=True)
def queues(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List, set and remove queues; compare their policies with shadow policies.

    [bold]Examples[/bold]

      [cyan]seaway queues[/cyan]
      [cyan]seaway queues set batch --policy seaway --shadow fgd[/cyan]
      [cyan]seaway queues set batch --closed[/cyan]
      [cyan]seaway queues set batch --allow-taint nvidia.com/gpu --allow-node-label disk[/cyan]
      [cyan]seaway queues shadows batch[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.tenancy import queues as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import NONE

    with connect(context) as client:
        body = client.body(call())
    rows = body["queues"]
    columns = (
        Column("QUEUE", lambda each: each["name"]),
        Column("TENANT", lambda each: each["tenant"] or "all", drop=3),
        Column("POOL", lambda each: each["pool"], drop=2),
        Column("POLICY", lambda each: each["policy"]),
        Column("SHADOW", lambda each: each["shadow"] or NONE, drop=1),
        Column("OPEN", lambda each: "yes" if each["open"] else "no"),
        Column("DESCRIPTION", lambda each: each["description"], cut=True, drop=4),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))


@app.command("set")
def set_queue(
    context: typer.Context,
    name: Name,
    policy: Annotated[str | None, typer.Option(help="Policy of the queue.", autocompletion=arguments.policies)] = None,
    pool: Annotated[str | None, typer.Option(help="Pool of clusters for its jobs.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Accepts jobs of this tenant only; '' for all tenants.")] = None,
    shadow: Annotated[
        str | None,
        typer.Option(
            help="Shadow policy, which decides without effect; '' for none.", autocompletion=arguments.policies
        ),
    ] = None,
    open_: Annotated[bool | None, typer.Option("--open/--closed", help="Accept new jobs, or reject them.")] = None,
    description: Annotated[str | None, typer.Option(help="Description.")] = None,
    allow_taint: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Taint that jobs may tolerate, repeatable; '*' for all, '' for none."),
    ] = None,
    allow_node_label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Node label that jobs may require, repeatable; '*' for all, '' for none."),
    ] = None,
) -> None:
    """Create or change a queue. Omitted options keep their value."""
    from seaway.client.calls.tenancy import put_queue, queue

    given = {
        "tenant": tenant,
        "pool": pool,
        "policy": policy,
        "shadow": shadow,
        "open": open_,
        "description": description,
        "allowed_taints": allow_taint and [key for key in allow_taint if key],
        "allowed_node_labels": allow_node_label and [key for key in allow_node_label if key],
    }
    with connect(context) as client:
        for left in reversed(range(TRIES)):
            try:
                there = client.body(queue(name))
            except UnknownError:
                there = {}
            fields = {field: there[field] for field in FIELDS if field in there}
            fields |= {field: value for field, value in given.items() if value is not None}
            seen = Seen(there["version"]) if there else None
            try:
                after = client.body(put_queue(name, seen=seen, **fields))
                break
            except StaleError:  # concurrent change by another user: omitted options keep its values
                if not left:
                    raise
            except RejectedError as error:
                if error.where != "shadow":
                    raise
                raise RejectedError(
                    f"{error.message}; --shadow '' clears it", where="--shadow", also=error.also
                ) from None
    typer.echo(
        f"queue {name} is {'changed' if there else 'made'}: policy {after['policy']}, pool {after['pool']}"
        f"{', shadow ' + after['shadow'] if after['shadow'] else ''}{'' if after['open'] else ', closed'}"
    )


@app.command()
def delete(context: typer.Context, name: Name) -> None:
    """Remove a queue without waiting or running jobs."""
    from seaway.client.calls.tenancy import delete_queue

    with connect(context) as client:
        client.send(delete_queue(name))
    typer.echo(f"queue {name} is removed")


@app.command()
def shadows(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Filter by queue.", autocompletion=arguments.queues)] = "",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare the decisions of shadow policies with those of the live policies.

    DECIDED is the number of jobs that the shadow policy decided itself. FELL BACK is the number that the fallback
    decided instead. A trained policy does not decide about jobs that fit on no node.
    """
    from seaway.client.calls.tenancy import shadows as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import day

    with connect(context) as client:
        body = whole(client, call(name, limit=limit))
    rows = body["shadows"]
    columns = (
        Column("AT", lambda each: day(each["at"]), drop=2),
        Column("QUEUE", lambda each: each["queue"]),
        Column("JOBS", lambda each: str(each["jobs"]), right=True),
        Column("LIVE", lambda each: f"{each['live']} placed {each['live_placed']}"),
        Column("SHADOW", lambda each: f"{each['shadow']} placed {each['shadow_placed']}"),
        Column("DECIDED", lambda each: str(each["answered"]), right=True),
        Column("FELL BACK", lambda each: str(each["fallbacks"]), right=True),
        Column("SAME NODES", lambda each: str(each["same_node"]), right=True, drop=1),
        Column(
            "FRAGMENTATION",
            lambda each: (
                f"{each['live_fragmentation_milli'] / 1000:.3f} / {each['shadow_fragmentation_milli'] / 1000:.3f}"
            ),
        ),
    )
    nothing = "no policy has decided in a shadow yet; set one: seaway queues set QUEUE --shadow POLICY"
    ids = (str(each["id"]) for each in rows)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide) if rows else nothing, lambda: ids)
