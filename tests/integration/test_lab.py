"""Labs on a real kernel: packets meet the conditions of links, and nothing is left over."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

from lab import lab as labs
from lab import netns
from lab.__main__ import main
from lab.conditions import Conditions, Emulator
from lab.holding import Counts
from lab.plan import LabPlan
from seaway.domain.errors import ConflictError, RejectedError, UnavailableError, UnknownError
from seaway.domain.network import Ends
from seaway.probing.rounds import Round, figures
from tests.missing import skip_or_fail
from tests.servers.lab import lab

pytestmark = pytest.mark.slow

MS = 1_000_000
NAME = f"test-{os.getpid()}"
PLAN = LabPlan(NAME, 3)
PORT = 8627
TIMEOUT_S = 60
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
THERE, BACK = ("gw-1", "gw-2"), ("gw-2", "gw-1")
STEADY_MS = 0.5
"""Allowed difference of the median packet to the emulator: the lab's own routers, on a busy machine."""


@pytest.fixture(scope="module", autouse=True)
def _machine() -> None:
    try:
        labs.require_machine()
    except RejectedError as error:
        skip_or_fail(error)


@pytest.fixture(scope="module")
def made() -> Iterator[labs.Lab]:
    """Run a lab whose links have no conditions at first."""
    try:
        yield labs.up(PLAN, {}, emulator=Emulator.QUEUE)
    finally:
        labs.down(NAME)


