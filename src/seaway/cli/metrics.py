"""`seaway metrics`: what monitoring sees of clusters, devices and vGPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import complete
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect

if TYPE_CHECKING:
    from rich.console import RenderableType


def metrics(
    context: typer.Context,
    metric: Annotated[str, typer.Argument(help="Like [bold]GPUDeviceMemoryAllocated[/bold]; all when left out.")] = "",
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Only of this cluster.", autocompletion=complete.clusters)
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the metrics of clusters, devices and vGPUs, as Prometheus reads them.

    [bold]Examples[/bold]

      [cyan]seaway metrics ClusterGPUMemoryPercentage[/cyan]
      [cyan]seaway metrics vGPUMemoryAllocated --cluster berlin -o json[/cyan]
    """
    from seaway.client.calls.fleet import metrics as call

    with connect(context) as client:
        body = client.body(call(metric, cluster=cluster))
    show(output, body, lambda wide: _table(body, wide=wide), lambda: body["data"])


def _table(body: Body, *, wide: bool) -> RenderableType:
    from seaway.terminal.columns import Column, Rows
    from seaway.terminal.words import place

    columns = (
        Column("METRIC", lambda each: each["metric"]),
        Column("PLACE", lambda each: place(each["cluster"], each.get("nodeid", ""))),
        Column("#", lambda each: each.get("deviceidx", ""), right=True),
        Column("VALUE", lambda each: str(each["value"]), right=True),
        Column("POD", _pod, cut=True, drop=1),
        Column("UUID", lambda each: each.get("deviceuuid", ""), wide=True, drop=2),
    )
    rows = [{"metric": name, **each} for name, series in body["data"].items() for each in series]
    return Rows(columns, rows, wide=wide)


def _pod(series: Body) -> str:
    return "/".join(part for name in ("namespace", "pod", "container") if (part := series.get(name)))
