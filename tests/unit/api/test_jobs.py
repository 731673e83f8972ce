"""Jobs over HTTP."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from seaway.api.http import replies
from seaway.application.admission import Admission
from seaway.application.changes import Change, Record
from seaway.application.ports.store import JobFilter
from seaway.domain.errors import UnavailableError
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import AttemptState
from seaway.wire.explanations import DryRunOut
from tests.unit.api.rig import JOB, Rig

pytestmark = pytest.mark.anyio
JOBS = "/api/v1/jobs"


async def test_a_job_that_was_submitted_can_be_read(rig: Rig) -> None:
    """A job is stored when its submit gets 201, and its URL is in the answer."""
    async with rig.client("user") as client:
        made = await client.post(JOBS, json=JOB)
        assert (made.status_code, made.json()["state"]) == (201, "pending")
        read = await client.get(made.headers["location"])
    decided = "4 of 4 nodes fit, best a/node-0; it is to be decided"  # its submit only accepts it
    assert {**read.json(), "reason": None} == {**made.json(), "message": decided, "reason": None}
    for answer in (read, made):  # the reason of a job that waits changes without a new version
        assert answer.headers["etag"].startswith(f'"{made.json()["id"]}.1.')


async def test_a_job_is_found_by_its_name_too(rig: Rig) -> None:
    """A name means the only unfinished job of exactly that name, or else the only one; otherwise it is ambiguous."""
    first = await rig.submit(name="train")
    await rig.submit(name="train-more")
    async with rig.client("user") as client:
        assert (await client.get(f"{JOBS}/trai")).status_code == 404
        await client.post(f"{JOBS}/train/cancel")
        assert (await client.get(f"{JOBS}/train")).json()["id"] == first["id"]
        second = await rig.submit(name="train")
        assert (await client.get(f"{JOBS}/train")).json()["id"] == second["id"]
        third = await rig.submit(name="train")
        answer = await client.get(f"{JOBS}/train")
        said = answer.json()["detail"]
        assert answer.status_code == 422
        assert second["id"] in said
        assert third["id"] in said
        assert first["id"] not in said  # it is finished
        await client.post(f"{JOBS}/{second['id']}/cancel")
        await client.post(f"{JOBS}/{third['id']}/cancel")
        assert first["id"] in (await client.get(f"{JOBS}/train")).json()["detail"]


async def test_users_set_priorities_up_to_a_limit(rig: Rig) -> None:
    """Users set priorities up to `max_user_priority`, in submits and changes; what an operator set stays."""
    most = rig.plane.settings.control.max_user_priority
    async with rig.client("user") as user, rig.client("operator") as operator:
        answer = await user.post(JOBS, json={**JOB, "priority": most + 1})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "priority")
        url = (await user.post(JOBS, json={**JOB, "priority": most})).headers["location"]
        assert (await user.patch(url, json={"priority": most + 1})).status_code == 422
        assert (await operator.patch(url, json={"priority": most + 5})).json()["priority"] == most + 5
        assert (await user.patch(url, json={"retries": 1})).json()["priority"] == most + 5
        assert (await user.patch(url, json={"priority": most + 6})).status_code == 422


async def test_a_job_may_be_submitted_as_yaml(rig: Rig) -> None:
    """The short format is accepted as users write it."""
    async with rig.client("user") as client:
        answer = await client.post(
            JOBS,
            content="name: a\nresources: {gpus: 1, gpu_memory: 8GB}\n",
            headers={"content-type": "application/yaml"},
        )
    assert (answer.status_code, answer.json()["request"]["gpu_memory_mib"]) == (201, 7630)


async def test_the_same_key_submits_once(rig: Rig) -> None:
    """A repeated key returns the existing job; with another body it is a conflict."""
    async with rig.client("user") as client:
        key = {"idempotency-key": "k1"}
        first = await client.post(JOBS, json=JOB, headers=key)
        again = await client.post(JOBS, json=JOB, headers=key)
        other = await client.post(JOBS, json={"name": "b"}, headers=key)
        broken = await client.post(JOBS, json=JOB, headers={"idempotency-key": "x" * 256})
    assert (first.status_code, again.status_code, other.status_code, broken.status_code) == (201, 200, 409, 422)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["idempotency-replayed"] == "true"


async def test_a_dry_run_stores_nothing(rig: Rig) -> None:
    """The scheduler reports the place of the job, and no job is stored."""
    async with rig.client("user") as client:
        trial = await client.post(f"{JOBS}?dry_run=true", json=JOB)
        jobs = await client.get(JOBS)
    assert (trial.status_code, trial.json()["fits"], trial.json()["candidates"][0]["chosen"]) == (200, True, True)
    assert jobs.json()["jobs"] == []
    assert [each["kind"] for each in trial.json()["manifests"]] == ["Job"]
    DryRunOut.model_validate(trial.json())


async def test_jobs_that_make_room_are_named_to_those_who_may_see_them(rig: Rig) -> None:
    """Dry run and explanation name the elastic job that shrinks to its tenant and admins, and its ID to others."""
    hog = await rig.submit(name="hog", replicas={"min": 1, "max": 8}, resources={"gpus": 1})
    rig.step(10)
    small = {"name": "small", "resources": {"gpus": 1}, "queue": "theirs", "tenant": "other"}
    for token, label, tenant in (("other", hog["id"], ""), ("admin", "hog", "default")):
        async with rig.client(token) as client:
            trial = DryRunOut.model_validate((await client.post(f"{JOBS}?dry_run=true", json=small)).json())
        assert (trial.fits, trial.message) == (True, f"would start now and shrink {label} by 1 replica")
        assert (trial.room_within_s, len(trial.placements)) == (30, 1)
        (maker,) = trial.room_from
        assert (maker.job_id, maker.name, maker.tenant, maker.replicas) == (hog["id"], tenant and "hog", tenant, 1)


async def test_what_no_cluster_could_hold_is_refused(rig: Rig) -> None:
    """The error for a request that is too large for the empty fleet names what would fit."""
    async with rig.client("user") as client:
        answer = await client.post(JOBS, json={"name": "a", "resources": {"gpus": 3}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "resources"
    assert "2 instead of 3" in answer.json()["detail"]


async def test_unknown_names_are_reported_together(rig: Rig) -> None:
    """Unknown queues, gateways and templates are reported together, each with its field."""
    wrong = {"name": "a", "queue": "no", "gateway": "no", "template": "no"}
    async with rig.client("user") as client:
        answer = await client.post(JOBS, json=wrong)
    assert {each["field"] for each in answer.json()["errors"]} == {"queue", "gateway", "template"}


async def test_a_list_goes_from_new_to_old_in_pages(rig: Rig) -> None:
    """Pages follow each other without a gap, and the last has no next."""
    ids = [(await rig.submit(name=f"j{at}"))["id"] for at in range(5)]
    seen, after = [], ""
    async with rig.client("user") as client:
        while True:
            page = (await client.get(JOBS, params={"limit": 2, "after": after})).json()
            seen += [job["id"] for job in page["jobs"]]
            after = page["next"]
            if after is None:
                break
    assert seen == ids[::-1]


@pytest.mark.parametrize(("field", "known"), [("queue", "default"), ("cluster", "a")])
async def test_a_filter_by_an_unknown_name_is_an_error(rig: Rig, field: str, known: str) -> None:
    """An empty list would hide a typo. A known name without jobs is an empty list; hidden names are unknown."""
    async with rig.client("user") as client:
        assert (await client.get(JOBS, params={field: known})).json()["jobs"] == []
        for name in ("typo", "theirs"):
            answer = await client.get(JOBS, params={field: name})
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["field"] == field
            assert answer.json()["detail"].startswith(f"{field}: unknown {field} '{name}'; available: {known}")
            assert name not in answer.json()["detail"].partition("available")[2]


async def test_a_page_ends_by_bytes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists leave out what jobs run, and a page that is large enough ends before its limit, without a gap."""
    large: dict[str, Any] = {"run": {"image": "u", "env": {"A": "x" * 4096}}, "matrix": {"B": ["y" * 4096, "2"]}}
    ids = [(await rig.submit(name=f"j{at}", **large))["id"] for at in range(3)]
    async with rig.client("user") as client:
        for path, rows in ((JOBS, 3), (f"{JOBS}/{ids[0]}/tasks", 2), (f"{JOBS}/{ids[0]}/workflow", 1)):
            text = (await client.get(path)).text
            assert len(text.replace("y" * 4096, "")) < rows * 2000
            assert "xxx" not in text
            assert text.count("y" * 4096) == path.endswith("/tasks")  # of a task, only its own parameters
        assert "xxx" in (await client.get(f"{JOBS}/{ids[0]}")).text
        monkeypatch.setattr(replies, "PAGE_BYTES", 1)
        seen, after, last = [], "", False
        while not last:
            page = (await client.get(JOBS, params={"sort": "name", "after": after})).json()
            assert len(page["jobs"]) <= 1
            seen += [job["id"] for job in page["jobs"]]
            after, last = page["next"], page["next"] is None
    assert seen == ids


