"""Names and removal of clusters. A name belongs to the identity of a cluster, not to its address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import replace

from seaway.application.changes import Change, Outcome
from seaway.application.control.loop import Controller
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import ClusterName, Event, PendingCommand, Verb
from seaway.application.transitions import ELSEWHERE, ended, ending, moved, stepped
from seaway.application.writer import Writer
from seaway.domain.attempt import Attempt
from seaway.domain.errors import ConflictError, UnavailableError, UnknownError
from seaway.domain.job_state import AttemptState, JobState
from seaway.domain.reasons import Reason, also


class ClusterNames:
    """Current and former names of clusters. Not thread-safe.

    Stored jobs refer to clusters by name, so a cluster never changes its name. A name passes to another cluster only
    after an operator removed its previous owner, even if kubeconfigs change.

    Parameters
    ----------
    store
        Persistent storage, shared by all leaders; None stores the names in this process only.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._read: dict[str, ClusterName] | None = None

    def reload(self) -> None:
        """Read the stored names, in case another process removed some."""
        if self._store:
            self._read = None

    def taken(self) -> Set[str]:
        """Return all assigned names."""
        return self._rows().keys()

    def of(self, uid: str | None, server: str) -> str:
        """Return the name of a cluster; empty if it has none yet.

        Parameters
        ----------
        uid
            Identity that the cluster reports; empty if it cannot be read, None before the first response.
        server
            Known address of its API server; empty if unknown.
        """
        rows = self._rows().values()
        same = [row for row in rows if uid and row.uid == uid]
        same += [row for row in rows if server and row.server == server and not (uid and row.uid)]
        return same[0].name if same else ""

    def uid(self, name: str) -> str:
        """Return the identity of a named cluster; empty if unknown."""
        row = self._rows().get(name)
        return row.uid if row else ""

    def keep(self, name: str, uid: str, server: str) -> None:
        """Store the name and identity of a cluster.

        Raises
        ------
        UnavailableError
            If the database does not respond. Nothing is stored then.
        """
        rows = self._rows()
        before = rows.get(name)
        now = ClusterName(name, uid or (before.uid if before else ""), server)
        moved = [replace(row, server="") for row in rows.values() if server and row.server == server and row != before]
        if now == before and not moved:
            return
        changed = [now, *moved]
        if self._store:
            self._store.commit([Change(put=[*changed])])
        rows.update({row.name: row for row in changed})

    def _rows(self) -> dict[str, ClusterName]:
        if self._read is None:
            self._read = {row.name: row for row in self._store.cluster_names()} if self._store else {}
        return self._read


TRIES = 5
"""Number of retries after concurrent changes."""


class ClusterRemoval:
    """Removal of clusters that left the fleet."""

    def __init__(self, store: Store, writer: Writer, controller: Controller, clock: Clock) -> None:
        self._store = store
        self._writer = writer
        self._controller = controller
        self._clock = clock

    def remove(self, cluster: str, actor: str) -> int:
        """End the attempts in a cluster and drop its pending commands; return the number of attempts.

        The jobs return to their queues. Another cluster can then get the name. If the cluster returns, Seaway removes
        the workloads of these jobs from it.

        Raises
        ------
        UnknownError
            If the cluster is unknown.
        ConflictError
            If it is in the fleet, or its jobs keep changing during the removal.
        UnavailableError
            If the list of clusters is not known yet.
        """
        self._require_removed(cluster)
        seen: set[tuple[str, int]] = set()
        for _ in range(TRIES):
            changes = self._changes(cluster, actor)
            if not changes:
                break
            seen |= changes.keys()
            outcomes = self._writer.commit(list(changes.values()))
            if Outcome.CONFLICT not in outcomes:
                break
        else:
            raise ConflictError(Reason("jobs_changed_at_once", cluster=cluster))
        names = [row for row in self._store.cluster_names() if row.name == cluster]
        facts = [row for row in self._store.cluster_facts() if row.cluster == cluster]
        if not seen and not names and not facts:
            raise UnknownError(Reason("cluster_without_jobs", cluster=cluster[:253]))
        text = Reason("cluster_released", cluster=cluster, count=len(seen))
        event = Event(self._clock.now_ns(), "cluster_removed", text, actor)
        self._writer.require(Change(insert=[event], delete=[*names, *facts]))
        return len(seen)

    def _require_removed(self, cluster: str) -> None:
        with self._controller.lock:
            fleet = self._controller.live.fleet
            met, there = fleet.met, cluster in fleet.clusters
        if not met:
            raise UnavailableError(Reason("clusters_unknown_yet"), retry_after_s=5)
        if there:
            raise ConflictError(Reason("cluster_in_fleet", cluster=cluster))

    def _changes(self, cluster: str, actor: str) -> dict[tuple[str, int], Change]:
        """Return the changes for each attempt with workloads or commands in the cluster."""
        rows: defaultdict[tuple[str, int], list[PendingCommand]] = defaultdict(list)
        for row in self._store.pending_commands():
            rows[row.job_id, row.attempt].append(row)
        changes: dict[tuple[str, int], Change] = {}
        for attempt in self._store.held_attempts():
            key = (attempt.job_id, attempt.number)
            if cluster in attempt.clusters:
                others = [row for row in rows[key] if row.cluster != cluster]
                if change := self._given_up(attempt, cluster, others, actor):
                    changes[key] = change
        for key, of_attempt in rows.items():
            left = [row for row in of_attempt if row.cluster == cluster]
            if left and key not in changes:
                changes[key] = Change(delete=list(left))
        return changes

    def _given_up(self, attempt: Attempt, cluster: str, others: list[PendingCommand], actor: str) -> Change | None:
        """Return the change that ends the part of an attempt in one cluster.

        Other clusters remove their parts as usual.
        """
        now_ns = self._clock.now_ns()
        if not attempt.state.live:
            if others:
                return None  # remove the row of this cluster; the last of the others ends the attempt
            return ended(attempt, now_ns)
        job = self._store.job(attempt.job_id)
        reason = also(Reason("cluster_removed", cluster=cluster), ELSEWHERE)
        change = Change()
        if job is not None and job.attempt == attempt.number and job.state.placed:
            change = stepped(moved(job, JobState.QUEUED, reason, now_ns), actor)
        attempt = replace(attempt, reason=reason)
        if set(attempt.clusters) == {cluster}:
            change.add(ended(attempt, now_ns))
            return change
        change.add(ending(replace(attempt, state=AttemptState.ENDING), reason, now_ns))
        change.put = [row for row in change.put if not (isinstance(row, PendingCommand) and row.cluster == cluster)]
        change.delete += [PendingCommand(*_key(attempt), cluster, Verb.DELETE, now_ns)]
        return change


def _key(attempt: Attempt) -> tuple[str, int]:
    return attempt.job_id, attempt.number
