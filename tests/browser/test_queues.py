"""Queues, tenants and pools, and waiting jobs."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, hidden_sideways, hindrances, keep_screen
from tests.integration.running import Running

pytestmark = pytest.mark.slow

WHOLE = {"cpu": 1, "memory": "1Gi", "gpus": 1, "gpu_memory": "100%"}


def test_what_waits_is_shown_with_its_place_and_why(look: Look, demo: Running) -> None:
    """A selected queue stays so after a reload, and its line shows the first job and the reason for its wait."""
    made = demo.client.put("/api/v1/queues/night", json={"description": "<b>Not bold</b>"})
    assert made.is_success, made.text
    demo.client.post("/api/v1/cordons", json={"cluster": "cluster-1"})
    placement = {"clusters": ["cluster-1"]}
    job = demo.submit(name="held-back", queue="night", resources=WHOLE, placement=placement)
    with look("viewer", theme="dark", language="zh", size=NARROW) as looker:
        page = looker.open("/queues")
        page.get_by_role("link", name="night", exact=True).click()
        expect(page).to_have_url(re.compile(r"queue=night"))
        looker.go(page, "/queues?queue=night")
        line = page.locator("tr", has_text="held-back")
        expect(line).to_contain_text("已停用")
        expect(page.get_by_text("<b>Not bold</b>")).to_be_visible()
        expect(page.get_by_role("button", name="新建队列")).to_have_count(0)
        keep_screen(page, "queues-dark-zh-390")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
    demo.client.post(f"/api/v1/jobs/{job}/cancel")
    demo.client.delete("/api/v1/cordons", params={"cluster": "cluster-1"})


def test_operators_make_and_remove_queues_and_mistakes_are_at_the_field(look: Look) -> None:
    """Errors of names are shown beside the field; a removed queue is gone, also from a page that shows it."""
    with look("operator") as looker:
        page = looker.open("/queues")
        page.get_by_role("button", name="New queue").click()
        dialog = page.get_by_role("dialog", name="New queue")
        name = dialog.get_by_role("textbox", name="Name")
        for wrong, says in (("No!", "use 1 to 63 of a-z"), ("default", "This name is taken.")):
            name.fill(wrong)
            page.keyboard.press("Enter")
            expect(dialog.get_by_role("alert").filter(has_text=says)).to_be_visible()
        name.fill("by-hand")
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("link", name="by-hand", exact=True)).to_be_visible()
        keep_screen(page, "queues-light-en-1440")
        page.get_by_role("link", name="by-hand", exact=True).click()
        page.get_by_role("button", name="Remove queue by-hand").dblclick()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(page.get_by_role("link", name="by-hand", exact=True)).to_have_count(0)
        expect(page.get_by_text("Queue by-hand not found")).to_be_visible()
        page.wait_for_timeout(4_000)  # its line would be queried again
        expect(page.get_by_text("Not up to date")).to_be_hidden()
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_tree_is_shown_with_use_guarantee_and_limit(look: Look, demo: Running) -> None:
    """Bars say what they show; mistakes in the amounts are at their field; the page fits phones, in both languages."""
    for name, fields in (
        ("lab", {"limit": {"gpus": 4, "memory": "64Gi"}, "description": "Everything of the lab"}),
        ("lab-speech", {"parent": "lab", "guarantee": {"gpus": 1}}),
        ("lab-vision", {"parent": "lab", "guarantee": {"gpus": 1, "gpus/nvidia l40s": 1}, "weight": 2}),
        ("lab-vision-night", {"parent": "lab-vision"}),
    ):
        made = demo.client.put(f"/api/v1/queues/{name}", json=fields)
        assert made.is_success, made.text
    jobs = [demo.submit(name=f"eye-{at}", queue="lab-vision-night", resources=WHOLE) for at in range(3)]
    with look("operator") as looker:
        page = looker.open("/queues")
        row = page.locator("tr[data-key=lab-vision]")
        expect(row.get_by_role("img", name="GPUs: 3, 1 guaranteed, 2 borrowed")).to_be_visible()
        expect(page.locator("tr[data-key=lab]").get_by_role("img", name="GPUs: 3 of 4")).to_be_visible()
        names = page.locator("tr[data-key^=lab] th a").all_inner_texts()
        assert names == ["lab", "lab-speech", "lab-vision", "lab-vision-night"]
        assert hindrances(page) == []
        keep_screen(page, "queues-tree-light-en-1440")
        page.get_by_role("link", name="lab", exact=True).click()
        expect(page.get_by_text("Jobs wait in the queues that are part of it.")).to_be_visible()
        page.get_by_role("button", name="Change queue lab-speech").click()
        dialog = page.get_by_role("dialog", name="Change queue lab-speech")
        guarantee = dialog.get_by_role("textbox", name="Guarantee")
        expect(guarantee).to_have_value("gpus=1")
        for wrong, says in (
            ("gpus", "use RESOURCE=AMOUNT"),
            ("gpu=1", "gpu: unknown resource"),
            ("gpus=9", "its children guarantee 10 gpus together"),
        ):
            guarantee.fill(wrong)
            page.keyboard.press("Enter")
            expect(dialog.get_by_role("alert").filter(has_text=says)).to_be_visible()
        keep_screen(page, "queues-form-light-en-1440")
        guarantee.fill("gpus=2")
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(page.locator("tr[data-key=lab-speech]").get_by_role("img", name="GPUs: 0, 2 guaranteed")).to_be_visible()
    with look("operator", theme="dark", language="zh", size=NARROW) as looker:
        page = looker.open("/queues")
        bar = page.locator("tr[data-key=lab-vision]").get_by_role("img", name="GPU 数: 3, 保障 1, 借用 2")
        expect(bar).to_be_visible()
        bar.scroll_into_view_if_needed()
        keep_screen(page, "queues-tree-dark-zh-390")
        labels = page.locator("tr[data-key=lab-vision] td.number").evaluate_all(
            "all => all.map(each => each.dataset.label)"
        )
        assert {"GPU 小时, 最近 30 天", "费用, 最近 30 天"} <= set(labels)  # a row of its own has no heading
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
    for job in jobs:
        demo.client.post(f"/api/v1/jobs/{job}/cancel")


FIELDS = {
    "Guarantee": ("guarantee", "gpus=2", {"gpus": 2}),
    "Limit": ("limit", "gpus=6, jobs=20", {"gpus": 6, "jobs": 20}),
    "Borrowing limit": ("borrowing_limit", "gpus=3", {"gpus": 3}),
    "Lending limit": ("lending_limit", "gpus=1", {"gpus": 1}),
    "Weight": ("weight", "3", 3),
    "Priority among siblings": ("priority", "-2", -2),
    "Ageing": ("ageing", "1h", "1h"),
    "Not before a run time of": ("min_runtime", "10m", "10m"),
    "Start timeout": ("start_timeout", "30m", "30m"),
    "Cool-down of elastic jobs": ("grow_cooldown", "5m", "5m"),
    "Description": ("description", "All fields", "All fields"),
    "Allowed taints": ("allowed_taints", "gpu, spot", ["gpu", "spot"]),
    "Allowed node labels": ("allowed_node_labels", "*", ["*"]),
}
"""Text fields of a queue by their labels, each with a text and its value in the API."""

CHOICES = {
    "Part of": ("parent", "family", "family"),
    "Order": ("order", "Shortest expected duration first", "shortest"),
    "Backfill": ("backfill", "Jobs that delay no earlier job", "conservative"),
    "Displaces by priority": ("preemption", "Jobs of a lower priority", "PreemptLowerPriority"),
    "Displaces by priority in": ("preempts", "Only this queue", "own"),
    "Displaces in other queues": ("reclaim", "Also jobs of queues with a larger share", "FairShare"),
    "Replicas beyond the minimum": ("elastic", "kept", "keep"),
    "Tenant": ("tenant", "default", "default"),
    "Policy": ("policy", "fgd", "fgd"),
    "Shadow": ("shadow", "spread", "spread"),
}
SWITCHES = {"Its jobs may be displaced": "preemptible", "Accepts new jobs": "open"}


def test_the_form_of_a_queue_sets_every_field(look: Look, demo: Running) -> None:
    """Each field of the API is in the form, is stored as it was filled in, and is there when it is opened again."""
    assert demo.client.put("/api/v1/queues/family", json={}).is_success
    known = {each["name"] for each in demo.client.get("/api/v1/policies").json()["policies"]}
    assert {"fgd", "spread"} <= known
    with look("operator") as looker:
        page = looker.open("/queues")
        expect(page.get_by_role("link", name="family", exact=True)).to_be_visible()
        page.get_by_role("button", name="New queue").click()
        dialog = page.get_by_role("dialog", name="New queue")
        dialog.get_by_role("textbox", name="Name").fill("full")
        for label, (_, text, _) in FIELDS.items():
            dialog.get_by_role("textbox", name=label, exact=True).fill(text)
        for label, (_, option, _) in CHOICES.items():
            dialog.get_by_role("combobox", name=label, exact=True).click()
            page.get_by_role("option", name=option, exact=True).click()
        for label in SWITCHES:
            dialog.get_by_role("switch", name=label).click()
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).to_have_count(0)
        made = demo.client.get("/api/v1/queues/full").json()
        wanted = {field: value for field, _, value in (*FIELDS.values(), *CHOICES.values())}
        wanted |= dict.fromkeys(SWITCHES.values(), False)
        assert {name: made[name] for name in wanted} == wanted
        assert made.keys() - wanted.keys() == {"name", "pool", "policy_options", "version"}
        page.get_by_role("button", name="Change queue full").click()
        dialog = page.get_by_role("dialog", name="Change queue full")
        for label, (_, text, _) in FIELDS.items():
            expect(dialog.get_by_role("textbox", name=label, exact=True)).to_have_value(text)
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).to_have_count(0)
        assert demo.client.get("/api/v1/queues/full").json() == made
    for name in ("full", "family"):
        assert demo.client.delete(f"/api/v1/queues/{name}").is_success


def test_quotas_of_tenants_are_set_with_mistakes_at_their_field(look: Look, demo: Running) -> None:
    """A quota is added, changed and removed. A change of the tenant itself leaves it as it is, and so do phones."""
    assert demo.client.put("/api/v1/tenants/robots", json={"weight": 2}).is_success
    with look("admin") as looker:
        page = looker.open("/queues")
        page.get_by_role("button", name="New quota of robots").click()
        dialog = page.get_by_role("dialog", name="New quota of robots")
        for label, wrong, says, right in (
            ("Maximum of waiting jobs", "many", "Use a whole number.", "50"),
            ("Maximum of waiting jobs of each user", "-1", "at least 0", "5"),
            ("Limit", "gpu=8", "gpu: unknown resource", "gpus=8, jobs=20"),
            ("Guarantee", "gpus=9", "more than its limit of 8 gpus", "gpus=4"),
            ("Limit of each user", "memory=3", "memory with its unit", "gpus=2"),
        ):
            field = dialog.get_by_role("textbox", name=label, exact=True)
            field.fill(wrong)
            page.keyboard.press("Enter")
            expect(dialog.get_by_role("alert").filter(has_text=says)).to_be_visible()
            field.fill(right)
        dialog.get_by_role("button", name="Preview the effect").click()
        expect(dialog.get_by_role("status").filter(has_text="running tasks would have to wait")).to_be_visible()
        keep_screen(page, "quota-form-light-en-1440")
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).to_have_count(0)
        row = page.locator("tr[data-key=robots]")
        expect(row.get_by_role("img", name="GPUs: 0 of 8, 4 guaranteed")).to_be_visible()
        expect(row.get_by_role("img", name="Jobs: 0 of 20")).to_be_visible()
        expect(row).to_contain_text("waiting tasks: 0 of 50")
        expect(row).to_contain_text("each user: gpus=2, waiting tasks: 5")
        page.get_by_role("button", name="Change tenant robots").click()
        dialog = page.get_by_role("dialog", name="Change tenant robots")
        dialog.get_by_role("textbox", name="Weight").fill("3")
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(row).to_contain_text("weight 3")
        quota = demo.client.get("/api/v1/tenants/robots").json()["quotas"]["default"]
        assert quota == {
            "guarantee": {"gpus": 4},
            "limit": {"gpus": 8, "jobs": 20},
            "max_waiting": 50,
            "user_limit": {"gpus": 2},
            "user_max_waiting": 5,
        }
    with look("admin", theme="dark", language="zh", size=NARROW) as looker:
        page = looker.open("/queues")
        page.locator("tr[data-key=robots]").scroll_into_view_if_needed()
        keep_screen(page, "quotas-dark-zh-390")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.get_by_role("button", name="修改租户 robots 在资源池 default 中的配额").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("textbox")).to_have_count(5)
        for field in dialog.get_by_role("textbox").all():
            field.fill("")
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        assert demo.client.get("/api/v1/tenants/robots").json()["quotas"] == {}
    demo.client.delete("/api/v1/tenants/robots")
