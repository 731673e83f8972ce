"""Notifications section of the settings page: receivers, dead letters, and the latest messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import notifications as calls
from seaway.client.calls import queues, tenancy
from seaway.domain.errors import RejectedError
from seaway.domain.notifications import is_address
from seaway.web.fragment import Fragment
from seaway.web.pages.queues.forms import fresh
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import Field, Form, confirm, dialog, notify, secret_field
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.notifications import DeliveryOut, DeliveryPage, NotificationList, NotificationOut

REFRESH_S = 3.0

MAX_DEAD, MAX_LATEST = 50, 25
"""Maximum number of dead letters and of other messages in the tables."""

BETWEEN = re.compile(r"[\s,;]+")
"""Characters between e-mail addresses."""


async def show_notifications(visit: Visit) -> None:
    """Show receivers and messages, and follow changes."""
    page = _Notifications(visit)
    await visit.follow(calls.notifications(), page.receivers, REFRESH_S)
    await visit.follow(calls.deliveries(state="dead", limit=MAX_DEAD).first, page.dead_letters, REFRESH_S)
    await visit.follow(calls.deliveries(limit=MAX_LATEST).first, page.latest, REFRESH_S)


class _Notifications:
    """Section of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._rows: dict[str, NotificationOut] = {}
        self._dead: dict[str, DeliveryOut] = {}
        self._fragments = [Fragment(each, visit.words) for each in ("receivers", "dead_letters", "messages")]
        for fragment in self._fragments:
            on_act(fragment, self._act)

    def receivers(self, value: NotificationList) -> None:
        """Accept the list of notifications."""
        self._rows = {f"{each.tenant}/{each.name}": each for each in value.notifications}
        rows = [{"row": each, "address": is_address(each.name)} for each in value.notifications]
        self._fragments[0].show(rows=rows, titles=occasions(self._visit.words), every=not self._visit.who.tenant)

    def dead_letters(self, value: DeliveryPage) -> None:
        """Accept the dead letters."""
        self._dead = {each.id: each for each in value.deliveries}
        self._fragments[1].show(rows=value.deliveries, titles=occasions(self._visit.words), more=value.next is not None)

    def latest(self, value: DeliveryPage) -> None:
        """Accept the latest messages."""
        rows = [each for each in value.deliveries if each.state != "dead"]
        self._fragments[2].show(rows=rows, titles=occasions(self._visit.words))

    def _look_again(self) -> None:
        """Query everything again, because a change affects it."""
        for call in (
            calls.notifications(),
            calls.deliveries(state="dead", limit=MAX_DEAD).first,
            calls.deliveries(limit=MAX_LATEST).first,
        ):
            self._visit.ask_again(call)

    async def _act(self, act: str, name: str) -> None:
        words = self._visit.words
        if act == "new":
            await self._ask(None)
        elif act == "retry" and (letter := self._dead.get(name)):
            await self._resend([letter])
        elif act == "retry-all":
            await self._resend(list(self._dead.values()))
        elif row := self._rows.get(name):
            if act == "change":
                await self._ask(row)
            elif act == "test":
                await self._try_out(row)
            elif act == "remove":
                title = words("Remove notification {name}?", name=row.name)
                text = words("Its waiting messages and dead letters are removed too.")
                confirm(words, title, text, words("Remove"), lambda: self._remove(row))

    async def _remove(self, row: NotificationOut) -> None:
        await self._visit.ask(calls.delete_notification(row.name, tenant=row.tenant))
        self._look_again()
        notify(self._visit.words("Notification {name} is removed", name=row.name))

    async def _resend(self, letters: list[DeliveryOut]) -> None:
        """Send dead letters again."""
        of: dict[tuple[str, str], list[str]] = {}
        for each in letters:
            of.setdefault((each.tenant, each.notification), []).append(each.id)
        for (tenant, name), ids in of.items():
            await self._visit.ask(calls.resend(name, ids, tenant=tenant))
        self._look_again()
        notify(self._visit.words("Sent again: {n}", n=len(letters)))

    async def _try_out(self, row: NotificationOut) -> None:
        """Send a test message, and show its result."""
        words = self._visit.words
        waits = ui.notification(words("Sending a test message …"), spinner=True, timeout=None, position="bottom-right")
        try:
            result = await self._visit.ask(calls.try_notification(row.name, tenant=row.tenant))
        finally:
            waits.dismiss()
        if result.delivered:
            notify(words("{name} accepted the test message", name=row.name))
        else:
            text = words("{name} did not accept the test message: {why}", name=row.name, why=result.error)
            ui.notify(
                text, type="negative", position="bottom-right", timeout=0, close_button=words("Close"), multi_line=True
            )

    async def _ask(self, row: NotificationOut | None) -> None:
        """Open the dialog for a new or an existing notification."""
        visit, words = self._visit, self._visit.words
        titles = occasions(words)
        names = {each.name: each.name for each in (await visit.ask(queues.queues())).queues}
        if row and row.queue:
            names[row.queue] = row.queue
        fields = [
            Field(
                "channel",
                words("Channel"),
                row.channel if row else "webhook",
                {"webhook": words("Webhook"), "slack": "Slack", "email": words("E-mail")},
            ),
            Field("url", words("URL"), row.url if row else "", hint=words("Of the webhook, or of Slack")),
            Field(
                "addresses",
                words("E-mail addresses"),
                ", ".join(row.addresses) if row else "",
                hint=words("Separated by commas"),
            ),
            Field(
                "on",
                words("Occasions"),
                list(row.on) if row else ["failed", "preempted", "finished"],
                titles,
                words("Empty for messages only about jobs that name it"),
            ),
            Field("queue", words("Queue"), row.queue if row else "", {"": words("all queues"), **names}),
            Field("job", words("Job"), row.job if row else "", hint=words("Name or ID; empty for all")),
            Field("wait_limit", words("Wait limit"), row.wait_limit if row else "1h", hint=words("Like 30m or 2h")),
        ]
        if row is None:
            if not visit.who.tenant:
                known = {each.name: each.name for each in (await visit.ask(tenancy.tenants())).tenants}
                fields = [Field("tenant", words("Tenant"), "", {"": words("all tenants"), **known}), *fields]
            fields = [Field("name", words("Name"), hint=words("Small letters, digits, '-' and '.'")), *fields]

        async def send(given: dict[str, Any]) -> None:
            name, tenant = (row.name, row.tenant) if row else (given.pop("name"), given.pop("tenant", ""))
            given["addresses"] = [each for each in BETWEEN.split(given["addresses"]) if each]
            if not name:
                raise RejectedError(words("is required"), where="name")
            call = calls.put_notification(name, tenant=tenant, seen=row, **given)
            stored = await visit.ask(call if row else fresh(call))
            self._look_again()
            if stored.secret:
                _show_secret(words, name, stored.secret)
            else:
                notify(words("Notification {name} is saved", name=name))

        title = words("Change notification {name}", name=row.name) if row else words("New notification")
        Form(words, title, fields, words("Save"), send)


def _show_secret(words: Words, name: str, secret: str) -> None:
    """Show the secret of a webhook once."""
    with dialog(words("Secret of notification {name}", name=name)) as made:
        text = words("Receivers verify signatures with it. Copy it now: it is shown only once.")
        secret_field(words, made, text, secret)


def occasions(words: Words) -> dict[str, str]:
    """Return the occasions of messages with their titles."""
    return {
        "started": words("started"),
        "failed": words("failed"),
        "preempted": words("preempted"),
        "waits_too_long": words("waits too long"),
        "lease_expires": words("lease ends soon"),
        "finished": words("finished"),
    }
