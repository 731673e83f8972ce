"""Leader election with a Lease: one of several processes runs the control plane, the others wait."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

from seaway.application.control.cluster_threads import Threads
from seaway.application.ports.backend import Answers, Backend, Changes, Command
from seaway.application.ports.clock import Clock
from seaway.bootstrap.settings import LeaderSettings
from seaway.domain.errors import SeawayError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from seaway.adapters.kubernetes.leadership import LeadershipStatus
    from seaway.domain.deployment import Deployment

log = logging.getLogger(__name__)

RELEASE_S = 5.0
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""File in a pod that contains its namespace."""


class Leadership:
    """Leader election of this process.

    Parameters
    ----------
    settings
        The Lease and its durations.
    reported
        Called from another thread when this process becomes the leader, and when it stops being the leader.

    Attributes
    ----------
    waiting
        Reason why this process is not the leader yet.
    can_follow
        True if it can take over from another leader.
    lost
        Reason why it lost the leadership; empty before.

    Raises
    ------
    RejectedError
        If the kubeconfig is invalid.
    """

    def __init__(self, settings: LeaderSettings, reported: Callable[[], None]) -> None:
        from seaway.adapters.kubernetes.connection.api import Api
        from seaway.adapters.kubernetes.connection.contexts import current_context
        from seaway.adapters.kubernetes.connection.credentials import Credentials
        from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
        from seaway.adapters.kubernetes.leadership import Candidate, LeaseDurations, NoLeaderLabel, PodLeaderLabel

        random = SystemRandom()
        file = Path(settings.kubeconfig) if settings.kubeconfig else None
        credentials = Credentials(file, current_context(file) if file else "")
        terms = LeaseDurations(settings.lease_duration_s, settings.renew_deadline_s, settings.retry_period_s)
        self.identity = f"{socket.gethostname()}_{random.getrandbits(64):016x}"
        self._api = Api("the server of the lease", credentials, request_timeout_s=settings.renew_deadline_s / 2)
        namespace = settings.namespace or _own_namespace()
        self._candidate = Candidate(self._api, namespace, settings.lease, self.identity, terms)
        self._sign = PodLeaderLabel(self._api, namespace, settings.pod) if settings.pod else NoLeaderLabel()
        self._reported = reported
        self._trouble = ""
        self.can_follow = False
        self.waiting = "the lease was not requested yet"
        self.lost = ""
        self._led = False
        self._terms, self._random = terms, random
        self._reactor = EventLoopThread()
        self._leading: Future[str] | None = None

    def start(self) -> None:
        """Start to wait for the Lease."""
        from seaway.adapters.kubernetes.leadership import lead

        self._leading = self._reactor.submit(
            lead(self._candidate, self._terms, self._random, self._sign, self._receive)
        )
        self._leading.add_done_callback(self._ended)

    @property
    def holds(self) -> bool:
        """True if this process is the leader, also right after the process was paused."""
        return not self.lost and self._candidate.holds

    def close(self) -> None:
        """Release the Lease, if held, and close. Call it after everything is stored."""
        if self._leading:
            self._leading.cancel()
        if self._led and not self.lost:
            with suppress(SeawayError):  # it then expires
                self._reactor.run(self._candidate.release(), RELEASE_S)
        with suppress(SeawayError):
            self._reactor.run(self._api.close(), RELEASE_S)
        self._reactor.close()

    def _receive(self, stand: LeadershipStatus) -> None:
        if stand.label_error != self._trouble:
            self._trouble = stand.label_error
            log.warning("%s", stand.label_error or "the pod is marked now")
        if stand.label_error:
            return
        if stand.reason != self.waiting:
            log.warning("%s", stand.reason or f"{self.identity} leads")
        self.waiting, self.can_follow = stand.reason, stand.can_take_over
        if stand.leads and not self._led:
            self._led = True
            self._reported()

    def _ended(self, leading: Future[str]) -> None:
        if leading.cancelled():
            return
        error = leading.exception()
        self.lost = f"leading failed: {error!r}" if error else leading.result()
        self._reported()


@dataclass(frozen=True)
class _Fenced:
    """Backend of a cluster that rejects commands after this process lost the Lease."""

    backend: Backend
    holds: Callable[[], bool]

    @property
    def cluster(self) -> str:
        return self.backend.cluster

    def changes(self, cursor: str, wait_s: float) -> Changes:
        return self.backend.changes(cursor, wait_s)

    def send(self, commands: Sequence[Command]) -> Answers:
        if not self.holds():
            raise UnavailableError("this process is not the leader any more")
        return self.backend.send(commands)

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        return self.backend.manifests(deployment)

    def logs(  # see `Backend`
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        return self.backend.logs(copy, replica, tail, container, since_ns, times=times)


class FencedThreads(Threads):
    """Threads that send commands to clusters only while this process is the leader.

    Parameters
    ----------
    holds
        Reports whether it is the leader; called before every batch of commands.
    """

    def __init__(self, clock: Clock, stale_after_s: float, holds: Callable[[], bool]) -> None:
        super().__init__(clock, SystemRandom(), stale_after_s)
        self._holds = holds

    def use(self, backends: Sequence[Backend]) -> None:
        """See `Dispatcher`."""
        super().use([_Fenced(each, self._holds) for each in backends])


def _own_namespace() -> str:
    """Return the namespace of this pod, or the default namespace outside a pod."""
    try:
        return SERVICE_ACCOUNT.read_text(encoding="ascii").strip()
    except OSError:
        return "seaway"
