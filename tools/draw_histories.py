"""Draw random histories of a control loop as data: a fleet, tenants, queues, and events with their times.

`record_cycle.py` runs control loops through them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

from rich.progress import track

from seaway.domain.queues import Backfill, Order, Preemption, Reclaim
from tools.record_cycle import A100, MIG, V100, Json, write

EVENTS = 40
"""Number of events of a history."""

ASKED_EVERY = 5
"""Number of events between questions."""

TENANTS = "red", "blue"
USERS = "ada", "bob", "eve"


def history(seed: int) -> Json:
    """Draw a history. After every fifth event there are jobs to ask about, under ``asked``."""
    random = Random(seed)
    drawn: Json = {"seed": seed, "clusters": _clusters(random), "batch_size": random.choice([1, 4, 512])}
    drawn["tenants"] = {name: _quota(random) for name in TENANTS}
    drawn["queues"] = _queues(random)
    leaves = sorted({each["name"] for each in drawn["queues"]} - {each.get("parent") for each in drawn["queues"]})
    at_s, events, asking = 0, [], Random(seed)
    for number in range(EVENTS):
        at_s += random.choice([0, 0, 1, 1, 3, 10, 30, 60])
        events.append({"at_s": at_s, **_event(random, number, drawn, leaves)})
        if not (number + 1) % ASKED_EVERY:
            asked = [_job(asking, sorted(each["name"] for each in drawn["queues"])) for _ in range(3)]
            asked = [{**each, "queue": leaves[at % len(leaves)]} for at, each in enumerate(asked)]
            events[-1]["asked"] = [{key: value for key, value in each.items() if key != "array"} for each in asked]
    return {**drawn, "events": events}


def _clusters(random: Random) -> list[Json]:
    """Draw one to three clusters; the first node has four GPUs for the largest jobs."""
    names = ("ams", "fra", "sin")[: random.randint(1, 3)]
    models = [A100, A100, V100, MIG]
    drawn: list[Json] = [
        {"name": name, "nodes": [[random.choice(models)] * random.choice([2, 4]) for _ in range(random.randint(1, 3))]}
        for name in names
    ]
    drawn[0]["nodes"][0] = [A100] * 4
    return drawn


def _quota(random: Random) -> Json:
    return {
        "limit": {"gpus": 1000 * random.randint(4, 12)} if random.random() < 0.3 else {},
        "user_limit": {"gpus": 1000 * random.randint(2, 6)} if random.random() < 0.2 else {},
    }


def _queues(random: Random) -> list[Json]:
    """Draw a tree of queues: two parents with children, one queue without a parent, all with their own rules."""
    drawn: list[Json] = [{"name": "default", **_rules(random)}]
    for parent in ("lab", "campus"):
        limit = {"gpus": 1000 * random.randint(4, 10)} if random.random() < 0.4 else {}
        drawn.append({"name": parent, "weight": random.randint(1, 3), "limit": limit})
        for number in range(random.randint(1, 2)):
            guarantee = {"gpus": 1000 * random.randint(1, 2)} if random.random() < 0.5 else {}
            if limit and guarantee:
                guarantee = {"gpus": 1000}
            own = {"gpus/" + A100.lower(): 2000} if random.random() < 0.15 else {}
            drawn.append(
                {
                    "name": f"{parent}-{number}",
                    "parent": parent,
                    "weight": random.randint(1, 3),
                    "guarantee": guarantee,
                    "limit": own,
                    **_rules(random),
                }
            )
    return drawn


def _rules(random: Random) -> Json:
    return {
        "order": random.choice([Order.FAIR, Order.FAIR, Order.FIFO, Order.SHORTEST, Order.PRIORITY]).value,
        "backfill": random.choice([*Backfill]).value,
        "preemption": random.choice([*Preemption]).value,
        "reclaim": random.choice([*Reclaim]).value,
        "min_runtime_s": random.choice([0, 0, 30]),
        "ageing_s": random.choice([0, 0, 60]),
        "policy": random.choice(["bestfit", "bestfit", "greedy"]),
        "grow_cooldown_s": random.choice([0, 30]),
    }


def _event(random: Random, number: int, drawn: Json, leaves: Sequence[str]) -> Json:
    kind = random.random()
    names = [each["name"] for each in drawn["clusters"]]
    event: Json
    if kind < 0.65 or number < 6:
        count = random.choice([1, 1, 1, 2, 4])
        event = {"submit": [_job(random, leaves)] * count, "user": random.choice(USERS)}
    elif kind < 0.75:
        event = {"cancel": random.randrange(100)}
    elif kind < 0.8:
        event = {"reprioritize": random.randrange(100), "priority": random.choice([-3, 0, 5])}
    elif kind < 0.85:
        event = {"cordon": random.choice(names), "node": random.choice(["", "node-0"]), "drain": random.random() < 0.3}
    elif kind < 0.89:
        event = {"cut": random.choice(names), "seconds": random.choice([20, 90, 300])}
    elif kind < 0.93:
        at = random.choice(drawn["queues"])
        event = {"limit": at["name"], "gpus": random.choice([None, 2000, 4000, 8000])}
    else:
        whole = random.random() < 0.3
        event = {
            "reserve": f"window-{number}",
            "in_s": random.choice([5, 60, 300]),
            "for_s": random.choice([60, 300]),
            "tenant": "" if whole else random.choice(TENANTS),
            "gpus": 0 if whole else random.randint(1, 3),
            "cluster": random.choice(names) if whole else "",
        }
    return event


def _job(random: Random, leaves: Sequence[str]) -> Json:
    """Draw a job: a slice, whole GPUs, a gang, an elastic job, an array, or one with bounds on the network."""
    drawn: Json = {
        "tenant": random.choice(TENANTS),
        "queue": random.choice([*leaves, "default"]),
        "priority": random.choice([0, 0, 0, 5, -3]),
        "expected_duration_s": random.choice([None, 20, 60, 200, 600]),
        "cpu_milli": random.choice([1000, 1000, 8000]),
        "gpus": random.choice([0, 1, 1, 1, 1, 2, 2, 4]),
    }
    if drawn["expected_duration_s"] is None and random.random() < 0.7:
        drawn["expected_duration_s"] = 120
    if drawn["gpus"] and random.random() < 0.3:
        drawn |= {"gpu_milli": 300, "gpu_memory_mib": 12_000}
    if drawn["gpus"] and random.random() < 0.2:
        drawn["models"] = [random.choice([A100, A100, V100])]
    form = random.random()
    if form < 0.15:
        drawn |= {"replicas": random.choice([2, 3]), "gang": True}
    elif form < 0.3:
        drawn |= {"replicas": 3, "one_by_one": True}
    elif form < 0.42:
        most = random.choice([3, 6])
        drawn |= {"replicas": most, "min_replicas": random.choice([1, 2]), "max_replicas": most}
    elif form < 0.48:
        drawn["array"] = {"last": random.randint(2, 5), "limit": random.choice([None, 1, 2])}
    elif form < 0.55:
        drawn |= {"gateway": "door-0", "max_latency_ns": 3_000_000, "min_bandwidth_mbps": random.choice([0, 40])}
    if random.random() < 0.1:
        drawn["preemptible"] = False
    return drawn


def main() -> int:
    """Draw histories."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, help="folder of the histories")
    parser.add_argument("--count", type=int, default=300, help="number of histories (default: 300)")
    given = parser.parse_args()
    for seed in track(range(given.count), "Drawing"):
        write(given.target / f"{seed:03}.json.gz", history(seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
