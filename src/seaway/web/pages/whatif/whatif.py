"""What-if page: a query on a copy of the live fleet, and its result next to the current state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement
from nicegui.events import GenericEventArguments

from seaway.client.calls import fleet, policies, service
from seaway.client.calls import queues as queue_calls
from seaway.domain.errors import ForbiddenError, RejectedError, SeawayError
from seaway.web import words as figures
from seaway.web.fragment import Fragment
from seaway.web.job_document import amount
from seaway.web.latest import Latest
from seaway.web.pages.whatif.drawing import draw
from seaway.web.parts.form import error_line
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.whatif import WhatIfOut


MAX_BURST = 100
"""Maximum number of jobs in a query, a limit of the API."""

MAX_NODES = 1000
"""Maximum number of added nodes of a kind, a limit of the API."""

QUESTION = "question."
"""Prefix of error paths in a query."""

FIELDS = ("lose", "nodes", "cluster", "like", "count", "burst", "gpus", "gpu_memory", "cpu", "queue", "again", "policy")
"""Names of the form's fields."""

WHOLE = re.compile(r"[0-9]{1,9}")
"""Pattern of a number without leading zeros. No limit has more digits."""

STEP = re.compile(r"[.\[\]]+")
"""Separator in the path of a field."""

OF_OTHERS = {"drain": "nodes", "add_nodes": "like"}
OF_JOBS = {"resources.gpus": "gpus", "resources.gpu_memory": "gpu_memory", "resources.cpu": "cpu", "queue": "queue"}


def asked(given: Mapping[str, str]) -> dict[str, Any]:
    """Return a query for the API; empty if the form is empty.

    Parameters
    ----------
    given
        Values by field, for which `wrong` reports no errors; empty values are omitted.
    """
    question: dict[str, Any] = {}
    if drain := [*_words(given.get("lose", "")), *_words(given.get("nodes", ""))]:
        question["drain"] = drain
    if given.get("like"):
        count = whole(given.get("count", "")) or 1
        question["add_nodes"] = [{"cluster": given.get("cluster", ""), "like": given["like"], "count": count}]
    if burst := whole(given.get("burst", "")):
        question["jobs"] = [_job(at, given) for at in range(burst)]
    if given.get("policy"):
        question["policy"] = given["policy"]
    elif given.get("again"):
        question["replay"] = True
    return question


def wrong(given: Mapping[str, str], words: Words) -> list[RejectedError]:
    """Check numbers that the API does not receive in the typed form; return errors with their fields."""
    bounds = {"burst": (0, MAX_BURST)} | ({"count": (1, MAX_NODES)} if given.get("like") else {})
    return [
        RejectedError(words("Fill in a whole number from {least} to {most}.", least=least, most=most), where=name)
        for name, (least, most) in bounds.items()
        if (text := given.get(name, "")) and ((number := whole(text)) is None or not least <= number <= most)
    ]


def whole(text: str) -> int | None:
    """Read a whole number; return None if the text is not one, or if it is negative or exceeds all limits."""
    digits = text.lstrip("0") or text[:1]
    return int(digits) if WHOLE.fullmatch(digits) else None


def field_of(where: str) -> str:
    """Return the form field for an error path of the API; empty if there is none."""
    steps = [each for each in STEP.split(where.removeprefix(QUESTION)) if each and not each.isdecimal()]
    first, rest = (steps[0], ".".join(steps[1:])) if steps else ("", "")
    if first == "jobs":
        return OF_JOBS.get(rest, "burst")
    if first == "add_nodes" and rest in FIELDS:
        return rest
    return OF_OTHERS.get(first, first if first in FIELDS else "")


def _job(at: int, given: Mapping[str, str]) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    for name in ("gpus", "gpu_memory", "cpu"):
        if given.get(name):
            resources[name] = amount(given[name]) if name in ("gpus", "cpu") else given[name]
    job: dict[str, Any] = {"name": f"burst-{at + 1}", "resources": resources}
    if given.get("queue"):
        job["queue"] = given["queue"]
    return job


def _words(text: str) -> list[str]:
    return [each for each in text.replace(",", " ").split() if each]


MAX_LIKE = 50
"""Maximum number of nodes in the list of templates."""

TYPING_S = 0.2
"""Delay between the last key press and a search for nodes, in seconds."""

MAX_MOVES = 25
"""Maximum number of jobs in the list."""


async def build(visit: Visit) -> None:
    """Build the page."""
    if not visit.may("operator"):
        raise ForbiddenError(
            visit.words("What-if questions require the operator role: they use the jobs of all tenants.")
        )
    page = _WhatIf(visit)
    if await page.offer() and (wrong(visit.query, visit.words) or asked(visit.query)):
        await page.ask()


