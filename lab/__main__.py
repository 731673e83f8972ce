"""Command line of `script/lab`, a network lab in namespaces of this machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.conditions import Emulator
from seaway.cli.main import run as run_app
from seaway.cli.output import Output, OutputOption, show
from seaway.cli.remote import ServerOptions, connect, target

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lab.conditions import Conditions
    from lab.holding import LinkReading, Readings
    from lab.lab import Lab

BY = {
    Emulator.NETEM: "the kernel's netem slows their links down",
    Emulator.QUEUE: "a process slows their links down, as this kernel has no netem or was not asked to",
}

app = typer.Typer(rich_markup_mode="rich", no_args_is_help=True)

Name = Annotated[str, typer.Option(help="Which lab, where this machine has several.")]
Gateway = Annotated[str, typer.Argument(help="A gateway, like gw-1.")]


@app.callback()
def lab(
    context: typer.Context,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="The server that agents report to; this machine's by default.")
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="A profile that `seaway login` stored.")] = None,
) -> None:
    """Run Seaway's network on one machine: routers, hosts, and slow or lossy links between them. Linux, as root.

    Every gateway and every host is a network namespace with the real routing of the kernel. Only the links are
    emulated.

    [bold]Examples[/bold]

      [cyan]script/lab up --gateways 4[/cyan]
      [cyan]script/lab link gw-4 gw-1 --delay 40ms --loss 1%[/cyan]
      [cyan]script/lab exec host-4 -- ping fd00:0a:1::2[/cyan]
      [cyan]script/lab down[/cyan]
    """
    from importlib.util import find_spec

    from seaway.domain.errors import RejectedError

    if find_spec("pyroute2") is None:
        raise RejectedError("a lab needs the package pyroute2: pip install 'seaway[gateway]'")
    context.obj = ServerOptions(server, profile)


@app.command()
def up(
    context: typer.Context,
    gateways: Annotated[int, typer.Option(help="How many: before clusters, and the last one before the users.")] = 4,
    links: Annotated[
        Path | None, typer.Option(help="What links are like, YAML: docs/lab.md.", exists=True, dir_okay=False)
    ] = None,
    name: Name = "lab",
    replace: Annotated[bool, typer.Option("--replace", help="Make it again where there is one.")] = False,
    emulator: Annotated[
        Emulator | None,
        typer.Option(help="Who slows packets down.", show_default="netem, where the kernel has it"),
    ] = None,
    agents: Annotated[
        bool, typer.Option("--agents", help="Give its network to the running server, and start an agent a gateway.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a lab: a core router, gateways with their SIDs and routes, and a host behind each.

    [bold]Examples[/bold]

      [cyan]script/lab up[/cyan]
      [cyan]echo 'links: [{between: [gw-1, gw-2], delay: 40ms, loss: 1%}]' > links.yaml[/cyan]
      [cyan]script/lab up --gateways 3 --links links.yaml --replace[/cyan]

    With agents, while `seaway up` runs:

      [cyan]script/lab up --agents && sleep 15 && seaway links[/cyan]
    """
    from lab import tokens as lab_tokens
    from lab.lab import FOLDER
    from lab.lab import up as make
    from lab.links import LinksIn, default_links
    from lab.plan import LabPlan
    from seaway.client.calls.service import me
    from seaway.wire.reading import read_yaml_message

    plan = LabPlan(name, gateways)
    names = [spot.gateway for spot in plan.spots]
    given = read_yaml_message(LinksIn, links.read_bytes()).conditions(names) if links else default_links(names)
    if agents:
        with connect(context) as client:
            client.body(me())
    before = lab_tokens.noted(FOLDER / name)
    made = make(plan, given, replace=replace, emulator=emulator)
    lab_tokens.revoke(context, before)
    if agents:
        _measure(context, made)
    if output is Output.TABLE:
        again = f" --links {shlex.quote(str(links))}" if links else ""
        again += f" --emulator {emulator}" if emulator else ""
        typer.echo(_next(made, None if agents else again))
    else:
        _show(made, output)


@app.command()
def down(context: typer.Context, name: Name = "lab") -> None:
    """Remove a lab and its processes, and revoke the tokens of its agents."""
    from lab import tokens as lab_tokens
    from lab.lab import FOLDER
    from lab.lab import down as remove

    tokens = lab_tokens.noted(FOLDER / name)
    remove(name)
    lab_tokens.revoke(context, tokens)
    typer.echo(f"The lab {name!r} is gone.")


