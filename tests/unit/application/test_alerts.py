"""Anything that is wrong, by the same bounds that Prometheus' rules have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from seaway.application.control.stages import Deployed
from seaway.application.histogram import BOUNDS_S, Timed, Timing
from seaway.application.monitoring.alerts import RESTORE_S, Alerts
from seaway.application.monitoring.conditions import (
    EVERY_S,
    NODES,
    Faults,
    NetworkFigures,
    QueueFigures,
    Sources,
    quantile_s,
)
from seaway.application.monitoring.counters import Figures, JobFigures, NotifierCounts, StoreFigures
from seaway.application.monitoring.rules import (
    AGENT_LOST,
    AT_ONCE,
    CLUSTER_UNREACHABLE,
    DATABASE_FAILS,
    DATABASE_SLOW,
    DEPLOYING_WITHIN_S,
    FAILED_WITHIN_S,
    FAILING_SHARE,
    FAILING_WITHIN_S,
    FEW_STARTS,
    JOBS_FAIL,
    LINK_LOSSY,
    LOSSY_WITHIN_S,
    PREEMPTED_WITHIN_S,
    PREEMPTIONS_MANY,
    QUEUE_LONG,
    RULES,
    SLOW_SHARE,
    SLOW_WITHIN_S,
    START_ESTIMATES_OFF,
    STARTED_WITHIN_S,
    Rule,
)
from seaway.application.records import Acknowledgement
from seaway.application.views import Amount, ClusterState, ClusterView
from seaway.application.writer import Writer
from seaway.domain.facts import NO_FACTS
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore

SHIPPED = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules"
UNITS_S = {"s": 1, "m": 60, "h": 3600}
SELDOM_S = 120
"""The way how seldom Prometheus may scrape what alerts go by."""

NOTHING = Timed((0,) * (len(BOUNDS_S) + 1), 0.0)


@dataclass
class World:
    """Figures that a test sets, and what looks at them."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    failures: int = 0
    took: Timing = field(default_factory=Timing)
    behind: int = 0
    tasks: dict[str, bool] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    deployed: dict[tuple[str, Deployed], int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    broken: dict[str, tuple[tuple[str, ...], dict[str, int]]] = field(default_factory=dict)
    """Names of nodes that are not ready, and unhealthy GPUs by node, by cluster."""
    network: NetworkFigures = field(default_factory=NetworkFigures)
    ready: bool = True
    dead_letters: int = 0
    standbys_missing: int = 0
    preempted: dict[tuple[str, str], int] = field(default_factory=dict)
    queues: QueueFigures = field(default_factory=QueueFigures)
    faults: Faults = field(default_factory=Faults)
    start_errors: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        """Have it looked at."""
        self.store = MemoryStore()
        self.store.lead("test")
        self.restart()

    def restart(self) -> None:
        """Have another process look at it, with the same store."""
        sources = Sources(lambda: self.faults, self.figures, self.clusters, lambda: self.network, self.queue_figures)
        self.alerts = Alerts(sources, self.store, Writer(self.store), self.clock)

    def figures(self) -> Figures:
        """Count."""
        jobs = JobFigures({}, {}, self.waits, {}, {})
        store = StoreFigures(0, 0, self.took.timed(), self.failures, self.behind)
        return Figures(
            ready=self.ready, jobs=jobs, store=store, decided=0, placed={}, conflicts=0, preempted=self.preempted,
            failures=0, slo_violations=0, moves=0, stages={}, deployed=self.deployed, pending_commands={},
            last_seen_s={}, clusters={}, failing_tasks=self.tasks, notified=NotifierCounts(dead=self.dead_letters),
            standbys=(9, self.standbys_missing),
        )  # fmt: skip

    def queue_figures(self) -> QueueFigures:
        """Return the amounts of queues, with the errors of estimates so far."""
        return replace(self.queues, start_errors=self.start_errors.timed())

    def clusters(self) -> list[ClusterView]:
        """Return clusters of one device, and one that has none."""
        reported = [view(name, Amount(1000, used)) for name, used in self.used.items()] + [view("cpus", Amount(0, 0))]
        for at, each in enumerate(reported):
            nodes, gpus = self.broken.get(each.name, ((), {}))
            reported[at] = replace(each, not_ready=nodes, unhealthy=gpus)
        lost = ClusterState.LOST
        return [replace(each, state=lost, unreachable_s=99) if each.name in self.lost else each for each in reported]

    def go_on(self) -> list[tuple[str, str, float]]:
        """Return the faults now."""
        self.alerts.look_at_faults()
        return [(each.rule.name, each.of, each.value) for each in self.alerts.wrong()]

    def go(self, seconds: float) -> list[tuple[str, str, float]]:
        """Let time pass, and return what is wrong then."""
        for _ in range(int(seconds / EVERY_S)):
            self.alerts.look()
            self.clock.advance_s(EVERY_S)
        self.alerts.look()
        return [(each.rule.name, each.of, each.value) for each in self.alerts.wrong()]


def view(name: str, gpu_milli: Amount) -> ClusterView:
    """Make a cluster that has so much of its GPU cores taken; of one with the name ``memory``, of its GPU memory."""
    none, cores, memory = Amount(0, 0), gpu_milli, Amount(gpu_milli.total, 0)
    if name == "memory":
        cores, memory = memory, cores
    return ClusterView(name, ClusterState.UP, 0, "", NO_FACTS, NO_FACTS, {}, None, 1, 1, none, none, cores, memory, 0)


def seconds(text: str) -> int:
    """Read a time as Prometheus writes it."""
    return int(text[:-1]) * UNITS_S[text[-1]]


def counterpart(rule: Rule) -> tuple[dict[str, Any], float]:
    """Return the shipped rule with a name, and its bound."""
    files = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in SHIPPED.glob("*.yml")]
    shipped = {each["alert"]: each for file in files for group in file["groups"] for each in group["rules"]}[rule.name]
    bound = re.search(r"(?:[<>]|==) ([\d.]+)(?: and| unless|$)", " ".join(shipped["expr"].split()))
    assert bound
    return shipped, float(bound[1])


