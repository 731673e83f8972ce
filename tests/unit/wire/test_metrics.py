"""Metrics of GPUs, as they are written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seaway.api.metrics import all_named
from seaway.application.ports.usage import Used
from seaway.application.views import DeviceUse, Holding
from seaway.domain.errors import RejectedError
from seaway.testing.plugins import gpu
from seaway.wire.metrics import METRICS, PIECE, MetricsOut, as_json, prometheus, require_among

MIB = 1 << 20
DEVICE = replace(gpu(), uuid="GPU-0", index=0, memory_mib=80_000, core_milli=1000)
OURS = Holding("a", "seaway", "sw-1-0", "main", 20_000, 25)
THEIRS = Holding("b", "seaway", "sw-2-0", "main", 10_000, 100)
NO_ONE_S = Holding("", "kube-system", "agent", "", 10_000, 0)
USES = [
    DeviceUse("east", "host1", DEVICE, (OURS, THEIRS, NO_ONE_S)),
    DeviceUse("east", "host1", replace(DEVICE, uuid="GPU-1", index=1)),
    DeviceUse("west", "host9", replace(DEVICE, uuid="GPU-2")),
]
LABELS = {"cluster": "east", "nodeid": "host1", "deviceidx": "0", "deviceuuid": "GPU-0", "zone": "vGPU"}


def from_json(uses: list[DeviceUse], seen_by: str = "", metric: str = "") -> dict[str, list[dict[str, Any]]]:
    """Write metrics as JSON and read them again."""
    body = json.loads(b"".join(as_json(uses, all_named(metric)[0], seen_by)))
    assert body["code"] == 200
    MetricsOut.model_validate(body)
    data: dict[str, list[dict[str, Any]]] = body["data"]
    return data


def from_text(uses: list[DeviceUse], seen_by: str = "") -> dict[str, list[dict[str, Any]]]:
    """Write metrics as text and read them with Prometheus' own parser."""
    text = b"".join(prometheus(uses, METRICS, seen_by)).decode()
    found = list(text_string_to_metric_families(text))
    assert all(each.type == "gauge" and each.documentation for each in found)
    return {each.name: [{**one.labels, "value": one.value} for one in each.samples] for each in found}


def test_every_metric_has_its_labels_and_its_unit() -> None:
    """Memory is in bytes, cores in percent points of a whole device, percentages go from 0 to 100."""
    data = from_json(USES)
    assert list(data) == list(METRICS)
    assert data["ClusterGPUMemoryPercentage"] == [{"cluster": "east", "value": 25}, {"cluster": "west", "value": 0}]
    assert data["ClusterGPUCorePercentage"][0] == {"cluster": "east", "value": 6.25}
    assert data["GPUDeviceCoreAllocated"][0] == {**LABELS, "value": 12.5}
    assert data["GPUDeviceCoreLimit"][0] == {**LABELS, "value": 100}
    assert data["GPUDeviceMemoryAllocated"][0] == {**LABELS, "value": 40_000 * MIB}
    assert data["GPUDeviceMemoryLimit"][0] == {**LABELS, "value": 80_000 * MIB}
    assert data["GPUDeviceSharedNum"][0] == {**LABELS, "value": 3}
    assert [each["value"] for each in data["GPUDeviceSharedNum"]] == [3, 0, 0]
    ours = {**LABELS, "namespace": "seaway", "pod": "sw-1-0", "container": "main"}
    assert data["vGPUCorePercentage"][0] == {**ours, "value": 2.5}
    assert data["vGPUMemoryPercentage"][0] == {**ours, "value": 25}
    assert data["vGPUMemoryAllocated"][0] == {**ours, "value": 20_000 * MIB}
    assert data["vGPUPodsDeviceAllocated"][0] == {**ours, "value": 20_000 * MIB}
    assert {each["pod"] for each in data["vGPUMemoryAllocated"]} == {"sw-1-0", "sw-2-0", "agent"}


def measured(*used: Used | None) -> list[DeviceUse]:
    """Return a device, used as given first, held by two of one tenant and one of another, used as given then."""
    first, *others = used
    shares = [each._replace(used=of) for each, of in zip((OURS, OURS, THEIRS, NO_ONE_S), others, strict=True)]
    return [DeviceUse("east", "host1", DEVICE, shares, first), *USES[1:]]


def test_what_is_used_is_shown_where_it_is_known() -> None:
    """Each figure by itself: there is no series of what is not known, and 0 is one like others."""
    data = from_json(measured(Used(5, None, 3.14), Used(7, 0), Used(7, 0), None, Used(None, 15)))
    assert data["GPUDeviceMemoryUsed"] == [{**LABELS, "value": 5}]
    assert data["GPUDeviceCoreUsed"] == []
    assert data["GPUDeviceUsedAge"] == [{**LABELS, "value": 3.1}]
    ours = {**LABELS, "namespace": "seaway", "pod": "sw-1-0", "container": "main"}
    assert data["vGPUMemoryUsed"] == [{**ours, "value": 7}]
    assert [each["value"] for each in data["vGPUCoreUsed"]] == [0, 1.5]
    assert len(data["vGPUMemoryAllocated"]) == 3


