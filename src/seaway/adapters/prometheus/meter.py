"""Asks a Prometheus that scrapes the gateways' node-exporters."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlencode

import msgspec

from seaway.adapters.prometheus.queries import (
    AGE,
    RECEIVED,
    SPEED,
    TRANSMITTED,
    fill_in,
    query,
    read_answer,
    require_known,
)
from seaway.application.ports.pages import NoPage, Page, Pages
from seaway.application.ports.traffic import Missed, Outcome, Reading
from seaway.domain.gateways import GatewayConfig
from seaway.probing.counters import BITS, PER_MBIT, Rates, speed_mbps


class _Trouble(msgspec.Struct):
    error: str = ""


class PrometheusMeter:
    """Looks at gateways' interfaces through Prometheus; for one thread.

    Parameters
    ----------
    url
        Of the server, with the prefix that it may have.
    labels
        What selects a gateway's exporter; see `seaway.adapters.prometheus.queries.fill_in`.
    window_s
        Over how long rates are taken.

    Raises
    ------
    RejectedError
        When `labels` has something unknown in braces.
    """

    def __init__(self, pages: Pages, url: str, labels: str, window_s: int) -> None:
        require_known(labels)
        self._pages = pages
        self._url = url.rstrip("/")
        self._labels = labels
        self._window_s = window_s

    def covers(self, gateway: GatewayConfig) -> bool:
        """See `TrafficMeter`: it takes the interface's name and what selects the exporter."""
        return bool(gateway.interface and fill_in(self._labels, gateway))

    def read(self, gateways: Sequence[GatewayConfig]) -> dict[str, Reading | Missed]:
        """See `TrafficMeter`."""
        pages = self._pages.read([self._address(each) for each in gateways])
        return {each.name: self._seen(each, page) for each, page in zip(gateways, pages, strict=True)}

    def _address(self, gateway: GatewayConfig) -> str:
        labels = fill_in(self._labels, gateway) or ""
        return f"{self._url}/api/v1/query?" + urlencode({"query": query(labels, gateway.interface, self._window_s)})

    def _seen(self, gateway: GatewayConfig, page: Page | NoPage) -> Reading | Missed:
        where = f"Prometheus at {self._url}"
        if isinstance(page, NoPage):
            return Missed(Outcome.UNREADABLE if page.answered else Outcome.SILENT, f"{where}: {page.why}")
        if page.status != HTTPStatus.OK:
            return Missed(Outcome.REFUSED, f"{where} answers {page.status}{_because(page.body)}")
        try:
            found = read_answer(page.body)
        except ValueError as error:
            return Missed(Outcome.UNREADABLE, f"{where}: {error}")
        received, transmitted = found.get(RECEIVED), found.get(TRANSMITTED)
        if received is None or transmitted is None or min(received, transmitted) < 0:
            selected = f"{{{fill_in(self._labels, gateway)}}}"
            return Missed(Outcome.MISSING, f"{where} knows no rate of that interface lately, of {selected}")
        rates = Rates(received * BITS / PER_MBIT, transmitted * BITS / PER_MBIT)
        return Reading(rates, speed_mbps(found.get(SPEED)), max(0.0, found.get(AGE, 0.0)))


def _because(body: bytes) -> str:
    """Return what Prometheus says is wrong, if it is Prometheus."""
    try:
        error = msgspec.json.decode(body, type=_Trouble).error
    except msgspec.DecodeError:
        return ""
    return f": {error}" if error else ""
