from __future__ import annotations

import shlex
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path as Folder

import pytest

from lab.plan import CORE, Spot
from seaway.adapters.srv6.machine import Machine, inside
from seaway.cli.errors import NOT_ALLOWED
from seaway.domain.errors import ConflictError, RejectedError
from seaway.domain.gateway_checks import problems
from seaway.domain.gateways import Behaviour, NetworkConfig, Pair, Path, Sid
from seaway.steering.difference import Set, commands, difference
from seaway.steering.state import NOTHING, desired, mtu
from tests.fakes.gateways import make_network, make_path, with_gateway
from tests.integration.gateway_world import Ping, Seen, World, answered, capture, everything, returned
from tests.missing import skip_or_fail

pytestmark = pytest.mark.slow

HOST_3 = "fd00:a:3::2"
END_2, UNWRAP_3 = "fd00:51d:2::e", "fd00:51d:3::d6"
SO_MAX_PACING_RATE = 47
DIRECT, VIA_2 = make_path("direct", 3, weight=2), make_path("via-2", 2, 3)


def network(*, share: bool = False) -> NetworkConfig:
    """Create the network of three gateways with two paths from the first to the third."""
    return make_network(3, [Pair("gw-1", "gw-3", (DIRECT, VIA_2), share)])


NETWORK = network()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Create the gateways, for all tests of this file."""
    made = World(tmp_path_factory.mktemp("state"))
    try:
        made.build()
        yield made
    except RejectedError as error:
        skip_or_fail(error)
    finally:
        made.destroy()


@pytest.fixture
def bare(world: World) -> World:
    """Return the gateways without any configuration of Seaway."""
    for each in NETWORK.gateways:
        world.machine(each.name).remove()
    return world


def forth(seen: list[Seen]) -> list[Seen]:
    """Return the packets to the third host."""
    return [each for each in seen if each.inner == HOST_3]


def ways(seen: list[Seen]) -> list[tuple[str, str]]:
    """Return the wires over which the core received and sent packets to the third host, in order."""
    wires = [each.wire for each in forth(seen)]
    assert [each.out for each in forth(seen)] == [False, True] * (len(wires) // 2)
    return list(zip(wires[::2], wires[1::2], strict=True))


def received(seen: list[Seen]) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """Return the headers of the packets to the third host that the core received.

    Those that it sent are not read: a gateway rewrites the header in place, also in the capture.
    """
    return [(each.wire, each.to, each.left, each.segments) for each in forth(seen) if not each.out]


def wait_for(more: int, count: Callable[[], int]) -> None:
    """Wait until a count has grown."""
    enough = count() + more
    while count() < enough:
        time.sleep(0.001)


def lost_segments(sender: socket.socket) -> int:
    """Return how many segments were sent again because of loss, not because of a late answer.

    The receiver reports duplicates (RFC 2883); on a busy machine a sender may be too impatient.
    """
    info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 220)
    (sent_again,), (arrived_twice,) = struct.unpack_from("=I", info, 100), struct.unpack_from("=I", info, 216)
    return int(sent_again - arrived_twice)


def test_packets_carry_the_segment_routing_header_and_take_the_path(world: World) -> None:
    """The outer header goes from segment to segment, and the segment list is that of the path, on every wire."""
    world.reach(NETWORK, {"gw-3": "via-2"})
    with capture(world.name(CORE)) as seen:
        assert answered(world.name("host-1"), HOST_3)
    assert ways(seen) == [("gw-1", "gw-2"), ("gw-2", "gw-3")]
    both = (END_2, UNWRAP_3)
    assert received(seen) == [("gw-1", END_2, 1, both), ("gw-2", UNWRAP_3, 0, both)]
    assert {each.source for each in forth(seen)} == {"fd00:51d:1::1"}
    world.reach(NETWORK, {"gw-3": "direct"})
    with capture(world.name(CORE)) as seen:
        assert answered(world.name("host-1"), HOST_3)
    assert ways(seen) == [("gw-1", "gw-3")]
    assert received(seen) == [("gw-1", UNWRAP_3, 0, (UNWRAP_3,))]


def test_a_path_may_go_by_certain_neighbours(world: World) -> None:
    """End.X forwards packets through a neighbour of a gateway on the way, End.DX6 to one behind the last."""
    by, to = IPv6Address("fd00:51d:2::5"), IPv6Address("fd00:51d:3::7")
    first, second, third = NETWORK.gateways
    second = replace(second, sids=(*second.sids, Sid(by, Behaviour.END_X, next_hop=IPv6Address("fd00:c:2::1"))))
    neighbour = Sid(to, Behaviour.END_DX6, next_hop=IPv6Address(HOST_3), interface="lan")
    third = replace(third, sids=(*third.sids, neighbour))
    pair = Pair("gw-1", "gw-3", (Path("x", (by, to)),))
    world.reach(NetworkConfig((first, second, third), (pair,)))
    with capture(world.name(CORE)) as seen:
        assert answered(world.name("host-1"), HOST_3)
    assert {each.segments for each in forth(seen)} == {(str(by), str(to))}
    world.reach(NETWORK)
    assert str(by) not in {str(each.destination.network_address) for each in world.machine("gw-2").read().routes}


def ipv4(network: NetworkConfig, spots: Sequence[Spot], *, cross_connect: bool = False) -> NetworkConfig:
    """Add the IPv4 networks behind the gateways, with an End.DT4, or an End.DX4 to the hosts."""
    for spot in spots:
        gateway = network.gateway(spot.gateway)
        assert gateway is not None
        unwrap = Sid(spot.unwrap_ipv4, Behaviour.END_DT4)
        if cross_connect:
            unwrap = Sid(spot.unwrap_ipv4, Behaviour.END_DX4, next_hop=spot.lan_ipv4[2], interface="lan")
        prefixes = (*gateway.prefixes, spot.lan_ipv4)
        network = with_gateway(network, gateway.name, sids=(*gateway.sids, unwrap), prefixes=prefixes)
    assert problems(network) == ()
    return network


@pytest.mark.parametrize("cross_connect", [False, True])
def test_ipv4_packets_are_wrapped_and_take_the_path(bare: World, cross_connect: bool) -> None:
    """The routing header has the segments of the path, and the last gateway unwraps the packet for the host behind it.

    A second apply changes nothing, and delete restores everything as it was.
    """
    first, *_, third = spots = bare.plan.spots
    before = [everything(bare.name(spot.gateway)) for spot in spots]
    network = ipv4(NETWORK, spots, cross_connect=cross_connect)
    hosts, target = (bare.name(first.host), bare.name(third.host)), str(third.lan_ipv4[2])
    assert not returned(*hosts, target)
    ends = str(third.unwrap_ipv4)
    for path, segments in (("via-2", (END_2, ends)), ("direct", (ends,))):
        bare.reach(network, {"gw-3": path})
        with capture(bare.name(CORE)) as seen:
            assert returned(*hosts, target)
        assert {each.segments for each in seen if each.inner == target} == {segments}
        assert {each.source for each in seen if each.inner == target} == {str(first.address)}
    assert returned(bare.name(third.host), bare.name(first.host), str(first.lan_ipv4[2]))
    assert answered(bare.name("host-1"), HOST_3)
    for spot in spots:
        assert difference(desired(network, spot.gateway), bare.machine(spot.gateway).read()).changes == ()
        bare.machine(spot.gateway).remove()
    assert [everything(bare.name(spot.gateway)) for spot in spots] == before


def test_shared_ipv4_traffic_takes_all_paths(bare: World) -> None:
    """Flows are spread over both paths, without a neighbour in the route; IPv4 needs none."""
    spots = bare.plan.spots
    shared = ipv4(network(share=True), spots)
    bare.reach(shared)
    with capture(bare.name(CORE)) as seen, inside(bare.name("host-1")):
        for host in range(2, 202):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"", (f"10.77.3.{host}", 9))
        time.sleep(0.05)
    taken = Counter(len(each.segments) for each in seen if each.wire == "gw-1" and not each.out)
    assert taken[1] > 0 < taken[2]
    assert taken[1] + taken[2] == 200
    assert difference(desired(shared, "gw-1"), bare.machine("gw-1").read()).changes == ()


def test_commands_for_ipv4_do_what_apply_does(bare: World) -> None:
    """A user who runs the printed commands has nothing left to change, and packets flow."""
    spots = bare.plan.spots
    network = ipv4(NETWORK, spots)
    settings: list[tuple[str, Set]] = []
    for spot in spots:
        name, wanted = bare.name(spot.gateway), desired(network, spot.gateway)
        changes = difference(wanted, bare.machine(spot.gateway).read()).changes
        settings += [(name, each) for each in changes if isinstance(each, Set)]
        for command in commands(changes, name):
            _run(command)
        assert difference(wanted, bare.machine(spot.gateway).read()).changes == ()
    assert returned(bare.name("host-1"), bare.name("host-3"), str(spots[2].lan_ipv4[2]))
    for spot in spots:
        bare.machine(spot.gateway).remove()
        assert bare.machine(spot.gateway).read().routes == ()
    for name, each in settings:
        _run(*commands([Set(each.setting, each.value, each.before)], name))


def test_another_gateway_of_a_cluster_takes_its_traffic(bare: World) -> None:
    """One route is replaced, and the packets to the same host then take the other gateway."""
    cluster, behind = "cluster-2", IPv6Network("fd00:a:77::/64")
    network = make_network(3)
    for name in ("gw-2", "gw-3"):
        network = with_gateway(network, name, cluster=cluster, prefixes=(behind,))
    assert problems(network) == ()
    for number in (2, 3):
        _ip(bare.name(f"host-{number}"), "-6 addr add fd00:a:77::2/128 dev lo")
        _ip(bare.name(f"gw-{number}"), f"-6 route add fd00:a:77::/64 via fd00:a:{number}::2")
    try:
        for serving, end in (("gw-2", "fd00:51d:2::d6"), ("gw-3", "fd00:51d:3::d6")):
            for each in network.gateways:
                bare.machine(each.name).converge(desired(network, each.name, serving={cluster: serving}))
            with capture(bare.name(CORE)) as seen:
                assert answered(bare.name("host-1"), "fd00:a:77::2")
            assert {each.segments for each in seen if each.inner == "fd00:a:77::2"} == {(end,)}
    finally:
        for number in (2, 3):
            _ip(bare.name(f"host-{number}"), "-6 addr del fd00:a:77::2/128 dev lo")
            _ip(bare.name(f"gw-{number}"), f"-6 route del fd00:a:77::/64 via fd00:a:{number}::2")


def test_shared_traffic_is_spread_by_weight(world: World) -> None:
    """Flows are spread over both paths by their weights."""
    world.reach(network(share=True))
    with capture(world.name(CORE)) as seen:
        for host in range(256, 656):
            ping = Ping(world.name("host-1"), f"fd00:a:3::{host:x}")
            ping.send()
            ping.close()
        time.sleep(0.05)
    taken = Counter(len(each.segments) for each in seen if each.wire == "gw-1" and not each.out)
    assert taken[1] + taken[2] == 400
    assert taken[1] / 400 == pytest.approx(2 / 3, abs=0.12)
    present = world.machine("gw-1").read()
    assert difference(desired(network(share=True), "gw-1"), present).changes == ()


def test_path_changes_under_a_running_ping_lose_nothing(world: World) -> None:
    """Each of some hundred echo requests is answered while paths change twenty times, to both and back too."""
    world.reach(NETWORK)
    machine = world.machine("gw-1")
    states = [desired(NETWORK, "gw-1", {"gw-3": path}) for path in ("via-2", "direct")]
    states.append(desired(network(share=True), "gw-1"))
    stop = threading.Event()
    ping = Ping(world.name("host-1"), HOST_3)

    def run() -> None:
        while not stop.wait(0.001):
            ping.send()
            ping.receive(0)

    with capture(world.name(CORE)) as seen:
        runner = threading.Thread(target=run)
        runner.start()
        for change in range(20):
            (only,) = machine.converge(states[change % 3]).changes
            assert "replace" in commands([only])[0]
            wait_for(10, lambda: ping.sent)
        stop.set()
        runner.join()
    ping.receive(2.0)
    ping.close()
    assert len(ping.answered) == ping.sent >= 200
    assert {each.segments for each in forth(seen)} == {(UNWRAP_3,), (END_2, UNWRAP_3)}


def test_path_changes_under_a_running_transfer_lose_nothing(world: World) -> None:
    """A TCP transfer of 5 MB/s arrives whole while the path changes, without a lost segment."""
    world.reach(NETWORK)
    machine = world.machine("gw-1")
    states = [desired(NETWORK, "gw-1", {"gw-3": path}) for path in ("via-2", "direct")]
    with inside(world.name("host-3")):
        listener = socket.create_server((HOST_3, 0), family=socket.AF_INET6)
    with inside(world.name("host-1")):
        sender = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 5_000_000)  # faster ones lose segments on a busy machine
    arrived: list[int] = []

    def receive() -> None:
        with listener, listener.accept()[0] as receiver:
            while got := len(receiver.recv(1 << 20)):
                arrived.append(got)

    receiving = threading.Thread(target=receive)
    receiving.start()
    port = listener.getsockname()[1]
    sent, stop = [], threading.Event()

    def send() -> None:
        while not stop.is_set():
            sent.append(sender.send(bytes(1 << 16)))

    with sender:
        sender.connect((HOST_3, port))
        sending = threading.Thread(target=send)
        sending.start()
        for change in range(20):
            assert len(machine.converge(states[change % 2]).changes) == 1
            wait_for(2, lambda: len(sent))
        stop.set()
        sending.join()
        sender.shutdown(socket.SHUT_WR)
        receiving.join()
        assert sum(arrived) == sum(sent) > 1 << 20
        assert lost_segments(sender) == 0


def test_a_second_apply_changes_nothing(world: World) -> None:
    """A correct state is left unchanged, to the last route and file."""
    world.reach(NETWORK)
    before = everything(world.name("gw-1"))
    file = next(world.folder.glob("*gw-1.json"))
    written = file.stat().st_mtime_ns
    assert world.machine("gw-1").converge(desired(NETWORK, "gw-1")).changes == ()
    assert everything(world.name("gw-1")) == before
    assert file.stat().st_mtime_ns == written


def test_every_kind_of_route_reads_as_it_was_written(bare: World) -> None:
    """The action of a SID, its table, neighbour and interface read back as they were written."""
    first = NETWORK.gateways[0]
    more = (
        Sid(IPv6Address("fd00:51d:1::5"), Behaviour.END_X, next_hop=IPv6Address("fd00:c:1::1")),
        Sid(IPv6Address("fd00:51d:1::6"), Behaviour.END_DT6, 255),
        Sid(IPv6Address("fd00:51d:1::7"), Behaviour.END_DX6, next_hop=IPv6Address("fd00:a:1::2"), interface="lan"),
    )
    gateways = replace(first, sids=(*first.sids, *more)), *NETWORK.gateways[1:]
    wanted = desired(replace(network(share=True), gateways=gateways), "gw-1")
    assert len(bare.machine("gw-1").converge(wanted).changes) == 4 + 5 + 2
    assert bare.machine("gw-1").converge(wanted).changes == ()


def test_remove_leaves_no_trace(bare: World) -> None:
    """Routes, rules, addresses, MTU, IPv6 settings and the tunnels' source are as before, others' routes too."""
    machine, name = bare.machine("gw-1"), bare.name("gw-1")
    others = "-6 route add fd00:77::/64 encap seg6 mode encap segs fd00:51d:2::d6 dev wan proto static"
    _ip(name, others)
    before = everything(name)
    for path in ("via-2", "direct"):
        machine.converge(desired(NETWORK, "gw-1", {"gw-3": path}))
    assert everything(name) != before
    assert machine.remove().changes
    assert everything(name) == before
    assert machine.remove().changes == ()
    assert not list(bare.folder.glob("*gw-1.json"))
    _ip(name, "-6 route del fd00:77::/64")


def test_a_namespace_of_the_same_name_is_another_machine(bare: World) -> None:
    """Stored settings of a deleted namespace are not restored into its successor."""
    machine = bare.machine("gw-2")
    machine.converge(desired(NETWORK, "gw-2"))
    copy = Machine(bare.name("gw-3"), bare.folder)
    next(bare.folder.glob("*gw-2.json")).rename(bare.folder / f"gateway@{bare.name('gw-3')}.json")
    assert copy.read().saved == {}


def test_a_user_elses_route_in_the_way_is_reported_and_left(bare: World) -> None:
    """Nothing changes if another program's route conflicts with one of the routes."""
    name = bare.name("gw-1")
    _ip(name, "-6 route add fd00:a:3::/64 via fd00:c:1::1 dev wan proto static")
    before = everything(name)
    with pytest.raises(
        RejectedError, match=r"another program's route to fd00:a:3::/64 dev wan \(set by static, metric 1024\)"
    ):
        bare.machine("gw-1").converge(desired(NETWORK, "gw-1"))
    assert everything(name) == before
    _ip(name, "-6 route del fd00:a:3::/64 proto static")


