"""Ports for the configuration of gateways: the control plane and the gateway machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from seaway.domain.gateways import NetworkConfig


@dataclass(frozen=True, slots=True)
class Wanted:
    """Configuration of a gateway.

    Attributes
    ----------
    version
        Version of the network configuration.
    active
        Path to use, by target.
    applied
        Path that the gateway confirmed last, by target.
    serving
        Gateway that carries the traffic of each cluster.
    """

    version: str
    config: NetworkConfig
    active: Mapping[str, str]
    applied: Mapping[str, str]
    serving: Mapping[str, str] = field(default_factory=dict)


class Steerer(Protocol):
    """Client of the control plane for a gateway. Both methods raise as `ports.agent.Controller` does."""

    def wanted(self) -> Wanted:
        """Return the current configuration of this gateway."""

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
            If the configuration cannot be applied; the message has the reason.
        """
