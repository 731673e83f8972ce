"""What every way of deploying has in common: commands at the same time, each for itself, and what was written."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.deploy.written import Written
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.options import Options
from seaway.adapters.kubernetes.templates.registry import Templates
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError

AT_ONCE = 16
"""Commands that are carried out at the same time."""


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
        self._free = asyncio.Semaphore(AT_ONCE)

    @abstractmethod
    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return what a deployment becomes; raises `RejectedError` when it cannot."""

    @abstractmethod
    async def create(self, deployment: Deployment) -> None:
        """Write all objects of a deployment."""

    @abstractmethod
    async def remove(self, removal: Removal) -> None:
        """Delete all objects of an attempt."""

    async def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Carry out commands, each for itself; return an answer for each."""
        return await asyncio.gather(*map(self._carry_out, commands))

    async def _carry_out(self, command: Command) -> Answer:
        async with self._free:
            try:
                await (self.remove(command) if isinstance(command, Removal) else self.create(command))
            except RejectedError as error:
                return Answer(done=False, refused=True, reason=error.message)
            except UnavailableError as error:
                return Answer(done=False, reason=str(error))
            return Answer(done=True)
