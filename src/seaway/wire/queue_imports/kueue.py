"""ClusterQueues, cohorts, resource flavors and local queues of Kueue.

A cohort becomes a queue, and its ClusterQueues become its children. The nominal quota is the guarantee. With the
borrowing limit, it is the limit; outside a cohort, it is also the limit.

References
----------
Kueue API ``kueue.x-k8s.io``, versions v1beta1 and v1beta2: ClusterQueue, Cohort, ResourceFlavor, LocalQueue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from seaway.domain.amounts import GPUS, model_resource, total_of
from seaway.domain.errors import RejectedError
from seaway.domain.gpu_models import label_model
from seaway.domain.queues import Backfill, Order, Preemption, Preempts, Reclaim
from seaway.wire.queue_imports.found import Fields, Found, FoundQueue, mapping, quantity

GROUP = "kueue.x-k8s.io/"

MODEL_LABELS = (
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name",
)  # fmt: skip
"""Node labels whose value is the model of the node's GPUs."""

NO_CHECKS = "there are no admission checks"
WITHIN = {
    "Never": Preemption.NEVER,
    "LowerPriority": Preemption.PREEMPT_LOWER_PRIORITY,
    "LowerOrNewerEqualPriority": Preemption.PREEMPT_LOWER_PRIORITY,
}
RECLAIM = {"Never": Reclaim.NEVER, "LowerPriority": Reclaim.GUARANTEE, "Any": Reclaim.GUARANTEE}
DIFFERS = {
    "LowerOrNewerEqualPriority": ("withinClusterQueue", "jobs of an equal priority are not displaced"),
    "LowerPriority": ("reclaimWithinCohort", "what others borrowed is taken back from jobs of any priority"),
}
REASONS = {
    "namespaceSelector": "a queue serves one tenant or all: seaway queue set NAME --tenant TENANT",
    "flavorFungibility": "the policy of the queue selects nodes",
    "admissionChecks": NO_CHECKS,
    "admissionChecksStrategy": NO_CHECKS,
    "admissionScope": "use the order fair, which serves the tenant with the least use first",
    "excludeResourcePrefixes": "a queue counts only the resources that it guarantees or limits",
    "nodeLabels": "let jobs require the label: seaway queue set NAME --allow-node-label KEY",
    "nodeTaints": "let jobs tolerate the taint: seaway queue set NAME --allow-taint KEY",
    "tolerations": "let jobs tolerate the taint: seaway queue set NAME --allow-taint KEY",
    "topologyName": "the policy of the queue selects nodes",
}


@dataclass(slots=True)
class _Quotas:
    """Quotas of an object; `unbounded` has the resources without a borrowing limit, `unlent` what others cannot use."""

    nominal: dict[str, int] = field(default_factory=dict)
    borrow: dict[str, int] = field(default_factory=dict)
    unbounded: set[str] = field(default_factory=set)
    unlent: dict[str, int] = field(default_factory=dict)

    def count(self, resource: str, nominal: int, borrow: int | None, lent: int | None) -> None:
        """Add the quota of a flavor."""
        if lent is not None and lent < nominal:
            self.unlent[resource] = self.unlent.get(resource, 0) + nominal - lent
        self.nominal[resource] = self.nominal.get(resource, 0) + nominal
        if borrow is None:
            self.unbounded.add(resource)
        else:
            self.borrow[resource] = self.borrow.get(resource, 0) + borrow

    def guarantee(self) -> dict[str, int]:
        """Return the nominal quotas that are not 0."""
        return {name: amount for name, amount in self.nominal.items() if amount}

    def lending_limit(self) -> dict[str, int]:
        """Return what others can use of the resources of which they cannot use all."""
        return {name: self.nominal[name] - unlent for name, unlent in self.unlent.items()}

    def limit(self, *, borrows: bool) -> dict[str, int]:
        """Return the largest amounts; without a cohort, the object cannot borrow."""
        if not borrows:
            return dict(self.nominal)
        return {name: self.nominal[name] + most for name, most in self.borrow.items() if name not in self.unbounded}


