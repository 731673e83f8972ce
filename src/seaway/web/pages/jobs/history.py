"""Tabs of a job for its history: overview, events, reasons and manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from seaway.client.calls import jobs
from seaway.domain.errors import SeawayError
from seaway.domain.job_state import JobState
from seaway.domain.usage import UsageSpan
from seaway.web import addresses
from seaway.web.fragment import Fragment
from seaway.web.job_document import AMOUNT, changed, typed, written
from seaway.web.latest import Turn
from seaway.web.link_figures import loss_text
from seaway.web.pages.jobs.gpu_use import MAX_SLICES, PAST_USE_S, USE_S, Use
from seaway.web.pages.jobs.tab import BESIDE_S, Tab, WithEvents
from seaway.web.parts.cordon import on_act
from seaway.web.parts.editor import apply_theme
from seaway.web.parts.form import confirm, notify
from seaway.web.parts.link_graph import ring_of
from seaway.web.reasons import by_cluster, remedy_texts, steps
from seaway.web.visit import Visit
from seaway.wire.message import CodeOut

if TYPE_CHECKING:
    from seaway.wire.explanations import ReasonOut
    from seaway.wire.job_out import (
        AttemptList,
        EndpointOut,
        JobOut,
        JobPage,
        PlacementOut,
        Workflow,
    )
    from seaway.wire.links import KnownLinkOut


REPLICAS = 50
"""Number of replicas on one page."""

REPLICAS_S = 1.0
"""Interval of queries for several replicas in seconds. Their states change independently of the job's."""

ATTEMPTS = 10
"""Maximum number of earlier attempts in the list."""

EVENTS = 200
"""Number of events in the list before the user requests more."""

STEPS = 12
"""Number of actions in the list of the timeline."""


FAILED = JobState.FAILED.value

FAILURE_LINES = 20
"""Number of lines of its log that a failed job opens with."""


def parameter_of(reason: CodeOut, name: str) -> str | int | float | None:
    """Return a parameter of a reason, or of a reason within it; None without one."""
    for key, value in reason.params.items():
        if key == name and isinstance(value, str | int | float):
            return value
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, CodeOut) and (found := parameter_of(each, name)) is not None:
                return found
    return None


