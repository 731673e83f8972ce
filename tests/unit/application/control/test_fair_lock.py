from __future__ import annotations

import threading

from seaway.application.control.loop import FairLock

PATIENCE_S = 20


def test_anyone_waits_goes_before_the_holder() -> None:
    """A holder that releases the lock and wants it again gets it after earlier waiters."""
    rounds, order = FairLock(), []

    def want() -> None:
        with rounds:
            order.append("waiter")

    waiter = threading.Thread(target=want)
    with rounds:
        waiter.start()
        while not rounds._next.locked():  # noqa: SLF001  # whether it waits by now
            threading.Event().wait(0.001)
    with rounds:
        order.append("holder")
    waiter.join(PATIENCE_S)
    assert order == ["waiter", "holder"]
