"""A list of everything in one answer: what is left where a server forgets its pages sooner than they are read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import TypeVar

from seaway.adapters.kubernetes.collect.news import TURN_S
from seaway.adapters.kubernetes.connection.answers import MOST_BYTES
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.objects.decode import page_of, read_body, read_item
from seaway.adapters.kubernetes.objects.page import Broken, Page, RawPage
from seaway.adapters.kubernetes.objects.part import Part
from seaway.domain.errors import UnavailableError

CALLS = 12
"""How many times as long as a call it may take in all; without a byte no longer than a call."""

T = TypeVar("T", bound=Part)


async def read_at_once(api: Api, path: str, params: Mapping[str, str], kind: type[T]) -> Page[T]:
    """Read a list that may have 50,000 objects, and decode it in turns: other clusters are followed meanwhile.

    Raises
    ------
    ApiError
        The server refused.
    UnavailableError
        It did not answer in time, or more than anybody can take.
    UndecodableError
        It is no list.
    """
    page = read_body(await _whole(api, path, params), RawPage)
    read: list[T | Broken] = []
    end_s = perf_counter() + TURN_S
    for raw in page.items or ():
        read.append(read_item(raw, kind))
        if perf_counter() >= end_s:
            await asyncio.sleep(0)
            end_s = perf_counter() + TURN_S
    return page_of(page, read)


async def _whole(api: Api, path: str, params: Mapping[str, str]) -> bytes:
    said, size = [], 0
    async with api.pieces(path, params, api.call_s) as pieces, asyncio.timeout(CALLS * api.call_s):
        async for piece in pieces:
            said.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                raise UnavailableError(f"{api.name} answers more than {MOST_BYTES} bytes at once to {path}")
    return b"".join(said)
