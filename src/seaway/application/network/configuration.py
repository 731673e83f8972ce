"""Configuration of the network between gateways. It is validated and replaced as a whole, and sent to followers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

from seaway.application.changes import Change
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import Event, NetworkRecord
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, RejectedError, StaleError, UnknownError
from seaway.domain.gateways import GatewayConfig, NetworkConfig, Pair
from seaway.domain.job_spec import JobSpec
from seaway.domain.network import NO_NEED
from seaway.domain.reasons import Reason


def differences(before: NetworkConfig, after: NetworkConfig) -> list[str]:
    """Return the differences of two networks: gateways, explicit pairs, the mesh, and the probes."""
    return [*_gateways(before, after), *_pairs(before, after), *_whole(before, after)]


def _gateways(before: NetworkConfig, after: NetworkConfig) -> Iterator[str]:
    old, new = ({each.name: each for each in config.gateways} for config in (before, after))
    yield from (Reason("gateway_added", name=name) for name in new if name not in old)
    yield from (Reason("gateway_removed", name=name) for name in old if name not in new)
    for name, gateway in new.items():
        if name in old and (changed := _changed(old[name], gateway)):
            yield Reason("gateway_changed", name=name, changes=tuple(changed))
    if list(old) != list(new) and sorted(old) == sorted(new):
        yield Reason("order_changed")


def _changed(old: GatewayConfig, new: GatewayConfig) -> list[str]:
    names = (each.name for each in fields(old) if getattr(old, each.name) != getattr(new, each.name))
    return [
        Reason("field_changed", field=name.removesuffix("_mbps"), before=_shown(old, name), after=_shown(new, name))
        for name in names
    ]


def _shown(gateway: GatewayConfig, name: str) -> str:
    value = getattr(gateway, name)
    if name == "sids":
        return "/".join(str(sid.address) for sid in value) or Reason("none")
    if name == "prefixes":
        return "/".join(map(str, value)) or Reason("none")
    if name == "method":
        return str(value.value)
    return str(value) if value else Reason("none")


def _pairs(before: NetworkConfig, after: NetworkConfig) -> Iterator[str]:
    old, new = ({(each.source, each.target): each for each in config.pairs} for config in (before, after))
    for ends in (*new, *(each for each in old if each not in new)):
        if ends not in old:
            yield Reason("own_paths", source=ends[0], target=ends[1], paths=_named(new[ends]))
        elif ends not in new:
            yield Reason("paths_of_mesh", source=ends[0], target=ends[1])
        elif old[ends] != new[ends]:
            before_after = {"before": _named(old[ends]), "after": _named(new[ends])}
            yield Reason("paths_changed", source=ends[0], target=ends[1], **before_after)


def _named(pair: Pair) -> Reason:
    paths = tuple(
        Reason("path_of_weight", name=path.name, segments=">".join(map(str, path.segments)), weight=path.weight)
        for path in pair.paths
    )
    return Reason("shared_paths" if pair.load_balance else "listed_paths", paths=paths)


def _whole(before: NetworkConfig, after: NetworkConfig) -> Iterator[str]:
    if before.mesh != after.mesh:
        yield Reason("all_connected" if after.mesh else "pairs_not_connected")
    for each in fields(before.probe):
        old, new = getattr(before.probe, each.name), getattr(after.probe, each.name)
        if old != new:
            field = each.name.removesuffix("_s")
            yield Reason("probe_changed", field=field, before=float(old), after=float(new))


log = logging.getLogger(__name__)

MAX_NAMED = 5
"""Maximum number of jobs that a message names."""


@dataclass(frozen=True, slots=True)
class Configured:
    """The configured network.

    Attributes
    ----------
    text
        The configuration as text.
    version
        Counter of changes.
    actor, at_ns
        User and time of the last change.
    """

    config: NetworkConfig
    text: str
    version: int
    actor: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Effect of a change of the network.

    Attributes
    ----------
    changes
        Differences, one sentence each; empty if nothing changes.
    impact
        Effects on running jobs, one sentence each.
    version
        Version of the network after the change.
    """

    changes: tuple[str, ...]
    impact: tuple[str, ...]
    version: int


Precondition = Callable[[Configured | None], bool]
"""Check that a change is based on the current configuration; None for a missing configuration."""

Follower = Callable[[NetworkConfig | None], None]
"""Receiver of new configurations."""


class Documents(Protocol):
    """Conversion of a network to text and back."""

    def read(self, text: str) -> NetworkConfig:
        """Parse a text that `write` returned.

        Raises
        ------
        RejectedError
            If the text is invalid.
        """

    def write(self, config: NetworkConfig) -> str:
        """Return a network as text."""


