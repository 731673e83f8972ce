"""What jobs can become in their clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec

DEPLOYMENT = "deployment"
"""The template of services, which run until they are stopped."""


class Templates(Protocol):
    """The kinds of workload that a job can ask for. Every method may be called from any thread."""

    def purposes(self) -> Mapping[str, str]:
        """Return what each is for, by name, one line each."""

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job with what its template says of it: whether it stays together, and whether it comes back."""

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:
        """Say what keeps a job from becoming what it names, wherever it would go; nothing for a name not known."""


class PlainTemplates:
    """What every kind of cluster has."""

    def purposes(self) -> Mapping[str, str]:
        """Return what each is for."""
        return {"job": "work that ends by itself", DEPLOYMENT: "a service that runs until it is stopped"}

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Let services come back."""
        return spec.with_template_traits(single_cluster=spec.single_cluster, restarts=spec.template == DEPLOYMENT)

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:  # any job will do
        """Find nothing wrong."""
        return ()
