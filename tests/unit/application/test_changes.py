from __future__ import annotations

import pytest

from seaway.application import changes as feeding
from seaway.application.changes import Change, Feed
from tests.fakes.records import event_of, job_record


def of(*ids: int) -> list[Change]:
    """Make changes with events of these ids, and one without any."""
    return [Change(insert=[job_record(), event_of(id=number)]) for number in ids] + [Change(insert=[job_record()])]


def since(feed: Feed, after: int) -> list[int] | None:
    """Return the ids of events after one."""
    events = feed.since(after)
    return None if events is None else [event.id for event in events]


def test_events_are_stored_in_order() -> None:
    """Anyone who knows how far they read gets what came after it."""
    feed = Feed()
    assert (feed.last, since(feed, 0)) == (0, None)
    feed.publish(of(1, 2))
    feed.publish(of(3))
    assert feed.last == 3
    assert [since(feed, after) for after in (0, 1, 3, 9)] == [[1, 2, 3], [2, 3], [], []]


def test_holes_are_no_matter() -> None:
    """Ids have holes where a change was in conflict."""
    feed = Feed()
    feed.publish(of(5, 9, 12))
    assert [since(feed, after) for after in (4, 6, 10)] == [[5, 9, 12], [9, 12], [12]]


def test_who_is_too_far_behind_reads_from_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory reaches back only so far; None says that it does not reach back enough, also after forgetting."""
    monkeypatch.setattr(feeding, "MAX_STORED", 3)
    feed = Feed()
    feed.publish(of(1, 2, 3, 4))
    assert since(feed, 0) is None
    assert since(feed, 1) == [2, 3, 4]
    feed.forget()
    assert since(feed, 4) is None


def test_a_waiting_user_is_woken_until_they_leave() -> None:
    """Each batch with events wakes every subscriber once; one without wakes no one."""
    feed, woken = Feed(), list[str]()
    leave = feed.subscribe(lambda: woken.append("a"))
    feed.subscribe(lambda: woken.append("b"))
    feed.publish(of(1, 2))
    assert sorted(woken) == ["a", "b"]
    feed.publish(of())
    leave()
    leave()
    feed.publish(of(3))
    assert sorted(woken) == ["a", "b", "b"]