@app.command("show")
def show_lab(name: Name = "lab", output: OutputOption = Output.TABLE) -> None:
    """Show the gateways of a lab, and the packet counters of its links."""
    from lab.lab import find

    _show(find(name), output)


@app.command()
def link(
    a: Gateway,
    b: Annotated[str | None, typer.Argument(help="Another; without it all links of the first.")] = None,
    delay: Annotated[str | None, typer.Option(help="On the way, one way, like 20ms.")] = None,
    jitter: Annotated[str | None, typer.Option(help="By how much that is less or more, like 2ms.")] = None,
    loss: Annotated[str | None, typer.Option(help="Share of packets that are lost, like 1%.")] = None,
    rate: Annotated[str | None, typer.Option(help="How fast they leave, like 1Gbps; 0 for no limit.")] = None,
    one_way: Annotated[bool, typer.Option("--one-way", help="From the first to the second only.")] = False,
    name: Name = "lab",
) -> None:
    """Change a link of a running lab, by default in both directions. Omitted conditions do not change.

    [bold]Examples[/bold]

      [cyan]script/lab link gw-1 gw-2 --delay 20ms --jitter 2ms --loss 1% --rate 1Gbps[/cyan]
      [cyan]script/lab link gw-4 gw-1 --loss 5% --one-way[/cyan]

    Failure and recovery of a gateway:

      [cyan]script/lab link gw-2 --loss 100%[/cyan]
      [cyan]script/lab link gw-2 --loss 0[/cyan]
    """
    from lab.lab import find
    from lab.links import ConditionsIn, require_link
    from seaway.wire.reading import read_value

    given = {"delay": delay, "jitter": jitter, "loss": loss, "rate": rate}
    change = read_value(ConditionsIn, {field: value for field, value in given.items() if value is not None})
    found = find(name)
    gateways = [spot.gateway for spot in found.plan.spots]
    others = [each for each in gateways if each != a] if b is None else [b]
    require_link((a, others[0]), gateways)
    now = {each.ends: each.conditions for each in found.emulation.read().links}
    ways = [way for each in others for way in ([(a, each)] if one_way else [(a, each), (each, a)])]
    changed = {ends: change.change(now[ends]) for ends in ways}
    found.emulation.change(changed)
    for (source, receiver), conditions in changed.items():
        typer.echo(f"{source} → {receiver}: {_conditions(conditions)}")


@app.command("exec")
def run(
    place: Annotated[str, typer.Argument(help="A gateway, a host, or core.", metavar="PLACE")],
    command: Annotated[list[str], typer.Argument(help="The command, after --.", metavar="-- COMMAND...")],
    name: Name = "lab",
) -> None:
    """Run a command in the namespace of a gateway, a host or the core.

    [bold]Examples[/bold]

      [cyan]script/lab exec gw-1 -- ip -6 route[/cyan]
      [cyan]script/lab exec core -- tcpdump -ni gw-1[/cyan]
    """
    import os

    from lab.lab import find

    whole = find(name).command(place, command)
    os.execvp(whole[0], whole)


def _measure(context: typer.Context, lab: Lab) -> None:
    """Send the network of a lab to the server, and start its agents; on failure, remove the lab."""
    from lab import tokens as lab_tokens
    from lab.lab import down as remove
    from lab.lab import start_agents
    from seaway.client.calls.network import put_network
    from seaway.wire.network_in import network_text

    server = target(context).server
    try:
        with connect(context) as client:
            client.body(put_network(network_text(lab.plan.config())))
            secrets = lab_tokens.make(client, server, lab)
        start_agents(lab, server, secrets)
    except BaseException:
        tokens = lab_tokens.noted(lab.folder)
        remove(lab.plan.name)
        lab_tokens.revoke(context, tokens)
        raise


