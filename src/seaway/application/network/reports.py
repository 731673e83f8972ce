"""Reports of agents: rate limits, validation, and protection against duplicates."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from seaway.application.changes import Change
from seaway.application.network.agents import Agents
from seaway.application.network.targets import assignment, require_network
from seaway.application.ports.agent import Report, Reported
from seaway.application.ports.clock import Clock
from seaway.application.records import AgentRecord
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, RejectedError, TooManyError
from seaway.domain.gateways import NetworkConfig
from seaway.domain.reasons import Reason

NS_PER_S = 1_000_000_000

MAX_AHEAD_S = 60
"""Maximum lead of the clock of an agent over the clock of the control plane, seconds."""

OLDEST_S = 7 * 86_400
"""Maximum age of a round, seconds. Agents discard their rounds earlier, even during an outage."""

MAX_AT_ONCE = 10
PER_S = 2.0
"""Rate limit of calls of a gateway: burst size (`MAX_AT_ONCE`), for example after an outage, and calls per second."""

MAX_ROUNDS = 60_000
ROUNDS_FACTOR = 2.0
"""Rate limit of rounds of an agent: maximum burst (`MAX_ROUNDS`, slightly more than an agent stores), and long-term
rate as a multiple of the rounds that it measures.
"""

MAX_ERRORS = 50
"""Maximum number of listed errors per report."""


class LinkSink(Protocol):
    """Consumer of measurements."""

    def take(self, gateway: str, rounds: Sequence[Reported], now_ns: int) -> None:
        """Process the rounds reported by the agent of a gateway."""


@dataclass(slots=True)
class _Bucket:
    """Token bucket of a gateway, and the monotonic time of its last update."""

    left: float
    at_ns: int

    def take(self, count: int, most: int, per_s: float, now_ns: int) -> float:
        """Remove `count` tokens and return 0; with too few tokens, return the seconds to wait."""
        self.left = min(most, self.left + (now_ns - self.at_ns) / NS_PER_S * per_s)
        self.at_ns = now_ns
        if self.left < count:
            return (count - self.left) / per_s
        self.left -= count
        return 0.0


class Reports:
    """Acceptance of reports, each in full or not at all.

    The ID of the latest report of a gateway is stored before the report takes effect. So duplicates are detected after
    a restart too.

    Parameters
    ----------
    agents
        States of the agents, with their latest report.
    link_table
        Consumer of the measurements.
    """

    def __init__(self, writer: Writer, clock: Clock, agents: Agents, link_table: LinkSink) -> None:
        self._writer = writer
        self._clock = clock
        self._agents = agents
        self._link_table = link_table
        self._config: NetworkConfig | None = None
        self._targets: dict[str, frozenset[tuple[str, str]]] = {}
        self._calls: dict[str, _Bucket] = {}
        self._rounds: dict[str, _Bucket] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def use(self, config: NetworkConfig | None) -> None:
        """Set the network."""
        self._config, self._targets = config, {}

    def admit(self, gateway: str) -> None:
        """Count a call of a gateway before it is processed.

        Raises
        ------
        TooManyError
            If the rate limit is exceeded.
        """
        now_ns = self._clock.monotonic_ns()
        bucket = self._calls.setdefault(gateway, _Bucket(MAX_AT_ONCE, now_ns))
        if bucket.take(1, MAX_AT_ONCE, PER_S, now_ns):
            raise TooManyError(Reason("reports_too_fast", gateway=gateway, most=PER_S), retry_after_s=1)

    async def take(self, report: Report, address: str) -> None:
        """Accept a report. The caller has authenticated the agent of the gateway.

        Rounds older than `OLDEST_S` are removed and count as dropped.

        Parameters
        ----------
        address
            Source address.

        Raises
        ------
        UnknownError
            If the gateway does not exist.
        RejectedError
            If the report is invalid; lists the errors.
        ConflictError
            If this report or a later one was already accepted.
        TooManyError
            If it has more rounds than the agent can have measured since the last report.
        UnavailableError
            If it cannot be stored; it can be sent again.
        """
        targets = self._to_measure(report.gateway)
        try:
            _require_valid(report, targets, self._clock.now_ns())
            async with self._locks.setdefault(report.gateway, asyncio.Lock()):
                await self._take(report, address)
        except (ConflictError, RejectedError) as error:
            self._agents.refused(report.gateway, str(error))
            raise

    async def _take(self, report: Report, address: str) -> None:
        before = self._agents.known(report.gateway)
        if before is not None and (report.started_ns, report.number) <= (before.started_ns, before.number):
            raise ConflictError(
                Reason("report_taken", number=report.number)
                if report.started_ns == before.started_ns
                else Reason("later_agent")
            )
        self._require_possible(report)
        now_ns = self._clock.now_ns()
        report = _recent(report, now_ns)
        record = replace(
            _added(before or AgentRecord(report.gateway, 0, 0, 0, ""), report), at_ns=now_ns, address=address
        )
        await self._writer.stored_soon(Change(put=[record]))
        self._agents.received(record)
        self._link_table.take(report.gateway, report.rounds, now_ns)

    def _require_possible(self, report: Report) -> None:
        """Check the rate limit of rounds. An agent measures each target and path once per interval."""
        config, now_ns = require_network(self._config, report.gateway), self._clock.monotonic_ns()
        per_s = ROUNDS_FACTOR * max(1, len(self._to_measure(report.gateway))) / config.probe.interval_s
        bucket = self._rounds.setdefault(report.gateway, _Bucket(MAX_ROUNDS, now_ns))
        wait_s = bucket.take(len(report.rounds), MAX_ROUNDS, per_s, now_ns)
        if wait_s:
            raise TooManyError(
                Reason("rounds_too_many", gateway=report.gateway),
                retry_after_s=max(1, round(wait_s)),
            )

    def _to_measure(self, gateway: str) -> frozenset[tuple[str, str]]:
        found = self._targets.get(gateway)
        if found is None:
            config = require_network(self._config, gateway)
            targets = assignment(config, 0, gateway).targets
            found = self._targets[gateway] = frozenset((each.gateway, each.path) for each in targets)
        return found


def _require_valid(report: Report, targets: frozenset[tuple[str, str]], now_ns: int) -> None:
    wrong = list(islice(_errors(report, targets, now_ns), MAX_ERRORS))
    if wrong:
        raise RejectedError(wrong[0].message, where=wrong[0].where, also=tuple(wrong[1:]))


def _recent(report: Report, now_ns: int) -> Report:
    """Remove outdated rounds, and count them as dropped."""
    rounds = tuple(each for each in report.rounds if each.at_ns >= now_ns - OLDEST_S * NS_PER_S)
    return replace(report, rounds=rounds, dropped=report.dropped + len(report.rounds) - len(rounds))


def _added(before: AgentRecord, report: Report) -> AgentRecord:
    return replace(
        before,
        started_ns=report.started_ns,
        number=report.number,
        reports=before.reports + 1,
        rounds=before.rounds + len(report.rounds),
        dropped=before.dropped + report.dropped,
        discarded=before.discarded + sum(each.discarded for each in report.rounds),
    )


def _errors(report: Report, targets: frozenset[tuple[str, str]], now_ns: int) -> Iterator[RejectedError]:
    """Yield the errors of a report, field by field."""
    latest_ns = now_ns + MAX_AHEAD_S * NS_PER_S
    if report.started_ns > latest_ns:
        yield RejectedError(Reason("clock_ahead", most=MAX_AHEAD_S), where="started_ns")
    seen: set[tuple[str, str, int]] = set()
    for at, each in enumerate(report.rounds):
        if (each.target, each.path) not in targets:
            yield _unknown(report, each, targets, f"rounds[{at}]")
        if each.at_ns > latest_ns:
            yield RejectedError(Reason("too_far_ahead", most=MAX_AHEAD_S), where=f"rounds[{at}].at_ns")
        if each.received > each.sent:
            yield RejectedError(Reason("more_than_sent", sent=each.sent), where=f"rounds[{at}].received")
        if (each.latency_ns is None) is not (each.received == 0):
            says = Reason("latency_missing") if each.received else Reason("latency_without_answers")
            yield RejectedError(says, where=f"rounds[{at}].latency_ns")
        elif each.latency_ns == 0:
            yield RejectedError(Reason("not_positive"), where=f"rounds[{at}].latency_ns")
        if each.jitter_ns > (most_ns := _most_jitter_ns(each)):
            says = Reason("jitter_too_large", most=most_ns, received=each.received)
            yield RejectedError(says, where=f"rounds[{at}].jitter_ns")
        key = (each.target, each.path, each.at_ns)
        if key in seen:
            yield RejectedError(Reason("is_duplicated"), where=f"rounds[{at}]")
        seen.add(key)


def _most_jitter_ns(each: Reported) -> int:
    """Return the maximum jitter for a given mean: one answer has all the delay, the others none.

    The mean is rounded, so the sum may be larger by half a nanosecond per answer.
    """
    if each.received < 2:
        return 0
    return (each.latency_ns or 0) * (each.received - 1) + each.received // 2


def _unknown(report: Report, each: Reported, targets: frozenset[tuple[str, str]], where: str) -> RejectedError:
    if each.target == report.gateway:
        return RejectedError(Reason("is_gateway_itself"), where=f"{where}.target")
    if (each.target, "") in targets:
        return RejectedError(
            Reason("path_not_measured", path=each.path[:80], target=each.target), where=f"{where}.path"
        )
    return RejectedError(Reason("not_a_target", target=each.target[:80]), where=f"{where}.target")
