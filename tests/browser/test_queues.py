"""Queues, tenants and pools, and pending jobs."""

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
        expect(line).to_contain_text("集群不参与本次决策")
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
        for wrong, says in (("gpus", "use RESOURCE=AMOUNT"), ("gpus=9", "its children guarantee 10 gpus together")):
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
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
    for job in jobs:
        demo.client.post(f"/api/v1/jobs/{job}/cancel")
