"""Scheduling of Karmada's bindings: Seaway assigns to each binding the cluster in its policy.

References
----------
work.karmada.io/v1alpha2 ResourceBinding; policies name their scheduler in ``spec.schedulerName``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Protocol

from seaway.adapters.kubernetes.collect.rejections import Attempt, Rejection, attempt_named, is_final, short_reason
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.objects.core import Meta, Part
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.templates.karmada import SCHEDULER
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import Reason

log = logging.getLogger(__name__)

BINDINGS = "/apis/work.karmada.io/v1alpha2/resourcebindings"
MAX_CONCURRENT = 16
RETRY_INTERVAL_S = 1.0


class ClusterAffinity(Part, frozen=True):
    """Clusters that a policy allows."""

    cluster_names: tuple[str, ...] = ()


class BindingPlacement(Part, frozen=True):
    """Placement of a policy."""

    cluster_affinity: ClusterAffinity = ClusterAffinity()


class Target(Part, frozen=True):
    """Cluster that a binding is assigned to."""

    name: str = ""
    replicas: int = 0


class Resource(Part, frozen=True):
    """Resource that a binding refers to."""

    kind: str = ""
    name: str = ""


class BindingSpec(Part, frozen=True):
    """Specification of a binding."""

    resource: Resource = Resource()
    scheduler_name: str = ""
    replicas: int = 0
    clusters: tuple[Target, ...] = ()
    placement: BindingPlacement = BindingPlacement()


class Aggregated(Part, frozen=True):
    """Status of a binding's object in one cluster. The message is the reason for an object that is not applied."""

    cluster_name: str = ""
    applied: bool = False
    applied_message: str = ""


class BindingStatus(Part, frozen=True):
    """Status of a binding's object."""

    aggregated_status: tuple[Aggregated, ...] = ()


class BindingObject(Part, frozen=True):
    """A ResourceBinding."""

    metadata: Meta = Meta()
    spec: BindingSpec = BindingSpec()
    status: BindingStatus = BindingStatus()


class RejectionSink(Protocol):
    """Receiver of rejections by members. It runs on the event loop."""

    def reject(self, cluster: str, key: Attempt, source: str, rejection: Rejection) -> None:
        """Record a source's rejection of an attempt by a member."""

    def allow(self, source: str) -> None:
        """Withdraw the rejection of a source."""

    def attempt_of(self, kind: str, full_name: str) -> Attempt | None:
        """Return the attempt of an object whose name does not have it, such as a service; None if it is unknown."""


