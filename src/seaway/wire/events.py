"""Views of events, the same in lists and in the live stream."""

from __future__ import annotations

from typing import Any

from seaway.application.records import Event
from seaway.wire.fields import moment
from seaway.wire.message import CodeOut, Shown, fields_of, with_message


class EventOut(Shown):
    """An event of a job or of the fleet."""

    id: int
    """Number of the event, which increases with each event.

    Send it as `Last-Event-ID` to resume the stream after it.
    """
    at: str
    kind: str
    """Kind of event, such as `state`; docs/events.md lists all kinds."""
    message: str
    """Reason, a sentence for people."""
    actor: str
    """Name of the token, or the component of Seaway that caused the event."""
    tenant: str
    """Tenant that can see the event; empty for events of the fleet."""
    job_id: str
    """ID of the job; empty for events of the fleet."""
    state: str
    """State of the job after the event; empty for other kinds."""
    attempt: int
    """Number of the attempt; 0 for none."""
    reason: CodeOut

    @classmethod
    def of(cls, event: Event) -> EventOut:
        """Return the view of an event."""
        return cls.model_validate(event_fields(event))


class EventList(Shown):
    """Events in order."""

    events: list[EventOut]
    next: int | None
    """Cursor of the next page: send it as `after`; null on the last page."""


class RecentEvents(Shown):
    """Latest events of the fleet, newest first."""

    events: list[EventOut]


def event_fields(event: Event) -> dict[str, Any]:
    """Return the fields of `EventOut` for an event."""
    return fields_of(
        EventOut,
        event,
        at=moment(event.at_ns),
        **with_message(event.reason),
    )
