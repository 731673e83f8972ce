"""Firing alerts, with their durations and acknowledgements."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from seaway.application.changes import Change
from seaway.application.monitoring.conditions import EVERY_S, Conditions, Finding, Sources
from seaway.application.monitoring.rules import ALL, MINUTE_S, STORE_FAILS, Rule
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import Acknowledgement, FiringAlert
from seaway.application.views import ClusterView
from seaway.application.writer import Writer
from seaway.domain.errors import UnavailableError, UnknownError
from seaway.domain.reasons import Param, Reason

log = logging.getLogger(__name__)

NS = 1_000_000_000

RESTORE_S = 120
"""Time after the start in which stored acknowledgements wait for their alerts, seconds."""

AT_ONCE_S = 1.5
"""Seconds between two evaluations of the rules that need no duration."""

NAMED_NODES = 3
"""Maximum number of nodes in the text of an alert."""

Key = tuple[str, str]
"""Name of a rule, and its object."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Firing alert.

    Attributes
    ----------
    of, value, why, nodes
        Object and figure, as in `Finding`.
    since_ns
        Wall-clock time at which the figure exceeded the threshold.
    acknowledged
        Name and time of its acknowledgement; None without one.
    """

    rule: Rule
    of: str
    value: float
    since_ns: int
    why: str = ""
    nodes: tuple[str, ...] = ()
    acknowledged: Acknowledgement | None = None

    @property
    def key(self) -> Key:
        """Name of the rule, and the object."""
        return self.rule.name, self.of

    @property
    def reason(self) -> Reason:
        """The alert in words, with its object and figure. It names a few nodes."""
        rule, why = self.rule, self.why
        params: dict[str, Param] = dict(zip(rule.of.split("/"), self.of.split("/", 1), strict=True)) if rule.of else {}
        match rule.figure:
            case "count":
                params["count"] = round(self.value)
            case "waited_s" | "off_s":
                params[rule.figure] = round(self.value / MINUTE_S) * MINUTE_S
            case "share" | "percent" | "takes":
                params[rule.figure] = round(self.value, 3)
        if self.nodes:
            named = self.nodes[:NAMED_NODES]
            why = Reason("and_others", names=named) if named != self.nodes else Reason("listed", parts=named)
        return Reason(rule.name, **params, **({"why": why} if why else {}))


class Alerts:
    """Periodic evaluation of the alerts, in a separate thread or on request.

    Firing alerts and their acknowledgements are stored until the alerts clear, so a restart changes neither. Figures
    that exceed a threshold, but not long enough yet, begin again.
    """

    def __init__(self, sources: Sources, store: Store, writer: Writer, clock: Clock) -> None:
        self._store, self._writer, self._clock = store, writer, clock
        self._began_ns: int | None = None  # time at which the stored alerts were read
        self._conditions = Conditions(sources, clock.monotonic_ns())
        self._past: dict[tuple[Rule, str], Finding] = {}  # findings of rules with a duration
        self._since: dict[tuple[Rule, str], tuple[int, int]] = {}  # monotonic and wall-clock time, ns
        self._wrong: list[Alert] = []
        self._acknowledged: dict[Key, Acknowledgement] = {}
        self._fired: dict[Key, FiringAlert] = {}  # as stored
        self._restored: set[Key] = set()  # stored before the start, and not fired since
        self._stopping = threading.Event()
        self._failed = False

    def start(self) -> None:
        """Start a thread that evaluates periodically until `stop`."""
        threading.Thread(target=self._run, name="alerts", daemon=True).start()

    def stop(self) -> None:
        """End the thread without waiting for a running evaluation."""
        self._stopping.set()

    def wrong(self) -> list[Alert]:
        """Return the firing alerts of the last evaluation, the most severe first."""
        known = self._acknowledged.copy()
        return [replace(each, acknowledged=known.get(each.key)) for each in self._wrong]

    def acknowledge(self, name: str, of: str, actor: str) -> None:
        """Store who takes care of a firing alert, until it clears.

        Raises
        ------
        UnknownError
            If it does not fire.
        UnavailableError
            If it is unknown whether it was stored.
        """
        if not any(each.key == (name, of) for each in self._wrong):
            raise UnknownError(Reason("alert_not_firing", name=name[:63], of=of[:253]))
        record = Acknowledgement(name, of, actor, self._clock.now_ns())
        self._writer.require(Change(put=[record]))
        self._acknowledged[name, of] = record

    def look(self) -> None:
        """Evaluate all rules now."""
        now_ns, clusters = self._clock.monotonic_ns(), self._conditions.clusters()
        beyond = self._conditions.beyond_thresholds(now_ns, clusters)
        self._past = {(each.rule, each.of): each for each in beyond}
        self._look_at_faults(clusters)

    def look_at_faults(self) -> None:
        """Evaluate the rules without a duration now. The others have the figures of the last full evaluation."""
        self._look_at_faults(self._conditions.clusters())

    def _look_at_faults(self, clusters: Sequence[ClusterView]) -> None:
        now_ns = self._clock.monotonic_ns()
        past = self._past | {(each.rule, each.of): each for each in self._conditions.faults(now_ns, clusters)}
        if stores := (STORE_FAILS, "") not in past:
            with suppress(UnavailableError):  # the next evaluation tries again
                self._restore(now_ns)
        self._since = {key: self._since.get(key) or self._began(key, now_ns) for key in past}
        found = [
            Alert(*key, past[key].value, wall_ns, past[key].why, past[key].nodes)
            for key, (since_ns, wall_ns) in self._since.items()
            if now_ns - since_ns >= key[0].for_s * NS
        ]
        self._wrong = sorted(found, key=lambda alert: (ALL.index(alert.rule), alert.of))
        if stores and self._began_ns is not None:
            with suppress(UnavailableError):
                self._store_fired()
                self._drop_cleared(starting=now_ns - self._began_ns < RESTORE_S * NS)

    def _began(self, key: tuple[Rule, str], now_ns: int) -> tuple[int, int]:
        """Return the times since which a figure exceeds its threshold; those before a restart if it fired then."""
        wall_ns = self._clock.now_ns()
        fired = self._fired.get((key[0].name, key[1]))
        return (now_ns - max(0, wall_ns - fired.since_ns), fired.since_ns) if fired else (now_ns, wall_ns)

    def _restore(self, now_ns: int) -> None:
        """Read the stored alerts and acknowledgements, once."""
        if self._began_ns is None:
            acknowledged = {(each.name, each.of): each for each in self._store.acknowledgements()}
            self._fired = {(each.name, each.of): each for each in self._store.firing_alerts()}
            self._restored = acknowledged.keys() | self._fired.keys()
            self._acknowledged = acknowledged | self._acknowledged
            self._began_ns = now_ns

    def _store_fired(self) -> None:
        new = {each.key: FiringAlert(*each.key, each.since_ns) for each in self._wrong if each.key not in self._fired}
        if new:
            self._writer.require(Change(put=[*new.values()]))
            self._fired |= new

    def _drop_cleared(self, *, starting: bool) -> None:
        """Remove what is stored of cleared alerts. After a start, alerts need time to fire again."""
        firing = {each.key for each in self._wrong}
        kept = firing | {(rule.name, of) for rule, of in self._since}
        self._restored -= firing
        if starting:
            kept |= self._restored
        acknowledged = [record for key, record in self._acknowledged.copy().items() if key not in kept]
        fired = [record for key, record in self._fired.items() if key not in kept]
        if acknowledged or fired:
            self._writer.require(Change(delete=[*acknowledged, *fired]))
        for each in acknowledged:
            self._acknowledged.pop((each.name, each.of), None)
        for record in fired:
            del self._fired[record.name, record.of]

    def _run(self) -> None:
        turn = 0
        while not self._stopping.wait(AT_ONCE_S):
            turn += 1
            try:
                (self.look if turn % (EVERY_S // AT_ONCE_S) == 0 else self.look_at_faults)()
                self._failed = False
            except Exception:  # a bug must not end the thread
                if not self._failed:
                    log.exception("evaluating the alerts failed")
                self._failed = True