class _WhatIf:
    """What-if page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit, words = visit, visit.words
        self._inputs: dict[str, Any] = {}
        self._typed, self._asked = Latest(visit), Latest(visit)
        with ui.element("section").classes("panel question"):
            ui.label(words("What if…")).props("role=heading aria-level=2").classes("panel-title")
            with ui.element("div").classes("question-parts"):
                self._ask_for_losses(words)
                self._ask_for_nodes(words)
                self._ask_for_jobs(words)
                self._ask_for_policy(words)
            self._wrong = error_line()
            with ui.element("div").classes("question-foot"):
                self._button = ui.button(words("Ask"), icon="science", on_click=self.ask).props("unelevated no-caps")
                ui.label(words("Questions are answered on a copy of the present fleet and queues. Nothing changes."))
        for name, each in self._inputs.items():
            each.value = visit.query.get(name, each.value) if not isinstance(each, ui.switch) else name in visit.query
            if isinstance(each, ui.input):
                each.on("keydown.enter", self.ask)
        self._answer = Fragment("whatif", words)

    async def offer(self) -> bool:
        """Fill in the options: clusters, queues and policies. Return whether all names in the address exist."""
        clusters = (await self._visit.ask(fleet.clusters())).clusters
        queues = (await self._visit.ask(queue_calls.queues())).queues
        known = (await self._visit.ask(policies.policies())).policies
        names = [each.name for each in clusters]
        offered = {
            "lose": names,
            "cluster": names,
            "queue": [each.name for each in queues],
            "policy": [each.name for each in known],
        }
        strange = {}
        for field, there in offered.items():
            wanted = self._visit.query.get(field, "")
            if field == "lose":
                found, strange[field] = partition_known(wanted.split(","), there)
                self._inputs[field].set_options(there, value=found)
            else:
                found, strange[field] = partition_known([wanted], there)
                self._inputs[field].set_options(["", *there], value=next(iter(found), ""))
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
        question = asked(given)
        if not question:
            self._show_error(RejectedError(self._visit.words("Choose at least one change.")))
            return
        self._button.props("loading")
        try:
            answer = await self._visit.ask(service.whatif(question))
            if turn.counts():
                self._show(answer)
        except SeawayError as error:
            if turn.counts():
                self._show_error(error)
        finally:
            if turn.counts():
                self._button.props(remove="loading")

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
        moves = [
            {"kind": kind, "job": each}
            for kind, listed in (
                ("stops", answer.stopped),
                ("moves", answer.moved),
                ("starts", answer.started),
                ("waits", answer.waiting),
            )
            for each in listed
        ]
        self._answer.show(
            answer=answer,
            sentence=sentence_of(answer, self._visit.words),
            tiles=list(_tiles(answer, self._visit.words)),
            drawing=draw(answer),
            moves=moves[:MAX_MOVES],
            left=max(0, len(moves) - MAX_MOVES),
        )

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

    def _part(self, title: str, icon: str) -> ui.element:
        part = ui.element("fieldset").classes("question-part")
        with part, ui.element("legend"):
            ui.icon(icon).props("aria-hidden=true")
            ui.label(title)
        return part

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


def partition_known(wanted: Iterable[str], there: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the known and the unknown names; ignore empty ones."""
    names = [each.strip() for each in wanted if each.strip()]
    return [each for each in names if each in there], [each for each in names if each not in there]


def _tiles(answer: WhatIfOut, words: Words) -> Iterator[dict[str, str]]:
    locale, before, after = words.locale, answer.before, answer.after
    yield _tile(words("Jobs placed"), figures.count(before.placed, locale), figures.count(after.placed, locale))
    yield _tile(words("Waiting jobs"), figures.count(before.waiting, locale), figures.count(after.waiting, locale))
    percents = [
        "–" if each.allocation_percent is None else figures.percent(each.allocation_percent, locale)
        for each in (before, after)
    ]
    yield _tile(words("GPU cores allocated"), *percents)
    shares = ["–" if each.fragmentation is None else f"{each.fragmentation:.2f}" for each in (before, after)]
    yield _tile(words("Fragmentation"), *shares)


def sentence_of(answer: WhatIfOut, words: Words) -> str:
    """Summarize a result in one sentence."""
    counts = {
        "started": figures.count(len(answer.started), words.locale),
        "waiting": figures.count(len(answer.started) + len(answer.waiting), words.locale),
        "stopped": figures.count(len(answer.stopped), words.locale),
    }
    if len(answer.moved) == 1:
        return words(
            "1 job would move, {started} of {waiting} waiting jobs would start, {stopped} running jobs would wait.",
            **counts,
        )
    return words(
        "{moved} jobs would move, {started} of {waiting} waiting jobs would start, {stopped} running jobs would wait.",
        moved=figures.count(len(answer.moved), words.locale),
        **counts,
    )


def _tile(label: str, before: str, after: str) -> dict[str, str]:
    return {"label": label, "before": before, "after": after}
