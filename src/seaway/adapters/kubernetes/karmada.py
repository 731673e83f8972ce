"""Members of a Karmada control plane, observed through its proxy and controlled through its policies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Lock
from time import monotonic, sleep

from seaway.adapters.kubernetes.cluster import CLOSE_S, ClusterOptions, KubernetesCluster
from seaway.adapters.kubernetes.collect.health import SOURCE, Health, ping
from seaway.adapters.kubernetes.collect.informers import PINGS, KindInformers, KindSink, kind_sources, sources
from seaway.adapters.kubernetes.collect.owned import (
    PASSIVE_KINDS,
    SELECTOR,
    AttemptKey,
    ObjectKey,
    OwnedSink,
    OwnerIndex,
    kinds_of,
)
from seaway.adapters.kubernetes.collect.reflector import Source, reflect
from seaway.adapters.kubernetes.collect.rejections import Attempt, Rejection
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff, WakeSignal
from seaway.adapters.kubernetes.connection.contexts import current_context
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.deploy.bindings import BINDINGS, BindingObject, Bindings
from seaway.adapters.kubernetes.deploy.karmada import KarmadaDeployer, KarmadaNamespaces
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.facts import MemberObject, member_facts
from seaway.adapters.kubernetes.objects.core import OwnedItem
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.rights import KARMADA, RIGHTS_S, Right, missing_rights
from seaway.adapters.kubernetes.templates.registry import KindName
from seaway.domain.deployment import ObjectDrift
from seaway.domain.errors import UnavailableError
from seaway.domain.facts import Facts
from seaway.domain.network import Gateway, Link
from seaway.domain.reasons import in_cluster
from seaway.domain.tenancy import DEFAULT

log = logging.getLogger(__name__)

LEFTOVER_INTERVAL_S = 30.0
"""Interval between two searches for leftovers, in seconds."""


class LeftoverTracker:
    """Detection of objects in Karmada's control plane whose attempt is missing in the member, for one event loop.

    Parameters
    ----------
    owned
        Objects of each attempt in Karmada's control plane.
    """

    def __init__(self, owned: OwnerIndex) -> None:
        self._owned = owned
        self._before: set[AttemptKey] = set()

    def look(self, views: Mapping[str, ClusterView]) -> None:
        """Mark attempts that are missing in a member in two consecutive searches.

        One search is not enough, because a write of the objects may be in progress. Attempts with a workload in the
        control plane are not leftovers: Karmada delivers them eventually.

        Parameters
        ----------
        views
            Views of the members, by name.
        """
        idle = self._owned.idle()
        there = {name: views[name].known() for name in {key[2] for key in idle} & views.keys()}
        lacking = {key for key in idle if key[2] in there and key[:2] not in there[key[2]]}
        lasting = lacking & self._before
        for name, view in views.items():
            view.set_leftovers(frozenset(key[:2] for key in lasting if key[2] == name))
        self._before = lacking


MEMBERS = Source("/apis/cluster.karmada.io/v1alpha1/clusters", MemberObject)


def proxy(name: str) -> str:
    """Return the path of the proxy to a member."""
    return f"{MEMBERS.path}/{name}/proxy"


class Members:
    """Cache of the member clusters, for any thread."""

    def __init__(self) -> None:
        self._facts: dict[str, Facts] = {}

    def facts(self) -> dict[str, Facts]:
        """Return the facts of the members by name."""
        return dict(self._facts)

    async def replace(self, items: Sequence[MemberObject]) -> None:
        """Replace all members."""
        self._facts = {each.metadata.name: self._read(each) for each in items}

    def put(self, item: MemberObject) -> None:
        """Add or update a member."""
        self._facts = self._facts | {item.metadata.name: self._read(item)}

    def drop(self, item: MemberObject) -> None:
        """Remove a member."""
        self._facts = {name: facts for name, facts in self._facts.items() if name != item.metadata.name}

    def _read(self, item: MemberObject) -> Facts:
        """Return the facts of a member, and log new problems of its labels."""
        facts, problems = member_facts(item)
        if facts != self._facts.get(item.metadata.name):
            for each in problems:
                log.warning("member %s of Karmada: %s", item.metadata.name, each)
        return facts

    def broken(self, what: Broken) -> None:
        """Ignore a member that cannot be decoded. Its previous version remains in the cache."""


FIRST_LIST_TIMEOUT_S = 5.0
"""Maximum time to wait for the first list of members, in seconds."""

LEFTOVER_CHECK_S = 0.02

BOUND = Source(BINDINGS, BindingObject)
POLICIES = (
    Source("/apis/policy.karmada.io/v1alpha1/propagationpolicies", OwnedItem, SELECTOR),
    Source("/apis/policy.karmada.io/v1alpha1/overridepolicies", OwnedItem, SELECTOR),
)
"""Kinds of Seaway's objects that exist only in Karmada's control plane."""


class KarmadaBackends:
    """`Backends` for the members of a Karmada control plane.

    Parameters
    ----------
    kubeconfig
        Kubeconfig of the control plane; its current context is used.
    cluster_options
        Options of the members.

    Raises
    ------
    RejectedError
        When the file is not a kubeconfig.
    """

    def __init__(
        self, kubeconfig: Path, cluster_options: ClusterOptions | None = None, seed: int | None = None
    ) -> None:
        credentials = Credentials(kubeconfig, current_context(kubeconfig))
        self._cluster_options = cluster_options or ClusterOptions()
        self._random = Random(seed)  # for jitter, not for security
        self._reactor = EventLoopThread()
        self._looking = Lock()
        self._api = Api("Karmada", credentials, request_timeout_s=self._cluster_options.request_timeout_s)
        names = self._cluster_options.namespaces
        self._objects = Objects(self._api)
        self._namespaces = KarmadaNamespaces(self._api, self._objects, names, self._cluster_options.namespace_options)
        self._denied: dict[str, tuple[str, Attempt, Rejection]] = {}
        self._bindings = Bindings(self._api, names, self)
        self._owned = OwnerIndex(names, self._workload_removed)
        self._left = LeftoverTracker(self._owned)
        self._members = Members()
        self._kinds = kinds_of(self._cluster_options.templates)
        policies = (each.path for each in POLICIES)
        self._health = Health([SOURCE, MEMBERS.path, BOUND.path, *policies, *kind_sources(self._kinds)])
        self._clusters: dict[str, KubernetesCluster] = {}
        self._following = self._reactor.run_forever("Karmada", self._follow())

    def clusters(self) -> Sequence[KubernetesCluster]:
        """Return the members by name.

        Raises
        ------
        UnavailableError
            When the members are not listed in time.
        """
        give_up_s = monotonic() + FIRST_LIST_TIMEOUT_S
        while not self._health.has(MEMBERS.path):
            if monotonic() > give_up_s:
                raise UnavailableError(in_cluster("Karmada", self._health.unreachable_reason(0)))
            sleep(LEFTOVER_CHECK_S)
        members = self._members.facts()
        with self._looking:
            for name in self._clusters.keys() - members.keys():
                self._clusters.pop(name).close()
            for name, cluster in self._clusters.items():
                cluster.view.describe(self._cluster_options.cluster(name, members[name]))
            for name in members.keys() - self._clusters.keys():
                self._clusters[name] = self._join(name, members[name])
                self._reactor.submit(self._forward_rejections(name))
            return tuple(self._clusters[name] for name in sorted(self._clusters))

    def missing_rights(self) -> list[Right]:
        """Return the rights that Seaway lacks in the control plane; raise as `KubernetesCluster.missing_rights`."""
        namespace = self._cluster_options.namespaces.of(DEFAULT)
        return self._reactor.run(missing_rights(self._api, KARMADA, namespace), RIGHTS_S)

    def gateways(self) -> Sequence[Gateway]:
        """Return no gateways: these backends report none."""
        return ()

    def links(self) -> Sequence[Link]:
        """Return no links: these backends measure none."""
        return ()

    def close(self) -> None:
        """Stop following all members."""
        for cluster in self._clusters.values():
            cluster.close()
        self._following.cancel()
        self._reactor.run(self._api.close(), CLOSE_S)
        self._reactor.close()

    def _join(self, name: str, facts: Facts) -> KubernetesCluster:
        """Start to follow a member."""
        api = self._api.proxied(name, proxy(name))
        health = Health(sources(self._kinds))
        view = self._cluster_options.view(self._cluster_options.cluster(name, facts), health, self._reactor)
        options = self._cluster_options.template_options(view, shared=True)
        deployer = KarmadaDeployer(
            self._objects,
            self._namespaces,
            self._bindings,
            self._owned,
            self._health,
            options,
            self._cluster_options.templates,
        )
        return KubernetesCluster(
            self._reactor, api, view, health, deployer, self._random, self._cluster_options.scraping
        )

    def _workload_removed(self, key: AttemptKey) -> None:
        """Mark an attempt as missing in its member when its workload in the control plane is gone.

        Karmada may never have delivered the workload.
        """
        if member := self._clusters.get(key[2]):
            member.view.mark_missing(key[:2])

    def reject(self, cluster: str, key: Attempt, source: str, rejection: Rejection) -> None:
        """Report a rejection to the member's view, now or when the member joins."""
        self._denied[source] = (cluster, key, rejection)
        if member := self._clusters.get(cluster):
            member.view.reject(key, source, rejection)

    def attempt_of(self, kind: str, full_name: str) -> Attempt | None:
        """Return the attempt of an object of the control plane; None if it is unknown."""
        found = self._owned.find(kind, full_name)
        return found[:2] if found else None

    def allow(self, source: str) -> None:
        """Withdraw a rejection from the views."""
        cluster = self._denied.pop(source, ("",))[0]
        if member := self._clusters.get(cluster):
            member.view.allow(source)

    async def _forward_rejections(self, cluster: str) -> None:
        """Report the current rejections to a new member's view."""
        for source, (where, key, denial) in list(self._denied.items()):
            if where == cluster:
                self.reject(cluster, key, source, denial)

    async def _find_leftovers(self) -> None:
        """Search for leftovers in the control plane at regular intervals."""
        while True:
            await asyncio.sleep(LEFTOVER_INTERVAL_S)
            if self._health.complete:
                self._left.look({name: member.view for name, member in self._clusters.copy().items()})

    async def _follow(self) -> None:
        """Follow the control plane's own objects: its members, and Seaway's objects."""
        namespaces = self._cluster_options.namespaces
        bound, bell = BOUND.across(namespaces), WakeSignal()
        interval_s = self._cluster_options.limits.unreachable_timeout_s / PINGS

        def tried() -> Backoff:
            return Backoff(self._random, wake_signal=bell)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ping(self._api, self._health, self._random, interval_s, bell))
            tasks.create_task(reflect(self._api, MEMBERS, self._members, self._health, tried()))
            tasks.create_task(reflect(self._api, bound, self._bindings, self._health, tried()))
            for source in POLICIES:
                sink = OwnedSink(self._owned, source.path, drifted=self._drifted)
                tasks.create_task(reflect(self._api, source.across(namespaces), sink, self._health, tried()))
            tasks.create_task(self._find_leftovers())
            own = KindInformers(self._api, namespaces, self._health, tried, self._listener)
            tasks.create_task(own.run(self._kinds))

    def _listener(self, kind: KindName, path: str) -> KindSink:
        runs = kind.qualified not in PASSIVE_KINDS
        return KindSink(OwnedItem, OwnedSink(self._owned, path, runs=runs, drifted=self._drifted))

    def _drifted(self, key: AttemptKey, place: ObjectKey, drift: ObjectDrift) -> None:
        """Report to the member what others changed in an object of the control plane; without a text, nothing."""
        if member := self._clusters.get(key[2]):
            text = drift.text and f"Karmada's {drift.text}"
            member.view.set_drift(key[:2], (f"Karmada {place[0]}", place[1]), replace(drift, text=text))
