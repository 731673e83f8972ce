"""Anything that the first page says of clusters, and of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from seaway.application.fleet.usage_history import UsageReport, UsageSeries, UsageStep
from seaway.application.monitoring.alerts import Alert
from seaway.application.monitoring.rules import ALL, CLUSTER_UNREACHABLE, GPUS_UNHEALTHY, NODES_NOT_READY
from seaway.domain.facts import Facts, Location
from seaway.domain.queues import Queue
from seaway.domain.usage import UsageBy, UsageSpan
from seaway.web.fragment import written
from seaway.web.pages.fleet.alerts import ANSWERS_S, FRESH_S, Seen, alerts
from seaway.web.pages.fleet.overview import cost_per_hour, health_of, tenant_uses, tiles_of, tour_of
from seaway.web.parts.facts import changes_of, written_facts
from seaway.web.words import Words, words_of
from seaway.wire.alerts import AlertList, AlertOut, alert_fields
from seaway.wire.facts import FactsIn, FactsOut, ModelPrice, facts_fields
from seaway.wire.fleet import AmountOut, ClusterOut, UsageHistoryOut, usage_fields
from seaway.wire.job_out import JobCount
from seaway.wire.message import with_message
from seaway.wire.network_views import AgentList
from seaway.wire.queues import QueueList, TenantTotalsOut, queue_fields
from seaway.wire.tokens import TokenList

COUNTED = JobCount(total=7, states={"running": 5, "queued": 2}, waiting=2, running=5, waiting_tasks=2, running_tasks=9)


def cluster(**fields: object) -> ClusterOut:
    """Make a cluster of one device, half of which is taken."""
    amount = AmountOut(total=1000, used=500, free=500)
    amounts = dict.fromkeys(("cpu_milli", "memory_mib", "gpu_milli", "gpu_memory_mib"), amount)
    usual = {
        "name": "berlin",
        "state": "up",
        "last_seen_s": 0,
        "reported_at": "2026-11-21T10:00:00Z",
        **with_message(""),
        "gateway": "",
        "region": "",
        "hardware": [],
    }
    more: dict[str, object] = {
        "price_per_gpu_hour": "2.40",
        "cordon": None,
        "nodes": 1,
        "gpus": 1,
        "gpus_used_milli": 500,
        "jobs": 0,
        "orphans": [],
    }
    return ClusterOut.model_validate({**usual, **more, **amounts, **fields})


def all_wrong() -> AlertList:
    """Make an alert of each rule."""
    fields = [alert_fields(Alert(rule, "batch/b" if "/" in rule.of else "batch", rule.bound + 1, 0)) for rule in ALL]
    return AlertList(alerts=[AlertOut.model_validate(each) for each in fields])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_wrong_is_reported_in_words_the_worst_first(language: str) -> None:
    """Each rule has its own, in each language; a lost cluster comes before all, one that stands idle after."""
    words = words_of(language)
    seen = Seen([cluster(state="lost"), cluster(cordon=None)], {}, wrong=all_wrong())
    said = list(alerts(seen, words))
    assert [each["level"] for each in said] == ["bad"] * 5 + ["warn"] * 16 + ["note"] * 3
    assert not any("Seaway" in each["what"] for each in said)
    assert [each["href"] for each in said[-3:]] == ["/queues?queue=batch", "/schedule", "/fleet?cluster=batch"]
    assert "/jobs?cluster=batch" in [each["href"] for each in said]


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ((), ""),
        (("a-1", "a-2", "a-3"), ": a-1, a-2, a-3"),
        (("a-1", "a-2", "a-3", "a-4"), ": a-1, a-2, a-3 and others"),
    ],
)
def test_alerts_of_nodes_and_gpus_say_which_nodes(nodes: tuple[str, ...], why: str) -> None:
    """The page names three at most, beside their number."""
    wrong = [Alert(rule, "berlin", 4, 0, nodes=nodes) for rule in (NODES_NOT_READY, GPUS_UNHEALTHY)]
    listed = AlertList(alerts=[AlertOut.model_validate(alert_fields(each)) for each in wrong])
    said = alerts(Seen([], {}, wrong=listed), Words())
    assert [each["what"] for each in said] == [f"4 nodes of berlin not ready{why}", f"4 unhealthy GPUs of berlin{why}"]


def test_what_no_one_knows_of_a_cluster_is_no_zero() -> None:
    """One that was never observed is unknown.

    One that went silent keeps its last figures; one without GPUs has none.
    """
    none = AmountOut(total=0, used=0, free=0)
    never = cluster(state="stale", nodes=0, cpu_milli=none, memory_mib=none, gpu_milli=none, gpu_memory_mib=none)
    shown = written("clusters", Words(), clusters=[never], fresh_s=FRESH_S)
    assert (shown.count("unknown"), " free" in shown) == (4, False)
    shown = written("clusters", Words(), clusters=[cluster(state="stale", last_seen_s=80)], fresh_s=FRESH_S)
    assert ("unknown" in shown, " free<" in shown, "reported 1 min 20 s ago" in shown) == (False, False, True)
    assert "0 free" in written("clusters", Words(), clusters=[cluster(gpu_milli=none)], fresh_s=FRESH_S)


def test_an_unknown_price_and_unknown_facts_are_no_zero() -> None:
    """They are unknown in the list of clusters and in the line of one cluster; known hardware may be none."""
    unknown = cluster(price_per_gpu_hour=None, region=None, hardware=None)
    assert "price unknown" in written("clusters", Words(), clusters=[unknown], fresh_s=FRESH_S)
    assert "from 2.40 per GPU hour" in written("clusters", Words(), clusters=[cluster()], fresh_s=FRESH_S)
    model = {"model": "A100", "spot": True, "gpus": 2, "price_per_gpu_hour": None}
    assert written("facts", Words(), cluster=cluster(region=None, prices=[model]), may=True).count("unknown") == 5
    assert "none" in written("facts", Words(), cluster=cluster(hardware=[]), may=False)


def test_facts_in_the_form_are_read_as_they_are_written() -> None:
    """The form shows what operators set, and its texts give the same facts again; unknown ones are empty."""
    facts = Facts("eu", ("a", "b"), "", Location(52.5, -13.4), frozenset(), {"A100": 2_500_000, "*": 1}, {}, {"k": "v"})
    shown = written_facts(FactsOut.model_validate(facts_fields(facts)))
    assert FactsIn.model_validate(changes_of(written_facts(None), shown)).facts() == facts
    assert not any(written_facts(None).values())
    less = {**shown, "price-per-gpu-hour": "A100=3", "region": "", "hardware": "rdma"}
    patch = changes_of(shown, less)
    assert (patch["price_per_gpu_hour"], patch["region"]) == ({"*": None, "A100": "3"}, None)
    assert (patch["hardware"], patch["labels"]) == (["rdma"], {"k": "v"})


def test_what_is_not_up_is_in_no_sum_and_what_is_cordoned_not_free() -> None:
    """Sums are of clusters that answer; which do not stands beside them; where no work is taken nothing is free."""
    cordon = {"cluster": "oslo", "node": "", "drain": False, "reason": "", "actor": "ada", "at": ""}
    listed = [cluster(), cluster(name="oslo", cordon=cordon), cluster(name="rome", state="lost", jobs=3)]
    shown = {str(each["label"]): each for each in tiles_of(Seen(listed, {"running": 5}, jobs=COUNTED), Words())}
    cores = shown["GPU cores allocated"]
    assert (shown["GPUs in use"]["figure"], shown["GPUs in use"]["of"]) == ("1", "2")
    assert (cores["figure"], cores["note"]) == ("50 %", "0.5 free · without rome, which does not answer")
    assert (shown["Nodes"]["figure"], shown["Clusters up"]["figure"]) == ("2", "2")
    more = {str(each["label"]): each for each in tiles_of(Seen([*listed, cluster(state="stale")], {}), Words())}
    assert more["Nodes"]["note"] == "without 2 clusters that do not answer"
    assert shown["GPUs in use"]["note"] == "GPUs on clusters that do not answer: 1"
    assert shown["Running jobs"]["note"] == "9 tasks · 3 tasks on clusters that do not answer"
    assert (shown["Waiting jobs"]["figure"], shown["Waiting jobs"]["note"]) == ("2", "")
    lost = {str(each["label"]): each for each in tiles_of(Seen(listed[2:], {"running": 3}), Words())}
    assert (lost["GPU cores allocated"]["figure"], lost["Nodes"]["figure"]) == ("–", "0")
    assert "free" not in str(lost["GPU memory allocated"]["note"])


def test_gpus_in_use_cost_what_their_clusters_cost_on_average() -> None:
    """A cluster with two prices counts at their mean by GPUs; GPUs without any price are named apart."""

    def price(model: str, gpus: int, amount: str | None) -> ModelPrice:
        return ModelPrice(model=model, spot=False, gpus=gpus, price_per_gpu_hour=amount)

    mixed = cluster(prices=[price("a", 30, "2"), price("b", 10, "4")], gpus_used_milli=8000)
    unpriced = cluster(prices=[price("c", 8, None)], gpus_used_milli=1500)
    assert cost_per_hour([mixed, unpriced]) == (20.0, 1500)
    assert cost_per_hour([]) == (0.0, 0)


def test_tenants_are_listed_by_their_gpus_over_all_pools() -> None:
    """Pools are summed up; tenants without use, waiting jobs and costs are left out."""
    none: dict[str, Any] = {"running": 0, "guarantee": {}, "limit": {}, "max_waiting": None}
    rows = (("a", "x", "1", 0), ("b", "x", "2", 1), ("a", "y", "3.5", 0), ("c", "x", "0", 0))
    totals = [
        TenantTotalsOut(tenant=name, pool=pool, waiting=waiting, used={"gpus": gpus}, **none)
        for name, pool, gpus, waiting in rows
    ]
    shown = [(each.name, each.gpu_milli, each.waiting) for each in tenant_uses(totals)]
    assert shown == [("a", 4500, 0), ("b", 2000, 1)]


def test_first_steps_are_shown_until_a_cluster_is_joined_and_a_job_submitted() -> None:
    """Steps that are done are marked. A role that may not list tokens has no step for them."""
    words = Words()
    assert [each["done"] for each in tour_of(Seen([], {}), words)] == [False, False]
    queues = QueueList.model_validate({"queues": [queue_fields(Queue(name)) for name in ("default", "night")]})
    joined = Seen([cluster()], {"running": 0}, queues=queues, tokens=TokenList(tokens=[]))
    steps = list(tour_of(joined, words))
    assert [(each["href"], each["done"]) for each in steps] == [
        ("/settings?section=clusters", True),
        ("/queues", True),
        ("/settings?section=tokens", False),
        ("/submit", False),
    ]
    assert "seaway cluster join" in written("tour", words, steps=steps)
    assert list(tour_of(Seen([cluster()], {"running": 1}), words)) == []
    assert written("tour", words, steps=[]).strip() == ""


def test_numbers_of_what_is_not_in_order_lead_to_it() -> None:
    """Clusters that do not answer are counted, but not their nodes; acknowledged alerts come last, with their time."""
    words = Words()
    seen = Seen(
        [cluster(nodes_not_ready=2, gpus_unhealthy=1), cluster(state="lost", nodes_not_ready=9)],
        {},
        failed=JobCount(total=3, states={}),
    )
    found = {str(each["label"]): (each["figure"], each["level"], each["href"]) for each in health_of(seen, words)}
    assert found["Nodes not ready"] == ("2", "bad", "/fleet?ready=no")
    assert found["Unhealthy GPUs"][:2] == ("1", "bad")
    assert found["Clusters that do not answer"][:2] == ("1", "bad")
    assert found["Waiting for more than an hour"][:2] == ("0", "good")
    assert "state=failed&ended_from=" in str(found["Failed within 24 hours"][2])
    first, _, second, *_ = (each.model_copy(update={"of": "a"}) for each in all_wrong().alerts)
    known = first.model_copy(update={"acknowledged_by": "ada", "acknowledged_at": "2026-01-01T00:00:00Z"})
    said = alerts(Seen([], {}, wrong=AlertList(alerts=[known, second])), words)
    assert [(each["by"], each["since"] != "") for each in said] == [("", True), ("ada", True)]
    html = written("alerts", words, alerts=said, may=True)
    assert html.count("data-act") == 1
    assert "acknowledged by ada" in html
    assert "data-act" not in written("alerts", words, alerts=said, may=False)


def test_a_cluster_that_does_not_answer_is_reported_before_it_counts_as_stale() -> None:
    """The page goes by the age of the last answer; a stored alert adds who took care of it, and is not listed twice."""
    words, silent = Words(), cluster(last_seen_s=ANSWERS_S + 1)
    assert CLUSTER_UNREACHABLE.bound == ANSWERS_S
    assert alerts(Seen([cluster(last_seen_s=ANSWERS_S)], {}), words) == []
    (said,) = alerts(Seen([silent], {}), words)
    assert (said["what"], said["href"], said["key"]) == ("berlin does not answer", "/fleet?cluster=berlin", "")
    known = AlertOut.model_validate(alert_fields(Alert(CLUSTER_UNREACHABLE, "berlin", 6, 0)))
    stored = AlertList(alerts=[known.model_copy(update={"acknowledged_by": "ada"})])
    (said,) = alerts(Seen([silent], {}, wrong=stored), words)
    assert (said["key"], said["by"]) == ("SeawayClusterUnreachable berlin", "ada")
    shown = {str(each["label"]): each["figure"] for each in health_of(Seen([silent], {}), words)}
    assert shown["Clusters that do not answer"] == "1"


def test_the_line_of_a_day_and_old_links_are_part_of_the_figures() -> None:
    """The line goes from idle at the bottom to full at the top; one sample is no line. Unknown links count as old."""
    words = Words()

    def shown(*used: int) -> str:
        steps = [UsageStep(at, 1000, each) for at, each in enumerate(used)]
        fields = usage_fields(UsageBy.FLEET, UsageSpan.DAY, UsageReport(0, 9, [UsageSeries("", steps, 1)], None))
        seen = Seen([cluster()], {}, history=UsageHistoryOut.model_validate(fields))
        return written("tiles", words, tiles=list(tiles_of(seen, words)))

    assert 'points="0.0,19.0 50.0,10.0 100.0,1.0"' in shown(0, 500, 1000)
    assert "polyline" not in shown(500)
    agents = AgentList(version="1", agents=[], links={"measured": 4, "stale": 2, "unknown": 1, "reported": 6})
    found = {each["label"]: (each["figure"], each["level"]) for each in health_of(Seen([], {}, agents=agents), words)}
    assert found["Links without fresh measurements"] == ("3", "bad")
