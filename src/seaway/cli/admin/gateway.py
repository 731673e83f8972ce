"""`seaway gateway`: this machine as an SRv6 gateway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from seaway.cli.admin.gateway_follow import follow
from seaway.cli.errors import note
from seaway.cli.output import Output, OutputOption, as_json, as_yaml, console
from seaway.domain.gateways import MAIN_TABLE, NetworkConfig
from seaway.steering.difference import Add, Change, Remove, Replace, Set, commands, setting_order, setting_text
from seaway.steering.state import CurrentState, Hop, Route, SidRoute, UnknownRoute

if TYPE_CHECKING:
    from seaway.adapters.srv6.machine import Machine
    from seaway.cli.admin.gateway_source import Wanted
    from seaway.domain.gateways import NetworkConfig
    from seaway.steering.difference import Difference


app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)

File = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Network file; - reads standard input. Default: the server's network."
    ),
]
GatewayOption = Annotated[
    str | None, typer.Option("--gateway", "-g", metavar="NAME", help="Name of this machine's gateway.")
]
Netns = Annotated[
    str, typer.Option("--netns", metavar="NAME", help="Network namespace (see `ip netns`). Default: the present one.")
]
Via = Annotated[
    list[str] | None,
    typer.Option(
        "--via", metavar="TARGET=PATH", help="Use this path to a gateway instead of the first one. Repeatable."
    ),
]
State = Annotated[
    Path, typer.Option("--state", metavar="FOLDER", help="File with the previous kernel settings.", show_default=True)
]
STATE = Path("/run/seaway")


@app.callback()
def gateway() -> None:
    """Configure this machine as an SRv6 gateway: SIDs, routes with segment lists, and kernel settings.

    One file describes all gateways; each machine uses its part. Seaway marks its routes with protocol 151 and changes
    no other routes. It stores the previous kernel settings, and [cyan]remove[/cyan] restores them. A change of path
    replaces a route atomically, without packet loss.

    [bold]Examples[/bold]

      [cyan]seaway gateway check -f network.yaml[/cyan]
      [cyan]seaway gateway plan -f network.yaml --gateway gw-1[/cyan]
      [cyan]seaway gateway apply -f network.yaml --gateway gw-1[/cyan]
      [cyan]seaway gateway apply -f network.yaml --gateway gw-1 --via gw-4=via-2[/cyan]
      [cyan]seaway gateway delete[/cyan]

    The file is described in docs/gateways.md.
    """


@app.command()
def check(
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="Network file; - reads standard input.")],
) -> None:
    """Check locators, SIDs, paths, loops and MTU of a file, and print all errors with their lines. Requires no root.

    [bold]Example[/bold]

      [cyan]seaway gateway check -f network.yaml[/cyan]
    """
    from seaway.cli.admin.gateway_source import read_network

    config = read_network(file)
    typer.echo(_summary(config))


@app.command()
def plan(
    context: typer.Context,
    file: File = None,
    gateway: GatewayOption = None,
    netns: Netns = "",
    via: Via = None,
    commands: Annotated[bool, typer.Option("--commands", help="Print the equivalent ip and sysctl commands.")] = False,
    state: State = STATE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what apply would change on this machine: + is added, ~ is changed, - is removed.

    [bold]Examples[/bold]

      [cyan]seaway gateway plan -f network.yaml --gateway gw-1[/cyan]

    Print commands, to apply them by other means:

      [cyan]seaway gateway plan -f network.yaml --gateway gw-1 --commands[/cyan]
    """
    from seaway.cli.admin.gateway_source import wanted
    from seaway.steering.difference import commands as written
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
    """Apply the configuration of a gateway to this machine, and print the changes. It is idempotent.

    [bold]Examples[/bold]

      [cyan]seaway gateway apply -f network.yaml --gateway gw-1[/cyan]

    With the configuration of the server:

      [cyan]seaway gateway apply --gateway gw-1[/cyan]
    """
    from seaway.cli.admin.gateway_source import wanted

    goal = wanted(context, file, gateway, via or [])
    found = _machine(netns, state).converge(goal.state)
    _tell(found, f"{goal.name}: {{}} made", goal.config, netns, output)
    _note(goal, netns, state)


app.command()(follow)


