from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from seaway.application import writer as writing
from seaway.application.changes import Change, Feed, Outcome
from seaway.application.transitions import accepted, stepped
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, InvariantError, UnavailableError
from seaway.domain.job_state import JobState
from tests.fakes.memory_store import MemoryStore
from tests.fakes.records import event_of, job_record

PATIENCE_S = 10


class SlowStore(MemoryStore):
    """A store whose commits take until the test lets them go on."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.open = threading.Semaphore(0)

    def commit(self, changes: Sequence[Change]) -> list[Outcome]:
        """Wait, then store."""
        self.entered.release()
        assert self.open.acquire(timeout=PATIENCE_S)
        return super().commit(changes)


def led(store: MemoryStore | None = None) -> tuple[Writer, MemoryStore]:
    """Make a writer without a thread."""
    made = store or MemoryStore()
    made.lead("test")
    return Writer(made), made


def new() -> Change:
    """Make a change that stores a new job."""
    return accepted(job_record())


def ids(store: MemoryStore) -> list[int]:
    """Return the ids of stored events."""
    return [event.id for event in store.events(0, 1000)]


def test_what_comes_in_meanwhile_is_stored_together() -> None:
    """While one group is on its way, all that comes waits and goes as the next, in order."""
    store = SlowStore()
    writer, _ = led(store)
    writer.start()
    reported: list[int] = []
    writer.listen(lambda changes: reported.append(len(changes)))
    changes = [new() for _ in range(6)]
    done: list[list[Outcome]] = []
    threads = [threading.Thread(target=lambda each=each: done.append(writer.commit([each]))) for each in changes]
    threads[0].start()
    assert store.entered.acquire(timeout=PATIENCE_S)
    for thread in threads[1:]:
        thread.start()
    _until(lambda: len(writer._waiting) == 5)  # noqa: SLF001
    for _ in range(2):
        store.open.release()
    for thread in threads:
        thread.join(PATIENCE_S)
    writer.stop()
    assert done == [[Outcome.STORED]] * 6
    assert reported == [1, 5]
    assert (writer.groups, writer.stored) == (2, 6)
    assert ids(store) == list(range(1, 7))


def test_a_group_has_a_limit_but_takes_at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups end before they grow too large; one that is too large alone still goes."""
    monkeypatch.setattr(writing, "MAX_TOGETHER", 3)
    store = SlowStore()
    writer, _ = led(store)
    reported: list[int] = []
    writer.listen(lambda changes: reported.append(len(changes)))

    async def bring() -> None:
        tasks = [asyncio.ensure_future(writer.stored_soon(new())) for _ in range(5)]
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, _until, lambda: len(writer._waiting) == 5)  # noqa: SLF001
        large = loop.run_in_executor(None, writer.commit, [new() for _ in range(7)])
        await loop.run_in_executor(None, _until, lambda: len(writer._waiting) == 6)  # noqa: SLF001
        for _ in range(9):
            store.open.release()
        writer_thread_may_begin.set()
        await asyncio.gather(*tasks, large)

    writer_thread_may_begin = threading.Event()
    store.entered.release()
    run = writer._run  # noqa: SLF001
    writer._run = lambda: (writer_thread_may_begin.wait(PATIENCE_S), run())  # type: ignore[method-assign,assignment]  # noqa: SLF001
    writer.start()
    asyncio.run(bring())
    writer.stop()
    assert sorted(reported) == [2, 3, 7]


def _until(what: Callable[[], bool]) -> None:
    """Wait for what nothing tells."""
    for _ in range(PATIENCE_S * 1000):
        if what():
            return
        threading.Event().wait(0.001)
    pytest.fail("it never came to be")


def test_a_conflict_concerns_its_own_change_only() -> None:
    """Of changes that are stored together, one that comes too late is refused, and no other."""
    writer, store = led()
    job = job_record()
    writer.commit([accepted(job)])
    one = stepped(replace(job, version=2, state=JobState.QUEUED), "ada")
    other = stepped(replace(job, version=2, state=JobState.CANCELLED), "bob")
    received: list[Change] = []
    writer.listen(received.extend)
    outcomes = writer.commit([new(), one, other, new()])
    assert outcomes == [Outcome.STORED, Outcome.STORED, Outcome.CONFLICT, Outcome.STORED]
    assert other not in received
    assert len(received) == 3
    found = store.job(job.id)
    assert found is not None
    assert found.state is JobState.QUEUED
    with pytest.raises(ConflictError):
        writer.require(other)


def test_event_ids_only_count_up() -> None:
    """Ids are given in the order of storing, have no duplicates, and go on after failures and restarts."""
    writer, store = led()
    writer.commit([new()])
    for after in (False, True):
        store.fail_next(after=after)
        with pytest.raises(UnavailableError):
            writer.commit([new(), new()])
        writer.commit([new()])
    assert ids(store) == [1, 2, 3, 4, 5]
    Writer(store).commit([new()])
    assert ids(store) == [1, 2, 3, 4, 5, 6]


