"""Wiring of a control plane."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from random import Random, SystemRandom

import orjson

from seaway.application.access import Access, Bearer
from seaway.application.admission import Admission
from seaway.application.changes import Feed
from seaway.application.clusters import ClusterRemoval
from seaway.application.control.cluster_threads import Threads
from seaway.application.control.dispatch import Dispatcher
from seaway.application.control.loop import Controller
from seaway.application.control.paths import Steering
from seaway.application.control.scheduler.compile_readiness import CompileReadiness
from seaway.application.fleet.overview import Overview
from seaway.application.fleet.quota_warnings import QuotaWarnings
from seaway.application.fleet.usage_history import UsageHistory
from seaway.application.jobs import Jobs
from seaway.application.monitoring.alerts import Alerts
from seaway.application.monitoring.conditions import Faults, Sources
from seaway.application.moves import Moves
from seaway.application.network.active_paths import ActivePathController, ActivePaths
from seaway.application.network.agents import Agents, AgentState
from seaway.application.network.bandwidth import TrafficWatch
from seaway.application.network.configuration import Configuration
from seaway.application.network.link_table import LinkTable
from seaway.application.network.reports import Reports
from seaway.application.notifications import Notifications
from seaway.application.operations import Operations
from seaway.application.policies import Evaluations, Gate, Policies
from seaway.application.ports.backend import Backends
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.ports.templates import PlainTemplates, Templates
from seaway.application.saved_filters import SavedFilters
from seaway.application.whatif.whatif import WhatIf
from seaway.application.workdirs import Workdirs
from seaway.application.writer import Writer
from seaway.bootstrap.bandwidth import make_bandwidths
from seaway.bootstrap.cluster_joins import ClusterJoins
from seaway.bootstrap.notifications import encryption_key, make_notifications
from seaway.bootstrap.policies import POLICIES, compile_apart, read_outlines, warm
from seaway.bootstrap.scaling import make_metrics
from seaway.bootstrap.settings import IdentitySettings, PolicySettings, Settings
from seaway.bootstrap.trained_policies import Trained
from seaway.bootstrap.workdirs import needed_workdirs, workdir_limits
from seaway.domain.errors import RejectedError, SeawayError
from seaway.domain.gateways import NetworkConfig
from seaway.domain.job_state import JobState
from seaway.learning.parallel import Processes
from seaway.learning.policies.monitor import Limits
from seaway.learning.policies.signature import PublicKey, read_trusted
from seaway.scheduling.policies.registry import make_profile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Network:
    """The network between gateways: its configuration, its active paths, its agents and their reports."""

    configuration: Configuration
    active: ActivePaths
    agents: Agents
    reports: Reports


class JsonDocuments:
    """Network configurations as JSON in the format of users. It implements `Documents`."""

    def read(self, text: str) -> NetworkConfig:
        """Parse a configuration from `write`."""
        from seaway.wire.network_in import NetworkConfigIn
        from seaway.wire.reading import read_json

        return read_json(NetworkConfigIn, text).config()

    def write(self, config: NetworkConfig) -> str:
        """Return a configuration as JSON."""
        from seaway.wire.network_in import network_text

        return orjson.dumps(network_text(config)).decode()


def make_network(store: Store, writer: Writer, clock: Clock, link_table: LinkTable, steering: Steering) -> Network:
    """Create the network. The link table and the steering of traffic follow its configuration."""
    agents = Agents(store, writer, clock)
    network = Network(
        Configuration(store, writer, clock, JsonDocuments()),
        ActivePaths(store, writer, clock),
        agents,
        Reports(writer, clock, agents, link_table),
    )
    network.configuration.follow(lambda config: link_table.use(config, clock.now_ns()))
    for follower in (network.active.use, agents.use, network.reports.use):
        network.configuration.follow(follower)
    network.active.follow(link_table.choose)
    steering.path_controller = ActivePathController(network.active, link_table, clock)
    return network


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Control plane with all components, not started."""

    settings: Settings
    clock: Clock
    store: Store
    writer: Writer
    feed: Feed
    controller: Controller
    dispatcher: Dispatcher
    jobs: Jobs
    admission: Admission
    overview: Overview
    quota_warnings: QuotaWarnings
    operations: Operations
    cluster_removal: ClusterRemoval
    access: Access
    moves: Moves
    whatif: WhatIf
    network: Network
    policies: Policies
    traffic: TrafficWatch
    alerts: Alerts
    evaluations: Evaluations
    notifications: Notifications
    workdirs: Workdirs
    joins: ClusterJoins
    history: UsageHistory
    saved_filters: SavedFilters

    def start(self) -> None:
        """Start the threads of the writer, the controller, the agents and the monitoring."""
        self.writer.start()
        self.controller.start()
        self.network.agents.start()
        self.traffic.start()
        self.alerts.start()
        self.notifications.start()
        self.history.start()

    def stop(self) -> None:
        """Finish and store the current work, and end all threads. Without this call, no data is lost either."""
        self.history.stop()
        with suppress(SeawayError):  # without it, uses of the last minute are lost
            self.access.store_uses()
        self.notifications.notifier.stop()
        self.alerts.stop()
        self.traffic.stop()
        self.network.agents.stop()
        self.controller.stop()
        self.dispatcher.stop()
        self.writer.stop()
        self.store.close()


