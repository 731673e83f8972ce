"""Policies page: policies and their queues, shadow comparisons, and the effect of each policy on the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import policies, tenancy
from seaway.web.fragment import Fragment
from seaway.web.pages.policies.comparison import Comparison
from seaway.web.pages.policies.evaluations import Curve, EvaluationPanel
from seaway.web.pages.policies.rows import APART, duels, figure_rows, placed_share, policy_rows
from seaway.web.parts.actions import on_act
from seaway.web.parts.form import Field, FileForm, Form, confirm, tell, wrong_line
from seaway.web.visit import Visit

if TYPE_CHECKING:
    from seaway.wire.policies import PolicyDetail, PolicyList, PolicyOut
    from seaway.wire.tenancy import QueueList, QueueOut, ShadowList

SELDOM_S = 3.0

DEFAULT = "default"
"""Queue that always exists."""

MAX_SHADOWS = 1000
"""Number of latest comparisons in the sums."""


async def build(visit: Visit) -> None:
    """Build the page."""
    page = _Policies(visit)
    await visit.follow(policies.policies(), page.on_policies, SELDOM_S)
    await visit.follow(tenancy.queues(), page.on_queues, SELDOM_S)
    wanted = visit.query.get("policy", "")
    await page.look(wanted)
    if wanted and wanted not in [each.name for each in page.policies]:
        page.say_missing(visit.words("Policy {policy} not found.", policy=wanted))
    await page.evaluations.begin()
    if visit.may("operator"):
        await visit.follow(tenancy.shadows(limit=MAX_SHADOWS).first, page.on_shadows, SELDOM_S)
        page.comparison.offer([each.name for each in page.policies], {each.policy for each in page.queues})


class _Policies:
    """Policies page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self.policies: list[PolicyOut] = []
        self.queues: list[QueueOut] = []
        self._chosen: PolicyDetail | None = None
        words = visit.words
        self._missing = wrong_line()
        with ui.element("section").classes("panel"):
            self._list = Fragment("policies", words)
        with ui.element("section").classes("panel") as self._panel:
            self._detail = Fragment("policy", words)
            self._curve = Curve(visit)
        self.evaluations = EvaluationPanel(visit)
        on_act(self._list, self._act)
        on_act(self._detail, self._act)
        if visit.may("operator"):
            with ui.element("section").classes("panel"):
                self._shadows = Fragment("shadows", words)
            self.comparison = Comparison(visit)

    def say_missing(self, text: str) -> None:
        """Report that a policy in the address does not exist; hide the line for an empty text."""
        self._missing.set_text(text)
        self._missing.set_visibility(bool(text))

    def on_policies(self, value: PolicyList) -> None:
        """Accept the list of policies."""
        self.policies = value.policies
        self._draw()

    def on_queues(self, value: QueueList) -> None:
        """Accept the list of queues."""
        self.queues = value.queues
        self._draw()

    def on_shadows(self, value: ShadowList) -> None:
        """Accept comparisons of shadows."""
        self._shadows.show(duels=duels(value.shadows), more=value.next is not None)

    async def look(self, name: str) -> None:
        """Show a policy; none if the name is unknown."""
        there = any(each.name == name for each in self.policies)
        self._chosen = None
        if there:
            found = await self._visit.ask(policies.policy(name))
            self._chosen = found
        self._draw()

    def _draw(self) -> None:
        chosen, operates = self._chosen, self._visit.may("operator")
        rows, name = list(policy_rows(self.policies, self.queues)), chosen.name if chosen else ""
        self._list.show(rows=rows, chosen=name, may=operates)
        self._panel.set_visibility(chosen is not None)
        self._curve.show(chosen.trained if chosen else None)
        if chosen is not None:
            trained = chosen.trained
            trained_figures = trained.figures if trained else {}
            self._detail.show(
                policy=chosen,
                trained=trained,
                figures=list(figure_rows(trained_figures, self._visit.words)),
                share=placed_share(trained_figures),
                apart=any(name.startswith(APART) for name in trained_figures),
                may=operates,
            )

    async def _act(self, act: str, name: str) -> None:
        if act == "look":
            self._visit.keep(policy=name)
            self.say_missing("")
            await self.look(name)
        elif act == "activate":
            self._ask_to_activate(name)
        elif act == "download":
            content = await self._visit.ask(policies.export_policy(name))
            ui.download.content(content, f"{name}.policy")
        elif act == "remove":
            self._ask_to_remove(name)
        elif act == "import":
            words = self._visit.words
            largest = self._visit.who.max_policy_file_bytes
            FileForm(words, words("Import a policy file"), ".policy", words("Import it"), self._import, largest)

    async def _import(self, _: str, __: str, content: bytes) -> None:
        brought = await self._visit.ask(policies.import_policy(content))
        tell(self._visit.words("{policy} is here; no queue has it yet", policy=brought.name))
        self._visit.keep(policy=brought.name)
        self.on_policies(await self._visit.ask(policies.policies()))
        await self.look(brought.name)

    def _ask_to_activate(self, name: str) -> None:
        words, queues = self._visit.words, {each.name: each.name for each in self.queues}
        fields = [
            Field("queue", words("Queue"), DEFAULT if DEFAULT in queues else next(iter(queues), ""), queues),
            Field("shadow", words("Only compare it, as the queue's shadow"), self._trains(name)),
        ]

        async def send(given: dict[str, Any]) -> None:
            done = await self._visit.ask(policies.activate_policy(name, given["queue"], shadow=given["shadow"]))
            self._visit.ask_again(tenancy.queues())
            if done.queue.policy == name and not given["shadow"]:
                tell(words("{policy} decides for {queue} now", policy=name, queue=done.queue.name))
            else:
                tell(words("{policy} is the shadow of {queue} now", policy=name, queue=done.queue.name))

        Form(words, words("Use policy {name}", name=name), fields, words("Use it"), send)

    def _trains(self, name: str) -> bool:
        """Report whether a policy is a trained one, which has to be a shadow first."""
        return any(each.name == name and each.source == "trained" for each in self.policies)

    def _ask_to_remove(self, name: str) -> None:
        words = self._visit.words

        async def remove() -> None:
            await self._visit.ask(policies.delete_policy(name))
            tell(words("{name} is removed", name=name))
            self._visit.keep(policy=None)
            self._chosen = None
            self._draw()

        text = words("The server has no other copy of its file. Policies of queues cannot be removed.")
        confirm(words, words("Remove policy {name}?", name=name), text, words("Remove"), remove)
