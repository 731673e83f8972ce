"""Karmada's own scheduler, for bindings that name it: clusters by affinity, replicas repeated or divided."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.kubernetes.controllers.scheduler import tolerates
from tests.fakes.kubernetes.controllers.staff import Controller, set_condition
from tests.fakes.kubernetes.karmada.words import DEFAULT_SCHEDULER, divided, share
from tests.fakes.kubernetes.kinds import BINDINGS, CLUSTERS, Json
from tests.fakes.kubernetes.selectors import object_rule
from tests.fakes.kubernetes.store import Event, Stored

Key = tuple[str, str]


class ClusterScheduler(Controller[Key]):
    """Chooses clusters for bindings of ``default-scheduler``; it ignores those of other schedulers."""

    kinds = (BINDINGS, CLUSTERS)

    def receive(self, event: Event) -> Iterator[Key]:
        """Return bindings that changed, and those without clusters when a cluster changed."""
        now = event.now
        if now.kind is BINDINGS:
            if event.type != "DELETED":
                yield now.namespace, now.name
            return
        for binding in self.store.all(BINDINGS):
            if b'"clusters":' not in binding.inside:
                yield binding.namespace, binding.name

    def look(self, key: Key) -> None:
        """Choose the clusters of a binding."""
        binding = self.store.find(BINDINGS, *key)
        if binding is None or binding.deleting:
            return
        if binding.view()["spec"].get("schedulerName") != DEFAULT_SCHEDULER:
            return
        body = binding.read()
        spec = body["spec"]
        generation = body["metadata"]["generation"]
        if (body.get("status") or {}).get("schedulerObservedGeneration") == generation:
            return
        placement = spec.get("placement") or {}
        names = [one.name for one in self.store.all(CLUSTERS) if _allows(placement, one)]
        if names:
            spec["clusters"] = _assign(spec, placement, names)
            binding = self.verbs.update(BINDINGS, *key, body)
        moment = self.stamp()

        def tell(status: Json) -> None:
            if names:
                why = "Binding has been scheduled successfully."
                set_condition(status, "Scheduled", "True", moment, "Success", why)
                status["lastScheduledTime"] = moment
            else:
                why = f"0/{len(list(self.store.all(CLUSTERS)))} clusters are available"
                set_condition(status, "Scheduled", "False", moment, "NoClusterFit", why)
            status["schedulerObservedGeneration"] = binding.read()["metadata"]["generation"]

        self.write_status(binding, tell)


def _allows(placement: Json, cluster: Stored) -> bool:
    affinity = placement.get("clusterAffinity") or {}
    rule = object_rule(affinity.get("labelSelector"))
    names = affinity.get("clusterNames")
    taints = cluster.view()["spec"].get("taints") or ()
    pod = {"spec": {"tolerations": placement.get("clusterTolerations") or []}}
    return (
        not cluster.deleting
        and (not names or cluster.name in names)
        and cluster.name not in (affinity.get("exclude") or ())
        and (rule is None or rule(cluster.labels))
        and all(tolerates(pod, taint) for taint in taints)
    )


def _assign(spec: Json, placement: Json, names: list[str]) -> list[Json]:
    replicas = spec.get("replicas")
    if replicas is None:
        return [{"name": name} for name in names]
    if not divided(placement):
        return [{"name": name, "replicas": replicas} for name in names]
    scheduling = placement["replicaScheduling"]
    if scheduling.get("replicaDivisionPreference") == "Aggregated":
        return [{"name": names[0], "replicas": replicas}]
    weights = dict.fromkeys(names, 1)
    listed = (scheduling.get("weightPreference") or {}).get("staticWeightList")
    if listed:
        weights = {
            name: max(
                (one["weight"] for one in listed if name in one["targetCluster"].get("clusterNames", ())), default=0
            )
            for name in names
        }
    parts = share(replicas, weights)
    return [{"name": name, "replicas": parts[name]} for name in names if parts[name]]
