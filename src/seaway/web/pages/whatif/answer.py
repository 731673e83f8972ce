"""Answers of the what-if page: the variables of its template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from seaway.web import words as figures
from seaway.web.pages.whatif.drawing import draw
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.whatif import WhatIfOut

MAX_MOVES = 25
"""Maximum number of jobs in the list."""

MAX_SHIFTS = 10
"""Maximum number of jobs that start earlier, and of those that start later."""


def variables_of(answer: WhatIfOut, words: Words) -> dict[str, Any]:
    """Return the variables of the template ``whatif``."""
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
    waits = answer.waits
    return {
        "answer": answer,
        "sentence": sentence_of(answer, words),
        "tiles": list(_tiles(answer, words)),
        "drawing": draw(answer),
        "waits": waits,
        "groups": list(_groups(answer, words)),
        "shifts": [*waits.earlier_jobs[:MAX_SHIFTS], *waits.later_jobs[:MAX_SHIFTS]] if waits else [],
        "moves": moves[:MAX_MOVES],
        "left": max(0, len(moves) - MAX_MOVES),
    }


def _groups(answer: WhatIfOut, words: Words) -> Iterator[dict[str, Any]]:
    """Yield the tables of waits: of queues, and of tenants."""
    if answer.waits:
        yield {"title": words("Waits by queue"), "name": words("Queue"), "rows": answer.waits.queues}
        yield {"title": words("Waits by tenant"), "name": words("Tenant"), "rows": answer.waits.tenants}


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
