"""`seaway gateway follow`: reconciliation of this machine with the control plane's configuration."""

from __future__ import annotations

import logging
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.adapters.srv6.machine import Machine
    from seaway.application.ports.steering import Wanted


log = logging.getLogger(__name__)


class Steering:
    """Machine that is reconciled; implements `seaway.application.ports.steering.Steered`."""

    def __init__(self, gateway: str, machine: Machine) -> None:
        self._gateway = gateway
        self._machine = machine

    def reach(self, wanted: Wanted) -> int:
        """Apply a configuration; return the number of changes."""
        from seaway.steering.difference import losses
        from seaway.steering.state import desired

        found = self._machine.converge(desired(wanted.config, self._gateway, wanted.active, wanted.serving))
        for each in losses(found.lost):
            log.warning("%s", each)
        return len(found.changes)


def follow(
    context: typer.Context,
    gateway: Annotated[str | None, typer.Option("--gateway", "-g", help="Name of this machine's gateway.")] = None,
    server: Annotated[str | None, typer.Option(metavar="URL", help="URL of the control plane.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the agent's token.", show_default="SEAWAY_TOKEN")
    ] = None,
    netns: Annotated[
        str | None, typer.Option(metavar="NAME", help="Network namespace (see `ip netns`). Default: the present one.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings file in TOML, table agent, as for `seaway agent`.")
    ] = None,
    state: Annotated[
        Path, typer.Option(metavar="FOLDER", help="File with the previous kernel settings.", show_default=True)
    ] = Path("/run/seaway"),
) -> None:
    """Reconcile this machine with the control plane's configuration until SIGTERM (requires root).

    Every five seconds it fetches the configuration, applies changes such as a new path, repairs changes by other
    programs, and confirms the result. While the control plane does not answer, and after the command ends, the machine
    stays unchanged.

    It uses the settings and the token of `seaway agent`, but runs as a separate
    process, because the agent has no privileges.

    [bold]Example[/bold]

      [cyan]seaway gateway follow --gateway gw-1 --server https://seaway.example --token-file agent.token[/cyan]
    """
    from random import Random

    from seaway.adapters.srv6.machine import Machine
    from seaway.application.agent.following import Follower
    from seaway.bootstrap.agent import agent_client
    from seaway.bootstrap.settings import load_settings
    from seaway.client.agent import HttpSteerer

    flags = {
        "gateway": gateway,
        "server": server or getattr(context.obj, "server", None),
        "token_file": token_file and str(token_file),
        "netns": netns,
    }
    settings = load_settings(config, os.environ, {("agent", name): value for name, value in flags.items()}).agent
    if not settings.gateway or not settings.server:
        raise RejectedError("set this machine's gateway, and the server to follow", where="--gateway, --server")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    machine = Machine(settings.netns, state)
    machine.read()  # reports missing requirements early
    stopping = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stopping.set())
    client = agent_client(settings, os.environ)
    follower = Follower(HttpSteerer(client, settings.gateway), Steering(settings.gateway, machine), Random())
    log.info("%s follows %s", settings.gateway, settings.server)
    while not stopping.wait(follower.step()):
        pass
    log.info("ended; the gateway is unchanged")
