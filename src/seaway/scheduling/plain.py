"""Placement by the plugins' own methods, one replica at a time, for profiles that cannot be compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seaway.domain.job import GpuTopology
from seaway.domain.placement import Placement
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import (
    CLUSTERS_ALLOWED,
    DEMAND_STRICTER,
    JOB_DEMAND,
    JOB_GANG,
    JOB_SEQUENCE,
    NODE_DEVICE_END,
    NODE_DEVICE_FIRST,
    PLAN_NODE,
    PLAN_SLICE_FIRST,
    STRICTER_ROWS,
)
from seaway.scheduling.framework import (
    Cycle,
    DeviceScore,
    Filter,
    Mask,
    Permit,
    PostFilter,
    PreFilter,
    PreScore,
    Reserve,
    Scores,
    Status,
    Verdict,
)
from seaway.scheduling.kernels.compile import mixed
from seaway.scheduling.kernels.decide import DeviceKeys, allocate_with_keys, reset_bandwidth_of
from seaway.scheduling.kernels.queries import FitParams, best_of, island_losses, nodes_that_fit
from seaway.scheduling.kernels.score_cache import MAX_ROWS, MIN_ROWS, resized, row_cache
from seaway.scheduling.plan import Plan
from seaway.scheduling.plugins import RULES_OF_FIT
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.statement import Statement

MEMORY_BYTES = 4 * 2**20
"""Maximum memory of a fit cache, bytes: 430 demands on 1,200 nodes."""


class FitCache:
    """Cache of the feasible nodes of recent demands.

    Parameters
    ----------
    snapshot
        Snapshot of the cache. The cache becomes invalid if nodes are added or demands are removed.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        nodes = len(snapshot.nodes)
        rows = min(MAX_ROWS, max(MIN_ROWS, MEMORY_BYTES // (8 * max(nodes, 1))))
        self._params = FitParams(row_cache(nodes, len(snapshot.demands), rows))

    def nodes(self, snapshot: Snapshot, line: int) -> Mask:
        """Return the nodes that fit one replica of demand `line` now, including links, shape (N,)."""
        return nodes_that_fit(self.params(snapshot), snapshot.arrays, snapshot.demands.arrays, line)

    def params(self, snapshot: Snapshot) -> FitParams:
        """Return the cache for kernels, with rows for all demands of the snapshot."""
        self._params = resized(self._params, len(snapshot.demands.arrays.amounts))
        return self._params


def fit_cache_of(snapshot: Snapshot) -> FitCache:
    """Return the cache of a snapshot."""
    known: FitCache | None = snapshot.placers.get(FitCache)
    if known is None:
        known = snapshot.placers[FitCache] = FitCache(snapshot)
    return known


FULL_SCORE = 100
"""Maximum of a scaled score before weighting."""


class PlainPlacer:
    """Placer that calls a profile's plugins.

    Parameters
    ----------
    profile
        Profile with the plugins.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.divides = profile.divides

    def place(self, statement: Statement, first: int, end: int) -> None:
        """Decide the queue's jobs from `first` up to, but not including, `end` and append them to the statement."""
        for j in range(first, end):
            replicas = statement.queue.jobs[j].replicas
            if not statement.queue.rows[j, JOB_GANG]:
                self.place_replicas(statement, j, 0, replicas)
                continue
            before = statement.checkpoint()
            reset_bandwidth_of(statement.snapshot.arrays)
            if not all(self._place_replica(statement, j, replica) for replica in range(replicas)):
                statement.rollback(before)
                statement.mark_unplaced(j)

    def place_replicas(self, statement: Statement, job: int, first: int, end: int) -> None:
        """Decide replicas `first` to `end` - 1 of one job individually, and append them to the statement."""
        if first == 0:
            reset_bandwidth_of(statement.snapshot.arrays)
        for replica in range(first, end):
            self._place_replica(statement, job, replica)

    def _place_replica(self, statement: Statement, j: int, replica: int) -> bool:
        """Decide one replica. Return whether it was placed."""
        row = statement.start(j, replica)
        cycle = self._cycle(statement, j, replica, statement.decisions[max(row - replica, 0) : row])
        n = choose(self._profile, cycle)
        if cycle.message:
            statement.messages[j] = cycle.message
        if cycle.decider and not (j in statement.deciders and statement.deciders[j].reason):
            statement.deciders[j] = cycle.decider
        if n < 0:
            return _record_deferral(cycle, statement, j)
        arrays = statement.snapshot.arrays
        given = DeviceKeys(device_keys(self._profile, cycle, n), int(arrays.nodes[NODE_DEVICE_FIRST, n]))
        demands, line = statement.snapshot.demands.arrays, statement.decisions[row]
        statement.slice_end = allocate_with_keys(given, arrays, demands, n, line, statement.slices)
        if self._reserve_and_permit(cycle, statement, row):
            return True
        statement.snapshot.release(statement.decisions, statement.slices, np.array([row]))
        statement.slice_end = int(line[PLAN_SLICE_FIRST])
        return _record_deferral(cycle, statement, j)

    def _cycle(self, statement: Statement, j: int, replica: int, before: Int64) -> Cycle:
        """Create the cycle of one replica. `before` has the plan's rows of the earlier replicas."""
        snapshot = statement.snapshot
        placed = before[before[:, PLAN_NODE] >= 0, PLAN_NODE].tolist() if len(before) else ()
        lines = statement.queue.rows[j]
        return Cycle(
            snapshot=snapshot,
            job=statement.queue.jobs[j],
            replica=replica,
            demand_index=int(lines[JOB_DEMAND]),
            random_bits=int(mixed(self._profile.seed, int(lines[JOB_SEQUENCE]), replica)),
            usable=snapshot.arrays.clusters_open[CLUSTERS_ALLOWED] != 0,
            feasible=np.ones(len(snapshot.nodes), np.bool_),
            placed=tuple(placed),
            may_defer=j not in statement.overdue,
        )

    def _reserve_and_permit(self, cycle: Cycle, statement: Statement, row: int) -> bool:
        """Call Reserve and Permit. If a plugin rejects, call `unreserve` of the plugins that reserved."""
        reserving = self._profile.at(Reserve)  # type: ignore[type-abstract]
        permitting = self._profile.at(Permit)  # type: ignore[type-abstract]
        if not reserving and not permitting:
            return True
        placement = Plan(statement.snapshot, statement.queue, statement.decisions, statement.slices).placement(row)
        reserved: list[Reserve] = []
        for plugin in reserving:
            reserved.append(plugin)
            if not plugin.reserve(cycle, placement).passes:
                break
        else:
            if all(_passes(cycle, plugin.permit(cycle, placement)) for plugin in permitting):
                statement.on_rollback(row, lambda: unreserve(reserved, cycle, placement))
                return True
        unreserve(reserved, cycle, placement)
        return False


def _passes(cycle: Cycle, status: Status) -> bool:
    """Report whether a decision continues. Record its deferral if it may be deferred."""
    if status.verdict is Verdict.WAIT:
        if not cycle.may_defer:
            return True
        cycle.deferral_reason = status.reason or "deferred"
    return status.passes


def _record_deferral(cycle: Cycle, statement: Statement, j: int) -> bool:
    """Record the deferral of job number `j` of the queue; return False."""
    if cycle.deferral_reason:
        statement.deferred[j] = cycle.deferral_reason
    return False


def unreserve(reserved: Sequence[Reserve], cycle: Cycle, placement: Placement) -> None:
    """Call `unreserve` in reverse order."""
    for plugin in reversed(reserved):
        plugin.unreserve(cycle, placement)


def choose(profile: Profile, cycle: Cycle) -> int:
    """Run a profile from PreFilter to Score. Return the chosen node, -1 for none."""
    for plugin in profile.at(PreFilter):  # type: ignore[type-abstract]
        if not plugin.pre_filter(cycle).passes:
            return -1
    run_filters(profile, cycle)
    fits = cycle.feasible.any()
    if not fits and make_room(profile, cycle).passes:
        cycle.feasible[:] = True
        run_filters(profile, cycle)
        fits = cycle.feasible.any()
    if not fits:
        return -1
    cycle.feasible, line = best_connected(cycle)
    for prepared in profile.at(PreScore):  # type: ignore[type-abstract]
        if not _passes(cycle, prepared.pre_score(cycle)):
            return -1
    scores = total_score(profile, cycle)
    best = int(best_of(scores, cycle.feasible))
    if best < 0:
        return best
    equal = np.flatnonzero(cycle.feasible & (scores == scores[best]))
    return int(equal[losses_of_islands(cycle, line, equal).argmin()])


def losses_of_islands(cycle: Cycle, line: int, nodes: Int64) -> Int64:
    """Return how much a replica breaks the NVLink islands of some nodes, shape of `nodes`; the lowest is best.

    For a job that does not ask for connected devices, all nodes are equal.

    Parameters
    ----------
    line
        Row of the demand from `best_connected`, which the nodes fit.
    """
    if cycle.demand.devices.topology is GpuTopology.ANY:
        return np.zeros_like(nodes)
    return island_losses(cycle.snapshot.arrays, cycle.snapshot.demands.arrays, line, nodes)


def best_connected(cycle: Cycle) -> tuple[Mask, int]:
    """Return the feasible nodes on which the devices can be connected best, if the job prefers this, else all of them.

    These are the nodes that fit the first stricter row of the demand that fits any. The second value is that row, else
    the row of the demand.
    """
    snapshot = cycle.snapshot
    amounts = snapshot.demands.arrays.amounts[cycle.demand_index]
    for stricter in amounts[DEMAND_STRICTER : DEMAND_STRICTER + STRICTER_ROWS].tolist():
        if stricter:
            found = cycle.feasible & fit_cache_of(snapshot).nodes(snapshot, stricter - 1)
            if found.any():
                return found, stricter - 1
    return cycle.feasible, cycle.demand_index


def run_filters(profile: Profile, cycle: Cycle) -> None:
    """Run the filters in order, or compiled code if they are exactly the built-in ones."""
    filters = profile.at(Filter)  # type: ignore[type-abstract]
    if not profile.plain and tuple(each.name for each in filters) == RULES_OF_FIT:
        cycle.feasible &= fit_cache_of(cycle.snapshot).nodes(cycle.snapshot, cycle.demand_index)
        return
    for plugin in filters:
        cycle.feasible &= plugin.filter(cycle) == 0


def make_room(profile: Profile, cycle: Cycle) -> Status:
    """Call the PostFilter plugins. Return the first status that passes, else a rejection."""
    answers = [plugin.post_filter(cycle) for plugin in profile.at(PostFilter)]  # type: ignore[type-abstract]
    refused = Status(Verdict.REJECT, "no plugin made room")
    return next((answer for answer in answers if answer.passes), refused)


def total_score(profile: Profile, cycle: Cycle) -> Scores:
    """Return the total score of each node, shape (N,). A single score is not scaled."""
    scores = profile.scores()
    if len(scores) == 1:
        return scores[0][0].score(cycle)
    total = np.zeros(len(cycle.snapshot.nodes), np.int64)
    for plugin, weight in scores:
        total += weight * scaled(plugin.score(cycle), cycle)
    return total


def scaled(score: Scores, cycle: Cycle) -> Scores:
    """Scale a score to integers 0-100 over the feasible nodes. If all are equal, they have 100."""
    among = score[cycle.feasible]
    low, high = among.min(), among.max()
    if low == high:
        return np.full_like(score, FULL_SCORE)
    lifted: Scores = (np.clip(score, low, high) - low) * FULL_SCORE // (high - low)
    return lifted


def device_keys(profile: Profile, cycle: Cycle, n: int) -> Scores:
    """Return the keys of the devices of node `n`. Without a DeviceScore plugin, all keys are equal."""
    for plugin in profile.at(DeviceScore):  # type: ignore[type-abstract]
        return np.ascontiguousarray(plugin.device_keys(cycle, n), np.int64)
    nodes = cycle.snapshot.arrays.nodes
    return np.zeros(int(nodes[NODE_DEVICE_END, n] - nodes[NODE_DEVICE_FIRST, n]), np.int64)
