"""Problems of the objects of one cluster, logged once and counted until they are resolved."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from seaway.adapters.kubernetes.device_plugins.views import Problem, ProblemKind

log = logging.getLogger(__name__)


class Problems:
    """Problems by kind and name of the object, such as ``node`` and ``n1``, or ``pod`` and ``default/p``.

    Parameters
    ----------
    cluster
        Name of the cluster.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._found: dict[str, tuple[Problem, ...]] = {}
        self._unreadable: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        """Objects that cannot be decoded, with a mark for those seen since the last full list."""

    def put(self, kind: str, name: str, problems: tuple[Problem, ...] = ()) -> None:
        """Replace the problems of an object, and log new ones."""
        where = f"{kind}/{name}"
        if not problems and where not in self._found:
            return
        self._unreadable[kind].pop(name, None)
        before = self._found.pop(where, ())
        if problems:
            self._found[where] = problems
        for each in problems:
            if each not in before:
                log.warning("%s: %s, %s: %s", self._cluster, where, each.where, each.text)

    @contextmanager
    def unreadable(self, kind: str, name: str, text: str) -> Iterator[None]:
        """Record that an object cannot be decoded. The body of the context may remove other data of the object."""
        said = self._found.get(f"{kind}/{name}", ())
        yield
        if not name:
            log.warning("%s: %s without a name cannot be read: %s", self._cluster, kind, text)
            return
        if said:
            self._found[f"{kind}/{name}"] = said
        self.put(kind, name, (Problem(ProblemKind.BROKEN, "object", f"cannot be read: {text}"),))
        self._unreadable[kind][name] = True

    def unreadable_names(self, kind: str) -> set[str]:
        """Return the undecodable objects of a kind that were seen since the previous full list."""
        return {name for name, again in self._unreadable[kind].items() if again}

    def listed(self, kind: str) -> None:
        """Record a full list of a kind: remove undecodable objects that the list does not contain."""
        for name, again in list(self._unreadable[kind].items()):
            if again:
                self._unreadable[kind][name] = False
            else:
                self.put(kind, name)

    def all(self) -> dict[str, tuple[Problem, ...]]:
        """Return the problems by ``kind/name``."""
        return dict(self._found)

    def counts(self) -> dict[str, int]:
        """Return the number of problems of each kind."""
        found = Counter(each.kind for problems in self._found.values() for each in problems)
        return {kind.value: found[kind] for kind in ProblemKind}
