"""Anything that is shown of one job."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from seaway.cli.jobs.show import _picture
from tests.unit.client.requesting import JOB
from tests.unit.web.test_link_matrix import link


def rows(workloads: list[dict[str, Any]], *, wide: bool = True) -> list[list[str]]:
    """Print a job, and return the cells of its containers."""
    out = io.StringIO()
    Console(file=out, width=200).print(_picture(JOB, {"attempts": [], "workloads": workloads}, wide=wide))
    lines = out.getvalue().splitlines()
    heads = [at for at, line in enumerate(lines) if line.startswith("REPLICA")]
    return [line.split() for at in heads for line in lines[at + 1 : lines.index("", at)]]


def replica(number: int, pod: str, *containers: dict[str, Any]) -> dict[str, Any]:
    """Make what a cluster tells of a replica."""
    return {"replica": number, "phase": "running", "node": "n", "pod": pod, "containers": [*containers], "message": ""}


def copy(*replicas: dict[str, Any]) -> dict[str, Any]:
    """Make what a cluster tells of a job."""
    at = {"address": "", "endpoints": [ENDPOINT], "drift": [{"message": "services/sw was deleted"}]}
    return {"cluster": "alpha", "phase": "running", "message": "", **at, "replicas": [*replicas]}


ENDPOINT = {"cluster": "alpha", "port": 80, "address": "192.0.2.1:30080", "reach": "nodes", "message": "internal"}


def test_every_address_says_who_reaches_it() -> None:
    """The addresses of a job's ports are listed with the clients that can use them, and why others cannot."""
    out = io.StringIO()
    Console(file=out, width=200).print(_picture(JOB, {"attempts": [], "workloads": [copy()]}, wide=False))
    (line,) = (each.split() for each in out.getvalue().splitlines() if "192.0.2.1" in each)
    assert line == ["80", "192.0.2.1:30080", "networks", "of", "the", "nodes", "alpha", "internal"]
    assert "changed in alpha: services/sw was deleted" in out.getvalue()


def test_a_ring_has_a_row_for_each_cluster_with_its_link_to_the_next_one() -> None:
    """Figures are those of the link; behind one gateway there are none."""
    figures = link(latency_ns=4_100_000, free_mbps=7_000, bandwidth_mbps=10_000).model_dump()
    ring = [
        {"cluster": "alpha", "next": "beta", "replicas": 8, "link": figures},
        {"cluster": "beta", "next": "alpha", "replicas": 4, "link": None},
    ]
    out = io.StringIO()
    Console(file=out, width=200).print(_picture(JOB, {"attempts": [], "workloads": [], "ring": ring}, wide=False))
    first, second = (
        line.split() for line in out.getvalue().splitlines() if line.split()[1:3] in (["8", "beta"], ["4", "alpha"])
    )
    assert first[:5] == ["alpha", "8", "beta", "4.1", "ms"]
    assert "7" in first
    assert set(second[3:]) == {"–"}


def test_every_container_has_a_row_with_its_ports_and_devices() -> None:
    """Also one that holds none, and a pod of which no container is known; what has no pod is not there yet."""
    main = {"name": "main", "ports": [8080, 9090], "devices": ["GPU-1", "GPU-2"]}
    side = {"name": "side", "ports": [], "devices": []}
    workloads = [copy(replica(0, "seaway/a", main, side), replica(1, "seaway/b"), replica(2, ""))]
    assert rows(workloads) == [
        ["0", "running", "alpha", "n", "seaway/a", "main", "8080,9090", "GPU-1,", "GPU-2"],
        ["0", "running", "alpha", "n", "seaway/a", "side", "–", "–"],
        ["1", "running", "alpha", "n", "seaway/b", "–", "–", "–"],
    ]
    assert not rows(workloads, wide=False)


STANDBY = {"role": "active", "mode": "warm", "other": "s1", "state": "running", "message": "", "clusters": ["beta"]}
SWITCH = {"left": "gamma", "lost_at": "2026-11-21T10:00:00Z", "switched_at": "2026-11-21T10:01:02.5Z"}


def shown(standby: dict[str, Any]) -> str:
    """Print a service with a standby."""
    out = io.StringIO()
    body = {**JOB, "endpoints": [ENDPOINT], "standby": {**STANDBY, **SWITCH, "endpoints": [], **standby}}
    Console(file=out, width=200).print(_picture(body, {"attempts": [], "workloads": []}, wide=False))
    return out.getvalue()


def test_a_service_shows_its_standby_and_the_latest_switch() -> None:
    """With the job, cluster and addresses of the standby, and the time from the loss to the switch."""
    text = shown({"endpoints": [{**ENDPOINT, "cluster": "beta", "address": "192.0.2.2:30080"}]})
    assert "warm, running in beta, job s1" in text
    assert "from gamma, 62.5 s after its last report" in text
    (line,) = (each for each in text.splitlines() if "192.0.2.2" in each)
    assert "beta (standby)" in line
    assert "192.0.2.1:30080" in text
    assert "this is the standby of job s1" in shown({"role": "standby"})
    assert "cold, no place: too small" in shown(
        {"mode": "cold", "state": "no place", "message": "too small", "other": "", "clusters": []}
    )


def test_the_measured_use_of_a_job_is_a_share_of_what_it_has() -> None:
    """Samples without a figure are left out, and a job without samples has no such line."""
    at = {"core_milli_reserved": 2000, "memory_mib_reserved": 100}
    samples = [
        {**at, "at": f"2026-11-27T10:0{minute}:00Z", "core_milli": cores, "memory_mib": None}
        for minute, cores in enumerate((None, 500, 1000, 1500))
    ]
    out = io.StringIO()
    body = {**JOB, "gpu_use": {"samples": samples}}
    Console(file=out, width=200).print(_picture(body, {"attempts": [], "workloads": []}, wide=False))
    (line,) = (each for each in out.getvalue().splitlines() if "used" in each)
    assert "GPU cores used" in line
    assert "▃▅█ 75 % of what it has, mean 50 % since 2026-11-27 " in line
