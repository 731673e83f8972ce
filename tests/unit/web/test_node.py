"""The page of one node."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from nicegui import Client, core

from seaway.domain.errors import RejectedError
from seaway.web.pages.fleet import node
from seaway.web.visit import Visit
from seaway.web.words import Words
from seaway.wire.fleet import AmountOut, NodeOut, NodePage
from seaway.wire.message import CodeOut

pytestmark = pytest.mark.anyio

AMOUNT = AmountOut(total=1, used=0, free=1)
THERE = NodeOut(
    cluster="a",
    name="n",
    ready=True,
    message="",
    reason=CodeOut(code="", params={}),
    cordon=None,
    cpu_milli=AMOUNT,
    memory_mib=AMOUNT,
    pods=None,
    devices=[],
)


async def test_nothing_is_offered_of_a_node_that_is_gone(client: Client) -> None:
    """Its cards are seen no longer, and it cannot be drained; where it returns both are there again."""
    shown: list[Callable[[NodePage], None]] = []
    page = NodePage(nodes=[THERE], next=None)

    async def ask(_: object) -> NodePage:
        return page

    async def follow(_: object, callback: Callable[[NodePage], None]) -> None:
        shown.append(callback)

    visit = SimpleNamespace(words=Words(), part=str, ask=ask, follow=follow, may=lambda _: True, locate=Mock())
    with client.content:
        await node.build(cast("Visit", visit))
    (callback,) = shown
    seen = []
    for nodes in ([THERE], [], [THERE]):
        callback(NodePage(nodes=nodes, next=None))
        seen.append([each.visible for each in client.elements.values() if "fragment" in each.classes])
    assert seen == [[True, True, True], [True, False, False], [True, True, True]]


async def test_what_a_page_repeats_ends_with_the_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs only while the browser is connected, goes on after errors, and does not hold a closed page."""
    connected, ran = asyncio.Event(), list[None]()
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
    monkeypatch.setattr(Client, "has_socket_connection", property(lambda _: connected.is_set()))
    monkeypatch.setattr("seaway.web.visit.app", SimpleNamespace(handle_exception=lambda _: None))
    asker = cast("Any", Mock())
    visit = Visit(cast("Any", Mock()), asker, asker, Words(), "auto", asker, client)

    def act() -> None:
        ran.append(None)
        raise RejectedError("busy")

    with client.content:
        visit.repeat(0.0, act)
    held = weakref.ref(act)
    await yields(5)
    assert not ran
    connected.set()
    await yields(10)
    assert len(ran) > 1
    visit._end()  # noqa: SLF001
    del act
    await yields(3)
    gc.collect()
    assert held() is None


async def yields(count: int) -> None:
    """Let tasks go on."""
    for _ in range(count):
        await asyncio.sleep(0)
