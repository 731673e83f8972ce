"""What interfaces carry beyond what was promised to jobs, so that a promise counts once: as one, or as traffic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seaway.application.network.book import NOT_SURVEYED, Survey
from seaway.domain.network import Gateway, Link
from seaway.scheduling.encode import encode_bandwidth
from seaway.scheduling.snapshot import Snapshot
from seaway.scheduling.state import Int64


class Promised:
    """Takes what was promised to jobs out of what was measured, anew only when either changed."""

    def __init__(self) -> None:
        self._survey = self._answer = NOT_SURVEYED
        self._table = np.zeros((0, 0), np.int64)
        self._capacity: tuple[list[Link], Int64] | None = None

    def beyond(self, survey: Survey, snapshot: Snapshot) -> Survey:
        """Return gateways and links with what is in use on them and not promised to a job.

        A job that does not send yet has its bandwidth kept by the engine; what it sends is part of what is measured,
        and is not counted again. Which of the traffic is whose nobody measures: up to what is promised it is taken to
        be that of jobs.

        Parameters
        ----------
        snapshot
            Where promises are booked.
        """
        if not survey.gateways:
            return survey
        table = self._promises(snapshot)
        if survey is not self._survey or not np.array_equal(table, self._table):
            self._survey, self._table = survey, table
            at = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
            out, into = table.sum(axis=1), table.sum(axis=0)
            rest = {each.name: _rest(each, at.get(each.name), out, into) for each in survey.gateways}
            links = tuple(_used(each, rest[each.source], rest[each.target]) for each in survey.links)
            self._answer = replace(survey, gateways=tuple(rest.values()), links=links)
        return self._answer

    def _promises(self, snapshot: Snapshot) -> Int64:
        """Return what is promised from gateway to gateway, shape (G, G), Mbit/s."""
        if self._capacity is None or self._capacity[0] is not snapshot.links:
            at = {gateway.name: g for g, gateway in enumerate(snapshot.fleet.gateways)}
            self._capacity = snapshot.links, encode_bandwidth(snapshot.links, at)
        promised: Int64 = self._capacity[1] - snapshot.arrays.bandwidth
        np.fill_diagonal(promised, 0)
        return promised


def _rest(gateway: Gateway, at: int | None, out: Int64, into: Int64) -> Gateway:
    if at is None or not (out[at] or into[at]):
        return gateway
    used_in_mbps = max(0, gateway.used_in_mbps - int(into[at]))
    return replace(gateway, used_in_mbps=used_in_mbps, used_out_mbps=max(0, gateway.used_out_mbps - int(out[at])))


def _used(link: Link, source: Gateway, target: Gateway) -> Link:
    used_mbps = max(source.used_out_mbps, target.used_in_mbps) if link.bandwidth_mbps else 0
    return link if used_mbps == link.used_mbps else replace(link, used_mbps=used_mbps)
