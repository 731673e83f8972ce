"""Notifications: receivers, dead letters, and the latest messages."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, hidden_sideways, hindrances, keep_screen
from tests.integration.running import Running
from tests.unit.adapters.test_notifications import receiving

pytestmark = pytest.mark.slow

PATH = "/settings?section=notifications"
SHORT = {"expected_duration": "1s"}


def test_a_user_sets_a_receiver_tries_it_and_sees_what_arrived(look: Look, demo: Running) -> None:
    """Mistakes are at their field, the secret is shown once, and messages of a job that names it are listed."""
    with receiving() as receiver, look("user", theme="dark", language="zh") as looker:
        page = looker.open(PATH)
        page.get_by_role("button", name="新建通知").click()
        dialog = page.get_by_role("dialog", name="新建通知")
        dialog.get_by_role("textbox", name="名称").fill("seen-once")
        dialog.get_by_role("textbox", name="URL").fill("nowhere")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert").filter(has_text="https://example.com/hook")).to_be_visible()
        assert hindrances(page) == []
        dialog.get_by_role("textbox", name="URL").fill(f"http://127.0.0.1:{receiver.port}/")
        page.keyboard.press("Enter")
        secret = page.get_by_role("dialog", name="通知 seen-once 的密钥")
        assert secret.get_by_role("textbox", name="密钥").input_value().startswith("whsec_")
        secret.get_by_role("button", name="完成").click()
        page.get_by_role("button", name="测试通知 seen-once").click()
        expect(page.get_by_text("seen-once 已接受测试消息")).to_be_visible()
        demo.submit(name="announced", notify="seen-once=started", **SHORT)
        line = page.locator(".fragment-messages tr", has_text="announced").first
        expect(line).to_contain_text("已送达")
        keep_screen(page, "notifications-dark-zh-1440")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.get_by_role("button", name="删除通知 seen-once").click()
        page.get_by_role("dialog").get_by_role("button", name="删除").click()
        expect(page.locator(".fragment-receivers tr", has_text="seen-once")).to_have_count(0)


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh")])
def test_dead_letters_have_their_reason_and_are_sent_again(
    look: Look, demo: Running, theme: str, language: str
) -> None:
    """On a phone, in both themes and languages: a forbidden address is the reason, and a button tries it again."""
    name = f"lost-{theme}"
    body = {"channel": "webhook", "url": "http://10.0.0.1/", "on": []}
    made = demo.client.put(f"/api/v1/notifications/{name}", params={"tenant": "default"}, json=body)
    assert made.is_success, made.text
    job = demo.submit(name=f"unheard-{theme}", notify=f"{name}=finished", **SHORT)
    demo.await_state(job, "completed")
    retry, said, again = {
        "en": (f"Send the message about unheard-{theme} again", "not public", "Sent again: 1"),
        "zh": (f"重新发送关于 unheard-{theme} 的消息", "not public", "已重新发送"),
    }[language]
    with look("operator", theme=theme, language=language, size=NARROW) as looker:
        page = looker.open(PATH)
        line = page.locator(".fragment-dead-letters tr", has_text=f"unheard-{theme}")
        expect(line).to_contain_text(said)
        keep_screen(page, f"notifications-{theme}-{language}-390")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.get_by_role("button", name=retry).click()
        expect(page.get_by_text(again)).to_be_visible()
        expect(line).to_contain_text(said)
    assert demo.client.delete(f"/api/v1/notifications/{name}", params={"tenant": "default"}).is_success


def test_the_job_form_has_receivers_and_reports_unknown_ones(look: Look) -> None:
    """The field takes a notification with its occasions, and the trial reports one that does not exist there."""
    with look("user") as looker:
        page = looker.open("/submit")
        page.get_by_label("Name", exact=True).fill("named")
        page.get_by_text("Placement and time limits").click()
        page.get_by_label("Messages to").fill("missing=failed")
        expect(page.get_by_text("unknown notification 'missing'").first).to_be_visible()


def test_a_viewer_sets_no_notifications(look: Look) -> None:
    """The section is for users."""
    with look("viewer") as looker:
        page = looker.open(PATH)
        expect(page.get_by_role("link", name="Notifications")).to_have_count(0)
