"""Calls about notifications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Required, TypedDict, TypeVar, Unpack

from seaway.client.call import Answer, Call, Model, Nothing, Paged, get, page_size, part, send
from seaway.client.calls.tenancy import Seen, put

if TYPE_CHECKING:
    from seaway.wire.notifications import (
        DeliveryOut,
        DeliveryPage,
        DeliveryTotal,
        NotificationList,
        NotificationOut,
        NotificationStored,
        TrialOut,
    )

_WIRE = "seaway.wire.notifications"

NOTIFICATION: Answer[NotificationOut] = Model(_WIRE, "NotificationOut")
NOTIFICATIONS: Answer[NotificationList] = Model(_WIRE, "NotificationList")
STORED: Answer[NotificationStored] = Model(_WIRE, "NotificationStored")
DELIVERIES: Answer[DeliveryPage] = Model(_WIRE, "DeliveryPage")
TOTAL: Answer[DeliveryTotal] = Model(_WIRE, "DeliveryTotal")
TEST: Answer[TrialOut] = Model(_WIRE, "TrialOut")

T = TypeVar("T")


def notifications(tenant: str = "") -> Call[NotificationList]:
    """List notifications; users see those of their tenant."""
    return _of(tenant, get("/notifications", NOTIFICATIONS))


def notification(name: str, *, tenant: str = "") -> Call[NotificationOut]:
    """Return a notification.

    Parameters
    ----------
    tenant
        Tenant that owns it. Default: the caller's; for operators the notification for all tenants.
    """
    return _of(tenant, get(f"/notifications/{part(name)}", NOTIFICATION))


class NotificationFields(TypedDict, total=False):
    """Fields of a notification, as in `NotificationIn`."""

    channel: Required[str]
    url: str
    addresses: Sequence[str]
    secret: str
    on: Sequence[str]
    queue: str
    job: str
    wait_limit: str


def put_notification(
    name: str, *, tenant: str = "", seen: Seen | None = None, **given: Unpack[NotificationFields]
) -> Call[NotificationStored]:
    """Create or replace a notification.

    The answer has the new secret of a webhook, which is not shown again. `seen` is as in `queues.put_queue`.
    """
    return _of(tenant, put(f"/notifications/{part(name)}", STORED, given, seen))


def delete_notification(name: str, *, tenant: str = "") -> Call[None]:
    """Remove a notification with its undelivered messages."""
    return _of(tenant, send("DELETE", f"/notifications/{part(name)}", Nothing(), repeatable=False))


def try_notification(name: str, *, tenant: str = "") -> Call[TrialOut]:
    """Send a test message, and return whether its receiver accepted it."""
    return _of(tenant, send("POST", f"/notifications/{part(name)}/test", TEST, repeatable=False))


def deliveries(
    name: str = "", *, tenant: str = "", state: str | None = None, limit: int | None = None
) -> Paged[DeliveryOut]:
    """List messages, newest first.

    Parameters
    ----------
    name
        Notification; empty for those of all.
    state
        ``waiting``, ``dead`` for messages that are not tried again, or ``delivered``; None for all.
    limit
        Maximum number; None for all.
    """
    query = {"tenant": tenant or None, "state": state, "limit": page_size(limit)}
    path = f"/notifications/{part(name)}/deliveries" if name else "/deliveries"
    return Paged(get(path, DELIVERIES, query), "deliveries", limit=limit)


def resend(name: str, ids: Sequence[str] = (), *, tenant: str = "") -> Call[DeliveryTotal]:
    """Send dead letters again, all or those with these IDs."""
    return _of(tenant, send("POST", f"/notifications/{part(name)}/resend", TOTAL, {"ids": list(ids)}))


def drop_deliveries(name: str, *, tenant: str = "") -> Call[DeliveryTotal]:
    """Remove the dead letters of a notification."""
    return _of(tenant, send("DELETE", f"/notifications/{part(name)}/deliveries", TOTAL, repeatable=False))


def _of(tenant: str, call: Call[T]) -> Call[T]:
    return replace(call, query={**call.query, "tenant": tenant}) if tenant else call
