"""The network between gateways over HTTP: settings, reports, and rejections."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import orjson
import pytest
import yaml

from seaway.api.network import MAX_REPORTED_BYTES
from seaway.application.network.reports import MAX_AT_ONCE
from seaway.application.records import Role
from seaway.wire.network_in import EXAMPLE, network_text
from seaway.wire.network_views import MAX_PROBES, MAX_ROUNDS
from tests.fakes.gateways import make_network, make_paths
from tests.unit.api.rig import Rig, make_rig

pytestmark = pytest.mark.anyio

NETWORK = "/api/v1/network"
REPORTS = f"{NETWORK}/reports"


def example(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  # fields of the document
    """Return a network to put: gw-1 and gw-2 before clusters, gw-3 before a site, two paths from gw-3 to gw-1."""
    return {**copy.deepcopy(EXAMPLE), **fields}


def report(rig: Rig, number: int = 1, **fields: Any) -> dict[str, Any]:  # noqa: ANN401  # fields of the report
    """Return a report of gw-1."""
    now_ns = rig.clock.now_ns()
    one = {"target": "gw-2", "at_ns": now_ns, "sent": 5, "received": 5, "latency_ns": 9_000_000, "jitter_ns": 5}
    return {"gateway": "gw-1", "started_ns": now_ns, "number": number, "rounds": [one], **fields}


def made(rig: Rig) -> None:
    """Set the network, with an agent token for each of two gateways."""
    from seaway.wire.network_in import NetworkConfigIn

    rig.plane.network.configuration.put(NetworkConfigIn.model_validate(example()).config(), "rig")
    for name in ("gw-1", "gw-2"):
        rig.tokens[name] = rig.plane.access.create(name, Role.AGENT, "", None, "rig", gateway=name)[1]


@pytest.fixture
def net(rig: Rig) -> Rig:
    """Return a rig with a network of three gateways."""
    made(rig)
    return rig


def nothing_taken(rig: Rig) -> bool:
    """Report whether no report changed the store or the link table."""
    link_table = rig.plane.controller.live.link_table
    return rig.store.agents() == [] and link_table.links(rig.clock.now_ns()) == ()


async def test_a_network_is_put_read_and_removed(rig: Rig) -> None:
    """The network is returned as it can be put again, as JSON and as YAML, with its version as the tag."""
    async with rig.client("operator") as client:
        assert (await client.get(NETWORK)).status_code == 404
        first = await client.put(NETWORK, json=example(), headers={"if-none-match": "*"})
        assert (first.status_code, first.headers["etag"], first.json()["version"]) == (200, '"1"', "1")
        assert "gateway gw-1 is added" in first.json()["changes"]
        read = await client.get(NETWORK)
        assert (read.headers["etag"], read.json()["probe"]) == ('"1"', {"interval": "10s", "count": 5, "timeout": "1s"})
        assert (await client.get(NETWORK, headers={"if-none-match": '"1"'})).status_code == 304
        for kind, text in (("json", orjson.dumps(read.json())), ("yaml", yaml.safe_dump(read.json()).encode())):
            again = await client.put(NETWORK, content=text, headers={"content-type": f"application/{kind}"})
            assert again.json() == {"version": "1", "changes": [], "impact": []}
        assert (await client.delete(NETWORK, headers={"if-match": '"9"'})).status_code == 412
        assert (await client.delete(NETWORK, headers={"if-match": '"1"'})).status_code == 204
        assert (await client.get(NETWORK)).status_code == 404
        assert (await client.put(NETWORK, json=example())).json()["version"] == "3"


async def test_a_change_is_made_to_the_version_it_was_meant_for(net: Rig) -> None:
    """A put with a version changes no other version, and one that expects none replaces none."""
    faster = example(probe={"interval": "5s"})
    async with net.client("operator") as client:
        for headers in ({"if-match": '"7"'}, {"if-none-match": "*"}):
            assert (await client.put(NETWORK, json=faster, headers=headers)).status_code == 412
        assert (await client.put(NETWORK, json=faster, headers={"if-match": '"1"'})).json()["changes"] == [
            "probe: interval 10 -> 5"
        ]


async def test_a_dry_run_tells_and_changes_nothing(net: Rig) -> None:
    """A dry run reports the differences and changes nothing, not even the audit log."""
    before = len(net.store.commits)
    async with net.client("operator") as client:
        answer = await client.put(f"{NETWORK}?dry_run=true", json=example(gateways=[], paths=[]))
        assert answer.json()["changes"][0] == "gateway gw-1 is removed"
        assert (await client.get(NETWORK)).headers["etag"] == '"1"'
    assert len(net.store.commits) == before


async def test_mistakes_are_reported_together_with_where_they_are(rig: Rig) -> None:
    """All errors of a network, of fields and of the whole, are reported together, and nothing is set."""
    wrong = example()
    wrong["gateways"][0]["speeed"] = "1Gbps"
    wrong["gateways"][1]["address"] = "nowhere"
    torn = example()
    torn["paths"][0]["to"] = "gw-9"
    torn["gateways"][1]["name"] = "gw-1"
    async with rig.client("operator") as client:
        answer = await client.put(NETWORK, json=wrong)
        assert answer.status_code == 422
        assert {each["field"] for each in answer.json()["errors"]} == {"gateways[0].speeed", "gateways[1].address"}
        answer = await client.put(NETWORK, json=torn)
        assert answer.status_code == 422
        assert len(answer.json()["errors"]) >= 2
        assert (await client.get(NETWORK)).status_code == 404


async def test_paths_of_every_pair_of_many_gateways_are_taken(rig: Rig) -> None:
    """A network may be larger than other bodies, as JSON and as YAML; it has its own limits."""
    text = orjson.dumps(network_text(make_network(52, make_paths(52))))
    large = text + b" " * rig.plane.settings.body_limit_bytes
    async with rig.client("operator") as client:
        for kind in ("json", "yaml"):
            answer = await client.put(NETWORK, content=large, headers={"content-type": f"application/{kind}"})
            assert answer.status_code == 200, answer.text
        assert len((await client.get(NETWORK)).json()["paths"]) == 52 * 51
        for path in (NETWORK, f"{NETWORK}?dry_run=true"):
            too_large = await client.put(path, content=text + b" " * (8 << 20))
            assert (too_large.status_code, too_large.json()["detail"][:22]) == (413, "the body may have 8388")
        headers = {"content-type": "application/json"}
        assert (await client.post("/api/v1/jobs", content=large, headers=headers)).status_code == 413
        many = b"mesh: [" + b"1," * 500_000 + b"]"
        answer = await client.put(NETWORK, content=many, headers={"content-type": "application/yaml"})
        assert (answer.status_code, "more than 500000 values" in answer.text) == (422, True)


async def test_an_agent_is_reported_what_to_measure(net: Rig) -> None:
    """An agent gets the targets of its own gateway, an operator those of any; others get none."""
    asked = f"{NETWORK}/targets"
    async with net.client("gw-1") as client:
        answer = await client.get(asked, params={"gateway": "gw-1"})
        known = {"if-none-match": answer.headers["etag"]}
        assert (await client.get(asked, params={"gateway": "gw-1"}, headers=known)).status_code == 304
        body = answer.json()
        assert (body["version"], body["probe"], body["reflect"]) == (
            "1",
            {"interval_s": 10, "count": 5, "timeout_s": 1},
            0,
        )
        assert body["address"] == example()["gateways"][0]["address"]
        assert [each["gateway"] for each in body["targets"]] == ["gw-2", "gw-3"]
        assert (await client.get(asked, params={"gateway": "gw-2"})).status_code == 403
    async with net.client("operator") as client:
        paths = (await client.get(asked, params={"gateway": "gw-3"})).json()["targets"]
        assert [(each["gateway"], each["path"], len(each["segments"])) for each in paths] == [
            ("gw-1", "", 0),
            ("gw-1", "direct", 0),
            ("gw-1", "via-2", 1),
            ("gw-2", "", 0),
        ]
        assert (await client.get(asked, params={"gateway": "gw-9"})).status_code == 404
    async with net.client("user") as client:
        assert (await client.get(asked, params={"gateway": "gw-1"})).status_code == 403


async def test_what_an_agent_reports_becomes_a_link(net: Rig) -> None:
    """A valid report is accepted without an audit entry, and decisions use its values."""
    audited = len(net.store.audit(0, 100))
    async with net.client("gw-1") as client:
        assert (await client.post(REPORTS, json=report(net))).status_code == 204
    (link,) = net.plane.controller.live.link_table.links(net.clock.now_ns())
    assert (link.source, link.target, link.latency_ns) == ("gw-1", "gw-2", 9_000_000)
    assert len(net.store.audit(0, 100)) == audited
    async with net.client("viewer") as client:
        body = (await client.get(f"{NETWORK}/agents")).json()
    one = body["agents"][0]
    assert (one["gateway"], one["state"], one["age_s"], one["rounds"]) == ("gw-1", "reporting", 0, 1)
    assert [each["state"] for each in body["agents"][1:]] == ["never", "never"]


@pytest.mark.parametrize(
    ("token", "status"),
    [("", 401), ("forged", 401), ("user", 403), ("operator", 403), ("admin", 403), ("agent", 403), ("gw-2", 403)],
)
async def test_forged_reports_are_refused(net: Rig, token: str, status: int) -> None:
    """Only a gateway's own agent can report for it: other tokens, or none, are rejected without effect."""
    own = net.tokens["gw-1"]
    net.tokens["forged"] = own[:-4] + ("AAAA" if own[-4:] != "AAAA" else "BBBB")
    async with net.client(token) as client:
        assert (await client.post(REPORTS, json=report(net))).status_code == status
    assert nothing_taken(net)
    assert net.plane.network.agents.views()[0].refused == 0  # the agent is not to blame


