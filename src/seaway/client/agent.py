"""The control plane as an agent sees it, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, TypeVar

import httpx

from seaway.application.ports.agent import Assignment, Report, Target
from seaway.application.ports.steering import Wanted
from seaway.client.call import Call, Known
from seaway.client.calls import network as agents
from seaway.client.errors import AnswerError, UnavailableError
from seaway.client.sync import Client
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import Method, NetworkConfig, ProbeConfig

MAX_TARGETS = 10_000
MAX_COUNT = 1_000


class HttpController:
    """Asks the control plane what to probe, and brings it reports; each call is tried once.

    Parameters
    ----------
    client
        With the token of this gateway's agent, and a pace without patience.
    gateway
        Whose agent speaks.
    """

    def __init__(self, client: Client, gateway: str) -> None:
        self.client = client
        self._gateway = gateway
        self._known = Known()

    def assignment(self) -> Assignment:
        """Return the present targets.

        Raises
        ------
        AnswerError
            When the answer is invalid.
        """
        body = send(self.client, agents.targets(self._gateway, self._known))
        try:
            return _assignment(body)
        except (KeyError, TypeError, ValueError) as error:
            raise AnswerError(f"{self.client.target.server} returned invalid targets: {error}") from None

    def own_address(self) -> IPv6Address | IPv4Address:
        """Return the address that this gateway is to have; raises as `assignment`."""
        body = send(self.client, agents.wanted(self._gateway))
        try:
            (own,) = (each for each in body["network"]["gateways"] if each["name"] == self._gateway)
            return ip_address(own["address"])
        except (KeyError, TypeError, ValueError) as error:
            raise AnswerError(f"{self.client.target.server} does not say where this gateway is: {error}") from None

    def take(self, report: Report) -> None:
        """Bring a report."""
        send(self.client, agents.report(report_body(report)))


def report_body(report: Report) -> dict[str, Any]:
    """Write a report as the API takes it."""
    return {
        "gateway": report.gateway,
        "started_ns": report.started_ns,
        "number": report.number,
        "dropped": report.dropped,
        "rounds": report.rounds,  # which becomes JSON as it is
    }


def _assignment(body: Mapping[str, Any]) -> Assignment:
    probe = body["probe"]
    how = ProbeConfig(float(probe["interval_s"]), int(probe["count"]), float(probe["timeout_s"]))
    if not (0 < how.interval_s < 1e6 and 0 < how.count <= MAX_COUNT and 0 < how.timeout_s < 1e6):
        raise ValueError(f"{probe} is out of range")
    targets = tuple(map(_target, body["targets"]))
    if len(targets) > MAX_TARGETS:
        raise ValueError(f"{len(targets)} targets are too many")
    own = body.get("address")  # which earlier control planes do not say
    return Assignment(str(body["version"]), how, targets, int(body.get("reflect", 0)), ip_address(own) if own else None)


def _target(body: Mapping[str, Any]) -> Target:
    return Target(
        gateway=str(body["gateway"]),
        address=ip_address(body["address"]),
        method=Method(body["method"]),
        port=int(body["port"]),
        path=str(body["path"]),
        segments=tuple(map(IPv6Address, body["segments"])),
    )


class HttpSteerer:
    """Asks what a gateway must have, and confirms it; each call is tried once.

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
        """Return the present configuration of this gateway.

        Raises
        ------
        AnswerError
            When the answer is invalid.
        """
        body = send(self.client, agents.wanted(self._gateway, self._known))
        try:
            return Wanted(
                str(body["version"]), self._config(body["network"]), dict(body["active"]), dict(body["applied"])
            )
        except (RejectedError, TypeError, ValueError) as error:
            raise AnswerError(f"{self.client.target.server} returned an invalid configuration: {error}") from None

    def confirm(self, wanted: Wanted) -> None:
        """Say that it is written."""
        body = {"version": wanted.version, "active": dict(wanted.active)}
        send(self.client, agents.applied(self._gateway, body))

    def _config(self, network: object) -> NetworkConfig:
        """Read a network, unless it is the one that was read last."""
        from seaway.wire.network_in import NetworkConfigIn
        from seaway.wire.reading import read_value

        if self._read is None or self._read[0] != network:
            self._read = network, read_value(NetworkConfigIn, network).config()
        return self._read[1]


T = TypeVar("T")


def send(client: Client, call: Call[T]) -> T:
    """Make a call, and read its answer.

    Raises
    ------
    SeawayError
        As `seaway.client.errors` sorts them; also when an answer is none of HTTP. A server that did not answer at all
        has not said after how long to ask again: ``retry_after_s`` is 0.
    """
    try:
        return client.send(call)
    except UnavailableError as error:
        if isinstance(error.__cause__, httpx.TransportError):
            raise UnavailableError(str(error), retry_after_s=0) from None
        raise
    except httpx.HTTPError as error:
        raise AnswerError(f"{client.target.server} answers what cannot be read: {error}") from None
