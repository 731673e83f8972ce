"""Deployment through Karmada: workloads and policies in its control plane, and clusters of bindings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.owned import AttemptKey, ObjectKey, OwnerIndex
from seaway.adapters.kubernetes.deploy.bindings import Bindings
from seaway.adapters.kubernetes.deploy.deployer import Deployer, key_of
from seaway.adapters.kubernetes.deploy.namespaces import TenantNamespaces
from seaway.adapters.kubernetes.deploy.writing import Objects
from seaway.adapters.kubernetes.templates.context import TemplateOptions
from seaway.adapters.kubernetes.templates.karmada import POLICY_API, binding, binding_name, content_policy, for_karmada
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.registry import Templates, render
from seaway.application.ports.backend import Answer, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.reasons import in_cluster

NAME = "Karmada"

BIND_TIMEOUT_S = 10.0
"""Maximum time for Karmada to create a binding, in seconds."""


class KarmadaNamespaces(TenantNamespaces):
    """Namespaces of Karmada's control plane. Karmada creates them in all members, with their content."""

    def content(self, namespace: str, tenant: str) -> list[dict[str, Any]]:
        """Return the objects of a tenant's namespace, and the policy that sends them to all members."""
        bodies = super().content(namespace, tenant)
        return [*bodies, content_policy(namespace, tenant, bodies)] if bodies else []


class KarmadaDeployer(Deployer):
    """Executor of commands for one member, through Karmada.

    Parameters
    ----------
    objects
        Objects of Karmada's control plane.
    bindings
        Karmada's bindings.
    owned
        Index of the objects of each attempt.
    health
        Health of the control plane's sources.
    """

    recreates = True

    def __init__(
        self,
        objects: Objects,
        namespaces: TenantNamespaces,
        bindings: Bindings,
        owned: OwnerIndex,
        health: Health,
        options: TemplateOptions,
        templates: Templates,
    ) -> None:
        super().__init__(objects, namespaces, options, templates)
        self._bindings = bindings
        self._owned = owned
        self._health = health

    def manifests(self, deployment: Deployment) -> list[Manifest]:
        """Return the objects of a deployment in Karmada; raise `RejectedError` if it cannot be rendered."""
        options = self.options_for(deployment)
        return for_karmada(deployment, options, render(deployment, options, self._templates))

    async def create(self, deployment: Deployment) -> Sequence[str]:
        """Write policies, then the objects that they select in order; return the bindings that Karmada must create.

        Raises
        ------
        UnavailableError
            When Karmada is not listed yet, or the content of the namespace has not reached the member.
        """
        self._require_listed()
        key = key_of(deployment)
        manifests = self.manifests(deployment)
        await self.prepare(deployment, manifests)
        policies = [each for each in manifests if each.body["apiVersion"] == POLICY_API]
        await self.write(key, [each for each in policies if not each.absent])
        selected = [each for each in manifests if each.body["apiVersion"] != POLICY_API]
        await self.write_in_order(key, selected)
        await self.write(key, [each for each in policies if each.absent])  # of workloads that are deleted now
        return [f"{each.namespace}/{binding(deployment, each).name}" for each in selected if not each.absent]

    async def prepare(self, deployment: Deployment, manifests: Sequence[Manifest]) -> None:
        """Prepare the namespace, and wait until its content is in the member, so that no pod starts without it."""
        await super().prepare(deployment, manifests)
        namespace, tenant = manifests[0].namespace, deployment.spec.tenant
        names = self._namespaces.names
        if names.per_tenant and namespace == names.of(tenant):
            bodies = [each for each in self._namespaces.content(namespace, tenant) if each["apiVersion"] != POLICY_API]
            awaited = [f"{namespace}/{binding_name(each)}" for each in bodies]
            await self._bindings.applied(awaited, deployment.cluster, BIND_TIMEOUT_S)

    def _require_listed(self) -> None:
        if not self._health.complete:
            raise UnavailableError(in_cluster("Karmada", self._health.unreachable_reason(0)))

    async def carry_out(self, command: Command) -> Answer:
        """Execute a command; raise the errors of `Deployer.carry_out`.

        If only Karmada refuses a valid deployment, mark the refusal as Karmada's, because it concerns all members.
        """
        answer = await super().carry_out(command)
        return replace(answer, by=NAME) if answer.refused and self._can_render(command) else answer

    def _can_render(self, command: Command) -> bool:
        """Report whether a command can be rendered for its member."""
        try:
            return isinstance(command, Deployment) and bool(self.manifests(command))
        except RejectedError:
            return False

    def existing(self, key: AttemptKey) -> Collection[ObjectKey]:
        """Return the attempt's objects in Karmada's control plane."""
        return self._owned.of(key)

    def unlistable(self) -> Collection[str]:
        """Return the kinds that cannot be listed in Karmada's control plane."""
        return self._health.unavailable()

    async def wait_for(self, awaited: Sequence[str]) -> None:
        """Wait until the bindings exist and have their cluster."""
        await self._bindings.bound(awaited, BIND_TIMEOUT_S)

    async def remove(self, removal: Removal) -> None:
        """Delete workloads, then their policies.

        If only a policy were deleted, its objects would remain in the members.

        Raises
        ------
        UnavailableError
            When Karmada is not listed yet, as shortly after a start. The objects are then unknown.
        """
        self._require_listed()
        key = key_of(removal)
        written = {each for each in self._written.locations(key) if self._owned.owner(each) in (None, key)}
        places = self._owned.of(key) | written
        policies = {each for each in places if each[0].startswith("/apis/policy.karmada.io/")}
        await self._objects.delete(places - policies)
        await self._objects.delete(policies)
