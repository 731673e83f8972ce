"""Rounds of probes: sent probes, their answers, and the measurements of a round."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from seaway.domain.network import PPM
from seaway.probing.packets import SECRET_BYTES


@dataclass(frozen=True, slots=True)
class Round:
    """Result of one round of probes to one target.

    Attributes
    ----------
    sent
        Number of sent probes.
    rtts_ns
        Round-trip time of each answered probe, nanoseconds, in the order of sending.
    discarded
        Number of answers with an impossible time, for example after a clock change. They count neither as sent nor as
        answered.
    """

    sent: int
    rtts_ns: tuple[int, ...]
    discarded: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Measurements of a link in a round.

    Attributes
    ----------
    latency_ns
        Mean round-trip time, nanoseconds; None without answers.
    jitter_ns
        Largest deviation from the mean, nanoseconds; 0 without answers.
    loss_ppm
        Share of probes without an answer, parts per million.
    """

    latency_ns: int | None
    jitter_ns: int
    loss_ppm: int


def figures(measured: Round) -> Figures:
    """Return latency, jitter and loss of a round.

    Raises
    ------
    ValueError
        If no probe was sent, or more probes were answered than sent.
    """
    rtts, sent = measured.rtts_ns, measured.sent
    if sent < 1 or len(rtts) > sent:
        raise ValueError(f"{len(rtts)} answers to {sent} probes")
    loss_ppm = (sent - len(rtts)) * PPM // sent
    if not rtts:
        return Figures(None, 0, loss_ppm)
    mean = round(sum(rtts) / len(rtts))
    return Figures(mean, max(max(rtts) - mean, mean - min(rtts)), loss_ppm)