@dataclass(frozen=True)
class SteerablePair:
    """Packets that crossed a link one way: latency and arrival time of each that arrived, by its number."""

    took_ns: Mapping[int, int]
    came_ns: Mapping[int, int]
    held_ns: list[int]
    counted: Counts

    @property
    def beyond_ms(self) -> float:
        """The median extra latency beyond the emulator's delay."""
        return (
            sorted(self.took_ns.values())[len(self.took_ns) // 2] / MS
            - sorted(self.held_ns)[len(self.held_ns) // 2] / MS
        )


def counts(found: labs.Lab, ends: Ends) -> Counts:
    """Return the counts of a link so far."""
    return next((each.counts for each in found.emulation.read().links if each.ends == ends), Counts())


def cross(found: labs.Lab, ends: Ends, packets: int, gap_s: float = 0.002, octets: int = 40) -> SteerablePair:
    """Send packets over a link, and return their outcome."""
    source, target = (PLAN.spots[int(end.removeprefix("gw-")) - 1] for end in ends)
    before = counts(found, ends)
    with (
        bound(source.gateway, str(source.address)) as sender,
        bound(target.gateway, str(target.address), PORT) as there,
    ):
        there.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        there.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
        for number in range(packets):
            sender.sendto(b"%d %d " % (number, time.time_ns()) + bytes(octets), (str(target.address), PORT))
            time.sleep(gap_s)
        came = list(received(there))
    after = counts(found, ends)
    sent_on = after.released - before.released
    holds = [held for _, held in found.emulation.holds(ends)]
    took = {number: when - sent for number, sent, when in came}
    return SteerablePair(
        took, {number: when for number, _, when in came}, holds[len(holds) - sent_on :], less(after, before)
    )


def bound(place: str, address: str, port: int = 0) -> socket.socket:
    """Return a socket at a gateway."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        made.bind((address, port))
        made.settimeout(0.3)
        return made

    return netns.inside(PLAN.namespace(place), make)


def received(there: socket.socket) -> Iterator[tuple[int, int, int]]:
    """Yield number, send time and arrival time of each packet, by the kernel, until none arrives."""
    while True:
        try:
            data, [(_, _, stamp)], *_ = there.recvmsg(2048, 128)
        except TimeoutError:
            return
        seconds, rest = int.from_bytes(stamp[:8], "little"), int.from_bytes(stamp[8:16], "little")
        number, sent_ns, *_ = data.split(b" ")
        yield int(number), int(sent_ns), seconds * 10**9 + rest


def less(after: Counts, before: Counts) -> Counts:
    """Return the counts in between."""
    names = ("packets", "octets", "lost", "overflowed", "released", "held_ns", "late_ns")
    return replace(after, **{name: getattr(after, name) - getattr(before, name) for name in names})


@pytest.mark.quiet
def test_a_delay_is_what_packets_meet(made: labs.Lab) -> None:
    """The latency of packets is the emulator's delay; the way back is another link."""
    made.emulation.change({THERE: Conditions(20 * MS), BACK: Conditions()})
    found, back = cross(made, THERE, 200), cross(made, BACK, 50)
    assert len(found.took_ns) == 200
    assert 0 <= found.beyond_ms < STEADY_MS
    assert sorted(found.held_ns)[100] == pytest.approx(20 * MS, abs=STEADY_MS * MS)
    assert min(found.took_ns.values()) >= 20 * MS
    assert sorted(back.took_ns.values())[25] < 5 * MS


@pytest.mark.quiet
def test_every_packet_that_is_missing_was_counted_as_lost(made: labs.Lab) -> None:
    """Missing packets are exactly those that the emulator dropped, one way only, and about the configured share."""
    made.emulation.change({THERE: Conditions(5 * MS, loss_ppm=100_000), BACK: Conditions(5 * MS)})
    found, back = cross(made, THERE, 600, gap_s=0.0005), cross(made, BACK, 200, gap_s=0.0005)
    assert found.counted.packets == 600
    assert 600 - len(found.took_ns) == found.counted.lost
    assert found.counted.lost == pytest.approx(60, abs=30)
    assert len(back.took_ns) == 200
    assert back.counted.lost == 0


@pytest.mark.quiet
def test_jitter_is_what_the_emulator_made(made: labs.Lab) -> None:
    """Round for round, the jitter of arrived packets is that of the emulator's delays, by the formula of the probes."""
    made.emulation.change({THERE: Conditions(20 * MS, 4 * MS)})
    found = cross(made, THERE, 100, gap_s=0.01)
    took = [found.took_ns[number] for number in sorted(found.took_ns)]
    assert len(took) == len(found.held_ns) == 100
    assert 15.5 * MS < min(found.held_ns) < 18 * MS
    assert max(found.held_ns) > 22 * MS
    differ = []
    for first in range(0, 100, 5):
        seen = figures(Round(5, tuple(took[first : first + 5])))
        done = figures(Round(5, tuple(found.held_ns[first : first + 5])))
        differ.append(abs(seen.jitter_ns - done.jitter_ns))
    assert sorted(differ)[10] < STEADY_MS * MS


@pytest.mark.quiet
def test_a_rate_is_stored(made: labs.Lab) -> None:
    """Packets sent together arrive one after the other, at the intervals of the rate."""
    made.emulation.change({THERE: Conditions(rate_mbps=10)})
    found = cross(made, THERE, 60, gap_s=0, octets=1200)
    came = [found.came_ns[number] for number in range(60)]
    gaps = sorted(later - earlier for earlier, later in pairwise(came))
    alone_ns = found.counted.octets / 60 * 8 / 10e6 * 1e9
    assert gaps[30] == pytest.approx(alone_ns, rel=0.1)  # the median: a busy machine may delay the sender
    assert came[-1] - came[0] > 59 * alone_ns * 0.98


@pytest.mark.quiet
def test_a_link_changes_while_packets_are_on_it(made: labs.Lab) -> None:
    """The next packet meets the new conditions; the change loses none."""
    made.emulation.change({THERE: Conditions(5 * MS)})
    before = cross(made, THERE, 50)
    made.emulation.change({THERE: Conditions(30 * MS)})
    after = cross(made, THERE, 50)
    assert max(before.held_ns[:25]) < 30 * MS <= min(after.held_ns)
    assert len(before.took_ns) == len(after.took_ns) == 50


def test_hosts_reach_each_other_through_segments(made: labs.Lab) -> None:
    """A host's packets cross the link of their gateways, encapsulated; the core has no other route for them."""
    made.emulation.change({THERE: Conditions(5 * MS)})
    before = counts(made, THERE).octets
    address = str(PLAN.spots[1].lan[2])
    with bound("host-2", address, PORT) as there, bound("host-1", str(PLAN.spots[0].lan[2])) as sender:
        sender.sendto(bytes(100), (address, PORT))
        assert len(there.recv(1000)) == 100
    assert counts(made, THERE).octets - before == 100 + 8 + 40 + 40 + 8 + 16


def test_a_lab_leaves_nothing_behind(capsys: pytest.CaptureFixture[str]) -> None:
    """After `down` there is no namespace, process or file of it, whatever ran in it."""
    name = f"{NAME}-gone"
    with lab(2, {"default": {"delay": "3ms"}}) as other:
        main_ok("up", "--gateways", "2", "--name", name)
        runs = subprocess.Popen(labs.find(name).command("gw-1", ["sleep", "60"]))
        emulator = netns.processes([f"seaway-{name}-core"])
        with pytest.raises(SystemExit, match="2"):
            main(["up", "--gateways", "2", "--name", name])
        main_ok("up", "--gateways", "3", "--name", name, "--replace")
        main_ok("link", "gw-1", "gw-3", "--delay", "7ms", "--one-way", "--name", name)
        main_ok("link", "gw-2", "--loss", "100%", "--name", name)
        main_ok("show", "--name", name)
        main_ok("down", "--name", name)
        assert emulator
        assert runs.wait(TIMEOUT_S) == -signal.SIGTERM
        assert not any(Path(f"/proc/{pid}/exe").exists() for pid in emulator)
        assert other.links()["gw-1", "gw-2"]["delay_ns"] == 3 * MS  # another lab is not touched
        other.link("gw-1", "gw-2", delay="9ms", one_way=True)
        assert [each["delay_ns"] for each in other.links().values()] == [9 * MS, 3 * MS]
        assert "gw-1" in other.run("gw-1", "sh", "-c", "echo gw-1; ls /proc/sys/net/ipv6/conf/wan")
    assert [each for each in netns.names() if name in each or other.name in each] == []
    assert not list(labs.FOLDER.parent.rglob(f"*{name}*"))
    said = capsys.readouterr().out
    assert "7 ms" in said
    assert said.count("loss 100 %") == 4
    assert f"seaway-{name}-gw-3" in said


def test_agents_end_with_their_lab() -> None:
    """Agents of `up --agents` run outside of the namespaces, and still end with the lab."""
    name = f"{NAME}-agents"
    found = labs.up(LabPlan(name, 2), {})
    places = [found.plan.namespace("gw-1"), found.plan.namespace("gw-2")]
    labs.start_agents(found, "http://127.0.0.1:9", {"gw-1": "sw_1_x", "gw-2": "sw_2_x"})
    wait_until(lambda: len(netns.processes(places)) == 2)
    labs.down(name)
    assert netns.processes(places) == []


@pytest.mark.parametrize("reported", ["words", "one word", "variable", "file"])
def test_agents_end_with_their_lab_however_they_were_reported_where_to_probe(reported: str, tmp_path: Path) -> None:
    """An agent that was started by hand ends with the lab that it probes in, and one of another namespace does not."""
    name = f"{NAME}-reported"
    found = labs.up(LabPlan(name, 2), {}, emulator=Emulator.QUEUE)
    place, file = found.plan.namespace("gw-1"), tmp_path / "agent.toml"
    file.write_text(f'[agent]\nnetns = "{place}"\n')
    words, variables = {
        "words": (["--netns", place], {}),
        "one word": ([f"--netns={place}"], {}),
        "variable": ([], {"SEAWAY_AGENT_NETNS": place}),
        "file": (["--config", str(file)], {}),
    }[reported]
    command = [sys.executable, "-m", "seaway", "agent", "--gateway", "gw-1", "-f", str(found.network)]
    with (
        subprocess.Popen([*command, *words], env={**os.environ, **variables}, stderr=subprocess.PIPE) as agent,
        subprocess.Popen([*command, "--address", "any"], stderr=subprocess.PIPE) as other,
    ):
        try:
            for each in (agent, other):
                assert each.stderr
                assert b"probes from" in each.stderr.readline()
            labs.down(name)
            assert agent.wait(TIMEOUT_S) in {0, -signal.SIGTERM, -signal.SIGKILL}
            assert other.poll() is None
        finally:
            agent.kill()
            other.kill()
            if name in labs.labs():
                labs.down(name)


def test_one_that_waits_for_its_address_ends_too() -> None:
    """A waiting agent in none of a lab's namespaces is found by its arguments and its environment variable."""
    place = f"seaway-{NAME}-nowhere"
    start = ("seaway", "agent", "--gateway", "gw-1", "--server", "http://127.0.0.1:1")
    token = {**os.environ, "SEAWAY_TOKEN": "sw_1_x"}
    reported = {**token, "SEAWAY_AGENT_NETNS": place}
    with (
        subprocess.Popen([sys.executable, "-m", *start, f"--netns={place}"], env=token) as by_word,
        subprocess.Popen([sys.executable, "-m", *start], env=reported) as by_variable,
        subprocess.Popen(["sleep", "60"], env=reported) as other,
    ):
        try:
            wait_until(lambda: {*netns.processes([place])} == {by_word.pid, by_variable.pid})
        finally:
            for each in (by_word, by_variable, other):
                each.kill()


def test_what_is_left_of_a_lab_is_removed() -> None:
    """An incomplete lab, or one without its emulator, reports that; `down` removes it, and then finds none."""
    name = f"{NAME}-half"
    found = labs.up(LabPlan(name, 2), {}, emulator=Emulator.QUEUE)
    for pid in netns.processes([found.plan.namespace("core")]):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not netns.processes([found.plan.namespace("core")]))
    with pytest.raises(UnavailableError, match="emulator does not answer"):
        found.emulation.read()
    (found.folder / labs.PLAN).write_text("{")
    with pytest.raises(UnknownError, match="is half made"):
        labs.find(name)
    (found.folder / labs.PLAN).unlink()
    with pytest.raises(UnknownError, match="is half made"):
        labs.find(name)
    assert name not in labs.labs()
    netns.remove(found.plan.namespace("gw-2"))
    with pytest.raises(ConflictError):
        labs.up(LabPlan(name, 2), {})
    labs.down(name)
    assert [each for each in netns.names() if name in each] == []
    assert not found.folder.exists()
    with pytest.raises(UnknownError, match=r"lab .* not found"):
        labs.down(name)


def test_a_lab_that_cannot_be_made_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """When creating a lab fails half-way, its parts are removed."""
    name = f"{NAME}-fails"
    monkeypatch.setattr("lab.emulation.start.TO_QUEUE", ("--no-such-option",))
    with pytest.raises(UnavailableError, match="ip6tables cannot"):
        labs.up(LabPlan(name, 2), {}, emulator=Emulator.QUEUE)
    assert [each for each in netns.names() if name in each] == []
    assert not (labs.FOLDER / name).exists()


def main_ok(*arguments: str) -> None:
    """Run a command of the lab, and check that it succeeds."""
    with pytest.raises(SystemExit) as caught:
        main([*arguments])
    assert not caught.value.code


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition is met."""
    ends_s = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < ends_s, "it never came"
        time.sleep(0.01)
