"""Whether a cluster is heard: which of its sources fail, and since when."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from time import monotonic

log = logging.getLogger(__name__)


class Health:
    """Keeps what became of each source of a cluster, for any thread.

    Parameters
    ----------
    sources
        All that have to be heard.
    now_s
        A clock, seconds.

    Attributes
    ----------
    on_complete
        Called when every source was heard once.
    """

    def __init__(self, sources: Iterable[str], now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._sources = tuple(sources)
        self._missing = set(self._sources)
        self._failing: dict[str, tuple[float, str]] = {}
        self._forbidden: dict[str, str] = {}
        self.on_complete: Callable[[], None] = lambda: None

    def heard(self, source: str) -> None:
        """Note that a source answered; also that it said there is nothing of its kind."""
        if source in self._failing or source in self._missing or source in self._forbidden:
            with self._lock:
                self._forbidden.pop(source, None)
                completes = self._missing == {source}
                self._missing.discard(source)
                self._failing.pop(source, None)
            if completes:
                self.on_complete()

    def forbidden(self, source: str, why: str) -> None:
        """Note that Seaway may not see a source that a view can be relied on without; that is said once."""
        known = self._forbidden.get(source)
        self.heard(source)
        with self._lock:
            self._forbidden[source] = why
        if known is None:
            log.warning(
                "%s. What jobs have of that kind is not found again after a restart, and then not removed, "
                "until Seaway may list and watch it",
                why,
            )

    def not_seen(self) -> dict[str, str]:
        """Return the sources that Seaway may not see, and why."""
        with self._lock:
            return dict(self._forbidden)

    def failed(self, source: str, why: str) -> None:
        """Note that a source failed; what was heard of it before stands for a while."""
        with self._lock:
            since_s, _ = self._failing.get(source, (self._now_s(), ""))
            self._failing[source] = (since_s, why)

    def has(self, source: str) -> bool:
        """Tell whether a source was heard at least once."""
        return source not in self._missing

    @property
    def complete(self) -> bool:
        """Whether every source was heard at least once."""
        return not self._missing

    @property
    def listing(self) -> bool:
        """Whether some sources are still to be heard for the first time, and none fails."""
        with self._lock:
            return bool(self._missing) and not self._failing

    def silence(self, patience_s: float) -> str:
        """Say why the view of the cluster cannot be relied on; empty while it can.

        Parameters
        ----------
        patience_s
            How long a source may fail before what it said last is too old.
        """
        with self._lock:
            for since_s, why in self._failing.values():
                if self._missing or self._now_s() - since_s >= patience_s:
                    return why
            return f"{min(self._missing)} is being listed for the first time" if self._missing else ""

    def failing(self) -> dict[str, float]:
        """Return for how long each source has been failing, seconds; 0 for one that does not."""
        with self._lock:
            return {
                each: self._now_s() - self._failing[each][0] if each in self._failing else 0.0 for each in self._sources
            }

    @property
    def failing_s(self) -> float:
        """For how long the source that fails the longest has been failing, seconds; 0 while none does."""
        with self._lock:
            return max((self._now_s() - since_s for since_s, _ in self._failing.values()), default=0.0)


class Aside(Health):
    """Of a source that is good to have, while a view can be relied on without it: that it is not allowed is said once.

    Parameters
    ----------
    what
        What cannot be followed when it fails.
    """

    def __init__(self, what: str) -> None:
        super().__init__(())
        self._what = what
        self._said = False

    def failed(self, source: str, why: str) -> None:
        """Note that it failed."""
        super().failed(source, why)
        if "forbidden" in why and not self._said:
            self._said = True
            log.warning("%s cannot be followed: %s", self._what, why)
