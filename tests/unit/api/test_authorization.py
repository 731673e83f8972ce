"""Authorization: roles, tenants, tokens, the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import reduce
from typing import Any

import httpx
import pytest

from seaway.api.http import pipeline
from seaway.api.http.meter import STREAMS
from seaway.application import audit
from seaway.application.access import RANKS
from seaway.application.changes import Change, Outcome
from seaway.application.login_limit import MAX_FAILURES, WINDOW_S
from seaway.application.operations import Operations, Precondition
from seaway.application.records import AuditEntry, Role
from seaway.domain.errors import ConflictError, UnavailableError
from seaway.domain.tenancy import Pool
from seaway.learning.policies.file import LARGEST_FILE
from tests.fakes.records import audit_entry
from tests.unit.api.rig import JOB, Rig

pytestmark = pytest.mark.anyio

BODIES: dict[str, Any] = {
    "submit_job": JOB,
    "replace_job": JOB,
    "update_job": {"priority": 1},
    "cordon": {"cluster": "a"},
    "put_queue": {},
    "put_pool": {},
    "put_tenant": {},
    "create_token": {"name": "new", "role": "admin"},
    "put_network": {},
    "submit_report": {"gateway": "gw-a", "started_ns": 1, "number": 1, "rounds": []},
    "confirm_applied": {"version": "1", "active": {}},
}
QUERIES = {"uncordon": {"cluster": "a"}, "list_targets": {"gateway": "gw-a"}, "forward_port": {"port": "8888"}}
OF_AGENTS = {"submit_report": (), "confirm_applied": (), "list_targets": (Role.OPERATOR, Role.ADMIN)}
"""Operations that require the agent of the gateway, and other allowed roles; further roles are not allowed."""

OF_JOINS = {"get_join_script", "send_join_kubeconfig"}
"""Operations that require the token of a join's command."""

OWN = {"put_saved_filter", "delete_saved_filter"}
"""Operations that change what only the caller sees, which every role may do."""

CONTENT = {"get_logs", "get_manifest"}
"""Operations that may return secrets of a job, which a monitor does not get."""


def operations(rig: Rig) -> list[tuple[str, str, str, Role]]:
    """List all operations that require a role: id, method, path, role."""
    from seaway.api.http.openapi import describe

    return [
        (operation["operationId"], method.upper(), path, Role(operation["x-role"]))
        for path, methods in describe(rig.app)["paths"].items()
        for method, operation in methods.items()
        if "x-role" in operation and operation["operationId"] not in STREAMS
    ]


def filled(path: str, job: str) -> str:
    """Fill the parameters of a path."""
    for name, value in (
        ("{job}", job),
        ("{cluster}", "a"),
        ("{name}", "new"),
        ("{token}", "nothing"),
        ("{gateway}", "gw-a"),
        ("{join}", "nothing"),
    ):
        path = path.replace(name, value)
    return path


@pytest.mark.parametrize("role", Role)
async def test_each_operation_takes_its_role(rig: Rig, role: Role) -> None:
    """The role is enough, a lower role gets 403, and no token gets 401."""
    job = (await rig.submit())["id"]
    for name, method, path, needed in operations(rig):
        async with rig.client(role.value) as client:
            answer = await client.request(
                method, filled(path, job), json=BODIES.get(name), params=QUERIES.get(name), headers={"if-match": "*"}
            )
            allowed = RANKS[role] >= RANKS[needed]
            if name in OF_AGENTS:
                allowed = role in (Role.AGENT, *OF_AGENTS[name])
            if name in OF_JOINS:
                allowed = False
            if name in CONTENT and role is Role.MONITOR:
                allowed = False
            assert (answer.status_code != 403) is allowed, name
            assert answer.status_code < 500, name
        rig.clock.advance_s(WINDOW_S / MAX_FAILURES)
        async with rig.client("") as client:
            assert (await client.request(method, filled(path, job))).status_code == 401, name


MARKER = "HUNTER2"

