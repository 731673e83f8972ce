"""Audit of executed workloads by the journals of all clusters.

Tests of the control plane read the journals after a run. The clusters write the journals from their own accounting. The
journals therefore show whether the control plane met its guarantees under any faults.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from seaway.adapters.simulated.journal import Created, Ended, Entry, Removed, journal_path, read_journal
from seaway.adapters.simulated.ledger import ClusterLedger, Key
from seaway.domain.cluster import Cluster, Fleet


def read_journals(fleet: Fleet, data: Path) -> dict[str, list[Entry]]:
    """Read the journals of a fleet's clusters from their data folder, by cluster."""
    return {each.name: read_journal(journal_path(data, each.name)) for each in fleet.clusters}


def violations(fleet: Fleet, journals: Mapping[str, Iterable[Entry]]) -> list[str]:
    """Return the violated rules; empty if there are none.

    The rules: no cluster has a workload twice. No job has workloads of two attempts at the same time, in any clusters.
    No node and no device is overcommitted.

    Parameters
    ----------
    journals
        Entries of each cluster. Their times must come from one clock. If the end of a workload and the start of another
        have the same time, the end counts as earlier.
    """
    found = [f"cluster {each.name}: {why}" for each in fleet.clusters for why in _overbooked(each, journals[each.name])]
    found.extend(_two_attempts(journals))
    return found


def _overbooked(cluster: Cluster, entries: Iterable[Entry]) -> Iterator[str]:
    ledger = ClusterLedger(cluster)
    ledger.open()
    live: dict[Key, Created] = {}
    for entry in entries:
        if isinstance(entry, Created):
            key = (entry.job_id, entry.attempt)
            if key in live:
                yield f"job {key[0]}, attempt {key[1]} was created twice"
            why = ledger.take(key, entry.placements, entry.cpu_milli, entry.memory_mib)
            if why:
                yield f"job {key[0]}, attempt {key[1]} was created, but {why}"
            else:
                live[key] = entry
        elif isinstance(entry, Ended | Removed):
            over = live.pop((entry.job_id, entry.attempt), None)
            if over is not None:
                ledger.give_back((over.job_id, over.attempt), over.placements, over.cpu_milli, over.memory_mib)


def _two_attempts(journals: Mapping[str, Iterable[Entry]]) -> Iterator[str]:
    """Check the workloads of all clusters in chronological order."""
    steps = sorted(_steps(journals), key=lambda step: step[:2])
    live: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for _, begins, cluster, (job_id, attempt) in steps:
        if not begins:
            live[job_id].discard((cluster, attempt))
            continue
        for other_cluster, other in sorted(live[job_id]):
            if other != attempt:
                yield (
                    f"job {job_id}: attempt {attempt} began in cluster {cluster} while attempt {other} "
                    f"was alive in cluster {other_cluster}"
                )
        live[job_id].add((cluster, attempt))


def _steps(journals: Mapping[str, Iterable[Entry]]) -> Iterator[tuple[int, bool, str, Key]]:
    """Yield each start (True) and end (False) of a workload once."""
    for cluster, entries in journals.items():
        live: set[Key] = set()
        for entry in entries:
            if isinstance(entry, Created):
                live.add((entry.job_id, entry.attempt))
                yield entry.at_ns, True, cluster, (entry.job_id, entry.attempt)
            elif isinstance(entry, Ended | Removed) and (entry.job_id, entry.attempt) in live:
                live.discard((entry.job_id, entry.attempt))
                yield entry.at_ns, False, cluster, (entry.job_id, entry.attempt)