def test_two_shares_of_a_container_use_what_the_container_does() -> None:
    """Anything that is allocated adds up, what was measured is of both already."""
    data = from_json(measured(None, Used(7, 10), Used(7, 10), None, None))
    (ours, *_) = data["vGPUMemoryAllocated"]
    assert (ours["value"], data["vGPUMemoryUsed"][0]["value"]) == (40_000 * MIB, 7)


@pytest.mark.parametrize(("theirs", "sums"), [(Used(3, 20), [7, 4]), (Used(None, 20), [7]), (None, [7])])
def test_what_others_use_is_one_sum_or_unknown(theirs: Used | None, sums: list[int]) -> None:
    """To a tenant; a sum that lacks a part would be too low."""
    data = from_json(measured(None, Used(7, 10), Used(7, 10), theirs, Used(1, 1)), "a")
    assert [each["value"] for each in data["vGPUMemoryUsed"]] == sums


@pytest.mark.parametrize("seen_by", ["", "a"])
def test_both_outputs_tell_the_same(seen_by: str) -> None:
    """Anything that Prometheus reads from the text is what the JSON says."""
    for uses in (USES, measured(Used(5, 20, 3), Used(7, 0), Used(7, 0), Used(None, 1), None)):
        assert from_text(uses, seen_by) == from_json(uses, seen_by)


def test_a_tenant_does_not_learn_the_names_of_others() -> None:
    """Anything that others and no one hold of a device is one series without names; sums are the same for everybody."""
    rows = from_json(USES, "a")["vGPUMemoryAllocated"]
    named = [(each["namespace"], each["pod"], each["container"], each["value"] // MIB) for each in rows]
    assert named == [("seaway", "sw-1-0", "main", 20_000), ("", "", "", 20_000)]
    assert from_json(USES, "a")["GPUDeviceSharedNum"] == from_json(USES)["GPUDeviceSharedNum"]


def test_no_series_is_there_twice() -> None:
    """Two shares of one container on a device are one series, as Prometheus would drop the second."""
    rows = from_json([DeviceUse("east", "host1", DEVICE, (OURS, OURS))])["vGPUMemoryAllocated"]
    assert [each["value"] for each in rows] == [40_000 * MIB]


def test_names_may_have_any_signs() -> None:
    """Quotes, backslashes and line ends neither break an answer nor let a name add labels."""
    odd = 'a"b\\c\nd",x="y'
    use = DeviceUse(odd, odd, replace(DEVICE, uuid=odd), (OURS._replace(pod=odd, namespace=odd, container=odd),))
    for data in (from_text([use]), from_json([use])):
        (row,) = data["vGPUMemoryAllocated"]
        assert {row[name] for name in ("cluster", "nodeid", "deviceuuid", "namespace", "pod", "container")} == {odd}
        assert "x" not in row


def test_a_fleet_without_devices_has_no_series() -> None:
    """Each metric is there, and there is nothing to take a share of."""
    assert from_json([]) == {name: [] for name in METRICS}
    assert from_text([]) == {name: [] for name in METRICS}


def test_a_device_without_cores_or_memory_divides_nothing() -> None:
    """Whatever a cluster tells, the answer is a number."""
    use = DeviceUse("east", "host1", replace(DEVICE, core_milli=0), (OURS,))
    assert from_json([use])["vGPUCorePercentage"][0]["value"] == 0


def test_large_answers_come_in_pieces() -> None:
    """Nothing is lost or doubled between two pieces."""
    uses = [DeviceUse("east", "host1", replace(DEVICE, uuid=f"GPU-{n}")) for n in range(2 * PIECE + 1)]
    assert len(list(prometheus(uses, all_named("GPUDeviceCoreLimit")[0], ""))) == 4
    rows = from_json(uses, metric="GPUDeviceCoreLimit")["GPUDeviceCoreLimit"]
    assert [each["deviceuuid"] for each in rows] == [use.device.uuid for use in uses]


def test_an_unknown_name_is_reported_with_the_nearest() -> None:
    """Anyone who mistypes a metric or a cluster learns what was meant."""
    assert list(all_named("vGPUMemoryAllocated")[0]) == ["vGPUMemoryAllocated"]
    with pytest.raises(RejectedError, match="did you mean 'GPUDeviceMemoryAllocated'"):
        all_named("gpu_device_memory_allocated")[0]
    with pytest.raises(RejectedError, match=r"^cluster: cluster 'eats' not found; did you mean 'east'\?$"):
        require_among("eats", ["west", "east"], "cluster")
    with pytest.raises(RejectedError, match=r"cluster 'x' not found; available: west, east$"):
        require_among("x", ["west", "east"], "cluster")
    with pytest.raises(RejectedError, match=r"cluster 'x' not found$"):
        require_among("x", [], "cluster")
