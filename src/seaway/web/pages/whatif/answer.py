"""Answers of the what-if page: the variables of its template."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from seaway.web import words as figures
from seaway.web.pages.whatif.drawing import draw
from seaway.web.words import Words

if TYPE_CHECKING:
    from babel.core import Locale

    from seaway.wire.whatif import MoveOut, TraceOut, WaitChangeOut, WaitsOut, WhatIfOut

MAX_MOVES = 25
"""Maximum number of jobs in the list."""

MAX_SHIFTS = 10
"""Maximum number of jobs that start earlier, and of those that start later."""


def variables_of(answer: WhatIfOut, words: Words) -> dict[str, Any]:
    """Return the variables of the template ``whatif``."""
    moves = together(
        (kind, each)
        for kind, listed in (
            ("stops", answer.stopped),
            ("moves", answer.moved),
            ("shrinks", answer.shrunk),
            ("grows", answer.grown),
            ("starts", answer.started),
            ("waits", answer.waiting),
        )
        for each in listed
    )
    waits, trace = answer.waits, answer.trace
    return {
        "answer": answer,
        "tiles": list(_tiles(answer, words)),
        "drawing": draw(answer),
        "waits": waits,
        "groups": list(_groups(answer, words)),
        "trace": {"title": replay_text(trace, words), "rows": list(_measures(trace, words))} if trace else None,
        "shifts": [*waits.earlier_jobs[:MAX_SHIFTS], *waits.later_jobs[:MAX_SHIFTS]] if waits else [],
        "mean_wait": mean_wait,
        "moves": moves[:MAX_MOVES],
        "left": sum(each["count"] for each in moves[MAX_MOVES:]),
    }


def together(moves: Iterable[tuple[str, MoveOut]]) -> list[dict[str, Any]]:
    """Return a row for each job, and one for all tasks of an array with the same kind of move and reason."""
    rows: dict[Hashable, dict[str, Any]] = {}
    for kind, job in moves:
        clusters = frozenset(each.partition("/")[0] for each in job.before), bool(job.after)
        row = rows.setdefault((kind, job.name, clusters, job.message), {"kind": kind, "job": job, "count": 0})
        row["count"] += 1
        for side in ("before", "after"):
            row.setdefault(side, {}).update(dict.fromkeys(getattr(job, side)))
    return list(rows.values())


def _groups(answer: WhatIfOut, words: Words) -> Iterator[dict[str, Any]]:
    """Yield the tables of waits: of queues and of tenants, on the live fleet and in the replay."""
    if waits := answer.waits:
        share = words("Share of GPUs, next {time}", time=waits.window)
        titles = {"jobs": words("Waiting tasks"), "unknown": words("No known start"), "share": share}
        every = [waits.fleet.model_copy(update={"name": words("All jobs")})] if waits.fleet else []
        yield {"title": words("Waits by queue"), "name": words("Queue"), "rows": [*every, *waits.queues], **titles}
        yield {"title": words("Waits by tenant"), "name": words("Tenant"), "rows": waits.tenants, **titles}
    if trace := answer.trace:
        titles = {"jobs": words("Tasks"), "unknown": words("Not started"), "share": words("Share of GPUs")}
        yield {"title": words("Replay by queue"), "name": words("Queue"), "rows": trace.queues, **titles}
        yield {"title": words("Replay by tenant"), "name": words("Tenant"), "rows": trace.tenants, **titles}


def replay_text(trace: TraceOut, words: Words) -> str:
    """Describe a replay: its jobs, its time and its policy."""
    jobs, span = trace.jobs, trace.span
    text = words(
        "{jobs:job} over {span} on the empty fleet, placed by {policy}", jobs=jobs, span=span, policy=trace.policy
    )
    parts = [text]
    if trace.defaulted:
        parts.append(words("{n} in the default queue", n=figures.count(trace.defaulted, words.locale)))
    if trace.skipped:
        parts.append(words("{n} without a duration left out", n=figures.count(trace.skipped, words.locale)))
    return ", ".join(parts)


def _measures(trace: TraceOut, words: Words) -> Iterator[dict[str, str]]:
    """Yield the measures of a replay, before and after."""
    measures: tuple[tuple[str, str, Callable[[Any, Locale], str]], ...] = (
        (words("Jobs started"), "placed", figures.count),
        (words("Jobs rejected"), "rejected", figures.count),
        (words("Mean wait"), "queue_wait_mean_s", figures.span),
        (words("Median wait"), "queue_wait_p50_s", figures.span),
        (words("90th percentile of the wait"), "queue_wait_p90_s", figures.span),
        (words("99th percentile of the wait"), "queue_wait_p99_s", figures.span),
        (words("Mean slowdown"), "bounded_slowdown_mean", _tenths),
        (words("GPU cores allocated"), "gpu_allocated_pct", figures.percent),
        (words("Time to the last end"), "makespan_s", figures.span),
        (words("Jobs preempted"), "preempted", figures.count),
        (words("GPU hours lost to preemption"), "preempted_gpu_hours", _tenths),
    )
    for label, field, text in measures:
        sides = [getattr(side, field) for side in (trace.before, trace.after)]
        before, after = ("–" if each is None else text(each, words.locale) for each in sides)
        yield _tile(label, before, after)


def _tenths(number: float, locale: Locale) -> str:
    return figures.exact(number, 1, locale)


def _tiles(answer: WhatIfOut, words: Words) -> Iterator[dict[str, str]]:
    locale, before, after = words.locale, answer.before, answer.after
    yield _tile(words("Running tasks"), figures.count(before.placed, locale), figures.count(after.placed, locale))
    yield _tile(words("Waiting tasks"), figures.count(before.waiting, locale), figures.count(after.waiting, locale))
    percents = [
        "–" if each.allocation_percent is None else figures.percent(each.allocation_percent, locale)
        for each in (before, after)
    ]
    yield _tile(words("GPUs allocated"), *percents)
    shares = ["–" if each.fragmentation is None else f"{each.fragmentation:.2f}" for each in (before, after)]
    if answer.waits and answer.waits.fleet:
        yield _mean_wait(answer.waits.fleet, words)
    yield _tile(words("Fragmentation"), *shares) | {"note": words("0 to 4, lower is better")}


def _mean_wait(fleet: WaitChangeOut, words: Words) -> dict[str, str]:
    sides = fleet.before, fleet.after
    known = all(each.unknown == 0 for each in sides)
    unknown = " → ".join(dict.fromkeys(figures.count(each.unknown, words.locale) for each in sides))
    note = words("of all waiting tasks") if known else words("{n} without a known start", n=unknown)
    return _tile(words("Mean wait"), *(mean_wait(each, words.locale) for each in sides)) | {"note": note}


def mean_wait(side: WaitsOut, locale: Locale) -> str:
    """Format the mean wait of all jobs; a lower bound if some have no known start."""
    if side.mean_all_s is None:
        return "–"
    return f"{'≥ ' if side.unknown else ''}{figures.span(side.mean_all_s, locale)}"


def _tile(label: str, before: str, after: str) -> dict[str, str]:
    return {"label": label, "before": before, "after": after, "note": ""}
