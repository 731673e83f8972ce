"""`seaway agent`: probes from this gateway to all others, and reports to the control plane."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from seaway.application.ports.agent import Reported
from seaway.cli.output import console
from seaway.domain.errors import RejectedError
from seaway.domain.network import PPM
from seaway.terminal.tables import Column, Rows
from seaway.terminal.words import NONE, loss, rtt

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seaway.application.agent.delivery import Delivery
    from seaway.application.agent.settings import AgentSettings
    from seaway.application.ports.agent import Reported
    from seaway.bootstrap.agent import Known
    from seaway.domain.gateways import NetworkConfig


EVERY_S = 1.0


def results_table(results: Sequence[Reported]) -> Rows:
    """Return the table of a round's results."""
    columns = (
        Column("TARGET", lambda each: each["target"]),
        Column("PATH", lambda each: each["path"] or NONE, drop=1),
        Column("LATENCY", _latency, right=True),
        Column("JITTER", lambda each: rtt(each["jitter_ns"]) if each["received"] else NONE, right=True),
        Column("LOSS", _loss, right=True),
        Column("ANSWERS", lambda each: f"{each['received']}/{each['sent']}", right=True, drop=2),
        Column("DISCARDED", lambda each: str(each["discarded"] or NONE), right=True, drop=3),
    )
    return Rows(columns, [asdict(each) for each in results])


def _fields(result: Reported) -> dict[str, Any]:
    """Return the fields of a result for programs. Without an answer there is no latency and no jitter."""
    return asdict(result) | ({} if result.received else {"jitter_ns": None})


def status_line(delivery: Delivery | None, seen_s: float | None) -> Text:
    """Describe the state of reports, and the age of the displayed results.

    Parameters
    ----------
    seen_s
        Seconds since the end of the last round; None before the first.
    """
    age = "no round yet" if seen_s is None else f"round of {seen_s:.0f} s ago"
    if delivery is None:
        return Text(f"{age}; no server", "dim")
    reported = f"{age}; {delivery.delivered.rounds:,} results reported, {delivery.waiting:,} wait"
    if lost := delivery.delivered.dropped + delivery.delivered.refused:
        reported += f", {lost:,} lost"
    return Text(f"{reported}: {delivery.trouble}", "yellow") if delivery.trouble else Text(reported, "dim")


