"""Conversion between routes and the netlink messages of pyroute2.

The segments in a routing header are in reverse order, last hop first (RFC 8754, section 2). pyroute2 uses this order;
`ip` uses the opposite one.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from socket import AF_INET, AF_INET6
from typing import Any

from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

from seaway.domain.gateways import Behaviour, Prefix
from seaway.steering.state import (
    METRIC,
    PROTOCOL,
    ForeignRoute,
    Hop,
    PathRoute,
    Route,
    SidRoute,
    UnknownRoute,
    metric_of,
)

SEG6, SEG6_LOCAL = 5, 7
"""Kinds of encapsulation (linux/lwtunnel.h)."""

ENCAP_MODE = 1
"""Mode that encapsulates the whole packet (linux/seg6_iptunnel.h)."""

ACTIONS = {1: Behaviour.END, 2: Behaviour.END_X, 5: Behaviour.END_DX6, 6: Behaviour.END_DX4, 7: Behaviour.END_DT6}
"""Behaviours of SIDs by number (linux/seg6_local.h)."""

BY_DESTINATION = "0.0.0.0"
"""Next hop of an End.DX4 for which the kernel looks up the destination of the packet in the main table, as End.DT4."""

LINK, ANY_SCOPE = 253, 255
"""Scopes of IPv4 routes to an interface, and of a route that is removed (linux/rtnetlink.h)."""

Message = Any
"""A netlink message, or a part of one, in pyroute2's form."""


def written(route: SidRoute | PathRoute, indices: Mapping[str, int]) -> dict[str, Any]:
    """Return a route in pyroute2's form; `indices` maps interface names to indexes."""
    oif, found = indices[route.interface], key(route)
    if found["family"] == AF_INET:
        found["scope"] = LINK
    if isinstance(route, SidRoute):
        return {**found, "oif": oif, "encap": _action(route)}
    if len(route.hops) == 1:
        return {**found, "oif": oif, "encap": _encap(route.hops[0])}
    hops = [_neighbour(hop, oif) for hop in route.hops]
    return {**found, "multipath": hops}


def key(route: Route) -> dict[str, Any]:
    """Return the fields that identify a route of Seaway."""
    found = {"family": AF_INET6, "dst": str(route.destination), "proto": PROTOCOL, "priority": metric_of(route)}
    if isinstance(route.destination, IPv4Network):
        return {**found, "family": AF_INET, "scope": ANY_SCOPE}
    return found


def read_own(message: Message, names: Mapping[int, str]) -> Route:
    """Decode a route of Seaway; `names` maps interface indexes to names."""
    destination, metric = _destination(message), message.get_attr("RTA_PRIORITY") or 0
    if metric != METRIC:
        return UnknownRoute(destination, f"a route of metric {metric}", metric)
    try:
        return _known(message, destination, names)
    except (KeyError, ValueError, TypeError, AttributeError):
        return UnknownRoute(destination, "a route of another kind")


def read_foreign(message: Message, names: Mapping[int, str]) -> ForeignRoute:
    """Decode a route of another user. If it has several hops, read only the first."""
    hops = message.get_attr("RTA_MULTIPATH") or []
    via = (hops[0] if hops else message).get_attr("RTA_GATEWAY")
    index = hops[0]["oif"] if hops else message.get_attr("RTA_OIF")
    return ForeignRoute(
        _destination(message),
        message.get_attr("RTA_PRIORITY") or 0,
        message["proto"],
        names.get(index, ""),
        None if via is None else ip_address(via),
    )


def _destination(message: Message) -> Prefix:
    if message["family"] == AF_INET:
        return IPv4Network((message.get_attr("RTA_DST") or "0.0.0.0", message["dst_len"]))
    return IPv6Network((message.get_attr("RTA_DST") or "::", message["dst_len"]))


def _known(message: Message, destination: Prefix, names: Mapping[int, str]) -> Route:
    several = message.get_attr("RTA_MULTIPATH")
    if several:
        (interface,) = {names[each["oif"]] for each in several}
        hops = sorted((_hop(each, each["hops"] + 1) for each in several), key=lambda hop: hop.segments)
        return PathRoute(destination, interface, tuple(hops))
    interface = names[message.get_attr("RTA_OIF")]
    if message.get_attr("RTA_ENCAP_TYPE") == SEG6_LOCAL and isinstance(destination, IPv6Network):
        return _sid(message.get_attr("RTA_ENCAP"), destination, interface)
    return PathRoute(destination, interface, (_hop(message, 1),))


