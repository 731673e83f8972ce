"""The control plane as a gateway that follows it sees it, over HTTP."""

from __future__ import annotations

from typing import Any

from seaway.application.ports.steering import Wanted
from seaway.client import once
from seaway.client.call import Known
from seaway.client.calls import agents
from seaway.client.errors import AnswerError
from seaway.client.sync import Client
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import NetworkConfig


class HttpSteerer:
    """Asks what a gateway has to have, and confirms it; each call is tried once.

    Parameters
    ----------
    client
        With the token of this gateway's agent, and a pace without patience.
    gateway
        Which one.
    """

    def __init__(self, client: Client, gateway: str) -> None:
        self.client = client
        self._gateway = gateway
        self._known = Known()
        self._read: tuple[Any, NetworkConfig] | None = None

    def wanted(self) -> Wanted:
        """Return what this gateway has to have now.

        Raises
        ------
        AnswerError
            When what comes back makes no sense.
        """
        body = once.send(self.client, agents.wanted(self._gateway, self._known))
        try:
            return Wanted(
                str(body["version"]), self._config(body["network"]), dict(body["active"]), dict(body["applied"])
            )
        except (RejectedError, TypeError, ValueError) as error:
            raise AnswerError(f"{self.client.target.server} wants what makes no sense: {error}") from None

    def confirm(self, wanted: Wanted) -> None:
        """Say that it is written."""
        body = {"version": wanted.version, "active": dict(wanted.active)}
        once.send(self.client, agents.applied(self._gateway, body))

    def _config(self, network: object) -> NetworkConfig:
        """Read a network, unless it is the one that was read last."""
        from seaway.wire.network_in import NetworkConfigIn
        from seaway.wire.reading import read_value

        if self._read is None or self._read[0] != network:
            self._read = network, read_value(NetworkConfigIn, network).config()
        return self._read[1]
