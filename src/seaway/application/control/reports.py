"""What is heard from clusters."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.application.ports.backend import Answer, Changes
from seaway.application.records import Outgoing


@dataclass(frozen=True, slots=True)
class Answered:
    """A cluster's answer to a command."""

    outgoing: Outgoing
    answer: Answer


@dataclass(frozen=True, slots=True)
class Heard:
    """A cluster told what changed.

    Attributes
    ----------
    asked_ns
        When it was asked, by the monotonic clock: it cannot know of what was sent later.
    """

    cluster: str
    changes: Changes
    asked_ns: int


@dataclass(frozen=True, slots=True)
class Silent:
    """A cluster did not answer."""

    cluster: str
    reason: str


Report = Answered | Heard | Silent
