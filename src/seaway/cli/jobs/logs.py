"""`seaway logs` and `seaway manifest`: logs and Kubernetes objects of a job."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Annotated

import typer

from seaway.cli.arguments import Job
from seaway.cli.output import Output, OutputOption

PAGE = 1_000
"""Number of objects in a page of manifests."""

MAX_LINES = 10_000
"""Maximum number of log lines in an answer of the server."""


def logs(
    context: typer.Context,
    job: Job,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new lines until the job ends.")] = False,
    replica: Annotated[list[int] | None, typer.Option(min=0, help="Number of a replica, from 0. Repeatable.")] = None,
    every: Annotated[bool, typer.Option("--all", "-a", help="All replicas.")] = False,
    container: Annotated[
        str, typer.Option("--container", "-c", help="Name of the container; default: the first.")
    ] = "",
    every_container: Annotated[bool, typer.Option("--all-containers", help="All containers.")] = False,
    tail: Annotated[int, typer.Option(min=1, max=MAX_LINES, help="Number of last lines of each log.")] = 100,
    prefix: Annotated[
        bool | None,
        typer.Option("--prefix/--no-prefix", help="Prefix each line with its source. Default: only for several logs."),
    ] = None,
) -> None:
    """Show the logs of a job: those of its first replica by default, of other replicas, or of all.

    [bold]Examples[/bold]

      [cyan]seaway logs train --tail 20[/cyan]
      [cyan]seaway logs -f train --replica 3 --container main[/cyan]
      [cyan]seaway logs -f train --all[/cyan]
    """
    import asyncio

    from seaway.cli.jobs.many_logs import Printer, Wanted, choose, follow_all, read_all
    from seaway.cli.remote import connect, connect_to_follow, retry_longer

    wanted = Wanted.of(replica or (), every=every, container=container, every_container=every_container)
    leaves = suppress(KeyboardInterrupt) if follow else nullcontext()
    with connect(context) as client, leaves:
        if follow:
            retry_longer(client)
        job, sources = choose(client, job, wanted, follow=follow)
        printer = Printer(sources, labelled=prefix)
        if follow:
            asyncio.run(follow_all(connect_to_follow(context), job, sources, tail, printer))
        else:
            read_all(client, job, sources, tail, printer)
        if printer.code:
            raise typer.Exit(printer.code)


def manifest(context: typer.Context, job: Job, output: OutputOption = Output.TABLE) -> None:
    """Print the Kubernetes objects of a job as YAML, or as JSON with -o json.

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
