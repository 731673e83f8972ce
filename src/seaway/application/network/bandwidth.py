"""Latest readings of gateways' interfaces."""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from threading import Lock

from seaway.application.ports.clock import Clock
from seaway.application.ports.traffic import Missed, Outcome, Reading, Traffic, TrafficMeter
from seaway.domain.backoff import backoff
from seaway.domain.gateways import GatewayConfig
from seaway.probing.rounds import NS_PER_S, Rates, is_plausible

log = logging.getLogger(__name__)

MAX_AGE_S = 366 * 24 * 3600.0
"""Maximum plausible age of a reading."""

LONGEST = 300
"""Maximum length of external text in a log line."""


@dataclass(frozen=True, slots=True)
class Interface:
    """Interface of a gateway with its traffic.

    Attributes
    ----------
    traffic
        Known traffic; None if unknown.
    covered
        Whether a meter reads the interface.
    """

    gateway: str
    traffic: Traffic | None
    covered: bool

    @property
    def unread(self) -> bool:
        """True if a meter fails to read the interface."""
        return self.covered and self.traffic is None


@dataclass(frozen=True, slots=True)
class _Stored:
    since_ns: int
    at_ns: int
    rates: Rates
    speed_mbps: int | None


_Place = tuple[str, str, str, str]
"""Name of a gateway, and location of its interface. Readings of another interface do not count."""


class Bandwidths:
    """Traffic of gateways' interfaces. One thread reads the interfaces; any thread can query the results.

    Parameters
    ----------
    meter
        Reads the interfaces; None for no meter.
    stale_after_s
        Maximum age of a reading, seconds.
    window_s
        Minimum period of a rate, seconds.
    """

    def __init__(self, meter: TrafficMeter | None, stale_after_s: float, clock: Clock, window_s: float = 0) -> None:
        self._meter = meter
        self._window_ns = int(window_s * NS_PER_S)
        self._stale_ns = int(stale_after_s * NS_PER_S)
        self._clock = clock
        self._lock = Lock()
        self._retained: dict[_Place, _Stored] = {}
        self._missed: dict[_Place, Missed] = {}
        self._counts: Counter[Outcome] = Counter()

    def covers(self, gateway: GatewayConfig) -> bool:
        """Report whether a meter reads the interface of a gateway."""
        return self._meter is not None and self._meter.covers(gateway)

    def of(self, gateway: GatewayConfig) -> Traffic | None:
        """Return the known traffic of the interface of a gateway; None if it is unknown.

        It is unknown if the meter fails for too long or finds no interface, or without a meter and a configured speed.
        A configured speed replaces a missing speed, but not a failed reading.
        """
        configured = gateway.speed_mbps or None
        if not self.covers(gateway):
            return Traffic(0, 0, configured, None) if configured else None
        with self._lock:
            retained = self._retained.get(_place(gateway))
        age_ns = self._clock.monotonic_ns() - retained.at_ns if retained else 0
        if retained is None or age_ns > self._stale_ns:
            return None
        speed_mbps = retained.speed_mbps or configured
        return Traffic(
            round(retained.rates.in_mbps), round(retained.rates.out_mbps), speed_mbps, max(age_ns, 0) / NS_PER_S
        )

    def since_ns(self, gateways: Sequence[GatewayConfig], now_ns: int) -> dict[str, int]:
        """Return the wall-clock start of the interval of the latest reading, by gateway with readings.

        Parameters
        ----------
        now_ns
            Wall-clock time, nanoseconds since 1970.
        """
        ahead_ns = now_ns - self._clock.monotonic_ns()
        with self._lock:
            return {
                each.name: ahead_ns + retained.since_ns
                for each in gateways
                if (retained := self._retained.get(_place(each)))
            }

    def interfaces(self, gateways: Sequence[GatewayConfig]) -> list[Interface]:
        """Return the interfaces of gateways that have a reading or a meter."""
        found = [Interface(each.name, self.of(each), self.covers(each)) for each in gateways]
        return [each for each in found if each.traffic or each.covered]

    def trouble(self, gateway: GatewayConfig) -> str:
        """Return the reason why the latest reading of an interface failed; empty if it succeeded or does not exist."""
        with self._lock:
            missed = self._missed.get(_place(gateway))
        return missed.why if missed else ""

    def counts(self) -> dict[str, int]:
        """Return the number of readings by outcome; every outcome is present."""
        with self._lock:
            return {each.value: self._counts[each] for each in Outcome}

    def look(self, gateways: Sequence[GatewayConfig]) -> Mapping[str, Reading | Missed]:
        """Read the interfaces of covered gateways; return the result by name.

        A failed reading leaves the last figures unchanged.
        """
        if self._meter is None:
            return {}
        found = {name: _plausible(seen) for name, seen in self._meter.read(gateways).items()}
        now_ns = self._clock.monotonic_ns()
        for gateway in gateways:
            seen = found[gateway.name]
            self._note(gateway, seen)
            if isinstance(seen, Reading) and seen.rates:
                self._keep(_place(gateway), seen, seen.rates, now_ns - int(seen.age_s * NS_PER_S))
        return found

    def _keep(self, place: _Place, seen: Reading, rates: Rates, at_ns: int) -> None:
        """Store a reading. Its interval begins at the previous one."""
        since_ns = at_ns - self._window_ns
        with self._lock:
            before = self._retained.get(place)
            if before and before.at_ns < at_ns:
                since_ns = min(since_ns, before.at_ns)
            elif before:
                since_ns = min(since_ns, before.since_ns)
            self._retained[place] = _Stored(since_ns, at_ns, rates, seen.speed_mbps)

    def forget_others(self, gateways: Sequence[GatewayConfig]) -> None:
        """Remove the readings of all other gateways, and of gateways whose interface changed."""
        places = {_place(each) for each in gateways}
        with self._lock:
            self._retained = {place: retained for place, retained in self._retained.items() if place in places}
            self._missed = {place: missed for place, missed in self._missed.items() if place in places}

    def _note(self, gateway: GatewayConfig, seen: Reading | Missed) -> None:
        """Count a reading, and log the start and the end of a failure."""
        place = _place(gateway)
        missed = seen if isinstance(seen, Missed) else None
        with self._lock:
            self._counts[missed.outcome if missed else Outcome.READ] += 1
            before = self._missed.pop(place, None)
            if missed:
                self._missed[place] = missed
        if missed and (before is None or before.outcome is not missed.outcome):
            why = " ".join(missed.why.split())[:LONGEST]
            log.warning("%s: the traffic of its interface %s is unknown: %s", gateway.name, gateway.interface, why)
        elif before and not missed:
            log.warning("%s: the traffic of its interface %s is known again", gateway.name, gateway.interface)


