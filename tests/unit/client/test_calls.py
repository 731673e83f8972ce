import inspect
import json
from pathlib import Path

import httpx
import pytest

from seaway import AsyncClient, Client
from seaway.api.http.replies import STATUSES, answer
from seaway.client.call import decoded, part
from seaway.client.connection import error_of
from seaway.client.errors import (
    AnswerError,
    ConflictError,
    ForbiddenError,
    InvariantError,
    RejectedError,
    SeawayError,
    StaleError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
)
from seaway.domain.errors import TooManyError
from seaway.wire.job_in import JobIn
from seaway.wire.job_out import JobOut
from tests.unit.client.requesting import JOB, TOKEN, Awaiting, Stub, Waiting, problem

AttentionParams = Waiting | Awaiting


def test_both_clients_have_the_same_methods() -> None:
    """Anything that one client can do the other can, with the same parameters and the same words of help."""
    public = [name for name in dir(Client) if not name.startswith("_")]
    assert public == [name for name in dir(AsyncClient) if not name.startswith("_")]
    for name in public:
        one, other = getattr(Client, name), getattr(AsyncClient, name)
        assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters)
        assert one.__doc__ == other.__doc__
        assert one.__doc__


def test_importing_the_package_costs_nothing() -> None:
    """`import seaway` brings neither the client nor what it needs."""
    text = Path(inspect.getfile(Client)).parents[1].joinpath("__init__.py").read_text()
    assert "from seaway.client" not in text.split("__version__")[-1].split("def __getattr__")[0]


@pytest.mark.parametrize(
    "given",
    [
        ((), {"name": "train", "resources": {"gpus": 1}}),
        (({"name": "train", "resources": {"gpus": 1}},), {}),
        ((JobIn.model_validate({"name": "train", "resources": {"gpus": 1}}),), {}),
        (({"name": "other", "resources": {"gpus": 1}},), {"name": "train"}),
    ],
    ids=["keywords", "dict", "JobIn", "dict and keywords"],
)
def test_a_job_is_submitted_however_it_is_written(
    ask: AttentionParams, given: tuple[tuple[object, ...], dict[str, object]]
) -> None:
    """Keyword arguments, a dict and a JobIn send the same job, with a token and a key of its own."""
    stub = Stub([httpx.Response(201, json=JOB)])
    args, kwargs = given
    assert isinstance(ask(stub, "submit", *args, **kwargs), JobOut)
    (request,) = stub.requests
    assert json.loads(request.content) == {"name": "train", "resources": {"gpus": 1}}
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert len(request.headers["idempotency-key"]) == 32


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"priority": 10**30}, "priority: is too large"),
        ({"run": {"ports": [1, -(10**30)]}}, r"run.ports\[1\]: is too small"),
        ({"labels": {"a": object()}}, "cannot be written as JSON"),
    ],
)
def test_a_value_without_a_form_in_json_is_an_error(ask: AttentionParams, fields: dict[str, object], said: str) -> None:
    """A number beyond 64 bits is rejected with its field before anything is sent, in a submit and in a change."""
    stub = Stub([])
    with pytest.raises(RejectedError, match=said):
        ask(stub, "submit", name="a", **fields)
    with pytest.raises(RejectedError, match=said):
        ask(stub, "update", "a", fields)


def test_yaml_is_sent_as_it_is(ask: AttentionParams) -> None:
    """Anything that people wrote comes to the server letter by letter, and nothing can go over it."""
    stub = Stub([httpx.Response(201, json=JOB)])
    text = "name: train  # at night\nresources: {gpus: 1}\n"
    assert isinstance(ask(stub, "submit", text), JobOut)
    (request,) = stub.requests
    assert (request.content.decode(), request.headers["content-type"]) == (text, "application/yaml")
    with pytest.raises(RejectedError, match="queue cannot be combined with a job in YAML"):
        ask(stub, "submit", text, queue="other")


def test_a_submit_is_sent_again_with_the_same_key(ask: AttentionParams) -> None:
    """A submit whose answer was lost is sent again until it is stored, always with one key, so that it comes once."""
    lost: list[httpx.Response | Exception] = [
        httpx.ConnectError("refused"),
        httpx.ReadError("broke"),
        httpx.Response(503, headers={"Retry-After": "3"}),
        httpx.Response(201, json=JOB),
    ]
    stub = Stub([*lost])
    assert ask(stub, "submit", name="train").id == JOB["id"]
    assert len({request.headers["idempotency-key"] for request in stub.requests}) == 1
    assert len(stub.requests) == 4
    assert stub.pauses[-1] == 3.0
    assert all(pause <= 0.2 for pause in stub.pauses[:2])