class Overview(WithEvents):
    """Tab with the job's state, history, workloads and resources."""

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._first = addresses.number_of(visit.query.get("first", ""), job.replicas)
        self._usual = UsageSpan.MONTH if job.ended_at else UsageSpan.HOUR
        self._span = UsageSpan(visit.query["use"]) if visit.query.get("use") in {*UsageSpan} else self._usual
        self._retain()
        self._written: dict[str, Any] | None = None
        self._ran: AttemptList | None = None

    def make(self) -> None:
        """Draw the empty tab."""
        self._failure = Fragment("job_failure", self.words)
        self._failure.element.set_visibility(False)
        self._workflow = Fragment("job_workflow", self.words)
        self._workflow.element.set_visibility(False)
        self._ring = Fragment("job_ring", self.words)
        self._ring.element.set_visibility(False)
        self._timeline = Fragment("job_timeline", self.words)
        self._after = ""
        if self.job.tasks:
            self._tasks = Fragment("job_tasks", self.words)
            on_act(self._tasks, self._turned_tasks)
        else:
            self._places = Fragment("job_places", self.words)
            on_act(self._places, self._turned)
            self._use = Use(self.words, self._span, self._chose_span)
        self._asked = Fragment("job_asked", self.words)

    async def look(self, turn: Turn) -> None:
        """Follow the data of the tab."""
        await self._show_failure(turn)
        await self.follow_events(turn)
        await self.follow_beside(turn, jobs.workflow(self.job.id), self._received_workflow)
        if self.job.tasks:
            listed = jobs.tasks(self.job.id, limit=REPLICAS, after=self._after).first
            await self.follow_beside(turn, listed, self._received_tasks, REPLICAS_S)
            return
        after = max(self.job.attempt - 1 - ATTEMPTS, 0)
        call = jobs.attempts(self.job.id, after=after, first=self._first, replicas=REPLICAS)
        interval_s = REPLICAS_S if self.job.replicas > 1 else BESIDE_S
        await self.follow_beside(turn, call, self._received_attempts, interval_s)
        use = jobs.gpu_use(self.job.id, limit=MAX_SLICES, span=self._span.value)
        await turn.follow(use, self._use.show, USE_S if self._span is UsageSpan.HOUR else PAST_USE_S)

    def draw(self) -> None:
        """Render the tab again."""
        if self.events:
            all_steps = steps(self.events, datetime.now(UTC))
            self._timeline.show(steps=all_steps, listed=all_steps[-STEPS:])
        if self._written != self.job.spec:
            self._written = self.job.spec
            self._asked.show(job=self.job, text=written(self.job.spec))

    async def callback(self, job: JobOut) -> None:
        """Accept the job's new state. The addresses of a service also change with its other copy."""
        before = self.job
        await super().callback(job)
        if self.is_open and before.state != job.state and FAILED in (before.state, job.state):
            await self.open()
        if self.is_open and self._ran and job.standby:
            self._received_attempts(self._ran)

    async def _show_failure(self, turn: Turn) -> None:
        """Show the exit code of a failed job, and the last lines of the replica that failed."""
        job = self.job
        failed = job.state == FAILED and not job.tasks
        self._failure.element.set_visibility(failed)
        if not failed:
            return
        lines: list[str] = []
        replica, note = 0, ""
        try:
            call = jobs.attempts(job.id, after=max(job.attempt - 1, 0), first=0, replicas=REPLICAS)
            seen = [each for copy in (await self.visit.ask(call)).workloads for each in copy.replicas]
            replica = next((each.replica for each in seen if each.phase == FAILED), 0)
            container = str(parameter_of(job.reason, "container") or "")
            log = jobs.logs(job.id, replica=replica, container=container, tail=FAILURE_LINES)
            lines = (await self.visit.ask(log)).splitlines()
        except SeawayError as error:
            note = str(error)
        if turn.counts():
            exit_code = parameter_of(job.reason, "exit_code")
            self._failure.show(job=job, exit_code=exit_code, lines=lines, note=note, replica=replica)

    async def _turned(self, _: str, first: str) -> None:
        self._first = addresses.number_of(first, self.job.replicas)
        self._retain()
        self.keep()
        await self.open()

    async def _chose_span(self, event: ValueChangeEventArguments[str]) -> None:
        self._span = UsageSpan(event.value)
        self._retain()
        self.keep()
        await self.open()

    def _retain(self) -> None:
        """Set what the address of the tab has."""
        span = None if self._span is self._usual else self._span.value
        self.retained = {"first": str(self._first) if self._first else None, "use": span}

    async def _turned_tasks(self, _: str, after: str) -> None:
        self._after = after
        await self.open()

    def _received_tasks(self, page: JobPage) -> None:
        self._tasks.show(job=self.job, tasks=page.jobs, after=self._after, next=page.next)

    def _received_workflow(self, workflow: Workflow) -> None:
        self._workflow.element.set_visibility(len(workflow.jobs) > 1)
        if len(workflow.jobs) > 1:
            self._workflow.show(graph=graph_of(workflow.jobs), job=self.job, more=workflow.more)

    def _received_attempts(self, ran: AttemptList) -> None:
        self._ran = ran
        self._ring.element.set_visibility(bool(ran.ring))
        if ran.ring:
            self._ring.show(ring=ring_of(ran.ring), lost=_lost)
        latest = ran.attempts[-1] if ran.attempts and ran.attempts[-1].state != "ended" else None
        seen = {each.replica: (copy, each) for copy in ran.workloads for each in copy.replicas}
        topology = topology_of(latest.placements) if latest else []
        self._places.show(
            job=self.job,
            latest=latest,
            topology=topology,
            spread=sum(len(devices) for _, nodes in topology for _, devices in nodes) > 1,
            earlier=[each for each in reversed(ran.attempts) if each is not latest],
            endpoints=self._endpoints(ran),
            drift=[(copy.cluster, each) for copy in ran.workloads for each in copy.drift],
            seen=seen,
            first=self._first,
            most=REPLICAS,
        )

    def _endpoints(self, ran: AttemptList) -> list[EndpointOut]:
        """Return the addresses of the job; for a service with a standby, those of the active copy come first."""
        standby = self.job.standby
        if standby is None:
            return [each for copy in ran.workloads for each in copy.endpoints]
        name = self.words("standby")
        others = [each.model_copy(update={"cluster": f"{each.cluster} ({name})"}) for each in standby.endpoints]
        return [*self.job.endpoints, *others]


Devices = list[tuple[str, list[int]]]
"""Devices by UUID, with the numbers of the replicas on them."""


def topology_of(placements: Sequence[PlacementOut]) -> list[tuple[str, list[tuple[str, Devices]]]]:
    """Return the clusters of replicas, with their nodes, and the devices of each with the numbers of their replicas.

    Replicas of a node without devices have an empty one.
    """
    found: dict[str, dict[str, dict[str, list[int]]]] = {}
    for each in placements:
        devices = found.setdefault(each.cluster, {}).setdefault(each.node, {})
        for uuid in dict.fromkeys(taken.uuid for taken in each.slices) or ("",):
            devices.setdefault(uuid, []).append(each.replica)
    return [
        (cluster, [(node, list(devices.items())) for node, devices in nodes.items()])
        for cluster, nodes in found.items()
    ]


def _lost(link: KnownLinkOut) -> str:
    return loss_text(link.loss_ppm, link.loss_bound_ppm)


WIDTH, HEIGHT, GAP_X, GAP_Y = 168, 46, 56, 14
"""Size of a job in the graph, and the gaps between jobs, in pixels."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Drawing of a workflow.

    Attributes
    ----------
    width, height
        Size in pixels.
    boxes
        Each job with its left and upper edge.
    lines
        Path of each dependency, with its condition.
    """

    width: int
    height: int
    boxes: Sequence[tuple[JobOut, int, int]]
    lines: Sequence[tuple[str, str]]


