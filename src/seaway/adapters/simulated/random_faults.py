"""Random failures of a simulated cluster over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seaway.adapters.simulated.faults import Faults, Stream
from seaway.adapters.simulated.ledger import DeviceLedger, NodeLedger
from seaway.adapters.simulated.state import ClusterState


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
