"""Which bounds on the network a link breaks, in words and figures."""

from __future__ import annotations

from seaway.domain.amounts import loss_text, rate_text
from seaway.domain.network import Link, NetworkNeed


def misses(need: NetworkNeed, link: Link | None, *, running: bool = False) -> tuple[str, ...]:
    """Say by which figures a link breaks bounds; empty when it keeps all.

    Parameters
    ----------
    link
        What was measured; None when nothing was. Bandwidth counts that is free of others' traffic, promised or not.
    running
        Whether it is asked for what runs already: that is not broken by bandwidth that nobody knows.

    Examples
    --------
    >>> misses(NetworkNeed(max_latency_ns=20_000_000), Link("gw-4", "gw-1", 31_200_000))
    ('latency 31.2 ms, bound 20 ms',)
    """
    if not need.any:
        return ()
    if link is None:
        return ("not measured",)
    if link.latency_ns is None:
        return ("nothing answers",)
    said = []
    if need.max_latency_ns and link.latency_ns > need.max_latency_ns:
        said.append(f"latency {_ms(link.latency_ns)}, bound {_ms(need.max_latency_ns)}")
    if need.max_jitter_ns and link.jitter_ns > need.max_jitter_ns:
        said.append(f"jitter {_ms(link.jitter_ns)}, bound {_ms(need.max_jitter_ns)}")
    if need.max_loss_ppm and link.loss_ppm > need.max_loss_ppm:
        said.append(f"loss {loss_text(link.loss_ppm)}, bound {loss_text(need.max_loss_ppm)}")
    if need.min_bandwidth_mbps and not link.bandwidth_mbps:
        said += [] if running else [f"bandwidth not known, bound {rate_text(need.min_bandwidth_mbps)}"]
    elif link.free_mbps < need.min_bandwidth_mbps:
        said.append(f"{rate_text(link.free_mbps)} free, bound {rate_text(need.min_bandwidth_mbps)}")
    return tuple(said)


def way(source: str, target: str, said: tuple[str, ...]) -> str:
    """Say of which link something holds."""
    return f"{source} to {target}: {', '.join(said)}"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f}".rstrip("0").rstrip(".") + " ms"
