"""Settings of the agent of a gateway, and its current assignment."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.application.ports.agent import Assignment


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The agent of a gateway, `seaway agent`."""

    gateway: str = ""
    """Name of the gateway in the network configuration. Flag `--gateway`."""
    server: str = ""
    """URL of the control plane. Empty for `SEAWAY_SERVER`. Without both, `network` is required. Flag `--server`."""
    token_file: str = ""
    """Path of the token file. Empty for the variable `SEAWAY_TOKEN`. Read once, before privileges are dropped. Flag
    `--token-file`.
    """
    network: str = ""
    """Path of a network file with the targets, used without a server or until the server responds. Flag `--network`."""
    address: str = ""
    """Source address of probes.

    With `any`, the kernel selects it by route. Empty uses the address from the network file or the server. Flag
    `--address`.
    """
    netns: str = ""
    """Network namespace of the probes.

    Empty for that of the process. HTTP requests always use the namespace of the process. Flag `--netns`.
    """
    user: str = "nobody"
    """User that a process started by root switches to after it opened its sockets. Flag `--user`."""
    refresh_s: float = 30
    """Seconds between two requests for the list of targets; more than 0."""
    queue_rounds: int = 50_000
    """Maximum number of results that are stored while the server is unreachable. The oldest are dropped first."""
    queue_mib: int = 16
    """Maximum size of the stored results, MiB, as sent."""
    request_timeout_s: float = 10
    """Timeout of a request to the server, seconds."""


class Duty:
    """Latest assignment. It remains valid while the controller does not respond.

    One thread writes it, others read it.

    Parameters
    ----------
    first
        Assignment before the first response of the controller; None for none.
    """

    def __init__(self, first: Assignment | None = None) -> None:
        self.now = first
        """Current assignment; None before the first."""

    def set(self, assignment: Assignment) -> bool:
        """Set the assignment; report whether it changed."""
        changed = assignment != self.now
        self.now = assignment
        return changed
