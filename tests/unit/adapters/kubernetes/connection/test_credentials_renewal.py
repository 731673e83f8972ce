"""Limits on how often credentials are renewed."""

from __future__ import annotations

from seaway.adapters.kubernetes.connection.credentials import RenewalLimit


def test_the_first_is_at_once_and_more_come_after_pauses_that_double() -> None:
    """Later renewals wait for doubled pauses, however many callers request one; a quiet time resets the pause."""
    now_s = 0.0
    renewing = RenewalLimit(lambda: now_s, min_s=1, max_s=4)
    renewed: list[float] = []
    while now_s < 20:
        renewed += [now_s] if renewing.allows() else []
        now_s += 0.5
    assert renewed == [0, 1, 3, 7, 11, 15, 19]
    now_s = 19 + 8
    assert renewing.allows()
    now_s += 1
    assert renewing.allows(), "the pause is the shortest again"


def test_the_pause_begins_when_what_took_long_failed() -> None:
    """A renewal that fails after half a minute is not repeated immediately for each waiting caller."""
    now_s = 0.0
    renewing = RenewalLimit(lambda: now_s, min_s=1, max_s=4)
    renewing.failed()
    begun = []
    for _ in range(5):
        while not renewing.allows():
            now_s += 0.5
        begun.append(now_s)
        now_s += 30
        renewing.failed()
    assert begun == [0, 31, 63, 97, 131]
