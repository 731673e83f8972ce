"""Use cases of notifications: receivers of messages about jobs, tests, and dead letters."""

from __future__ import annotations

import logging
import secrets
from base64 import b64decode, b64encode
from binascii import Error
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from seaway.application.changes import Change
from seaway.application.notifier import Notifier, Receiver, moment
from seaway.application.ports.channels import Channels, Result, Vault
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, RejectedError, StaleError, TooManyError, UnknownError
from seaway.domain.notifications import (
    NS_PER_S,
    Channel,
    Delivery,
    DeliveryState,
    Notification,
    Notify,
    is_address,
    origin,
)
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import require_name

log = logging.getLogger(__name__)

SECRET = "whsec_"
"""Begin of secrets of webhooks."""

SECRET_BYTES, SHORTEST_SECRET, LONGEST_SECRET = 32, 24, 64

MAX_NOTIFICATIONS = 100
"""Maximum number of notifications of a tenant."""

MAX_TESTS = 30
"""Maximum number of test messages of a tenant in an hour."""

NS_PER_H = 3600 * NS_PER_S

Precondition = Callable[[Notification | None], bool]
"""Check that a change is based on the current notification; None for a missing one."""


@dataclass(frozen=True, slots=True)
class NotificationView:
    """A notification with its numbers of messages."""

    notification: Notification
    waiting: int
    dead: int


