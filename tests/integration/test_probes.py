"""Probes over real sockets, in a network namespace created for them (as root)."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise
from statistics import median
from threading import Thread

import pytest

from seaway.adapters.probes.channel import MAX_WATCHED, ProbePath
from seaway.adapters.probes.connections import ConnectionChannel
from seaway.adapters.probes.prober import EchoChannel, SocketProber, open_prober
from seaway.adapters.probes.reflector import Reflector
from seaway.adapters.probes.sockets import Namespace, open_icmp
from seaway.application.ports.agent import Target
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import Method, ProbeConfig
from seaway.probing import packets
from seaway.probing.rounds import Round
from tests.missing import skip_or_fail

pytestmark = [pytest.mark.slow, pytest.mark.quiet]

Address = IPv4Address | IPv6Address

GATEWAYS = [IPv6Address("fd00:f::") + number for number in range(1, 101)]
OWN, OTHER, THIRD = GATEWAYS[:3]
OWN_4, OTHER_4 = IPv4Address("10.99.0.1"), IPv4Address("10.99.0.2")
UNREACHABLE, UNREACHABLE_4 = IPv6Address("fd00:d::2"), IPv4Address("10.98.0.2")
"""Addresses behind a wire without a host at its other end."""
NOWHERE, NOWHERE_4 = IPv6Address("fd00:e::2"), IPv4Address("10.97.0.2")
"""Addresses without a route."""
PORT, CLOSED_PORT = 8627, 9
HOW = ProbeConfig(count=4, timeout_s=0.4)
SPREAD_S = 0.1
NO_DAD = 0.0
UNREACHABLE_MAC = "02:00:00:00:00:01"


@pytest.fixture(scope="module")
def network() -> Iterator[str]:
    """Create a namespace with 100 gateways on its loopback, and a wire without a host; yields its name."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        skip_or_fail(
            RuntimeError("it makes a network namespace: this requires root, and ip (apt-get install iproute2)")
        )
    name = f"seaway-probes-{os.getpid()}"
    commands = [
        "link set lo up",
        *(f"address add {each}/128 dev lo nodad" for each in GATEWAYS),
        *(f"address add {each}/32 dev lo" for each in (OWN_4, OTHER_4)),
        "link add wire type veth peer name end",
        "link set wire up",
        "link set end up",
        f"neigh add {UNREACHABLE} lladdr {UNREACHABLE_MAC} dev wire",
        f"neigh add {UNREACHABLE_4} lladdr {UNREACHABLE_MAC} dev wire",
        f"route add {UNREACHABLE}/128 dev wire",
        f"route add {UNREACHABLE_4}/32 dev wire",
    ]
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "-batch", "-"], input="\n".join(commands), text=True, check=True)
        segments_on = ["net.ipv6.conf.all.seg6_enabled=1", "net.ipv6.conf.lo.seg6_enabled=1"]
        subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", *segments_on], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture(scope="module")
def prober(network: str) -> Iterator[SocketProber]:
    """Open a prober in the namespace, whose own addresses are the first."""
    with closing(open_prober(OWN, OWN_4, netns=network)) as opened:
        yield opened


@pytest.fixture(scope="module")
def inside(network: str) -> Iterator[Namespace]:
    """Run a thread in the namespace, to create sockets there."""
    with closing(Namespace(network)) as place:
        yield place


@contextmanager
def reflecting(network: str, at: Address, *known: Address, port: int = PORT) -> Iterator[Reflector]:
    """Run a reflector in the namespace."""
    with closing(Namespace(network)) as place:
        reflector = place.call(lambda: Reflector(at, port))
    reflector.set_gateways(known)
    thread = Thread(target=reflector.serve)
    thread.start()
    try:
        yield reflector
    finally:
        reflector.stop()
        thread.join()
        reflector.close()


