"""A process after another one took over."""

from __future__ import annotations

import asyncio
import threading
from random import Random

import pytest

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.application.changes import Change
from seaway.application.control.cluster_threads import Threads
from seaway.application.control.loop import Controller
from seaway.application.control.settings import ControlSettings
from seaway.application.ports.clock import SystemClock
from seaway.application.records import Cordon
from seaway.application.writer import Writer
from seaway.domain.errors import UnavailableError
from tests.fakes.control_plane import make_policy
from tests.fakes.memory_store import MemoryDatabase, MemoryStore
from tests.unit.application.scene import scene, two_clusters

PATIENCE_S = 10
CHANGE = Change(put=[Cordon("alpha", "", False, "repair", "ada", 1)])


def test_nothing_is_stored_from_then_on() -> None:
    """Every caller gets the error permanently, also after the database is released again."""
    store, called, doubts = MemoryStore(), [], []
    writer = Writer(store)
    store.lead("first")
    writer.on_superseded(lambda: called.append(1))
    writer.listen(lambda _: None, lambda: doubts.append(1))
    MemoryStore(store.database).lead("second")
    with pytest.raises(UnavailableError, match="another process writes now"):
        writer.commit([CHANGE])
    store.lead("first")
    with pytest.raises(UnavailableError, match="another process writes now"):
        writer.require(CHANGE)
    writer.start()
    with pytest.raises(UnavailableError, match="another process writes now"):
        asyncio.run(writer.stored_soon(CHANGE))
    writer.stop()
    assert (called, doubts, store.cordons()) == ([1], [], [])
    writer.on_superseded(lambda: called.append(2))
    assert called == [1, 2]


def test_clusters_are_reported_nothing_more() -> None:
    """Pending commands are not sent: the new leader sends them, or others."""
    made = scene(initial_backoff_s=1000)
    made.cluster("alpha").disconnect()
    job_id = made.submit()
    assert made.state(job_id) == "scheduled"
    MemoryStore(made.plane.store.database).lead("second")
    with pytest.raises(UnavailableError):
        made.plane.operations.cordon("beta", "", "ada", "repair")
    made.cluster("alpha").reconnect()
    for _ in range(5):
        made.clock.advance_s(5)
        with pytest.raises(UnavailableError, match="another process writes now"):
            made.plane.controller.step()
    made.plane.controller._dispatcher.collect()  # noqa: SLF001  # no one else does any more
    assert made.phase("alpha", job_id) is None
    assert made.plane.controller.unready() == "another process writes now"


def test_threads_end_by_themselves() -> None:
    """The loop's own thread ends, as do those of the clusters."""
    clock, database, done = SystemClock(), MemoryDatabase(), threading.Event()
    store = MemoryStore(database)
    store.lead("first")
    writer = Writer(store)
    clusters = SimulatedBackends(two_clusters(), clock, Options(start_delay_s=0))
    threads = Threads(clock, Random(1), stale_after_s=0.3)
    controller = Controller(store, writer, clusters, threads, make_policy, clock, ControlSettings(poll_interval_s=0.05))
    threads.on_report = controller.wake
    writer.on_superseded(done.set)
    before = set(threading.enumerate())
    writer.start()
    controller.start()
    MemoryStore(database).lead("second")
    with pytest.raises(UnavailableError):
        writer.commit([CHANGE])
    assert done.wait(PATIENCE_S)
    for names in ("controller",), ("topology", "tell ", "listen "):  # the first starts the others
        for thread in set(threading.enumerate()) - before:
            if thread.name.startswith(names):
                thread.join(PATIENCE_S)
                assert not thread.is_alive(), thread.name
    assert not threads.collect()
    threads.use(clusters.clusters())
    assert not [each for each in set(threading.enumerate()) - before if each.name.startswith("tell ")]
    writer.stop()
    clusters.close()
