"""Last reports of clusters, stored so that a restart does not lose what silent clusters have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.control.fleet import LiveCluster, LiveFleet
from seaway.application.ports.clock import Clock
from seaway.application.records import NS_PER_S, ClusterInventory, ClusterReport
from seaway.application.views import ClusterState
from seaway.domain.cluster import Cluster

MINUTE_NS = 60 * NS_PER_S


class LastReports:
    """Stored state, time and inventory of the last report of each cluster.

    Times are stored once a minute and when a state changes. Changed inventories are stored once a minute.

    Parameters
    ----------
    holds
        Reports whether attempts have allocations in a cluster. Then its report stays after it left the fleet.
    """

    def __init__(self, fleet: LiveFleet, clock: Clock, holds: Callable[[str], bool]) -> None:
        self._fleet, self._clock, self._holds = fleet, clock, holds
        self._reports: dict[str, ClusterReport] = {}
        self._latest_ns: dict[str, int] = {}
        self._inventories: dict[str, Cluster] = {}
        self._stored_ns: int | None = None

    def load(self, reports: Iterable[ClusterReport], inventories: Iterable[ClusterInventory]) -> None:
        """Take the stored records."""
        self._reports = {each.cluster: each for each in reports}
        self._latest_ns = {name: each.reported_ns for name, each in self._reports.items()} | self._latest_ns
        self._inventories = {each.cluster: each.inventory for each in inventories}

    def reported_ns(self, cluster: str) -> int | None:
        """Return the time of the last report of a cluster that left the fleet; None if it never reported."""
        return self._latest_ns.get(cluster)

    def restore(self) -> None:
        """Give clusters that have not responded since the start what they last reported.

        A cluster that was up is stale until it responds. The time without a server counts in the age of a report, but
        not in the grace period.
        """
        silent = [live for live in self._fleet.clusters.values() if live.cluster is None]
        self._fleet.tell(*(self._inventories[live.name] for live in silent if live.name in self._inventories))
        for live in silent:
            if report := self._reports.get(live.name):
                self._restore(live, report)

    def _restore(self, live: LiveCluster, report: ClusterReport) -> None:
        state = ClusterState(report.state)
        live.reported_ns, live.unreachable_reason = report.reported_ns, report.reason
        live.last_seen_ns -= max(0, report.at_ns - report.reported_ns)
        live.reported_unreachable = state is not ClusterState.UP
        self._fleet.set_state(live.name, state if live.reported_unreachable else ClusterState.STALE)

    def changes(self) -> Iterator[Change]:
        """Return the changes to store."""
        now_ns = self._clock.monotonic_ns()
        due = self._stored_ns is None or now_ns - self._stored_ns >= MINUTE_NS
        if due:
            self._stored_ns = now_ns
            yield from self._removed()
        for live in self._fleet.clusters.values():
            yield from self._changed(live, due=due)

    def _changed(self, live: LiveCluster, *, due: bool) -> Iterator[Change]:
        """Yield the report of a cluster that responded or changed its state, and its inventory if that changed."""
        if live.reported_ns is None:
            return
        self._latest_ns[live.name] = live.reported_ns
        before = self._reports.get(live.name)
        if before is None or before.state != live.state.value or (due and live.answered):
            reported = (live.unreachable_reason, live.reported_ns, self._clock.now_ns())
            report = ClusterReport(live.name, live.state.value, *reported)
            self._reports[live.name] = report
            yield Change(put=[report])
        if live.cluster and live.answered and (due or live.name not in self._inventories):
            inventory = replace(live.cluster, facts=live.reported_facts)
            stored, self._inventories[live.name] = self._inventories.get(live.name), inventory
            if inventory != stored:  # fast from the second time on, since they share their nodes
                yield Change(put=[ClusterInventory(live.name, inventory)])

    def _removed(self) -> Iterator[Change]:
        """Yield the removal of clusters that left. An empty fleet is more likely a mistake, see `Housekeeping`."""
        names = self._fleet.clusters
        for name in [each for each in self._reports if names and each not in names and not self._holds(each)]:
            delete: list[ClusterReport | ClusterInventory] = [self._reports.pop(name)]
            self._latest_ns.pop(name, None)
            if inventory := self._inventories.pop(name, None):
                delete.append(ClusterInventory(name, inventory))
            yield Change(delete=[*delete])
