"""How fast counters rise, and how long what histograms count takes."""

from __future__ import annotations

WINDOW = "[$__rate_interval]"
"""As long as Grafana says, which knows how often Prometheus scrapes."""


def rate(name: str, by: str = "") -> str:
    """Ask how fast a counter rises, in sum or by labels."""
    return f"sum{f' by ({by})' if by else ''} (rate({name}{WINDOW}))"


def quantile(share: float, name: str, by: str = "") -> str:
    """Ask within which time such a share of what a histogram counts is done, of all or by labels."""
    within = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({within}) (rate({name}_bucket{WINDOW})))"
