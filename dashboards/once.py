"""Queries that count each series once; during a leader change, two targets report the same series."""

from __future__ import annotations


def once(query: str, labels: str) -> str:
    """Return a query for each series once, by the labels that identify them."""
    return f"max by ({labels}) ({query})"


def total(query: str, by: str = "", *, of: str = "sum") -> str:
    """Return a query for a sum over devices or vGPUs, in total or by labels.

    The maximum over targets of the sum per cluster costs no more than the sum alone. To deduplicate every single series
    first takes ten times as long.

    Parameters
    ----------
    of
        ``count`` to count series instead of adding them up.
    """
    labels = ", ".join({"cluster": None, **dict.fromkeys(by.split(", ") if by else ())})
    of_each = once(f"{of} by ({labels}, job, instance) ({query})", labels)
    if labels == by:
        return of_each
    return f"sum by ({by}) ({of_each})" if by else f"sum({of_each})"