def test_patience_ends(ask: AttentionParams) -> None:
    """After its patience a client says that the server cannot be reached, and where it looked."""
    stub = Stub([httpx.ConnectError("refused")])
    with pytest.raises(UnavailableError, match=r"http://127\.0\.0\.1:1 cannot be reached"):
        ask(stub, "job", "train")
    assert 25 < stub.now_s <= 30
    assert max(stub.pauses) <= 5


def test_pauses_grow(ask: AttentionParams) -> None:
    """Between tries a client waits longer and longer, so that a server that returns is not run over."""
    stub = Stub([httpx.ConnectError("refused")])
    with pytest.raises(UnavailableError):
        ask(stub, "job", "train")
    assert stub.pauses[0] <= 0.1
    assert stub.pauses[5] > 1


def test_a_long_retry_after_is_reported_at_once(ask: AttentionParams) -> None:
    """Where the server asks for more patience than there is, no one waits in vain, and the error says how long."""
    stub = Stub([httpx.Response(503, headers={"Retry-After": "600"}, json={"detail": "the database is away"})])
    with pytest.raises(UnavailableError, match="the database is away") as raised:
        ask(stub, "job", "train")
    assert raised.value.retry_after_s == 600
    assert stub.pauses == []


@pytest.mark.parametrize("method", [("resume", "train"), ("create_token", "ada"), ("delete", "train")])
def test_what_may_not_happen_twice_is_sent_once(ask: AttentionParams, method: tuple[str, str]) -> None:
    """A call that would do something else the second time is not sent again when its answer was lost."""
    stub = Stub([httpx.ReadError("broke")])
    with pytest.raises(UnavailableError, match="broke"):
        ask(stub, *method)
    assert len(stub.requests) == 1
    unsent = Stub([httpx.ConnectError("refused"), httpx.Response(409, json={"detail": "no"})])
    with pytest.raises(ConflictError):
        ask(unsent, *method)
    assert len(unsent.requests) == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RejectedError),
        (401, UnauthenticatedError),
        (403, ForbiddenError),
        (404, UnknownError),
        (409, ConflictError),
        (412, StaleError),
        (413, RejectedError),
        (422, RejectedError),
        (428, RejectedError),
        (408, UnavailableError),
        (429, UnavailableError),
        (500, InvariantError),
    ],
)
def test_errors_are_sorted_by_cause_to_do(ask: AttentionParams, status: int, kind: type[SeawayError]) -> None:
    """Each status becomes the exception of its remedy, and its message is what the server said."""
    with pytest.raises(kind, match="said why") as raised:
        ask(Stub([problem(status, "said why")]), "job", "train")
    assert type(raised.value) is kind


@pytest.mark.parametrize("kind", [kind for kind, _ in STATUSES if kind is not TooManyError])
def test_clients_get_the_error_that_the_server_had(kind: type[SeawayError]) -> None:
    """An error is of the same class on both sides: a use case and a call over HTTP are caught alike."""
    answered = answer(kind("said why"), "/")
    error = error_of(httpx.Response(answered.status_code, content=bytes(answered.body)))
    assert (type(error), str(error)) == (kind, "said why")


def test_every_wrong_field_is_reported(ask: AttentionParams) -> None:
    """A rejection says which fields are wrong and how to mend each."""
    errors = [{"field": "resources.gpus", "message": "too many"}, {"field": "name", "message": "is missing"}]
    with pytest.raises(RejectedError, match=r"resources\.gpus: too many") as raised:
        ask(Stub([problem(422, "too many", errors=errors)]), "submit", replicas=2)
    assert [(each.where, each.message) for each in raised.value.also] == [("name", "is missing")]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"id": 1}'])
def test_what_is_no_seaway_server_is_recognised(ask: AttentionParams, body: bytes) -> None:
    """An answer that Seaway would not give is an error of its own, no crash."""
    with pytest.raises(AnswerError):
        ask(Stub([httpx.Response(200, content=body)]), "job", "train")


def test_an_error_page_of_a_proxy_is_reported_as_it_is(ask: AttentionParams) -> None:
    """An error without problem details is reported with its status and the start of its text."""
    with pytest.raises(UnknownError, match="404 Not Found: <h1>nothing</h1>"):
        ask(Stub([httpx.Response(404, content=b"<h1>nothing</h1>")]), "job", "train")


