"""Control plane client of agents, over HTTP."""

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
    """Client for probe targets and reports; each call is tried once.

    Parameters
    ----------
    client
        Client with the token of this gateway's agent, and a pace without patience.
    gateway
        Gateway of the agent.
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
        """Return the configured address of this gateway; raise as `assignment`."""
        body = send(self.client, agents.wanted(self._gateway))
        try:
            (own,) = (each for each in body["network"]["gateways"] if each["name"] == self._gateway)
            return ip_address(own["address"])
        except (KeyError, TypeError, ValueError) as error:
            raise AnswerError(f"{self.client.target.server} returned no location of this gateway: {error}") from None

    def take(self, report: Report) -> None:
        """Send a report."""
        send(self.client, agents.report(report_body(report)))


def report_body(report: Report) -> dict[str, Any]:
    """Return a report for the API."""
    return {
        "gateway": report.gateway,
        "started_ns": report.started_ns,
        "number": report.number,
        "dropped": report.dropped,
        "rounds": report.rounds,  # becomes JSON unchanged
    }


def _assignment(body: Mapping[str, Any]) -> Assignment:
    probe = body["probe"]
    how = ProbeConfig(float(probe["interval_s"]), int(probe["count"]), float(probe["timeout_s"]))
    if not (0 < how.interval_s < 1e6 and 0 < how.count <= MAX_COUNT and 0 < how.timeout_s < 1e6):
        raise ValueError(f"{probe} is out of range")
    targets = tuple(map(_target, body["targets"]))
    if len(targets) > MAX_TARGETS:
        raise ValueError(f"{len(targets)} targets are too many")
    own = body["address"]
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
    """Client for a gateway's configuration and its confirmation; each call is tried once.

    Parameters
    ----------
    client
        Client with the token of this gateway's agent, and a pace without patience.
    gateway
        Name of the gateway.
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
                str(body["version"]),
                self._config(body["network"]),
                dict(body["active"]),
                dict(body["applied"]),
                dict(body["serving"]),
            )
        except (RejectedError, TypeError, ValueError) as error:
            raise AnswerError(f"{self.client.target.server} returned an invalid configuration: {error}") from None

    def confirm(self, wanted: Wanted) -> None:
        """Confirm that a configuration is applied."""
        body = {"version": wanted.version, "active": dict(wanted.active)}
        send(self.client, agents.applied(self._gateway, body))

    def _config(self, network: object) -> NetworkConfig:
        """Parse a network configuration; return the previous result for an unchanged one."""
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
        As in `seaway.client.errors`; also for an answer that is not HTTP. ``retry_after_s`` is 0 if the server did not
        answer.
    """
    try:
        return client.send(call)
    except UnavailableError as error:
        if isinstance(error.__cause__, httpx.TransportError):
            raise UnavailableError(str(error), retry_after_s=0) from None
        raise
    except httpx.HTTPError as error:
        raise AnswerError(f"{client.target.server} returned an invalid answer: {error}") from None
