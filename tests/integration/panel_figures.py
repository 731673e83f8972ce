"""Expected values of dashboard panels, computed from the API, and the panels without values in the API.

Rates and increases are compared by the values of their counters, which begin at 0 with Seaway, like the API's lists.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from tests.integration.watched_demo import WatchedDemo

MIB = 1 << 20
ENDED = ("completed", "failed", "cancelled", "deleted")
WINDOWED = re.compile(r"(?:rate|increase)\(([^()\[\]]+)\[[^\]]+\]\)")

Key = tuple[str, str, str]
"""A panel: its dashboard, its title, and the legend or column of a query."""

Figures = dict[tuple[str, ...], float]
"""Values by their labels."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Expected result of a query.

    Attributes
    ----------
    labels
        Labels that identify its values.
    figures
        All values; zeros may be missing.
    most
        Number of values shown, the highest; 0 for all.
    within
        Allowed difference.
    some
        True if the API has only some of the values.
    """

    labels: tuple[str, ...]
    figures: Figures
    most: int = 0
    within: float = 1e-3
    some: bool = False

    def difference(self, found: Figures) -> str:
        """Return the difference to a result; empty if there is none."""
        if self.most:
            ordered = sorted(self.figures.values(), reverse=True)[: self.most]
            if sorted(found.values(), reverse=True) != pytest.approx(ordered, abs=self.within):
                return f"{found}, expected of these the {self.most} most: {self.figures}"
        names = found.keys() if self.most else self.figures.keys() if self.some else found.keys() | self.figures.keys()
        pairs = {name: (found.get(name, 0.0), self.figures.get(name, 0.0)) for name in names}
        off = {name: pair for name, pair in pairs.items() if pair[0] != pytest.approx(pair[1], abs=self.within)}
        return f"{off} (shown, expected)" if off else ""


def without_rates(query: str) -> str:
    """Return a query for the values of counters instead of their rates."""
    return WINDOWED.sub(r"\1", query)


class Reported:
    """Answers of the API about a demo idle."""

    def __init__(self, demo: WatchedDemo) -> None:
        self._demo = demo
        self.devices: list[dict[str, Any]] = demo.get("/fleet/devices", limit=1000)["devices"]
        self.slices: list[dict[str, Any]] = demo.get("/fleet/slices", limit=1000)["slices"]
        self.clusters: list[dict[str, Any]] = demo.get("/fleet/clusters")["clusters"]
        self.links: list[dict[str, Any]] = demo.get("/links")
        self.states: dict[str, int] = demo.get("/job-counts")["states"]
        self.uses: list[dict[str, Any]] = demo.get("/queue-usage")["uses"]
        self.queues: list[dict[str, Any]] = demo.get("/queue-usage")["queues"]
        self.tenants: list[dict[str, Any]] = demo.get("/queue-usage")["tenants"]
        self.agents: list[dict[str, Any]] = demo.get("/network/agents")["agents"]

    @cached_property
    def jobs(self) -> list[dict[str, Any]]:
        """Return every job, with its attempts."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            page = self._demo.get("/jobs", limit=100, **({"after": after} if after else {}))
            found += page["jobs"]
            after = page["next"]
            if not after:
                return [{**each, **self._demo.get(f"/jobs/{each['id']}/attempts")} for each in found]

    @cached_property
    def standbys(self) -> list[dict[str, Any]]:
        """Return the standby of every placed service that should have one."""
        paired = [each for each in self.jobs if each["clusters"] and each.get("standby")]
        active = [each["id"] for each in paired if each["standby"]["role"] == "active"]
        return [self._demo.get(f"/jobs/{job_id}")["standby"] for job_id in active]

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """Return every attempt of every job."""
        return [each for job in self.jobs for each in job["attempts"]]


def one(figure: float, within: float = 1e-3) -> Shown:
    """Return a single value."""
    return Shown((), {(): figure}, within=within)


def counted(label: str, objects: Mapping[str, float]) -> Shown:
    """Return numbers of objects by one label."""
    return Shown((label,), {(name,): count for name, count in objects.items()})


