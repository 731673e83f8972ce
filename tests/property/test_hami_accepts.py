"""HAMi accepts every placement of Seaway, and Seaway places what HAMi would accept.

HAMi's rules for NVIDIA cards (v2.10) are implemented here again, from notes on its source, and share nothing with the
engine's: the two know of each other only through the cluster's objects. Kubernetes' pod limit of a node, whatever the
pods request (NodeResourcesFit), is included.

Deliberate differences of the rule sets, which the generated cases leave out; Seaway places nothing where HAMi would:

- HAMi counts only NVIDIA's cards, whatever their mode, as one pool; Seaway places nothing on cards in MIG mode whose
  profiles are not registered (before v2.10), nor on those of an unknown mode.
- A pod names the cards of its instances, but not the number on each: Seaway gives a replica several on one card, or one
  of each of several cards that have no room for a second one like it, and no other mixture.
- HAMi itself applies a quota of the namespace (HAMi's rule 11); Seaway gets it as a rejection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import currently_in_test_context, event, given, settings
from hypothesis import strategies as st

from seaway.adapters.kubernetes.cluster import ClusterOptions
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.view import ClusterView
from seaway.adapters.kubernetes.objects.core import NodeObject, Part, PodObject
from seaway.adapters.kubernetes.objects.decode import Broken, read_item
from seaway.adapters.kubernetes.templates.registry import BUILT_IN, render
from seaway.application.control.fleet import LiveFleet
from seaway.application.views import ClusterState
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Deployment
from seaway.domain.device import DeviceMode
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand, DeviceRules, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.runtime import Run
from seaway.scheduling.allocations import Allocation, allocations_of
from seaway.scheduling.columns import DEVICE_CORE_FREE, DEVICE_MEMORY_FREE, DEVICE_SLOTS_FREE, NODE_PODS_FREE
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy

Json = dict[str, Any]
EXAMPLES = settings().max_examples
RUN = Run("registry.example/train:1", ("python", "train.py"))
POLICIES = ("bestfit", "spread", "fgd")

A100_40 = [
    {"name": "1g.5gb", "memoryMB": 4864, "core": 15, "sliceCount": 1, "size": 1, "starts": [0, 1, 2, 3, 4, 5, 6]},
    {"name": "2g.10gb", "memoryMB": 9984, "core": 29, "sliceCount": 2, "size": 2, "starts": [0, 2, 4]},
    {"name": "3g.20gb", "memoryMB": 20096, "core": 43, "sliceCount": 3, "size": 4, "starts": [0, 4]},
    {"name": "7g.40gb", "memoryMB": 40448, "core": 100, "sliceCount": 7, "size": 8, "starts": [0]},
]
"""Profiles of an A100 with 40 GB, flat; `written` converts them into HAMi's form."""

A100_80 = [
    {"name": "1g.10gb", "memoryMB": 9728, "core": 15, "sliceCount": 1, "size": 1, "starts": [0, 1, 2, 3, 4, 5, 6]},
    {"name": "1g.20gb", "memoryMB": 19968, "core": 15, "sliceCount": 1, "size": 2, "starts": [0, 2, 4, 6]},
    {"name": "2g.20gb", "memoryMB": 19968, "core": 29, "sliceCount": 2, "size": 2, "starts": [0, 2, 4]},
    {"name": "3g.40gb", "memoryMB": 40448, "core": 43, "sliceCount": 3, "size": 4, "starts": [0, 4]},
    {"name": "4g.40gb", "memoryMB": 40448, "core": 58, "sliceCount": 4, "size": 4, "starts": [0]},
    {"name": "7g.80gb", "memoryMB": 81_000, "core": 100, "sliceCount": 7, "size": 8, "starts": [0]},
]
"""Profiles of an A100 with 80 GB."""

MODELS = (("NVIDIA A100-SXM4-40GB", 40_960), ("NVIDIA A100-SXM4-80GB", 81_920), ("NVIDIA L4", 23_034))


# HAMi's rules, by the numbers of the facts sheet


