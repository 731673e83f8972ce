"""Clusters of a folder of kubeconfigs. Seaway follows a cluster while its kubeconfig is in the folder."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Lock

from seaway.adapters.kubernetes.cluster import ClusterOptions, KubernetesCluster
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.informers import sources
from seaway.adapters.kubernetes.collect.owned import kinds_of
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff
from seaway.adapters.kubernetes.connection.contexts import Context, cluster_name, find
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread, in_thread
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.deploy.deployer import DirectDeployer
from seaway.adapters.kubernetes.deploy.namespaces import TenantNamespaces
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.objects.core import Item
from seaway.adapters.kubernetes.objects.decode import UndecodableError, read_body
from seaway.application.clusters import ClusterNames
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.network import Gateway, Link
from seaway.domain.reasons import Reason, reason_of

IDENTITY_PATH = "/api/v1/namespaces/kube-system"
"""Path of the object whose UID identifies a cluster. The object exists for the cluster's whole life.

References
----------
Kubernetes KEP-2149, ClusterId for ClusterSet identification: the uid of kube-system as a cluster's id.
"""

NO_IDENTITY_REASONS = frozenset({"Forbidden", "NotFound"})
"""Reasons with which an API server may refuse to return the UID."""

MAX_PAUSE_S = 1.0
"""Maximum pause between two requests in seconds. Seaway ignores a cluster's reports until the cluster is identified."""


async def read_identity(api: Api, health: Health, random: Random) -> str:
    """Request a cluster's UID until the cluster answers; return an empty text if Seaway may not read the UID."""
    backoff = Backoff(random, max_s=MAX_PAUSE_S)
    while True:
        try:
            return read_body(await api.get(IDENTITY_PATH), Item).metadata.uid
        except ApiError as error:
            if error.reason in NO_IDENTITY_REASONS:
                return ""
            health.failed(IDENTITY_PATH, reason_of(error))
        except UnavailableError as error:
            health.failed(IDENTITY_PATH, reason_of(error))
        except UndecodableError as error:
            health.failed(IDENTITY_PATH, Reason("not_kubernetes", name=api.name, why=str(error)))
        await asyncio.sleep(backoff.failed())


def assign_names(
    uids: Mapping[Context, str | None], before: Mapping[Context, str], names: ClusterNames
) -> dict[Context, str]:
    """Return the cluster name of each context. A second context of the same cluster gets no name.

    A known cluster keeps its name. A new cluster gets the name of its context. If contexts have equal names, the file's
    name is added as a suffix. A cluster that has not answered keeps its previous name until its UID identifies another
    cluster.

    Parameters
    ----------
    uids
        UIDs of the clusters; empty if Seaway may not read it, None if the cluster has not answered yet.
    before
        Current names of the clusters, by context.
    """
    given: dict[Context, str] = {}
    taken: set[str] = set()
    fresh: dict[Context | str, Context] = {}
    for context in sorted(uids, key=lambda each: (uids[each] is None, each not in before, each)):
        uid = uids[context]
        name = names.of(uid, context.server)
        if name and name not in taken:
            given[context] = name
            taken.add(name)
        elif uid is None:
            fresh[context] = context
        elif not name:
            fresh.setdefault(uid or context.server or context, context)
    blocked = taken | names.taken()
    often = Counter([*blocked, *(cluster_name(context.context) for context in fresh.values())])
    for context in fresh.values():
        name = before.get(context, "")
        if not name or name in (taken if uids[context] is None else blocked):
            plain = cluster_name(context.context)
            name = _unused(suffixed(context) if often[plain] > 1 else plain, blocked)
        given[context] = name
        taken.add(name)
        blocked.add(name)
    return given


def _unused(name: str, blocked: Set[str]) -> str:
    """Return a free name; append a number if `name` is blocked."""
    unique, number = name, 2
    while unique in blocked:
        unique, number = f"{name}-{number}", number + 1
    return unique


def suffixed(context: Context) -> str:
    """Return the context's name with its file's name as a suffix."""
    return f"{cluster_name(context.context)}-{cluster_name(context.file.stem)}"


log = logging.getLogger(__name__)


@dataclass(slots=True)
class _ContextState:
    """State of a context and of the cluster that it refers to.

    Attributes
    ----------
    digest
        Digest of the context's kubeconfig entries.
    uid
        UID of the cluster; empty if Seaway may not read it, None before the cluster answers.
    cluster
        The cluster that Seaway follows; None if another context refers to the same cluster.
    health
        Health of the cluster. Seaway ignores the cluster's reports until its name is confirmed.
    identifying
        Task that reads the UID.
    confirmed
        True after the cluster's name is stored.
    """

    digest: str
    uid: str | None = None
    cluster: KubernetesCluster | None = None
    health: Health | None = None
    identifying: Future[None] | None = None
    confirmed: bool = False

    def leave(self) -> None:
        """Stop following the cluster."""
        if self.identifying:
            self.identifying.cancel()
        if self.cluster:
            self.cluster.close()
        self.cluster, self.confirmed = None, False


