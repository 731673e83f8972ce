"""A simulated cluster: a thread-safe `Backend` with its own accounting and fault injection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import pi, sin
from pathlib import Path
from random import Random
from threading import Condition
from time import monotonic
from typing import Any
from zlib import crc32

from seaway.adapters.simulated.faults import Faults, Options, Stream
from seaway.adapters.simulated.journal import Journal, Opened, compact, read_journal
from seaway.adapters.simulated.ledger import DeviceLedger, Key, NodeLedger
from seaway.adapters.simulated.state import NS_PER_S, ClusterState, Orders
from seaway.adapters.simulated.workload import CONTAINER, Record, gone, lines, manifests, require_container
from seaway.application.ports.backend import Answer, Changes, Command, Removal
from seaway.application.ports.clock import Clock
from seaway.application.ports.usage import Held, NodeUsage, Used
from seaway.domain.cluster import Cluster
from seaway.domain.deployment import Deployment, WorkloadPhase
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.reasons import Reason


class FailureRates:
    """Random failures and repairs of nodes and devices, and random outages.

    Parameters
    ----------
    state
        State of the cluster, which schedules the next failures.
    times
        Number of starts of the cluster's process. Each start uses new random draws.

    Attributes
    ----------
    unreachable
        True during an outage.
    """

    def __init__(self, state: ClusterState, faults: Faults, now_ns: int, times: int) -> None:
        self.unreachable = False
        self._state = state
        self._nodes: Sequence[NodeLedger] = tuple(state.ledger.nodes.values())
        self._devices: Sequence[tuple[NodeLedger, DeviceLedger]] = tuple(
            (node, device) for node in self._nodes for device in node.devices.values()
        )
        stem = f"{state.name}/{times}"
        per_h = faults.node_failures_per_h * len(self._nodes)
        self._again(Stream(faults, f"{stem}/nodes", per_h, faults.repair_s), now_ns, self._fail_node)
        per_h = faults.device_failures_per_h * len(self._devices)
        self._again(Stream(faults, f"{stem}/devices", per_h, faults.repair_s), now_ns, self._fail_device)
        stream = Stream(faults, f"{stem}/outages", faults.outages_per_h, faults.outage_s)
        self._again(stream, now_ns, self._begin_outage)

    def _again(self, stream: Stream, now_ns: int, act: Callable[[Stream, int], None]) -> None:
        gap_ns = stream.gap_ns()
        self._state.later(None if gap_ns is None else now_ns + gap_ns, act, stream)

    def _fail_node(self, stream: Stream, due_ns: int) -> None:
        node, until_ns = self._nodes[stream.pick(len(self._nodes))], due_ns + stream.repaired_ns()
        if node.ready:
            self._state.set_node(node, due_ns, ready=False, until_ns=until_ns)
        self._again(stream, due_ns, self._fail_node)

    def _fail_device(self, stream: Stream, due_ns: int) -> None:
        (node, device), until_ns = self._devices[stream.pick(len(self._devices))], due_ns + stream.repaired_ns()
        if device.healthy:
            self._state.set_device(node, device, due_ns, healthy=False, until_ns=until_ns)
        self._again(stream, due_ns, self._fail_device)

    def _begin_outage(self, stream: Stream, due_ns: int) -> None:
        until_ns = due_ns + stream.repaired_ns()
        if not self.unreachable:
            self.unreachable = True
            self._state.later(until_ns, self._end_outage)
        self._again(stream, due_ns, self._begin_outage)

    def _end_outage(self, _: None, due_ns: int) -> None:
        self.unreachable = False


MEASURE_EVERY_NS = 5_000_000_000
"""Interval between two measurements, in nanoseconds."""

CLOCK_SWING_NS = 300_000_000_000
"""Period of the simulated core use, in nanoseconds."""

BYTES_PER_MIB = 1 << 20
PARTS = 1000


def used_of(nodes: Mapping[str, NodeLedger], records: Iterable[Record], now_ns: int) -> dict[str, NodeUsage]:
    """Return the use of each device and pod, by node. The result depends only on the workloads and the time.

    A replica uses 60 to 95 % of its allocated memory, and 20 to 100 % of its cores.
    """
    memory_bytes = {uuid: 0 for node in nodes.values() for uuid in node.devices}
    core_milli = dict.fromkeys(memory_bytes, 0)
    containers: defaultdict[str, dict[Held, dict[str, Used]]] = defaultdict(dict)
    for record in records:
        if record.phase is not WorkloadPhase.RUNNING:
            continue
        for placement in record.made.placements:
            habit = crc32(f"{record.made.job_id}/{placement.replica}".encode()) % PARTS / PARTS
            cores = 0.6 + 0.4 * sin(2 * pi * (now_ns / CLOCK_SWING_NS + habit))
            for taken in placement.slices:
                used = Used(
                    round((0.6 + 0.35 * habit) * taken.memory_mib * BYTES_PER_MIB), round(cores * taken.core_milli)
                )
                memory_bytes[taken.uuid] += used.memory_bytes or 0
                core_milli[taken.uuid] += used.core_milli or 0
                namespace, _, pod = record.pod(placement.replica).partition("/")
                containers[placement.node][taken.uuid, namespace, pod] = {CONTAINER: used}
    return {
        name: NodeUsage(
            0.0, {uuid: Used(memory_bytes[uuid], core_milli[uuid]) for uuid in node.devices}, containers[name]
        )
        for name, node in nodes.items()
    }


UNLIMITED_S = 3600.0
"""Maximum sleep of a waiting call before it checks again, in seconds."""


class SimulatedCluster:
    """One simulated cluster.

    Parameters
    ----------
    cluster
        Its nodes and devices without workloads.
    clock
        Clock whose monotonic time controls every delay. The time of day is only read at the start.
    options
        Options of the cluster.
    journal
        File for its state; None for none.

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
        self._calls = Random(f"{faults.seed}/{cluster.name}/calls")  # not for security
        entries = read_journal(journal) if journal else []
        self._orders = Orders(self._start_delay_ns)
        self._state = ClusterState(cluster, faults, Journal(None), self._orders, self._options.max_changes)
        times = self._state.restore(entries) + 1
        latest_ns = entries[-1].at_ns if entries else 0
        self._ahead_ns = max(clock.now_ns(), latest_ns) - clock.monotonic_ns()
        if journal and len(entries) > self._options.journal_size:
            compact(journal, self._state.entries(latest_ns, times - 1))
        self._journal = self._state.journal = Journal(journal)
        self._chances = FailureRates(self._state, faults, self._now_ns(), times)
        self._journal.add(Opened(self._now_ns(), times))
        self._journal.flush()

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self._state.name

    # Implementation of the port

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return the changes since `cursor`, or a full report if it is empty or too old."""
        give_up = monotonic() + wait_s
        with self._changed:
            self._receive()
            while True:
                self._catch_up()
                self._require_reachable()
                found = self._state.log.since(cursor)
                left_s = give_up - monotonic()
                if found is None or found or left_s <= 0 or self._closed or not self._options.waits:
                    return self._reported(found)
                self._changed.wait(min(left_s, self._until_due_s()))

    def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Execute commands independently of each other; return the answers in the same order."""
        with self._changed:
            lost = self._receive()
            with self._acting() as now_ns:
                answers = [self._carry_out(command, now_ns) for command in commands]
            if lost:
                raise self._silence("answer_lost")
            return answers

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return a Kubernetes Job for each replica, as for a real cluster."""
        return manifests(deployment)

    def logs(  # see `Backend`
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Return the last log lines of a replica, generated from its run time."""
        require_container(container)
        with self._changed:
            self._receive()
            self._catch_up()
            record = self._state.find(read_copy_name(copy))
            if replica not in {each.replica for each in record.made.placements}:
                raise RejectedError(f"copy {copy!r} has no replica {replica} in cluster {self.cluster!r}")
            said = list(lines(record, replica, self._now_ns(), since_ns))
        if times:
            said = [f"{each.partition(' ')[0]} {each}" for each in said]
        return islice(said, max(0, len(said) - max(0, tail)), None)

    def usage(self) -> Mapping[str, NodeUsage]:
        """Return the measured use of devices by node; empty if measurement is off or the cluster is unreachable."""
        if not self._options.measures or self._cut:
            return {}
        with self._changed:
            now_ns = self._now_ns()
            if now_ns >= self._measure_ns:
                self._used = used_of(self._state.ledger.nodes, self._state.records.values(), now_ns)
                self._measure_ns = now_ns + MEASURE_EVERY_NS
            return self._used

    # Fault injection

    def fail_node(self, name: str, for_s: float | None = None) -> None:
        """Fail a node with all its replicas. It recovers after `for_s` seconds, or by `heal_node`."""
        with self._acting() as now_ns:
            self._state.set_node(self._state.node(name), now_ns, ready=False, until_ns=_until(now_ns, for_s))

    def heal_node(self, name: str) -> None:
        """Recover a node; its failed workloads stay failed."""
        with self._acting() as now_ns:
            self._state.set_node(self._state.node(name), now_ns, ready=True)

    def fail_device(self, uuid: str, for_s: float | None = None) -> None:
        """Make a device unhealthy, and fail the workloads that use it."""
        with self._acting() as now_ns:
            node, device = self._state.device(uuid)
            self._state.set_device(node, device, now_ns, healthy=False, until_ns=_until(now_ns, for_s))

    def heal_device(self, uuid: str) -> None:
        """Make a device healthy."""
        with self._acting() as now_ns:
            self._state.set_device(*self._state.device(uuid), now_ns, healthy=True)

    def disconnect(self, for_s: float | None = None, *, hangs: bool = False) -> None:
        """Make every call raise `UnavailableError`. Workloads continue.

        Parameters
        ----------
        for_s
            Duration in seconds; None to wait for `reconnect`.
        hangs
            True to make calls hang until their timeout before they fail.
        """
        with self._acting() as now_ns:
            self._cut, self._hangs = True, hangs
            self._cut_until_ns = _until(now_ns, for_s)
            self._state.later(self._cut_until_ns, self._cut_over)

    def reconnect(self) -> None:
        """End an outage, including a random one."""
        with self._acting():
            self._cut = self._hangs = self._chances.unreachable = False

    def slow_down(self, start_delay_s: float | None) -> None:
        """Set the start delay of later workloads; None restores the default."""
        with self._acting():
            usual = self._start_delay_ns
            self._orders.start_delay_ns = usual if start_delay_s is None else round(start_delay_s * NS_PER_S)

    def refuse(self, reason: str) -> None:
        """Refuse every later deployment with `reason`. An empty reason ends the refusals."""
        with self._acting():
            self._orders.refusal = reason

    def fail_starts(self, reason: str) -> None:
        """Fail every later workload at its start with `reason`. An empty reason ends the failures."""
        with self._acting():
            self._orders.start_error = reason

    def fail_copy(self, job_id: str, attempt: int, reason: str) -> None:
        """Fail a workload, if it is live."""
        with self._acting() as now_ns:
            self._state.fail(self._state.find((job_id, attempt)), now_ns, reason)

    def vanish(self, job_id: str, attempt: int) -> None:
        """Remove a workload without a command from Seaway."""
        with self._acting() as now_ns:
            self._state.find((job_id, attempt))
            self._state.remove((job_id, attempt), now_ns, vanished=True)

    def heal(self) -> None:
        """End all injected faults, and recover all nodes and devices."""
        self.reconnect()
        self.slow_down(None)
        self.refuse("")
        self.fail_starts("")
        with self._acting() as now_ns:
            for node in list(self._state.ledger.troubled()):
                self._state.set_node(node, now_ns, ready=node.node.ready)
                for device in node.devices.values():
                    self._state.set_device(node, device, now_ns, healthy=device.device.healthy)

    def stop_waiting(self) -> None:
        """End all waiting calls, and prevent further waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """End all waiting calls, and close the journal; later events are not stored."""
        self.stop_waiting()
        with self._changed:
            self._journal.close()

    # Details

    @property
    def _start_delay_ns(self) -> int:
        return round(self._options.start_delay_s * NS_PER_S)

    def _now_ns(self) -> int:
        """Return the cluster's time: the time of day at its start, advanced by the monotonic clock."""
        return self._clock.monotonic_ns() + self._ahead_ns

    def _catch_up(self) -> int:
        """Process due events, write the journal, and wake waiting calls; return the time."""
        now_ns, before = self._now_ns(), self._state.log.count
        self._state.advance(now_ns)
        self._journal.flush()
        if self._state.log.count != before:
            self._changed.notify_all()
        return now_ns

    @contextmanager
    def _acting(self) -> Iterator[int]:
        """Hold the lock for a change of the cluster; yield the time."""
        with self._changed:
            yield self._catch_up()
            self._journal.flush()
            self._changed.notify_all()

    def _receive(self) -> bool:
        """Receive a call, or raise `UnavailableError`; return whether to lose its answer."""
        self._catch_up()
        faults = self._options.faults
        chance = self._calls.random() if faults.of_calls else 1.0
        if self._hangs or chance < faults.hangs:
            self._hang(permanent=not self._hangs)
        self._require_reachable()
        chance -= faults.hangs
        if 0 <= chance < faults.request_lost:
            raise self._silence("request_lost")
        chance -= faults.request_lost
        return 0 <= chance < faults.answer_lost

    def _hang(self, *, permanent: bool) -> None:
        """Wait for the timeout of a call. Unless the hang is `permanent`, stop when the cluster answers again."""
        if self._options.waits:
            self._changed.wait_for(lambda: self._closed or not (permanent or self._hangs), self._options.timeout_s)
        if permanent or self._hangs:
            raise self._silence("no_answer_within", limit=self._options.timeout_s)

    def _require_reachable(self) -> None:
        if self._cut or self._chances.unreachable:
            raise self._silence("not_reached")

    def _silence(self, why: str, **of: float) -> UnavailableError:
        said = Reason("simulated_silence", cluster=self.cluster, text=Reason(why, **of))
        return UnavailableError(said, retry_after_s=1)

    def _cut_over(self, _: None, due_ns: int) -> None:
        if self._cut_until_ns == due_ns:
            self._cut = self._hangs = False
            self._changed.notify_all()

    def _until_due_s(self) -> float:
        due_ns = self._state.next_due_ns
        return UNLIMITED_S if due_ns is None else max(0.0, (due_ns - self._now_ns()) / NS_PER_S) + 1e-4

    def _reported(self, found: dict[Key | None, None] | None) -> Changes:
        state, cursor, now_ns = self._state, self._state.log.cursor, self._now_ns()
        if found is None:
            everything = tuple(record.seen(state.name, now_ns) for record in state.records.values())
            return Changes(cursor, complete=True, workloads=everything, inventory=state.ledger.inventory())
        inventory = state.ledger.inventory() if None in found else None
        records = state.records
        workloads = tuple(
            records[key].seen(state.name, now_ns) if key in records else gone(key, state.name)
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
    """Parse the name of a workload.

    Raises
    ------
    RejectedError
        When it is invalid.
    """
    stem, _, attempt = copy.removeprefix("sw-").rpartition("-")
    if not copy.startswith("sw-") or not stem or not attempt.isdecimal():
        raise RejectedError(f"{copy!r} is not a name of a copy")
    return stem, int(attempt)


def _until(now_ns: int, for_s: float | None) -> int | None:
    return None if for_s is None else now_ns + round(for_s * NS_PER_S)
