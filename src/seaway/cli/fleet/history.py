"""`seaway history`: past use of GPUs, and waits."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli import arguments
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect
from seaway.domain.usage import UsageBy, UsageSpan


def history(
    context: typer.Context,
    by: Annotated[UsageBy, typer.Argument(help="Grouping.")] = UsageBy.FLEET,
    span: Annotated[UsageSpan, typer.Option("--span", "-s", help="Length of the history until now.")] = UsageSpan.DAY,
    tenant: Annotated[str, typer.Option(help="Filter tenants and queues by tenant.")] = "",
    queue: Annotated[
        str,
        typer.Option("--queue", "-q", help="Filter tenants and queues by queue.", autocompletion=arguments.queues),
    ] = "",
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of rows, largest first.")] = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the past use of GPUs, and waits of jobs, by cluster, tenant or queue.

    HELD and MOST are allocated GPUs, mean and maximum; MEASURED is their measured use. The sparkline shows allocated
    GPUs over time. [bold]-o json[/bold] prints every step.

    [bold]Examples[/bold]

      [cyan]seaway history[/cyan]
      [cyan]seaway history queue --span week[/cyan]
      [cyan]seaway history tenant --span month --queue training[/cyan]
    """
    from seaway.client.calls.fleet import usage_history
    from seaway.terminal.queues import usage_columns
    from seaway.terminal.tables import Rows

    with connect(context) as client:
        body = client.body(usage_history(by.value, span.value, tenant=tenant, queue=queue, limit=limit))
    others: list[Body] = [{**body["others"], "name": "others"}] if body["others"] else []
    rows = [*body["series"], *others]
    columns = usage_columns(by)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in body["series"]))
