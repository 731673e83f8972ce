"""Comparison of two jobs, or of two attempts of a job: their specs, placements, times and use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from seaway.client.calls import jobs
from seaway.domain.errors import RejectedError
from seaway.web import words as figures
from seaway.web.fragment import Fragment
from seaway.web.pages.jobs.columns import lasted_s
from seaway.web.reasons import gpus
from seaway.web.visit import Visit
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.job_out import AttemptOut, CostOut, GpuUseOut, JobOut

EVERY_S = 5.0
"""Interval of queries, in seconds."""

NONE = "–"


@dataclass(frozen=True, slots=True)
class Side:
    """A job, or one of its attempts, with what the API knows of it.

    Attributes
    ----------
    attempt
        The compared attempt, or the latest one; None before the first.
    whole
        Whether the whole job is compared.
    """

    job: JobOut
    attempt: AttemptOut | None
    cost: CostOut | None
    use: GpuUseOut | None
    whole: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A property of both sides, as text."""

    name: str
    values: tuple[str, str]

    @property
    def differs(self) -> bool:
        """True if the sides differ."""
        return self.values[0] != self.values[1]


async def build(visit: Visit) -> None:
    """Build the page.

    Raises
    ------
    RejectedError
        If the address does not name two jobs, or two attempts.
    """
    shown = Fragment("compare", visit.words)

    async def look() -> None:
        sides = await asyncio.gather(*(_side(visit, *each) for each in asked))
        titles = [title_of(each, visit.words) for each in sides]
        shown.show(sides=sides, titles=titles, groups=list(groups_of(sides[0], sides[1], visit.words)))

    asked = asked_of(visit.query, visit.words)
    await look()
    visit.repeat(EVERY_S, look)


def asked_of(query: Mapping[str, str], words: Words) -> list[tuple[str, int]]:
    """Return the job and the number of the attempt of each side, 0 for the whole job.

    Raises
    ------
    RejectedError
        If they are not two.
    """
    names = [each for each in query.get("jobs", "").split(",") if each]
    numbers = [each for each in query.get("attempts", "").split(",") if each]
    if len(names) == 2 and not numbers:
        return [(name, 0) for name in names]
    if len(names) == 1 and len(numbers) == 2 and all(each.isdecimal() and len(each) < 9 for each in numbers):
        return [(names[0], int(each)) for each in numbers]
    raise RejectedError(words("Choose two jobs on the page of jobs, or two attempts on the page of a job."))


async def _side(visit: Visit, name: str, number: int) -> Side:
    job = await visit.ask(jobs.job(name))
    if job.tasks or not job.attempt:
        so_far = await visit.ask(jobs.cost(job.id))
        return Side(job, None, so_far, None, whole=True)
    after = (number or job.attempt) - 1
    found = await visit.ask(jobs.attempts(job.id, after=max(after, 0), specs=bool(number)))
    attempt = next((each for each in found.attempts if each.number == after + 1), None)
    if number and attempt is None:
        raise RejectedError(visit.words("{job} has no attempt {number}.", job=job.name, number=number))
    if number:
        return Side(job, attempt, attempt.cost if attempt else None, None, whole=False)
    cost, use = await asyncio.gather(visit.ask(jobs.cost(job.id)), visit.ask(jobs.gpu_use(job.id, limit=1)))
    return Side(job, attempt, cost, use, whole=True)


def title_of(side: Side, words: Words) -> dict[str, str]:
    """Return the title of a side, and its address."""
    attempt = words("attempt {number}", number=side.attempt.number) if side.attempt and not side.whole else ""
    return {"name": side.job.name, "id": side.job.id, "attempt": attempt, "href": f"/jobs/{quote(side.job.id)}"}


def groups_of(one: Side, other: Side, words: Words) -> Iterator[tuple[str, list[Row], int]]:
    """Yield groups of rows with their titles: those that differ of a spec, with the number of equal ones, or all."""
    spec = list(rows_of(*(flat(_spec_of(side)) for side in (one, other))))
    differing = [row for row in spec if row.differs]
    yield words("Specification"), differing, len(spec) - len(differing)
    for title, make in ((words("Placement"), _placement), (words("Times"), _times), (words("Use"), _use)):
        yield title, list(rows_of(dict(make(one, words)), dict(make(other, words)))), 0