@dataclass(frozen=True)
class Taken:
    """The resources of one container on one card."""

    uuid: str
    memory: int
    cores: int
    profile: str = ""
    start: int = -1
    size: int = 0


@dataclass
class Card:
    """A card as its node registers it."""

    uuid: str
    index: int
    count: int
    memory: int
    cores: int
    type: str
    numa: int
    mode: str
    healthy: bool
    cordoned: bool = False
    profiles: list[Json] = field(default_factory=list)


@dataclass
class Asked:
    """The request of a container, with the webhook's defaults."""

    count: int
    memory: int
    percent: int
    cores: int


class RefusedError(Exception):
    """No node accepts the pod."""


class Hami:
    """HAMi's scheduler, with its own accounting.

    Attributes
    ----------
    most
        Pod limit of each node; None for no limit.
    """

    def __init__(self, nodes: Mapping[str, list[Card]], most: Mapping[str, int | None]) -> None:
        self.nodes = nodes
        self.most = most
        self.held: dict[str, tuple[str, list[list[Taken]]]] = {}

    def place(self, name: str, pod: Json, among: Sequence[str]) -> str:
        """Place a pod on the first node that accepts it; return the node."""
        reasons = []
        for node in among:
            found = self.fit(node, pod)
            if not isinstance(found, str):
                self.held[name] = node, found
                return node
            reasons.append(f"{node}: {found}")
        raise RefusedError("; ".join(reasons))

    def pods(self, node: str) -> int:
        """Count the pods of a node."""
        return sum(where == node for where, _ in self.held.values())

    def used(self, node: str) -> dict[str, list[Taken]]:
        """Return the allocations on each card of a node."""
        used: dict[str, list[Taken]] = {card.uuid: [] for card in self.nodes[node]}
        for where, containers in self.held.values():
            for taken in (each for container in containers for each in container if where == node):
                used[taken.uuid].append(taken)
        return used

    def fit(self, node: str, pod: Json) -> list[list[Taken]] | str:
        """Return the allocation of the containers of a pod on a node, or the reason against it (rule 17)."""
        most = self.most[node]
        if most is not None and self.pods(node) >= most:
            return "Too many pods"
        used = self.used(node)
        given: list[list[Taken]] = []
        for container in pod["spec"]["containers"]:
            asked = read_asked(container)
            if asked is None:
                given.append([])
                continue
            found = self._container(node, used, asked, pod["metadata"].get("annotations", {}))
            if isinstance(found, str):
                return found
            for each in found:
                used[each.uuid].append(each)
            given.append(found)
        return given

    def _container(
        self, node: str, used: Mapping[str, list[Taken]], asked: Asked, cluster_options: Mapping[str, str]
    ) -> list[Taken] | str:
        cards = self.nodes[node]
        if asked.count > len(cards) and not any(card.mode == "mig" for card in cards):  # 1
            return "NodeInsufficientDevice"
        chosen: list[Taken] = []
        numa: int | None = None
        why = ""
        for card in sorted(cards, key=lambda card: (len(used[card.uuid]), card.index)):
            refused = before_amounts(card, cluster_options)
            if refused:
                why = why or f"{card.uuid} {refused}"
                continue
            if cluster_options.get("nvidia.com/numa-bind") == "true" and numa not in {None, card.numa}:  # 5
                chosen = []
            numa = card.numa
            there = list(used[card.uuid])
            while len(chosen) < asked.count:
                found = amounts(card, there, asked)
                if isinstance(found, str):
                    why = why or f"{card.uuid} {found}"
                    break
                chosen.append(found)
                there.append(found)
                if card.mode != "mig":  # 1: no card twice
                    break
        return chosen if len(chosen) == asked.count else why or "AllocatedCardsInsufficientRequest"


