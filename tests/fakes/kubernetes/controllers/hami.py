"""HAMi's rules for NVIDIA cards, in the order in which its scheduler tries them (v2.10; no MIG)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from tests.fakes.kubernetes.kinds import Json
from tests.fakes.kubernetes.quantities import milli

REGISTER = "hami.io/node-nvidia-register"
SCORES = "hami.io/node-nvidia-score"
CORDON = "hami.io/device-cordon"
NODE = "hami.io/vgpu-node"
TIME = "hami.io/vgpu-time"
TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
ALLOCATED = "hami.io/vgpu-devices-allocated"
BIND_PHASE = "hami.io/bind-phase"
BIND_TIME = "hami.io/bind-time"
COUNT, MEMORY, PERCENT, CORES = (
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
)
RESOURCES = frozenset({COUNT, MEMORY, PERCENT, CORES, "nvidia.com/priority"})
"""Resources that kube-scheduler leaves to HAMi."""
SCHEDULER = "hami-scheduler"
WORD = "NVIDIA"


@dataclass(slots=True)
class Card:
    """A card of a node with its allocations."""

    uuid: str
    index: int
    count: int
    memory_mib: int
    cores: int
    type: str
    numa: int
    mode: str
    healthy: bool
    used: int = 0
    used_mib: int = 0
    used_cores: int = 0
    scores: Mapping[str, int] = field(default_factory=dict)
    """Scores of the connections to other cards."""

    def score(self) -> float:
        """Return the used share of the card."""
        return 10 * (
            self.used / max(1, self.count)
            + self.used_cores / max(1, self.cores)
            + self.used_mib / max(1, self.memory_mib)
        )

    def take(self, memory_mib: int, cores: int) -> None:
        """Allocate part of the card to a container."""
        self.used += 1
        self.used_mib += memory_mib
        self.used_cores += cores


@dataclass(frozen=True, slots=True)
class Ask:
    """The request of a container; memory is None for a share in percent."""

    count: int
    memory_mib: int | None
    percent: int
    cores: int


Devices = list[tuple[str, int, int]]
"""Uuid, MiB and cores of each card of a container."""


def read_node_cards(annotations: Mapping[str, str]) -> list[Card]:
    """Read the registration of a node, with the scores of its cards' connections."""
    scores = {each["uuid"]: each["score"] for each in json.loads(annotations.get(SCORES, "[]"))}
    return [replace(card, scores=scores.get(card.uuid, {})) for card in read_cards(annotations[REGISTER])]


def read_cards(annotation: str) -> list[Card]:
    """Read the registration of a node; missing fields count as zero or false."""
    if not annotation.startswith("["):
        return [_old_card(line.split(",")) for line in annotation.split(":") if line.count(",") >= 6]
    return [
        Card(
            one["id"],
            one.get("index", 0),
            one.get("count", 0),
            one.get("devmem", 0),
            one.get("devcore", 0),
            one.get("type", ""),
            one.get("numa", 0),
            one.get("mode", "hami-core"),
            one.get("health", False),
        )
        for one in json.loads(annotation)
    ]


def _old_card(parts: Sequence[str]) -> Card:
    index = int(parts[7]) if len(parts) > 7 else 0
    mode = parts[8] if len(parts) > 8 else "hami-core"
    return Card(
        parts[0], index, int(parts[1]), int(parts[2]), int(parts[3]), parts[4], int(parts[5]), mode, parts[6] == "true"
    )


def read_devices(annotation: str) -> Iterable[tuple[str, int, int]]:
    """Yield UUID, MiB and cores of all devices that a pod has."""
    for container in annotation.split(";"):
        for device in container.split(":"):
            parts = device.split(",")
            if len(parts) == 4 and parts[0]:
                yield parts[0].partition("[")[0], int(parts[2]), int(parts[3])


def write_devices(containers: Sequence[Devices]) -> str:
    """Write the devices of the containers of a pod.

    Examples
    --------
    >>> write_devices([[], [("GPU-A", 8000, 30)]])
    ';GPU-A,NVIDIA,8000,30:;'
    """
    return "".join(
        "".join(f"{uuid},{WORD},{memory},{cores}:" for uuid, memory, cores in devices) + ";" for devices in containers
    )


