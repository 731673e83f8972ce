"""The whole wiring of a control plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random, SystemRandom

from seaway.adapters.simulated.faults import NO_FAULTS, Faults
from seaway.application.access import Access, Bearer
from seaway.application.control.dispatch import Dispatcher
from seaway.application.control.loop import Controller
from seaway.application.control.threads import Threads
from seaway.application.door import Door
from seaway.application.feed import Feed
from seaway.application.forgetting import Forgetting
from seaway.application.jobs import Jobs
from seaway.application.operations import Operations
from seaway.application.overview import Overview
from seaway.application.ports.backend import Backends
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.whatif import WhatIf
from seaway.application.writer import Writer
from seaway.bootstrap.settings import ClusterSettings, IdentitySettings, Settings
from seaway.domain.cluster import Fleet
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

    def start(self) -> None:
        """Start the threads that store, decide, and talk to clusters."""
        self.writer.start()
        self.controller.start()

    def stop(self) -> None:
        """Finish what is under way, store it, and end all threads; nothing is lost by it, nor without it."""
        self.controller.stop()
        self.dispatcher.stop()
        self.writer.stop()
        self.store.close()


def make_plane(
    settings: Settings,
    store: Store,
    backends: Backends,
    clock: Clock,
    *,
    dispatcher: Dispatcher | None = None,
    bearer: Bearer | None = None,
    random: Random | None = None,
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
    """
    random = random or SystemRandom()
    store.lead(f"{random.getrandbits(64):016x}")
    writer, feed = Writer(store), Feed()
    writer.listen(feed.publish, feed.forget)
    talker: Dispatcher = dispatcher or Threads(clock, random, settings.control.stale_s)
    controller = Controller(store, writer, backends, talker, _profile, clock, settings.control)
    if isinstance(talker, Threads):
        talker.on_report = controller.wake
    return Plane(
        settings=settings,
        clock=clock,
        store=store,
        writer=writer,
        feed=feed,
        controller=controller,
        dispatcher=talker,
        jobs=Jobs(store, writer, clock, random),
        door=Door(controller),
        overview=Overview(controller, store, backends, writer),
        operations=Operations(store, writer, controller, clock),
        forgetting=Forgetting(store, writer, controller, clock),
        access=Access(store, writer, clock, everybody=settings.server.no_auth, bearer=bearer),
        whatif=WhatIf(controller),
    )


def make_backends(settings: ClusterSettings, clock: Clock, data: Path) -> Backends:
    """Make the clusters that the settings ask for.

    Raises
    ------
    RejectedError
        When the fleet file is wrong, or the journal of the clusters belongs to another fleet.
    """
    from seaway.adapters.simulated.backends import SimulatedBackends
    from seaway.adapters.simulated.client import RemoteSimulatedBackends
    from seaway.adapters.simulated.options import Options

    if settings.simulated_url:
        return RemoteSimulatedBackends(settings.simulated_url)
    faults = some_faults(settings.fault_seed) if settings.fault_seed else NO_FAULTS
    options = Options(faults=faults, start_delay_s=settings.start_delay_s)
    folder = data / "clusters"
    folder.mkdir(parents=True, exist_ok=True)
    return SimulatedBackends(read_fleet(settings.fleet), clock, options, folder)


def some_faults(seed: int) -> Faults:
    """Return faults enough that each kind is seen within the hour, and jobs still get done."""
    return Faults(
        seed=seed,
        refused=0.01,
        slow=0.05,
        slow_s=20,
        start_fails=0.01,
        run_fails=0.02,
        vanishes=0.01,
        request_lost=0.01,
        answer_lost=0.01,
        node_failures_per_h=0.05,
        device_failures_per_h=0.02,
        outages_per_h=0.5,
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


def read_fleet(text: str) -> Fleet:
    """Return the fleet that a user named: ``demo`` or a file.

    Raises
    ------
    RejectedError
        When there is no such file, or it is wrong; says where.
    """
    if text == "demo":
        from seaway.simulation.demo import demo_fleet

        return demo_fleet()
    from seaway.simulation.fleet_yaml import read_fleet_yaml

    return read_fleet_yaml(Path(text))


def _profile(name: str, mix: Sequence[Job]) -> Profile:
    return make_profile(name, PolicyOptions(mix=mix))
