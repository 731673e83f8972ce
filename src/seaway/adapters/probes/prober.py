"""Rounds of probes over real sockets."""

from __future__ import annotations

import errno
import os
import secrets
import select
import time
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address
from threading import Lock

from seaway.adapters.probes.channel import Channel, ProbePath, SocketChannel, probe_path
from seaway.adapters.probes.connections import ConnectionChannel
from seaway.adapters.probes.sockets import Address, Namespaced, open_icmp, open_namespace, open_udp
from seaway.application.ports.agent import Target
from seaway.domain.gateways import Method, ProbeConfig
from seaway.probing import packets
from seaway.probing.packets import PAYLOAD_BYTES, SECRET_BYTES
from seaway.probing.rounds import BURST, MIN_PROBES, Arrival, OpenRound, Pace, Round


class DatagramChannel(SocketChannel):
    """Channel for UDP over IPv6 or IPv4, from one socket to any number of targets.

    Parameters
    ----------
    version
        IP version: 4 or 6.
    source
        Local address of that version; None for the address that the routes select.
    """

    def __init__(self, version: int, source: Address | None) -> None:
        super().__init__(open_udp(version, source, 0), packets.DATAGRAM_BYTES + 1)

    def send(self, path: ProbePath, probe: int, secret: bytes) -> int:
        """Send a datagram."""
        self._set_routing_header(path)
        question = packets.encode_question(probe, secret)
        at_ns = self._departures.now_ns(question[-PAYLOAD_BYTES:])
        self._socket.sendto(question, path.address)
        return at_ns

    def receive(self) -> list[Arrival]:
        """Return the available answers."""
        arrivals, departures = [], self._departures
        departures.read()
        for packet, came_ns in self._inbox.read():
            answer = packets.decode_answer(packet)
            if answer:
                aside_ns = answer.dwell_ns + departures.late_ns(packet[-PAYLOAD_BYTES:])
                arrivals.append(Arrival(answer.probe, answer.secret, came_ns, aside_ns))
        return arrivals


_PACKET_BYTES = 128
"""Buffer size, above the maximum size of an answer: 60 bytes of an IPv4 header, and 64 of the message."""
_arrival = Arrival._make  # three times as fast as a call with positional arguments


class EchoChannel(SocketChannel):
    """Channel for ICMPv6 or ICMP.

    Parameters
    ----------
    version
        IP version: 4 or 6.
    source
        Local address of that version; None for the address that the routes select.
    """

    def __init__(self, version: int, source: Address | None) -> None:
        self._identifier = secrets.randbelow(1 << 16)
        super().__init__(open_icmp(version, source, self._identifier), _PACKET_BYTES)
        self._echo = packets.V6 if version == 6 else packets.V4
        self._has_ip_header = version == 4

    def send(self, path: ProbePath, probe: int, secret: bytes) -> int:
        """Send an echo request."""
        self._set_routing_header(path)
        carried = packets.encode_payload(probe, secret)
        packet = packets.encode_request(self._echo, self._identifier, probe, carried)
        at_ns = self._departures.now_ns(carried)
        self._socket.sendto(packet, path.address)
        return at_ns

    def receive(self) -> list[Arrival]:
        """Return the available echo replies."""
        arrivals, departures = [], self._departures
        departures.read()
        for packet, came_ns in self._inbox.read():
            message = packets.without_ip_header(packet) if self._has_ip_header else packet
            brought = packets.decode_reply(self._echo, message)
            marked = packets.decode_payload(brought) if brought else None
            if brought and marked:
                late_ns = departures.late_ns(brought) if departures.watching else 0
                arrivals.append(_arrival((*marked, came_ns, late_ns)))
        return arrivals


