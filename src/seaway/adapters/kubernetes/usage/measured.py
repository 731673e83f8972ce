"""Latest readings of exporters, and the outcomes of scraping."""

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
_WRITTEN = re.compile(r"(?P<selector>[^:@;\s]+):(?P<port>[0-9]{1,5})@(?P<namespace>[a-z0-9-]+)")
LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Exporters:
    """Settings that select pods which export the use of devices.

    Attributes
    ----------
    selector
        Label selector of the pods.
    port
        Port of ``/metrics``.
    namespace
        Namespace of the pods. Tenants can give a pod any label, but not this namespace.
    """

    selector: str
    port: int
    namespace: str

    @property
    def collection(self) -> str:
        """Path of the pod collection."""
        return f"/api/v1/namespaces/{self.namespace}/pods"


@dataclass(frozen=True, slots=True)
class Exporter:
    """Exporter pod.

    Attributes
    ----------
    rank
        Index of the setting that selects it. If two exporters export the same value, the lower rank counts.
    """

    namespace: str
    name: str
    port: int
    node: str
    rank: int

    @property
    def path(self) -> str:
        """Path of its page behind the API server's proxy."""
        return page_of(self.namespace, self.name, self.port)


def page_of(namespace: str, pod: str, port: int) -> str:
    """Return the path of a pod's metrics behind the API server's proxy."""
    return f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy/metrics"


def read_exporters(text: str) -> tuple[Exporters, ...]:
    """Parse ``SELECTOR:PORT@NAMESPACE``; several are separated by ``;``.

    Raises
    ------
    RejectedError
        When the format is invalid.
    """
    found = []
    for each in filter(None, map(str.strip, text.split(";"))):
        read = _WRITTEN.fullmatch(each)
        if read is None or not 0 < int(read["port"]) <= LAST_PORT:
            raise RejectedError(f"{each!r} must be LABEL=VALUE:PORT@NAMESPACE", where=WHERE)
        found.append(Exporters(read["selector"], int(read["port"]), read["namespace"]))
    return tuple(found)


def exporter_of(pod: PodObject, port: int, rank: int) -> Exporter | None:
    """Return the exporter in a pod; None while the pod does not run."""
    meta = pod.metadata
    if not pod.spec.node_name or pod.status.phase != "Running" or meta.deletion_timestamp:
        return None
    return Exporter(meta.namespace, meta.name, port, pod.spec.node_name, rank)


log = logging.getLogger(__name__)

MAX_REASON_LENGTH = 300
"""Maximum length of external texts in a log message."""


class ScrapeOutcome(Enum):
    """Outcome of one scrape."""

    READ = "read"
    BROKEN = "broken"
    """Success, but some values are invalid."""
    UNREADABLE = "unreadable"
    """The page is too large or has another format."""
    FORBIDDEN = "refused"
    """The API server or the exporter refuses the request. Without the right, real use is not read, which is allowed."""
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class _CachedReading:
    exporter: Exporter
    at_s: float
    reading: Reading


class UsageReadings:
    """Latest readings of a cluster's exporters. The event loop updates them; any thread reads them.

    Parameters
    ----------
    cluster
        Name of the cluster, for the log.
    stale_after_s
        Age after which a reading is ignored.
    now_s
        Clock in seconds.
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
        """Store the current reading of an exporter."""
        broken = f"{reading.broken} of its figures make no sense and are left out" if reading.broken else ""
        self._note(exporter, ScrapeOutcome.BROKEN if broken else ScrapeOutcome.READ, broken)
        with self._lock:
            self._readings[exporter] = _CachedReading(exporter, self._now_s(), reading)

    def failed(self, exporter: Exporter, outcome: ScrapeOutcome, why: str) -> None:
        """Record a failed scrape. The previous reading stays valid until it is stale."""
        self._note(exporter, outcome, why)

    def forget(self, exporter: Exporter) -> None:
        """Remove an exporter."""
        with self._lock:
            self._readings.pop(exporter, None)
            self._outcomes.pop(exporter, None)

    def counts(self) -> dict[str, int]:
        """Return the number of scrapes by outcome, including outcomes with 0."""
        with self._lock:
            return {each.value: self._counts[each] for each in ScrapeOutcome}

    def usage(self) -> dict[str, NodeUsage]:
        """Return the measured use by node, without stale readings."""
        now_s = self._now_s()
        by_node: defaultdict[str, list[_CachedReading]] = defaultdict(list)
        with self._lock:
            for each in self._readings.values():
                if now_s - each.at_s <= self._stale_s:
                    by_node[each.exporter.node].append(each)
        return {node: _usage(retained, now_s) for node, retained in by_node.items()}

    def _note(self, exporter: Exporter, outcome: ScrapeOutcome, why: str) -> None:
        """Count an outcome. Log the error unless an exporter of the cluster already has the same outcome."""
        with self._lock:
            known = bool(why) and outcome in self._outcomes.values()
            self._outcomes[exporter] = outcome
            self._counts[outcome] += 1
        if why and not known:
            log.log(
                logging.INFO if outcome is ScrapeOutcome.FORBIDDEN else logging.WARNING,
                "%s: real use is not known from %s/%s on %s: %s (others with the same error are only counted)",
                self._cluster,
                exporter.namespace,
                exporter.name,
                exporter.node,
                " ".join(why.split())[:MAX_REASON_LENGTH],
            )


def _usage(readings: Sequence[_CachedReading], now_s: float) -> NodeUsage:
    """Merge the readings of a node's exporters. If several export the same value, the lowest rank counts."""
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
