"""Cache of pods in their last observed version, to read them again when nodes or claims change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from seaway.adapters.kubernetes.device_plugins.pods import node_of
from seaway.adapters.kubernetes.objects.core import PodObject

READ = ("hami.io", "volcano.sh", "seaway.io", "batch.kubernetes.io")
"""Domains of the annotations that Seaway reads. Others are not cached."""

_DECODER = msgspec.json.Decoder(PodObject)
_ENCODER = msgspec.json.Encoder()


class PodCache:
    """Pods by name, ``namespace/name``, and by node. They are stored as JSON, which needs a fraction of the memory."""

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}
        self._nodes: dict[str, str] = {}
        self._on: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def put(self, name: str, pod: PodObject) -> None:
        """Store the current version of a pod."""
        node = node_of(pod)
        if self._nodes.get(name) != node:
            self.drop(name)
            self._nodes[name] = node
            self._on[node][name] = None
        annotations = {key: text for key, text in pod.metadata.annotations.items() if key.partition("/")[0] in READ}
        lean = replace(pod, metadata=replace(pod.metadata, annotations=annotations))
        self._written[name] = _ENCODER.encode(lean)

    def drop(self, name: str) -> None:
        """Remove a pod."""
        if self._written.pop(name, None) is not None:
            there = self._on[node := self._nodes.pop(name)]
            del there[name]
            if not there:
                del self._on[node]

    def on(self, node: str) -> list[str]:
        """Return the pods on a node, in order of arrival."""
        return list(self._on.get(node, ()))

    def read(self, names: Iterable[str]) -> Iterator[PodObject]:
        """Yield the cached pods among the named ones."""
        for name in names:
            if written := self._written.get(name):
                yield _DECODER.decode(written)
