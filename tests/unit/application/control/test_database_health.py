"""A database outage is noticed even without writes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from seaway.application import writer as writing
from seaway.application.control.overload import PATIENCE_S, DatabaseHealth
from seaway.domain.errors import UnavailableError
from seaway.testing.clocks import VirtualClock
from tests.unit.application.scene import scene


@dataclass
class Database:
    """A database that can be unavailable, or slow."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    away: bool = False

    def ping(self) -> None:
        """Answer."""
        if self.away:
            raise UnavailableError("the database does not answer")


def test_a_database_that_is_away_is_a_trouble_until_it_is_back() -> None:
    """It begins with the first failed check, and ends with the next good one."""
    database = Database()
    database_health = DatabaseHealth(database.ping, database.clock)
    for database.away, trouble in ((False, ""), (True, "the database does not answer"), (False, "")):
        database_health.look()
        assert database_health.trouble == trouble


def test_a_database_that_hangs_is_a_trouble_while_it_does() -> None:
    """Reading the problems does not wait for it."""
    clock, seen = VirtualClock(), []

    def ping() -> None:
        seen.append(database_health.trouble)
        clock.advance_s(PATIENCE_S + 1)
        seen.append(database_health.trouble)

    database_health = DatabaseHealth(ping, clock)
    database_health.look()
    assert seen == ["", f"the database has not answered for {PATIENCE_S + 1} s"]
    assert database_health.trouble == ""


def test_a_database_that_stores_nothing_is_an_alert_and_leaves_the_loop_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk, pages and commands still show the fleet, and the reason why nothing is stored."""
    made = scene()
    made.plane.run(5)
    monkeypatch.setattr(writing, "IDLE_S", 0)

    def touch() -> None:
        raise UnavailableError("the disk under the database is full")

    monkeypatch.setattr(made.plane.store, "touch", touch)
    made.plane.controller.database_health.look()
    figures = made.plane.overview.figures()
    assert (figures.ready, figures.store.trouble) == (True, "the disk under the database is full")


def test_nothing_can_be_placed_while_the_database_is_away() -> None:
    """Alerts and readiness report it, though no change has failed."""
    made = scene()
    made.plane.run(5)
    figures = made.plane.overview.figures
    assert figures().ready
    failures = figures().store.failures
    made.plane.store.database.available = False
    made.plane.controller.database_health.look()
    assert not figures().ready
    assert "set to be unavailable" in made.plane.controller.unready()
    assert figures().store.failures == failures
    made.plane.store.database.available = True
    made.plane.controller.database_health.look()
    assert figures().ready
