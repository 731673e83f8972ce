"""Changes of queues and tenants for `seaway whatif`, from options and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seaway.cli.remote import Body
from seaway.domain.amounts import split_amounts
from seaway.domain.errors import RejectedError, UnknownError

if TYPE_CHECKING:
    from seaway.client.sync import Client

AMOUNTS = frozenset({"guarantee", "limit", "borrowing_limit", "lending_limit", "user_limit"})
"""Fields with amounts by resource."""

LISTS = frozenset({"allowed_taints", "allowed_node_labels"})
QUOTA = frozenset({"guarantee", "limit", "max_waiting", "user_limit", "user_max_waiting"})
"""Fields of a tenant's quota in a pool."""

KEYS = ("queues", "tenants", "remove_queues", "move_jobs")
"""Parts of a question that change queues and tenants, as in the API."""

WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
SWITCHES = {"true": True, "false": False}
PATH = re.compile(r"(?:question\.)?(queues|tenants)[.\[](\d+)\]?\.(?:quotas\.[^.]+\.)?(.+)")


def queue_change(client: Client, name: str, settings: Sequence[str], used: Collection[str]) -> Body:
    """Return the change of a queue by ``FIELD=VALUE``.

    Parameters
    ----------
    used
        Queues that get jobs by the question, which may be new.

    Raises
    ------
    RejectedError
        If a setting is invalid, an existing queue has none, or a queue without jobs does not exist.
    """
    from seaway.client.calls.queues import queue, queues

    there = _existing(lambda: client.body(queue(name)))
    if not there and name not in used:
        known = client.body(queues())["queues"]
        raise _unknown("queue", name, known, f"a new queue needs jobs, as by --move QUEUE={name}")
    if there and not settings:
        raise _unchanged("queue", name)
    return {"name": name, **_fields(there, settings)}


def tenant_change(client: Client, name: str, settings: Sequence[str], pool: str, used: Collection[str]) -> Body:
    """Return the change of a tenant and its quota in a pool; parameters and errors are as of `queue_change`."""
    from seaway.client.calls.tenancy import tenant, tenants

    there = _existing(lambda: client.body(tenant(name)))
    if not there and name not in used:
        raise _unknown("tenant", name, client.body(tenants())["tenants"], "a new tenant needs jobs, as by -f FILE")
    if there and not settings:
        raise _unchanged("tenant", name)
    fields = _fields({**there, **there.get("quotas", {}).get(pool, {})}, settings)
    quota = {key: value for key, value in fields.items() if key in QUOTA}
    change = {"name": name, **{key: value for key, value in fields.items() if key not in QUOTA}}
    return {**change, "quotas": {pool: quota}} if quota else change


def _existing(read: Callable[[], Body]) -> Body:
    try:
        return read()
    except UnknownError:
        return {}


def _unknown(kind: str, name: str, known: Iterable[Body], hint: str) -> RejectedError:
    names = ", ".join(each["name"] for each in known)
    return RejectedError(f"unknown {kind} {name!r}; available: {names}; {hint}", where=f"--{kind}")


def _unchanged(kind: str, name: str) -> RejectedError:
    return RejectedError(f"name what changes in {kind} {name!r}, like --set weight=2", where="--set")


def _fields(there: Mapping[str, Any], settings: Iterable[str]) -> Body:
    fields: Body = {}
    for text in settings:
        key, separator, value = (each.strip() for each in text.partition("="))
        if not (key and separator):
            raise RejectedError(
                f"{text!r} is not valid; use FIELD=VALUE, like weight=2 or limit.gpus=16", where="--set"
            )
        field, _, resource = key.partition(".")
        if resource and field in AMOUNTS:
            amounts = {**fields.get(field, there.get(field, {})), resource: value}
            fields[field] = {name: amount for name, amount in amounts.items() if amount != ""}
        else:
            fields[key] = _value(key, value)
    return fields


def _value(field: str, text: str) -> Any:  # noqa: ANN401  # of the type of the field
    if field in AMOUNTS:
        return split_amounts(text, where=f"--set {field}")
    if field in LISTS:
        return [each.strip() for each in text.split(",") if each.strip()]
    if not text and field.endswith("max_waiting"):
        return None
    return int(text) if WHOLE.fullmatch(text) else SWITCHES.get(text, text)


def move(text: str) -> Body:
    """Return the jobs to move by ``QUEUE=QUEUE`` or ``QUEUE/TENANT=QUEUE``.

    Raises
    ------
    RejectedError
        If the text is invalid.
    """
    source, _, to = (each.strip() for each in text.partition("="))
    queue, _, tenant = source.partition("/")
    if not (queue and to):
        raise RejectedError(f"{text!r} is not valid; use QUEUE=QUEUE or QUEUE/TENANT=QUEUE", where="--move")
    return {"queue": queue, "to": to, **({"tenant": tenant} if tenant else {})}


def split_documents(documents: Iterable[Body]) -> Body:
    """Return the parts of a question that documents have: changes of queues and tenants, and jobs.

    Versions, as in the output of ``seaway queue -o yaml``, are omitted.
    """
    question: Body = {}
    for each in documents:
        if each.keys() & {*KEYS}:
            for key, rows in each.items():
                known = question.setdefault(key, [])
                known += [_without_version(row) for row in rows] if isinstance(rows, list) else [rows]
        else:
            question.setdefault("jobs", []).append(each)
    return question


def _without_version(row: Any) -> Any:  # noqa: ANN401  # as written
    return {key: value for key, value in row.items() if key != "version"} if isinstance(row, dict) else row


def at_option(error: RejectedError) -> RejectedError:
    """Return an error with the option of its field."""
    found = PATH.fullmatch(error.where)
    where = f"--set {found[3]}" if found and found[3] != "name" else error.where
    return RejectedError(error.message, where=where, also=tuple(map(at_option, error.also)))
