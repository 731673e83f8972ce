"""What-if query as a form: its parameters in the address, and its JSON for the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from seaway.domain.errors import RejectedError
from seaway.web.job_document import amount
from seaway.web.words import Words

MAX_BURST = 100
"""Limit of the API for jobs in a query."""

MAX_NODES = 1000
"""Limit of the API for added nodes of a kind."""

QUESTION = "question."
"""Prefix of error places in a query."""

FIELDS = ("lose", "nodes", "cluster", "like", "count", "burst", "gpus", "gpu_memory", "cpu", "queue", "again", "policy")
"""Names of the form's fields."""

WHOLE = re.compile(r"[0-9]{1,9}")
"""Pattern of a number without leading zeros; no limit has more digits."""

STEP = re.compile(r"[.\[\]]+")
"""Separator in the path of a field."""

OF_OTHERS = {"drain": "nodes", "add_nodes": "like"}
OF_JOBS = {"resources.gpus": "gpus", "resources.gpu_memory": "gpu_memory", "resources.cpu": "cpu", "queue": "queue"}


def asked(given: Mapping[str, str]) -> dict[str, Any]:
    """Return a query for the API; empty if the form is.

    Parameters
    ----------
    given
        Values by field, without errors of `wrong`; empty values are left out.
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
    """Read a whole number that is not negative; None if it is none, or exceeds all limits."""
    digits = text.lstrip("0") or text[:1]
    return int(digits) if WHOLE.fullmatch(digits) else None


def field_of(where: str) -> str:
    """Return the form's field for an error place of the API; empty for none."""
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
