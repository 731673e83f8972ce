"""Whoever says what a gateway must have, and the machine that is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from seaway.domain.gateways import NetworkConfig


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a gateway must have.

    Attributes
    ----------
    version
        Of the network.
    active
        The path that traffic has to take, by target.
    applied
        The path that the gateway said last that it has written, by target.
    """

    version: str
    config: NetworkConfig
    active: Mapping[str, str]
    applied: Mapping[str, str]


class Steerer(Protocol):
    """The control plane as a gateway sees it. Both raise as `seaway.application.ports.agent.Controller` does."""

    def wanted(self) -> Wanted:
        """Return what this gateway must have now."""

    def confirm(self, wanted: Wanted) -> None:
        """Say that it is written.

        Raises
        ------
        ConflictError
            When something else is wanted by now.
        """


class Steered(Protocol):
    """A machine that is a gateway."""

    def reach(self, wanted: Wanted) -> int:
        """Give it what it must have, and return how many changes that took.

        Raises
        ------
        SeawayError
            When that cannot be done; what is said has why.
        """