class KubernetesBackends:
    """`Backends` for the clusters that the kubeconfigs of a folder refer to.

    Parameters
    ----------
    folder
        Folder of kubeconfigs. Each call to `clusters` reads it again.
    names
        Names of clusters; None to store them only in this process.

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
        self._random = Random(seed)  # for jitter, not for security
        self._names = names or ClusterNames()
        find(folder)
        self._reactor = EventLoopThread()
        self._lock = Lock()
        self._closed = False
        self._contexts: dict[Context, _ContextState] = {}
        self._reported: frozenset[str] = frozenset()

    def clusters(self) -> Sequence[KubernetesCluster]:
        """Return the clusters of the folder's current contexts, sorted by name.

        Raises
        ------
        UnavailableError
            When the folder or the names of clusters cannot be read now.
        """
        with self._lock:
            self._sync()
            followed = [each.cluster for each in self._contexts.values() if each.cluster]
            return tuple(sorted(followed, key=lambda each: each.cluster))

    def _sync(self) -> None:
        """Join new clusters and leave removed ones, so that they match the folder."""
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
                problems.append(f"{_context_text(context)} points to {what}, as another context does; it is ignored")
        self._log_problems(problems)
        self._confirm_names(names)

    def _state_of(self, context: Context) -> _ContextState:
        """Return the state of a context. If its kubeconfig entries changed, return a new state.

        Compare digests, not modification times: the kubelet rewrites all files of a mounted Secret when one changes.
        """
        before = self._contexts.get(context)
        return before if before and before.digest == context.digest else _ContextState(context.digest)

    def _assign_names(self, there: Mapping[Context, _ContextState]) -> dict[Context, str]:
        """Return the cluster name of each context."""
        called = {(each.file, each.context): met.cluster.cluster for each, met in self._contexts.items() if met.cluster}
        before = {each: name for each in there if (name := called.get((each.file, each.context)))}
        return assign_names({each: met.uid for each, met in there.items()}, before, self._names)

    def _confirm_names(self, names: Mapping[Context, str]) -> None:
        """Store the names of identified clusters. From then on, Seaway uses their reports."""
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
        """Log a warning when a context does not refer to the cluster of that name."""
        plain = cluster_name(context.context)
        if known and name not in {plain, suffixed(context)}:
            log.warning("%s points to the known cluster %s and uses its name", _context_text(context), name)
        elif not known and name != plain and plain in self._names.taken():
            says = "%s points to another cluster than the known %s: it is named %s, and has none of its jobs"
            log.warning(says, _context_text(context), plain, name)

    def gateways(self) -> Sequence[Gateway]:
        """Return no gateways: these backends report none."""
        return ()

    def links(self) -> Sequence[Link]:
        """Return no links: these backends measure none."""
        return ()

    def close(self) -> None:
        """Stop following all clusters."""
        with self._lock:
            self._closed = True
            for met in self._contexts.values():
                met.leave()
        self._reactor.close()

    def _join(self, context: Context, met: _ContextState, name: str) -> None:
        """Start to follow a cluster."""
        cluster_options = self._cluster_options
        api = Api(name, Credentials(context.file, context.context), request_timeout_s=cluster_options.request_timeout_s)
        met.health = health = Health((IDENTITY_PATH, *sources(kinds_of(cluster_options.templates))))
        view = cluster_options.view(cluster_options.cluster(name), health, self._reactor)
        objects, options = Objects(api), cluster_options.template_options(view)
        namespaces = TenantNamespaces(api, objects, cluster_options.namespaces, cluster_options.namespace_options)
        deployer = DirectDeployer(objects, namespaces, view, options, cluster_options.templates)
        met.cluster = KubernetesCluster(
            self._reactor, api, view, health, deployer, self._random, cluster_options.scraping
        )
        if met.uid is None:
            met.identifying = self._reactor.run_forever(f"who {name} is", self._identify(met, api, health))

    async def _identify(self, met: _ContextState, api: Api, health: Health) -> None:
        """Read the UID of a cluster and confirm its name. The next `_sync` corrects a wrong name."""
        met.uid = await read_identity(api, health, self._random)
        in_thread(self._confirm_names_later)

    def _confirm_names_later(self) -> None:
        """Confirm names in a thread that may block."""
        with self._lock:
            if not self._closed:
                self._confirm_names(self._assign_names(self._contexts))

    def _log_problems(self, problems: Sequence[str]) -> None:
        """Log each problem of files and contexts once."""
        for why in problems:
            if why not in self._reported:
                log.warning("%s", why)
        self._reported = frozenset(problems)


def _context_text(context: Context) -> str:
    return f"the context {context.context!r} of {context.file}"
