"""`seaway gateway`: this machine as an SRv6 gateway."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.cli.gateway_follow import follow
from seaway.cli.output import Output, OutputOption, as_json, as_yaml, console
from seaway.cli.telling import note

if TYPE_CHECKING:
    from seaway.adapters.srv6.machine import Machine
    from seaway.cli.gateway_source import Wanted
    from seaway.domain.gateways import NetworkConfig
    from seaway.steering.difference import Difference

app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)

File = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", help="The network; - is standard input. Left out, the server's."),
]
GatewayOption = Annotated[
    str | None, typer.Option("--gateway", "-g", metavar="NAME", help="Which of its gateways this machine is.")
]
Netns = Annotated[
    str, typer.Option("--netns", metavar="NAME", help="A network namespace, as `ip netns` has it, instead of this one.")
]
Via = Annotated[
    list[str] | None,
    typer.Option("--via", metavar="TARGET=PATH", help="Take this path to a gateway, not the best liked. Repeatable."),
]
State = Annotated[
    Path, typer.Option("--state", metavar="FOLDER", help="Remembers what settings were before.", show_default=True)
]
STATE = Path("/run/seaway")


@app.callback()
def gateway() -> None:
    """Make this machine an SRv6 gateway: SIDs, routes that wrap packets into segment lists, and the settings they need.

    One file describes all gateways, and each takes its part of it. Seaway marks
    its routes with the protocol number 151, touches no others, and remembers what
    settings were before, so that [cyan]remove[/cyan] leaves nothing behind. A change of path
    replaces a route in one step, which loses no packet.

    [bold]Examples[/bold]

      [cyan]seaway gateway check -f network.yaml[/cyan]
      [cyan]seaway gateway plan -f network.yaml --gateway gw-1[/cyan]
      [cyan]seaway gateway apply -f network.yaml --gateway gw-1[/cyan]
      [cyan]seaway gateway apply -f network.yaml --gateway gw-1 --via gw-4=via-2[/cyan]
      [cyan]seaway gateway remove[/cyan]

    The file is described in docs/gateways.md.
    """


@app.command()
def check(
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="The network; - is standard input.")],
) -> None:
    """Check a file: locators, SIDs, paths, loops, MTU. All mistakes are told at once, with their lines. Needs no root.

    [bold]Example[/bold]

      [cyan]seaway gateway check -f network.yaml[/cyan]
    """
    from seaway.cli.gateway_source import read_network

    config = read_network(file)
    typer.echo(_summary(config))


@app.command()
def plan(
    context: typer.Context,
    file: File = None,
    gateway: GatewayOption = None,
    netns: Netns = "",
    via: Via = None,
    commands: Annotated[
        bool, typer.Option("--commands", help="Print the ip and sysctl commands that do the same, to do it by hand.")
    ] = False,
    state: State = STATE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what apply would change on this machine, and change nothing. + is new, ~ changes, - goes.

    [bold]Examples[/bold]

      [cyan]seaway gateway plan -f network.yaml --gateway gw-1[/cyan]

    For people who apply it by other means:

      [cyan]seaway gateway plan -f network.yaml --gateway gw-1 --commands[/cyan]
    """
    from seaway.cli.gateway_source import wanted
    from seaway.steering.commands import commands as written
    from seaway.steering.difference import difference

    goal = wanted(context, file, gateway, via or [])
    present = _machine(netns, state).read()
    found = difference(goal.state, present)
    if commands:
        for each in written(found.changes, netns):
            typer.echo(each)
    else:
        _tell(found, f"{goal.name}: {{}} to be made", goal.config, netns, output)
    _note(goal, netns, state)


@app.command()
def apply(
    context: typer.Context,
    file: File = None,
    gateway: GatewayOption = None,
    netns: Netns = "",
    via: Via = None,
    state: State = STATE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give this machine what it has to have as a gateway, and say what was done. Doing it again changes nothing.

    [bold]Examples[/bold]

      [cyan]seaway gateway apply -f network.yaml --gateway gw-1[/cyan]

    As the server wants it:

      [cyan]seaway gateway apply --gateway gw-1[/cyan]
    """
    from seaway.cli.gateway_source import wanted

    goal = wanted(context, file, gateway, via or [])
    found = _machine(netns, state).reach(goal.state)
    _tell(found, f"{goal.name}: {{}} made", goal.config, netns, output)
    _note(goal, netns, state)


app.command()(follow)


@app.command()
def remove(
    netns: Netns = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    state: State = STATE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Take away all that Seaway wrote, and set settings back to what they were before it. Other routes stay.

    A setting that somebody else changed in the meantime stays as it is. What cannot
    be set back, as of an interface that has another name by now, is told.

    [bold]Example[/bold]

      [cyan]seaway gateway remove[/cyan]
    """
    from seaway.steering.difference import difference
    from seaway.steering.state import NOTHING

    machine = _machine(netns, state)
    if dry_run:
        found, said = difference(NOTHING, machine.read()), "{} to be made"
    else:
        found, said = machine.remove(), "{} made"
    _tell(found, said, None, netns, output)


@app.command()
def show(
    file: File = None,
    netns: Netns = "",
    state: State = STATE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what this machine has of Seaway now; with a file, SIDs by their gateways' names.

    [bold]Example[/bold]

      [cyan]seaway gateway show -f network.yaml[/cyan]
    """
    from seaway.cli import gateway_text as text
    from seaway.cli.gateway_source import read_network

    present = _machine(netns, state).read()
    if output is Output.JSON:
        typer.echo(as_json(text.state_body(present, netns)))
    elif output is Output.YAML:
        typer.echo(as_yaml(text.state_body(present, netns)), nl=False)
    elif not present.routes and not present.remembered:
        typer.echo("nothing here is Seaway's")
    else:
        names = text.names_of(read_network(file) if file else None)
        console().print(text.state_picture(present, names), soft_wrap=True)


def _machine(netns: str, state: Path) -> Machine:
    from seaway.adapters.srv6.machine import Machine

    return Machine(netns, state)


def _tell(found: Difference, said: str, config: NetworkConfig | None, netns: str, output: Output) -> None:
    from seaway.cli import gateway_text as text
    from seaway.steering.obstacles import losses

    changes = found.changes
    if output is Output.JSON:
        typer.echo(as_json(text.body(changes, netns)))
    elif output is Output.YAML:
        typer.echo(as_yaml(text.body(changes, netns)), nl=False)
    elif not changes:
        typer.echo(said.partition("{}")[0] + "all is as it has to be, nothing to change")
    else:
        typer.echo(said.format(f"{len(changes)} change{'s' * (len(changes) > 1)}"))
        console().print(text.picture(changes, text.names_of(config)), soft_wrap=True)
    for each in losses(found.lost):
        note(f"note: {each}")


def _note(goal: Wanted, netns: str, state: Path) -> None:
    from seaway.steering.obstacles import notes

    for each in notes(goal.config, goal.name, goal.active, _machine(netns, state).read()):
        note(f"note: {each}")


def _summary(config: NetworkConfig) -> str:
    from seaway.domain.gateway_paths import Room

    room = Room(config)
    pairs = [pair for each in config.gateways for pair in config.pairs_from(each)]
    rooms = [room.inner_mtu(pair.source, path) for pair in pairs for path in pair.paths]
    said = f"fine: {len(config.gateways)} gateways, {len(pairs)} pairs with {len(rooms)} paths"
    if not rooms:
        return said
    if not all(rooms):
        return f"{said}; how large packets may be is not known, for not all gateways say their mtu"
    return f"{said}; packets of up to {min(rooms)} bytes fit on every path"
