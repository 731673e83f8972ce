"""Queues of other schedulers become queues of ours, and nothing is dropped without a word."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.amounts import amount_of, model_resource
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Backfill, Order, Preemption, Preempts, Reclaim
from seaway.wire.queue_imports.files import read_queues
from seaway.wire.queue_imports.found import Found, quantity
from seaway.wire.queues import QueueIn
from seaway.wire.yaml import yaml_documents

KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: a100}
spec:
  nodeLabels: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}
  nodeTaints: [{key: gpu, effect: NoSchedule}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: spot}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Cohort
metadata: {name: research}
spec:
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: spot, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: vision}
spec:
  cohort: research
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  fairSharing: {weight: "1500m"}
  preemption: {reclaimWithinCohort: Any, withinClusterQueue: Never}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu, pods]
    flavors:
    - name: a100
      resources:
      - {name: cpu, nominalQuota: 9500m, borrowingLimit: 2}
      - {name: memory, nominalQuota: 36Gi}
      - {name: nvidia.com/gpu, nominalQuota: 8, borrowingLimit: 4, lendingLimit: 2}
      - {name: pods, nominalQuota: 50}
    - name: spot
      resources:
      - {name: cpu, nominalQuota: 0, borrowingLimit: 0}
      - {name: memory, nominalQuota: 0}
      - {name: nvidia.com/gpu, nominalQuota: 2, borrowingLimit: 0}
      - {name: pods, nominalQuota: 0}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: speech}
spec:
  cohortName: research
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: 0}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: alone}
spec:
  namespaceSelector: {matchLabels: {team: x}}
  stopPolicy: Hold
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: users, namespace: team-a}
spec: {clusterQueue: vision}
"""

VOLCANO = """
apiVersion: v1
kind: List
items:
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: root}, spec: {}}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  metadata: {name: leaf}
  spec:
    parent: branch
    weight: 3
    priority: 10
    reclaimable: false
    dequeueStrategy: fifo
    capability: {cpu: 64, nvidia.com/gpu: 16, nvidia.com/gpumem: 65536, rdma/hca: 4}
    deserved: {nvidia.com/gpu: 8}
    guarantee: {resource: {nvidia.com/gpu: 10, cpu: "1500m"}}
    affinity: {nodeGroupAffinity: {}}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  metadata: {name: branch, annotations: {volcano.sh/hierarchy: root/branch}}
  spec: {parent: root, reclaimable: true}
  status: {state: Open}
"""

SCHEDULER = """
queues:
- {name: high, weight: 10, maxCapacity: "50%", guaranteedCapacity: 8, preemptionPolicy: PreemptLowerPriority}
- name: low
  maxCapacity: {nvidia.com/gpu: 4, memory: 64Gi}
  preemptionPolicy: Never
  colour: red
- {name: Not Valid, weight: -1}
fairShare: {enabled: true, preemptionPolicy: LessThanOrEqualToFinalShare}
"""


def read(text: str, gpus: int = 64) -> Found:
    """Read a file."""
    documents: list[Any] = [each.value for each in yaml_documents(text)]
    return read_queues(documents, gpus)


def left(found: Found) -> set[tuple[str, str]]:
    """Return the source and the field of all that is not imported."""
    return {(each.source, each.field) for each in found.left}


def test_kueue_quotas_become_guarantees_and_limits() -> None:
    """A cohort is the parent; quotas of flavors add up, by model where a label names it; limits need all flavors."""
    queues = {each.name: each for each in read(KUEUE).queues}
    vision, model = queues["vision"], "gpus/nvidia-a100-sxm4-80gb"
    assert vision.guarantee == {"cpu": 9500, "memory": 36_864, "gpus": 10_000, model: 8000}
    assert vision.limit == {"cpu": 11_500, "gpus": 14_000, model: 12_000}
    assert vision.lending_limit == {"gpus": 4000, model: 2000}  # all 2 of the flavor spot
    assert vision.fields()["lending_limit"] == {"gpus": 4, model: 2}
    assert (vision.parent, vision.order, vision.backfill) == ("research", Order.PRIORITY, Backfill.NONE)
    assert [(int(queues[name].weight), queues[name].backfill) for name in ("vision", "speech")] == [
        (3, Backfill.NONE),
        (2, Backfill.GREEDY),
    ]
    assert queues["research"].guarantee == {"cpu": 9500, "memory": 36_864, "gpus": 14_000, model: 8000}
    assert queues["research"].limit == queues["research"].guarantee
    assert (vision.preemption, vision.preempts, vision.reclaim) == (
        Preemption.NEVER,
        Preempts.OWN,
        Reclaim.GUARANTEE,
    )
    assert (queues["speech"].preemption, queues["speech"].reclaim) == (Preemption.NEVER, Reclaim.NEVER)
    alone = queues["alone"]
    assert (queues["speech"].lending_limit, alone.lending_limit) == ({}, {})
    assert (alone.parent, alone.guarantee, alone.limit, alone.open) == ("", {"cpu": 4000}, {"cpu": 4000}, False)


