"""All clusters of a folder of kubeconfigs: joined when a file appears there, left when it goes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Lock

from seaway.adapters.kubernetes.cluster import KubernetesCluster
from seaway.adapters.kubernetes.cluster_names import WHO, name_all, suffixed, who
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.informers import sources
from seaway.adapters.kubernetes.collect.owned import kinds_of
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.contexts import Context, cluster_name, find
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.event_loop import Reactor, in_thread
from seaway.adapters.kubernetes.deploy.deployer import Direct
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.options import Wishes
from seaway.application.clusters import ClusterNames
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.network import Gateway, Link

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Met:
    """A context, and what is known of where it leads.

    Attributes
    ----------
    says
        A digest of what its kubeconfig says of it.
    uid
        Who the cluster is; empty where that may not be read, None before it answered.
    cluster
        As it is followed; None for one that another context leads to already.
    health
        Of that. Nothing that the cluster says counts before its name is settled.
    asking
        Asks it who it is.
    settled
        Whether its name is kept.
    """

    says: str
    uid: str | None = None
    cluster: KubernetesCluster | None = None
    health: Health | None = None
    asking: Future[None] | None = None
    settled: bool = False

    def leave(self) -> None:
        """End following it."""
        if self.asking:
            self.asking.cancel()
        if self.cluster:
            self.cluster.close()
        self.cluster, self.settled = None, False


class KubernetesBackends:
    """`Backends` over the clusters that a folder's kubeconfigs reach.

    Parameters
    ----------
    folder
        Its files are looked at every time when somebody asks for the clusters.
    names
        What clusters are called; None to remember it for as long as this process lives.

    Raises
    ------
    RejectedError
        When the folder cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        wishes: Wishes | None = None,
        seed: int | None = None,
        names: ClusterNames | None = None,
    ) -> None:
        self._folder = folder
        self._wishes = wishes or Wishes()
        self._random = Random(seed)  # spreads retries; nothing secret
        self._names = names or ClusterNames()
        find(folder)
        self._reactor = Reactor()
        self._looking = Lock()
        self._closed = False
        self._met: dict[Context, _Met] = {}
        self._told: frozenset[str] = frozenset()

    def clusters(self) -> Sequence[KubernetesCluster]:
        """Return the clusters by name, as the folder has them now.

        Raises
        ------
        UnavailableError
            When the folder cannot be read right now, or the names of clusters cannot be.
        """
        with self._looking:
            self._look()
            followed = [each.cluster for each in self._met.values() if each.cluster]
            return tuple(sorted(followed, key=lambda each: each.cluster))

    def _look(self) -> None:
        """Join and leave clusters, so that they are those of the folder, by their names."""
        try:
            found = find(self._folder)
        except RejectedError as error:
            raise UnavailableError(error.message) from None
        there = {context: self._still(context) for context in found.contexts}
        if not all(met.settled for met in there.values()):
            self._names.read_anew()
        names = self._name(there)
        for context, left in self._met.items():
            if there.get(context) is not left:
                left.leave()
        self._met = there
        troubles = [*found.broken.values()]
        for context, met in there.items():
            name = names.get(context, "")
            if met.cluster and met.cluster.cluster != name:
                met.leave()
            if name and not met.cluster:
                self._join(context, met, name)
            if not name:
                what = self._names.of(met.uid, context.server)
                troubles.append(f"{_where(context)} leads to {what}, as another does; it is passed over")
        self._tell(troubles)
        self._settle(names)

    def _still(self, context: Context) -> _Met:
        """Return what is known of a context; nothing when its file says something else of it, whenever it was written.

        Whoever mounts a Secret writes all of its files anew when one changes.
        """
        before = self._met.get(context)
        return before if before and before.says == context.says else _Met(context.says)

    def _name(self, there: Mapping[Context, _Met]) -> dict[Context, str]:
        """Return what the clusters are to be called to which contexts lead."""
        called = {(each.file, each.context): met.cluster.cluster for each, met in self._met.items() if met.cluster}
        before = {each: name for each in there if (name := called.get((each.file, each.context)))}
        return name_all({each: met.uid for each, met in there.items()}, before, self._names)

    def _settle(self, names: Mapping[Context, str]) -> None:
        """Keep the names of clusters that said who they are; what those tell counts from then on."""
        for context, met in self._met.items():
            if met.uid is None or met.settled or not met.cluster or names.get(context) != met.cluster.cluster:
                continue
            name = met.cluster.cluster
            self._warn(context, name, known=self._names.of(met.uid, context.server) == name)
            self._names.keep(name, met.uid, context.server)
            met.settled = True
            assert met.health
            met.health.heard(WHO)

    def _warn(self, context: Context, name: str, *, known: bool) -> None:
        """Say when a context does not lead to the cluster that its name says."""
        plain = cluster_name(context.context)
        if known and name not in {plain, suffixed(context)}:
            log.warning("%s leads to the cluster that is known as %s, and is called so", _where(context), name)
        elif not known and name != plain and plain in self._names.taken():
            says = (
                "%s leads to another cluster than the one known as %s: it is called %s, and has none of that one's jobs"
            )
            log.warning(says, _where(context), plain, name)

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways; nothing tells of any yet."""
        return ()

    def links(self) -> Sequence[Link]:
        """Return the links; nothing measures any yet."""
        return ()

    def close(self) -> None:
        """Leave all clusters."""
        with self._looking:
            self._closed = True
            for met in self._met.values():
                met.leave()
        self._reactor.close()

    def _join(self, context: Context, met: _Met, name: str) -> None:
        """Begin to follow a cluster."""
        wishes = self._wishes
        api = Api(name, Credentials(context.file, context.context), call_s=wishes.call_s)
        met.health = health = Health((WHO, *sources(kinds_of(wishes.templates))))
        view = wishes.view(wishes.described(name), health, self._reactor)
        objects, options = Objects(api, wishes.namespace), wishes.options(view)
        deployer = Direct(objects, view, options, wishes.templates)
        met.cluster = KubernetesCluster(self._reactor, api, view, health, deployer, self._random, wishes.scraping)
        if met.uid is None:
            met.asking = self._reactor.keep(f"who {name} is", self._ask(met, api, health))

    async def _ask(self, met: _Met, api: Api, health: Health) -> None:
        """Find out who a cluster is, and keep its name where it has the right one; else the next look mends that."""
        met.uid = await who(api, health, self._random)
        in_thread(self._settle_soon)

    def _settle_soon(self) -> None:
        """Keep names that are right, in a thread that may wait."""
        with self._looking:
            if not self._closed:
                self._settle(self._name(self._met))

    def _tell(self, troubles: Sequence[str]) -> None:
        """Say once what is wrong with files and contexts."""
        for why in troubles:
            if why not in self._told:
                log.warning("%s", why)
        self._told = frozenset(troubles)


def _where(context: Context) -> str:
    return f"the context {context.context!r} of {context.file}"
