"""Case of `script/bench lab`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from statistics import fmean, median
from typing import Any

from benchmarks.lab.compare import Way, compare
from benchmarks.lab.world import measure
from benchmarks.record import Result, SkippedError
from lab.conditions import Conditions
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import ProbeConfig
from seaway.domain.network import PPM, Ends

GATEWAYS = 4
ROUNDS = 20
HOW = ProbeConfig(interval_s=3.0, count=5, timeout_s=0.6)
MS = 1_000_000
US = 1_000
LINKS = {
    ("gw-1", "gw-2"): Conditions(MS // 2),
    ("gw-1", "gw-3"): Conditions(2 * MS, MS // 5),
    ("gw-1", "gw-4"): Conditions(5 * MS, loss_ppm=100_000),
    ("gw-4", "gw-1"): Conditions(20 * MS, MS),
    ("gw-2", "gw-3"): Conditions(10 * MS, MS, 10_000),
    ("gw-2", "gw-4"): Conditions(30 * MS, 2 * MS, 50_000),
    ("gw-3", "gw-4"): Conditions(60 * MS, loss_ppm=100_000),
}
"""Conditions one way; the other way is the same unless it is listed."""

LATENCY_NS, LATENCY_SHARE = MS // 2, 0.03
"""Tolerance of latency: this time, or this share if that is more."""
JITTER_NS = 50 * US
"""Tolerance of jitter."""

NOTES = [
    f"{GATEWAYS} gateways, an agent on each, {ROUNDS} rounds of {HOW.count} echo requests to each other one. "
    "A line is both ways.",
    "Asked: delays of both ways as configured; held: what the emulator made of them, by its own clock; latency: what "
    "agents reported; means. Off: latency of a round less what its packets were held for, middle and worst.",
    "Lost: echoes that agents did not get back; dropped: packets, as the emulator counts them.",
    "Jitter: what agents reported, mean. Off: a round's less what the same formula says of captures at the two ends of "
    "the gateway's wire, by the closer one; middle and worst.",
    f"Bounds: latency within {LATENCY_NS / MS:g} ms or {LATENCY_SHARE:.0%} of asked, and each round's of held; lost "
    f"equal to dropped; each round's jitter within {JITTER_NS / MS:g} ms.",
]


def lab(_: int) -> Result:
    """Compare real agents in a lab with its emulator and captures: latency, loss, jitter (as root, on Linux)."""
    links = {ends[::-1]: how for ends, how in LINKS.items()} | LINKS
    try:
        ways = compare(measure(links, GATEWAYS, HOW, ROUNDS))
    except RejectedError as error:
        raise SkippedError(str(error)) from None
    rows, missed = [], []
    for pair in combinations(sorted({source for source, _ in ways}), 2):
        asked_ns = links[pair].delay_ns + links[pair[::-1]].delay_ns
        there, back = ways[pair], ways[pair[::-1]]
        rows.append(_row(pair, links, there, back))
        missed += [f"{' and '.join(pair)}: {what}" for what in wrong(asked_ns, there, back)]
    return Result("lab", rows, NOTES, missed)


def wrong(asked_ns: int, there: Way, back: Way) -> Iterator[str]:
    """Yield the bounds that a pair of gateways misses."""
    rounds = [*there.answered, *back.answered]
    latency_ns = fmean(each.reported.latency_ns or 0 for each in rounds)
    if abs(latency_ns - asked_ns) > _bound_ns(asked_ns):
        yield f"a latency of {latency_ns / MS:.3f} ms where {asked_ns / MS:.3f} were asked"
    for each in rounds:
        if abs(each.off_held_ns) > _bound_ns(each.held_ns):
            yield f"a round of {each.off_held_ns / MS:.3f} ms more than the {each.held_ns / MS:.3f} that it was held"
        if abs(each.off_jitter_ns) > JITTER_NS:
            yield f"a round's jitter is {each.off_jitter_ns / US:.1f} us more than captured"
    lost, dropped = there.lost + back.lost, there.dropped + back.dropped
    if lost != dropped:
        yield f"{lost} echoes lost where the emulator dropped {dropped}"


def _bound_ns(of_ns: float) -> float:
    return max(LATENCY_NS, LATENCY_SHARE * of_ns)


def _row(pair: Ends, links: Mapping[Ends, Conditions], there: Way, back: Way) -> dict[str, Any]:
    rounds = [*there.answered, *back.answered]
    ways = [links[pair], links[pair[::-1]]]
    off_ns = [abs(each.off_held_ns) for each in rounds]
    jitter_off_ns = [abs(each.off_jitter_ns) for each in rounds]
    return {
        "link": " ".join(pair),
        "asked ms": sum(each.delay_ns for each in ways) / MS,
        "held ms": _ms(fmean(each.held_ns for each in rounds)),
        "latency ms": _ms(fmean(each.reported.latency_ns or 0 for each in rounds)),
        "off p50": _ms(median(off_ns)),
        "max": _ms(max(off_ns)),
        "loss %": "/".join(f"{100 * each.loss_ppm / PPM:g}" for each in ways),
        "sent": there.sent + back.sent,
        "lost": there.lost + back.lost,
        "dropped": there.dropped + back.dropped,
        "jitter ms": _ms(fmean(each.reported.jitter_ns for each in rounds)),
        "off us p50": round(median(jitter_off_ns) / US, 1),
        "max us": round(max(jitter_off_ns) / US, 1),
    }


def _ms(ns: float) -> float:
    return round(ns / MS, 3)
