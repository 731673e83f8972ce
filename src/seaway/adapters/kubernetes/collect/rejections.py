"""Rejections by a cluster of an attempt's objects or pods, and their duration.

Pods are rejected when their controller creates them (a quota, Pod Security, a webhook). Only an event reports this, or
a condition for some kinds. Objects are rejected when Karmada applies them in its members.

References
----------
Kubernetes documentation, "Resource Quotas", "Pod Security Admission", "Dynamic Admission Control".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from seaway.adapters.kubernetes.collect.changes import Debounce
from seaway.domain import job_spec as ids
from seaway.domain.deployment import FINISHED_PHASES, Cause, Workload, WorkloadPhase
from seaway.domain.reasons import Reason

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
"""Messages of rejections by policy. Retries do not help."""

TRANSIENT_MESSAGES = (
    "error looking up service account",
    "failed calling webhook",
    "the object has been modified",
    "being terminated",
    "context deadline exceeded",
    "timed out",
    "timeout",
)
"""Messages of temporary failures: an object is missing, or a component did not answer. Retries may help."""

_PREFIXES = re.compile(
    r"^(\(combined from similar events\): |Failed to apply all manifests \(\d+/\d+\): |Error creating: "
    r"|create Pod \S+ in StatefulSet \S+ failed error: )+"
)
_POD_NAME = re.compile(r'(?<![\w.-])[\w.-]+ "[^"]*" is forbidden: ')
"""Generated pod names, which differ in every try. They are removed so that equal reasons have equal texts."""

_NAME = re.compile(r"(?:^|-)sw-([0-9a-z]+)-([0-9]{1,9})(?:-|$)")


def attempt_named(name: str) -> Attempt | None:
    """Return the job and attempt in the name of a Seaway object, or of an object that a controller created from it."""
    found = _NAME.search(name)
    return (found[1], int(found[2])) if found and ids.decode(found[1]) is not None else None


def short_reason(message: str) -> str:
    """Return a short form of a rejection message."""
    line = _POD_NAME.sub("", _PREFIXES.sub("", " ".join(message.split())))
    return line if len(line) <= MAX_REASON_LENGTH else f"{line[:MAX_REASON_LENGTH]}…"


def is_final(message: str) -> bool:
    """Report whether a rejection is a policy decision, not a temporary failure."""
    return any(each in message for each in FINAL_MESSAGES) and not any(each in message for each in TRANSIENT_MESSAGES)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Rejection of an attempt's objects or pods.

    Attributes
    ----------
    reason
        Text for users.
    is_final
        True for a policy decision.
    rejects_objects
        True if the attempt's own objects are rejected, so that possibly none of them exists.
    never_created
        True if the rejected object has never existed, so that even a workload that runs is incomplete.
    """

    reason: str
    is_final: bool
    rejects_objects: bool = False
    never_created: bool = False


def pods_rejected(message: str) -> Rejection:
    """Return the rejection for a controller's message that it could not create pods."""
    return Rejection(Reason("pods_not_created", why=short_reason(message)), is_final(message))


@dataclass(frozen=True, slots=True)
class RejectionTimeouts:
    """Timeouts in seconds after which a policy rejection, or another one, counts as final."""

    final_s: float
    other_s: float


class Rejections:
    """Rejections of one cluster, by source.

    Parameters
    ----------
    cluster
        Name of the cluster.
    schedule
        Schedules a call after a number of seconds.
    notify
        Called with an attempt whose state changed.
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
        """Report whether an attempt has a rejection."""
        return key in self._by_attempt

    @property
    def without_objects(self) -> set[Attempt]:
        """Attempts whose own objects are rejected, so that possibly none of them exists."""
        return {key for key, found in self._by_attempt.items() if any(each.rejects_objects for each in found.values())}

    def reject(self, key: Attempt, source: str, rejection: Rejection) -> None:
        """Record a source's rejection of an attempt. Later messages of the same source and kind do not replace it."""
        before = self._by_attempt.get(key, {}).get(source)
        if before and before.is_final == rejection.is_final:
            return
        self._by_source[source] = key
        self._by_attempt[key][source] = rejection
        self._watch(key)
        self._notify(key)

    def allow(self, source: str) -> None:
        """Withdraw the rejection of a source."""
        key = self._by_source.pop(source, None)
        if key is not None:
            self._drop(key, source)
            self._watch(key)
            self._notify(key)

    def apply(self, key: Attempt, workload: Workload | None) -> Workload | None:
        """Return the workload with the state that results from its rejections; None if it does not exist.

        Rejections of pods end when every replica has a pod. A running workload fails without an object that it never
        got, such as its service; a rejected change of an object that exists does not stop it.
        """
        found = self._by_attempt.get(key)
        if not found:
            return workload
        if workload and (workload.phase is not WorkloadPhase.STARTING or all(each.pod for each in workload.replicas)):
            for source in [source for source, each in found.items() if not each.rejects_objects]:
                del self._by_source[source]
                self._drop(key, source)
            self._watch(key)
            incomplete = workload.phase not in FINISHED_PHASES and any(each.never_created for each in found.values())
            if not (incomplete and key in self._persistent):
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
        """Start the timeout of an attempt's rejections."""
        found = self._by_attempt.get(key)
        if not found:
            self._persistent.end(key)
            return
        decided = any(each.is_final for each in found.values())
        seconds = self._pauses.final_s if decided else self._pauses.other_s
        self._persistent.begin(key, decided, seconds, lambda: self._notify(key))