@pytest.mark.parametrize(
    "rule", [each for each in AT_ONCE if each not in (CLUSTER_UNREACHABLE, AGENT_LOST)], ids=lambda rule: rule.name
)
def test_rules_without_a_duration_have_one_in_prometheus_and_the_same_bounds(rule: Rule) -> None:
    """Pages report a fault at once. Prometheus, which wakes people, waits for some minutes first."""
    shipped, bound = counterpart(rule)
    assert (shipped["labels"]["severity"], bound) == (rule.severity, rule.bound)
    assert seconds(shipped["for"]) > rule.for_s
    windows = {seconds(each) for each in re.findall(r"\[(\w+)\]", shipped["expr"])}
    assert windows == ({FAILED_WITHIN_S} if rule is JOBS_FAIL else set())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rules_have_the_bounds_that_are_shipped_for_prometheus(rule: Rule) -> None:
    """Anyone who has both is reported the same of both: name, severity, bound, and how long it has to last.

    But for failures of the database, which Seaway sees sooner.
    """
    shipped, bound = counterpart(rule)
    lasts_s = seconds(shipped["for"])
    assert (shipped["labels"]["severity"], bound) == (rule.severity, rule.bound)
    assert lasts_s == rule.for_s or rule is DATABASE_FAILS
    windows = {seconds(each) for each in re.findall(r"\[(\w+)\]", shipped["expr"])}
    if rule is DATABASE_FAILS:  # Prometheus may look at it more seldom than Seaway itself
        (within_s,) = windows
        assert lasts_s > within_s >= 2 * SELDOM_S
        assert rule.for_s > FAILING_WITHIN_S >= 2 * EVERY_S
    elif rule is DATABASE_SLOW:
        assert windows == {SLOW_WITHIN_S}
    elif rule is LINK_LOSSY:
        assert windows == {LOSSY_WITHIN_S}
    elif rule is PREEMPTIONS_MANY:
        assert windows == {PREEMPTED_WITHIN_S}
    elif rule is START_ESTIMATES_OFF:
        assert windows == {STARTED_WITHIN_S}
        assert f"> {FEW_STARTS}" in shipped["expr"]
    elif windows:
        assert windows == {DEPLOYING_WITHIN_S}
        assert f"> {FAILING_SHARE} * sum" in shipped["expr"]
    assert rule is not DATABASE_SLOW or f"quantile({SLOW_SHARE}," in shipped["expr"]


def test_a_cluster_that_is_half_empty_is_informed_of_after_an_hour() -> None:
    """Not before, not one that is half full, not one without GPUs; and no more once its cores or memory are used."""
    world = World(used={"idle": 490, "busy": 500, "memory": 500})
    assert world.go(3600 - EVERY_S) == []
    assert world.go(EVERY_S) == [("SeawayLowUtilisation", "idle", 49.0)]
    world.used["idle"] = 500
    assert world.go(EVERY_S) == []
    world.used["idle"] = 0
    assert world.go(EVERY_S) == []
    world.lost = {"idle"}
    assert [name for name, _, _ in world.go(2 * 3600)] == ["SeawayClusterUnreachable"]


