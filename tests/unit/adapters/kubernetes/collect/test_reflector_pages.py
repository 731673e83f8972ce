"""A list in a single answer may be long: it gets time, and does not block others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from seaway.adapters.kubernetes.collect import reflector as at_once
from seaway.adapters.kubernetes.collect.reflector import read_in_slices
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.objects.core import Item
from seaway.adapters.kubernetes.objects.decode import Page
from seaway.domain.errors import UnavailableError

CALL_S = 0.2
ITEMS = 40


class Slow(Api):
    """A server that lists some objects, the second of them broken, in small pieces."""

    def __init__(self, pause_s: float = 0.0) -> None:
        super().__init__("alpha", Credentials(Path("none"), "alpha"), request_timeout_s=CALL_S)
        self._pause_s = pause_s
        items = [{"metadata": {"name": f"thing-{at}"} if at != 1 else 1} for at in range(ITEMS)]
        self.body = json.dumps({"metadata": {"resourceVersion": "7"}, "items": items}).encode()

    @asynccontextmanager
    async def pieces(
        self, path: str, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Answer in pieces."""
        assert (path, params, idle_timeout_s) == ("/things", {}, CALL_S)
        yield self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        step = len(self.body) // 8
        for first in range(0, len(self.body), step):
            await asyncio.sleep(self._pause_s)
            yield self.body[first : first + step]


def read(api: Api) -> Page[Item]:
    """Read its list."""
    return asyncio.run(read_in_slices(api, "/things", {}, Item))


def test_it_may_take_longer_than_a_call() -> None:
    """A list may arrive for longer than a call's timeout; a broken object does not affect the others."""
    page = read(Slow(CALL_S / 4))
    assert [each.metadata.name for each in page.items] == [f"thing-{at}" for at in range(ITEMS) if at != 1]
    assert len(page.broken) == 1
    assert page.metadata.resource_version == "7"


def test_it_ends_however_long_something_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that never ends, or is too large to store, is given up."""
    monkeypatch.setattr(at_once, "LIST_TIMEOUT_CALLS", 1)
    with pytest.raises(TimeoutError):
        read(Slow(CALL_S / 2))
    monkeypatch.setattr(at_once, "MAX_BYTES", 100)
    with pytest.raises(UnavailableError, match="more than 100 bytes for /things"):
        read(Slow())


def test_others_have_their_rounds_while_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other clusters' watches run on the same event loop."""
    monkeypatch.setattr(at_once, "TIME_SLICE_S", 0.0)
    rounds: list[int] = []

    async def count() -> None:
        while True:
            rounds.append(1)
            await asyncio.sleep(0)

    async def both() -> None:
        counting = asyncio.create_task(count())
        await read_in_slices(Slow(), "/things", {}, Item)
        counting.cancel()

    asyncio.run(both())
    assert len(rounds) >= ITEMS
