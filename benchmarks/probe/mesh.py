"""Full mesh of gateways on the loopback of this network namespace, each with a prober in its own process.

Run it as a program in an empty namespace (``unshare --net``); it prints the result as JSON.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address
from multiprocessing.connection import Connection

from benchmarks.probe.beside import bare, fping
from benchmarks.probe.capture import Capture
from seaway.adapters.probes.prober import open_prober
from seaway.application.ports.agent import Target
from seaway.domain.gateways import ProbeConfig

HOW = ProbeConfig()
SPREAD_S = HOW.interval_s - HOW.timeout_s
_STAGGER_S = HOW.timeout_s / 2

Answered = list[list[int]]
"""Round-trip times of a prober's round, a list for each target, nanoseconds."""


def main() -> None:
    """Measure the number of gateways and rounds in the arguments."""
    gateways, rounds, seed = (int(each) for each in sys.argv[1:4])
    addresses = prepare(gateways)
    with probers(addresses, seed) as ends:
        one_round(ends)  # resolve neighbours, import modules and allocate memory
        before_s = cpu_s(ends)
        plain = [one_round(ends) for _ in range(rounds)]
        used_s = cpu_s(ends) - before_s
        with Capture("lo") as capture:
            watched = one_round(ends)
            errors_ns = capture.errors_ns(addresses, watched)
    print(
        json.dumps(
            {
                "sent": rounds * gateways * (gateways - 1) * HOW.count,
                "rtts_ns": [rtt for each in plain for prober in each for target in prober for rtt in target],
                "cpu_s": used_s,
                "errors_ns": errors_ns,
                "bare": bare(addresses, HOW.count),
                "fping": fping(addresses, HOW, SPREAD_S),
            }
        )
    )


def prepare(gateways: int) -> list[IPv6Address]:
    """Add an address for each gateway to the loopback."""
    addresses = [IPv6Address("fd00:f::") + each for each in range(1, gateways + 1)]
    commands = ["link set lo up", *(f"address add {address}/128 dev lo nodad" for address in addresses)]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)
    return addresses


@contextmanager
def probers(addresses: list[IPv6Address], seed: int) -> Iterator[list[Connection]]:
    """Start a process for each gateway; yields a connection to each."""
    context, random_ = mp.get_context("fork"), random.Random(seed)
    ends, processes = [], []
    for own in addresses:
        here, there = context.Pipe()
        process = context.Process(target=_prober, args=(own, addresses, random_.uniform(0, _STAGGER_S), there))
        process.start()
        ends.append(here)
        processes.append(process)
    try:
        yield ends
    finally:
        for end in ends:
            end.send("end")
        for process in processes:
            process.join()


def one_round(ends: list[Connection]) -> list[Answered]:
    """Run a round of all probers at the same time."""
    began_s = time.monotonic()
    for end in ends:
        end.send("probe")
    answered: list[Answered] = [end.recv() for end in ends]
    time.sleep(max(0.0, began_s + HOW.interval_s - time.monotonic()))
    return answered


def cpu_s(ends: list[Connection]) -> float:
    """Return the CPU time of all probers, including the kernel, seconds."""
    for end in ends:
        end.send("cpu")
    return sum(float(end.recv()) for end in ends)


def _prober(own: IPv6Address, addresses: list[IPv6Address], stagger_s: float, end: Connection) -> None:
    prober = open_prober(own)
    targets = [Target(str(address), address) for address in addresses if address != own]
    while (what := end.recv()) != "end":
        if what == "cpu":
            used = resource.getrusage(resource.RUSAGE_SELF)
            end.send(used.ru_utime + used.ru_stime)
        else:
            time.sleep(stagger_s)
            end.send([list(each.rtts_ns) for each in prober.probe(targets, HOW, SPREAD_S)])
    prober.close()


if __name__ == "__main__":
    main()