def _spec_of(side: Side) -> Mapping[str, Any]:
    attempt = None if side.whole else side.attempt
    return side.job.spec if attempt is None or attempt.spec is None else attempt.spec


def flat(value: object, path: str = "") -> dict[str, str]:
    """Return the leaves of a document by their path, such as ``resources.gpus``."""
    if isinstance(value, Mapping) and value:
        parts = [(f"{path}.{name}" if path else str(name), each) for name, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        parts = [(f"{path}[{at}]", each) for at, each in enumerate(value)]
    else:
        return {path: " ".join(map(str, value)) if isinstance(value, list) else str(value)}
    return {name: text for at, each in parts for name, text in flat(each, at).items()}


def rows_of(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[Row]:
    """Yield a row for each property of either side, in their order."""
    for name in dict.fromkeys([*one, *other]):
        yield Row(name, (one.get(name, NONE) or NONE, other.get(name, NONE) or NONE))


def _placement(side: Side, words: Words) -> Iterator[tuple[str, str]]:
    placements = side.attempt.placements if side.attempt else []
    yield words("Request"), gpus(side.job)
    yield words("Policy"), side.attempt.policy if side.attempt else ""
    yield words("Clusters"), _names(each.cluster for each in placements)
    yield words("Nodes"), _names(each.node for each in placements)
    yield words("Replicas"), str(len(placements)) if placements else ""
    yield words("Devices"), str(len({taken.uuid for each in placements for taken in each.slices}) or "")
    yield words("Reason"), words.coded(side.attempt.placement_reason) if side.attempt else ""


def _times(side: Side, words: Words) -> Iterator[tuple[str, str]]:
    job, attempt = side.job, side.attempt
    if side.whole:
        moments: list[tuple[str, str | None]]
        waited = _between(job.submitted_at, job.started_at)
        seconds = lasted_s(job)
        moments = [("Submitted", job.submitted_at), ("Started", job.started_at), ("Ended", job.ended_at)]
    else:
        waited = _between(attempt.created_at, attempt.running_at) if attempt else None
        seconds = _between(attempt.running_at, attempt.ended_at) if attempt else None
        made = (attempt.created_at, attempt.running_at, attempt.ended_at) if attempt else (None, None, None)
        moments = list(zip(("Placed", "Started", "Ended"), made, strict=True))
    for name, at in moments:
        yield words(name), figures.clock(at) if at else ""
    yield words("Wait before it ran"), "" if waited is None else figures.span(waited, words.locale)
    yield words("Duration"), "" if seconds is None else figures.span(seconds, words.locale)
    if side.whole:
        yield words("State"), words(job.state)
        yield words("Attempts"), str(job.attempt)
        yield words("Failed attempts"), str(job.failures)
    elif attempt:
        yield words("Result"), words.coded(attempt)


def _use(side: Side, words: Words) -> Iterator[tuple[str, str]]:
    cost, locale = side.cost, words.locale
    if cost:
        known = words("unknown") if cost.cost is None else words.money(cost.cost)
        part = "≥ " if cost.cost is not None and cost.unpriced_gpu_hours else ""
        yield words("GPU-hours"), figures.exact(cost.gpu_hours, 2, locale)
        yield words("Cost"), part + known
    samples = side.use.samples if side.use else []
    for title, used, held in (
        (words("GPU cores in use, last hour"), "core_milli", "core_milli_reserved"),
        (words("GPU memory in use, last hour"), "memory_mib", "memory_mib_reserved"),
    ):
        measured = [each for each in samples if getattr(each, used) is not None and getattr(each, held)]
        if measured:
            share = sum(getattr(each, used) for each in measured) / sum(getattr(each, held) for each in measured)
            yield title, figures.percent(100 * share, locale)


def _names(names: Any) -> str:  # noqa: ANN401  # any iterable of texts
    found: Sequence[str] = list(dict.fromkeys(names))
    return ", ".join(found[:5]) + (f" +{len(found) - 5}" if len(found) > 5 else "")


def _between(start: str | None, end: str | None) -> float | None:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() if start and end else None