def make_plane(  # noqa: PLR0913  # wiring
    settings: Settings,
    store: Store,
    backends: Backends,
    clock: Clock,
    *,
    dispatcher: Dispatcher | None = None,
    bearer: Bearer | None = None,
    random: Random | None = None,
    templates: Templates | None = None,
    folder: Path | None = None,
    workdirs: Workdirs | None = None,
) -> ControlPlane:
    """Create a control plane.

    Parameters
    ----------
    store
        Database; this process becomes the only writer.
    dispatcher
        Communication with clusters; None for threads.
    bearer
        Verifier of tokens of an identity provider.
    random
        Source of IDs and of jitter; None for that of the operating system.
    templates
        Workload templates; None for those that every kind of cluster supports.
    folder
        Data folder, with the key that encrypts secrets; None for a key that is lost with the process.
    workdirs
        Archives of this store; None for new ones.
    """
    random = random or SystemRandom()
    store.lead(f"{random.getrandbits(64):016x}")
    writer, feed = Writer(store), Feed()
    writer.listen(feed.publish, feed.forget)
    talker: Dispatcher = dispatcher or Threads(clock, random, settings.control.stale_after_s)
    bounds = limits(settings.policies, clock)
    policies = Policies(store, writer, clock, trusted_keys(settings.policies.trusted_keys), stop_s=bounds.stop_s)
    policies.offer(read_outlines(settings.policies.profiles_dir))
    trained = Trained(policies, bounds, policies.counts, policies.profiles)
    controller = Controller(store, writer, backends, talker, trained.profile, clock, settings.control)
    controller.live.scheduler = settings.scheduler
    if isinstance(talker, Threads):
        talker.on_report = controller.wake
    bandwidths = make_bandwidths(settings.network, clock)
    link_table = controller.live.link_table = LinkTable(
        settings.network.links, settings.control.sample_interval_s, bandwidths
    )
    link_table.on_change = controller.push_network
    controller.scaler.metrics = make_metrics(settings.scaling)

    def make_ready(name: str) -> None:
        compile_apart([name])
        warm(name, trained.unwatched)

    controller.scheduler.readiness = CompileReadiness(make_ready, ready=POLICIES)
    controller.scheduler.readiness.on_ready = controller.wake
    controller.scheduler.make_fallback = trained.make_fallback

    def renewed(name: str) -> None:
        trained.forget(name)
        controller.renew_policy(name)

    policies.on_change = renewed
    overview = Overview(controller, store, writer, policies)
    notifications = make_notifications(
        settings.notifications,
        store,
        writer,
        clock,
        controller,
        random,
        encryption_key(settings.notifications, folder),
        settings.server.public_url,
    )
    overview.notified = notifications.notifier.counts
    admission = Admission(controller, templates or PlainTemplates(), notifications.obstacle)
    workdirs = workdirs or Workdirs(store, clock, workdir_limits(settings.workdirs))
    workdirs.start(writer, partial(needed_workdirs, controller))
    admission.has_archive = workdirs.admits
    access = Access(store, writer, clock, everybody=settings.server.no_auth, bearer=bearer)

    network = make_network(store, writer, clock, link_table, controller.steering)

    def faults() -> Faults:
        trouble = writer.trouble or controller.database_health.trouble
        lost = [each.gateway for each in network.agents.views() if each.state is AgentState.LOST]
        return Faults(controller.live.stages.reached[JobState.FAILED], trouble, lost, writer.unreadable())

    sources = Sources(faults, overview.figures, overview.clusters, overview.network_figures, overview.queue_figures)

    def gateway_of(cluster: str) -> str:
        sides = overview.sides().items()
        return next((name for name, side in sides if cluster in side.cluster.split(",")), "")

    operations = Operations(store, writer, controller, clock, policies, Gate(store, settings.policies.shadow_jobs))
    return ControlPlane(
        settings=settings,
        clock=clock,
        store=store,
        writer=writer,
        feed=feed,
        controller=controller,
        dispatcher=talker,
        jobs=Jobs(store, writer, clock, random, controller.names, controller.standby_obstacle),
        admission=admission,
        overview=overview,
        quota_warnings=QuotaWarnings(controller),
        operations=operations,
        moves=Moves(controller, operations, writer, clock),
        cluster_removal=ClusterRemoval(store, writer, controller, clock),
        access=access,
        whatif=WhatIf(controller, admission, store, Processes(2, log.warning)),
        network=network,
        policies=policies,
        traffic=TrafficWatch(bandwidths, link_table.gateways, settings.network.bandwidth.interval_s, clock, random),
        alerts=Alerts(sources, store, writer, clock),
        evaluations=Evaluations(store, writer, clock),
        notifications=notifications,
        workdirs=workdirs,
        joins=ClusterJoins(settings.clusters, folder, access, clock, gateway_of),
        history=UsageHistory(controller, overview, store, writer, clock, settings.control.sample_interval_s),
        saved_filters=SavedFilters(store, writer, clock),
    )