def all_in(label: str, objects: Mapping[str, float]) -> Shown:
    """Return the values that the API has, by a label, among others."""
    return Shown((label,), {(name,): count for name, count in objects.items()}, some=True)


def by_cluster(objects: list[dict[str, Any]], figure: Callable[[dict[str, Any]], float]) -> Shown:
    """Sum the values of objects by cluster."""
    sums: Counter[str] = Counter()
    for each in objects:
        sums[each["cluster"]] += figure(each)  # type: ignore[assignment]  # a float counts, too
    return counted("cluster", sums)


def share(amounts: list[dict[str, Any]]) -> float:
    """Return the allocated share of amounts, 0 to 100."""
    return float(100 * sum(each["used"] for each in amounts) / sum(each["total"] for each in amounts))


def of_fleet(reported: Reported) -> dict[Key, Shown]:
    """Return the expected values of the fleet's dashboard."""
    devices, clusters = reported.devices, reported.clusters
    cores = {each["uuid"]: share([each["core_milli"]]) for each in devices}
    idle = [each for each in devices if not each["slices"]]
    stranded = sum(
        each["memory_mib"]["total"] - each["memory_mib"]["used"]
        for each in devices
        if each["slices"] and cores[each["uuid"]] >= 100
    )
    sums = {
        (what, part): sum(each[what][part] for each in devices)
        for what in ("memory_mib", "core_milli")
        for part in ("total", "used")
    }
    fill = {
        "idle": len(idle),
        "less than half": sum(bool(each["slices"]) and cores[each["uuid"]] < 50 for each in devices),
        "half and more": sum(50 <= each < 100 for each in cores.values()),
        "full": sum(each >= 100 for each in cores.values()),
    }
    shares = {
        what: counted("cluster", {each["name"]: share([each[what]]) for each in clusters})
        for what in ("gpu_milli", "gpu_memory_mib")
    }
    memory, used = "GPU memory: promised and used", "GPU cores: promised and used"
    return {
        ("fleet", "GPUs", ""): one(len(devices)),
        ("fleet", "GPU cores allocated", ""): one(share([each["gpu_milli"] for each in clusters])),
        ("fleet", "GPU memory allocated", ""): one(share([each["gpu_memory_mib"] for each in clusters])),
        ("fleet", "vGPUs", ""): one(sum(len(each["slices"]) for each in devices)),
        ("fleet", "Idle GPUs", ""): one(len(idle)),
        ("fleet", "Stranded memory", ""): one(stranded * MIB),
        ("fleet", "Clusters", "GPUs"): counted("cluster", {each["name"]: each["gpus"] for each in clusters}),
        ("fleet", "Clusters", "Cores"): shares["gpu_milli"],
        ("fleet", "Clusters", "Memory"): shares["gpu_memory_mib"],
        ("fleet", "Clusters", "vGPUs"): by_cluster(devices, lambda each: len(each["slices"])),
        ("fleet", "Clusters", "Idle"): by_cluster(idle, lambda _: 1),
        **{("fleet", "Fill of devices", name): one(count) for name, count in fill.items()},
        ("fleet", "GPU cores allocated", "{{cluster}}"): shares["gpu_milli"],
        ("fleet", "GPU memory allocated", "{{cluster}}"): shares["gpu_memory_mib"],
        ("fleet", memory, "there is"): one(sums["memory_mib", "total"] * MIB),
        ("fleet", memory, "allocated"): one(sums["memory_mib", "used"] * MIB),
        ("fleet", memory, "used"): one(sum(each["used"]["memory_bytes"] for each in devices)),
        ("fleet", used, "there is"): one(sums["core_milli", "total"] / 1000),
        ("fleet", used, "allocated"): one(sums["core_milli", "used"] / 1000),
        ("fleet", used, "used"): one(sum(each["used"]["core_milli"] for each in devices) / 1000),
    }