@pytest.mark.parametrize("share", [False, True])
def test_the_commands_do_the_very_same(bare: World, share: bool) -> None:
    """The printed commands have the same result as apply, and the printed removal commands remove it."""
    machine, wanted = bare.machine("gw-1"), desired(network(share=share), "gw-1")
    before = everything(bare.name("gw-1"))
    for command in commands(difference(wanted, machine.read()).changes, bare.name("gw-1")):
        _run(command)
    assert difference(wanted, machine.read()).changes == ()
    by_hand = everything(bare.name("gw-1"))
    for command in commands(difference(NOTHING, machine.read()).changes, bare.name("gw-1")):
        _run(command)
    _run(f"ip netns exec {bare.name('gw-1')} sysctl -qw net.ipv6.conf.all.forwarding=0")
    machine.converge(wanted)
    assert everything(bare.name("gw-1"))["routes"] == by_hand["routes"]
    assert before["addresses"] == by_hand["addresses"]


def test_a_route_of_another_kind_with_our_number_is_mended(bare: World) -> None:
    """A route with Seaway's protocol number that is not as configured is replaced or removed."""
    name = bare.name("gw-1")
    _ip(name, "-6 route add blackhole fd00:a:3::/64 proto 151")
    _ip(name, "-6 route add blackhole fd00:78::/64 proto 151")
    machine = bare.machine("gw-1")
    machine.converge(desired(NETWORK, "gw-1"))
    assert difference(desired(NETWORK, "gw-1"), machine.read()).changes == ()
    assert IPv6Network("fd00:78::/64") not in {each.destination for each in machine.read().routes}
    machine.remove()
    assert machine.read().routes == ()