def _sid(encap: Message, destination: IPv6Network, interface: str) -> SidRoute:
    behaviour = ACTIONS[encap.get_attr("SEG6_LOCAL_ACTION")]
    if behaviour is Behaviour.END_DX4:
        next_hop = encap.get_attr("SEG6_LOCAL_NH4")
        if next_hop == BY_DESTINATION:
            return SidRoute(destination, interface, Behaviour.END_DT4)
        return SidRoute(destination, interface, behaviour, next_hop=IPv4Address(next_hop))
    next_hop = encap.get_attr("SEG6_LOCAL_NH6")
    neighbour = None if next_hop is None else IPv6Address(next_hop)
    if behaviour is not Behaviour.END_DT6:
        return SidRoute(destination, interface, behaviour, next_hop=neighbour)
    return SidRoute(destination, interface, behaviour, _number(encap.get_attr("SEG6_LOCAL_TABLE")), neighbour)


def _number(table: Message) -> int:
    return int(table["value"] if isinstance(table, Mapping) else table)


def _hop(message: Message, weight: int) -> Hop:
    header = message.get_attr("RTA_ENCAP").get_attr("SEG6_IPTUNNEL_SRH")
    if message.get_attr("RTA_ENCAP_TYPE") != SEG6 or header["encapmode"] != ENCAP_MODE:
        raise ValueError
    via = message.get_attr("RTA_GATEWAY")
    segments = tuple(map(IPv6Address, reversed(header["segs"])))
    return Hop(segments, weight, None if via is None else IPv6Address(via))


def _action(route: SidRoute) -> dict[str, Any]:
    if route.behaviour in {Behaviour.END_DT4, Behaviour.END_DX4}:
        return {"type": "seg6local", "action": "End.DX4", "nh4": str(route.next_hop or BY_DESTINATION)}
    encap: dict[str, Any] = {"type": "seg6local", "action": route.behaviour.value}
    if route.behaviour is Behaviour.END_DT6:
        encap["table"] = route.table
    if route.next_hop is not None:
        encap["nh6"] = str(route.next_hop)
    return encap


def _neighbour(hop: Hop, oif: int) -> dict[str, Any]:
    """Return one of several hops in pyroute2's long form. The short form silently omits the segments."""
    encap = _encap(hop)
    attributes = [
        *([["RTA_GATEWAY", str(hop.via)]] if hop.via else []),
        ["RTA_ENCAP_TYPE", SEG6],
        ["RTA_ENCAP", {"attrs": [["SEG6_IPTUNNEL_SRH", {"mode": encap["mode"], "segs": encap["segs"]}]]}],
    ]
    return {"oif": oif, "flags": 0, "hops": hop.weight - 1, "attrs": attributes}


def _encap(hop: Hop) -> dict[str, Any]:
    return {"type": "seg6", "mode": "encap", "segs": [str(each) for each in reversed(hop.segments)]}


FAMILY = "SEG6"
VERSION = 1
SET, GET = 3, 4
NO_SUCH_FAMILY = 2
"""ENOENT."""


class GenericMessage(genlmsg):  # type: ignore[misc]  # pyroute2 ships no types
    """A message of the family, with only the address attribute."""

    nla_map = (("SEG6_ATTR_UNSPEC", "none"), ("SEG6_ATTR_DST", "ip6addr"))


def read() -> str | None:
    """Return the tunnel source, ``::`` if the kernel selects it; None if the kernel has no such setting."""
    try:
        reply = _ask(GET, None)
    except NetlinkError as error:
        if error.code == NO_SUCH_FAMILY:
            return None
        raise
    return str(IPv6Address(reply))


def write(address: str) -> None:
    """Set the tunnel source."""
    _ask(SET, address)


def _ask(command: int, address: str | None) -> str:
    with GenericNetlinkSocket() as socket:
        socket.bind(FAMILY, GenericMessage)
        message = GenericMessage()
        message["cmd"], message["version"] = command, VERSION
        if address is not None:
            message["attrs"] = [("SEG6_ATTR_DST", address)]
        replies = socket.nlm_request(message, msg_type=socket.prid, msg_flags=NLM_F_REQUEST | NLM_F_ACK)
        found = [reply.get_attr("SEG6_ATTR_DST") for reply in replies]
    return next((each for each in found if each), "::")