def test_a_root_cohort_without_quota_forbids_what_its_members_do_not_have() -> None:
    """Members with a quota of 0 borrow nothing in a cohort in which no one has more."""
    text = (
        KUEUE.partition("kind: Cohort")[0].rpartition("---")[0]
        + KUEUE[KUEUE.index("apiVersion: kueue.x-k8s.io/v1beta2") - 5 :]
    )
    queues = {each.name: each for each in read(text).queues}
    assert (queues["research"].guarantee, queues["research"].limit) == (
        {},
        {"gpus": 0, "gpus/nvidia-a100-sxm4-80gb": 0},
    )


def test_what_kueue_has_besides_is_reported() -> None:
    """Each field without a counterpart is in the report; values that change nothing are not."""
    assert left(read(KUEUE)) == {
        ("ResourceFlavor a100", "nodeTaints"),
        ("ClusterQueue vision", "flavor a100: pods"),
        ("ClusterQueue vision", "flavor spot: pods"),
        ("ClusterQueue vision", "flavor spot"),
        ("ClusterQueue alone", "namespaceSelector"),
        ("ClusterQueue alone", "stopPolicy"),
        ("LocalQueue team-a/users", "kind"),
        ("all queues", "weight"),
    }


def test_a_cohort_with_the_name_of_a_queue_gets_another() -> None:
    """Kueue allows a ClusterQueue with the name of its cohort; two of our queues have two names."""
    text = KUEUE.replace("research", "vision")
    found = read(text)
    assert {each.name: each.parent for each in found.queues} == {
        "vision-cohort": "",
        "vision": "vision-cohort",
        "speech": "vision-cohort",
        "alone": "",
    }
    assert ("Cohort vision", "name") in left(found)


def test_volcano_queues_become_a_tree() -> None:
    """Deserved and reserved amounts are guaranteed, the capability is the limit, and parents come first."""
    found = read(VOLCANO)
    branch, leaf = found.parents_first()
    assert (branch.name, branch.parent, leaf.name, leaf.parent) == ("branch", "", "leaf", "branch")
    assert (int(leaf.weight), leaf.priority, leaf.backfill) == (3, 10, Backfill.NONE)
    assert leaf.guarantee == {"gpus": 10_000, "cpu": 1500}
    assert leaf.limit == {"cpu": 64_000, "gpus": 16_000, "gpu_memory": 65_536}
    assert leaf.preemptible is False
    assert left(found) == {
        ("Queue root", "kind"),
        ("Queue leaf", "capability.rdma/hca"),
        ("Queue leaf", "guarantee"),
        ("Queue branch", "volcano.sh/hierarchy"),
    }


@pytest.mark.parametrize("wrapped", [False, True])
def test_scheduler_queues_have_capacities_in_three_forms(wrapped: bool) -> None:
    """A capacity is a share of the fleet, a number of GPUs, or a mapping; a ConfigMap has the file as a text."""
    text = SCHEDULER
    if wrapped:
        text = "kind: ConfigMap\nmetadata: {name: scheduler-queues}\ndata:\n  queues.yaml: |\n" + "".join(
            f"    {line}\n" for line in SCHEDULER.splitlines()
        )
    found = read(text, gpus=64)
    high, low = found.queues
    assert (int(high.weight), high.limit, high.guarantee) == (10, {"gpus": 32_000}, {"gpus": 8000})
    assert (int(low.weight), low.limit, low.guarantee) == (1, {"gpus": 4000, "memory": 65_536}, {})
    assert {each.order for each in found.queues} == {Order.FAIR}
    assert [each.preemption for each in found.queues] == [Preemption.PREEMPT_LOWER_PRIORITY, Preemption.NEVER]
    assert {each.preempts for each in found.queues} == {Preempts.ALL}
    assert {each.reclaim for each in found.queues} == {Reclaim.FAIR_SHARE}
    assert left(found) == {
        ("queue high", "maxCapacity"),
        ("queue low", "colour"),
        ("queue Not Valid", "weight"),
        ("queue Not Valid", "name"),
    }


