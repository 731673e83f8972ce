"""Calls of programs that never end: whatever goes wrong is one of the errors that they go on after."""

from __future__ import annotations

from typing import TypeVar

import httpx

from seaway.client.call import Call
from seaway.client.errors import AnswerError
from seaway.client.sync import Client

T = TypeVar("T")


def send(client: Client, call: Call[T]) -> T:
    """Make a call, and read its answer.

    Raises
    ------
    SeawayError
        As `seaway.client.errors` sorts them; also when an answer is none of HTTP.
    """
    try:
        return client.send(call)
    except httpx.HTTPError as error:
        raise AnswerError(f"{client.target.server} answers what cannot be read: {error}") from None
