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

LEADS = "seaway.io/leads"
"""Label of the pod that leads, by which a Service finds it."""

JITTER = 1.2
"""By how many times the pause between two tries to lead is made longer by chance, at most."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is agreed on.

    Attributes
    ----------
    lease_s
        How long a Lease holds that nobody renews.
    renew_s
        How long after its last renewal the leader stops; less than `lease_s`.
    retry_s
        Pause between two tries.
    """

    lease_s: int = 15
    renew_s: float = 10
    retry_s: float = 2


class Candidate:
    """Holds a Lease, or waits for it. For one event loop.

    Parameters
    ----------
    api
        Where the Lease is.
    namespace, name
        Which one; made when it is not there.
    identity
        Who this is; nobody else may be called so.
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
        terms: Terms,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._metadata = {"name": name, "namespace": namespace}
        self._identity = identity
        self._terms = terms
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
        """Whether somebody else held it when it was last seen."""
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
            return False  # somebody else was quicker
        self.until_s = began_s + self._terms.renew_s
        return True

    async def release(self) -> None:
        """Give the Lease back, so that nobody has to wait for its end; raises as `attempt`."""
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
        """Write the Lease, unless somebody else did since it was read."""
        body = {**found, "spec": spec}
        if "resourceVersion" in found["metadata"]:
            path = f"{self._collection}/{self._metadata['name']}"
            await self._api.call("PUT", path, {"fieldManager": MANAGER}, body)
        else:
            await self._api.create(self._collection, body)
        self._see(spec)

    def _may_take(self, spec: Mapping[str, Any]) -> bool:
        """Look whether the Lease is this process's, nobody's, or has not changed for as long as it holds."""
        if spec != self._seen:
            self._see(spec)
        duration_s = spec.get("leaseDurationSeconds") or self._terms.lease_s
        return self.leader in ("", self._identity) or self._clock() >= self._seen_s + duration_s

    def _see(self, spec: Mapping[str, Any]) -> None:
        self._seen, self._seen_s = dict(spec), self._clock()
        self.leader = str(spec.get("holderIdentity") or "")

    def _spec(self, before: Mapping[str, Any]) -> dict[str, Any]:
        now = _now()
        mine = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._terms.lease_s,
            "renewTime": now,
        }
        if before.get("holderIdentity") != self._identity:
            mine |= {"acquireTime": now, "leaseTransitions": int(before.get("leaseTransitions") or 0) + 1}
        return {**before, **mine}


class Sign(Protocol):
    """Where it can be seen from outside who leads."""

    async def show(self, *, leads: bool) -> str:
        """Show whether this process leads; return what keeps it from that, empty when it is shown."""


class NoSign:
    """For who needs none."""

    async def show(self, *, leads: bool) -> str:  # nobody looks
        """Do nothing."""
        return ""


class PodSign:
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
            await self._api.patch(self._path, {"metadata": {"labels": {LEADS: "true" if leads else None}}})
        except (ApiError, UnavailableError) as error:
            return f"the pod cannot be marked: {error}"
        self._shown = leads
        return ""


@dataclass(frozen=True, slots=True)
class Stand:
    """How a process stands that would lead.

    Attributes
    ----------
    why
        Why it does not lead; empty when it does.
    waits
        Whether it can take over from who leads.
    trouble
        What keeps it from showing that it leads.
    """

    why: str = ""
    waits: bool = False
    trouble: str = ""

    @property
    def leads(self) -> bool:
        """Whether it leads."""
        return not self.why


async def lead(candidate: Candidate, terms: Terms, random: Random, sign: Sign, told: Callable[[Stand], None]) -> str:
    """Wait for a Lease, hold it for as long as it can be renewed, and return why it is held no more.

    Parameters
    ----------
    told
        Called after each try to get it, when it is held, and then when what keeps it from being shown begins, changes
        or ends.
    """
    while (stand := await _tried(candidate)).why:
        if stand.waits and (trouble := await sign.show(leads=False)):
            stand = Stand(trouble)
        told(stand)
        await asyncio.sleep(terms.retry_s * random.uniform(1, 1 + JITTER))
    told(stand)
    why = trouble = ""
    while True:
        with suppress(TimeoutError):  # a pause, in which it is shown
            async with asyncio.timeout(terms.retry_s):
                before, trouble = trouble, await sign.show(leads=True)
                if trouble != before:
                    told(Stand(trouble=trouble))
                await asyncio.sleep(terms.retry_s)
        left_s = candidate.left_s
        if left_s <= 0:
            return f"the lease was not renewed for {terms.renew_s:g} s: {why or 'this process stood still'}"
        try:
            async with asyncio.timeout(left_s):
                why = (await _tried(candidate)).why
        except TimeoutError:
            why = "nothing was answered in time"
        if candidate.lost:
            return f"{candidate.leader} leads now"


async def _tried(candidate: Candidate) -> Stand:
    """Try once; tell how that went."""
    try:
        if await candidate.attempt():
            return Stand()
    except (ApiError, UnavailableError) as error:
        return Stand(f"the lease cannot be had: {error}")
    return Stand(f"{candidate.leader or 'somebody else'} leads; this one waits", waits=True)


def _now() -> str:
    """Return the time of day as Kubernetes' MicroTime; for people, nothing is decided by it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