def test_a_control_plane_that_places_nothing_is_informed_of_after_two_minutes() -> None:
    """A user who looks at its pages is reported so by them too."""
    world = World(ready=False)
    assert world.go(120 - EVERY_S) == []
    assert world.go(EVERY_S) == [("SeawayNotReady", "", 0)]


def test_gateways_that_are_dead_full_or_unread_and_links_that_lose_are_informed_of() -> None:
    """A dead gateway once, not each of its links; what a link loses is a mean: a single bad round is nothing."""
    losses = {("user", "dead"): 1.0, ("user", "fine"): 0.0, ("user", "bad"): 0.03, ("fine", "dead"): 1.0}
    world = World(network=NetworkFigures(losses, {"fine": 0.95, "bad": 0.9}, ["bad"]))
    assert world.go(120) == [("SeawayGatewayDead", "dead", 1)]
    assert world.go(480) == [
        ("SeawayGatewayDead", "dead", 1),
        ("SeawayGatewayFull", "fine", 0.95),
        ("SeawayGatewayUnread", "bad", 1),
        ("SeawayLinkLossy", "user/bad", pytest.approx(0.03)),
    ]
    world.network = NetworkFigures({("user", "fine"): 0.5})
    world.go(EVERY_S)
    world.network = NetworkFigures({("user", "fine"): 0.0})
    assert world.go(1200) == []


def test_a_queue_in_which_a_job_waits_for_more_than_an_hour_is_informed_of() -> None:
    """Once it has been so for five minutes, since when that began."""
    world = World(waits={"batch": 3700.0, "default": 3600.0})
    began_ns = world.clock.now_ns()
    assert world.go(300) == [(QUEUE_LONG.name, "batch", 3700.0)]
    assert world.alerts.wrong()[0].since_ns == began_ns


def test_queues_below_their_guarantee_or_at_their_limit_are_reported_while_jobs_wait() -> None:
    """A wait of 15 minutes counts below a guarantee, one of an hour at a limit; queues with enough are not reported."""
    world = World(waits=dict.fromkeys(("below", "at", "enough", "free"), 1000.0) | {"quick": 900.0})
    used = {"below": 1500, "at": 3960, "enough": 2000, "quick": 0, "free": 0}
    world.queues = QueueFigures(used, {"below": 2000, "enough": 2000, "quick": 4000}, {"at": 4000, "enough": 4000})
    assert world.go(900 - EVERY_S) == []
    assert world.go(EVERY_S) == [("SeawayQueueBelowGuarantee", "below", 1000.0)]
    assert world.go(3600) == [("SeawayQueueBelowGuarantee", "below", 1000.0)]
    world.waits = {"at": 3601.0}
    assert world.go(3600 - EVERY_S) == [(QUEUE_LONG.name, "at", 3601.0)]
    assert world.go(EVERY_S) == [(QUEUE_LONG.name, "at", 3601.0), ("SeawayQueueAtLimit", "at", 3601.0)]
    world.queues = QueueFigures({"at": 3950}, {}, {"at": 4000})
    assert world.go(EVERY_S) == [(QUEUE_LONG.name, "at", 3601.0)]


def test_many_preemptions_of_a_queue_within_an_hour_are_reported() -> None:
    """Both rules count together. Those before the first evaluation, and those of more than an hour ago, do not."""
    world = World(preempted={("batch", "priority"): 500, ("few", "reclaim"): 0})
    world.go(EVERY_S)
    world.preempted = {("batch", "priority"): 511, ("batch", "reclaim"): 10, ("few", "reclaim"): 20}
    assert world.go(285) == []
    assert world.go(30) == [("SeawayPreemptionsMany", "batch", 21)]
    assert world.go(PREEMPTED_WITHIN_S) == []


def test_expected_starts_that_are_far_off_are_reported() -> None:
    """Half of more than 20 starts within six hours are off by more than an hour. Fewer starts do not count."""
    world = World()
    world.go(EVERY_S)
    for _ in range(FEW_STARTS):
        world.start_errors.note(4000)
    assert world.go(1200) == []
    world.start_errors.note(1)
    assert world.go(885) == []
    (alert,) = world.go(30)
    assert (alert[:2], 3600 < alert[2] < 14_400) == ((START_ESTIMATES_OFF.name, ""), True)
    for _ in range(FEW_STARTS):
        world.start_errors.note(1)
    assert world.go(0) == []
    for _ in range(FEW_STARTS + 2):
        world.start_errors.note(4000)
    assert world.go(1200) != []
    assert world.go(STARTED_WITHIN_S) == []


