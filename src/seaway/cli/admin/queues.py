"""`seaway queue`: queues with their policies and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import arguments
from seaway.cli.admin.queue_change import change
from seaway.cli.admin.queue_import import import_queues
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect, currency_of, whole
from seaway.domain.amounts import split_amounts
from seaway.domain.queues import Backfill, Elastic, Order, Preemption, Preempts, Reclaim

if TYPE_CHECKING:
    from rich.console import RenderableType


app = typer.Typer(rich_markup_mode="rich")

SHOWN_WAITING = 20
"""Maximum number of waiting jobs that `show` prints."""
SHARE, DISPLACE = "Tree and share", "Preemption"
AMOUNT_HELP = "gpus, gpus/MODEL, gpu_cores, gpu_memory, cpu, memory; '' for none"
Name = Annotated[str, typer.Argument(help="Name of the queue.", autocompletion=arguments.queues)]


@app.callback(invoke_without_command=True)
def queues(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show the tree of queues: use, guarantee and limit of GPUs, and waiting jobs. Set, import and remove queues.

    GPU-HOURS and COST are those of the last 30 days.

    [bold]Examples[/bold]

      [cyan]seaway queue[/cyan]
      [cyan]seaway queue set research --limit gpus=32[/cyan]
      [cyan]seaway queue set vision --parent research --weight 2 --guarantee gpus=16,gpus/A100=8[/cyan]
      [cyan]seaway queue show vision[/cyan]
      [cyan]seaway queue import kueue.yaml --dry-run[/cyan]
      [cyan]seaway queue set batch --policy seaway --shadow fgd --closed[/cyan]
      [cyan]seaway queue shadows batch[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.queues import queue_usage
    from seaway.client.calls.queues import queues as call
    from seaway.terminal.queues import COLUMNS, tree
    from seaway.terminal.tables import Rows

    with connect(context) as client:
        body = client.body(call())
        plain = output in (Output.TABLE, Output.WIDE)
        totals = client.body(queue_usage()).get("queues", []) if plain else []
        currency = currency_of(client, output)
    rows = tree(body["queues"], totals)
    show(output, body, lambda wide: Rows(COLUMNS, rows, wide=wide), lambda: (each["name"] for each in rows), currency)


@app.command("show")
def show_queue(context: typer.Context, name: Name, output: OutputOption = Output.TABLE) -> None:
    """Show a queue: its settings, all amounts, its children, and its waiting jobs with their reasons.

    JSON and YAML add `totals`, `children` and `waiting` to the fields of the queue.

    [bold]Examples[/bold]

      [cyan]seaway queue show vision[/cyan]
      [cyan]seaway queue show vision -o yaml[/cyan]
    """
    from seaway.client.calls import queues as calls
    from seaway.terminal.queues import detail, tree

    with connect(context) as client:
        body = client.body(calls.queue(name))
        everything = client.body(calls.queues())["queues"]
        totals = client.body(calls.queue_usage())["queues"]
        waiting = client.body(calls.waiting(name, limit=SHOWN_WAITING).first)
        currency = currency_of(client, output)
    rows = tree(everything, totals)
    whole_body = {
        **body,
        "totals": next((each for each in totals if each["queue"] == name), None),
        "children": [each["name"] for each in rows if each["parent"] == name],
        "waiting": waiting,
    }

    def picture(_: bool) -> RenderableType:
        from rich.console import Group

        return Group(*detail(body, rows, waiting))

    show(output, whole_body, picture, lambda: [name], currency)


@app.command("set")
def set_queue(
    context: typer.Context,
    name: Name,
    policy: Annotated[str | None, typer.Option(help="Policy of the queue.", autocompletion=arguments.policies)] = None,
    policy_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Option of the policy, like level=cluster, seed=7, weights.price=3 or mix=QUEUE, repeatable; "
            "'' for none.",
        ),
    ] = None,
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
    parent: Annotated[
        str | None,
        typer.Option(
            help="Queue that it is part of; '' for none.", autocompletion=arguments.queues, rich_help_panel=SHARE
        ),
    ] = None,
    weight: Annotated[
        int | None, typer.Option(help="Share of what the guarantees of its siblings leave.", rich_help_panel=SHARE)
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option(help="Beyond guarantees, served before siblings of lower priority.", rich_help_panel=SHARE),
    ] = None,
    guarantee: Annotated[
        str | None,
        typer.Option(metavar="RESOURCE=AMOUNT,...", help=f"Guaranteed amounts; {AMOUNT_HELP}.", rich_help_panel=SHARE),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(metavar="RESOURCE=AMOUNT,...", help="Maximum amounts; '' for no limit.", rich_help_panel=SHARE),
    ] = None,
    borrowing_limit: Annotated[
        str | None,
        typer.Option(
            metavar="RESOURCE=AMOUNT,...",
            help="Maximum amounts beyond its guarantee; '' for no limit.",
            rich_help_panel=SHARE,
        ),
    ] = None,
    lending_limit: Annotated[
        str | None,
        typer.Option(
            metavar="RESOURCE=AMOUNT,...",
            help="Amounts of its guarantee that others may use while it does not; '' for all.",
            rich_help_panel=SHARE,
        ),
    ] = None,
    order: Annotated[Order | None, typer.Option(help="Order of its jobs.", rich_help_panel=SHARE)] = None,
    backfill: Annotated[
        Backfill | None,
        typer.Option(help="Jobs that may start before an earlier one that does not fit.", rich_help_panel=SHARE),
    ] = None,
    ageing: Annotated[
        str | None,
        typer.Option(
            help="Time of waiting that counts as one point of priority, like 1h; 0s for no ageing.",
            rich_help_panel=SHARE,
        ),
    ] = None,
    preemption: Annotated[
        Preemption | None,
        typer.Option(help="Running jobs that its waiting jobs displace by priority.", rich_help_panel=DISPLACE),
    ] = None,
    preempts: Annotated[
        Preempts | None,
        typer.Option(
            help="Queues in which they do: all those of the same or a lower priority, or only their own.",
            rich_help_panel=DISPLACE,
        ),
    ] = None,
    reclaim: Annotated[
        Reclaim | None,
        typer.Option(
            help="Running jobs of other queues that its waiting jobs displace, whatever their priorities.",
            rich_help_panel=DISPLACE,
        ),
    ] = None,
    preemptible: Annotated[
        bool | None,
        typer.Option("--preemptible/--not-preemptible", help="Its jobs may be displaced.", rich_help_panel=DISPLACE),
    ] = None,
    min_runtime: Annotated[
        str | None,
        typer.Option(help="Time that a job runs before it may be displaced, like 10m.", rich_help_panel=DISPLACE),
    ] = None,
    start_timeout: Annotated[
        str | None,
        typer.Option(
            help="Time from a placement until all replicas run, after which the devices are released, like 30m; 0s for "
            "no limit."
        ),
    ] = None,
    grow_cooldown: Annotated[
        str | None,
        typer.Option(help="Time after a resize of an elastic job before it gets more replicas, like 5m."),
    ] = None,
    elastic: Annotated[
        Elastic | None,
        typer.Option(
            help="Replicas of elastic jobs beyond their minimum: lend them to waiting jobs, or keep them.",
            rich_help_panel=DISPLACE,
        ),
    ] = None,
) -> None:
    """Create or change a queue. Omitted options keep their value.

    [bold]Examples[/bold]

      [cyan]seaway queue set research --guarantee gpus=32 --limit gpus=64,memory=2TB[/cyan]
      [cyan]seaway queue set vision --parent research --weight 2 --order fair --backfill easy[/cyan]
      [cyan]seaway queue set vision --guarantee gpus=16,gpus/A100=8[/cyan]
      [cyan]seaway queue set vision --preemption PreemptLowerPriority --preempts own --min-runtime 10m[/cyan]
      [cyan]seaway queue set vision --borrowing-limit gpus=8 --lending-limit gpus=4[/cyan]
      [cyan]seaway queue set vision --order priority --ageing 1h[/cyan]
      [cyan]seaway queue set vision --parent '' --guarantee '' --limit ''[/cyan]
      [cyan]seaway queue set vision --start-timeout 30m[/cyan]
      [cyan]seaway queue set vision --elastic keep[/cyan]
      [cyan]seaway queue set vision --policy balanced --policy-option weights.price=3[/cyan]
      [cyan]seaway queue set batch --allow-taint nvidia.com/gpu --allow-node-label disk[/cyan]
    """
    from seaway.cli.errors import warn, warn_of
    from seaway.terminal.queues import policy_text
    from seaway.wire.queues import split_options

    given = {
        "tenant": tenant,
        "pool": pool,
        "policy": policy,
        "policy_options": None if policy_option is None else split_options(policy_option),
        "shadow": shadow,
        "open": open_,
        "description": description,
        "allowed_taints": allow_taint and [key for key in allow_taint if key],
        "allowed_node_labels": allow_node_label and [key for key in allow_node_label if key],
        "parent": parent,
        "weight": weight,
        "priority": priority,
        "guarantee": None if guarantee is None else split_amounts(guarantee, where="--guarantee"),
        "limit": None if limit is None else split_amounts(limit, where="--limit"),
        "borrowing_limit": None
        if borrowing_limit is None
        else split_amounts(borrowing_limit, where="--borrowing-limit"),
        "lending_limit": None if lending_limit is None else split_amounts(lending_limit, where="--lending-limit"),
        "order": order and order.value,
        "backfill": backfill and backfill.value,
        "preemption": preemption and preemption.value,
        "preempts": preempts and preempts.value,
        "reclaim": reclaim and reclaim.value,
        "preemptible": preemptible,
        "min_runtime": min_runtime,
        "start_timeout": start_timeout,
        "grow_cooldown": grow_cooldown,
        "elastic": elastic and elastic.value,
        "ageing": ageing,
    }
    with connect(context) as client:
        there, after = change(client, name, given)
    if warning := after.get("warning"):
        warn(warning["message"])
    warn_of(after)
    typer.echo(
        f"queue {name} is {'changed' if there else 'made'}: policy {policy_text(after)}, pool {after['pool']}"
        f"{', shadow ' + after['shadow'] if after['shadow'] else ''}{'' if after['open'] else ', closed'}"
        f"{', parent ' + after['parent'] if after.get('parent') else ''}"
    )


app.command("import")(import_queues)


@app.command()
def delete(context: typer.Context, name: Name) -> None:
    """Remove a queue without waiting or running jobs and without children."""
    from seaway.client.calls.queues import delete_queue

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

    A job that waits is decided again and again, and counts once. MEAN WAIT is that of the jobs that each policy placed.
    DECIDED is the number of jobs that the shadow policy decided itself. FELL BACK is the number that the fallback
    decided instead. A trained policy does not decide about jobs that fit on no node.
    """
    from seaway.client.calls.queues import shadows as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import day, mean_wait

    with connect(context) as client:
        body = whole(client, call(name, limit=limit))
    rows = body["shadows"]
    columns = (
        Column("AT", lambda each: day(each["at"]), drop=2),
        Column("QUEUE", lambda each: each["queue"]),
        Column("JOBS", lambda each: str(each["jobs"]), right=True),
        Column("LIVE", lambda each: f"{each['live']} placed {each['live_placed']}"),
        Column("SHADOW", lambda each: f"{each['shadow']} placed {each['shadow_placed']}"),
        Column("MEAN WAIT", lambda each: f"{mean_wait(each, 'live')} / {mean_wait(each, 'shadow')}", drop=1),
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
    nothing = "no policy has decided in a shadow yet; set one: seaway queue set QUEUE --shadow POLICY"
    ids = (str(each["id"]) for each in rows)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide) if rows else nothing, lambda: ids)
