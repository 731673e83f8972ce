"""Dashboards as Grafana reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.every import DASHBOARDS, dashboards
from dashboards.files import FOLDER_ANNOTATION, SIDECAR_LABEL, as_json, write_config_maps, write_folders
from dashboards.language import Language
from dashboards.looks import STEADY
from tests.unit.dashboards.asked import asked, panels, read

SHIPPED = Path(__file__).parents[3] / "deploy" / "grafana"

WIDTH = 24
GRAFANAS = {"__all", "__rate_interval", "__range", "datasource", "__url_time_range", "__data"}
"""Variables that Grafana itself knows."""

CHINESE = re.compile(r"[\u4e00-\u9fff]")
KEPT_AS_THEY_ARE = {"vGPU", "Seaway", "CPU"}


def every(language: Language = Language.ENGLISH) -> list[tuple[str, dict[str, Any]]]:
    """Return all dashboards."""
    return [(name, read(frame(language), language)) for name, frame in DASHBOARDS.items()]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_both_languages_ask_the_same(name: str) -> None:
    """Only what people read differs: titles, descriptions, legends that are words."""
    english, chinese = (list(asked(name, DASHBOARDS[name](language))) for language in Language)
    assert [each.query for each in english] == [each.query for each in chinese]


@pytest.mark.parametrize("language", Language)
def test_every_panel_says_what_it_shows(language: Language) -> None:
    """Each has a title and a description in its dashboard's language, a data source to choose, and a unit."""
    for _, dashboard in every(language):
        for panel in dashboard["panels"]:
            title = panel["title"]
            chinese = bool(CHINESE.search(title)) or title in KEPT_AS_THEY_ARE
            assert chinese if language is Language.CHINESE else not CHINESE.search(title), title
        for panel in panels(dashboard):
            assert bool(CHINESE.search(panel["description"])) is (language is Language.CHINESE), panel["title"]
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["fieldConfig"]["defaults"]["unit"]


@pytest.mark.parametrize("language", Language)
def test_grafanas_own_types_know_all_that_is_written(language: Language) -> None:
    """Read by them and written again, nothing is gone: no field is misspelt, or where no one looks for it."""
    register_default_plugins()
    for name, dashboard in every(language):
        again = json.loads(as_json(Dashboard.from_json(dashboard)))
        assert without_nothing(again) == without_nothing(dashboard), name


def without_nothing(value: Any) -> Any:  # noqa: ANN401  # any JSON
    """Return it without empty objects, which say nothing."""
    if isinstance(value, dict):
        return {key: retained for key, each in value.items() if (retained := without_nothing(each)) != {}}
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


def test_panels_do_not_lie_on_each_other() -> None:
    """Nor beyond the edge, and each has a number of its own, by which links find it."""
    for _, dashboard in every():
        numbers = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(numbers)) == len(numbers)
        places = [panel["gridPos"] for panel in dashboard["panels"]]
        assert all(each["x"] + each["w"] <= WIDTH for each in places)
        for one, other in combinations(places, 2):
            beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
            assert beside or below, (dashboard["title"], one, other)


def test_variables_that_are_asked_for_are_there() -> None:
    """Each that a query or a link names is Grafana's own or the dashboard's, which uses all that it has."""
    for name, dashboard in every():
        there = {each["name"] for each in dashboard["templating"]["list"]}
        named = set(re.findall(r"\$\{?(\w+)", as_json(dashboards(Language.ENGLISH)[name])))
        assert named - GRAFANAS <= there, name
        assert there - {"datasource"} <= named, name


@pytest.mark.parametrize("language", Language)
def test_links_lead_to_dashboards_that_are_there(language: Language) -> None:
    """From a row of a table to another dashboard of the same language, with variables that it has."""
    variables = {
        dashboard["uid"]: {each["name"] for each in dashboard["templating"]["list"]} for _, dashboard in every(language)
    }
    found = [url for _, dashboard in every(language) for url in links(dashboard)]
    assert len(found) == 3
    for url in found:
        uid, names = re.match(r"/d/([\w-]+)\?", url), re.findall(r"var-(\w+)=", url)
        assert uid
        assert set(names) <= variables[uid[1]], url
    steps = [re.match(r"/d/seaway-(\w+)", url) for url in found]
    assert [step[1] for step in steps if step] == ["device", "vgpu", "device"]


