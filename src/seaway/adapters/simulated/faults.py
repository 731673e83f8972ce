"""What goes wrong by chance, and drawing it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random

from seaway.domain.errors import RejectedError

NS_PER_S = 1_000_000_000
S_PER_H = 3600

PULL_ERROR = "image pull error: no such image (simulated)"
CRASH = "exit code 137 (simulated)"
REFUSAL = "admission refused (simulated)"


@dataclass(frozen=True, slots=True)
class Faults:
    """How much goes wrong by chance; nothing by default.

    Chances are shares from 0 to 1. Those of a copy hang on the seed, its cluster and its name alone: asked
    for again, what was refused is refused again.

    Attributes
    ----------
    seed
        The same seed, fleet, clock and calls give the same history.
    refused
        Chance that a deployment is refused.
    slow
        Chance that a copy starts late, by a time with the mean `slow_s`.
    start_fails, run_fails
        Chance that a copy fails while it starts, or while it runs.
    vanishes
        Chance that a running copy is removed by nobody Seaway knows of.
    within_s
        A copy without an end fails or vanishes within this time after it started; others before their end.
    request_lost, answer_lost, hangs
        Chance that a call is not heard; that it is carried out but not answered; that it hangs until it
        times out and is not carried out.
    node_failures_per_h, device_failures_per_h, outages_per_h
        How often each node fails, each device fails, and each cluster cannot be reached.
    repair_s, outage_s
        Mean time until a node or device is back, and a cluster.
    """

    seed: int = 0
    refused: float = 0
    slow: float = 0
    slow_s: float = 60
    start_fails: float = 0
    run_fails: float = 0
    vanishes: float = 0
    within_s: float = 600
    request_lost: float = 0
    answer_lost: float = 0
    hangs: float = 0
    node_failures_per_h: float = 0
    device_failures_per_h: float = 0
    outages_per_h: float = 0
    repair_s: float = 300
    outage_s: float = 60

    def __post_init__(self) -> None:
        """Reject chances above all, and negative times and rates."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "seed":
                continue
            if not 0 <= value < float("inf"):
                raise RejectedError(f"is {value}, but must be at least 0", where=each.name)
            if not each.name.endswith(("_s", "_per_h")) and value > 1:
                raise RejectedError(f"is {value}, but a chance is at most 1", where=each.name)

    @property
    def of_workloads(self) -> bool:
        """Whether anything may happen to a copy by itself."""
        return bool(self.refused or self.slow or self.start_fails or self.run_fails or self.vanishes)

    @property
    def of_calls(self) -> bool:
        """Whether calls may be lost or hang."""
        return bool(self.request_lost or self.answer_lost or self.hangs)


NO_FAULTS = Faults()
"""Nothing goes wrong by chance."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What will become of a copy if no one meddles.

    Attributes
    ----------
    refused
        Why it is not taken at all; empty when it is.
    starts_after_ns
        From its creation to its start.
    ends_after_ns
        From its start to its end; None when it runs on.
    fails
        Why its end is a failure; empty for a success.
    vanishes_after_ns
        From its start until it vanishes; None when it does not.
    """

    refused: str = ""
    starts_after_ns: int = 0
    ends_after_ns: int | None = None
    fails: str = ""
    vanishes_after_ns: int | None = None


def draw_fate(faults: Faults, name: str, start_delay_ns: int, runs_ns: int | None) -> Fate:
    """Draw what becomes of a copy.

    Parameters
    ----------
    name
        The copy's own in all clusters: with the seed, it decides the draw.
    start_delay_ns
        How long a copy takes to start.
    runs_ns
        How long it runs; None for ever.
    """
    if not faults.of_workloads:
        return Fate("", start_delay_ns, runs_ns)
    random = Random(f"{faults.seed}/{name}")  # nothing here is a secret
    refused, slow, start, run, vanish, at = (random.random() for _ in range(6))
    late_ns = round(random.expovariate(1) * faults.slow_s * NS_PER_S) if slow < faults.slow else 0
    reach_ns = round(faults.within_s * NS_PER_S) if runs_ns is None else runs_ns
    ends_ns, fails = runs_ns, ""
    if start < faults.start_fails:
        ends_ns, fails = 0, PULL_ERROR
    elif run < faults.run_fails:
        ends_ns, fails = max(1, int(at * reach_ns)), CRASH
    vanishes_ns = int(random.random() * reach_ns) if vanish < faults.vanishes else None
    return Fate(REFUSAL if refused < faults.refused else "", start_delay_ns + late_ns, ends_ns, fails, vanishes_ns)


class Stream:
    """Times at which something happens by chance, independent of each other (a Poisson process).

    Parameters
    ----------
    name
        With the seed, decides the draws.
    per_h
        How often it happens; 0 for never.
    mean_s
        Mean time until it is mended.
    """

    def __init__(self, faults: Faults, name: str, per_h: float, mean_s: float) -> None:
        self._random = Random(f"{faults.seed}/{name}")
        self._per_h = per_h
        self._mean_s = mean_s

    def gap_ns(self) -> int | None:
        """Draw the time until it happens next; None when it never does."""
        if not self._per_h:
            return None
        return round(self._random.expovariate(self._per_h) * S_PER_H * NS_PER_S)

    def mended_ns(self) -> int:
        """Draw the time until it is mended."""
        return round(self._random.expovariate(1) * self._mean_s * NS_PER_S)

    def pick(self, count: int) -> int:
        """Draw which of `count` it happens to."""
        return self._random.randrange(count)


@dataclass(frozen=True, slots=True)
class Options:
    """How simulated clusters behave.

    Attributes
    ----------
    faults
        What goes wrong by chance.
    start_delay_s
        How long a copy takes to start.
    timeout_s
        After how long a call that hangs gives up.
    waits
        Whether calls may wait, in real time. Without it, as suits a clock that a test moves, `changes`
        tells at once what there is, and what would hang gives up at once.
    changes_kept
        How many changes a cluster remembers at least; who asks for older ones is told everything.
    measures
        Whether clusters say what is really used of devices.
    journal_kept
        A journal with more entries is replaced by a shorter one when the cluster starts.
    """

    faults: Faults = NO_FAULTS
    start_delay_s: float = 1
    timeout_s: float = 5
    waits: bool = True
    changes_kept: int = 65_536
    journal_kept: int = 1_000_000
    measures: bool = False

    def __post_init__(self) -> None:
        """Reject times that are none."""
        for name in ("start_delay_s", "timeout_s", "changes_kept", "journal_kept"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise RejectedError(f"is {value}, but must be at least 0", where=name)
