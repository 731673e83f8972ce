"""Forms of queues, pools, tenants and quotas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from nicegui import ui

from seaway.client.call import Call
from seaway.client.calls import fleet, policies, service, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.domain.amounts import split_amounts
from seaway.domain.errors import RejectedError, SeawayError, StaleError
from seaway.domain.queues import options_text
from seaway.web.pages.queues.rows import Seen
from seaway.web.parts.form import Field, Form, confirm, notify
from seaway.web.parts.models import models_hint
from seaway.web.visit import Visit
from seaway.web.words import Words
from seaway.wire.queues import split_options

if TYPE_CHECKING:
    from seaway.wire.queues import QueueOut
    from seaway.wire.tenancy import PoolOut, TenantOut

T = TypeVar("T")

AMOUNT_FIELDS = ("guarantee", "limit", "borrowing_limit", "lending_limit")

DEFAULT = "default"
"""Default pool of queues."""


def fresh(call: Call[T]) -> Call[T]:
    """Return a call that fails if an object with the same name exists."""
    return replace(call, headers={**call.headers, "If-None-Match": "*"})


async def ask_queue(visit: Visit, seen: Seen, queue: QueueOut | None) -> None:
    """Open the dialog for a new or an existing queue."""
    words = visit.words
    known, models = await asyncio.gather(visit.ask(policies.policies()), visit.ask(fleet.models()))
    by_name = {each.name: each.name for each in known.policies}
    keys = words("Keys, separated by commas; * for all.")
    amounts = words("Like gpus=16, gpus/A100=8, memory=2TB")
    named = f"{amounts}. {models_hint(words, models.models)}".strip()
    parents = {each.name: each.name for each in seen.queues if queue is None or each.name != queue.name}
    fields = [
        Field("parent", words("Part of"), queue.parent if queue else "", {"": words("none"), **parents}),
        Field("guarantee", words("Guarantee"), _joined(queue.guarantee) if queue else "", hint=named),
        Field("limit", words("Limit"), _joined(queue.limit) if queue else "", hint=amounts),
        Field(
            "borrowing_limit",
            words("Borrowing limit"),
            _joined(queue.borrowing_limit) if queue else "",
            hint=words("At most that much beyond the guarantee."),
        ),
        Field(
            "lending_limit",
            words("Lending limit"),
            _joined(queue.lending_limit) if queue else "",
            hint=words("What others may use of the guarantee. Empty for all."),
        ),
        Field("weight", words("Weight"), str(queue.weight) if queue else "1"),
        Field("priority", words("Priority among siblings"), str(queue.priority) if queue else "0"),
        Field("order", words("Order"), queue.order if queue else "fair", orders(words)),
        Field("backfill", words("Backfill"), queue.backfill if queue else "easy", backfills(words)),
        Field(
            "ageing",
            words("Ageing"),
            queue.ageing if queue else "0s",
            hint=words("Waiting time that counts as one point of priority, like 1h. 0s for none."),
        ),
        Field("preemption", words("Displaces by priority"), queue.preemption if queue else "Never", preemptions(words)),
        Field("preempts", words("Displaces by priority in"), queue.preempts if queue else "all", preempted(words)),
        Field("reclaim", words("Displaces in other queues"), queue.reclaim if queue else "Guarantee", reclaims(words)),
        Field("preemptible", words("Its jobs may be displaced"), queue.preemptible if queue else True),
        Field("min_runtime", words("Not before a run time of"), queue.min_runtime if queue else "0s"),
        Field(
            "start_timeout",
            words("Start timeout"),
            queue.start_timeout if queue else "1h",
            hint=words("Time from a placement until all replicas run, like 30m. 0s for no limit."),
        ),
        Field(
            "grow_cooldown",
            words("Cool-down of elastic jobs"),
            queue.grow_cooldown if queue else "1m",
            hint=words("Time after a resize before a job gets more replicas."),
        ),
        Field(
            "elastic",
            words("Replicas beyond the minimum"),
            queue.elastic if queue else "lend",
            {"lend": words("lent to waiting jobs"), "keep": words("kept")},
            hint=words("Elastic jobs give lent replicas back to any waiting job that needs their room."),
        ),
        Field(
            "tenant", words("Tenant"), queue.tenant if queue else "", _with_none(seen.tenants, words("every tenant"))
        ),
        Field("pool", words("Pool"), queue.pool if queue else DEFAULT, {each.name: each.name for each in seen.pools}),
        Field("policy", words("Policy"), queue.policy if queue else "bestfit", by_name),
        Field(
            "policy_options",
            words("Policy options"),
            options_text(queue.policy_options) if queue else "",
            hint=words("Like level=cluster, weights.price=3 for balanced, or mix=QUEUE for seaway and fgd."),
        ),
        Field("shadow", words("Shadow"), queue.shadow if queue else "", {"": words("none"), **by_name}),
        Field("description", words("Description"), queue.description if queue else ""),
        Field("open", words("Accepts new jobs"), queue.open if queue else True),
        Field("allowed_taints", words("Allowed taints"), ", ".join(queue.allowed_taints if queue else ()), hint=keys),
        Field(
            "allowed_node_labels",
            words("Allowed node labels"),
            ", ".join(queue.allowed_node_labels if queue else ()),
            hint=keys,
        ),
    ]

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        lists = {each: _keys(given[each]) for each in ("allowed_taints", "allowed_node_labels")}
        numbers = {each: _number(words, given[each], each) for each in ("weight", "priority")}
        shares = {each: split_amounts(given[each], where=each) for each in AMOUNT_FIELDS}
        more = {**lists, **numbers, **shares, "policy_options": split_options(given["policy_options"].split(","))}
        return queue_calls.put_queue(name, seen=queue, **{**given, **more})

    title = words("Change queue {name}", name=queue.name) if queue else words("New queue")
    warnings = {each.name: words.plain(each.warning) for each in known.policies}
    ask_named(visit, title, fields, put, queue.name if queue else "", lambda given: warnings.get(given["policy"], ""))


def _keys(text: str) -> list[str]:
    return [key for each in text.split(",") if (key := each.strip())]


def _joined(amounts: Mapping[str, int | float | str]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in amounts.items())


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _number(words: Words, text: str, field: str) -> int:
    """Return the number in a field; the server checks its range."""
    try:
        return int(text)
    except ValueError:
        raise RejectedError(words("Use a whole number."), where=field) from None


def orders(words: Words) -> dict[str, str]:
    """Return the orders of jobs with their titles."""
    return {
        "fifo": words("Submission time"),
        "priority": words("Priority, then submission time"),
        "fair": words("Least use of a tenant first"),
        "shortest": words("Shortest expected duration first"),
    }


def backfills(words: Words) -> dict[str, str]:
    """Return the backfill rules that the server accepts, with their titles."""
    return {
        "none": words("No jobs"),
        "easy": words("Jobs that do not delay the first job"),
        "conservative": words("Jobs that delay no earlier job"),
        "greedy": words("All jobs that fit"),
    }


def preemptions(words: Words) -> dict[str, str]:
    """Return the rules of preemption by priority, with their titles."""
    return {"Never": words("No running jobs"), "PreemptLowerPriority": words("Jobs of a lower priority")}


def preempted(words: Words) -> dict[str, str]:
    """Return the queues in which jobs are displaced by priority, with their titles."""
    return {
        "all": words("Queues of the same or a lower priority"),
        "own": words("Only this queue"),
    }


def reclaims(words: Words) -> dict[str, str]:
    """Return the rules of reclaim from other queues, with their titles."""
    return {
        "Never": words("No running jobs"),
        "Guarantee": words("Jobs beyond guarantees, up to its guarantee"),
        "FairShare": words("Also jobs of queues with a larger share"),
    }


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
    ask_named(visit, title, [clusters, description], put, pool.name if pool else "")


def ask_tenant(visit: Visit, tenant: TenantOut | None) -> None:
    """Open the dialog for a new or an existing tenant. Its quotas stay."""
    words = visit.words
    fields = [
        Field("description", words("Description"), tenant.description if tenant else ""),
        Field(
            "weight",
            words("Weight"),
            str(tenant.weight) if tenant else "1",
            hint=words("Share of a queue in the order of least use. 0 for nothing beyond the guarantee."),
        ),
        Field(
            "secrets",
            words("Secrets"),
            ", ".join(tenant.secrets) if tenant else "",
            hint=words("Secrets that its jobs may use, separated by commas. * stands for any text."),
        ),
    ]

    def put(name: str, given: dict[str, Any]) -> Call[Any]:
        weight = _number(words, given["weight"], "weight")
        quotas = _quotas(tenant) if tenant else {}
        secrets = [text for each in given["secrets"].split(",") if (text := each.strip())]
        return tenancy.put_tenant(
            name, given["description"], weight=weight, quotas=quotas, secrets=secrets, seen=tenant
        )

    title = words("Change tenant {name}", name=tenant.name) if tenant else words("New tenant")
    ask_named(visit, title, fields, put, tenant.name if tenant else "")


async def ask_quota(visit: Visit, seen: Seen, tenant: TenantOut, pool: str) -> None:
    """Open the dialog for the quota of a tenant in a pool; for an empty name, in a pool where it has none."""
    words, quota = visit.words, tenant.quotas.get(pool)
    models = (await visit.ask(fleet.models())).models
    amounts = f"{words('Like gpus=16, gpus/A100=8, memory=2TB')}. {models_hint(words, models)}".strip()
    jobs = words("Like gpus=16, jobs=100. Empty for none.")
    none = words("Empty for no maximum.")
    fields = [
        Field("guarantee", words("Guarantee"), _joined(quota.guarantee) if quota else "", hint=amounts),
        Field("limit", words("Limit"), _joined(quota.limit) if quota else "", hint=jobs),
        Field("max_waiting", words("Maximum of waiting jobs"), _text(quota.max_waiting if quota else None), hint=none),
        Field("user_limit", words("Limit of each user"), _joined(quota.user_limit) if quota else "", hint=jobs),
        Field(
            "user_max_waiting",
            words("Maximum of waiting jobs of each user"),
            _text(quota.user_max_waiting if quota else None),
            hint=none,
        ),
    ]
    if not pool:
        free = {each.name: each.name for each in seen.pools if each.name not in tenant.quotas}
        fields = [Field("pool", words("Pool"), next(iter(free)), free), *fields]

    def changed(given: dict[str, Any]) -> tuple[str, dict[str, object]]:
        """Return the pool and its quota as filled in; empty for none."""
        name = given.pop("pool", pool)
        made = {each: split_amounts(given[each], where=each) for each in ("guarantee", "limit", "user_limit")}
        numbers = {
            each: _number(words, given[each], each) if given[each] else None
            for each in ("max_waiting", "user_max_waiting")
        }
        return name, {**made, **numbers} if any(made.values()) or set(numbers.values()) != {None} else {}

    async def preview(given: dict[str, Any]) -> str:
        name, quota = changed(given)
        none: dict[str, object] = {"guarantee": {}, "limit": {}, "user_limit": {}}
        question = {"tenants": [{"name": tenant.name, "quotas": {name: none | quota}}]}
        try:
            answer = await visit.ask(service.whatif(question))
        except RejectedError as error:
            raise error.within(f"tenants.0.quotas.{name}.") from error
        return words.coded(answer)

    async def send(given: dict[str, Any]) -> None:
        name, quota = changed(given)
        quotas = {**_quotas(tenant), name: quota}
        if not quota:
            del quotas[name]
        call = tenancy.put_tenant(
            tenant.name,
            tenant.description,
            weight=tenant.weight,
            quotas=quotas,
            secrets=tenant.secrets,
            seen=tenant,
        )
        try:
            await _save(visit, call, tenant.name)
        except RejectedError as error:
            raise error.within(f"quotas.{name}.") from error

    title = (
        words("Quota of {tenant} in pool {pool}", tenant=tenant.name, pool=pool)
        if pool
        else words("New quota of {tenant}", tenant=tenant.name)
    )
    shown = Preview(words, preview)
    shown.form = Form(words, title, fields, words("Save"), send, shown.draw)


class Preview:
    """Button of a dialog that answers what its values would change, and the answer.

    Attributes
    ----------
    form
        The dialog; set once it is open.
    """

    form: Form

    def __init__(self, words: Words, ask: Callable[[dict[str, Any]], Awaitable[str]]) -> None:
        self._words, self._ask = words, ask

    def draw(self) -> None:
        """Draw the button and the place of the answer."""
        words = self._words
        self._button = ui.button(words("Preview the effect"), on_click=self._show).props("outline no-caps")
        self._said = ui.label().classes("dialog-text").props("role=status")

    async def _show(self) -> None:
        self._said.set_text("")
        self._button.disable()
        try:
            self._said.set_text(await self._ask(self.form.begin()))
        except SeawayError as error:
            self.form.show_error(error)
        finally:
            self._button.enable()


def _quotas(tenant: TenantOut) -> dict[str, Mapping[str, object]]:
    """Return the quotas of a tenant as the API accepts them."""
    return {pool: quota.model_dump() for pool, quota in tenant.quotas.items()}


def ask_to_remove(visit: Visit, title: str, text: str, call: Call[None], name: str) -> None:
    """Open the dialog that confirms a removal."""
    words = visit.words

    async def remove() -> None:
        await visit.ask(call)
        _look_again(visit)
        notify(words("{name} is removed", name=name))

    confirm(words, title, text, words("Remove"), remove)


def ask_named(
    visit: Visit,
    title: str,
    fields: list[Field],
    put: Callable[[str, dict[str, Any]], Call[Any]],
    name: str,
    warning: Callable[[dict[str, Any]], str] = lambda _: "",
) -> None:
    """Open a form for a named object. Only a new object has a field for the name.

    Parameters
    ----------
    warning
        Returns a warning about the stored values; empty for none.
    """
    words = visit.words
    if not name:
        hint = words("Small letters, digits, '-' and '.'")
        fields = [Field("name", words("Name"), hint=hint), *fields]

    async def send(given: dict[str, Any]) -> None:
        called = name or str(given.pop("name"))
        await _save(visit, put(called, given), called, new=not name, warning=warning(given))

    Form(words, title, fields, words("Save"), send)


async def _save(visit: Visit, call: Call[Any], name: str, *, new: bool = False, warning: str = "") -> None:
    """Store an object, and show its change and a warning, if any.

    Raises
    ------
    RejectedError
        If the server refuses it, the name of a new object is taken, or the object was changed in the meantime.
    """
    words = visit.words
    try:
        stored = await visit.ask(fresh(call) if new else call)
    except StaleError as error:
        if new:
            raise RejectedError(words("This name is taken."), where="name") from error
        raise RejectedError(words("Another user changed it: close this dialog, check it, and try again.")) from error
    _look_again(visit)
    notify(words("{name} is saved", name=name), warning, *map(words.plain, getattr(stored, "warnings", ())))


def _look_again(visit: Visit) -> None:
    """Query changed data immediately, so that a removed object disappears before a second click."""
    lists = queue_calls.queues(), tenancy.pools(), tenancy.tenants(), tenancy.reservations()
    for call in (*lists, queue_calls.queue_usage()):
        visit.ask_again(call)


def _with_none(tenants: Iterable[TenantOut], none: str) -> dict[str, str]:
    return {"": none, **{each.name: each.name for each in tenants}}
