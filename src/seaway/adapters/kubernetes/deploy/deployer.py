"""What every way of deploying has in common: commands at the same time, each for itself, and what was written."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from seaway.adapters.kubernetes.collect.owned import AttemptKey, ObjectKey, kinds_of
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.deploy.writing import MAX_WRITES_PER_ATTEMPT, Objects, run_concurrently
from seaway.adapters.kubernetes.templates.context import TemplateOptions
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.pinning import NotThereError
from seaway.adapters.kubernetes.templates.registry import KindName, Templates, render
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError

MAX_ATTEMPTS = 10_000

Name = tuple[str, str, str]
"""Version, kind and name of an object."""


@dataclass(slots=True)
class _Creation:
    """What became of creating an attempt's objects.

    Attributes
    ----------
    locations
        Where something was written, or may have been: whoever was not answered does not know.
    answered
        What need not be written again before all of it is, and where it stands.
    """

    locations: set[ObjectKey] = field(default_factory=set)
    answered: dict[Name, ObjectKey] = field(default_factory=dict)


class WriteLog:
    """Remembers the latest objects that were written."""

    def __init__(self) -> None:
        self._creations: OrderedDict[AttemptKey, _Creation] = OrderedDict()

    def locations(self, key: AttemptKey) -> frozenset[ObjectKey]:
        """Return where something of an attempt may have been written."""
        found = self._creations.get(key)
        return frozenset(found.locations) if found else frozenset()

    def begun(self, key: AttemptKey, place: ObjectKey) -> None:
        """Note that an object is about to be written."""
        self._of(key).locations.add(place)

    def answered(self, key: AttemptKey, name: Name, place: ObjectKey) -> None:
        """Note that an object was written."""
        self._of(key).answered[name] = place

    def is_answered(self, key: AttemptKey, name: Name) -> bool:
        """Tell whether an object was written by an earlier try, which was not able to write all of them."""
        found = self._creations.get(key)
        return found is not None and name in found.answered

    def retain(self, key: AttemptKey, there: Collection[ObjectKey]) -> None:
        """Note that of what was written only this is there: the rest is written again by the next try."""
        if found := self._creations.get(key):
            found.answered = {name: place for name, place in found.answered.items() if place in there}

    def complete(self, key: AttemptKey) -> None:
        """Note that all of an attempt was written: when it is asked for again, something of it was lost."""
        if key in self._creations:
            self._creations[key].answered.clear()

    def forget(self, key: AttemptKey) -> None:
        """Forget what was written for an attempt."""
        self._creations.pop(key, None)

    def _of(self, key: AttemptKey) -> _Creation:
        found = self._creations.setdefault(key, _Creation())
        self._creations.move_to_end(key)
        while len(self._creations) > MAX_ATTEMPTS:
            self._creations.popitem(last=False)
        return found


COMMAND_TIMEOUT_S = 20.0
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

    def __init__(self, objects: Objects, options: TemplateOptions, templates: Templates) -> None:
        self._objects = objects
        self._options = options
        self._templates = templates
        self._written = WriteLog()

    @property
    def kinds(self) -> tuple[KindName, ...]:
        """What it may write."""
        return kinds_of(self._templates)

    @abstractmethod
    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return what a deployment becomes; raises `RejectedError` when it cannot."""

    @abstractmethod
    async def create(self, deployment: Deployment) -> Sequence[str]:
        """Write all objects of a deployment; return the names of what another user has to make of them."""

    @abstractmethod
    async def remove(self, removal: Removal) -> None:
        """Delete all objects of an attempt."""

    @abstractmethod
    def existing(self, key: AttemptKey) -> Collection[ObjectKey]:
        """Return what is known to be there of an attempt, where its objects are written."""

    def unlistable(self) -> Collection[str]:
        """Return the kinds that cannot be listed where objects are written, though not in the cluster itself."""
        return ()

    async def wait_for(self, awaited: Sequence[str]) -> None:  # noqa: B027  # most have no one else to wait for
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
            async with asyncio.timeout(COMMAND_TIMEOUT_S):
                return await self._carry_out(command)
        except TimeoutError:
            if self._objects.answered > before:  # of this one, or of others that came first
                return Answer(done=False, reason="not all of it is written yet", underway=True)
            raise UnavailableError(f"it was not carried out within {COMMAND_TIMEOUT_S:g} s") from None
        except NotThereError as error:  # another node may do
            return Answer(done=False, refused=True, reason=error.message)
        except RejectedError as error:
            return Answer(done=False, refused=True, reason=error.message, everywhere=True)
        except ApiError as error:
            if error.transient:
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
            await self.wait_for(awaited)
        except UnavailableError as error:
            self._written.retain(key, self.existing(key))
            return Answer(done=False, reason=str(error), underway=True)
        self._written.complete(key)
        return Answer(done=True)

    async def write(self, key: AttemptKey, manifests: Sequence[Manifest]) -> None:
        """Write objects of an attempt at the same time.

        Those that an earlier try wrote are passed over until all are written: an attempt may have thousands.
        """
        left = [each for each in manifests if not self._written.is_answered(key, name_of(each))]
        await run_concurrently((partial(self._write, key, each) for each in left), MAX_WRITES_PER_ATTEMPT)

    async def write_in_order(self, key: AttemptKey, manifests: Sequence[Manifest]) -> None:
        """Write what runs after what it needs: services, claims and whatever else runs nothing itself."""
        await self.write(key, [each for each in manifests if not each.replicas])
        await self.write(key, [each for each in manifests if each.replicas])

    async def _write(self, key: AttemptKey, manifest: Manifest) -> None:
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


def key_of(command: Command) -> AttemptKey:
    """Return which attempt a command is about, and in which cluster."""
    return command.job_id, command.attempt, command.cluster


class DirectDeployer(Deployer):
    """Carries commands out in one cluster.

    Parameters
    ----------
    view
        What is there.
    """

    def __init__(self, objects: Objects, view: ClusterView, options: TemplateOptions, templates: Templates) -> None:
        super().__init__(objects, options, templates)
        self._view = view

    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return what a deployment becomes; raises `RejectedError` when it cannot."""
        return render(deployment, self._options, self._templates)

    async def create(self, deployment: Deployment) -> Sequence[str]:
        """Write all objects, in their order; no one else is waited for."""
        await self.write_in_order(key_of(deployment), self.manifests(deployment))
        return ()

    def existing(self, key: AttemptKey) -> Collection[ObjectKey]:
        """Return what the view has of an attempt."""
        return self._view.objects_of(key[:2])

    async def remove(self, removal: Removal) -> None:
        """Delete what the view has of it, and what was written that the view may not have yet."""
        key = key_of(removal)
        await self._objects.delete({*self.existing(key), *self._written.locations(key)})
