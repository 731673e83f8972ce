"""Policies, their shadow results, and comparisons on the fleet."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen, spilled
from tests.integration.running import Running

pytestmark = pytest.mark.slow


def test_everybody_sees_what_a_policy_is_and_stays_with_it(look: Look) -> None:
    """A selected policy stays so after a reload; operators' actions are not shown to others."""
    with look("viewer", theme="dark", language="zh", size=NARROW) as looker:
        page = looker.open("/policies")
        page.get_by_role("link", name="pilot", exact=True).click()
        expect(page).to_have_url(re.compile("policy=pilot"))
        looker.go(page, "/policies?policy=pilot")
        expect(page.get_by_role("heading", name="pilot", exact=True)).to_be_visible()
        expect(page.get_by_text("其文件未提供训练过程。")).to_be_visible()
        expect(page.get_by_role("button", name="用于队列")).to_have_count(0)
        keep_screen(page, "policies-dark-zh-390")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []


def test_operators_compare_policies_and_let_them_decide(look: Look) -> None:
    """Each compared policy has its bars; the dialog explains why one may not be active yet."""
    with look("operator") as looker:
        page = looker.open("/policies?policy=pilot")
        page.get_by_role("button", name="Compare").click()
        expect(page.locator("tr", has_text="bestfit").last.locator(".bar").first).to_be_visible(timeout=30_000)
        page.get_by_role("button", name="Use it for a queue").click()
        dialog = page.get_by_role("dialog", name="Use policy pilot")
        dialog.get_by_role("switch").click()
        dialog.get_by_role("button", name="Use it").click()
        expect(dialog.get_by_role("alert").filter(has_text="may not decide")).to_be_visible(timeout=30_000)
        dialog.get_by_role("button", name="Cancel").click()
        keep_screen(page, "policies-light-en-1440")


def test_operators_bring_policies_and_what_was_found_of_them(look: Look) -> None:
    """An invalid policy file is rejected beside the field; a stored evaluation stays, with its intervals."""
    with look("operator") as looker:
        page = looker.open("/policies")
        page.get_by_role("button", name="Import a policy file").click()
        dialog = page.get_by_role("dialog", name="Import a policy file")
        dialog.locator("input[type=file]").set_input_files({"name": "cut.policy", "mimeType": "", "buffer": b"PK\x03"})
        expect(dialog.get_by_text("cut.policy, 3 bytes")).to_be_visible()
        dialog.get_by_role("button", name="Import it").click()
        expect(dialog.get_by_role("alert").filter(has_text="not a policy file, or a truncated one")).to_be_visible()
        dialog.get_by_role("button", name="Cancel").click()
        rows = [
            {"policy": policy, "level": "node", "instance": f"seed{at}", "seed": 0, "placed": placed}
            for policy, all_placed in (("fgd", (7, 9)), ("greedy", (5, 5)))
            for at, placed in enumerate(all_placed)
        ]
        page.get_by_role("button", name="Store an evaluation").click()
        dialog = page.get_by_role("dialog", name="Store an evaluation")
        given = FilePayload(name="night.json", mimeType="application/json", buffer=json.dumps(rows).encode())
        dialog.locator("input[type=file]").set_input_files(given)
        expect(dialog.get_by_label("Name")).to_have_value("night")
        dialog.get_by_role("button", name="Store").click()
        expect(page).to_have_url(re.compile("evaluation=night"))
        looker.go(page, "/policies?evaluation=night")
        lines = page.locator("table.evaluated tbody tr")
        best, second = lines.first, lines.nth(1)
        expect(best).to_contain_text("8.0 ± 12.7")
        expect(best.locator(".whisker")).to_have_count(1)
        expect(second).to_contain_text("3.0 ± 12.7")
        assert hindrances(page) == []


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_policies_are_compared_by_a_replay_of_past_jobs(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Past jobs are replayed with the present policies, then with each chosen one; a sentence names the best."""
    job = demo.submit(name="replayed", expected_duration="1s")
    demo.await_state(job, "completed")
    said = {
        "en": ("Compared by", "Jobs of the last day", "Compare", "as the queues are set", "mean wait"),
        "zh": ("比较依据", "最近一天的作业", "比较", "队列的当前设置", "平均等待"),
    }[language]
    with look("operator", theme=theme, language=language, size=size) as looker:
        page = looker.open("/policies")
        page.get_by_role("combobox", name=said[0]).click()
        page.get_by_role("option", name=said[1]).click()
        page.get_by_role("button", name=said[2], exact=True).click()
        replays = page.locator(".fragment-versus tbody tr")
        expect(page.locator(".fragment-versus .answer")).to_contain_text(said[4], timeout=60_000)
        expect(replays.first).to_contain_text(said[3])
        measured = replays.filter(has=page.locator(".figure-bar"))  # others have the reason of their failure
        assert measured.count() >= 2
        for row in measured.all():
            assert int(row.locator("td").nth(2).inner_text()) >= 1
        expect(replays.locator(".best").first).to_be_attached()
        assert hidden_sideways(page) + spilled(page) == []
        assert hindrances(page) == []
        keep_screen(page, f"replay-{theme}-{language}-{size[0]}")
