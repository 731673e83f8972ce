"""Dialogs that create, change and remove queues, pools and tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from seaway.client.call import Call
from seaway.client.calls import policies, tenancy
from seaway.domain.errors import RejectedError, StaleError
from seaway.web.pages.queues.rows import Seen
from seaway.web.parts.form import Field, Form, confirm, tell
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.tenancy import PoolOut, QueueOut, TenantOut

T = TypeVar("T")

DEFAULT = "default"
"""Default pool of queues."""


def fresh(call: Call[T]) -> Call[T]:
    """Return a call that fails if an object of the same name exists."""
    return replace(call, headers={**call.headers, "If-None-Match": "*"})


async def ask_queue(visit: Visit, seen: Seen, queue: QueueOut | None) -> None:
    """Open the dialog for a new or an existing queue."""
    words = visit.words
    known = await visit.ask(policies.policies())
    by_name = {each.name: each.name for each in known.policies}
    fields = [
        Field(
            "tenant", words("Tenant"), queue.tenant if queue else "", _with_none(seen.tenants, words("every tenant"))
        ),
        Field("pool", words("Pool"), queue.pool if queue else DEFAULT, {each.name: each.name for each in seen.pools}),
        Field("policy", words("Policy"), queue.policy if queue else "bestfit", by_name),
        Field("shadow", words("Shadow"), queue.shadow if queue else "", {"": words("none"), **by_name}),
        Field("description", words("Description"), queue.description if queue else ""),
        Field("open", words("Accepts new jobs"), queue.open if queue else True),
    ]

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        return tenancy.put_queue(name, seen=queue, **given)

    title = words("Change queue {name}", name=queue.name) if queue else words("New queue")
    _ask(visit, title, fields, put, queue.name if queue else "")


def ask_pool(visit: Visit, seen: Seen, pool: PoolOut | None) -> None:
    """Open the dialog for a new or an existing pool."""
    words = visit.words
    there = sorted({*(each.name for each in seen.clusters), *(pool.clusters if pool else ())})
    clusters = Field(
        "clusters",
        words("Clusters"),
        list(pool.clusters) if pool else [],
        {each: each for each in there},
        words("Leave empty for all present and future clusters."),
    )
    description = Field("description", words("Description"), pool.description if pool else "")

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        return tenancy.put_pool(name, given["clusters"], given["description"], seen=pool)

    title = words("Change pool {name}", name=pool.name) if pool else words("New pool")
    _ask(visit, title, [clusters, description], put, pool.name if pool else "")


def ask_tenant(visit: Visit, tenant: TenantOut | None) -> None:
    """Open the dialog for a new or an existing tenant."""
    words = visit.words
    description = Field("description", words("Description"), tenant.description if tenant else "")

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        return tenancy.put_tenant(name, given["description"], seen=tenant)

    title = words("Change tenant {name}", name=tenant.name) if tenant else words("New tenant")
    _ask(visit, title, [description], put, tenant.name if tenant else "")


def ask_to_remove(visit: Visit, title: str, text: str, call: Call[None], name: str) -> None:
    """Open the dialog that confirms a removal."""
    words = visit.words

    async def remove() -> None:
        await visit.ask(call)
        _look_again(visit)
        tell(words("{name} is removed", name=name))

    confirm(words, title, text, words("Remove"), remove)


def _ask(
    visit: Visit, title: str, fields: list[Field], put: Callable[[str, dict[str, Any]], Call[Any]], name: str
) -> None:
    """Open a form for a named object; only a new object has a field for the name."""
    words = visit.words
    if not name:
        hint = words("Small letters, digits, '-' and '.'")
        fields = [Field("name", words("Name"), hint=hint), *fields]

    async def send(given: dict[str, Any]) -> None:
        called = name or str(given.pop("name"))
        call = put(called, given)
        try:
            await visit.ask(call if name else fresh(call))
        except StaleError as error:
            if not name:
                raise RejectedError(words("This name is taken."), where="name") from error
            raise RejectedError(
                words("Another user changed it: close this dialog, check it, and try again.")
            ) from error
        _look_again(visit)
        tell(words("{name} is saved", name=called))

    Form(words, title, fields, words("Save"), send)


def _look_again(visit: Visit) -> None:
    """Query changed data immediately, so that a removed object disappears before a second click."""
    for call in (tenancy.queues(), tenancy.pools(), tenancy.tenants()):
        visit.ask_again(call)


def _with_none(tenants: Iterable[TenantOut], none: str) -> dict[str, str]:
    return {"": none, **{each.name: each.name for each in tenants}}
