"""A panel of the highest values draws the stated number of series, in a real Prometheus over a range.

Debian has it: ``apt-get install prometheus``. Its service is not used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from dashboards.extremes import DEVICE, MOST, most
from tests.integration.test_prometheus import await_series, remembering

pytestmark = pytest.mark.programs("prometheus", "promtool")

DEVICES, STEPS, STEP_S = 60, 60, 15
HANDED_OVER, DAY_S = 30, 86_400
HERE = '{cluster=~"a"}'


@pytest.fixture(scope="module")
def began_s() -> int:
    """Return the time of the first sample: recent, so that it is retained."""
    return int(time.time()) - STEPS * STEP_S


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, began_s: int) -> Iterator[httpx.Client]:
    """Run a Prometheus with devices of which another one is the fullest at each moment."""
    folder = tmp_path_factory.mktemp("extremes")
    lines = ["# TYPE GPUDeviceCoreAllocated gauge"]
    for device in range(DEVICES):
        for step in range(STEPS + 1):
            # as when another process takes over: for a while both report every device
            for process in (1,) if step < HANDED_OVER else (1, 2) if step == HANDED_OVER else (2,):
                labels = f'cluster="a",nodeid="n",deviceidx="0",deviceuuid="gpu-{device}",instance="{process}"'
                figure, at_s = (device + step) % DEVICES, began_s + step * STEP_S
                lines.append(f"GPUDeviceCoreAllocated{{{labels}}} {figure} {at_s}")
    with remembering(folder, lines) as client:
        await_series(client, f"GPUDeviceCoreAllocated{HERE} @ {began_s + 60}")
        yield client


def drawn(client: httpx.Client, query: str, began_s: int, lasts_s: int = STEPS * STEP_S) -> dict[str, float]:
    """Return the devices that a panel draws, each as one line, with their last values."""
    asked = {"query": query.replace("$__range", f"{lasts_s}s"), "start": began_s, "end": began_s + lasts_s}
    given = {key: str(value) for key, value in {**asked, "step": max(STEP_S, lasts_s // 1000)}.items()}
    found = client.get("/api/v1/query_range", params=given).json()["data"]["result"]
    ends = {each["metric"]["deviceuuid"]: float(each["values"][-1][1]) for each in found}
    assert len(ends) == len(found)
    return ends


def test_as_many_are_drawn_as_are_reported(client: httpx.Client, began_s: int) -> None:
    """It draws the series that are highest at the end, over the whole time; a choice per moment would draw all."""
    query = f"GPUDeviceCoreAllocated{HERE}"
    assert len(drawn(client, f"topk({MOST}, max by ({DEVICE}) ({query}))", began_s)) == DEVICES
    assert sorted(drawn(client, most(query, HERE, DEVICE), began_s).values()) == [*range(DEVICES - MOST, DEVICES)]
    assert sorted(drawn(client, most(query, HERE, DEVICE, least=True), began_s).values()) == [*range(MOST)]


def test_extreme_values_are_chosen_by_their_effect(client: httpx.Client, began_s: int) -> None:
    """Derived values select their series by the value at the end."""
    query = f"100 - GPUDeviceCoreAllocated{HERE} / (0 * GPUDeviceCoreAllocated{HERE} + 1)"
    ends = drawn(client, most(query, HERE, DEVICE), began_s)
    assert sorted(ends.values()) == [*range(100 - MOST + 1, 101)]


@pytest.mark.parametrize("figure", ["GPUDeviceCoreAllocated%s", "100 * GPUDeviceCoreAllocated%s / 100"])
def test_a_range_that_ends_in_the_future_is_drawn_too(client: httpx.Client, began_s: int, figure: str) -> None:
    """A range such as "today" has no data at its end: the last value of each series counts."""
    where = '{cluster=~"a",instance="2"}'
    ends = drawn(client, most(figure % where, where, DEVICE), began_s, DAY_S)
    assert sorted(ends.values()) == [*range(DEVICES - MOST, DEVICES)]
    ends = drawn(client, most(figure % where, where, DEVICE, least=True), began_s, DAY_S)
    assert sorted(ends.values()) == [*range(MOST)]


def test_a_failover_draws_no_second_line(client: httpx.Client, began_s: int) -> None:
    """While two processes report the same devices, each is drawn once; `drawn` checks that in the other tests too."""
    query = f"GPUDeviceCoreAllocated{HERE}"
    at = {"query": f"count({query})", "time": str(began_s + HANDED_OVER * STEP_S)}
    (both,) = client.get("/api/v1/query", params=at).json()["data"]["result"]
    assert both["value"][1] == str(2 * DEVICES)
    assert len(drawn(client, most(query, HERE, DEVICE), began_s, (HANDED_OVER + 1) * STEP_S)) == MOST
