"""Gateways, hosts and a core router in network namespaces, with captures of the packets between them."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from lab import netns, wires
from lab.plan import CORE, LabPlan
from seaway.adapters.srv6.machine import Machine, inside
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import NetworkConfig
from seaway.steering.state import desired

NO_DAD = {"ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0"}
ROUTER = {"ipv6/conf/all/forwarding": "1"}

ICMP6_FILTER = 1
ECHO_REQUEST, ECHO_REPLY = 128, 129
ROUTING_HEADER, SEGMENT_ROUTING = 43, 4
IPV6_IN_IPV6, IPV4_IN_IPV6 = 41, 4
ETH_P_ALL, ETH_P_IPV6 = 3, 0x86DD
RT_SCOPE_LINK = 253
SO_RCVBUFFORCE = 33


class World:
    """Three gateways ``gw-1`` to ``gw-3``, hosts ``host-N`` behind them, and a core that routes locators only.

    Parameters
    ----------
    folder
        Folder for the former settings.
    """

    def __init__(self, folder: Path) -> None:
        self.plan = LabPlan(f"t{os.getpid()}", 3)
        self.folder = folder

    def build(self) -> None:
        """Create all namespaces and links, without SRv6.

        Raises
        ------
        RejectedError
            If this machine lacks a requirement.
        """
        if os.geteuid() != 0:
            raise RejectedError("network namespaces take root")
        if not Path("/proc/sys/net/ipv6/conf/all/seg6_enabled").exists():
            raise RejectedError("this kernel has no SRv6 (CONFIG_IPV6_SEG6_LWTUNNEL)")
        ends: dict[str, list[tuple[wires.End, wires.End]]] = {}
        core = self.plan.namespace(CORE)
        namespaces = [
            replace(each, settings=NO_DAD | (ROUTER if each.name == core else {})) for each in self.plan.namespaces()
        ]
        for each in namespaces:
            try:
                netns.make(each.name)
            except PermissionError:
                raise RejectedError("this container may make no network namespaces") from None
            wires.prepare(each)
        for wire in self.plan.wires():
            wires.connect(wire)
            for end, other in wire.ends:
                ends.setdefault(end.namespace, []).append((end, other))
        for each in namespaces:
            wires.furnish(each, ends[each.name])
        for each in namespaces:
            _wait_for_local_addresses(each.name, len(ends[each.name]))

    def destroy(self) -> None:
        """Remove all namespaces."""
        for place in self.plan.places:
            netns.remove(self.plan.namespace(place))

    def name(self, place: str) -> str:
        """Return the namespace of a machine."""
        return self.plan.namespace(place)

    def machine(self, gateway: str) -> Machine:
        """Return the machine of a gateway."""
        return Machine(self.name(gateway), self.folder)

    def reach(self, network: NetworkConfig, active: Mapping[str, str] | None = None) -> None:
        """Configure all gateways; `active` selects the paths of ``gw-1``."""
        for each in network.gateways:
            state = desired(network, each.name, active if each.name == "gw-1" else None)
            self.machine(each.name).converge(state)


@dataclass(frozen=True, slots=True)
class Seen:
    """An encapsulated packet on a wire of the core.

    Attributes
    ----------
    wire
        Interface of the core.
    out
        True if the core sent it, False if it received it.
    to
        Its next destination.
    left
        Number of remaining segments.
    segments
        In the order of travel.
    inner
        Destination of the inner packet.
    """

    wire: str
    out: bool
    source: str
    to: str
    left: int
    segments: tuple[str, ...]
    inner: str


@contextmanager
def capture(namespace: str) -> Iterator[list[Seen]]:
    """Collect the encapsulated packets of a namespace while the block runs; the list is complete afterwards."""
    seen: list[Seen] = []
    with inside(namespace):
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    with tap:
        tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        yield seen
        tap.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                packet, (wire, protocol, kind, *_) = tap.recvfrom(65_535)
                out = kind == socket.PACKET_OUTGOING
                if protocol == ETH_P_IPV6 and (read := _wrapped(packet, wire, out=out)):
                    seen.append(read)


def _wrapped(packet: bytes, wire: str, *, out: bool) -> Seen | None:
    """Read an IPv6 packet with a segment routing header (RFC 8754, section 2) and an inner packet."""
    if packet[6] != ROUTING_HEADER or packet[42] != SEGMENT_ROUTING:
        return None
    following, length, _, left, last = packet[40:45]
    segments = [str(IPv6Address(packet[48 + 16 * at : 64 + 16 * at])) for at in range(last + 1)]
    assert length == 2 * len(segments)
    inner = packet[48 + 16 * len(segments) :]
    if following == IPV4_IN_IPV6:
        destination = str(IPv4Address(inner[16:20]))
    else:
        assert following == IPV6_IN_IPV6
        destination = str(IPv6Address(inner[24:40]))
    source, to = (str(IPv6Address(packet[at : at + 16])) for at in (8, 24))
    return Seen(wire, out, source, to, left, tuple(reversed(segments)), destination)


class Ping:
    """Echo requests from a namespace.

    Parameters
    ----------
    namespace
        The namespace that sends them.
    target
        Their destination.
    """

    def __init__(self, namespace: str, target: str) -> None:
        with inside(namespace):
            self._socket = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        passed = bytearray(b"\xff" * 32)
        passed[ECHO_REPLY // 8] &= ~(1 << ECHO_REPLY % 8)
        self._socket.setsockopt(socket.IPPROTO_ICMPV6, ICMP6_FILTER, bytes(passed))
        self._target = target
        self.sent = 0
        self.answered: set[int] = set()

    def send(self) -> None:
        """Send one request."""
        request = struct.pack("!BBHHH", ECHO_REQUEST, 0, 0, os.getpid() & 0xFFFF, self.sent)
        self._socket.sendto(request, (self._target, 0))
        self.sent += 1

    def receive(self, wait_s: float) -> None:
        """Read the available answers, and wait for the others up to `wait_s`."""
        ends_s = time.monotonic() + wait_s
        while len(self.answered) < self.sent:
            if not select.select([self._socket], [], [], max(0.0, ends_s - time.monotonic()))[0]:
                return
            self.answered.add(struct.unpack("!BBHHH", self._socket.recv(100)[:8])[4])

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def answered(namespace: str, target: str) -> bool:
    """Report whether one of a few echo requests is answered."""
    ping = Ping(namespace, target)
    try:
        ping.send()
        ping.receive(1.0)
        return bool(ping.answered)
    finally:
        ping.close()


def returned(near: str, far: str, address: str) -> bool:
    """Report whether an IPv4 datagram to an address of another namespace arrives, and its answer as well."""
    with inside(far):
        there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        there.bind((address, 0))
    with inside(near):
        here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with there, here:
        for each in (there, here):
            each.settimeout(2.0)
        with suppress(TimeoutError):
            here.sendto(b"ask", there.getsockname())
            asked, sender = there.recvfrom(100)
            there.sendto(asked + b"ed", sender)
            return here.recv(100) == b"asked"
    return False


def _wait_for_local_addresses(namespace: str, links: int) -> None:
    """Wait until each link has its local address, which the kernel adds up to a second after the link is up."""
    from pyroute2 import IPRoute

    with inside(namespace), IPRoute() as netlink:
        while len(netlink.get_addr(family=socket.AF_INET6, scope=RT_SCOPE_LINK)) < links:
            time.sleep(0.01)


def everything(namespace: str) -> dict[str, Any]:
    """Return all routes, rules, addresses, interfaces and IP settings of a machine."""
    from pyroute2 import IPRoute

    from seaway.adapters.srv6 import routes as tunnel_source

    with inside(namespace), IPRoute() as netlink:
        settings = [each for ip in ("ipv6", "ipv4") for each in Path(f"/proc/sys/net/{ip}/conf").glob("*/*")]
        families = socket.AF_INET6, socket.AF_INET
        return {
            "routes": sorted(_plain(each) for family in families for each in netlink.get_routes(family=family)),
            "rules": sorted(map(_plain, netlink.get_rules(family=socket.AF_INET6))),
            "addresses": sorted(map(_plain, netlink.get_addr())),
            "links": sorted((link.get_attr("IFLA_IFNAME"), link.get_attr("IFLA_MTU")) for link in netlink.get_links()),
            "settings": {str(each): _read(each) for each in settings},
            "tunnels": tunnel_source.read(),
        }


def _plain(message: Any) -> str:  # noqa: ANN401  # a netlink message
    passing = {"RTA_CACHEINFO", "IFA_CACHEINFO"}
    attributes: Sequence[Any] = [each for each in message["attrs"] if each[0] not in passing]
    return repr([attributes, [message.get(name) for name in ("dst_len", "proto", "table", "type", "scope", "flags")]])


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # some are write-only, or not set
        return ""