def make_bearer(settings: IdentitySettings, clock: Clock) -> Bearer | None:
    """Return the verifier of tokens of an identity provider; None without a provider.

    Raises
    ------
    RejectedError
        If a setting is missing.
    """
    if not settings.issuer:
        return None
    from seaway.adapters.oidc import OidcBearer, OidcSettings

    known = {each.name: getattr(settings, each.name) for each in fields(OidcSettings)}
    return OidcBearer(OidcSettings(**known), clock)


def trusted_keys(path: str) -> tuple[PublicKey, ...]:
    """Read the trusted keys for policy signatures; none without a file.

    Raises
    ------
    RejectedError
        If the file cannot be read, or contains no key.
    """
    if not path:
        return ()
    where = f"[policies] trusted_keys: {path}"
    try:
        return read_trusted(Path(path).read_text(encoding="utf-8"))
    except RejectedError as error:
        raise RejectedError(str(error), where=where) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RejectedError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=where) from None


def limits(settings: PolicySettings, clock: Clock) -> Limits:
    """Return the limits of trained policies.

    Raises
    ------
    RejectedError
        If the fallback is not a policy of plugins.
    """
    try:
        make_profile(settings.fallback)
    except RejectedError as error:
        raise RejectedError(error.message, where="[policies] fallback") from None
    return Limits(
        settings.fallback,
        settings.budget_ms,
        settings.failure_threshold,
        settings.cooldown_s,
        now_ns=clock.monotonic_ns,
    )
