"""`seaway forget`: giving up a cluster that left the fleet."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli import complete
from seaway.cli.remote import connect


def forget(
    context: typer.Context,
    cluster: Annotated[
        str,
        typer.Argument(
            help="A cluster that `seaway fleet` shows as gone.", autocompletion=complete.clusters, metavar="CLUSTER"
        ),
    ],
) -> None:
    """Give up for good a cluster that is not of the fleet any more: what is held there is free.

    Jobs that have something there are placed elsewhere at once. What still runs there goes on and is nobody's,
    so be sure that the cluster is switched off, or empty.

    [bold]Example[/bold]

      [cyan]seaway forget berlin[/cyan]
    """
    from seaway.client.calls.fleet import forget_cluster as call

    with connect(context) as client:
        client.send(call(cluster))
    typer.echo(f"{cluster} is forgotten; what was held there is free")