def test_fair_share_by_priority_displaces_queues_with_a_larger_share() -> None:
    """`PreemptLowerPriority` of the fair share is reclaim by shares, and the report says so."""
    found = read(SCHEDULER.replace("LessThanOrEqualToFinalShare", "PreemptLowerPriority"))
    assert {each.reclaim for each in found.queues} == {Reclaim.FAIR_SHARE}
    (said,) = [each.reason for each in found.left if each.source == "fairShare"]
    assert said.startswith("becomes --reclaim FairShare")


@pytest.mark.parametrize(("state", "is_open"), [("Open", True), ("Closed", False), ("Closing", False), ("Odd", None)])
@pytest.mark.parametrize("at", ["spec", "status"])
def test_the_state_of_a_volcano_queue_opens_or_closes_it(at: str, state: str, is_open: bool | None) -> None:
    """A closed queue accepts no jobs; an unknown state is reported."""
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "v"}}
    found = read_queues([{**queue, at: {"state": state}}])
    assert found.queues[0].open is is_open
    assert (("Queue v", "state") in left(found)) is (is_open is None)


def test_node_groups_of_volcano_are_reported_with_their_effect() -> None:
    """A pool has clusters and no node groups, so the report names the groups that jobs must use and avoid."""
    groups = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: v}
spec:
  affinity:
    nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [fast, new]}
    nodeGroupAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [serving]}
