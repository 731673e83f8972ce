"""What every way of deploying has in common: commands at the same time, each for itself, and what was written."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from seaway.adapters.kubernetes.collect.owned import Key, Place, kinds_of
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.deploy.writing import OF_ONE, Objects, together
from seaway.adapters.kubernetes.templates.context import Options
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.pinning import NotThereError
from seaway.adapters.kubernetes.templates.registry import KindName, Templates, render
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError

MOST = 10_000

Name = tuple[str, str, str]
"""Version, kind and name of an object."""


@dataclass(slots=True)
class _Creation:
    """What became of creating an attempt's objects.

    Attributes
    ----------
    places
        Where something was written, or may have been: whoever was not answered does not know.
    answered
        What need not be written again before all of it is, and where it stands.
    """

    places: set[Place] = field(default_factory=set)
    answered: dict[Name, Place] = field(default_factory=dict)


class Written:
    """Remembers the latest objects that were written."""

    def __init__(self) -> None:
        self._creations: OrderedDict[Key, _Creation] = OrderedDict()

    def places(self, key: Key) -> frozenset[Place]:
        """Return where something of an attempt may have been written."""
        found = self._creations.get(key)
        return frozenset(found.places) if found else frozenset()

    def begun(self, key: Key, place: Place) -> None:
        """Note that an object is about to be written."""
        self._of(key).places.add(place)

    def answered(self, key: Key, name: Name, place: Place) -> None:
        """Note that an object was written."""
        self._of(key).answered[name] = place

    def is_answered(self, key: Key, name: Name) -> bool:
        """Tell whether an object was written by an earlier try, which was not able to write all of them."""
        found = self._creations.get(key)
        return found is not None and name in found.answered

    def lose(self, key: Key, there: Collection[Place]) -> None:
        """Note that of what was written only this is there: the rest is written again by the next try."""
        if found := self._creations.get(key):
            found.answered = {name: place for name, place in found.answered.items() if place in there}

    def complete(self, key: Key) -> None:
        """Note that all of an attempt was written: when it is asked for again, something of it was lost."""
        if key in self._creations:
            self._creations[key].answered.clear()

    def forget(self, key: Key) -> None:
        """Forget what was written for an attempt."""
        self._creations.pop(key, None)

    def _of(self, key: Key) -> _Creation:
        found = self._creations.setdefault(key, _Creation())
        self._creations.move_to_end(key)
        while len(self._creations) > MOST:
            self._creations.popitem(last=False)
        return found


CARRY_OUT_S = 20.0
"""How long a command may take in all, its calls waiting for their turns. The next try goes on where this one ended."""


class Deployer(ABC):
    """Carries commands out; on the event loop.

    Parameters
    ----------
    objects
        Where objects are written.
    options, templates
        What deployments become.
    """

    def __init__(self, objects: Objects, options: Options, templates: Templates) -> None:
        self._objects = objects
        self._options = options
        self._templates = templates
        self._written = Written()

    @property
    def kinds(self) -> tuple[KindName, ...]:
        """What it may write."""
        return kinds_of(self._templates)

    @abstractmethod
    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return what a deployment becomes; raises `RejectedError` when it cannot."""

    @abstractmethod
    async def create(self, deployment: Deployment) -> Sequence[str]:
        """Write all objects of a deployment; return the names of what somebody else has to make of them."""

    @abstractmethod
    async def remove(self, removal: Removal) -> None:
        """Delete all objects of an attempt."""

    @abstractmethod
    def there(self, key: Key) -> Collection[Place]:
        """Return what is known to be there of an attempt, where its objects are written."""

    def not_seen(self) -> Collection[str]:
        """Return the kinds that cannot be listed where objects are written, though not in the cluster itself."""
        return ()

    async def settled(self, awaited: Sequence[str]) -> None:  # noqa: B027  # most have nobody else to wait for
        """Wait until others have made what is named; raises `UnavailableError` when they do not."""

    async def carry_out(self, command: Command) -> Answer:
        """Carry out a command.

        Raises
        ------
        UnavailableError
            When it is not known whether it was, or it may be a little later.
        """
        before = self._objects.answered
        try:
            async with asyncio.timeout(CARRY_OUT_S):
                return await self._carry_out(command)
        except TimeoutError:
            if self._objects.answered > before:  # of this one, or of others that came first
                return Answer(done=False, reason="not all of it is written yet", underway=True)
            raise UnavailableError(f"it was not carried out within {CARRY_OUT_S:g} s") from None
        except NotThereError as error:  # another node may do
            return Answer(done=False, refused=True, reason=error.message)
        except RejectedError as error:
            return Answer(done=False, refused=True, reason=error.message, everywhere=True)
        except ApiError as error:
            if error.passing:
                raise UnavailableError(str(error)) from None
            return Answer(done=False, refused=True, reason=str(error), everywhere=True)

    async def _carry_out(self, command: Command) -> Answer:
        key = key_of(command)
        if isinstance(command, Removal):
            await self.remove(command)
            self._written.forget(key)
            return Answer(done=True)
        awaited = await self.create(command)
        try:
            await self.settled(awaited)
        except UnavailableError as error:
            self._written.lose(key, self.there(key))
            return Answer(done=False, reason=str(error), underway=True)
        self._written.complete(key)
        return Answer(done=True)

    async def write(self, key: Key, manifests: Sequence[Manifest]) -> None:
        """Write objects of an attempt at the same time.

        Those that an earlier try wrote are passed over until all are written: an attempt may have thousands.
        """
        left = [each for each in manifests if not self._written.is_answered(key, name_of(each))]
        await together((partial(self._write, key, each) for each in left), OF_ONE)

    async def write_in_order(self, key: Key, manifests: Sequence[Manifest]) -> None:
        """Write what runs after what it needs: services, claims and whatever else runs nothing itself."""
        await self.write(key, [each for each in manifests if not each.replicas])
        await self.write(key, [each for each in manifests if each.replicas])

    async def _write(self, key: Key, manifest: Manifest) -> None:
        full_name = f"{self._options.namespace}/{manifest.name}"
        place = ("", full_name)

        def begun(kind: str) -> None:
            nonlocal place
            place = (kind, full_name)
            self._written.begun(key, place)

        await self._objects.write(manifest.pinned(), begun, create_only=manifest.create_only)
        self._written.answered(key, name_of(manifest), place)


def name_of(manifest: Manifest) -> Name:
    """Return what tells an object of an attempt from all others of it."""
    return str(manifest.body["apiVersion"]), manifest.kind, manifest.name


def key_of(command: Command) -> Key:
    """Return which attempt a command is about, and in which cluster."""
    return command.job_id, command.attempt, command.cluster


class Direct(Deployer):
    """Carries commands out in one cluster.

    Parameters
    ----------
    view
        What is there.
    """

    def __init__(self, objects: Objects, view: ClusterView, options: Options, templates: Templates) -> None:
        super().__init__(objects, options, templates)
        self._view = view

    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return what a deployment becomes; raises `RejectedError` when it cannot."""
        return render(deployment, self._options, self._templates)

    async def create(self, deployment: Deployment) -> Sequence[str]:
        """Write all objects, in their order; nobody else is waited for."""
        await self.write_in_order(key_of(deployment), self.manifests(deployment))
        return ()

    def there(self, key: Key) -> Collection[Place]:
        """Return what the view has of an attempt."""
        return self._view.objects_of(key[:2])

    async def remove(self, removal: Removal) -> None:
        """Delete what the view has of it, and what was written that the view may not have yet."""
        key = key_of(removal)
        await self._objects.delete({*self.there(key), *self._written.places(key)})
