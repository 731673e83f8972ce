"""Adapter of one Kubernetes cluster to the `Backend` port of the control loop, and its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from seaway.adapters.kubernetes.collect.changes import Limits
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.informers import follow
from seaway.adapters.kubernetes.collect.pods import PodSummary
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.api import REQUEST_TIMEOUT_S, Api
from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
from seaway.adapters.kubernetes.deploy.deployer import Deployer
from seaway.adapters.kubernetes.device_plugins.views import Access
from seaway.adapters.kubernetes.device_plugins.views import PluginOptions as Named
from seaway.adapters.kubernetes.logs import Source, read_end
from seaway.adapters.kubernetes.logs import follow as read_on
from seaway.adapters.kubernetes.objects.core import Part
from seaway.adapters.kubernetes.objects.decode import read_body
from seaway.adapters.kubernetes.rights import DIRECT, RIGHTS_S, Right, missing_rights
from seaway.adapters.kubernetes.sessions import PodSession, open_session
from seaway.adapters.kubernetes.templates.context import Exposure, TemplateOptions
from seaway.adapters.kubernetes.templates.namespace_objects import NamespaceOptions
from seaway.adapters.kubernetes.templates.namespaces import Namespaces
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, Templates
from seaway.adapters.kubernetes.templates.runtime import Mounting
from seaway.adapters.kubernetes.usage.measured import UsageReadings
from seaway.adapters.kubernetes.usage.scraping import Scraper, Scraping
from seaway.application.ports.backend import Answer, Changes, CollectorState, Command, Removal
from seaway.application.ports.logs import Give
from seaway.application.ports.sessions import SessionRequest
from seaway.application.ports.usage import NodeUsage
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.facts import NO_FACTS, Facts
from seaway.domain.reasons import Reason, in_cluster
from seaway.domain.tenancy import DEFAULT

LOGS_S = 20.0
MAX_FOLLOWED = 24
"""Maximum number of logs of one cluster that users can follow at the same time. Each log uses a connection."""

MAX_SESSIONS = 64
"""Maximum number of open sessions with containers of one cluster. Each uses a connection of its own."""

CLOSE_S = 5.0
RETRY_AFTER_S = 5

PODS_TERMINATING = Answer(done=False, reason="its pods have not ended yet")
"""Answer to a removal while the objects are deleted, but their pods still run and use devices."""

NOT_LISTED = Answer(done=False, reason="its state is not known yet")
"""Answer to a removal from a cluster that is not reporting, because its pods may still run."""


class _Version(Part, frozen=True):
    git_version: str = ""


class KubernetesCluster:
    """A `Backend` that watches a cluster and deploys to it.

    Parameters
    ----------
    reactor
        Thread that runs all coroutines of the cluster.
    api
        The cluster's API server.
    scraping
        Settings for reading measured GPU use.
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
        self._sessions = 0
        self._running = [reactor.run_forever(view.name, follow(api, view, health, random, deployer.kinds))]
        if self._measured:
            scraper = Scraper(api.proxied(view.name, ""), scraping, self._measured, random)
            self._running.append(reactor.run_forever(f"the real use of {view.name}", scraper.run()))

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self._view.name

    @property
    def recreates(self) -> bool:
        """True if deleted objects are created again."""
        return self._deployer.recreates

    @property
    def view(self) -> ClusterView:
        """View of the cluster's objects."""
        return self._view

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return the changes since `cursor`."""
        return self._view.changes(cursor, wait_s)

    def send(self, commands: Sequence[Command]) -> list[Future[Answer]]:
        """Start to execute commands, independently of each other."""
        return [self._reactor.submit(self._carry_out(each)) for each in commands]

    async def _carry_out(self, command: Command) -> Answer:
        """Execute a command after the cluster is identified and listed.

        Before that, node labels, devices and the objects of attempts are unknown.
        """
        if not self._health.complete:
            raise UnavailableError(in_cluster(self.cluster, self._health.unreachable_reason(0)))
        answer = await self._deployer.carry_out(command)
        removes = isinstance(command, Removal) or any(each.leaving for each in command.placements)
        if not (answer.done and removes):
            return answer
        if self._health.unreachable_reason(self._view.unreachable_timeout_s):
            return NOT_LISTED
        return self._terminating_answer() if self._has_running_pods(command) else answer

    def missing_rights(self) -> list[Right]:
        """Return the rights that Seaway lacks; rights of tenants in the namespace of the default one.

        The proxy of Karmada does not forward this question to members; see `refused` for these.

        Raises
        ------
        ApiError, UnavailableError
            When the server refuses the question, or does not answer.
        """
        namespace = self._view.namespaces.of(DEFAULT)
        return self._reactor.run(missing_rights(self._api, DIRECT, namespace), RIGHTS_S)

    def version(self) -> str:
        """Return the version of Kubernetes, such as ``v1.33.1``; raise as `missing_rights`."""
        return read_body(self._reactor.run(self._api.get("/version"), RIGHTS_S), _Version).git_version

    def refused(self) -> dict[str, str]:
        """Return the reasons of optional reads that the cluster has refused, or that keep failing."""
        return self._health.unavailable()

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return the objects of a deployment, with devices pinned."""
        return [each.pinned() for each in self._deployer.manifests(deployment)]

    def logs(  # see `Backend`
        self, workload: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Return the last log lines of a replica's container."""
        source = Source.of(self._pod(workload, replica), container)
        return iter(self._reactor.run(read_end(self._api, source, tail, since_ns, times=times), LOGS_S))

    def follow_log(  # see `Following`
        self, workload: str, replica: int, tail: int, after: str, give: Give, container: str = "", since_ns: int = 0
    ) -> Future[None]:
        """Stream the log lines of a replica's container; see `Following`."""
        source = Source.of(self._pod(workload, replica), container)
        if self._followed >= MAX_FOLLOWED:
            raise UnavailableError(
                Reason("logs_followed", cluster=self.cluster, most=MAX_FOLLOWED), retry_after_s=RETRY_AFTER_S
            )
        return self._reactor.submit(self._follow_log(source, tail, after, give, since_ns))

    async def _follow_log(self, source: Source, tail: int, after: str, give: Give, since_ns: int) -> None:
        self._followed += 1
        try:
            await read_on(self._api, source, tail, after, give, since_ns)
        finally:
            self._followed -= 1

    def open_session(self, workload: str, replica: int, wanted: SessionRequest) -> Future[PodSession]:
        """Open a session with a container of a replica; see `Accessible`."""
        source = Source.of(self._pod(workload, replica), wanted.container)
        return self._reactor.submit(self._open_session(source, wanted))

    async def _open_session(self, source: Source, wanted: SessionRequest) -> PodSession:
        if self._sessions >= MAX_SESSIONS:
            raise UnavailableError(
                Reason("sessions_of_cluster", cluster=self.cluster, most=MAX_SESSIONS), retry_after_s=RETRY_AFTER_S
            )
        self._sessions += 1
        try:
            return await open_session(self._api, self._reactor, source, wanted, self._end_session)
        except BaseException:
            self._sessions -= 1
            raise

    def _end_session(self) -> None:
        self._sessions -= 1

    def _pod(self, workload: str, replica: int) -> PodSummary:
        """Return the pod of a replica; raise `RejectedError` if there is none."""
        job_id, _, attempt = workload.removeprefix("sw-").rpartition("-")
        seats = self._view.replica_pods((job_id, int(attempt) if attempt.isdecimal() else 0))
        if replica not in seats:
            raise RejectedError(Reason("no_pod_for_replica", workload=workload, replica=replica, cluster=self.cluster))
        return seats[replica]

    def _terminating_answer(self) -> Answer:
        """Return the answer to a pending removal, with the kinds that Seaway cannot list."""
        unseen = sorted({*self._health.unavailable(), *self._deployer.unlistable()})
        if not unseen:
            return PODS_TERMINATING
        return replace(
            PODS_TERMINATING, reason=f"{PODS_TERMINATING.reason}; Seaway cannot list {', '.join(unseen)} there"
        )

    def _has_running_pods(self, command: Command) -> bool:
        """Report whether pods still run that a command removes. Karmada may also fail to reach their cluster.

        Ignore pods on nodes that are down: they may never be reported as gone, and the node gets no new pods. Count
        pods on cordoned nodes (`kubectl drain`), because these nodes report the end of pods. Count pods without a node:
        they may get one before the cluster's garbage collector deletes them.
        """
        key = (command.job_id, command.attempt)
        pods = self._view.pods_of(key)
        if isinstance(command, Deployment):
            leaving, seated = command.leaving, self._view.replica_pods(key)
            theirs = {seated[replica].uid for replica in leaving if replica in seated}
            pods = [each for each in pods if each.uid in theirs or (each.deleting and leaving & {*each.replicas})]
        return any(pod.holds_resources and (not pod.node or self._is_reachable(pod.node)) for pod in pods)

    def _is_reachable(self, node: str) -> bool:
        known = self._view.node(node)
        return known is not None and known.reachable

    def collector_state(self) -> CollectorState:
        """Return the state of the collector."""
        state = self._view.collector_state()
        problems = state.problems | self._health.counts()
        return replace(state, problems=problems, scrapes=self._measured.counts() if self._measured else {})

    def usage(self) -> Mapping[str, NodeUsage]:
        """Return the measured use by node; empty if scraping is off."""
        return self._measured.usage() if self._measured else {}

    def close(self) -> None:
        """Stop following the cluster."""
        self._view.close()
        for each in self._running:
            each.cancel()
        self._reactor.run(self._api.close(), CLOSE_S)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Options of Kubernetes clusters.

    Attributes
    ----------
    namespaces
        Namespaces of Seaway's objects.
    request_timeout_s
        Timeout of calls to an API server.
    known
        Facts of clusters in the settings, by name. They precede those that the clusters report.
    templates
        Templates of the objects that a job creates.
    default_image, pull_secrets, hami_scheduler, local_queue, volcano_queue, run_as_user
        Values for the objects, as in `TemplateOptions`.
    plugin_options
        Custom names of annotations and labels of vGPU device plugins.
    limits
        Time limits of views.
    scraping
        Settings for reading measured GPU use.
    namespace_options
        Content of tenants' namespaces.
    exposure
        Ways in which clients outside a cluster may reach jobs.
    mounting
        Volumes that jobs may have.
    """

    namespaces: Namespaces = field(default_factory=Namespaces)
    request_timeout_s: float = REQUEST_TIMEOUT_S
    known: Mapping[str, Facts] = field(default_factory=dict)
    templates: Templates = field(default_factory=lambda: BUILT_IN)
    default_image: str = ""
    pull_secrets: tuple[str, ...] = ()
    hami_scheduler: str = ""
    local_queue: str = ""
    volcano_queue: str = ""
    run_as_user: int = 0
    plugin_options: Named = field(default_factory=Named)
    limits: Limits = field(default_factory=Limits)
    scraping: Scraping = field(default_factory=Scraping)
    namespace_options: NamespaceOptions = field(default_factory=NamespaceOptions)
    exposure: Exposure = field(default_factory=Exposure)
    mounting: Mounting = field(default_factory=Mounting)

    def cluster(self, name: str, facts: Facts = NO_FACTS) -> Cluster:
        """Return a cluster without its nodes; `facts` are those that Karmada reports."""
        configured = self.known.get(name, NO_FACTS)
        return Cluster(name, facts=configured.over(facts), configured=configured)

    def view(self, cluster: Cluster, health: Health, event_loop: EventLoopThread) -> ClusterView:
        """Return an empty view of a cluster."""
        return ClusterView(cluster, health, event_loop.call_later, self.limits, self.namespaces, self.plugin_options)

    def template_options(self, view: ClusterView, *, shared: bool = False) -> TemplateOptions:
        """Return the template options of a cluster; `shared` if its objects are in Karmada's control plane."""

        def access(node: str, uuid: str) -> Access | None:
            known = view.node(node)
            return known.by_uuid.get(uuid) if known else None

        return TemplateOptions(
            access,
            hostname=view.hostname,
            pull_secrets=self.pull_secrets,
            default_image=self.default_image,
            hami_scheduler=self.hami_scheduler,
            local_queue=self.local_queue,
            volcano_queue=self.volcano_queue,
            run_as_user=self.run_as_user,
            exposure=self.exposure,
            mounting=self.mounting,
            shared=shared,
        )
