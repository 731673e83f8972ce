"""A gateway that follows the control plane, for any answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from seaway.application.agent.following import EVERY_S, MAX_S, Follower
from seaway.application.ports.steering import Wanted
from seaway.domain.errors import ConflictError, ForbiddenError, SeawayError, UnavailableError, UnknownError
from seaway.domain.gateways import Pair
from tests.fakes.gateways import make_network, make_path

NETWORK = make_network(3, [Pair("gw-1", "gw-3", (make_path("direct", 3), make_path("via-2", 2, 3)))])
FIRST = Wanted("1", NETWORK, {"gw-2": "direct", "gw-3": "direct"}, {})


@dataclass
class World:
    """A control plane and a gateway, both in memory."""

    now: Wanted = FIRST
    deaf: SeawayError | None = None
    refuses: SeawayError | None = None
    stuck: SeawayError | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    confirmed: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def wanted(self) -> Wanted:
        """Return the wanted state."""
        if self.deaf:
            raise self.deaf
        return self.now

    def confirm(self, wanted: Wanted) -> None:
        """Record the confirmation."""
        if self.refuses:
            raise self.refuses
        self.confirmed.append((wanted.version, wanted.active))
        self.now = replace(self.now, applied=wanted.active)

    def reach(self, wanted: Wanted) -> int:
        """Write the state."""
        if self.stuck:
            raise self.stuck
        changes = sum(self.written.get(target) != path for target, path in wanted.active.items())
        self.written = dict(wanted.active)
        return changes

    def take(self, path: str) -> None:
        """Choose another path for traffic to the third gateway."""
        self.now = replace(self.now, active={**self.now.active, "gw-3": path})


def following(world: World) -> Follower:
    """Create a follower of a world."""
    return Follower(world, world, Random(1))


def test_change_is_written_and_confirmed_once(caplog: pytest.LogCaptureFixture) -> None:
    """Another path is written in the next cycle and confirmed once."""
    caplog.set_level(logging.INFO)
    world = World()
    follower = following(world)
    assert [follower.step() for _ in range(3)] == [EVERY_S] * 3
    world.take("via-2")
    follower.step()
    follower.step()
    assert world.written == {"gw-2": "direct", "gw-3": "via-2"}
    assert [active["gw-3"] for _, active in world.confirmed] == ["direct", "via-2"]
    assert "1 changes made, network version 1; gw-3 by via-2" in caplog.text


def test_confirmation_that_was_lost_is_given_again() -> None:
    """If the control plane lost a confirmation, as after a restore, it is sent again."""
    world = World()
    follower = following(world)
    follower.step()
    world.now = replace(world.now, applied={})
    follower.step()
    assert len(world.confirmed) == 2


def test_what_another_user_changed_is_put_right() -> None:
    """Every cycle restores the wanted state, also if that did not change."""
    world = World()
    follower = following(world)
    follower.step()
    world.written = {}
    follower.step()
    assert world.written == world.now.active


@pytest.mark.parametrize("error", [UnavailableError("away"), UnknownError("no gw-1"), ForbiddenError("not yours")])
def test_without_an_answer_the_gateway_stays_as_it_is(error: SeawayError, caplog: pytest.LogCaptureFixture) -> None:
    """Without an answer nothing changes; it is logged once, and retried less and less often."""
    world = World()
    follower = following(world)
    follower.step()
    world.deaf = error
    pauses = [follower.step() for _ in range(20)]
    assert MAX_S / 2 <= max(pauses) <= MAX_S
    assert world.written == world.now.active
    assert caplog.text.count("the gateway stays as it is") == 1
    world.deaf = None
    world.take("via-2")
    assert follower.step() == EVERY_S
    assert world.written["gw-3"] == "via-2"
    assert "works again" in caplog.text


def test_something_else_is_wanted_by_then(caplog: pytest.LogCaptureFixture) -> None:
    """When the confirmation is too late the gateway retries soon, without a log entry."""
    world = World(refuses=ConflictError("the network is at version 2"))
    follower = following(world)
    assert follower.step() < 1
    world.refuses = None
    assert follower.step() == EVERY_S
    assert caplog.text == ""


def test_what_cannot_be_written_is_not_confirmed(caplog: pytest.LogCaptureFixture) -> None:
    """A rejected change is logged with its reason, not confirmed, and retried."""
    world = World(stuck=ForbiddenError("this requires root"))
    follower = following(world)
    follower.step()
    follower.step()
    assert world.confirmed == []
    assert caplog.text.count("this requires root") == 1
    world.stuck = None
    follower.step()
    assert len(world.confirmed) == 1
