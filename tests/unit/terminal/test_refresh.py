"""When the server is looked at again."""

from __future__ import annotations

import asyncio

from seaway.terminal.refresh import AGAIN_S, GAP_S, PERIOD_S, REST, Due


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Return its time."""
        return self.now_s


def looked(clock: Clock, took_s: float = 0.0, *, failed: bool = False) -> Due:
    """Return what is due after a look that took some time."""
    due = Due(clock=clock)
    due.begin()
    clock.now_s += took_s
    due.end(failed=failed)
    return due


def test_the_first_look_is_at_once() -> None:
    """No one waits before an empty screen."""
    assert Due(clock=Clock()).left_s() == 0


def test_without_a_change_it_is_looked_every_few_seconds() -> None:
    """Anything that is measured has no events."""
    assert looked(Clock()).left_s() == PERIOD_S


def test_however_much_changes_there_is_a_gap_between_looks() -> None:
    """A thousand events are one look, and that well within a second of the first."""
    clock = Clock()
    due = looked(clock)
    clock.now_s += GAP_S / 2
    for _ in range(1000):
        due.changed()
    assert 0 < due.left_s() <= GAP_S / 2 < 1


def test_a_slow_server_is_left_alone_for_longer() -> None:
    """It is never asked more than a third of the time."""
    due = looked(Clock(), took_s=2.0)
    due.changed()
    assert due.left_s() == REST * 2.0 - 2.0


def test_what_failed_is_tried_again_soon() -> None:
    """Also where nothing tells of a change, as nothing does while the server is away."""
    assert looked(Clock(), failed=True).left_s() == AGAIN_S


def test_a_waiting_user_for_an_answer_does_not_wait_for_the_gap() -> None:
    """A key that opens something looks at once, even at a slow server."""
    due = looked(Clock(), took_s=2.0)
    due.at_once()
    assert due.left_s() == 0


def test_a_change_during_a_look_leads_to_another() -> None:
    """The look that goes on may not have seen it."""
    due = Due(clock=Clock())
    due.begin()
    due.changed()
    due.end()
    assert due.left_s() == GAP_S


def test_a_change_wakes_a_waiting_user() -> None:
    """A turn that would have come in seconds comes after the gap."""

    async def turn() -> None:
        due = Due(period_s=60.0)
        await due.turn()
        due.end()
        waiting = asyncio.create_task(due.turn())
        await asyncio.sleep(0)
        due.changed()
        await asyncio.wait_for(waiting, 10.0)

    asyncio.run(turn())
