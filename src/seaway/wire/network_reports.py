"""What comes from gateways: reports of what their agents measured, and which paths they have written."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from seaway.application.network.rounds import Reported
from seaway.application.ports.reporting import Report
from seaway.wire.addresses import GatewayName
from seaway.wire.fields import LINE_PATTERN, LONGEST_BOUND_NS
from seaway.wire.message import Incoming

MOST_ROUNDS = 2000
MOST_PROBES = 1000
MOST_PATHS = 500
LARGEST = 2**63 - 1

Moment = Annotated[int, Field(ge=0, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Duration = Annotated[int, Field(ge=0, le=LONGEST_BOUND_NS)]
Probes = Annotated[int, Field(ge=0, le=MOST_PROBES)]
PathName = Annotated[str, StringConstraints(pattern=LINE_PATTERN, max_length=253)]

EXAMPLE: dict[str, Any] = {
    "gateway": "gw-1",
    "started_ns": 1_795_255_200_000_000_000,
    "number": 17,
    "dropped": 0,
    "rounds": [
        {
            "target": "gw-2",
            "path": "",
            "at_ns": 1_795_255_370_000_000_000,
            "sent": 5,
            "received": 4,
            "latency_ns": 9_800_000,
            "jitter_ns": 120_000,
            "discarded": 0,
        },
        {"target": "gw-3", "path": "via-2", "at_ns": 1_795_255_370_400_000_000, "sent": 5, "received": 0},
    ],
}


class RoundIn(Incoming):
    """A round of probes."""

    target: GatewayName
    """The gateway that was probed."""
    path: PathName = ""
    """Along which path; empty for the way that routes lead."""
    at_ns: Moment
    """When it began, by the agent's clock, nanoseconds since 1970."""
    sent: Annotated[int, Field(ge=1, le=MOST_PROBES)]
    """Probes."""
    received: Probes
    """How many of them were answered."""
    latency_ns: Duration | None = None
    """Mean round-trip time of those that were answered; null when none was."""
    jitter_ns: Duration = 0
    """The largest distance of one from the mean."""
    discarded: Probes = 0
    """Answers with an impossible time, which count neither as sent nor as answered."""


class ReportIn(Incoming):
    """What a gateway's agent measured."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    gateway: GatewayName
    """Whose agent reports."""
    started_ns: Moment
    """When the agent started, by its clock, nanoseconds since 1970."""
    number: Annotated[int, Field(ge=1, le=LARGEST)]
    """Which of its reports since then this is: with `started_ns` it is above that of the last one taken."""
    dropped: Count = 0
    """Rounds that it gave up since its last report, because too many waited."""
    rounds: Annotated[list[RoundIn], Field(max_length=MOST_ROUNDS)]
    """Rounds, old to new."""

    def report(self) -> Report:
        """Return what Seaway works with."""
        rounds = tuple(
            Reported(
                each.target,
                each.path,
                each.at_ns,
                each.sent,
                each.received,
                each.latency_ns,
                each.jitter_ns,
                each.discarded,
            )
            for each in self.rounds
        )
        return Report(self.gateway, self.started_ns, self.number, self.dropped, rounds)


class AppliedIn(Incoming):
    """Which paths a gateway has written."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": "3", "active": {"gw-2": "direct"}}]})

    version: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]
    """Of the network that it goes by."""
    active: Annotated[dict[GatewayName, PathName], Field(max_length=MOST_PATHS)]
    """Path by target."""