async def test_a_list_can_be_filtered(rig: Rig) -> None:
    """Each parameter narrows the list, and unknown ones are rejected."""
    await rig.submit(name="a", labels={"team": "x"})
    await rig.submit(name="b")
    rig.step(3)
    await rig.submit(name="c")
    wanted: list[tuple[dict[str, Any], list[str]]] = [
        ({"name": "a"}, ["a"]),
        ({"label": "team=x"}, ["a"]),
        ({"state": "pending"}, ["c"]),
        ({"state": ["pending", "running"]}, ["c", "b", "a"]),
        ({"cluster": "b", "name": "a"}, []),
        ({"queue": "default", "submitted_by": "user", "tenant": "default"}, ["c", "b", "a"]),
        ({"submitted_from": "2026-01-01T00:00:01Z"}, ["c"]),
        ({"submitted_until": "2026-01-01T00:00:01Z"}, ["b", "a"]),
    ]
    async with rig.client("user") as client:
        for params, names in wanted:
            answer = await client.get(JOBS, params=params)
            assert [job["name"] for job in answer.json()["jobs"]] == names, params
        counts = await client.get("/api/v1/job-counts")
        assert (counts.json()["total"], counts.json()["states"]["pending"]) == (3, 1)
        for params in ({"stat": "x"}, {"state": "x"}, {"limit": 0}, {"after": "x"}, {"submitted_from": "now"}):
            assert (await client.get(JOBS, params=params)).status_code == 422, params
        reported = (await client.get(JOBS, params={"label": "=="})).text
        assert "'==' is not valid; a label is written key=value, like team=a" in reported