SECRETIVE: dict[str, Any] = {
    "run": {"image": "trainer", "command": [MARKER], "args": [f"--password={MARKER}"], "env": {"API_KEY": MARKER}},
    "setup": [f"login {MARKER}"],
    "init_containers": [{"name": "fetch", "image": "fetcher", "args": [MARKER], "env": {"API_KEY": MARKER}}],
    "containers": [
        {
            "name": "proxy",
            "image": "proxy",
            "cpu": "100m",
            "memory": "64Mi",
            "command": [MARKER],
            "env": {"API_KEY": MARKER},
        }
    ],
    "volumes": [{"path": "/data", "csi": {"driver": "example.com", "attributes": {"password": MARKER}}}],
}
"""Fields of a job with a value that may be secret."""


async def test_no_operation_shows_content_of_jobs_to_a_monitor(rig: Rig) -> None:
    """A marker in commands, arguments, variables, setup and parameters is in no answer, list or event."""
    old = f"{MARKER}-OLD"
    task = {**SECRETIVE, "matrix": {"SEED": [MARKER, "2"]}}
    jobs = [(await rig.submit(name=name, **each))["id"] for name, each in (("one", SECRETIVE), ("many", task))]
    rig.step(3)
    async with rig.client("user") as client:
        for job in jobs:
            run = {"command": [old], "args": [old], "env": {"API_KEY": old}}
            containers = [{**SECRETIVE["containers"][0], "args": [old]}]
            patch = {"run": run, "setup": [old], "containers": containers}
            answer = await client.patch(f"/api/v1/jobs/{job}", json=patch)
            assert answer.status_code == 200, answer.text
        assert old in (await client.get(f"/api/v1/jobs/{jobs[0]}")).text  # users read the content of their jobs
    rig.step(3)
    async with rig.client("monitor") as client:
        for name, method, path, _ in operations(rig):
            for job in [*jobs, "many_0"] if method == "GET" else ():
                query = {"specs": "true"} if name == "list_attempts" else QUERIES.get(name)
                answer = await client.request(method, filled(path, job), params=query)
                assert MARKER not in answer.text, (name, answer.text)
        assert "trainer" in (await client.get(f"/api/v1/jobs/{jobs[0]}")).text  # what is no content stays


async def test_another_tenant_s_job_is_not_there(rig: Rig) -> None:
    """For every operation on a job, another tenant's job is the same as a missing one."""
    job = await rig.submit()
    rig.step(3)
    for name, method, path, _ in operations(rig):
        if "{job}" not in path:
            continue
        for ref in (job["id"], job["name"]):
            async with rig.client("other") as client:
                answer = await client.request(
                    method,
                    filled(path, ref),
                    params=QUERIES.get(name),
                    json=BODIES.get(name),
                    headers={"if-match": "*"},
                )
                assert answer.status_code == 404, name
                echoed = (f"/{ref}", f"'{ref}'", f'"name":"{ref}"')
                assert job["id"] not in reduce(lambda text, own: text.replace(own, ""), echoed, answer.text)


async def test_another_tenant_s_jobs_are_not_listed(rig: Rig) -> None:
    """Lists, counts, queues, tenants, slices and policies show nothing of another tenant."""
    job = await rig.submit(name="secretive")
    rig.step(3)
    async with rig.client("other") as client:
        assert (await client.get("/api/v1/jobs")).json()["jobs"] == []
        assert (await client.get("/api/v1/job-counts")).json()["total"] == 0
        assert (await client.get("/api/v1/jobs", params={"tenant": "default"})).status_code == 404
        assert [each["name"] for each in (await client.get("/api/v1/tenants")).json()["tenants"]] == ["other"]
        assert (await client.get("/api/v1/tenants/default")).status_code == 404
        slices = (await client.get("/api/v1/fleet/slices")).json()["slices"]
        assert (slices[0]["memory_mib"], slices[0]["job"], slices[0]["job_id"]) == (8192, "", "")
        for path in ("nodes", "devices", "slices", "clusters"):
            text = (await client.get(f"/api/v1/fleet/{path}")).text
            assert job["id"] not in text
            assert "secretive" not in text
    async with rig.client("user") as client:
        assert (await client.get("/api/v1/fleet/slices")).json()["slices"][0]["job"] == "secretive"
        assert [each["name"] for each in (await client.get("/api/v1/queues")).json()["queues"]] == ["default"]
        assert (await client.get("/api/v1/queues/theirs")).status_code == 404
    async with rig.client("operator") as client:
        assert len((await client.get("/api/v1/jobs")).json()["jobs"]) == 1
        assert len((await client.get("/api/v1/queues")).json()["queues"]) == 2