async def test_a_revoked_agent_reports_no_more(net: Rig) -> None:
    """An agent's reports are rejected as soon as its token is revoked."""
    (token,) = (each for each in net.store.tokens() if each.name == "gw-1")
    net.plane.access.revoke(token.id)
    async with net.client("gw-1") as client:
        assert (await client.post(REPORTS, json=report(net))).status_code == 401
    assert nothing_taken(net)


async def test_replayed_reports_are_refused(net: Rig) -> None:
    """A repeated or older report gets 409 and changes nothing."""
    first = report(net, 5)
    async with net.client("gw-1") as client:
        assert (await client.post(REPORTS, json=first)).status_code == 204
        before = net.store.agents()
        for number in (5, 4):
            later = report(net, number, started_ns=first["started_ns"])
            later["rounds"][0]["latency_ns"] = 1
            assert (await client.post(REPORTS, json=later)).status_code == 409
    assert net.store.agents() == before
    assert net.plane.controller.live.link_table.links(net.clock.now_ns())[0].latency_ns == 9_000_000
    assert net.plane.network.agents.views()[0].refused == 2


async def test_oversized_reports_are_refused(net: Rig) -> None:
    """Too many rounds or too many bytes are rejected, in any encoding."""
    one = report(net)["rounds"][0]
    many = [{**one, "at_ns": one["at_ns"] + at} for at in range(MAX_ROUNDS + 1)]
    text = orjson.dumps(report(net)) + b" " * MAX_REPORTED_BYTES

    async def pieces() -> Any:  # noqa: ANN401  # pieces of a body
        for at in range(0, len(text), 65_536):
            yield text[at : at + 65_536]

    json = {"content-type": "application/json"}
    async with net.client("gw-1") as client:
        assert (await client.post(REPORTS, json=report(net, rounds=many))).status_code == 422
        assert (await client.post(REPORTS, content=text, headers=json)).status_code == 413
        assert (await client.post(REPORTS, content=pieces(), headers=json)).status_code == 413
        assert nothing_taken(net)
        own = net.plane.network.agents.views()[0]
        assert (own.refused, own.last_error) == (3, f"this body may have {MAX_REPORTED_BYTES} bytes at most")
        assert (await client.post(REPORTS, json=report(net, rounds=many[:MAX_ROUNDS]))).status_code == 204


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gateway", ""),
        ("gateway", 7),
        ("started_ns", -1),
        ("started_ns", 2**63),
        ("started_ns", "1"),
        ("number", 0),
        ("number", 1.5),
        ("number", True),
        ("dropped", -1),
        ("rounds", None),
        ("rounds", {}),
        ("secret", 1),
        ("rounds[0].target", "gw-1"),
        ("rounds[0].target", "gw-9"),
        ("rounds[0].target", "a" * 64),
        ("rounds[0].path", "scenic"),
        ("rounds[0].at_ns", 2**63),
        ("rounds[0].sent", 0),
        ("rounds[0].sent", MAX_PROBES + 1),
        ("rounds[0].received", 6),
        ("rounds[0].received", -1),
        ("rounds[0].latency_ns", None),
        ("rounds[0].latency_ns", -1),
        ("rounds[0].latency_ns", 3_600_000_000_001),
        ("rounds[0].jitter_ns", -1),
        ("rounds[0].jitter_ns", "5"),
        ("rounds[0].discarded", -1),
        ("rounds[0].extra", 1),
    ],
)
async def test_malformed_reports_are_refused(net: Rig, field: str, value: object) -> None:
    """A report with an invalid field is rejected as a whole, with the name of the field."""
    wrong = report(net)
    wrong["rounds"].append({**wrong["rounds"][0], "target": "gw-3"})
    (wrong["rounds"][0] if field.startswith("rounds[0]") else wrong)[field.rpartition(".")[2]] = value
    async with net.client("gw-1") as client:
        answer = await client.post(REPORTS, json=wrong)
    assert answer.status_code == 422, answer.text
    assert field in {each["field"] for each in answer.json()["errors"]}
    assert nothing_taken(net)


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{", b'{"gateway":"gw-1","gateway":"gw-2"}', b"\xff", b"[" * 100_000]
)
async def test_what_is_no_report_is_refused(net: Rig, body: bytes) -> None:
    """Any other bytes are rejected without further effect."""
    async with net.client("gw-1") as client:
        answer = await client.post(REPORTS, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert nothing_taken(net)


async def test_an_agent_that_floods_is_slowed_down(net: Rig) -> None:
    """Beyond a burst of reports an agent gets 429 before its report is read, and others continue."""
    async with net.client("gw-1") as client:
        for number in range(MAX_AT_ONCE):
            assert (await client.post(REPORTS, json=report(net, number + 1))).status_code == 204
        answer = await client.post(REPORTS, content=b"{" * 1000, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        net.clock.advance_s(1)
        assert (await client.post(REPORTS, json=report(net, 99))).status_code == 204
    async with net.client("gw-2") as client:
        assert (await client.post(REPORTS, json=report(net, gateway="gw-2", rounds=[]))).status_code == 204


async def test_a_gateway_learns_what_it_has_to_have_and_confirms(net: Rig) -> None:
    """An agent's token gets the network with the active paths; its confirmation is shown to authorized users."""
    rig_token = net.plane.access.create("gw-3", Role.AGENT, "", None, "rig", gateway="gw-3")[1]
    net.tokens["gw-3"] = rig_token
    path = f"{NETWORK}/gateways/gw-3"
    async with net.client("gw-3") as client:
        answer = await client.get(path)
        body = answer.json()
        assert (body["version"], body["active"], body["applied"]) == ("1", {"gw-1": "direct", "gw-2": "direct"}, {})
        assert [each["name"] for each in body["network"]["gateways"]] == ["gw-1", "gw-2", "gw-3"]
        known = {"if-none-match": answer.headers["etag"]}
        assert (await client.get(path, headers=known)).status_code == 304
        net.plane.network.active.choose("gw-3", "gw-1", "via-2", "train needs it")
        assert (await client.get(path, headers=known)).json()["active"]["gw-1"] == "via-2"
        for wrong, status in (
            ({"version": "9", "active": {}}, 409),
            ({"version": "x", "active": {}}, 422),
            ({"version": "1", "active": {"gw-1": "scenic"}}, 422),
        ):
            assert (await client.post(f"{path}/applied", json=wrong)).status_code == status
        written = {"version": "1", "active": {"gw-1": "via-2"}}
        assert (await client.post(f"{path}/applied", json=written)).status_code == 204
        audited = len(net.store.audit(0, 100))
        assert (await client.post(f"{path}/applied", json=written)).status_code == 204
        assert len(net.store.audit(0, 100)) == audited  # it changed nothing
        assert (await client.get(f"{NETWORK}/gateways/gw-1")).status_code == 403
    async with net.client("viewer") as client:
        assert (await client.get(path)).json()["applied"] == {"gw-1": "via-2"}
        assert (await client.get(f"{NETWORK}/gateways/gw-9")).status_code == 404
        assert (await client.post(f"{path}/applied", json=written)).status_code == 403
    async with net.client("gw-1") as client:
        assert (await client.post(f"{path}/applied", json=written)).status_code == 403


async def test_a_gateway_that_confirms_and_confirms_has_to_wait(net: Rig) -> None:
    """Beyond a burst it gets 429 for any content: nothing is written, nor audited."""
    applied = f"{NETWORK}/gateways/gw-1/applied"
    async with net.client("gw-1") as client:
        for number in range(MAX_AT_ONCE):
            path = applied if number % 2 else applied.replace("gw-1", "gw-2")
            assert (await client.post(path, json={"version": "1", "active": {}})).status_code in (204, 403)
        audited, stored = len(net.store.audit(0, 100)), len(net.store.commits)
        for path in (applied, applied.replace("gw-1", "gw-2")):
            for body in ({"version": "1", "active": {"gw-2": "direct"}}, {}):
                answer = await client.post(path, json=body)
                assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert (len(net.store.audit(0, 100)), len(net.store.commits)) == (audited, stored)
    async with net.client("gw-2") as client:
        path = applied.replace("gw-1", "gw-2")
        assert (await client.post(path, json={"version": "1", "active": {}})).status_code == 204


async def test_an_agents_token_is_made_for_its_gateway(net: Rig) -> None:
    """An admin creates it and sees its gateway; without a gateway, or for another role, it is rejected."""
    async with net.client("admin") as client:
        given = {"name": "third", "role": "agent", "gateway": "gw-3"}
        made = (await client.post("/api/v1/tokens", json=given)).json()
        assert (made["role"], made["gateway"], made["tenant"]) == ("agent", "gw-3", "")
        for wrong in ({"name": "x", "role": "agent"}, {"name": "x", "role": "admin", "gateway": "gw-3"}):
            answer = await client.post("/api/v1/tokens", json=wrong)
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "gateway")


async def test_where_no_one_is_asked_who_he_is_everybody_reports() -> None:
    """Without authentication every local client is an admin, and may report for any existing gateway."""
    rig = make_rig(no_auth=True)
    made(rig)
    async with rig.client("") as client:
        assert (await client.post(REPORTS, json=report(rig))).status_code == 204
        assert (await client.post(REPORTS, json=report(rig, gateway="gw-9"))).status_code == 404


async def test_a_running_job_keeps_its_gateway(net: Rig) -> None:
    """A gateway that a running job uses is removed only with force, and a dry run reports that."""
    await net.submit(name="far", gateway="site")
    net.step(4)
    config = net.plane.network.configuration
    assert config.now is not None
    gateways = (*config.now.config.gateways[:2], replace(config.now.config.gateways[2], name="site"))
    config.put(replace(config.now.config, gateways=gateways, pairs=()), "rig")
    async with net.client("operator") as client:
        impact = (await client.put(f"{NETWORK}?dry_run=true", json=example())).json()["impact"]
        assert impact == ["site is used by far"]
        assert (await client.put(NETWORK, json=example())).status_code == 409
        assert (await client.delete(NETWORK)).status_code == 409
        assert (await client.put(f"{NETWORK}?force=true", json=example())).status_code == 200
