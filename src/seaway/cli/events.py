"""`seaway events`: what happened, in order, and what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.arguments import JOB
from seaway.cli.output import Output, OutputOption, console, show
from seaway.cli.remote import Body, connect, whole
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.client.sync import Client


def events(
    context: typer.Context,
    job: Annotated[str | None, JOB] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stay, and show what happens, until the job is over.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the timeline of a job: every change, when, why and who did it.

    With -f it goes on live until the job is over, and exits with 1 if it did not complete. Without a job,
    -f follows everything that you may see. With -o json each live event is one line.

    [bold]Examples[/bold]

      [cyan]seaway events train[/cyan]
      [cyan]seaway events -f train[/cyan]
      [cyan]seaway events -f -o json | jq .reason[/cyan]
    """
    from seaway.client.calls import jobs as calls

    if job is None and not follow:
        raise RejectedError("name a job, or follow all with -f", where="JOB")
    with connect(context) as client:
        if not follow:
            body = whole(client, calls.events(job or ""))
            show(
                output,
                body,
                lambda wide: _picture(body, wide=wide),
                lambda: (str(each["id"]) for each in body["events"]),
            )
        elif job is None or output is Output.JSON:
            _follow(client, job, output)
        else:
            from seaway.cli.attach import attach

            raise typer.Exit(attach(client, client.body(calls.job(job))))


def _picture(body: Body, *, wide: bool) -> RenderableType:
    from rich.console import Group

    from seaway.terminal.timeline import line

    return Group(*(line(each, dated=True, named=wide) for each in body["events"]))


def _follow(client: Client, job: str | None, output: Output) -> None:
    from seaway.cli.remote import be_patient
    from seaway.terminal.timeline import line

    out = console()
    be_patient(client)
    try:
        for heard in client.listen(job):
            if output is Output.JSON:
                import orjson

                typer.echo(orjson.dumps(heard.body))
            else:
                out.print(line(heard.body, named=True))
    except KeyboardInterrupt:
        return