class Notifications:
    """Use cases of notifications.

    Parameters
    ----------
    mail_obstacle
        Returns why no e-mail can be sent to an address; empty if it can.
    """

    def __init__(  # wiring
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        notifier: Notifier,
        channels: Channels,
        vault: Vault,
        mail_obstacle: Callable[[str], str],
    ) -> None:
        self._store, self._writer, self._clock = store, writer, clock
        self.notifier = notifier
        self._channels, self._vault, self._mail_obstacle = channels, vault, mail_obstacle
        self._testing: set[Receiver] = set()
        self._tests: defaultdict[str, deque[int]] = defaultdict(deque)

    def start(self) -> None:
        """Start to send. Name the notifications that cannot be sent in the log, since no other process reports them."""
        if names := self.unreadable():
            log.error(
                "the key of notifications differs from the one that encrypted the secrets of %s; "
                "restore the key, or set these notifications again",
                ", ".join(names),
            )
        self.notifier.start()

    def unreadable(self) -> list[str]:
        """Return the notifications whose secret was encrypted with another key, as TENANT/NAME."""
        found = []
        for row in self._store.notifications():
            try:
                self._vault.unseal(row.sealed, f"{row.tenant}/{row.name}") if row.sealed else ""
            except RejectedError:
                found.append(f"{row.tenant}/{row.name}")
        return found

    def views(self, tenant: str | None = None) -> list[NotificationView]:
        """Return the notifications of a tenant, or all, by tenant and name.

        E-mail addresses that jobs name are among them while they have messages.
        """
        counts = self._store.delivery_counts()
        rows = {(row.tenant, row.name): row for row in self._store.notifications()}
        for of, receiver, _ in counts:
            if is_address(receiver):
                rows[of, receiver] = Notification.of_address(of, receiver)

        def count(row: Notification, state: DeliveryState) -> int:
            return counts.get((row.tenant, row.name, state), 0)

        return [
            NotificationView(row, count(row, DeliveryState.WAITING), count(row, DeliveryState.DEAD))
            for _, row in sorted(rows.items())
            if tenant is None or row.tenant == tenant
        ]

    def view(self, tenant: str, name: str) -> NotificationView:
        """Return a notification.

        Raises
        ------
        UnknownError
            If it does not exist.
        """
        for view in self.views(tenant):
            if view.notification.name == name:
                return view
        raise _unknown(name)

    def put(
        self, row: Notification, secret: str, actor: str, meant: Precondition | None = None
    ) -> tuple[NotificationView, str]:
        """Create or replace a notification; return it with a new secret, which is shown only now.

        Parameters
        ----------
        row
            The notification. The URL of Slack is complete, or ends after the host to retain the present one.
        secret
            Secret of a webhook; empty for the present one, or a new one for a new webhook.

        Raises
        ------
        RejectedError
            If the secret is invalid, the tenant or queue does not exist, or no e-mail can be sent.
        ConflictError
            If the tenant has too many notifications.
        StaleError
            If the change is based on another version.
        """
        require_name("notification", row.name)
        for at, address in enumerate(row.addresses):
            if why := self._mail_obstacle(address):
                raise RejectedError(why, where=f"addresses[{at}]")
        if row.channel is not Channel.WEBHOOK and secret:
            raise RejectedError(Reason("webhooks_only"), where="secret")
        with self._writer.setting_up:
            rows = self._store.notifications()
            before = next((each for each in rows if (each.tenant, each.name) == (row.tenant, row.name)), None)
            if meant is not None and not meant(before):
                raise StaleError(Reason("notification_changed"))
            self._require_names(row)
            if before is None and sum(each.tenant == row.tenant for each in rows) >= MAX_NOTIFICATIONS:
                raise ConflictError(Reason("notifications_full", most=MAX_NOTIFICATIONS))
            row, fresh = self._with_secret(row, before, secret)
            row = replace(row, created_by=actor, changed_ns=self._clock.now_ns())
            self._writer.require(Change(put=[row]))
        return self.view(row.tenant, row.name), fresh

    def _require_names(self, row: Notification) -> None:
        if row.tenant and row.tenant not in {each.name for each in self._store.tenants()}:
            raise RejectedError(Reason("unknown_name", kind="tenant", name=row.tenant), where="tenant")
        queues = {each.name: each.tenant for each in self._store.queues()}
        if row.queue and (row.queue not in queues or queues[row.queue] not in ("", row.tenant or queues[row.queue])):
            raise RejectedError(Reason("unknown_name", kind="queue", name=row.queue), where="queue")

    def _with_secret(self, row: Notification, before: Notification | None, secret: str) -> tuple[Notification, str]:
        """Return a notification with its encrypted secret, and a secret that was drawn."""
        same = before if before and before.channel is row.channel else None
        match row.channel:
            case Channel.EMAIL:
                return row, ""
            case Channel.SLACK:
                if same and row.url == same.url:
                    return replace(row, sealed=same.sealed), ""
                if row.url.rstrip("/") == origin(row.url).rstrip("/"):
                    raise RejectedError(Reason("whole_url"), where="url")
                return self._sealed(replace(row, url=origin(row.url)), row.url), ""
            case Channel.WEBHOOK:
                if same and not secret:
                    return replace(row, sealed=same.sealed), ""
                drawn = "" if secret else SECRET + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
                require_secret(secret or drawn)
                return self._sealed(row, secret or drawn), drawn

    def _sealed(self, row: Notification, secret: str) -> Notification:
        return replace(row, sealed=self._vault.seal(secret, f"{row.tenant}/{row.name}"))

    def obstacle(self, tenant: str, notify: Notify) -> str:
        """Return why a job of a tenant cannot have messages sent to a receiver; empty if it can."""
        if is_address(notify.to):
            return self._mail_obstacle(notify.to)
        names = self.notifier.names_of(tenant)
        if notify.to in names:
            return ""
        known = f"available: {', '.join(names)}" if names else "there is none: seaway notification set"
        return f"unknown notification {notify.to!r} of tenant {tenant!r}; {known}"

    def delete(self, tenant: str, name: str, meant: Precondition | None = None) -> None:
        """Remove a notification with its waiting messages and dead letters.

        Raises
        ------
        UnknownError
            If it does not exist.
        """
        with self._writer.setting_up:
            row = self._find(tenant, name)
            if meant is not None and not meant(row):
                raise StaleError(Reason("notification_changed"))
            self._writer.require(Change(delete=[row]))
        self._remove(self._all(tenant, name, None))

    def deliveries(
        self, tenant: str | None, name: str, state: DeliveryState | None, limit: int, before: str = ""
    ) -> list[Delivery]:
        """Return the messages of a notification or an e-mail address, newest first.

        Parameters
        ----------
        tenant
            Tenant; None for all.
        name
            Notification or e-mail address; empty for all.
        """
        if name:
            self._receiver(tenant or "", name)
        return self._store.deliveries(tenant=tenant, receiver=name, state=state, limit=limit, before=before)

    def resend(self, tenant: str, name: str, ids: Sequence[str] = ()) -> int:
        """Send dead letters again, all or those with these IDs; return their number.

        Raises
        ------
        UnknownError
            If the notification, or one of the dead letters, does not exist.
        """
        self._receiver(tenant, name)
        rows = self._dead(tenant, name)
        if missing := sorted({*ids} - {row.id for row in rows}):
            raise UnknownError(Reason("not_found", kind="dead letter", name=missing[0][:80]))
        now_ns = self._clock.now_ns()
        chosen = [row for row in rows if not ids or row.id in ids]
        again = [
            replace(row, state=DeliveryState.WAITING, tries=0, next_ns=now_ns, created_ns=now_ns) for row in chosen
        ]
        if again:
            self._writer.require(Change(put=[*again]))
            self.notifier.requeue(again)
        return len(again)

    def drop(self, tenant: str, name: str) -> int:
        """Remove the dead letters of a notification or an e-mail address; return their number.

        Raises
        ------
        UnknownError
            If it does not exist.
        """
        self._receiver(tenant, name)
        return self._remove(self._dead(tenant, name))

    def _remove(self, rows: Sequence[Delivery]) -> int:
        if rows:
            self._writer.require(Change(delete=[*rows]))
            self.notifier.recount()
        return len(rows)

    def test(self, tenant: str, name: str) -> Future[Result]:
        """Send a test message; return its result, which is pending.

        Raises
        ------
        UnknownError
            If the notification does not exist.
        ConflictError
            If another test of it is in progress.
        TooManyError
            If the tenant has sent `MAX_TESTS` in the last hour.
        """
        row, key = self._receiver(tenant, name), (tenant, name)
        if key in self._testing:
            raise ConflictError(Reason("test_in_progress"))
        self._count_test(tenant)
        now_ns = self._clock.now_ns()
        data = {"summary": f"test of notification {name}", "reason": "Seaway can send messages here.", "tenant": tenant}
        content = {"type": "test", "timestamp": moment(now_ns), "data": data}
        message = self.notifier.message_of(row, f"msg_{secrets.token_hex(16)}", content, now_ns)
        future: Future[Result] = Future()
        self._testing.add(key)

        def done(result: Result) -> None:
            self._testing.discard(key)
            future.set_result(result)

        self._channels.send(message, done)
        return future

    def _count_test(self, tenant: str) -> None:
        now_ns, sent = self._clock.monotonic_ns(), self._tests[tenant]
        while sent and sent[0] <= now_ns - NS_PER_H:
            sent.popleft()
        if len(sent) >= MAX_TESTS:
            left_s = (sent[0] + NS_PER_H - now_ns) // NS_PER_S + 1
            raise TooManyError(Reason("too_many_tests", most=MAX_TESTS), retry_after_s=left_s)
        sent.append(now_ns)

    def _find(self, tenant: str, name: str) -> Notification:
        for row in self._store.notifications():
            if (row.tenant, row.name) == (tenant, name):
                return row
        raise _unknown(name)

    def _receiver(self, tenant: str, name: str) -> Notification:
        return Notification.of_address(tenant, name) if is_address(name) else self._find(tenant, name)

    def _dead(self, tenant: str, name: str) -> list[Delivery]:
        return self._all(tenant, name, DeliveryState.DEAD)

    def _all(self, tenant: str, name: str, state: DeliveryState | None) -> list[Delivery]:
        found: list[Delivery] = []
        page = self._store.deliveries(tenant=tenant, receiver=name, state=state, limit=MAX_ROWS)
        while page:
            found += page
            page = self._store.deliveries(tenant=tenant, receiver=name, state=state, limit=MAX_ROWS, before=page[-1].id)
        return found


def _unknown(name: str) -> UnknownError:
    return UnknownError(Reason("not_found", kind="notification", name=name[:63]))


def require_secret(secret: str) -> None:
    """Check a secret of a webhook.

    Raises
    ------
    RejectedError
        If it is invalid.

    References
    ----------
    Standard Webhooks 1.0.0, section "Signature scheme".
    """
    text = Reason("webhook_secret", prefix=SECRET, least=SHORTEST_SECRET, most=LONGEST_SECRET)
    try:
        size = len(b64decode(secret.removeprefix(SECRET), validate=True))
    except (Error, ValueError):
        raise RejectedError(text, where="secret") from None
    if not secret.startswith(SECRET) or not SHORTEST_SECRET <= size <= LONGEST_SECRET:
        raise RejectedError(text, where="secret")
