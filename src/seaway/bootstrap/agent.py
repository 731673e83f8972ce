"""Wiring of a gateway's agent: its sockets, its privileges and its two threads."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from random import Random
from time import monotonic
from typing import TYPE_CHECKING

from seaway.adapters.privileges import Account, drop_privileges, find_account, forbid_new_privileges
from seaway.adapters.probes.prober import open_prober
from seaway.adapters.probes.reflector import Reflector
from seaway.adapters.probes.sockets import open_namespace
from seaway.application.agent.delivery import Delivery, ResultQueue
from seaway.application.agent.rounds import Leftovers, Rounds, Watch
from seaway.application.agent.settings import AgentSettings, Duty
from seaway.application.network.targets import assignment
from seaway.application.ports.agent import Assignment, Prober, Reported
from seaway.application.ports.clock import SystemClock
from seaway.domain.errors import ConflictError, RejectedError, SeawayError
from seaway.domain.gateways import NetworkConfig

if TYPE_CHECKING:
    from seaway.client.agent import HttpController
    from seaway.client.sync import Client


log = logging.getLogger(__name__)

UNSPECIFIED = IPv6Address("::")
AGAIN_S = 30.0
"""Seconds between two attempts to bind a port that is in use."""


class Reflecting:
    """Reflector of datagrams from other gateways, as configured in the network.

    Create it before privileges are dropped. Afterwards it can still open sockets in the namespace.

    Parameters
    ----------
    address
        Address to listen on; None for all addresses.
    netns
        Name of a network namespace; empty for that of the process.
    now_s
        Monotonic clock, seconds.
    """

    def __init__(
        self, address: IPv6Address | IPv4Address | None, netns: str, now_s: Callable[[], float] = monotonic
    ) -> None:
        self._address = address or UNSPECIFIED
        self.place = open_namespace(netns)
        """Namespace of the socket."""
        self._now_s = now_s
        self._again_s: float | None = None  # time of the next attempt to bind a port in use
        self._reported = ""
        self._heeded: Assignment | None = None
        self._port = 0
        self._reflector: Reflector | None = None
        self._thread: threading.Thread | None = None

    def apply_assignment(self, assignment: Assignment | None) -> float | None:
        """Listen on the assigned port, and respond only to the assigned targets.

        Returns
        -------
        float | None
            Seconds until the next try if the port is in use; None otherwise.
        """
        if assignment is None:
            return None
        if assignment is not self._heeded or (self._again_s is not None and self._now_s() >= self._again_s):
            self._listen_for_probes(assignment)
        return None if self._again_s is None else max(self._again_s - self._now_s(), 0)

    def close(self) -> None:
        """Stop, and release the namespace."""
        self._stop()
        self.place.close()

    def _listen_for_probes(self, assignment: Assignment) -> None:
        self._heeded, self._again_s = assignment, None
        if assignment.reflect != self._port:
            self._stop()
            if assignment.reflect:
                self._start(assignment.reflect)
        if self._reflector:
            self._reflector.set_gateways(each.address for each in assignment.targets)

    def _start(self, port: int) -> None:
        try:
            reflector = self.place.call(lambda: Reflector(self._address, port))
        except RejectedError as error:
            self._again_s = self._now_s() + AGAIN_S
            if str(error) != self._reported:
                log.warning("others' datagrams are not sent back: %s; tried again every %g s", error, AGAIN_S)
            self._reported = str(error)
            return
        self._reported = ""
        self._reflector, self._port = reflector, port
        self._thread = threading.Thread(target=reflector.serve, name="reflector", daemon=True)
        self._thread.start()
        log.info("datagrams of other gateways are sent back from %s port %d", self._address, port)

    def _stop(self) -> None:
        if self._reflector and self._thread:
            self._reflector.stop()
            self._thread.join()
            self._reflector.close()
        self._reflector, self._thread, self._port = None, None, 0


ANY = "any"
"""Value of the address setting with which the routing table selects the source address."""
ASK_S = 5.0
GRACE_S = 3.0
"""Maximum time to send queued results during shutdown, seconds."""
MIB = 1 << 20

Address = IPv6Address | IPv4Address
See = Callable[[Sequence[Reported]], None]


@dataclass(frozen=True, slots=True)
class Known:
    """Inputs of an agent before it opens sockets.

    Attributes
    ----------
    account
        User to switch to.
    controller
        Client of the server; None without a server.
    first
        Targets before the first response of the server; None for none.
    address
        Source address; None if the server provides it or the routing table selects it.
    """

    account: Account
    controller: HttpController | None
    first: Assignment | None
    address: Address | None


@dataclass(frozen=True, slots=True)
class Opened:
    """Resources that require privileges to open."""

    prober: Prober
    reflecting: Reflecting
    address: Address | None
    """Bound address; None if the routing table selects it."""


def know(settings: AgentSettings, environment: Mapping[str, str], network: NetworkConfig | None) -> Known:
    """Validate the settings, and read the token.

    Parameters
    ----------
    network
        Content of the network file; None without a file.

    Raises
    ------
    RejectedError
        If a setting is missing or invalid.
    """
    if not settings.gateway:
        raise RejectedError("say which gateway this is: --gateway NAME", where="[agent] gateway")
    if not settings.server and network is None:
        text = "say whom to report to, --server URL, or what to probe without a server, --network FILE"
        raise RejectedError(text, where="[agent] server")
    account = find_account(settings.user)
    first, address = None, None
    if network is not None:
        first, address = _from_file(settings, network)
    if settings.address and settings.address != ANY:
        address = _address(settings.address)
    controller = _controller(settings, environment) if settings.server else None
    return Known(account, controller, first, None if settings.address == ANY else address)


def ask_address(settings: AgentSettings, known: Known, pause: Callable[[float], object] | None) -> Address | None:
    """Return the source address of probes, from the server if necessary; None if the routing table selects it.

    Parameters
    ----------
    pause
        Sleeps for some seconds before the next request to the server; None for a single request.

    Raises
    ------
    SeawayError
        If the single request fails.
    """
    if known.address or known.controller is None or settings.address == ANY:
        return known.address
    reported = ""
    while True:
        try:
            return known.controller.own_address()
        except SeawayError as error:
            if pause is None:
                raise
            if str(error) != reported:
                log.warning("asking for the own address: %s; tried again every %g s", error, ASK_S)
                reported = str(error)
        pause(ASK_S)


def open_all(settings: AgentSettings, account: Account, address: Address | None) -> Opened:
    """Open all sockets, then drop all privileges.

    Later imports may fail, since Seaway may be installed in a folder that only root can read.

    Raises
    ------
    RejectedError
        If a privilege is missing, or the namespace or the address does not exist.
    """
    import encodings.idna  # noqa: F401  # Python needs it for the first look-up of an address

    forbid_new_privileges()
    prober = open_prober(*([address] if address else []), netns=settings.netns)
    reflecting = Reflecting(address, settings.netns)
    drop_privileges(account, (place.call for place in (prober.place, reflecting.place)))
    return Opened(prober, reflecting, address)


class Agent:
    """Agent with two threads: one for rounds of probes, one for the server and the reflector.

    Parameters
    ----------
    known
        Inputs of the agent.
    opened
        Sockets of the agent.
    see
        Receives the results of each round.
    """

    def __init__(self, settings: AgentSettings, known: Known, opened: Opened, see: See) -> None:
        clock, random = SystemClock(), Random()
        self._address_given, self._compared = known.address is not None, opened.address
        self._opened = opened
        self._see = see
        self._queue = ResultQueue(settings.queue_rounds, settings.queue_mib * MIB)
        self._duty = Duty(known.first)
        self._watch = Watch(clock)
        self._leftovers = Leftovers()
        self._rounds = Rounds(opened.prober, self._duty, clock, random, self._take)
        self._stopping = threading.Event()
        self._duties, self._results = (
            threading.Event(),
            threading.Event(),
        )  # set on new duties and results, and at the end
        self._failure: BaseException | None = None
        self.delivery: Delivery | None = None
        """Delivery of results; None without a server."""
        if known.controller:
            self.delivery = Delivery(
                settings.gateway, known.controller, self._queue, self._duty, clock, random, settings.refresh_s
            )

    def run(self, stopping: threading.Event) -> None:
        """Run until stopped, then send queued results for at most `GRACE_S`.

        Raises
        ------
        BaseException
            The error that ended one of the threads.
        """
        self._stopping = stopping
        gc.freeze()  # these objects are permanent, so the collector can skip them
        probing = self._start("rounds", self._probe)
        delivering = self._start("delivery", self._deliver)
        stopping.wait()
        self._duties.set()
        self._results.set()
        self._opened.prober.close()
        delivering.join(GRACE_S + 1)
        if self.delivery and self.delivery.waiting:
            log.warning("stopping with %d unsent results", self.delivery.waiting)
        self._opened.reflecting.close()
        probing.join(1)
        if self._failure:
            raise self._failure

    def _start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  # raised again in `run`
                if not self._stopping.is_set():
                    self._failure = error
                    self._stopping.set()

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        thread.start()
        return thread

    def _probe(self) -> None:
        while not self._stopping.is_set():
            self._duties.wait(self._rounds.step())
            self._duties.clear()

    def _deliver(self) -> None:
        current_assignment = None
        while not self._stopping.is_set():
            pause = self.delivery.step() if self.delivery else None
            if self._duty.now is not current_assignment:
                current_assignment = self._duty.now
                self._compare(current_assignment)
                self._duties.set()
            again = self._opened.reflecting.apply_assignment(current_assignment)
            self._results.wait(min((each for each in (pause, again) if each is not None), default=None))
            self._results.clear()
        if self.delivery:
            self.delivery.finish(GRACE_S)

    def _compare(self, todo: Assignment | None) -> None:
        """Stop if the configured address of the gateway changed, since binding requires privileges again.

        Raises
        ------
        ConflictError
            If it stops for this reason, after the queued results are sent.
        """
        bound, own = self._opened.address, todo.own if todo else None
        if own is None or bound is None or own == self._compared or self.delivery is None:
            return
        self._compared = own
        if own == bound:
            return
        if self._address_given:
            log.warning(
                "probes come from %s, but the network has %s for this gateway: other agents do not answer them",
                bound,
                own,
            )
            return
        self.delivery.finish(GRACE_S)
        raise ConflictError(f"the gateway's address is now {own}, and probes come from {bound}: start the agent again")

    def _take(self, results: tuple[Reported, ...]) -> None:
        """Queue the results of a round, unless the shutdown interrupted it."""
        if self._stopping.is_set():
            return
        if self.delivery:
            self._queue.put(self._leftovers.settle(results))
            self._results.set()
        self._watch.see(results, self.delivery.waiting if self.delivery else 0)
        self._see(results)


def _from_file(settings: AgentSettings, network: NetworkConfig) -> tuple[Assignment, Address]:
    own = network.gateway(settings.gateway)
    if own is None:
        names = ", ".join(each.name for each in network.gateways) or "none"
        text = f"gateway {settings.gateway!r} not found in it; available: {names}"
        raise RejectedError(text, where=settings.network)
    return assignment(network, 0, settings.gateway), own.address


def _address(text: str) -> Address:
    try:
        return ip_address(text)
    except ValueError:
        raise RejectedError(f"{text!r} is not an address or {ANY!r}", where="[agent] address") from None


def _controller(settings: AgentSettings, environment: Mapping[str, str]) -> HttpController:
    from seaway.client.agent import HttpController

    return HttpController(agent_client(settings, environment), settings.gateway)


def agent_client(settings: AgentSettings, environment: Mapping[str, str]) -> Client:
    """Return a client with the gateway's own token and without retries.

    Raises
    ------
    RejectedError
        If there is no token.
    """
    from seaway.client.connection import Pace
    from seaway.client.sync import Client

    token = _token(settings, environment)
    return Client(settings.server, token, timeout_s=settings.request_timeout_s, pace=Pace(patience_s=0))


def _token(settings: AgentSettings, environment: Mapping[str, str]) -> str:
    if not settings.token_file:
        token = environment.get("SEAWAY_TOKEN", "").strip()
        where, missing = "SEAWAY_TOKEN", "set it, or specify a file: --token-file FILE"
    else:
        where, missing = settings.token_file, "the file contains no token"
        try:
            token = Path(settings.token_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            raise RejectedError(f"the token cannot be read: {error}", where=where) from None
    if not token:
        raise RejectedError(missing, where=where)
    return token