async def test_a_monitor_reads_all_tenants_and_changes_nothing(rig: Rig) -> None:
    """It sees jobs and totals of all tenants in lists and metrics, and every request for a change is rejected."""
    jobs = [(await rig.submit(token, name=token))["id"] for token in ("user", "other")]
    rig.step(3)
    async with rig.client("monitor") as client:
        listed = (await client.get("/api/v1/jobs")).json()["jobs"]
        assert {each["id"] for each in listed} == set(jobs)
        assert len((await client.get("/api/v1/queues")).json()["queues"]) == 2
        text = (await client.get("/metrics")).text
        assert {"seaway_ready", "seaway_http_requests_total"} <= {line.partition("{")[0] for line in text.split()}
        for name, method, path, _ in operations(rig):
            if method != "GET" and name not in OWN:
                answer = await client.request(method, filled(path, jobs[0]), json=BODIES.get(name))
                assert answer.status_code == 403, name
        for part in ("logs", "logs/follow", "manifest"):
            assert (await client.get(f"/api/v1/jobs/{jobs[0]}/{part}")).status_code == 403, part


async def test_jobs_are_submitted_to_one_s_own_tenant(rig: Rig) -> None:
    """A user submits only for the user's own tenant, also in a dry run."""
    assert (await rig.submit("other"))["tenant"] == "other"
    async with rig.client("other") as client:
        for query in ("", "?dry_run=true"):
            answer = await client.post(f"/api/v1/jobs{query}", json={**JOB, "tenant": "default"})
            assert answer.status_code == 403
    assert (await rig.submit("operator", tenant="other"))["tenant"] == "other"
    assert (await rig.submit("operator"))["tenant"] == "default"


async def test_a_token_is_shown_once_and_ends_at_once(rig: Rig) -> None:
    """The secret is only in the answer that creates it; a revoked token is rejected immediately."""
    async with rig.client("admin") as client:
        made = await client.post("/api/v1/tokens", json={"name": "ci", "tenant": "default", "expires_in": "1h"})
        assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
        rig.tokens["ci"] = made.json()["secret"]
        listed = await client.get("/api/v1/tokens")
        assert rig.tokens["ci"] not in listed.text
        assert "digest" not in listed.text
        assert (await client.post("/api/v1/tokens", json={"name": "ci", "tenant": "default"})).status_code == 409
    async with rig.client("ci") as ci, rig.client("admin") as client:
        reported = {"name": "ci", "role": "user", "tenant": "default", "max_body_bytes": 1_048_576, "currency": ""}
        assert (await ci.get("/api/v1/me")).json() == {**reported, "max_policy_file_bytes": LARGEST_FILE}
        assert (await client.delete(f"/api/v1/tokens/{made.json()['id']}")).json()["revoked_at"]
        assert (await ci.get("/api/v1/me")).status_code == 401
        assert (await client.delete("/api/v1/tokens/nothing")).status_code == 404


@pytest.mark.parametrize("header", ["Bearer sw_no_no", "Bearer", "Basic YTpi", None])
async def test_too_many_failures_have_to_wait(rig: Rig, header: str | None) -> None:
    """After several requests without a valid token an address must wait, but valid tokens still work."""
    async with rig.client("") as bad, rig.client("user") as good:
        if header:
            bad.headers["authorization"] = header
        statuses = [(await bad.get("/api/v1/me")).status_code for _ in range(MAX_FAILURES + 1)]
        assert statuses == [401] * MAX_FAILURES + [429]
        answer = await bad.get("/api/v1/me")
        assert answer.headers["retry-after"] == str(WINDOW_S)
        assert (await good.get("/api/v1/me")).status_code == 200
        rig.clock.advance_s(WINDOW_S)
        assert (await bad.get("/api/v1/me")).status_code == 401


