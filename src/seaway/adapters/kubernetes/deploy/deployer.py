"""Common part of all deployers: concurrent commands, and a log of written objects."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from seaway.adapters.kubernetes.collect.owned import AttemptKey, ObjectKey, kinds_of
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.deploy.namespaces import TenantNamespaces
from seaway.adapters.kubernetes.deploy.writing import MAX_WRITES_PER_ATTEMPT, Objects, run_concurrently
from seaway.adapters.kubernetes.templates.context import TemplateOptions
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import TENANT
from seaway.adapters.kubernetes.templates.pinning import NotThereError
from seaway.adapters.kubernetes.templates.registry import KindName, Templates, render
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.placement import Placement

MAX_ATTEMPTS = 10_000

Name = tuple[str, str, str]
"""Version, kind and name of an object."""


@dataclass(slots=True)
class _Creation:
    """Progress of creating an attempt's objects.

    Attributes
    ----------
    locations
        Keys of the objects that were written or may have been written without an answer.
    answered
        Keys of confirmed objects, which are not written again before all objects are written.
    placements
        Replicas for which they were written.
    """

    locations: set[ObjectKey] = field(default_factory=set)
    answered: dict[Name, ObjectKey] = field(default_factory=dict)
    placements: tuple[Placement, ...] = ()


class WriteLog:
    """Log of the objects that were written for the latest attempts."""

    def __init__(self) -> None:
        self._creations: OrderedDict[AttemptKey, _Creation] = OrderedDict()

    def locations(self, key: AttemptKey) -> frozenset[ObjectKey]:
        """Return the keys of objects that may have been written for an attempt."""
        found = self._creations.get(key)
        return frozenset(found.locations) if found else frozenset()

    def intend(self, key: AttemptKey, placements: tuple[Placement, ...]) -> None:
        """Record the replicas of an attempt. For others than before, all objects are written again."""
        found = self._of(key)
        if found.placements != placements:
            found.answered.clear()
            found.placements = placements

    def begun(self, key: AttemptKey, place: ObjectKey) -> None:
        """Record that an object is about to be written."""
        self._of(key).locations.add(place)

    def answered(self, key: AttemptKey, name: Name, place: ObjectKey) -> None:
        """Record that an object was written."""
        self._of(key).answered[name] = place

    def is_answered(self, key: AttemptKey, name: Name) -> bool:
        """Report whether an earlier, incomplete try wrote an object."""
        found = self._creations.get(key)
        return found is not None and name in found.answered

    def retain(self, key: AttemptKey, there: Collection[ObjectKey]) -> None:
        """Keep only existing objects as written, so that the next try writes the missing ones again."""
        if found := self._creations.get(key):
            found.answered = {name: place for name, place in found.answered.items() if place in there}

    def complete(self, key: AttemptKey) -> None:
        """Record that all objects of an attempt are written.

        A later request writes all of them again, because some were lost.
        """
        if key in self._creations:
            self._creations[key].answered.clear()

    def forget(self, key: AttemptKey) -> None:
        """Remove an attempt."""
        self._creations.pop(key, None)

    def _of(self, key: AttemptKey) -> _Creation:
        found = self._creations.setdefault(key, _Creation())
        self._creations.move_to_end(key)
        while len(self._creations) > MAX_ATTEMPTS:
            self._creations.popitem(last=False)
        return found


COMMAND_TIMEOUT_S = 20.0
"""Timeout of a command in seconds, including waits for a slot. The next try continues with the remaining objects."""


class Deployer(ABC):
    """Executor of commands. It runs on the event loop.

    Parameters
    ----------
    objects
        Objects of the API server to write to.
    namespaces
        Namespaces of the API server.
    options, templates
        Input of rendering.
    """

    recreates = False
    """True if a component creates objects again that were deleted in the cluster."""

    def __init__(
        self, objects: Objects, namespaces: TenantNamespaces, options: TemplateOptions, templates: Templates
    ) -> None:
        self._objects = objects
        self._namespaces = namespaces
        self._options = options
        self._templates = templates
        self._written = WriteLog()

    @property
    def kinds(self) -> tuple[KindName, ...]:
        """Kinds that it may write."""
        return kinds_of(self._templates)

    @abstractmethod
    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return the objects of a deployment; raise `RejectedError` if it cannot be rendered."""

    @abstractmethod
    async def create(self, deployment: Deployment) -> Sequence[str]:
        """Write all objects of a deployment; return the names of objects that others must create from them."""

    @abstractmethod
    async def remove(self, removal: Removal) -> None:
        """Delete all objects of an attempt."""

    @abstractmethod
    def existing(self, key: AttemptKey) -> Collection[ObjectKey]:
        """Return the known objects of an attempt in the API server that they are written to."""

    def unlistable(self) -> Collection[str]:
        """Return the kinds that cannot be listed in the objects' API server, except those of the cluster itself."""
        return ()

    def options_for(self, deployment: Deployment) -> TemplateOptions:
        """Return the options of a deployment: an attempt that exists stays in its namespace."""
        key = key_of(deployment)
        there = {name.partition("/")[0] for _, name in (*self.existing(key), *self._written.locations(key))}
        namespace = min(there) if there else self._namespaces.names.of(deployment.spec.tenant)
        return replace(self._options, namespace=namespace)

    async def prepare(self, deployment: Deployment, manifests: Sequence[Manifest]) -> None:
        """Prepare the namespace of new objects; raise as `TenantNamespaces.prepare`."""
        namespace, tenant = manifests[0].namespace, deployment.spec.tenant
        if namespace == self._namespaces.names.of(tenant):
            await self._namespaces.prepare(tenant)

    async def wait_for(self, awaited: Sequence[str]) -> None:  # noqa: B027  # most need no wait
        """Wait until other components have created the named objects; raise `UnavailableError` on a timeout."""

    async def carry_out(self, command: Command) -> Answer:
        """Execute a command.

        Raises
        ------
        UnavailableError
            When the result is unknown, or a retry may succeed.
        """
        before = self._objects.answered
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_S):
                return await self._carry_out(command)
        except TimeoutError:
            if self._objects.answered > before:  # calls of this command or of earlier ones
                return Answer(done=False, reason="not all of it is written yet", underway=True)
            raise UnavailableError(f"it was not carried out within {COMMAND_TIMEOUT_S:g} s") from None
        except NotThereError as error:  # another node may succeed
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
        self._written.intend(key, command.placements)
        awaited = await self.create(command)
        try:
            await self.wait_for(awaited)
        except UnavailableError as error:
            self._written.retain(key, self.existing(key))
            return Answer(done=False, reason=str(error), underway=True)
        self._written.complete(key)
        return Answer(done=True)

    async def write(self, key: AttemptKey, manifests: Sequence[Manifest]) -> None:
        """Write objects of an attempt concurrently.

        Skip objects that an earlier try wrote, until all are written, because an attempt may have thousands.
        """
        left = [each for each in manifests if not self._written.is_answered(key, name_of(each))]
        await run_concurrently((partial(self._write, key, each) for each in left), MAX_WRITES_PER_ATTEMPT)

    async def write_in_order(self, key: AttemptKey, manifests: Sequence[Manifest]) -> None:
        """Write services, claims and other passive objects first, then the workloads that require them."""
        await self.write(key, [each for each in manifests if not each.replicas])
        await self.write(key, [each for each in manifests if each.replicas])

    async def _write(self, key: AttemptKey, manifest: Manifest) -> None:
        full_name = f"{manifest.namespace}/{manifest.name}"
        place = ("", full_name)
        if manifest.absent:
            await self._objects.remove(manifest.body)
            self._written.answered(key, name_of(manifest), place)
            return

        def begun(kind: str) -> None:
            nonlocal place
            place = (kind, full_name)
            self._written.begun(key, place)

        async def restore() -> None:
            await self._namespaces.restore(manifest.namespace, manifest.body["metadata"]["labels"][TENANT])

        await self._objects.write(manifest.pinned(), begun, create_only=manifest.create_only, restore=restore)
        self._written.answered(key, name_of(manifest), place)