class LiveTable:
    """Live table of the last round. Log messages scroll above it."""

    def __init__(self) -> None:
        self._live = Live(console=console(), auto_refresh=False)
        self._delivery: Delivery | None = None
        self._results: Sequence[Reported] = ()
        self._seen_s: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_showing, name="table", daemon=True)

    def __enter__(self) -> Self:
        self._live.start()
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(_Above(self._live))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._live.stop()

    def follow(self, delivery: Delivery | None) -> None:
        """Show the state of reports below the table."""
        self._delivery = delivery

    def see(self, results: Sequence[Reported]) -> None:
        """Show the results of a round."""
        self._results, self._seen_s = results, time.monotonic()

    def _keep_showing(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._live.update(self._picture(), refresh=True)

    def _picture(self) -> RenderableType:
        age_s = None if self._seen_s is None else time.monotonic() - self._seen_s
        return Group(results_table(self._results), status_line(self._delivery, age_s))


class _Above:
    """Stream that writes log messages above a live table."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def write(self, text: str) -> None:
        """Print a line."""
        if text.strip():
            self._live.console.print(Text(text.rstrip("\n"), "dim"), soft_wrap=True)

    def flush(self) -> None:
        """Do nothing, because there is no buffer."""


def _latency(each: dict[str, Any]) -> Text:
    return Text(rtt(each["latency_ns"])) if each["received"] else Text("no answer", "red")


def _loss(each: dict[str, Any]) -> Text:
    lost = each["sent"] - each["received"]
    return Text(loss(lost * PPM // each["sent"]) if each["sent"] else NONE, "red" if lost else "")


ONCE_SPREAD_S = 2.0
"""Time over which the probes of a single round are spread, in seconds."""


class Format(StrEnum):
    """Output format."""

    TABLE = "table"
    JSON = "json"


def agent(  # one parameter for each option
    context: typer.Context,
    gateway: Annotated[str | None, typer.Option(help="Name of this gateway in the network.")] = None,
    server: Annotated[str | None, typer.Option(metavar="URL", help="URL of the control plane.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the agent's token.", show_default="SEAWAY_TOKEN")
    ] = None,
    network: Annotated[
        Path | None,
        typer.Option("--network", "-f", help="Network file with the targets without a server, or until it answers."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Source address of probes; any: by the routing table.", show_default="as the network says"),
    ] = None,
    netns: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Network namespace of probes; reports are sent from the present one."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="User to switch to once the sockets are open.", show_default="nobody")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file in TOML, table agent: docs/settings.md.")] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Probe once, print the result, and exit without a report.")
    ] = False,
    output: Annotated[Format, typer.Option("--output", "-o", help="json: one line per result.")] = Format.TABLE,
) -> None:
    """Measure the links from this gateway to all others, and report them to the control plane.

    Run it on each gateway under a service manager. It needs root or CAP_NET_RAW to open its sockets, and then drops all
    privileges. While the control plane does not answer, results are queued and sent later in order. See docs/agent.md.

    Create a token for this gateway:

      [cyan]seaway token create gw-1 --role agent --gateway gw-1[/cyan]

    [bold]Examples[/bold]

      [cyan]seaway agent --gateway gw-1 --server https://seaway.example --token-file agent.token[/cyan]

    Without a server: a live table, then a single round:

      [cyan]seaway agent --gateway gw-1 -f network.yaml[/cyan]

      [cyan]seaway agent --gateway gw-1 -f network.yaml --once -o json[/cyan]

    In a network namespace of a lab:

      [cyan]seaway agent --gateway gw-1 --netns seaway-lab-gw-1 --server http://127.0.0.1:8080[/cyan]
    """
    from seaway.bootstrap.settings import load_settings
    from seaway.client.connection import import_httpx

    flags = {
        "gateway": gateway,
        "server": server or getattr(context.obj, "server", None),
        "token_file": token_file and str(token_file),
        "network": network and str(network),
        "address": address,
        "netns": netns,
        "user": user,
    }
    settings = load_settings(config, os.environ, {("agent", name): value for name, value in flags.items()}).agent
    _log_lines()
    if settings.server:
        import_httpx()
    if once:
        raise typer.Exit(_once(settings, output))
    _run(settings, output)


def _once(settings: AgentSettings, output: Format) -> int:
    """Probe once, and print the results; return 1 if a gateway did not answer."""
    from seaway.application.agent.rounds import measure
    from seaway.application.ports.clock import SystemClock
    from seaway.bootstrap.agent import ask_address, know, open_all

    known = know(settings, os.environ, _network(settings))
    todo = known.controller.assignment() if known.controller else known.first
    if todo is None or not todo.targets:
        raise RejectedError("there are no targets to probe", where=settings.network or settings.server)
    if output is Format.TABLE:
        pass
    opened = open_all(settings, known.account, ask_address(settings, known, None))
    short = replace(todo.how, interval_s=min(todo.how.interval_s, ONCE_SPREAD_S + 2 * todo.how.timeout_s))
    results = measure(opened.prober, replace(todo, how=short), SystemClock().now_ns())
    opened.prober.close()
    opened.reflecting.close()
    if output is Format.JSON:
        _print_lines(results)
    else:
        from seaway.cli.admin.agent import results_table
        from seaway.cli.output import console

        console().print(results_table(results))
    return int(any(not each.received for each in results))


def _run(settings: AgentSettings, output: Format) -> None:
    from seaway.bootstrap.agent import Agent, ask_address, know, open_all

    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)  # a second signal ends it immediately

    def end(*_: object) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)  # ignores signals while it ends
        raise SystemExit(0)  # until there are results to report

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, end)
    known = know(settings, os.environ, _network(settings))
    address = ask_address(settings, known, time.sleep)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    live = output is Format.TABLE and sys.stdout.isatty()
    if live:
        pass
    opened = open_all(settings, known.account, address)
    _print_start(settings, known, str(address or "any address"))
    if live:
        from seaway.cli.admin.agent import LiveTable

        with LiveTable() as table:
            running = Agent(settings, known, opened, table.see)
            table.follow(running.delivery)
            running.run(stopping)
    else:
        Agent(settings, known, opened, _print_lines if output is Format.JSON else _show_nothing).run(stopping)
    logging.getLogger(__name__).info("ended")


def _network(settings: AgentSettings) -> NetworkConfig | None:
    from seaway.cli.admin.gateway_source import read_network

    return read_network(settings.network) if settings.network else None


def _print_start(settings: AgentSettings, known: Known, address: str) -> None:
    where = f" in namespace {settings.netns}" if settings.netns else ""
    to = f"reports to {settings.server}" if known.controller else "no server, no reports"
    logging.getLogger(__name__).info(
        "%s probes from %s%s, without privileges; %s", settings.gateway, address, where, to
    )


def _print_lines(results: Sequence[Reported]) -> None:
    lines = "".join(json.dumps(_fields(each)) + "\n" for each in results)
    sys.stdout.write(lines)
    sys.stdout.flush()


def _show_nothing(_: Sequence[Reported]) -> None:
    """Print no results, because rounds are logged."""


def _log_lines() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
