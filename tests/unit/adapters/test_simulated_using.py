"""Real use of devices in simulated clusters."""

from __future__ import annotations

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.ports.backend import Command
from seaway.application.ports.usage import usage_of
from seaway.domain.deployment import Deployment
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import DeviceSlice, Placement
from seaway.testing.clocks import VirtualClock
from seaway.testing.plugins import cluster, fleet, gpu, job, node


def made(clock: VirtualClock, *, measures: bool) -> SimulatedBackends:
    """Create a cluster of one node of two devices."""
    world = fleet(cluster(node(gpu(uuid="one"), gpu(uuid="two"), name="node-1"), name="alpha"))
    return SimulatedBackends(world, clock, Options(start_delay_s=1, waits=False, measures=measures))


def command() -> Command:
    """Create a deployment with half of device ``one``."""
    place = Placement("job-1", 0, "alpha", "node-1", (DeviceSlice("one", 40_960, 500),))
    return Deployment("job-1", 1, "alpha", JobSpec("work", job(gpus=1).demand), (place,))


def test_what_runs_uses_some_of_what_it_holds() -> None:
    """Nothing before it runs, then most of its memory and no more cores than it holds; idle devices say so."""
    clock = VirtualClock()
    world = made(clock, measures=True)
    assert usage_of("alpha", world.clusters())["node-1"].devices["one"].memory_bytes == 0
    world.cluster("alpha").send([command()])
    clock.advance_s(10)
    world.cluster("alpha").changes("", 0)
    seen = []
    for _ in range(20):
        used = usage_of("alpha", world.clusters())["node-1"].devices
        assert used["two"] == (0, 0, 0.0)
        assert 0.6 * 40_960 <= (used["one"].memory_bytes or 0) >> 20 <= 0.95 * 40_960
        seen.append(used["one"].core_milli or 0)
        clock.advance_s(15)
    assert max(seen) <= 500
    assert min(seen) < max(seen)


def test_who_does_not_measure_or_cannot_be_reached_says_nothing() -> None:
    """Unknown use is not zero use."""
    clock = VirtualClock()
    assert usage_of("alpha", made(clock, measures=False).clusters()) == {}
    world = made(clock, measures=True)
    world.cluster("alpha").disconnect()
    assert usage_of("alpha", world.clusters()) == {}
