"""One real cluster, as the control loop's port has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from random import Random
from typing import Any

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.informers import follow
from seaway.adapters.kubernetes.collect.pods import PodSummary
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.deploy.deployer import Deployer
from seaway.adapters.kubernetes.logs import Source, read_end
from seaway.adapters.kubernetes.logs import follow as read_on
from seaway.adapters.kubernetes.usage.measured import UsageReadings
from seaway.adapters.kubernetes.usage.scraping import Scraper, Scraping
from seaway.application.ports.backend import Answer, Changes, CollectorState, Command, Removal
from seaway.application.ports.logs import Give
from seaway.application.ports.usage import NodeUsage
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError

LOGS_S = 20.0
MAX_FOLLOWED = 24
"""Logs of one cluster that are followed at once: each takes a connection, and watches and calls need some."""

CLOSE_S = 5.0
RETRY_AFTER_S = 5

PODS_TERMINATING = Answer(done=False, reason="its pods have not ended yet")
"""The answer to a removal whose objects are deleted while pods of it still run, and hold devices."""

NOT_LISTED = Answer(done=False, reason="it is not known yet what there is of it")
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
        reactor: EventLoopThread,
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
        self._measured = UsageReadings(view.name, scraping.stale_after_s) if scraping.interval_s else None
        self._followed = 0
        self._running = [reactor.run_forever(view.name, follow(api, view, health, random, deployer.kinds))]
        if self._measured:
            scraper = Scraper(api.proxied(view.name, ""), scraping, self._measured, random)
            self._running.append(reactor.run_forever(f"the real use of {view.name}", scraper.run()))

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
        return [self._reactor.submit(self._carry_out(each)) for each in commands]

    async def _carry_out(self, command: Command) -> Answer:
        """Carry out a command, once the cluster has said who it is, and was listed.

        Before that no one knows which labels and devices its nodes have, nor what is there of an attempt.
        """
        if not self._health.complete:
            why = self._health.unreachable_reason(0).removeprefix(f"{self.cluster}: ")
            raise UnavailableError(f"{self.cluster}: {why}")
        answer = await self._deployer.carry_out(command)
        if not (answer.done and isinstance(command, Removal)):
            return answer
        if self._health.unreachable_reason(self._view.unreachable_timeout_s):
            return NOT_LISTED
        return self._terminating_answer() if self._has_running_pods(command) else answer

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return the objects that a deployment becomes, pins and all."""
        return [each.pinned() for each in self._deployer.manifests(deployment)]

    def logs(self, workload: str, replica: int, tail: int, container: str = "") -> Iterator[str]:
        """Return the last lines of a container of a replica."""
        source = Source.of(self._pod(workload, replica), container)
        return iter(self._reactor.run(read_end(self._api, source, tail), LOGS_S))

    def follow_log(  # see `Following`
        self, workload: str, replica: int, tail: int, after: str, give: Give, container: str = ""
    ) -> Future[None]:
        """Give the lines of a container of a replica as they are written; see `Following`."""
        source = Source.of(self._pod(workload, replica), container)
        if self._followed >= MAX_FOLLOWED:
            raise UnavailableError(
                f"{self.cluster} has {MAX_FOLLOWED} logs followed already", retry_after_s=RETRY_AFTER_S
            )
        return self._reactor.submit(self._follow_log(source, tail, after, give))

    async def _follow_log(self, source: Source, tail: int, after: str, give: Give) -> None:
        self._followed += 1
        try:
            await read_on(self._api, source, tail, after, give)
        finally:
            self._followed -= 1

    def _pod(self, workload: str, replica: int) -> PodSummary:
        """Return the pod of a replica; raises `RejectedError` when there is none."""
        job_id, _, attempt = workload.removeprefix("sw-").rpartition("-")
        seats = self._view.replica_pods((job_id, int(attempt) if attempt.isdecimal() else 0))
        if replica not in seats:
            raise RejectedError(f"copy {workload!r} has no pod for replica {replica} in {self.cluster}")
        return seats[replica]

    def _terminating_answer(self) -> Answer:
        """Say what a removal waits for, and what may be why that takes so long."""
        unseen = sorted({*self._health.unavailable(), *self._deployer.unlistable()})
        if not unseen:
            return PODS_TERMINATING
        return replace(
            PODS_TERMINATING, reason=f"{PODS_TERMINATING.reason}; Seaway cannot list {', '.join(unseen)} there"
        )

    def _has_running_pods(self, removal: Removal) -> bool:
        """Tell whether pods of an attempt still run: they may be ending, or Karmada may not reach their cluster.

        Those whose node is down do not count: no one can say when they are gone, and nothing new comes there. A node
        that is only cordoned, as `kubectl drain` does first, says when they are. One that has no node yet may get one
        before the cluster's garbage collector comes to it.
        """
        pods = self._view.pods_of((removal.job_id, removal.attempt))
        return any(pod.holds_resources and (not pod.node or self._is_reachable(pod.node)) for pod in pods)

    def _is_reachable(self, node: str) -> bool:
        known = self._view.node(node)
        return known is not None and known.reachable

    def collector_state(self) -> CollectorState:
        """Return how collecting goes."""
        state = self._view.collector_state()
        problems = state.problems | self._health.counts()
        return replace(state, problems=problems, scrapes=self._measured.counts() if self._measured else {})

    def usage(self) -> Mapping[str, NodeUsage]:
        """Return what is really used, by node; nothing where that is not read."""
        return self._measured.usage() if self._measured else {}

    def close(self) -> None:
        """End following it."""
        self._view.close()
        for each in self._running:
            each.cancel()
        self._reactor.run(self._api.close(), CLOSE_S)