def read_asked(container: Json) -> Asked | None:
    """Read the request of a container; what HAMi would ignore is an error here."""
    limits = container.get("resources", {}).get("limits", {})
    known = {key.removeprefix("nvidia.com/"): text for key, text in limits.items() if key.startswith("nvidia.com/")}
    if not known:
        return None
    assert known.keys() <= {"gpu", "gpumem", "gpumem-percentage", "gpucores"}
    figures = {key: int(text) for key, text in known.items()}  # plain integers only
    assert all(figure >= 0 for figure in figures.values())
    percent = figures.get("gpumem-percentage", 0)
    assert 0 <= percent <= 100
    memory = figures.get("gpumem", 0)
    if not memory and not percent:
        percent = 100
    cores = figures.get("gpucores")
    if cores is None:
        cores = 100 if not memory and percent == 100 else 0
    return Asked(figures.get("gpu", 1), memory, percent, min(cores, 100))  # 9


def before_amounts(card: Card, cluster_options: Mapping[str, str]) -> str:  # noqa: PLR0911  # a rule a line
    """Return the rule that excludes a card regardless of amounts (2, 3, 4, 6), or an empty text."""

    def words(key: str) -> list[str]:
        return [word for word in cluster_options.get(f"nvidia.com/{key}", "").split(",") if word]

    kind = card.type.lower()
    if not card.healthy:
        return "CardNotHealth"
    if card.cordoned:
        return "CardCordoned"
    if (use := words("use-gputype")) and not any(word.lower() in kind for word in use):
        return "CardTypeMismatch"
    if any(word.lower() in kind for word in words("nouse-gputype")):
        return "CardTypeMismatch"
    mode = cluster_options.get("nvidia.com/vgpu-mode", "")
    if mode and card.mode not in mode:
        return "CardTypeMismatch"
    if ((use := words("use-gpuuuid")) and card.uuid not in use) or card.uuid in words("nouse-gpuuuid"):
        return "CardUuidMismatch"
    return ""


def amounts(card: Card, there: Sequence[Taken], asked: Asked) -> Taken | str:  # noqa: C901, PLR0911  # a rule a line
    """Return the allocation of a container on a card, or the rule that excludes it (7 to 16)."""
    memory = asked.memory or card.memory * asked.percent // 100  # 10
    used_cores = sum(each.cores for each in there)
    if len(there) >= card.count:
        return "CardTimeSlicingExhausted"  # 7
    if card.memory - sum(each.memory for each in there) < memory:
        return "CardInsufficientMemory"  # 12
    if card.cores - used_cores < asked.cores:
        return "CardInsufficientCore"  # 13
    if card.cores == 100 and asked.cores == 100 and there:
        return "ExclusiveDeviceAllocateConflict"  # 14
    if card.cores > 0 and used_cores == card.cores and asked.cores == 0:
        return "CardComputeUnitsExhausted"  # 15
    if card.mode != "mig":
        return Taken(card.uuid, memory, asked.cores)
    for profile in sorted(card.profiles, key=lambda each: (each["memoryMB"], each["sliceCount"])):  # 16
        if profile["memoryMB"] < memory:
            continue
        top = profile["name"].startswith(("1g.", "3g."))
        for start in sorted(profile["starts"], reverse=top):
            if all(start + profile["size"] <= each.start or each.start + each.size <= start for each in there):
                return Taken(card.uuid, profile["memoryMB"], profile["core"], profile["name"], start, profile["size"])
    return "CardMigTopologyInfeasible"


def holds_two(card: Card, asked: Asked) -> bool:
    """Report whether an empty card in MIG mode fits a container's request twice."""
    first = amounts(card, [], asked)
    return isinstance(first, Taken) and isinstance(amounts(card, [first], asked), Taken)


# A cluster's objects


