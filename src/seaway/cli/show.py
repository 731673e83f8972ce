"""`seaway show`: all about one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.arguments import Job
from seaway.cli.output import Output, OutputOption, as_json, as_yaml, show
from seaway.cli.remote import Body, connect, whole

if TYPE_CHECKING:
    from rich.console import RenderableType


def show_job(
    context: typer.Context,
    job: Job,
    spec: Annotated[
        bool, typer.Option("--spec", help="Print what was asked for, as YAML that `seaway submit -f` takes.")
    ] = False,
    normalised: Annotated[
        bool, typer.Option("--normalised", help="Print what the scheduler sees, in exact figures, as JSON.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a job: its state and why, what it asks for, and each attempt to run it.

    [bold]Examples[/bold]

      [cyan]seaway show train[/cyan]

    Submit a job once more, changed a little:

      [cyan]seaway show train --spec > job.yaml; seaway submit -f job.yaml --replicas 4[/cyan]
    """
    from seaway.client.call import Paged
    from seaway.client.calls import jobs as calls

    with connect(context) as client:
        if normalised:
            typer.echo(as_json(client.body(calls.normalised(job))))
            return
        body = client.body(calls.job(job))
        if spec:
            typer.echo(as_yaml(body["spec"]), nl=False)
            return
        plain = output in (Output.TABLE, Output.WIDE)
        ran = whole(client, Paged(calls.attempts(body["id"]), "attempts")) if plain else {"attempts": [], "copies": []}
    show(output, body, lambda wide: _picture(body, ran["attempts"], ran["copies"], wide=wide), lambda: [body["id"]])


def _picture(body: Body, attempts: list[Body], copies: list[Body], *, wide: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from seaway.cli.columns import Column, Rows, details
    from seaway.terminal.words import day, lasted, need, state

    shown: list[RenderableType] = [
        details(
            [
                ("name", body["name"]),
                ("id", body["id"]),
                ("state", state(body["state"])),
                ("reason", body["reason"]),
                ("tenant", body["tenant"]),
                ("queue", f"{body['queue']}, priority {body['priority']}"),
                ("replicas", str(body["replicas"])),
                ("each needs", need(body)),
                ("submitted", f"{day(body['submitted_at'])} by {body['submitted_by']}"),
                ("started", day(body["started_at"]) if body["started_at"] else ""),
                ("ended", day(body["ended_at"]) if body["ended_at"] else ""),
                ("ran for", lasted(body["started_at"], body["ended_at"]) if body["started_at"] else ""),
                ("not before", day(body["not_before"]) if body["not_before"] else ""),
                (
                    "answers at",
                    "; ".join(f"{each['address']} in {each['cluster']}" for each in copies if each["address"]),
                ),
            ]
        )
    ]
    if attempts:
        columns = (
            Column("ATTEMPT", lambda each: str(each["number"]), right=True),
            Column("STATE", lambda each: each["state"]),
            Column("POLICY", lambda each: each["policy"], drop=2),
            Column("WHERE", lambda each: ", ".join(_where(each["placements"])), cut=True),
            Column("TOOK", lambda each: lasted(each["running_at"], each["ended_at"]), right=True, drop=1),
            Column("WHY", lambda each: each["reason"] or each["why"], cut=True),
        )
        shown += ["", Rows(columns, attempts, wide=wide)]
    if wide:
        shown += ["", _containers(copies)] if copies else []
        shown += ["", "[bold]what was asked for[/bold]", Text(as_yaml(body["spec"]).rstrip())]
    return Group(*shown)


def _containers(copies: list[Body]) -> RenderableType:
    """List the containers that run a job's replicas, each with its pod."""
    from seaway.cli.columns import Column, Rows
    from seaway.terminal.words import NONE

    columns = (
        Column("REPLICA", lambda each: str(each["replica"]), right=True),
        Column("PHASE", lambda each: each["phase"]),
        Column("CLUSTER", lambda each: each["cluster"]),
        Column("NODE", lambda each: each["node"], drop=2),
        Column("POD", lambda each: each["pod"], cut=True, drop=1),
        Column("CONTAINER", lambda each: each["name"] or NONE),
        Column("PORTS", lambda each: ",".join(map(str, each["ports"])) or NONE),
        Column("DEVICES", lambda each: ", ".join(each["devices"]) or NONE, cut=True, drop=3),
    )
    unknown = {"name": "", "ports": [], "devices": []}
    rows = [
        {**replica, **container, "cluster": copy["cluster"]}
        for copy in copies
        for replica in copy["replicas"]
        if replica["pod"]
        for container in replica["containers"] or [unknown]
    ]
    return Rows(columns, rows) if rows else ""


def _where(placements: list[Body]) -> list[str]:
    return list(dict.fromkeys(f"{each['cluster']}/{each['node']}" for each in placements))
