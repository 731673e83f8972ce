"""Arguments that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli import complete

JOB = typer.Argument(help="A job's id, or its name: then the latest of that name.", autocompletion=complete.jobs)

Job = Annotated[str, JOB]
Jobs = Annotated[
    list[str], typer.Argument(help="Ids or names of jobs.", autocompletion=complete.jobs, metavar="JOB...")
]
Place = Annotated[
    str, typer.Argument(help="A cluster, or CLUSTER/NODE.", autocompletion=complete.places, metavar="PLACE")
]
Reason = Annotated[str, typer.Option(help="Why, a sentence that others read in the events.")]


def split_place(place: str) -> tuple[str, str]:
    """Take ``CLUSTER`` or ``CLUSTER/NODE`` apart; the node is empty for a whole cluster."""
    cluster, _, node = place.partition("/")
    return cluster, node
