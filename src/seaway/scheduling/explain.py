"""Explanations: reasons for a placement, and remedies for jobs that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import islice, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seaway.domain.job import Job
from seaway.domain.network import Link, NetworkNeed, link_text, violations
from seaway.domain.placement import Candidate, Explanation, Placement, Refusal, Remedy
from seaway.domain.reasons import Params, Reason, also, both
from seaway.domain.units import figure_text, rate_text
from seaway.scheduling.columns import CLUSTERS_ALLOWED, CLUSTERS_RESERVED, NODE_CLUSTER
from seaway.scheduling.data_locality import data_text, locality_tiers, pull_ms
from seaway.scheduling.framework import Cycle, Filter, PreFilter, PreScore, Scores, Verdict
from seaway.scheduling.kernels.compile import mixed
from seaway.scheduling.kernels.filter_reasons import SLICE
from seaway.scheduling.plain import best_connected, losses_of_islands, scaled
from seaway.scheduling.plugins.nodes import DeviceFit
from seaway.scheduling.profile import Profile
from seaway.scheduling.refusals import Mend, clause, mend, ordered
from seaway.scheduling.remedies import changes, combined_changes
from seaway.scheduling.snapshot.links import free_bandwidth
from seaway.scheduling.snapshot.snapshot import Snapshot

MAX_LINKS = 12
"""Maximum number of reported links of each kind."""


def violating_links(snapshot: Snapshot, job: Job, reserved: Snapshot | None = None) -> tuple[str, ...]:
    """Return the links that violate a job's bounds, with the measurements.

    The links from the user's gateway to allowed clusters come first. Links between allowed clusters follow if the job
    has several replicas, in both directions. Clusters without a gateway have no links. The free bandwidth is what can
    still be reserved.

    Parameters
    ----------
    reserved
        The snapshot with what is reserved for waiting jobs, to name that part of the free bandwidth; None for none.

    Examples
    --------
    ``gw-4 to gw-1: latency 31 ms, bound 20 ms``
    """
    rules, user = job.demand.nodes, job.demand.gateway
    clusters = [each for each in snapshot.clusters if not rules.clusters or each.name in rules.clusters]
    gateways = list(dict.fromkeys(each.gateway for each in clusters if each.gateway))
    both = snapshot, reserved
    from_user = ((user, admission) for admission in gateways if admission != user)
    found = list(islice(_broken(both, job.demand.network, from_user), MAX_LINKS))
    if job.replicas > 1 and job.between_replicas.any:
        found += islice(_broken(both, job.between_replicas, permutations(gateways, 2), known_only=True), MAX_LINKS)
    return tuple(found)


def _broken(
    snapshots: tuple[Snapshot, Snapshot | None],
    need: NetworkNeed,
    ends: Iterable[tuple[str, str]],
    *,
    known_only: bool = False,
) -> Iterator[str]:
    """Yield the links that violate bounds. With `known_only`, skip unknown links if the reverse direction is known.

    The second snapshot has what is reserved for waiting jobs.
    """
    snapshot, reserved = snapshots
    if not need.any:
        return
    links = {(link.source, link.target): link for link in snapshot.links}
    at = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
    for source, target in ends:
        link = links.get((source, target))
        if link is None and known_only and (target, source) in links:
            continue
        waiting_mbps = 0
        if link is not None:
            free_mbps = int(free_bandwidth(snapshot.arrays, at[source], at[target]))
            link = _with_free(link, free_mbps)
            if reserved is not None and need.min_bandwidth_mbps > link.free_mbps:
                waiting_mbps = link.free_mbps - max(0, int(free_bandwidth(reserved.arrays, at[source], at[target])))
        if said := violations(need, link):
            waits = (Reason("bandwidth_of_waiting", rate=rate_text(waiting_mbps)),) if waiting_mbps > 0 else ()
            yield link_text(source, target, (*said, *waits))


def _with_free(link: Link, free_mbps: int) -> Link:
    """Return a link with another free bandwidth; negative values count as 0."""
    return replace(link, used_mbps=max(0, link.bandwidth_mbps - max(free_mbps, 0)))


MAX_CANDIDATES = 5
"""Maximum number of candidates of an explanation."""

OTHER_SLICES = f"{DeviceFit.name}.{SLICE}"
"""Code of refusals of TPU slices that the job does not take whole."""

CLOSED_BY = frozenset({("Network", 1), ("NodeReady", 1)})
"""Reasons, by plugin and code, that `closed` of `explain` can name."""

MAX_CODES = 256
"""Number of codes of a filter, including 0."""

MAX_SLICES_NAMED = 3
"""Maximum number of kinds of TPU slices in a message."""

MAX_LINKS_NAMED = 3
"""Maximum number of links in a message."""


Admits = Callable[[Snapshot, Job], Sequence[Placement]]
"""Function that places a whole job on a snapshot, which stays unchanged. It returns no placements if the job does not
fit."""


class Keeper(NamedTuple):
    """Reason why a job may not use some nodes.

    Attributes
    ----------
    code, params
        Reason, as in `seaway.domain.reasons`.
    places
        Cluster and node of these nodes; None for all that no other keeper has.
    """

    code: str
    params: Params
    places: Set[tuple[str, str]] | None = None


class Limitation(NamedTuple):
    """Rule outside of the policy that excludes nodes, such as a reservation for another job.

    Attributes
    ----------
    plugin
        Name of the rule.
    snapshot, job
        Snapshot and job without this rule and the later ones.
    keepers
        Reasons by node. The first that has a node counts.
    """

    plugin: str
    snapshot: Snapshot
    job: Job
    keepers: Sequence[Keeper]


def explain(  # noqa: PLR0913  # what excludes nodes, by its origin
    snapshot: Snapshot,
    job: Job,
    profile: Profile,
    *,
    sequence: int = 0,
    most: int = MAX_CANDIDATES,
    admits: Admits | None = None,
    limitations: Sequence[Limitation] = (),
    closed: Sequence[Keeper] = (),
) -> Explanation:
    """Explain the decision for the next replica of a job.

    Parameters
    ----------
    snapshot
        Snapshot of the fleet, with all limitations. It is not changed.
    job
        Job without placed replicas, with all limitations.
    profile
        Policy. Its PostFilter plugins are not called.
    sequence
        Sequence number of the job in its queue, which seeds random choices.
    most
        Maximum number of candidates.
    admits
        As for `remedies`; None to look for no remedies.
    limitations
        Rules that exclude nodes before the filters of the policy, in their order.
    closed
        Decisions that close clusters and nodes.

    Returns
    -------
    Explanation
        Each node counts for the rule that takes longest to mend, and the first among these (see `Mend`). Limitations
        only count for nodes that fit otherwise.

    Raises
    ------
    RejectedError
        If the job names an unknown gateway.
    """
    trial = _Trial(snapshot, profile, sequence, closed=closed)
    excluded = trial.excluded(job, limitations) if limitations else []
    cycle, refusals = trial.run(job, excluded)
    candidates = trial.candidates(cycle, most)
    clusters = list(dict.fromkeys(each.cluster for each in candidates))
    return Explanation(
        job=job.name,
        nodes=trial.nodes,
        refusals=refusals,
        candidates=candidates,
        remedies=remedies(snapshot, job, profile, admits) if admits else (),
        links=violating_links(limitations[0].snapshot if limitations else snapshot, job, snapshot),
        data=data_text(snapshot, job.data, pull_ms(snapshot, job.data), clusters) if job.data.places else "",
        deferral_reason=cycle.deferral_reason,
        message=cycle.message,
        answered=bool(snapshot.clusters),
    )


def remedies(snapshot: Snapshot, job: Job, profile: Profile, admits: Admits) -> tuple[Remedy, ...]:
    """Return single changes that admit a whole job that does not fit, smallest first; empty for a job that fits.

    Parameters
    ----------
    admits
        Try a job. Each remedy is the result of such a trial.

    Returns
    -------
    tuple of Remedy
        Each remedy admits the job. A smaller change of the same field does not, if the filters are monotonic, such as
        the built-in ones. For several replicas this is not guaranteed, since smaller replicas may be packed worse.
    """
    trial = _Trial(snapshot, profile, 0, admits)
    return () if trial.places(job) else trial.remedies(job)


def summary(explanation: Explanation, short: str = "") -> Reason:
    """Return an explanation in one sentence, without a full stop. Values are formatted as in job files.

    Parameters
    ----------
    short
        Shortage of replicas that are needed together; empty for none.

    Examples
    --------
    >>> from seaway.domain.placement import Refusal
    >>> summary(Explanation("job", 1213, (Refusal("NodeResources", "not enough free CPU", 1213),)))
    '0 of 1,213 nodes fit: 1,213 nodes have not enough free CPU'
    """
    fitting = explanation.nodes - sum(refusal.nodes for refusal in explanation.refusals)
    refused = tuple(map(clause, explanation.refusals))
    counts = {"fits": fitting, "nodes": explanation.nodes}
    if explanation.candidates:
        best = explanation.candidates[0]
        said = Reason("nodes_fit_best", **counts, place=f"{best.cluster}/{best.node}")
        said = also(said, Reason("refused_are", why=refused) if refused else "")
    elif not explanation.nodes:
        said = Reason("no_nodes" if explanation.answered else "no_cluster_answers")
    else:
        said = Reason("nodes_fit", **counts, why=refused)
        if explanation.links:
            more = len(explanation.links) - MAX_LINKS_NAMED
            links = (*explanation.links[:MAX_LINKS_NAMED], *((Reason("more_links", count=more),) if more > 0 else ()))
            said = Reason("with_links", what=said, clauses=links)
    remedy = remedies_text(explanation.remedies[:1]) if explanation.remedies else ""
    but, data = Reason("but", what=short) if short else "", explanation.data if explanation.candidates else ""
    return also(said, but, remedy, data, explanation.deferral_reason, explanation.message)


def combined_remedies(snapshot: Snapshot, job: Job, profile: Profile, admits: Admits) -> tuple[Remedy, ...]:
    """Return changes that together admit a whole job, for jobs without a single remedy.

    Parameters are as for `remedies`.

    Returns
    -------
    tuple of Remedy
        Changes that together admit it, of which none can be left out; empty if no changes are sufficient.
    """
    return _Trial(snapshot, profile, 0, admits).combined_remedies(job)


def remedies_text(found: Sequence[Remedy]) -> Reason:
    """Describe one or more changes that together admit a job."""
    return Reason("would_fit", changes=both(*map(_change, found)), where=found[0].where)


def _change(remedy: Remedy) -> Reason:
    word, value = figure_text(remedy.field, remedy.required)
    if not remedy.required:
        return Reason("without", field=word)
    if not remedy.current:
        return Reason("with", field=word, value=value)
    return Reason("with_instead", field=word, value=value, asked=figure_text(remedy.field, remedy.current)[1])


class _Trial:
    """Trials of a job and its variants on a copy of a snapshot.

    Attributes
    ----------
    nodes
        Number of nodes of the fleet, without removed ones.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        profile: Profile,
        sequence: int,
        admits: Admits = lambda *_: (),
        closed: Sequence[Keeper] = (),
    ) -> None:
        self._snapshot = snapshot.copy()
        self._snapshot.demands = snapshot.demands.copy()
        self._snapshot.arrays.clusters_open[CLUSTERS_RESERVED] = 0
        self._profile = profile
        self._random_bits = int(mixed(profile.seed, sequence, 0))
        self._existing = np.zeros(len(snapshot.nodes), np.bool_)
        self._existing[list(snapshot.node_index.values())] = True
        self.nodes = len(snapshot.node_index)
        self._admits = admits
        self._closed = closed

    def excluded(self, job: Job, limitations: Sequence[Limitation]) -> list[tuple[Refusal, NDArray[np.bool_]]]:
        """Return the reasons of limitations with the nodes that each of them excludes, shape (N,).

        Nodes that do not fit without limitations have the reasons from there.
        """
        trials = [_Trial(each.snapshot, self._profile, 0, closed=self._closed) for each in limitations]
        before = [trial.run(each.job)[0].feasible for trial, each in zip(trials, limitations, strict=True)]
        after = [*before, self.run(job)[0].feasible][1:]
        excluded = trials[0].refused(limitations[0].job)
        for limitation, with_it, without in zip(limitations, after, before, strict=True):
            left = without & ~with_it & ~after[-1]
            for keeper in limitation.keepers:
                nodes = left & self._among(keeper.places)
                if nodes.any():
                    reason = Reason(keeper.code, **keeper.params)
                    refusal = self._refusal(limitation.plugin, reason, nodes, keeper.code)
                    excluded.append((replace(refusal, params=keeper.params), nodes))
                left &= ~nodes
        return excluded

    def _among(self, places: Set[tuple[str, str]] | None) -> NDArray[np.bool_]:
        """Return the nodes of some places, shape (N,); all for None."""
        nodes = np.full(len(self._snapshot.nodes), places is None)
        nodes[[self._snapshot.node_index[each] for each in places or () if each in self._snapshot.node_index]] = True
        return nodes

    def run(
        self, job: Job, excluded: Sequence[tuple[Refusal, NDArray[np.bool_]]] = ()
    ) -> tuple[Cycle, tuple[Refusal, ...]]:
        """Run the profile up to PreScore.

        Return the cycle and the reasons with their numbers of nodes, in the order of `ordered`.

        Parameters
        ----------
        excluded
            Reasons with nodes that are already excluded, as from `excluded`.
        """
        cycle = self._cycle(job)
        for _, nodes in excluded:
            cycle.feasible &= ~nodes
        found = self._refusals(cycle)
        return cycle, ordered([refusal for refusal, _ in (*excluded, *found)])

    def refused(self, job: Job) -> list[tuple[Refusal, NDArray[np.bool_]]]:
        """Return the reasons of the profile up to PreScore, with the nodes of each, shape (N,)."""
        return self._refusals(self._cycle(job))

    def _cycle(self, job: Job) -> Cycle:
        return Cycle(
            snapshot=self._snapshot,
            job=job,
            replica=0,
            demand_index=self._snapshot.demands.index(job.demand),
            random_bits=self._random_bits,
            usable=self._snapshot.arrays.clusters_open[CLUSTERS_ALLOWED] != 0,
            feasible=self._existing.copy(),
        )

    def _refusals(self, cycle: Cycle) -> list[tuple[Refusal, NDArray[np.bool_]]]:
        """Exclude nodes from the cycle's feasible nodes. Return the reasons with their nodes, shape (N,)."""
        for before in self._profile.at(PreFilter):  # type: ignore[type-abstract]
            if not (status := before.pre_filter(cycle)).passes:
                return [self._refuse_all(cycle, before.name, status.reason)]
        refusals = self._filtered(cycle)
        if cycle.feasible.any():
            for after in self._profile.at(PreScore):  # type: ignore[type-abstract]
                status = after.pre_score(cycle)
                if status.verdict is Verdict.WAIT:
                    cycle.deferral_reason = cycle.deferral_reason or status.reason
                elif not status.passes:
                    return [*refusals, self._refuse_all(cycle, after.name, status.reason)]
        return refusals

    def _filtered(self, cycle: Cycle) -> list[tuple[Refusal, NDArray[np.bool_]]]:
        """Run the filters. Each node counts for the filter and reason that take longest to mend."""
        open_before = cycle.feasible.copy()
        latest = np.full(len(open_before), len(Mend), np.uint8)
        by, reasons = np.zeros(len(open_before), np.int64), [("", 0, "")]
        for plugin in self._profile.at(Filter):  # type: ignore[type-abstract]
            codes = plugin.filter(cycle)
            mends = np.full(MAX_CODES, len(Mend), np.uint8)
            mends[1 : len(plugin.reasons) + 1] = [mend(plugin.name, i) for i in range(1, len(plugin.reasons) + 1)]
            is_later = mends[codes] < latest
            latest[is_later] = mends[codes][is_later]
            by[is_later] = len(reasons) + codes[is_later] - 1
            reasons += [(plugin.name, code, reason) for code, reason in enumerate(plugin.reasons, 1)]
            cycle.feasible &= codes == 0
        found: list[tuple[Refusal, NDArray[np.bool_]]] = []
        for at in np.unique(by[open_before & (by > 0)]):
            name, code, reason = reasons[int(at)]
            nodes = open_before & (by == at)
            for keeper in self._closed if (name, code) in CLOSED_BY else ():
                if (own := nodes & self._among(keeper.places)).any():
                    refusal = self._refusal(name, Reason(keeper.code, **keeper.params), own, keeper.code)
                    found.append((replace(refusal, params=keeper.params), own))
                nodes &= ~own
            if nodes.any():
                found.append((self._refusal(name, reason, nodes, f"{name}.{code}"), nodes))
        return found

    def _refusal(self, plugin: str, reason: str, refused: NDArray[np.bool_], code: str = "") -> Refusal:
        """Return a reason with the number of excluded nodes of each cluster. `refused` has shape (N,).

        The reason for TPU slices that the job does not take whole names them.
        """
        counts = np.bincount(self._snapshot.arrays.nodes[NODE_CLUSTER][refused])
        clusters = tuple((self._snapshot.clusters[c].name, int(counts[c])) for c in np.flatnonzero(counts))
        params: Params = {}
        if code == OTHER_SLICES:
            devices = [device for n in np.flatnonzero(refused) for device in self._snapshot.nodes[n].devices]
            named = sorted({f"{each.model} ({each.slice_nodes} nodes)" for each in devices if each.slice_nodes > 1})
            code, params = "tpu_slice", {"slices": ", ".join(named[:MAX_SLICES_NAMED])}
            reason = Reason(code, **params)
        return Refusal(plugin, reason, int(counts.sum()), clusters, code, params)

    def _refuse_all(self, cycle: Cycle, plugin: str, reason: str) -> tuple[Refusal, NDArray[np.bool_]]:
        """Exclude all nodes that are still feasible."""
        nodes = cycle.feasible.copy()
        cycle.feasible[:] = False
        return self._refusal(plugin, reason, nodes), nodes

    def candidates(self, cycle: Cycle, most: int = MAX_CANDIDATES) -> tuple[Candidate, ...]:
        """Return the best feasible nodes, ordered by proximity to the job's data, then by score."""
        data, cluster_of = cycle.job.data, self._snapshot.arrays.nodes[NODE_CLUSTER]
        if not data.places:
            return tuple(self._best(cycle, most))
        found: list[Candidate] = []
        for ring in locality_tiers(pull_ms(self._snapshot, data)) == 1:
            near = replace(cycle, usable=cycle.usable & ring, feasible=cycle.feasible & ring[cluster_of])
            found += self._best(near, most - len(found))
        return tuple(found)

    def _best(self, cycle: Cycle, most: int) -> Iterator[Candidate]:
        """Yield the best feasible nodes, by the connection of devices if the job prefers one, then by score."""
        connected, line = best_connected(cycle)
        others = cycle.feasible & ~connected
        found = list(self._best_scores(replace(cycle, feasible=connected), line, most))
        yield from found
        if others.any() and len(found) < most:
            rest = self._best_scores(replace(cycle, feasible=others), cycle.demand_index, most - len(found))
            yield from (replace(each, connection=1) for each in rest)

    def _best_scores(self, cycle: Cycle, line: int, most: int) -> Iterator[Candidate]:
        """Yield the best feasible nodes by score, then by their NVLink islands, best first."""
        feasible = np.flatnonzero(cycle.feasible)
        if not feasible.size:
            return
        parts = weighted_scores(self._profile, cycle)
        total = np.sum(list(parts.values()), axis=0)
        losses = losses_of_islands(cycle, line, feasible)
        order = np.lexsort((losses, -total[feasible]))[:most]
        yield from (
            Candidate(
                cluster=self._cluster_of(int(n)),
                node=self._snapshot.nodes[n].name,
                scores={name: int(share[n]) for name, share in parts.items()},
                total=int(total[n]),
                island_loss=int(loss),
            )
            for n, loss in zip(feasible[order], losses[order], strict=True)
        )

    def places(self, job: Job) -> Sequence[Placement]:
        """Try a whole job; without placements if it does not fit."""
        return self._admits(self._snapshot, job)

    def remedies(self, job: Job) -> tuple[Remedy, ...]:
        """Return the single changes that admit a job that does not fit, smallest first."""
        found = []
        for change in changes(job, self._snapshot.links, self._snapshot.devices):
            value = change.smallest_value(job, self._fits, lambda changed: bool(self.places(changed)))
            if value is not None:
                placements = self.places(change.apply(job, value))
                remedy = verified(change.field, change.text(change.current), change.text(value), placements)
                found.append((change.size(value), remedy))
        return tuple(remedy for _, remedy in sorted(found, key=lambda each: each[0]))

    def combined_remedies(self, job: Job) -> tuple[Remedy, ...]:
        """Return changes that together admit a job."""
        links = self._snapshot.links
        found, changed = combined_changes(job, links, lambda each: self._fits(each) and bool(self.places(each)))
        asked = {change.field: change.text(change.current) for change in changes(job, links)}
        placements = self.places(changed) if found else ()
        return tuple(verified(field, asked[field], value, placements) for field, value in found.items())

    def _fits(self, job: Job) -> bool:
        """Report whether one replica fits a node."""
        return bool(self.run(job)[0].feasible.any())

    def _cluster_of(self, n: int) -> str:
        return self._snapshot.clusters[int(self._snapshot.arrays.nodes[NODE_CLUSTER, n])].name


def verified(field: str, current: int | str, required: int | str, placements: Sequence[Placement]) -> Remedy:
    """Return a remedy with the placements of its trial."""
    first, nodes = placements[0], {(each.cluster, each.node) for each in placements}
    return Remedy(field, current, required, first.cluster, first.node, len(placements), len(nodes))


def weighted_scores(profile: Profile, cycle: Cycle) -> dict[str, Scores]:
    """Return the summand of each plugin in `seaway.scheduling.plain.total_score`, shape (N,) each."""
    scores = profile.scores()
    if len(scores) == 1:
        return {scores[0][0].name: scores[0][0].score(cycle)}
    return {plugin.name: weight * scaled(plugin.score(cycle), cycle) for plugin, weight in scores}