@contextmanager
def listening(inside: Namespace, at: Address) -> Iterator[socket.socket]:
    """Run a server in the namespace that accepts connections."""
    family = socket.AF_INET6 if at.version == 6 else socket.AF_INET
    with inside.call(lambda: socket.socket(family, socket.SOCK_STREAM)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((str(at), PORT))
        server.listen(128)
        yield server


@pytest.fixture(scope="module")
def answering(network: str, inside: Namespace) -> Iterator[None]:
    """Run reflectors and servers at all targets of UDP and TCP probes."""
    with (
        reflecting(network, OTHER, OWN),
        reflecting(network, OTHER_4, OWN_4),
        listening(inside, OTHER),
        listening(inside, OTHER_4),
    ):
        yield


every_method = pytest.mark.parametrize("method", list(Method), ids=lambda method: method.value)
both_versions = pytest.mark.parametrize("version", [4, 6], ids=["v4", "v6"])


@every_method
@both_versions
@pytest.mark.usefixtures("answering")
def test_all_probes_to_a_user_who_answers_are_answered(prober: SocketProber, method: Method, version: int) -> None:
    """Every method and both versions of IP lose no probe of a target that answers, in less than a timeout."""
    target = Target("other", OTHER if version == 6 else OTHER_4, method, PORT)
    (measured,) = prober.probe([target], HOW, SPREAD_S)
    assert (measured.sent, len(measured.rtts_ns), measured.discarded) == (HOW.count, HOW.count, 0)
    assert all(0 < rtt < HOW.timeout_s * 1e9 for rtt in measured.rtts_ns)


@every_method
@both_versions
def test_all_probes_to_a_user_who_is_unreachable_are_lost(prober: SocketProber, method: Method, version: int) -> None:
    """Without answers the round ends a timeout after its last probe, with nothing but loss."""
    began_s = time.monotonic()
    target = Target("silent", UNREACHABLE if version == 6 else UNREACHABLE_4, method, PORT)
    assert prober.probe([target], HOW, SPREAD_S) == (Round(HOW.count, ()),)
    assert time.monotonic() - began_s >= HOW.timeout_s


@every_method
@both_versions
def test_who_cannot_be_sent_to_has_lost_everything(prober: SocketProber, method: Method, version: int) -> None:
    """Without a route no probe is sent; that counts as loss, without a wait."""
    target = Target("nowhere", NOWHERE if version == 6 else NOWHERE_4, method, PORT)
    assert prober.probe([target], HOW, NO_DAD) == (Round(HOW.count, ()),)


@every_method
@pytest.mark.usefixtures("answering")
def test_probes_follow_their_segment_list(prober: SocketProber, inside: Namespace, method: Method) -> None:
    """A capture shows the header with the segments in order; probes without a segment list have none."""
    along = Target("other", OTHER, method, PORT, "via third", (THIRD,))
    with inside.call(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x86DD))) as capture:
        capture.bind(("lo", 0x86DD))
        capture.setblocking(False)
        measured = prober.probe([along, Target("other", OTHER, method, PORT)], HOW, SPREAD_S)
        left = set(sent_by(OWN, capture))
    assert [len(each.rtts_ns) for each in measured] == [HOW.count, HOW.count]
    assert left == {(THIRD, packets.SegmentRoutingHeader((THIRD, OTHER), 1, PROTOCOLS[method])), (OTHER, None)}


PROTOCOLS = {
    Method.ICMP: socket.IPPROTO_ICMPV6,
    Method.UDP: socket.IPPROTO_UDP,
    Method.TCP: socket.IPPROTO_TCP,
}


def sent_by(source: IPv6Address, capture: socket.socket) -> Iterator[tuple[IPv6Address, object]]:
    """Yield the first destination of each captured packet of a gateway, and its segment routing header or None."""
    while True:
        try:
            packet = capture.recv(2048)
        except BlockingIOError:
            return
        if packet[8:24] == source.packed:
            header = packets.decode_srh(packet[40:]) if packet[6] == socket.IPPROTO_ROUTING else None
            yield IPv6Address(packet[24:40]), header


