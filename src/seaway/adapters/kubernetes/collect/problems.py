"""What is wrong with the objects of one cluster: said once, and counted while it lasts."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from seaway.adapters.kubernetes.device_plugins.views import Trouble, TroubleKind

log = logging.getLogger(__name__)


class Troubles:
    """Keeps what is wrong, by what an object is and its name: ``node`` and ``n1``, or ``pod`` and ``default/p``.

    Parameters
    ----------
    cluster
        Its name.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._found: dict[str, tuple[Trouble, ...]] = {}
        self._unreadable: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        """What cannot be read, and whether that was said again since all of its kind was listed."""

    def note(self, what: str, name: str, troubles: tuple[Trouble, ...] = ()) -> None:
        """Take this for all that is wrong with an object, and say what was not said before."""
        where = f"{what}/{name}"
        if not troubles and where not in self._found:
            return
        self._unreadable[what].pop(name, None)
        before = self._found.pop(where, ())
        if troubles:
            self._found[where] = troubles
        for each in troubles:
            if each not in before:
                log.warning("%s: %s, %s: %s", self._cluster, where, each.where, each.text)

    @contextmanager
    def unreadable(self, what: str, name: str, text: str) -> Iterator[None]:
        """Note that an object cannot be read at all; meanwhile what was known of it may be forgotten."""
        said = self._found.get(f"{what}/{name}", ())
        yield
        if not name:
            log.warning("%s: %s without a name cannot be read: %s", self._cluster, what, text)
            return
        if said:
            self._found[f"{what}/{name}"] = said
        self.note(what, name, (Trouble(TroubleKind.BROKEN, "object", f"cannot be read: {text}"),))
        self._unreadable[what][name] = True

    def met(self, what: str) -> set[str]:
        """Return the objects of a kind that could not be read, and were met since all of it was listed before."""
        return {name for name, again in self._unreadable[what].items() if again}

    def listed(self, what: str) -> None:
        """Note that all objects of a kind were listed: what could not be read, and was not met again, is gone."""
        for name, again in list(self._unreadable[what].items()):
            if again:
                self._unreadable[what][name] = False
            else:
                self.note(what, name)

    def all(self) -> dict[str, tuple[Trouble, ...]]:
        """Return what is wrong, by kind and name with a slash between."""
        return dict(self._found)

    def counts(self) -> dict[str, int]:
        """Return how much of each kind of trouble there is."""
        found = Counter(each.kind for troubles in self._found.values() for each in troubles)
        return {kind.value: found[kind] for kind in TroubleKind}
