"""`seaway whatif`: a question to a copy of the live fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli import complete
from seaway.cli.arguments import split_place
from seaway.cli.output import Output, OutputOption, console, show
from seaway.cli.remote import Body, connect
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from rich.console import RenderableType


def whatif(
    context: typer.Context,
    drain: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="A cluster or CLUSTER/NODE goes.", autocompletion=complete.places),
    ] = None,
    add_nodes: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER/NODE", help="More nodes like this one come.", autocompletion=complete.places),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="How many, with --add-nodes.")] = 1,
    policy: Annotated[
        str | None, typer.Option(help="Another policy decides.", autocompletion=complete.policies)
    ] = None,
    file: Annotated[str | None, typer.Option("--file", "-f", help="These jobs come; - reads standard input.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Everything is placed anew.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Ask what would happen, on a copy of the fleet and the queue as they are now. Nothing is touched.

    [bold]Examples[/bold]

      [cyan]seaway whatif --drain berlin/node-7[/cyan]
      [cyan]seaway whatif --add-nodes berlin/node-1 --count 4[/cyan]
      [cyan]seaway whatif --policy fgd[/cyan]
      [cyan]seaway whatif -f sweep.yaml[/cyan]
    """
    from seaway.client.calls.service import whatif as call

    question = _question(drain, (add_nodes, count), policy, file, replay=replay)
    with connect(context) as client:
        if output in (Output.TABLE, Output.WIDE):
            with console(err=True).status("asking a copy of the fleet"):
                body = client.body(call(question))
        else:
            body = client.body(call(question))
    show(output, body, lambda wide: _picture(body, wide=wide), lambda: map(_id, body.get("moved", [])))


def _question(
    drain: str | None, add: tuple[str | None, int], policy: str | None, file: str | None, *, replay: bool
) -> dict[str, Any]:
    """Put the question together.

    Raises
    ------
    RejectedError
        When there is none, or more than one.
    """
    asked: list[dict[str, Any]] = []
    like, count = add
    if drain:
        asked.append({"drain": drain})
    if like:
        cluster, node = split_place(like)
        if not node:
            raise RejectedError("name a node that the new ones are like: CLUSTER/NODE", where="--add-nodes")
        asked.append({"add_nodes": {"cluster": cluster, "like": node, "count": count}})
    if policy:
        asked.append({"policy": policy})
    if file:
        from seaway.cli.job_file import read_jobs

        asked.append({"jobs": [each.fields for each in read_jobs(file)]})
    if replay:
        asked.append({"replay": True})
    if len(asked) != 1:
        raise RejectedError("ask one thing: --drain, --add-nodes, --policy, -f or --replay; see --help")
    return asked[0]


def _picture(body: Body, *, wide: bool) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from seaway.cli.columns import Column, Rows

    figures = [
        {"name": name.replace("_", " "), "before": body["before"].get(name), "after": after}
        for name, after in body["after"].items()
    ]
    columns = (
        Column("", lambda each: each["name"]),
        Column("BEFORE", lambda each: _figure(each["before"]), right=True),
        Column("AFTER", lambda each: _figure(each["after"]), right=True),
    )
    parts: list[RenderableType] = [Text(str(body.get("sentence", "")), "bold"), Rows(columns, figures)]
    for what in ("moved", "waiting", "started"):
        jobs = body.get(what) or []
        if jobs:
            shown = jobs if wide else jobs[:10]
            more = f" and {len(jobs) - len(shown)} more (-o wide)" if len(shown) < len(jobs) else ""
            parts.append(Text(f"{what}: {', '.join(map(_said, shown))}{more}"))
    return Group(*parts)


def _figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value if value is not None else "–")


def _said(job: object) -> str:
    """Name a job of the answer, with where it goes if that is said."""
    if not isinstance(job, dict):
        return str(job)
    goes = job.get("to") or ""
    return f"{job.get('name') or _id(job)}{f' → {goes}' if goes else ''}"


def _id(job: object) -> str:
    return str(job.get("id") or job.get("job_id") or job.get("name") or "") if isinstance(job, dict) else str(job)
