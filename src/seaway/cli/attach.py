"""Staying with a job: its events as they happen, until it is over."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import typer

from seaway.cli.exits import FAILED, OK
from seaway.cli.output import console
from seaway.cli.telling import note
from seaway.domain.errors import SeawayError, UnavailableError

if TYPE_CHECKING:
    from rich.console import Console

    from seaway.cli.remote import Body
    from seaway.client.sync import Client

TAIL = 20
"""Lines of the log that are shown of a job that failed."""


def attach(client: Client, job: Body, *, after: int = 0) -> int:
    """Show what happens to a job until it is over, or runs where it is one that never ends by itself.

    Returns
    -------
    int
        The exit code: whether the job did what it was to do.
    """
    from seaway.cli.remote import be_patient

    out = console()
    be_patient(client)
    serves = job["spec"].get("template") == "deployment"
    state = str(job["state"])
    try:
        with _live(out, job) as status:
            for heard in client.listen(job["id"], after=after):
                state = _said(out, status, job, heard.body) or state
                if serves and state == "running":
                    return OK
    except KeyboardInterrupt:
        out.print(f"\ndetached; the job goes on. Come back: [bold]seaway events -f {job['id']}[/bold]")
        return OK
    except UnavailableError:
        note(f"nothing is heard of the job, which may go on. Follow it again: seaway events -f {job['id']}")
        raise
    if state == "failed":
        _show_end_of_log(client, job, out)
    return OK if state == "completed" else FAILED


def _live(out: Console, job: Body) -> AbstractContextManager[Any]:
    """Return a line that shows what the job does now; nothing where nobody watches."""
    from rich.markup import escape

    return out.status(escape(f"{job['name']}: {job['state']}")) if out.is_terminal else nullcontext()


def _said(out: Console, status: Any, job: Body, event: Body) -> str:  # noqa: ANN401  # a status line or None
    """Show an event, and return the job's state after it; empty where it says none."""
    from rich.markup import escape

    from seaway.terminal.timeline import line

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
        return  # there are none, or not any more
    if text.strip():
        out.print("\nthe end of its log:", style="bold")
        typer.echo(text, nl=not text.endswith("\n"))
