"""Amounts of resources: parsed, printed, and counted for jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.amounts import (
    RESOURCES,
    amounts_text,
    held_amounts,
    parse_amounts,
    requested_amounts,
    written_amounts,
)
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, DeviceRules, ResourceRequest
from seaway.domain.placement import DeviceSlice, Placement
from seaway.domain.units import LARGEST


def test_amounts_have_the_units_of_job_files() -> None:
    """Users write GPUs and cores as numbers and memory with a unit; models are compared without case."""
    given = {"gpus": 1.5, "gpus/A100": 16, "gpu_memory": "640Gi", "cpu": "500m", "memory": "2Gi"}
    amounts = parse_amounts(given)
    assert amounts == {"gpus": 1500, "gpus/a100": 16_000, "gpu_memory": 655_360, "cpu": 500, "memory": 2048}
    assert amounts_text(amounts) == "500m cpu, 640Gi gpu_memory, 1.5 gpus, 16 gpus/a100, 2Gi memory"


@pytest.mark.parametrize(("name", "where"), [("gpu", "limit.gpu"), ("gpus/", "limit.gpus/"), ("disk", "limit.disk")])
def test_an_unknown_resource_is_rejected(name: str, where: str) -> None:
    """An unknown resource is rejected with the known names."""
    with pytest.raises(RejectedError, match="use gpus, gpu_cores, gpu_memory, cpu, memory, jobs or gpus") as refused:
        parse_amounts({name: 1}, where="limit")
    assert refused.value.where == where


@pytest.mark.parametrize(("name", "unit"), [("gpus", "GPUs"), ("gpus/A100", "GPUs"), ("cpu", "CPU cores")])
def test_an_invalid_amount_names_its_unit(name: str, unit: str) -> None:
    """The error of an invalid number of GPUs shows how to write GPUs, not CPU cores."""
    with pytest.raises(RejectedError, match=f"use a number of {unit}, like 2, 0.5 or 500m"):
        parse_amounts({name: "-1"})


def test_a_slice_counts_as_its_larger_share() -> None:
    """A slice with half the memory and a tenth of the cores of a device counts as half a GPU of its model."""
    device = Device("gpu-1", 0, "A100", 80_000)
    placement = Placement("job", 0, "east", "n1", (DeviceSlice("gpu-1", 40_000, 100),))
    demand = Demand(ResourceRequest(1000, 512, 1, 40_000, gpu_milli=100))
    held = held_amounts(demand, [placement, placement], {"gpu-1": device}.get)
    assert held == {
        "gpus": 1000,
        "gpus/a100": 1000,
        "gpu_cores": 200,
        "gpu_memory": 80_000,
        "cpu": 2000,
        "memory": 1024,
    }


@pytest.mark.parametrize("request_", [ResourceRequest(100, 10, 2), ResourceRequest(0, 0, 1, gpu_memory_percent=30)])
def test_a_request_is_a_lower_bound(request_: ResourceRequest) -> None:
    """The request of a job is never more than its later holdings, and equal for shares in percent."""
    demand = Demand(request_, DeviceRules(models=frozenset({"A100"})))
    device, filled = Device("gpu-1", 0, "A100", 80_000), request_.filled()
    memory_mib = device.memory_mib * filled.gpu_memory_percent // 100
    slices = (DeviceSlice("gpu-1", memory_mib, filled.gpu_milli),) * filled.gpus
    held = held_amounts(demand, [Placement("job", at, "east", "n1", slices) for at in range(3)], {"gpu-1": device}.get)
    asked = requested_amounts(demand, 3)
    assert all(asked[name] <= held[name] for name in asked)
    assert asked["gpus"] == held["gpus"] == asked["gpus/a100"]


@given(
    st.dictionaries(
        st.sampled_from([*RESOURCES, "gpus/a100", "gpus/nvidia l40s"]), st.integers(0, LARGEST), max_size=len(RESOURCES)
    )
)
def test_amounts_are_read_back_as_they_were_written(amounts: dict[str, int]) -> None:
    """Written amounts are accepted again, and mean exactly the same."""
    assert parse_amounts(written_amounts(amounts)) == amounts


def test_written_amounts_are_numbers_where_a_number_is_exact() -> None:
    """GPUs and CPU are numbers, memory has a unit."""
    given = {"gpus": 16_000, "gpus/a100": 500, "gpu_memory": 610_352, "cpu": 64_000, "memory": 2 << 20}
    written = {"cpu": 64, "gpu_memory": "640GB", "gpus": 16, "gpus/a100": 0.5, "memory": "2048Gi"}
    assert written_amounts(given) == written


def test_a_model_is_named_once() -> None:
    """Two amounts of one model, which differ in case, are rejected instead of one being dropped."""
    with pytest.raises(RejectedError, match="given twice") as refused:
        parse_amounts({"gpus/A100": 1, "gpus/a100": 2}, where="limit")
    assert refused.value.where == "limit.gpus/a100"