"""
    said = {each.field: each.reason for each in read(groups).left}
    assert "must use the node groups fast, new" in said["affinity.nodeGroupAffinity"]
    assert "should avoid the node groups serving" in said["affinity.nodeGroupAntiAffinity"]


def test_other_values_of_a_config_map_are_no_queues() -> None:
    """A script beside the queues is skipped; without queues, the file is rejected for that reason."""
    script = "if [ -z: x ]; then { print 'y: ['"
    data = {"queues.yaml": SCHEDULER, "run.sh": script}
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
    assert [each.name for each in read_queues([held], 64).queues] == ["high", "low"]
    with pytest.raises(RejectedError, match="has no queue"):
        read_queues([{**held, "data": {"run.sh": script}}])


@pytest.mark.parametrize(
    ("key", "value", "product"),
    [
        ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"),
        ("cloud.google.com/gke-accelerator", "nvidia-h100-mega-80gb", "NVIDIA H100 80GB HBM3"),
        ("cloud.google.com/gke-accelerator", "nvidia-h200-141gb", "NVIDIA H200"),
        ("cloud.google.com/gke-accelerator", "nvidia-tesla-v100", "Tesla V100-SXM2-16GB"),
        ("k8s.amazonaws.com/accelerator", "nvidia-l40s", "NVIDIA L40S"),
        ("karpenter.k8s.aws/instance-gpu-name", "v100", "Tesla V100-SXM2-16GB"),
        ("amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM", "AMD Instinct MI300X OAM"),
    ],
)
def test_the_label_of_a_flavor_limits_the_cards_of_its_nodes(key: str, value: str, product: str) -> None:
    """Amounts of the flavor are for a name that covers the product as clusters report it."""
    text = KUEUE.replace("nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB", f"{key}: {value}")
    vision = next(each for each in read(text).queues if each.name == "vision")
    assert (
        amount_of({model_resource(product): 1000, "gpus": 1000}, next(n for n in vision.guarantee if "/" in n)) == 1000
    )


def test_several_forms_in_one_file_are_read_together() -> None:
    """A file may have documents of each form."""
    found = read("---".join([SCHEDULER, KUEUE, VOLCANO]))
    assert {each.name for each in found.queues} == {
        "high", "low", "research", "vision", "speech", "alone", "leaf", "branch",
    }  # fmt: skip


def test_a_file_without_queues_is_rejected() -> None:
    """The error says which objects are expected."""
    with pytest.raises(RejectedError, match="ClusterQueue or Cohort of Kueue"):
        read("kind: Deployment\nmetadata: {name: web}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("queues: [{name: A_b}]", "has no valid queue: queue A_b: name: "),
        ("queues: [3]", "has no valid queue: file: queues: is not a list of mappings"),
        ("queues: [{weight: 1}]", "has no valid queue: queue 0: name: "),
    ],
)
def test_a_file_without_a_valid_queue_is_rejected_with_the_reasons(text: str, reason: str) -> None:
    """The error says what is wrong with the queues of the file."""
    with pytest.raises(RejectedError, match=f"^{reason}"):
        read(text)


@pytest.mark.parametrize("text", [SCHEDULER, KUEUE, VOLCANO])
def test_what_was_read_is_a_valid_request(text: str) -> None:
    """The API accepts the fields, and stores the same amounts."""
    for each in read(text).queues:
        fields = {name: value for name, value in each.fields().items() if value is not None}
        queue = QueueIn(**fields).queue(each.name)
        assert (queue.guarantee, queue.limit, queue.weight) == (each.guarantee, each.limit, int(each.weight))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
FIELDS = ("resourceGroups", "cohort", "fairSharing", "weight", "capability", "deserved", "guarantee", "parent")
KINDS = (
    ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
    ("kueue.x-k8s.io/v1beta1", "Cohort"),
    ("kueue.x-k8s.io/v1beta1", "ResourceFlavor"),
    ("kueue.x-k8s.io/v1beta1", "LocalQueue"),
    ("scheduling.volcano.sh/v1beta1", "Queue"),
)


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), ANY), ANY, ANY)
def test_strange_values_are_reported(
    kind: tuple[str, str], spec: dict[str, Any], queues: object, share: object
) -> None:
    """A file with values of other types is read as far as possible, or rejected."""
    thing = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "a"}, "spec": spec}
    others = ({"queues": queues, "fairShare": share}, {"queues": [{"name": "b", **spec}]})
    with contextlib.suppress(RejectedError):
        assert {"b"} <= {each.name for each in read_queues([thing, *others]).queues}


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        (2, 2),
        ("500m", Fraction(1, 2)),
        ("36Gi", 36 << 30),
        ("1.5k", 1500),
        ("2e3", 2000),
        ("5E-1", Fraction(1, 2)),
        (0.25, Fraction(1, 4)),
    ],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: object, amount: Fraction) -> None:
    """Suffixes are powers of 1000 or 1024, or thousandths; exponents are decimal."""
    assert quantity(text) == amount


@pytest.mark.parametrize("text", ["", "-1", "1 Gi", "GPU", True, None, "1e999", [1]])
def test_other_texts_are_not_quantities(text: object) -> None:
    """Invalid quantities are rejected."""
    with pytest.raises(RejectedError, match="is not a Kubernetes quantity"):
        quantity(text)


@pytest.mark.parametrize(
    ("given", "preemption", "reclaim", "reported"),
    [
        ("{withinClusterQueue: LowerPriority, reclaimWithinCohort: Never}", "PreemptLowerPriority", "Never", []),
        (
            "{withinClusterQueue: LowerOrNewerEqualPriority, reclaimWithinCohort: LowerPriority}",
            "PreemptLowerPriority",
            "Guarantee",
            ["preemption.withinClusterQueue", "preemption.reclaimWithinCohort"],
        ),
        ("{withinClusterQueue: Always}", None, "Never", ["preemption.withinClusterQueue"]),
        ("{borrowWithinCohort: {policy: LowerPriority}}", "Never", "Never", ["preemption.borrowWithinCohort"]),
    ],
)
def test_preemption_of_kueue(given: str, preemption: str | None, reclaim: str, reported: list[str]) -> None:
    """Rules with a counterpart are set, and the report names what differs."""
    text = KUEUE.replace("{reclaimWithinCohort: Any, withinClusterQueue: Never}", given)
    found = read(text)
    fields = next(each for each in found.queues if each.name == "vision").fields()
    assert (fields["preemption"], fields["reclaim"]) == (preemption, reclaim)
    assert {name for source, name in left(found) if source == "ClusterQueue vision" and "preemption" in name} == {
        *reported
    }
