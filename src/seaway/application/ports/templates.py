"""Interface to the workload templates of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec
from seaway.domain.reasons import Reason

DEPLOYMENT = "deployment"
"""Template of services, which run until they are stopped."""


def _no_token(_: Deployment) -> str:
    return ""


def _in_database(_: Deployment) -> bool:
    return False


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
    in_bucket
        Reports whether the archive of a deployment is in a bucket. It is always the same, too.
    bucket_url
        URL of the store of the bucket; empty for none.
    ca
        Certificate authorities that pods trust, PEM; empty for those of their image.
    """

    url: str = ""
    image: str = ""
    token: Callable[[Deployment], str] = _no_token
    in_bucket: Callable[[Deployment], bool] = _in_database
    bucket_url: str = ""
    ca: str = ""


NO_DELIVERY = Delivery()


class Templates(Protocol):
    """Workload templates for jobs. Any thread can call every method."""

    def purposes(self) -> Mapping[str, str]:
        """Return the one-line purpose of each template, by name."""

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job with the traits of its template: single cluster, and restarts."""

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:
        """Return the reasons why no cluster supports the template for a job; none for an unknown template."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a workload template.

    Attributes
    ----------
    purpose
        Its purpose in one line.
    single_cluster
        True if all replicas must be in one cluster.
    restarts
        True if ended containers are always restarted.
    ranks
        True if it gives replicas their ranks, so that they can be a ring over clusters.
    needs_image
        True if a job must name the image that it runs.
    """

    purpose: str
    single_cluster: bool = False
    restarts: bool = False
    ranks: bool = False
    needs_image: bool = False


PLAIN = {
    "job": Traits("work that ends by itself", ranks=True),
    DEPLOYMENT: Traits("a service that runs until it is stopped", restarts=True),
}
"""Templates that every cluster supports."""


class PlainTemplates:
    """Templates of clusters that accept any job, such as simulated ones.

    Parameters
    ----------
    kinds
        Traits of each template by name; None for those that every cluster supports.
    """

    def __init__(self, kinds: Mapping[str, Traits] | None = None) -> None:
        self._kinds = kinds or PLAIN

    def purposes(self) -> Mapping[str, str]:
        """Return the purpose of each template."""
        return {name: each.purpose for name, each in self._kinds.items()}

    def with_template_traits(self, spec: JobSpec) -> JobSpec:
        """Return a job with the traits of its template."""
        known = self._kinds.get(spec.template, Traits(""))
        together = spec.single_cluster or (known.single_cluster and not (spec.ring and known.ranks))
        return spec.with_template_traits(single_cluster=together, restarts=known.restarts)

    def problems(self, spec: JobSpec) -> Sequence[RejectedError]:
        """Return the reasons why a job cannot be a ring, or needs an image; no other problems."""
        known = self._kinds.get(spec.template)
        found = []
        if known and known.needs_image and not spec.run.image:
            found.append(RejectedError(Reason("needed_for_service", template=spec.template), where="run.image"))
        if spec.ring and known and not known.ranks:
            ranked = ", ".join(name for name, each in self._kinds.items() if each.ranks)
            said = Reason("needs_ranks", template=spec.template, ranked=ranked)
            found.append(RejectedError(said, where="spread"))
        return found
