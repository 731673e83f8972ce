"""A small network between gateways, and its services, on a clock that stands still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address, IPv6Network

from seaway.application.network.active_paths import ActivePaths
from seaway.application.network.agents import Agents
from seaway.application.network.configuration import Configuration
from seaway.application.network.reports import Reports
from seaway.application.ports.agent import Report, Reported
from seaway.application.writer import Writer
from seaway.bootstrap.control_plane import JsonDocuments
from seaway.domain.gateways import Behaviour, GatewayConfig, NetworkConfig, Pair, Path, Sid
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore

NS_PER_S = 1_000_000_000


def gateway(number: int, **fields: object) -> GatewayConfig:
    """Create a gateway: before a cluster, or with `site` before a site."""
    prefix = f"fd00:51d:{number}::"
    given = {
        "name": f"gw-{number}",
        "address": IPv6Address(f"{prefix}1"),
        "cluster": "" if fields.get("site") else f"cluster-{number}",
        "interface": "wan",
        "locator": IPv6Network(f"{prefix}/48"),
        "sids": (Sid(IPv6Address(f"{prefix}e"), Behaviour.END), Sid(IPv6Address(f"{prefix}d6"), Behaviour.END_DT6)),
        "prefixes": (IPv6Network(f"fd00:a:{number}::/64"),),
    }
    return GatewayConfig(**{**given, **fields})  # type: ignore[arg-type]


def network(count: int = 3, **fields: object) -> NetworkConfig:
    """Create gateways, with two paths from the first to the second: direct, and through the third."""
    gateways = tuple(map(gateway, range(1, count + 1)))
    ends = [each.sid(Behaviour.END_DT6) for each in gateways]
    by = gateways[-1].sid(Behaviour.END)
    assert ends[1] is not None
    assert by is not None
    straight = Path("straight", (ends[1].address,))
    around = Path("around", (by.address, ends[1].address))
    given = {"gateways": gateways, "pairs": (Pair("gw-1", "gw-2", (straight, around)),)}
    return NetworkConfig(**{**given, **fields})  # type: ignore[arg-type]


@dataclass
class LinkSink:
    """Records its input."""

    taken: list[tuple[str, tuple[Reported, ...]]] = field(default_factory=list)

    def take(self, gateway: str, rounds: Sequence[Reported], now_ns: int) -> None:
        """Record the rounds."""
        self.taken.append((gateway, tuple(rounds)))


class Scene:
    """The network services of a control plane.

    Parameters
    ----------
    store
        An existing store; None for a new one.
    """

    def __init__(self, store: MemoryStore | None = None, clock: VirtualClock | None = None) -> None:
        self.store = store or MemoryStore()
        self.store.lead("test")
        self.clock = clock or VirtualClock()
        self.writer = Writer(self.store)
        self.link_table = LinkSink()
        self.agents = Agents(self.store, self.writer, self.clock)
        self.active = ActivePaths(self.store, self.writer, self.clock)
        self.configuration = Configuration(self.store, self.writer, self.clock, JsonDocuments())
        self.reports = Reports(self.writer, self.clock, self.agents, self.link_table)
        for each in (self.active.use, self.agents.use, self.reports.use):
            self.configuration.follow(each)

    def again(self) -> Scene:
        """Restart on the same store."""
        return Scene(self.store, self.clock)

    def round(self, target: str = "gw-2", **fields: object) -> Reported:
        """Create a round that began now."""
        given = {"path": "", "at_ns": self.clock.now_ns(), "sent": 5, "received": 5, "latency_ns": 9, "jitter_ns": 1}
        return Reported(target, **{**given, **fields})  # type: ignore[arg-type]

    def report(self, number: int = 1, *rounds: Reported, **fields: object) -> Report:
        """Create a report; of one round by default."""
        given = {"gateway": "gw-1", "started_ns": self.clock.now_ns(), "number": number, "dropped": 0}
        return Report(**{**given, "rounds": rounds or (self.round(),), **fields})  # type: ignore[arg-type]

    def reported(self, kind: str) -> list[str]:
        """Return the texts of events of a kind."""
        return [each.reason for each in self.store.events(0, 1000) if each.kind == kind]
