"""Scraper of a cluster's exporters.

Each exporter has its own task, so that slow or broken exporters do not delay others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.reflector import Source, reflect
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.objects.core import PodObject
from seaway.adapters.kubernetes.objects.decode import Broken
from seaway.adapters.kubernetes.usage.measured import (
    Exporter,
    Exporters,
    ScrapeOutcome,
    UsageReadings,
    exporter_of,
    page_of,
)
from seaway.adapters.kubernetes.usage.parse import read_page
from seaway.domain.errors import RejectedError, UnavailableError

log = logging.getLogger(__name__)

MAX_BYTES = 4 << 20
"""Maximum size of a page in bytes. The page of a node with 16 cards of 7 instances each has a third of this size."""

MAX_CONCURRENT = 16
"""Maximum number of concurrent scrapes in a cluster."""

STALE_INTERVALS = 3
"""Number of intervals after which a reading without update is stale."""

MAX_BACKOFF_INTERVALS = 10
"""Maximum back-off of a broken exporter, in intervals."""


@dataclass(frozen=True, slots=True)
class Scraping:
    """Settings of scraping.

    Attributes
    ----------
    interval_s
        Interval between two scrapes of an exporter; 0 turns scraping off.
    exporters
        Exporters to scrape.
    """

    interval_s: float = 0.0
    exporters: tuple[Exporters, ...] = ()

    @property
    def stale_after_s(self) -> float:
        """Age after which a reading is stale."""
        return STALE_INTERVALS * self.interval_s


class Scraper:
    """Scraper of one cluster's exporters, for the cluster's event loop.

    Parameters
    ----------
    api
        API server of the cluster, with separate connections, so that hanging exporters do not block other calls.
    measured
        Receiver of the readings.
    """

    def __init__(self, api: Api, scraping: Scraping, measured: UsageReadings, random: Random) -> None:
        self._api = api
        self._scraping = scraping
        self._measured = measured
        self._random = random
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._reading: dict[str, tuple[Exporter, asyncio.Task[None]]] = {}
        self._refused_until_s: dict[str, float] = {}  # by namespace

    async def run(self) -> None:
        """Follow and scrape exporters until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for rank, each in enumerate(self._scraping.exporters):
                    source = Source(each.collection, PodObject, each.selector)
                    sink = _Sink(self, tasks, each.port, rank)
                    tasks.create_task(reflect(self._api, source, sink, Health((source.path,)), Backoff(self._random)))
        finally:
            await self._api.close()

    def begin(self, exporter: Exporter, tasks: asyncio.TaskGroup) -> None:
        """Start to scrape an exporter, unless it is already scraped through another setting."""
        before = self._reading.get(exporter.path)
        if before and before[0].node == exporter.node:
            return
        if before:
            self.end(before[0].path)
        self._reading[exporter.path] = exporter, tasks.create_task(self._read_on(exporter))

    def end(self, path: str) -> None:
        """Stop scraping an exporter."""
        gone = self._reading.pop(path, None)
        if gone:
            gone[1].cancel()
            self._measured.forget(gone[0])

    def of_rank(self, rank: int) -> list[Exporter]:
        """Return the exporters of one setting, by its index."""
        return [each for each, _ in self._reading.values() if each.rank == rank]

    async def _read_on(self, exporter: Exporter) -> None:
        interval_s = self._scraping.interval_s
        backoff = Backoff(self._random, 2 * interval_s, MAX_BACKOFF_INTERVALS * interval_s)
        await asyncio.sleep(self._random.uniform(0, interval_s / 4))
        while True:
            if (left_s := self._refused_s(exporter)) > 0:
                await asyncio.sleep(left_s + self._random.uniform(0, interval_s))
            elif await self._read_once(exporter):
                backoff.reset()
                await asyncio.sleep(interval_s * self._random.uniform(0.75, 1))
            else:
                await asyncio.sleep(backoff.failed())

    async def _read_once(self, exporter: Exporter) -> bool:
        """Scrape an exporter and return whether it succeeded. Parse the page in a thread, because it may be long."""
        try:
            async with self._slots:
                if self._refused_s(exporter) > 0:
                    return False
                page = await self._api.page(exporter.path, MAX_BYTES)
                reading = await asyncio.to_thread(read_page, page)
        except UnavailableError as error:
            self._measured.failed(exporter, ScrapeOutcome.UNREACHABLE, str(error))
        except ApiError as error:
            if error.forbidden:  # the right applies to all pods of a namespace
                until_s = asyncio.get_running_loop().time() + MAX_BACKOFF_INTERVALS * self._scraping.interval_s
                self._refused_until_s[exporter.namespace] = until_s
            self._measured.failed(
                exporter,
                ScrapeOutcome.FORBIDDEN,
                f"{error} (reading it requires the right to get pods/proxy: deploy/kubernetes/usage.yaml)",
            )
        except RejectedError as error:
            self._measured.failed(exporter, ScrapeOutcome.UNREADABLE, str(error))
        except Exception as error:  # a bug must not stop the scraping of others
            log.exception("%s: reading %s failed", self._api.name, exporter.path)
            self._measured.failed(exporter, ScrapeOutcome.UNREADABLE, str(error) or type(error).__name__)
        else:
            self._measured.read(exporter, reading)
            return True
        return False

    def _refused_s(self, exporter: Exporter) -> float:
        """Return the seconds until the next try in a namespace without the right; 0 or less for none."""
        return self._refused_until_s.get(exporter.namespace, 0.0) - asyncio.get_running_loop().time()


class _Sink:
    """Receiver of the pods that one of the settings selects."""

    def __init__(self, scraper: Scraper, tasks: asyncio.TaskGroup, port: int, rank: int) -> None:
        self._scraper = scraper
        self._tasks = tasks
        self._port = port
        self._rank = rank

    async def replace(self, items: Sequence[PodObject]) -> None:
        """Replace all pods."""
        there = {self._path(each) for each in items}
        for each in self._scraper.of_rank(self._rank):
            if each.path not in there:
                self._scraper.end(each.path)
        for pod in items:
            self.put(pod)

    def put(self, item: PodObject) -> None:
        """Add or update a pod."""
        found = exporter_of(item, self._port, self._rank)
        if found:
            self._scraper.begin(found, self._tasks)
        else:
            self.drop(item)

    def drop(self, item: PodObject) -> None:
        """Remove a pod."""
        self._scraper.end(self._path(item))

    def _path(self, pod: PodObject) -> str:
        return page_of(pod.metadata.namespace, pod.metadata.name, self._port)

    def broken(self, what: Broken) -> None:
        """Ignore a pod that cannot be decoded; the view of the cluster reports it."""