def test_a_database_that_fails_is_informed_of_while_it_does() -> None:
    """Anything that happened before it was looked first counts for nothing, and neither does what is over."""
    world = World(failures=7)
    assert world.go(150) == []
    world.failures = 9
    for _ in range(20):
        assert world.go(EVERY_S) == []
    for _ in range(8):
        world.failures += 1
        world.go(EVERY_S)
    world.failures += 1
    assert world.go(0) == [(DATABASE_FAILS.name, "", 7)]
    assert world.go(FAILING_WITHIN_S + EVERY_S) == []


def test_a_slow_database_and_one_that_is_behind_are_informed_of() -> None:
    """By the part that it took of late: a minute that was slow an hour ago is none."""
    world = World(behind=2001)
    world.go(EVERY_S)
    for _ in range(10):
        world.took.note(3.0)
    assert world.go(270) == [("SeawayDatabaseBehind", "", 2001)]
    world.took.note(3.0)
    slow, behind = world.go(30)
    assert (slow[0], 2.5 < slow[2] <= 5, behind[0]) == (DATABASE_SLOW.name, True, "SeawayDatabaseBehind")
    world.behind = 0
    assert world.go(600) == []


def test_a_task_that_keeps_failing_is_reported() -> None:
    """A scheduled task that fails for ten minutes is reported by name, one that succeeds is not."""
    world = World(tasks={"prune": True, "backup": False})
    assert world.go(570) == []
    assert world.go(60) == [("SeawayTaskFails", "prune", 1)]
    world.tasks["prune"] = False
    assert world.go(0) == []


def test_missing_standbys_are_reported() -> None:
    """Services that could not switch for five minutes are reported with their number."""
    world = World(standbys_missing=2)
    assert world.go(270) == []
    assert world.go(60) == [("SeawayStandbyMissing", "", 2)]
    world.standbys_missing = 0
    assert world.go(0) == []


def test_damaged_rows_are_named() -> None:
    """Damaged rows are reported at once, the first five by table and key."""
    world = World(faults=Faults(unreadable=[f"jobs with id '{at}'" for at in range(7)]))
    assert world.go(0) == [("SeawayRowsUnreadable", "", 7)]
    (alert,) = world.alerts.wrong()
    assert str(alert.reason).startswith("7 rows of the database cannot be read. Repair or remove them")
    assert "jobs with id '0'" in str(alert.reason)
    assert "jobs with id '5'" not in str(alert.reason)


def test_dead_letters_are_reported() -> None:
    """Messages of notifications that stay undelivered for five minutes are reported with their number."""
    world = World(dead_letters=3)
    assert world.go(270) == []
    assert world.go(60) == [("SeawayNotificationsDead", "", 3)]
    world.dead_letters = 0
    assert world.go(0) == []


def test_deployments_that_come_to_nothing_are_informed_of_where_they_are_many() -> None:
    """More than three within a quarter of an hour, and more than a fifth of all."""
    world = World(deployed={(name, what): 0 for name in ("bad", "large", "few") for what in Deployed})
    world.go(EVERY_S)
    world.deployed |= {("bad", Deployed.LATE): 2, ("bad", Deployed.REFUSED): 3, ("bad", Deployed.RUNNING): 15}
    world.deployed |= {("large", Deployed.FAILED): 5, ("large", Deployed.RUNNING): 20, ("few", Deployed.FAILED): 3}
    assert world.go(330) == [("SeawayDeploymentsFail", "bad", 5)]
    assert world.go(900) == []


def test_a_share_of_times_is_read_between_bounds() -> None:
    """As Prometheus reads it: evenly spread between two bounds, at the last bound beyond all, 0 of nothing."""
    timing = Timing()
    assert quantile_s(NOTHING, timing.timed(), 0.5) == 0
    for _ in range(4):
        timing.note(0.2)
    assert quantile_s(NOTHING, timing.timed(), 0.5) == pytest.approx(0.1 + 0.15 / 2)
    before = timing.timed()
    timing.note(1e9)
    assert quantile_s(before, timing.timed(), 0.99) == BOUNDS_S[-1]


