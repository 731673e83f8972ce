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
from seaway.adapters.kubernetes.cluster_names import IDENTITY_PATH, assign_names, read_identity, suffixed
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.informers import sources
from seaway.adapters.kubernetes.collect.owned import kinds_of
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.contexts import Context, cluster_name, find
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread, in_thread
from seaway.adapters.kubernetes.deploy.deployer import DirectDeployer
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.options import ClusterOptions
from seaway.application.clusters import ClusterNames
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.network import Gateway, Link

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _ContextState:
    """A context, and what is known of where it leads.

    Attributes
    ----------
    digest
        A digest of what its kubeconfig says of it.
    uid
        Who the cluster is; empty where that may not be read, None before it answered.
    cluster
        As it is followed; None for one that another context leads to already.
    health
        Of that. Nothing that the cluster says counts before its name is settled.
    identifying
        Asks it who it is.
    confirmed
        Whether its name is kept.
    """

    digest: str
    uid: str | None = None
    cluster: KubernetesCluster | None = None
    health: Health | None = None
    identifying: Future[None] | None = None
    confirmed: bool = False

    def leave(self) -> None:
        """End following it."""
        if self.identifying:
            self.identifying.cancel()
        if self.cluster:
            self.cluster.close()
        self.cluster, self.confirmed = None, False


class KubernetesBackends:
    """`Backends` over the clusters that a folder's kubeconfigs reach.

    Parameters
    ----------
    folder
        Its files are looked at every time when a user asks for the clusters.
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
        cluster_options: ClusterOptions | None = None,
        seed: int | None = None,
        names: ClusterNames | None = None,
    ) -> None:
        self._folder = folder
        self._cluster_options = cluster_options or ClusterOptions()
        self._random = Random(seed)  # spreads retries; nothing secret
        self._names = names or ClusterNames()
        find(folder)
        self._reactor = EventLoopThread()
        self._lock = Lock()
        self._closed = False
        self._contexts: dict[Context, _ContextState] = {}
        self._reported: frozenset[str] = frozenset()

    def clusters(self) -> Sequence[KubernetesCluster]:
        """Return the clusters by name, as the folder has them now.

        Raises
        ------
        UnavailableError
            When the folder cannot be read right now, or the names of clusters cannot be.
        """
        with self._lock:
            self._sync()
            followed = [each.cluster for each in self._contexts.values() if each.cluster]
            return tuple(sorted(followed, key=lambda each: each.cluster))

    def _sync(self) -> None:
        """Join and leave clusters, so that they are those of the folder, by their names."""
        try:
            found = find(self._folder)
        except RejectedError as error:
            raise UnavailableError(error.message) from None
        there = {context: self._state_of(context) for context in found.contexts}
        if not all(met.confirmed for met in there.values()):
            self._names.reload()
        names = self._assign_names(there)
        for context, left in self._contexts.items():
            if there.get(context) is not left:
                left.leave()
        self._contexts = there
        problems = [*found.broken.values()]
        for context, met in there.items():
            name = names.get(context, "")
            if met.cluster and met.cluster.cluster != name:
                met.leave()
            if name and not met.cluster:
                self._join(context, met, name)
            if not name:
                what = self._names.of(met.uid, context.server)
                problems.append(f"{_context_text(context)} leads to {what}, as another does; it is passed over")
        self._log_problems(problems)
        self._confirm_names(names)

    def _state_of(self, context: Context) -> _ContextState:
        """Return what is known of a context; nothing when its file says something else of it, whenever it was written.

        Whoever mounts a Secret writes all of its files again when one changes.
        """
        before = self._contexts.get(context)
        return before if before and before.digest == context.digest else _ContextState(context.digest)

    def _assign_names(self, there: Mapping[Context, _ContextState]) -> dict[Context, str]:
        """Return what the clusters are to be called to which contexts lead."""
        called = {(each.file, each.context): met.cluster.cluster for each, met in self._contexts.items() if met.cluster}
        before = {each: name for each in there if (name := called.get((each.file, each.context)))}
        return assign_names({each: met.uid for each, met in there.items()}, before, self._names)

    def _confirm_names(self, names: Mapping[Context, str]) -> None:
        """Keep the names of clusters that said who they are; what those tell counts from then on."""
        for context, met in self._contexts.items():
            if met.uid is None or met.confirmed or not met.cluster or names.get(context) != met.cluster.cluster:
                continue
            name = met.cluster.cluster
            self._warn_of_name(context, name, known=self._names.of(met.uid, context.server) == name)
            self._names.keep(name, met.uid, context.server)
            met.confirmed = True
            assert met.health
            met.health.succeeded(IDENTITY_PATH)

    def _warn_of_name(self, context: Context, name: str, *, known: bool) -> None:
        """Say when a context does not lead to the cluster that its name says."""
        plain = cluster_name(context.context)
        if known and name not in {plain, suffixed(context)}:
            log.warning("%s leads to the cluster that is known as %s, and is called so", _context_text(context), name)
        elif not known and name != plain and plain in self._names.taken():
            says = (
                "%s leads to another cluster than the one known as %s: it is called %s, and has none of that one's jobs"
            )
            log.warning(says, _context_text(context), plain, name)

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways; nothing tells of any yet."""
        return ()

    def links(self) -> Sequence[Link]:
        """Return the links; nothing measures any yet."""
        return ()

    def close(self) -> None:
        """Leave all clusters."""
        with self._lock:
            self._closed = True
            for met in self._contexts.values():
                met.leave()
        self._reactor.close()

    def _join(self, context: Context, met: _ContextState, name: str) -> None:
        """Begin to follow a cluster."""
        cluster_options = self._cluster_options
        api = Api(name, Credentials(context.file, context.context), request_timeout_s=cluster_options.request_timeout_s)
        met.health = health = Health((IDENTITY_PATH, *sources(kinds_of(cluster_options.templates))))
        view = cluster_options.view(cluster_options.cluster(name), health, self._reactor)
        objects, options = Objects(api, cluster_options.namespace), cluster_options.template_options(view)
        deployer = DirectDeployer(objects, view, options, cluster_options.templates)
        met.cluster = KubernetesCluster(
            self._reactor, api, view, health, deployer, self._random, cluster_options.scraping
        )
        if met.uid is None:
            met.identifying = self._reactor.run_forever(f"who {name} is", self._identify(met, api, health))

    async def _identify(self, met: _ContextState, api: Api, health: Health) -> None:
        """Find out who a cluster is, and keep its name where it has the right one; else the next look mends that."""
        met.uid = await read_identity(api, health, self._random)
        in_thread(self._confirm_names_later)

    def _confirm_names_later(self) -> None:
        """Keep names that are right, in a thread that may wait."""
        with self._lock:
            if not self._closed:
                self._confirm_names(self._assign_names(self._contexts))

    def _log_problems(self, problems: Sequence[str]) -> None:
        """Say once what is wrong with files and contexts."""
        for why in problems:
            if why not in self._reported:
                log.warning("%s", why)
        self._reported = frozenset(problems)


def _context_text(context: Context) -> str:
    return f"the context {context.context!r} of {context.file}"
