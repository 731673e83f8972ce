"""Of choices that come quickly one after the other, the last counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from seaway.client.call import Call, Text
from seaway.domain.errors import SeawayError, UnavailableError
from seaway.web.latest import Latest
from seaway.web.visit import Visit


class Slow:
    """A visitor whose answers come when the test says."""

    def __init__(self) -> None:
        self.answers: dict[str, asyncio.Future[str]] = {}
        self.callback: dict[str, Callable[[str], Any]] = {}
        self.stopped: list[str] = []

    async def follow(self, call: Call[str], callback: Callable[[str], Any], interval_s: float) -> Callable[[], None]:
        """Answer a call once its answer is there."""
        del interval_s
        self.callback[call.path] = callback
        answer = self.answers[call.path] = asyncio.get_running_loop().create_future()
        callback(await answer)
        return lambda: self.stopped.append(call.path)


def call(path: str) -> Call[str]:
    """Return a call."""
    return Call("GET", path, Text())


def test_an_older_choice_is_neither_shown_nor_followed_whenever_its_answer_comes() -> None:
    """Anything that was chosen last is on the page, also where the answer before it comes after it."""

    async def test() -> None:
        visit, shown = Slow(), list[str]()
        latest = Latest(cast(Visit, visit))
        first = asyncio.create_task(latest.begin().follow(call("/first"), shown.append))
        await asyncio.sleep(0)
        second = asyncio.create_task(latest.begin().follow(call("/second"), shown.append))
        await asyncio.sleep(0)
        visit.answers["/second"].set_result("second")
        assert await second
        visit.answers["/first"].set_result("first")
        assert not await first
        visit.callback["/first"]("first again")
        assert shown == ["second"]
        assert visit.stopped == ["/first"]
        latest.end()
        assert visit.stopped == ["/first", "/second"]

    asyncio.run(test())


@pytest.mark.parametrize("counts", [True, False])
def test_what_goes_wrong_concerns_the_choice_that_counts(counts: bool) -> None:
    """The error of an older choice is not reported, for no one waits for its answer."""

    async def test() -> None:
        visit = Slow()
        latest = Latest(cast(Visit, visit))
        asked = asyncio.create_task(latest.begin().follow(call("/first"), lambda _: None))
        await asyncio.sleep(0)
        if not counts:
            latest.begin()
        visit.answers["/first"].set_exception(UnavailableError("silent"))
        if counts:
            with pytest.raises(SeawayError, match="silent"):
                await asked
        else:
            assert not await asked

    asyncio.run(test())
