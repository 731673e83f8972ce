"""Leadership by a Lease: of several processes one leads, the others wait for it.

As client-go has it, so that other tools understand who leads. No two clocks are compared: whoever waits counts, by its
own clock, for how long the Lease has not changed; whoever leads stops before anybody else may think it gone.

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
"""Label of the pod that leads, by which a Service finds it."""

JITTER = 1.2
"""By how many times the pause between two tries to lead is made longer by chance, at most."""


@dataclass(frozen=True, slots=True)
class LeaseDurations:
    """What is agreed on.

    Attributes
    ----------
    lease_duration_s
        How long a Lease holds that no one renews.
    renew_deadline_s
        How long after its last renewal the leader stops; less than `lease_duration_s`.
    retry_period_s
        Pause between two tries.
    """

    lease_duration_s: int = 15
    renew_deadline_s: float = 10
    retry_period_s: float = 2


class Candidate:
    """Holds a Lease, or waits for it. For one event loop.

    Parameters
    ----------
    api
        Where the Lease is.
    namespace, name
        Which one; made when it is not there.
    identity
        Who this is; no one else may be called so.
    clock
        Seconds, by a clock that goes on while the process does not.

    Attributes
    ----------
    leader
        Who held it when it was last seen; empty for nobody.
    until_s
        Until when this process may act as its holder, by `clock`.
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
        """For how long this process may still act as the leader, seconds; 0 or less when it may not."""
        return self.until_s - self._clock()

    @property
    def holds(self) -> bool:
        """Whether this process may act as the leader right now."""
        return self.left_s > 0

    @property
    def lost(self) -> bool:
        """Whether another user held it when it was last seen."""
        return self.leader not in ("", self._identity)

    async def attempt(self) -> bool:
        """Take the Lease if it is free, or renew it; tell whether it is held now.

        Raises
        ------
        ApiError, UnavailableError
            When the server refuses or does not answer; a Lease that was held is held on until `until_s`.
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
            return False  # another user was quicker
        self.until_s = began_s + self._terms.renew_deadline_s
        return True

    async def release(self) -> None:
        """Give the Lease back, so that no one has to wait for its end; raises as `attempt`."""
        found = await self._read()
        spec = found.get("spec") or {}
        self.until_s = float("-inf")
        if spec.get("holderIdentity") == self._identity:
            await self._write(found, spec | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()})

    async def _read(self) -> dict[str, Any]:
        """Return the Lease; one without a spec when it is not there."""
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
        """Write the Lease, unless another user did since it was read."""
        body = {**found, "spec": spec}
        if "resourceVersion" in found["metadata"]:
            path = f"{self._collection}/{self._metadata['name']}"
            await self._api.call("PUT", path, {"fieldManager": MANAGER}, body)
        else:
            await self._api.create(self._collection, body)
        self._observe(spec)

    def _may_take(self, spec: Mapping[str, Any]) -> bool:
        """Look whether the Lease is this process's, no one's, or has not changed for as long as it holds."""
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
    """Where it can be seen from outside who leads."""

    async def show(self, *, leads: bool) -> str:
        """Show whether this process leads; return what keeps it from that, empty when it is shown."""


class NoLeaderLabel:
    """For who needs none."""

    async def show(self, *, leads: bool) -> str:  # nobody looks
        """Do nothing."""
        return ""


class PodLeaderLabel:
    """A label of the pod that this process is in: with a Service that asks for it, requests go to the leader alone.

    It outlives a container, so that one which waits takes away first what the one before it left.
    """

    def __init__(self, api: Api, namespace: str, pod: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods/{pod}"
        self._shown: bool | None = None

    async def show(self, *, leads: bool) -> str:
        """See `Sign`."""
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
    """How a process stands that would lead.

    Attributes
    ----------
    reason
        Why it does not lead; empty when it does.
    can_take_over
        Whether it can take over from who leads.
    label_error
        What keeps it from showing that it leads.
    """

    reason: str = ""
    can_take_over: bool = False
    label_error: str = ""

    @property
    def leads(self) -> bool:
        """Whether it leads."""
        return not self.reason


async def lead(
    candidate: Candidate,
    durations: LeaseDurations,
    random: Random,
    label: LeaderLabel,
    on_status: Callable[[LeadershipStatus], None],
) -> str:
    """Wait for a Lease, hold it for as long as it can be renewed, and return why it is held no more.

    Parameters
    ----------
    on_status
        Called after each try to get it, when it is held, and then when what keeps it from being shown begins, changes
        or ends.
    """
    while (stand := await _try_once(candidate)).reason:
        if stand.can_take_over and (trouble := await label.show(leads=False)):
            stand = LeadershipStatus(trouble)
        on_status(stand)
        await asyncio.sleep(durations.retry_period_s * random.uniform(1, 1 + JITTER))
    on_status(stand)
    why = trouble = ""
    while True:
        with suppress(TimeoutError):  # a pause, in which it is shown
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
            why = "nothing was answered in time"
        if candidate.lost:
            return f"{candidate.leader} leads now"


async def _try_once(candidate: Candidate) -> LeadershipStatus:
    """Try once; tell how that went."""
    try:
        if await candidate.attempt():
            return LeadershipStatus()
    except (ApiError, UnavailableError) as error:
        return LeadershipStatus(f"the lease cannot be had: {error}")
    return LeadershipStatus(f"{candidate.leader or 'another user'} leads; this one waits", can_take_over=True)


def _now() -> str:
    """Return the time of day as Kubernetes' MicroTime; for people, nothing is decided by it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
