"""Requests and views of notifications."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from seaway.application.notifications import NotificationView
from seaway.application.ports.channels import Result
from seaway.domain.notifications import (
    LONGEST_URL,
    MAX_ADDRESSES,
    WAIT_LIMIT_S,
    Channel,
    Delivery,
    DeliveryState,
    Notification,
    Occasion,
)
from seaway.domain.reasons import time_text
from seaway.wire.fields import (
    LINE_PATTERN,
    Limit,
    Line,
    NameOrNone,
    OccasionName,
    Occasions,
    limit_s,
    moment,
    no_entries,
    several,
)
from seaway.wire.message import Incoming, Shown, fields_of
from seaway.wire.tenancy import versioned

ChannelName = Literal["webhook", "slack", "email"]
MailAddress = Annotated[str, StringConstraints(pattern=LINE_PATTERN, min_length=3, max_length=254)]
MailAddresses = Annotated[
    list[MailAddress],
    Field(max_length=MAX_ADDRESSES),
    BeforeValidator(several, json_schema_input_type=MailAddress | list[MailAddress]),
]
WebhookUrl = Annotated[str, StringConstraints(pattern=LINE_PATTERN, max_length=LONGEST_URL)]
MAX_IDS = 1000


class NotificationIn(Incoming):
    """Messages about jobs to one receiver."""

    channel: ChannelName
    """`webhook` for signed requests, `slack` for an incoming webhook of Slack, `email` for e-mails."""
    url: WebhookUrl = ""
    """URL of the webhook. That of Slack is a secret, and shown without its path."""
    addresses: MailAddresses = no_entries()
    """Addresses of e-mails."""
    secret: Line = ""
    """Secret for signatures of a webhook: `whsec_` and 24 to 64 bytes in base64. Empty for the present or a new one."""
    on: Occasions = Field(default=["failed", "preempted", "finished"])
    """Occasions of messages. Empty for messages only about jobs whose `notify` names it."""
    queue: NameOrNone = ""
    """Queue of the jobs; empty for all."""
    job: NameOrNone = ""
    """Name or ID of the jobs; empty for all."""
    wait_limit: Limit = time_text(WAIT_LIMIT_S)
    """Wait in the queue that is too long."""

    def notification(self, tenant: str, name: str) -> Notification:
        """Return the notification, without its secret.

        Raises
        ------
        RejectedError
            If a field or a combination is invalid.
        """
        return Notification(
            tenant,
            name,
            Channel(self.channel),
            self.url,
            tuple(self.addresses),
            on=tuple(each for each in Occasion if each in self.on),
            queue=self.queue,
            job=self.job,
            wait_limit_s=limit_s(self.wait_limit),
        )


class NotificationOut(Shown):
    """A notification, without its secret."""

    name: str
    tenant: str
    """Tenant of the jobs; empty for all."""
    channel: ChannelName
    url: str
    """URL of the webhook, without the path for Slack."""
    addresses: list[str]
    on: list[OccasionName]
    queue: str
    job: str
    """Name or ID of the jobs; empty for all."""
    wait_limit: str
    waiting: int
    """Number of messages that are sent now or tried again."""
    dead: int
    """Number of dead letters: messages that are not tried again."""
    changed_by: str
    changed_at: str
    version: str
    """Version, used as ETag."""


class NotificationStored(NotificationOut):
    """A stored notification, with a new secret."""

    secret: str
    """New secret of a webhook, which is shown only now; empty if it did not change."""


class NotificationList(Shown):
    """Notifications, by tenant and name."""

    notifications: list[NotificationOut]


class DeliveryOut(Shown):
    """A message to a receiver."""

    id: str
    """ID, also in the header `webhook-id`."""
    tenant: str
    """Tenant of the notification; empty for one of operators."""
    notification: str
    """Name of the notification, or an e-mail address that the job names."""
    job: str
    job_name: str
    occasion: OccasionName
    state: Literal["waiting", "dead", "delivered"]
    tries: int
    error: str
    """Reason for the last failure."""
    created_at: str
    next_at: str
    """Time of the next try, for a waiting message."""
    delivered_at: str | None
    """Time at which its receiver accepted it; null before."""


class DeliveryPage(Shown):
    """Messages, newest first."""

    deliveries: list[DeliveryOut]
    next: str | None
    """Cursor of the next page: send it as `after`; null on the last page."""


class ResendIn(Incoming):
    """Dead letters to send again."""

    ids: Annotated[list[Line], Field(max_length=MAX_IDS)] = no_entries()
    """IDs; empty for all."""


class DeliveryTotal(Shown):
    """Number of messages."""

    count: int


class TrialOut(Shown):
    """Result of a test message."""

    delivered: bool
    error: str
    """Reason for the failure; empty if the receiver accepted the message."""


def written(row: Notification) -> dict[str, Any]:
    """Return the fields of a notification that only its owner changes, with their version."""
    return versioned(
        {
            "name": row.name,
            "tenant": row.tenant,
            "channel": row.channel.value,
            "url": row.url,
            "addresses": list(row.addresses),
            "on": [each.value for each in row.on],
            "queue": row.queue,
            "job": row.job,
            "wait_limit": time_text(row.wait_limit_s),
            "changed_by": row.created_by,
            "changed_at": moment(row.changed_ns),
        }
    )


def notification_fields(view: NotificationView) -> dict[str, Any]:
    """Return the fields of `NotificationOut` for a notification."""
    return {**written(view.notification), "waiting": view.waiting, "dead": view.dead}


def delivery_fields(row: Delivery) -> dict[str, Any]:
    """Return the fields of `DeliveryOut` for a message."""
    return fields_of(
        DeliveryOut,
        row,
        notification=row.receiver,
        job=row.job_id,
        created_at=moment(row.created_ns),
        next_at=moment(row.next_ns),
        delivered_at=moment(row.next_ns) if row.state is DeliveryState.DELIVERED else None,
    )


def result_fields(result: Result) -> dict[str, Any]:
    """Return the fields of `TrialOut` for the result of a test."""
    return {"delivered": not result.error, "error": result.error}
