"""One question for all who look at the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from seaway.client.call import Call, Text
from seaway.domain.errors import SeawayError, UnauthenticatedError, UnavailableError
from seaway.web.api_client import ApiClient
from seaway.web.query_cache import LARGE_BYTES, Follower, QueryCache, pause_of

EVERY_S = 0.01
CALL = Call("GET", "/figures", Text())


@dataclass
class World:
    """Anything that is asked: an answer, or what goes wrong, and who asked."""

    answer: bytes = b"1"
    wrong: SeawayError | None = None
    asked: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    """A user whose tokens do not hold any more."""


@dataclass
class AUser:
    """A user who looks."""

    world: World
    name: str
    callback: list[str] = field(default_factory=list)
    failed: list[SeawayError | None] = field(default_factory=list)

    async def ask(self, call: Call[bytes]) -> bytes:
        """Ask the world."""
        self.world.asked.append(self.name)
        await asyncio.sleep(0)
        if self.name in self.world.ended:
            raise UnauthenticatedError("ended")
        if self.world.wrong:
            raise self.world.wrong
        return call.answer.read(self.world.answer)

    here: bool = True
    """A check whether he is there to see something."""

    def follower(self) -> Follower[str]:
        """Return him as a follower."""
        return Follower(cast(ApiClient, self), self.callback.append, self.failed.append, looks=lambda: self.here)


def run(test: Callable[[World, QueryCache], Coroutine[Any, Any, None]]) -> None:
    """Run a test on a loop of its own."""
    asyncio.run(test(World(), QueryCache()))


async def soon(so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(5):
        while not so():
            await asyncio.sleep(EVERY_S)


def test_all_observe_of_a_change_and_it_is_asked_once_for_all() -> None:
    """Ten who look at the same cost as many questions as one; each observes an answer once."""

    async def test(world: World, query_cache: QueryCache) -> None:
        people = [AUser(world, str(number)) for number in range(10)]
        stops = [await query_cache.follow("all", CALL, each.follower(), EVERY_S) for each in people]
        world.answer = b"2"
        await soon(lambda: all(each.callback[-1] == "2" for each in people))
        before = len(world.asked)
        await soon(lambda: len(world.asked) >= before + 5)
        assert set(world.asked[before:]) == {"0"}
        assert all(each.callback == ["1", "2"] for each in people)
        for stop in stops:
            stop()

    run(test)


def test_what_a_newcomer_requests_again_is_asked_to_all() -> None:
    """An answer that came first to a user who has just joined is no less news to others."""

    async def test(world: World, query_cache: QueryCache) -> None:
        first, second = AUser(world, "first"), AUser(world, "second")
        stop = await query_cache.follow("all", CALL, first.follower(), EVERY_S)
        world.answer = b"2"
        await asyncio.sleep(EVERY_S * 0.99)
        other = await query_cache.follow("all", CALL, second.follower(), EVERY_S)
        await soon(lambda: first.callback == ["1", "2"] and second.callback[-1] == "2")
        stop()
        other()

    run(test)


def test_who_may_not_see_the_same_is_asked_for_apart() -> None:
    """No one observes an answer that was given to another role or tenant."""

    async def test(world: World, query_cache: QueryCache) -> None:
        ours, theirs = AUser(world, "ours"), AUser(world, "theirs")
        stops = [
            await query_cache.follow("our tenant", CALL, ours.follower(), EVERY_S),
            await query_cache.follow("their tenant", CALL, theirs.follower(), EVERY_S),
        ]
        assert world.asked[:2] == ["ours", "theirs"]
        for stop in stops:
            stop()

    run(test)


def test_nothing_is_asked_when_no_one_looks() -> None:
    """The last follower that leaves ends the queries, also if it leaves twice; a later one starts over."""

    async def test(world: World, query_cache: QueryCache) -> None:
        a_user = AUser(world, "first")
        stop = await query_cache.follow("all", CALL, a_user.follower(), EVERY_S)
        stop()
        asked = len(world.asked)
        await asyncio.sleep(5 * EVERY_S)
        assert len(world.asked) == asked
        later = AUser(world, "later")
        stop_later = await query_cache.follow("all", CALL, later.follower(), EVERY_S)
        stop()
        world.answer = b"2"
        await soon(lambda: later.callback == ["1", "2"])
        stop_later()

    run(test)


def test_who_is_not_there_yet_observes_the_first_answer_and_costs_no_more() -> None:
    """A page is whole when it comes; it is asked again once its browser is there, and no longer than that."""

    async def test(world: World, query_cache: QueryCache) -> None:
        a_user = AUser(world, "first", here=False)
        follower = a_user.follower()
        stop = await query_cache.follow("all", CALL, follower, EVERY_S)
        world.answer = b"2"
        await asyncio.sleep(5 * EVERY_S)
        assert (a_user.callback, world.asked) == (["1"], ["first"])
        a_user.here = True
        query_cache.come(follower)
        await soon(lambda: a_user.callback == ["1", "2"])
        a_user.here = False
        await asyncio.sleep(5 * EVERY_S)
        asked = len(world.asked)
        await asyncio.sleep(5 * EVERY_S)
        assert len(world.asked) == asked
        world.answer, a_user.here = b"3", True
        query_cache.come(follower)
        await soon(lambda: a_user.callback == ["1", "2", "3"])
        stop()

    run(test)


def test_who_comes_to_what_others_look_at_observes_what_he_has_missed() -> None:
    """Nothing is written for a user who is not there; the newest is, as soon as he is."""

    async def test(world: World, query_cache: QueryCache) -> None:
        early, late = AUser(world, "early"), AUser(world, "late", here=False)
        waits = late.follower()
        stops = [await query_cache.follow("all", CALL, each, EVERY_S) for each in (early.follower(), waits)]
        for answer in ("2", "3"):
            world.answer = answer.encode()
            await soon(lambda answer=answer: early.callback[-1] == answer)  # type: ignore[misc]  # it is text
        assert late.callback == ["1"]
        late.here = True
        query_cache.come(waits)
        await soon(lambda: late.callback == ["1", "3"])
        for stop in stops:
            stop()

    run(test)


def test_a_token_that_ended_concerns_its_bearer_alone() -> None:
    """He observes so; the others go on by another user's."""

    async def test(world: World, query_cache: QueryCache) -> None:
        first, second = AUser(world, "first"), AUser(world, "second")
        stops = [await query_cache.follow("all", CALL, each.follower(), EVERY_S) for each in (first, second)]
        world.ended, world.answer = {"first"}, b"2"
        await soon(lambda: second.callback == ["1", "2"])
        assert isinstance(first.failed[0], UnauthenticatedError)
        assert second.failed == []
        for stop in stops:
            stop()

    run(test)


