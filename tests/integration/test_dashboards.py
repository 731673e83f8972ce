"""Every query of every dashboard has a result from a real Prometheus on a demo, and it agrees with the API.

Debian has Prometheus: ``apt-get install prometheus``. Its service is not used. There is no Grafana here: the tests
substitute the variables and run the queries as it does.
"""

from __future__ import annotations

import math
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import yaml

from dashboards.every import DASHBOARDS
from dashboards.language import Language
from tests.integration.panel_figures import Reported, expected, reason_without, without_rates
from tests.integration.test_prometheus import SHIPPED, prometheus
from tests.integration.watched_demo import WatchedDemo, watched_demo
from tests.unit.dashboards.asked import Asked, asked

pytestmark = [pytest.mark.slow, pytest.mark.programs("prometheus")]

TIMEOUT_S = 300
SCRAPES_S = 1
MIB = 1 << 20
CHOSEN = {
    "$__rate_interval": "30s",
    "$__range": "5m",
    **dict.fromkeys(("$cluster", "$node", "$device", "$namespace", "$site", "$source", "$target", "$queue"), ".*"),
}
"""Values of the variables when everything is selected, and the lookback of Prometheus."""


@dataclass(frozen=True)
class Watched:
    """The demo, and the Prometheus that scrapes it."""

    demo: WatchedDemo
    client: httpx.Client

    def ask(self, query: str, **chosen: str) -> list[dict[str, Any]]:
        """Run a query with everything selected but for `chosen`; empty without a result, and for NaN."""
        for name, value in {**CHOSEN, **{f"${name}": value for name, value in chosen.items()}}.items():
            query = query.replace(name, value)
        try:
            answer = self.client.get("/api/v1/query", params={"query": query})
            found: list[dict[str, Any]] = answer.json()["data"]["result"]
        except (httpx.TransportError, ValueError):
            return []
        except KeyError:
            pytest.fail(f"{query}: {answer.text}")
        return [each for each in found if math.isfinite(float(each["value"][1]))]

    def value(self, query: str) -> float:
        """Query one value."""
        found = self.ask(query)
        assert len(found) == 1, (query, found)
        return float(found[0]["value"][1])

    def by(self, query: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Query values by labels."""
        return {
            tuple(each["metric"].get(label, "") for label in labels): float(each["value"][1])
            for each in self.ask(query)
        }

    def until(self, done: Callable[[], object], what: str) -> None:
        """Wait until a condition is met."""
        end = time.monotonic() + TIMEOUT_S
        while not done():
            assert time.monotonic() < end, what
            time.sleep(0.25)


def ended(demo: WatchedDemo) -> bool:
    """Report whether jobs have completed and failed."""
    known = demo.get("/job-counts")["states"]
    return all(known.get(state) for state in ("completed", "failed"))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Run a demo, scraped each second, until every query has a result; then stop its changes."""
    folder = tmp_path_factory.mktemp("dashboards")
    with watched_demo(folder) as demo:
        place = folder / "prometheus"
        shutil.copytree(SHIPPED, place)
        (place / "token").write_text(demo.token, encoding="utf-8")
        (place / "targets" / "seaway.yml").write_text(f'- targets: ["{demo.place}"]\n', encoding="utf-8")
        config = place / "prometheus.yml"
        text = config.read_text(encoding="utf-8").replace("15s", "1s").replace("10s", "1s")
        config.write_text(text, encoding="utf-8")
        with prometheus(place) as client:
            made = Watched(demo, client)
            made.until(lambda: made.ask("up == 1"), "Prometheus scrapes nothing")
            made.until(lambda: ended(demo), "no job ends")  # later there may be no room for short ones
            demo.stay(60)
            yield made


EVERY = [each for name, frame in DASHBOARDS.items() for each in asked(name, frame(Language.ENGLISH))]


def test_every_query_has_an_answer(watched: Watched) -> None:
    """No stat, table row or line is without data, and none is filled with defaults."""
    missing: list[Asked] = EVERY

    def answered() -> bool:
        nonlocal missing
        missing = [each for each in missing if not watched.ask(each.query)]
        return not missing

    try:
        watched.until(answered, "")
    except AssertionError:
        pytest.fail("\n".join(f"{each.dashboard}: {each.title}: {each.query}" for each in missing))
    assert not [each for each in EVERY if "vector(" in each.query]


def test_one_thing_can_be_chosen(watched: Watched) -> None:
    """Each query by cluster, node or device has a result for one of them, and for nothing else."""
    held = watched.ask("vGPUMemoryAllocated")[0]["metric"]
    chosen = {"cluster": held["cluster"], "node": held["nodeid"], "device": held["deviceuuid"]}
    labels = {"cluster": "cluster", "node": "nodeid", "device": "deviceuuid"}
    for name, value in chosen.items():
        requesting = [each for each in EVERY if f"${name}" in each.query]
        assert len(requesting) > 5
        narrow = {other: chosen[other] for other in list(chosen)[: list(chosen).index(name) + 1]}
        answers = {each: watched.ask(each.query, **narrow) for each in requesting}
        others = [
            each for each, rows in answers.items() for row in rows if row["metric"].get(labels[name], value) != value
        ]
        assert others == []
        assert [each for each in requesting if "count by" in each.query and not answers[each]] == []
        nothing = [each for each in requesting if watched.ask(each.query, **{**narrow, name: "no-such"})]
        assert nothing == []


@pytest.fixture(scope="module")
def no_overload(watched: Watched) -> Watched:
    """Stop the demo's changes, and wait until Prometheus has scraped the jobs that completed and failed."""
    watched.demo.rest()

    def settled() -> bool:
        reported = {state: count for (state,), count in watched.by("seaway_jobs", "state").items() if count}
        known = watched.demo.get("/job-counts")["states"]
        over = {"completed", "failed"}
        there = {state: count for state, count in known.items() if count and state not in over}
        reached = watched.by("seaway_jobs_reached_total", "state")
        return (
            reported.keys() <= {"running", "queued"}
            and reported == there
            and all(reached[state,] == known[state] for state in over)
        )

    watched.until(settled, "jobs come and go")
    time.sleep(2 * SCRAPES_S)  # measurements of devices follow
    return watched


def query_of(dashboard: str, title: str, column: str = "") -> str:
    """Return the query of a panel, or of a column of a table."""
    (found,) = [
        each.query
        for each in EVERY
        if (each.dashboard, each.title) == (dashboard, title) and (not column or each.legend == column)
    ]
    return found


def pages(demo: WatchedDemo, path: str, what: str) -> list[dict[str, Any]]:
    """Return all pages of a list."""
    found: list[dict[str, Any]] = demo.get(path, limit=1000)[what]
    return found


def test_the_fleets_figures_are_the_apis(no_overload: Watched) -> None:
    """The numbers of devices and allocations, total and by cluster, are the API's."""
    devices = pages(no_overload.demo, "/fleet/devices", "devices")
    clusters = no_overload.demo.get("/fleet/clusters")["clusters"]
    assert no_overload.value(query_of("fleet", "GPUs")) == len(devices)
    for title, what in (("GPU cores allocated", "gpu_milli"), ("GPU memory allocated", "gpu_memory_mib")):
        total = sum(each[what]["total"] for each in clusters)
        used = sum(each[what]["used"] for each in clusters)
        in_sum = next(each.query for each in EVERY if (each.dashboard, each.title) == ("fleet", title))
        assert no_overload.value(in_sum) == pytest.approx(100 * used / total)
    assert no_overload.value(query_of("fleet", "Idle GPUs")) == sum(not each["slices"] for each in devices)
    assert no_overload.value(query_of("fleet", "vGPUs")) == sum(len(each["slices"]) for each in devices)
    for column, what in (("Cores", "gpu_milli"), ("Memory", "gpu_memory_mib")):
        shares = no_overload.by(query_of("fleet", "Clusters", column), "cluster")
        expected = {(each["name"],): 100 * each[what]["used"] / each[what]["total"] for each in clusters}
        assert shares == pytest.approx(expected, abs=1e-3)
    counts = no_overload.by(query_of("fleet", "Clusters", "GPUs"), "cluster")
    assert counts == {(each["name"],): each["gpus"] for each in clusters}


def test_devices_figures_are_the_apis(no_overload: Watched) -> None:
    """Allocation and use of each device, row by row, are the API's."""
    devices = {each["uuid"]: each for each in pages(no_overload.demo, "/fleet/devices", "devices")}
    memory = no_overload.by(query_of("device", "Devices", "Memory there is"), "deviceuuid")
    assert memory == {(uuid,): each["memory_mib"]["total"] * MIB for uuid, each in devices.items()}
    free = no_overload.by(query_of("device", "Devices", "Memory free"), "deviceuuid")
    assert free == {
        (uuid,): (each["memory_mib"]["total"] - each["memory_mib"]["used"]) * MIB for uuid, each in devices.items()
    }
    held = no_overload.by(query_of("device", "Devices", "Holder"), "deviceuuid")
    assert held == {(uuid,): len(each["slices"]) for uuid, each in devices.items()}
    used = no_overload.by("GPUDeviceMemoryUsed", "deviceuuid")
    assert used == {(uuid,): each["used"]["memory_bytes"] for uuid, each in devices.items()}


def test_vgpus_figures_are_the_apis(no_overload: Watched) -> None:
    """There are as many rows as slices, with the same total memory."""
    slices = pages(no_overload.demo, "/fleet/slices", "slices")
    assert no_overload.value(query_of("vgpu", "vGPU")) == len(slices)
    rows = no_overload.by(query_of("vgpu", "vGPUs", "Memory held"), "deviceuuid", "pod")
    assert sum(rows.values()) == sum(each["memory_mib"] for each in slices) * MIB
    assert len(rows) == len(slices)


def test_the_networks_figures_are_the_apis(no_overload: Watched) -> None:
    """Latency, jitter and loss of each link from users are the API's, in the units of the dashboard."""
    links = no_overload.demo.get("/links", source="gw-4")
    latency = no_overload.by(query_of("network", "Links to clusters", "Round trip"), "target")
    assert latency == {(each["targetName"],): each["net"]["latency"] for each in links}
    loss = no_overload.by(query_of("network", "Links to clusters", "Loss"), "target")
    assert loss == pytest.approx({(each["targetName"],): each["net"]["packetLoss"] for each in links})
    assert loss["gw-3",] == pytest.approx(0.2)
    assert no_overload.value(query_of("network", "Gateways that answer nobody")) == 0


def test_jobs_figures_are_the_apis(no_overload: Watched) -> None:
    """Jobs by state, pending jobs by queue, and finished jobs are the API's."""
    there = no_overload.demo.get("/job-counts")["states"]
    counted = no_overload.by(query_of("jobs", "Jobs by state"), "state")
    assert {state: counted[state,] for state in ("running", "queued")} == {
        state: there[state] for state in ("running", "queued")
    }
    waiting = no_overload.by(query_of("jobs", "Queues", "Waiting"), "queue")
    assert sum(waiting.values()) == there["queued"] > 0
    reached = no_overload.by("seaway_jobs_reached_total", "state")
    for state in ("completed", "failed"):
        assert reached[state,] == there[state] > 0


def test_the_schedulers_figures_are_the_apis(no_overload: Watched) -> None:
    """Pending jobs are shown, each counted for one rule; as many were placed as became scheduled."""
    waiting = no_overload.value(query_of("scheduler", "Waiting jobs"))
    assert waiting == no_overload.demo.get("/job-counts")["states"]["queued"]
    no_overload.until(
        lambda: no_overload.value("sum(seaway_jobs_unschedulable)") == waiting, "rules are counted for ten seconds"
    )
    assert no_overload.value(query_of("scheduler", "Ready")) == 1
    placed = no_overload.value("sum(seaway_jobs_placed_total)")
    assert placed == no_overload.value('sum(seaway_jobs_reached_total{state="scheduled"})')


def test_every_panel_is_held_to_the_api_or_says_why_not(no_overload: Watched) -> None:
    """Every panel is compared with the API, or listed with the reason why not."""
    there = {(each.dashboard, each.title, each.legend) for each in EVERY}
    shown = expected(Reported(no_overload.demo)).keys()
    reasons = {key for key in there if reason_without(key)}
    assert shown | reasons == there
    assert shown & reasons == set()


def test_panels_show_what_the_api_says(no_overload: Watched) -> None:
    """Panels have the API's values and labels, none missing and none more; rates by their counters."""
    queries = defaultdict(list)
    for each in EVERY:
        queries[each.dashboard, each.title, each.legend].append(without_rates(each.query))
    wrong = {}
    for key, shown in expected(Reported(no_overload.demo)).items():
        found = {name: value for query in queries[key] for name, value in no_overload.by(query, *shown.labels).items()}
        if error := shown.difference(found):
            wrong[key] = error
    assert wrong == {}


def test_every_series_is_the_apis(no_overload: Watched) -> None:
    """The series behind panels, of clusters, devices, vGPUs and links, equal the API's JSON."""
    reported: dict[str, dict[tuple[str, ...], list[float]]] = defaultdict(lambda: defaultdict(list))

    def differing() -> list[str]:
        data = no_overload.demo.get("/metrics")["data"]
        assert len(data) > 20
        found: list[str] = []
        for name, series in data.items():
            labels = sorted(series[0].keys() - {"value"})
            for each in series:
                reported[name][tuple(str(each[label]) for label in labels)].append(each["value"])
            seen = no_overload.by(name, *labels)
            if seen.keys() != reported[name].keys() or any(
                all(value != pytest.approx(one) for one in reported[name][key]) for key, value in seen.items()
            ):
                found.append(f"{name}: {seen}, and the API reported {dict(reported[name])}")
        return found

    with suppress(AssertionError):
        no_overload.until(lambda: not differing(), "links are measured again, and scraped a little later")
    assert not differing()


def test_alerts_go_by_series_that_are_there(no_overload: Watched) -> None:
    """Alerts query existing series: a renamed metric would make an alert that never fires."""
    names = set(no_overload.client.get("/api/v1/label/__name__/values").json()["data"])
    for path in (SHIPPED / "rules").glob("*.yml"):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                asked_for = set(re.findall(r"\b(?:seaway_\w+|\w+GPU\w+)\b", rule["expr"]))
                assert asked_for <= names, rule["alert"]


def test_variables_offer_what_there_is(no_overload: Watched) -> None:
    """Clusters, nodes, devices, queues and sites can be selected, each by a label of an existing series."""
    for frame in DASHBOARDS.values():
        for variable in frame(Language.ENGLISH).variables:
            offered = {each["metric"].get(variable.label, "") for each in no_overload.ask(variable.series)}
            assert offered, variable
            if variable.name == "cluster":
                assert offered == {"cluster-1", "cluster-2", "cluster-3"}
