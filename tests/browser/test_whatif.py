"""What-if questions."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen
from tests.integration.running import Running

pytestmark = pytest.mark.slow


def test_an_answer_is_drawn_and_survives_a_reload(look: Look) -> None:
    """The question is in the address; the drawing has a box for each cluster, and marks a lost one."""
    with look("operator", theme="dark", language="zh", size=NARROW) as looker:
        page = looker.open("/whatif?lose=cluster-3&cluster=cluster-1&like=cluster-1-n0&count=2&burst=3")
        expect(page.locator(".box")).to_have_count(3)
        expect(page.locator(".box-lost")).to_contain_text("cluster-3")
        expect(page.locator(".box-grown")).to_contain_text("+2")
        keep_screen(page, "whatif-dark-zh-390")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []


def test_mistakes_are_at_their_fields(look: Look) -> None:
    """A missing name or an invalid amount is reported beside the field; an empty form sends no query."""
    with look() as looker:
        page = looker.open("/whatif")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_role("alert").filter(has_text="Choose at least one change")).to_be_visible()
        page.get_by_role("textbox", name="Nodes").fill("cluster-1/nobody")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").filter(has_text="not found")).to_be_visible()
        page.get_by_role("textbox", name="Nodes").fill("cluster-1/cluster-1-n0")
        page.keyboard.press("Enter")
        expect(page.locator(".box-less")).to_contain_text("-1")
        expect(page).to_have_url(re.compile("nodes=cluster-1"))
        keep_screen(page, "whatif-light-en-1440")
    with look("operator") as looker:
        page = looker.open("/whatif?lose=nope,cluster-3&policy=zzz&burst=2")
        expect(page.get_by_role("alert").filter(has_text="nope not found.")).to_be_visible()
        expect(page.get_by_role("alert").filter(has_text="zzz not found.")).to_be_visible()
        expect(page.locator(".box")).to_have_count(0)
        page.get_by_role("button", name="Ask").click()
        expect(page.locator(".box-lost")).to_contain_text("cluster-3")
    with look("user") as looker:
        page = looker.open("/whatif")
        expect(page.get_by_text("require the operator role")).to_be_visible()
        looker.wrong.clear()  # the browser reports the status as an error


def test_changes_are_applied_with_one_button(look: Look, demo: Running) -> None:
    """Drains, queues and policies are applied after a confirmation; questions with other parts cannot be applied."""
    name = f"applied-{uuid4().hex[:8]}"
    with look("operator") as looker:
        page = looker.open("/whatif?lose=cluster-3&burst=3")
        expect(page.locator(".box-lost")).to_contain_text("cluster-3")
        expect(page.get_by_role("button", name="Apply these changes")).to_have_count(0)
        page = looker.open(f"/whatif?nodes=cluster-3/cluster-3-n0&changed_queue={name}&weight=3")
        page.get_by_role("button", name="Apply these changes").click()
        expect(page.get_by_role("dialog")).to_contain_text("cluster-3/cluster-3-n0 is drained")
        page.get_by_role("dialog").get_by_role("button", name="Apply").click()
        expect(page.get_by_text("The changes are applied.").first).to_be_visible()
        page = looker.open("/whatif?policy=spread")
        apply = page.get_by_role("button", name="Apply these changes")
        expect(apply).to_be_visible(timeout=120_000)  # after the compilation of the policy
        apply.click()
        expect(page.get_by_role("dialog")).to_contain_text("All queues get the policy spread")
        page.get_by_role("dialog").get_by_role("button", name="Apply").click()
        expect(page.get_by_text("The changes are applied.").first).to_be_visible()
    queues = demo.client.get("/api/v1/queues").json()["queues"]
    assert {each["policy"] for each in queues} == {"spread"}
    for each in queues:
        assert demo.client.put(
            f"/api/v1/queues/{each['name']}", json={"policy": "bestfit", "weight": each["weight"]}
        ).is_success
    cordons = demo.client.get("/api/v1/cordons").json()["cordons"]
    assert [(each["cluster"], each["node"], each["drain"]) for each in cordons] == [("cluster-3", "cluster-3-n0", True)]
    assert demo.client.get(f"/api/v1/queues/{name}").json()["weight"] == 3
    demo.client.delete("/api/v1/cordons", params={"cluster": "cluster-3", "node": "cluster-3-n0"})
    demo.client.delete(f"/api/v1/queues/{name}")


def test_running_jobs_move_as_the_answer_shows(look: Look, demo: Running) -> None:
    """The dialog names the jobs that restart; they run on the nodes of the answer afterwards.

    The job has a node of its own: another one that ends in between makes the answer stale.
    """
    name = f"moved-{uuid4().hex[:8]}"
    job = demo.submit(name=name, resources={"gpus": 8, "gpu_model": "V100"}, run={"image": "ubuntu"})
    address = f"/api/v1/jobs/{job}"
    demo.await_state(job, "running")
    with look("operator", language="zh", size=NARROW, theme="dark") as looker:
        before = demo.client.get(address).json()
        node = f"{before['clusters'][0]}/{before['nodes'][0]}"
        page = looker.open(f"/whatif?nodes={node}")
        row = page.get_by_role("row").filter(has_text=name)
        target = str(row.get_by_role("cell").nth(2).text_content()).partition("/")[2]
        page.get_by_role("button", name="应用这些更改").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text(name)
        expect(dialog).to_contain_text("没有检查点的作业从头开始")
        keep_screen(page, "whatif-apply-dark-zh-390")
        assert hidden_sideways(page) == []
        dialog.get_by_role("button", name="采用").click()
        expect(page.get_by_text("更改已应用").first).to_be_visible()
    demo.await_state(job, "running")
    after = demo.client.get(address).json()
    assert (after["attempt"], after["nodes"]) == (before["attempt"] + 1, [target])
    demo.client.post(f"{address}/cancel", json={})
    demo.client.delete("/api/v1/cordons", params={"cluster": before["clusters"][0], "node": before["nodes"][0]})


def test_changes_of_queues_and_tenants_show_waits(look: Look) -> None:
    """A changed queue and tenant are in the address, and the answer has the waits before and after."""
    with look("operator", language="zh", size=NARROW) as looker:
        page = looker.open(
            "/whatif?changed_queue=urgent&weight=3&guarantee=gpus%3D1&moved=default&burst=3&queue=urgent"
        )
        expect(page.get_by_role("heading", name="各队列的等待时间")).to_be_visible()
        expect(page.get_by_role("rowheader", name="urgent")).to_be_visible()
        keep_screen(page, "whatif-queues-light-zh-390")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
    with look("operator") as looker:
        page = looker.open("/whatif")
        page.get_by_role("spinbutton", name="Jobs").fill("3")
        page.get_by_role("spinbutton", name="Weight").first.fill("2")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_role("alert").filter(has_text="Choose what this applies to.")).to_be_visible()
        queue = page.get_by_role("combobox", name="Queue").last
        queue.fill("brand-new")
        queue.press("Enter")
        page.get_by_role("textbox", name="Limit").first.fill("gpus=many")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_role("alert").filter(has_text="many")).to_be_visible()
        page.get_by_role("textbox", name="Limit").first.fill("gpus=2")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_role("heading", name="Waits by tenant")).to_be_visible()
        expect(page).to_have_url(re.compile("changed_queue=brand-new"))
        keep_screen(page, "whatif-queues-light-en-1440")


TRACE = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,arrives_s,expected_duration_s\n" + "".join(
    f"j{at},1000,1024,1,1000,{at},3600\n" for at in range(120)
)
"""Trace of more whole GPUs than the demo has."""


def test_a_trace_is_replayed(look: Look) -> None:
    """A file is replayed before and after a change. An invalid one is reported with its name, and can be removed."""
    for theme, language, size in (("light", "en", WIDE),):
        with look("operator", theme=theme, language=language, size=size) as looker:
            page = looker.open("/whatif?lose=cluster-1")
            expect(page.locator(".box-lost")).to_contain_text("cluster-1")
            english = language == "en"
            ask = page.get_by_role("button", name="Ask" if english else "提问")
            for name, content in (("wrong.csv", "name\nj1\n"), ("hour.csv", TRACE)):
                page.get_by_role("button", name="Choose a file" if english else "选择文件").click()
                dialog = page.get_by_role("dialog")
                given = FilePayload(name=name, mimeType="text/csv", buffer=content.encode())
                dialog.locator("input[type=file]").set_input_files(given)
                expect(dialog.get_by_text(f"{name}, ")).to_be_visible()
                dialog.get_by_role("button", name="Use it" if english else "使用").click()
                expect(dialog).to_have_count(0)
                expect(page.get_by_role("status").filter(has_text=name)).to_be_visible()
                ask.click()
                if name == "wrong.csv":
                    expect(page.get_by_role("alert").filter(has_text="wrong.csv:1:cpu_milli")).to_be_visible()
            row = page.get_by_role("row", name=re.compile("Jobs started 120 120" if english else "已启动作业"))
            expect(row).to_contain_text("120", timeout=120_000)
            keep_screen(page, f"whatif-trace-{theme}-{language}-{size[0]}")
            assert hidden_sideways(page) == []
            assert hindrances(page) == []
            page.get_by_role("button", name="Remove the file" if english else "移除文件").click()
            ask.click()
            expect(
                page.get_by_role("heading", name="Replay of the trace" if english else "作业记录重放")
            ).to_have_count(0)


def test_a_time_in_the_address_replays_past_jobs(look: Look, demo: Running) -> None:
    """Jobs that ended within it are replayed as long as they took; an invalid time is reported at its field."""
    job = demo.submit(name="past", resources={"cpu": 1, "gpus": 1, "gpu_memory": "100%"})
    demo.await_state(job, "running")
    assert demo.client.post(f"/api/v1/jobs/{job}/cancel").is_success
    demo.await_state(job, "cancelled")
    with look("operator") as looker:
        page = looker.open("/whatif?last=7d")
        expect(page.get_by_role("heading", name="Replay of the trace")).to_be_visible(timeout=120_000)
        page.get_by_role("textbox", name="Jobs of the last").fill("a while")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert").filter(has_text="a while")).to_be_visible()