def _next(lab: Lab, again: str | None) -> str:
    """Return a summary of a new lab, and the commands to run next.

    Parameters
    ----------
    again
        Options to re-create it with the same links; None if it has agents.
    """
    from shutil import which

    from lab.lab import option

    plan, named = lab.plan, option(lab.plan.name)
    last, first = plan.spots[-1], plan.spots[0]
    ping = "" if which("ping") else "    # apt-get install iputils-ping"
    how = f"""\
Have it measured, with the control plane in a terminal of its own: this re-creates it with an agent at each gateway, and
a token for each. (By hand: `seaway network put -f {lab.network}`, then docs/agent.md.)

  seaway up
  script/lab up --replace --agents --gateways {plan.gateways}{again}{named}

It takes about 20 s until there are figures:
"""
    here = f"An agent for each measures it, and writes to {lab.folder}; the first figures come within 20 s:\n"
    return f"""\
The lab {plan.name!r} is up: {plan.gateways} gateways, {last.gateway} before the users; {BY[lab.emulator]}.
{here if again is None else how}
  seaway links

Then make a link worse, and look again; when all is done, remove the lab:

  script/lab link {last.gateway} {first.gateway} --delay 80ms --loss 2%{named}
  script/lab exec{named} {last.host} -- ping {first.lan[2]}{ping}
  script/lab down{named}"""


def _show(lab: Lab, output: Output) -> None:
    readings = lab.emulation.read()
    body = _body(lab, readings)
    show(output, body, lambda wide: _tables(body, wide=wide), lambda: (spot.gateway for spot in lab.plan.spots))


def _body(lab: Lab, readings: Readings) -> dict[str, Any]:
    gateways = [
        {
            "name": each.name,
            "cluster": each.cluster,
            "site": each.site,
            "address": str(each.address),
            "netns": lab.plan.namespace(each.name),
            "host": spot.host,
            "host_address": str(spot.lan[2]),
        }
        for each, spot in zip(lab.plan.config().gateways, lab.plan.spots, strict=True)
    ]
    links = [_link(each) for each in readings.links if all(each.ends)]
    return {
        "name": lab.plan.name,
        "network": str(lab.network),
        "emulator": lab.emulator.value,
        "gateways": gateways,
        "links": sorted(links, key=lambda each: (each["source"], each["target"])),
        "missed": readings.missed,
    }


def _link(reading: LinkReading) -> dict[str, Any]:
    from dataclasses import asdict

    source, target = reading.ends
    return {"source": source, "target": target, **asdict(reading.conditions), **asdict(reading.counts)}


def _tables(body: dict[str, Any], *, wide: bool) -> RenderableType:
    from rich.console import Group

    from seaway.terminal.tables import Column, Rows
    from seaway.terminal.words import NONE, loss, rate, rtt

    gateways = (
        Column("GATEWAY", lambda each: each["name"]),
        Column("BEFORE", lambda each: each["cluster"] or each["site"]),
        Column("ADDRESS", lambda each: each["address"]),
        Column("NAMESPACE", lambda each: each["netns"]),
        Column("HOST", lambda each: f"{each['host']} {each['host_address']}", drop=1),
    )
    links = (
        Column("FROM", lambda each: each["source"]),
        Column("TO", lambda each: each["target"]),
        Column("DELAY", lambda each: rtt(each["delay_ns"]), right=True),
        Column("JITTER", lambda each: rtt(each["jitter_ns"]), right=True),
        Column("LOSS", lambda each: loss(each["loss_ppm"]), right=True),
        Column("RATE", lambda each: rate(each["rate_mbps"]) if each["rate_mbps"] else NONE, right=True),
        Column("PACKETS", lambda each: f"{each['packets']:,}", right=True, drop=2),
        Column("LOST", lambda each: f"{each['lost'] + each['overflowed']:,}", right=True, drop=1),
        Column("HELD", lambda each: rtt(each["held_ns"] // each["released"]) if each["released"] else NONE, right=True),
        Column("LATEST", lambda each: rtt(each["latest_ns"]), right=True, wide=True),
    )
    missed = [f"\nThe emulator did not keep up: {body['missed']:,} packets more were lost."] if body["missed"] else []
    return Group(Rows(gateways, body["gateways"], wide=wide), "", Rows(links, body["links"], wide=wide), *missed)


def _conditions(conditions: Conditions) -> str:
    from seaway.terminal.words import loss, rate, rtt

    limit = f", rate {rate(conditions.rate_mbps)}" if conditions.rate_mbps else ""
    delay, jitter = rtt(conditions.delay_ns), rtt(conditions.jitter_ns)
    return f"delay {delay}, jitter {jitter}, loss {loss(conditions.loss_ppm)}{limit}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `script/lab`; without arguments, with those of the process."""
    run_app(app, sys.argv[1:] if arguments is None else arguments, "script/lab")


if __name__ == "__main__":
    main()