def of_devices(reported: Reported) -> dict[Key, Shown]:
    """Return the expected values of the devices' dashboard."""
    devices = reported.devices

    def each_one(figure: Callable[[dict[str, Any]], float], most: int = 0) -> Shown:
        return Shown(("deviceuuid",), {(each["uuid"],): figure(each) for each in devices}, most)

    def free(each: dict[str, Any]) -> float:
        return float(each["memory_mib"]["total"] - each["memory_mib"]["used"]) * MIB

    nodes: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for each in devices:
        nodes[each["cluster"], each["node"]].append(each["memory_mib"])
    marked, table = "{{cluster}}/{{nodeid}} #{{deviceidx}}", "Devices"
    return {
        ("device", "Devices", ""): one(len(devices)),
        ("device", "Cores allocated", ""): one(share([each["core_milli"] for each in devices])),
        ("device", "Memory allocated", ""): one(share([each["memory_mib"] for each in devices])),
        ("device", "Holders of a device", ""): one(max(len(each["slices"]) for each in devices)),
        ("device", "Devices over their limit", ""): one(sum(free(each) < 0 for each in devices)),
        ("device", table, "Cores"): each_one(lambda each: share([each["core_milli"]])),
        ("device", table, "Memory"): each_one(lambda each: share([each["memory_mib"]])),
        ("device", table, "Memory free"): each_one(free),
        ("device", table, "Memory there is"): each_one(lambda each: each["memory_mib"]["total"] * MIB),
        ("device", table, "Holder"): each_one(lambda each: len(each["slices"])),
        ("device", "Cores allocated", marked): each_one(lambda each: each["core_milli"]["used"] / 10, 20),
        ("device", "Memory allocated", marked): each_one(lambda each: each["memory_mib"]["used"] * MIB, 20),
        ("device", "Nodes by memory allocated", "{{cluster}}/{{nodeid}}"): Shown(
            ("cluster", "nodeid"), {key: share(amounts) for key, amounts in nodes.items()}, 20
        ),
        ("device", "How full devices were", marked): each_one(lambda each: share([each["core_milli"]]), 20),
        ("device", "Cores used", marked): each_one(lambda each: each["used"]["core_milli"] / 10, 20),
        ("device", "Memory used", marked): each_one(lambda each: each["used"]["memory_bytes"], 20),
        ("device", "Promised and not used", marked): each_one(
            lambda each: each["memory_mib"]["used"] * MIB - each["used"]["memory_bytes"], 10
        ),
    }


def of_vgpus(reported: Reported) -> dict[Key, Shown]:
    """Return the expected values of the vGPUs' dashboard."""
    slices = reported.slices

    def each_one(figure: Callable[[dict[str, Any]], float], most: int = 0) -> Shown:
        return Shown(("deviceuuid", "pod"), {(each["uuid"], pod(each)): figure(each) for each in slices}, most)

    def cores(each: dict[str, Any]) -> float:
        return float(100 * each["core_milli"] / each["device_core_milli"])

    held = sum(each["memory_mib"] for each in slices) * MIB
    row = "{{namespace}}/{{pod}} {{container}} ({{cluster}}/{{nodeid}} #{{deviceidx}})"
    by_namespace: Counter[str] = Counter()
    for each in slices:
        by_namespace[each["pod"].rpartition("/")[0]] += each["memory_mib"] * MIB
    return {
        ("vgpu", "vGPU", ""): one(len(slices)),
        ("vgpu", "Pods", ""): one(len({(each["cluster"], pod(each)) for each in slices})),
        ("vgpu", "Memory held", ""): one(held),
        ("vgpu", "Cores held", ""): one(sum(map(cores, slices)) / 100),
        ("vgpu", "vGPUs", "Cores"): each_one(cores),
        ("vgpu", "vGPUs", "Memory share"): each_one(lambda each: 100 * each["memory_mib"] / each["device_memory_mib"]),
        ("vgpu", "vGPUs", "Memory held"): each_one(lambda each: each["memory_mib"] * MIB),
        ("vgpu", "Memory held", row): each_one(lambda each: each["memory_mib"] * MIB, 20),
        ("vgpu", "Cores held", row): each_one(cores, 20),
        ("vgpu", "Memory used", row): each_one(lambda each: each["used"]["memory_bytes"], 20),
        ("vgpu", "Cores used", row): each_one(lambda each: each["used"]["core_milli"] / 10, 20),
        ("vgpu", "Memory held by namespace", "{{namespace}}"): counted("namespace", by_namespace),
    }