def test_a_connection_that_was_tried_again_has_lost_its_first_probe(prober: SocketProber, inside: Namespace) -> None:
    """The kernel repeats a SYN without an answer; the answer to the repetition does not count for the first."""
    with (
        inside.call(lambda: socket.socket(socket.AF_INET6)) as server,
        inside.call(lambda: socket.socket(socket.AF_INET6)) as first,  # fills the only place in the server's queue
    ):
        server.bind((str(THIRD), PORT))
        server.listen(0)
        first.connect((str(THIRD), PORT))
        with ThreadPoolExecutor(1) as thread:
            how = ProbeConfig(count=1, timeout_s=1.5)
            measured = thread.submit(prober.probe, [Target("third", THIRD, Method.TCP, PORT)], how, NO_DAD)
            time.sleep(0.3)
            server.accept()[0].close()
            assert measured.result() == (Round(1, ()),)
        server.settimeout(5)
        server.accept()[0].close()


def test_a_connection_read_late_is_measured_by_the_kernel(inside: Namespace) -> None:
    """The kernel's time of acceptance counts, not the time of reading."""
    late_s, other = 0.1, GATEWAYS[20]
    with listening(inside, other), closing(ConnectionChannel(6, OWN)) as channel:
        inside.call(lambda: channel.send(ProbePath((str(other), PORT)), 7, b"8 bytes."))
        assert readable(channel.fileno(), 5000)
        time.sleep(late_s)
        (arrival,) = channel.receive()
    assert (arrival.probe, arrival.secret) == (7, b"8 bytes.")
    assert arrival.dwell_ns >= late_s * 1e9


class Held:
    """A socket whose process loses its core whenever it sends."""

    def __init__(self, real: socket.socket, held_s: float) -> None:
        self._real = real
        self._held_s = held_s

    def sendto(self, packet: bytes, address: tuple[str, int]) -> int:
        """Send late."""
        time.sleep(self._held_s)
        return self._real.sendto(packet, address)

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


@pytest.mark.parametrize(("probes", "known"), [(1, True), (MAX_WATCHED, True), (MAX_WATCHED + 1, False)])
def test_a_probe_counts_from_when_it_left(
    inside: Namespace, monkeypatch: pytest.MonkeyPatch, probes: int, known: bool
) -> None:
    """For rounds that are not too large the kernel reports when each probe left, whatever delayed its process."""
    held_s = 0.1
    monkeypatch.setattr("seaway.adapters.probes.prober.open_icmp", lambda *how: Held(open_icmp(*how), held_s))
    with closing(inside.call(lambda: EchoChannel(6, OWN))) as channel:
        channel.begin(probes)
        at_ns = channel.send(ProbePath((str(OTHER), 0)), 0, b"8 bytes.")
        gone_ns = time.monotonic_ns() - at_ns
        assert readable(channel.fileno(), 5000)
        (arrival,) = channel.receive()
        assert channel.receive() == []
    assert held_s * 1e9 <= gone_ns
    assert (held_s * 1e9 <= arrival.dwell_ns <= gone_ns) is known


def test_a_refused_connection_is_an_answer(prober: SocketProber) -> None:
    """A refused connection proves that the host is there: its time is the round trip."""
    (measured,) = prober.probe([Target("other", OTHER, Method.TCP, CLOSED_PORT)], HOW, NO_DAD)
    assert len(measured.rtts_ns) == HOW.count


def test_datagrams_to_a_user_who_has_no_reflector_are_lost(prober: SocketProber) -> None:
    """A closed port is no answer to a datagram, as nothing reflects it."""
    assert prober.probe([Target("other", OTHER, Method.UDP, CLOSED_PORT)], HOW, NO_DAD) == (Round(HOW.count, ()),)