@st.composite
def cards(draw: st.DrawFn, node: str) -> list[Card]:
    """Generate the cards of a node: the number of shares is a setting of the node."""
    mig = draw(st.integers(0, 2)) == 0
    halves = draw(st.sampled_from((2, 2, 2, 3, 4)))
    cores = draw(st.sampled_from((100, 100, 100, 150, 200)))
    numbers = draw(st.integers(1, 4))
    found = []
    for index in range(numbers):
        kind, memory = draw(st.sampled_from(MODELS))
        card = Card(
            f"GPU-{node}-{index:04d}-4000-8000-000000000000",
            index,
            draw(st.sampled_from((10, 3, 2, 1))),
            memory * halves // 2,
            cores,
            kind,
            draw(st.integers(0, 1)),
            "hami-core",
            draw(st.integers(0, 7)) > 0,
            draw(st.integers(0, 7)) == 0,
        )
        if mig:
            card.profiles = draw(st.sampled_from((A100_40, A100_40, A100_80)))
            card.type, card.memory = MODELS[card.profiles is A100_80]
            card.cores, card.count, card.mode = 100, 7, "mig"
        found.append(card)
    return found


def register(found: Sequence[Card], *, lines: bool) -> str:
    """Write a register: as JSON, without zero and false values; or as lines, as before v2.8."""
    if lines:
        return "".join(
            f"{card.uuid},{card.count},{card.memory},{card.cores},NVIDIA-{card.type},{card.numa},"
            f"{str(card.healthy).lower()},{card.index},{card.mode}:"
            for card in found
        )
    entries = [
        {
            "id": card.uuid,
            "index": card.index,
            "count": card.count,
            "devmem": card.memory,
            "devcore": card.cores,
            "type": card.type,
            "numa": card.numa,
            "mode": card.mode,
            "health": card.healthy,
            "migProfiles": [written(profile) for profile in card.profiles],
        }
        for card in found
    ]
    return json.dumps([{key: value for key, value in entry.items() if value} for entry in entries])


def written(profile: Json) -> Json:
    """Write a profile in HAMi's format."""
    places = [{"start": start, "size": profile["size"]} for start in profile["starts"]]
    return {key: profile[key] for key in ("name", "memoryMB", "core", "sliceCount")} | {"placements": places}


def node_object(name: str, found: Sequence[Card], most: int | None, *, lines: bool) -> Json:
    """Write a node with a pod limit."""
    amounts = {"cpu": "256", "memory": "2Ti", "nvidia.com/gpu": str(sum(card.count for card in found))}
    amounts |= {} if most is None else {"pods": str(most)}
    cordoned = ",".join(card.uuid for card in found if card.cordoned)
    annotations = {"hami.io/node-nvidia-register": register(found, lines=lines)}
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
            "annotations": annotations | ({"hami.io/device-cordon": cordoned} if cordoned else {}),
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod_object(name: str, pod: Json, node: str, containers: list[list[Taken]], phase: str) -> Json:
    """Write a pod as it is after HAMi's decision."""
    record = "".join(
        "".join(f"{each.uuid},NVIDIA,{each.memory},{each.cores}:" for each in container) + ";"
        for container in containers
    )
    instances = [
        {
            "containerIndex": at,
            "deviceIndex": place,
            "gpuUUID": each.uuid,
            "profile": each.profile,
            "placement": {"start": each.start, "size": each.size},
        }
        for at, container in enumerate(containers)
        for place, each in enumerate(container)
        if each.profile
    ]
    notes = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": record} if any(containers) else {}
    if instances:
        notes["hami.io/vgpu-mig-allocations"] = json.dumps(instances)
    meta = pod["metadata"]
    return {
        "metadata": {
            **meta,
            "name": name,
            "namespace": "default",
            "uid": name,
            "annotations": {**meta.get("annotations", {}), **notes},
        },
        "spec": {**pod["spec"], "nodeName": node},
        "status": {"phase": phase},
    }


LIMITS = st.builds(
    lambda gpus, memory, cores: {"nvidia.com/gpu": str(gpus)} | memory | cores,
    st.integers(1, 2),
    st.one_of(
        st.just({}),
        st.sampled_from((500, 4_000, 8_000, 20_000, 40_000)).map(lambda mib: {"nvidia.com/gpumem": str(mib)}),
        st.sampled_from((10, 25, 50, 100)).map(lambda percent: {"nvidia.com/gpumem-percentage": str(percent)}),
    ),
    st.sampled_from((0, 5, 30, 50, 100)).map(lambda points: {"nvidia.com/gpucores": str(points)} if points else {}),
)


