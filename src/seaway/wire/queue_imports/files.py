"""Files with queues of other schedulers: recognition of each document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from seaway.domain.errors import RejectedError
from seaway.wire.queue_imports import kueue, volcano
from seaway.wire.queue_imports.found import Fields, Found, mapping
from seaway.wire.queue_imports.scheduler_queues import read_scheduler_queues
from seaway.wire.yaml import read_yaml

MAX_REASONS = 5
"""Maximum number of reasons in the error for a file without a valid queue."""


def read_queues(documents: Iterable[Fields], fleet_gpus: int = 0) -> Found:
    """Return the queues of documents, and the fields that cannot be imported.

    Metadata other than names, and status other than the state of a queue, are not configuration and not reported. A
    list of objects and a ConfigMap with queues are read as their content.

    Parameters
    ----------
    fleet_gpus
        Number of GPUs of the fleet, for capacities in percent.

    Raises
    ------
    RejectedError
        If the documents have no queue.
    """
    found = Found()
    of_kueue: list[Fields] = []
    of_volcano: list[Fields] = []
    for each in _unpacked(documents):
        group = str(each.get("apiVersion", ""))
        if group.startswith(kueue.GROUP):
            of_kueue.append(each)
        elif group.startswith(volcano.GROUP):
            of_volcano.append(each)
        elif "queues" in each:
            read_scheduler_queues(each, found, fleet_gpus)
        else:
            name = mapping(each.get("metadata")).get("name", "")
            found.leave(f"{each.get('kind', 'document')} {name}".strip(), "kind", "is not a queue")
    kueue.read_kueue(of_kueue, found)
    volcano.read_volcano(of_volcano, found)
    if not found.queues:
        reasons = [f"{each.source}: {each.field}: {each.reason}" for each in found.left if each.field != "kind"]
        expected = "expected `queues: [...]`, or ClusterQueue or Cohort of Kueue, or Queue of Volcano"
        raise RejectedError(
            f"has no valid queue: {'; '.join(reasons[:MAX_REASONS])}" if reasons else f"has no queue: {expected}"
        )
    found.weigh()
    return found


def _contents(config_map: Fields) -> Iterator[Fields]:
    """Yield the values of a ConfigMap that are YAML with a mapping. Others, such as scripts, are no queues."""
    for text in mapping(config_map.get("data")).values():
        if isinstance(text, str):
            with suppress(RejectedError):
                yield mapping(read_yaml(text))


def _unpacked(documents: Iterable[Fields]) -> Iterator[Fields]:
    for each in documents:
        if each.get("kind") == "ConfigMap":
            inside = [content for content in _contents(each) if "queues" in content]
            yield from inside or [each]
        elif str(each.get("kind", "")).endswith("List") and isinstance(each.get("items"), list):
            yield from _unpacked(map(mapping, each["items"]))
        else:
            yield each
