"""Link table: reports of agents, and the resulting links for the engine and for views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from seaway.application.network.bandwidth import Bandwidths, Interface
from seaway.application.network.path_state import LinkSettings, PathState
from seaway.application.network.targets import probed
from seaway.application.network.views import Asked, LinkState, LinkView
from seaway.application.ports.agent import Reported
from seaway.application.ports.traffic import Traffic
from seaway.application.records import LinkSample
from seaway.domain.gateways import GatewayConfig, NetworkConfig
from seaway.domain.network import PPM, Ends, Gateway, Link
from seaway.probing.rounds import Figures
from seaway.probing.smoothing import UNREACHABLE

NS_PER_S = 1_000_000_000

LOOK_NS = NS_PER_S
"""Nanoseconds between two checks of the traffic of interfaces."""

TRAFFIC_BAND = 0.05
"""Minimum change of the traffic of an interface, as a share of its speed, for decisions to use the new value."""

MAX_SAMPLED = 1000
"""Maximum number of links per sample. With more links, each link is sampled proportionally less often."""

AS_ROUTED = ""
"""Path name of probes that follow the default route."""


@dataclass(frozen=True, slots=True)
class NetworkSnapshot:
    """The configured network with the measurements that decisions use.

    Attributes
    ----------
    gateways, links
        Their use includes all traffic of interfaces, also that of jobs with bandwidth reservations.
    gateways_by_cluster
        Gateway that carries the traffic of each cluster, by name.
    sites
        User site of each gateway, by name.
    standby
        Cluster of each other gateway, by name.
    """

    gateways: tuple[Gateway, ...] = ()
    links: tuple[Link, ...] = ()
    gateways_by_cluster: Mapping[str, str] = field(default_factory=dict)
    sites: Mapping[str, str] = field(default_factory=dict)
    standby: Mapping[str, str] = field(default_factory=dict)


NO_NETWORK_SNAPSHOT = NetworkSnapshot()
"""Snapshot without a configured network."""


class LinkTable:
    """State of all links. The receiver of reports writes it, and any thread can read it.

    The table is empty without a configured network.

    Parameters
    ----------
    settings
        Smoothing and publishing of figures.
    sample_interval_s
        Seconds between two stored samples.
    bandwidths
        Traffic of interfaces; None without a meter.

    Attributes
    ----------
    on_change
        Called without the lock when reports, the configuration or active paths change links.
    """

    def __init__(
        self, settings: LinkSettings | None = None, sample_interval_s: float = 60, bandwidths: Bandwidths | None = None
    ) -> None:
        self._settings = settings or LinkSettings()
        self._sample_s = sample_interval_s
        self._bandwidths = bandwidths
        self._lock = Lock()
        self._config: NetworkConfig | None = None
        self._gateways: dict[str, GatewayConfig] = {}
        self._ways: dict[Ends, dict[str, object]] = {}
        self._shared: set[Ends] = set()
        self._active: dict[Ends, str] = {}
        self._lines: dict[Ends, dict[str, PathState]] = {}
        self._last_seen_ns: dict[str, int] = {}
        self._rounds: Counter[tuple[str, str]] = Counter()
        self._traffic: dict[str, Traffic | None] = {}
        self._looked_ns: int | None = None
        self._links: dict[Ends, Link] = {}
        self._network_snapshot = NO_NETWORK_SNAPSHOT
        self._changed: set[Ends] = set()
        self._check_ns: int | None = None
        self._turn = 0
        self.on_change: Callable[[], None] = lambda: None

    # Configuration.

    def use(self, config: NetworkConfig | None, now_ns: int) -> None:
        """Set the network; drop the measurements of removed or changed links."""
        with self._lock:
            before, self._config = set(self._gateways), config
            gateways = config.gateways if config else ()
            self._gateways = {each.name: each for each in gateways}
            self._ways = _ways(config) if config else {}
            self._shared = (
                {(pair.source, pair.target) for pair in config.pairs if pair.load_balance} if config else set()
            )
            self._lines = {
                ends: retained
                for ends, lines in self._lines.items()
                if (retained := {path: line for path, line in lines.items() if self._path_of(ends, path) == line.way})
            }
            self._last_seen_ns = {name: self._last_seen_ns.get(name, now_ns) for name in self._gateways}
            self._looked_ns = None
            self._traffic = {name: known for name, known in self._traffic.items() if name in self._gateways}
            self._network_snapshot = self._take_snapshot()
            self._changed |= {*self._links, *self._lines}
            if before != set(self._gateways):
                self._turn = 0
        self.on_change()

    def choose(self, active: Mapping[Ends, str]) -> None:
        """Set the active paths. A pair without an active path uses the path with the largest weight.

        The key ``("", cluster)`` has the gateway that carries the traffic of a cluster.
        """
        with self._lock:
            self._changed |= {ends for ends, _ in active.items() ^ self._active.items()}
            self._active = dict(active)
        self.on_change()

    @property
    def config(self) -> NetworkConfig | None:
        """Current network; None if none is configured."""
        return self._config

    def gateways(self) -> tuple[GatewayConfig, ...]:
        """Return the gateways of the network."""
        return self._config.gateways if self._config else ()

    # Measurements.

    def take(self, gateway: str, rounds: Iterable[Reported], now_ns: int) -> None:
        """Process the rounds reported by the agent of a gateway.

        Late rounds, for example after an outage, are recorded in samples, but do not replace newer figures. Rounds of
        unknown gateways and paths are ignored.

        Parameters
        ----------
        now_ns
            Wall-clock time of the control plane, nanoseconds since 1970.
        """
        with self._lock:
            if gateway not in self._gateways:
                return
            self._last_seen_ns[gateway] = now_ns
            stretch_ns = self._stretch_ns()
            for each in rounds:
                ends = gateway, each.target
                line = self._line(ends, each.path)
                if line is None or each.sent < 1:
                    continue
                self._rounds[gateway, each.outcome] += 1
                if (line.newest is None or each.at_ns > line.newest.at_ns) and line.take(each):
                    self._changed.add(ends)
                if each.path in self._paths(ends):
                    line.tally(each.at_ns // stretch_ns, each)
            changed = bool(self._changed)
        if changed:
            self.on_change()

    def last_seen_s(self, now_ns: int) -> dict[str, float]:
        """Return the seconds since the last report of each agent, or since the start of the control plane."""
        with self._lock:
            return {name: max(0, now_ns - last_seen_ns) / NS_PER_S for name, last_seen_ns in self._last_seen_ns.items()}

    def rounds(self) -> dict[tuple[str, str], int]:
        """Return the number of rounds since the start, by probing gateway and outcome."""
        with self._lock:
            return {key: count for key, count in self._rounds.items() if key[0] in self._gateways}

    # Results.

    def network_snapshot(self, now_ns: int) -> NetworkSnapshot:
        """Return the network for decisions; the same object while nothing changes."""
        with self._lock:
            looked_other = self._look(now_ns)
            self._expire(now_ns)
            if self._changed or looked_other:
                for ends in self._changed:
                    self._renew(ends, now_ns)
                self._changed.clear()
                self._network_snapshot = self._take_snapshot()
            return self._network_snapshot

    def links(self, now_ns: int) -> tuple[Link, ...]:
        """Return the links that decisions use."""
        return self.network_snapshot(now_ns).links

    def answering(self, now_ns: int) -> dict[str, bool]:
        """Report for each measured gateway whether gateways elsewhere get answers from it."""
        found: dict[str, bool] = {}
        links = self.links(now_ns)
        with self._lock:
            clusters = {name: each.cluster for name, each in self._gateways.items()}
        for link in links:
            cluster = clusters.get(link.target, "")
            if not cluster or clusters.get(link.source) != cluster:
                found[link.target] = found.get(link.target, False) or link.reachable
        return found

    def along(self, ends: Ends, now_ns: int) -> list[tuple[str, Link | None]]:
        """Return the link along each path of a pair, largest weight first; None without recent measurements."""
        with self._lock:
            lines = self._lines.get(ends, {})
            known = [(path, lines.get(path)) for path in self._ways.get(ends, ())]
            return [(path, self._along(ends, line, now_ns)) for path, line in known]

    def latest(self, ends: Ends) -> tuple[int, Figures] | None:
        """Return the start of the latest round along the active paths, and their worst figures.

        None without a round, for example for a link reported by clusters.
        """
        with self._lock:
            lines = self._lines.get(ends, {})
            rounds = [each for path in self._paths(ends) if path in lines and (each := lines[path].newest)]
        if not rounds:
            return None
        lost_ppm = max((each.sent - each.received) * PPM // each.sent for each in rounds)
        known_ns = [each.latency_ns for each in rounds if each.latency_ns is not None]
        latency_ns = max(known_ns) if len(known_ns) == len(rounds) else None
        return max(each.at_ns for each in rounds), Figures(latency_ns, max(each.jitter_ns for each in rounds), lost_ppm)

    def views(self, now_ns: int, wanted: Asked | None = None) -> list[LinkView]:
        """Return the views of all requested links of the mesh."""
        self.network_snapshot(now_ns)
        with self._lock:
            return [self._view(ends, now_ns) for ends in self._pairs() if wanted is None or wanted(*ends)]

    def states(self, now_ns: int) -> Counter[str]:
        """Count the configured links by state."""
        with self._lock:
            return Counter(self._state(self._current(ends), now_ns).value for ends in self._pairs())

    def reads(self) -> dict[str, int]:
        """Count the readings of interfaces, by outcome."""
        return self._bandwidths.counts() if self._bandwidths else {}

    def measured_since_ns(self, now_ns: int) -> dict[str, int]:
        """Return the wall-clock start of the interval of each gateway's latest reading; see `Bandwidths.since_ns`."""
        return self._bandwidths.since_ns(self.gateways(), now_ns) if self._bandwidths else {}

    def interfaces(self) -> list[Interface]:
        """Return the known traffic of gateways' interfaces."""
        return self._bandwidths.interfaces(self.gateways()) if self._bandwidths else []

    def samples(self, now_ns: int) -> list[LinkSample]:
        """Return the samples of the links that are due; called once in `sample_interval_s`.

        A sample covers an interval: the mean latency, the largest jitter, and the loss of all probes. Late rounds of an
        interval give a separate sample. With up to `MAX_SAMPLED` links, an interval is `sample_interval_s` long.
        """
        with self._lock:
            pairs, turns, stretch = self._pairs(), self._spread(), now_ns // self._stretch_ns()
            mine = pairs[self._turn % turns :: turns]
            self._turn += 1
            return [sample for ends in mine for sample in self._written(ends, stretch)]

    # Internals; the caller holds the lock.

    def _pairs(self) -> list[Ends]:
        return [(source, target) for source in self._gateways for target in self._gateways if source != target]

    def _spread(self) -> int:
        count = len(self._gateways)
        return max(1, -(-count * (count - 1) // MAX_SAMPLED))

    def _stretch_ns(self) -> int:
        return max(1, int(self._sample_s * NS_PER_S) * self._spread())

    def _path_of(self, ends: Ends, path: str) -> object:
        """Return the endpoints and segments of a named path; None if it is not probed."""
        source, target = self._gateways.get(ends[0]), self._gateways.get(ends[1])
        if source is None or target is None or source is target:
            return None
        segments = () if path == AS_ROUTED else self._ways.get(ends, {}).get(path)
        return None if segments is None else (source.address, target.address, target.method, target.port, segments)

    def _line(self, ends: Ends, path: str) -> PathState | None:
        lines = self._lines.get(ends)
        line = lines.get(path) if lines else None
        if line is None and (way := self._path_of(ends, path)) is not None:
            line = self._lines.setdefault(ends, {})[path] = PathState(way, self._settings)
        return line

    def _paths(self, ends: Ends) -> tuple[str, ...]:
        """Return the measured active paths of a link; the default route if no active path is measured."""
        ways, lines = self._ways.get(ends, {}), self._lines.get(ends, {})
        chosen = self._active.get(ends)
        taken = ways if ends in self._shared else [chosen if chosen in ways else next(iter(ways), AS_ROUTED)]
        return tuple(path for path in taken if path in lines) or (AS_ROUTED,)

    def _current(self, ends: Ends) -> PathState | None:
        """Return the state of the active path, or of the worst of several paths that share traffic."""
        return max(self._active_lines(ends), key=_quality_key, default=None)

    def _active_lines(self, ends: Ends) -> list[PathState]:
        """Return the states of the paths that carry the traffic of a link."""
        lines = self._lines.get(ends, {})
        return [lines[path] for path in self._paths(ends) if path in lines]

    def _published(self, ends: Ends) -> Figures | None:
        """Return the figures of a link for decisions. Of several active paths, each figure is the worst."""
        known = [figures for line in self._active_lines(ends) if (figures := line.published)]
        if len(known) < 2:
            return known[0] if known else None
        if any(each.latency_ns is None for each in known):
            return UNREACHABLE
        latency_ns = max(each.latency_ns or 0 for each in known)
        return Figures(latency_ns, max(each.jitter_ns for each in known), max(each.loss_ppm for each in known))

    def _state(self, line: PathState | None, now_ns: int) -> LinkState:
        if line is None or line.newest is None:
            return LinkState.UNKNOWN
        age_ns = now_ns - line.newest.at_ns
        if age_ns > self._rounds_ns(self._settings.unknown_rounds):
            return LinkState.UNKNOWN
        return LinkState.STALE if age_ns > self._rounds_ns(self._settings.stale_rounds) else LinkState.MEASURED

    def _rounds_ns(self, rounds: int) -> int:
        """Return the nanoseconds from the start of a round until the answers of `rounds` later rounds."""
        assert self._config is not None, "rounds need a configured network"
        return int((rounds * self._config.probe.interval_s + self._config.probe.timeout_s) * NS_PER_S)

    def _look(self, now_ns: int) -> bool:
        """Update the traffic of interfaces if it differs enough; report whether any value changed."""
        if self._bandwidths is None or (self._looked_ns is not None and abs(now_ns - self._looked_ns) < LOOK_NS):
            return False
        self._looked_ns, before = now_ns, dict(self._traffic)
        for name, gateway in self._gateways.items():
            seen, known = self._bandwidths.of(gateway), self._traffic.get(name)
            if not _holds(known, seen):
                self._traffic[name] = seen
                self._changed |= {ends for ends in self._lines if name in ends}
        return self._traffic != before

    def _expire(self, now_ns: int) -> None:
        """Mark links with expired measurements as changed."""
        if self._check_ns is not None and now_ns < self._check_ns:
            return
        gone = {ends for ends in self._links if self._state(self._current(ends), now_ns) is LinkState.UNKNOWN}
        self._changed |= gone
        newest = [line.newest.at_ns for ends in self._links if (line := self._current(ends)) and line.newest]
        if self._config is not None:
            self._check_ns = min(newest, default=now_ns) + self._rounds_ns(self._settings.unknown_rounds)

    def _renew(self, ends: Ends, now_ns: int) -> None:
        line = self._current(ends)
        figures = self._published(ends)
        if figures is None or self._state(line, now_ns) is LinkState.UNKNOWN:
            self._links.pop(ends, None)
            return
        if ends not in self._links:
            self._check_ns = None
        bandwidth_mbps, used_mbps = _between(self._traffic.get(ends[0]), self._traffic.get(ends[1]))
        latency_ns, jitter_ns, loss_ppm = figures.latency_ns, figures.jitter_ns, figures.loss_ppm
        self._links[ends] = Link(*ends, latency_ns, jitter_ns, loss_ppm, bandwidth_mbps, used_mbps)

    def _along(self, ends: Ends, line: PathState | None, now_ns: int) -> Link | None:
        if line is None or line.published is None or self._state(line, now_ns) is LinkState.UNKNOWN:
            return None
        return Link(*ends, line.published.latency_ns, line.published.jitter_ns, line.published.loss_ppm)

    def _take_snapshot(self) -> NetworkSnapshot:
        gateways = self._gateways.values()
        chosen = {cluster: name for (source, cluster), name in self._active.items() if not source}
        gateways_by_cluster = self._config.serving(chosen) if self._config else {}
        sites = {each.name: each.site for each in gateways if each.site}
        standby = {
            each.name: each.cluster
            for each in gateways
            if each.cluster and gateways_by_cluster[each.cluster] != each.name
        }
        return NetworkSnapshot(
            tuple(map(self._interface, gateways)), tuple(self._links.values()), gateways_by_cluster, sites, standby
        )

    def _interface(self, gateway: GatewayConfig) -> Gateway:
        known = self._traffic.get(gateway.name)
        named = Gateway(gateway.name, str(gateway.address), location=gateway.location)
        if known is None or known.speed_mbps is None:
            return named
        in_mbps, out_mbps = known.in_used_mbps, known.out_used_mbps
        return replace(named, speed_mbps=known.speed_mbps, used_in_mbps=in_mbps, used_out_mbps=out_mbps)

    def _view(self, ends: Ends, now_ns: int) -> LinkView:
        line, link = self._current(ends), self._links.get(ends)
        if line is None or line.newest is None:
            return LinkView(*ends, None, state=LinkState.UNKNOWN)
        age_s = max(0, now_ns - line.newest.at_ns) / NS_PER_S
        state = self._state(line, now_ns)
        traffic_mbps = link.used_mbps if link and link.bandwidth_mbps else None
        bounds = [lines.loss_bound_ppm for lines in self._active_lines(ends)]
        bound_ppm = max(filter(None, bounds), default=None) if link and not link.loss_ppm else None
        return LinkView(
            *ends,
            link,
            line.newest.path,
            state,
            age_s,
            line.newest,
            line.smoothed,
            traffic_mbps,
            loss_bound_ppm=bound_ppm,
        )

    def _written(self, ends: Ends, stretch: int) -> Sequence[LinkSample]:
        traffic = _between(self._traffic.get(ends[0]), self._traffic.get(ends[1]))
        samples: dict[int, LinkSample] = {}
        for path, line in self._lines.get(ends, {}).items():
            for over in sorted(each for each in line.tallies if each < stretch):
                tally = line.tallies.pop(over)
                seen, at_ns = tally.figures, tally.latest_ns
                while at_ns in samples:  # the time identifies a sample of a link, also across paths
                    at_ns += 1
                samples[at_ns] = LinkSample(
                    at_ns, *ends, seen.latency_ns, seen.jitter_ns, seen.loss_ppm, *traffic, path
                )
        return list(samples.values())


def _ways(config: NetworkConfig) -> dict[Ends, dict[str, object]]:
    """Return the probed paths of each pair, largest weight first, with their segments."""
    gateways = {each.name: each for each in config.gateways}
    found: dict[Ends, dict[str, object]] = {}
    for pair in config.pairs:
        there = {each.path for each in probed(gateways[pair.source], gateways[pair.target], pair)}
        liked = sorted(pair.paths, key=lambda path: path.weight, reverse=True)
        found[pair.source, pair.target] = {path.name: path.segments for path in liked if path.name in there}
    return found


def _quality_key(line: PathState) -> tuple[bool, int]:
    """Return a sort key of paths by quality. A path without answers is worst, then the slowest."""
    latency_ns = line.published.latency_ns if line.published else None
    return latency_ns is None, latency_ns or 0


def _between(source: Traffic | None, target: Traffic | None) -> tuple[int, int]:
    """Return the capacity between two interfaces, and the traffic of the fuller one; (0, 0) if unknown."""
    if source is None or target is None or source.speed_mbps is None or target.speed_mbps is None:
        return 0, 0
    return min(source.speed_mbps, target.speed_mbps), max(source.out_used_mbps, target.in_used_mbps)


def _holds(known: Traffic | None, seen: Traffic | None) -> bool:
    """Report whether the known traffic of an interface remains valid for decisions."""
    if known is None or seen is None:
        return known is seen
    if known.speed_mbps is None or known.speed_mbps != seen.speed_mbps:
        return known.speed_mbps == seen.speed_mbps
    off = max(abs(known.in_used_mbps - seen.in_used_mbps), abs(known.out_used_mbps - seen.out_used_mbps))
    return off <= TRAFFIC_BAND * known.speed_mbps
