"""Deploying straight into a cluster, for users without Karmada."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from seaway.adapters.kubernetes.collect.owned import Key, Place
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.deploy.deployer import Deployer, key_of
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.options import Options
from seaway.adapters.kubernetes.templates.registry import Templates, render
from seaway.application.ports.backend import Removal
from seaway.domain.deployment import Deployment


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
