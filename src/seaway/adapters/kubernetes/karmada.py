"""All members of a Karmada control plane: seen through its proxy, told through its policies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from threading import Lock
from time import monotonic, sleep

from seaway.adapters.kubernetes.cluster import CLOSE_S, KubernetesCluster
from seaway.adapters.kubernetes.collect.health import SOURCE, Health, ping
from seaway.adapters.kubernetes.collect.informers import PINGS, KindInformers, KindSink, kind_sources, sources
from seaway.adapters.kubernetes.collect.owned import (
    PASSIVE_KINDS,
    SELECTOR,
    AttemptKey,
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
from seaway.adapters.kubernetes.deploy.karmada import KarmadaDeployer
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.objects.meta import Item, Meta, Part
from seaway.adapters.kubernetes.options import ClusterOptions
from seaway.adapters.kubernetes.templates.registry import KindName
from seaway.domain.errors import UnavailableError
from seaway.domain.network import Gateway, Link

LEFTOVER_INTERVAL_S = 30.0
"""How often it is looked for, seconds."""


class LeftoverTracker:
    """Has members tell of it, as of what never ran there. For one event loop.

    Parameters
    ----------
    owned
        What is there of each attempt in Karmada's control plane.
    """

    def __init__(self, owned: OwnerIndex) -> None:
        self._owned = owned
        self._before: set[AttemptKey] = set()

    def look(self, views: Mapping[str, ClusterView]) -> None:
        """Look for it: what a member has nothing of for the second time in a row is not just being written.

        Nothing is left whose workload is there, as it comes to its member however long that takes.

        Parameters
        ----------
        views
            The members, by name.
        """
        idle = self._owned.idle()
        there = {name: views[name].known() for name in {key[2] for key in idle} & views.keys()}
        lacking = {key for key in idle if key[2] in there and key[:2] not in there[key[2]]}
        lasting = lacking & self._before
        for name, view in views.items():
            view.set_leftovers(frozenset(key[:2] for key in lasting if key[2] == name))
        self._before = lacking


class MemberSpec(Part, frozen=True):
    """What is wanted of a member."""

    region: str = ""


class MemberObject(Part, frozen=True):
    """A member."""

    metadata: Meta = Meta()
    spec: MemberSpec = MemberSpec()


MEMBERS = Source("/apis/cluster.karmada.io/v1alpha1/clusters", MemberObject)


def proxy(name: str) -> str:
    """Return the path of the proxy to a member."""
    return f"{MEMBERS.path}/{name}/proxy"


class Members:
    """Keeps which members there are, for any thread."""

    def __init__(self) -> None:
        self._regions: dict[str, str] = {}

    def regions(self) -> dict[str, str]:
        """Return the members' regions, by name; empty where none is known."""
        return dict(self._regions)

    async def replace(self, items: Sequence[MemberObject]) -> None:
        """Take these for all members."""
        self._regions = {each.metadata.name: each.spec.region for each in items}

    def put(self, item: MemberObject) -> None:
        """Take a member as it is now."""
        self._regions = self._regions | {item.metadata.name: item.spec.region}

    def drop(self, item: MemberObject) -> None:
        """Note that a member left."""
        self._regions = {name: region for name, region in self._regions.items() if name != item.metadata.name}

    def broken(self, what: Broken) -> None:
        """Leave a member as it was."""


FIRST_LIST_TIMEOUT_S = 5.0
"""How long is waited for the first list of members."""

LEFTOVER_CHECK_S = 0.02

BOUND = Source(BINDINGS, BindingObject)
POLICIES = (
    Source("/apis/policy.karmada.io/v1alpha1/propagationpolicies", Item, SELECTOR),
    Source("/apis/policy.karmada.io/v1alpha1/overridepolicies", Item, SELECTOR),
)
"""What of Seaway's own objects is in Karmada's control plane only."""


