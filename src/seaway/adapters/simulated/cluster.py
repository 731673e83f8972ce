"""A simulated cluster: a `Backend` with books of its own and faults on demand, for any thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import pi, sin
from pathlib import Path
from random import Random
from threading import Condition
from time import monotonic
from typing import Any
from zlib import crc32

from seaway.adapters.simulated.faults import Options
from seaway.adapters.simulated.journal import Journal, Opened, compact, read_journal
from seaway.adapters.simulated.ledger import Key, NodeLedger
from seaway.adapters.simulated.random_faults import Chances
from seaway.adapters.simulated.state import NS_PER_S, ClusterState, Orders
from seaway.adapters.simulated.workload import Record, gone, lines, manifests, require_container
from seaway.application.ports.backend import Answer, Changes, Command, Removal
from seaway.application.ports.clock import Clock
from seaway.application.ports.usage import NodeUsage, Used
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Deployment, WorkloadPhase
from seaway.domain.errors import RejectedError, UnavailableError

MEASURE_EVERY_NS = 5_000_000_000
"""How often it is measured."""

SWING_NS = 300_000_000_000
"""How long cores take to go up and down once."""

BYTES_PER_MIB = 1 << 20
PARTS = 1000


def used_of(nodes: Mapping[str, NodeLedger], records: Iterable[Record], now_ns: int) -> dict[str, NodeUsage]:
    """Return what is used of each device, by node; the same for the same copies and time.

    A replica uses 60 to 95 % of the memory that it holds, and 20 to 100 % of the cores.
    """
    memory_bytes = {uuid: 0 for node in nodes.values() for uuid in node.devices}
    core_milli = dict.fromkeys(memory_bytes, 0)
    for record in records:
        if record.phase is not WorkloadPhase.RUNNING:
            continue
        for placement in record.made.placements:
            habit = crc32(f"{record.made.job_id}/{placement.replica}".encode()) % PARTS / PARTS
            cores = 0.6 + 0.4 * sin(2 * pi * (now_ns / SWING_NS + habit))
            for taken in placement.slices:
                memory_bytes[taken.uuid] += round((0.6 + 0.35 * habit) * taken.memory_mib * BYTES_PER_MIB)
                core_milli[taken.uuid] += round(cores * taken.core_milli)
    return {
        name: NodeUsage(0.0, {uuid: Used(memory_bytes[uuid], core_milli[uuid]) for uuid in node.devices}, {})
        for name, node in nodes.items()
    }


FOREVER_S = 3600.0
"""How long a waiting call sleeps at most before it looks again."""


class SimulatedCluster:
    """One simulated cluster.

    Parameters
    ----------
    cluster
        Its nodes and devices, as they are when nothing runs.
    clock
        Every delay goes by its monotonic time. The time of day is only read once, at the start.
    options
        How it behaves.
    journal
        A file to keep its state in; None keeps none.

    Raises
    ------
    RejectedError
        When the journal cannot be read, or belongs to another fleet.
    """

    def __init__(
        self, cluster: Cluster, clock: Clock, options: Options | None = None, journal: Path | None = None
    ) -> None:
        self._options = options or Options()
        self._clock = clock
        self._changed = Condition()
        self._closed = False
        self._cut = False
        self._hangs = False
        self._cut_until_ns: int | None = None
        self._used: Mapping[str, NodeUsage] = {}
        self._measure_ns = 0
        faults = self._options.faults
        self._calls = Random(f"{faults.seed}/{cluster.name}/calls")  # nothing here is a secret
        entries = read_journal(journal) if journal else []
        self._orders = Orders(self._start_delay_ns)
        self._state = ClusterState(cluster, faults, Journal(None), self._orders, self._options.changes_kept)
        times = self._state.restore(entries) + 1
        latest_ns = entries[-1].at_ns if entries else 0
        self._ahead_ns = max(clock.now_ns(), latest_ns) - clock.monotonic_ns()
        if journal and len(entries) > self._options.journal_kept:
            compact(journal, self._state.entries(latest_ns, times - 1))
        self._journal = self._state.journal = Journal(journal)
        self._chances = Chances(self._state, faults, self._now_ns(), times)
        self._journal.add(Opened(self._now_ns(), times))
        self._journal.flush()

    @property
    def cluster(self) -> str:
        """Its name."""
        return self._state.name

    # The port

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return what changed since `cursor`; everything when it is empty or too old."""
        give_up = monotonic() + wait_s
        with self._changed:
            self._hear()
            while True:
                self._catch_up()
                self._require_reachable()
                found = self._state.log.since(cursor)
                left_s = give_up - monotonic()
                if found is None or found or left_s <= 0 or self._closed or not self._options.waits:
                    return self._told(found)
                self._changed.wait(min(left_s, self._until_due_s()))

    def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Carry out commands, each for itself; return an answer for each, in their order."""
        with self._changed:
            lost = self._hear()
            with self._acting() as now_ns:
                answers = [self._carry_out(command, now_ns) for command in commands]
            if lost:
                raise self._silence("the answer was lost")
            return answers

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return a Kubernetes Job for each replica, as a cluster would be sent it."""
        return manifests(deployment)

    def logs(self, copy: str, replica: int, tail: int, container: str = "") -> Iterator[str]:
        """Return the last lines of a replica: made up from how long it runs."""
        require_container(container)
        with self._changed:
            self._hear()
            self._catch_up()
            record = self._state.find(read_copy_name(copy))
            if replica not in {each.replica for each in record.made.placements}:
                raise RejectedError(f"copy {copy!r} has no replica {replica} in cluster {self.cluster!r}")
            said = list(lines(record, replica, self._now_ns()))
        return islice(said, max(0, len(said) - max(0, tail)), None)

    def usage(self) -> Mapping[str, NodeUsage]:
        """Return what is used of the devices of each node, where this cluster measures that and can be reached."""
        if not self._options.measures or self._cut:
            return {}
        with self._changed:
            now_ns = self._now_ns()
            if now_ns >= self._measure_ns:
                self._used = used_of(self._state.books.nodes, self._state.records.values(), now_ns)
                self._measure_ns = now_ns + MEASURE_EVERY_NS
            return self._used

    # Faults on demand

    def fail_node(self, name: str, for_s: float | None = None) -> None:
        """Have a node fail, with all replicas on it; it comes back after `for_s` seconds, or when it is healed."""
        with self._acting() as now_ns:
            self._state.set_node(self._state.node(name), now_ns, ready=False, until_ns=_until(now_ns, for_s))

    def heal_node(self, name: str) -> None:
        """Have a node come back; what failed with it stays so."""
        with self._acting() as now_ns:
            self._state.set_node(self._state.node(name), now_ns, ready=True)

    def fail_device(self, uuid: str, for_s: float | None = None) -> None:
        """Have a device become unhealthy, and the copies that hold a slice of it fail."""
        with self._acting() as now_ns:
            node, device = self._state.device(uuid)
            self._state.set_device(node, device, now_ns, healthy=False, until_ns=_until(now_ns, for_s))

    def heal_device(self, uuid: str) -> None:
        """Have a device become well."""
        with self._acting() as now_ns:
            self._state.set_device(*self._state.device(uuid), now_ns, healthy=True)

    def disconnect(self, for_s: float | None = None, *, hangs: bool = False) -> None:
        """Have every call fail with `UnavailableError`; what runs goes on running.

        Parameters
        ----------
        for_s
            After how many seconds the cluster answers again by itself; None for not before `reconnect`.
        hangs
            Whether calls first hang until they time out.
        """
        with self._acting() as now_ns:
            self._cut, self._hangs = True, hangs
            self._cut_until_ns = _until(now_ns, for_s)
            self._state.later(self._cut_until_ns, self._cut_over)

    def reconnect(self) -> None:
        """Have the cluster answer again, also where an outage came by chance."""
        with self._acting():
            self._cut = self._hangs = self._chances.unreachable = False

    def slow_down(self, start_delay_s: float | None) -> None:
        """Have copies to come take so long to start; None for as long as usual."""
        with self._acting():
            usual = self._start_delay_ns
            self._orders.start_delay_ns = usual if start_delay_s is None else round(start_delay_s * NS_PER_S)

    def refuse(self, reason: str) -> None:
        """Refuse every deployment to come, for `reason`; an empty one ends it."""
        with self._acting():
            self._orders.refusal = reason

    def fail_starts(self, reason: str) -> None:
        """Have every copy to come fail at its start, for `reason`; an empty one ends it."""
        with self._acting():
            self._orders.start_error = reason

    def fail_copy(self, job_id: str, attempt: int, reason: str) -> None:
        """Have a copy fail, if it still lives."""
        with self._acting() as now_ns:
            self._state.fail(self._state.find((job_id, attempt)), now_ns, reason)

    def vanish(self, job_id: str, attempt: int) -> None:
        """Remove a copy behind Seaway's back."""
        with self._acting() as now_ns:
            self._state.find((job_id, attempt))
            self._state.remove((job_id, attempt), now_ns, vanished=True)

    def heal(self) -> None:
        """End every fault that was ordered, and have every node and device come back."""
        self.reconnect()
        self.slow_down(None)
        self.refuse("")
        self.fail_starts("")
        with self._acting() as now_ns:
            for node in list(self._state.books.troubled()):
                self._state.set_node(node, now_ns, ready=node.node.ready)
                for device in node.devices.values():
                    self._state.set_device(node, device, now_ns, healthy=device.device.healthy)

    def stop_waiting(self) -> None:
        """Let waiting calls return; from now on none waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """Let waiting calls return, and let go of the journal: what happens from now on is not kept."""
        self.stop_waiting()
        with self._changed:
            self._journal.close()

    # Details

    @property
    def _start_delay_ns(self) -> int:
        return round(self._options.start_delay_s * NS_PER_S)

    def _now_ns(self) -> int:
        """Return the cluster's own time: the time of day when it started, and steady from then on."""
        return self._clock.monotonic_ns() + self._ahead_ns

    def _catch_up(self) -> int:
        """Carry out what is due, write the journal, wake who waits; return the time."""
        now_ns, before = self._now_ns(), self._state.log.count
        self._state.advance(now_ns)
        self._journal.flush()
        if self._state.log.count != before:
            self._changed.notify_all()
        return now_ns

    @contextmanager
    def _acting(self) -> Iterator[int]:
        """Hold the lock and the time for something that changes the cluster."""
        with self._changed:
            yield self._catch_up()
            self._journal.flush()
            self._changed.notify_all()

    def _hear(self) -> bool:
        """Answer a call or raise `UnavailableError`; tell whether its answer is to be lost."""
        self._catch_up()
        faults = self._options.faults
        chance = self._calls.random() if faults.of_calls else 1.0
        if self._hangs or chance < faults.hangs:
            self._hang(lasting=not self._hangs)
        self._require_reachable()
        chance -= faults.hangs
        if 0 <= chance < faults.request_lost:
            raise self._silence("the request was lost")
        chance -= faults.request_lost
        return 0 <= chance < faults.answer_lost

    def _hang(self, *, lasting: bool) -> None:
        """Wait until a call times out, or, unless it is a `lasting` hang, until the cluster answers again."""
        if self._options.waits:
            self._changed.wait_for(lambda: self._closed or not (lasting or self._hangs), self._options.timeout_s)
        if lasting or self._hangs:
            raise self._silence(f"no answer within {self._options.timeout_s:g} s")

    def _require_reachable(self) -> None:
        if self._cut or self._chances.unreachable:
            raise self._silence("cannot be reached")

    def _silence(self, why: str) -> UnavailableError:
        return UnavailableError(f"cluster {self.cluster!r}: {why} (simulated)", retry_after_s=1)

    def _cut_over(self, _: None, due_ns: int) -> None:
        if self._cut_until_ns == due_ns:
            self._cut = self._hangs = False
            self._changed.notify_all()

    def _until_due_s(self) -> float:
        due_ns = self._state.next_due_ns
        return FOREVER_S if due_ns is None else max(0.0, (due_ns - self._now_ns()) / NS_PER_S) + 1e-4

    def _told(self, found: dict[Key | None, None] | None) -> Changes:
        state, cursor = self._state, self._state.log.cursor
        if found is None:
            everything = tuple(record.seen(state.name) for record in state.records.values())
            return Changes(cursor, complete=True, workloads=everything, inventory=state.books.inventory())
        inventory = state.books.inventory() if None in found else None
        records = state.records
        workloads = tuple(
            records[key].seen(state.name) if key in records else gone(key, state.name)
            for key in found
            if key is not None
        )
        return Changes(cursor, complete=False, workloads=workloads, inventory=inventory)

    def _carry_out(self, command: Command, now_ns: int) -> Answer:
        if not isinstance(command, Removal):
            return self._state.create(command, now_ns)
        if command.cluster != self.cluster:
            return Answer(done=False, refused=True, reason=f"the removal is for cluster {command.cluster}")
        self._state.remove((command.job_id, command.attempt), now_ns)
        return Answer(done=True)


def read_copy_name(copy: str) -> Key:
    """Read the name of a copy.

    Raises
    ------
    RejectedError
        When it is none.
    """
    stem, _, attempt = copy.removeprefix("sw-").rpartition("-")
    if not copy.startswith("sw-") or not stem or not attempt.isdecimal():
        raise RejectedError(f"{copy!r} is not a name of a copy")
    return stem, int(attempt)


def _until(now_ns: int, for_s: float | None) -> int | None:
    return None if for_s is None else now_ns + round(for_s * NS_PER_S)