def links(dashboard: dict[str, Any]) -> Iterator[str]:
    """Return where clicks in tables lead."""
    for panel in panels(dashboard):
        for override in panel["fieldConfig"]["overrides"]:
            for each in override["properties"]:
                if each["id"] == "links":
                    yield from (link["url"] for link in each["value"])


def test_columns_of_tables_have_titles() -> None:
    """Each column that is asked for is named, and what overrides its looks goes by that name."""
    for name, dashboard in every():
        for panel in panels(dashboard):
            if panel["type"] != "table":
                continue
            titles = panel["transformations"][1]["options"]["renameByName"]
            assert {f"Value #{each['refId']}" for each in panel["targets"]} <= titles.keys(), name
            matched = {each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]}
            assert matched <= set(titles.values()), name
            assert all(each["instant"] and each["format"] == "table" for each in panel["targets"])


def test_rates_are_taken_over_what_grafana_says() -> None:
    """A window that is written down is too short for one Prometheus and too long for another; only an hour is said."""
    for name, frame in DASHBOARDS.items():
        for each in asked(name, frame(Language.ENGLISH)):
            windows = re.findall(r"\[([^\]]+)\]", each.query)
            assert set(windows) <= {"$__rate_interval", "$__range", "1h"}, each


COURSES = {"timeseries", "state-timeline"}
MANY = re.compile(r"\bv?GPU\w+|\w+ToCluster\w+")
"""Metrics with a series for each device, vGPU or link: too many to draw all."""


def test_courses_of_many_things_are_of_a_few_that_stay_the_same() -> None:
    """What has thousands of series is summed up, or cut to those that are highest or lowest at the end."""
    for name, dashboard in every():
        for panel in panels(dashboard):
            if panel["type"] not in COURSES:
                continue
            for query in (target["expr"] for target in panel["targets"]):
                few = "@ end()" in query
                assert ("topk(" in query or "bottomk(" in query) is few, (name, panel["title"])
                assert few or "sum" in query or "count" in query or not MANY.search(query), (name, panel["title"])


ONCE = re.compile(r"max by \([^)]+\) \(\w+(\{[^}]*\})?\)")
TOLD_BY_EACH = re.compile(r"\b(seaway_gateway_\w+_mbps|seaway_agent_silent|seaway_cluster_silent|ClusterGPU)\w*")
"""Figures of gateways, agents and clusters, which every process tells."""


def test_a_failover_breaks_no_panel_and_draws_nothing_twice() -> None:
    """While one process takes over from another, both tell of the same: that must be one line, and one match."""
    every_query = [each for name, frame in DASHBOARDS.items() for each in asked(name, frame(Language.ENGLISH))]
    assert len([each for each in every_query if TOLD_BY_EACH.search(each.query)]) > 5
    assert [each for each in every_query if TOLD_BY_EACH.search(ONCE.sub("", each.query))] == []


def test_legends_say_what_tells_series_apart() -> None:
    """Two clusters may call a node the same, and one container may hold two devices: no two lines have one name."""
    of_device = {"cluster", "nodeid", "deviceidx"}
    of_vgpu = of_device | {"namespace", "pod", "container"}
    for name, apart in (("device", of_device), ("vgpu", of_vgpu)):
        legends = {each.legend for each in asked(name, DASHBOARDS[name](Language.ENGLISH)) if "{{" in each.legend}
        said = [set(re.findall(r"{{(\w+)}}", each)) for each in legends]
        assert apart in said
        assert [each for each in said if each != apart and not each < {"cluster", "nodeid", "namespace"}] == []


