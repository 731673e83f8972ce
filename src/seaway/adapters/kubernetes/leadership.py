"""Leader election by a Lease: one process leads, the others wait.

The protocol is that of client-go, so that other tools can read the leader. Clocks of different processes are never
compared. A waiting process measures by its own clock how long the Lease is unchanged. The leader stops before another
process may acquire the Lease.

References
----------
coordination.k8s.io/v1 Lease; k8s.io/client-go ``tools/leaderelection``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, Protocol

import msgspec

from seaway.adapters.kubernetes.connection.api import MANAGER, Api
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.domain.errors import UnavailableError

LEADER_LABEL = "seaway.io/leads"
"""Label of the leader's pod, which a Service uses to select the leader."""

JITTER = 1.2
"""Maximum additional pause between two tries to acquire the Lease, as a multiple of the retry period."""


@dataclass(frozen=True, slots=True)
class LeaseDurations:
    """Durations of leader election.

    Attributes
    ----------
    lease_duration_s
        Validity of a Lease without renewal.
    renew_deadline_s
        Time after its last renewal at which the leader stops; less than `lease_duration_s`.
    retry_period_s
        Pause between two tries.
    """

    lease_duration_s: int = 15
    renew_deadline_s: float = 10
    retry_period_s: float = 2


class Candidate:
    """Process that holds a Lease or waits for it, for one event loop.

    Parameters
    ----------
    api
        API server of the Lease.
    namespace, name
        The Lease; created if it does not exist.
    identity
        Unique name of this process.
    clock
        Clock in seconds that advances while the process is suspended.

    Attributes
    ----------
    leader
        Last observed holder; empty if no process held the Lease.
    until_s
        End of this process's leadership, by `clock`.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        identity: str,
        durations: LeaseDurations,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._metadata = {"name": name, "namespace": namespace}
        self._identity = identity
        self._terms = durations
        self._clock = clock
        self._seen: Mapping[str, Any] = {}
        self._seen_s = 0.0
        self.leader = ""
        self.until_s = float("-inf")

    @property
    def left_s(self) -> float:
        """Remaining seconds of this process's leadership; 0 or less if it does not lead."""
        return self.until_s - self._clock()

    @property
    def holds(self) -> bool:
        """True if this process may act as the leader now."""
        return self.left_s > 0

    @property
    def lost(self) -> bool:
        """True if another process held the Lease when it was last read."""
        return self.leader not in ("", self._identity)

    async def attempt(self) -> bool:
        """Acquire or renew the Lease; return whether this process holds it.

        Raises
        ------
        ApiError, UnavailableError
            When the server refuses or does not answer. A Lease that this process holds stays valid until `until_s`.
        """
        began_s = self._clock()
        found = await self._read()
        if not self._may_take(found.get("spec") or {}):
            return False
        try:
            await self._write(found, self._spec(found.get("spec") or {}))
        except ApiError as error:
            if not error.conflict:
                raise
            return False  # another process was faster
        self.until_s = began_s + self._terms.renew_deadline_s
        return True

    async def release(self) -> None:
        """Release the Lease, so that other processes need not wait for its expiry; raise the errors of `attempt`."""
        found = await self._read()
        spec = found.get("spec") or {}
        self.until_s = float("-inf")
        if spec.get("holderIdentity") == self._identity:
            await self._write(found, spec | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()})

    async def _read(self) -> dict[str, Any]:
        """Return the Lease, without a spec if it does not exist."""
        try:
            found: dict[str, Any] = msgspec.json.decode(
                await self._api.get(f"{self._collection}/{self._metadata['name']}"), type=dict[str, Any]
            )
        except ApiError as error:
            if not error.missing:
                raise
            return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": self._metadata}
        return found

    async def _write(self, found: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        """Write the Lease, unless another process has written it since it was read."""
        body = {**found, "spec": spec}
        if "resourceVersion" in found["metadata"]:
            path = f"{self._collection}/{self._metadata['name']}"
            await self._api.call("PUT", path, {"fieldManager": MANAGER}, body)
        else:
            await self._api.create(self._collection, body)
        self._observe(spec)

    def _may_take(self, spec: Mapping[str, Any]) -> bool:
        """Check that the Lease is free, is held by this process, or was unchanged for its duration."""
        if spec != self._seen:
            self._observe(spec)
        duration_s = spec.get("leaseDurationSeconds") or self._terms.lease_duration_s
        return self.leader in ("", self._identity) or self._clock() >= self._seen_s + duration_s

    def _observe(self, spec: Mapping[str, Any]) -> None:
        self._seen, self._seen_s = dict(spec), self._clock()
        self.leader = str(spec.get("holderIdentity") or "")

    def _spec(self, before: Mapping[str, Any]) -> dict[str, Any]:
        now = _now()
        mine = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._terms.lease_duration_s,
            "renewTime": now,
        }
        if before.get("holderIdentity") != self._identity:
            mine |= {"acquireTime": now, "leaseTransitions": int(before.get("leaseTransitions") or 0) + 1}
        return {**before, **mine}


