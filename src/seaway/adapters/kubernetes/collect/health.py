"""Health of a cluster's sources: the failing sources and the start of each failure."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from time import monotonic

from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import WakeSignal
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import Reason, reason_of

log = logging.getLogger(__name__)

LIVEZ = "/livez"
"""Path of the health check of the API server.

Not ``/readyz``, which controls load balancers: a server that is shutting down still serves requests for a while, but
is not ready.
"""

OPTIONAL_TIMEOUT_S = 10.0
"""Time in seconds for which an optional kind may fail on a responding server before Seaway skips it."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """State of a failing source.

    Attributes
    ----------
    since_s
        Start of the failure.
    why
        Latest error.
    optional
        True if the view is usable without the source.
    """

    since_s: float
    why: str
    optional: bool


class Health:
    """Health of each source of a cluster, for any thread.

    Parameters
    ----------
    sources
        Required sources.
    now_s
        Clock in seconds.

    Attributes
    ----------
    on_complete
        Called when every source has answered once.
    """

    def __init__(self, sources: Iterable[str], now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._sources = tuple(sources)
        self._missing = set(self._sources)
        self._failing: dict[str, _Failure] = {}
        self._ping_started_s: float | None = None
        """Start of the current health check; None if no check runs."""
        self._last_seen_s = now_s()
        """Time of the latest answer."""
        self._failing_optional: dict[str, float] = {}
        """Start of the failure of each optional source, while the server responds."""
        self._forbidden: dict[str, str] = {}
        self._skipped: dict[str, str] = {}
        self.on_complete: Callable[[], None] = lambda: None

    def ping_started(self) -> None:
        """Record the start of a health check.

        Without an answer, the server counts as not responding since this time.
        """
        self._ping_started_s = self._now_s()

    def succeeded(self, source: str) -> None:
        """Record an answer of a source. An answer that the kind does not exist counts, too."""
        self._last_seen_s = self._now_s()
        if source == LIVEZ:
            self._ping_started_s = None
        if source in self._failing or source in self._missing or source in self._forbidden:
            with self._lock:
                self._forbidden.pop(source, None)
                self._skipped.pop(source, None)
                self._failing_optional.pop(source, None)
                self._failing.pop(source, None)
            self._mark_listed(source)

    def forbidden(self, source: str, why: str) -> None:
        """Record that Seaway may not list an optional source, and log this once."""
        known = self._forbidden.get(source)
        self.succeeded(source)
        with self._lock:
            self._forbidden[source] = why
        if known is None:
            log.warning(
                "%s. After a restart, objects of that kind are not found and not removed, "
                "until Seaway may list and watch them",
                why,
            )

    def unavailable(self) -> dict[str, str]:
        """Return the reasons of the skipped sources, which are forbidden or keep failing."""
        with self._lock:
            return self._forbidden | self._skipped

    def counts(self) -> dict[str, int]:
        """Return the number of skipped sources by reason."""
        with self._lock:
            return {"forbidden": len(self._forbidden), "failing": len(self._skipped)}

    def failed(self, source: str, why: str, *, optional: bool = False) -> None:
        """Record a failure of a source. Its earlier data stays valid for a while.

        Parameters
        ----------
        optional
            True if the view is usable without the source. If such a source keeps failing on a responding server, Seaway
            skips it and logs this once.
        """
        now_s, lasts = self._now_s(), False
        with self._lock:
            before, since_s = self._failing.get(source), now_s
            if source == LIVEZ:
                since_s = now_s if self._ping_started_s is None else max(self._ping_started_s, self._last_seen_s)
                self._ping_started_s = None
                self._failing_optional.clear()
            elif optional and LIVEZ not in self._failing and LIVEZ not in self._missing:
                lasts = now_s - self._failing_optional.setdefault(source, now_s) >= OPTIONAL_TIMEOUT_S
            self._failing[source] = _Failure(before.since_s if before else since_s, why, optional)
            known = source in self._skipped
            if lasts:
                self._skipped[source] = why
        if lasts and not known:
            log.warning(
                "%s. %s is ignored until it can be listed and watched: its last state stays, and after a "
                "restart objects of that kind are not found and not removed",
                why,
                source,
            )
        if lasts:
            self._mark_listed(source)

    def _mark_listed(self, source: str) -> None:
        """Remove a source from the sources that have not answered yet."""
        with self._lock:
            completes = self._missing == {source}
            self._missing.discard(source)
        if completes:
            self.on_complete()

    def has(self, source: str) -> bool:
        """Report whether a source has answered at least once."""
        return source not in self._missing

    @property
    def complete(self) -> bool:
        """True if every source has answered at least once."""
        return not self._missing

    @property
    def listing(self) -> bool:
        """True if some sources have not answered yet, and none fails."""
        with self._lock:
            return bool(self._missing) and not self._failing

    def unreachable_reason(self, timeout_s: float) -> str:
        """Return the reason why the view is not usable; empty if it is usable.

        Parameters
        ----------
        timeout_s
            Time for which a source may fail before its data is too old.
        """
        with self._lock:
            for source, each in self._failing.items():
                if each.optional and source not in self._missing:
                    continue
                if self._missing or self._now_s() - each.since_s >= timeout_s:
                    return each.why
            return Reason("listed_first", source=min(self._missing)) if self._missing else ""

    @property
    def age_s(self) -> float:
        """Maximum age of the cluster's data in seconds, counted from the first current failure.

        Optional sources do not count. A pending health check counts only since the latest answer of any source.
        """
        with self._lock:
            began_s = [each.since_s for each in self._failing.values() if not each.optional]
            asked_s = self._ping_started_s
        if asked_s is not None:
            began_s.append(max(asked_s, self._last_seen_s))
        return max(0.0, self._now_s() - min(began_s)) if began_s else 0.0

    def failing(self) -> dict[str, float]:
        """Return the duration of each source's failure in seconds; 0 for a working source."""
        with self._lock:
            return {
                each: self._now_s() - self._failing[each].since_s if each in self._failing else 0.0
                for each in self._sources
            }

    @property
    def failing_s(self) -> float:
        """Longest current failure of a source in seconds; 0 if none fails."""
        with self._lock:
            return max((self._now_s() - each.since_s for each in self._failing.values()), default=0.0)


