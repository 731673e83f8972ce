"""The control plane as an agent sees it, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from seaway.application.ports.probing import Target
from seaway.application.ports.reporting import Assignment, Report
from seaway.client import once
from seaway.client.call import Known
from seaway.client.calls import agents
from seaway.client.errors import AnswerError
from seaway.client.sync import Client
from seaway.domain.gateways import Method, ProbeConfig

MOST_TARGETS = 10_000
MOST_COUNT = 1_000


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
        """Return what is to be probed now.

        Raises
        ------
        AnswerError
            When what comes back makes no sense.
        """
        body = once.send(self.client, agents.targets(self._gateway, self._known))
        try:
            return _assignment(body)
        except (KeyError, TypeError, ValueError) as error:
            raise AnswerError(f"{self.client.target.server} says nothing that can be probed: {error}") from None

    def own_address(self) -> IPv6Address | IPv4Address:
        """Return the address that this gateway is to have; raises as `assignment`."""
        body = once.send(self.client, agents.wanted(self._gateway))
        try:
            (own,) = (each for each in body["network"]["gateways"] if each["name"] == self._gateway)
            return ip_address(own["address"])
        except (KeyError, TypeError, ValueError) as error:
            raise AnswerError(f"{self.client.target.server} does not say where this gateway is: {error}") from None

    def take(self, report: Report) -> None:
        """Bring a report."""
        once.send(self.client, agents.report(report_body(report)))


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
    how = ProbeConfig(float(probe["every_s"]), int(probe["count"]), float(probe["timeout_s"]))
    if not (0 < how.every_s < 1e6 and 0 < how.count <= MOST_COUNT and 0 < how.timeout_s < 1e6):
        raise ValueError(f"{probe} is out of range")
    targets = tuple(map(_target, body["targets"]))
    if len(targets) > MOST_TARGETS:
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
