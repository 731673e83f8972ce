"""Histories of small fleets: jobs start and end, nodes and links change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from seaway.domain.cluster import Cluster, Fleet
from seaway.domain.device import Device
from seaway.domain.errors import RejectedError
from seaway.domain.facts import Facts
from seaway.domain.job import Job
from seaway.domain.network import Gateway, Link
from seaway.domain.node import Node
from seaway.scheduling.engine import Policy, decide, placer_for
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_links, put_node, remove_node
from seaway.scheduling.statement import Statement
from seaway.testing.plugins import gpu, mig_gpu, node
from tests.property.strategies import GATEWAYS, L4, RESERVED, USER, jobs

NAMES = ("a", "b")
TRAVELLER = "GPU-traveller"
"""A device that may appear on any node."""


@dataclass(frozen=True)
class Place:
    """Schedule jobs; with `undone`, roll the decisions back."""

    jobs: list[Job]
    undone: bool = False


@dataclass(frozen=True)
class Release:
    """End some of the running replicas."""

    which: int


@dataclass(frozen=True)
class Put:
    """Add or change a node."""

    cluster: int
    node: Node


@dataclass(frozen=True)
class Remove:
    """Remove a node."""

    cluster: int
    name: str


@dataclass(frozen=True)
class Measure:
    """Measure the links again."""

    links: tuple[Link, ...]


Change = Place | Release | Put | Remove | Measure


def devices_of(cluster: int, name: str) -> st.SearchStrategy[tuple[Device, ...]]:
    """Some of the four devices that a node may have, healthy or not, and perhaps the traveller."""
    stem = f"GPU-{cluster}-{name}"

    def made(slots: list[int], memory: int, state: str, traveller: bool) -> tuple[Device, ...]:
        figures = {"healthy": state != "ill", "cordoned": state == "cordoned"}
        kinds = (
            gpu(uuid=f"{stem}-0", memory_mib=memory, **figures),
            gpu(uuid=f"{stem}-1", core_milli=2_000, memory_mib=40_000),
            gpu(uuid=f"{stem}-2", model=L4, memory_mib=23_034, share_limit=2, numa=1, **figures),
            mig_gpu(uuid=f"{stem}-3"),
        )
        guests = (gpu(uuid=TRAVELLER),) if traveller else ()
        return (*(kinds[slot] for slot in slots), *guests)

    return st.builds(
        made,
        st.lists(st.integers(0, 3), unique=True, max_size=4),
        st.sampled_from((81_920, 81_920, 30_000)),
        st.sampled_from(("well", "well", "ill", "cordoned")),
        st.sampled_from((False, False, False, True)),
    )


def nodes_of(cluster: int) -> st.SearchStrategy[Node]:
    """Possible states of a node of a cluster."""
    return st.sampled_from(NAMES).flatmap(
        lambda name: st.builds(
            lambda devices, cpu, ready, taints, zone, pods: node(
                *devices, name=name, cpu_milli=cpu, ready=ready, taints=taints, labels={"zone": zone}, pods=pods
            ),
            devices_of(cluster, name),
            st.sampled_from((6_000, 24_000, 64_000)),
            st.sampled_from((True, True, True, False)),
            st.sampled_from(((), (), (RESERVED,))),
            st.sampled_from(("a", "b")),
            st.sampled_from((None, None, 1, 3)),
        )
    )


def links() -> st.SearchStrategy[tuple[Link, ...]]:
    """Links from users to some clusters."""
    one = st.builds(
        lambda target, latency, bandwidth: Link(USER, target, latency, bandwidth_mbps=bandwidth),
        st.sampled_from(GATEWAYS[:2]),
        st.sampled_from((1_000_000, 30_000_000)),
        st.sampled_from((100, 1_000)),
    )
    return st.lists(one, unique_by=lambda link: link.target).map(tuple)


def fleets() -> st.SearchStrategy[Fleet]:
    """Two initial clusters and their links."""

    def made(ties: tuple[Link, ...], *parts: list[Node]) -> Fleet:
        clusters = []
        seen: set[str] = set()
        for c, members in enumerate(parts):
            own = []
            for each in members:
                own.append(replace(each, devices=tuple(d for d in each.devices if d.uuid not in seen)))
                seen.update(d.uuid for d in each.devices)
            clusters.append(Cluster(f"cluster-{c}", tuple(own), GATEWAYS[c], Facts(("north", "south")[c])))
        return Fleet(tuple(clusters), tuple(Gateway(name) for name in (*GATEWAYS, USER)), ties)

    members = [st.lists(nodes_of(c), unique_by=lambda each: each.name, max_size=2) for c in range(2)]
    return st.builds(made, links(), *members)


def changes() -> st.SearchStrategy[list[Change]]:
    """Histories of up to a dozen changes."""
    puts = st.integers(0, 1).flatmap(lambda c: st.builds(Put, st.just(c), nodes_of(c)))
    return st.lists(
        st.one_of(
            st.builds(Place, jobs(most=5, most_replicas=3), st.booleans()),
            st.builds(Place, jobs(most=5, most_replicas=3)),
            st.builds(Release, st.integers(0, 999)),
            puts,
            puts,
            st.builds(Remove, st.integers(0, 1), st.sampled_from(NAMES)),
            st.builds(Measure, links()),
        ),
        max_size=12,
    )


@dataclass
class History:
    """A snapshot with changes applied, and the expected fleet beside it.

    Attributes
    ----------
    shrunk
        Nodes and devices whose capacity was larger at some time.
    """

    snapshot: Snapshot
    policy: Profile | Policy
    plans: list[Plan] = field(default_factory=list)
    shrunk: set[object] = field(default_factory=set)
    nodes: dict[tuple[str, str], Node] = field(default_factory=dict)
    links: tuple[Link, ...] = ()

    @classmethod
    def of(cls, fleet: Fleet, policy: Profile | Policy) -> History:
        """Begin with an empty fleet."""
        nodes = {(cluster.name, each.name): each for cluster, each in fleet.nodes}
        return cls(Snapshot(fleet), policy, nodes=nodes, links=fleet.links)

    def fleet(self) -> Fleet:
        """Return the expected fleet."""
        clusters = tuple(
            replace(each, nodes=tuple(n for (name, _), n in self.nodes.items() if name == each.name))
            for each in self.snapshot.clusters
        )
        return Fleet(clusters, self.snapshot.fleet.gateways, self.links)

    def live(self, changes: Iterable[Change]) -> None:
        """Apply changes."""
        for change in changes:
            self.go(change)

    def go(self, change: Change) -> None:
        """Apply one change."""
        match change:
            case Place(queue, undone):
                self.undo(queue) if undone else self.place(queue)
            case Release(which):
                self.release(which)
            case Put(cluster, each):
                self.put(f"cluster-{cluster}", each)
            case Remove(cluster, name):
                self.remove(f"cluster-{cluster}", name)
            case Measure(ties):
                put_links(self.snapshot, ties)
                self.links = ties

    def place(self, queue: list[Job]) -> Plan:
        """Schedule jobs."""
        self.plans.append(decide(self.snapshot, JobQueue(self.snapshot, queue), self.policy))
        return self.plans[-1]

    def undo(self, queue: list[Job]) -> None:
        """Schedule jobs and roll back."""
        assert isinstance(self.policy, Profile)
        statement = Statement(self.snapshot, JobQueue(self.snapshot, queue))
        placer_for(self.snapshot, self.policy).place(statement, 0, len(queue))
        statement.rollback()

    def release(self, which: int) -> None:
        """Release about every third line of one plan."""
        if self.plans:
            plan = self.plans[which % len(self.plans)]
            self.snapshot.release(plan.decisions, plan.slices, np.arange(which % 3, len(plan.decisions), 1 + which % 3))

    def release_all(self) -> None:
        """Release all running replicas."""
        for plan in self.plans:
            self.snapshot.release(plan.decisions, plan.slices, np.arange(len(plan.decisions)))

    def put(self, cluster: str, each: Node) -> None:
        """Put a node, which is rejected when another one has the traveller."""
        before = self.nodes.get((cluster, each.name))
        others = [n for at, n in self.nodes.items() if at != (cluster, each.name)]
        taken = {device.uuid for n in others for device in n.devices} & {device.uuid for device in each.devices}
        try:
            put_node(self.snapshot, cluster, each)
        except RejectedError:
            assert taken
            return
        assert not taken
        self.nodes[cluster, each.name] = each
        fewer_pods = before and each.pods is not None and (before.pods is None or each.pods < before.pods)
        if fewer_pods or (before and each.cpu_milli < before.cpu_milli):
            self.shrunk.add((cluster, each.name))
        self.shrunk.update(device.uuid for device in each.devices if device.memory_mib == 30_000)

    def remove(self, cluster: str, name: str) -> None:
        """Remove a node, which is rejected when it does not exist."""
        known = self.nodes.pop((cluster, name), None)
        try:
            remove_node(self.snapshot, cluster, name)
        except RejectedError:
            assert known is None
        else:
            assert known is not None
            self.shrunk.add((cluster, name))
