"""Views of the network between gateways and of its agents, and reports of the agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from seaway.application.network.agents import AgentView
from seaway.application.network.configuration import Plan
from seaway.application.ports.agent import Assignment, Report, Reported, Target
from seaway.wire.fields import LINE_PATTERN, LONGEST_BOUND_NS, GatewayName, moment
from seaway.wire.message import Incoming, Shown, fields_of


class NetworkOut(Shown):
    """The network between gateways, as configured."""

    probe: dict[str, Any]
    mesh: bool
    gateways: list[dict[str, Any]]
    paths: list[dict[str, Any]]


class NetworkPlan(Shown):
    """Effect of a change of the network."""

    version: str
    """Version of the network after the change. Send it in `If-Match` to apply exactly this change."""
    changes: list[str]
    """Differences; empty if nothing changes."""
    impact: list[str]
    """Effects on running jobs if the change is forced."""


class ProbeOut(Shown):
    """Measurement of links."""

    interval_s: float
    """Time between the starts of two rounds."""
    count: int
    """Probes to each target in a round."""
    timeout_s: float
    """Time to wait for an answer."""


class TargetOut(Shown):
    """A gateway to probe."""

    gateway: str
    address: str
    method: Literal["icmp", "udp", "tcp"]
    port: int
    """Port; 0 for icmp."""
    path: str
    """Name of the path to measure; empty for the route of the underlying network."""
    segments: list[str]
    """SIDs on the path, without the address of the target."""


class TargetList(Shown):
    """Targets of the agent of a gateway."""

    gateway: str
    address: str
    """Source address of the probes: the gateway's own address."""
    version: str
    """Version of the network configuration."""
    probe: ProbeOut
    reflect: int
    """Port on which the agent returns datagrams of other agents; 0 for none."""
    targets: list[TargetOut]


class AgentOut(Shown):
    """The agent of a gateway."""

    gateway: str
    state: Literal["reporting", "lost", "never"]
    last_report_at: str | None
    age_s: float | None
    """Seconds since the latest report; null without a report."""
    started_at: str | None
    """Start time by the agent's clock."""
    address: str
    """Source address of the latest report."""
    reports: int
    rounds: int
    dropped: int
    """Number of rounds that the agent dropped because its queue was full."""
    discarded: int
    """Number of answers with an impossible time, which the agent ignored."""
    refused: int
    """Number of rejected reports since the start of the control plane."""
    last_error: str
    """Reason why the latest report was rejected; empty if it was accepted."""


class AgentList(Shown):
    """The agents of all gateways."""

    version: str
    """Version of the network configuration."""
    agents: list[AgentOut]
    links: dict[str, int] = Field(default_factory=dict)
    """Number of links by state: measured, stale (no recent round), unknown, or reported by a cluster."""


class GatewayConfigOut(Shown):
    """Configuration of a gateway."""

    gateway: str
    version: str
    """Version of the network configuration. The gateway sends it after it applied the configuration."""
    network: NetworkOut
    active: dict[str, str]
    """Path of the traffic to each target, without pairs that balance traffic over all paths."""
    applied: dict[str, str]
    """Path to each target that the gateway last reported as applied."""
    serving: dict[str, str]
    """Gateway that carries the traffic of each cluster."""


def plan_fields(plan: Plan) -> dict[str, Any]:
    """Return the fields of `NetworkPlan` for a plan."""
    return fields_of(
        NetworkPlan,
        plan,
        version=str(plan.version),
    )


def target_list_fields(gateway: str, todo: Assignment) -> dict[str, Any]:
    """Return the fields of `TargetList` for the assignment of an agent."""
    how = todo.how
    return {
        "gateway": gateway,
        "address": str(todo.own or ""),
        "version": todo.version,
        "probe": {"interval_s": how.interval_s, "count": how.count, "timeout_s": how.timeout_s},
        "reflect": todo.reflect,
        "targets": [_target_fields(each) for each in todo.targets],
    }


def agent_fields(view: AgentView) -> dict[str, Any]:
    """Return the fields of `AgentOut` for an agent."""
    known = view.known
    return fields_of(
        AgentOut,
        view,
        last_report_at=moment(known.at_ns) if known else None,
        age_s=None if view.age_s is None else round(view.age_s, 3),
        started_at=moment(known.started_ns) if known else None,
        address=known.address if known else "",
        reports=known.reports if known else 0,
        rounds=known.rounds if known else 0,
        dropped=known.dropped if known else 0,
        discarded=known.discarded if known else 0,
    )


def wanted_fields(
    gateway: str,
    network: object,
    version: int,
    active: Mapping[str, str],
    applied: Mapping[str, str],
    serving: Mapping[str, str],
) -> dict[str, Any]:
    """Return the fields of `GatewayConfigOut` for a gateway; `network` is the document, in any form."""
    return {
        "gateway": gateway,
        "version": str(version),
        "network": network,
        "active": active,
        "applied": applied,
        "serving": serving,
    }


def _target_fields(target: Target) -> dict[str, Any]:
    return {
        "gateway": target.gateway,
        "address": str(target.address),
        "method": target.method.value,
        "port": target.port,
        "path": target.path,
        "segments": [str(each) for each in target.segments],
    }


MAX_ROUNDS = 2000
MAX_PROBES = 1000
MAX_PATHS = 500
LARGEST = 2**63 - 1

Moment = Annotated[int, Field(ge=0, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Duration = Annotated[int, Field(ge=0, le=LONGEST_BOUND_NS)]
Probes = Annotated[int, Field(ge=0, le=MAX_PROBES)]
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
    """Probed gateway."""
    path: PathName = ""
    """Measured path; empty for the route of the underlying network."""
    at_ns: Moment
    """Start time by the agent's clock, nanoseconds since 1970."""
    sent: Annotated[int, Field(ge=1, le=MAX_PROBES)]
    """Number of probes sent."""
    received: Probes
    """Number of answered probes."""
    latency_ns: Duration | None = None
    """Mean round-trip time of the answered probes; null without answers."""
    jitter_ns: Duration = 0
    """Largest deviation of a round-trip time from the mean."""
    discarded: Probes = 0
    """Number of answers with an impossible time; they count neither as sent nor as received."""


class ReportIn(Incoming):
    """Measurements of a gateway's agent."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    gateway: GatewayName
    """Gateway of the agent."""
    started_ns: Moment
    """Start time of the agent by its clock, nanoseconds since 1970."""
    number: Annotated[int, Field(ge=1, le=LARGEST)]
    """Number of the report since the start, from 1.

    The pair of `started_ns` and `number` has to increase with each report.
    """
    dropped: Count = 0
    """Number of rounds dropped since the last report because the agent's queue was full."""
    rounds: Annotated[list[RoundIn], Field(max_length=MAX_ROUNDS)]
    """Rounds, oldest first."""

    def report(self) -> Report:
        """Return the report."""
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
    """Paths that a gateway has applied."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": "3", "active": {"gw-2": "direct"}}]})

    version: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]
    """Version of the applied network configuration."""
    active: Annotated[dict[GatewayName, PathName], Field(max_length=MAX_PATHS)]
    """Applied path by target."""
