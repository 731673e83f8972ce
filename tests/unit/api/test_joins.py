"""Joins of clusters over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.kubernetes import ApiServer
from tests.unit.api.rig import Rig, make_rig

pytestmark = pytest.mark.anyio

PATH = "/api/v1/fleet/joins"
PATIENCE = 1200
"""Maximum number of looks at a join."""


async def checked(client: httpx.AsyncClient, join: str) -> dict[str, Any]:
    """Wait for the checks of a join."""
    for _ in range(PATIENCE):
        found: dict[str, Any] = (await client.get(f"{PATH}/{join}")).json()
        if found["stage"] == "checked":
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(found)


async def test_an_admin_joins_a_cluster_by_its_kubeconfig(tmp_path: Path) -> None:
    """The checks are listed, the end stores it, and the audit log has who did it, without the kubeconfig."""
    rig = make_rig(folder=tmp_path)
    with ApiServer("alpha") as server:
        text = server.kubeconfig(tmp_path / "upload").read_text(encoding="utf-8")
        async with rig.client() as client:
            made = await client.post(PATH, json={"kubeconfig": text})
            assert (made.status_code, made.json()["command"], made.headers["cache-control"]) == (201, "", "no-store")
            join = made.json()["id"]
            found = await checked(client, join)
            assert found["usable"]
            assert {each["level"] for each in found["checks"]} <= {"ok", "note", "warning"}
            taken = await client.post(f"{PATH}/{join}/finish", json={"name": "No/name"})
            assert taken.json()["errors"][0]["field"] == "name"
            done = (await client.post(f"{PATH}/{join}/finish", json={"name": "gpu-east"})).json()
            assert (done["name"], "after a restart" in done["note"] or "Restart it" in done["note"]) == (
                "gpu-east",
                True,
            )
            assert (await client.get(PATH)).json() == {"joins": [], "joined": ["gpu-east"], "obstacle": None}
            assert (await client.post("/api/v1/fleet/clusters/gpu-east/leave")).status_code == 204
            assert (await client.post("/api/v1/fleet/clusters/gpu-east/leave")).status_code == 404
            entries = (await client.get("/api/v1/audit")).json()["entries"]
    verbs = {(each["verb"], each["actor"]) for each in entries}
    assert {("POST begin_join", "admin"), ("POST finish_join", "admin"), ("POST leave_cluster", "admin")} <= verbs
    assert server.token not in str(entries)


async def test_programs_of_a_kubeconfig_are_refused(tmp_path: Path) -> None:
    """The error names the field, and the command that does without."""
    rig = make_rig(folder=tmp_path)
    text = "contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {exec: {command: aws}}}]"
    async with rig.client() as client:
        answer = await client.post(PATH, json={"kubeconfig": text})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "kubeconfig")
    assert "command for kubectl" in answer.json()["errors"][0]["message"]


async def test_a_command_needs_no_log_in_but_its_own_token(tmp_path: Path) -> None:
    """Its token gets the script and sends the kubeconfig, and nothing else; the audit log has both users of it."""
    rig = make_rig(folder=tmp_path)
    async with rig.client() as client:
        made = (await client.post(PATH, json={})).json()
        assert made["stage"] == "invited"
        assert (await client.get(f"{PATH}/{made['id']}/script")).status_code == 403
    token = made["command"].partition("Bearer ")[2].partition("'")[0]
    rig.tokens["command"] = token
    with ApiServer("alpha") as server:
        text = server.kubeconfig(tmp_path / "upload").read_text(encoding="utf-8")
        async with rig.client("command") as command:
            script = await command.get(f"{PATH}/{made['id']}/script")
            assert script.headers["content-type"].startswith("text/x-shellscript")
            assert f'"http://127.0.0.1{PATH}/{made["id"]}/kubeconfig"' in script.text
            assert (await command.get(PATH)).status_code == 403
            assert (await command.get("/api/v1/jobs")).status_code == 403
            assert (await command.get(f"{PATH}/other/script")).status_code == 403
            yaml = {"content-type": "application/yaml"}
            sent = await command.put(f"{PATH}/{made['id']}/kubeconfig", content=text, headers=yaml)
            assert sent.status_code == 202, sent.text
            again = await command.put(f"{PATH}/{made['id']}/kubeconfig", content=text, headers=yaml)
            assert again.status_code == 401
        async with rig.client() as client:
            assert (await checked(client, made["id"]))["usable"]
            assert (await client.delete(f"{PATH}/{made['id']}")).status_code == 204
            entries = (await client.get("/api/v1/audit")).json()["entries"]
    (entry,) = [each for each in entries if each["verb"] == "PUT send_join_kubeconfig" and each["status"] == 202]
    assert (entry["actor"], entry["token_id"]) == ("admin", f"join-{made['id']}")


async def test_a_host_name_cannot_change_the_script(tmp_path: Path) -> None:
    """The address in the script is that of the request, without characters of a shell."""
    rig = make_rig(folder=tmp_path)
    async with rig.client() as client:
        made = (await client.post(PATH, json={})).json()
    rig.tokens["command"] = made["command"].partition("Bearer ")[2].partition("'")[0]
    async with rig.client("command") as command:
        answer = await command.get(f"{PATH}/{made['id']}/script", headers={"host": "a$(touch x)"})
    assert "touch" not in answer.text


async def test_a_server_without_a_folder_joins_none(rig: Rig) -> None:
    """The list has the reason, and a join is a conflict."""
    async with rig.client() as client:
        assert (await client.get(PATH)).json()["obstacle"]["message"] == "this server has no data folder"
        assert (await client.post(PATH, json={})).status_code == 409