@st.composite
def strangers(draw: st.DrawFn) -> Json:
    """Generate an unmanaged pod: up to two containers, with selected cards or not."""
    containers = [
        {"name": f"c{at}", "resources": {"limits": draw(LIMITS)} if draw(st.integers(0, 3)) else {}}
        for at in range(draw(st.integers(1, 2)))
    ]
    numa = {"nvidia.com/numa-bind": "true"} if draw(st.integers(0, 4)) == 0 else {}
    return {"metadata": {"annotations": numa}, "spec": {"containers": containers}}


PROFILES = st.builds(
    lambda gpus, mig: ResourceRequest(100, 64, gpus, mig=mig),
    st.sampled_from((1, 1, 2, 3)),
    st.sampled_from(("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb", "1g.10gb", "3g.40gb")),
)
REQUESTS = st.builds(
    ResourceRequest,
    st.just(100),
    st.just(64),
    st.sampled_from((1, 1, 1, 2, 3)),
    st.sampled_from((1, 1_000, 4_864, 5_000, 8_000, 9_984, 0, 20_000, 23_034, 40_448, 40_960, 81_920)),
    st.sampled_from((1, 7, 0, 25, 33, 50, 99, 100)),
    st.sampled_from((0, 1, 15, 20, 100, 300, 333, 335, 500, 667, 990, 991, 1_000, 1_500)),
)


def rarely(usual: object, *others: object) -> st.SearchStrategy[Any]:
    """Generate the usual value in most cases."""
    return st.integers(0, 5).flatmap(lambda chance: st.sampled_from(others) if chance == 5 else st.just(usual))


RULES = st.builds(
    DeviceRules,
    models=rarely(frozenset(), frozenset({"NVIDIA A100-SXM4-80GB"})),
    use_types=rarely((), ("a100",), ("L4",), ("40gb", "l4")),
    avoid_types=rarely((), ("80GB",)),
    modes=rarely(frozenset(), frozenset({DeviceMode.MIG}), frozenset({DeviceMode.HAMI_CORE})),
    same_numa=rarely(False, True),
    exclusive=rarely(False, True),
)
SPECS = st.builds(
    lambda request, rules, replicas, gang, template: JobSpec(
        "train", Demand(request, rules), replicas, gang, template=template, run=RUN
    ),
    st.one_of(REQUESTS, REQUESTS, REQUESTS, PROFILES),
    RULES,
    st.sampled_from((1, 1, 2, 3)),
    st.booleans(),
    st.sampled_from(("job", "job", "deployment", "torchrun", "kueue", "volcanojob", "raycluster", "rayjob")),
)
Step = tuple[str, Any]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("stranger"), strangers()),
        st.tuples(st.just("job"), SPECS),
        st.tuples(st.just("job"), SPECS),
        st.tuples(st.just("end"), st.integers(0, 30)),
        st.tuples(st.just("leave"), st.integers(0, 30)),
        st.tuples(st.just("turn"), st.tuples(st.integers(0, 11), st.booleans())),
    ),
    min_size=4,
    max_size=20,
)
MAX_PODS = st.sampled_from((None, 110, 6, 3, 2, 1))
FLEETS = st.integers(1, 3).flatmap(lambda count: st.tuples(*(cards(f"node{at}") for at in range(count))))

T = TypeVar("T", bound=Part)


def decoded(value: Json, kind: type[T]) -> T:
    """Decode an object as it comes from a cluster."""
    found = read_item(msgspec.json.encode(value), kind)
    assert not isinstance(found, Broken), found
    return found


# Both combined


def note(text: str) -> None:
    """Add an event to the test's statistics."""
    if currently_in_test_context():
        event(text)


