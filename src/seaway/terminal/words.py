"""Formats of API values for terminals: times, amounts, bars, states."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

from rich.text import Text

from seaway.domain.errors import RejectedError
from seaway.domain.job_state import FINAL, PLACED, JobState
from seaway.domain.units import duration_ns

Body = dict[str, Any]
"""JSON object of the API."""

NONE = "–"
TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")
STYLES = {
    "running": "green",
    "completed": "green dim",
    "up": "green",
    "failed": "red",
    "lost": "red",
    "preempted": "yellow",
    "queued": "yellow",
    "pending": "yellow",
    "held": "blue",
    "skipped": "dim",
    "stale": "yellow",
    "suspended": "magenta",
    "scheduled": "cyan",
    "deploying": "cyan",
    "cancelled": "dim",
    "deleted": "dim",
}
"""Colours of states. The text of a state is always visible, too."""

NOWHERE = frozenset(state.value for state in JobState if state not in PLACED | FINAL)
"""States of jobs without a placement. Their clusters and nodes are those of the last attempt."""

LAST_TRIED = "last tried: "

BAR = 10
"""Width of a bar in blocks."""

BLOCKS = "·▁▂▃▄▅▆▇█"
"""Marks of a device's allocation, from none to all."""

_STEPS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def money(amount: str | None, unpriced: float, currency: str = "") -> str:
    """Return an amount of money with two decimals; at least that much if there is a part without a known price."""
    return "unknown" if amount is None else f"{'≥' if unpriced else ''}{float(amount):,.2f} {currency}".rstrip()


def tasks_text(count: int) -> str:
    """Format a number of tasks."""
    return "1 task" if count == 1 else f"{count:,} tasks"


def cost_text(cost: Body | None) -> str:
    """Return the cost so far of `CostOut`; a dash if a server reports none, or nothing was held."""
    if not cost or not (cost["gpu_hours"] or cost["cost_per_hour"] != "0.00"):
        return NONE
    return money(cost["cost"], cost["unpriced_gpu_hours"], cost.get("currency", ""))


def moment(text: str) -> datetime:
    """Parse a time of the API."""
    return datetime.fromisoformat(text)


