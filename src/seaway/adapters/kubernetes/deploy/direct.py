"""Deploying straight into a cluster, for users without Karmada."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from seaway.adapters.kubernetes.collect.view import Attempt, ClusterView
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.deploy.written import Written
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.options import Options
from seaway.adapters.kubernetes.templates.registry import Templates, render
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError

AT_ONCE = 16
"""Commands that are carried out at the same time."""


class Direct:
    """Carries commands out in one cluster.

    Parameters
    ----------
    objects
        The cluster's objects.
    view
        What is there.
    options, templates
        What deployments become.
    """

    def __init__(self, objects: Objects, view: ClusterView, options: Options, templates: Templates) -> None:
        self._objects = objects
        self._view = view
        self._options = options
        self._templates = templates
        self._written = Written()
        self._free = asyncio.Semaphore(AT_ONCE)

    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return what a deployment becomes; raises `RejectedError` when it cannot."""
        return render(deployment, self._options, self._templates)

    async def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Carry out commands, each for itself; return an answer for each."""
        return await asyncio.gather(*map(self._carry_out, commands))

    async def _carry_out(self, command: Command) -> Answer:
        async with self._free:
            try:
                if isinstance(command, Removal):
                    await self._remove((command.job_id, command.attempt))
                else:
                    await self._create(command)
            except RejectedError as error:
                return Answer(done=False, refused=True, reason=error.message)
            except UnavailableError as error:
                return Answer(done=False, reason=str(error))
            return Answer(done=True)

    async def _create(self, deployment: Deployment) -> None:
        """Write all objects, in their order."""
        written = self._written.of((deployment.job_id, deployment.attempt))
        for manifest in self.manifests(deployment):
            body = manifest.pinned()
            kind = await self._objects.write(body, create_only=manifest.create_only)
            written.add((kind, f"{self._options.namespace}/{manifest.name}"))

    async def _remove(self, key: Attempt) -> None:
        await self._objects.delete(self._view.objects_of(key) | self._written.of(key))
        self._written.forget(key)
