"""Events of rejected pods. For a Job, events are the only report of a rejection.

References
----------
core/v1 Event. Reasons: ``FailedCreate`` of Kubernetes' own controllers, ``FailedCreatePod`` of Kubeflow's,
``FailedToCreateHeadPod`` and ``FailedToCreateWorkerPod`` of KubeRay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seaway.adapters.kubernetes.collect.reflector import Source
from seaway.adapters.kubernetes.collect.rejections import attempt_named, pods_rejected
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.objects.meta import Meta, Part


class Involved(Part, frozen=True):
    """Object of an event."""

    name: str = ""


class EventObject(Part, frozen=True):
    """An event."""

    metadata: Meta = Meta()
    involved_object: Involved = Involved()
    reason: str = ""
    message: str = ""


EVENTS = Source("/api/v1/events", EventObject, fields="type=Warning,involvedObject.kind!=Pod")
"""Events of pods are excluded: they are many, and the pods' status has the same information."""

_CREATING = re.compile(r"Failed(To)?Create")


class EventSink:
    """Receiver of events that reports rejected pods to a view."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._known: set[str] = set()

    async def replace(self, items: Sequence[EventObject]) -> None:
        """Replace all events."""
        for name in self._known - {each.metadata.name for each in items}:
            self._forget(name)
        for each in items:
            self.put(each)

    def put(self, item: EventObject) -> None:
        """Add an event or its repetition."""
        key = attempt_named(item.involved_object.name)
        if key and _CREATING.match(item.reason):
            self._known.add(item.metadata.name)
            self._view.reject(key, _source(item.metadata.name), pods_rejected(item.message))

    def drop(self, item: EventObject) -> None:
        """Remove an event that the server deleted."""
        self._forget(item.metadata.name)

    def broken(self, what: Broken) -> None:
        """Ignore an invalid event."""

    def _forget(self, name: str) -> None:
        if name in self._known:
            self._known.discard(name)
            self._view.allow(_source(name))


def _source(name: str) -> str:
    return f"event {name}"
