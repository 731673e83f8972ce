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

from seaway.adapters.kubernetes.collect.limits import Debounce
from seaway.domain import job_spec as ids
from seaway.domain.deployment import Cause, Workload, WorkloadPhase

Attempt = tuple[str, int]

MAX_REASON_LENGTH = 500

FINAL_MESSAGES = (
    "is forbidden",
    "denied the request",
    "is invalid",
    "no matches for kind",
    "already exists in the cluster",
    "could not find the requested resource",
)
"""What is said where asking again does not help: somebody decided so."""

TRANSIENT_MESSAGES = (
    "error looking up service account",
    "failed calling webhook",
    "the object has been modified",
    "being terminated",
    "context deadline exceeded",
    "timed out",
    "timeout",
)
"""What is said where it may: of something that is not there yet, or did not answer."""

_PREFIXES = re.compile(
    r"^(\(combined from similar events\): |Failed to apply all manifests \(\d+/\d+\): |Error creating: "
    r"|create Pod \S+ in StatefulSet \S+ failed error: )+"
)
_POD_NAME = re.compile(r'[\w.-]+ "[^"]*" is forbidden: ')
"""Names of pods are made up again with every try: they say nothing, and every reason would be another."""

_NAME = re.compile(r"(?:^|-)sw-([0-9a-z]+)-([0-9]{1,9})(?:-|$)")


def attempt_named(name: str) -> Attempt | None:
    """Return the job and attempt of an object of Seaway's, or of what a controller made of one, by its name."""
    found = _NAME.search(name)
    return (found[1], int(found[2])) if found and ids.decode(found[1]) is not None else None


def short_reason(message: str) -> str:
    """Say in short why something is denied."""
    line = _POD_NAME.sub("", _PREFIXES.sub("", " ".join(message.split())))
    return line if len(line) <= MAX_REASON_LENGTH else f"{line[:MAX_REASON_LENGTH]}…"


def is_final(message: str) -> bool:
    """Tell whether a denial is a user's decision, rather than something that may pass by itself."""
    return any(each in message for each in FINAL_MESSAGES) and not any(each in message for each in TRANSIENT_MESSAGES)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why something of an attempt is not made.

    Attributes
    ----------
    reason
        What people read.
    is_final
        Whether it is a user's decision.
    rejects_objects
        Whether it is the attempt's own objects that are denied, so that nothing of it may be there.
    """

    reason: str
    is_final: bool
    rejects_objects: bool = False


def pods_rejected(message: str) -> Rejection:
    """Return what it means that a controller could not make pods, by what it says."""
    return Rejection(f"its pods cannot be made: {short_reason(message)}", is_final(message))


@dataclass(frozen=True, slots=True)
class RejectionTimeouts:
    """How long a denial lasts before the cluster is taken to refuse, seconds: a decision, and what may pass."""

    final_s: float
    other_s: float


class Rejections:
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
        schedule: Callable[[float, Callable[[], None]], object],
        notify: Callable[[Attempt], None],
        pauses: RejectionTimeouts,
    ) -> None:
        self._cluster = cluster
        self._notify = notify
        self._pauses = pauses
        self._persistent: Debounce[Attempt] = Debounce(schedule)
        self._by_attempt: defaultdict[Attempt, dict[str, Rejection]] = defaultdict(dict)
        self._by_source: dict[str, Attempt] = {}

    def __contains__(self, key: Attempt) -> bool:
        """Tell whether anything of an attempt is denied."""
        return key in self._by_attempt

    @property
    def without_objects(self) -> set[Attempt]:
        """The attempts of which nothing may be there."""
        return {key for key, found in self._by_attempt.items() if any(each.rejects_objects for each in found.values())}

    def reject(self, key: Attempt, source: str, rejection: Rejection) -> None:
        """Take what a source says is denied of an attempt; the first that it said stands while it goes on."""
        before = self._by_attempt.get(key, {}).get(source)
        if before and before.is_final == rejection.is_final:
            return
        self._by_source[source] = key
        self._by_attempt[key][source] = rejection
        self._watch(key)
        self._notify(key)

    def allow(self, source: str) -> None:
        """Note that a source says nothing is denied, any more."""
        key = self._by_source.pop(source, None)
        if key is not None:
            self._drop(key, source)
            self._watch(key)
            self._notify(key)

    def apply(self, key: Attempt, workload: Workload | None) -> Workload | None:
        """Say how a copy does, given what is denied of it; None when there is nothing of it, nor could be.

        Once every replica has a pod, what was said of its pods is over.
        """
        found = self._by_attempt.get(key)
        if not found:
            return workload
        if workload and (workload.phase is not WorkloadPhase.STARTING or all(each.pod for each in workload.replicas)):
            for source in [source for source, each in found.items() if not each.rejects_objects]:
                del self._by_source[source]
                self._drop(key, source)
            self._watch(key)
            return workload
        denials = sorted(found.values(), key=lambda each: not each.is_final)
        if workload is None and not any(each.rejects_objects for each in denials):
            return None
        made = workload or Workload(*key, self._cluster, WorkloadPhase.STARTING)
        phase = WorkloadPhase.FAILED if key in self._persistent else WorkloadPhase.STARTING
        return replace(made, phase=phase, reason=denials[0].reason, cause=Cause.REJECTED)

    def _drop(self, key: Attempt, source: str) -> None:
        del self._by_attempt[key][source]
        if not self._by_attempt[key]:
            del self._by_attempt[key]

    def _watch(self, key: Attempt) -> None:
        """Look again at an attempt when its denials have gone on for so long that they will."""
        found = self._by_attempt.get(key)
        if not found:
            self._persistent.end(key)
            return
        decided = any(each.is_final for each in found.values())
        seconds = self._pauses.final_s if decided else self._pauses.other_s
        self._persistent.begin(key, decided, seconds, lambda: self._notify(key))
