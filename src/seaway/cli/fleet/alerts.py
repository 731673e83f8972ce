"""`seaway alerts`: firing alerts, and their acknowledgement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import Body, connect

if TYPE_CHECKING:
    from seaway.client.sync import Client

app = typer.Typer(rich_markup_mode="rich")

Name = Annotated[str, typer.Argument(help="Name of the alert, such as SeawayQueueLong.")]
Object = Annotated[
    str,
    typer.Argument(metavar="[OBJECT]", help="Queue, cluster, gateway or link of the alert. Default: all of the name."),
]


@app.callback(invoke_without_command=True)
def alerts(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List, show and acknowledge firing alerts, most severe first.

    [bold]Examples[/bold]

      [cyan]seaway alerts[/cyan]
      [cyan]seaway alerts show SeawayClusterStale[/cyan]
      [cyan]seaway alerts acknowledge SeawayClusterStale paris[/cyan]
    """
    if context.invoked_subcommand:
        return
    from seaway.client.calls.service import alerts as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import ago

    with connect(context) as client:
        body = client.body(call())
    rows = body["alerts"]
    columns = (
        Column("ALERT", lambda each: each["name"]),
        Column("SEVERITY", lambda each: each["severity"]),
        Column("OBJECT", lambda each: each["of"] or "–"),
        Column("SINCE", lambda each: ago(each["since"])),
        Column("ACKNOWLEDGED BY", lambda each: each["acknowledged_by"] or "–", drop=1),
        Column("REASON", lambda each: each["message"], cut=True),
    )
    names = (f"{each['name']} {each['of']}".strip() for each in rows)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide) if rows else "no alert is firing", lambda: names)


@app.command("show")
def show_alert(context: typer.Context, name: Name, of: Object = "", output: OutputOption = Output.TABLE) -> None:
    """Show a firing alert: its reason, figure, threshold, nodes, and who takes care of it."""
    from rich.console import Group

    from seaway.terminal.tables import details
    from seaway.terminal.words import ago

    with connect(context) as client:
        rows = _named(client, name, of)

    def facts(each: Body) -> tuple[tuple[str, str], ...]:
        return (
            ("alert", each["name"]),
            ("severity", each["severity"]),
            ("object", each["of"]),
            ("reason", each["message"]),
            ("figure", f"{each['value']:g}, threshold {each['bound']:g}"),
            ("nodes", ", ".join(each["nodes"])),
            ("since", ago(each["since"])),
            ("acknowledged by", each["acknowledged_by"]),
        )

    show(
        output,
        {"alerts": rows},
        lambda _: Group(*(details(facts(each)) for each in rows)),
        lambda: (f"{each['name']} {each['of']}".strip() for each in rows),
    )


@app.command()
def acknowledge(context: typer.Context, name: Name, of: Object = "") -> None:
    """Acknowledge a firing alert: everyone sees who takes care of it, until it clears."""
    from seaway.client.calls.service import acknowledge as call

    with connect(context) as client:
        for each in _named(client, name, of):
            client.send(call(each["name"], each["of"]))
            typer.echo(f"alert {each['name']} {each['of']}".strip() + " is acknowledged")


def _named(client: Client, name: str, of: str) -> list[Body]:
    """Return the firing alerts of a name, and of an object if one is given.

    Raises
    ------
    UnknownError
        If there is none.
    """
    from seaway.client.calls.service import alerts as call
    from seaway.domain.errors import UnknownError

    rows: list[Body] = client.body(call())["alerts"]
    found = [each for each in rows if each["name"] == name and of in ("", each["of"])]
    if not found:
        firing = ", ".join(sorted({f"{each['name']} {each['of']}".strip() for each in rows})) or "none"
        raise UnknownError(f"alert {f'{name} {of}'.strip()!r} is not firing; firing: {firing}")
    return found