def test_trouble_is_asked_to_all_and_its_end_too() -> None:
    """While nothing answers everybody observes why; once it does, even the same as before, that it is over."""

    async def test(world: World, query_cache: QueryCache) -> None:
        people = [AUser(world, "first"), AUser(world, "second")]
        stops = [await query_cache.follow("all", CALL, each.follower(), EVERY_S) for each in people]
        world.wrong = UnavailableError("silent")
        await soon(lambda: all(each.failed for each in people))
        world.wrong = None
        await soon(lambda: all(each.failed[-1] is None for each in people))
        assert all(each.callback == ["1"] for each in people)
        for stop in stops:
            stop()

    run(test)


def test_who_cannot_be_answered_at_first_observes_why() -> None:
    """The error is his who asks, and leaves nothing behind."""

    async def test(world: World, query_cache: QueryCache) -> None:
        world.wrong = UnavailableError("silent")
        a_user = AUser(world, "first")
        with pytest.raises(UnavailableError, match="silent"):
            await query_cache.follow("all", CALL, a_user.follower(), EVERY_S)
        world.wrong = None
        stop = await query_cache.follow("all", CALL, a_user.follower(), EVERY_S)
        assert a_user.callback == ["1"]
        stop()

    run(test)


def test_who_is_slow_holds_up_no_one_and_observes_the_newest_next() -> None:
    """Each is reported at his own pace; what came and went while a user took in something else he never observes."""

    async def test(world: World, query_cache: QueryCache) -> None:
        slow, quick = AUser(world, "slow"), AUser(world, "quick")
        go_on = asyncio.Event()
        go_on.set()

        async def take_in(answer: str) -> None:
            slow.callback.append(answer)
            await go_on.wait()

        stops = [
            await query_cache.follow(
                "all", CALL, Follower(cast(ApiClient, slow), take_in, slow.failed.append), EVERY_S
            ),
            await query_cache.follow("all", CALL, quick.follower(), EVERY_S),
        ]
        go_on.clear()
        for answer in ("2", "3", "4"):
            world.answer = answer.encode()
            await soon(lambda answer=answer: quick.callback[-1] == answer)  # type: ignore[misc]  # it is text
        assert slow.callback == ["1", "2"]
        go_on.set()
        await soon(lambda: slow.callback[-1] == "4")
        assert slow.callback == ["1", "2", "4"]
        for stop in stops:
            stop()

    run(test)


