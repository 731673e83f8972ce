from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from itertools import pairwise
from random import Random
from threading import Event

from seaway.application.network.bandwidth import MAX_WAIT, SOON_S, Bandwidths, TrafficWatch
from seaway.application.ports.traffic import Missed, Outcome, Reading
from seaway.domain.gateways import GatewayConfig
from seaway.probing.rounds import Rates
from seaway.testing.clocks import VirtualClock

EVERY_S = 10.0
GOOD, FIRST, UNREACHABLE = Reading(Rates(1, 2), 1000), Reading(None, 1000), Missed(Outcome.UNREACHABLE, "no answer")


def gateway(name: str, exporter: str = "http://there/") -> GatewayConfig:
    """Return a gateway."""
    return GatewayConfig(name, ip_address("::1"), interface="wan", exporter=exporter)


class World:
    """Gateways that are watched, and what is seen of each."""

    def __init__(self, *gateways: GatewayConfig) -> None:
        self.gateways = list(gateways)
        self.sees: dict[str, Reading | Missed] = {}
        self.looked: list[tuple[float, tuple[str, ...]]] = []
        self.clock = VirtualClock()
        self.asked = Event()
        bandwidths = Bandwidths(self, 30, self.clock)
        self.watch = TrafficWatch(bandwidths, lambda: self.gateways, EVERY_S, self.clock, Random(1))

    def covers(self, gateway: GatewayConfig) -> bool:
        """See `TrafficMeter`."""
        return bool(gateway.exporter)

    def read(self, gateways: Sequence[GatewayConfig]) -> dict[str, Reading | Missed]:
        """See `TrafficMeter`."""
        self.looked.append((self.clock.monotonic_ns() / 10**9, tuple(each.name for each in gateways)))
        self.asked.set()
        return {each.name: self.sees.get(each.name, GOOD) for each in gateways}

    def run(self, seconds: float) -> None:
        """Let time pass, as the thread would."""
        end_s = self.clock.monotonic_ns() / 10**9 + seconds
        while (now_s := self.clock.monotonic_ns() / 10**9) < end_s:
            self.clock.advance_s(min(self.watch.look(), end_s - now_s))


def test_all_are_looked_at_together_once_a_period() -> None:
    """But those that nothing can be asked of."""
    world = World(gateway("a"), gateway("b"), gateway("bare", exporter=""))
    world.run(25)
    assert world.looked == [(0, ("a", "b")), (10, ("a", "b")), (20, ("a", "b"))]


def test_one_that_takes_another_look_gets_it_soon() -> None:
    """A rate takes two; the others are not looked at for that."""
    world = World(gateway("a"), gateway("new"))
    world.sees["new"] = FIRST
    world.watch.look()
    world.sees["new"] = GOOD
    world.clock.advance_s(SOON_S)
    world.watch.look()
    assert world.looked == [(0, ("a", "new")), (SOON_S, ("new",))]


def test_one_that_is_unreachable_is_tried_ever_more_seldom_and_at_once_as_often_again() -> None:
    """The others go on as before."""
    world = World(gateway("a"), gateway("silent"))
    world.sees["silent"] = UNREACHABLE
    world.run(600)
    tries = [at_s for at_s, names in world.looked if "silent" in names]
    waits = [after - before for before, after in pairwise(tries)]
    assert waits[0] <= 2 * EVERY_S
    assert all(MAX_WAIT * EVERY_S * 0.25 < wait <= MAX_WAIT * EVERY_S for wait in waits[4:])
    assert 60 <= sum("a" in names for _, names in world.looked) <= 62
    world.sees.clear()
    world.run(2 * MAX_WAIT * EVERY_S)
    tries = [at_s for at_s, names in world.looked if "silent" in names]
    assert tries[-1] - tries[-2] == EVERY_S


def test_a_gateway_that_comes_later_is_looked_at_within_a_period() -> None:
    """And one that is gone no more."""
    world = World(gateway("a"))
    world.watch.look()
    world.gateways = [gateway("b")]
    assert world.watch.look() <= EVERY_S
    assert world.looked == [(0, ("a",)), (0, ("b",))]


def test_one_that_is_configured_again_is_not_stored_waiting_for_what_it_was() -> None:
    """A user who corrects an address need not wait for ten periods."""
    world = World(gateway("a", "http://wrong/"))
    world.sees["a"] = UNREACHABLE
    world.watch.look()
    world.gateways = [gateway("a", "http://right/")]
    world.watch.look()
    assert len(world.looked) == 2


def test_the_thread_looks_at_once_and_a_mistake_does_not_end_it() -> None:
    """It is logged, and the next look is as if nothing had been."""
    world = World(gateway("a"))
    world.watch = TrafficWatch(Bandwidths(world, 30, world.clock), lambda: world.gateways, 0.01, world.clock, Random(1))
    world.sees["a"] = None  # type: ignore[assignment]  # a mistake
    world.watch.start()
    assert world.asked.wait(30)
    world.sees.clear()
    world.clock.advance_s(1)
    world.asked.clear()
    assert world.asked.wait(30)
    world.watch.stop()
