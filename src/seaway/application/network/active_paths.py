"""Active paths between gateways: selected by the control plane, and confirmed by gateways."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.network.link_table import LinkTable
from seaway.application.network.paths import Measured, SteerablePair, serving_gateway
from seaway.application.network.targets import choices, require_gateway
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import Event, PathRecord
from seaway.application.writer import Writer
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import NetworkConfig, Pair
from seaway.domain.network import Ends
from seaway.domain.reasons import Reason

Follower = Callable[[Mapping[Ends, str]], None]
"""Receiver of the active paths, by source and target."""

MAX_ERRORS = 50

FOLLOWS_S = 60.0
"""Seconds after its last request during which a gateway counts as following its configuration."""


class ActivePaths:
    """Selected and confirmed paths. Thread-safe."""

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._lock = threading.Lock()
        self._changing = threading.Lock()
        self._config: NetworkConfig | None = None
        self._own: dict[Ends, Pair] = {}  # pairs with paths of their own
        self._followers: list[Follower] = []
        self._rows = {(row.source, row.target): row for row in store.paths()}
        self._asked_ns: dict[str, int] = {}

    def use(self, config: NetworkConfig | None) -> None:
        """Set the network. Selected paths that it does not contain become inactive."""
        with self._lock:
            self._config = config
            self._own = {(pair.source, pair.target): pair for pair in config.pairs} if config else {}
        self._notify()

    def follow(self, follower: Follower) -> None:
        """Call a follower with the active paths, now and after each change."""
        self._followers.append(follower)
        follower(self.taken())

    def chosen(self) -> dict[Ends, str]:
        """Return the selected path of each pair, without removed paths."""
        return self._paths(lambda row: row.active)

    def taken(self) -> dict[Ends, str]:
        """Return the active path of each pair: the confirmed path, or else the selected one.

        The key ``("", cluster)`` has the gateway that carries the traffic of a cluster.
        """
        with self._lock:
            serving = {ends: row.active for ends, row in self._rows.items() if not row.source}
        return {**self.chosen(), **self._paths(lambda row: row.applied), **serving}

    def serving(self) -> dict[str, str]:
        """Return the gateway that carries the traffic of each cluster."""
        with self._lock:
            chosen = {row.target: row.active for row in self._rows.values() if not row.source}
            return self._config.serving(chosen) if self._config else {}

    def serve(self, cluster: str, gateway: str, why: str) -> None:
        """Select the gateway that carries the traffic of a cluster."""
        with self._changing:
            now_ns = self._clock.now_ns()
            text = Reason("cluster_takes", cluster=cluster, gateway=gateway, why=why)
            event = Event(now_ns, "path", text, "seaway")
            chosen = replace(self._row("", cluster), active=gateway, active_ns=now_ns, why=str(why))
            self._writer.require(Change(put=[chosen], insert=[event]))
            self._keep(chosen)
        self._notify()

    def asked(self, source: str) -> None:
        """Record that a gateway requested its configuration."""
        with self._lock:
            self._asked_ns[source] = self._clock.monotonic_ns()

    def steerable(self) -> dict[Ends, str]:
        """Return the pairs whose path can change now, with the active path.

        These pairs have several paths, and their gateway recently requested its configuration and confirmed the last
        one.
        """
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            config = self._config or NetworkConfig()
            follow = {source for source, asked_ns in self._asked_ns.items() if now_ns - asked_ns <= FOLLOWS_S * 1e9}
        if not follow:
            return {}
        chosen, taken, found = self.chosen(), self.taken(), {}
        for pair in choices(config):
            ends = pair.source, pair.target
            wanted = chosen.get(ends) or default_path(pair)
            if pair.source in follow and taken.get(ends) == wanted:
                found[ends] = wanted
        return found

    def _paths(self, read: Callable[[PathRecord], str]) -> dict[Ends, str]:
        """Return one path per row, without removed paths."""
        with self._lock:
            return {
                ends: read(row)
                for ends, row in self._rows.items()
                if ends in self._own and _has(self._own[ends], read(row))
            }

    def of(self, source: str) -> dict[str, str]:
        """Return the path that a gateway has to use, by target, without pairs that share traffic.

        Raises
        ------
        UnknownError
            If the gateway does not exist.
        """
        with self._lock:
            config = self._config
        pairs = config.pairs_from(require_gateway(config, source)) if config else ()
        chosen = self.chosen()
        return {
            pair.target: chosen.get((source, pair.target)) or default_path(pair)
            for pair in pairs
            if not pair.load_balance
        }

    def applied(self, source: str) -> dict[str, str]:
        """Return the paths that a gateway confirmed last, by target."""
        with self._lock:
            return {row.target: row.applied for row in self._rows.values() if row.source == source and row.applied}

    def choose(self, source: str, target: str, path: str, why: str) -> None:
        """Select the path of the traffic between two gateways.

        Raises
        ------
        RejectedError
            If the pair has no such path, or shares its traffic.
        """
        with self._changing:
            if path not in self._choices(source).get(target, ()):
                raise RejectedError(Reason("path_not_found", path=path, source=source, target=target), where="path")
            now_ns = self._clock.now_ns()
            row = self._row(source, target)
            if row.active == path:
                return
            text = Reason("traffic_takes", source=source, target=target, path=path, why=why)
            event = Event(now_ns, "path", text, "seaway")
            chosen = replace(row, active=path, active_ns=now_ns, why=str(why))
            self._writer.require(Change(put=[chosen], insert=[event]))
            self._keep(chosen)
        self._notify()

    def confirm(self, source: str, active: Mapping[str, str]) -> bool:
        """Store the paths that a gateway confirms; report whether any of them is new.

        Raises
        ------
        RejectedError
            If a target or path is unknown. Nothing is stored then.
        """
        with self._changing:
            there = self._choices(source)
            wrong = [
                RejectedError(Reason("target_path_not_found", path=path[:80]), where=f"active.{target[:80]}")
                for target, path in active.items()
                if path not in there.get(target, ())
            ][:MAX_ERRORS]
            if wrong:
                raise RejectedError(wrong[0].message, where=wrong[0].where, also=tuple(wrong[1:]))
            now_ns = self._clock.now_ns()
            rows = [
                replace(row, applied=path, applied_ns=now_ns)
                for target, path in active.items()
                if (row := self._row(source, target)).applied != path
            ]
            if not rows:
                return False
            self._writer.require(Change(put=[*rows]))
            self._keep(*rows)
        self._notify()
        return True

    def _choices(self, source: str) -> dict[str, set[str]]:
        return {
            pair.target: {path.name for path in pair.paths} for pair in self._pairs(source) if not pair.load_balance
        }

    def _pairs(self, source: str) -> tuple[Pair, ...]:
        with self._lock:
            config = self._config or NetworkConfig()
        return config.pairs_from(require_gateway(config, source))

    def _row(self, source: str, target: str) -> PathRecord:
        return self._rows.get((source, target)) or PathRecord(source, target)

    def _keep(self, *rows: PathRecord) -> None:
        with self._lock:
            self._rows.update({(row.source, row.target): row for row in rows})

    def _notify(self) -> None:
        taken = self.taken()
        for follower in self._followers:
            follower(taken)


def default_path(pair: Pair) -> str:
    """Return the default path of a pair: the first one with the largest weight."""
    return max(pair.paths, key=lambda path: path.weight).name


def _has(pair: Pair, path: str) -> bool:
    return not pair.load_balance and any(each.name == path for each in pair.paths)


class ActivePathController:
    """Combination of active paths with their measurements."""

    def __init__(self, active: ActivePaths, link_table: LinkTable, clock: Clock) -> None:
        self._active = active
        self._link_table = link_table
        self._clock = clock

    def crossings(self) -> list[SteerablePair]:
        """Return the pairs of gateways whose traffic can be steered."""
        now_ns = self._clock.now_ns()
        return [
            SteerablePair(*ends, current, measured)
            for ends, current in self._active.steerable().items()
            if (measured := tuple(Measured(*each) for each in self._link_table.along(ends, now_ns)))
        ]

    def choose(self, source: str, target: str, path: str, why: str) -> None:
        """Select the path of the traffic between two gateways."""
        self._active.choose(source, target, path, why)

    def fail_over(self) -> None:
        """Select another gateway for each cluster whose gateway does not answer while another one does."""
        gateways: dict[str, list[str]] = {}
        for each in self._link_table.gateways():
            if each.cluster:
                gateways.setdefault(each.cluster, []).append(each.name)
        several = {cluster: names for cluster, names in gateways.items() if len(names) > 1}
        if not several:
            return
        answers, serving = self._link_table.answering(self._clock.now_ns()), self._active.serving()
        for cluster, names in several.items():
            current = serving.get(cluster, names[0])
            if (best := serving_gateway(names, current, answers)) != current:
                self._active.serve(cluster, best, Reason("no_answer_of", name=current))