async def test_every_change_is_in_the_audit_log(rig: Rig) -> None:
    """Each request for a change is recorded with the answer's status, rejected or not; reads are not."""
    job = await rig.submit()
    async with rig.client("viewer") as viewer, rig.client("other") as other:
        await viewer.post("/api/v1/jobs", json=JOB)
        await other.delete(f"/api/v1/jobs/{job['id']}")
    async with rig.client("") as no_one:
        await no_one.post("/api/v1/tokens", json={})
    async with rig.client("admin") as client:
        await client.get("/api/v1/jobs")
        await rig.app.state.pipeline.audit.store()
        await client.put("/api/v1/pools/east", json={"clusters": ["a"]})
        entries = (await client.get("/api/v1/audit")).json()["entries"]
        assert [(each["actor"], each["verb"], each["status"]) for each in entries[::-1]] == [
            ("user", "POST submit_job", 201),
            ("viewer", "POST submit_job", 403),
            ("other", "DELETE delete_job", 404),
            ("", "POST create_token", 401),
            ("admin", "PUT put_pool", 200),
        ]
        page = (await client.get("/api/v1/audit", params={"limit": 2})).json()
        older = (await client.get("/api/v1/audit", params={"limit": 2, "before": page["next"]})).json()
        assert [each["id"] for each in older["entries"]] == [entries[2]["id"], entries[3]["id"]]


async def test_entries_have_the_values_before_and_after_of_what_was_changed(rig: Rig) -> None:
    """Each changed field has both values, a new record only what differs from the defaults; events name them too."""
    async with rig.client() as client:
        for gpus in (32, 64):
            await client.put("/api/v1/tenants/vision", json={"quotas": {"default": {"limit": {"gpus": gpus}}}})
        await client.put("/api/v1/queues/q", json={"limit": {"memory": "2TB"}, "preemptible": False, "parent": ""})
        await client.delete("/api/v1/queues/q")
        await client.patch("/api/v1/fleet/clusters/a/facts", json={"price_per_gpu_hour": {"A100": "2.5"}})
        await client.post("/api/v1/cordons", json={"cluster": "a", "node": "node-1", "reason": "disk"})
        await client.put("/api/v1/tenants/vision", json={"quotas": {"default": {"limit": {"gpus": 64}}}})
        entries = (await client.get("/api/v1/audit")).json()["entries"][::-1]
        events = (await client.get("/api/v1/fleet/events")).json()["events"]
    changed = [[tuple(one.values()) for one in each["changes"]] for each in entries]
    assert changed == [
        [("tenant", "vision", "quotas.default.limit.gpus", "", "32")],
        [("tenant", "vision", "quotas.default.limit.gpus", "32", "64")],
        [("queue", "q", "limit.memory", "", "2000GB"), ("queue", "q", "preemptible", "true", "false")],
        [("queue", "q", "limit.memory", "2000GB", ""), ("queue", "q", "preemptible", "false", "true")],
        [("cluster", "a", "prices.A100", "", "2.5")],
        [("cordon", "a.node-1", "drain", "", "false"), ("cordon", "a.node-1", "reason", "", "disk")],
        [],
    ]
    assert "tenant vision: limit gpus 32 -> 64" in [each["message"] for each in events]


