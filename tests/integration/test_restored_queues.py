"""Queues remember what matters after a restart, a restore from backup, and a change of leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from seaway.adapters.sqlalchemy import backup, open_store, restore
from seaway.application.changes import Change
from seaway.domain.cluster import Fleet
from seaway.domain.errors import UnavailableError
from seaway.domain.queues import Order, Preemption, Queue
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import Tenant
from seaway.testing.plugins import cluster, fleet, gpu, node
from tests.fakes.control_plane import SmallControlPlane
from tests.unit.application.scene import Scene, scene, spec

NS = 1_000_000_000

Succession = Callable[[Scene], None]
"""Replacement of the control plane of a scene by one that knows only what is stored."""


def restarted(made: Scene) -> None:
    """Start the control plane again on the same database."""
    made.plane.restart()


def led_by_another(made: Scene) -> None:
    """Let another process lead; the former leader stores nothing any more."""
    before, url = made.plane, _url(made)
    made.plane = _on(made, url)
    before.clock.advance_s(10)
    with pytest.raises(UnavailableError):
        before.submit(spec())


def restored(made: Scene) -> None:
    """Restore a backup into another database, half a minute after it was written."""
    file, url = Path(f"{_url(made).removeprefix('sqlite:///')}.backup"), f"{_url(made)}-2"
    backup(_url(made), file, made.clock.now_ns())
    made.clock.advance_s(30)
    restore(url, file)
    made.plane = _on(made, url)


SUCCESSIONS = (restarted, led_by_another, restored)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Return a function that creates a control plane on SQLite, with queues and tenants."""
    began: list[Scene] = []

    def start(parts: Fleet, *records: Queue | Tenant, **settings: Any) -> Scene:  # noqa: ANN401  # of the loop
        made = scene(parts, **settings)
        made.plane = _on(made, f"sqlite:///{tmp_path}/store.sqlite3")
        made.plane.writer.commit([Change(put=[*records])])
        made.plane.settle()
        began.append(made)
        return made

    yield start
    for made in began:
        made.plane.store.close()


def _on(made: Scene, url: str) -> SmallControlPlane:
    store: Any = open_store(url)
    plane = SmallControlPlane(made.clusters, store, made.clock, made.plane.settings)
    plane.settle()
    return plane


def _url(made: Scene) -> str:
    return str(made.plane.store).split("'")[1]


def gpus(*nodes: int) -> Fleet:
    """Return a fleet with a cluster for each number of GPUs."""
    parts = zip(("alpha", "beta"), nodes, strict=False)
    return fleet(*(cluster(node(*[gpu() for _ in range(count)]), name=name) for name, count in parts))


def past(made: Scene) -> Mapping[str, float]:
    """Return the mean number of GPUs that each queue held."""
    made.plane.controller.live.decay_usage()
    found = made.plane.controller.live.tree.past.items()
    return {queue: amounts.get("gpus", 0) / 1000 for (queue, _), amounts in found}


@pytest.mark.parametrize("follow", SUCCESSIONS)
def test_past_use_still_counts(begin: Callable[..., Scene], follow: Succession) -> None:
    """Queues have the same decayed use as before, of jobs that ended and of one that runs, and get what follows."""
    made = begin(gpus(4), Queue("x"), Queue("y"), usage_half_life_s=600)
    made.plane.submit(*[spec(queue="x", expected_duration_s=900) for _ in range(3)])
    made.plane.submit(spec(queue="x", expected_duration_s=5000))
    made.plane.run(1000, 10)
    before = past(made)["x"]
    assert 2 < before < 3
    follow(made)
    made.plane.run(40, 10)
    assert past(made)["x"] == pytest.approx(1 + (before - 1) / 2 ** (40 / 600), rel=0.03)
    made.plane.submit(*[spec(queue=name, expected_duration_s=600) for name in "xyxyxy"])
    made.plane.run(20)
    tree = made.plane.controller.live.tree
    assert [tree.use(name).held["gpus"] for name in "xy"] == [1000, 3000]


