"""One real cluster, as the control loop's port has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from random import Random
from typing import Any

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.informers import follow
from seaway.adapters.kubernetes.collect.pods import Seen
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.event_loop import Reactor
from seaway.adapters.kubernetes.deploy.deployer import Deployer
from seaway.adapters.kubernetes.logs import Source, read_end
from seaway.adapters.kubernetes.logs import follow as read_on
from seaway.adapters.kubernetes.usage.measured import Measured
from seaway.adapters.kubernetes.usage.scraping import Scraper, Scraping
from seaway.application.ports.backend import Answer, Changes, CollectorState, Command, Removal
from seaway.application.ports.logs import Give
from seaway.application.ports.usage import NodeUsage
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError

LOGS_S = 20.0
MOST_FOLLOWED = 24
"""Logs of one cluster that are followed at once: each takes a connection, and watches and calls need some."""

CLOSE_S = 5.0
AGAIN_S = 5

LINGERS = Answer(done=False, reason="its pods have not ended yet")
"""The answer to a removal whose objects are deleted while pods of it still run, and hold devices."""

UNHEARD = Answer(done=False, reason="it is not known yet what there is of it")
"""The answer to a removal from a cluster that does not tell what is there: pods of it may be."""


class KubernetesCluster:
    """A `Backend`: a view that is kept told, and a deployer.

    Parameters
    ----------
    reactor
        Where all of it runs.
    api
        The cluster's API server.
    scraping
        Whether and where it is read what is really used.
    """

    def __init__(
        self,
        reactor: Reactor,
        api: Api,
        view: ClusterView,
        health: Health,
        deployer: Deployer,
        random: Random,
        scraping: Scraping,
    ) -> None:
        self._reactor = reactor
        self._api = api
        self._view = view
        self._health = health
        self._deployer = deployer
        self._measured = Measured(view.name, scraping.stale_s) if scraping.every_s else None
        self._followed = 0
        self._running = [reactor.keep(view.name, follow(api, view, health, random, deployer.kinds))]
        if self._measured:
            scraper = Scraper(api.behind(view.name, ""), scraping, self._measured, random)
            self._running.append(reactor.keep(f"the real use of {view.name}", scraper.run()))

    @property
    def cluster(self) -> str:
        """Its name."""
        return self._view.name

    @property
    def view(self) -> ClusterView:
        """What is there."""
        return self._view

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return what changed since `cursor`."""
        return self._view.changes(cursor, wait_s)

    def send(self, commands: Sequence[Command]) -> list[Future[Answer]]:
        """Begin to carry out commands, each for itself."""
        return [self._reactor.begin(self._carry_out(each)) for each in commands]

    async def _carry_out(self, command: Command) -> Answer:
        """Carry out a command, once the cluster has said who it is, and was listed.

        Before that nobody knows which labels and devices its nodes have, nor what is there of an attempt.
        """
        if not self._health.complete:
            why = self._health.silence(0).removeprefix(f"{self.cluster}: ")
            raise UnavailableError(f"{self.cluster}: {why}")
        answer = await self._deployer.carry_out(command)
        if not (answer.done and isinstance(command, Removal)):
            return answer
        if self._health.silence(self._view.patience_s):
            return UNHEARD
        return self._lingering() if self._lingers(command) else answer

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return the objects that a deployment becomes, pins and all."""
        return [each.pinned() for each in self._deployer.manifests(deployment)]

    def logs(self, copy: str, replica: int, tail: int, container: str = "") -> Iterator[str]:
        """Return the last lines of a container of a replica."""
        source = Source.of(self._pod(copy, replica), container)
        return iter(self._reactor.run(read_end(self._api, source, tail), LOGS_S))

    def follow_log(  # see `Following`
        self, copy: str, replica: int, tail: int, after: str, give: Give, container: str = ""
    ) -> Future[None]:
        """Give the lines of a container of a replica as they are written; see `Following`."""
        source = Source.of(self._pod(copy, replica), container)
        if self._followed >= MOST_FOLLOWED:
            raise UnavailableError(f"{self.cluster} has {MOST_FOLLOWED} logs followed already", retry_after_s=AGAIN_S)
        return self._reactor.begin(self._follow_log(source, tail, after, give))

    async def _follow_log(self, source: Source, tail: int, after: str, give: Give) -> None:
        self._followed += 1
        try:
            await read_on(self._api, source, tail, after, give)
        finally:
            self._followed -= 1

    def _pod(self, copy: str, replica: int) -> Seen:
        """Return the pod of a replica; raises `RejectedError` when there is none."""
        job_id, _, attempt = copy.removeprefix("sw-").rpartition("-")
        seats = self._view.seats((job_id, int(attempt) if attempt.isdecimal() else 0))
        if replica not in seats:
            raise RejectedError(f"copy {copy!r} has no pod for replica {replica} in {self.cluster}")
        return seats[replica]

    def _lingering(self) -> Answer:
        """Say what a removal waits for, and what may be why that takes so long."""
        unseen = sorted({*self._health.not_seen(), *self._deployer.not_seen()})
        if not unseen:
            return LINGERS
        return replace(LINGERS, reason=f"{LINGERS.reason}; Seaway cannot list {', '.join(unseen)} there")

    def _lingers(self, removal: Removal) -> bool:
        """Tell whether pods of an attempt still run: they may be ending, or Karmada may not reach their cluster.

        Those whose node is down do not count: nobody can say when they are gone, and nothing new comes there. A node
        that is only cordoned, as `kubectl drain` does first, says when they are. One that has no node yet may get one
        before the cluster's garbage collector comes to it.
        """
        pods = self._view.pods_of((removal.job_id, removal.attempt))
        return any(pod.holds and (not pod.node or self._answers(pod.node)) for pod in pods)

    def _answers(self, node: str) -> bool:
        known = self._view.node(node)
        return known is not None and known.answers

    def collector_state(self) -> CollectorState:
        """Return how collecting goes."""
        state = self._view.collector_state()
        troubles = state.troubles | self._health.counts()
        return replace(state, troubles=troubles, scrapes=self._measured.counts() if self._measured else {})

    def usage(self) -> Mapping[str, NodeUsage]:
        """Return what is really used, by node; nothing where that is not read."""
        return self._measured.usage() if self._measured else {}

    def close(self) -> None:
        """End following it."""
        self._view.close()
        for each in self._running:
            each.cancel()
        self._reactor.run(self._api.close(), CLOSE_S)
