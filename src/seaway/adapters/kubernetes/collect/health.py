"""Whether a cluster is heard: which of its sources fail, and since when."""

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

log = logging.getLogger(__name__)

LIVEZ = "/livez"
"""The source that says whether the server answers at all.

Not ``/readyz``, which says whether a load balancer is to bring it more: one that is about to end for a good while
serves everything, and says there that it is not ready.
"""

OPTIONAL_TIMEOUT_S = 10.0
"""How long a kind may fail at a server that answers before a view is begun without it."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """What became of a source that fails.

    Attributes
    ----------
    since_s
        When that began.
    why
        What was said last.
    optional
        Whether a view can be relied on without it.
    """

    since_s: float
    why: str
    optional: bool


class Health:
    """Keeps what became of each source of a cluster, for any thread.

    Parameters
    ----------
    sources
        All that must be heard.
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
        self._failing: dict[str, _Failure] = {}
        self._ping_started_s: float | None = None
        """Since when it is waited for the server to say whether it answers."""
        self._last_seen_s = now_s()
        """When anything was heard last."""
        self._failing_optional: dict[str, float] = {}
        """Since when those fail that can be spared, while the server answers."""
        self._forbidden: dict[str, str] = {}
        self._skipped: dict[str, str] = {}
        self.on_complete: Callable[[], None] = lambda: None

    def ping_started(self) -> None:
        """Note that the server is asked whether it answers: where nothing comes, it has been silent from now on."""
        self._ping_started_s = self._now_s()

    def succeeded(self, source: str) -> None:
        """Note that a source answered; also that it said there is nothing of its kind."""
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
        """Note that Seaway may not see a source that a view can be relied on without; that is said once."""
        known = self._forbidden.get(source)
        self.succeeded(source)
        with self._lock:
            self._forbidden[source] = why
        if known is None:
            log.warning(
                "%s. What jobs have of that kind is not found again after a restart, and then not removed, "
                "until Seaway may list and watch it",
                why,
            )

    def unavailable(self) -> dict[str, str]:
        """Return the sources that are done without, for Seaway may not see them or they fail for long, and why."""
        with self._lock:
            return self._forbidden | self._skipped

    def counts(self) -> dict[str, int]:
        """Return how many of those there are of each sort."""
        with self._lock:
            return {"forbidden": len(self._forbidden), "failing": len(self._skipped)}

    def failed(self, source: str, why: str, *, optional: bool = False) -> None:
        """Note that a source failed; what was heard of it before stands for a while.

        Parameters
        ----------
        optional
            Whether a view can be relied on without it. When such a one goes on failing at a server that answers, it
            is done without, and that is said once.
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
                "%s. %s is done without until it can be listed and watched: what was heard of it stands, and what "
                "jobs have of that kind is not found again after a restart, and then not removed",
                why,
                source,
            )
        if lasts:
            self._mark_listed(source)

    def _mark_listed(self, source: str) -> None:
        """Note that no one waits to hear a source for the first time any more."""
        with self._lock:
            completes = self._missing == {source}
            self._missing.discard(source)
        if completes:
            self.on_complete()

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

    def unreachable_reason(self, timeout_s: float) -> str:
        """Say why the view of the cluster cannot be relied on; empty while it can.

        Parameters
        ----------
        timeout_s
            How long a source may fail before what it said last is too old.
        """
        with self._lock:
            for source, each in self._failing.items():
                if each.optional and source not in self._missing:
                    continue
                if self._missing or self._now_s() - each.since_s >= timeout_s:
                    return each.why
            return f"{min(self._missing)} is being listed for the first time" if self._missing else ""

    @property
    def age_s(self) -> float:
        """How old what is known of the cluster may be, seconds: its silence begins where something failed first.

        What a view can be relied on without makes nothing older, and a question does only once nothing else comes.
        """
        with self._lock:
            began_s = [each.since_s for each in self._failing.values() if not each.optional]
            asked_s = self._ping_started_s
        if asked_s is not None:
            began_s.append(max(asked_s, self._last_seen_s))
        return max(0.0, self._now_s() - min(began_s)) if began_s else 0.0

    def failing(self) -> dict[str, float]:
        """Return for how long each source has been failing, seconds; 0 for one that does not."""
        with self._lock:
            return {
                each: self._now_s() - self._failing[each].since_s if each in self._failing else 0.0
                for each in self._sources
            }

    @property
    def failing_s(self) -> float:
        """For how long the source that fails the longest has been failing, seconds; 0 while none does."""
        with self._lock:
            return max((self._now_s() - each.since_s for each in self._failing.values()), default=0.0)


class OptionalHealth(Health):
    """Of a source that is good to have, while a view can be relied on without it: that it is not allowed is said once.

    Parameters
    ----------
    what
        What cannot be followed when it fails.
    """

    def __init__(self, what: str) -> None:
        super().__init__(())
        self._what = what
        self._logged = False

    def failed(self, source: str, why: str, *, optional: bool = False) -> None:
        """Note that it failed."""
        super().failed(source, why, optional=optional)
        if "forbidden" in why and not self._logged:
            self._logged = True
            log.warning("%s cannot be followed: %s", self._what, why)


SOURCE = LIVEZ


async def ping(api: Api, health: Health, random: Random, interval_s: float, wake_signal: WakeSignal) -> None:
    """Note in `health` whether the server answers, until cancelled.

    A refusal is an answer, too, unless the server does not know who asks: nothing can be written then, though
    watches that are open go on. A failure is none: that of a proxy which does not reach the server, or of a server
    that is alive no more, as without its store.

    The first answer after a silence rings `wake_signal`, so that what waits to try again need not wait any longer.

    References
    ----------
    https://kubernetes.io/docs/reference/using-api/health-checks/; k8s.io/apiserver
    ``pkg/apis/flowcontrol/bootstrap``: who asks that is kept waiting by not another user's calls.
    """
    silent = False
    while True:
        try:
            await (
                api.authenticate()
            )  # a program that says who Seaway is may take long, which is no silence of the server
            health.ping_started()
            why = await _ping_failure(api)
        except UnavailableError as error:
            why = str(error)
        if why:
            health.failed(SOURCE, why)
        else:
            health.succeeded(SOURCE)
            if silent:
                wake_signal.notify()
        silent = bool(why)
        await asyncio.sleep(interval_s * random.uniform(0.75, 1.25))


async def _ping_failure(api: Api) -> str:
    """Ask; return why the answer is none, empty when it is one."""
    try:
        await api.get(SOURCE)
    except ApiError as error:
        return str(error) if error.unauthorized else ""
    return ""