def graph_of(listed: Sequence[JobOut]) -> Graph:
    """Draw jobs from left to right, each to the right of all its predecessors."""
    after = {job.id: job.spec.get("after", []) for job in listed}
    columns: dict[str, int] = {}
    rest = list(after)
    while rest:
        job_id = rest[-1]
        open_ones = [each["job"] for each in after[job_id] if each["job"] in after and each["job"] not in columns]
        rest += open_ones
        if not open_ones:
            known = (columns[each["job"]] + 1 for each in after[job_id] if each["job"] in columns)
            columns[rest.pop()] = max(known, default=0)
    rows: Counter[int] = Counter()
    places: dict[str, tuple[int, int]] = {}
    for job in listed:
        column = columns[job.id]
        places[job.id] = column * (WIDTH + GAP_X), rows[column] * (HEIGHT + GAP_Y)
        rows[column] += 1
    lines = []
    for job_id, (x, y) in places.items():
        for each in after[job_id]:
            if start := places.get(each["job"]):
                from_x, from_y = start[0] + WIDTH, start[1] + HEIGHT // 2
                half, to_y = (from_x + x) // 2, y + HEIGHT // 2
                path = f"M{from_x} {from_y} C{half} {from_y} {half} {to_y} {x} {to_y}"
                lines.append((path, each.get("when", "succeeded")))
    boxes = [(job, *places[job.id]) for job in listed]
    width = (max(columns.values()) + 1) * (WIDTH + GAP_X) - GAP_X
    return Graph(width, max(rows.values()) * (HEIGHT + GAP_Y) - GAP_Y, boxes, lines)


class Events(WithEvents):
    """Tab with all events of a job."""

    name = "events"

    def __init__(self, visit: Visit, job: JobOut) -> None:
        super().__init__(visit, job)
        self._most = EVENTS

    def make(self) -> None:
        """Draw the empty tab."""
        self._shown = Fragment("job_events", self.words)
        on_act(self._shown, self._more)

    async def look(self, turn: Turn) -> None:
        """Follow the data of the tab."""
        await self.follow_events(turn)

    def draw(self) -> None:
        """Render the tab again."""
        self._shown.show(events=self.events[-self._most :][::-1], more=max(len(self.events) - self._most, 0))

    def _more(self, *_: str) -> None:
        self._most += 5 * EVENTS
        self.draw()


class Why(Tab):
    """Tab with the reason why a job waits, or the reasons for its placement."""

    name = "why"

    def make(self) -> None:
        """Draw the empty tab."""
        self._shown = Fragment("job_why", self.words)
        on_act(self._shown, self._ask_to_apply)

    async def look(self, turn: Turn) -> None:
        """Follow the data of the tab."""
        await self.follow_beside(turn, jobs.explain(self.job.id), self._received_reason)

    def _received_reason(self, reason: ReasonOut) -> None:
        explained = reason.explanation
        self._shown.show(
            reason=reason,
            clusters=by_cluster(explained, self.nodes) if explained else [],
            remedies=list(remedy_texts(explained.remedies, self.job.spec)) if explained else [],
            settable=self.visit.may("user") and not self.job.array,
            plugins=list(explained.candidates[0].scores) if explained and explained.candidates else [],
        )

    def _ask_to_apply(self, path: str, amount: str) -> None:
        """Ask whether to apply a change that admits the job."""
        words, job = self.words, self.job

        async def do() -> None:
            await self.visit.ask(jobs.update(job.id, changed({}, path, typed(amount, AMOUNT)), seen=job))
            notify(words("{name} is changed.", name=job.name))

        text = words("{field} of the job becomes {amount}. Other fields stay.", field=path, amount=amount)
        confirm(words, words("Change {job}?", job=job.name), text, words("Apply"), do)


class Manifests(Tab):
    """Tab with the manifests of a job's workloads."""

    name = "manifests"

    def make(self) -> None:
        """Draw the empty tab."""
        with ui.element("div").classes("manifest-head"):
            self._note = ui.label().classes("dim").props("role=status")
            self._copy = ui.button(self.words("Download"), icon="download", on_click=self._download, color=None)
            self._copy.props("flat dense no-caps")
        self._view = ui.codemirror(language="YAML", indent="  ").classes("manifest")
        self._view.props("readonly").disable()
        apply_theme(self.visit, self._view)

    async def look(self, turn: Turn) -> None:
        """Fetch the manifests. They change only with the attempt, and `callback` then opens the tab again."""
        try:
            text = await self.visit.ask(jobs.manifest(self.job.id))
            n = text.count("\n---\n") + 1
            note = self.words("{n:object}", n=n)
        except SeawayError as error:
            text, note = "", str(error)
        if not turn.counts():
            return
        self._note.set_text(note)
        self._view.set_value(text)
        self._view.set_visibility(bool(text))
        self._copy.set_visibility(bool(text))

    def _download(self) -> None:
        ui.download.content(self._view.value, f"{self.job.name}.yaml", "application/yaml")
