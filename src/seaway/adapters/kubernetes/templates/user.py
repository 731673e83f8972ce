"""Custom templates: files of manifests with placeholders.

A file has one or more manifests, and exactly one of them is the workload. Seaway finds its pod template by kind, or by
the annotation ``seaway.io/pod-template`` with a JSON pointer. Seaway adds nodes, devices, resources and its labels
there. More annotations state whether ended containers are restarted (``seaway.io/restarts``), whether all replicas must
be in one cluster (``seaway.io/single-cluster``), and that Seaway adds a service of this type for the ports of a job
(``seaway.io/expose``). Seaway does not change other fields. The file is filled in once for each part of a deployment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Group, Manifest, Path, Pin, find
from seaway.adapters.kubernetes.templates.names import MAX_LABEL_LENGTH, REPLICAS
from seaway.adapters.kubernetes.templates.placeholders import PLACEHOLDERS, Sort, fill, used, values
from seaway.adapters.kubernetes.templates.plain import port_service, rank_0_service, suspend_completed
from seaway.adapters.kubernetes.templates.pods import pin_pod_template
from seaway.adapters.kubernetes.templates.registry import KindName, Template
from seaway.adapters.kubernetes.templates.safety import (
    ANNOTATIONS,
    EXPOSE,
    POINTER,
    RESTARTS,
    SINGLE_CLUSTER,
    Rules,
    kind_of,
    loosens_pods,
    read_manifests,
    violations,
)
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import ServiceType
from seaway.domain.numbers import whole_number
from seaway.domain.tenancy import require_name

_POD_TEMPLATES: Mapping[str, Path] = {
    "Deployment.apps": ("spec", "template"),
    "ReplicaSet.apps": ("spec", "template"),
    "StatefulSet.apps": ("spec", "template"),
    "Job.batch": ("spec", "template"),
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": ("spec", "leaderWorkerTemplate", "workerTemplate"),
}
"""Path of the pod template by kind; other kinds need the annotation."""

_EVERYWHERE = frozenset({"", "apps", "batch", "networking.k8s.io", "policy"})
"""API groups that every cluster has."""

_RESTARTING = frozenset(
    {"Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "LeaderWorkerSet.leaderworkerset.x-k8s.io"}
)
"""Kinds whose pods run until they are stopped, by default."""

RANKS, OF_RING = "ranks", ("rank_0", "rank_0_port", "ring")
"""Placeholders of ranks, and those that only templates with ranks use."""

ROOT: Path = ()

_FIELDS = {"image": "run.image", "command": "run.command"}
"""Fields that a job must set if the template uses the placeholder."""


@dataclass(frozen=True, slots=True)
class UserTemplate:
    """Template file that passed the validation.

    Attributes
    ----------
    manifests
        Its manifests with placeholders.
    workload
        Index of the manifest with the pod template.
    pods
        Path of the pod template in it.
    rules
        Rules for the template and for its filled-in manifests.
    expose
        Type of the service that Seaway adds; None for a service only if the job demands one.
    ranked
        True if it gives ranks, so that Seaway adds a service for replica 0.
    ends_in_parts
        True if its completed pods never run again, so that they release their devices before the others end.
    """

    name: str
    manifests: tuple[dict[str, Any], ...]
    workload: int
    pods: Path
    rules: Rules
    expose: ServiceType | None = None
    ranked: bool = False
    ends_in_parts: bool = False

    def render(self, context: Context) -> list[Manifest]:
        """Return the objects of a deployment: every manifest for each part, the workload last, without duplicates.

        Raises
        ------
        RejectedError
            When manifests with one name differ between parts, or a filled-in manifest violates the rules.
        """
        exposed = self.expose or context.spec.expose.type
        added = port_service(context, default=self.expose) if exposed else []
        added += rank_0_service(context, within=True) if self.ranked else []
        written = {(kind_of(each.body), each.name): each for each in added}
        for group in context.groups:
            known = values(context, group, ranked=self.ranked)
            for place in (*(each for each in range(len(self.manifests)) if each != self.workload), self.workload):
                for one in self._fill(place, known, context, group):
                    key = (kind_of(one.body), one.name)
                    if written.setdefault(key, one).body != one.body:
                        raise RejectedError(
                            f"template {self.name!r}: {one.kind} {one.name!r} differs from part to part; "
                            "put ${name} into its name"
                        )
        return list(written.values())

    def _fill(self, place: int, known: Mapping[str, Any], context: Context, group: Group) -> Iterator[Manifest]:
        body = fill(self.manifests[place], known)
        body["metadata"].pop("namespace", None)  # set below
        _require_safe(self.name, place, body, self.rules)
        of_part = place == self.workload or context.name(group.digest) in body["metadata"]["name"]
        over = place == self.workload and self.ends_in_parts and all(each.completed for each in group.placements)
        if over and not context.options.shared:
            return
        template = pin_pod_template(body, self.pods, context, group) if place == self.workload else None
        body["metadata"] = _marked(body["metadata"], context, group if of_part else None)
        if template is None:
            del body["metadata"]["annotations"][REPLICAS]  # it runs no replica
            yield Manifest(body)
            return
        if over:
            suspend_completed(body)
        yield from template.claims
        yield Manifest(body, template.pins, group.replicas)


def read_template(name: str, text: str, rules: Rules) -> Template:
    """Parse and validate a template.

    Parameters
    ----------
    name
        Name of the template.

    Raises
    ------
    RejectedError
        When the template is invalid, with all errors and their positions in the manifests.
    """
    require_name("template", name)
    manifests = read_manifests(text)
    errors = list(_problems(manifests, rules))
    workload, pods = 0, ROOT
    try:
        workload, pods = _find_workload(manifests)
    except RejectedError as error:
        errors.append(error)
    else:
        chosen = manifests[workload]
        found = (*_structure_problems(chosen, pods), *_ambiguities(chosen), *_unranked(manifests, chosen))
        errors += [_at(workload, chosen, each) for each in found]
    if errors:
        _reject(name, errors)
    words = {word for manifest in manifests for word, _, _ in used(manifest)}
    expose = find(manifests[workload], ("metadata", "annotations", EXPOSE))
    exposed = ServiceType(expose) if expose else None
    ranked = RANKS in words
    purpose = text.partition("\n")[0].removeprefix("#").strip() if text.startswith("#") else "of the operator's own"
    requires = tuple(field for word, field in _FIELDS.items() if word in words)
    needs = tuple(dict.fromkeys(kind for kind in map(kind_of, manifests) if kind.partition(".")[2] not in _EVERYWHERE))
    says = manifests[workload]
    restarts, together = _flag(says, RESTARTS, otherwise=kind_of(says) in _RESTARTING), _flag(says, SINGLE_CLUSTER)
    in_parts = not restarts and _ends_in_parts(says)
    made = UserTemplate(name, tuple(manifests), workload, pods, rules, exposed, ranked, in_parts)
    writes = tuple(dict.fromkeys(KindName(str(each["apiVersion"]), str(each["kind"])) for each in manifests))
    loosens = loosens_pods(find(says, (*pods, "spec")))
    traits = (requires, needs, together, restarts)
    lacks = frozenset(
        {"restart_policy", "run.pod"} | (set() if "command" in words else {"setup", "time_limit_warning"})
    )
    made_of = Template(name, purpose[:200], made.render, *traits, writes=writes, loosens_pods=loosens, expose=exposed)
    return replace(made_of, ranks=ranked, lacks=lacks, ends_in_parts=in_parts)


# ---------------------------------------------------------------- checking


def _problems(manifests: list[dict[str, Any]], rules: Rules) -> Iterator[RejectedError]:
    for place, manifest in enumerate(manifests):
        found = [*violations(manifest, rules), *_forbidden_variables(manifest), *_name_problems(manifest)]
        yield from (_at(place, manifest, error) for error in found)


def _forbidden_variables(manifest: dict[str, Any]) -> Iterator[RejectedError]:
    for word, alone, path in used(manifest):
        where = Pin(path, None).pointer
        if word not in PLACEHOLDERS:
            known = ", ".join(PLACEHOLDERS)
            yield RejectedError(f"unknown placeholder {word[:60]!r}; available: {known}", where=where)
        elif not alone and PLACEHOLDERS[word].sort in (Sort.TEXT, Sort.LIST):
            yield RejectedError(f"${{{word}}} must be the whole value, not part of a longer text", where=where)


def _name_problems(manifest: dict[str, Any]) -> Iterator[RejectedError]:
    for field in (("metadata", "labels"), ("metadata", "annotations")):
        if not isinstance(find(manifest, field), dict | None):
            yield RejectedError("must have fields", where=Pin(field, None).pointer)
    name = find(manifest, ("metadata", "name"))
    if not isinstance(name, str) or not any(each in name for each in ("${name}", "${deployment_name}")):
        yield RejectedError(
            "must contain ${name} or ${deployment_name}, so that names of jobs differ", where="/metadata/name"
        )


def _find_workload(manifests: list[dict[str, Any]]) -> tuple[int, Path]:
    """Return the index of the manifest with the pod template, and the path of the pod template."""
    said = [place for place, each in enumerate(manifests) if _pointer(each) is not None]
    known = [place for place, each in enumerate(manifests) if kind_of(each) in _POD_TEMPLATES]
    chosen = said or known
    if len(chosen) != 1:
        what = "none has" if not chosen else f"{len(chosen)} have"
        raise RejectedError(
            f"exactly one manifest must have the pod template, but {what} one: mark it by the annotation "
            f"{POINTER} with a JSON pointer, like /spec/template"
        )
    manifest = manifests[chosen[0]]
    pointer = _pointer(manifest)
    return chosen[0], _POD_TEMPLATES[kind_of(manifest)] if pointer is None else _path(pointer, manifest)


def _structure_problems(manifest: dict[str, Any], path: Path) -> Iterator[RejectedError]:
    """Yield the errors that prevent a workload from being filled in."""
    containers = find(manifest, (*path, "spec", "containers"))
    if not isinstance(containers, list) or not containers or not all(isinstance(each, dict) for each in containers):
        yield RejectedError("no pod template with containers found here", where=Pin(path, None).pointer)
        containers = []
    first = find(manifest, (*path, "spec", "initContainers"))
    if first is not None and not (isinstance(first, list) and all(isinstance(each, dict) for each in first)):
        yield RejectedError("must be a list of containers", where=Pin((*path, "spec", "initContainers"), None).pointer)
    fields = [(*path, *field) for field in _MERGED]
    fields += [(*path, "spec", "containers", place, *field) for place in range(len(containers)) for field in _RESOURCES]
    for field in fields:
        if not isinstance(find(manifest, field), dict | None):
            yield RejectedError("must have fields", where=Pin(field, None).pointer)
    for name in ("tolerations", "imagePullSecrets"):
        if not isinstance(find(manifest, (*path, "spec", name)), list | None):
            yield RejectedError("must be a list", where=Pin((*path, "spec", name), None).pointer)
    if not any(word == "replicas" for word, _, _ in used(manifest)):
        yield RejectedError("has no ${replicas}: use it for the number of replicas", where="/spec")
    if "${name}" not in str(find(manifest, ("metadata", "name"))):
        yield RejectedError("must contain ${name}: there is one object per part", where="/metadata/name")


def _ambiguities(manifest: dict[str, Any]) -> Iterator[RejectedError]:
    """Yield the errors of annotations with invalid values."""
    for key in (RESTARTS, SINGLE_CLUSTER):
        path = ("metadata", "annotations", key)
        if find(manifest, path) not in (None, *_BOOLEANS):
            yield RejectedError('must be "true" or "false"', where=Pin(path, None).pointer)
    path = ("metadata", "annotations", EXPOSE)
    if find(manifest, path) not in (None, *ServiceType):
        yield RejectedError(f"must be one of {', '.join(ServiceType)}", where=Pin(path, None).pointer)


def _unranked(manifests: list[dict[str, Any]], workload: dict[str, Any]) -> Iterator[RejectedError]:
    """Yield the errors of a template that needs ranks which its pods do not have."""
    words = {word for manifest in manifests for word, _, _ in used(manifest)}
    indexed = kind_of(workload) == "Job.batch" and find(workload, ("spec", "completionMode")) == "Indexed"
    if words & {RANKS, *OF_RING} and not indexed:
        yield RejectedError("must be a Job with completionMode Indexed, whose pods have ranks", where="/spec")
    elif words & {*OF_RING} and RANKS not in words:
        yield RejectedError("must use ${ranks} to give each pod its rank", where="/spec")


def _ends_in_parts(workload: dict[str, Any]) -> bool:
    """Report whether no pod of a workload runs after another one has completed in its place: a Job without queue."""
    return kind_of(workload) == "Job.batch" and find(workload, ("spec", "completions")) in (None, "${replicas}")


def _flag(manifest: dict[str, Any], key: str, *, otherwise: bool = False) -> bool:
    said = find(manifest, ("metadata", "annotations", key))
    return otherwise if said is None else _BOOLEANS[said]


_BOOLEANS = {"true": True, "false": False}
_MERGED: tuple[Path, ...] = (
    ("metadata",),
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec", "nodeSelector"),
)
_RESOURCES: tuple[Path, ...] = (("resources",), ("resources", "limits"), ("resources", "requests"))


def _pointer(manifest: dict[str, Any]) -> object:
    return find(manifest, ("metadata", "annotations", POINTER))


def _path(pointer: object, manifest: dict[str, Any]) -> Path:
    """Convert a JSON pointer to a path; list indexes become numbers."""
    steps: list[str | int] = []
    at: object = manifest
    for part in str(pointer).split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        index = whole_number(step) if isinstance(at, list) else None
        steps.append(step if index is None else index)
        at = find(at, (steps[-1],))
    return tuple(steps)


def _require_safe(name: str, place: int, body: dict[str, Any], rules: Rules) -> None:
    """Check that a filled-in manifest complies with the rules for templates."""
    errors = [_at(place, body, error) for error in violations(body, rules)]
    if len(body["metadata"]["name"]) > MAX_LABEL_LENGTH:
        errors.append(
            RejectedError(f"the name {body['metadata']['name']!r} is longer than {MAX_LABEL_LENGTH} characters")
        )
    if errors:
        _reject(name, errors)


# ---------------------------------------------------------------- filling


def _marked(metadata: dict[str, Any], context: Context, group: Group | None) -> dict[str, Any]:
    what, replicas = (group.digest, group.replicas) if group else (context.whole, context.replicas)
    own = context.metadata(what, replicas)
    annotations = {key: each for key, each in (metadata.get("annotations") or {}).items() if key not in ANNOTATIONS}
    return {
        **metadata,
        "namespace": own["namespace"],
        "labels": {**(metadata.get("labels") or {}), **own["labels"]},
        "annotations": {**annotations, **own["annotations"]},
    }


# ---------------------------------------------------------------- errors


def _at(place: int, manifest: dict[str, Any], error: RejectedError) -> RejectedError:
    """Add the manifest to an error."""
    kind = str(manifest.get("kind", "no kind"))[:60]
    return RejectedError(error.message, where=f"manifest {place + 1} ({kind}){error.where}")


def _joined_errors(errors: list[RejectedError]) -> RejectedError:
    return RejectedError(errors[0].message, where=errors[0].where, also=tuple(errors[1:]))


def _reject(name: str, errors: list[RejectedError]) -> NoReturn:
    raise _joined_errors([RejectedError(each.message, where=f"template {name!r}, {each.where}") for each in errors])