def point_in_time(text: str, after: datetime) -> datetime:
    """Parse a time as users write it.

    Parameters
    ----------
    text
        ``now``; time of day, the next one after `after`; date and time; or ``+`` and a duration after `after`. Times
        without a zone are local.

    Raises
    ------
    RejectedError
        If it is invalid.
    """
    if text == "now":
        return after
    if text.startswith("+"):
        return after + timedelta(microseconds=duration_ns(text[1:]) // 1000)
    try:
        if TIME_OF_DAY.fullmatch(text):
            day = after.astimezone()
            found = datetime.combine(day.date(), time.fromisoformat(text)).astimezone()
            return (
                found if found > after else datetime.combine(day.date() + timedelta(days=1), found.time()).astimezone()
            )
        found = datetime.fromisoformat(text)
    except ValueError:
        raise RejectedError(f"{text!r} is not a time; write 14:00, '2026-11-28 14:00' or +2h") from None
    return found if found.tzinfo else found.astimezone()


def ago(text: str | None, now: datetime | None = None) -> str:
    """Format the time since a moment."""
    if not text:
        return NONE
    return seconds((now or datetime.now(UTC)).timestamp() - moment(text).timestamp())


def until(text: str | None, now: datetime | None = None) -> str:
    """Format the time until a moment, such as ``in 5m``; ``now`` for one that has passed."""
    if not text:
        return "unknown"
    left_s = moment(text).timestamp() - (now or datetime.now(UTC)).timestamp()
    return f"in {seconds(left_s)}" if left_s >= 1 else "now"


def learned(body: Body) -> str:
    """Describe a duration that is learned, such as ``5m, learned from 2 runs``; empty for none."""
    runs = body.get("learned_runs", 0)
    return f"{body['learned_duration']}, learned from {runs} run{'s' if runs > 1 else ''}" if runs else ""


def lasted(start: str | None, end: str | None, now: datetime | None = None) -> str:
    """Format a duration; without an end, up to the current time."""
    if not start:
        return NONE
    until = moment(end) if end else now or datetime.now(UTC)
    return seconds(until.timestamp() - moment(start).timestamp())


def seconds(count: float) -> str:
    """Format seconds with at most two units."""
    whole = max(int(count), 0)
    for at, (size, unit) in enumerate(_STEPS):
        if whole >= size:
            smaller, its_unit = _STEPS[min(at + 1, len(_STEPS) - 1)]
            rest = whole % size // smaller
            return f"{whole // size}{unit}{rest}{its_unit}" if rest else f"{whole // size}{unit}"
    return "0s"


def mean_wait(comparison: Body, side: str) -> str:
    """Format the mean wait of the jobs that the ``live`` or the ``shadow`` policy of a comparison placed."""
    placed = comparison[f"{side}_placed"] if comparison["tries"] else 0
    return seconds(comparison[f"{side}_wait_ms"] / placed / 1000) if placed else "-"


def clock(text: str) -> str:
    """Format a time of day in the local time zone, with that zone."""
    return moment(text).astimezone().strftime("%H:%M:%S %Z")


def day(text: str | None) -> str:
    """Format a date and time in the local time zone, with that zone."""
    return moment(text).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z") if text else NONE


def state(name: str) -> Text:
    """Return a state in its colour."""
    return Text(name, STYLES.get(name, ""))


def places(body: Body) -> str:
    """Describe a job's current or last placement: its first node and the number of others, or its clusters."""
    nodes, clusters = body["nodes"], body["clusters"]
    if not nodes:
        return NONE
    first = f"{clusters[0]}/{nodes[0]}" if len(clusters) == 1 else ", ".join(clusters)
    where = first if len(nodes) == 1 or len(clusters) > 1 else f"{first} +{len(nodes) - 1}"
    return f"{LAST_TRIED}{where}" if body["state"] in NOWHERE else where


def place(cluster: str, node: str) -> str:
    """Return the name of a cluster or node."""
    return f"{cluster}/{node}" if node else cluster


def gib(mib: int) -> str:
    """Format memory in Gi."""
    if mib < 1024:
        return f"{mib}Mi" if mib else "0"
    return f"{mib / 1024:.0f}Gi" if mib >= 10 * 1024 or mib % 1024 == 0 else f"{mib / 1024:.1f}Gi"


def cores(milli: int) -> str:
    """Format an amount given in thousandths."""
    return f"{milli / 1000:.1f}".removesuffix(".0")


def rtt(ns: int | None) -> str:
    """Format a network time in milliseconds; `NONE` without an answer."""
    if ns is None:
        return NONE
    return f"{ns / 1e6:.2f}".rstrip("0").rstrip(".") + " ms"


def loss(ppm: int) -> str:
    """Format parts per million as a percentage."""
    return f"{ppm / 10_000:.4f}".rstrip("0").rstrip(".") + " %"


def rate(mbps: int) -> str:
    """Format a bandwidth."""
    return f"{mbps / 1000:.1f}".removesuffix(".0") + " Gbit/s" if mbps >= 1000 else f"{mbps} Mbit/s"


def bar(used: int, total: int, blocks: int = BAR) -> Text:
    """Draw an allocation as a bar."""
    share = used / total if total else 0.0
    full = min(max(round(share * blocks), int(used > 0)), blocks)
    style = "red" if share > 0.9 else "yellow" if share > 0.6 else "green"
    return Text.assemble(("█" * full, style), ("░" * (blocks - full), "dim"))


def level(amount: Body, write: Callable[[int], str]) -> Text:
    """Draw an amount: a bar, the used part and the total."""
    return Text.assemble(bar(amount["used"], amount["total"]), f" {write(amount['used'])}/{write(amount['total'])}")


def gpus(job: Body, replicas: int = 1, held: int = 0) -> str:
    """Return the requested devices of one or more replicas of a job, in the user's notation.

    Parameters
    ----------
    held
        Number of these replicas that hold devices, if that is not all; 0 for all.
    """
    asked = job["spec"].get("resources", {})
    if not asked.get("gpus"):
        return NONE
    share = asked.get("gpu_memory") or asked.get("gpu_cores")
    counts = [asked["gpus"] * each for each in (held, replicas) if each]
    count = "/".join(map(str, counts))
    return f"{count} × {share}" if share else count


def held(job: Body) -> int:
    """Return the number of replicas that a job holds if it is placed with fewer than it wants; otherwise 0."""
    number: int = job.get("held_replicas", 0)
    return number if number < job["replicas"] else 0


def all_gpus(job: Body) -> str:
    """Return the requested devices of all replicas of a job: held and wanted ones if they differ."""
    return gpus(job, job["replicas"], held(job))


def replicas(job: Body) -> str:
    """Return the number of replicas of a job: held and wanted ones if they differ."""
    return f"{held(job)}/{job['replicas']}" if held(job) else str(job["replicas"])


def cordoned(thing: Body) -> str:
    """Describe a cordon with its author and reason; empty if there is none."""
    cordon = thing["cordon"]
    if not cordon:
        return ""
    said = f"{'drained' if cordon['drain'] else 'cordoned'} by {cordon['actor']}"
    return f"{said}: {cordon['reason']}" if cordon["reason"] else said


def models(devices: Sequence[Body]) -> str:
    """Count devices by model."""
    counts: dict[str, int] = {}
    for each in devices:
        counts[each["model"]] = counts.get(each["model"], 0) + 1
    return ", ".join(f"{count} {model}" for model, count in counts.items())


def small_bars(devices: Sequence[Body]) -> str:
    """Draw each device as one block. Its height is the larger allocation of memory and cores."""
    return "".join(block(_share(each)) if each["healthy"] else "x" for each in devices)


def block(share: float) -> str:
    """Draw a share as one block."""
    share = min(share, 1.0)
    return BLOCKS[max(round(share * 8), int(share > 0))]


def _share(device: Body) -> float:
    shares = [
        amount["used"] / amount["total"] for amount in (device["memory_mib"], device["core_milli"]) if amount["total"]
    ]
    return max(shares, default=0.0)


def need(job: Body) -> str:
    """Describe the resources of each replica. Omit those that are zero."""
    from seaway.domain.units import cpu_text

    request = job["request"]
    parts = [
        f"{cpu_text(request['cpu_milli'])} CPU" if request["cpu_milli"] else "",
        f"{gib(request['memory_mib'])} memory" if request["memory_mib"] else "",
        f"GPUs {gpus(job)}" if gpus(job) != NONE else "",
    ]
    return ", ".join(part for part in parts if part) or "nothing"


KIND_WIDTH = 10


def line(event: Body, *, dated: bool = False, named: bool = False) -> Text:
    """Format an event.

    Parameters
    ----------
    dated
        True to add the date before the time.
    named
        True to add the job's ID, for lists of several jobs.
    """
    what = event["state"] or event["kind"]
    text = Text.assemble((f"{day(event['at']) if dated else clock(event['at'])}  ", "dim"))
    text.append(f"{what:<{KIND_WIDTH}} ", STYLES.get(what, "bold"))
    if named:
        text.append(f"{event['job_id'] or 'fleet'}  ", "dim")
    text.append(event["message"])
    text.append(f"  · {event['actor']}", "dim")
    return text