class Bindings:
    """Assignment of Seaway's bindings to the clusters in their policies, for one event loop.

    It also corrects bindings that others changed.

    Parameters
    ----------
    api
        Karmada's API server.
    names
        Namespaces of Seaway's objects.
    rejections
        Receiver of rejections by members.
    """

    def __init__(self, api: Api, names: Namespaces, rejections: RejectionSink) -> None:
        self._api = api
        self._names = names
        self._rejections = rejections
        self._bound: dict[str, tuple[Target, ...]] = {}
        self._applied: dict[str, dict[str, str]] = {}
        """Members of bindings that Karmada schedules, with the error of each; empty if it is applied."""
        self._uncreated: set[str] = set()
        """Bindings that were new when they were first seen, and whose objects no member has had since."""
        self._errors: dict[str, ApiError] = {}
        """Errors of the latest tries to assign bindings."""
        self._waiters: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self._free = asyncio.Semaphore(MAX_CONCURRENT)
        self._tasks: set[asyncio.Task[None]] = set()

    async def bound(self, names: Sequence[str], within_s: float) -> None:
        """Wait until bindings, ``namespace/name``, have their clusters.

        Raises
        ------
        ApiError
            When Karmada refuses an assignment.
        UnavailableError
            On a timeout, because Karmada has not created the bindings yet or does not answer.
        """
        try:
            async with asyncio.timeout(within_s):
                for name in names:
                    while not self._bound.get(name):
                        if refused := self._errors.get(name):
                            raise refused
                        await self._next_change(name)
        except TimeoutError:
            missing = next((name for name in names if not self._bound.get(name)), names[-1])
            raise UnavailableError(f"Karmada has not bound {missing} within {within_s:g} s") from None

    async def applied(self, names: Sequence[str], cluster: str, within_s: float) -> None:
        """Wait until a member has the objects of bindings that Karmada schedules, ``namespace/name``.

        Raises
        ------
        UnavailableError
            On a timeout, with Karmada's message.
        """
        for name in names:
            try:
                async with asyncio.timeout(within_s):
                    while self._applied.get(name, {}).get(cluster, "missing"):
                        await self._next_change(name)
            except TimeoutError:
                why = self._applied.get(name, {}).get(cluster) or "the binding has no such cluster"
                raise UnavailableError(f"{name} has not reached {cluster} within {within_s:g} s: {why}") from None

    async def _next_change(self, name: str) -> None:
        """Wait for the next change of a binding."""
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[name].add(changed)
        try:
            await changed
        finally:
            self._waiters[name].discard(changed)
            if not self._waiters[name]:
                del self._waiters[name]

    def _wake(self, name: str) -> None:
        """Wake the tasks that wait for a binding."""
        for changed in self._waiters.get(name, ()):
            if not changed.done():
                changed.set_result(None)

    # Updates of bindings.

    async def replace(self, items: Sequence[BindingObject]) -> None:
        """Replace all bindings."""
        for name in self._bound.keys() - {each.metadata.full_name for each in items}:
            self._rejections.allow(_source(name))
        self._bound.clear()
        self._applied.clear()
        self._errors.clear()
        self._uncreated &= {each.metadata.full_name for each in items}
        for each in items:
            self.put(each)

    def put(self, item: BindingObject) -> None:
        """Add or update a binding, and correct its clusters."""
        spec, name = item.spec, item.metadata.full_name
        if not self._names.matches(item.metadata.namespace):
            return
        if spec.scheduler_name != SCHEDULER:
            self._applied[name] = {each.cluster_name: _error(each) for each in item.status.aggregated_status}
            self._wake(name)
            return
        wanted = _desired_clusters(spec)
        self._bound[name] = spec.clusters if spec.clusters == wanted else ()
        self._errors.pop(name, None)
        if wanted and spec.clusters != wanted:
            self._begin(self._bind(item.metadata, wanted))
        self._report_rejection(name, item)
        self._wake(name)

    def drop(self, item: BindingObject) -> None:
        """Remove a binding."""
        name = item.metadata.full_name
        self._bound.pop(name, None)
        self._applied.pop(name, None)
        self._errors.pop(name, None)
        self._uncreated.discard(name)
        self._rejections.allow(_source(name))

    def broken(self, what: Broken) -> None:
        """Log a binding that cannot be decoded."""
        log.warning("%s: the binding %s/%s cannot be read: %s", self._api.name, what.namespace, what.name, what.text)

    def _report_rejection(self, name: str, item: BindingObject) -> None:
        """Report or withdraw a member's rejection of a binding's object."""
        members = item.status.aggregated_status
        if not members:
            self._uncreated.add(name)
        elif any(each.applied for each in members):
            self._uncreated.discard(name)
        denied = [each for each in members if each.applied_message and not each.applied]
        kind, short = item.spec.resource.kind, item.spec.resource.name
        key = attempt_named(short) if denied else None
        if denied and key is None:
            key = self._rejections.attempt_of(kind, f"{item.metadata.namespace}/{short}")
        if key and denied:
            said = denied[0].applied_message
            denial = Rejection(
                Reason("object_not_created", kind=kind, why=short_reason(said)),
                is_final(said),
                rejects_objects=True,
                never_created=name in self._uncreated,
            )
            self._rejections.reject(denied[0].cluster_name, key, _source(name), denial)
        else:
            self._rejections.allow(_source(name))

    async def _bind(self, meta: Meta, clusters_wanted: tuple[Target, ...]) -> None:
        clusters: list[dict[str, Any]] = [
            {"name": each.name} | ({"replicas": each.replicas} if each.replicas else {}) for each in clusters_wanted
        ]
        path = f"/apis/work.karmada.io/v1alpha2/namespaces/{meta.namespace}/resourcebindings/{meta.name}"
        body = {"metadata": {"resourceVersion": meta.resource_version}, "spec": {"clusters": clusters}}
        name, forbidden = meta.full_name, False
        while not self._bound.get(name, clusters_wanted):
            try:
                async with self._free:
                    await self._api.patch(path, body)
            except ApiError as error:
                if error.conflict or error.missing:  # the next event has the current state
                    return
                if not error.transient and (forbidden or not error.forbidden):
                    log.warning("%s: %s cannot be bound: %s", self._api.name, name, error)
                    self._errors[name] = error
                    self._wake(name)
                    return
                forbidden = error.forbidden and not error.transient  # a second refusal is final
                await asyncio.sleep(RETRY_INTERVAL_S)
            except UnavailableError as error:
                log.warning("%s: %s is not bound yet: %s", self._api.name, name, error)
                await asyncio.sleep(RETRY_INTERVAL_S)
            else:
                return

    def _begin(self, work: Any) -> None:  # noqa: ANN401  # a coroutine
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _error(item: Aggregated) -> str:
    """Return the reason why an object is not applied in a member; empty if it is applied."""
    return "" if item.applied else item.applied_message or "it is not applied yet"


def _source(name: str) -> str:
    return f"binding {name}"


def _desired_clusters(spec: BindingSpec) -> tuple[Target, ...]:
    """Return the desired clusters of a binding: the only cluster of its policy, with all replicas."""
    names = spec.placement.cluster_affinity.cluster_names
    return (Target(names[0], spec.replicas),) if len(names) == 1 else ()
