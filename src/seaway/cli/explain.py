"""`seaway explain`: why a job is where it is, in as many words as asked for."""

from __future__ import annotations

from typing import Annotated

import typer

from seaway.cli.arguments import Job
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import connect


def explain(
    context: typer.Context,
    job: Job,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            help="Once: place in the queue, and how many nodes each rule refuses. "
            "Twice: the scores of every candidate, and what would admit it.",
            show_default=False,
        ),
    ] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say why a job is where it is: in one sentence, with -v in a few lines, with -vv in full.

    [bold]Examples[/bold]

      [cyan]seaway explain train[/cyan]
      [cyan]seaway explain train -vv[/cyan]
    """
    from seaway.client.calls.jobs import explain as asked
    from seaway.terminal.reasons import picture

    with connect(context) as client:
        body = client.body(asked(job))
    show(output, body, lambda wide: picture(body, verbose + wide), lambda: [body["id"]])
