"""Active path from one gateway to another: selected paths, and paths that gateways confirmed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.network.link_table import LinkTable
from seaway.application.network.paths import Crossing, Measured
from seaway.application.network.targets import choices, require_gateway
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import Event, PathRecord
from seaway.application.writer import Writer
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import NetworkConfig, Pair
from seaway.domain.network import Ends

Follower = Callable[[Mapping[Ends, str]], None]
"""Hears which paths are taken, by the names of their ends."""

MAX_ERRORS = 50

FOLLOWS_S = 60.0
"""Seconds after its last request during which a gateway counts as following its configuration."""


class ActivePaths:
    """Keeps which paths are taken. Every method may be called from any thread."""

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._lock = threading.Lock()
        self._changing = threading.Lock()
        self._config: NetworkConfig | None = None
        self._own: dict[Ends, Pair] = {}  # those with paths of their own
        self._followers: list[Follower] = []
        self._rows = {(row.source, row.target): row for row in store.paths()}
        self._asked_ns: dict[str, int] = {}

    def use(self, config: NetworkConfig | None) -> None:
        """Know the network from now on: a path that was chosen and is there no more is not taken."""
        with self._lock:
            self._config = config
            self._own = {(pair.source, pair.target): pair for pair in config.pairs} if config else {}
        self._tell()

    def follow(self, follower: Follower) -> None:
        """Call a follower with the active paths, now and after each change."""
        self._followers.append(follower)
        follower(self.taken())

    def chosen(self) -> dict[Ends, str]:
        """Return which path was chosen where one was and is there."""
        return self._said(lambda row: row.active)

    def taken(self) -> dict[Ends, str]:
        """Return which path traffic takes: the one that its gateway has written, else the one that was chosen."""
        return {**self.chosen(), **self._said(lambda row: row.applied)}

    def asked(self, source: str) -> None:
        """Record that a gateway requested its configuration."""
        with self._lock:
            self._asked_ns[source] = self._clock.monotonic_ns()

    def steerable(self) -> dict[Ends, str]:
        """Return the pairs with several paths whose path can be changed now, with the active path.

        Their gateways requested their configuration lately and confirmed the last one.
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
            wanted = chosen.get(ends) or liked_best(pair)
            if pair.source in follow and taken.get(ends) == wanted:
                found[ends] = wanted
        return found

    def _said(self, read: Callable[[PathRecord], str]) -> dict[Ends, str]:
        """Return what rows say of paths that are there."""
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
            When there is no such gateway.
        """
        with self._lock:
            config = self._config
        pairs = config.pairs_from(require_gateway(config, source)) if config else ()
        chosen = self.chosen()
        return {
            pair.target: chosen.get((source, pair.target)) or liked_best(pair)
            for pair in pairs
            if not pair.load_balance
        }

    def applied(self, source: str) -> dict[str, str]:
        """Return which path a gateway said last that it has written, by target."""
        with self._lock:
            return {row.target: row.applied for row in self._rows.values() if row.source == source and row.applied}

    def choose(self, source: str, target: str, path: str, why: str) -> None:
        """Have traffic take a path from now on.

        Raises
        ------
        RejectedError
            When the pair has no such path, or shares its traffic.
        """
        with self._changing:
            if path not in self._choices(source).get(target, ()):
                raise RejectedError(f"path {path!r} not found to choose from {source} to {target}", where="path")
            now_ns = self._clock.now_ns()
            row = self._row(source, target)
            if row.active == path:
                return
            event = Event(now_ns, "path", f"traffic from {source} to {target} takes {path}: {why}", "seaway")
            chosen = replace(row, active=path, active_ns=now_ns, why=why)
            self._writer.require(Change(put=[chosen], insert=[event]))
            self._keep(chosen)
        self._tell()

    def confirm(self, source: str, active: Mapping[str, str]) -> bool:
        """Take down what a gateway says that it has written; return whether that is news.

        Raises
        ------
        RejectedError
            When it names a target or a path that is not there; nothing of it is taken down then.
        """
        with self._changing:
            there = self._choices(source)
            wrong = [
                RejectedError(f"no path {path[:80]!r} leads there", where=f"active.{target[:80]}")
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
        self._tell()
        return True

    def _choices(self, source: str) -> dict[str, set[str]]:
        """Return the paths that a gateway may take, by target."""
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

    def _tell(self) -> None:
        taken = self.taken()
        for follower in self._followers:
            follower(taken)


def liked_best(pair: Pair) -> str:
    """Return the path that a pair takes where no one chose one: the first of those with the largest weight."""
    return max(pair.paths, key=lambda path: path.weight).name


def _has(pair: Pair, path: str) -> bool:
    return not pair.load_balance and any(each.name == path for each in pair.paths)


class ActivePathController:
    """Puts together which paths are taken and what the link book knows of them."""

    def __init__(self, active: ActivePaths, link_table: LinkTable, clock: Clock) -> None:
        self._active = active
        self._link_table = link_table
        self._clock = clock

    def crossings(self) -> list[Crossing]:
        """Return the pairs of gateways whose traffic can be steered now."""
        now_ns = self._clock.now_ns()
        return [
            Crossing(*ends, current, measured)
            for ends, current in self._active.steerable().items()
            if (measured := tuple(Measured(*each) for each in self._link_table.along(ends, now_ns)))
        ]

    def choose(self, source: str, target: str, path: str, why: str) -> None:
        """Have traffic take a path from now on."""
        self._active.choose(source, target, path, why)
