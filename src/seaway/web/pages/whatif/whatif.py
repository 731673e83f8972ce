"""What-if page: a query on a copy of the live fleet, and its result next to the current state."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement
from nicegui.events import GenericEventArguments, ValueChangeEventArguments

from seaway.client.calls import fleet, policies, service, tenancy
from seaway.client.calls import queues as queue_calls
from seaway.domain.errors import ForbiddenError, RejectedError, SeawayError
from seaway.web.fragment import Fragment
from seaway.web.latest import Latest
from seaway.web.pages.queues.forms import backfills, orders
from seaway.web.pages.whatif.answer import variables_of
from seaway.web.pages.whatif.applying import Applying
from seaway.web.pages.whatif.question import FIELDS, MAX_BURST, MAX_NODES, asked, field_of, trace_of_file, wrong
from seaway.web.parts.form import FileForm, error_line
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.whatif import WhatIfOut


MAX_LIKE = 50
"""Maximum number of nodes in the list of templates."""

MAX_TRACE_BYTES = 8 << 20
"""Maximum size of a trace file. Larger ones delay other visitors while they are sent to the API."""

TYPING_S = 0.2
"""Delay between the last key press and a search for nodes, in seconds."""


async def build(visit: Visit) -> None:
    """Build the page."""
    if not visit.may("operator"):
        raise ForbiddenError(
            visit.words("What-if questions require the operator role: they use the jobs of all tenants.")
        )
    page = _WhatIf(visit)
    if await page.offer() and (wrong(visit.query, visit.words) or (question := asked(visit.query))):
        if question.keys() & {"last", "policy", "replay"}:
            ui.timer(0, page.ask, once=True)  # a replay and the compilation of a policy take longer than a page may
        else:
            await page.ask()


class _WhatIf:
    """What-if page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit, words = visit, visit.words
        self._inputs: dict[str, Any] = {}
        self._typed, self._asked = Latest(visit), Latest(visit)
        self._file: tuple[str, bytes] | None = None
        self._answer = Fragment("whatif", words)
        self._applying = Applying(visit)
        with ui.element("section").classes("panel question").props("id=question"):
            ui.label(words("What if…")).props("role=heading aria-level=2").classes("panel-title")
            with ui.element("div").classes("question-parts"):
                self._ask_for_losses(words)
                self._ask_for_nodes(words)
                self._ask_for_jobs(words)
                self._ask_for_policy(words)
                self._ask_for_queue(words)
                self._ask_for_tenant(words)
                self._ask_for_trace(words)
            self._wrong = error_line()
            with ui.element("div").classes("question-foot"):
                self._button = ui.button(words("Ask"), icon="science", on_click=self.ask).props("unelevated no-caps")
                ui.label(words("Questions are answered on a copy of the present fleet and queues. Nothing changes."))
                self._progress = ui.label().props("role=status")
        for name, each in self._inputs.items():
            each.value = visit.query.get(name, each.value) if not isinstance(each, ui.switch) else name in visit.query
            if isinstance(each, ui.input):
                each.on("keydown.enter", self.ask)

    async def offer(self) -> bool:
        """Fill in the options: clusters, queues and policies. Return whether all names in the address exist."""
        clusters = (await self._visit.ask(fleet.clusters())).clusters
        queues = (await self._visit.ask(queue_calls.queues())).queues
        known = (await self._visit.ask(policies.policies())).policies
        tenants = (await self._visit.ask(tenancy.tenants())).tenants
        names, present = [each.name for each in clusters], [each.name for each in queues]
        lines = list(dict.fromkeys([*present, *filter(None, [self._visit.query.get("changed_queue", "")])]))
        words = self._visit.words
        offered: dict[str, Sequence[str] | Mapping[str, str]] = {
            "lose": names,
            "cluster": names,
            "queue": lines,
            "policy": [each.name for each in known],
            "changed_queue": lines,
            "parent": present,
            "moved": present,
            "tenant": [each.name for each in tenants],
            "order": orders(words),
            "backfill": backfills(words),
        }
        strange = {}
        for field, there in offered.items():
            wanted = self._visit.query.get(field, "")
            if field == "lose":
                found, strange[field] = partition_known(wanted.split(","), there)
                self._inputs[field].set_options(there, value=found)
            else:
                found, strange[field] = partition_known([wanted], there)
                titles = there if isinstance(there, Mapping) else {name: name for name in there}
                self._inputs[field].set_options({"": "", **titles}, value=next(iter(found), ""))
        await self._offer_nodes()
        for field, missing in strange.items():
            if missing:
                self._inputs[field].error = self._visit.words("{name} not found.", name=", ".join(missing))
        return not any(strange.values())

    async def ask(self) -> None:
        """Send the query, and show its result unless a newer query has begun."""
        turn, given = self._asked.begin(), self._given()
        self._visit.keep(**{name: given.get(name) for name in FIELDS})
        self._clear()
        if mistakes := wrong(given, self._visit.words):
            self._show_error(RejectedError(mistakes[0].message, where=mistakes[0].where, also=tuple(mistakes[1:])))
            return
        question, file = asked(given), self._file
        if not (question or file):
            self._show_error(RejectedError(self._visit.words("Choose at least one change.")))
            return
        self._button.props("loading")
        try:
            if file:
                gateways = [each.name for each in (await self._visit.ask(fleet.gateways())).gateways]
                question["trace"] = await asyncio.to_thread(trace_of_file, *file, gateways)
            answer = await self._visit.ask_when_compiled(service.whatif(question), self._progress.set_text)
            if turn.counts():
                self._show(answer)
                self._applying.offer(question, answer)
        except SeawayError as error:
            if turn.counts():
                self._show_error(error)
        finally:
            if turn.counts():
                self._button.props(remove="loading")
                self._progress.set_text("")

    def _given(self) -> dict[str, str]:
        given: dict[str, str] = {}
        for name, each in self._inputs.items():
            value = each.value
            if isinstance(value, list):
                given[name] = ",".join(value)
            elif isinstance(value, bool):
                given[name] = "1" if value else ""
            else:
                given[name] = str(value or "").strip()
        return given

    def _clear(self) -> None:
        self._button.props(remove="loading")
        self._applying.hide()
        self._wrong.set_visibility(False)
        for each in self._inputs.values():
            if isinstance(each, ValidationElement):
                each.error = None

    def _show_error(self, error: SeawayError) -> None:
        """Remove the last result, and show errors at their fields if the fields are known."""
        self._answer.put("")
        left = []
        for each in (error, *error.also) if isinstance(error, RejectedError) else (error,):
            at = self._inputs.get(field_of(each.where)) if isinstance(each, RejectedError) else None
            if isinstance(at, ValidationElement) and isinstance(each, RejectedError):
                at.error = each.message
            else:
                left.append(str(each))
        self._wrong.set_text("; ".join(dict.fromkeys(left)))
        self._wrong.set_visibility(bool(left))

    def _show(self, answer: WhatIfOut) -> None:
        self._answer.show(**variables_of(answer, self._visit.words))

    # Fields of the form

    def _ask_for_losses(self, words: Words) -> None:
        with self._part(words("…this is drained"), "remove_circle_outline"):
            self._inputs["lose"] = ui.select([], label=words("Clusters"), multiple=True, value=[]).props(
                "outlined dense options-dense use-chips"
            )
            self._inputs["nodes"] = ui.input(words("Nodes")).props(
                f'outlined dense autocomplete=off hint="{words("cluster/node, cluster/node")}"'
            )

    def _ask_for_nodes(self, words: Words) -> None:
        with self._part(words("…nodes are added"), "add_circle_outline"):
            self._inputs["cluster"] = ui.select([""], label=words("Cluster"), value="").props("outlined dense")
            self._inputs["cluster"].on_value_change(self._offer_nodes)
            like = ui.select([""], label=words("Like this node"), value="", with_input=True)
            self._inputs["like"] = like.props(
                f'outlined dense options-dense hint="{words("type a part of its name")}"'
            ).on("input-value", self._find_nodes)
            count = ui.input(words("How many"), value="1").props(f"outlined dense type=number min=1 max={MAX_NODES}")
            self._inputs["count"] = count.props(f'hint="{words("at most {most}", most=MAX_NODES)}"')

    def _ask_for_jobs(self, words: Words) -> None:
        with self._part(words("…jobs are submitted"), "bolt"):
            burst = ui.input(words("Jobs")).props(f"outlined dense type=number min=0 max={MAX_BURST}")
            self._inputs["burst"] = burst.props(f'hint="{words("at most {most}", most=MAX_BURST)}"')
            self._inputs["gpus"] = ui.input(words("GPUs of each"), value="1").props("outlined dense")
            memory = ui.input(words("Memory of each GPU"), value="16GB").props("outlined dense")
            self._inputs["gpu_memory"] = memory
            self._inputs["cpu"] = ui.input(words("CPU cores of each"), value="4").props("outlined dense")
            self._inputs["queue"] = ui.select([""], label=words("Queue"), value="").props("outlined dense")

    def _ask_for_policy(self, words: Words) -> None:
        with self._part(words("…everything is placed again"), "shuffle"):
            self._inputs["again"] = ui.switch(words("By the policies of the queues"))
            self._inputs["policy"] = ui.select([""], label=words("By this policy"), value="").props("outlined dense")

    def _ask_for_queue(self, words: Words) -> None:
        amounts = words("for example gpus=16, memory=2TB")
        with self._part(words("…a queue changes"), "account_tree"):
            changed = ui.select([""], label=words("Queue"), value="", with_input=True, new_value_mode="add-unique")
            self._inputs["changed_queue"] = changed.props(
                f'outlined dense options-dense hint="{words("choose one, or type a new name")}"'
            )
            changed.on_value_change(self._offer_queue)
            self._select("parent", words("Part of"))
            self._inputs["weight"] = ui.input(words("Weight")).props("outlined dense type=number min=0")
            self._text("guarantee", words("Guarantee"), amounts)
            self._text("limit", words("Limit"), amounts)
            self._select("order", words("Order"))
            self._select("backfill", words("Backfill"))
            self._select("moved", words("With the jobs of"))

    def _ask_for_tenant(self, words: Words) -> None:
        amounts = words("for example gpus=16, memory=2TB")
        with self._part(words("…a tenant gets another share"), "groups"):
            self._select("tenant", words("Tenant"))
            self._inputs["tenant_weight"] = ui.input(words("Weight")).props("outlined dense type=number min=0")
            self._text("tenant_guarantee", words("Guarantee"), amounts)
            self._text("tenant_limit", words("Limit"), amounts)
            self._text("window", words("Shares of GPUs over"), words("for example 1h or 1d"), "1h")

    def _ask_for_trace(self, words: Words) -> None:
        with self._part(words("…a trace is replayed"), "history"):
            self._text("last", words("Jobs of the last"), words("for example 7d"))
            choose = ui.button(words("Choose a file"), icon="upload_file", on_click=self._choose_file)
            choose.props("outline no-caps")
            self._chosen = ui.label(words("No file is chosen yet.")).classes("fine").props("role=status")
            self._drop = ui.button(words("Remove the file"), icon="close", on_click=self._remove_file)
            self._drop.props("flat dense no-caps").set_visibility(False)
            ui.label(words("CSV as for seaway replay --jobs, or a log in the Standard Workload Format.")).classes(
                "fine"
            )

    def _choose_file(self) -> None:
        words, largest = self._visit.words, min(self._visit.who.max_policy_file_bytes, MAX_TRACE_BYTES)
        FileForm(words, words("Replay of the trace"), ".csv,.swf,.txt,.log", words("Use it"), self._take, largest)

    async def _take(self, _: str, name: str, content: bytes) -> None:
        """Replay the jobs of a file with the next question."""
        words, size = self._visit.words, f"{len(content):,}"
        self._file = name, content
        self._chosen.set_text(words("{file}, {size} bytes", file=name[:120], size=size))
        self._drop.set_visibility(True)

    def _remove_file(self) -> None:
        words = self._visit.words
        self._file = None
        self._chosen.set_text(words("No file is chosen yet."))
        self._drop.set_visibility(False)

    def _select(self, name: str, label: str) -> None:
        self._inputs[name] = ui.select([""], label=label, value="").props("outlined dense options-dense")

    def _text(self, name: str, label: str, hint: str, value: str = "") -> None:
        self._inputs[name] = ui.input(label, value=value).props(f'outlined dense autocomplete=off hint="{hint}"')

    def _part(self, title: str, icon: str) -> ui.element:
        part = ui.element("fieldset").classes("question-part")
        with part, ui.element("legend"):
            ui.icon(icon).props("aria-hidden=true")
            ui.label(title)
        return part

    def _offer_queue(self, event: ValueChangeEventArguments[Any]) -> None:
        """Offer a new queue for the jobs to submit."""
        queue = self._inputs["queue"]
        if event.value and event.value not in queue.options:
            queue.set_options({name: name for name in (*queue.options, event.value)}, value=queue.value)

    async def _offer_nodes(self) -> None:
        """Show the nodes of the selected cluster to choose from, and select the first unless the address names one."""
        cluster, query = self._inputs["cluster"].value, self._visit.query
        names = await nodes_like(self._visit, cluster)
        if cluster != self._inputs["cluster"].value:
            return
        by_address = cluster and cluster == query.get("cluster")
        value = query.get("like", "") if by_address else next(iter(names), "")
        self._inputs["like"].set_options(list(dict.fromkeys(["", value, *names])), value=value)

    async def _find_nodes(self, event: GenericEventArguments) -> None:
        """Show the nodes that match the typed text to choose from. If it is the selected name, show all nodes."""
        turn, like, typed = self._typed.begin(), self._inputs["like"], str(event.args or "").strip()
        if not await turn.pause(TYPING_S):
            return
        cluster = self._inputs["cluster"].value
        names = await nodes_like(self._visit, cluster, "" if typed == like.value else typed)
        if turn.counts() and cluster == self._inputs["cluster"].value:
            like.set_options(list(dict.fromkeys(["", like.value, *names])), value=like.value)


async def nodes_like(visit: Visit, cluster: str, part: str = "") -> list[str]:
    """Return up to `MAX_LIKE` nodes of a cluster with `part` in their names."""
    if not cluster:
        return []
    return [each.name for each in await visit.all(fleet.nodes(cluster=cluster, name=part, limit=MAX_LIKE))]


def partition_known(wanted: Iterable[str], there: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the known and the unknown names; ignore empty ones."""
    names = [each.strip() for each in wanted if each.strip()]
    return [each for each in names if each in there], [each for each in names if each not in there]