class Configuration:
    """Storage and changes of the network configuration. Thread-safe.

    Parameters
    ----------
    documents
        Conversion of a network to text and back.
    """

    def __init__(self, store: Store, writer: Writer, clock: Clock, documents: Documents) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._documents = documents
        self._followers: list[Follower] = []
        self._changing = threading.Lock()  # serializes changes
        stored = store.network()
        self._version = stored.version if stored else 0
        self._now = self._read(stored) if stored and stored.text else None

    @property
    def now(self) -> Configured | None:
        """Current configuration; None if it does not exist or cannot be read."""
        return self._now

    @property
    def version(self) -> int:
        """Number of changes so far; 0 before the first."""
        return self._version

    def follow(self, follower: Follower) -> None:
        """Call a follower with the configuration, now and during each change."""
        self._followers.append(follower)
        follower(self._now.config if self._now else None)

    def plan(self, config: NetworkConfig, meant: Precondition | None = None) -> Plan:
        """Return the effect of a configuration without setting it.

        Raises
        ------
        StaleError
            If the change is based on another configuration (`meant`).
        """
        self._require_precondition(meant)
        changes = differences(self._now.config if self._now else NetworkConfig(), config)
        made = tuple(changes) if changes or self._now else (Reason("network_created"),)
        return Plan(made, tuple(self._affected_jobs(config)), self._version + bool(made))

    def put(self, config: NetworkConfig, actor: str, meant: Precondition | None = None, *, force: bool = False) -> Plan:
        """Set the configuration. An unchanged configuration is not stored.

        Raises
        ------
        StaleError
            If the change is based on another configuration (`meant`).
        ConflictError
            If the change removes a gateway that running jobs use, without `force`.
        """
        with self._changing:
            plan = self.plan(config, meant)
            _require_harmless(plan, force)
            if plan.changes:
                self._set(config, self._documents.write(config), actor, _summary(plan.changes))
            return plan

    def delete(self, actor: str, meant: Precondition | None = None, *, force: bool = False) -> None:
        """Remove the configuration. Measurements stop, and links reported by clusters are used again.

        Raises
        ------
        UnknownError
            If no configuration exists.
        StaleError, ConflictError
            As for `put`.
        """
        with self._changing:
            stored = self._store.network()
            if stored is None or not stored.text:
                raise UnknownError(Reason("no_network"))
            _require_harmless(self.plan(NetworkConfig(), meant), force)
            self._set(None, "", actor, (Reason("network_removed"),))

    def _set(self, config: NetworkConfig | None, text: str, actor: str, changes: tuple[str, ...]) -> None:
        record = NetworkRecord(text, self._version + 1, actor, self._clock.now_ns())
        event = Event(record.at_ns, "network", Reason("network_changed", clauses=changes), actor)
        self._writer.require(Change(put=[record], insert=[event]))
        self._version = record.version
        self._now = None if config is None else Configured(config, text, record.version, actor, record.at_ns)
        for follower in self._followers:
            follower(config)

    def _read(self, stored: NetworkRecord) -> Configured | None:
        try:
            config = self._documents.read(stored.text)
        except RejectedError as error:  # a newer version may be stricter; everything else has to continue
            log.error("the stored network configuration is invalid and ignored: %s", error)
            return None
        return Configured(config, stored.text, stored.version, stored.actor, stored.at_ns)

    def _require_precondition(self, meant: Precondition | None) -> None:
        if meant is not None and not meant(self._now):
            raise StaleError(Reason("network_changed_since"))

    def _affected_jobs(self, config: NetworkConfig) -> list[str]:
        """Return a sentence for each removed gateway that jobs with allocations use."""
        retained = {each.name for each in config.gateways}
        served = {each.cluster for each in config.gateways if each.cluster}
        gone = {each.name: each.cluster for each in self._now.config.gateways} if self._now else {}
        gone = {name: "" if cluster in served else cluster for name, cluster in gone.items() if name not in retained}
        if not gone:
            return []
        users: dict[str, list[str]] = {name: [] for name in gone}
        for attempt in self._store.held_attempts():
            for name, cluster in gone.items():
                if _uses(attempt.spec, attempt.clusters, name, cluster):
                    users[name].append(attempt.spec.name)
        return [Reason("gateway_used", name=name, jobs=_abbreviated(jobs)) for name, jobs in users.items() if jobs]


def _uses(spec: JobSpec, clusters: Sequence[str], gateway: str, cluster: str) -> bool:
    """Report whether a job uses measurements at a gateway."""
    if spec.demand.gateway == gateway:
        return True
    needs = bool(spec.demand.gateway) or spec.between_replicas != NO_NEED
    return needs and bool(cluster) and cluster in clusters


def _require_harmless(plan: Plan, force: bool) -> None:
    if plan.impact and not force:
        raise ConflictError(Reason("gateways_in_use", clauses=tuple(plan.impact)))


def _abbreviated(jobs: Sequence[str]) -> str:
    named = ", ".join(jobs[:MAX_NAMED])
    return named if len(jobs) <= MAX_NAMED else Reason("and_more", what=named, count=len(jobs) - MAX_NAMED)


def _summary(changes: Sequence[str]) -> tuple[str, ...]:
    more = len(changes) - MAX_NAMED
    return (*changes[:MAX_NAMED], *((Reason("more_changes", count=more),) if more > 0 else ()))
