"""What was read of exporters and when, and how reading them goes."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from time import monotonic

from seaway.adapters.kubernetes.objects.core import PodObject
from seaway.adapters.kubernetes.usage.parse import Reading
from seaway.application.ports.usage import Held, NodeUsage, Used
from seaway.domain.errors import RejectedError

WHERE = "[clusters] usage.exporters"
_WRITTEN = re.compile(r"(?P<selector>[^:@;\s]+):(?P<port>[0-9]{1,5})(?:@(?P<namespace>[a-z0-9-]+))?")
LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Exporters:
    """Pods that tell what is used.

    Attributes
    ----------
    selector
        Their labels.
    port
        Where they tell it, at ``/metrics``.
    namespace
        Where they are; empty for any.
    """

    selector: str
    port: int
    namespace: str = ""

    @property
    def collection(self) -> str:
        """The path of the pods that they are among."""
        return f"/api/v1/namespaces/{self.namespace}/pods" if self.namespace else "/api/v1/pods"


@dataclass(frozen=True, slots=True)
class Exporter:
    """One such pod.

    Attributes
    ----------
    rank
        Which of the settings found it: where two tell the same, the lower one counts.
    """

    namespace: str
    name: str
    port: int
    node: str
    rank: int

    @property
    def path(self) -> str:
        """Where the API server's proxy to its page is."""
        return page_of(self.namespace, self.name, self.port)


def page_of(namespace: str, pod: str, port: int) -> str:
    """Return the path of a pod's metrics behind the API server's proxy."""
    return f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy/metrics"


def read_exporters(text: str) -> tuple[Exporters, ...]:
    """Read ``SELECTOR:PORT`` or ``SELECTOR:PORT@NAMESPACE``, several with ``;`` between.

    Raises
    ------
    RejectedError
        When it is written otherwise.
    """
    found = []
    for each in filter(None, map(str.strip, text.split(";"))):
        read = _WRITTEN.fullmatch(each)
        if read is None or not 0 < int(read["port"]) <= LAST_PORT:
            raise RejectedError(f"{each!r} must be LABEL=VALUE:PORT or LABEL=VALUE:PORT@NAMESPACE", where=WHERE)
        found.append(Exporters(read["selector"], int(read["port"]), read["namespace"] or ""))
    return tuple(found)


def exporter_of(pod: PodObject, port: int, rank: int) -> Exporter | None:
    """Return the exporter that a pod is; None while it does not run."""
    meta = pod.metadata
    if not pod.spec.node_name or pod.status.phase != "Running" or meta.deletion_timestamp:
        return None
    return Exporter(meta.namespace, meta.name, port, pod.spec.node_name, rank)


log = logging.getLogger(__name__)

MAX_REASON_LENGTH = 300
"""Of what others wrote, in a line of the log."""


class ScrapeOutcome(Enum):
    """What became of reading an exporter once."""

    READ = "read"
    BROKEN = "broken"
    """Read, but some of its figures make no sense."""
    UNREADABLE = "unreadable"
    """It says more than anybody reads, or says it in another form."""
    FORBIDDEN = "refused"
    """The API server refuses, or the exporter does."""
    UNREACHABLE = "silent"


@dataclass(frozen=True, slots=True)
class _CachedReading:
    exporter: Exporter
    at_s: float
    reading: Reading


class UsageReadings:
    """Keeps what exporters of a cluster said last: told on the event loop, asked by any thread.

    Parameters
    ----------
    cluster
        Its name, for the log.
    stale_after_s
        After how long a figure counts no more.
    now_s
        A clock, seconds.
    """

    def __init__(self, cluster: str, stale_after_s: float, now_s: Callable[[], float] = monotonic) -> None:
        self._cluster = cluster
        self._stale_s = stale_after_s
        self._now_s = now_s
        self._lock = Lock()
        self._readings: dict[Exporter, _CachedReading] = {}
        self._outcomes: dict[Exporter, ScrapeOutcome] = {}
        self._counts: Counter[ScrapeOutcome] = Counter()

    def read(self, exporter: Exporter, reading: Reading) -> None:
        """Take what an exporter says now."""
        broken = f"{reading.broken} of its figures make no sense and are left out" if reading.broken else ""
        self._note(exporter, ScrapeOutcome.BROKEN if broken else ScrapeOutcome.READ, broken)
        with self._lock:
            self._readings[exporter] = _CachedReading(exporter, self._now_s(), reading)

    def failed(self, exporter: Exporter, outcome: ScrapeOutcome, why: str) -> None:
        """Note that an exporter was not read; what it said before stands until it is too old."""
        self._note(exporter, outcome, why)

    def forget(self, exporter: Exporter) -> None:
        """Note that an exporter is gone."""
        with self._lock:
            self._readings.pop(exporter, None)
            self._outcomes.pop(exporter, None)

    def counts(self) -> dict[str, int]:
        """Return how often exporters were read, by what became of it; every outcome is there."""
        with self._lock:
            return {each.value: self._counts[each] for each in ScrapeOutcome}

    def usage(self) -> dict[str, NodeUsage]:
        """Return what was measured, by node, without what is too old."""
        now_s = self._now_s()
        by_node: defaultdict[str, list[_CachedReading]] = defaultdict(list)
        with self._lock:
            for each in self._readings.values():
                if now_s - each.at_s <= self._stale_s:
                    by_node[each.exporter.node].append(each)
        return {node: _usage(kept, now_s) for node, kept in by_node.items()}

    def _note(self, exporter: Exporter, outcome: ScrapeOutcome, why: str) -> None:
        """Count an outcome; say what is wrong unless it is known already, of this exporter or of others."""
        with self._lock:
            known = bool(why) and outcome in self._outcomes.values()
            self._outcomes[exporter] = outcome
            self._counts[outcome] += 1
        if why and not known:
            log.warning(
                "%s: real use is not known from %s/%s on %s: %s (others with the same trouble are only counted)",
                self._cluster,
                exporter.namespace,
                exporter.name,
                exporter.node,
                " ".join(why.split())[:MAX_REASON_LENGTH],
            )


def _usage(readings: Sequence[_CachedReading], now_s: float) -> NodeUsage:
    """Put together what the exporters of a node say; where several tell the same, the first in rank counts."""
    age_s = now_s - min(each.at_s for each in readings)
    if len(readings) == 1:
        return NodeUsage(age_s, readings[0].reading.devices, readings[0].reading.containers)
    devices: dict[str, Used] = {}
    containers: dict[Held, Mapping[str, Used]] = {}
    for each in sorted(readings, key=lambda each: (each.exporter.rank, each.exporter.namespace, each.exporter.name)):
        for uuid, used in each.reading.devices.items():
            devices[uuid] = _preferred(devices.get(uuid), used)
        for held, there in each.reading.containers.items():
            containers.setdefault(held, there)
    return NodeUsage(age_s, devices, containers)


def _preferred(first: Used | None, second: Used) -> Used:
    if first is None:
        return second
    return Used(
        second.memory_bytes if first.memory_bytes is None else first.memory_bytes,
        second.core_milli if first.core_milli is None else first.core_milli,
    )
