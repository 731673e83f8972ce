"""`seaway top`: live view of the fleet, the queue and the jobs."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import arguments
from seaway.cli.output import Output, OutputOption, console
from seaway.cli.remote import Body, connect, connect_to_watch, whole
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.client.sync import Client

MOST = 20
"""Maximum number of waiting jobs, and of other jobs, in the output of `--once`."""


def top(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Print the present state as text, and exit.")] = False,
    light: Annotated[bool, typer.Option("--light", help="Light theme; t switches it.")] = False,
) -> None:
    """Show fleet, queue, jobs and links in a live full-screen view.

    Keys: 1 to 4 or tab select a view, arrows and enter open details, / searches, esc goes back, ? lists all keys, q
    quits. If your role allows it, x cancels a job and c cordons a cluster or node, after a confirmation.

    [bold]Examples[/bold]

      [cyan]seaway top[/cyan]
      [cyan]seaway --profile work top --light[/cyan]
      [cyan]seaway top --once | less[/cyan]
    """
    from seaway.client.calls.service import me

    if not once and not all(each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr)):
        raise RejectedError("a whole screen needs a terminal; here use `seaway top --once`, or `seaway jobs --watch`")
    with connect(context) as client:
        who = client.body(me())
        if once:
            console().print(picture(client))
            return
    asyncio.run(_watch(context, who, light=light))


def status(
    context: typer.Context, job: Annotated[str | None, arguments.JOB] = None, output: OutputOption = Output.TABLE
) -> None:
    """Print the state of fleet, queue and jobs; or of one job, as `seaway show` does.

    [bold]Examples[/bold]

      [cyan]seaway status[/cyan]
      [cyan]seaway status train[/cyan]
    """
    if job is not None:
        from seaway.cli.jobs.show import show_job

        show_job(context, job, output=output)
        return
    with connect(context) as client:
        if output not in (Output.TABLE, Output.WIDE):
            raise RejectedError("needs a JOB; for the fleet use `seaway fleet`, for jobs `seaway jobs`", where="-o")
        console().print(picture(client))


async def _watch(context: typer.Context, who: Body, *, light: bool) -> None:
    from seaway.terminal.app import Top

    async with connect_to_watch(context) as client:
        await Top(client, who, light=light).run_async()


def picture(client: Client) -> RenderableType:
    """Return tables of the current state: sums, clusters, waiting jobs, and placed jobs."""
    from rich.console import Group

    from seaway.cli.fleet.fleet import table as clusters_table
    from seaway.cli.jobs.list import table as jobs_table
    from seaway.client.calls import fleet as fleet_calls
    from seaway.client.calls import jobs as job_calls
    from seaway.terminal.panes import LIVE, QUEUED
    from seaway.terminal.summary import Summary
    from seaway.terminal.tables import JOB_COLUMNS

    clusters = client.body(fleet_calls.clusters())
    summary = Summary.of(clusters["clusters"], client.body(job_calls.count()))
    waiting = whole(client, job_calls.jobs(limit=MOST, state=QUEUED))
    others = whole(client, job_calls.jobs(limit=MOST, state=[each for each in LIVE if each not in QUEUED]))
    parts: list[RenderableType] = [summary.fleet_line(), summary.capacity_line(console().width), summary.jobs_line()]
    parts += ["", clusters_table(clusters, wide=False)]
    for title, body in (("waiting", waiting), ("not waiting", others)):
        parts += [
            "",
            f"[bold]{title}[/bold], the newest {MOST} at most",
            jobs_table({**body, "next": None}, JOB_COLUMNS, wide=False),
        ]
    return Group(*parts)
