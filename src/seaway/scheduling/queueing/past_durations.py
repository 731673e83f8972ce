"""Expected durations of jobs, learned from past runs of the same tenant, user and job name.

The longer of the last two runs is expected. Without one, the last two of the user count, whatever their names. It
serves plans only, and ends no job.

References
----------
Tsafrir, Etsion, Feitelson: Backfilling Using System-Generated Predictions Rather than User Runtime Estimates.
IEEE TPDS 18(6), 2007, doi:10.1109/TPDS.2007.70606.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict, deque
from dataclasses import dataclass
from statistics import median_low

from seaway.domain.reasons import Reason

RUNS = 2
"""Number of past runs that count."""

LATEST = 100
"""Number of past runs of all jobs whose median is typical."""

MAX_NAMES = 100_000
"""Maximum number of tenants, users and job names. Those whose jobs were not seen for the longest time are dropped."""

UNKNOWN = -1
"""Class of unknown durations."""

FAR = 2
"""Number of classes by which the expected duration of a job name differs before waiting jobs change their class."""

_NUMBERS = re.compile(r"(?:-\d+)+$")


def length_of(seconds: int | None) -> int:
    """Return the class of similar durations: a class for each power of 2 seconds, and `UNKNOWN` for None."""
    return UNKNOWN if seconds is None else seconds.bit_length()


@dataclass(slots=True, eq=False, weakref_slot=True)
class PastRuns:
    """Last completed runs of one tenant, user and job name, seconds.

    Attributes
    ----------
    own_s
        Those of the name, seconds.
    of_user
        Those of the tenant and user under any name, which count while there are none of the name; None for these
        themselves.
    """

    own_s: tuple[int, ...] = ()
    of_user: PastRuns | None = None
    _length: int = UNKNOWN

    def add(self, seconds: float) -> bool:
        """Add the latest run; report whether the class of the expected duration changed."""
        self.own_s = (*self.own_s, max(1, math.ceil(seconds)))[-RUNS:]
        if self.of_user:
            self.of_user.add(seconds)
        length = length_of(self.expected_s)
        if self._length != UNKNOWN and abs(length - self._length) < FAR:
            return False
        self._length = length
        return True

    @property
    def runs_s(self) -> tuple[int, ...]:
        """Past runs that count, seconds."""
        return self.own_s or (self.of_user.own_s if self.of_user else ())

    @property
    def length(self) -> int:
        """Class of similar durations, as `length_of`.

        It follows the expected duration only from `FAR` classes away, so that waiting jobs rarely change their class.
        They do not change it for runs of other names.
        """
        return self.of_user.length if self.of_user and not self.own_s else self._length

    @property
    def expected_s(self) -> int | None:
        """Expected duration in seconds; None without a run."""
        return max(self.runs_s, default=None)

    @property
    def text(self) -> str:
        """Expected duration with its origin; empty without a run."""
        return Reason("learned", time_s=max(self.runs_s), count=len(self.runs_s)) if self.runs_s else ""


class PastDurations:
    """Past runs of all tenants, users and job names.

    Numbers at the end of a name do not count: ``sweep-7`` and ``sweep-8`` are runs of ``sweep``, but ``resnet50`` and
    ``resnet101`` differ.
    """

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, str, str], PastRuns] = OrderedDict()
        self._latest_s: deque[int] = deque(maxlen=LATEST)

    def add(self, past: PastRuns, seconds: float) -> bool:
        """Add the latest run to those of its name; report whether the class of the expected duration changed."""
        self._latest_s.append(max(1, math.ceil(seconds)))
        return past.add(seconds)

    @property
    def typical_s(self) -> int | None:
        """Median of the latest runs of all jobs, seconds; None without a run."""
        return median_low(self._latest_s) if self._latest_s else None

    def of(self, tenant: str, user: str, name: str) -> PastRuns:
        """Return the past runs of a job name, or of a user without one. Later runs are added to the same object."""
        key, of_user = (tenant, user, _NUMBERS.sub("", name)), self.of(tenant, user, "") if name else None
        runs = self._runs.setdefault(key, PastRuns(of_user=of_user))
        self._runs.move_to_end(key)
        if name:
            self._runs.move_to_end((tenant, user, ""))  # dropped after all of its names
        if len(self._runs) > MAX_NAMES:
            self._runs.popitem(last=False)
        return runs
