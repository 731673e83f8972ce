"""`seaway orphans`: orphaned workloads, which belong to no job."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli import arguments
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect

app = typer.Typer(rich_markup_mode="rich")


@app.callback(invoke_without_command=True)
def orphans(
    context: typer.Context,
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Filter by cluster.", autocompletion=arguments.clusters)
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List and remove orphaned workloads, for example after an older backup was restored.

    Their resources stay allocated until they are removed. Finished orphans are removed automatically.

    [bold]Examples[/bold]

      [cyan]seaway orphans[/cyan]
      [cyan]seaway orphans delete berlin sw-6dqdpn803cf2t-1[/cyan]
      [cyan]seaway orphans delete berlin[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.fleet import orphans as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import cores, gib, state

    with connect(context) as client:
        body = client.body(call(cluster=cluster))
    rows = body["orphans"]
    columns = (
        Column("CLUSTER", lambda each: each["cluster"]),
        Column("WORKLOAD", lambda each: each["name"]),
        Column("STATE", lambda each: state(each["phase"]), drop=2),
        Column("NODES", lambda each: ", ".join(each["nodes"]), cut=True, drop=3),
        Column("GPU CORES", lambda each: cores(each["gpu_milli"]), right=True, drop=1),
        Column("GPU MEMORY", lambda each: gib(each["gpu_memory_mib"]), right=True, drop=4),
        Column("CPU", lambda each: cores(each["cpu_milli"]), right=True, wide=True, drop=5),
        Column("MEMORY", lambda each: gib(each["memory_mib"]), right=True, wide=True, drop=6),
        Column("GPUS", lambda each: ", ".join(each["gpus"]), wide=True, cut=True, drop=7),
    )
    names = (each["name"] for each in rows)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide) if rows else "no orphaned workloads", lambda: names)


@app.command("delete")
def remove(
    context: typer.Context,
    cluster: Annotated[str, typer.Argument(help="Name of the cluster.", autocompletion=arguments.clusters)],
    name: Annotated[str, typer.Argument(help="Name of the workload. Default: all orphans of the cluster.")] = "",
) -> None:
    """Remove one orphaned workload of a cluster, or all. Make sure that no other control plane owns them."""
    from seaway.client.calls.fleet import remove_orphans

    with connect(context) as client:
        removed = client.body(remove_orphans(cluster, name))["removed"]
    typer.echo(f"{cluster} removes {', '.join(removed)}" if removed else f"{cluster} has no orphans")
