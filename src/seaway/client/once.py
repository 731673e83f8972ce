"""Calls of programs that never end: whatever goes wrong is one of the errors that they go on after."""

from __future__ import annotations

from typing import TypeVar

import httpx

from seaway.client.call import Call
from seaway.client.errors import AnswerError, UnavailableError
from seaway.client.sync import Client

T = TypeVar("T")


def send(client: Client, call: Call[T]) -> T:
    """Make a call, and read its answer.

    Raises
    ------
    SeawayError
        As `seaway.client.errors` sorts them; also when an answer is none of HTTP. A server that did not answer at all
        has not said after how long to ask again: ``retry_after_s`` is 0.
    """
    try:
        return client.send(call)
    except UnavailableError as error:
        if isinstance(error.__cause__, httpx.TransportError):
            raise UnavailableError(str(error), retry_after_s=0) from None
        raise
    except httpx.HTTPError as error:
        raise AnswerError(f"{client.target.server} answers what cannot be read: {error}") from None
