"""Agents of gateways: their states, and events for state changes."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from seaway.application.changes import Change
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import AgentRecord, Event
from seaway.application.writer import Writer
from seaway.domain.errors import SeawayError
from seaway.domain.gateways import NetworkConfig, ProbeConfig
from seaway.domain.reasons import Reason

log = logging.getLogger(__name__)

NS_PER_S = 1_000_000_000

UNREACHABLE_ROUNDS = 3
"""Number of rounds without a report after which an agent counts as not reporting."""

MIN_SILENCE_S = 5.0
"""Minimum of that time, seconds."""

LOOK_S = 1.0
"""Seconds between two checks of the agents."""


class AgentState(Enum):
    """State of an agent."""

    REPORTING = "reporting"
    LOST = "lost"
    """The agent reported before, but not recently."""
    NEVER = "never"
    """The agent has never reported."""


@dataclass(frozen=True, slots=True)
class AgentView:
    """View of an agent.

    Attributes
    ----------
    age_s
        Seconds since its latest report; None before the first.
    known
        Totals of its reports; None before the first.
    refused
        Number of its rejected reports since the control plane started.
    last_error
        Reason of the latest rejection; empty after an accepted report.
    """

    gateway: str
    state: AgentState
    age_s: float | None
    known: AgentRecord | None
    refused: int
    last_error: str


class Agents:
    """All agents, by gateway. Thread-safe.

    After a start of the control plane, every agent gets time to report before it counts as not reporting.
    """

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._lock = threading.Lock()
        self._began_ns = clock.monotonic_ns()
        self._known = {row.gateway: row for row in store.agents()}
        self._last_seen_ns: dict[str, int] = {}
        self._refused: Counter[str] = Counter()
        self._problems: dict[str, str] = {}
        self._gateways: tuple[str, ...] = ()
        self._probe = ProbeConfig()
        self._reported: dict[str, AgentState] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def use(self, config: NetworkConfig | None) -> None:
        """Set the network."""
        with self._lock:
            self._gateways = tuple(each.name for each in config.gateways) if config else ()
            self._probe = config.probe if config else ProbeConfig()

    def known(self, gateway: str) -> AgentRecord | None:
        """Return the totals of an agent; None before its first report."""
        return self._known.get(gateway)

    def received(self, record: AgentRecord) -> None:
        """Record a report of an agent."""
        with self._lock:
            self._known[record.gateway] = record
            self._last_seen_ns[record.gateway] = self._clock.monotonic_ns()
            self._problems.pop(record.gateway, None)

    def refused(self, gateway: str, why: str) -> None:
        """Record a rejected report of an agent."""
        with self._lock:
            self._refused[gateway] += 1
            self._problems[gateway] = why

    def views(self) -> list[AgentView]:
        """Return the agents of all configured gateways, in their order."""
        now_ns, monotonic_ns = self._clock.now_ns(), self._clock.monotonic_ns()
        with self._lock:
            return [self._view(name, now_ns, monotonic_ns) for name in self._gateways]

    def step(self) -> None:
        """Store events for agents that stopped, started or resumed reporting."""
        now_ns, monotonic_ns = self._clock.now_ns(), self._clock.monotonic_ns()
        with self._lock:
            states = {name: self._state(name, monotonic_ns) for name in self._gateways}
            events = list(self._news(states, now_ns))
        if events:
            self._writer.require(Change(insert=[*events]))
        self._reported = states

    def start(self) -> None:
        """Start a thread that checks the agents regularly, until `stop`."""
        self._thread = threading.Thread(target=self._run, name="agents", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self.step()
            except SeawayError as error:
                log.warning("events of agents are delayed: %s", error)

    def _lost_after_ns(self) -> int:
        rounds_s = UNREACHABLE_ROUNDS * self._probe.interval_s + self._probe.timeout_s
        return int(max(rounds_s, MIN_SILENCE_S) * NS_PER_S)

    def _state(self, gateway: str, monotonic_ns: int) -> AgentState:
        if gateway not in self._known:
            return AgentState.NEVER
        last_seen_ns = self._last_seen_ns.get(gateway, self._began_ns)
        return AgentState.LOST if monotonic_ns - last_seen_ns > self._lost_after_ns() else AgentState.REPORTING

    def _view(self, gateway: str, now_ns: int, monotonic_ns: int) -> AgentView:
        known, state = self._known.get(gateway), self._state(gateway, monotonic_ns)
        age_ns = None if known is None else max(0, now_ns - known.at_ns)
        if gateway in self._last_seen_ns:
            age_ns = monotonic_ns - self._last_seen_ns[gateway]
        elif age_ns is not None and age_ns > self._lost_after_ns():
            state = AgentState.LOST  # no event yet, since it may have reported to another process
        age_s = None if age_ns is None else age_ns / NS_PER_S
        return AgentView(gateway, state, age_s, known, self._refused[gateway], self._problems.get(gateway, ""))

    def _news(self, states: dict[str, AgentState], now_ns: int) -> Iterator[Event]:
        for gateway, state in states.items():
            before = self._reported.get(gateway)
            if state is before or state is AgentState.NEVER or (before is None and state is AgentState.REPORTING):
                continue
            yield Event(now_ns, "agent", self._state_text(gateway, before, state), "seaway")

    def _state_text(self, gateway: str, before: AgentState | None, state: AgentState) -> str:
        if state is AgentState.LOST:
            return Reason("agent_lost", gateway=gateway, silent=float(self._lost_after_ns() / NS_PER_S))
        return Reason("agent_again" if before is AgentState.LOST else "agent_first", gateway=gateway)