def read_kueue(objects: Iterable[Fields], found: Found) -> None:
    """Add the queues of Kueue's objects."""
    by_kind: dict[str, list[Fields]] = {}
    for each in objects:
        by_kind.setdefault(str(each.get("kind")), []).append(each)
    models = {_name(each): _model(each, found) for each in by_kind.pop("ResourceFlavor", [])}
    cohorts = {_name(each): each for each in by_kind.pop("Cohort", [])}
    queues = by_kind.pop("ClusterQueue", [])
    parents = {_cohort(mapping(each.get("spec"))) for each in queues} | set(map(_parent, cohorts.values()))
    taken = {_name(each) for each in queues}
    names = {name: f"{name}-cohort" if name in taken else name for name in sorted({*cohorts, *parents} - {""})}
    quotas = {
        called: _add_cohort(name, cohorts.get(name, {}), names, models, found) for name, called in names.items()
    } | {_name(each): _add_cluster_queue(each, names, models, found) for each in queues}
    _sum_up(quotas, names.values(), found)
    for local in by_kind.pop("LocalQueue", []):
        _leave_local(local, found)
    for kind, others in by_kind.items():
        for each in others:
            found.leave(f"{kind} {_name(each)}", "kind", "is not a queue")


def _add_cohort(
    name: str, cohort: Fields, names: Mapping[str, str], models: Mapping[str, str], found: Found
) -> _Quotas:
    """Add a cohort, also one that ClusterQueues only name; return its own quotas."""
    source, spec, called = f"Cohort {name}", mapping(cohort.get("spec")), names[name]
    if called != name:
        found.leave(source, "name", f"a ClusterQueue has this name too, so the cohort becomes {called!r}")
    quotas = _quotas(source, spec, models, found)
    parent = _parent(cohort)
    queue = FoundQueue(source, called, names.get(parent, ""), _weight(source, spec, found))
    queue.limit = quotas.limit(borrows=True) if parent else {}
    for resource in quotas.unlent:
        found.leave(source, f"{resource} lendingLimit", "siblings can use all that is idle")
    found.add(queue)
    found.leave_others(source, spec, ("parentName", "parent", "resourceGroups", "fairSharing"), REASONS)
    return quotas


def _add_cluster_queue(each: Fields, names: Mapping[str, str], models: Mapping[str, str], found: Found) -> _Quotas:
    source, spec = f"ClusterQueue {_name(each)}", mapping(each.get("spec"))
    quotas, cohort = _quotas(source, spec, models, found), _cohort(spec)
    strict = spec.get("queueingStrategy") == "StrictFIFO"
    stopped = spec.get("stopPolicy", "None") != "None"
    queue = FoundQueue(source, _name(each), names.get(cohort, ""), _weight(source, spec, found))
    queue.guarantee, queue.limit = quotas.guarantee(), quotas.limit(borrows=bool(cohort))
    queue.lending_limit = quotas.lending_limit() if cohort else {}
    queue.order, queue.backfill = Order.PRIORITY, Backfill.NONE if strict else Backfill.GREEDY
    queue.open = not stopped
    _add_preemption(source, queue, mapping(spec.get("preemption")), found)
    found.add(queue)
    if stopped:
        text = "the queue is closed for new jobs; jobs that wait in it are still placed, and running jobs stay"
        found.leave(source, "stopPolicy", text)
    known = ("cohort", "cohortName", "resourceGroups", "fairSharing", "queueingStrategy", "stopPolicy", "preemption")
    found.leave_others(source, spec, known, REASONS)
    return quotas


def _add_preemption(source: str, queue: FoundQueue, given: Fields, found: Found) -> None:
    """Set the rules of preemption. Without any, Kueue displaces nothing."""
    within, reclaim = (str(given.get(name, "Never")) for name in ("withinClusterQueue", "reclaimWithinCohort"))
    queue.preemption, queue.preempts, queue.reclaim = WITHIN.get(within), Preempts.OWN, RECLAIM.get(reclaim)
    for name, value, known in (("withinClusterQueue", within, WITHIN), ("reclaimWithinCohort", reclaim, RECLAIM)):
        if value not in known:
            found.leave(source, f"preemption.{name}", f"{value!r} is unknown")
        elif DIFFERS.get(value, ("",))[0] == name:
            found.leave(source, f"preemption.{name}", DIFFERS[value][1])
    if mapping(given.get("borrowWithinCohort")).get("policy", "Never") != "Never":
        text = "to borrow, set the reclaim FairShare: seaway queue set NAME --reclaim FairShare"
        found.leave(source, "preemption.borrowWithinCohort", text)