def ask_of(container: Json) -> Ask | None:
    """Return the request of a container; None if it requests no card."""
    resources = container.get("resources") or {}
    wanted = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    count = milli(wanted.get(COUNT, 0)) // 1000
    if count == 0:
        return None
    memory = milli(wanted.get(MEMORY, 0)) // 1000
    percent = milli(wanted.get(PERCENT, 0)) // 1000
    cores = min(100, milli(wanted.get(CORES, 0)) // 1000)
    return Ask(count, memory or None, percent or 100, cores)


def is_for_hami(pod: Json) -> bool:
    """Report whether any container of a pod requests a resource of HAMi."""
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return any(RESOURCES & set((one.get("resources") or {}).get("limits") or ()) for one in containers)


def fill_in(pod: Json) -> None:
    """Default a new pod as HAMi's webhook does: one card if none is requested, all cores for a whole card."""
    spec = pod["spec"]
    if spec.get("schedulerName") not in (None, "", "default-scheduler", SCHEDULER):
        return
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        if not RESOURCES & set(limits):
            continue
        spec["schedulerName"] = SCHEDULER
        more: Json = {}
        if COUNT not in limits:
            more[COUNT] = "1"
        if CORES not in limits and MEMORY not in limits and str(limits.get(PERCENT, "100")) == "100":
            more[CORES] = "100"
        limits.update(more)
        resources.setdefault("requests", {}).update(more)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options in a pod's annotations."""

    use_type: tuple[str, ...]
    no_type: tuple[str, ...]
    use_uuid: tuple[str, ...]
    no_uuid: tuple[str, ...]
    mode: str
    numa: bool
    policy: str

    @classmethod
    def read(cls, annotations: Mapping[str, str]) -> ClusterOptions:
        """Read the annotations."""

        def words(name: str) -> tuple[str, ...]:
            return tuple(word.strip() for word in annotations.get(f"nvidia.com/{name}", "").split(",") if word.strip())

        return cls(
            tuple(word.lower() for word in words("use-gputype")),
            tuple(word.lower() for word in words("nouse-gputype")),
            words("use-gpuuuid"),
            words("nouse-gpuuuid"),
            annotations.get("nvidia.com/vgpu-mode", ""),
            annotations.get("nvidia.com/numa-bind") == "true",
            annotations.get("hami.io/gpu-scheduler-policy", "spread"),
        )

    def refuses(self, card: Card) -> str:
        """Return the reason that excludes a card, or an empty text."""
        kind = card.type.lower()
        if self.use_type and not any(word in kind for word in self.use_type):
            return "CardTypeMismatch"
        if any(word in kind for word in self.no_type) or (self.mode and card.mode not in self.mode):
            return "CardTypeMismatch"
        if (self.use_uuid and card.uuid not in self.use_uuid) or card.uuid in self.no_uuid:
            return "CardUuidMismatch"
        return ""


def fit(cards: Sequence[Card], cordoned: Sequence[str], pod: Json) -> list[Devices] | Counter[str]:
    """Return the devices of each container of a pod on a node, or the number of cards that each reason excludes."""
    cluster_options = ClusterOptions.read(pod["metadata"].get("annotations") or {})
    taken = [replace(card) for card in cards]
    found: list[Devices] = []
    spec = pod["spec"]
    for container in spec.get("initContainers") or ():
        alone = _fit_container([replace(card) for card in cards], cordoned, cluster_options, ask_of(container))
        if isinstance(alone, Counter):
            return alone
        found.append(alone)
    for container in spec["containers"]:
        devices = _fit_container(taken, cordoned, cluster_options, ask_of(container))
        if isinstance(devices, Counter):
            return devices
        found.append(devices)
    return found


def _fit_container(
    cards: Sequence[Card], cordoned: Sequence[str], cluster_options: ClusterOptions, ask: Ask | None
) -> Devices | Counter[str]:
    if ask is None:
        return []
    if ask.count > len(cards):
        return Counter({"NodeInsufficientDevice": 1})
    binpack, all_of_them = cluster_options.policy == "binpack", cluster_options.policy == "topology-aware"
    order = sorted(cards, key=lambda card: (card.score() if binpack else -card.score(), card.numa, -card.index))
    reasons: Counter[str] = Counter()
    chosen: list[Card] = []
    for card in reversed(order):
        reason = _refuses_card(card, cordoned, cluster_options, ask)
        if reason:
            reasons[reason] += 1
            continue
        if cluster_options.numa and chosen and chosen[0].numa != card.numa:
            reasons["NumaNotFit"] += len(chosen)
            chosen = []
        chosen.append(card)
        if len(chosen) == ask.count and not all_of_them:
            break
    if len(chosen) < ask.count:
        if chosen:
            reasons["AllocatedCardsInsufficientRequest"] += len(chosen)
        return reasons
    best = max(combinations(chosen, ask.count), key=_connection)
    devices = [(card.uuid, _memory(card, ask), ask.cores) for card in best]
    for card, (_, memory, cores) in zip(best, devices, strict=True):
        card.take(memory, cores)
    return devices


def _connection(cards: Iterable[Card]) -> int:
    """Return the sum of the scores of the connections between cards."""
    return sum(one.scores.get(other.uuid, 0) for one, other in combinations(cards, 2))


def _memory(card: Card, ask: Ask) -> int:
    return ask.memory_mib if ask.memory_mib is not None else card.memory_mib * ask.percent // 100


def _refuses_card(card: Card, cordoned: Sequence[str], cluster_options: ClusterOptions, ask: Ask) -> str:
    """Return the first rule that excludes a card, or an empty text."""
    refused = cluster_options.refuses(card)
    rules = (
        (not card.healthy, "CardNotHealth"),
        (card.uuid in cordoned, "CardCordoned"),
        (bool(refused), refused),
        (card.used >= card.count, "CardTimeSlicingExhausted"),
        (cluster_options.policy == "mutex" and card.used > 0, "ExclusiveDeviceAllocateConflict"),
        (card.memory_mib - card.used_mib < _memory(card, ask), "CardInsufficientMemory"),
        (card.cores - card.used_cores < ask.cores, "CardInsufficientCore"),
        (card.cores == 100 and ask.cores == 100 and card.used > 0, "ExclusiveDeviceAllocateConflict"),
        (card.cores > 0 and card.used_cores == card.cores and ask.cores == 0, "CardComputeUnitsExhausted"),
    )
    return next((reason for applies, reason in rules if applies), "")
