"""Cases of `script/bench probe` and `script/bench agents`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.probe.agents import GATEWAYS
from benchmarks.probe.mesh import HOW
from benchmarks.record import ROOT, Result, SkippedError

ROUNDS = 3
AGENTS = 10
AGENTS_S = 60
"""Duration of the measurement: six rounds and reports, and two requests for targets."""
PROBES = GATEWAYS * (GATEWAYS - 1) * HOW.count
"""Number of probes in a round."""


def probe(seed: int) -> Result:
    """Probe a full mesh of 100 gateways on one machine: CPU time, false loss and error (as root, on Linux)."""
    program = [sys.executable, "-m", "benchmarks.probe.mesh", str(GATEWAYS), str(ROUNDS), str(seed)]
    done = subprocess.run([*_into_a_namespace(), *program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    measured = json.loads(done.stdout)
    plain = measured["bare"]["cpu_s"] / measured["bare"]["sent"]
    ours = {"sent": measured["sent"], "received": len(measured["rtts_ns"]), "cpu_s": measured["cpu_s"]}
    rows = [{**_row("seaway", ours, plain), **_times(measured["rtts_ns"], measured["errors_ns"])}]
    rows += [_row(name, measured[name], plain) for name in ("fping", "bare") if measured[name]]
    return Result(
        "probe",
        rows,
        [
            f"{GATEWAYS} gateways, {GATEWAYS * (GATEWAYS - 1):,} directed pairs, 5 probes each, every 10 s; "
            f"{ROUNDS} rounds. CPU %: what that takes of one core, all probers together.",
            "Each prober is a process with sockets and an address of its own, all on the loopback of one namespace; "
            "nothing was dropped there, so whatever is missing is false loss. Processor time is getrusage's.",
            "Error: round-trip time less what a capture says between request and reply, every eighth probe of one "
            "more round.",
            "Bare: sendto and recvmsg over and over, without pauses or books; fping: one for each gateway, one round.",
        ],
    )


def agents(_: int) -> Result:
    """Run complete agents that probe and report, 10 of 100: CPU time and memory (as root, on Linux)."""
    program = [sys.executable, "-m", "benchmarks.probe.agents", str(AGENTS), str(AGENTS_S)]
    done = subprocess.run([*_into_a_namespace(), *program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    measured = json.loads(done.stdout)
    each_s = sum(measured["agents_s"]) / AGENTS / AGENTS_S
    each_mib = sum(measured["memory_kib"]) / AGENTS / 1024
    row = {
        "agents": AGENTS,
        "results": measured["rounds"],
        "lossy links": measured["lossy"],
        "CPU ms/s each": round(1000 * each_s, 2),
        "CPU % of 100": round(100 * each_s * GATEWAYS, 1),
        "MiB each": round(each_mib, 1),
        "MiB of 100": round(each_mib * GATEWAYS),
        "server CPU %": round(100 * measured["server_s"] / AGENTS_S, 1),
    }
    notes = [
        f"`seaway agent` with {GATEWAYS - 1} gateways to probe, every {HOW.interval_s:g} s; a real control plane to "
        f"report to, for {AGENTS_S} s once they have settled. The seed has no effect.",
        "CPU of the whole agent, in the kernel too, on the loopback also for the other end; of 100: times 100, of one "
        "core. Memory: what is its own, with its share of what agents have in common (PSS).",
    ]
    return Result("agents", [row], notes)


def _into_a_namespace() -> list[str]:
    """Return the command prefix that runs a program in an empty network namespace, which ends with the program."""
    missing = [name for name in ("unshare", "ip") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        raise SkippedError(f"it makes a network namespace, which takes root and {', '.join(missing) or 'Linux'}")
    return ["unshare", "--net", "--"]


def _row(name: str, counted: dict[str, Any], bare_s: float) -> dict[str, Any]:
    each_s = counted["cpu_s"] / counted["sent"]
    return {
        "prober": name,
        "probes": counted["sent"],
        "lost": counted["sent"] - counted["received"],
        "CPU %": round(100 * each_s * PROBES / HOW.interval_s, 1),
        "CPU us": round(each_s * 1e6, 1),
        "x bare": round(each_s / bare_s, 2),
    }


def _times(rtts_ns: Sequence[int], errors_ns: Sequence[int]) -> dict[str, float]:
    return {
        "RTT p50 ms": _quantile_ms(rtts_ns, 0.5),
        "RTT p99 ms": _quantile_ms(rtts_ns, 0.99),
        "error p99 ms": _quantile_ms(errors_ns, 0.99),
        "error max ms": _quantile_ms(errors_ns, 1),
    }


def _quantile_ms(values_ns: Sequence[int], share: float) -> float:
    ordered = sorted(values_ns)
    return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 1e6, 3) if ordered else 0.0