def test_acknowledgements_are_stored_until_their_alerts_clear() -> None:
    """Another process knows who and when, also while the alert is not due again; a cleared alert has none."""
    world = World(waits={"batch": QUEUE_LONG.bound + 1}, behind=3000)
    world.go(QUEUE_LONG.for_s)
    at_ns = world.clock.now_ns()
    for name, of in (("SeawayQueueLong", "batch"), ("SeawayDatabaseBehind", "")):
        world.alerts.acknowledge(name, of, "ada")
    world.behind = 0
    world.restart()
    world.go(RESTORE_S - EVERY_S)
    assert len(world.store.acknowledgements()) == 2
    world.go(QUEUE_LONG.for_s)
    (alert,) = world.alerts.wrong()
    assert alert.acknowledged == Acknowledgement("SeawayQueueLong", "batch", "ada", at_ns)
    assert world.store.acknowledgements() == [alert.acknowledged]
    world.waits = {}
    world.go(0)
    assert world.store.acknowledgements() == []
    world.waits = {"batch": QUEUE_LONG.bound + 1}
    world.go(QUEUE_LONG.for_s)
    assert [each.acknowledged for each in world.alerts.wrong()] == [None]


def test_a_restart_changes_neither_firing_alerts_nor_their_ages() -> None:
    """They fire as soon as their figure is there again, since the time before the restart."""
    world = World(waits={"batch": QUEUE_LONG.bound + 1})
    since_ns = world.clock.now_ns()
    world.go(QUEUE_LONG.for_s)
    fired = [(each.key, each.since_ns) for each in world.alerts.wrong()]
    assert fired == [(("SeawayQueueLong", "batch"), since_ns)]
    world.restart()
    world.go(EVERY_S)
    assert [(each.key, each.since_ns) for each in world.alerts.wrong()] == fired
    world.waits = {}
    world.go(0)
    assert (world.alerts.wrong(), world.store.firing_alerts()) == ([], [])


def test_a_database_that_fails_delays_only_the_removal_of_acknowledgements() -> None:
    """Alerts are evaluated without it, and the next evaluation tries again."""
    world = World(behind=3000)
    world.go(120)
    world.alerts.acknowledge("SeawayDatabaseBehind", "", "ada")
    world.behind = 0
    world.store.fail_next()
    assert world.go(0) == []
    assert len(world.store.acknowledgements()) == 1
    world.go(0)
    assert world.store.acknowledgements() == []


def test_faults_are_reported_at_once_and_clear_with_their_end() -> None:
    """They need no duration; nodes and GPUs of a cluster that does not answer are unknown, so only it is reported."""
    broken = {"a": (("a-1", "a-2"), {"a-3": 1, "a-4": 2}), "b": (("b-1",), dict[str, int]())}
    world = World(used={"a": 900, "b": 900}, broken=broken, lost={"b"})
    world.faults = Faults(0, "the disk under the database is full", ["gw-a"])
    assert world.go_on() == [
        ("SeawayStoreFails", "", 1),
        ("SeawayClusterUnreachable", "b", 99),
        ("SeawayNodesNotReady", "a", 2),
        ("SeawayGPUsUnhealthy", "a", 3),
        ("SeawayAgentLost", "gw-a", 1),
    ]
    assert [each.reason for each in world.alerts.wrong()][:2] == [
        "The database does not store changes. New jobs are refused: the disk under the database is full",
        "b does not answer",
    ]
    world.broken, world.lost, world.faults = {}, set(), Faults()
    assert world.go_on() == []


def test_alerts_of_nodes_and_gpus_name_the_first_nodes() -> None:
    """A rack of many nodes is not listed in whole."""
    names = tuple(f"a-{at}" for at in range(NODES + 1))
    world = World(used={"a": 900}, broken={"a": (names, {"a-7": 1, "a-9": 2})})
    world.go_on()
    assert [each.nodes for each in world.alerts.wrong()] == [names[:NODES], ("a-7", "a-9")]


def test_more_than_four_failed_jobs_within_a_quarter_of_an_hour_are_reported() -> None:
    """Until a quarter of an hour after the failures."""
    world = World(faults=Faults(4))
    assert world.go_on() == []
    world.faults = Faults(5)
    assert world.go_on() == [("SeawayJobsFail", "", 5)]
    world.clock.advance_s(FAILED_WITHIN_S / 2)
    assert world.go_on() == [("SeawayJobsFail", "", 5)]
    world.clock.advance_s(FAILED_WITHIN_S / 2 + 1)
    assert world.go_on() == []