_NS = 1_000_000_000
_NS_IN_MS = 1_000_000
_TRANSIENT_ERRORS = {errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""Errors for a temporary lack of resources on this machine. They do not concern the path to a target."""
_METHODS: dict[Method, Callable[[int, Address | None], Channel]] = {
    Method.ICMP: EchoChannel,
    Method.UDP: DatagramChannel,
    Method.TCP: ConnectionChannel,
}

Channels = dict[tuple[Method, int], Channel]


def open_prober(*sources: IPv6Address | IPv4Address, netns: str = "") -> SocketProber:
    """Open all sockets and namespaces that require a privilege. Probing itself requires none.

    Raw sockets require CAP_NET_RAW, and a namespace requires CAP_SYS_ADMIN. With CAP_NET_ADMIN, receive buffers may
    exceed the system's limit. The caller must drop privileges for all threads, as `os.setresuid` does.

    Parameters
    ----------
    sources
        Local address, or one for each IP version. Without an address, the routes select one.
    netns
        Name of the network namespace to probe from; the process itself does not enter it.

    Raises
    ------
    RejectedError
        When the namespace or an address does not exist, or a privilege is missing.
    """
    where = open_namespace(netns)
    try:
        return SocketProber(where, where.call(lambda: _open({each.version: each for each in sources})))
    except BaseException:
        where.close()
        raise


class SocketProber:
    """Prober with all methods. It runs in the calling thread, or in the thread of the namespace."""

    def __init__(self, where: Namespaced, channels: Channels) -> None:
        self.place = where
        """Namespace in which it creates sockets."""
        self._channels = channels
        self._closed = False
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._probing = Lock()
        self._targets: tuple[Target, ...] = ()
        self._ways: list[tuple[Channel | None, ProbePath]] = []

    def probe(self, targets: Sequence[Target], how: ProbeConfig, spread_s: float) -> Sequence[Round]:
        """Probe every target and wait for the last answer. If the prober is closed, return the results so far."""
        with self._probing:
            if not targets or self._closed:
                return tuple(Round(0, ()) for _ in targets)
            return self.place.call(lambda: self._probe(targets, how, round(spread_s * _NS)))

    def close(self) -> None:
        """End a round that runs in another thread, and close the sockets."""
        self._closed = True
        os.eventfd_write(self._stop, 1)
        with self._probing:
            self.place.close()
            for channel in self._channels.values():
                channel.close()
            os.close(self._stop)

    def _probe(self, targets: Sequence[Target], how: ProbeConfig, spread_ns: int) -> Sequence[Round]:
        if self._targets != tuple(targets):  # most rounds have the same targets as the previous one
            self._targets, self._ways = tuple(targets), [self._way(target) for target in targets]
        ways = self._ways
        used = list(dict.fromkeys(channel for channel, _ in ways if channel is not None))
        timeout_ns = round(how.timeout_s * _NS)
        secrets = os.urandom(SECRET_BYTES * len(targets) * how.count)
        opened = OpenRound(len(targets), how.count, timeout_ns, secrets, _offset_ns())
        for channel in used:
            channel.begin(opened.probes)
        self._send(opened, ways, used, spread_ns, spread_ns + timeout_ns)
        poll = self._poll(used)
        while opened.outstanding and not self._closed:
            pause_ns = opened.deadline_ns - time.monotonic_ns()
            poll.poll(max(pause_ns, 0) / _NS_IN_MS)
            _receive(opened, used)
            if pause_ns <= 0:
                break
        for channel in used:
            channel.reset()
        return opened.close()

    def _send(
        self,
        opened: OpenRound,
        ways: Sequence[tuple[Channel | None, ProbePath]],
        used: Sequence[Channel],
        spread_ns: int,
        longest_ns: int,
    ) -> None:
        """Send all probes, and read answers in between.

        Mark a probe as unsent if it cannot be sent within `longest_ns`.
        """
        prompt = [channel for channel in used if channel.prompt]
        burst = 1 if prompt or len(ways) <= MIN_PROBES else min(BURST, len(ways))  # a burst has no target twice
        pace = Pace(opened.probes, spread_ns, burst)
        poll, began_ns, sent = self._poll(prompt), time.monotonic_ns(), 0
        while sent < opened.probes and not self._closed:
            elapsed_ns = time.monotonic_ns() - began_ns
            due = pace.due(sent, elapsed_ns)
            sent = _send_probes(opened, ways, sent, due, last_chance=elapsed_ns > longest_ns)
            if sent < opened.probes:
                poll.poll(pace.pause_ns(sent, time.monotonic_ns() - began_ns) / _NS_IN_MS)
            _receive(opened, used)

    def _poll(self, channels: Iterable[Channel]) -> select.poll:
        """Return a poll object for the channels and the stop signal."""
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        for channel in channels:
            poll.register(channel, select.POLLIN)
        return poll

    def _way(self, target: Target) -> tuple[Channel | None, ProbePath]:
        channel = self._channels.get((target.method, target.address.version))
        return channel, probe_path(target, 0 if target.method is Method.ICMP else target.port)


def _open(sources: dict[int, Address]) -> Channels:
    channels: Channels = {}
    try:
        for version in (4, 6):
            for method, channel in _METHODS.items():
                try:
                    channels[method, version] = channel(version, sources.get(version))
                except OSError as error:
                    if error.errno not in {errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT}:
                        raise
    except BaseException:
        for opened in channels.values():
            opened.close()
        raise
    return channels


def _send_probes(
    opened: OpenRound, ways: Sequence[tuple[Channel | None, ProbePath]], first: int, end: int, *, last_chance: bool
) -> int:
    """Send probes in order; return the index of the first probe to retry."""
    for probe in range(first, end):
        channel, how = ways[probe % len(ways)]
        if channel is None:
            opened.mark_unsent(probe)
            continue
        try:
            opened.sent(probe, channel.send(how, probe, opened.secret(probe)))
        except OSError as error:
            if error.errno in _TRANSIENT_ERRORS and not last_chance:
                return probe
            opened.mark_unsent(probe)
    return max(first, end)


def _receive(opened: OpenRound, used: Sequence[Channel]) -> None:
    if not opened.outstanding:
        return
    arrivals = [arrival for channel in used for arrival in channel.receive()]
    offset_ns = _offset_ns()
    opened.arrived(arrivals, time.monotonic_ns(), offset_ns)


def _offset_ns() -> int:
    """Return the offset of the wall clock from the monotonic clock, from the most precise of up to three readings."""
    least_ns, offset_ns = None, 0
    for _ in range(3):
        before_ns = time.monotonic_ns()
        wall_ns = time.time_ns()
        took_ns = time.monotonic_ns() - before_ns
        if least_ns is None or took_ns < least_ns:
            least_ns, offset_ns = took_ns, wall_ns - before_ns - took_ns // 2
        if took_ns < 2_000:
            break
    return offset_ns
