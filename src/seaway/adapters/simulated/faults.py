"""Random faults: their probabilities and random draws."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason

NS_PER_S = 1_000_000_000
S_PER_H = 3600

PULL_ERROR = Reason("simulated_pull_error")
CRASH = Reason("simulated_crash")
REFUSAL = Reason("simulated_refusal")


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities and rates of random faults; none by default.

    Probabilities are between 0 and 1. The faults of a workload depend only on the seed, its cluster and its name. A
    refused deployment is therefore refused again.

    Attributes
    ----------
    seed
        Seed of the random draws. The same seed, fleet, clock and calls give the same history.
    refused
        Probability that a deployment is refused.
    slow
        Probability that a workload starts late, by a time with the mean `slow_s`.
    start_fails, run_fails
        Probability that a workload fails at its start, or while it runs.
    vanishes
        Probability that a running workload is removed without a command from Seaway.
    within_s
        Time after the start in which a workload without an end fails or vanishes; others do so before their end.
    request_lost, answer_lost, hangs
        Probability that a call is not received; that it is executed but not answered; that it hangs until its timeout
        and is not executed.
    node_failures_per_h, device_failures_per_h, outages_per_h
        Failure rates of each node and of each device, and outage rate of each cluster.
    repair_s, outage_s
        Mean time to repair a node or device, and mean duration of an outage.
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
        """Reject probabilities above 1, and negative times and rates."""
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
        """True if faults of workloads are possible."""
        return bool(self.refused or self.slow or self.start_fails or self.run_fails or self.vanishes)

    @property
    def of_calls(self) -> bool:
        """True if calls may be lost or hang."""
        return bool(self.request_lost or self.answer_lost or self.hangs)


NO_FAULTS = Faults()
"""Configuration without random faults."""


@dataclass(frozen=True, slots=True)
class Course:
    """Planned course of a workload without interventions.

    Attributes
    ----------
    refused
        Reason of its refusal; empty if it is accepted.
    starts_after_ns
        Time from its creation to its start.
    ends_after_ns
        Duration; None for no end.
    fails
        Reason of its failure; empty for a success.
    vanishes_after_ns
        Time from its start until it vanishes; None for never.
    """

    refused: str = ""
    starts_after_ns: int = 0
    ends_after_ns: int | None = None
    fails: str = ""
    vanishes_after_ns: int | None = None


def draw_course(faults: Faults, name: str, start_delay_ns: int, runs_ns: int | None) -> Course:
    """Draw the course of a workload.

    Parameters
    ----------
    name
        Name of the workload, unique in all clusters; it determines the draw together with the seed.
    start_delay_ns
        Start delay of a workload.
    runs_ns
        Run time; None for no end.
    """
    if not faults.of_workloads:
        return Course("", start_delay_ns, runs_ns)
    random = Random(f"{faults.seed}/{name}")  # not for security
    refused, slow, start, run, vanish, at = (random.random() for _ in range(6))
    late_ns = round(random.expovariate(1) * faults.slow_s * NS_PER_S) if slow < faults.slow else 0
    reach_ns = round(faults.within_s * NS_PER_S) if runs_ns is None else runs_ns
    ends_ns, fails = runs_ns, ""
    if start < faults.start_fails:
        ends_ns, fails = 0, PULL_ERROR
    elif run < faults.run_fails:
        ends_ns, fails = max(1, int(at * reach_ns)), CRASH
    vanishes_ns = int(random.random() * reach_ns) if vanish < faults.vanishes else None
    return Course(REFUSAL if refused < faults.refused else "", start_delay_ns + late_ns, ends_ns, fails, vanishes_ns)


class Stream:
    """Times of independent random events (a Poisson process).

    Parameters
    ----------
    name
        Name that determines the draws together with the seed.
    per_h
        Events per hour; 0 for none.
    mean_s
        Mean time to repair.
    """

    def __init__(self, faults: Faults, name: str, per_h: float, mean_s: float) -> None:
        self._random = Random(f"{faults.seed}/{name}")
        self._per_h = per_h
        self._mean_s = mean_s

    def gap_ns(self) -> int | None:
        """Draw the time to the next event; return None if there is none."""
        if not self._per_h:
            return None
        return round(self._random.expovariate(self._per_h) * S_PER_H * NS_PER_S)

    def repaired_ns(self) -> int:
        """Draw the time to repair."""
        return round(self._random.expovariate(1) * self._mean_s * NS_PER_S)

    def pick(self, count: int) -> int:
        """Draw the index of the affected item out of `count`."""
        return self._random.randrange(count)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of simulated clusters.

    Attributes
    ----------
    faults
        Random faults.
    start_delay_s
        Start delay of a workload.
    timeout_s
        Timeout of a hanging call.
    waits
        True if calls may wait in real time. If False, as in tests with a manual clock, `changes` and hanging calls
        return immediately.
    max_changes
        Minimum number of changes in the log; clients with older cursors get a full report.
    measures
        True if clusters report the measured use of devices.
    journal_size
        Maximum number of journal entries; a longer journal is compacted at the start.
    """

    faults: Faults = NO_FAULTS
    start_delay_s: float = 1
    timeout_s: float = 5
    waits: bool = True
    max_changes: int = 65_536
    journal_size: int = 1_000_000
    measures: bool = False

    def __post_init__(self) -> None:
        """Reject negative and infinite values."""
        for name in ("start_delay_s", "timeout_s", "max_changes", "journal_size"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise RejectedError(f"is {value}, but must be at least 0", where=name)