def test_a_route_with_our_number_and_another_metric_goes(bare: World) -> None:
    """Such a route, alone or beside a correct one, does not stop apply or remove."""
    name, machine, wanted = bare.name("gw-1"), bare.machine("gw-1"), desired(NETWORK, "gw-1")
    before = everything(name)
    for metric in (5, 2048):
        _ip(name, f"-6 route add fd00:a:3::/64 proto 151 metric {metric} dev lan")
        _ip(name, f"-6 route add fd00:78::/64 proto 151 metric {metric} dev lan")
    machine.converge(wanted)
    assert len(machine.read().routes) == len(wanted.routes)
    assert difference(wanted, machine.read()).changes == ()
    _ip(name, "-6 route add fd00:a:3::/64 proto 151 metric 5 dev lan")
    machine.remove()
    assert everything(name) == before


def test_a_change_that_the_kernel_refuses_is_reported_as_a_command(bare: World) -> None:
    """A failed change is reported as its command; earlier changes stay, and remove deletes them."""
    wanted = desired(NETWORK, "gw-1")
    too_much = replace(wanted, settings={**wanted.settings, mtu("wan"): "99999999"})
    with pytest.raises(ConflictError, match=r"refuses `ip -n .* link set dev wan mtu 99999999`: Invalid argument"):
        bare.machine("gw-1").converge(too_much)
    assert bare.machine("gw-1").remove().changes
    assert bare.machine("gw-1").read().saved == {}


@pytest.mark.parametrize("arguments", [["show"], ["show", "--netns", "{}"]])
def test_without_the_right_to_do_so_it_says_what_it_takes(world: World, arguments: list[str], tmp_path: Folder) -> None:
    """A process without capabilities reports that this requires root, with the exit code for missing permissions."""
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    given = [each.format(world.name("gw-1")) for each in arguments]
    command = [*without, sys.executable, "-m", "seaway", "gateway", *given, "--state", str(tmp_path)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == NOT_ALLOWED
    assert "root" in ended.stderr


def _ip(namespace: str, arguments: str) -> None:
    _run(f"ip -n {namespace} {arguments}")


def _run(command: str) -> None:
    program = shlex.split(command)
    if shutil.which(program[0]) is None:
        skip_or_fail(RejectedError(f"needs {program[0]} (Debian: iproute2 and procps)"))
    subprocess.run(program, check=True, capture_output=True)
