"""Anything that an agent says over HTTP, and what it understands."""

from __future__ import annotations

import json
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Any

import httpx
import pytest

from seaway.application.ports.agent import Assignment, Report, Reported, Target
from seaway.client.agent import HttpController
from seaway.client.connection import Pace
from seaway.client.errors import AnswerError, ConflictError, RejectedError, UnavailableError
from seaway.client.sync import Client
from seaway.domain.gateways import Method, NetworkConfig, ProbeConfig
from seaway.wire.network_in import network_text
from seaway.wire.network_views import ReportIn, TargetList, target_list_fields, wanted_fields
from tests.unit.client.requesting import SERVER, TOKEN

FULL = Assignment(
    "7",
    ProbeConfig(2.5, 5, 0.5),
    (
        Target("gw-2", IPv6Address("fd00::2"), Method.UDP, 8627),
        Target("gw-3", IPv6Address("fd00::3"), path="via-2", segments=(IPv6Address("fd00:2::e"),)),
    ),
    8627,
    IPv6Address("fd00::1"),
)
REPORT = Report("gw-1", 10, 3, 2, (Reported("gw-2", "", 7, 5, 5, 900, 10), Reported("gw-3", "via-2", 8, 5, 0, None)))


def controller(answer: Callable[[httpx.Request], httpx.Response]) -> HttpController:
    """Have a controller that a function stands for."""
    client = Client(SERVER, TOKEN, pace=Pace(0), transport=httpx.MockTransport(answer))
    return HttpController(client, "gw-1")


def saying(status: int, body: Any) -> HttpController:  # noqa: ANN401  # any JSON
    """Have one that always says the same."""
    return controller(lambda _: httpx.Response(status, json=body))


def test_assignment_is_read_as_it_was_written() -> None:
    """Anything that the control plane writes of an agent's duty, the agent reads as the same."""
    shown = TargetList.model_validate(target_list_fields("gw-1", FULL)).model_dump(mode="json")
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.path, dict(request.url.params), request.headers["Authorization"]))
        return httpx.Response(200, json=shown)

    assert controller(answer).assignment() == FULL
    assert asked == [("/api/v1/network/targets", {"gateway": "gw-1"}, f"Bearer {TOKEN}")]


def test_a_duty_that_holds_is_not_sent_again() -> None:
    """Anything that the server has no other version of is what is to be done still."""
    shown, tags = TargetList.model_validate(target_list_fields("gw-1", FULL)).model_dump(mode="json"), []

    def answer(request: httpx.Request) -> httpx.Response:
        tags.append(request.headers.get("If-None-Match"))
        return httpx.Response(304) if tags[-1] else httpx.Response(200, json=shown, headers={"ETag": '"7"'})

    requesting = controller(answer)
    assert [requesting.assignment(), requesting.assignment()] == [FULL, FULL]
    assert tags == [None, '"7"']


def test_report_is_read_as_it_was_written() -> None:
    """Anything that an agent writes, the control plane reads as the same."""
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(204)

    controller(answer).take(REPORT)
    assert [ReportIn.model_validate_json(body).report() for body in bodies] == [REPORT]


def test_own_address() -> None:
    """The own address is found in the network that the control plane shows."""
    body = json.loads(json.dumps(wanted_fields("gw-1", network_text(NetworkConfig()), 1, {}, {}, {})))
    body["network"]["gateways"] = [{"name": "gw-2", "address": "fd00::2"}, {"name": "gw-1", "address": "fd00::1"}]
    assert saying(200, body).own_address() == IPv6Address("fd00::1")
    with pytest.raises(AnswerError, match="no location of this gateway"):
        saying(200, wanted_fields("gw-1", network_text(NetworkConfig()), 1, {}, {}, {})).own_address()


@pytest.mark.parametrize(
    "change",
    [
        {"probe": {"interval_s": 0, "count": 5, "timeout_s": 1}},
        {"probe": {"interval_s": float("1e9"), "count": 5, "timeout_s": 1}},
        {"probe": {"interval_s": 10, "count": 10**9, "timeout_s": 1}},
        {"probe": None},
        {"targets": [{"gateway": "gw-2"}]},
        {"targets": [{**target_list_fields("gw-1", FULL)["targets"][0], "address": "nowhere"}]},
        {"targets": [{**target_list_fields("gw-1", FULL)["targets"][0], "method": "smoke"}]},
        {"targets": 7},
    ],
)
def test_duty_that_makes_no_sense_is_not_taken(change: dict[str, Any]) -> None:
    """Anything that cannot be probed is no duty, and does not end the agent."""
    with pytest.raises(AnswerError, match="invalid targets"):
        saying(200, {**target_list_fields("gw-1", FULL), **change}).assignment()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (408, UnavailableError),
        (409, ConflictError),
        (422, RejectedError),
        (413, RejectedError),
        (429, UnavailableError),
    ],
)
def test_answers_to_reports(status: int, error: type[Exception]) -> None:
    """Refusals are distinguished by their remedy, after one try."""
    tried = []

    def answer(request: httpx.Request) -> httpx.Response:
        tried.append(request)
        errors = [{"field": "rounds[1].path", "message": "is not measured"}]
        return httpx.Response(status, json={"detail": "no", "errors": errors})

    with pytest.raises(error) as refused:
        controller(answer).take(REPORT)
    assert len(tried) == 1
    assert not isinstance(refused.value, RejectedError) or refused.value.where == "rounds[1].path"


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(301, headers={"Location": "https://elsewhere"}),
        httpx.Response(405, text="not here"),
        httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")),
    ],
)
def test_what_is_no_answer_to_a_report_does_not_refuse_it(answer: httpx.Response) -> None:
    """Whatever stands between an agent and its controller cannot make it give results up, nor end it."""
    with pytest.raises(AnswerError):
        controller(lambda _: answer).take(REPORT)


def test_only_a_server_says_after_how_long_to_come_again() -> None:
    """A server that asks for patience is heeded; one that cannot be reached has asked for nothing."""

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    requesting = httpx.Response(503, headers={"Retry-After": "7"})
    for answer, seconds in ((away, 0), (lambda _: requesting, 7)):
        with pytest.raises(UnavailableError) as unavailable:
            controller(answer).take(REPORT)
        assert unavailable.value.retry_after_s == seconds