def pod(held: dict[str, Any]) -> str:
    """Return the pod of a slice, or its replica until the pod is known."""
    return held["pod"].rpartition("/")[2] or f"sw-{held['job_id']}-{held['attempt']}-{held['replica']}"


def of_network(reported: Reported) -> dict[Key, Shown]:
    """Return the expected values of the network's dashboard."""
    links = reported.links
    net = {(each["sourceName"], each["targetName"]): each["net"] for each in links}
    from_users = {key: figures for key, figures in net.items() if key[0] == "gw-4"}
    between = {key: figures for key, figures in net.items() if "gw-4" not in key}
    to_clusters = {key: figures for key, figures in net.items() if key[1] != "gw-4"}

    def each_one(what: str, among: Mapping[tuple[str, str], dict[str, Any]]) -> Shown:
        return Shown(("source", "target"), {key: float(each[what]) for key, each in among.items()}, within=0.5)

    return {
        ("network", "Gateways that answer nobody", ""): one(0),
        ("network", "Most lost", ""): one(max(each["packetLoss"] for each in net.values())),
        ("network", "Longest round trip", ""): one(max(each["latency"] for each in from_users.values())),
        ("network", "Links that are measured", ""): one(len(links)),
        ("network", "Links that no one knows", ""): one(0),
        **{
            ("network", title, legend): each_one(what, among)
            for title, column, what in (
                ("Round trip", "Round trip", "latency"),
                ("Jitter", "Jitter", "jitter"),
                ("Loss", "Loss", "packetLoss"),
            )
            for (title, legend), among in (
                (("Links to clusters", column), from_users),
                (("Links between clusters", column), between),
                ((title, "{{source}} → {{target}}"), to_clusters),
            )
        },
    }


def of_scheduler(reported: Reported) -> dict[Key, Shown]:
    """Return the expected values of the scheduler's dashboard."""
    waiting = sum(each["waiting"] for each in reported.uses)
    placed = Counter(each["policy"] for each in reported.attempts)
    ran = sum(each["running_at"] is not None for each in reported.attempts)
    return {
        ("scheduler", "Ready", ""): one(1),
        ("scheduler", "Waiting jobs", ""): one(waiting),
        ("scheduler", "Longest wait", ""): one(max(each["longest_wait_s"] for each in reported.uses), within=10),
        ("scheduler", "Placed per second", ""): one(placed.total()),
        ("scheduler", "Decisions", "placed"): one(placed.total()),
        ("scheduler", "Placed, by policy", "{{policy}}"): counted("policy", placed),
        ("scheduler", "Until every replica runs", "{{le}}"): all_in("le", {"+Inf": ran}),
    }


def gpus_of_queues(reported: Reported, kind: str) -> Shown:
    """Return the GPUs of each queue."""
    return counted("queue", {each["queue"]: each[kind]["gpus"] for each in reported.queues if "gpus" in each[kind]})


