"""Ports for the configuration of gateways: its source, and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from seaway.domain.gateways import NetworkConfig


@dataclass(frozen=True, slots=True)
class Wanted:
    """Configuration of a gateway.

    Attributes
    ----------
    version
        Version of the network.
    active
        Path that traffic has to use, by target.
    applied
        Path that the gateway confirmed last, by target.
    """

    version: str
    config: NetworkConfig
    active: Mapping[str, str]
    applied: Mapping[str, str]


class Steerer(Protocol):
    """The control plane as a gateway sees it. Both methods raise as `ports.agent.Controller` does."""

    def wanted(self) -> Wanted:
        """Return the present configuration of this gateway."""

    def confirm(self, wanted: Wanted) -> None:
        """Confirm that a configuration is applied.

        Raises
        ------
        ConflictError
            If the configuration changed in the meantime.
        """


class Steered(Protocol):
    """Gateway machine."""

    def reach(self, wanted: Wanted) -> int:
        """Apply a configuration; return the number of changes.

        Raises
        ------
        SeawayError
            If this fails; the message has the reason.
        """
