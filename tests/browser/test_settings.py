"""Settings: tokens, clusters, gateways, the audit log, the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from seaway.client.sync import Client
from seaway.client.workdirs import send_folder
from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen
from tests.integration.running import Running

pytestmark = pytest.mark.slow


def test_a_token_s_secret_is_shown_once_and_holds_until_it_is_revoked(look: Look) -> None:
    """An admin creates a token, copies its secret once, and revokes it; a missing value is reported at the field."""
    with look(theme="dark", language="zh") as looker:
        page = looker.open("/settings")
        page.get_by_role("button", name="新建令牌").click()
        dialog = page.get_by_role("dialog", name="新建令牌")
        dialog.get_by_role("textbox", name="名称").fill("seen-once")
        dialog.get_by_role("textbox", name="有效时长").fill("soon")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert").filter(has_text="soon")).to_be_visible()
        dialog.get_by_role("textbox", name="名称").focus()
        assert hindrances(page) == []
        dialog.get_by_role("textbox", name="有效时长").fill("1h")
        page.keyboard.press("Enter")
        shown = page.get_by_role("dialog", name="令牌 seen-once")
        expect(dialog).to_have_count(0)  # the page behind it is gone, and the dialog stays
        page.wait_for_timeout(1_000)
        assert shown.get_by_role("textbox", name="密钥").input_value().startswith("sw_")
        page.evaluate("delete Navigator.prototype.clipboard")  # as over plain http
        shown.get_by_role("button", name="复制").click()
        expect(page.get_by_text("已复制", exact=True)).to_be_visible()
        assert page.evaluate("getSelection().toString()").startswith("sw_")
        shown.get_by_role("button", name="完成").click()
        keep_screen(page, "settings-dark-zh-1440")
        page.get_by_role("button", name="吊销令牌 seen-once").click()
        page.get_by_role("dialog").get_by_role("button", name="吊销").click()
        expect(page.get_by_text("seen-once", exact=True)).to_have_count(0)
        page.get_by_role("switch", name="包括已失效的").click()
        expect(page.locator("tr", has_text="seen-once")).to_contain_text("已吊销")


def test_each_section_has_an_address_and_is_there_for_whom_it_is(look: Look) -> None:
    """A viewer sees clusters and the server; an admin also the audit log, with the changes of others."""
    with look("viewer", size=NARROW) as looker:
        page = looker.open("/settings?section=tokens")
        expect(page.get_by_role("link", name="Tokens")).to_have_count(0)
        expect(page.get_by_text("seaway cluster join")).to_be_visible()
        assert hidden_sideways(page) == []
        page.get_by_role("link", name="Server").click()
        expect(page.get_by_text("ready", exact=True)).to_be_visible()
    with look() as looker:
        page = looker.open("/settings?section=audit")
        expect(page.get_by_text("POST create_token").first).to_be_visible()
        assert hindrances(page) == []
        looker.go(page, "/settings?section=gateways")
        expect(page.get_by_text("gw-1", exact=True)).to_be_visible()
        assert hindrances(page) == []


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_a_gateway_is_added_with_the_command_of_its_agent(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """An error is at its field. Then the command has a token for this gateway only, and the table has the gateway."""
    said = {
        "en": ("Add a gateway", "Name", "User site", "Address", "Add"),
        "zh": ("添加网关", "名称", "用户站点", "地址", "添加"),
    }
    title, name, site, address, verb = said[language]
    try:
        with look(theme=theme, language=language, size=size) as looker:
            page = looker.open("/settings?section=gateways")
            page.get_by_role("button", name=title).click()
            form = page.get_by_role("dialog", name=title)
            form.get_by_role("textbox", name=name, exact=True).fill("gw-office")
            form.get_by_role("textbox", name=site).fill("office")
            form.get_by_role("textbox", name=address).fill("nowhere")
            form.get_by_role("button", name=verb, exact=True).click()
            expect(form.get_by_role("alert").filter(has_text="nowhere")).to_be_visible()
            keep_screen(page, f"gateway-{theme}-{language}-{size[0]}")
            assert hindrances(page) == []
            form.get_by_role("textbox", name=address).fill("192.0.2.7")
            form.get_by_role("button", name=verb, exact=True).click()
            command = page.get_by_role("dialog", name="gw-office").get_by_role("textbox").input_value()
            page.keyboard.press("Tab")
            keep_screen(page, f"gateway-command-{theme}-{language}-{size[0]}")
            page.get_by_role("dialog").get_by_role("button").last.click()
            expect(page.locator(".fragment-gateways tr", has_text="192.0.2.7")).to_be_visible()
            assert hidden_sideways(page) == []
        assert f"seaway agent --gateway gw-office --server {demo.client.base_url!s}".rstrip("/") in command
        secret = command.split("echo ")[1].split(" ")[0]
        allowed = {"authorization": f"Bearer {secret}"}
        targets = "/api/v1/network/targets"
        assert demo.client.get(targets, params={"gateway": "gw-office"}, headers=allowed).status_code == 200
        assert demo.client.get(targets, params={"gateway": "gw-1"}, headers=allowed).status_code == 403
    finally:
        demo.client.delete("/api/v1/network", params={"force": True}).raise_for_status()
        for each in demo.client.get("/api/v1/tokens").json()["tokens"]:
            if each["name"] == "gw-office" and not each["revoked_at"]:
                demo.client.delete(f"/api/v1/tokens/{each['id']}").raise_for_status()


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_users_are_shown_with_their_last_use(look: Look, theme: str, language: str, size: tuple[int, int]) -> None:
    """A user who just made a request was seen, with its role and tokens; single sign-on is shown, not changed."""
    with look(theme=theme, language=language, size=size) as looker:
        page = looker.open("/settings?section=users")
        line = page.locator(".fragment-users tr", has=page.get_by_role("rowheader", name="admin", exact=True))
        expect(line).to_contain_text("127.0.0.1")
        keep_screen(page, f"users-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        looker.go(page, "/settings?section=provider")
        expect(page.get_by_text("[oidc]")).to_be_visible()
        assert hindrances(page) == []


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_archives_are_listed_and_deleted_unless_a_job_needs_them(
    look: Look, demo: Running, tmp_path: Path, theme: str, language: str, size: tuple[int, int]
) -> None:
    """The page has the archives of a tenant, with their sizes and those who sent them. One in use cannot be deleted."""
    token = demo.client.headers["authorization"].removeprefix("Bearer ")
    with Client(str(demo.client.base_url), token) as client:
        (tmp_path / "train.py").write_text(f"print('{theme}')", encoding="utf-8")
        needed = send_folder(client, tmp_path)
        (tmp_path / "more.py").write_text("print(2)", encoding="utf-8")
        other = send_folder(client, tmp_path)
    job = demo.submit(name="needs-folder", workdir=needed, run={"image": "train:1", "command": ["python", "train.py"]})
    delete = {"en": "Delete", "zh": "删除"}[language]
    short = [each.removeprefix("sha256:")[:12] for each in (needed, other)]
    with look("user", theme=theme, language=language, size=size) as looker:
        page = looker.open("/settings?section=workdirs")
        rows = [page.locator(".fragment-workdirs tr", has_text=each) for each in short]
        expect(rows[0].get_by_role("button")).to_have_count(0)
        expect(rows[1]).to_contain_text("0.")
        keep_screen(page, f"workdirs-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        rows[1].get_by_role("button").click()
        page.get_by_role("dialog").get_by_role("button", name=delete).click()
        expect(rows[1]).to_have_count(0)
        expect(rows[0]).to_be_visible()
    with look() as looker:  # an admin chooses the tenant
        page = looker.open("/settings?section=workdirs&tenant=default")
        expect(page.locator(".fragment-workdirs")).to_contain_text(short[0])
        expect(page.get_by_role("combobox")).to_have_count(1)
    demo.client.delete(f"/api/v1/jobs/{job}")
