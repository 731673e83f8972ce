"""Tables of the fleet."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from seaway.cli.fleet.fleet import _devices, _map, _models, _nodes, _wanted, table
from seaway.domain.errors import RejectedError
from seaway.terminal.words import block


def device(index: int, used: dict[str, Any] | None) -> dict[str, Any]:
    """Return a device as the API shows it."""
    return {
        "cluster": "east",
        "node": "host1",
        "uuid": f"GPU-{index}",
        "index": index,
        "model": "A100",
        "mode": "hami-core",
        "healthy": True,
        "share_limit": 10,
        "memory_mib": {"total": 81_920, "used": 8192, "free": 73_728},
        "core_milli": {"total": 1000, "used": 500, "free": 500},
        "slices": [],
        "used": used,
    }


def printed(*devices: dict[str, Any], wide: bool = False, width: int = 160) -> list[str]:
    """Print devices on a terminal."""
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(_devices({"devices": list(devices)}, wide=wide))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_devices_that_take_no_work_say_why() -> None:
    """In a column, or whole below a wide table, each reason once; where all take work there is neither."""
    why = "not healthy, says hami.io/node-nvidia-register"
    plain, bad = device(0, None), {"healthy": False, "message": why}
    reported = [plain | {"message": ""}, device(1, None) | bad, device(2, None) | bad]
    head, first, *others = printed(*reported)
    assert head.endswith("REASON")
    assert [line.endswith(why) for line in (first, *others)] == [False, True, True]
    assert printed(*reported, wide=True)[4:] == ["", f"east/host1 #1 and 1 more: {why}"]
    assert "REASON" not in printed(plain)[0]
    assert len(printed(plain, wide=True)) == 2


def test_the_map_has_a_block_for_each_node_and_marks_what_is_wrong() -> None:
    """Full, half full and free nodes differ; dead, unhealthy and closed ones and those without GPUs have marks."""
    usual = {"cluster": "east", "gpus": 8, "gpu_milli_used": 0, "unhealthy": 0, "ready": True, "answers": True}
    changes: list[dict[str, Any]] = [
        {"gpu_milli_used": 8000},
        {"gpu_milli_used": 4000},
        {},
        {"unhealthy": 1},
        {"answers": False, "ready": False},
        {"ready": False},
        {"gpus": 0},
    ]
    out = io.StringIO()
    Console(file=out, width=160, highlight=False).print(_map({"nodes": [usual | each for each in changes]}, wide=False))
    assert out.getvalue().splitlines()[1].split() == ["east", "7", "12/48", f"{block(1)}{block(0.5)}{block(0)}!x/."]


@pytest.mark.parametrize("width", [100, 120, 160])
def test_wide_tables_show_the_connections_of_devices(width: int) -> None:
    """On narrow terminals, other columns are left out first."""
    assert {"NVLINK", "PCIE", "NUMA"} <= set(printed(device(0, None), wide=True, width=width)[0].split())


def test_nodes_that_take_no_work_say_why() -> None:
    """In the words of their cluster."""
    amounts = {name: {"total": 1000, "used": 0, "free": 1000} for name in ("cpu_milli", "memory_mib")}
    node: dict[str, Any] = {"cluster": "east", "name": "host1", "ready": False, "cordon": None, "devices": []}
    out = io.StringIO()
    reported = {"nodes": [{**node, **amounts, "message": "not ready: KubeletNotReady"}]}
    Console(file=out, width=160, highlight=False).print(_nodes(reported, wide=False))
    Console(file=out, width=160, highlight=False).print(_nodes(reported, wide=True))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines[1].endswith("not ready: KubeletNotReady")
    assert lines[-1] == "east/host1: not ready: KubeletNotReady"


def test_what_is_used_stands_beside_what_is_taken() -> None:
    """Where it was measured; a dash where it was not, which is not 0."""
    head, first, second = printed(
        device(0, {"memory_bytes": 20 << 30, "core_milli": None, "age_s": 1.0}), device(1, None)
    )
    assert head.split()[3:7] == ["MEMORY", "CORES", "USED", "BUSY"]
    assert "20Gi" in first.replace(" ", "")
    assert (first.count("–"), second.count("–")) == (1, 2)


def test_where_nothing_is_measured_there_are_no_such_columns() -> None:
    """Also on a server that does not know of it yet."""
    old = {key: value for key, value in device(0, None).items() if key != "used"}
    assert "USED" not in printed(device(0, None))[0]
    assert "USED" not in printed(old)[0]


def test_a_wide_table_of_nodes_has_their_pods() -> None:
    """Those it has and those it takes; a dash where the node, or a server of old, does not say."""
    plain = {"cluster": "east", "name": "host1", "ready": True, "cordon": None, "devices": []}
    amounts = {name: {"total": 1000, "used": 0, "free": 1000} for name in ("cpu_milli", "memory_mib")}
    reported = {**plain, **amounts, "pods": {"total": 110, "used": 14, "free": 96}}
    out = io.StringIO()
    table = _nodes({"nodes": [reported, {**reported, "pods": None}, {**plain, **amounts}]}, wide=True)
    Console(file=out, width=160, highlight=False).print(table)
    head, *rows = out.getvalue().splitlines()
    assert "PODS" in head
    assert ["14/110" in row for row in rows] == [True, False, False]


def test_why_a_cluster_is_unreachable_is_cut_only_where_the_table_is_narrow() -> None:
    """The words that help may be the last ones: a wide table has all of them below, each once with its cluster."""
    why = "the context 'east' of /etc/seaway/clusters/east gives no credentials: you are not logged in"
    amounts = {
        name: {"total": 1000, "used": 0, "free": 1000}
        for name in ("gpu_milli", "gpu_memory_mib", "cpu_milli", "memory_mib")
    }
    texts = {
        "price_per_gpu_hour": "0.00",
        "gateway": "",
        "region": "",
        "message": why,
        "state": "lost",
    }
    lists: dict[str, Any] = {"hardware": [], "orphans": [], "cordon": None}
    reported = {
        "name": "east",
        "nodes": 1,
        "jobs": 0,
        "last_seen_s": 60,
        "reported_at": None,
        **amounts,
        **texts,
        **lists,
    }

    def lines(*, wide: bool) -> list[str]:
        out = io.StringIO()
        Console(file=out, width=160, highlight=False).print(table({"clusters": [reported]}, wide=wide))
        return [line.rstrip() for line in out.getvalue().splitlines()]

    narrow = lines(wide=False)
    assert "SILENCE" in narrow[0]
    assert "the context 'east'" in narrow[1]
    assert "east: the" not in narrow[1]
    assert lines(wide=True)[2:] == ["", f"east: {why}"]
    reported["message"] = ""
    assert len(lines(wide=True)) == 2


def test_what_is_to_be_free_is_read_as_in_job_files() -> None:
    """Memory with its unit, cores in percent; what is left out does not filter, and what is no amount is refused."""
    wanted = _wanted("", "", "24Gi", "50%", ready=None, healthy=None)
    assert (wanted["free_memory_mib"], wanted["free_core_milli"]) == (24 * 1024, 500)
    wanted = _wanted("", "", "", "", ready=None, healthy=None)
    assert (wanted["free_memory_mib"], wanted["free_core_milli"]) == (0, 0)
    with pytest.raises(RejectedError, match="--free-memory"):
        _wanted("", "", "much", "", ready=None, healthy=None)


def test_models_are_listed_with_their_free_gpus() -> None:
    """One row for each model, with the number of all and of free GPUs."""
    amount = {"total": 4000, "used": 1000, "free": 3000}
    models = [{"model": "NVIDIA L4", "devices": 4, "free": 3, "core_milli": amount, "memory_mib": amount}]
    out = io.StringIO()
    Console(file=out, width=100, highlight=False).print(_models({"models": models}, wide=False))
    head, row = (line.split() for line in out.getvalue().splitlines())
    assert head[:3] == ["MODEL", "GPUS", "FREE"]
    assert row[:4] == ["NVIDIA", "L4", "4", "3"]
