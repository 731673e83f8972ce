"""Source of the configuration for `seaway gateway`: a file, or the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import NetworkConfig

if TYPE_CHECKING:
    from seaway.steering.state import GatewayState


@dataclass(frozen=True, slots=True)
class Wanted:
    """Configuration of a gateway.

    Attributes
    ----------
    config
        Configuration of the network.
    name
        Name of the gateway.
    active
        Selected paths, by target.
    serving
        Gateway that carries the traffic of each cluster; without one, the first.
    """

    config: NetworkConfig
    name: str
    active: Mapping[str, str]
    serving: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> GatewayState:
        """Desired state of the gateway."""
        from seaway.steering.state import desired

        return desired(self.config, self.name, self.active, self.serving)


def read_network(file: str) -> NetworkConfig:
    """Read a network file; ``-`` is standard input.

    Raises
    ------
    RejectedError
        When the file is invalid, with all errors and their lines.
    """
    from seaway.cli.admin.network import read_network_file
    from seaway.wire.network_in import NetworkConfigIn
    from seaway.wire.reading import read_value

    document = read_network_file(file)
    try:
        return read_value(NetworkConfigIn, document.fields).config()
    except RejectedError as error:
        raise document.placed(error) from None


def wanted(context: typer.Context, file: str | None, gateway: str | None, via: list[str]) -> Wanted:
    """Return the configuration from the file, or from the server if no file is given.

    Raises
    ------
    RejectedError
        When the gateway is ambiguous, or the file or a path selection is invalid.
    """
    chosen = dict(map(_choice, via))
    if file is None:
        return _asked(context, _named(gateway, None), chosen)
    config = read_network(file)
    return Wanted(config, _named(gateway, config), chosen)


def _named(gateway: str | None, config: NetworkConfig | None) -> str:
    if gateway:
        return gateway
    there = f"; available: {', '.join(each.name for each in config.gateways)}" if config else ""
    raise RejectedError(f"name this machine's gateway with --gateway{there}")


def _choice(text: str) -> tuple[str, str]:
    target, equals, path = text.partition("=")
    if not target or not equals or not path:
        raise RejectedError(f"{text!r} is not valid; use a gateway and a path to it, like gw-1=direct", where="--via")
    return target, path


def _asked(context: typer.Context, gateway: str, chosen: Mapping[str, str]) -> Wanted:
    from seaway.cli.remote import connect
    from seaway.client.calls import network as agents
    from seaway.wire.network_in import NetworkConfigIn
    from seaway.wire.reading import read_value

    with connect(context) as client:
        body = client.body(agents.wanted(gateway))
    config = read_value(NetworkConfigIn, body["network"]).config()
    return Wanted(config, gateway, {**body["active"], **chosen}, body.get("serving", {}))
