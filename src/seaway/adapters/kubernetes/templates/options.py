"""What a cluster's objects depend on besides the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seaway.adapters.kubernetes.templates.pinning import Accesses


def same_name(node: str) -> str:
    """Say that a node's label ``kubernetes.io/hostname`` is its name, as it nearly always is."""
    return node


@dataclass(frozen=True, slots=True)
class Options:
    """How a cluster wants its objects.

    Attributes
    ----------
    accesses
        How devices are asked for, by node and uuid.
    namespace
        Where objects go.
    hostname
        From a node's name to its label ``kubernetes.io/hostname``.
    pull_secrets
        Secrets in the namespace by which images are pulled.
    default_image
        For jobs that name none; without it those are rejected.
    hami_scheduler
        Name of HAMi's scheduler, to be set on pods with its devices. Empty leaves that to HAMi's webhook, which
        lets pods pass unseen while it is down.
    local_queue
        Kueue's LocalQueue; empty for one named like the job's queue.
    volcano_queue
        Volcano's Queue; empty for its default.
    """

    accesses: Accesses
    namespace: str = "seaway"
    hostname: Callable[[str], str] = same_name
    pull_secrets: tuple[str, ...] = ()
    default_image: str = ""
    hami_scheduler: str = ""
    local_queue: str = ""
    volcano_queue: str = ""