def _plausible(seen: Reading | Missed) -> Reading | Missed:
    """Return the reading, or a failure if it is implausible."""
    if isinstance(seen, Missed):
        return seen
    if not (math.isfinite(seen.age_s) and 0 <= seen.age_s <= MAX_AGE_S):
        return Missed(Outcome.UNREADABLE, f"its age is {seen.age_s:g} s, which is implausible")
    if seen.rates and not is_plausible(seen.rates):
        return Missed(
            Outcome.UNREADABLE, f"no interface carries {seen.rates.in_mbps:g} and {seen.rates.out_mbps:g} Mbit/s"
        )
    return seen


def _place(gateway: GatewayConfig) -> _Place:
    return gateway.name, str(gateway.address), gateway.exporter, gateway.interface


SOON_S = 2.0
"""Delay before the second reading of a gateway, which gives the first rate, seconds."""

MAX_WAIT = 10
"""Maximum pause after failures, in periods."""

TOGETHER = 0.25
"""Share of a period by which a gateway may be read early, together with others."""


class TrafficWatch:
    """Periodic reading of gateways' interfaces, in a separate thread or on request.

    Parameters
    ----------
    gateways
        Returns the current gateways.
    interval_s
        Seconds between two readings of each gateway; 0 for no reading.
    random
        Jitter of the back-off, up to half of the delay.
    """

    def __init__(
        self,
        bandwidths: Bandwidths,
        gateways: Callable[[], Sequence[GatewayConfig]],
        interval_s: float,
        clock: Clock,
        random: Random,
    ) -> None:
        self._bandwidths = bandwidths
        self._gateways = gateways
        self._interval_s = interval_s
        self._clock = clock
        self._random = random
        self._due_ns: dict[GatewayConfig, int] = {}
        self._failures: dict[GatewayConfig, int] = {}
        self._stopping = threading.Event()
        self._failed = False

    def start(self) -> None:
        """Start a thread that reads periodically until `stop`. Without an interval, do nothing."""
        if self._interval_s:
            threading.Thread(target=self._run, name="bandwidth", daemon=True).start()

    def stop(self) -> None:
        """End the thread without waiting for a pending reading."""
        self._stopping.set()

    def look(self) -> float:
        """Read the gateways that are due; return the seconds to the next one, at most one period."""
        there = [each for each in self._gateways() if self._bandwidths.covers(each)]
        self._bandwidths.forget_others(there)
        now_ns = self._clock.monotonic_ns()
        soon_ns = now_ns + self._ns(TOGETHER * self._interval_s)
        due = [each for each in there if self._due_ns.get(each, now_ns) <= soon_ns]
        if due:
            found = self._bandwidths.look(due)
            for each in due:
                self._due_ns[each] = now_ns + self._ns(self._wait_s(each, found[each.name]))
        self._due_ns = {each: self._due_ns[each] for each in there}
        self._failures = {each: self._failures[each] for each in there if each in self._failures}
        next_ns = min((*self._due_ns.values(), now_ns + self._ns(self._interval_s)))
        return max(0.0, (next_ns - self._clock.monotonic_ns()) / NS_PER_S)

    def _wait_s(self, gateway: GatewayConfig, seen: Reading | Missed) -> float:
        if isinstance(seen, Missed):
            self._failures[gateway] = failures = self._failures.get(gateway, 0) + 1
            return backoff(failures, 2 * self._interval_s, MAX_WAIT * self._interval_s, self._random)
        self._failures.pop(gateway, None)
        return self._interval_s if seen.rates else min(SOON_S, self._interval_s)

    def _ns(self, seconds: float) -> int:
        return int(seconds * NS_PER_S)

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            try:
                pause_s = self.look()
                self._failed = False
            except Exception:  # a bug must not end the thread
                if not self._failed:
                    log.exception("reading gateways' interfaces failed")
                self._failed, pause_s = True, self._interval_s