NS_PER_S = 1_000_000_000
BITS = 8
PER_MBIT = 1_000_000
UNKNOWN_MBPS = 2**32 - 1
"""Value of -1 read as an unsigned 32-bit number."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of an interface since its creation.

    Attributes
    ----------
    at_ns
        Time of the reading on a monotonic clock, nanoseconds.
    received_bytes, transmitted_bytes
        Received and transmitted bytes.
    """

    at_ns: int
    received_bytes: int
    transmitted_bytes: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Traffic of an interface, Mbit/s, never below 0."""

    in_mbps: float
    out_mbps: float


def rates(before: Counters, now: Counters, longest_ns: int) -> Rates | None:
    """Return the mean rates between two readings; None if they are unknown.

    They are unknown if no time has passed between the readings, or more than `longest_ns`, because such a mean is out
    of date. They are also unknown if one of the counters decreased, because the interface was re-created or a 32-bit
    counter overflowed. The other counter may have restarted too and already exceed its old value.
    """
    elapsed_ns = now.at_ns - before.at_ns
    received = now.received_bytes - before.received_bytes
    transmitted = now.transmitted_bytes - before.transmitted_bytes
    if not 0 < elapsed_ns <= longest_ns or min(received, transmitted) < 0:
        return None
    per_byte = BITS * NS_PER_S / elapsed_ns / PER_MBIT
    return Rates(received * per_byte, transmitted * per_byte)


def is_plausible(seen: Rates) -> bool:
    """Report whether the rates are possible: finite, not negative, and below the value for an unknown speed."""
    return all(0 <= mbps < UNKNOWN_MBPS for mbps in (seen.in_mbps, seen.out_mbps))


def speed_mbps(bytes_per_s: float | None) -> int | None:
    """Return the speed of an interface, Mbit/s, from its driver; None if unknown.

    Drivers of virtual interfaces, or of interfaces that are down, report nothing, 0 or -1.
    """
    if bytes_per_s is None or not math.isfinite(bytes_per_s):
        return None
    mbps = int(min(bytes_per_s / PER_MBIT, UNKNOWN_MBPS) * BITS)  # eight times 1e308 is infinite
    return mbps if 0 < mbps < UNKNOWN_MBPS else None


PRECISION_NS = 100_000
"""Accuracy of the comparison of the two clocks, nanoseconds. A process may be delayed between two readings."""


class Clocks:
    """Detector of changes to the wall clock.

    The kernel timestamps packets with the wall clock. It is slewed together with the monotonic clock, so their offset
    changes only if a user sets the wall clock. A packet read between two samples may have arrived just before the
    earlier one, so three samples must agree.

    Parameters
    ----------
    offset_ns
        Offset of the wall clock from the monotonic clock, nanoseconds.
    """

    def __init__(self, offset_ns: int) -> None:
        self._looks = (offset_ns, offset_ns, offset_ns)

    def sample(self, offset_ns: int) -> None:
        """Record the offset after timestamps were read."""
        self._looks = (*self._looks[1:], offset_ns)

    @property
    def consistent(self) -> bool:
        """True if the wall clock was not set, so that timestamps since the last sample but one are valid."""
        return max(self._looks) - min(self._looks) <= PRECISION_NS


BURST = 128
"""Maximum number of probes in a burst, to keep queues on the path short; twice as many to recover from a delay."""
MIN_PROBES = 8
"""Maximum number of targets that are probed one by one. The cost of the wake-ups is then negligible."""
TICK_NS = 2_000_000_000
"""Maximum pause to collect probes for a burst, nanoseconds. A wake-up costs more than sending."""

_UNSENT, _LOST = -1, -2
_OPEN, _DISCARDED = -1, -2


class Arrival(NamedTuple):
    """A received answer.

    Attributes
    ----------
    probe, secret
        Number and secret of the probe, as in the answer.
    wall_ns
        Arrival time on the wall clock, nanoseconds. The kernel timestamps packets with no other clock.
    dwell_ns
        Time before the arrival that is not part of the round trip, nanoseconds.
    """

    probe: int
    secret: bytes
    wall_ns: int
    dwell_ns: int = 0


class Pace:
    """Schedule of probes: evenly over an interval, in bursts of limited size."""

    def __init__(self, probes: int, spread_ns: int, burst: int = BURST) -> None:
        self._probes = probes
        self._spread_ns = spread_ns
        self._burst = burst

    def due(self, sent: int, elapsed_ns: int) -> int:
        """Return the number of probes due by now, at most two bursts more than `sent`."""
        due = self._probes
        if elapsed_ns < self._spread_ns:
            due = min(due, elapsed_ns * self._probes // self._spread_ns + 1)
        return min(max(due, sent), sent + 2 * self._burst)

    def pause_ns(self, sent: int, elapsed_ns: int) -> int:
        """Return the time until the next burst, nanoseconds."""
        next_ns, whole_ns = self._due_ns(sent), self._due_ns(min(sent + self._burst, self._probes) - 1)
        pause_ns = whole_ns - (elapsed_ns if elapsed_ns <= whole_ns else next_ns)
        return max(next_ns - elapsed_ns, min(TICK_NS, pause_ns))

    def _due_ns(self, probe: int) -> int:
        return -(-probe * self._spread_ns // self._probes)


class OpenRound:
    """A round in progress. Probe 0 goes to the first target, probe 1 to the second, and so on in turn.

    All times are on the monotonic clock, nanoseconds, except those of arrivals.

    Parameters
    ----------
    targets
        Number of targets.
    count
        Number of probes to each target.
    timeout_ns
        Timeout of an answer. A later answer counts as lost.
    secrets
        `SECRET_BYTES` random bytes for each probe, which identify answers to this round and exclude forged ones.
    offset_ns
        Offset of the wall clock from the monotonic clock before the first probe.
    """

    def __init__(self, targets: int, count: int, timeout_ns: int, secrets: bytes, offset_ns: int) -> None:
        self.probes = targets * count
        self.outstanding = 0
        self.last_sent_ns = 0
        self._targets = targets
        self._timeout_ns = timeout_ns
        self._secrets = [secrets[at : at + SECRET_BYTES] for at in range(0, len(secrets), SECRET_BYTES)]
        self._sent_ns = [_UNSENT] * self.probes
        self._rtts_ns = [_OPEN] * self.probes
        self._clocks = Clocks(offset_ns)

    @property
    def deadline_ns(self) -> int:
        """Deadline of an answer to the last probe."""
        return self.last_sent_ns + self._timeout_ns

    def secret(self, probe: int) -> bytes:
        """Return the secret of a probe, which its answer must contain."""
        return self._secrets[probe]

    def sent(self, probe: int, at_ns: int) -> None:
        """Record that a probe was sent."""
        self._sent_ns[probe] = self.last_sent_ns = at_ns
        self.outstanding += 1

    def mark_unsent(self, probe: int) -> None:
        """Record that a probe could not be sent. It counts as lost."""
        self._sent_ns[probe] = _LOST

    def arrived(self, arrivals: Iterable[Arrival], now_ns: int, offset_ns: int) -> None:
        """Record answers. Duplicates are ignored.

        Parameters
        ----------
        arrivals
            All answers since the last call, or since the start of the round.
        now_ns, offset_ns
            Monotonic time and offset of the wall clock after the last arrival.
        """
        self._clocks.sample(offset_ns)
        trusted, latest_ns = self._clocks.consistent, now_ns + PRECISION_NS
        secrets, all_sent_ns, rtts_ns, timeout_ns = self._secrets, self._sent_ns, self._rtts_ns, self._timeout_ns
        for probe, secret, wall_ns, dwell_ns in arrivals:
            if probe >= self.probes or rtts_ns[probe] != _OPEN or secret != secrets[probe]:
                continue
            sent_ns = all_sent_ns[probe]
            if sent_ns < 0:
                continue
            self.outstanding -= 1
            at_ns = wall_ns - offset_ns
            rtt_ns = at_ns - sent_ns - dwell_ns
            if not trusted or at_ns > latest_ns or rtt_ns < -PRECISION_NS:
                rtts_ns[probe] = _DISCARDED
            elif rtt_ns > timeout_ns:
                all_sent_ns[probe] = _LOST
            else:
                rtts_ns[probe] = rtt_ns if rtt_ns > 0 else 0

    def close(self) -> tuple[Round, ...]:
        """Return the result for each target."""
        return tuple(self._round(target) for target in range(self._targets))

    def _round(self, target: int) -> Round:
        sent_ns, rtts_ns = self._sent_ns[target :: self._targets], self._rtts_ns[target :: self._targets]
        discarded = rtts_ns.count(_DISCARDED)
        sent = len(sent_ns) - sent_ns.count(_UNSENT)
        return Round(sent - discarded, tuple(rtt for rtt in rtts_ns if rtt >= 0), discarded)