@pytest.mark.usefixtures("answering")
def test_one_round_takes_every_method_and_keeps_their_order(prober: SocketProber) -> None:
    """Each target has its own result, in the order of the targets, whatever the results of the others."""
    targets = [
        Target("silent", UNREACHABLE),
        Target("other", OTHER),
        Target("nowhere", NOWHERE_4),
        Target("other", OTHER_4, Method.TCP, PORT),
        Target("other", OTHER, Method.UDP, PORT),
        Target("silent", UNREACHABLE, Method.TCP, PORT),
        Target("third", THIRD),
    ]
    measured = prober.probe(targets, HOW, SPREAD_S)
    assert [len(each.rtts_ns) for each in measured] == [0, 4, 0, 4, 4, 0, 4]
    assert {each.sent for each in measured} == {HOW.count}


def test_the_probes_of_one_target_are_spread_evenly(prober: SocketProber, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few targets there are, no burst has two probes for the same one."""
    sent_s: dict[ProbePath, list[float]] = {}

    def send(channel: EchoChannel, way: ProbePath, probe: int, secret: bytes) -> int:
        sent_s.setdefault(way, []).append(time.monotonic())
        return real(channel, way, probe, secret)

    real = EchoChannel.send
    monkeypatch.setattr(EchoChannel, "send", send)
    prober.probe([Target("other", OTHER), Target("third", THIRD)], HOW, 0.8)
    gaps_s = [after - before for each in sent_s.values() for before, after in pairwise(each)]
    assert len(gaps_s) == 2 * (HOW.count - 1)
    assert median(gaps_s) == pytest.approx(0.8 / HOW.count, abs=0.05)


def test_a_hundred_gateways_in_one_namespace_lose_nothing(network: str) -> None:
    """9,900 directed pairs in parallel lose no answers."""
    probers = [open_prober(each, netns=network) for each in GATEWAYS]
    how = ProbeConfig(count=2, timeout_s=5)

    def probe(number: int) -> list[Round]:
        targets = [Target(str(each), each) for each in GATEWAYS if each != GATEWAYS[number]]
        return list(probers[number].probe(targets, how, 1.0))

    with ThreadPoolExecutor(len(probers)) as threads:
        measured = [each for rounds in threads.map(probe, range(len(probers))) for each in rounds]
    for each in probers:
        each.close()
    assert len(measured) == 9900
    assert {(each.sent, len(each.rtts_ns), each.discarded) for each in measured} == {(2, 2, 0)}


@both_versions
def test_the_kernel_keeps_away_what_is_no_reply_to_a_socket(inside: Namespace, version: int) -> None:
    """Of two sockets with one address, the sender gets only the reply, not its own request; the other gets nothing."""
    own, echo = (OWN, packets.V6) if version == 6 else (OWN_4, packets.V4)
    with (
        inside.call(lambda: open_icmp(version, own, 7)) as queries,
        inside.call(lambda: open_icmp(version, own, 8)) as other,
    ):
        queries.sendto(packets.encode_request(echo, 7, 1, b"payload"), (str(own), 0))
        assert readable(queries.fileno(), 5000)
        assert queries.recv(2048)[-len(b"payload") - packets.HEADER_BYTES] == echo.reply
        assert not readable(queries.fileno(), 50)
        assert not readable(other.fileno(), 0)


@both_versions
def test_a_reflector_at_any_address_knows_both_versions(prober: SocketProber, network: str, version: int) -> None:
    """A reflector without an address of its own still identifies the sender."""
    port, other = PORT + 1, GATEWAYS[30] if version == 6 else OTHER_4
    target = Target("other", other, Method.UDP, port)
    with reflecting(network, IPv6Address("::"), OWN, OWN_4, port=port):
        (measured,) = prober.probe([target], HOW, NO_DAD)
    with reflecting(network, IPv6Address("::"), THIRD, port=port):
        assert prober.probe([target], HOW, NO_DAD) == (Round(HOW.count, ()),)
    assert len(measured.rtts_ns) == HOW.count


def readable(descriptor: int, wait_ms: int) -> bool:
    """Wait until there is something to read."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(wait_ms))


def test_a_reflector_answers_known_gateways_only(network: str, inside: Namespace) -> None:
    """It answers probes of known gateways with the same number of bytes; nothing to others or for other packets."""
    question = packets.encode_question(3, b"8 bytes.")
    with (
        reflecting(network, GATEWAYS[9], OWN),
        inside.call(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)) as known,
        inside.call(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)) as unknown,
    ):
        for asker, address in ((known, OWN), (unknown, THIRD)):
            asker.bind((str(address), 0))
            asker.connect((str(GATEWAYS[9]), PORT))
        unknown.send(question)
        for wrong in (b"", b"x", question[:-1], question + b"x", packets.answer(question, 0)):
            known.send(wrong)
        known.send(question)
        assert readable(known.fileno(), 5000)
        answer = known.recv(2048)
        assert len(answer) == len(question)
        assert packets.decode_answer(answer) is not None
        assert not readable(known.fileno(), 50)
        assert not readable(unknown.fileno(), 0)


