"""Baselines of the prober: bare system calls, and fping."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import time
from ipaddress import IPv6Address

from seaway.adapters.probes.sockets import open_icmp
from seaway.domain.gateways import ProbeConfig
from seaway.probing import packets

_COUNTS = re.compile(r"= (\d+)/(\d+)/")


def bare(addresses: list[IPv6Address], count: int) -> dict[str, float]:
    """Send every probe of a round and receive its answer immediately, without pauses, bookkeeping or clock."""
    sockets = [open_icmp(6, own, number) for number, own in enumerate(addresses)]
    before_s, sent = time.process_time(), 0
    for number, own in enumerate(sockets):
        own.setblocking(True)
        packet = packets.encode_request(packets.V6, number, 0, packets.encode_payload(0, bytes(8)))
        for address in (str(each) for at, each in enumerate(addresses) if at != number):
            for _ in range(count):
                own.sendto(packet, (address, 0))
                own.recvmsg(256, 64)
                sent += 1
    used_s = time.process_time() - before_s
    for own in sockets:
        own.close()
    return {"sent": sent, "received": sent, "cpu_s": used_s}


def fping(addresses: list[IPv6Address], how: ProbeConfig, spread_s: float) -> dict[str, float] | None:
    """Run an fping for each gateway that probes all others in one round; None if fping is not installed."""
    program = shutil.which("fping")
    if program is None:
        return None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    period_ms = round(spread_s * 1000 / how.count)
    options = ["-6", "-q", "-c", str(how.count), "-p", str(period_ms), "-t", str(round(how.timeout_s * 1000))]
    options += ["-i", str(period_ms // len(addresses))]
    running = [
        subprocess.Popen(
            [program, *options, "-S", str(own), *(str(each) for each in addresses if each != own)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for own in addresses
    ]
    reported = "".join(each.communicate()[1] for each in running)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts = [(int(sent), int(received)) for sent, received in _COUNTS.findall(reported)]
    return {
        "sent": sum(sent for sent, _ in counts),
        "received": sum(received for _, received in counts),
        "cpu_s": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
    }
