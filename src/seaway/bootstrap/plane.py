"""The whole wiring of a control plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random, SystemRandom

from seaway.application.access import Access, Bearer
from seaway.application.control.dispatch import Dispatcher
from seaway.application.control.loop import Controller
from seaway.application.control.threads import Threads
from seaway.application.control.warmth import Warmth
from seaway.application.door import Door
from seaway.application.feed import Feed
from seaway.application.forgetting import Forgetting
from seaway.application.jobs import Jobs
from seaway.application.network.book import LinkBook
from seaway.application.network.watching import TrafficWatch
from seaway.application.operations import Operations
from seaway.application.overview import Overview
from seaway.application.ports.backend import Backends
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.ports.templates import PlainTemplates, Templates
from seaway.application.whatif import WhatIf
from seaway.application.writer import Writer
from seaway.bootstrap.bandwidth import make_bandwidths
from seaway.bootstrap.network import Network, make_network
from seaway.bootstrap.settings import IdentitySettings, Settings
from seaway.bootstrap.warming import POLICIES, warm
from seaway.domain.job import Job
from seaway.scheduling.policies import PolicyOptions, make_profile
from seaway.scheduling.profile import Profile


@dataclass(frozen=True, slots=True)
class Plane:
    """A control plane, its parts put together and none of them started."""

    settings: Settings
    clock: Clock
    store: Store
    writer: Writer
    feed: Feed
    controller: Controller
    dispatcher: Dispatcher
    jobs: Jobs
    door: Door
    overview: Overview
    operations: Operations
    forgetting: Forgetting
    access: Access
    whatif: WhatIf
    network: Network
    traffic: TrafficWatch

    def start(self) -> None:
        """Start the threads that store, decide, and talk to clusters."""
        self.writer.start()
        self.controller.start()
        self.network.agents.start()
        self.traffic.start()

    def stop(self) -> None:
        """Finish what is under way, store it, and end all threads; nothing is lost by it, nor without it."""
        self.traffic.stop()
        self.network.agents.stop()
        self.controller.stop()
        self.dispatcher.stop()
        self.writer.stop()
        self.store.close()


def make_plane(  # noqa: PLR0913  # the whole wiring
    settings: Settings,
    store: Store,
    backends: Backends,
    clock: Clock,
    *,
    dispatcher: Dispatcher | None = None,
    bearer: Bearer | None = None,
    random: Random | None = None,
    templates: Templates | None = None,
) -> Plane:
    """Put a control plane together.

    Parameters
    ----------
    store
        Where it keeps everything; this process becomes the one that writes.
    dispatcher
        Who talks to clusters; None for threads.
    bearer
        Knows tokens of an identity provider.
    random
        For ids and for spreading tries; None for the machine's own randomness.
    templates
        What jobs can become; None for what every kind of cluster has.
    """
    random = random or SystemRandom()
    store.lead(f"{random.getrandbits(64):016x}")
    writer, feed = Writer(store), Feed()
    writer.listen(feed.publish, feed.forget)
    talker: Dispatcher = dispatcher or Threads(clock, random, settings.control.stale_s)
    controller = Controller(store, writer, backends, talker, _profile, clock, settings.control)
    if isinstance(talker, Threads):
        talker.on_report = controller.wake
    bandwidths = make_bandwidths(settings.network, clock)
    book = controller.live.book = LinkBook(settings.network.links, settings.control.sample_s, bandwidths)
    controller.scheduler.warmth = Warmth(warm, ready=POLICIES)
    controller.scheduler.warmth.on_ready = controller.wake
    door = Door(controller, templates or PlainTemplates())
    return Plane(
        settings=settings,
        clock=clock,
        store=store,
        writer=writer,
        feed=feed,
        controller=controller,
        dispatcher=talker,
        jobs=Jobs(store, writer, clock, random),
        door=door,
        overview=Overview(controller, store, backends, writer),
        operations=Operations(store, writer, controller, clock),
        forgetting=Forgetting(store, writer, controller, clock),
        access=Access(store, writer, clock, everybody=settings.server.no_auth, bearer=bearer),
        whatif=WhatIf(controller, door),
        network=make_network(store, writer, clock, book, controller.steering),
        traffic=TrafficWatch(bandwidths, book.gateways, settings.network.bandwidth.every_s, clock, random),
    )


def make_bearer(settings: IdentitySettings, clock: Clock) -> Bearer | None:
    """Make what knows the tokens of an identity provider; None without one.

    Raises
    ------
    RejectedError
        When something is missing.
    """
    if not settings.issuer:
        return None
    from seaway.adapters.oidc.bearer import OidcBearer
    from seaway.adapters.oidc.settings import OidcSettings

    return OidcBearer(OidcSettings(**asdict(settings)), clock)


def _profile(name: str, mix: Sequence[Job]) -> Profile:
    return make_profile(name, PolicyOptions(mix=mix))