def test_probing_takes_no_privilege_once_sockets_are_open(network: str) -> None:
    """New segment lists, connections and namespaces work as an unprivileged user, with no capability."""
    program = f"""
import os
from ipaddress import IPv6Address
from seaway.adapters.probes.prober import open_prober
from seaway.application.ports.agent import Target
from seaway.domain.gateways import Method, ProbeConfig
prober = open_prober(IPv6Address("{OWN}"), netns="{network}")
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
status = open("/proc/self/status").read()
assert "CapEff:\\t0000000000000000" in status, status
other = IPv6Address("{OTHER}")
targets = [Target("a", other), Target("b", other, segments=(IPv6Address("{THIRD}"),)),
           Target("c", other, Method.TCP, {CLOSED_PORT})]
print([len(each.rtts_ns) for each in prober.probe(targets, ProbeConfig(count=2), 0.1)])
prober.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[2, 2, 2]\n", 0), done.stderr


@pytest.mark.parametrize("elsewhere", [True, False], ids=["in a namespace", "where the process is"])
def test_a_prober_that_is_closed_in_a_round_ends_soon(network: str, elsewhere: bool) -> None:
    """Closing does not wait for the round; probes that were not sent do not count as lost."""
    prober, target = open_prober(netns=network if elsewhere else ""), Target("own", IPv4Address("127.0.0.1"))
    with ThreadPoolExecutor(1) as thread:
        measured = thread.submit(prober.probe, [target], ProbeConfig(count=10), 600.0)
        time.sleep(0.1)
        began_s = time.monotonic()
        prober.close()
        (result,) = measured.result()
    assert result.sent == 1
    assert prober.probe([target], HOW, NO_DAD) == (Round(0, ()),)
    assert time.monotonic() - began_s < 5


def test_what_replaces_the_way_is_reported(network: str) -> None:
    """A missing namespace, a foreign address, a used port: each error names the remedy."""
    with pytest.raises(RejectedError, match="network namespace 'seaway-none' not found"):
        open_prober(netns="seaway-none")
    with pytest.raises(RejectedError, match=f"cannot use {NOWHERE} port 0"):
        open_prober(NOWHERE, netns=network)
    with (
        reflecting(network, GATEWAYS[10]),
        pytest.raises(RejectedError, match=f"cannot use {GATEWAYS[10]} port {PORT}: Address already in use"),
        reflecting(network, GATEWAYS[10]),
    ):
        pass


def test_without_privilege_it_says_which_one_it_takes() -> None:
    """Without the right to raw sockets the error names CAP_NET_RAW."""
    program = """
import os
from seaway.adapters.probes.prober import open_prober
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
open_prober()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "run it as root or with CAP_NET_RAW" in done.stderr
