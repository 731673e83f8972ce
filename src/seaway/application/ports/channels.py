"""Interface to the receivers of notifications."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from seaway.domain.notifications import Channel


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send.

    Attributes
    ----------
    id
        Identity, the same at each try.
    subject, text
        Content for people: one line, and the details.
    content
        Content for programs, as JSON.
    at_ns
        Time of the occasion, nanoseconds since 1970.
    link
        URL of the page of the job; empty if unknown.
    """

    id: str
    channel: Channel
    subject: str
    text: str
    content: Mapping[str, Any]
    at_ns: int
    url: str = ""
    secret: str = ""
    addresses: Sequence[str] = field(default_factory=tuple)
    link: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a try.

    Attributes
    ----------
    error
        Reason of the failure; empty if the receiver accepted the message.
    final
        Whether another try is pointless.
    retry_after_s
        Delay before the next try that the receiver asked for, seconds.
    """

    error: str = ""
    final: bool = False
    retry_after_s: float = 0


class Channels(Protocol):
    """Senders of messages."""

    def send(self, message: Message, done: Callable[[Result], None]) -> None:
        """Start to send a message, without blocking. `done` is called once, from any thread."""

    def close(self) -> None:
        """Abandon all tries."""


class Vault(Protocol):
    """Encryption of secrets that the database stores."""

    def seal(self, secret: str, of: str) -> str:
        """Encrypt a secret that belongs to `of`."""

    def unseal(self, sealed: str, of: str) -> str:
        """Decrypt the output of `seal`.

        Raises
        ------
        RejectedError
            If another key encrypted it, or it belongs to another object.
        """
