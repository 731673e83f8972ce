"""Application of what-if questions: drains, queues, tenants and policies, and the moves of running jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import queues as queue_calls
from seaway.client.calls import service, tenancy
from seaway.domain.errors import UnknownError
from seaway.web.parts.form import confirm, notify
from seaway.web.visit import Visit
from seaway.web.words import Words, count
from seaway.wire.queues import QueueIn

if TYPE_CHECKING:
    from seaway.client.call import Call
    from seaway.wire.queues import QueueOut
    from seaway.wire.whatif import JobMoveOut, WhatIfOut

APPLICABLE = {"drain": "operator", "policy": "operator", "replay": "operator", "queues": "operator", "tenants": "admin"}
"""Parts of a question that can be applied to the fleet, and the role that each requires."""

MAX_NAMED = 3
"""Maximum number of jobs that the dialog names."""


class Applying:
    """Button that applies an answer after a confirmation."""

    def __init__(self, visit: Visit) -> None:
        self._visit, words = visit, visit.words
        with ui.element("div").classes("question-foot"):
            self._apply = ui.button(words("Apply these changes"), icon="published_with_changes", on_click=self._confirm)
            self._apply.props("outline no-caps")
            self._too_many = ui.label(words("The answer moves too many running jobs to apply it at once."))
        self._question: dict[str, Any] = {}
        self._moves: list[JobMoveOut] = []
        self._names: dict[str, str] = {}
        self.hide()

    def hide(self) -> None:
        """Hide the button."""
        self._apply.set_visibility(False)
        self._too_many.set_visibility(False)

    def offer(self, question: dict[str, Any], answer: WhatIfOut) -> None:
        """Show the button if the visitor may apply all changes of the question."""
        self._question, self._moves = question, answer.moves or []
        self._names = {each.id: each.name for each in (*answer.moved, *answer.stopped)}
        may = may_apply(question, self._visit)
        self._too_many.set_visibility(may and answer.moves is None and moves_all(question))
        only_moves = question.keys() <= {"replay", "window", "last"}
        self._apply.set_visibility(may and bool(self._moves or not only_moves))

    def _confirm(self) -> None:
        """Open the dialog that applies the changes of the question."""
        words, question, moves = self._visit.words, self._question, self._moves
        asks = bool(question.get("policy") and moves)  # to use the policy from now on is a change of its own
        steps, moved = list(steps_of(question, words)), " ".join(self._move_steps(words))
        choice: list[ui.switch] = []

        def draw() -> None:
            if asks:
                choice.append(ui.switch(words("Move the running jobs too")))
            if moved:
                ui.label(moved).classes("dialog-text")

        async def do() -> None:
            chosen = moves if not asks or choice[0].value else []
            for call in await calls_of(question, chosen, self._visit):
                await self._visit.ask(call)
            notify(words("The changes are applied."))
            self.hide()

        confirm(words, words("Apply these changes?"), " ".join(steps), words("Apply"), do, draw)

    def _move_steps(self, words: Words) -> Iterator[str]:
        """Yield which running jobs move and stop, a sentence each."""
        moving = [self._names.get(each.job, each.job) for each in self._moves if each.to]
        stopping = [self._names.get(each.job, each.job) for each in self._moves if not each.to]
        if moving:
            yield words("These jobs restart on the nodes shown: {names}.", names=_named(moving, words))
        if stopping:
            yield words("These jobs stop, and wait in their queues: {names}.", names=_named(stopping, words))
        if self._moves:
            yield words("Jobs without checkpoints start from the beginning.")


def _named(names: list[str], words: Words) -> str:
    text = ", ".join(names[:MAX_NAMED])
    if len(names) <= MAX_NAMED:
        return text
    return words("{names} and {n} more", names=text, n=count(len(names) - MAX_NAMED, words.locale))


def moves_all(question: Mapping[str, Any]) -> bool:
    """Report whether a question places all running jobs again."""
    return bool(question.get("replay") or question.get("policy"))


def may_apply(question: Mapping[str, Any], visit: Visit) -> bool:
    """Report whether a visitor may apply all changes of a question, except the time that it looks at."""
    parts = question.keys() - {"window", "last"}
    if {"policy", "queues"} <= parts:  # the policy of all queues could contradict that of a changed one
        return False
    return bool(parts) and all(part in APPLICABLE and visit.may(APPLICABLE[part]) for part in parts)


def steps_of(question: Mapping[str, Any], words: Words) -> Iterator[str]:
    """Yield what will be done, a sentence each."""
    for name in question.get("drain", ()):
        yield words("{name} is drained: it gets no new jobs, and running jobs restart elsewhere.", name=name)
    if policy := question.get("policy"):
        yield words("All queues get the policy {policy}.", policy=policy)
    for each in question.get("queues", ()):
        yield words("Queue {name} is changed.", name=each["name"])
    for each in question.get("tenants", ()):
        yield words("Tenant {name} is changed.", name=each["name"])


async def calls_of(question: Mapping[str, Any], moves: list[JobMoveOut], visit: Visit) -> list[Call[Any]]:
    """Return the calls that apply the changes of a question. Omitted fields keep their present values.

    Moves and drains are first: they fail if the fleet has changed too much since the answer.
    """
    calls: list[Call[Any]] = []
    if moves or question.get("drain"):
        moving, reason = [each.model_dump() for each in moves], visit.words("after a what-if question")
        calls.append(service.move_jobs(moving, question.get("drain", ()), reason=reason))
    if policy := question.get("policy"):
        for queue in (await visit.ask(queue_calls.queues())).queues:
            given = queue.model_dump(mode="json", include=set(QueueIn.model_fields) - {"policy_options"})
            if given["policy"] != policy:
                calls.append(queue_calls.put_queue(queue.name, seen=queue, **{**given, "policy": policy}))
    for each in question.get("queues", ()):
        known = await _known(visit, queue_calls.queue(each["name"]))
        before = known.model_dump(mode="json", include=set(QueueIn.model_fields)) if known else {}
        given = {key: value for key, value in each.items() if key != "name"}
        calls.append(queue_calls.put_queue(each["name"], seen=known, **{**before, **given}))
    for each in question.get("tenants", ()):
        tenant = await visit.ask(tenancy.tenant(each["name"]))
        quotas = {pool: quota.model_dump(mode="json", exclude_none=True) for pool, quota in tenant.quotas.items()}
        for pool, quota in each.get("quotas", {}).items():
            quotas[pool] = {**quotas.get(pool, {}), **quota}
        weight = each.get("weight", tenant.weight)
        given = {"weight": weight, "quotas": quotas, "secrets": tenant.secrets, "seen": tenant}
        calls.append(tenancy.put_tenant(tenant.name, tenant.description, **given))
    return calls


async def _known(visit: Visit, call: Call[QueueOut]) -> QueueOut | None:
    """Return a queue; None if it does not exist yet."""
    try:
        return await visit.ask(call)
    except UnknownError:
        return None
