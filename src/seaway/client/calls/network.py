"""Calls about the network between gateways, and its agents."""

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
    """Return the configuration of the network, in the form that `put_network` accepts."""
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
    """Remove the network: measurements stop, and the clusters' own data about links are used again."""
    return replace(send("DELETE", "/network", Nothing(), repeatable=False), query={"force": force or None})


def agents() -> Call[AgentList]:
    """List the agents of all gateways: their states, and results of their reports."""
    return get("/network/agents", AGENTS)


def gateway(name: str) -> Call[GatewayConfigOut]:
    """Return the paths for traffic from a gateway, and those that it has applied."""
    return get(f"/network/gateways/{part(name)}", WANTED)


def worst_links(
    figure: str, *, gateway: str = "", cluster: str = "", site: str = "", limit: int | None = None
) -> Call[LinkList]:
    """List links at a gateway, a cluster and a user site, or all, the worst by a figure first.

    Parameters
    ----------
    figure
        latency, jitter, loss, bandwidth, free: bandwidth that can still be reserved, or change: the figure that is
        furthest above the usual one, in percent of it.
    limit
        Limit of links; None for all.
    """
    ends = {"gateway": gateway or None, "cluster": cluster or None, "site": site or None}
    return get("/fleet/links", LINKS, {**ends, "worst": figure, "limit": limit})


def link_matrix(figure: str) -> Call[LinkMatrix]:
    """Return one figure of all links, from each gateway to each other; figures as in `worst_links`."""
    return get("/fleet/links/matrix", MATRIX, {"figure": figure})


def targets(gateway: str, known: Known | None = None) -> Call[dict[str, Any]]:
    """Return the probe targets of a gateway's agent."""
    return get("/network/targets", Data(), {"gateway": gateway}, known)


def report(body: Mapping[str, Any]) -> Call[None]:
    """Send measurements of a gateway's agent. The server refuses duplicates, so that retries are safe."""
    return send("POST", "/network/reports", Nothing(), body)


def wanted(gateway: str, known: Known | None = None) -> Call[dict[str, Any]]:
    """Return the configuration of a gateway and the paths for its traffic."""
    return get(f"/network/gateways/{part(gateway)}", Data(), known=known)


def applied(gateway: str, body: Mapping[str, Any]) -> Call[None]:
    """Confirm the paths that a gateway has applied."""
    return send("POST", f"/network/gateways/{part(gateway)}/applied", Nothing(), body)
