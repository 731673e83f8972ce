"""`seaway network`: configuration of the network between gateways, and its agents."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seaway.cli.jobs.file import Kind, Written, read_jobs
from seaway.cli.output import Output, OutputOption, as_json, as_yaml, show
from seaway.cli.remote import Body, connect
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from rich.text import Text


def read_network_file(file: str) -> Written:
    """Read a network file with the lines of its fields; ``-`` is standard input.

    Raises
    ------
    RejectedError
        When the file cannot be read, or does not have exactly one document.
    """
    from seaway.wire.network_in import MAX_VALUES

    first, *more = read_jobs(file, Kind("network", "gateways: []", MAX_VALUES))
    if more:
        raise RejectedError("has more than one document; a network is one document", where=file)
    return first


app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)

Force = Annotated[bool, typer.Option("--force", help="Remove gateways even if running jobs use them.")]


class Form(StrEnum):
    """Output format of the network."""

    YAML = "yaml"
    JSON = "json"


@app.callback()
def network() -> None:
    """Configure the network between gateways: gateways, paths, and the measurement of links.

    [bold]Examples[/bold]

      [cyan]seaway network put -f network.yaml --dry-run[/cyan]
      [cyan]seaway network get > network.yaml[/cyan]
      [cyan]seaway network agents[/cyan]
    """


@app.command("get")
def get_network(
    context: typer.Context,
    output: Annotated[Form, typer.Option("--output", "-o", help="Output format.")] = Form.YAML,
) -> None:
    """Print the network as a file for `seaway network put`."""
    from seaway.client.calls.network import network as call

    with connect(context) as client:
        body = client.body(call())
    typer.echo(as_json(body) if output is Form.JSON else as_yaml(body), nl=output is Form.JSON)


@app.command("put")
def put_network(
    context: typer.Context,
    file: Annotated[str, typer.Option("--file", "-f", help="Network file in YAML; - reads standard input.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Validate the file, and print the changes without applying them.")
    ] = False,
    force: Force = False,
) -> None:
    """Replace the network, and print the changes. Errors are reported with their lines.

    [bold]Example[/bold]

      [cyan]seaway network put -f network.yaml --dry-run[/cyan]
    """
    from seaway.cli.admin.network import read_network_file
    from seaway.client.calls.network import put_network as call

    written = read_network_file(file)
    with connect(context) as client:
        try:
            plan = client.body(call(written.fields, dry_run=dry_run, force=force))
        except RejectedError as error:
            raise written.placed(error) from None
    for change in plan["changes"]:
        typer.echo(change)
    for hurt in plan["impact"]:
        typer.echo(f"{hurt}: {'requires --force' if dry_run else 'forced'}")
    if not plan["changes"]:
        typer.echo(f"no changes; the network is at version {plan['version']}")
    else:
        typer.echo(f"the network {'becomes' if dry_run else 'is at'} version {plan['version']}")


@app.command("delete")
def delete_network(context: typer.Context, force: Force = False) -> None:
    """Remove the network. Measurements stop, and links that clusters report are used again."""
    from seaway.client.calls.network import delete_network as call

    with connect(context) as client:
        client.send(call(force=force))
    typer.echo("the network between gateways is removed")


@app.command()
def agents(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List the agents of all gateways, with their state and the number of their reports."""
    from seaway.client.calls.network import agents as call
    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import NONE, ago

    with connect(context) as client:
        body = client.body(call())
    rows = body["agents"]
    columns = (
        Column("GATEWAY", lambda each: each["gateway"]),
        Column("STATE", _state),
        Column("LAST REPORT", lambda each: NONE if each["age_s"] is None else f"{each['age_s']:.0f} s ago"),
        Column("FROM", lambda each: each["address"] or NONE, drop=3),
        Column("RUNS FOR", lambda each: ago(each["started_at"]), drop=4),
        Column("ROUNDS", lambda each: str(each["rounds"]), right=True, drop=2),
        Column("DROPPED", lambda each: str(each["dropped"]), right=True),
        Column("DISCARDED", lambda each: str(each["discarded"]), right=True, drop=1),
        Column("REFUSED", lambda each: str(each["refused"]), right=True),
        Column("LAST ERROR", lambda each: each["last_error"] or NONE, cut=True, drop=1),
    )
    nothing = "no gateways yet: seaway network put -f FILE"
    names = (each["gateway"] for each in rows)
    show(output, body, lambda wide: Rows(columns, rows, wide=wide) if rows else nothing, lambda: names)


def _state(agent: Body) -> Text:
    from rich.text import Text

    colours: dict[Any, str] = {"reporting": "green", "lost": "red", "never": "yellow"}
    return Text(agent["state"], colours.get(agent["state"], ""))
