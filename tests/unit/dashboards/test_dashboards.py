"""JSON of the dashboards."""

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
BUILT_IN_VARIABLES = {"__all", "__rate_interval", "__range", "datasource", "__url_time_range", "__data"}
"""Variables of Grafana itself."""

CHINESE = re.compile(r"[\u4e00-\u9fff]")
UNTRANSLATED = {"vGPU", "Seaway", "CPU"}


def every(language: Language = Language.ENGLISH) -> list[tuple[str, dict[str, Any]]]:
    """Return all dashboards."""
    return [(name, read(frame(language), language)) for name, frame in DASHBOARDS.items()]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_both_languages_have_the_same_queries(name: str) -> None:
    """Only titles, descriptions and legends that are words differ."""
    english, chinese = (list(asked(name, DASHBOARDS[name](language))) for language in Language)
    assert [each.query for each in english] == [each.query for each in chinese]


@pytest.mark.parametrize("language", Language)
def test_every_panel_has_title_description_data_source_and_unit(language: Language) -> None:
    """Texts are in the dashboard's language; users select the data source."""
    for _, dashboard in every(language):
        for panel in dashboard["panels"]:
            title = panel["title"]
            chinese = bool(CHINESE.search(title)) or title in UNTRANSLATED
            assert chinese if language is Language.CHINESE else not CHINESE.search(title), title
        for panel in panels(dashboard):
            assert bool(CHINESE.search(panel["description"])) is (language is Language.CHINESE), panel["title"]
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["fieldConfig"]["defaults"]["unit"]


@pytest.mark.parametrize("language", Language)
def test_dashboards_survive_a_round_trip_through_grafana_types(language: Language) -> None:
    """Grafana's types would drop a misspelt or misplaced field."""
    register_default_plugins()
    for name, dashboard in every(language):
        again = json.loads(as_json(Dashboard.from_json(dashboard)))
        assert without_empty_objects(again) == without_empty_objects(dashboard), name


def without_empty_objects(value: Any) -> Any:  # noqa: ANN401  # any JSON
    """Return the value without empty objects."""
    if isinstance(value, dict):
        return {key: retained for key, each in value.items() if (retained := without_empty_objects(each)) != {}}
    return [without_empty_objects(each) for each in value] if isinstance(value, list) else value


def test_panels_do_not_overlap() -> None:
    """They stay within the width, and each has a unique ID for links."""
    for _, dashboard in every():
        numbers = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(numbers)) == len(numbers)
        places = [panel["gridPos"] for panel in dashboard["panels"]]
        assert all(each["x"] + each["w"] <= WIDTH for each in places)
        for one, other in combinations(places, 2):
            right_aligned = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
            assert right_aligned or below, (dashboard["title"], one, other)


def test_dashboards_define_all_variables_of_queries_and_links() -> None:
    """Other variables are Grafana's own; dashboards define no unused variable."""
    for name, dashboard in every():
        there = {each["name"] for each in dashboard["templating"]["list"]}
        named = set(re.findall(r"\$\{?(\w+)", as_json(dashboards(Language.ENGLISH)[name])))
        assert named - BUILT_IN_VARIABLES <= there, name
        assert there - {"datasource"} <= named, name


@pytest.mark.parametrize("language", Language)
def test_links_point_to_existing_dashboards(language: Language) -> None:
    """Rows of tables link to a dashboard of the same language and set variables that it defines."""
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
    """Return the links of tables."""
    for panel in panels(dashboard):
        for override in panel["fieldConfig"]["overrides"]:
            for each in override["properties"]:
                if each["id"] == "links":
                    yield from (link["url"] for link in each["value"])


def test_table_columns_have_titles() -> None:
    """Every queried column has a title, and overrides match titles."""
    for name, dashboard in every():
        for panel in panels(dashboard):
            if panel["type"] != "table":
                continue
            titles = panel["transformations"][1]["options"]["renameByName"]
            assert {f"Value #{each['refId']}" for each in panel["targets"]} <= titles.keys(), name
            matched = {each["matcher"]["options"] for each in panel["fieldConfig"]["overrides"]}
            assert matched <= set(titles.values()), name
            assert all(each["instant"] and each["format"] == "table" for each in panel["targets"])


def test_range_windows_follow_grafana() -> None:
    """A fixed window does not suit every scrape interval; only one hour is fixed."""
    for name, frame in DASHBOARDS.items():
        for each in asked(name, frame(Language.ENGLISH)):
            windows = re.findall(r"\[([^\]]+)\]", each.query)
            assert set(windows) <= {"$__rate_interval", "$__range", "1h"}, each


GRAPHS = {"timeseries", "state-timeline"}
MANY = re.compile(r"\bv?GPU\w+|\w+ToCluster\w+")
"""Metrics with a series per device, vGPU or link: too many to draw all."""


