"""Traffic meter that queries a Prometheus server, which scrapes the gateways' node-exporters."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

import msgspec

from seaway.application.ports.traffic import Missed, NoPage, Outcome, Page, Pages, Reading
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import GatewayConfig
from seaway.probing.rounds import BITS, PER_MBIT, Rates, speed_mbps

FIGURE = "seaway_figure"
"""Label that separates the four parts of an answer."""

PLACES = ("exporter", "name", "address")
"""Placeholders in selectors: host and port of a gateway's exporter, and the gateway's name and address."""

_IN_BRACES = re.compile(r"\{([a-z_]+)\}")

RECEIVED, TRANSMITTED, SPEED, AGE = "received", "transmitted", "speed", "age"


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    data: _Data


def require_known(labels: str) -> None:
    """Check that all placeholders in `labels` are known.

    Raises
    ------
    RejectedError
        When a placeholder is unknown.
    """
    unknown = [name for name in _IN_BRACES.findall(labels) if name not in PLACES]
    if unknown:
        text = f"{unknown[0]!r} is not a placeholder; available: {', '.join(PLACES)}"
        raise RejectedError(text, where="[network] prometheus.labels")


def fill_in(labels: str, gateway: GatewayConfig) -> str | None:
    """Return the PromQL selector of a gateway's node-exporter; None if the gateway lacks a required value.

    Parameters
    ----------
    labels
        Selector such as ``instance="{exporter}"``, with any of the placeholders in `PLACES`.
    """
    exporter = urlsplit(gateway.exporter).netloc
    known = dict(zip(PLACES, (exporter, gateway.name, str(gateway.address)), strict=True))
    if not all(known[name] for name in _IN_BRACES.findall(labels)):
        return None
    return _IN_BRACES.sub(lambda found: _escaped(known[found[1]]), labels)


def query(labels: str, interface: str, window_s: int) -> str:
    """Return one PromQL query for all values of an interface."""
    where = f'{{{labels},device="{_escaped(interface)}"}}'
    received, transmitted = f"node_network_receive_bytes_total{where}", f"node_network_transmit_bytes_total{where}"
    parts = {
        RECEIVED: f"rate({received}[{window_s}s])",
        TRANSMITTED: f"rate({transmitted}[{window_s}s])",
        SPEED: f"node_network_speed_bytes{where}",
        AGE: f"time() - timestamp({received})",
    }
    return " or ".join(f'label_replace({text}, "{FIGURE}", "{part}", "", "")' for part, text in parts.items())


def read_answer(body: bytes) -> dict[str, float]:
    """Parse the answer of Prometheus and return the values by part.

    Raises
    ------
    ValueError
        When the answer is invalid, or has a duplicate part.
    """
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.DecodeError as error:
        raise ValueError(f"the answer is not the result of a query: {error}") from error
    found: dict[str, float] = {}
    for series in answer.data.result:
        figure = series.metric.get(FIGURE, "")
        if figure in found:
            raise ValueError("several series are selected; [network] prometheus.labels has to select one exporter")
        found[figure] = float(series.value[1])
    return {figure: value for figure, value in found.items() if math.isfinite(value)}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _ErrorBody(msgspec.Struct):
    error: str = ""


class PrometheusMeter:
    """Traffic meter for gateways scraped by Prometheus, for one thread.

    Parameters
    ----------
    url
        URL of the server, including a prefix.
    labels
        Selector of a gateway's exporter; see `seaway.adapters.prometheus.fill_in`.
    window_s
        Window of rates.

    Raises
    ------
    RejectedError
        When `labels` has an unknown placeholder.
    """

    def __init__(self, pages: Pages, url: str, labels: str, window_s: int) -> None:
        require_known(labels)
        self._pages = pages
        self._url = url.rstrip("/")
        self._labels = labels
        self._window_s = window_s

    def covers(self, gateway: GatewayConfig) -> bool:
        """Report whether the gateway has an interface and the values of the selector; see `TrafficMeter`."""
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
            return Missed(Outcome.UNREADABLE if page.answered else Outcome.UNREACHABLE, f"{where}: {page.why}")
        if page.status != HTTPStatus.OK:
            return Missed(Outcome.REFUSED, f"{where} answers {page.status}{_error_text(page.body)}")
        try:
            found = read_answer(page.body)
        except ValueError as error:
            return Missed(Outcome.UNREADABLE, f"{where}: {error}")
        received, transmitted = found.get(RECEIVED), found.get(TRANSMITTED)
        if received is None or transmitted is None or min(received, transmitted) < 0:
            selected = f"{{{fill_in(self._labels, gateway)}}}"
            return Missed(Outcome.MISSING, f"{where} has no recent rate of that interface, with {selected}")
        rates = Rates(received * BITS / PER_MBIT, transmitted * BITS / PER_MBIT)
        return Reading(rates, speed_mbps(found.get(SPEED)), max(0.0, found.get(AGE, 0.0)))


def _error_text(body: bytes) -> str:
    """Return the error message in an answer of Prometheus; empty if there is none."""
    try:
        error = msgspec.json.decode(body, type=_ErrorBody).error
    except msgspec.DecodeError:
        return ""
    return f": {error}" if error else ""