async def test_entries_of_tokens_notifications_the_network_and_moves_have_both_values(rig: Rig) -> None:
    """Digests are left out, and a secret is a fingerprint. The order of gateways is no difference."""
    network: dict[str, Any] = {"gateways": [{"name": "gw-1", "cluster": "a", "address": "fd00::1", "speed": "1Gbps"}]}
    hook = {"channel": "webhook", "url": "https://hooks.example/a", "on": ["failed"]}
    async with rig.client() as client:

        async def changed(verb: str, path: str, body: dict[str, Any] | None = None) -> dict[str, tuple[str, str]]:
            answer = await client.request(verb, f"/api/v1{path}", json=body)
            assert answer.is_success, answer.text
            ids.append(str((answer.json() if answer.content else {}).get("id", "")))
            (entry,) = (await client.get("/api/v1/audit", params={"limit": 1})).json()["entries"]
            return {
                f"{each['kind']} {each['name']} {each['field']}": (each["before"], each["after"])
                for each in entry["changes"]
            }

        ids: list[str] = []
        ada = {"name": "ada", "role": "user", "tenant": "default"}
        assert await changed("POST", "/tokens", ada) == {
            "token ada role": ("", "user"),
            "token ada tenant": ("", "default"),
        }
        (revoked,) = (await changed("DELETE", f"/tokens/{ids[-1]}")).items()
        assert (revoked[0], revoked[1][0], revoked[1][1][:2]) == ("token ada revoked", "", "20")
        assert "network network gateways.gw-1.speed" in await changed("PUT", "/network", network)
        network["gateways"][0]["speed"] = "10Gbps"
        assert await changed("PUT", "/network", network) == {"network network gateways.gw-1.speed": ("1Gbps", "10Gbps")}
        first = await changed("PUT", "/notifications/hook?tenant=default", hook)
        assert first["notification default.hook on"] == ("", "failed")
        assert len(first["notification default.hook secret"][1]) == 8
        again = await changed("PUT", "/notifications/hook?tenant=default", {**hook, "on": ["finished"]})
        assert again == {"notification default.hook on": ("failed", "finished")}
        assert await changed("POST", "/moves", {"drain": ["a"]}) == {"cordon a drain": ("", "true")}


async def test_entries_are_filtered_and_questions_are_left_out(rig: Rig) -> None:
    """Entries match by caller, text and time; what-if questions only appear when they are asked for."""
    async with rig.client() as client:
        await client.put("/api/v1/tenants/vision", json={"quotas": {"default": {"limit": {"gpus": 32}}}})
        await client.post("/api/v1/whatif", json={"question": {"drain": ["a"]}})

        async def verbs(**wanted: str) -> list[str]:
            found = (await client.get("/api/v1/audit", params=wanted)).json()["entries"]
            return [each["verb"] for each in found]

        assert await verbs() == ["PUT put_tenant"]
        assert await verbs(questions="true") == ["POST what_if", "PUT put_tenant"]
        assert await verbs(contains="LIMIT.gpus") == ["PUT put_tenant"]
        assert await verbs(actor="nobody") == await verbs(until="2020-01-01T00:00:00Z") == []


