"""Deploying through Karmada: workloads and policies into its control plane, and bindings told where they go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from seaway.adapters.kubernetes.collect.owned import Owned
from seaway.adapters.kubernetes.deploy.bindings import Bindings
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.deploy.written import Written
from seaway.adapters.kubernetes.templates.karmada import binding, for_karmada
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.options import Options
from seaway.adapters.kubernetes.templates.registry import Templates, render
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError

AT_ONCE = 16
BIND_S = 10.0
"""How long Karmada may take to make a binding of what it was given."""


class Karmada:
    """Carries commands out for one member, through Karmada.

    Parameters
    ----------
    objects
        The objects of Karmada's control plane.
    bindings
        Its bindings.
    owned
        What is there of each attempt.
    """

    def __init__(
        self, objects: Objects, bindings: Bindings, owned: Owned, options: Options, templates: Templates
    ) -> None:
        self._objects = objects
        self._bindings = bindings
        self._owned = owned
        self._options = options
        self._templates = templates
        self._free = asyncio.Semaphore(AT_ONCE)
        self._written = Written()

    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return what a deployment becomes in Karmada; raises `RejectedError` when it cannot."""
        return for_karmada(deployment, self._options, render(deployment, self._options, self._templates))

    async def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Carry out commands, each for itself; return an answer for each."""
        return await asyncio.gather(*map(self._carry_out, commands))

    async def _carry_out(self, command: Command) -> Answer:
        async with self._free:
            try:
                if isinstance(command, Removal):
                    await self._remove(command)
                else:
                    await self._create(command)
            except RejectedError as error:
                return Answer(done=False, refused=True, reason=error.message)
            except UnavailableError as error:
                return Answer(done=False, reason=str(error))
            return Answer(done=True)

    async def _create(self, deployment: Deployment) -> None:
        """Write everything in its order, and see it bound."""
        plain = render(deployment, self._options, self._templates)
        key = (deployment.job_id, deployment.attempt, deployment.cluster)
        written = self._written.of(key)
        for manifest in for_karmada(deployment, self._options, plain):
            kind = await self._objects.write(manifest.body, create_only=manifest.create_only)
            written.add((kind, f"{self._options.namespace}/{manifest.name}"))
        names = [f"{self._options.namespace}/{binding(deployment, each).name}" for each in plain]
        await self._bindings.bound(names, BIND_S)

    async def _remove(self, removal: Removal) -> None:
        """Delete workloads with their policies: deleting a policy alone leaves what it sent."""
        key = (removal.job_id, removal.attempt, removal.cluster)
        places = self._owned.of(key) | self._written.of(key)
        policies = {each for each in places if each[0].startswith("/apis/policy.karmada.io/")}
        await self._objects.delete(places - policies)
        await self._objects.delete(policies)
        self._written.forget(key)
