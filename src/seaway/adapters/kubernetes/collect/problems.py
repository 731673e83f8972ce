"""What is wrong with the objects of one cluster: said once, and counted while it lasts."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from seaway.adapters.kubernetes.device_plugins.views import Problem, ProblemKind

log = logging.getLogger(__name__)


class Problems:
    """Keeps what is wrong, by what an object is and its name: ``node`` and ``n1``, or ``pod`` and ``default/p``.

    Parameters
    ----------
    cluster
        Its name.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._found: dict[str, tuple[Problem, ...]] = {}
        self._unreadable: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        """What cannot be read, and whether that was said again since all of its kind was listed."""

    def put(self, kind: str, name: str, problems: tuple[Problem, ...] = ()) -> None:
        """Take this for all that is wrong with an object, and say what was not said before."""
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
        """Note that an object cannot be read at all; meanwhile what was known of it may be forgotten."""
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
        """Return the objects of a kind that could not be read, and were met since all of it was listed before."""
        return {name for name, again in self._unreadable[kind].items() if again}

    def listed(self, kind: str) -> None:
        """Note that all objects of a kind were listed: what could not be read, and was not met again, is gone."""
        for name, again in list(self._unreadable[kind].items()):
            if again:
                self._unreadable[kind][name] = False
            else:
                self.put(kind, name)

    def all(self) -> dict[str, tuple[Problem, ...]]:
        """Return what is wrong, by kind and name with a slash between."""
        return dict(self._found)

    def counts(self) -> dict[str, int]:
        """Return how much of each kind of trouble there is."""
        found = Counter(each.kind for problems in self._found.values() for each in problems)
        return {kind.value: found[kind] for kind in ProblemKind}
