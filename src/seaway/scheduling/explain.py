"""Explaining: why a replica fits where it does or nowhere, and what would mend that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, permutations

import numpy as np
from numpy.typing import NDArray

from seaway.domain.job import Demand, Job
from seaway.domain.network import Link, NetworkNeed, link_text, violations
from seaway.domain.placement import Candidate, Explanation, Refusal, Remedy
from seaway.domain.units import figure_text
from seaway.scheduling.columns import CLUSTERS_ALLOWED, CLUSTERS_RESERVED, NODE_CLUSTER
from seaway.scheduling.data_locality import data_text, locality_tiers, pull_ms
from seaway.scheduling.framework import Cycle, Filter, PreFilter, PreScore, Scores, Verdict
from seaway.scheduling.kernels.compile import mixed
from seaway.scheduling.plain import scaled
from seaway.scheduling.profile import Profile
from seaway.scheduling.remedies import Change, changes, combined_changes
from seaway.scheduling.snapshot.links import free_bandwidth
from seaway.scheduling.snapshot.snapshot import Snapshot

MAX_LINKS = 12
"""Links that are named of each kind."""


def violating_links(snapshot: Snapshot, job: Job) -> tuple[str, ...]:
    """Say which links break a job's bounds now, and by which figures.

    First those from its user to clusters that it may go to, where a cluster without a gateway has none; then those
    between such clusters, for a job of several replicas, either way. Bandwidth counts that can still be promised.

    Examples
    --------
    ``gw-4 to gw-1: latency 31 ms, bound 20 ms``
    """
    rules, user = job.demand.nodes, job.demand.gateway
    clusters = [each for each in snapshot.clusters if not rules.clusters or each.name in rules.clusters]
    gateways = list(dict.fromkeys(each.gateway for each in clusters if each.gateway))
    found = list(
        islice(
            _broken(snapshot, job.demand.network, ((user, admission) for admission in gateways if admission != user)),
            MAX_LINKS,
        )
    )
    if job.replicas > 1 and job.between_replicas.any:
        found += islice(_broken(snapshot, job.between_replicas, permutations(gateways, 2), known_only=True), MAX_LINKS)
    return tuple(found)


def _broken(
    snapshot: Snapshot, need: NetworkNeed, ends: Iterable[tuple[str, str]], *, known_only: bool = False
) -> Iterator[str]:
    """Say which of some links break bounds; `known_only` where the way back may stand for one that is not known."""
    if not need.any:
        return
    links = {(link.source, link.target): link for link in snapshot.links}
    at = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
    for source, target in ends:
        link = links.get((source, target))
        if link is None and known_only and (target, source) in links:
            continue
        if link is not None:
            free_mbps = int(free_bandwidth(snapshot.arrays, at[source], at[target]))
            link = _with_free(link, free_mbps)
        if said := violations(need, link):
            yield link_text(source, target, said)


def _with_free(link: Link, free_mbps: int) -> Link:
    """Return a link of which so much is free, which may be below 0."""
    return replace(link, used_mbps=max(0, link.bandwidth_mbps - max(free_mbps, 0)))


MAX_CANDIDATES = 5
"""Number of candidates an explanation lists."""

MAX_LINKS_NAMED = 3
"""Links that a sentence names."""


def explain(snapshot: Snapshot, job: Job, profile: Profile, *, sequence: int = 0) -> Explanation:
    """Explain where the next replica of a job would go, and why not elsewhere.

    Parameters
    ----------
    snapshot
        The fleet as it is; it is left so.
    job
        The job, of which no replica is placed yet.
    profile
        The policy. Its PostFilter plugins, which make room, are not asked.
    sequence
        The job's number since its queue began, on which random choices hang.

    Returns
    -------
    Explanation
        Each node counts for the first rule that refuses it. Remedies are exact for rules that
        admit a demand wherever they admit a larger one, as the rules of fit do: each admits the
        job, and any smaller change of that figure does not.

    Raises
    ------
    RejectedError
        When the job names a gateway that the fleet does not have.
    """
    trial = _Trial(snapshot, profile, sequence)
    cycle, refusals = trial.run(job)
    candidates = trial.candidates(cycle)
    clusters = list(dict.fromkeys(each.cluster for each in candidates))
    return Explanation(
        job=job.name,
        nodes=trial.nodes,
        refusals=refusals,
        candidates=candidates,
        remedies=() if cycle.feasible.any() else trial.remedies(job),
        links=violating_links(snapshot, job),
        data=data_text(snapshot, job.data, pull_ms(snapshot, job.data), clusters) if job.data.location else "",
        deferral_reason=cycle.deferral_reason,
        message=cycle.message,
    )


def summary(explanation: Explanation) -> str:
    """Say an explanation in one sentence, without a full stop; figures as job files have them.

    Examples
    --------
    >>> from seaway.domain.placement import Refusal
    >>> sentence(Explanation("job", 1213, (Refusal("NodeResources", "not enough free CPU", 1213),)))
    '0 of 1,213 nodes fit: 1,213 not enough free CPU'
    """
    fitting = explanation.nodes - sum(refusal.nodes for refusal in explanation.refusals)
    said = f"{fitting:,} of {explanation.nodes:,} nodes fit"
    if explanation.candidates:
        best = explanation.candidates[0]
        said += f", best {best.cluster}/{best.node}"
    if explanation.refusals:
        said += ": " if not explanation.candidates else "; refused: "
        said += ", ".join(f"{refusal.nodes:,} {refusal.reason}" for refusal in explanation.refusals)
    if explanation.links and not explanation.candidates:
        more = len(explanation.links) - MAX_LINKS_NAMED
        said += f" ({'; '.join(explanation.links[:MAX_LINKS_NAMED])}{f'; {more} links more' if more > 0 else ''})"
    if explanation.remedies:
        said += f"; {remedies_text(explanation.remedies[:1])}"
    if explanation.data and explanation.candidates:
        said += f"; {explanation.data}"
    return "; ".join(filter(None, (said, explanation.deferral_reason, explanation.message)))


def combined_remedies(snapshot: Snapshot, job: Job, profile: Profile) -> tuple[Remedy, ...]:
    """Find what of a job would have to change for its next replica to fit somewhere, where no single change is enough.

    Parameters are as for `explain`.

    Returns
    -------
    tuple of Remedy
        Changes that admit it together, of which none can be left out; none when no change of its figures is enough.
    """
    return _Trial(snapshot, profile, 0).combined_remedies(job)


def remedies_text(remedies: Sequence[Remedy]) -> str:
    """Say which changes would admit a job together, of which there is at least one."""
    parts = []
    for remedy in remedies:
        word, admitted = figure_text(remedy.field, remedy.required)
        asked = figure_text(remedy.field, remedy.current)[1]
        parts.append(f"with {word} {admitted} instead of {asked}" if remedy.required else f"without {word}")
    return f"it would fit {' and '.join(parts)} ({remedies[0].cluster}/{remedies[0].node})"


class _Trial:
    """A copy of a snapshot on which a job and its variants are tried.

    Attributes
    ----------
    nodes
        How many nodes the fleet has; columns of nodes that are gone do not count.
    """

    def __init__(self, snapshot: Snapshot, profile: Profile, sequence: int) -> None:
        self._snapshot = snapshot.copy()
        self._snapshot.demands = snapshot.demands.copy()
        self._snapshot.arrays.clusters_open[CLUSTERS_RESERVED] = 0
        self._profile = profile
        self._random_bits = int(mixed(profile.seed, sequence, 0))
        self._existing = np.zeros(len(snapshot.nodes), np.bool_)
        self._existing[list(snapshot.node_index.values())] = True
        self.nodes = len(snapshot.node_index)

    def run(self, job: Job) -> tuple[Cycle, tuple[Refusal, ...]]:
        """Run the profile up to its scores; return the cycle and what refused how many nodes, most first."""
        cycle = Cycle(
            snapshot=self._snapshot,
            job=job,
            replica=0,
            demand_index=self._snapshot.demands.index(job.demand),
            random_bits=self._random_bits,
            usable=self._snapshot.arrays.clusters_open[CLUSTERS_ALLOWED] != 0,
            feasible=self._existing.copy(),
        )
        refusals = self._refusals(cycle)
        return cycle, tuple(sorted(refusals, key=lambda refusal: -refusal.nodes))

    def _refusals(self, cycle: Cycle) -> list[Refusal]:
        """Take from the cycle's feasible nodes what is refused; return why, in the order of asking."""
        for before in self._profile.at(PreFilter):  # type: ignore[type-abstract]
            if not (status := before.pre_filter(cycle)).passes:
                return [self._refuse_all(cycle, before.name, status.reason)]
        refusals: list[Refusal] = []
        for plugin in self._profile.at(Filter):  # type: ignore[type-abstract]
            codes = plugin.filter(cycle)
            counts = np.bincount(codes[cycle.feasible])
            refusals += [
                self._refusal(plugin.name, reason, cycle.feasible & (codes == code), f"{plugin.name}.{code}")
                for code, (reason, count) in enumerate(zip(plugin.reasons, counts[1:], strict=False), 1)
                if count
            ]
            cycle.feasible &= codes == 0
        if cycle.feasible.any():
            for after in self._profile.at(PreScore):  # type: ignore[type-abstract]
                status = after.pre_score(cycle)
                if status.verdict is Verdict.WAIT:
                    cycle.deferral_reason = cycle.deferral_reason or status.reason
                elif not status.passes:
                    return [*refusals, self._refuse_all(cycle, after.name, status.reason)]
        return refusals

    def _refusal(self, plugin: str, reason: str, refused: NDArray[np.bool_], code: str = "") -> Refusal:
        """Count the nodes that are refused, shape (N,), cluster by cluster."""
        counts = np.bincount(self._snapshot.arrays.nodes[NODE_CLUSTER][refused])
        clusters = tuple((self._snapshot.clusters[c].name, int(counts[c])) for c in np.flatnonzero(counts))
        return Refusal(plugin, reason, int(counts.sum()), clusters, code)

    def _refuse_all(self, cycle: Cycle, plugin: str, reason: str) -> Refusal:
        """Refuse every node that is still feasible."""
        refusal = self._refusal(plugin, reason, cycle.feasible)
        cycle.feasible[:] = False
        return refusal

    def candidates(self, cycle: Cycle, most: int = MAX_CANDIDATES) -> tuple[Candidate, ...]:
        """Return the best feasible nodes, those nearest to the job's data first, and among them the best."""
        data, cluster_of = cycle.job.data, self._snapshot.arrays.nodes[NODE_CLUSTER]
        if not data.location:
            return tuple(self._best(cycle, most))
        found: list[Candidate] = []
        for ring in locality_tiers(pull_ms(self._snapshot, data)) == 1:
            near = replace(cycle, usable=cycle.usable & ring, feasible=cycle.feasible & ring[cluster_of])
            found += self._best(near, most - len(found))
        return tuple(found)

    def _best(self, cycle: Cycle, most: int) -> Iterator[Candidate]:
        """Return the best feasible nodes by score, best first."""
        feasible = np.flatnonzero(cycle.feasible)
        if not feasible.size:
            return
        parts = weighted_scores(self._profile, cycle)
        total = np.sum(list(parts.values()), axis=0)
        best = feasible[np.argsort(-total[feasible], kind="stable")][:most]
        yield from (
            Candidate(
                cluster=self._cluster_of(int(n)),
                node=self._snapshot.nodes[n].name,
                scores={name: int(share[n]) for name, share in parts.items()},
                total=int(total[n]),
            )
            for n in best
        )

    def remedies(self, job: Job) -> tuple[Remedy, ...]:
        """Return the single changes that would admit a job that fits nowhere, smallest first."""
        found = []
        for change in changes(job.demand, self._snapshot.links):
            value = change.smallest_value(job.demand, lambda demand: self._admits(job, demand))
            if value is not None:
                found.append((change.size(value), self._remedy(job, change, value)))
        return tuple(remedy for _, remedy in sorted(found, key=lambda each: each[0]))

    def _run_variant(self, job: Job, demand: Demand) -> Cycle:
        """Run the profile for a variant of a job."""
        return self.run(replace(job, demand=demand))[0]

    def _remedy(self, job: Job, change: Change, value: int) -> Remedy:
        best = self.candidates(self._run_variant(job, change.apply(job.demand, value)), most=1)[0]
        return Remedy(change.field, change.current, value, best.cluster, best.node)

    def combined_remedies(self, job: Job) -> tuple[Remedy, ...]:
        """Return changes that admit a job together."""
        links = self._snapshot.links
        found, demand = combined_changes(job.demand, links, lambda demand: self._admits(job, demand))
        if not found:
            return ()
        best = self.candidates(self._run_variant(job, demand), most=1)[0]
        asked = {change.field: change.current for change in changes(job.demand, links)}
        return tuple(Remedy(field, asked[field], value, best.cluster, best.node) for field, value in found.items())

    def _admits(self, job: Job, demand: Demand) -> bool:
        return bool(self._run_variant(job, demand).feasible.any())

    def _cluster_of(self, n: int) -> str:
        return self._snapshot.clusters[int(self._snapshot.arrays.nodes[NODE_CLUSTER, n])].name


def weighted_scores(profile: Profile, cycle: Cycle) -> dict[str, Scores]:
    """Return what each plugin adds to `seaway.scheduling.plain.total_score`, shape (N,) each."""
    scores = profile.scores()
    if len(scores) == 1:
        return {scores[0][0].name: scores[0][0].score(cycle)}
    return {plugin.name: weight * scaled(plugin.score(cycle), cycle) for plugin, weight in scores}
