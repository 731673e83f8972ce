"""Data of benchmarks: public traces, or the project's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import data
from benchmarks.record import SkippedError

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,2,G2\nn1,64000,262144,2,P100\n"
JOBS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,4000,8192,1,600\nb,4000,8192,2,1000\n"


@pytest.fixture(autouse=True)
def no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no data folder; SEAWAY_DATA, the folder of a server, names another one."""
    monkeypatch.setenv("SEAWAY_BENCHMARK_DATA", str(tmp_path / "missing"))
    monkeypatch.setenv("SEAWAY_DATA", str(tmp_path))
    monkeypatch.delenv("SEAWAY_OPENB", raising=False)
    data.benchmark.cache_clear()


def test_downloaded_openb_comes_in_a_random_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the published orders, nodes and jobs are shuffled by the seed; without an order, they are as they are."""
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_default.csv").write_text(JOBS)
    monkeypatch.setenv("SEAWAY_OPENB", str(tmp_path))
    one, again = (data.openb(data.Order("default", 42)) for _ in range(2))
    assert one == again
    assert len(one.jobs) > len(one.mix) == 2
    assert [job.name for job in data.openb().jobs] == ["a", "b"]


def test_missing_openb_is_skipped_with_the_way_to_get_it() -> None:
    """The reason names the command and the variable."""
    with pytest.raises(SkippedError, match=r"`seaway trace` .* SEAWAY_OPENB"):
        data.openb()


def test_without_the_data_folder_instances_are_drawn() -> None:
    """They have the size of the project's own; policies learn from the other seeds only."""
    trace = data.with_mix("placement-16x4", 0)
    assert (len(trace.fleet.clusters), len(trace.jobs), len(trace.mix)) == (16, 220, 880)
    assert trace.jobs != data.with_mix("placement-16x4", 1).jobs
    assert {job.name.partition("-")[0] for job in trace.mix} == {"1", "2", "3", "4"}
    assert data.with_mix("network-3", 0).fleet.links
    with pytest.raises(SkippedError, match="not public"):
        data.existing(data.folder(), "its reference schedules are not public")