def of_shares(reported: Reported) -> dict[Key, Shown]:
    """Return the expected values of the shares in the jobs' dashboard."""
    used, own, limit = (gpus_of_queues(reported, kind) for kind in ("used", "guarantee", "limit"))

    def percent(of: Shown) -> Shown:
        figures = {name: 100 * used.figures.get(name, 0) / amount for name, amount in of.figures.items()}
        return Shown(("queue",), figures)

    def quota(kind: str, resource: str) -> Shown:
        figures: Figures = {(each["tenant"], each["pool"]): each[kind][resource] for each in reported.tenants}
        return Shown(("tenant", "pool"), figures)

    below = [name for name, amount in own.figures.items() if used.figures.get(name, 0) < amount]
    waiting = {each["queue"] for each in reported.uses if each["waiting"]}
    borrowed = {name: max(0.0, used.figures.get(name, 0) - amount) for name, amount in own.figures.items()}
    table, quotas = "Shares of queues", "Quotas of tenants"
    return {
        ("jobs", "Below their guarantee", ""): one(sum(name in waiting for (name,) in below)),
        ("jobs", table, "GPUs"): used,
        ("jobs", table, "Guarantee"): own,
        ("jobs", table, "Borrowed"): Shown(("queue",), borrowed),
        ("jobs", table, "Limit"): limit,
        ("jobs", "Use of guarantees", "{{queue}}"): percent(own),
        ("jobs", "Use of limits", "{{queue}}"): percent(limit),
        ("jobs", quotas, "GPUs"): quota("used", "gpus"),
        ("jobs", quotas, "Guarantee"): quota("guarantee", "gpus"),
        ("jobs", quotas, "Limit"): quota("limit", "gpus"),
        ("jobs", quotas, "Jobs"): quota("used", "jobs"),
        ("jobs", quotas, "Most jobs"): quota("limit", "jobs"),
    }


def of_jobs(reported: Reported) -> dict[Key, Shown]:
    """Return the expected values of the jobs' dashboard."""
    states = reported.states
    waiting: Counter[str] = Counter()
    for each in reported.uses:
        waiting[each["queue"]] += each["waiting"]
    longest = {each["queue"]: each["longest_wait_s"] for each in reported.uses if each["waiting"]}
    waits = Shown(("queue",), {(name,): long for name, long in longest.items()}, within=10)
    there = {name: count for name, count in states.items() if count and name not in ENDED}
    done, failed = states["completed"], states["failed"]
    ran = [each for each in reported.attempts if each["running_at"] is not None]
    never = [each for each in reported.attempts if each["running_at"] is None and each["ended_at"] is not None]
    reached = {
        "pending": sum(states.values()),
        "scheduled": len(reported.attempts),
        "running": len(ran),
        "completed": done,
        "failed": failed,
    }
    came_to_nothing: Counter[tuple[str, ...]] = Counter((each["placements"][0]["cluster"], "failed") for each in never)
    return {
        ("jobs", "Running", ""): one(states["running"]),
        ("jobs", "Waiting", ""): one(sum(waiting.values())),
        ("jobs", "Longest wait", ""): one(max(longest.values()), within=10),
        ("jobs", "Completed", ""): one(done),
        ("jobs", "Completion rate", ""): one(done / (done + failed)),
        ("jobs", "Preempted", ""): one(states.get("preempted", 0)),
        ("jobs", "Queues", "Waiting"): counted("queue", waiting),
        ("jobs", "Queues", "Longest wait now"): waits,
        ("jobs", "Waiting", "{{queue}}"): counted("queue", waiting),
        ("jobs", "Longest wait", "{{queue}}"): waits,
        ("jobs", "GPUs by queue", "{{queue}}"): gpus_of_queues(reported, "used"),
        ("jobs", "GPUs by queue", "{{queue}} guarantee"): gpus_of_queues(reported, "guarantee"),
        ("jobs", "GPUs by queue", "{{queue}} limit"): gpus_of_queues(reported, "limit"),
        ("jobs", "How long jobs waited", "{{le}}"): all_in("le", {"+Inf": len(reported.attempts)}),
        ("jobs", "Standbys", "services"): one(len(reported.standbys)),
        ("jobs", "Standbys", "without a standby"): one(
            sum(each["state"] not in ("running", "verified") for each in reported.standbys)
        ),
        ("jobs", "Jobs by state", "{{state}}"): counted("state", there),
        ("jobs", "Into each state", "{{state}}"): all_in("state", reached),
        ("jobs", "What became of deployments", "{{outcome}}"): counted(
            "outcome", {"running": len(ran), "failed": len(never)}
        ),
        ("jobs", "Deployments that came to nothing", "{{cluster}} {{outcome}}"): Shown(
            ("cluster", "outcome"), {key: float(count) for key, count in came_to_nothing.items()}
        ),
    }