def _quotas(source: str, spec: Fields, models: Mapping[str, str], found: Found) -> _Quotas:
    """Return the quotas of all flavors together; GPUs of flavors with a known model also by model."""
    quotas = _Quotas()
    flavors = [
        flavor
        for group in found.entries(source, "resourceGroups", spec.get("resourceGroups"))
        for flavor in found.entries(source, "flavors", group.get("flavors"))
    ]
    for flavor in flavors:
        name = str(flavor.get("name"))
        model = models.get(name, "")
        gpus = False
        for each in found.entries(source, f"flavor {name}", flavor.get("resources")):
            gpus |= _count(quotas, f"flavor {name}", each, model, source=source, found=found)
        if gpus and not model and len(flavors) > 1:
            text = "has no node label of a GPU model, so its GPUs count for all models together"
            found.leave(source, f"flavor {name}", text)
    return quotas


def _count(quotas: _Quotas, at: str, given: Fields, model: str, *, source: str, found: Found) -> bool:
    """Count the quota of a resource; report whether it counts GPUs."""
    name = str(given.get("name"))
    read = found.amount(source, f"{at}: {name}", name, given.get("nominalQuota", 0))
    if read is None:
        return False
    resource, nominal = read
    bounds: list[int | None] = []
    for bound in ("borrowingLimit", "lendingLimit"):
        most = None if given.get(bound) is None else found.amount(source, f"{name} {bound}", name, given[bound])
        bounds.append(most[1] if most else None)
    borrow, lent = bounds
    quotas.count(resource, nominal, borrow, lent)
    if resource == GPUS and model:
        quotas.count(model_resource(model), nominal, borrow, lent)
    return resource == GPUS


def _sum_up(quotas: Mapping[str, _Quotas], cohorts: Iterable[str], found: Found) -> None:
    """Set the guarantees of cohorts with a quota of their own, and limit root cohorts to all quotas below them."""
    children: dict[str, list[str]] = {}
    for each in found.queues:
        children.setdefault(each.parent, []).append(each.name)

    def below(name: str, above: tuple[str, ...] = ()) -> Iterator[str]:
        yield name
        for child in children.get(name, ()):
            if child not in above:
                yield from below(child, (*above, name))

    for queue in [each for each in found.queues if each.name in set(cohorts)]:
        names = [name for name in below(queue.name) if name in quotas]
        total = total_of(quotas[name].nominal for name in names)
        if quotas[queue.name].nominal:
            queue.guarantee = total
        if not queue.parent:
            queue.limit = {resource: total.get(resource, 0) for name in names for resource in quotas[name].nominal}


def _weight(source: str, spec: Fields, found: Found) -> Fraction:
    weight = mapping(spec.get("fairSharing")).get("weight")
    if weight is None:
        return Fraction(1)
    try:
        return quantity(weight)
    except RejectedError as error:
        found.leave(source, "fairSharing.weight", error.message)
        return Fraction(1)


def _model(flavor: Fields, found: Found) -> str:
    """Return the GPU model of a flavor, if a node label names it; report the rest of the flavor."""
    spec = mapping(flavor.get("spec"))
    labels = mapping(spec.get("nodeLabels"))
    source, key = f"ResourceFlavor {_name(flavor)}", next((each for each in MODEL_LABELS if each in labels), "")
    others = {name: value for name, value in labels.items() if name != key}
    found.leave_others(source, {**spec, "nodeLabels": others}, (), REASONS)
    return label_model(str(labels[key])) if key else ""


def _leave_local(local: Fields, found: Found) -> None:
    queue = mapping(local.get("spec")).get("clusterQueue")
    namespace = mapping(local.get("metadata")).get("namespace", "default")
    text = f"submit jobs to the queue {queue!r} directly"
    found.leave(f"LocalQueue {namespace}/{_name(local)}", "kind", text)


def _name(each: Fields) -> str:
    return str(mapping(each.get("metadata")).get("name", ""))


def _cohort(spec: Fields) -> str:
    return str(spec.get("cohortName") or spec.get("cohort") or "")


def _parent(cohort: Fields) -> str:
    spec = mapping(cohort.get("spec"))
    return str(spec.get("parentName") or spec.get("parent") or "")