def test_graphs_sum_many_series_or_show_a_fixed_top_few() -> None:
    """Thousands of series are summed, or limited to the highest or lowest at the end of the range."""
    for name, dashboard in every():
        for panel in panels(dashboard):
            if panel["type"] not in GRAPHS:
                continue
            for query in (target["expr"] for target in panel["targets"]):
                few = "@ end()" in query
                assert ("topk(" in query or "bottomk(" in query) is few, (name, panel["title"])
                assert few or "sum" in query or "count" in query or not MANY.search(query), (name, panel["title"])


ONCE = re.compile(r"max by \([^)]+\) \(\w+(\{[^}]*\})?\)")
REPORTED_BY_EACH = re.compile(
    r"\b(seaway_gateway_\w+_mbps|seaway_agent_last_seen|seaway_cluster_last_seen|ClusterGPU)\w*"
)
"""Metrics of gateways, agents and clusters, which every replica exports."""


def test_queries_count_series_of_two_replicas_once() -> None:
    """During a failover both replicas export the same series: graphs need one line, and joins one match."""
    every_query = [each for name, frame in DASHBOARDS.items() for each in asked(name, frame(Language.ENGLISH))]
    assert len([each for each in every_query if REPORTED_BY_EACH.search(each.query)]) > 5
    assert [each for each in every_query if REPORTED_BY_EACH.search(ONCE.sub("", each.query))] == []


def test_legends_identify_series() -> None:
    """Nodes of two clusters may have one name, and a container may hold two devices."""
    of_device = {"cluster", "nodeid", "deviceidx"}
    of_vgpu = of_device | {"namespace", "pod", "container"}
    for name, apart in (("device", of_device), ("vgpu", of_vgpu)):
        legends = {each.legend for each in asked(name, DASHBOARDS[name](Language.ENGLISH)) if "{{" in each.legend}
        labels = [set(re.findall(r"{{(\w+)}}", each)) for each in legends]
        assert apart in labels
        assert [each for each in labels if each != apart and not each < {"cluster", "nodeid", "namespace"}] == []


def test_variables_depend_on_the_variables_before() -> None:
    """A cluster narrows its nodes, devices and namespaces, and the gateways of its links."""
    chains = {
        ("vgpu", "namespace"): {"cluster", "node", "device"},
        ("device", "device"): {"cluster", "node"},
        ("network", "site"): {"cluster"},
        ("network", "target"): {"cluster", "source"},
    }
    for (name, last), before in chains.items():
        (variable,) = [each for each in DASHBOARDS[name](Language.ENGLISH).variables if each.name == last]
        assert set(re.findall(r"\$(\w+)", variable.series)) == before


def test_states_have_one_colour_on_all_dashboards() -> None:
    """Good states are green and bad ones red."""
    assert {STEADY[state] for state in ("running", "completed", "answered", "up")} == {"green"}
    assert {STEADY[state] for state in ("failed", "refused", "lost", "unanswered")} == {"red"}


def test_output_is_deterministic(tmp_path: Path) -> None:
    """Files change only with their dashboard; each language has its own folder and unique IDs."""
    first = {path.relative_to(tmp_path / "a"): path.read_text() for path in write_folders(tmp_path / "a", Language)}
    again = {path.relative_to(tmp_path / "b"): path.read_text() for path in write_folders(tmp_path / "b", Language)}
    assert first == again
    assert {path.parent.name for path in first} == {"Seaway", "Seaway 中文"}
    assert len(first) == 2 * len(DASHBOARDS)
    uids = [dashboard["uid"] for language in Language for _, dashboard in every(language)]
    assert len(set(uids)) == len(uids)
    assert max(map(len, uids)) <= 40  # limit of Grafana


def test_config_maps_have_the_labels_of_the_sidecar(tmp_path: Path) -> None:
    """Each dashboard has one within the size limit of objects, with label, folder and a key for the language."""
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


def test_provisioning_uses_the_written_folders() -> None:
    """The data source is of the type that dashboards offer."""
    (provider,) = yaml.safe_load((SHIPPED / "provisioning/dashboards/seaway.yml").read_text())["providers"]
    assert provider["type"] == "file"
    assert provider["options"]["foldersFromFilesStructure"] is True
    assert provider["options"]["path"] in (SHIPPED / "README.md").read_text(encoding="utf-8")
    (source,) = yaml.safe_load((SHIPPED / "provisioning/datasources/seaway.yml").read_text())["datasources"]
    assert source["type"] == "prometheus"


@pytest.mark.parametrize("language", Language)
def test_completion_rate_without_jobs_has_a_text(language: Language) -> None:
    """There is no completion rate without finished jobs."""
    (dashboard,) = [each for name, each in every(language) if name == "jobs"]
    (panel,) = [each for each in panels(dashboard) if "> 0)" in each["targets"][0]["expr"]]
    text = panel["fieldConfig"]["defaults"]["noValue"]
    assert bool(CHINESE.search(text)) is (language is Language.CHINESE)
    assert text


def test_idle_has_one_definition() -> None:
    """A device is idle without any allocation, also of memory alone, in sums, tables and distributions."""
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
