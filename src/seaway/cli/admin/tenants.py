"""`seaway tenants`: owners of jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect

app = typer.Typer(rich_markup_mode="rich")


@app.callback(invoke_without_command=True)
def tenants(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List, set and remove tenants, the owners of jobs. Viewers and users see only their own tenant.

    [bold]Examples[/bold]

      [cyan]seaway tenants[/cyan]
      [cyan]seaway tenants set vision --description "the vision team"[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.tenancy import tenants as call
    from seaway.terminal.tables import Column, Rows

    with connect(context) as client:
        body = client.body(call())
    rows = body["tenants"]
    columns = (
        Column("TENANT", lambda each: each["name"]),
        Column("DESCRIPTION", lambda each: each["description"], cut=True),
    )
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))


@app.command("set")
def set_tenant(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the tenant.")],
    description: Annotated[str, typer.Option(help="Description.")] = "",
) -> None:
    """Create a tenant, or change its description."""
    from seaway.client.calls.tenancy import put_tenant

    with connect(context) as client:
        client.send(put_tenant(name, description))
    typer.echo(f"saved tenant {name}; next: seaway token create --role user --tenant {name} NAME")


@app.command()
def delete(context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the tenant.")]) -> None:
    """Remove a tenant without queues and without unfinished jobs."""
    from seaway.client.calls.tenancy import delete_tenant

    with connect(context) as client:
        client.send(delete_tenant(name))
    typer.echo(f"tenant {name} is removed")