@pytest.mark.parametrize("follow", SUCCESSIONS)
def test_waiting_jobs_keep_their_age_and_expected_starts(begin: Callable[..., Scene], follow: Succession) -> None:
    """The job that gained priority with its age stays first, a displaced one included, and starts are the same."""
    queue = Queue("x", order=Order.PRIORITY, ageing_s=60, preemption=Preemption.PREEMPT_LOWER_PRIORITY)
    made = begin(gpus(1), queue)
    displaced = made.submit(queue="x", name="displaced", expected_duration_s=1000)
    made.plane.run(10)
    holds = made.submit(queue="x", name="holds", priority=9, time_limit_s=1000)
    made.plane.run(230)
    made.submit(queue="x", name="new", priority=2, expected_duration_s=100)
    made.submit(queue="x", name="newer", priority=8, expected_duration_s=100)

    def waiting() -> list[tuple[str, float]]:
        found = made.plane.overview.waiting()
        return [(each.job.spec.name, (each.starts_ns or 0) / NS) for each in found]

    before = waiting()
    assert [name for name, _ in before] == ["newer", "displaced", "new"]
    follow(made)
    made.plane.run(5)
    after = waiting()
    assert [name for name, _ in after] == ["newer", "displaced", "new"]
    assert [at_s for _, at_s in after] == pytest.approx([at_s for _, at_s in before], abs=5)
    assert [made.job(each).attempt for each in (displaced, holds)] == [1, 1]


@pytest.mark.parametrize("follow", SUCCESSIONS)
def test_reservations_and_maintenance_stay(begin: Callable[..., Scene], follow: Succession) -> None:
    """Reserved GPUs are the same ones, a cordon of maintenance stays once, and no job that moved for it moves again."""
    made = begin(gpus(4, 4), Tenant("a"), Tenant("b"))
    moves = made.submit(clusters=frozenset({"alpha", "beta"}), tenant="b")
    away = made.where(moves)
    now_ns = made.clock.now_ns()
    fix = AdvanceReservation("fix", now_ns, now_ns + 300 * NS, clusters=frozenset({away}), drain=True)
    made.plane.operations.put_reservation(fix, "ada")
    made.plane.run(20)
    demo = AdvanceReservation("demo", now_ns + 100 * NS, now_ns + 600 * NS, tenant="a", gpus=2)
    made.plane.operations.put_reservation(demo, "ada")
    made.plane.run(5)
    assert (made.state(moves), made.job(moves).attempt) == ("running", 2)
    reserved, cordons = made.plane.controller.live.advance.devices(demo), made.plane.store.cordons()
    assert [each.cluster for each in cordons] == [away]
    follow(made)
    made.plane.run(5)
    assert made.plane.controller.live.advance.devices(demo) == reserved
    assert made.plane.store.cordons() == cordons
    assert (made.state(moves), made.job(moves).attempt) == ("running", 2)
    others = made.plane.submit(*[spec(tenant="b") for _ in range(3)])
    own = made.plane.submit(*[spec(tenant="a") for _ in range(2)])
    made.plane.run(5)
    assert (sum(made.plane.state(each).placed for each in others), made.plane.state(own[0]).placed) == (1, True)
    made.plane.run(290, 10)
    assert not made.plane.store.cordons(), "maintenance has ended"
    assert [each.reservation.name for each in made.plane.operations.reservations()] == ["demo"]


@pytest.mark.parametrize("follow", SUCCESSIONS)
def test_a_winner_gets_the_place_of_its_victims(begin: Callable[..., Scene], follow: Succession) -> None:
    """While a victim ends, its place goes to no other job, and no further job is displaced."""
    made = begin(gpus(3), Queue("x", preemption=Preemption.PREEMPT_LOWER_PRIORITY), Queue("y"))
    low = made.plane.submit(*[spec(queue="x") for _ in range(3)])
    made.plane.run(10)
    made.cluster("alpha").disconnect(for_s=45)
    high = made.submit(queue="x", priority=5)
    other = made.plane.submit(spec(queue="y"))[0]
    follow(made)
    made.plane.run(60)
    states = [made.state(each) for each in (*low, high, other)]
    assert (states[-2:], states[:3].count("running")) == (["running", "queued"], 2)
