"""One copy in a simulated cluster."""

from __future__ import annotations

from dataclasses import dataclass

from seaway.adapters.simulated.books import Key
from seaway.adapters.simulated.journal import Created, Ended
from seaway.domain.deployment import Cause, Container, Copy, CopyPhase, ReplicaStatus, deployment_name

NAMESPACE, CONTAINER = "default", "main"
"""Where all pods are, and the only container of each."""

LIVE = frozenset({CopyPhase.STARTING, CopyPhase.RUNNING})


@dataclass(slots=True, eq=False)
class Record:
    """A copy as its cluster keeps it.

    Attributes
    ----------
    made
        All that was settled when it was created.
    culprits
        Replicas that failed by themselves, and took the others with them; empty when all ended alike.
    ended_ns
        When it ended; None while it lives.
    cause
        What its failure comes from.
    """

    made: Created
    phase: CopyPhase = CopyPhase.STARTING
    reason: str = ""
    culprits: tuple[int, ...] = ()
    ended_ns: int | None = None
    cause: Cause = Cause.WORKLOAD

    @property
    def key(self) -> Key:
        """Its job and attempt."""
        return self.made.job_id, self.made.attempt

    @property
    def due_ns(self) -> int | None:
        """When it changes next by itself; None when it does not."""
        made = self.made
        if self.phase is CopyPhase.STARTING:
            return made.starts_ns
        if self.phase is CopyPhase.RUNNING:
            if made.vanishes_ns is None or made.ends_ns is None:
                return made.ends_ns if made.vanishes_ns is None else made.vanishes_ns
            return min(made.ends_ns, made.vanishes_ns)
        return None

    def end(self, entry: Ended) -> None:
        """Note how it ended."""
        self.phase = CopyPhase.SUCCEEDED if entry.succeeded else CopyPhase.FAILED
        self.reason, self.culprits, self.cause = entry.reason, entry.replicas, entry.cause
        self.ended_ns = entry.at_ns

    def seen(self, cluster: str) -> Copy:
        """Return what is seen of it."""
        made, name = self.made, deployment_name(*self.key)
        containers = (Container(CONTAINER, made.ports),)
        replicas = tuple(
            ReplicaStatus(
                each.replica,
                self.phase,
                each.node,
                each.slices,
                self._why(each.replica),
                made.cpu_milli,
                made.memory_mib,
                f"{NAMESPACE}/{name}-{each.replica}",
                (CONTAINER,) * len(each.slices),
                containers,
            )
            for each in made.placements
        )
        serves = made.ports and self.phase is CopyPhase.RUNNING
        address = f"{name}.{cluster}.simulated:{','.join(map(str, made.ports))}" if serves else ""
        return Copy(made.job_id, made.attempt, cluster, self.phase, replicas, self.reason, address, self.cause)

    def _why(self, replica: int) -> str:
        if not self.culprits or replica in self.culprits:
            return self.reason
        return f"stopped, for replica {self.culprits[0]} failed"


def gone(key: Key, cluster: str) -> Copy:
    """Return what is said once of a copy that is removed."""
    return Copy(*key, cluster, CopyPhase.GONE)
