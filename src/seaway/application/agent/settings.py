"""What an agent can be told."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.application.ports.agent import Assignment


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The agent of a gateway, `seaway agent`.

    Attributes
    ----------
    gateway
        Its name.
    server
        URL of the control plane; empty for none.
    token_file
        Where the agent's token is; empty for the variable ``SEAWAY_TOKEN``.
    network
        A network file: what is probed without a server, and until it answers for the first time.
    address
        Its own, which probes are sent from; ``any`` leaves that to the routes, empty asks network file or server.
    netns
        The network namespace that is probed from; empty for the agent's own.
    user
        As whom it goes on once its sockets are open, when it is started as root.
    refresh_s
        How often the list of targets is asked for.
    queue_rounds, queue_mib
        How many results, and how much of them, wait at most for a controller that is away.
    call_s
        How long a call to the controller may take.
    """

    gateway: str = ""
    server: str = ""
    token_file: str = ""
    network: str = ""
    address: str = ""
    netns: str = ""
    user: str = "nobody"
    refresh_s: float = 30
    queue_rounds: int = 50_000
    queue_mib: int = 16
    call_s: float = 10


class Duty:
    """Holds what the controller said last, which counts until it says something else, also while it is away.

    One thread writes it, others read it.

    Parameters
    ----------
    first
        What is to be done until the controller says it; None for nothing.
    """

    def __init__(self, first: Assignment | None = None) -> None:
        self.now = first
        """What is to be done; None when nobody has said it."""

    def set(self, assignment: Assignment) -> bool:
        """Take what the controller says; return whether it is another thing than before."""
        changed = assignment != self.now
        self.now = assignment
        return changed