async def test_a_change_names_the_version_it_is_meant_for(rig: Rig) -> None:
    """A change of an old version is rejected, and so is a replacement without a version."""
    job = await rig.submit()
    async with rig.client("user") as client:
        path, tag = f"{JOBS}/{job['id']}", f'"{job["id"]}.1"'
        assert (await client.put(path, json=JOB)).status_code == 428
        changed = await client.put(path, json={**JOB, "priority": 3}, headers={"if-match": tag})
        assert (changed.status_code, changed.json()["priority"], changed.json()["version"]) == (200, 3, 2)
        assert (await client.put(path, json=JOB, headers={"if-match": tag})).status_code == 412
        assert (await client.put(path, json=JOB, headers={"if-match": "*"})).status_code == 200
        assert (await client.post(f"{path}/cancel", headers={"if-match": tag})).status_code == 412


async def test_a_patch_changes_what_it_names(rig: Rig) -> None:
    """Fields that a merge patch leaves out stay, and null resets a field to its default."""
    job = await rig.submit(priority=5, labels={"a": "1", "b": "2"})
    async with rig.client("user") as client:
        answer = await client.patch(f"{JOBS}/{job['id']}", json={"priority": None, "labels": {"a": None}})
        assert answer.status_code == 200
        assert (answer.json()["priority"], answer.json()["spec"]["labels"]) == (0, {"b": "2"})
        for body in ({"nme": "x"}, {"name": None}, {"tenant": "other"}, {"replicas": 0}):
            assert (await client.patch(f"{JOBS}/{job['id']}", json=body)).status_code == 422, body
        for content in (b"[1]", b"x", b"NaN"):
            answer = await client.patch(
                f"{JOBS}/{job['id']}", content=content, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 422


@pytest.mark.parametrize(
    ("field", "forms"),
    [
        ("replicas", [None, 1, 2, {"min": 1, "max": 4}, {"min": 2, "max": 3, "wanted": 2}]),
        ("data", [None, {"location": "a"}, {"location": "b", "size": "1GB"}]),
        ("expose", [None, {"type": "node_port"}]),
        ("array", [None]),
        ("labels", [None, {"a": "b"}, {"a": "c", "d": "e"}]),
        ("after", [None, []]),
        ("checkpoint", [None, {"signal": "SIGUSR1", "grace": "10s"}]),
        ("run", [{"image": "u"}, {"image": "v", "ports": [80], "env": {"A": "1"}, "args": ["x"]}]),
        ("containers", [None, [{"name": "s", "image": "s", "cpu": "100m", "memory": "64Mi"}]]),
    ],
)
async def test_each_form_of_a_field_can_become_each_other(rig: Rig, field: str, forms: Sequence[Any]) -> None:
    """A change between any two forms of a field is accepted or rejected with a reason, never an internal error."""
    async with rig.client("user") as client:
        for before, after in itertools.permutations(forms, 2):
            run = {"image": "u", "ports": [80]} if field == "expose" else {"image": "u"}
            job = (await rig.submit(run=run, template="deployment" if field == "expose" else "job"))["id"]
            for form in (before, after):
                answer = await client.patch(f"{JOBS}/{job}", json={field: form})
                assert answer.status_code in {200, 409, 422}, (form, answer.text)


async def test_a_patch_that_names_no_version_is_put_to_the_newest(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A patch without a version is retried after a concurrent change; one with a version is a conflict."""
    job = await rig.submit(labels={"a": "1"})
    path = f"{JOBS}/{job['id']}"
    admit = type(rig.plane.admission).admit

    def moves_meanwhile(admission: Admission, spec: JobSpec, seen_by: str = "", before: JobSpec | None = None) -> None:
        monkeypatch.undo()
        found = rig.plane.jobs.find(job["id"])
        rig.plane.jobs.change(found.id, replace(found.spec, labels={"b": "2"}), "another user")
        admit(admission, spec, seen_by, before)

    async with rig.client("user") as client:
        monkeypatch.setattr(type(rig.plane.admission), "admit", moves_meanwhile)
        answer = await client.patch(path, json={"priority": 3})
        assert (answer.status_code, answer.json()["spec"]["labels"]) == (200, {"b": "2"})
        monkeypatch.setattr(type(rig.plane.admission), "admit", moves_meanwhile)
        stale = await client.patch(path, json={"priority": 4}, headers={"if-match": answer.headers["etag"]})
        assert stale.status_code == 412


async def test_who_has_a_version_gets_no_body(rig: Rig) -> None:
    """A read with the current version's tag gets 304. While a job waits, the tag is also that of its reason."""
    job = await rig.submit()
    async with rig.client("user") as client, rig.client("operator") as operator:
        path = f"{JOBS}/{job['id']}"
        assert (await client.get(path, headers={"if-none-match": f'"{job["id"]}.1"'})).status_code == 200
        for cluster in ("a", "b"):
            await operator.post("/api/v1/cordons", json={"cluster": cluster, "reason": "disk"})
        rig.step()
        seen = (await client.get(path)).headers["etag"]
        assert (await client.get(path, headers={"if-none-match": seen})).status_code == 304
        await operator.post("/api/v1/cordons", json={"cluster": "b", "reason": "fire"})
        rig.plane.controller.step()
        other = await client.get(path, headers={"if-none-match": seen})
        assert (other.status_code, other.headers["etag"][:-9]) == (200, seen[:-9])
        assert other.headers["etag"] != seen
        changed = await client.patch(path, json={"labels": {"a": "b"}}, headers={"if-match": seen})
        assert changed.status_code == 200, changed.text
        await client.post(f"{path}/suspend")
        known = await client.get(path, headers={"if-none-match": f'W/"x", "{job["id"]}.4"'})
        assert (known.status_code, known.content) == (304, b"")
        assert (await client.get(path, headers={"if-none-match": '"x"'})).status_code == 200


async def test_a_job_is_sent_on_its_way(rig: Rig) -> None:
    """Suspend, resume, cancel and delete work, and an invalid transition is a conflict."""
    job = await rig.submit()
    path = f"{JOBS}/{job['id']}"
    async with rig.client("user") as client:
        assert (await client.post(f"{path}/suspend", json={"reason": "lunch"})).json()["message"] == "lunch"
        assert (await client.post(f"{path}/resume")).json()["state"] == "queued"
        assert (await client.post(f"{path}/resume")).status_code == 409
        assert (await client.post(f"{path}/cancel")).json()["state"] == "cancelled"
        assert (await client.post(f"{path}/cancel")).status_code == 200
        assert (await client.patch(path, json={"priority": 1})).status_code == 409
        assert (await client.post(f"{path}/cancel", json={"why": "x"})).status_code == 422
        assert (await client.delete(path)).status_code == 204
        assert (await client.get(path)).status_code == 404


async def test_a_job_can_be_looked_into(rig: Rig) -> None:
    """A running job has its reason, events, attempts, manifest, logs and the scheduler's explanation."""
    job = await rig.submit()
    rig.step(3)
    path = f"{JOBS}/{job['id']}"
    async with rig.client("viewer") as client:
        assert (await client.get(f"{path}/explain")).json()["placements"][0]["cluster"] in {"a", "b"}
        events = (await client.get(f"{path}/events")).json()["events"]
        assert [each["state"] for each in events][-1] == "running"
        later = (await client.get(f"{path}/events", params={"after": events[0]["id"], "limit": 1})).json()
        assert (later["events"], later["next"]) == ([events[1]], events[1]["id"])
        ran = (await client.get(f"{path}/attempts")).json()
        assert ran["attempts"][0]["number"] == 1
        assert [(each["cluster"], each["phase"]) for each in ran["workloads"]] == [
            (ran["attempts"][0]["placements"][0]["cluster"], "running")
        ]
        use = (await client.get(f"{path}/gpu-use")).json()
        assert (use["total"], use["samples"], use["slices"][0]["used"]) == (1, [], None)
        assert (await client.get(f"{path}/gpu-use", params={"span": "month"})).json() == use
        assert (await client.get(f"{path}/gpu-use", params={"span": "year"})).status_code == 422
        assert (await client.get(f"{path}/normalised")).json()["request"]["gpu_memory_mib"] == 8192
        assert "started" in (await client.get(f"{path}/logs", params={"tail": 5})).text
        assert "started" in (await client.get(f"{path}/logs", params={"container": "main"})).text
        lines = (await client.get(f"{path}/logs")).text.splitlines()
        for query, found in (
            ({"contains": "STARTED"}, [each for each in lines if "started" in each]),
            ({"contains": "started", "tail": "1"}, [each for each in lines if "started" in each][-1:]),
            ({"contains": "nothing"}, []),
            ({"since": lines[-1].split()[0]}, [each for each in lines if each.split()[0] == lines[-1].split()[0]]),
            ({"since": "2200-01-01T00:00:00Z"}, []),
            ({"since": "1970-01-01T00:00:00Z"}, lines),
        ):
            assert (await client.get(f"{path}/logs", params=query)).text.splitlines() == found, query
        assert (await client.get(f"{path}/logs", params={"since": "10m"})).status_code == 422
        refused = await client.get(f"{path}/logs", params={"container": "side"})
        assert (refused.status_code, refused.json()["errors"]) == (
            422,
            [{"field": "container", "message": "container 'side' not found; available: main"}],
        )
        assert (await client.get(f"{path}/logs", params={"replica": 7})).status_code == 409
        as_yaml = await client.get(f"{path}/manifest")
        as_json = await client.get(f"{path}/manifest", headers={"accept": "application/json"})
        assert as_yaml.headers["content-type"].startswith("application/yaml")
        assert "&id" not in as_yaml.text
        assert as_json.json()[0]["kind"] == "Job"
        assert (await client.get(f"{path}/manifest", headers={"accept": "image/png"})).status_code == 406


async def test_a_running_service_tells_its_addresses(rig: Rig) -> None:
    """The answer for one job has the addresses of its ports, those for clients outside first; a list has none."""
    job = await rig.submit(template="deployment", run={"ports": [8080]}, expose={"type": "LoadBalancer"})
    assert job["endpoints"] == []
    rig.step(3)
    async with rig.client("viewer") as client:
        shown = (await client.get(f"{JOBS}/{job['id']}")).json()
        assert [(each["port"], each["reach"]) for each in shown["endpoints"]] == [(8080, "outside"), (8080, "cluster")]
        assert shown["spec"]["expose"] == {"type": "LoadBalancer"}
        (listed,) = (await client.get(JOBS)).json()["jobs"]
        assert not listed.get("endpoints")


@pytest.mark.parametrize(
    "more", [{}, {"replicas": 2, "gang": True}, {"array": "0-2"}, {"replicas": {"min": 1, "max": 3}},
             {"template": "deployment", "standby": "cold"}],
)  # fmt: skip
async def test_a_job_has_an_own_pod_spec(rig: Rig, more: dict[str, Any]) -> None:
    """It is stored, shown and refused by the rules for templates, in gangs, arrays, elastic jobs and services."""
    pod = {"hostAliases": [{"ip": "10.0.0.9"}], "containers": [{"name": "main", "image": "a:1", "workingDir": "/x"}]}
    job = await rig.submit(run={"pod": pod}, **more)
    assert job["spec"]["run"]["image"] == "a:1"
    assert job["spec"]["run"]["pod"] == {**pod, "containers": [{"name": "main", "workingDir": "/x"}]}
    rig.step(3)
    async with rig.client("user") as client:
        body = {**JOB, "name": "other", **more, "run": {"pod": {**pod, "hostNetwork": True, "nodeName": "n"}}}
        refused = await client.post(JOBS, json=body)
        assert refused.status_code == 422
        assert {each["field"] for each in refused.json()["errors"]} == {"run.pod.hostNetwork", "run.pod.nodeName"}
        if "array" not in more:
            manifest = (await client.get(f"{JOBS}/{job['id']}/manifest")).text
            assert "10.0.0.9" in manifest
            assert "workingDir: /x" in manifest


async def test_the_addresses_of_a_job_name_its_containers(rig: Rig) -> None:
    """Each address has the container that listens, and the name and protocol of its port."""
    ports = [{"name": "metrics", "port": 9100}, {"port": 514, "protocol": "UDP"}]
    job = await rig.submit(
        template="deployment",
        run={"ports": [8080]},
        containers=[{"name": "log", "cpu": "100m", "memory": "64Mi", "ports": ports}],
    )
    assert job["spec"]["containers"][0]["ports"] == ports
    rig.step(3)
    async with rig.client("viewer") as client:
        for path in (f"{JOBS}/{job['id']}", f"{JOBS}/{job['id']}/attempts"):
            shown = (await client.get(path)).json()
            found = shown["endpoints"] if "endpoints" in shown else shown["workloads"][0]["endpoints"]
            assert {(each["port"], each["container"], each["name"], each["protocol"]) for each in found} == {
                (8080, "main", "", "TCP"), (9100, "log", "metrics", "TCP"), (514, "log", "", "UDP"),
            }  # fmt: skip
            assert all(each["cluster"] and each["address"] for each in found)


async def test_a_service_with_a_standby_is_switched_and_its_answer_follows(rig: Rig) -> None:
    """Either ID, and the name, lead to the addresses of the active copy. The answer of a switch is its job."""
    service: dict[str, Any] = {"template": "deployment", "run": {"ports": [80]}, "expose": {"type": "LoadBalancer"}}
    job = await rig.submit(name="chat", **service, standby={"clusters": 1})
    assert (job["standby"]["role"], job["standby"]["mode"], job["standby"]["other"]) == ("active", "warm", "")
    async with rig.client("user") as client:
        answer = await client.post(f"{JOBS}/chat/failover")
        assert (answer.status_code, "has no standby yet" in answer.json()["detail"]) == (409, True)
        rig.step(8)
        before = (await client.get(f"{JOBS}/chat")).json()
        second = before["standby"]["other"]
        assert (before["id"], before["standby"]["state"]) == (job["id"], "running")
        assert before["standby"]["clusters"] != before["clusters"]
        assert before["standby"]["endpoints"][0]["cluster"] == before["standby"]["clusters"][0]
        after = (await client.post(f"{JOBS}/chat/failover", json={"reason": "test"})).json()
        assert (after["id"], after["name"], after["standby"]["role"]) == (second, "chat", "active")
        assert (after["standby"]["left"], after["standby"]["lost_at"]) == (before["clusters"][0], None)
        for name in (second, job["id"], "chat", "chat-standby"):
            shown = (await client.get(f"{JOBS}/{name}")).json()
            assert {each["cluster"] for each in shown["endpoints"]} == set(after["clusters"])
            known = await client.get(f"{JOBS}/{name}", headers={"if-none-match": f'"{shown["id"]}.{shown["version"]}"'})
            assert known.status_code == 200  # the other copy may have changed
        patched = await client.patch(f"{JOBS}/chat-standby", json={"priority": 7})
        assert (patched.json()["name"], patched.json()["priority"]) == ("chat-standby", 7)
        assert (await client.get(f"{JOBS}/chat")).json()["priority"] == 7
        await client.delete(f"{JOBS}/chat")
        assert (await client.get(JOBS)).json()["jobs"] == []


async def test_attempts_come_in_pages(rig: Rig) -> None:
    """Attempts are listed page by page, and the last page has no next."""
    job = await rig.submit()
    rig.step(3)
    first = rig.store.attempts(job["id"])[0]
    tried: list[Record] = [replace(first, number=at, state=AttemptState.ENDED) for at in (2, 3)]
    rig.plane.writer.require(Change(insert=tried))
    async with rig.client("viewer") as client:
        path = f"{JOBS}/{job['id']}/attempts"
        page = (await client.get(path, params={"limit": 2})).json()
        assert ([each["number"] for each in page["attempts"]], page["next"]) == ([1, 2], 2)
        page = (await client.get(path, params={"limit": 2, "after": page["next"]})).json()
        assert ([each["number"] for each in page["attempts"]], page["next"]) == ([3], None)


async def test_attempts_tell_of_the_replicas_that_are_asked_for(rig: Rig) -> None:
    """A range of replicas limits attempts and status, and a range past the last is empty."""
    job = await rig.submit(replicas=3)
    rig.step(3)
    async with rig.client("viewer") as client:
        path = f"{JOBS}/{job['id']}/attempts"
        for query, wanted in (({}, [0, 1, 2]), ({"first": 1, "replicas": 1}, [1]), ({"first": 3}, [])):
            reported = (await client.get(path, params=query)).json()
            assert [each["replica"] for each in reported["attempts"][0]["placements"]] == wanted
            assert sorted(each["replica"] for copy in reported["workloads"] for each in copy["replicas"]) == wanted


async def test_a_job_without_a_place_has_no_manifest(rig: Rig) -> None:
    """A job that was never placed has no objects, which is a conflict and not an error of the server."""
    job = await rig.submit()
    async with rig.client("user") as client:
        for part in ("manifest", "logs"):
            assert (await client.get(f"{JOBS}/{job['id']}/{part}")).status_code == 409


@pytest.mark.parametrize(
    "ref",
    ["nothing", "'; DROP TABLE jobs;--", "..%2f..%2fetc%2fpasswd", "%00", "a" * 5000, "ZZZZZZZZZZZZZ", "7zzzzzzzzzzzz"],
)
async def test_there_is_no_such_job(rig: Rig, ref: str) -> None:
    """Any invalid reference to a job gets 404."""
    async with rig.client("user") as client:
        for path in ("", "/explain", "/events", "/manifest"):
            assert (await client.get(f"{JOBS}/{ref}{path}")).status_code == 404


async def test_without_a_database_requests_are_asked_to_come_again(rig: Rig) -> None:
    """When the database does not answer, 503 has Retry-After."""
    async with rig.client("user") as client:
        rig.store.fail_next(UnavailableError("gone", retry_after_s=7))
        answer = await client.post(JOBS, json=JOB)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
        rig.store.fail_next(UnavailableError("gone"))
        assert (await client.get(JOBS)).status_code == 503
        assert (await client.get(JOBS)).status_code == 200


async def test_our_own_faults_tell_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is a 500 without details."""

    def broken(*_: object) -> None:
        raise RuntimeError("secret internals")

    monkeypatch.setattr(type(rig.plane.admission), "admit", broken)
    async with rig.client("user") as client:
        answer = await client.post(JOBS, json=JOB)
    assert answer.status_code == 500
    assert "secret" not in answer.text


async def test_a_change_can_be_tried(rig: Rig) -> None:
    """A dry run of a change has the same checks, and neither changes nor audits anything."""
    job = await rig.submit()
    path = f"{JOBS}/{job['id']}"
    async with rig.client("user") as client:
        before = (await client.get(path)).json()
        tried = await client.patch(path, params={"dry_run": True}, json={"priority": 5})
        assert (tried.status_code, tried.json()["priority"]) == (200, 5)
        for wrong in ({"resources": {"gpus": 99}}, {"queue": "nowhere"}, {"replicas": 0}):
            assert (await client.patch(path, params={"dry_run": True}, json=wrong)).status_code == 422
        assert (await client.get(path)).json() == before
        await client.post(f"{path}/cancel")
        over = await client.patch(path, params={"dry_run": True}, json={"priority": 5})
        assert over.status_code == 409
    assert "PATCH update_job" not in [entry.verb for entry in rig.store.audit(0, 100)]


async def test_a_slash_is_no_part_of_a_name(rig: Rig) -> None:
    """A slash written as %2F leads to no other operation."""
    job = await rig.submit()
    async with rig.client("user") as client:
        answer = await client.get(f"{JOBS}/{job['id']}%2fexplain")
        assert (answer.status_code, "names have no '/'" in answer.json()["detail"]) == (404, True)
        assert (await client.get(f"{JOBS}/{job['id']}/explain")).status_code == 200


async def test_a_template_says_whether_a_job_returns(rig: Rig) -> None:
    """On submit and update, a service is restarted, and no longer when its kind changes."""
    made = await rig.submit(template="deployment")
    assert rig.plane.jobs.find(made["id"]).spec.restarts
    async with rig.client("user") as client:
        changed = await client.patch(f"{JOBS}/{made['id']}", json={"template": "job"})
    assert changed.status_code == 200
    assert not rig.plane.jobs.find(made["id"]).spec.restarts


async def test_jobs_of_a_request_are_stored_together(rig: Rig) -> None:
    """Jobs refer to each other by name and to stored ones by ID or name; a repeated key returns the same jobs."""
    first = await rig.submit(name="stored")
    jobs = [
        {**JOB, "name": "b", "after": ["a", {"job": "stored", "when": "started"}]},
        {**JOB, "name": "a", "after": first["id"]},
    ]
    async with rig.client("user") as client:
        answers = [
            await client.post("/api/v1/jobs:batch", json={"jobs": jobs}, headers={"Idempotency-Key": "flow"})
            for _ in range(2)
        ]
        other = await client.post("/api/v1/jobs:batch", json={"jobs": jobs[1:]}, headers={"Idempotency-Key": "flow"})
        b, a = answers[0].json()["jobs"]
        around = (await client.get("/api/v1/jobs/b/workflow")).json()
        tried = await client.post("/api/v1/jobs:batch?dry_run=true", json={"jobs": jobs})
    assert [each.status_code for each in (*answers, other, tried)] == [201, 200, 409, 200]
    assert answers[0].json() == answers[1].json()
    assert b["state"] == "held"
    assert b["message"] == f"waits for a ({a['id']}) to complete, stored ({first['id']}) to start"
    assert b["awaits"] == [{"job": a["id"], "when": "succeeded"}, {"job": first["id"], "when": "started"}]
    assert a["spec"]["after"] == [{"job": first["id"]}]
    assert [each["name"] for each in around["jobs"]] == ["stored", "b", "a"]
    assert [each["fits"] for each in tried.json()["jobs"]] == [True, True]
    entries = [each for each in rig.plane.store.audit(0, 9) if each.verb == "POST submit_jobs" and each.status == 201]
    assert [each.target for each in entries] == [f"/api/v1/jobs:batch/{b['id']}"]


@pytest.mark.parametrize("dry_run", ["", "?dry_run=true"])
async def test_all_errors_of_a_request_are_reported(rig: Rig, dry_run: str) -> None:
    """Nothing is stored if any job is invalid, and each error names its job and field."""
    jobs = [
        {**JOB, "name": "a", "after": "nowhere"},
        {**JOB, "name": "b", "queue": "missing", "after": [{"job": "a", "when": "succeeded"}]},
        {**JOB, "name": "c", "resources": {"gpus": 0, "gpu_memory": "8Gi"}},
    ]
    ring = [{**JOB, "name": "a", "after": "b"}, {**JOB, "name": "b", "after": ["a"]}]
    async with rig.client("user") as client:
        answers = [
            await client.post(f"/api/v1/jobs:batch{dry_run}", json={"jobs": each})
            for each in (jobs[:2], jobs[1:], ring, [{**JOB, "after": "other"}], [{**JOB, "tenant": "other"}])
        ]
    assert {each.status_code for each in answers} == {422, 403}
    found = [[error["field"] for error in each.json().get("errors", ())] for each in answers]
    assert found == [["jobs[0].after[0].job", "jobs[1].queue"], ["jobs[1].resources.gpu_memory"], ["jobs[0].after"],
                     ["jobs[0].after[0].job"], []]  # fmt: skip
    assert "a → b → a" in answers[2].json()["detail"]
    assert rig.plane.store.jobs(JobFilter(), 9) == []


async def test_predecessors_change_with_a_patch(rig: Rig) -> None:
    """A held job gets other predecessors by name or ID; a cycle is an error that names it."""
    await rig.submit(name="a")
    await rig.submit(name="b", after="a")
    await rig.submit(name="c", after=["b"])
    async with rig.client("user") as client:
        wrong = await client.patch("/api/v1/jobs/b", json={"after": ["a", "c"]})
        free = await client.patch("/api/v1/jobs/c", json={"after": "a"})
        late = await client.patch("/api/v1/jobs/a", json={"after": "c"})
    assert (wrong.status_code, free.status_code, late.status_code) == (422, 200, 409)
    assert "b (" in wrong.json()["detail"]
    assert free.json()["message"].startswith("waits for")


async def test_an_array_is_one_job_that_opens(rig: Rig) -> None:
    """A list has one row with the numbers of its tasks; the tasks are found by index, before and after their start."""
    array = await rig.submit(name="sweep", array="0-19%3", matrix={"SEED": list(range(10)), "LR": [0.1, True]})
    assert (array["spec"]["array"], array["spec"]["matrix"]["LR"]) == ("0-19%3", ["0.1", "true"])
    assert array["tasks"] == {"total": 20, "limit": 3, "states": {"pending": 20}}
    rig.step(4)
    async with rig.client("user") as client:
        listed = (await client.get("/api/v1/jobs")).json()["jobs"]
        first = (await client.get("/api/v1/jobs/sweep/tasks", params={"limit": 4})).json()
        second = (await client.get("/api/v1/jobs/sweep/tasks", params={"limit": 99, "after": first["next"]})).json()
        late = (await client.get("/api/v1/jobs/sweep_19")).json()
        early = (await client.get(f"/api/v1/jobs/{array['id']}_0")).json()
        cancelled = await client.post("/api/v1/jobs/sweep_19/cancel")
        running = (await client.get("/api/v1/jobs/sweep/tasks?state=running")).json()["jobs"]
        missing = [await client.get(f"/api/v1/jobs/{each}") for each in ("sweep_20", "sweep_x", "sweep_0_1", "none_0")]
        one = await rig.submit(name="one")
        wrong = await client.get("/api/v1/jobs/one/tasks")
        after = await client.post("/api/v1/jobs", json={**JOB, "after": "sweep_1"})
    assert [each["id"] for each in listed] == [array["id"]]
    assert listed[0]["tasks"]["states"] == {"running": 3, "pending": 17}
    assert [each["index"] for each in (*first["jobs"], *second["jobs"])] == list(range(20))
    assert (late["state"], late["array"], late["index"], late["version"]) == ("pending", array["id"], 19, 0)
    assert (early["state"], early["index"]) == ("running", 0)
    assert late["parameters"] == {"SEED": "9", "LR": "true"}
    assert [each["parameters"] for each in first["jobs"][1:3]] == [
        {"SEED": "0", "LR": "true"},
        {"SEED": "1", "LR": "0.1"},
    ]
    assert [one["parameters"], *(each["parameters"] for each in listed)] == [{}, {}]
    assert cancelled.json()["state"] == "cancelled"
    assert [each["index"] for each in running] == [0, 1, 2]
    assert [each.status_code for each in missing] == [404] * 4
    assert (one["array"], one["tasks"], wrong.status_code) == (None, None, 409)
    assert "task of an array" in after.json()["detail"]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"array": "0-9%0"}, "array"),
        ({"array": "9-0"}, "array"),
        ({"array": "0-9", "template": "deployment"}, "array"),
        ({"matrix": {"A": []}}, "matrix.A"),
        ({"matrix": {"A": [1]}, "run": {"image": "i", "env": {"A": "2"}}}, "matrix"),
        ({"matrix": {"A": [1, 2]}, "array": "0-2"}, "array"),
    ],
)
async def test_an_invalid_array_is_rejected(rig: Rig, fields: dict[str, Any], where: str) -> None:
    """An error names the field."""
    async with rig.client("user") as client:
        answer = await client.post("/api/v1/jobs", json={**JOB, **fields})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, where)


async def test_failed_tasks_are_retried_over_http(rig: Rig) -> None:
    """A retry of an array without failed tasks is a conflict; one of a cancelled array starts it again."""
    await rig.submit(name="sweep", array="0-3%1")
    rig.step(3)
    async with rig.client("user") as client:
        early = await client.post("/api/v1/jobs/sweep/retry")
        await client.post("/api/v1/jobs/sweep/cancel")
        rig.step(4)
        ended = (await client.get("/api/v1/jobs/sweep")).json()
        again = await client.post("/api/v1/jobs/sweep/retry", json={"reason": "by mistake"})
    rig.step(4)
    assert (early.status_code, again.status_code) == (409, 200)
    assert ended["tasks"]["states"] == {"cancelled": 4}
    assert again.json()["message"] == "by mistake"


async def test_jobs_are_grouped_with_their_gpus_and_cost(rig: Rig) -> None:
    """Groups count an array once, and have the GPUs and the GPU time of the jobs that the caller may see."""
    rig.step(2)
    whole = {"cpu": 1, "gpus": 1}
    await rig.submit(name="a", labels={"project": "x"}, resources=whole)
    await rig.submit("admin", name="b", labels={"project": "y"}, array="0-2", resources=whole)
    await rig.submit("admin", name="big", resources={"gpus": 2}, replicas=4, gang=True)
    await rig.submit("other", name="theirs", queue="theirs", resources=whole)
    rig.step(6)

    async def groups(by: str, token: str = "admin", **wanted: str) -> dict[str, tuple[Any, ...]]:
        async with rig.client(token) as client:
            answer = await client.get("/api/v1/job-groups", params={"by": by, **wanted})
            assert answer.status_code == 200, answer.text
            rows = answer.json()["groups"]
        assert all((each["cost"]["gpu_hours"] > 0) is (each["gpus"] > 0) for each in rows)
        return {each["name"]: tuple(each[name] for name in ("jobs", "waiting", "running", "gpus")) for each in rows}

    assert await groups("user") == {"admin": (2, 1, 1, 3.0), "user": (1, 0, 1, 1.0), "other": (1, 0, 1, 1.0)}
    assert await groups("label:project") == {"y": (1, 0, 1, 3.0), "x": (1, 0, 1, 1.0), "": (2, 1, 1, 1.0)}
    assert await groups("label:project", "monitor") == {"": (4, 1, 3, 5.0)}
    assert await groups("tenant", "user") == {"default": (3, 1, 2, 4.0)}
    assert await groups("queue", submitted_by="user") == {"default": (1, 0, 1, 1.0)}
    async with rig.client() as client:
        assert (await client.get("/api/v1/job-groups", params={"by": "colour"})).status_code == 422


async def test_gpus_are_counted_alike_everywhere(rig: Rig) -> None:
    """A slice counts as its larger share, a job with all its replicas, an array with its tasks."""
    rig.step(2)
    half = {"cpu": 1, "gpus": 1, "gpu_memory": "25%", "gpu_cores": "50%"}
    sweep = await rig.submit(name="sweep", array="0-2", resources=half)
    await rig.submit(name="gang", resources={"cpu": 1, "gpus": 1, "gpu_memory": "75%"}, replicas=2, gang=True)
    await rig.submit(name="whole", resources={"gpus": 2})
    await rig.submit(name="waits", resources={"gpus": 2}, replicas=4, gang=True)
    rig.step(8)
    async with rig.client("user") as client:
        jobs = (await client.get("/api/v1/jobs")).json()["jobs"]
        tasks = (await client.get(f"/api/v1/jobs/{sweep['id']}/tasks")).json()["jobs"]
        (group,) = (await client.get("/api/v1/job-groups", params={"by": "queue"})).json()["groups"]
        usage = (await client.get("/api/v1/queue-usage")).json()
    held = {each["name"]: each["held_gpus"] for each in jobs}
    assert held == {"sweep": 1.5, "gang": 1.5, "whole": 2, "waits": 0}
    assert [each["held_gpus"] for each in tasks] == [0.5, 0.5, 0.5]
    (queue,) = usage["queues"]
    assert queue["used"]["gpus"] == usage["uses"][0]["gpus"] == group["gpus"] == sum(held.values())


async def test_a_list_has_expected_starts_if_it_asks_for_them(rig: Rig) -> None:
    """A waiting job has that of the plan, as in the list of waiting jobs; a running one has none."""
    rig.step(2)
    fields: dict[str, Any] = {"resources": {"gpus": 2}, "replicas": 4, "gang": True, "expected_duration": "10m"}
    for name in ("runs", "waits"):
        await rig.submit(name=name, **fields)
        rig.step(3)
    async with rig.client() as client:
        rows = (await client.get("/api/v1/jobs", params={"starts": "true"})).json()["jobs"]
        planned = (await client.get("/api/v1/waiting-jobs")).json()["jobs"]
        plain = (await client.get("/api/v1/jobs")).json()["jobs"]
    starts = {each["name"]: each["estimated_start"] for each in rows}
    assert starts == {"runs": None, "waits": planned[0]["estimated_start"]}
    assert starts["waits"]
    assert "estimated_start" not in plain[0]