class LeaderLabel(Protocol):
    """Label that shows the leader to other components."""

    async def show(self, *, leads: bool) -> str:
        """Show whether this process leads; return the error, or an empty text on success."""


class NoLeaderLabel:
    """Leader label that has no effect."""

    async def show(self, *, leads: bool) -> str:
        """Do nothing."""
        return ""


class PodLeaderLabel:
    """Label on this process's pod. A Service that selects it sends requests only to the leader.

    The label outlives a container. A waiting process therefore first removes the label of an earlier container.
    """

    def __init__(self, api: Api, namespace: str, pod: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods/{pod}"
        self._shown: bool | None = None

    async def show(self, *, leads: bool) -> str:
        """Set or remove the label; see `LeaderLabel`."""
        if self._shown is leads:
            return ""
        try:
            await self._api.patch(self._path, {"metadata": {"labels": {LEADER_LABEL: "true" if leads else None}}})
        except (ApiError, UnavailableError) as error:
            return f"the pod cannot be marked: {error}"
        self._shown = leads
        return ""


@dataclass(frozen=True, slots=True)
class LeadershipStatus:
    """Status of a process in the leader election.

    Attributes
    ----------
    reason
        Reason why it does not lead; empty if it leads.
    can_take_over
        True if it can take over from the leader.
    label_error
        Error that prevents it from setting the leader label.
    """

    reason: str = ""
    can_take_over: bool = False
    label_error: str = ""

    @property
    def leads(self) -> bool:
        """True if it leads."""
        return not self.reason


async def lead(
    candidate: Candidate,
    durations: LeaseDurations,
    random: Random,
    label: LeaderLabel,
    on_status: Callable[[LeadershipStatus], None],
) -> str:
    """Wait for a Lease, hold it while it can be renewed, and return the reason for its loss.

    Parameters
    ----------
    on_status
        Called after each try to acquire the Lease and when it is held. While it is held, called when the error of the
        label changes.
    """
    while (stand := await _try_once(candidate)).reason:
        if stand.can_take_over and (trouble := await label.show(leads=False)):
            stand = LeadershipStatus(trouble)
        on_status(stand)
        await asyncio.sleep(durations.retry_period_s * random.uniform(1, 1 + JITTER))
    on_status(stand)
    why = trouble = ""
    while True:
        with suppress(TimeoutError):  # pause, and update the label
            async with asyncio.timeout(durations.retry_period_s):
                before, trouble = trouble, await label.show(leads=True)
                if trouble != before:
                    on_status(LeadershipStatus(label_error=trouble))
                await asyncio.sleep(durations.retry_period_s)
        left_s = candidate.left_s
        if left_s <= 0:
            return (
                f"the lease was not renewed for {durations.renew_deadline_s:g} s: {why or 'this process stood still'}"
            )
        try:
            async with asyncio.timeout(left_s):
                why = (await _try_once(candidate)).reason
        except TimeoutError:
            why = "there was no answer in time"
        if candidate.lost:
            return f"{candidate.leader} leads now"


async def _try_once(candidate: Candidate) -> LeadershipStatus:
    """Try once to acquire the Lease; return the status."""
    try:
        if await candidate.attempt():
            return LeadershipStatus()
    except (ApiError, UnavailableError) as error:
        return LeadershipStatus(f"the lease cannot be acquired: {error}")
    return LeadershipStatus(
        f"{candidate.leader or 'another user'} is the leader; this process is a standby", can_take_over=True
    )


def _now() -> str:
    """Return the current time as Kubernetes' MicroTime, for display only."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
