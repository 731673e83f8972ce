"""Meters of gateways' interfaces, according to the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from seaway.application.network.path_state import LinkSettings, link_setting_errors
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.application.network.bandwidth import Bandwidths
    from seaway.application.ports.clock import Clock
    from seaway.application.ports.traffic import TrafficMeter

STALE = 3
"""Number of intervals without a reading after which figures expire. With Prometheus, the window is added."""

TIMEOUT_S = 5.0
"""Timeout of a reading, seconds; half the interval if that is shorter."""


@dataclass(frozen=True, slots=True)
class BandwidthSettings:
    """Traffic of the interfaces of gateways."""

    interval_s: float = 10
    """Seconds between two scrapes of each gateway's node-exporter, if one is set in the network configuration; 0
    disables them. A value expires after three intervals.
    """
    ca: str = ""
    """Path of CA certificates, PEM, for node-exporters with HTTPS. Empty for those of the system."""
    exporter_networks: str = ""
    """Networks with node-exporters, separated by commas, such as `fd00:51d::/32, 10.8.0.0/16`. Operators cannot make
    Seaway connect to other addresses. Empty for all public addresses, and no others.
    """

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks with node-exporters."""
        return tuple(text for each in self.exporter_networks.split(",") if (text := each.strip()))


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """A Prometheus server that is queried instead of the node-exporters. Disabled without a URL."""

    url: str = ""
    """URL of a Prometheus server that scrapes the node-exporters of the gateways. It is queried instead of them."""
    token_file: str = ""
    """Path of a bearer token, read for every query. It is sent only over HTTPS or to this host."""
    ca: str = ""
    """Path of CA certificates, PEM, for the Prometheus server. Empty for those of the system."""
    labels: str = 'instance="{exporter}"'
    """PromQL label matchers that select the series of a gateway. `{exporter}` is the host and port of its
    node-exporter, `{name}` and `{address}` are those of the gateway.
    """
    window_s: int = 60
    """Range of rate queries, seconds. Four scrape intervals of the Prometheus server is a good value."""


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Interface traffic, and conversion of measured links into the values that decisions use."""

    bandwidth: BandwidthSettings = field(default_factory=BandwidthSettings)
    """Traffic of the interfaces of gateways."""
    prometheus: PrometheusSettings = field(default_factory=PrometheusSettings)
    """A Prometheus server that is queried instead of the node-exporters."""
    links: LinkSettings = field(default_factory=LinkSettings)
    """Smoothing and expiry of measured links."""


def make_bandwidths(settings: NetworkSettings, clock: Clock) -> Bandwidths:
    """Create the readings of interfaces with the configured meters.

    Raises
    ------
    RejectedError
        If a setting is invalid, or a file of certificates cannot be read.
    """
    from seaway.application.network.bandwidth import Bandwidths

    interval_s, prometheus = settings.bandwidth.interval_s, settings.prometheus
    older_s = prometheus.window_s if prometheus.url else 0  # its latest sample is already up to a window old
    window_s = older_s or interval_s
    return Bandwidths(_meter(settings) if interval_s else None, STALE * interval_s + older_s, clock, window_s)


def _meter(settings: NetworkSettings) -> TrafficMeter:
    from seaway.adapters.http_pages import AddressPolicy, HttpPages, TlsTrust

    timeout_s = min(TIMEOUT_S, settings.bandwidth.interval_s / 2)
    prometheus = settings.prometheus
    if not prometheus.url:
        from seaway.adapters.node_exporter import NodeExporters

        policy = AddressPolicy(settings.bandwidth.networks)
        pages = HttpPages(TlsTrust(settings.bandwidth.ca), timeout_s, policy)
        return NodeExporters(pages, STALE * settings.bandwidth.interval_s)
    from seaway.adapters.prometheus import PrometheusMeter

    pages = HttpPages(TlsTrust(prometheus.ca, prometheus.token_file), timeout_s)
    return PrometheusMeter(pages, prometheus.url, prometheus.labels, prometheus.window_s)


def network_setting_errors(settings: NetworkSettings) -> list[RejectedError]:
    """Return the errors of invalid settings."""
    prometheus = settings.prometheus
    problems = link_setting_errors(settings.links, "[network] links.")
    for each in settings.bandwidth.networks:
        try:
            ip_network(each)
        except ValueError:
            text = f"{each!r} is not a network, like 10.8.0.0/16 or fd00:51d::/32"
            problems.append(RejectedError(text, where="[network] bandwidth.exporter_networks"))
    problems += url_errors(prometheus.url, prometheus.token_file, "[network] prometheus.url")
    if prometheus.url and not prometheus.window_s:
        problems.append(RejectedError("must be more than 0", where="[network] prometheus.window_s"))
    return problems


def url_errors(url: str, token_file: str, where: str) -> list[RejectedError]:
    """Return the errors of the URL of a Prometheus server; an empty one is valid."""
    if not url:
        return []
    from seaway.application.access import is_loopback

    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return [RejectedError(f"{url!r} must be http://... or https://...", where=where)]
    if token_file and parts.scheme == "http" and not is_loopback(parts.hostname):
        return [RejectedError("a token is sent over https only", where=where)]
    return []
