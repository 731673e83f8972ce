"""A question as it is filled in: what the address keeps of it, and how the API takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.web.job_document import amount
from seaway.web.words import Words

MAX_BURST = 100
"""Jobs of a burst: the API takes no more in a question."""

MAX_NODES = 1000
"""Nodes that come: the API takes no more of a kind."""

QUESTION = "question."
"""Begins where the API says that something is wrong with a question."""

FIELDS = ("lose", "nodes", "cluster", "like", "count", "burst", "gpus", "gpu_memory", "cpu", "queue", "again", "policy")
"""What can be filled in."""

WHOLE = re.compile(r"[0-9]{1,9}")
"""A number without zeros before it; no bound has more digits."""

STEP = re.compile(r"[.\[\]]+")
"""What stands between the steps to a field."""

OF_OTHERS = {"drain": "nodes", "add_nodes": "like"}
OF_JOBS = {"resources.gpus": "gpus", "resources.gpu_memory": "gpu_memory", "resources.cpu": "cpu", "queue": "queue"}


def asked(given: Mapping[str, str]) -> dict[str, Any]:
    """Return a question as the API takes it; empty where nothing is asked.

    Parameters
    ----------
    given
        What is filled in, by field, with nothing `wrong`; what is empty is not asked.
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
    """Say what is wrong with numbers that the API never sees as they were filled in; each with its field."""
    bounds = {"burst": (0, MAX_BURST)} | ({"count": (1, MAX_NODES)} if given.get("like") else {})
    return [
        RejectedError(words("Fill in a whole number from {least} to {most}.", least=least, most=most), where=name)
        for name, (least, most) in bounds.items()
        if (text := given.get(name, "")) and ((number := whole(text)) is None or not least <= number <= most)
    ]


def whole(text: str) -> int | None:
    """Read a whole number that is not negative; None where it is none, or larger than any that would do."""
    digits = text.lstrip("0") or text[:1]
    return int(digits) if WHOLE.fullmatch(digits) else None


def field_of(where: str) -> str:
    """Return which field something is wrong with, of where the API says that it is; empty where that is none."""
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
