"""Case of `script/bench siege`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.api.server import Served, cpu_s, served
from benchmarks.clusters.world import World, world
from benchmarks.record import ROOT, Result, RunOptions
from benchmarks.samples import Repeated, Sample, readiness, sample
from benchmarks.siege.attackers import ATTACKS
from benchmarks.siege.proof import find_violations
from seaway.bootstrap.clusters import read_fleet

CLIENTS = 50
LISTENERS = 10
USERS = 4
"""Number of attackers with a valid token."""

WARM_S = 20.0
ALONE_S = 20.0
"""Duration of the measurements without attackers, before and after, seconds."""

REST_S = 40.0
"""Time after the siege until the last held connections are closed, seconds."""

PROBE_S = 0.05
SAMPLE_S = 1.0
PATIENCE_S = 300.0

MIN_RATE = 0.7
MAX_GROWTH_MIB = 200
MAX_READY_S = 0.25
SIMULATED = [f"cluster-{number}" for number in range(10)]
HUNG = "member1"
SETTINGS = {
    "SEAWAY_CONTROL_TTL_AFTER_FINISHED_S": "5",
    "SEAWAY_CLUSTERS_DEFAULT_IMAGE": "siege",
    "SEAWAY_DATABASE_PRUNE_INTERVAL_H": "0",
    "SEAWAY_DATABASE_BACKUP_INTERVAL_H": "0",
}
HUNG_JOB = {
    "name": "hung",
    "resources": {"cpu": "100m", "memory": "100MB", "gpus": 1, "gpu_memory": "1GB", "gpu_cores": "1%"},
    "placement": {"clusters": [HUNG]},
    "tenant": "attackers",
}


@dataclass(slots=True)
class Phase:
    """One part of the measurement.

    Attributes
    ----------
    began_s, ended_s
        Its times on the monotonic clock.
    cpu
        CPU seconds by process.
    listeners
        Report of the event listeners.
    """

    name: str
    began_s: float = 0.0
    ended_s: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    listeners: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.ended_s - self.began_s

    def covers(self, at_s: float) -> bool:
        """Report whether a time is in this phase."""
        return self.began_s <= at_s < self.ended_s


@dataclass(slots=True)
class Siege:
    """The measurements."""

    phases: list[Phase]
    samples: list[Sample]
    probes: list[tuple[float, float, str]]
    clients: dict[str, Any]
    submits: Any  # array of times and durations, n x 2
    attacks: dict[str, dict[str, Any]]
    closed: dict[str, int]
    wrong: list[str]


def siege(seed: int, options: RunOptions) -> Result:
    """Attack a server in many ways at once, while 50 clients submit jobs; compare with the rates before and after."""
    with tempfile.TemporaryDirectory(prefix="seaway-siege-") as name:
        found = _besiege(Path(name), seed, options)
    notes = [
        f"{CLIENTS} clients, {LISTENERS} event listeners, a readiness check on a new connection each {PROBE_S:g} s; "
        "10,000 simulated GPUs, and an API server in memory whose kubelet does not answer reads of logs",
        *_attack_notes(found.attacks),
        f"closed by the server: {', '.join(f'{why} {n:,}' for why, n in found.closed.items() if n)}",
        f"jobs: {', '.join(f'{state} {n:,}' for state, n in found.clients['states'].items())}",
        f"slowest /readyz: {', '.join(_slowest(found))}",
        *(f"not ready {n} times: {why}" for why, n in Counter(why for _, _, why in found.probes if why).most_common()),
    ]
    return Result("siege", _rows(found), notes, _missed(found))


def _besiege(folder: Path, seed: int, options: RunOptions) -> Siege:
    with world(folder, "--members", "1", "--nodes", "4", "--seed", str(seed)) as servers:
        servers.order(HUNG, "hang", path="*/log*")
        settings = SETTINGS | {"SEAWAY_CLUSTERS_KUBECONFIG_DIR": str(servers.kubeconfigs)}
        data = folder / "data"
        with served(data, program="benchmarks.siege.server", settings=settings) as server:
            found = _measure(server, servers, folder, options)
        accepted = set((folder / "accepted").read_text(encoding="utf-8").split())
        fleet = read_fleet(str(data / "fleet.yaml"))
        found.wrong += find_violations(f"sqlite:///{data / 'seaway.db'}", accepted, fleet, data / "clusters")
    return found


def _measure(server: Served, servers: World, folder: Path, options: RunOptions) -> Siege:
    siege_s = 60 * options.minutes
    target = {
        "url": server.url,
        "seconds": siege_s,
        "tokens": _tokens(server),
        "hung_jobs": _hung_jobs(server),
        "attacks": options.attacks,
    }
    whole_s = WARM_S + 2 * ALONE_S + siege_s + REST_S
    samples: list[Sample] = []
    probes: list[tuple[float, float, str]] = []
    threads = (
        Repeated(lambda: samples.append(sample(server.process.pid)), SAMPLE_S),
        Repeated(lambda: probes.append((time.monotonic(), *readiness(server.url))), PROBE_S),
    )
    with (
        _started("benchmarks.siege.clients", server, str(CLIENTS), str(whole_s), str(folder)) as clients,
        _started("benchmarks.siege.attackers", server) as attackers,
    ):
        processes = {
            "server": server.process.pid,
            "clients": clients.pid,
            "attackers": attackers.pid,
            "API server": servers.process.pid,
        }
        for each in threads:
            each.start()
        time.sleep(WARM_S)
        phases = [_phase("before", ALONE_S, server, processes)]
        _send_line(attackers, json.dumps(target))
        phases += [_phase("siege", siege_s, server, processes)]
        attacks = json.loads(_read_line(attackers))
        time.sleep(REST_S)
        phases += [_phase("after", ALONE_S, server, processes)]
        for each in threads:
            each.stop()
        said = json.loads(_read_line(clients))
    submits = np.load(folder / "submits.npy")
    return Siege(phases, samples, probes, said, submits, attacks, _closed(server), [])


def _phase(name: str, seconds: float, server: Served, processes: Mapping[str, int]) -> Phase:
    """Let a phase pass, and return its figures."""
    phase = Phase(name)
    with _started("benchmarks.api.listeners", server, str(LISTENERS), str(seconds)) as listeners:
        before = {each: cpu_s(process) for each, process in processes.items()}
        phase.began_s = time.monotonic()
        time.sleep(seconds)
        phase.ended_s = time.monotonic()
        phase.cpu = {each: cpu_s(process) - before[each] for each, process in processes.items()}
        phase.listeners = json.loads(_read_line(listeners))
    return phase


def _tokens(server: Served) -> list[str]:
    """Create a tenant of attackers; return their tokens."""
    headers = {"authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=60) as client:
        client.put("/tenants/attackers", json={}).raise_for_status()
        wanted = [{"name": f"attacker-{number}", "role": "user", "tenant": "attackers"} for number in range(USERS)]
        answers = [client.post("/tokens", json=each).raise_for_status() for each in wanted]
    return [str(each.json()["secret"]) for each in answers]


def _hung_jobs(server: Served) -> list[str]:
    """Run jobs on the cluster whose kubelet does not answer reads of logs; return their IDs."""
    headers = {"authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=f"{server.url}/api/v1", headers=headers, timeout=60) as client:
        _until(lambda: client.get(f"/fleet/nodes?cluster={HUNG}").is_success, f"{HUNG} is unknown")
        answers = [client.post("/jobs", json=HUNG_JOB).raise_for_status() for _ in range(USERS)]
        jobs = [str(each.json()["id"]) for each in answers]
        for job in jobs:
            path = f"/jobs/{job}"
            _until(lambda path=path: client.get(path).json()["state"] == "running", f"{path} does not run")  # type: ignore[misc]
    return jobs


def _until(holds: Callable[[], bool], else_: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until_s:
            raise RuntimeError(else_)
        time.sleep(0.2)


def _closed(server: Served) -> dict[str, int]:
    """Return the number of connections that the server closed because of a limit, by reason."""
    name = "seaway_connections_closed_total{reason="
    lines = [line for line in server.get("/metrics").text.splitlines() if line.startswith(name)]
    return {line.split('"')[1]: int(float(line.rpartition(" ")[2])) for line in lines}


@contextmanager
def _started(module: str, server: Served, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program against the server."""
    given = () if module.endswith("attackers") else (server.url, *arguments)
    process = subprocess.Popen(
        [sys.executable, "-m", module, *given],
        cwd=ROOT,
        env=os.environ | {"SEAWAY_TOKEN": server.token, "SIEGE_CLUSTERS": ",".join(SIMULATED)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def _send_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended with {process.wait()}")
    return line


def _rows(found: Siege) -> list[dict[str, Any]]:
    """Return a row for each figure, with a column for each phase."""
    columns = {phase.name: _figures(found, phase) for phase in found.phases}
    asked = {
        "submits/s": f">= {MIN_RATE:.0%}",
        "/readyz, most ms": f"< {1000 * MAX_READY_S:.0f}",
        "RSS, most MiB": f"+ {MAX_GROWTH_MIB}",
        "event listeners": str(LISTENERS),
    }
    names = next(iter(columns.values()))
    return [
        {"what": name, **{phase: figures[name] for phase, figures in columns.items()}, "asked": asked.get(name, "")}
        for name in names
    ]


def _figures(found: Siege, phase: Phase) -> dict[str, float]:
    times, durations = found.submits[:, 0], found.submits[:, 1]
    mine = durations[(times >= phase.began_s) & (times < phase.ended_s)]
    ready_s = [took_s for at_s, took_s, _ in found.probes if phase.covers(at_s)]
    samples = [each for each in found.samples if phase.covers(each.at_s)]
    return {
        "seconds": round(phase.seconds),
        "submits/s": round(_rate(found, phase)),
        "submits per CPU second of the server": round(len(mine) / phase.cpu["server"]),
        "submit, p50 ms": _ms(mine, 50),
        "submit, p99 ms": _ms(mine, 99),
        "/readyz, p50 ms": _ms(ready_s, 50),
        "/readyz, p99 ms": _ms(ready_s, 99),
        "/readyz, most ms": _ms(ready_s, 100),
        f"/readyz, answers after {1000 * MAX_READY_S:.0f} ms": sum(took_s > MAX_READY_S for took_s in ready_s),
        "RSS, most MiB": round(max(each.rss_mib for each in samples)),
        "PSS, most MiB": round(max(each.pss_mib for each in samples)),
        "file descriptors, most": max(each.files for each in samples),
        "threads, most": max(each.threads for each in samples),
        **{f"cores used by the {name}": round(spent_s / phase.seconds, 2) for name, spent_s in phase.cpu.items()},
        "event listeners": phase.listeners["listeners"],
        "event to listener, p99 ms": phase.listeners["late_p99_ms"],
    }


def _attack_notes(attacks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each kind of attack."""
    rates = {attack.name: attack for attack in ATTACKS}
    return [
        f"{name}, {rates[name].per_s:g}/s from {len(rates[name].addresses)} addresses: {attack['tried']:,} tried, "
        f"{attack['skipped']:,} skipped, {attack['most_open']:,} at once, {attack['sent_bytes'] / 2**20:,.0f} MiB; "
        + ", ".join(f"{end} {count:,}" for end, count in attack["ends"].items())
        for name, attack in attacks.items()
    ]


def _slowest(found: Siege) -> list[str]:
    """Return the slowest readiness checks of the siege, with the seconds at which they began."""
    siege = found.phases[1]
    slowest = sorted((each for each in found.probes if siege.covers(each[0])), key=lambda probe: -probe[1])[:5]
    return [f"{1000 * took_s:.0f} ms at {at_s - siege.began_s:.0f} s" for at_s, took_s, _ in slowest]


def _rate(found: Siege, phase: Phase) -> float:
    times = found.submits[:, 0]
    return float(((times >= phase.began_s) & (times < phase.ended_s)).sum() / phase.seconds)


def _ms(seconds: Sequence[float], percent: float) -> float:
    return round(1000 * float(np.percentile(seconds, percent, method="higher")), 1) if len(seconds) else 0.0


def growth_mib(samples: Sequence[Sample], before: Phase, siege: Phase) -> float:
    """Return the growth of memory from the end of a phase to the peak of another, MiB."""
    held = [each for each in samples if before.covers(each.at_s)][-1].rss_mib
    return max(each.rss_mib for each in samples if siege.covers(each.at_s)) - held


def _missed(found: Siege) -> list[str]:
    before, siege, after = found.phases
    alone = (_rate(found, before) + _rate(found, after)) / 2
    share, grown = _rate(found, siege) / alone, growth_mib(found.samples, before, siege)
    slowest_s = max(took_s for at_s, took_s, _ in found.probes if siege.covers(at_s))
    missed = [f"{share:.0%} of the rate without attackers, asked {MIN_RATE:.0%}"] if share < MIN_RATE else []
    missed += [f"memory grew by {grown:.0f} MiB, asked {MAX_GROWTH_MIB}"] if grown > MAX_GROWTH_MIB else []
    missed += [f"/readyz took {1000 * slowest_s:.0f} ms, asked 250"] if slowest_s > MAX_READY_S else []
    missed += [f"{siege.listeners['listeners']} listeners left"] if siege.listeners["listeners"] < LISTENERS else []
    missed += [f"{n} submits refused: {why}" for why, n in found.clients["refused"].items()]
    missed += [f"{n} jobs ended as {end or 'none'}" for end, n in found.clients["states"].items() if end != "completed"]
    missed += [f"connections of clients broke {n} times"] if (n := found.clients["breaks"]) else []
    return [*missed, *found.wrong]