@app.command("delete")
def remove(
    netns: Netns = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed.")] = False,
    state: State = STATE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove all routes and SIDs of Seaway, and restore the kernel settings. Other routes remain.

    A setting that another program changed in the meantime remains. A setting that
    cannot be restored, such as that of a renamed interface, is reported.

    [bold]Example[/bold]

      [cyan]seaway gateway delete[/cyan]
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
    """Show the routes and SIDs of Seaway on this machine; with a file, SIDs by gateway name.

    [bold]Example[/bold]

      [cyan]seaway gateway show -f network.yaml[/cyan]
    """
    from seaway.cli.admin.gateway_source import read_network

    present = _machine(netns, state).read()
    if output is Output.JSON:
        typer.echo(as_json(state_body(present, netns)))
    elif output is Output.YAML:
        typer.echo(as_yaml(state_body(present, netns)), nl=False)
    elif not present.routes and not present.saved:
        typer.echo("nothing here belongs to Seaway")
    else:
        names = names_of(read_network(file) if file else None)
        console().print(state_picture(present, names), soft_wrap=True)


def _machine(netns: str, state: Path) -> Machine:
    from seaway.adapters.srv6.machine import Machine

    return Machine(netns, state)


def _tell(found: Difference, said: str, config: NetworkConfig | None, netns: str, output: Output) -> None:
    from seaway.steering.difference import losses

    changes = found.changes
    if output is Output.JSON:
        typer.echo(as_json(body(changes, netns)))
    elif output is Output.YAML:
        typer.echo(as_yaml(body(changes, netns)), nl=False)
    elif not changes:
        typer.echo(said.partition("{}")[0] + "up to date, nothing to change")
    else:
        typer.echo(said.format(f"{len(changes)} change{'s' * (len(changes) > 1)}"))
        console().print(picture(changes, names_of(config)), soft_wrap=True)
    for each in losses(found.lost):
        note(f"note: {each}")


def _note(goal: Wanted, netns: str, state: Path) -> None:
    from seaway.steering.difference import notes

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
        return f"{said}; the maximum packet size is unknown, since not all gateways report their MTU"
    return f"{said}; every path carries packets of up to {min(rooms)} bytes"


Names = Mapping[IPv6Address, str]
"""Names of SIDs."""

STYLES = {"+": "green", "~": "yellow", "-": "red", "<": "cyan"}
ARROW = "→"


def names_of(config: NetworkConfig | None) -> Names:
    """Return the names of a network's SIDs, like ``gw-2 End``."""
    gateways = config.gateways if config else ()
    return {sid.address: f"{each.name} {sid.behaviour.value}" for each in gateways for sid in each.sids}


def picture(changes: Iterable[Change], names: Names) -> RenderableType:
    """Return changes for people, one per line: + added, ~ changed, - removed, < restored."""
    return Group(*(_line(each, names) for each in changes))


def body(changes: Iterable[Change], netns: str) -> list[dict[str, Any]]:
    """Return changes as JSON."""
    return [{**_fields(each), "command": commands([each], netns)[0]} for each in changes]


def state_picture(present: CurrentState, names: Names) -> RenderableType:
    """Return the routes and settings of Seaway on a machine, for people."""
    routes = [Text(f"  {_route(each)}  {_does(each, names)}") for each in present.routes]
    settings = [
        Text(f"  {setting_text(knob)} = {present.settings.get(knob, '?')}").append(f"  (was {was.before})", "dim")
        for knob, was in present.saved.items()
        if was.before != was.value and knob in present.settings and not setting_order(knob)
    ]
    return Group(*routes, *settings)


def state_body(present: CurrentState, netns: str) -> dict[str, Any]:
    """Return the routes and settings of Seaway on a machine, as JSON."""
    return {
        "netns": netns,
        "routes": [{"destination": str(each.destination), "does": _does(each, {})} for each in present.routes],
        "settings": [
            {"name": setting_text(knob), "value": present.settings.get(knob, ""), "before": was.before}
            for knob, was in present.saved.items()
            if not setting_order(knob)
        ],
    }


def _line(change: Change, names: Names) -> Text:
    mark, what, text = _parts(change, names)
    return Text(f"  {mark} ", STYLES[mark]).append(f"{what}  ", STYLES[mark]).append(text)


def _parts(change: Change, names: Names) -> tuple[str, str, str]:
    match change:
        case Set(knob, before, value, back):
            return "<" if back else "~", setting_text(knob), f"{before} {ARROW} {value}"
        case Add(route):
            return "+", _route(route), _does(route, names)
        case Replace(before, route):
            return "~", _route(route), f"{_does(before, names)} {ARROW} {_does(route, names)}"
        case Remove(route):
            return "-", _route(route), _does(route, names)


def _fields(change: Change) -> dict[str, Any]:
    match change:
        case Set(knob, before, value, back):
            return {
                "change": "restore" if back else "set",
                "what": setting_text(knob),
                "before": before,
                "after": value,
            }
        case Add(route):
            return {"change": "add", "what": _route(route), "before": "", "after": _does(route, {})}
        case Replace(before, route):
            fields = {"change": "replace", "what": _route(route), "before": _does(before, {})}
            return {**fields, "after": _does(route, {})}
        case Remove(route):
            return {"change": "remove", "what": _route(route), "before": _does(route, {}), "after": ""}


def _route(route: Route) -> str:
    if isinstance(route, SidRoute):
        return f"SID {route.destination.network_address}"
    return f"route {route.destination}"


def _does(route: Route, names: Names) -> str:
    if isinstance(route, UnknownRoute):
        return route.text
    if isinstance(route, SidRoute):
        table = f" table {route.table}" if route.table != MAIN_TABLE else ""
        neighbour = f" to {route.next_hop} on {route.interface}" if route.next_hop else ""
        return f"{route.behaviour.value}{table}{neighbour}"
    shown = [_hop(hop, names, weighed=len(route.hops) > 1) for hop in route.hops]
    return " | ".join(shown)


def _hop(hop: Hop, names: Names, *, weighed: bool) -> str:
    segments = ", ".join(names.get(each, str(each)) for each in hop.segments)
    return f"{hop.weight}x [{segments}]" if weighed else f"by {segments}"
