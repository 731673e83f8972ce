"""`seaway cordon`, `uncordon`, `drain`: scheduling of clusters and nodes."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli import arguments
from seaway.cli.arguments import Place, Reason, split_place
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect


def cordon(
    context: typer.Context,
    place: Annotated[
        str | None,
        typer.Argument(
            help="A cluster, or CLUSTER/NODE. Without it, list all cordons.",
            autocompletion=arguments.places,
            metavar="PLACE",
        ),
    ] = None,
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Mark a cluster or node as unschedulable. Running jobs continue.

    [bold]Examples[/bold]

      [cyan]seaway cordon berlin/node-7 --reason "new driver"[/cyan]
      [cyan]seaway cordon[/cyan]
    """
    from seaway.client.calls import fleet as calls

    with connect(context) as client:
        if place is not None:
            client.send(calls.cordon(*split_place(place), reason=reason))
            typer.echo(f"{place} is cordoned: it gets no new jobs; running jobs continue")
            return
        body = client.body(calls.cordons())
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import day
    from seaway.terminal.words import place as named

    rows = body["cordons"]
    columns = (
        Column("PLACE", lambda each: named(each["cluster"], each["node"])),
        Column("DRAIN", lambda each: "yes" if each["drain"] else "no"),
        Column("SINCE", lambda each: day(each["at"]), drop=1),
        Column("BY", lambda each: each["actor"]),
        Column("REASON", lambda each: each["reason"], cut=True),
    )
    names = (named(each["cluster"], each["node"]) for each in rows)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide) if rows else "nothing is cordoned", lambda: names)


def uncordon(context: typer.Context, place: Place) -> None:
    """Mark a cluster or node as schedulable again.

    [bold]Example[/bold]

      [cyan]seaway uncordon berlin/node-7[/cyan]
    """
    from seaway.client.calls import fleet as calls

    where = split_place(place)
    with connect(context) as client:
        cordoned = [(each["cluster"], each["node"]) for each in client.body(calls.cordons())["cordons"]]
        client.send(calls.uncordon(*where))
    typer.echo(f"{place} accepts new jobs again" if where in cordoned else f"{place} was not cordoned")


def drain(context: typer.Context, place: Place, reason: Reason = "") -> None:
    """Mark a cluster or node as unschedulable, and move its jobs elsewhere.

    To preview the effect: [cyan]seaway whatif --drain PLACE[/cyan].

    [bold]Example[/bold]

      [cyan]seaway drain berlin --reason "moving racks"[/cyan]
    """
    from seaway.client.calls.fleet import drain as call

    with connect(context) as client:
        client.send(call(*split_place(place), reason=reason))
    typer.echo(f"{place} is drained: it gets no new jobs, and running jobs move elsewhere; watch: seaway fleet slices")
