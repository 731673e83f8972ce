"""Calls about the network between gateways, and who measures it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seaway.client.call import Answer, Call, Data, Known, Model, Nothing, get, part, send

if TYPE_CHECKING:
    from seaway.wire.links import LinkList, LinkMatrix
    from seaway.wire.network_views import AgentList, GatewayConfigOut, NetworkOut, NetworkPlan


_WIRE = "seaway.wire.network_views"

NETWORK: Answer[NetworkOut] = Model(_WIRE, "NetworkOut")
PLAN: Answer[NetworkPlan] = Model(_WIRE, "NetworkPlan")
AGENTS: Answer[AgentList] = Model(_WIRE, "AgentList")
WANTED: Answer[GatewayConfigOut] = Model(_WIRE, "GatewayConfigOut")
LINKS: Answer[LinkList] = Model("seaway.wire.links", "LinkList")
MATRIX: Answer[LinkMatrix] = Model("seaway.wire.links", "LinkMatrix")


def network() -> Call[NetworkOut]:
    """Show how the network between gateways is meant to be, as it can be put again."""
    return get("/network", NETWORK)


def put_network(
    network: Mapping[str, Any], *, dry_run: bool = False, force: bool = False, version: str = ""
) -> Call[NetworkPlan]:
    """Replace the configuration of the network; return the differences.

    Parameters
    ----------
    network
        As in the file of `seaway network put`: gateways, paths, probe, mesh.
    dry_run
        Validate the file, and return the differences without applying them.
    force
        Remove gateways even if running jobs use them.
    version
        Version that the change is based on, as returned by `agents` and earlier changes. If it is not the present one,
        the call raises `StaleError`. Empty changes any version.
    """
    call = send("PUT", "/network", PLAN, network, repeatable=not version)
    call = replace(call, query={"dry_run": dry_run or None, "force": force or None})
    return replace(call, headers={**call.headers, "If-Match": f'"{version}"'}) if version else call


def delete_network(*, force: bool = False) -> Call[None]:
    """Remove it: nothing is measured from then on, and what clusters themselves tell of links counts again."""
    return replace(send("DELETE", "/network", Nothing(), repeatable=False), query={"force": force or None})


def agents() -> Call[AgentList]:
    """List the agents of all gateways: which report, which are silent, and what came of their reports."""
    return get("/network/agents", AGENTS)


def gateway(name: str) -> Call[GatewayConfigOut]:
    """Say which paths traffic from a gateway has to take, and which it has written."""
    return get(f"/network/gateways/{part(name)}", WANTED)


def worst_links(
    figure: str, *, gateway: str = "", cluster: str = "", site: str = "", limit: int | None = None
) -> Call[LinkList]:
    """List links at a gateway, a cluster and a user site, or all, the worst by a figure first.

    Parameters
    ----------
    figure
        latency, jitter, loss, bandwidth, or free: bandwidth that can still be promised.
    limit
        So many at most; None for all.
    """
    ends = {"gateway": gateway or None, "cluster": cluster or None, "site": site or None}
    return get("/fleet/links", LINKS, {**ends, "worst": figure, "limit": limit})


def link_matrix(figure: str) -> Call[LinkMatrix]:
    """Show one figure of all links, from each gateway to each other; figures as in `worst_links`."""
    return get("/fleet/links/matrix", MATRIX, {"figure": figure})


def targets(gateway: str, known: Known | None = None) -> Call[dict[str, Any]]:
    """Say what a gateway's agent has to measure."""
    return get("/network/targets", Data(), {"gateway": gateway}, known)


def report(body: Mapping[str, Any]) -> Call[None]:
    """Bring what a gateway's agent measured; a second time it is refused, so that it can be sent again."""
    return send("POST", "/network/reports", Nothing(), body)


def wanted(gateway: str, known: Known | None = None) -> Call[dict[str, Any]]:
    """Say how a gateway is to be, and which paths traffic from it takes."""
    return get(f"/network/gateways/{part(gateway)}", Data(), known=known)


def applied(gateway: str, body: Mapping[str, Any]) -> Call[None]:
    """Confirm which paths a gateway has written."""
    return send("POST", f"/network/gateways/{part(gateway)}/applied", Nothing(), body)