class KarmadaBackends:
    """`Backends` over the members of a Karmada control plane.

    Parameters
    ----------
    kubeconfig
        Of the control plane; its current context.
    wishes
        How the members are to be used.

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
        self._random = Random(seed)  # spreads retries; nothing secret
        self._reactor = EventLoopThread()
        self._looking = Lock()
        self._api = Api("Karmada", credentials, request_timeout_s=self._cluster_options.request_timeout_s)
        self._objects = Objects(self._api, self._cluster_options.namespace)
        self._denied: dict[str, tuple[str, Attempt, Rejection]] = {}
        self._bindings = Bindings(self._api, self)
        self._owned = OwnerIndex(self._cluster_options.namespace, self._workload_gone)
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
            Until it is known which there are.
        """
        give_up_s = monotonic() + FIRST_LIST_TIMEOUT_S
        while not self._health.has(MEMBERS.path):
            if monotonic() > give_up_s:
                why = self._health.unreachable_reason(0).removeprefix("Karmada: ")
                raise UnavailableError(f"Karmada: {why}")
            sleep(LEFTOVER_CHECK_S)
        regions = self._members.regions()
        with self._looking:
            for name in self._clusters.keys() - regions.keys():
                self._clusters.pop(name).close()
            for name in regions.keys() - self._clusters.keys():
                self._clusters[name] = self._join(name, regions[name])
                self._reactor.submit(self._forward_rejections(name))
            return tuple(self._clusters[name] for name in sorted(self._clusters))

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways; nothing tells of any yet."""
        return ()

    def links(self) -> Sequence[Link]:
        """Return the links; nothing measures any yet."""
        return ()

    def close(self) -> None:
        """Leave all members."""
        for cluster in self._clusters.values():
            cluster.close()
        self._following.cancel()
        self._reactor.run(self._api.close(), CLOSE_S)
        self._reactor.close()

    def _join(self, name: str, region: str) -> KubernetesCluster:
        """Begin to follow a member."""
        api = self._api.proxied(name, proxy(name))
        health = Health(sources(self._kinds))
        view = self._cluster_options.view(self._cluster_options.cluster(name, region), health, self._reactor)
        options = self._cluster_options.template_options(view)
        deployer = KarmadaDeployer(
            self._objects, self._bindings, self._owned, self._health, options, self._cluster_options.templates
        )
        return KubernetesCluster(
            self._reactor, api, view, health, deployer, self._random, self._cluster_options.scraping
        )

    def _workload_gone(self, key: AttemptKey) -> None:
        """Have a member tell of an attempt whose workload is gone here: perhaps it was never sent there."""
        if member := self._clusters.get(key[2]):
            member.view.mark_missing(key[:2])

    def reject(self, cluster: str, key: Attempt, source: str, rejection: Rejection) -> None:
        """Have a member's view say what the member will not have, also one that comes later."""
        self._denied[source] = (cluster, key, rejection)
        if member := self._clusters.get(cluster):
            member.view.reject(key, source, rejection)

    def allow(self, source: str) -> None:
        """Have the views say no more that something is denied."""
        cluster = self._denied.pop(source, ("",))[0]
        if member := self._clusters.get(cluster):
            member.view.allow(source)

    async def _forward_rejections(self, cluster: str) -> None:
        """Tell a new member's view what is known already."""
        for source, (where, key, denial) in list(self._denied.items()):
            if where == cluster:
                self.reject(cluster, key, source, denial)

    async def _find_leftovers(self) -> None:
        """Have members tell, every so often, of what is left in the control plane only."""
        while True:
            await asyncio.sleep(LEFTOVER_INTERVAL_S)
            if self._health.complete:
                self._left.look({name: member.view for name, member in self._clusters.copy().items()})

    async def _follow(self) -> None:
        """Follow what is in the control plane itself: its members, and Seaway's own objects in their namespace."""
        namespace = self._cluster_options.namespace
        bound, bell = BOUND.within(namespace), WakeSignal()
        interval_s = self._cluster_options.limits.unreachable_timeout_s / PINGS

        def tried() -> Backoff:
            return Backoff(self._random, wake_signal=bell)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ping(self._api, self._health, self._random, interval_s, bell))
            tasks.create_task(reflect(self._api, MEMBERS, self._members, self._health, tried()))
            tasks.create_task(reflect(self._api, bound, self._bindings, self._health, tried()))
            for source in POLICIES:
                sink = OwnedSink(self._owned, source.path)
                tasks.create_task(reflect(self._api, source.within(namespace), sink, self._health, tried()))
            tasks.create_task(self._find_leftovers())
            own = KindInformers(self._api, namespace, self._health, tried, self._listener)
            tasks.create_task(own.run(self._kinds))

    def _listener(self, kind: KindName, path: str) -> KindSink:
        return KindSink(Item, OwnedSink(self._owned, path, runs=kind.qualified not in PASSIVE_KINDS))