def name_of(manifest: Manifest) -> Name:
    """Return the version, kind and name of an object, which are unique in an attempt."""
    return str(manifest.body["apiVersion"]), manifest.kind, manifest.name


def key_of(command: Command) -> AttemptKey:
    """Return the attempt and cluster of a command."""
    return command.job_id, command.attempt, command.cluster


class DirectDeployer(Deployer):
    """Executor of commands in one cluster.

    Parameters
    ----------
    view
        View of the cluster.
    """

    def __init__(
        self,
        objects: Objects,
        namespaces: TenantNamespaces,
        view: ClusterView,
        options: TemplateOptions,
        templates: Templates,
    ) -> None:
        super().__init__(objects, namespaces, options, templates)
        self._view = view

    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return the objects of a deployment; raise `RejectedError` if it cannot be rendered."""
        return render(deployment, self.options_for(deployment), self._templates)

    async def create(self, deployment: Deployment) -> Sequence[str]:
        """Write all objects in order."""
        manifests = self.manifests(deployment)
        await self.prepare(deployment, manifests)
        await self.write_in_order(key_of(deployment), manifests)
        return ()

    def existing(self, key: AttemptKey) -> Collection[ObjectKey]:
        """Return the attempt's objects in the view."""
        return self._view.objects_of(key[:2])

    async def remove(self, removal: Removal) -> None:
        """Delete the attempt's objects in the view, and written objects that may be missing in the view."""
        key = key_of(removal)
        written = {each for each in self._written.locations(key) if self._view.may_be_of(key[:2], each)}
        await self._objects.delete({*self.existing(key), *written})
