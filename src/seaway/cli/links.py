"""`seaway links` and `seaway gateways`: the network between clusters and users."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect

if TYPE_CHECKING:
    from rich.console import RenderableType


class Figure(StrEnum):
    """What a matrix shows of each link."""

    RTT = "rtt"
    JITTER = "jitter"
    LOSS = "loss"
    BANDWIDTH = "bandwidth"


def links(
    context: typer.Context,
    matrix: Annotated[bool, typer.Option("--matrix", "-m", help="From each gateway to each other.")] = False,
    figure: Annotated[Figure, typer.Option(help="What the matrix shows.")] = Figure.RTT,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what was measured between gateways: round-trip time, jitter, loss, bandwidth.

    [bold]Examples[/bold]

      [cyan]seaway links[/cyan]
      [cyan]seaway links --matrix --figure bandwidth[/cyan]
    """
    from seaway.client.calls.fleet import links as call

    with connect(context) as client:
        body = client.body(call())
    names = (f"{each['source']}/{each['target']}" for each in body["links"])
    show(output, body, lambda wide: _matrix(body, figure) if matrix else _table(body, wide=wide), lambda: names)


def gateways(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show gateways: the network's doors to clusters and to users.

    [bold]Example[/bold]

      [cyan]seaway gateways -o name[/cyan]
    """
    from seaway.cli.columns import Column, Rows
    from seaway.client.calls.fleet import gateways as call

    with connect(context) as client:
        body = client.body(call())
    columns = (Column("GATEWAY", lambda each: each["name"]), Column("ADDRESS", lambda each: each["address"]))
    rows = body["gateways"]
    show(output, body, lambda wide: Rows(columns, rows, wide=wide), lambda: (each["name"] for each in rows))


def _table(body: Body, *, wide: bool) -> RenderableType:
    from seaway.cli.columns import Column, Rows
    from seaway.cli.words import bar, loss, rate, rtt

    columns = (
        Column("FROM", lambda each: each["source"]),
        Column("TO", lambda each: each["target"]),
        Column("RTT", lambda each: rtt(each["latency_ns"]), right=True),
        Column("JITTER", lambda each: rtt(each["jitter_ns"]), right=True, drop=3),
        Column("LOSS", lambda each: loss(each["loss_ppm"]), right=True, drop=2),
        Column("BANDWIDTH", lambda each: rate(each["bandwidth_mbps"]), right=True),
        Column("TAKEN", lambda each: bar(each["used_mbps"], each["bandwidth_mbps"]), drop=1),
        Column("USED", lambda each: rate(each["used_mbps"]), right=True, wide=True),
    )
    return Rows(columns, body["links"], wide=wide)


def _matrix(body: Body, figure: Figure) -> RenderableType:
    from rich.text import Text

    from seaway.cli.columns import Column, Rows
    from seaway.cli.words import loss, rate, rtt

    write: dict[Figure, tuple[str, Callable[[int], str]]] = {
        Figure.RTT: ("latency_ns", rtt),
        Figure.JITTER: ("jitter_ns", rtt),
        Figure.LOSS: ("loss_ppm", loss),
        Figure.BANDWIDTH: ("bandwidth_mbps", rate),
    }
    name, written = write[figure]
    known = {(each["source"], each["target"]): written(each[name]) for each in body["links"]}
    ends = sorted({end for pair in known for end in pair})

    def cell(target: str, row: Body) -> Text:
        return Text("·" if row["source"] == target else known.get((row["source"], target), "–"))

    columns = (
        Column("from \\ to", lambda row: row["source"]),
        *(Column(target, partial(cell, target), right=True) for target in ends),
    )
    return Rows(columns, [{"source": end} for end in ends])