class World:
    """A cluster with HAMi, as Seaway observes it, and Seaway's placements."""

    def __init__(
        self, fleet: Sequence[list[Card]], lines: Sequence[bool], policy: str, most: Sequence[int | None] = (None,) * 3
    ) -> None:
        nodes = {f"node{at}": found for at, found in enumerate(fleet)}
        self.hami = Hami(nodes, dict(zip(nodes, most, strict=False)))
        self.policy = make_policy(policy, PolicyOptions())
        self.view = ClusterView(Cluster("alpha"), Health(()), lambda _, __: None)
        self.fleet = LiveFleet()
        self.fleet.know(["alpha"], 0)
        self.cursor = ""
        self.jobs: dict[str, tuple[Allocation, list[str]]] = {}
        self.strangers: dict[str, Json] = {}
        self.number = 0
        self.lines = [plain and found[0].mode != "mig" for plain, found in zip(lines, fleet, strict=False)]
        for at in range(len(fleet)):
            self.show(at)
        self.receive()
        self.fleet.set_state("alpha", ClusterState.UP)

    def show(self, at: int) -> None:
        """Let Seaway observe a node."""
        name = f"node{at}"
        written = node_object(name, self.hami.nodes[name], self.hami.most[name], lines=self.lines[at])
        self.view.put_node(decoded(written, NodeObject))

    def receive(self) -> None:
        """Apply the cluster's changes to the fleet."""
        changes = self.view.changes(self.cursor, 0)
        self.cursor = changes.cursor
        if changes.inventory:
            self.fleet.tell(changes.inventory)
        self.fleet.occupy("alpha", changes.unmanaged_pods, complete=changes.complete)

    def take(self, step: Step) -> None:
        """Apply an event."""
        what, which = step
        self.number += 1
        if what == "stranger":
            self.come(which)
        elif what == "job":
            self.submit(which)
        elif what == "end" and self.jobs:
            name = list(self.jobs)[which % len(self.jobs)]
            booking, pods = self.jobs.pop(name)
            booking.release(self.fleet.snapshot)
            for pod in pods:
                del self.hami.held[pod]
        elif what == "leave" and self.strangers:
            self.leave(list(self.strangers)[which % len(self.strangers)], stays=which % 2 == 0)
        elif what == "turn":
            self.turn(which[0], health=which[1])

    def leave(self, name: str, *, stays: bool) -> None:
        """End another user's pod; its object stays or is removed."""
        del self.hami.held[name]
        body = self.strangers.pop(name)
        if stays:
            self.view.put_pod(decoded({**body, "status": {"phase": "Succeeded"}}, PodObject))
        else:
            self.view.drop_pod(f"default/{name}")
        self.receive()

    def turn(self, which: int, *, health: bool) -> None:
        """Change the health of a card, or let a user cordon or uncordon it."""
        places = [(at, card) for at, found in enumerate(self.hami.nodes.values()) for card in found]
        at, card = places[which % len(places)]
        if health:
            card.healthy = not card.healthy
        else:
            card.cordoned = not card.cordoned
        self.show(at)
        self.receive()

    def come(self, pod: Json) -> None:
        """Let HAMi place another user's pod, if it can."""
        name = f"stranger-{self.number}"
        try:
            node = self.hami.place(name, pod, list(self.hami.nodes))
        except RefusedError:
            return
        body = pod_object(name, pod, node, self.hami.held[name][1], "Running")
        self.view.put_pod(decoded(body, PodObject))
        self.strangers[name] = body
        self.receive()

    def submit(self, spec: JobSpec) -> None:
        """Let Seaway place a job, and HAMi its pods; if Seaway does not, HAMi must not either."""
        name = f"01k9zj5q8e0{self.number:02d}"
        snapshot = self.fleet.snapshot
        plan = decide(snapshot, JobQueue(snapshot, [spec.job(name)]), self.policy)
        placements = tuple(plan.placements())
        if not plan.jobs_placed[0] or len(placements) < spec.replicas:
            for booking in allocations_of(plan):
                booking.release(snapshot)
            note("not placed")
            if spec.replicas == 1:
                self.look_for_room(spec)
            return
        try:
            manifests = render(
                Deployment(name, 1, "alpha", spec, placements),
                ClusterOptions().template_options(self.view),
                dict(BUILT_IN),
            )
        except RejectedError:
            for booking in allocations_of(plan):
                booking.release(snapshot)
            note("rejected by its template")
            return
        note(f"placed by {spec.template}")
        self.jobs[name] = next(allocations_of(plan)), []
        for each in manifests:
            for pod, nodes in pods_of(each.pinned()):
                self.land(name, pod, nodes)

    def land(self, name: str, pod: Json, nodes: Sequence[str]) -> None:
        """Let HAMi place a pod of a job on its allowed nodes."""
        full_name = f"{name}-{len(self.jobs[name][1])}"
        try:
            self.hami.place(full_name, pod, nodes)
        except RefusedError as error:
            limits = pod["spec"]["containers"][0]["resources"]["limits"]
            raise AssertionError(f"HAMi refuses {limits} {pod['metadata']['annotations']}: {error}") from None
        self.jobs[name][1].append(full_name)

    def look_for_room(self, spec: JobSpec) -> None:
        """Check that no node accepts a pod with the same request in a HAMi user's terms."""
        request, rules = spec.demand.request.filled(), spec.demand.devices
        memory = (
            {"nvidia.com/gpumem": str(request.gpu_memory_mib)}
            if request.gpu_memory_mib
            else {"nvidia.com/gpumem-percentage": str(request.gpu_memory_percent)}
        )
        cores = {"nvidia.com/gpucores": str(-(-request.gpu_milli // 10))}
        cluster_options = {
            "nvidia.com/use-gputype": ",".join(rules.use_types or sorted(rules.models)),
            "nvidia.com/nouse-gputype": ",".join(rules.avoid_types),
            "nvidia.com/vgpu-mode": ",".join(sorted(mode.value for mode in rules.modes)),
            "nvidia.com/numa-bind": str(rules.same_numa).lower(),
        }
        if (rules.use_types and rules.models) or rules.exclusive or spec.demand.request.mig:
            return  # HAMi has no option for the first and the last, and a policy of another kind for the other
        limits = {"nvidia.com/gpu": str(request.gpus)} | memory | cores
        pod: Json = {
            "metadata": {"annotations": {key: text for key, text in cluster_options.items() if text}},
            "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
        }
        for node in self.hami.nodes:
            for cards in self.choices(node, pod):
                if cards:
                    pod["metadata"]["annotations"]["nvidia.com/use-gpuuuid"] = ",".join(cards)
                    found = self.hami.fit(node, pod)
                    assert isinstance(found, str), f"HAMi has room on {node} for {limits} {cluster_options}: {found}"

    def choices(self, node: str, pod: Json) -> Iterator[list[str]]:
        """Yield the sets of cards that Seaway would let HAMi choose from: a card that fits two, alone."""
        asked = read_asked(pod["spec"]["containers"][0])
        assert asked is not None
        two = {
            card.uuid
            for card in self.hami.nodes[node]
            if card.mode == "mig" and asked.count > 1 and holds_two(card, asked)
        }
        yield [card.uuid for card in self.hami.nodes[node] if card.uuid not in two]
        yield from ([uuid] for uuid in two)

    def ledgers_agree(self) -> None:
        """Check that Seaway's accounting equals HAMi's, and that nothing exceeds a card."""
        snapshot = self.fleet.snapshot
        for node, found in self.hami.nodes.items():
            used, most = self.hami.used(node), self.hami.most[node]
            pods_free = snapshot.arrays.nodes[NODE_PODS_FREE, snapshot.node_index["alpha", node]]
            assert most is None or most - pods_free == self.hami.pods(node) <= most
            for card in found:
                there = used[card.uuid]
                free = snapshot.arrays.devices[:, snapshot.device_index[card.uuid]]
                assert card.memory - free[DEVICE_MEMORY_FREE] == sum(each.memory for each in there)
                assert card.cores * 10 - free[DEVICE_CORE_FREE] == sum(each.cores for each in there) * 10
                assert card.count - free[DEVICE_SLOTS_FREE] == len(there)
                assert len(there) <= card.count
                assert sum(each.memory for each in there) <= card.memory
                if card.mode != "mig":  # seven of the smallest use 105 points
                    assert sum(each.cores for each in there) <= card.cores


def pods_of(body: Json) -> Iterator[tuple[Json, list[str]]]:
    """Yield the pods of a workload, and their allowed nodes."""
    for template, count in templates_of(body.get("spec", {})):
        for _ in range(count):
            yield template, nodes_of(template["spec"])


def templates_of(spec: object) -> Iterator[tuple[Json, int]]:
    """Yield the pod templates in a spec, each with its number of pods."""
    if isinstance(spec, list):
        for each in spec:
            yield from templates_of(each)
    elif isinstance(spec, dict) and "template" in spec:
        count = spec.get("parallelism") or spec.get("replicas") or 1
        yield spec["template"], count
    elif isinstance(spec, dict):
        for each in spec.values():
            yield from templates_of(each)


def nodes_of(pod: Json) -> list[str]:
    """Return the allowed nodes of a pod."""
    host = pod.get("nodeSelector", {}).get("kubernetes.io/hostname")
    nodes = [host] if host else []
    if not nodes:
        chosen = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (expression,) = chosen["nodeSelectorTerms"][0]["matchExpressions"]
        nodes = list(expression["values"])
    return nodes


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES)
@given(fleet=FLEETS, lines=st.tuples(*[st.booleans()] * 3), most=st.tuples(*[MAX_PODS] * 3), steps=STEPS)
def test_what_seaway_places_hami_accepts(
    policy: str,
    fleet: Sequence[list[Card]],
    lines: Sequence[bool],
    most: Sequence[int | None],
    steps: Sequence[Step],
) -> None:
    """In any state, HAMi accepts every pod where Seaway placed it, and has no room where Seaway has none."""
    world = World(fleet, lines, policy, most)
    for step in steps:
        world.take(step)
        world.ledgers_agree()


def test_shares_finer_than_a_point_are_reserved_in_whole_points() -> None:
    """Three replicas with 33.3 % of a card's cores each request 34 points from HAMi, so only two share a card."""
    card = Card("GPU-node0-0000-4000-8000-000000000000", 0, 10, 81_920, 100, MODELS[1][0], 0, "hami-core", healthy=True)
    world = World([[card, replace(card, uuid="GPU-node0-0001-4000-8000-000000000000", index=1)]], [False], "bestfit")
    world.submit(JobSpec("train", Demand(ResourceRequest(100, 64, 1, 1_000, 0, 333)), 3, gang=True, run=RUN))
    used = world.hami.used("node0").values()
    assert sorted([each.cores for each in there] for there in used) == [[34], [34, 34]]


def test_instances_of_a_replica_are_on_one_card() -> None:
    """Three instances on either card: two replicas of two instances have a card each, and a third has no room."""
    card = Card("", 0, 7, 40_960, 100, MODELS[0][0], 0, "mig", healthy=True, profiles=A100_40)
    both = [replace(card, uuid=f"GPU-node0-000{at}-4000-8000-000000000000", index=at) for at in range(2)]
    world = World([both], [False], "bestfit")
    for _ in range(3):
        world.number += 1
        world.submit(JobSpec("train", Demand(ResourceRequest(100, 64, 2, 9_000)), run=RUN))
    assert [len(there) for there in world.hami.used("node0").values()] == [2, 2]


def test_whole_cards_in_mig_mode_are_taken_several_at_once() -> None:
    """A card has one instance of its whole size, so a replica with two of them gets one of each card."""
    card = Card("", 0, 7, 40_960, 100, MODELS[0][0], 0, "mig", healthy=True, profiles=A100_40)
    both = [replace(card, uuid=f"GPU-node0-000{at}-4000-8000-000000000000", index=at) for at in range(2)]
    world = World([both], [False], "bestfit")
    world.submit(JobSpec("train", Demand(ResourceRequest(100, 64, 2, 40_448)), run=RUN))
    assert [[each.profile for each in there] for there in world.hami.used("node0").values()] == [["7g.40gb"]] * 2
