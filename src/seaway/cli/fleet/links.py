"""`seaway links` and `seaway gateways`: links between gateways of clusters and users."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import arguments
from seaway.cli.jobs.list import keep_showing
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect, whole
from seaway.terminal.tables import Figure, matrix, table
from seaway.terminal.tables import history as drawn

if TYPE_CHECKING:
    from rich.console import RenderableType

app = typer.Typer(rich_markup_mode="rich")


@app.callback(invoke_without_command=True)
def links(  # one parameter for each option
    context: typer.Context,
    source: Annotated[str, typer.Option("--source", "-s", help="Filter by source gateway.")] = "",
    target: Annotated[str, typer.Option("--target", "-t", help="Filter by target gateway.")] = "",
    cluster: Annotated[
        str,
        typer.Option("--cluster", "-c", help="Filter by target cluster.", autocompletion=arguments.clusters),
    ] = "",
    as_matrix: Annotated[bool, typer.Option("--matrix", "-m", help="Show a matrix of all gateways.")] = False,
    figure: Annotated[Figure, typer.Option(help="Figure in the matrix.")] = Figure.RTT,
    raw: Annotated[
        bool, typer.Option("--raw", help="Show the latest round of probes instead of the smoothed figures.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Update continuously. Ctrl-C ends.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show links between gateways: round-trip time, jitter, loss, bandwidth and age.

    Decisions use smoothed figures that change only by significant amounts. [bold]--raw[/bold] shows the latest round.

    [bold]Examples[/bold]

      [cyan]seaway links --source gw-4[/cyan]
      [cyan]seaway links --matrix --figure loss --watch[/cyan]
      [cyan]seaway links history gw-4 gw-1[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.fleet import links as call

    asked = call(source=source, target=target, cluster=cluster)

    def drawn_now(body: Body, *, wide: bool) -> RenderableType:
        return matrix(body, figure, raw=raw) if as_matrix else table(body, raw=raw, wide=wide)

    with connect(context) as client:
        if watch:
            keep_showing(lambda: drawn_now(client.body(asked), wide=output is Output.WIDE))
            return
        body = client.body(asked)
    names = (f"{each['source']}/{each['target']}" for each in body["links"])
    show(output, body, lambda wide: drawn_now(body, wide=wide), lambda: names)


@app.command()
def history(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="Source gateway.")],
    target: Annotated[str, typer.Argument(help="Target gateway.")],
    hours: Annotated[float, typer.Option(min=0.01, max=24 * 366, help="Length of the history.")] = 6,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the history of a link, one sparkline per figure; [bold]-o wide[/bold] shows every sample.

    [bold]Example[/bold]

      [cyan]seaway links history gw-4 gw-1 --hours 24[/cyan]
    """
    from seaway.client.calls.fleet import link_history

    since = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    with connect(context) as client:
        body = whole(client, link_history(source, target, since=since))
    samples = body["samples"]
    show(output, body, lambda wide: drawn(samples, wide=wide), lambda: (each["at"] for each in samples))


def gateways(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List the gateways of clusters and of user sites.

    [bold]Example[/bold]

      [cyan]seaway gateways -o name[/cyan]
    """
    from seaway.client.calls.fleet import gateways as call
    from seaway.terminal.tables import Column, Rows

    with connect(context) as client:
        body = client.body(call())
    columns = (
        Column("GATEWAY", lambda each: each["name"]),
        Column("ADDRESS", lambda each: each["address"]),
        Column("BEHIND", lambda each: ", ".join(each["clusters"]) or each["site"]),
        Column("STATE", lambda each: "standby" if each["standby"] else "active"),
    )
    rows = body["gateways"]
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))
