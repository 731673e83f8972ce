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
