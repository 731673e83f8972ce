"""`seaway whatif`: queries on a copy of the live fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli import arguments
from seaway.cli.arguments import split_place
from seaway.cli.output import Output, OutputOption, console, show
from seaway.cli.remote import Body, connect
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST = 20
"""Maximum number of jobs, except in wide output."""


def whatif(
    context: typer.Context,
    drain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE", help="Drain a cluster or CLUSTER/NODE. Repeatable.", autocompletion=arguments.places
        ),
    ] = None,
    add_nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLUSTER/NODE",
            help="Add nodes like this one. Repeatable.",
            autocompletion=arguments.places,
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of nodes for each --add-nodes.")] = 1,
    policy: Annotated[
        str | None, typer.Option(help="Place all jobs again with this policy.", autocompletion=arguments.policies)
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="Submit the jobs of this file; - reads standard input.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Place all jobs again with the policies of their queues.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the effect of a change on a copy of the current fleet and its queues. Nothing changes.

    All options apply together. Requires the operator role.

    [bold]Examples[/bold]

      [cyan]seaway whatif --drain berlin/node-7[/cyan]
      [cyan]seaway whatif --add-nodes berlin/node-1 --count 4 -f sweep.yaml[/cyan]
      [cyan]seaway whatif --policy fgd[/cyan]
    """
    from seaway.client.calls.service import whatif as call

    question: Body = {
        "drain": drain or [],
        "add_nodes": [_addition(each, count) for each in add_nodes or []],
        "policy": policy or "",
        "replay": replay,
        "jobs": _jobs(file) if file else [],
    }
    question = {name: value for name, value in question.items() if value}
    if not question:
        raise RejectedError("choose at least one of --drain, --add-nodes, --policy, -f and --replay; see --help")
    with connect(context) as client, console(err=True).status("evaluating on a copy of the fleet"):
        body = client.body(call(question))
    show(output, body, lambda wide: _picture(body, wide=wide), lambda: (each["id"] for each in body["moved"]))


def _jobs(file: str) -> list[Body]:
    from seaway.cli.jobs.file import read_jobs

    return [each.fields for each in read_jobs(file)]


def _addition(place: str, count: int) -> Body:
    cluster, node = split_place(place)
    if not node:
        raise RejectedError("name the node to copy: CLUSTER/NODE", where="--add-nodes")
    return {"cluster": cluster, "like": node, "count": count}


def _picture(body: Body, *, wide: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from seaway.terminal.tables import Column, Rows

    figures = [
        {"name": name.replace("_", " "), "before": body["before"].get(name), "after": after}
        for name, after in body["after"].items()
    ]
    columns = (
        Column("", lambda each: each["name"]),
        Column("BEFORE", lambda each: _figure(each["before"]), right=True),
        Column("AFTER", lambda each: _figure(each["after"]), right=True),
    )
    parts: list[RenderableType] = [Text(body["message"], "bold"), Rows(columns, figures)]
    moves = [{"what": what, **job} for what in ("moved", "started", "stopped", "waiting") for job in body.get(what, [])]
    if moves:
        shown = moves if wide else moves[:MOST]
        move_columns = (
            Column("JOB", lambda each: each["name"]),
            Column("ID", lambda each: each["id"], wide=True),
            Column("WOULD BE", lambda each: each["what"]),
            Column("FROM", lambda each: _places(each["before"]), cut=True),
            Column("TO", lambda each: _places(each["after"]), cut=True),
            Column("REASON", lambda each: each.get("reason") or "", wide=True),
        )
        parts += ["", Rows(move_columns, shown, wide=wide)]
        if len(shown) < len(moves):
            parts.append(f"[dim]and {len(moves) - len(shown)} more: -o wide[/dim]")
    return Group(*parts)


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.3f}".rstrip("0").rstrip(".")


def _places(places: list[str]) -> str:
    return ", ".join(dict.fromkeys(places)) or "–"
