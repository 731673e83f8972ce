"""Follows Seaway's own objects of every kind that an API server has, and that it may see.

What a server does not have is looked for again later. A kind that Seaway may not list never stops the rest: it is said
once what right is missing, and what comes of that. Neither does one whose listing fails, as when the webhook is down
that converts it: at the start it is waited for a little.

References
----------
Kubernetes documentation, "API Concepts": discovery.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.kinds import CORE, is_made_by_another, left_by_others, source_of
from seaway.adapters.kubernetes.collect.ours import SELECTOR
from seaway.adapters.kubernetes.collect.ping import SOURCE as ANSWERS
from seaway.adapters.kubernetes.collect.reflect import ABSENT_S, Sink, Source, read_all, reflect
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff
from seaway.adapters.kubernetes.connection.discovery import Discovery
from seaway.adapters.kubernetes.connection.errors import ApiError
from seaway.adapters.kubernetes.objects.decode import UndecodableError
from seaway.adapters.kubernetes.templates.registry import KindName
from seaway.domain.errors import UnavailableError

log = logging.getLogger(__name__)

_Followed = tuple[Source[Any], Sink[Any]]

LEFT = "left by templates"
"""What a cluster's health calls what templates left that are not there any more."""

MOST_TRIES = 5


def kind_sources(kinds: Sequence[KindName]) -> tuple[str, ...]:
    """Return what has to be heard before it is known what there is of kinds."""
    return (*map(source_of, kinds), LEFT)


@dataclass(frozen=True)
class Listener:
    """Who is told of the objects of a kind.

    Attributes
    ----------
    kind
        What they are decoded as.
    """

    kind: type[Any]
    sink: Sink[Any]


@dataclass(frozen=True)
class KindsFollower:
    """Follows kinds in one namespace of an API server.

    Attributes
    ----------
    tried
        Makes what says how long to wait before something is tried again.
    listener
        Says who is told of a kind, by the kind and the path of its objects.
    """

    api: Api
    namespace: str
    health: Health
    tried: Callable[[], Backoff]
    listener: Callable[[KindName, str], Listener]

    async def run(self, kinds: tuple[KindName, ...]) -> None:
        """Follow these, and what is left of others, until cancelled."""
        discovery = Discovery(self.api)
        async with asyncio.TaskGroup() as tasks:
            for kind in kinds:
                tasks.create_task(self._follow(kind, discovery))
            left = await asyncio.gather(*(self._left(each, discovery) for each in left_by_others(kinds)))
            for source, sink in chain.from_iterable(left):
                tasks.create_task(reflect(self.api, source, sink, self.health, self.tried()))
            self.health.heard(LEFT)

    async def _follow(self, kind: KindName, discovery: Discovery) -> None:
        path = CORE.get(kind) or await self._path(kind, discovery)
        source, sink = self._of(kind, path)
        await reflect(self.api, source, sink, self.health, self.tried())

    def _of(self, kind: KindName, path: str) -> _Followed:
        told, essential = self.listener(kind, path), kind in CORE
        label = source_of(kind)
        source = Source(path, told.kind, SELECTOR, not essential, self.namespace, label=label, spared=not essential)
        return source, told.sink

    async def _path(self, kind: KindName, discovery: Discovery) -> str:
        """Wait until the server has a kind; return where its objects are."""
        backoff = self.tried()
        while True:
            try:
                found = await discovery.kind(*kind)
            except (ApiError, UnavailableError, UndecodableError) as error:
                self.health.failed(source_of(kind), _named(self.api, error), spared=True)
                await backoff.pause()
                continue
            if found and found.namespaced:
                return found.path
            self.health.heard(source_of(kind))
            await asyncio.sleep(ABSENT_S)

    async def _left(self, qualified: str, discovery: Discovery) -> list[_Followed]:
        """Tell of what there is of a kind that no template writes, if anything; once is enough.

        Whoever removed a template may have taken its rights away, too: what may not be seen is passed over. So is what
        fails again and again at a server that answers: nobody may have a use for that kind.
        """
        backoff, tries = self.tried(), 0
        while tries < MOST_TRIES:
            try:
                return await self._left_of(qualified, discovery)
            except ApiError:
                break
            except (UnavailableError, UndecodableError) as error:
                tries += self.health.has(ANSWERS)
                if tries == MOST_TRIES:
                    log.warning("%s: what templates left of %s is not looked for: %s", self.api.name, qualified, error)
                else:
                    self.health.failed(LEFT, str(error))
                    await backoff.pause()
        return []

    async def _left_of(self, qualified: str, discovery: Discovery) -> list[_Followed]:
        name, _, group = qualified.partition(".")
        kind = KindName(await discovery.version(group), name)
        known = await discovery.kind(*kind) if kind.version else None
        if known is None or not known.namespaced:
            return []
        source, sink = self._of(kind, known.path)
        items, _, _ = await read_all(self.api, source)
        if all(is_made_by_another(each.metadata) for each in items):
            return []
        await sink.replace(items)
        return [(source, sink)]


def _named(api: Api, error: Exception) -> str:
    """Say what went wrong, and where."""
    return str(error) if isinstance(error, UnavailableError) else f"{api.name}: {error}"
