"""`seaway events`: past and new events of jobs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from seaway.cli import arguments
from seaway.cli.arguments import JOB, Jobs
from seaway.cli.errors import FAILED, OK, note
from seaway.cli.output import Output, OutputOption, console, show
from seaway.cli.remote import Body, connect, whole
from seaway.domain.errors import RejectedError, SeawayError, UnavailableError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from seaway.cli.remote import Body
    from seaway.client.sync import Client


TAIL = 20
"""Number of log lines to print from the end of a failed job's log."""

SHOWN = 1000
"""Default limit of events to print."""


def attach(client: Client, job: Body, *, after: int = 0, since: str = "", until_running: bool = False) -> int:
    """Follow a job until it ends, or until it runs if it is a service or `until_running`.

    Returns
    -------
    int
        Exit code: 0 if the job completed, or runs.
    """
    from seaway.cli.remote import retry_longer

    out = console()
    retry_longer(client)
    until_running = until_running or job["spec"].get("template") == "deployment"
    state = str(job["state"])
    try:
        with _live(out, job) as status:
            for received in client.listen(job["id"], after=after, since=since):
                state = _said(out, status, job, received.body) or state
                if until_running and state == "running":
                    return OK
    except KeyboardInterrupt:
        out.print(f"\ndetached; the job continues. Follow it again: [bold]seaway events -f {job['id']}[/bold]")
        return OK
    except UnavailableError:
        note(f"the connection is lost; the job may continue. Follow it again: seaway events -f {job['id']}")
        raise
    if state == "failed":
        _show_end_of_log(client, job, out)
    return OK if state == "completed" else FAILED


def _live(out: Console, job: Body) -> AbstractContextManager[Any]:
    """Return a status line with the state of the job; without a terminal, it has no effect."""
    from rich.markup import escape

    return out.status(escape(f"{job['name']}: {job['state']}")) if out.is_terminal else nullcontext()


def _said(out: Console, status: Any, job: Body, event: Body) -> str:  # noqa: ANN401  # a status line or None
    """Print an event; return the job's state after it, or an empty text if the event has none."""
    from rich.markup import escape

    from seaway.terminal.words import line

    out.print(line(event))
    state = str(event["state"])
    if state and status is not None:
        status.update(escape(f"{job['name']}: {state}"))
    return state


def _show_end_of_log(client: Client, job: Body, out: Console) -> None:
    from seaway.client.calls.jobs import logs

    try:
        text = client.send(logs(job["id"], tail=TAIL))
    except SeawayError:
        return  # the log never existed or was removed
    if text.strip():
        out.print("\nthe end of its log:", style="bold")
        typer.echo(text, nl=not text.endswith("\n"))


def events(
    context: typer.Context,
    job: Annotated[str | None, JOB] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new events until the job ends.")] = False,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only events since 1h or 2d ago, a date like 2026-11-21, or 2026-11-21T10:00:00Z. "
            "Without a zone, in the time zone of this machine.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Maximum number, oldest first. Default: {SHOWN:,}.", show_default=False)
    ] = None,
    after: Annotated[
        int | None, typer.Option(min=0, metavar="ID", help="Only events after the one with this ID.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the timeline of a job: each event with its time, reason and actor.

    With -f, follow new events until the job ends, and exit with 1 if it did not complete. Without a job, --since and
    -f show all events of jobs and the fleet that are visible to you. With -f -o json, each event is one line.

    [bold]Examples[/bold]

      [cyan]seaway events train[/cyan]
      [cyan]seaway events --since 1h[/cyan]
      [cyan]seaway events -f train[/cyan]
      [cyan]seaway events -f -o json | jq .message[/cyan]
    """
    from seaway.client.calls import jobs as calls

    if job is None and not (follow or since) and after is None:
        raise RejectedError("name a job, list all of a time with --since 1h, or follow all with -f", where="JOB")
    if follow and limit:
        raise RejectedError("cannot be used with -f", where="--limit")
    start = arguments.moment(since, "--since") if since else ""
    with connect(context) as client:
        if not follow:
            body = whole(client, calls.events(job, after=after or 0, since=start, limit=limit or SHOWN))
            show(
                output,
                body,
                lambda wide: _picture(body, named=wide or job is None),
                lambda: (str(each["id"]) for each in body["events"]),
            )
            if body["next"]:
                note(f"there are more events: add --after {body['next']}, or start later with --since")
            elif not body["events"]:
                note(f"no events since {start}" if start else "no later events")
        elif job is None or output is Output.JSON:
            _follow(client, job, output, start, after)
        else:
            raise typer.Exit(attach(client, client.body(calls.job(job)), after=after or 0, since=start))


def wait(
    context: typer.Context,
    jobs: Jobs,
    until: Annotated[
        Literal["running", "finished"], typer.Option("--for", help="State to wait for; running also ends with the job.")
    ] = "finished",
    timeout: Annotated[str | None, typer.Option(help="Maximum time in total, like 10m.")] = None,
) -> None:
    """Wait until jobs end or run. Exits with 1 if any did not complete, or does not run.

    [bold]Examples[/bold]

      [cyan]seaway wait train && seaway submit test.yaml[/cyan]
      [cyan]seaway wait --for running --timeout 5m serve[/cyan]
    """
    from time import monotonic

    from seaway.cli.remote import retry_longer
    from seaway.client.errors import WaitedTooLongError
    from seaway.domain.units import seconds_ns

    ends = None if timeout is None else monotonic() + seconds_ns(timeout, where="--timeout") / 10**9
    states = {"completed", "running"} if until == "running" else {"completed"}
    missed = False
    with connect(context) as client:
        retry_longer(client)
        for job in jobs:
            try:
                after = client.wait(job, until, timeout_s=None if ends is None else max(0.0, ends - monotonic()))
            except WaitedTooLongError:
                raise WaitedTooLongError(f"{job} is not {until} after --timeout {timeout}") from None
            typer.echo(f"{after.name} ({after.id}) is {after.state}")
            missed |= after.state not in states
    if missed:
        raise typer.Exit(FAILED)


def _picture(body: Body, *, named: bool) -> RenderableType:
    from rich.console import Group

    from seaway.terminal.words import line

    return Group(*(line(each, dated=True, named=named) for each in body["events"]))


def _follow(client: Client, job: str | None, output: Output, since: str, after: int | None) -> None:
    from seaway.cli.remote import retry_longer
    from seaway.terminal.words import line

    out = console()
    retry_longer(client)
    try:
        for received in client.listen(job, after=after, since=since):
            if output is Output.JSON:
                import orjson

                typer.echo(orjson.dumps(received.body))
            else:
                out.print(line(received.body, named=True))
    except KeyboardInterrupt:
        return
