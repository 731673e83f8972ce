"""Policies page: policies and their queues, shadow comparisons, and the effect of each policy on the fleet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nicegui import ui

from seaway.client.calls import policies
from seaway.client.calls import queues as queue_calls
from seaway.web.fragment import Fragment
from seaway.web.pages.policies.comparison import Comparison
from seaway.web.pages.policies.evaluations import Curve, EvaluationPanel
from seaway.web.parts.cordon import on_act
from seaway.web.parts.form import Field, FileForm, Form, confirm, error_line, notify
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.policies import PolicyDetail, PolicyList, PolicyOut
    from seaway.wire.queues import QueueList, QueueOut, ShadowList, ShadowOut


JOBS, PLACED, APART, ON = "jobs", "placed", "kept_apart_", "trained_on_"
"""Names and prefixes of training figures in policy files."""


Z95 = 1.96
"""Quantile of the normal distribution for an interval of 95 %."""

MIN_GROUPS = 10
"""Minimum number of groups for an interval. With fewer, the mean is not close to normal."""


@dataclass(slots=True)
class Spread:
    """Mean of values and its interval of confidence, by Welford's algorithm.

    References
    ----------
    Welford, Note on a Method for Calculating Corrected Sums of Squares and Products, Technometrics 4(3), 1962.
    """

    number: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        self.number += 1
        before = value - self.mean
        self.mean += before / self.number
        self.squares += before * (value - self.mean)

    @property
    def half(self) -> float | None:
        """Half the width of the interval of 95 %; None with too few values."""
        if self.number < MIN_GROUPS:
            return None
        return Z95 * math.sqrt(self.squares / (self.number - 1) / self.number)


@dataclass(slots=True)
class MeanWait:
    """Mean wait of jobs, of those comparisons that have waits."""

    jobs: int = 0
    ms: int = 0

    def add(self, jobs: int, ms: int) -> None:
        """Add jobs with the sum of their waits."""
        self.jobs += jobs
        self.ms += ms

    @property
    def s(self) -> float | None:
        """Mean in seconds; None without jobs."""
        return self.ms / self.jobs / 1000 if self.jobs else None


@dataclass(slots=True)
class Duel:
    """Comparison of a shadow with the active policy of a queue.

    Attributes
    ----------
    live, shadow
        The policies; for a trained policy, with its model.
    jobs
        Number of jobs that both decided.
    live_placed, shadow_placed
        Number of jobs that each of them placed.
    same_node
        Number of jobs that both placed on the same nodes.
    live_wait, shadow_wait
        Waits of the jobs that each of them placed.
    answered, fallbacks
        Number of jobs that the shadow decided itself, and number of jobs that a fallback decided.
    live_fragmentation, shadow_fragmentation
        Fragmentation of the fleet afterwards, 0 to 4; mean over groups of jobs with equal weights.
    fragmentation, placed
        Differences of the shadow from the active policy in a group: of the fragmentation, and of the placed jobs,
        percent of all.
    """

    queue: str
    live: str
    shadow: str
    jobs: int = 0
    live_placed: int = 0
    shadow_placed: int = 0
    same_node: int = 0
    answered: int = 0
    fallbacks: int = 0
    live_fragmentation: float = 0.0
    shadow_fragmentation: float = 0.0
    groups: int = 0
    live_wait: MeanWait = field(default_factory=MeanWait)
    shadow_wait: MeanWait = field(default_factory=MeanWait)
    fragmentation: Spread = field(default_factory=Spread)
    placed: Spread = field(default_factory=Spread)

    def add(self, row: ShadowOut) -> None:
        """Add a group of jobs."""
        self.jobs += row.jobs
        self.live_placed += row.live_placed
        self.shadow_placed += row.shadow_placed
        self.same_node += row.same_node
        self.answered += row.answered
        self.fallbacks += row.fallbacks
        self.groups += 1
        self.fragmentation.add((row.shadow_fragmentation_milli - row.live_fragmentation_milli) / 1000)
        tries = row.tries or row.jobs
        self.placed.add(100 * (row.shadow_placed - row.live_placed) / tries if tries else 0.0)
        if row.tries:
            self.live_wait.add(row.live_placed, row.live_wait_ms)
            self.shadow_wait.add(row.shadow_placed, row.shadow_wait_ms)
        self.live_fragmentation += (row.live_fragmentation_milli / 1000 - self.live_fragmentation) / self.groups
        self.shadow_fragmentation += (row.shadow_fragmentation_milli / 1000 - self.shadow_fragmentation) / self.groups


def duels(rows: Iterable[ShadowOut]) -> list[Duel]:
    """Sum comparisons by queue and policies; return the latest first."""
    found: dict[tuple[str, str, str], Duel] = {}
    for row in rows:
        key = row.queue, row.live, row.shadow
        found.setdefault(key, Duel(*key)).add(row)
    return list(found.values())


def policy_rows(policies: Sequence[PolicyOut], queues: Sequence[QueueOut]) -> Iterator[dict[str, object]]:
    """Yield policies with the queues that use them as active policy and as shadow."""
    for policy in policies:
        decides = [each.name for each in queues if each.policy == policy.name]
        shadows = [each.name for each in queues if each.shadow == policy.name]
        yield {"policy": policy, "decides": decides, "shadows": shadows}


def figure_rows(figures: Mapping[str, float], words: Words) -> Iterator[tuple[str, float]]:
    """Yield the figures of a policy file, with titles for known ones."""
    known = {
        "jobs": words("Jobs"),
        "placed": words("Jobs placed"),
        "refused": words("Jobs that fit on no node"),
        "gpu_load_variance": words("Variance of GPU load between clusters"),
        "reward": words("Reward"),
    }
    for name, value in figures.items():
        plain = name.removeprefix(APART).removeprefix(ON)
        yield known.get(plain, name.replace("_", " ")), value


def placed_share(figures: Mapping[str, float]) -> float | None:
    """Return the share of jobs that a trained policy placed in its measurements, in percent; None if unknown."""
    for where in (APART, ON):
        jobs, placed = figures.get(f"{where}{JOBS}"), figures.get(f"{where}{PLACED}")
        if jobs and placed is not None:
            return 100 * placed / jobs
    return None


SLOW_REFRESH_S = 3.0

DEFAULT = "default"
"""Queue that always exists."""

MAX_SHADOWS = 1000
"""Number of latest comparisons in the sums."""


async def build(visit: Visit) -> None:
    """Build the page."""
    page = _Policies(visit)
    await visit.follow(policies.policies(), page.on_policies, SLOW_REFRESH_S)
    await visit.follow(queue_calls.queues(), page.on_queues, SLOW_REFRESH_S)
    wanted = visit.query.get("policy", "")
    await page.look(wanted)
    if wanted and wanted not in [each.name for each in page.policies]:
        page.show_missing(visit.words("Policy {policy} not found.", policy=wanted))
    await page.evaluations.begin()
    if visit.may("operator"):
        await visit.follow(queue_calls.shadows(limit=MAX_SHADOWS).first, page.on_shadows, SLOW_REFRESH_S)
        page.comparison.offer([each.name for each in page.policies], {each.policy for each in page.queues})


class _Policies:
    """Policies page of one visitor."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self.policies: list[PolicyOut] = []
        self.queues: list[QueueOut] = []
        self._chosen: PolicyDetail | None = None
        words = visit.words
        self._missing = error_line()
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

    def show_missing(self, text: str) -> None:
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
        """Show a policy; show none if the name is unknown."""
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
            self.show_missing("")
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
        notify(self._visit.words("{policy} is imported; no queue uses it yet", policy=brought.name))
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
            self._visit.ask_again(queue_calls.queues())
            if done.queue.policy == name and not given["shadow"]:
                decides = words("{policy} decides for {queue} now", policy=name, queue=done.queue.name)
                notify(decides, words.plain(done.warning))
            else:
                notify(words("{policy} is the shadow of {queue} now", policy=name, queue=done.queue.name))

        Form(words, words("Use policy {name}", name=name), fields, words("Use it"), send)

    def _trains(self, name: str) -> bool:
        """Report whether a policy is a trained one, which must be a shadow first."""
        return any(each.name == name and each.source == "trained" for each in self.policies)

    def _ask_to_remove(self, name: str) -> None:
        words = self._visit.words

        async def remove() -> None:
            await self._visit.ask(policies.delete_policy(name))
            notify(words("{name} is removed", name=name))
            self._visit.keep(policy=None)
            self._chosen = None
            self._draw()

        text = words("The server has no other copy of its file. Policies of queues cannot be removed.")
        confirm(words, words("Remove policy {name}?", name=name), text, words("Remove"), remove)
