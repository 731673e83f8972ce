"""Interface to the workload templates of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec

DEPLOYMENT = "deployment"
"""Template of services, which run until they are stopped."""


def _no_token(_: Deployment) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Way in which pods get the working directories of jobs.

    Attributes
    ----------
    url
        URL of the API for pods; empty if they cannot reach it.
    image
        Image with a shell and curl, wget or Python, which fetches the archive; empty for the image of the job.
    token
        Returns the token of a deployment for its archive. It is always the same, because pods must not change.
    """

    url: str = ""
    image: str = ""
    token: Callable[[Deployment], str] = _no_token


NO_DELIVERY = Delivery()


class Templates(Protocol):
    """Workload templates for jobs. Any thread can call every method."""

    def purposes(self) -> Mapping[str, str]:
        """Return the one-line purpose of each template, by name."""

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job with the traits of its template: single cluster, and restarts."""

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:
        """Return the reasons why no cluster supports the template for a job; none for an unknown template."""


class PlainTemplates:
    """Templates that every cluster supports."""

    def purposes(self) -> Mapping[str, str]:
        """Return the purpose of each template."""
        return {"job": "work that ends by itself", DEPLOYMENT: "a service that runs until it is stopped"}

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job; a service gets restarts."""
        return spec.with_template_traits(single_cluster=spec.single_cluster, restarts=spec.template == DEPLOYMENT)

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:
        """Return the reason why a service cannot be a ring; no other problems."""
        if spec.ring and spec.template == DEPLOYMENT:
            said = f"needs ranks, which {spec.template} does not give: use job"
            return [RejectedError(said, where="spread")]
        return ()