def test_what_can_be_chosen_goes_by_what_is_chosen_before() -> None:
    """A cluster's nodes, their devices, and the namespaces on these; the gateways of links to a cluster."""
    chains = {
        ("vgpu", "namespace"): {"cluster", "node", "device"},
        ("device", "device"): {"cluster", "node"},
        ("network", "site"): {"cluster"},
        ("network", "target"): {"cluster", "source"},
    }
    for (name, last), before in chains.items():
        (variable,) = [each for each in DASHBOARDS[name](Language.ENGLISH).variables if each.name == last]
        assert set(re.findall(r"\$(\w+)", variable.series)) == before


def test_what_is_good_news_is_green_everywhere() -> None:
    """A state has one colour on all dashboards."""
    assert {STEADY[state] for state in ("running", "completed", "answered", "up")} == {"green"}
    assert {STEADY[state] for state in ("failed", "refused", "lost", "unanswered")} == {"red"}


def test_the_same_is_written_each_time(tmp_path: Path) -> None:
    """So that a change of a file is a change of a dashboard; each language has a folder, and links of its own."""
    first = {path.relative_to(tmp_path / "a"): path.read_text() for path in write_folders(tmp_path / "a", Language)}
    again = {path.relative_to(tmp_path / "b"): path.read_text() for path in write_folders(tmp_path / "b", Language)}
    assert first == again
    assert {path.parent.name for path in first} == {"Seaway", "Seaway 中文"}
    assert len(first) == 2 * len(DASHBOARDS)
    uids = [dashboard["uid"] for language in Language for _, dashboard in every(language)]
    assert len(set(uids)) == len(uids)
    assert max(map(len, uids)) <= 40  # Grafana takes no longer ones


def test_config_maps_are_what_the_sidecar_looks_for(tmp_path: Path) -> None:
    """One for each dashboard, small enough for an object, with the label, the folder, and a key for each language."""
    (written,) = write_config_maps(tmp_path, [Language.CHINESE], "watching")
    maps = list(yaml.safe_load_all(written.read_text(encoding="utf-8")))
    assert len(maps) == len(DASHBOARDS)
    for each in maps:
        assert each["metadata"]["namespace"] == "watching"
        assert each["metadata"]["labels"][SIDECAR_LABEL] == "1"
        assert each["metadata"]["annotations"][FOLDER_ANNOTATION] == "Seaway 中文"
        ((key, text),) = each["data"].items()
        assert key.endswith("-zh.json")
        assert len(text.encode()) < 1_000_000
        assert re.fullmatch(r"[a-z0-9-]+", each["metadata"]["name"])


def test_what_is_provisioned_is_what_is_written() -> None:
    """The provider follows the folders that are written, and the data source is one that dashboards offer."""
    (provider,) = yaml.safe_load((SHIPPED / "provisioning/dashboards/seaway.yml").read_text())["providers"]
    assert provider["type"] == "file"
    assert provider["options"]["foldersFromFilesStructure"] is True
    assert provider["options"]["path"] in (SHIPPED / "README.md").read_text(encoding="utf-8")
    (source,) = yaml.safe_load((SHIPPED / "provisioning/datasources/seaway.yml").read_text())["datasources"]
    assert source["type"] == "prometheus"


@pytest.mark.parametrize("language", Language)
def test_a_share_of_nothing_is_said_in_words(language: Language) -> None:
    """Where no job ended there is no completion rate, and the panel says so."""
    (dashboard,) = [each for name, each in every(language) if name == "jobs"]
    (panel,) = [each for each in panels(dashboard) if "> 0)" in each["targets"][0]["expr"]]
    said = panel["fieldConfig"]["defaults"]["noValue"]
    assert bool(CHINESE.search(said)) is (language is Language.CHINESE)
    assert said


def test_idle_means_one_thing() -> None:
    """A device is idle where no one holds anything of it, be it memory alone: in sums, tables and spreads alike."""
    idle = [
        each
        for each in asked("fleet", DASHBOARDS["fleet"](Language.ENGLISH))
        if "idle" in (each.legend.lower(), each.title.lower().removesuffix(" gpus"))
    ]
    assert len(idle) == 3
    for each in idle:
        assert "GPUDeviceSharedNum" in each.query
        assert "Core" not in each.query
    alone = {each.query for each in idle if each.query.startswith("sum(")}
    assert len(alone) == 1
