"""Reasons of Kueue for not admitting jobs, read from its Workloads. Kueue creates a Workload for every Job.

References
----------
kueue.x-k8s.io/v1beta1 and v1beta2 Workload (Kueue 0.8 to 0.19): ``spec.active``, ``status.conditions``,
``status.admissionChecks``. From 0.19 on, reasons for a missing quota reservation are finer (KEP-10852); earlier
versions have ``Inadmissible`` and ``Pending``. A Workload belongs to its Job by its owner references.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from seaway.adapters.kubernetes.collect.attempts import Gate
from seaway.adapters.kubernetes.collect.health import OptionalHealth
from seaway.adapters.kubernetes.collect.reflector import ABSENT_RETRY_S, Source, reflect
from seaway.adapters.kubernetes.collect.rejections import Attempt, attempt_named, short_reason
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff
from seaway.adapters.kubernetes.connection.discovery import Discovery
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.objects.core import Condition, Meta, Part
from seaway.adapters.kubernetes.objects.decode import Broken, UndecodableError
from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import Reason

GROUP = "kueue.x-k8s.io"
KIND = "Workload"

PERMANENT = frozenset(
    {"Inadmissible", "Misconfigured", "Suspended", "NoMatchingFlavor", "ExceedsMaxQuota", "Deactivated"}
)
"""Reasons for a missing quota reservation that free quota does not resolve: queues are missing, stopped or too
small.
"""

NO_REASON = "PendingEvaluation"
"""Reason that Kueue reports before it has evaluated the Workload."""

_FIGURE = re.compile(r"\d\S*")


class WorkloadSpec(Part, frozen=True):
    """Specification of a Workload."""

    active: bool = True


class AdmissionCheck(Part, frozen=True):
    """An admission check of a Workload."""

    name: str = ""
    state: str = ""
    message: str = ""


class WorkloadStatus(Part, frozen=True):
    """Status of a Workload."""

    conditions: tuple[Condition, ...] = ()
    admission_checks: tuple[AdmissionCheck, ...] = ()


class KueueWorkload(Part, frozen=True):
    """A Workload of Kueue."""

    metadata: Meta = Meta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


def read_gate(workload: KueueWorkload) -> Gate | None:
    """Return the reason why Kueue does not admit a Workload or evicted it; None if it is admitted or not evaluated."""
    known = {each.type: each for each in workload.status.conditions}
    true = {name for name, each in known.items() if each.status == "True"}
    if "Finished" in true:
        return None
    if "Evicted" not in true:
        return None if "Admitted" in true else _not_admitted(workload, known.get("QuotaReserved", Condition()))
    said = Reason("kueue_evicted", why=short_reason(known["Evicted"].message or known["Evicted"].reason))
    hold = _not_admitted(workload, known.get("QuotaReserved", Condition()))
    return replace(hold, evicted=said) if hold else Gate(said, evicted=said)


def _not_admitted(workload: KueueWorkload, quota: Condition) -> Gate | None:
    """Return the gate of a Workload that is not admitted; None if the reason is unknown."""
    if not workload.spec.active:
        return Gate(Reason("kueue_does_not_admit", why=Reason("workload_deactivated")), is_permanent=True)
    if quota.status == "True":
        check = next((each for each in workload.status.admission_checks if each.state != "Ready"), None)
        if check is None:
            return None
        why = Reason("admission_check", check=check.name, status=check.state, why=short_reason(check.message))
        return Gate(Reason("kueue_does_not_admit", why=why))
    if quota.status != "False" or quota.reason == NO_REASON:
        return None
    said = short_reason(quota.message or quota.reason)
    return Gate(Reason("kueue_does_not_admit", why=said), quota.reason in PERMANENT)


def _attempt(workload: KueueWorkload) -> Attempt | None:
    """Return the attempt that owns a Workload."""
    owner = next((each for each in workload.metadata.owner_references if each.controller), None)
    return attempt_named(owner.name) if owner else None


class KueueSink:
    """Receiver of Kueue's Workloads that reports gates to a view.

    Numbers in reasons change often when many Workloads wait. Changes that affect only numbers are not reported.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._known: dict[str, tuple[Attempt, Gate]] = {}

    async def replace(self, items: Sequence[KueueWorkload]) -> None:
        """Replace all Workloads."""
        for name in self._known.keys() - {each.metadata.full_name for each in items}:
            self._forget(name)
        for each in items:
            self.put(each)

    def put(self, item: KueueWorkload) -> None:
        """Add or update a Workload."""
        name, key, hold = item.metadata.full_name, _attempt(item), read_gate(item)
        if key is None or hold is None or not self._view.namespaces.matches(item.metadata.namespace):
            self._forget(name)
        elif name not in self._known or not _same_gate(self._known[name][1], hold):
            self._known[name] = (key, hold)
            self._view.set_gate(key, name, hold)

    def drop(self, item: KueueWorkload) -> None:
        """Remove a Workload."""
        self._forget(item.metadata.full_name)

    def broken(self, what: Broken) -> None:
        """Remove a Workload that cannot be decoded."""
        self._forget(f"{what.namespace}/{what.name}")

    def _forget(self, name: str) -> None:
        if name in self._known:
            self._view.set_gate(self._known.pop(name)[0], name, None)


def _same_gate(one: Gate, other: Gate) -> bool:
    before, after = ((each.is_permanent, each.evicted, _FIGURE.sub("", each.reason)) for each in (one, other))
    return before == after


async def follow_kueue(api: Api, view: ClusterView, new_backoff: Callable[[], Backoff]) -> None:
    """Report the gates of Kueue to a view until cancelled.

    A cluster may lack Kueue, and Seaway may lack the permission to list its Workloads.
    """
    sink, health, looks = KueueSink(view), OptionalHealth(f"{view.name}: Kueue's Workloads"), new_backoff()
    while True:  # an upgraded Kueue may serve another version only
        path = await _path(api, looks)
        source = Source(path, KueueWorkload, optional=True, versioned=True).across(view.namespaces)
        await reflect(api, source, sink, health, new_backoff())
        await looks.pause()


async def _path(api: Api, backoff: Backoff) -> str:
    """Wait until a cluster has Kueue; return the path of its Workloads in the server's preferred version."""
    discovery = Discovery(api)
    while True:
        try:
            version = await discovery.version(GROUP)
            found = await discovery.kind(version, KIND) if version else None
        except (ApiError, UnavailableError, UndecodableError):
            await backoff.pause()
            continue
        if found:
            return found.path
        await asyncio.sleep(ABSENT_RETRY_S)
