"""Events as they are shown, the same in lists and in the live stream."""

from __future__ import annotations

from typing import Any

from seaway.application.records import Event
from seaway.wire.message import Shown
from seaway.wire.times import moment


class EventOut(Shown):
    """Something that happened."""

    id: int
    """Counts up over all events; follow from here with `Last-Event-ID`."""
    at: str
    kind: str
    """One word of the list in docs/events.md, like `state`."""
    reason: str
    """Reason, a sentence for people."""
    actor: str
    """Name of the token, or the part of Seaway that caused it."""
    tenant: str
    """Tenant that can see it; empty for events of the fleet."""
    job_id: str
    """The job; empty for the fleet's own."""
    state: str
    """The job's state after it; empty for other kinds."""
    attempt: int
    """Number of the attempt; 0 for none."""

    @classmethod
    def of(cls, event: Event) -> EventOut:
        """Show an event."""
        return cls.model_validate(event_fields(event))


class EventList(Shown):
    """Events in order."""

    events: list[EventOut]
    next: int | None
    """Give this as `after` to get what follows; null when there was no more."""


def event_fields(event: Event) -> dict[str, Any]:
    """Show an event as the fields of `EventOut`."""
    return {
        "id": event.id,
        "at": moment(event.at_ns),
        "kind": event.kind,
        "reason": event.reason,
        "actor": event.actor,
        "tenant": event.tenant,
        "job_id": event.job_id,
        "state": event.state,
        "attempt": event.attempt,
    }
