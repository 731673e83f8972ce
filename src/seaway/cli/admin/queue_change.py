"""Changes of queues and tenants that keep what other users changed in the meantime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from seaway.cli.remote import Body
from seaway.domain.errors import RejectedError, StaleError, UnknownError

if TYPE_CHECKING:
    from seaway.client.call import Call
    from seaway.client.sync import Client

TRIES = 3
FIELDS = (
    "tenant",
    "pool",
    "policy",
    "policy_options",
    "shadow",
    "open",
    "description",
    "allowed_taints",
    "allowed_node_labels",
    "parent",
    "weight",
    "priority",
    "guarantee",
    "limit",
    "order",
    "backfill",
    "preemption",
    "preempts",
    "reclaim",
    "preemptible",
    "min_runtime",
    "start_timeout",
    "grow_cooldown",
    "elastic",
    "ageing",
    "borrowing_limit",
    "lending_limit",
)


class Seen(NamedTuple):
    """Version of a queue or tenant."""

    version: str


def change(client: Client, name: str, given: dict[str, Any]) -> tuple[bool, Body]:
    """Create or change a queue. Fields that are omitted or None keep their value.

    Returns
    -------
    tuple
        Whether the queue existed, and the stored queue.
    """
    from seaway.client.calls.queues import put_queue, queue

    def put(there: Body, seen: Seen | None) -> Call[Any]:
        fields = {field: there[field] for field in FIELDS if field in there}
        if given.get("policy") not in (None, there.get("policy")):
            fields.pop("policy_options", None)  # they are those of the former policy
        return put_queue(name, seen=seen, **fields | {key: value for key, value in given.items() if value is not None})

    try:
        return based_on_newest(client, queue(name), put)
    except RejectedError as error:
        if error.where != "shadow":
            raise
        raise RejectedError(f"{error.message}; --shadow '' clears it", where="--shadow", also=error.also) from None


def based_on_newest(
    client: Client, read: Call[Any], put: Callable[[Body, Seen | None], Call[Any]]
) -> tuple[bool, Body]:
    """Read an object, and store what `put` makes of it; repeat that after a concurrent change.

    Parameters
    ----------
    put
        Returns the call that stores the object, from its fields and version; no fields and None for a new one.

    Returns
    -------
    tuple
        Whether the object existed, and the stored object.
    """
    for left in reversed(range(TRIES)):
        try:
            there = client.body(read)
        except UnknownError:
            there = {}
        try:
            return bool(there), client.body(put(there, Seen(there["version"]) if there else None))
        except StaleError:
            if not left:
                raise
    raise AssertionError
