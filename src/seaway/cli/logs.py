"""`seaway logs` and `seaway manifest`: what a job wrote, and what it became."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.arguments import Job
from seaway.cli.output import Output, OutputOption

if TYPE_CHECKING:
    from seaway.client.sync import Client

EVERY_S = 1.0
PAGE = 1_000
"""Objects that the server shows at once."""

MOST_LINES = 10_000
"""Lines that are looked at when following; what is written faster than this a second is not shown."""


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
    from seaway.cli.remote import connect
    from seaway.client.calls.jobs import logs as call

    with connect(context) as client:
        text = client.send(call(job, replica=replica, tail=tail))
        typer.echo(text, nl=False)
        if follow:
            keep_reading(client, job, replica, text)


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


def keep_reading(
    client: Client, job: str, replica: int, text: str, pause: Callable[[float], None] = time.sleep
) -> None:
    """Print what comes after `text`, until the job is over or Ctrl-C."""
    from seaway.client.calls import jobs as calls
    from seaway.client.feed import OVER

    seen = text.splitlines()
    over = False
    try:
        while not over:
            pause(EVERY_S)
            over = client.body(calls.job(job))["state"] in OVER
            lines = client.send(calls.logs(job, replica=replica, tail=MOST_LINES)).splitlines()
            for line in new_lines(seen, lines):
                typer.echo(line)
            seen = lines
    except KeyboardInterrupt:
        return


def new_lines(seen: list[str], lines: list[str]) -> list[str]:
    """Return what stands in `lines` after the end of `seen`; all of it when they do not meet."""
    for start in range(len(lines), 0, -1):
        overlap = min(start, len(seen))
        if overlap and lines[start - overlap : start] == seen[-overlap:]:
            return lines[start:]
    return lines