def test_what_is_asked_for_again_is_asked_at_once() -> None:
    """Anyone who knows that something has changed need not wait until it is looked at by itself."""

    async def test(world: World, query_cache: QueryCache) -> None:
        a_user = AUser(world, "first")
        stop = await query_cache.follow("all", CALL, a_user.follower(), 3600)
        world.answer = b"2"
        query_cache.ask_again("all", CALL)
        query_cache.ask_again("others", CALL)
        await soon(lambda: a_user.callback == ["1", "2"])
        stop()

    run(test)


def test_while_jobs_are_placed_pages_take_little_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thing is asked at a time, with rests between; all are asked in turn, and freely once that is over."""
    monkeypatch.setattr("seaway.web.query_cache.REST", 1e6)
    monkeypatch.setattr("seaway.web.query_cache.MAX_REST_S", 0.1)
    busy = [False]
    calls = [Call("GET", f"/{number}", Text()) for number in range(4)]

    async def test() -> None:
        world, query_cache = World(), QueryCache(lambda: busy[0])
        people = [AUser(world, call.path) for call in calls]
        stops = [
            await query_cache.follow("all", call, a_user.follower(), EVERY_S)
            for call, a_user in zip(calls, people, strict=True)
        ]
        busy[0] = True
        await asyncio.sleep(0.1)  # who was at it is done
        before = len(world.asked)
        await soon(lambda: len(world.asked) >= before + 4)
        asked_s = asyncio.get_running_loop().time()
        assert sorted(world.asked[before : before + 4]) == [call.path for call in calls]
        await soon(lambda: len(world.asked) >= before + 8)
        assert asyncio.get_running_loop().time() - asked_s >= 0.3
        busy[0], before = False, len(world.asked)
        world.answer = b"2"
        await soon(lambda: all(each.callback[-1] == "2" for each in people))
        for stop in stops:
            stop()

    asyncio.run(test())


def test_a_waiting_user_long_for_an_answer_keeps_no_one_from_his_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """While jobs are placed, a question that hangs, as on a database, is left alone, and the others go on in turn."""
    monkeypatch.setattr("seaway.web.query_cache.MAX_REST_S", 0.05)
    hanging, busy = asyncio.Event(), [False]

    class Hanging(AUser):
        async def ask(self, call: Call[bytes]) -> bytes:
            content = await super().ask(call)
            if busy[0]:
                await hanging.wait()
            return content

    async def test() -> None:
        world, query_cache = World(), QueryCache(lambda: busy[0])
        slow, quick = Hanging(world, "slow"), AUser(world, "quick")
        stops = [
            await query_cache.follow("all", Call("GET", f"/{each.name}", Text()), each.follower(), EVERY_S)
            for each in (slow, quick)
        ]
        busy[0] = True
        await soon(lambda: world.asked[-1] == "slow" or world.asked.count("quick") > 3)
        world.answer = b"2"
        await soon(lambda: quick.callback[-1] == "2")
        assert slow.callback == ["1"]
        hanging.set()
        await soon(lambda: slow.callback[-1] == "2")
        for stop in stops:
            stop()

    asyncio.run(test())


def test_what_is_asked_for_again_waits_for_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who pressed something sees what became of it, however many jobs are being placed."""
    monkeypatch.setattr("seaway.web.query_cache.REST", 1e9)
    monkeypatch.setattr("seaway.web.query_cache.MAX_REST_S", 3600)

    async def test() -> None:
        busy = [False]
        world, query_cache = World(), QueryCache(lambda: busy[0])
        first, second = AUser(world, "first"), AUser(world, "second")
        calls = [Call("GET", f"/{each.name}", Text()) for each in (first, second)]
        stops = [
            await query_cache.follow("all", call, each.follower(), EVERY_S)
            for call, each in zip(calls, (first, second), strict=True)
        ]
        busy[0] = True
        await asyncio.sleep(5 * EVERY_S)  # one of them rests, and the other waits for its turn or its pause
        world.answer = b"2"
        for call in calls:
            query_cache.ask_again("all", call)
        await soon(lambda: {first.callback[-1], second.callback[-1]} >= {"2"})
        for stop in stops:
            stop()

    asyncio.run(test())


def test_large_and_slow_answers_are_asked_less_often() -> None:
    """An answer keeps its interval, unless it took long or is large; a map of 10,000 nodes is read twice a minute."""
    assert pause_of(5.0, 0.5, LARGE_BYTES) == 5.0
    assert pause_of(0.5, 0.5, 1000) == 2.0
    assert 20 < pause_of(5.0, 0.5, 1_500_000) <= 30