class OptionalHealth(Health):
    """Health of a source that the view does not require. A missing permission is logged once.

    Parameters
    ----------
    what
        Name of the source for the log.
    """

    def __init__(self, what: str) -> None:
        super().__init__(())
        self._what = what
        self._logged = False

    def failed(self, source: str, why: str, *, optional: bool = False) -> None:
        """Record a failure."""
        super().failed(source, why, optional=optional)
        if "forbidden" in why and not self._logged:
            self._logged = True
            log.warning("%s cannot be followed: %s", self._what, why)


SOURCE = LIVEZ


async def ping(api: Api, health: Health, random: Random, interval_s: float, wake_signal: WakeSignal) -> None:
    """Check periodically that the server responds, and record the result in `health`, until cancelled.

    A refusal counts as an answer, except 401: Seaway cannot write then, although open watches continue. Server
    errors count as failures: a proxy does not reach the server, or the server does not reach its store.

    The first answer after a failure notifies `wake_signal`, so that waiting retries start immediately.

    References
    ----------
    https://kubernetes.io/docs/reference/using-api/health-checks/; k8s.io/apiserver
    ``pkg/apis/flowcontrol/bootstrap``: health checks do not queue behind the calls of other clients.
    """
    silent = False
    while True:
        try:
            await api.authenticate()  # an exec plugin may be slow, which is no failure of the server
            health.ping_started()
            why = await _ping_failure(api)
        except UnavailableError as error:
            why = reason_of(error)
        if why:
            health.failed(SOURCE, why)
        else:
            health.succeeded(SOURCE)
            if silent:
                wake_signal.notify()
        silent = bool(why)
        await asyncio.sleep(interval_s * random.uniform(0.75, 1.25))


async def _ping_failure(api: Api) -> str:
    """Run a health check; return its error, or an empty text on success."""
    try:
        await api.get(SOURCE)
    except ApiError as error:
        return reason_of(error) if error.unauthorized else ""
    return ""
