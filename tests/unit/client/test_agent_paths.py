"""Anything that a gateway that follows says over HTTP, and what it understands."""

from __future__ import annotations

import httpx
import pytest

from seaway.client.agent import HttpSteerer
from seaway.client.connection import Pace
from seaway.client.errors import AnswerError
from seaway.client.sync import Client
from seaway.domain.gateways import Pair
from seaway.wire.network_in import network_text
from seaway.wire.network_views import AppliedIn, wanted_fields
from tests.fakes.gateways import make_network, make_path
from tests.unit.client.requesting import SERVER, TOKEN

NETWORK = make_network(3, [Pair("gw-1", "gw-3", (make_path("direct", 3), make_path("via-2", 2, 3)))])
BODY = wanted_fields("gw-1", network_text(NETWORK), 4, {"gw-3": "via-2"}, {"gw-3": "direct"}, {"cluster-3": "gw-3"})


def steerer(body: object, asked: list[httpx.Request]) -> HttpSteerer:
    """Have one whose server always says the same."""

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=body) if request.method == "GET" else httpx.Response(204)

    client = Client(SERVER, TOKEN, pace=Pace(0), transport=httpx.MockTransport(answer))
    return HttpSteerer(client, "gw-1")


def test_what_is_wanted_is_read_as_it_was_written() -> None:
    """The gateway and the control plane read each other's messages without a loss."""
    asked: list[httpx.Request] = []
    over_http = steerer(BODY, asked)
    wanted = over_http.wanted()
    assert (wanted.version, wanted.config, wanted.active, wanted.applied) == (
        "4",
        NETWORK,
        {"gw-3": "via-2"},
        {"gw-3": "direct"},
    )
    over_http.confirm(wanted)
    assert [each.url.path for each in asked] == [
        "/api/v1/network/gateways/gw-1",
        "/api/v1/network/gateways/gw-1/applied",
    ]
    assert AppliedIn.model_validate_json(asked[1].content).model_dump() == {"version": "4", "active": {"gw-3": "via-2"}}


def test_what_holds_is_not_sent_again() -> None:
    """A user who follows says what he has.

    Where that still holds it is wanted again, and what is new takes its place.
    """
    tags, bodies = ['"4.a"', '"4.a"', '"4.b"'], []

    def answer(request: httpx.Request) -> httpx.Response:
        tag = tags.pop(0)
        if request.headers.get("If-None-Match") == tag:
            return httpx.Response(304, headers={"ETag": tag})
        bodies.append({**BODY, "applied": {"gw-3": f"as of {tag}"}})
        return httpx.Response(200, json=bodies[-1], headers={"ETag": tag})

    over_http = HttpSteerer(Client(SERVER, TOKEN, pace=Pace(0), transport=httpx.MockTransport(answer)), "gw-1")
    first, again, new = over_http.wanted(), over_http.wanted(), over_http.wanted()
    assert first == again
    assert new.applied == {"gw-3": 'as of "4.b"'}
    assert len(bodies) == 2


def test_a_server_that_says_nothing_changed_to_a_user_who_has_nothing_is_none() -> None:
    """304 is an answer to a tag that was sent, and to nothing else."""
    client = Client(SERVER, TOKEN, pace=Pace(0), transport=httpx.MockTransport(lambda _: httpx.Response(304)))
    with pytest.raises(AnswerError):
        HttpSteerer(client, "gw-1").wanted()


@pytest.mark.parametrize("change", [{"network": {"gateways": 7}}, {"active": 7}, {"network": None}])
def test_what_makes_no_sense_is_not_wanted(change: dict[str, object]) -> None:
    """An answer that cannot be a network is reported as such, and nothing is done by it."""
    with pytest.raises(AnswerError, match="invalid configuration"):
        steerer({**BODY, **change}, []).wanted()
