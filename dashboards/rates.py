"""Queries for rates of counters and quantiles of histograms."""

from __future__ import annotations

WINDOW = "[$__rate_interval]"
"""Range of rates, chosen by Grafana according to the scrape interval."""


def rate(name: str, by: str = "") -> str:
    """Return a query for the rate of a counter, in sum or by labels."""
    return f"sum{f' by ({by})' if by else ''} (rate({name}{WINDOW}))"


def quantile(share: float, name: str, by: str = "") -> str:
    """Return a query for a quantile of a histogram, in total or by labels."""
    within = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({within}) (rate({name}_bucket{WINDOW})))"
