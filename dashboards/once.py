"""Figures of a fleet that count once, however many targets tell them: as a process takes over from another, two do."""

from __future__ import annotations


def once(query: str, labels: str) -> str:
    """Ask for every series once, by the labels that tell them apart."""
    return f"max by ({labels}) ({query})"


def total(query: str, by: str = "", *, of: str = "sum") -> str:
    """Ask for a sum over devices or vGPUs, in all or by labels.

    Adding up what each target tells and then taking the most of each cluster costs no more than the sum alone;
    bringing every single series together first takes ten times as long.

    Parameters
    ----------
    of
        ``count`` to count series in place of adding them up.
    """
    labels = ", ".join({"cluster": None, **dict.fromkeys(by.split(", ") if by else ())})
    of_each = once(f"{of} by ({labels}, job, instance) ({query})", labels)
    if labels == by:
        return of_each
    return f"sum by ({by}) ({of_each})" if by else f"sum({of_each})"