def expected(reported: Reported) -> dict[Key, Shown]:
    """Return the expected values of all panels that the API has values for."""
    parts = (of_fleet, of_devices, of_vgpus, of_network, of_scheduler, of_jobs, of_shares)
    return {key: shown for part in parts for key, shown in part(reported).items()}


AGE = "an age: it increases between the scrape and the query"
INSIDE = "internal state of Seaway: only metrics have it"
COUNTED = "a counter since the start, without a list in the API"
TIMES = "an estimate between the bounds of a histogram; other panels compare its counts with the API"
TRAFFIC = "present traffic: it changes between scrapes"
LOWEST = "the minimum of a quotient of two other panels' values"
ASKED_FOR = "its sum is compared with pending jobs by a separate test: the API explains single jobs"

WITHOUT: dict[tuple[str, str], str] = {
    ("fleet", "Clusters/Silent for"): AGE,
    ("fleet", "Do clusters answer?"): AGE,
    ("device", "Age of what is measured"): AGE,
    ("vgpu", "Least used allocations"): LOWEST,
    ("network", "Fullest interface"): TRAFFIC,
    ("network", "Bandwidth free"): TRAFFIC,
    ("network", "Links to clusters/Bandwidth free"): TRAFFIC,
    ("network", "Links between clusters/Bandwidth free"): TRAFFIC,
    ("network", "What passes through"): TRAFFIC,
    ("network", "How full interfaces are"): TRAFFIC,
    ("network", "Looks at exporters"): INSIDE,
    ("network", "Do agents report?"): AGE,
    ("network", "Rounds of probes"): COUNTED,
    ("network", "Reports"): COUNTED,
    ("network", "Left out"): COUNTED,
    ("scheduler", "Decisions given back"): INSIDE,
    ("scheduler", "Failed rounds"): INSIDE,
    ("scheduler", "Decisions/tried"): INSIDE,
    ("scheduler", "What keeps jobs waiting"): ASKED_FOR,
    ("scheduler", "Trained policies: time to decide"): INSIDE,
    ("scheduler", "Trained policies: fallbacks"): INSIDE,
    ("scheduler", "Half of all took less"): TIMES,
    ("scheduler", "99 of 100 took less"): TIMES,
    ("scheduler", "Until clusters took it over"): TIMES,
    ("scheduler", "Pending commands"): INSIDE,
    ("scheduler", "Age of the oldest"): INSIDE,
    ("scheduler", "Failed commands"): INSIDE,
    ("scheduler", "Age of reports"): AGE,
    ("scheduler", "Sources that fail"): INSIDE,
    ("scheduler", "Problems in reports"): INSIDE,
    ("scheduler", "Time of a transaction"): INSIDE,
    ("scheduler", "Changes that wait"): INSIDE,
    ("scheduler", "Transactions"): INSIDE,
    ("scheduler", "Failures"): INSIDE,
    ("scheduler", "Requests"): INSIDE,
    ("scheduler", "Share of errors"): INSIDE,
    ("scheduler", "Who follows events"): INSIDE,
    **dict.fromkeys(
        (
            ("scheduler", title)
            for title in (
                *("Requests for pages", "Pages: 99 of 100 took less", "What pages ask"),
                *("Memory", "Processor", "Runs for", "Version"),
            )
        ),
        INSIDE,
    ),
    ("jobs", "Queues/Half waited less"): TIMES,
    ("jobs", "Queues/95 of 100 waited less"): TIMES,
    ("jobs", "Broken bounds"): INSIDE,
    ("jobs", "Shares of queues/Displaced"): COUNTED,
    ("jobs", "Displaced jobs"): COUNTED,
    ("jobs", "Errors of expected starts"): INSIDE,
    ("jobs", "What keeps jobs waiting"): ASKED_FOR,
}
"""Panels, or single queries of them after a slash, without a counterpart in the API, with the reason."""


def reason_without(key: Key) -> str:
    """Return the reason why a panel is not compared; empty if it is."""
    dashboard, title, legend = key
    return WITHOUT.get((dashboard, f"{title}/{legend}")) or WITHOUT.get((dashboard, title), "")
