"""Changes: groups of rows that are stored atomically."""

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
    """Atomic set of row changes.

    Attributes
    ----------
    insert
        New rows. An existing row is a conflict.
    update
        Rows by key. A `JobRecord` is a conflict unless the stored version is one less than its own. An `Attempt` or a
        `Token` that does not exist is a conflict too.
    put
        Rows by key, new or not.
    delete
        Rows to remove by the key of the given value. Missing rows are ignored.
    """

    insert: list[Record] = field(default_factory=list)
    update: list[Record] = field(default_factory=list)
    put: list[Record] = field(default_factory=list)
    delete: list[Record] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.insert or self.update or self.put or self.delete)

    def add(self, other: Change) -> None:
        """Merge another change into this one."""
        self.insert += other.insert
        self.update += other.update
        self.put += other.put
        self.delete += other.delete


class Outcome(Enum):
    """Result of storing a change."""

    STORED = auto()
    CONFLICT = auto()
    """Another change of a row came first, or a new row exists already. Nothing of it was stored."""
