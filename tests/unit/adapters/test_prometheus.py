from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.prometheus import PrometheusMeter, PrometheusMetrics, fill_in, query, read_answer
from seaway.application.ports.traffic import Missed, NoPage, Outcome, Page, Reading
from seaway.application.ports.usage import Question
from seaway.domain.errors import RejectedError
from seaway.domain.gateways import GatewayConfig
from seaway.domain.scaling import Metric
from seaway.probing.rounds import Rates

GATEWAY = GatewayConfig("gw-1", ip_address("fd00::1"), interface="wan", exporter="http://[fd00::1]:9100/metrics")
LABELS = 'instance="{exporter}"'


def answer(**figures: str) -> bytes:
    """Return Prometheus' answer about one gateway."""
    rows = [{"metric": {"seaway_figure": name}, "value": [1.5, value]} for name, value in figures.items()]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()


class Reported:
    """Returns the same page always."""

    def __init__(self, page: Page | NoPage) -> None:
        self.page = page
        self.asked: list[str] = []

    def read(self, addresses: Sequence[str]) -> list[Page | NoPage]:
        """See `Pages`."""
        self.asked += addresses
        return [self.page for _ in addresses]


def look(page: Page | NoPage) -> Reading | Missed:
    """Measure a gateway once."""
    return PrometheusMeter(Reported(page), "http://p:9090/", LABELS, 60).read([GATEWAY])["gw-1"]


def test_bytes_a_second_become_megabits_a_second() -> None:
    """The result has the speed, and the age of the latest sample."""
    body = answer(received="1.25e+06", transmitted="12500000", speed="1.25e+09", age="7.5")
    assert look(Page(200, body, 0)) == Reading(Rates(10.0, 100.0), 10_000, 7.5)


def test_a_speed_that_is_missing_or_makes_no_sense_is_unknown() -> None:
    """The rates still count."""
    for more in ({}, {"speed": "-125000"}, {"speed": "NaN"}):
        found = look(Page(200, answer(received="0", transmitted="0", age="1", **more), 0))
        assert found == Reading(Rates(0.0, 0.0), None, 1.0)


@pytest.mark.parametrize(
    ("page", "outcome", "said"),
    [
        (NoPage("no answer within 5 s"), Outcome.UNREACHABLE, "no answer"),
        (NoPage("too long", answered=True), Outcome.UNREADABLE, "too long"),
        (Page(400, b'{"status":"error","error":"parse error at 3"}', 0), Outcome.REFUSED, "400: parse error at 3"),
        (Page(502, b"<html>", 0), Outcome.REFUSED, "502"),
        (Page(200, b"<html>", 0), Outcome.UNREADABLE, "not the result of a query"),
        (Page(200, answer(received="x", transmitted="0"), 0), Outcome.UNREADABLE, "x"),
        (Page(200, answer(), 0), Outcome.MISSING, '{instance="[fd00::1]:9100"}'),
        (Page(200, answer(received="1"), 0), Outcome.MISSING, "no recent rate"),
        (Page(200, answer(received="NaN", transmitted="1"), 0), Outcome.MISSING, "no recent rate"),
    ],
)
def test_a_look_that_sees_nothing_says_why(page: Page | NoPage, outcome: Outcome, said: str) -> None:
    """It distinguishes no answer, a rejection, an invalid page and missing series, with Prometheus' message if any."""
    found = look(page)
    assert isinstance(found, Missed)
    assert found.outcome is outcome
    assert said in found.why
    assert "Prometheus at http://p:9090" in found.why


def test_series_of_two_exporters_are_not_taken_for_one() -> None:
    """Only the author of the labels can decide which one is the gateway's."""
    row = {"metric": {"seaway_figure": "received", "job": "a"}, "value": [1, "2"]}
    body = json.dumps({"data": {"result": [row, row | {"metric": {"seaway_figure": "received", "job": "b"}}]}}).encode()
    with pytest.raises(ValueError, match="several series"):
        read_answer(body)


def test_one_question_requests_for_everything_at_the_right_place() -> None:
    """It has both rates over the window, the speed and the age, of the gateway's exporter and interface."""
    reported = Reported(Page(200, answer(), 0))
    PrometheusMeter(reported, "http://p:9090/prefix/", LABELS, 60).read([GATEWAY])
    parts = urlsplit(reported.asked[0])
    assert (parts.netloc, parts.path) == ("p:9090", "/prefix/api/v1/query")
    asked = parse_qs(parts.query)["query"][0]
    where = 'instance="[fd00::1]:9100",device="wan"'
    assert f"rate(node_network_receive_bytes_total{{{where}}}[60s])" in asked
    assert f"rate(node_network_transmit_bytes_total{{{where}}}[60s])" in asked
    assert f"node_network_speed_bytes{{{where}}}" in asked
    assert f"time() - timestamp(node_network_receive_bytes_total{{{where}}})" in asked