async def test_strangers_write_few_audit_entries(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests without a valid token have two entries for an address and minute, with the number of requests."""
    monkeypatch.setattr(pipeline, "ANONYMOUS_S", 0.2)
    monkeypatch.setattr(audit, "MAX_ADDRESSES", 3)
    for number in range(5):
        transport = httpx.ASGITransport(rig.app, client=(f"192.0.2.{number}", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for _ in range(30):
                assert (await client.post("/api/v1/jobs", json=JOB)).status_code in (401, 429)
    async with asyncio.timeout(5):
        while len(rig.store.audit(0, 100)) < 7:
            await asyncio.sleep(0.01)
    entries = [(each.address, each.requests, each.status) for each in rig.store.audit(0, 100)[::-1]]
    strangers = [f"192.0.2.{number}" for number in range(3)]
    assert entries[:3] == [(each, 1, 401) for each in strangers]
    assert entries[3:] == [*((each, 29, 429) for each in strangers), ("", 60, 429)]


async def test_strangers_displace_no_entries(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database does not respond, half of the queue is for callers with a valid token."""
    monkeypatch.setattr(audit, "MAX_WAITING", 4)
    log = rig.app.state.pipeline.audit
    for number in range(10):
        log.note_anonymous(audit_entry(actor="", address=f"192.0.2.{number}"))
    log.note(audit_entry(actor="ada"))
    await log.store()
    assert [each.actor for each in rig.store.audit(0, 100)] == ["ada", "", ""]
    assert log.dropped == 8


async def test_an_entry_names_the_token(rig: Rig) -> None:
    """The audit log tells tokens of the same name apart."""
    job = await rig.submit()
    async with rig.client("user") as client:
        await client.delete(f"/api/v1/jobs/{job['id']}")
    async with rig.client("admin") as client:
        entries = (await client.get("/api/v1/audit")).json()["entries"]
    token_id = rig.tokens["user"].split("_")[1]
    assert [(each["token_id"], each["issuer"], each["requests"]) for each in entries] == [(token_id, "", 1)] * 2


async def test_a_job_is_stored_together_with_a_user_who_submitted_it(rig: Rig) -> None:
    """A submit's audit entry is stored with the job, once, and not without it."""
    job = await rig.submit()
    targets = [entry.target for entry in rig.store.audit(0, 100)]
    assert targets == [f"/api/v1/jobs/{job['id']}"]
    async with rig.client("user") as client:
        headers = {"idempotency-key": "once"}
        sent = [await client.post("/api/v1/jobs", json=JOB, headers=headers) for _ in range(2)]
        rig.store.database.available = False
        lost = await client.post("/api/v1/jobs", json=JOB)
        rig.store.database.available = True
    assert [each.status_code for each in (*sent, lost)] == [201, 200, 503]
    await rig.app.state.pipeline.audit.store()
    entries = [(entry.status, entry.target) for entry in rig.store.audit(0, 100)[::-1]]
    path = f"/api/v1/jobs/{sent[0].json()['id']}"
    assert entries == [(201, targets[0]), (201, path), (200, path), (503, "/api/v1/jobs")]


def refuse_entries_alone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the database fail for audit entries without a change."""
    commit = rig.store.commit

    def refuse(changes: Sequence[Change]) -> list[Outcome]:
        alone = [change for change in changes if not (change.update or change.put or change.delete)]
        if any(all(isinstance(record, AuditEntry) for record in change.insert) for change in alone):
            raise UnavailableError("the database does not answer")
        return commit(changes)

    monkeypatch.setattr(rig.store, "commit", refuse)


async def test_a_change_is_stored_together_with_its_audit_entry(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the database fails right after a change, the audit log has the change, once and with its result."""
    job = await rig.submit()
    refuse_entries_alone(rig, monkeypatch)
    async with rig.client("admin") as client:
        created = (await client.post("/api/v1/tokens", json={"name": "new", "role": "operator"})).json()["id"]
        revoked = await client.delete(f"/api/v1/tokens/{created}")
        assert revoked.status_code == 200, revoked.text
        await client.put("/api/v1/pools/east", json={"clusters": ["a"]})
        await client.put("/api/v1/tenants/t", json={})
        await client.delete("/api/v1/tenants/t")
        await client.post(f"/api/v1/jobs/{job['id']}/suspend")
        await client.delete(f"/api/v1/jobs/{job['id']}")
    expected = [
        ("POST create_token", f"/api/v1/tokens/{created}", 201),
        ("DELETE revoke_token", f"/api/v1/tokens/{created}", 200),
        ("PUT put_pool", "/api/v1/pools/east", 200),
        ("PUT put_tenant", "/api/v1/tenants/t", 200),
        ("DELETE delete_tenant", "/api/v1/tenants/t", 204),
        ("POST suspend_job", f"/api/v1/jobs/{job['id']}/suspend", 200),
        ("DELETE delete_job", f"/api/v1/jobs/{job['id']}", 204),
    ]
    entries = rig.store.audit(0, 100)[::-1][1:]
    assert [(entry.verb, entry.target, entry.status) for entry in entries] == expected
    assert {(entry.actor, entry.token_id) for entry in entries} == {("admin", rig.tokens["admin"].split("_")[1])}
    assert len(rig.app.state.pipeline.audit) == 0


async def test_a_change_that_is_not_stored_has_no_entry_of_success(rig: Rig) -> None:
    """A failed transaction leaves the entry of its answer only."""
    async with rig.client("admin") as client:
        rig.store.database.available = False
        answer = await client.put("/api/v1/pools/east", json={"clusters": ["a"]})
        rig.store.database.available = True
    await rig.app.state.pipeline.audit.store()
    assert answer.status_code == 503
    assert [(entry.verb, entry.status) for entry in rig.store.audit(0, 100)] == [("PUT put_pool", 503)]


async def test_a_failure_after_a_change_is_in_the_audit_log_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a request stores a change and then fails, the audit log has both results."""
    put_pool = Operations.put_pool

    def fail(self: Operations, pool: Pool, actor: str, meant: Precondition | None = None) -> Pool:
        put_pool(self, pool, actor, meant)
        raise ConflictError("too late")

    monkeypatch.setattr(Operations, "put_pool", fail)
    async with rig.client("admin") as client:
        await client.put("/api/v1/pools/east", json={"clusters": ["a"]})
    await rig.app.state.pipeline.audit.store()
    assert [entry.status for entry in rig.store.audit(0, 100)[::-1]] == [200, 409]


async def test_the_last_admins_token_is_revoked_by_force_only(rig: Rig) -> None:
    """The error for an admin who would lock out all admins names the remedy; with force it works."""
    token_id = rig.tokens["admin"].split("_")[1]
    async with rig.client("admin") as client:
        retained = await client.delete(f"/api/v1/tokens/{token_id}")
        assert (retained.status_code, "new-admin-token" in retained.json()["detail"]) == (409, True)
        gone = await client.delete(f"/api/v1/tokens/{token_id}", params={"force": "true"})
        assert (gone.status_code, gone.json()["revoked_at"] is None) == (200, False)
        assert (await client.get("/api/v1/me")).status_code == 401


async def test_the_audit_log_names_what_was_made(rig: Rig) -> None:
    """An entry names the created job or token, not just the path."""
    job = await rig.submit()
    async with rig.client("admin") as client:
        token = (await client.post("/api/v1/tokens", json={"name": "new", "role": "admin"})).json()
        await client.post("/api/v1/jobs", json={"name": "a", "queue": "nowhere"})
    await rig.app.state.pipeline.audit.store()
    targets = [entry.target for entry in rig.store.audit(0, 100)]
    assert {f"/api/v1/jobs/{job['id']}", f"/api/v1/tokens/{token['id']}", "/api/v1/jobs"} <= set(targets)


async def test_users_are_listed_with_their_tokens_and_last_use(rig: Rig) -> None:
    """Tokens of one name are one user, with the role of its valid token; the page of single sign-on has no secret."""
    async with rig.client() as client:
        made = (await client.post("/api/v1/tokens", json={"name": "ada", "role": "operator"})).json()
        await client.delete(f"/api/v1/tokens/{made['id']}")
        again = (await client.post("/api/v1/tokens", json={"name": "ada", "role": "user", "tenant": "default"})).json()
        rig.tokens["ada"] = again["secret"]
        async with rig.client("ada") as ada:
            assert (await ada.get("/api/v1/users")).status_code == 403
        users = {each["name"]: each for each in (await client.get("/api/v1/users")).json()["users"]}
        user = users["ada"]
        assert (user["role"], user["tenant"], user["issuer"]) == ("user", "default", "")
        assert {each["id"]: bool(each["last_used_at"]) for each in user["tokens"]} == {
            made["id"]: False,
            again["id"]: True,
        }
        assert (user["last_seen_at"] is not None, users["viewer"]["last_seen_at"]) == (True, None)
        listed = (await client.get("/api/v1/tokens")).json()["tokens"]
        assert {each["name"] for each in listed if each["last_used_at"]} == {"ada", "admin"}
        provider = (await client.get("/api/v1/identity-provider")).json()
        assert (provider["issuer"], provider["has_client_secret"], "client_secret" in provider) == ("", False, False)
