"""`seaway pool`: parts of the fleet by name."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli import arguments
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect

app = typer.Typer(rich_markup_mode="rich")

Name = Annotated[str, typer.Argument(help="Name of the pool.")]


@app.callback(invoke_without_command=True)
def pools(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List, set and remove pools: parts of the fleet that queues may use.

    [bold]Examples[/bold]

      [cyan]seaway pool[/cyan]
      [cyan]seaway pool set eu --cluster berlin --cluster paris[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.tenancy import pools as call
    from seaway.terminal.tables import Column, Rows

    with connect(context) as client:
        body = client.body(call())
    rows = body["pools"]
    columns = (
        Column("POOL", lambda each: each["name"]),
        Column("CLUSTERS", lambda each: ", ".join(each["clusters"]) or "all", cut=True),
        Column("DESCRIPTION", lambda each: each["description"], cut=True, drop=1),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))


@app.command("show")
def show_pool(context: typer.Context, name: Name, output: OutputOption = Output.TABLE) -> None:
    """Show a pool: its clusters, and the queues that use it."""
    from seaway.client.calls.queues import queues
    from seaway.client.calls.tenancy import pool
    from seaway.terminal.tables import details

    with connect(context) as client:
        body = client.body(pool(name))
        used = [each["name"] for each in client.body(queues())["queues"] if each["pool"] == name]
    facts = (
        ("pool", body["name"]),
        ("description", body["description"]),
        ("clusters", ", ".join(body["clusters"]) or "all"),
        ("queues", ", ".join(used) or "none"),
    )
    show(output, {**body, "queues": used}, lambda _: details(facts), lambda: [name])


@app.command("set")
def set_pool(
    context: typer.Context,
    name: Name,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster",
            "-c",
            help="Cluster in the pool. Repeatable. Default: all clusters.",
            autocompletion=arguments.clusters,
        ),
    ] = None,
    description: Annotated[str, typer.Option(help="Description.")] = "",
) -> None:
    """Create or replace a pool."""
    from seaway.client.calls.tenancy import put_pool

    with connect(context) as client:
        after = client.body(put_pool(name, cluster or (), description))
    typer.echo(f"pool {name}: {', '.join(after['clusters']) or 'all clusters'}")


@app.command()
def delete(context: typer.Context, name: Name) -> None:
    """Remove a pool that no queue uses."""
    from seaway.client.calls.tenancy import delete_pool

    with connect(context) as client:
        client.send(delete_pool(name))
    typer.echo(f"pool {name} is removed")
