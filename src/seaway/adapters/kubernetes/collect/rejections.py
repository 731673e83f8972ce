"""What a cluster will not have made: an attempt's objects, or their pods; and for how long it has been saying so.

Pods are denied when their controller makes them (a quota, Pod Security, a webhook), so that nothing but an event, or
a condition of some kinds, tells of it. Objects are denied where Karmada writes them into its members.

References
----------
Kubernetes documentation, "Resource Quotas", "Pod Security Admission", "Dynamic Admission Control".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.limits import Lasting
from seaway.domain import job_spec as ids
from seaway.domain.deployment import Cause, Copy, CopyPhase

Attempt = tuple[str, int]

LONGEST = 500

DENIED = (
    "is forbidden",
    "denied the request",
    "is invalid",
    "no matches for kind",
    "already exists in the cluster",
    "could not find the requested resource",
)
"""What is said where asking again does not help: somebody decided so."""

MAY_PASS = (
    "error looking up service account",
    "failed calling webhook",
    "the object has been modified",
    "being terminated",
    "context deadline exceeded",
    "timed out",
    "timeout",
)
"""What is said where it may: of something that is not there yet, or did not answer."""

_ROUND_ABOUT = re.compile(
    r"^(\(combined from similar events\): |Failed to apply all manifests \(\d+/\d+\): |Error creating: "
    r"|create Pod \S+ in StatefulSet \S+ failed error: )+"
)
_NAMED = re.compile(r'[\w.-]+ "[^"]*" is forbidden: ')
"""Names of pods are made up anew with every try: they say nothing, and every reason would be another."""

_NAME = re.compile(r"(?:^|-)sw-([0-9a-z]+)-([0-9]{1,9})(?:-|$)")


def attempt_named(name: str) -> Attempt | None:
    """Return the job and attempt of an object of Seaway's, or of what a controller made of one, by its name."""
    found = _NAME.search(name)
    return (found[1], int(found[2])) if found and ids.decode(found[1]) is not None else None


def plain(said: str) -> str:
    """Say in short why something is denied."""
    line = _NAMED.sub("", _ROUND_ABOUT.sub("", " ".join(said.split())))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def is_decided(said: str) -> bool:
    """Tell whether a denial is somebody's decision, rather than something that may pass by itself."""
    return any(each in said for each in DENIED) and not any(each in said for each in MAY_PASS)


@dataclass(frozen=True, slots=True)
class Denial:
    """Why something of an attempt is not made.

    Attributes
    ----------
    reason
        What people read.
    decided
        Whether it is somebody's decision.
    whole
        Whether it is the attempt's own objects that are denied, so that nothing of it may be there.
    """

    reason: str
    decided: bool
    whole: bool = False


def pods_denied(said: str) -> Denial:
    """Return what it means that a controller could not make pods, by what it says."""
    return Denial(f"its pods cannot be made: {plain(said)}", is_decided(said))


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long a denial lasts before the cluster is taken to refuse, seconds: a decision, and what may pass."""

    decided_s: float
    other_s: float


class Denials:
    """The denials of one cluster, by who told of them.

    Parameters
    ----------
    cluster
        Its name.
    later
        Has something called after so many seconds.
    told
        Called with an attempt of which something else is to be said.
    """

    def __init__(
        self,
        cluster: str,
        later: Callable[[float, Callable[[], None]], object],
        told: Callable[[Attempt], None],
        pauses: Pauses,
    ) -> None:
        self._cluster = cluster
        self._told = told
        self._pauses = pauses
        self._lasting: Lasting[Attempt] = Lasting(later)
        self._of: defaultdict[Attempt, dict[str, Denial]] = defaultdict(dict)
        self._by_source: dict[str, Attempt] = {}

    def __contains__(self, key: Attempt) -> bool:
        """Tell whether anything of an attempt is denied."""
        return key in self._of

    @property
    def wholes(self) -> set[Attempt]:
        """The attempts of which nothing may be there."""
        return {key for key, found in self._of.items() if any(each.whole for each in found.values())}

    def deny(self, key: Attempt, source: str, denial: Denial) -> None:
        """Take what a source says is denied of an attempt; the first that it said stands while it goes on."""
        before = self._of.get(key, {}).get(source)
        if before and before.decided == denial.decided:
            return
        self._by_source[source] = key
        self._of[key][source] = denial
        self._watch(key)
        self._told(key)

    def allow(self, source: str) -> None:
        """Note that a source says nothing is denied, any more."""
        key = self._by_source.pop(source, None)
        if key is not None:
            self._drop(key, source)
            self._watch(key)
            self._told(key)

    def weigh(self, key: Attempt, copy: Copy | None) -> Copy | None:
        """Say how a copy does, given what is denied of it; None when there is nothing of it, nor could be.

        Once every replica has a pod, what was said of its pods is over.
        """
        found = self._of.get(key)
        if not found:
            return copy
        if copy and (copy.phase is not CopyPhase.STARTING or all(each.pod for each in copy.replicas)):
            for source in [source for source, each in found.items() if not each.whole]:
                del self._by_source[source]
                self._drop(key, source)
            self._watch(key)
            return copy
        denials = sorted(found.values(), key=lambda each: not each.decided)
        if copy is None and not any(each.whole for each in denials):
            return None
        made = copy or Copy(*key, self._cluster, CopyPhase.STARTING)
        phase = CopyPhase.FAILED if key in self._lasting else CopyPhase.STARTING
        return replace(made, phase=phase, reason=denials[0].reason, cause=Cause.DENIED)

    def _drop(self, key: Attempt, source: str) -> None:
        del self._of[key][source]
        if not self._of[key]:
            del self._of[key]

    def _watch(self, key: Attempt) -> None:
        """Look again at an attempt when its denials have gone on for so long that they will."""
        found = self._of.get(key)
        if not found:
            self._lasting.end(key)
            return
        decided = any(each.decided for each in found.values())
        seconds = self._pauses.decided_s if decided else self._pauses.other_s
        self._lasting.begin(key, decided, seconds, lambda: self._told(key))