def test_labels_are_filled_in_and_nothing_else_is_changed() -> None:
    """Braces around numbers belong to a regular expression."""
    assert fill_in('job="node",instance=~"{name}-[0-9]{2}"', GATEWAY) == 'job="node",instance=~"gw-1-[0-9]{2}"'
    assert fill_in('instance="{address}"', GATEWAY) == 'instance="fd00::1"'


def test_a_gateway_without_exporter_can_be_known_by_its_name() -> None:
    """It is measured if the labels need no missing value, and its interface is named."""
    bare = GatewayConfig("gw-2", ip_address("fd00::2"), interface="wan")
    reported = Reported(NoPage(""))
    assert not PrometheusMeter(reported, "http://p", LABELS, 60).covers(bare)
    assert PrometheusMeter(reported, "http://p", 'instance="{name}"', 60).covers(bare)
    nameless = GatewayConfig("gw-2", ip_address("fd00::2"), exporter="http://there/")
    assert not PrometheusMeter(reported, "http://p", LABELS, 60).covers(nameless)


def test_what_replaces_braces_has_to_be_known() -> None:
    """A mistyped name would match nothing, without an error."""
    with pytest.raises(RejectedError, match=r"'nmae' is not a placeholder; available: exporter, name, address"):
        PrometheusMeter(Reported(NoPage("")), "http://p", 'instance="{nmae}"', 60)


@given(st.text(max_size=10), st.text(max_size=10))
def test_no_name_leaves_its_quotes(name: str, interface: str) -> None:
    """A configured value cannot select another gateway's series."""
    filled = fill_in('instance="{name}"', GatewayConfig(f"x{name}", ip_address("::1"))) or ""
    for text in (filled, query("", interface, 5).partition("device=")[2].partition("}[")[0]):
        inside = text.partition('"')[2].removesuffix('"')
        assert '"' not in inside.replace("\\\\", "").replace('\\"', "")
        assert "\n" not in inside


@given(st.binary(max_size=200))
def test_whatever_answers_is_read_or_refused(body: bytes) -> None:
    """It raises nothing but ValueError."""
    try:
        found = read_answer(body)
    except ValueError:
        return
    assert found == {}


def figures(kind: str, result: object) -> Page:
    """Return Prometheus' answer to a query of one figure."""
    return Page(200, json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode(), 0)


ONE = [{"metric": {}, "value": [1.5, "42.5"]}]
CHAT = Question(Metric.REQUESTS, "6hhgq2g019edv", "chat", "vision", "default")


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (figures("vector", ONE), 42.5),
        (figures("scalar", [1.5, "7"]), 7.0),
        (figures("vector", [{"metric": {}, "value": [1.5, "-1"]}]), 0.0),
        (figures("vector", []), "Prometheus at http://p:9090 has no value of the metric requests"),
        (figures("vector", [{"metric": {}, "value": [1.5, "NaN"]}]), "has no value of the metric requests"),
        (figures("vector", ONE * 2), "has 2 series as its result; combine them, for example with sum()"),
        (figures("matrix", []), "has a matrix as its result"),
        (Page(200, b"<html>", 0), "not the result of a query"),
        (Page(400, b'{"status":"error","error":"parse error at 3"}', 0), "answers 400: parse error at 3"),
        (NoPage("no answer within 5 s"), "no answer within 5 s"),
    ],
)
def test_a_metric_of_a_job_is_one_figure(page: Page | NoPage, found: float | str) -> None:
    """A vector of one series and a scalar are figures; anything else says why there is none."""
    (value,) = PrometheusMetrics(Reported(page), "http://p:9090/", {Metric.REQUESTS: "up"}, user_queries=False).read(
        [CHAT]
    )
    assert value == found or (isinstance(found, str) and found in str(value))


def test_queries_of_jobs_name_their_pods() -> None:
    """Placeholders are replaced; queries of users need the permission of the operator."""
    pages, own = (
        Reported(figures("vector", ONE)),
        Question(Metric.QUERY, "6hh", "chat", "vision", "default", "x{a='{job}'}"),
    )
    queries = {Metric.REQUESTS: 'sum(rate(http_requests_total{pod=~"{pods}"}[1m]))', Metric.UTILIZATION: ""}
    metrics = PrometheusMetrics(pages, "http://p:9090", queries, user_queries=False)
    assert metrics.read([own, CHAT]) == [
        "it has a query, which the operator has to allow: [scaling] user_queries",
        42.5,
    ]
    asked = parse_qs(urlsplit(pages.asked[0]).query)["query"]
    assert asked == ['sum(rate(http_requests_total{pod=~"sw-6hhgq2g019edv-.+"}[1m]))']
    assert "has no query for" in metrics.obstacle(Metric.UTILIZATION)
    PrometheusMetrics(pages, "http://p:9090", queries, user_queries=True).read([own])
    assert parse_qs(urlsplit(pages.asked[-1]).query)["query"] == ["x{a='6hh'}"]
    with pytest.raises(RejectedError, match="'pod' is not a placeholder; available: pods, job"):
        PrometheusMetrics(pages, "http://p:9090", {Metric.LATENCY: "up{pod}"}, user_queries=False)
