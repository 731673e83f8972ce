"""Registry of templates by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from seaway.adapters.kubernetes.templates import plain, pytorch, ray, volcano
from seaway.adapters.kubernetes.templates.context import Context, TemplateOptions
from seaway.adapters.kubernetes.templates.environment import forbidden_variables
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.adapters.kubernetes.templates.names import require_free
from seaway.adapters.kubernetes.templates.pods import tolerations
from seaway.adapters.kubernetes.templates.runtime import forbidden_objects
from seaway.domain.deployment import ADDRESS, PORT, Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec, ServiceType
from seaway.domain.reasons import Reason
from seaway.domain.runtime import RestartPolicy
from seaway.domain.tenancy import unknown_name


class KindName(NamedTuple):
    """A kind of objects, as in a manifest."""

    version: str
    """Value of ``apiVersion``, such as ``apps/v1``."""

    kind: str
    """Value of ``kind``."""

    @property
    def qualified(self) -> str:
        """Kind and group, as in ``Job.batch``."""
        group = self.version.rpartition("/")[0]
        return f"{self.kind}.{group}" if group else self.kind


@dataclass(frozen=True, slots=True)
class Template:
    """Kind of workload.

    Attributes
    ----------
    purpose
        Its purpose in one line.
    render
        Returns the objects of a deployment.
    requires
        Fields that a job must set.
    needs
        Kinds that a cluster must have besides those of Kubernetes, as ``kind.group``.
    single_cluster
        True if all replicas must be in one cluster. They are then placed together or not placed.
    restarts
        True if ended containers are always restarted, because the workload runs until it is stopped.
    direct_only
        True if it must be deployed without Karmada, which would undo the changes of a controller in the cluster.
    writes
        Kinds of its objects, besides services and device claims, which every template may write.
    loosens_pods
        True if its pods fail the Pod Security Standard "restricted".
    ranks
        True if it gives each replica its rank, so that a job can be a ring over clusters.
    expose
        Type of the service of jobs that choose none; None for the operator's default.
    lacks
        Fields of jobs that it cannot apply.
    ends_in_parts
        True for an operator's own template whose completed replicas never run again while their objects exist.
    """

    name: str
    purpose: str
    render: Callable[[Context], list[Manifest]]
    requires: tuple[str, ...] = ("run.image",)
    needs: tuple[str, ...] = ()
    single_cluster: bool = False
    restarts: bool = False
    direct_only: bool = False
    writes: tuple[KindName, ...] = ()
    loosens_pods: bool = False
    ranks: bool = False
    expose: ServiceType | None = None
    lacks: frozenset[str] = frozenset()
    ends_in_parts: bool = False


ROUTES = {ServiceType.INGRESS: KindName(*plain.INGRESS), ServiceType.HTTP_ROUTE: KindName(*plain.HTTP_ROUTE)}
"""Kinds of the objects that lead clients of a host name to a service."""

Templates = Mapping[str, Template]

_FULL = ("run.image", "run.command")
_JOB = (KindName("batch/v1", "Job"),)

_RAY_LACKS = frozenset({"restart_policy", "max_restarts", "time_limit_warning"})
"""Fields of jobs whose containers KubeRay starts itself."""

BUILT_IN: Templates = {
    each.name: each
    for each in (
        Template("job", "work that ends by itself", plain.render_job, writes=_JOB, ranks=True),
        Template(
            "deployment",
            "a service that runs until it is stopped",
            plain.render_deployment,
            restarts=True,
            writes=(KindName("apps/v1", "Deployment"),),
        ),
        Template(
            "torchrun",
            "distributed PyTorch, without an operator",
            pytorch.render_torchrun,
            _FULL,
            writes=_JOB,
            ranks=True,
        ),
        Template(
            "pytorchjob",
            "distributed PyTorch by Kubeflow's training operator",
            pytorch.render_pytorchjob,
            needs=("PyTorchJob.kubeflow.org",),
            single_cluster=True,
            writes=(KindName("kubeflow.org/v1", "PyTorchJob"),),
            ranks=True,
        ),
        Template(
            "raycluster",
            "a Ray cluster that stays",
            ray.render_raycluster,
            needs=("RayCluster.ray.io",),
            single_cluster=True,
            restarts=True,
            writes=(KindName("ray.io/v1", "RayCluster"),),
            lacks=_RAY_LACKS,
        ),
        Template(
            "rayjob",
            "a Ray cluster for one job",
            ray.render_rayjob,
            _FULL,
            needs=("RayJob.ray.io",),
            single_cluster=True,
            writes=(KindName("ray.io/v1", "RayJob"),),
            lacks=_RAY_LACKS,
        ),
        Template(
            "volcanojob",
            "Volcano job: all replicas start together",
            volcano.render,
            needs=("Job.batch.volcano.sh",),
            writes=(KindName("batch.volcano.sh/v1alpha1", "Job"),),
        ),
        Template(
            "kueue",
            "Kueue workload: admitted within its quota",
            plain.render_kueue,
            needs=("Workload.kueue.x-k8s.io",),
            direct_only=True,
            writes=_JOB,
        ),
    )
}


def render(deployment: Deployment, options: TemplateOptions, templates: Templates = BUILT_IN) -> list[Manifest]:
    """Return the objects of a deployment, in the order of creation.

    Raises
    ------
    RejectedError
        When the template cannot render the job.
    """
    template = _template(deployment.spec, templates)
    forbidden = forbidden_variables(deployment.spec), forbidden_objects(deployment.spec, options.mounting)
    for error in chain(_missing(deployment.spec, template, options), *forbidden, _lacking(deployment.spec, template)):
        raise error
    ring = deployment.spec.ring and template.ranks
    if (
        template.single_cluster
        and not ring
        and sum(not each.leaving for each in deployment.placements) < deployment.spec.replicas
    ):
        raise RejectedError(
            Reason("one_cluster_template", template=template.name),
            where="template",
        )
    return template.render(Context.of(deployment, options))


def problems(spec: JobSpec, options: TemplateOptions, templates: Templates = BUILT_IN) -> list[RejectedError]:
    """Return the errors of a job that are independent of its placement."""
    try:
        template = _template(spec, templates)
    except RejectedError as error:
        return [error]
    found = [*_missing(spec, template, options), *forbidden_variables(spec), *_unexposable(spec, template, options)]
    found += forbidden_objects(spec, options.mounting)
    found += _lacking(spec, template)
    found += _unconnectable(spec, template, options, templates) if spec.ring else ()
    for check in (lambda: require_free(spec.labels), lambda: tolerations(spec.demand.nodes.tolerations)):
        try:
            check()
        except RejectedError as error:
            found.append(error)
    return found


def _unconnectable(
    spec: JobSpec, template: Template, options: TemplateOptions, templates: Templates
) -> Iterator[RejectedError]:
    """Yield the reasons why replicas of a ring cannot be connected."""
    if not template.ranks:
        ranked = ", ".join(each.name for each in templates.values() if each.ranks)
        yield RejectedError(Reason("needs_ranks", template=template.name, ranked=ranked), where="spread")
    env = dict(spec.run.env)
    if not options.exposure.ring and ADDRESS not in env:
        why = Reason("address_needed", name=ADDRESS)
        yield RejectedError(why, where="run.env")
    if PORT in env and ADDRESS not in env:
        why = Reason("port_set_by_seaway", port=PORT, address=ADDRESS)
        yield RejectedError(why, where="run.env")


def _lacking(spec: JobSpec, template: Template) -> Iterator[RejectedError]:
    """Yield an error for each field of a job that its template cannot apply."""
    runtime = spec.runtime
    given = {
        "setup": bool(runtime.setup),
        "time_limit_warning": runtime.warning is not None,
        "restart_policy": runtime.restart_policy is not RestartPolicy.NEVER,
        "max_restarts": runtime.max_restarts is not None,
        "run.pod": bool(spec.run.pod),
    }
    for field in sorted(template.lacks):
        if given[field]:
            yield RejectedError(Reason("not_by_template", template=template.name), where=field)


def _unexposable(spec: JobSpec, template: Template, options: TemplateOptions) -> Iterator[RejectedError]:
    """Yield the reasons why clients outside the cluster cannot reach a job as it demands."""
    exposure, kind, host = options.exposure, spec.expose.type, spec.expose.host
    if kind and kind not in exposure.types:
        allowed = ", ".join(each.value for each in exposure.types)
        yield RejectedError(Reason("exposure_forbidden", value=kind.value, allowed=allowed), where="expose.type")
    kind = kind or template.expose or exposure.default
    if not spec.run.ports or not kind.by_host:
        return
    if not host and not exposure.domain:
        yield RejectedError(Reason("host_needed", value=kind.value), where="expose.host")
    if host and exposure.domain and not f".{host}".endswith(f".{exposure.domain}"):
        yield RejectedError(Reason("host_outside", value=host, domain=exposure.domain), where="expose.host")


def _template(spec: JobSpec, templates: Templates) -> Template:
    if spec.template not in templates:
        raise unknown_name("template", spec.template, tuple(templates))
    return templates[spec.template]


def _missing(spec: JobSpec, template: Template, options: TemplateOptions) -> Iterator[RejectedError]:
    for field in template.requires:
        if not _field(spec, field) and not (field == "run.image" and options.default_image):
            yield RejectedError(Reason("needed_for_template", template=template.name), where=field)


def _field(spec: object, path: str) -> object:
    for name in path.split("."):
        spec = getattr(spec, name)
    return spec
