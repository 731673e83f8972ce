"""What is in one cluster, as the control loop asks for it: changes since a cursor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition
from time import monotonic

from seaway.adapters.kubernetes.collect.copies import assemble, seats
from seaway.adapters.kubernetes.collect.denials import Denial, Denials, Pauses, pods_denied
from seaway.adapters.kubernetes.collect.feedback import Wait
from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.collect.lasting import Lasting
from seaway.adapters.kubernetes.collect.nodes import NODE, SLICE, Nodes, Step
from seaway.adapters.kubernetes.collect.ours import attempt_of, marks_broken
from seaway.adapters.kubernetes.collect.pods import HOSTNAME, Seen, see
from seaway.adapters.kubernetes.collect.shares import Shares
from seaway.adapters.kubernetes.collect.troubles import Troubles
from seaway.adapters.kubernetes.collect.workloads import Workload, WorkloadObject, read_workload
from seaway.adapters.kubernetes.dialects.pods import node_of
from seaway.adapters.kubernetes.dialects.views import NodeView, Trouble
from seaway.adapters.kubernetes.objects.claim import ResourceClaim
from seaway.adapters.kubernetes.objects.meta import Meta
from seaway.adapters.kubernetes.objects.node import NodeObject
from seaway.adapters.kubernetes.objects.page import Broken
from seaway.adapters.kubernetes.objects.pod import PodObject
from seaway.adapters.kubernetes.objects.slice import ResourceSlice
from seaway.application.change_log import ChangeLog
from seaway.application.ports.backend import Changes, CollectorState
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Cause, Copy, CopyPhase, Occupant
from seaway.domain.errors import UnavailableError

Attempt = tuple[str, int]

POD = "pod"
CLAIM = "resource claim"


RECOUNT_S = 1.0
"""How long after a list everything is told: other kinds are listed then, too, and watches have told what came since."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How a view deals with what takes long.

    Attributes
    ----------
    patience_s
        How long something of a cluster may not answer before nothing that it said counts any more.
    refused_s
        How long no node takes a pod before it is taken for refused: its cluster's scheduler may only be slow.
    stuck_s
        How long a pod may hold devices that cannot start until somebody mends it, before it fails.
    turn_s
        How long a pod waits for its cluster's scheduler before that is told.
    kept
        Changes that cursors may point back over, at the least.
    """

    patience_s: float = 10.0
    refused_s: float = 5.0
    stuck_s: float = 300.0
    turn_s: float = 3.0
    kept: int = 20_000

    def of(self, wait: Wait) -> float:
        """Return how long a pod may wait for something, seconds."""
        return {Wait.TURN: self.turn_s, Wait.MENDING: self.stuck_s}.get(wait, self.refused_s)


class ClusterView:
    """The view of one cluster: told by its sources on the event loop, asked by the control loop's threads.

    Parameters
    ----------
    described
        The cluster without its nodes: what configuration says of it.
    health
        Whether its sources answer.
    later
        Has something called after so many seconds, on the event loop.
    limits
        How it deals with what takes long.
    namespace
        Where Seaway's own objects are.
    """

    def __init__(
        self,
        described: Cluster,
        health: Health,
        later: Callable[[float, Callable[[], None]], object],
        limits: Limits | None = None,
        namespace: str = "seaway",
    ) -> None:
        self._described = described
        self._health = health
        self._later = later
        self._limits = limits or Limits()
        self.namespace = namespace
        self._changed = Condition()
        self._closed = False
        self._gathers = False
        self._log: ChangeLog[Attempt | str | None] = ChangeLog(self._limits.kept)
        """Attempts by their key, other pods by their name, None for the nodes."""
        self._troubles = Troubles(described.name)
        self._nodes = Nodes(described, self._troubles)
        self._shares = Shares(namespace)
        self._pods: dict[str, Seen] = {}
        self._pods_of: defaultdict[Attempt, dict[str, Seen]] = defaultdict(dict)
        self._workloads: dict[tuple[str, str], Workload] = {}
        self._workloads_of: defaultdict[Attempt, dict[tuple[str, str], Workload]] = defaultdict(dict)
        self._addresses: dict[Attempt, str] = {}
        self._listed: set[str] = set()
        self._recounts = False
        self._waits: Lasting[str] = Lasting(self._soon)
        pauses = Pauses(self._limits.refused_s, self._limits.stuck_s)
        self._denials = Denials(self.name, self._soon, self._note_denied, pauses)
        self._lost: set[str] = set()
        health.on_complete = self.stir

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self._described.name

    @property
    def failing(self) -> bool:
        """Whether something of the cluster fails right now."""
        return self._health.failing_s > 0

    @property
    def patience_s(self) -> float:
        """How long the cluster may be silent."""
        return self._limits.patience_s

    # What the control loop asks.

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return what changed since `cursor`; see the port `Backend`.

        While everything is listed for the first time, that is waited for, too: who is told all at once, and at
        once, need not ask again and again.
        """
        give_up_s = monotonic() + wait_s
        with self._changed:
            while True:
                left_s = give_up_s - monotonic()
                over = left_s <= 0 or self._closed
                if why := self._health.silence(self._limits.patience_s):
                    if over or not self._health.listing:
                        raise UnavailableError(why if why.startswith(self.name) else f"{self.name}: {why}")
                else:
                    found = self._log.since(cursor)
                    if found is None or found or over:
                        return self._told(found)
                self._changed.wait(left_s)

    def node(self, name: str) -> NodeView | None:
        """Return a node with what is known of its dialects."""
        with self._changed:
            return self._nodes.get(name)

    def hostname(self, node: str) -> str:
        """Return the label by which pods choose a node."""
        known = self.node(node)
        return known.node.labels.get(HOSTNAME, node) if known else node

    def seats(self, attempt: Attempt) -> dict[int, Seen]:
        """Return the pod of each replica of an attempt that has one."""
        with self._changed:
            found = seats(self._workloads_of.get(attempt, {}).values(), self._pods_of.get(attempt, {}).values())
            return {replica: pod for _, replica, pod in found if pod}

    def objects_of(self, attempt: Attempt) -> set[tuple[str, str]]:
        """Return the objects of an attempt: the path of all of their kind, and ``namespace/name``."""
        with self._changed:
            return set(self._workloads_of[attempt]) if attempt in self._workloads_of else set()

    def troubles(self) -> dict[str, tuple[Trouble, ...]]:
        """Return what is wrong with objects, by what they are and their name, like ``pod/NAMESPACE/NAME``."""
        with self._changed:
            return self._troubles.all()

    def collector_state(self) -> CollectorState:
        """Return how collecting goes."""
        with self._changed:
            return CollectorState(self._troubles.counts(), self._health.failing())

    def close(self) -> None:
        """Let waiting calls return."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def stir(self) -> None:
        """Have waiting calls look whether the cluster is still heard."""
        with self._changed:
            self._changed.notify_all()

    def _told(self, found: dict[Attempt | str | None, None] | None) -> Changes:
        if found is None:
            keys = [*self._pods_of.keys() | self._workloads_of.keys() | self._denials.wholes]
            copies = [copy for key in keys if (copy := self._copy(key))]
            occupants = [_occupant(pod) for pod in self._pods.values() if pod.mine is None and pod.holds]
            return Changes(self._log.cursor, True, tuple(copies), self._nodes.inventory(), tuple(occupants))
        inventory = self._nodes.inventory() if None in found else None
        attempts = [key for key in found if isinstance(key, tuple)]
        names = [key for key in found if isinstance(key, str)]
        copies = [self._copy(key) or Copy(*key, self.name, CopyPhase.GONE) for key in attempts]
        return Changes(
            self._log.cursor, False, tuple(copies), inventory, tuple(self._occupant_named(name) for name in names)
        )

    def _copy(self, key: Attempt) -> Copy | None:
        workloads = self._workloads_of.get(key, {})
        pods = self._pods_of.get(key, {})
        address = self._addresses.get(key, "")
        lasting = {pod.uid: self._why_lasting(pod) for pod in pods.values() if pod.uid in self._waits}
        copy = assemble(
            key, self.name, workloads.values(), pods.values(), lasting=lasting, lost=self._lost, address=address
        )
        return self._denials.weigh(key, copy)

    def _why_lasting(self, pod: Seen) -> Cause:
        """Say what it comes from that a pod waits; no node may take it as its own is down, which nobody decided."""
        if pod.verdict and pod.verdict.wait is not Wait.NODE:
            return pod.verdict.cause
        pinned = [view.node for view in self._nodes if view.node.labels.get(HOSTNAME) == pod.wants]
        return Cause.REFUSED if not pod.wants or any(node.ready for node in pinned) else Cause.INFRASTRUCTURE

    def _occupant_named(self, name: str) -> Occupant:
        pod = self._pods.get(name)
        return _occupant(pod) if pod and pod.holds else Occupant(name, "")

    # What the sources tell.

    def put_node(self, written: NodeObject) -> None:
        """Take a node as it is now."""
        with self._changed:
            self._stepped(written.metadata.name, self._nodes.put(written))

    def drop_node(self, name: str) -> None:
        """Note that a node is gone."""
        with self._changed:
            self._troubles.note(NODE, name)
            self._stepped(name, self._nodes.drop(name))

    def replace_nodes(self, written: Sequence[NodeObject]) -> None:
        """Take these for all nodes."""
        with self._gathering():
            for name in self._nodes.names - {each.metadata.name for each in written}:
                self.drop_node(name)
            for each in written:
                self.put_node(each)
            self._listed_all(NODE)

    def put_slices(self, changed: Iterable[ResourceSlice], gone: Collection[str] = ()) -> None:
        """Take resource slices as they are now, and note which, by name, are gone."""
        with self._changed:
            for name in gone:
                self._troubles.note(SLICE, name)
            for node, step in self._nodes.put_slices(changed, gone).items():
                self._stepped(node, step)

    def replace_slices(self, written: Sequence[ResourceSlice]) -> None:
        """Take these for all resource slices."""
        with self._gathering():
            self.put_slices(written, self._nodes.slices - {each.metadata.name for each in written})
            self._listed_all(SLICE)

    def put_claim(self, claim: ResourceClaim) -> None:
        """Take a resource claim as it is now."""
        with self._changed:
            self._troubles.note(CLAIM, f"{claim.metadata.namespace}/{claim.metadata.name}")
            self._read_again(self._shares.put_claim(claim))

    def drop_claim(self, name: str) -> None:
        """Note that a resource claim is gone."""
        with self._changed:
            self._troubles.note(CLAIM, name)
            self._read_again(self._shares.drop_claim(name))

    def replace_claims(self, written: Sequence[ResourceClaim]) -> None:
        """Take these for all resource claims."""
        with self._gathering():
            for name in self._shares.claims - {f"{each.metadata.namespace}/{each.metadata.name}" for each in written}:
                self.drop_claim(name)
            for each in written:
                self.put_claim(each)
            self._listed_all(CLAIM)

    def put_pod(self, written: PodObject) -> None:
        """Take a pod as it is now."""
        with self._changed:
            view, again = self._shares.read(written, self._nodes.get(node_of(written)))
            seen = see(written, view, self.namespace)
            self._troubles.note(POD, seen.full_name, view.troubles + marks_broken(written.metadata, self.namespace))
            before = self._pods.get(seen.full_name)
            if before != seen:
                self._forget(before)
                self._pods[seen.full_name] = seen
                if seen.mine:
                    self._pods_of[seen.mine][seen.full_name] = seen
                    self._watch_wait(seen)
                self._note_pods(before, seen)
            if again:
                self._read_again(again)

    def drop_pod(self, full_name: str) -> None:
        """Note that a pod is gone."""
        with self._changed:
            before = self._pods.pop(full_name, None)
            self._troubles.note(POD, full_name)
            if before:
                self._forget(before)
                self._waits.end(before.uid)
                self._note_pods(before)
            self._read_again(self._shares.forget(full_name))

    def replace_pods(self, written: Sequence[PodObject]) -> None:
        """Take these for all pods."""
        there = {f"{each.metadata.namespace}/{each.metadata.name}" for each in written}
        with self._gathering():
            for name in self._pods.keys() - there:
                self.drop_pod(name)
            for each in written:
                self.put_pod(each)
            self._listed_all(POD)

    def put_object(self, kind: str, meta: Meta) -> None:
        """Take an object of an attempt that runs nothing, as it is now."""
        key, name = attempt_of(meta, self.namespace), f"{meta.namespace}/{meta.name}"
        self._set_workload((kind, name), Workload(*key, "", ()) if key else None)
        self._weigh_marks(kind, name, meta)

    def put_workload(self, kind: str, written: WorkloadObject) -> None:
        """Take a workload as it is now."""
        name = f"{written.metadata.namespace}/{written.metadata.name}"
        self._set_workload((kind, name), read_workload(written, self.namespace))
        self._weigh_marks(kind, name, written.metadata)

    def drop_workload(self, kind: str, full_name: str) -> None:
        """Note that a workload is gone."""
        self._set_workload((kind, full_name), None)
        self._weigh_marks(kind, full_name)

    def replace_workloads(self, kind: str, written: Sequence[WorkloadObject]) -> None:
        """Take these for all workloads of a kind.

        Any but the first list may pass over some that came and went since the last: no view ever had them, and whoever
        waits for them is told before long all that there is.
        """
        there = {f"{each.metadata.namespace}/{each.metadata.name}" for each in written} | self._troubles.met(kind)
        for _, name in [each for each in self._workloads if each[0] == kind and each[1] not in there]:
            self.drop_workload(kind, name)
        for each in written:
            self.put_workload(kind, each)
        self._listed_all(kind)
        if kind not in self._listed:
            self._listed.add(kind)
        elif not self._recounts:
            self._recounts = True
            self._later(RECOUNT_S, self._recount)

    def put_address(self, key: Attempt, address: str) -> None:
        """Take where a service of an attempt answers; empty for nowhere."""
        with self._changed:
            if self._addresses.get(key, "") != address:
                self._addresses.pop(key, None)
                if address:
                    self._addresses[key] = address
                if self._copy(key):
                    self._note(key)

    def addressed(self) -> set[Attempt]:
        """Return the attempts of which a service answers."""
        return set(self._addresses)

    def miss(self, attempt: Attempt) -> None:
        """Note that what was to bring an attempt here is gone: if nothing of it came, nothing else tells of that."""
        with self._changed:
            if self._copy(attempt) is None:
                self._note(attempt)

    def deny(self, key: Attempt, source: str, denial: Denial) -> None:
        """Take what a source says is denied of an attempt here."""
        with self._changed:
            self._denials.deny(key, source, denial)

    def allow(self, source: str) -> None:
        """Note that a source says nothing is denied, any more."""
        with self._changed:
            self._denials.allow(source)

    def broken(self, what: str, found: Broken) -> None:
        """Forget what was known of an object that cannot be read; say so once, and count it while that lasts.

        An object of an attempt stays what it was last known for: it is there, and has to be removed one day.

        Parameters
        ----------
        what
            What it is; of an object of an attempt the path of all of its kind.
        """
        name = f"{found.namespace}/{found.name}" if found.namespace else found.name
        drops: dict[str, Callable[[], None]] = {
            NODE: lambda: self.drop_node(name),
            POD: lambda: self.drop_pod(name),
            SLICE: lambda: self.put_slices((), (name,)),
            CLAIM: lambda: self.drop_claim(name),
        }
        with self._changed, self._troubles.unreadable(what, name, found.text):
            if found.name and what in drops:
                drops[what]()

    # Keeping the books.

    def _recount(self) -> None:
        with self._changed:
            self._recounts = False
            self._log.clear()
            self._changed.notify_all()

    def _set_workload(self, place: tuple[str, str], after: Workload | None) -> None:
        with self._changed:
            before = self._workloads.pop(place, None)
            if before:
                key = (before.job_id, before.attempt)
                self._workloads_of[key].pop(place, None)
                if not self._workloads_of[key]:
                    del self._workloads_of[key]
            if after:
                self._workloads[place] = after
                self._workloads_of[after.job_id, after.attempt][place] = after
            if before and (after is None or after.uid != before.uid):
                self._lost.discard(before.uid)
            if before != after:
                self._weigh_trouble(place, after)
                self._watch_failure(place, after)
                for each in (before, after):
                    if each and each.replicas:  # a service that comes before what it leads to is no copy that is gone
                        self._note((each.job_id, each.attempt))

    def _forget(self, pod: Seen | None) -> None:
        if pod and pod.mine and pod.mine in self._pods_of:
            self._pods_of[pod.mine].pop(pod.full_name, None)
            if not self._pods_of[pod.mine]:
                del self._pods_of[pod.mine]

    def _watch_wait(self, pod: Seen) -> None:
        """Look again in a while at a pod that does not start."""
        if pod.verdict is None or pod.verdict.wait is Wait.NONE:
            self._waits.end(pod.uid)
        else:
            wait = pod.verdict.wait
            self._waits.begin(pod.uid, wait, self._limits.of(wait), lambda: self._note(pod.mine))

    def _soon(self, seconds: float, call: Callable[[], None]) -> None:
        """Have something done after so many seconds, while nobody else looks."""

        def locked() -> None:
            with self._changed:
                call()

        self._later(seconds, locked)

    def _weigh_trouble(self, place: tuple[str, str], workload: Workload | None) -> None:
        """Take a workload's own word that its pods are denied; how it ended says more."""
        source = f"{place[0]} {place[1]}"
        if workload and workload.trouble and not workload.ended:
            self._denials.deny((workload.job_id, workload.attempt), source, pods_denied(workload.trouble))
        else:
            self._denials.allow(source)

    def _note_denied(self, key: Attempt) -> None:
        if self._copy(key):
            self._note(key)

    def _watch_failure(self, place: tuple[str, str], workload: Workload | None) -> None:
        """Look again in a while at a workload that failed: a pod of it may be heard of later, and says better why."""
        if workload and workload.ended and workload.ended.phase is CopyPhase.FAILED:
            self._later(self._limits.refused_s, lambda: self._count_failed(place, workload.uid))

    def _count_failed(self, place: tuple[str, str], uid: str) -> None:
        with self._changed:
            now = self._workloads.get(place)
            if now and now.uid == uid and now.ended and uid not in self._lost:
                self._lost.add(uid)
                self._note((now.job_id, now.attempt))

    def _stepped(self, node: str, step: Step) -> None:
        """Tell of what came of something that was told of a node."""
        if step is not Step.NONE:
            self._note(None)
        if step is Step.DEVICES:
            self._read_again(self._shares.on(node))

    def _read_again(self, pods: Iterable[str]) -> None:
        """Read pods again of which more, or something else, is known than when they were last heard."""
        for pod in self._shares.pods(pods):
            self.put_pod(pod)

    def _listed_all(self, what: str) -> None:
        with self._changed:
            self._troubles.listed(what)

    def _weigh_marks(self, kind: str, full_name: str, meta: Meta | None = None) -> None:
        """Note what is wrong with an object's marks; nothing with one that is gone."""
        with self._changed:
            self._troubles.note(kind, full_name, marks_broken(meta, self.namespace) if meta else ())

    def _note_pods(self, *pods: Seen | None) -> None:
        for each in pods:
            if each:
                self._note(each.mine or each.full_name)

    @contextmanager
    def _gathering(self) -> Iterator[None]:
        """Let waiting calls look again only when much was taken over; asked for at any time, all of it shows."""
        self._gathers = True
        try:
            yield
        finally:
            self._gathers = False
            self.stir()

    def _note(self, key: Attempt | str | None) -> None:
        self._log.add(key)
        if not self._gathers:
            self._changed.notify_all()


def _occupant(pod: Seen) -> Occupant:
    return Occupant(pod.full_name, pod.node, pod.slices, pod.cpu_milli, pod.memory_mib, pod.holders)
