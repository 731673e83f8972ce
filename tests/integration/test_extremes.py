"""A panel of the highest draws as many series as it says, as a real Prometheus works it out over a range.

Debian has it: ``apt-get install prometheus``. No service of it is needed, nor used.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest

from seaway.dashboards.extremes import DEVICE, MOST, most
from tests.integration.test_prometheus import await_series, prometheus

pytestmark = pytest.mark.programs("prometheus", "promtool")

DEVICES, STEPS, STEP_S = 60, 60, 15
HERE = '{cluster=~"a"}'
PATIENCE_S = 30


@pytest.fixture(scope="module")
def began_s() -> int:
    """Return when the first sample was taken: lately, so that it is kept."""
    return int(time.time()) - STEPS * STEP_S


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, began_s: int) -> Iterator[httpx.Client]:
    """Have a Prometheus that knows devices of which another one is the fullest at each moment."""
    folder = tmp_path_factory.mktemp("extremes")
    lines = ["# TYPE GPUDeviceCoreAllocated gauge"]
    for device in range(DEVICES):
        for step in range(STEPS + 1):
            labels = f'cluster="a",nodeid="n",deviceuuid="gpu-{device}"'
            lines.append(f"GPUDeviceCoreAllocated{{{labels}}} {(device + step) % DEVICES} {began_s + step * STEP_S}")
    (folder / "told").write_text("\n".join([*lines, "# EOF", ""]), encoding="utf-8")
    made = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "told"), str(folder / "data")],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    (folder / "prometheus.yml").write_text("scrape_configs: []\n", encoding="utf-8")
    with prometheus(folder) as client:
        await_series(client, f"GPUDeviceCoreAllocated{HERE} @ {began_s + 60}")
        yield client


def drawn(client: httpx.Client, query: str, began_s: int) -> dict[str, float]:
    """Return which devices a panel draws, and where each line ends."""
    asked = {"query": query, "start": began_s, "end": began_s + STEPS * STEP_S, "step": STEP_S}
    answer = client.get("/api/v1/query_range", params={key: str(value) for key, value in asked.items()}).json()
    return {each["metric"]["deviceuuid"]: float(each["values"][-1][1]) for each in answer["data"]["result"]}


def test_as_many_are_drawn_as_are_said(client: httpx.Client, began_s: int) -> None:
    """Those that are highest at the end, over all of the time; chosen anew at each moment all would be drawn."""
    query = f"GPUDeviceCoreAllocated{HERE}"
    assert len(drawn(client, f"topk({MOST}, {query})", began_s)) == DEVICES
    assert sorted(drawn(client, most(query, HERE, DEVICE), began_s).values()) == [*range(DEVICES - MOST, DEVICES)]
    assert sorted(drawn(client, most(query, HERE, DEVICE, least=True), began_s).values()) == [*range(MOST)]


def test_what_is_worked_out_is_chosen_by_what_comes_of_it(client: httpx.Client, began_s: int) -> None:
    """Every metric of a query is looked at as it is at the end."""
    query = f"100 - GPUDeviceCoreAllocated{HERE} / (0 * GPUDeviceCoreAllocated{HERE} + 1)"
    ends = drawn(client, most(query, HERE, DEVICE), began_s)
    assert sorted(ends.values()) == [*range(100 - MOST + 1, 101)]
