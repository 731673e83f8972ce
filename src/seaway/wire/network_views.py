"""The network between gateways, and its agents, as they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from seaway.application.network.agents import AgentView
from seaway.application.network.configuration import Plan
from seaway.application.ports.agent import Assignment, Report, Reported, Target
from seaway.wire.fields import LINE_PATTERN, LONGEST_BOUND_NS, GatewayName
from seaway.wire.message import Incoming, Shown
from seaway.wire.times import moment


class NetworkOut(Shown):
    """The network between gateways, as it is given."""

    probe: dict[str, Any]
    mesh: bool
    gateways: list[dict[str, Any]]
    paths: list[dict[str, Any]]


class NetworkPlan(Shown):
    """Effect of a change of the network."""

    version: str
    """Version of the network after it. Send it in `If-Match` to change exactly this version."""
    changes: list[str]
    """Differences; empty if nothing changes."""
    impact: list[str]
    """Losses for running jobs if the change is forced."""


class ProbeOut(Shown):
    """Measurement of links."""

    interval_s: float
    """Time between the starts of two rounds."""
    count: int
    """Probes to each target in a round."""
    timeout_s: float
    """Timeout of an answer."""


class TargetOut(Shown):
    """A user who is to be probed."""

    gateway: str
    address: str
    method: Literal["icmp", "udp", "tcp"]
    port: int
    """0 for icmp."""
    path: str
    """Name of the path that is measured; empty for the way that routes lead."""
    segments: list[str]
    """SIDs on the way there, before the address itself."""


class TargetList(Shown):
    """Targets of the agent of a gateway."""

    gateway: str
    address: str
    """The gateway's own, which probes are to come from."""
    version: str
    """Version of the network."""
    probe: ProbeOut
    reflect: int
    """The port on which it sends back others' datagrams; 0 for none."""
    targets: list[TargetOut]


class AgentOut(Shown):
    """The agent of a gateway."""

    gateway: str
    state: Literal["reporting", "silent", "never"]
    last_report_at: str | None
    age_s: float | None
    """Seconds since its latest report."""
    started_at: str | None
    """Start time, by its own clock."""
    address: str
    """Source address of its latest report."""
    reports: int
    rounds: int
    dropped: int
    """Rounds that it gave up because too many waited."""
    discarded: int
    """Impossible answers that it passed over."""
    refused: int
    """Reports of it that were refused since the control plane started."""
    trouble: str
    """Reason why the latest report was rejected; empty if it was accepted."""


class AgentList(Shown):
    """The agents of all gateways."""

    version: str
    """Version of the network."""
    agents: list[AgentOut]


class GatewayConfigOut(Shown):
    """Configuration of a gateway."""

    gateway: str
    version: str
    """Version of the network. Return it when it is applied."""
    network: NetworkOut
    active: dict[str, str]
    """The path that traffic has to take, by target; pairs that share traffic over all paths are not among them."""
    applied: dict[str, str]
    """The path that the gateway said last that it has written, by target."""


def plan_fields(plan: Plan) -> dict[str, Any]:
    """Show what a change comes to as the fields of `NetworkPlan`."""
    return {"version": str(plan.version), "changes": plan.changes, "impact": plan.impact}


def target_list_fields(gateway: str, todo: Assignment) -> dict[str, Any]:
    """Show what an agent has to do as the fields of `TargetList`."""
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
    """Show an agent as the fields of `AgentOut`."""
    known = view.known
    return {
        "gateway": view.gateway,
        "state": view.state.value,
        "last_report_at": moment(known.at_ns) if known else None,
        "age_s": None if view.age_s is None else round(view.age_s, 3),
        "started_at": moment(known.started_ns) if known else None,
        "address": known.address if known else "",
        "reports": known.reports if known else 0,
        "rounds": known.rounds if known else 0,
        "dropped": known.dropped if known else 0,
        "discarded": known.discarded if known else 0,
        "refused": view.refused,
        "trouble": view.trouble,
    }


def wanted_fields(
    gateway: str, network: object, version: int, active: Mapping[str, str], applied: Mapping[str, str]
) -> dict[str, Any]:
    """Show what a gateway must have as the fields of `GatewayConfigOut`; `network` is the document, in any form."""
    return {
        "gateway": gateway,
        "version": str(version),
        "network": network,
        "active": active,
        "applied": applied,
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
    """The gateway that was probed."""
    path: PathName = ""
    """Along which path; empty for the way that routes lead."""
    at_ns: Moment
    """Start time, by the agent's clock, nanoseconds since 1970."""
    sent: Annotated[int, Field(ge=1, le=MAX_PROBES)]
    """Probes."""
    received: Probes
    """Number of answered probes."""
    latency_ns: Duration | None = None
    """Mean round-trip time of those that were answered; null when none was."""
    jitter_ns: Duration = 0
    """The largest distance of one from the mean."""
    discarded: Probes = 0
    """Answers with an impossible time, which count neither as sent nor as answered."""


class ReportIn(Incoming):
    """Measurements of a gateway's agent."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    gateway: GatewayName
    """Gateway of the agent."""
    started_ns: Moment
    """Start of the agent, by its clock, nanoseconds since 1970."""
    number: Annotated[int, Field(ge=1, le=LARGEST)]
    """Number of the report since then. With `started_ns`, it must be above that of the last accepted report."""
    dropped: Count = 0
    """Rounds that it gave up since its last report, because too many waited."""
    rounds: Annotated[list[RoundIn], Field(max_length=MAX_ROUNDS)]
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
    """Paths that a gateway has applied."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": "3", "active": {"gw-2": "direct"}}]})

    version: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")]
    """Version of the network that it uses."""
    active: Annotated[dict[GatewayName, PathName], Field(max_length=MAX_PATHS)]
    """Path by target."""
