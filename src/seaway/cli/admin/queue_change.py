"""Change of a queue that keeps what other users changed in the meantime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from seaway.cli.remote import Body
from seaway.domain.errors import RejectedError, StaleError, UnknownError

if TYPE_CHECKING:
    from seaway.client.sync import Client

TRIES = 3
FIELDS = (
    "tenant",
    "pool",
    "policy",
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
)


class Seen(NamedTuple):
    """Version of a queue."""

    version: str


def change(client: Client, name: str, given: dict[str, Any]) -> tuple[bool, Body]:
    """Create or change a queue. Fields that are omitted or None keep their value.

    Returns
    -------
    tuple
        Whether the queue existed, and the stored queue.
    """
    from seaway.client.calls.queues import put_queue, queue

    for left in reversed(range(TRIES)):
        try:
            there = client.body(queue(name))
        except UnknownError:
            there = {}
        fields = {field: there[field] for field in FIELDS if field in there}
        fields |= {field: value for field, value in given.items() if value is not None}
        seen = Seen(there["version"]) if there else None
        try:
            return bool(there), client.body(put_queue(name, seen=seen, **fields))
        except StaleError:  # concurrent change by another user: omitted options keep its values
            if not left:
                raise
        except RejectedError as error:
            if error.where != "shadow":
                raise
            raise RejectedError(f"{error.message}; --shadow '' clears it", where="--shadow", also=error.also) from None
    raise AssertionError
