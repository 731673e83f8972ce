"""Changes: what is stored together or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from seaway.application.records import (
    AgentRecord,
    Attempt,
    AuditEntry,
    ClusterName,
    ClusterSample,
    Cordon,
    EvaluationRecord,
    Event,
    IdempotencyKey,
    JobRecord,
    LinkSample,
    NetworkRecord,
    PathRecord,
    PendingCommand,
    PolicyRecord,
    ShadowResult,
    Token,
)
from seaway.domain.tenancy import Pool, Queue, Tenant

Record = (
    JobRecord
    | Attempt
    | PendingCommand
    | Event
    | IdempotencyKey
    | Token
    | AuditEntry
    | Cordon
    | ClusterName
    | ClusterSample
    | LinkSample
    | NetworkRecord
    | AgentRecord
    | PathRecord
    | EvaluationRecord
    | PolicyRecord
    | ShadowResult
    | Tenant
    | Pool
    | Queue
)


@dataclass(slots=True)
class Change:
    """One unit of work.

    Attributes
    ----------
    insert
        New rows. A row that is there already is a conflict.
    update
        Rows by key. A `JobRecord` is written only where the stored version is one less than its own,
        else that is a conflict; so is an `Attempt` or a `Token` that is not there.
    put
        Rows by key, new or not.
    delete
        Rows to remove by the key of the given value; one that is not there is passed over.
    """

    insert: list[Record] = field(default_factory=list)
    update: list[Record] = field(default_factory=list)
    put: list[Record] = field(default_factory=list)
    delete: list[Record] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.insert or self.update or self.put or self.delete)

    def add(self, other: Change) -> None:
        """Make everything of another change a part of this one."""
        self.insert += other.insert
        self.update += other.update
        self.put += other.put
        self.delete += other.delete


class Outcome(Enum):
    """Result of storing a change."""

    STORED = auto()
    CONFLICT = auto()
    """A user changed a row of it first, or a new row is there already. Nothing of it was stored."""
