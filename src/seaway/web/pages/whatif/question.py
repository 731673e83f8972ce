"""Questions of the what-if page: from the form to the API, and from its errors to the fields."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seaway.domain.amounts import split_amounts
from seaway.domain.errors import RejectedError
from seaway.domain.tenancy import DEFAULT, MAX_WEIGHT
from seaway.web.job_document import amount
from seaway.web.words import Words
from seaway.wire.whatif_trace import read_log, read_table

MAX_BURST = 100
"""Maximum number of jobs in a query, a limit of the API."""

MAX_NODES = 1000
"""Maximum number of added nodes of a kind, a limit of the API."""

QUESTION = "question."
"""Prefix of error paths in a query."""

QUEUE_FIELDS = ("parent", "weight", "guarantee", "limit", "order", "backfill")
"""Fields of a changed queue."""

TENANT_FIELDS = ("tenant_weight", "tenant_guarantee", "tenant_limit")
"""Fields of a changed tenant: its weight, and its quota in the default pool."""

FIELDS = (
    *("lose", "nodes", "cluster", "like", "count", "burst", "gpus", "gpu_memory", "cpu", "queue", "again", "policy"),
    *("changed_queue", *QUEUE_FIELDS, "moved", "tenant", *TENANT_FIELDS, "window", "last"),
)
"""Names of the form's fields."""

AMOUNT_FIELDS = ("guarantee", "limit", "tenant_guarantee", "tenant_limit")
"""Fields with amounts by resource."""

WHOLE = re.compile(r"[0-9]{1,9}")
"""Pattern of a number without leading zeros. No limit has more digits."""

STEP = re.compile(r"[.\[\]]+")
"""Separator in the path of a field."""

OF_OTHERS = {"drain": "nodes", "add_nodes": "like", "move_jobs": "moved"}
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
    question |= _sharing(given)
    if given.get("last"):
        question["last"] = given["last"]
    if question and given.get("window"):
        question["window"] = given["window"]
    return question


def trace_of_file(name: str, content: bytes, gateways: Collection[str]) -> dict[str, Any]:
    """Read the jobs of a file: a table if its name ends with ``.csv``, else a log in the Standard Workload Format.

    Parameters
    ----------
    gateways
        Names of the fleet's gateways.

    Raises
    ------
    RejectedError
        If the file is invalid, with its name and the position.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(content)
        try:
            return read_table(path, gateways) if name.lower().endswith(".csv") else read_log(path)
        except RejectedError as error:
            raise RejectedError(error.message, where=error.where.replace(str(path), name)) from None


def wrong(given: Mapping[str, str], words: Words) -> list[RejectedError]:
    """Check numbers that the API does not receive in the typed form; return errors with their fields."""
    bounds = {"burst": (0, MAX_BURST)} | ({"count": (1, MAX_NODES)} if given.get("like") else {})
    bounds |= dict.fromkeys(("weight", "tenant_weight"), (0, MAX_WEIGHT))
    mistakes = [
        RejectedError(words("Fill in a whole number from {least} to {most}.", least=least, most=most), where=name)
        for name, (least, most) in bounds.items()
        if (text := given.get(name, "")) and ((number := whole(text)) is None or not least <= number <= most)
    ]
    for name in AMOUNT_FIELDS:
        try:
            split_amounts(given.get(name, ""), where=name)
        except RejectedError as error:
            mistakes.append(error)
    mistakes += [
        RejectedError(words("Choose what this applies to."), where=name)
        for name, fields in (("changed_queue", (*QUEUE_FIELDS, "moved")), ("tenant", TENANT_FIELDS))
        if not given.get(name) and any(map(given.get, fields))
    ]
    return mistakes


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
    if first == "queues":
        return next((each for each in steps[1:] if each in QUEUE_FIELDS), "changed_queue")
    if first == "tenants":
        return next((f"tenant_{each}" for each in steps[1:] if f"tenant_{each}" in TENANT_FIELDS), "tenant")
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


def _sharing(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the changes of queues and tenants."""
    question: dict[str, Any] = {}
    if given.get("changed_queue"):
        changed = {name: _value(name, given[name]) for name in QUEUE_FIELDS if given.get(name)}
        question["queues"] = [{"name": given["changed_queue"], **changed}]
        if given.get("moved"):
            question["move_jobs"] = [{"queue": given["moved"], "to": given["changed_queue"]}]
    if given.get("tenant"):
        question["tenants"] = [{"name": given["tenant"], **_tenant(given)}]
    return question


def _value(field: str, text: str) -> Any:  # noqa: ANN401  # as the API has it
    return split_amounts(text) if field in AMOUNT_FIELDS else whole(text) if field == "weight" else text


def _tenant(given: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if given.get("tenant_weight"):
        fields["weight"] = whole(given["tenant_weight"])
    quota = {name: split_amounts(text) for name in ("guarantee", "limit") if (text := given.get(f"tenant_{name}"))}
    return {**fields, "quotas": {DEFAULT: quota}} if quota else fields


def _words(text: str) -> list[str]:
    return [each for each in text.replace(",", " ").split() if each]
