"""`seaway logs` and `seaway manifest`: what a job wrote, and what it became."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from seaway.cli.arguments import Job
from seaway.cli.output import Output, OutputOption

PAGE = 1_000
"""Objects that the server shows at once."""

MOST_LINES = 10_000


def logs(
    context: typer.Context,
    job: Job,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay until the job is over.")] = False,
    replica: Annotated[int, typer.Option(min=0, help="Which replica, from 0.")] = 0,
    tail: Annotated[int, typer.Option(min=1, max=MOST_LINES, help="Lines from the end.")] = 100,
) -> None:
    """Show what a job's replica wrote, where its cluster keeps that.

    [bold]Examples[/bold]

      [cyan]seaway logs train --tail 20[/cyan]
      [cyan]seaway logs -f train --replica 3[/cyan]
    """
    from seaway.cli.remote import be_patient, connect
    from seaway.client.calls.jobs import logs as call

    with connect(context) as client:
        if not follow:
            typer.echo(client.send(call(job, replica=replica, tail=tail)), nl=False)
            return
        be_patient(client)
        with suppress(KeyboardInterrupt):
            for line in client.follow_log(job, replica=replica, tail=tail):
                typer.echo(line)


def manifest(context: typer.Context, job: Job, output: OutputOption = Output.TABLE) -> None:
    """Print the objects that a job became in its clusters, as YAML, or as JSON with -o json.

    [bold]Example[/bold]

      [cyan]seaway manifest train | kubectl diff -f -[/cyan]
    """
    import orjson

    from seaway.cli.output import as_json, as_yaml
    from seaway.cli.remote import connect
    from seaway.client.calls.jobs import manifest as call

    objects: list[object] = []
    with connect(context) as client:
        while True:
            page = orjson.loads(client.send(call(job, kind="json", after=len(objects))))
            objects += page
            if len(page) < PAGE:
                break
    if output is Output.JSON:
        typer.echo(as_json(objects))
    else:
        typer.echo("---\n".join(as_yaml(each) for each in objects), nl=False)
