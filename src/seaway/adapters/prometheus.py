"""Readers of a Prometheus server: the traffic of gateways, from their node-exporters, and metrics of jobs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

import msgspec

from seaway.application.ports.traffic import Missed, NoPage, Outcome, Page, Pages, Reading
from seaway.application.ports.usage import Question
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import GatewayConfig
from seaway.domain.scaling import Metric
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


JOB_PLACES = ("pods", "job", "name", "tenant", "queue")
"""Placeholders in queries of jobs: a regular expression for the names of its pods, its ID, its name and so on."""


class _Figures(msgspec.Struct, rename={"kind": "resultType"}):
    kind: str
    result: msgspec.Raw


class _JobAnswer(msgspec.Struct):
    data: _Figures


def job_query(text: str, question: Question) -> str:
    """Return a query for a job: a text with its placeholders replaced.

    Raises
    ------
    RejectedError
        When a placeholder is unknown.
    """
    values = (f"sw-{question.job_id}-.+", question.job_id, question.name, question.tenant, question.queue)
    known = dict(zip(JOB_PLACES, values, strict=True))
    if unknown := [name for name in _IN_BRACES.findall(text) if name not in known]:
        raise RejectedError(f"{unknown[0]!r} is not a placeholder; available: {', '.join(JOB_PLACES)}")
    return _IN_BRACES.sub(lambda found: _escaped(known[found[1]]), text)


def read_figure(body: bytes) -> float | None:
    """Parse the answer to a query of one figure; None if there is none, for example because nothing was measured.

    Raises
    ------
    ValueError
        When the answer is invalid, or has several series.
    """
    try:
        data = msgspec.json.decode(body, type=_JobAnswer).data
        if data.kind == "scalar":
            values = [msgspec.json.decode(data.result, type=tuple[float, str])]
        elif data.kind == "vector":
            values = [each.value for each in msgspec.json.decode(data.result, type=list[_Series])]
        else:
            raise ValueError(f"the query has a {data.kind} as its result; a vector or scalar is needed")
    except msgspec.DecodeError as error:
        raise ValueError(f"the answer is not the result of a query: {error}") from error
    if len(values) > 1:
        raise ValueError(f"the query has {len(values)} series as its result; combine them, for example with sum()")
    figure = float(values[0][1]) if values else math.nan
    return figure if math.isfinite(figure) else None


class PrometheusMetrics:
    """Metrics of jobs. It implements `seaway.application.ports.usage.Metrics`.

    Parameters
    ----------
    url
        URL of the server, including a prefix.
    queries
        Query of each metric; empty for one that this server does not have.
    user_queries
        Whether jobs may have queries of their own.

    Raises
    ------
    RejectedError
        When a query has an unknown placeholder.
    """

    def __init__(self, pages: Pages, url: str, queries: Mapping[Metric, str], *, user_queries: bool) -> None:
        for metric, text in queries.items():
            try:
                job_query(text, Question(metric, "", "", "", ""))
            except RejectedError as error:
                raise RejectedError(str(error), where=f"[scaling] {metric.value}") from None
        self._pages = pages
        self._url = url.rstrip("/")
        self._queries = queries
        self._user_queries = user_queries

    def obstacle(self, metric: Metric) -> str:
        """See `Metrics`."""
        if metric is Metric.QUERY:
            return "" if self._user_queries else "has a query, which the operator has to allow: [scaling] user_queries"
        return "" if self._queries.get(metric) else f"has the metric {metric.value}, which [scaling] has no query for"

    def read(self, questions: Sequence[Question]) -> list[float | str]:
        """See `Metrics`."""
        found: dict[int, float | str] = {}
        asked: dict[int, str] = {}
        for at, each in enumerate(questions):
            if obstacle := self.obstacle(each.metric):
                found[at] = f"it {obstacle}"
                continue
            try:
                query = job_query(each.query or self._queries[each.metric], each)
            except RejectedError as error:
                found[at] = str(error)
            else:
                asked[at] = f"{self._url}/api/v1/query?" + urlencode({"query": query})
        pages = self._pages.read([*asked.values()])
        found |= {at: self._value(questions[at].metric, page) for at, page in zip(asked, pages, strict=True)}
        return [found[at] for at in range(len(questions))]

    def _value(self, metric: Metric, page: Page | NoPage) -> float | str:
        where = f"Prometheus at {self._url}"
        if isinstance(page, NoPage):
            return f"{where}: {page.why}"
        if page.status != HTTPStatus.OK:
            return f"{where} answers {page.status}{_error_text(page.body)}"
        try:
            figure = read_figure(page.body)
        except ValueError as error:
            return f"{where}: {error}"
        if figure is None:
            return f"{where} has no value of the metric {metric.value}"
        return max(figure, 0.0)
