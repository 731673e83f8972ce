"""Who measures what gateways' interfaces carry, as settings say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from seaway.application.network.settings import LinkSettings, wrong_links
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.application.network.bandwidth import Bandwidths
    from seaway.application.ports.clock import Clock
    from seaway.application.ports.traffic import TrafficMeter

STALE = 3
"""After how many periods without an answer figures count no more; those of Prometheus a window later."""

TIMEOUT_S = 5.0
"""How long an answer may take at the most; half a period where that is shorter."""


@dataclass(frozen=True, slots=True)
class BandwidthSettings:
    """What gateways' interfaces carry.

    Attributes
    ----------
    every_s
        How often each is looked at; 0 for never.
    ca
        Path of the certificates, PEM, one of which vouches for node-exporters that serve https; empty for those of
        this machine.
    """

    every_s: float = 10
    ca: str = ""


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """A Prometheus to ask instead of the gateways' node-exporters; none without an address.

    Attributes
    ----------
    url
        Its address.
    token_file
        Path of a bearer token for it, read anew every time; empty for none.
    ca
        Path of the certificates, PEM, one of which vouches for it; empty for those of this machine.
    labels
        What selects the series of a gateway's node-exporter, as PromQL has it between braces.
    window_s
        Over how long rates are taken.
    """

    url: str = ""
    token_file: str = ""
    ca: str = ""
    labels: str = 'instance="{exporter}"'
    window_s: int = 60


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The network between gateways.

    Attributes
    ----------
    bandwidth
        What gateways' interfaces carry.
    prometheus
        Who is asked for that, instead of the gateways themselves.
    links
        From what agents measure to what decisions go by.
    """

    bandwidth: BandwidthSettings = field(default_factory=BandwidthSettings)
    prometheus: PrometheusSettings = field(default_factory=PrometheusSettings)
    links: LinkSettings = field(default_factory=LinkSettings)


def make_bandwidths(settings: NetworkSettings, clock: Clock) -> Bandwidths:
    """Make what keeps what interfaces carry, by whoever is set to measure it.

    Raises
    ------
    RejectedError
        When a setting is wrong, or a file of certificates cannot be read.
    """
    from seaway.application.network.bandwidth import Bandwidths

    every_s, prometheus = settings.bandwidth.every_s, settings.prometheus
    older_s = prometheus.window_s if prometheus.url else 0  # its latest sample has some age already when it is asked
    window_s = older_s or every_s
    return Bandwidths(_meter(settings) if every_s else None, STALE * every_s + older_s, clock, window_s)


def _meter(settings: NetworkSettings) -> TrafficMeter:
    from seaway.adapters.http_pages import HttpPages, Trust

    timeout_s = min(TIMEOUT_S, settings.bandwidth.every_s / 2)
    prometheus = settings.prometheus
    if not prometheus.url:
        from seaway.adapters.node_exporter import NodeExporters

        pages = HttpPages(Trust(settings.bandwidth.ca), timeout_s)
        return NodeExporters(pages, STALE * settings.bandwidth.every_s)
    from seaway.adapters.prometheus import PrometheusMeter

    pages = HttpPages(Trust(prometheus.ca, prometheus.token_file), timeout_s)
    return PrometheusMeter(pages, prometheus.url, prometheus.labels, prometheus.window_s)


def wrong_network(settings: NetworkSettings) -> list[RejectedError]:
    """Find settings that make no sense."""
    prometheus = settings.prometheus
    problems = wrong_links(settings.links, "[network] links.")
    if not prometheus.url:
        return problems
    from seaway.application.access import is_loopback

    try:
        parts = urlsplit(prometheus.url)
    except ValueError:
        parts = urlsplit("")
    where = "[network] prometheus.url"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        problems.append(RejectedError(f"{prometheus.url!r} has to be http://... or https://...", where=where))
    elif prometheus.token_file and parts.scheme == "http" and not is_loopback(parts.hostname):
        problems.append(RejectedError("a token is sent over https only", where=where))
    if not prometheus.window_s:
        problems.append(RejectedError("has to be more than 0", where="[network] prometheus.window_s"))
    return problems
