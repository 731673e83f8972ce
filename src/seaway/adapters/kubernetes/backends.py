"""All clusters of a folder of kubeconfigs: joined when a file appears there, left when it goes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from threading import Lock

from seaway.adapters.kubernetes.cluster import KubernetesCluster
from seaway.adapters.kubernetes.collect.follow import sources
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.kinds import kinds_of
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.contexts import Context, find
from seaway.adapters.kubernetes.connection.credentials import Credentials
from seaway.adapters.kubernetes.connection.reactor import Reactor
from seaway.adapters.kubernetes.deploy.direct import Direct
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.wishes import Wishes
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.network import Gateway, Link

log = logging.getLogger(__name__)


class KubernetesBackends:
    """`Backends` over the clusters that a folder's kubeconfigs reach.

    Parameters
    ----------
    folder
        Its files are looked at every time when somebody asks for the clusters.

    Raises
    ------
    RejectedError
        When the folder cannot be read.
    """

    def __init__(self, folder: Path, wishes: Wishes | None = None, seed: int | None = None) -> None:
        self._folder = folder
        self._wishes = wishes or Wishes()
        self._random = Random(seed)  # spreads retries; nothing secret
        find(folder)
        self._reactor = Reactor()
        self._looking = Lock()
        self._clusters: dict[Context, tuple[float, KubernetesCluster]] = {}
        self._told: dict[Path, str] = {}

    def clusters(self) -> Sequence[KubernetesCluster]:
        """Return the clusters by name, as the folder has them now.

        Raises
        ------
        UnavailableError
            When the folder cannot be read right now.
        """
        with self._looking:
            return self._look()

    def _look(self) -> tuple[KubernetesCluster, ...]:
        """Join and leave clusters, so that they are those of the folder."""
        try:
            found = find(self._folder, self._clusters)
        except RejectedError as error:
            raise UnavailableError(error.message) from None
        self._tell(found.broken)
        there: dict[Context, tuple[float, KubernetesCluster]] = {}
        for context in found.contexts:
            written_s = _written_s(context.file)
            before = self._clusters.pop(context, None)
            if before and before[0] != written_s:
                before[1].close()
                before = None
            there[context] = before or (written_s, self._join(context))
        for _, left in self._clusters.values():
            left.close()
        self._clusters = there
        return tuple(cluster for _, cluster in there.values())

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways; nothing tells of any yet."""
        return ()

    def links(self) -> Sequence[Link]:
        """Return the links; nothing measures any yet."""
        return ()

    def close(self) -> None:
        """Leave all clusters."""
        with self._looking:
            for _, cluster in self._clusters.values():
                cluster.close()
        self._reactor.close()

    def _join(self, context: Context) -> KubernetesCluster:
        """Begin to follow a cluster."""
        wishes = self._wishes
        api = Api(context.name, Credentials(context.file, context.context), call_s=wishes.call_s)
        health = Health(sources(kinds_of(wishes.templates)))
        view = ClusterView(wishes.described(context.name), health, self._reactor.later, wishes.limits, wishes.namespace)
        deployer = Direct(Objects(api, wishes.namespace), view, wishes.options(view), wishes.templates)
        return KubernetesCluster(self._reactor, api, view, health, deployer, self._random, wishes.scraping)

    def _tell(self, broken: Mapping[Path, str]) -> None:
        """Say once of every file that it is no kubeconfig."""
        for file, why in broken.items():
            if self._told.get(file) != why:
                log.warning("%s", why)
        self._told = dict(broken)


def _written_s(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0
