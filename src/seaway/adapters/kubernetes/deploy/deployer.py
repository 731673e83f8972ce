"""What every way of deploying has in common: commands at the same time, each for itself, and what was written."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import partial

from seaway.adapters.kubernetes.collect.kinds import kinds_of
from seaway.adapters.kubernetes.collect.owned import Key, Place
from seaway.adapters.kubernetes.connection.errors import ApiError
from seaway.adapters.kubernetes.deploy.together import together
from seaway.adapters.kubernetes.deploy.writing import OF_ONE, Objects
from seaway.adapters.kubernetes.deploy.written import Name, Written
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.options import Options
from seaway.adapters.kubernetes.templates.pinning import NotThereError
from seaway.adapters.kubernetes.templates.registry import KindName, Templates
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError

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