def test_lists_go_on_page_by_page(ask: AttentionParams) -> None:
    """A list fetches further pages as they are needed, and no more than are wanted."""

    def page(request: httpx.Request) -> httpx.Response:
        first = "after" not in request.url.params
        jobs = [{**JOB, "name": name} for name in (("a", "b") if first else ("c", "d"))]
        return httpx.Response(200, json={"jobs": jobs, "next": "mark" if first else None})

    stub = Stub([page])
    assert [job.name for job in ask(stub, "jobs", queue="batch", state=["queued", "running"])] == ["a", "b", "c", "d"]
    assert stub.requests[0].url.params.get_list("state") == ["queued", "running"]
    assert stub.requests[1].url.params["after"] == "mark"
    some = Stub([page])
    assert [job.name for job in ask(some, "jobs", limit=3)] == ["a", "b", "c"]
    assert [request.url.params["limit"] for request in some.requests] == ["3", "1"]
    few = Stub([page])
    assert len(ask(few, "jobs", limit=2)) == 2
    assert len(few.requests) == 1


def test_a_change_can_be_meant_for_one_version(ask: AttentionParams) -> None:
    """Given the job as it was seen, a change is refused when the job has become another."""
    stub = Stub([httpx.Response(200, json=JOB)])
    ask(stub, "update", "train", {"priority": 5}, seen=JobOut.model_validate(JOB))
    assert stub.requests[0].headers["if-match"] == f'"{JOB["id"]}.3"'
    assert stub.requests[0].headers["content-type"] == "application/merge-patch+json"
    ask(stub, "update", "train", {"priority": 5})
    assert "if-match" not in stub.requests[1].headers


QUEUE = {
    "name": "q",
    "tenant": "",
    "pool": "default",
    "policy": "fgd",
    "shadow": "",
    "open": True,
    "description": "",
    "allowed_taints": [],
    "allowed_node_labels": [],
}


def test_a_queue_can_be_set_as_it_was_seen(ask: AttentionParams) -> None:
    """Setting a queue by the version that was read is refused when it changed, and not sent again."""
    stub = Stub([httpx.Response(200, json={**QUEUE, "version": "e1"}), httpx.ReadError("gone")])
    seen = ask(stub, "queue", "q")
    with pytest.raises(UnavailableError):
        ask(stub, "put_queue", "q", seen=seen, policy="seaway")
    assert [request.headers.get("if-match") for request in stub.requests] == [None, '"e1"']


def test_history_is_gone_through_page_by_page(ask: AttentionParams) -> None:
    """Anything that was measured comes to completion, or as far as is wanted."""
    link = {
        "source": "a",
        "target": "b",
        "latency_ns": 1,
        "jitter_ns": 1,
        "loss_ppm": 0,
        "bandwidth_mbps": 1,
        "path": "",
    }
    samples = [{**link, "used_mbps": 0, "at": f"2026-11-21T10:00:0{at}.000000Z"} for at in range(3)]
    pages = [{"samples": samples[:2], "next": "x"}, {"samples": samples[2:], "next": None}]
    stub = Stub([httpx.Response(200, json=page) for page in pages])
    assert [each.at for each in ask(stub, "link_history", "a")] == [each["at"] for each in samples]
    assert stub.requests[1].url.params["after"] == "x"
    assert len(ask(Stub([httpx.Response(200, json=pages[0])]), "link_history", limit=1)) == 1


@pytest.mark.parametrize("name", ["a?b", "..", "ä", "%2F"])
def test_a_name_stays_one_part_of_the_path(ask: AttentionParams, name: str) -> None:
    """Whatever a name holds, the request goes to that job and nowhere else."""
    stub = Stub([httpx.Response(200, json=JOB)])
    ask(stub, "job", name)
    raw = stub.requests[0].url.raw_path.decode()
    assert raw == f"/api/v1/jobs/{part(name)}"
    assert raw.count("/") == 4


@pytest.mark.parametrize("name", ["../tokens", "ja/explain"])
def test_no_name_has_a_slash(ask: AttentionParams, name: str) -> None:
    """Anything that servers would take for another path is not sent."""
    stub = Stub([httpx.Response(200, json=JOB)])
    with pytest.raises(RejectedError, match="no name may"):
        ask(stub, "job", name)
    assert stub.requests == []


def test_who_is_no_seaway_server_is_reported_so() -> None:
    """Anything that every answer of Seaway has is not missing by chance."""
    body = decoded(b'{"hello": "world"}')
    assert body["hello"] == "world"
    with pytest.raises(AnswerError, match="not an answer of a Seaway server; it has no 'jobs'"):
        body["jobs"]


def test_fields_that_are_new_are_passed_over(ask: AttentionParams) -> None:
    """A newer server may say more; an older client reads what it knows."""
    assert ask(Stub([httpx.Response(200, json={**JOB, "mood": "good"})]), "job", "train").name == "train"
