"""`seaway jobs`: one row per job."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli import arguments
from seaway.cli.errors import FAILED
from seaway.cli.output import Output, OutputOption, console, show
from seaway.cli.remote import Body, connect
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.client.call import Paged
    from seaway.terminal.tables import Column

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
        str | None,
        typer.Option(
            "--queue", "-q", help="Filter by queue.", autocompletion=arguments.queues, rich_help_panel=FILTERS
        ),
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
        typer.Option(
            metavar="TIME",
            help="Earliest submission: 1h or 2d ago, a date like 2026-11-21, or 2026-11-21T10:00:00Z. "
            "Without a zone, in the time zone of this machine.",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    waiting: Annotated[
        bool,
        typer.Option(
            "--waiting",
            help="Waiting jobs, next first, with their place, expected start and reason. Filters: --queue, --tenant.",
            rich_help_panel=FILTERS,
        ),
    ] = False,
    array: Annotated[
        str | None,
        typer.Option(metavar="JOB", help="Tasks of an array, by index. Filter: --state.", rich_help_panel=FILTERS),
    ] = None,
    tree: Annotated[
        bool, typer.Option("--tree", help="Jobs that come after others, below them; oldest first.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    after: Annotated[str | None, typer.Option(metavar="MARK", help="Continue after the previous page.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Update continuously. Ctrl-C ends.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List jobs, newest first, with their nodes and reasons. Exits with 1 if no job matches.

    [bold]Examples[/bold]

    Waiting jobs of a queue, with the reasons and expected starts:

      [cyan]seaway jobs --waiting --queue batch[/cyan]

    Running jobs of a tenant:

      [cyan]seaway jobs --tenant team-a -s running[/cyan]

    Jobs of the last hour that failed:

      [cyan]seaway jobs -s failed --since 1h[/cyan]

    Workflows, with each job below the one that it comes after:

      [cyan]seaway jobs --tree[/cyan]

    Failed tasks of an array:

      [cyan]seaway jobs --array sweep -s failed[/cyan]

    Cancel all jobs of a sweep:

      [cyan]seaway cancel $(seaway jobs -l sweep=7 -o name)[/cyan]
    """
    from seaway.cli.remote import whole
    from seaway.client.calls.jobs import jobs as listed
    from seaway.client.calls.jobs import tasks as listed_tasks
    from seaway.client.calls.queues import waiting as listed_waiting
    from seaway.terminal.queues import ALL_WAITING
    from seaway.terminal.tables import JOB_COLUMNS, TREE_COLUMNS, as_tree

    given = {
        "state": state,
        "queue": queue,
        "cluster": cluster,
        "tenant": tenant,
        "name": name,
        "label": label,
        "submitted_by": by,
        "submitted_from": since and arguments.moment(since, "--since"),
    }
    given = {key: value for key, value in given.items() if value}
    if waiting and (others := given.keys() - {"queue", "tenant"}):
        option = "--by" if "submitted_by" in others else "--since" if "submitted_from" in others else f"--{min(others)}"
        raise RejectedError(f"{option} cannot be used with --waiting; use --queue and --tenant", where="--waiting")
    if array and (others := given.keys() - {"state"}):
        option = "--by" if "submitted_by" in others else "--since" if "submitted_from" in others else f"--{min(others)}"
        raise RejectedError(f"{option} cannot be used with --array; use --state", where="--array")
    if array and (tree or waiting):
        raise RejectedError(f"cannot be used with {'--tree' if tree else '--waiting'}", where="--array")
    if tree and waiting:
        raise RejectedError("cannot be used with --waiting", where="--tree")
    of_array = partial(listed_tasks, array) if array else None
    call: Callable[..., Paged[Any]] = of_array or (listed_waiting if waiting else listed)
    paged = call(limit=limit, after=after or "", **given)
    columns = ALL_WAITING if waiting else TREE_COLUMNS if tree else JOB_COLUMNS

    def read() -> Body:
        found = whole(client, paged)
        return {**found, "jobs": as_tree(found["jobs"])} if tree else found

    with connect(context) as client:
        if watch:
            keep_showing(lambda: table(read(), columns, wide=output is Output.WIDE))
            return
        body = read()
    show(output, body, lambda wide: table(body, columns, wide=wide), lambda: (job["id"] for job in body["jobs"]))
    if not body["jobs"]:
        raise typer.Exit(FAILED)


def table(body: Body, columns: Sequence[Column], *, wide: bool) -> RenderableType:
    """Return the table of jobs."""
    from rich.console import Group

    from seaway.terminal.tables import Rows

    if not body["jobs"]:
        return "no jobs"
    rows = Rows(columns, body["jobs"], wide=wide)
    if body.get("next") is None:
        return rows
    of_array = f" --array {array}" if (array := body["jobs"][0].get("array")) else ""
    return Group(rows, f"[dim]more: seaway jobs{of_array} --after {body['next']}[/dim]")


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
