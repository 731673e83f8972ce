"""`seaway jobs`: one row per job."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import arguments
from seaway.cli.errors import FAILED
from seaway.cli.output import Output, OutputOption, console, show
from seaway.cli.remote import Body, connect

if TYPE_CHECKING:
    from rich.console import RenderableType

FILTERS = "Which jobs"
EVERY_S = 1.0
"""Interval of updates with --watch, in seconds."""


def jobs(
    context: typer.Context,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", "-s", help="Filter by state. Repeatable.", rich_help_panel=FILTERS),
    ] = None,
    queue: Annotated[
        str | None, typer.Option(help="Filter by queue.", autocompletion=arguments.queues, rich_help_panel=FILTERS)
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Filter by cluster.", autocompletion=arguments.clusters, rich_help_panel=FILTERS)
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Filter by tenant.", rich_help_panel=FILTERS)] = None,
    name: Annotated[str | None, typer.Option(help="Filter by a part of the name.", rich_help_panel=FILTERS)] = None,
    label: Annotated[
        str | None, typer.Option("--label", "-l", metavar="KEY=VALUE", help="Filter by label.", rich_help_panel=FILTERS)
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Filter by the name of the submitting token.", rich_help_panel=FILTERS)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Earliest submission, like 2026-11-21T10:00:00Z.", rich_help_panel=FILTERS),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="MARK", help="Continue after the previous page.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Update continuously. Ctrl-C ends.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List jobs, newest first, with their nodes and reasons. Exits with 1 if no job matches.

    [bold]Examples[/bold]

    Waiting jobs of a queue:

      [cyan]seaway jobs --queue batch -s queued -s pending[/cyan]

    Cancel all jobs of a sweep:

      [cyan]seaway cancel $(seaway jobs -l sweep=7 -o name)[/cyan]
    """
    from seaway.cli.remote import whole
    from seaway.client.calls.jobs import jobs as listed

    given = {
        "state": state,
        "queue": queue,
        "cluster": cluster,
        "tenant": tenant,
        "name": name,
        "label": label,
        "submitted_by": by,
        "submitted_from": since,
    }
    paged = listed(limit=limit, after=after or "", **{key: value for key, value in given.items() if value})  # type: ignore[arg-type]
    with connect(context) as client:
        if watch:
            keep_showing(lambda: table(whole(client, paged), wide=output is Output.WIDE))
            return
        body = whole(client, paged)
    show(output, body, lambda wide: table(body, wide=wide), lambda: (job["id"] for job in body["jobs"]))
    if not body["jobs"]:
        raise typer.Exit(FAILED)


def table(body: Body, *, wide: bool) -> RenderableType:
    """Return the table of jobs."""
    from rich.console import Group

    from seaway.terminal.tables import JOB_COLUMNS, Rows

    if not body["jobs"]:
        return "no jobs"
    rows = Rows(JOB_COLUMNS, body["jobs"], wide=wide)
    if body.get("next") is None:
        return rows
    return Group(rows, f"[dim]more: seaway jobs --after {body['next']}[/dim]")


def keep_showing(look: Callable[[], RenderableType], pause: Callable[[float], None] = time.sleep) -> None:
    """Update a view every second, until Ctrl-C."""
    from rich.live import Live

    try:
        with Live(look(), console=console(), auto_refresh=False) as live:
            while True:
                pause(EVERY_S)
                live.update(look(), refresh=True)
    except KeyboardInterrupt:
        return