def test_everybody_a_waiting_user_observes_that_the_store_is_unavailable() -> None:
    """When a group fails, all who brought something to it are reported so; the next group goes as ever."""
    writer, store = led()
    writer.start()
    store.set_available(False)

    async def bring() -> list[Outcome | BaseException]:
        return await asyncio.gather(*[writer.stored_soon(new()) for _ in range(4)], return_exceptions=True)

    assert [type(each) for each in asyncio.run(bring())] == [UnavailableError] * 4
    with pytest.raises(UnavailableError):
        writer.commit([new()])
    store.set_available(True)
    assert asyncio.run(bring()) == [Outcome.STORED] * 4
    writer.stop()


def test_a_failure_in_doubt_is_reported() -> None:
    """A user who keeps in memory what is stored observes when that is not known any more."""
    writer, store = led()
    doubts: list[int] = []
    writer.listen(lambda _: None, lambda: doubts.append(1))
    for error in (UnavailableError("gone"), InvariantError("another process writes now")):
        store.fail_next(error, after=True)
        with pytest.raises(type(error)):
            writer.commit([new()])
    assert len(doubts) == 2


def test_a_repaired_row_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No change says that a damaged row is whole again, or gone, so listeners reload; not while rows stay damaged."""
    writer, store = led()
    asked: list[int] = []
    writer.listen(lambda _: None, lambda: asked.append(1))
    for damaged in (["a", "b"], ["a", "b"], ["a"], ["a"], []):
        monkeypatch.setattr(store, "unreadable", partial(list, damaged))
        assert writer.unreadable() == damaged
    assert len(asked) == 2


def test_a_listener_that_fails_harms_no_one() -> None:
    """Anything that is stored is stored: the other listeners hear of it, and anyone who brought it is reported so."""
    writer, _ = led()
    received: list[Change] = []

    def fail(_: Sequence[Change]) -> None:
        raise RuntimeError("the event loop is closed")

    writer.listen(fail)
    writer.listen(received.extend)
    assert writer.commit([new()]) == [Outcome.STORED]
    assert len(received) == 1


def test_stopping_stores_what_waits_and_takes_nothing_more() -> None:
    """Anything that was brought before the end is stored; anyone who comes after it is asked to come again."""
    store = SlowStore()
    writer, _ = led(store)
    writer.start()
    done: list[list[Outcome]] = []
    threads = [threading.Thread(target=lambda: done.append(writer.commit([new()]))) for _ in range(3)]
    threads[0].start()
    assert store.entered.acquire(timeout=PATIENCE_S)
    for thread in threads[1:]:
        thread.start()
    _until(lambda: len(writer._waiting) == 2)  # noqa: SLF001
    stopper = threading.Thread(target=writer.stop)
    stopper.start()
    _until(lambda: writer._stopping)  # noqa: SLF001
    with pytest.raises(UnavailableError, match="shutting down"):
        writer.commit([new()])
    for _ in range(3):
        store.open.release()
    for thread in (*threads, stopper):
        thread.join(PATIENCE_S)
    assert done == [[Outcome.STORED]] * 3
    assert len(list(store.live_jobs())) == 3


def test_too_much_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """When more waits than can be stored soon, anyone who comes is asked to come again."""
    monkeypatch.setattr(writing, "MAX_WAITING", 1)
    store = SlowStore()
    writer, _ = led(store)
    writer.start()
    threads = [threading.Thread(target=lambda: writer.commit([new()])) for _ in range(2)]
    threads[0].start()
    assert store.entered.acquire(timeout=PATIENCE_S)
    threads[1].start()
    _until(lambda: len(writer._waiting) == 1)  # noqa: SLF001
    with pytest.raises(UnavailableError, match="too many changes wait"):
        writer.commit([new()])
    for _ in range(2):
        store.open.release()
    for thread in threads:
        thread.join(PATIENCE_S)
    writer.stop()


def test_a_full_disk_is_noticed_without_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that stored something lately needs no test; after an error the next test asks again."""
    writer, store = led()
    touched: list[int] = []

    def touch() -> None:
        touched.append(1)
        if len(touched) == 1:
            raise UnavailableError("the disk is full")

    monkeypatch.setattr(store, "touch", touch)
    writer.test()
    assert (touched, writer.trouble) == ([], "")
    monkeypatch.setattr(writing, "IDLE_S", 0)
    writer.test()
    assert (writer.trouble, writer.failures) == ("the disk is full", 0)
    writer.test()
    assert writer.trouble == ""


def test_a_writer_without_changes_notices_another_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives up as it does with a change."""
    monkeypatch.setattr(writing, "IDLE_S", 0)
    writer, store = led()
    called: list[str] = []
    writer.on_superseded(lambda: called.append(writer.superseded))
    MemoryStore(store.database).lead("another")
    for _ in range(2):
        writer.test()
    assert len(called) == 1
    assert called[0]


def test_nothing_is_stored_for_nothing() -> None:
    """No changes cost no transaction."""
    writer, store = led()
    assert writer.commit([]) == []
    assert not store.commits


def test_who_follows_misses_no_event_whose_storing_was_in_doubt() -> None:
    """After a failure the feed sends everybody to the store, for events may be there that it never observed."""
    writer, store = led()
    feed = Feed()
    writer.listen(feed.publish, feed.forget)
    writer.commit([new()])
    store.fail_next(after=True)
    with pytest.raises(UnavailableError):
        writer.commit([new()])
    writer.commit([Change(insert=[event_of()])])
    assert ids(store) == [1, 2, 3]
    assert feed.since(1) is None
    since = feed.since(2)
    assert since is not None
    assert [event.id for event in since] == [3]
