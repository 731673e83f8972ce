"""Joins of clusters on the settings page, of clusters in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, FilePayload, expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen, looking
from tests.conformance.test_kubernetes_backends import furnish
from tests.fakes.kubernetes import ApiServer
from tests.integration.running import running

pytestmark = pytest.mark.slow

PATH = "/settings?section=clusters"


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    """Have a cluster ``gpu-east``, and return a kubeconfig for it."""
    with ApiServer("gpu-east") as server:
        furnish(server)
        server.reviews.denied = {"watch events"}
        yield server.kubeconfig(tmp_path / "config").read_text(encoding="utf-8")


def upload(text: str) -> FilePayload:
    """Return a file for the upload."""
    return {"name": "config", "mimeType": "", "buffer": text.encode()}


@pytest.mark.parametrize(
    ("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW), ("dark", "zh", WIDE)]
)
def test_an_admin_uploads_a_kubeconfig_and_sees_the_checks(
    look: Look, kubeconfig: str, theme: str, language: str, size: tuple[int, int]
) -> None:
    """A program is refused with what to do instead. The checks of the chosen context are shown and can be discarded."""
    said = {
        "en": (
            "Upload a kubeconfig",
            "Check it",
            "Rights in gpu-east",
            "Join gpu-east",
            "Discard",
            "Choose a context",
        ),
        "zh": ("上传 kubeconfig", "检查", "gpu-east 中的权限", "接入 gpu-east", "放弃", "选择上下文"),
    }[language]
    body = yaml.safe_load(kubeconfig)
    body["contexts"].append({**body["contexts"][0], "name": "another"})
    several = yaml.safe_dump({**body, "current-context": "gpu-east"})
    with_program = yaml.safe_load(kubeconfig)
    with_program["users"][0]["user"] = {"exec": {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"}}
    with look(theme=theme, language=language, size=size) as looker:
        page = looker.open(PATH)
        page.get_by_role("button", name=said[0]).click()
        dialog = page.get_by_role("dialog", name=said[0])
        dialog.locator("input[type=file]").set_input_files(upload(yaml.safe_dump(with_program)))
        dialog.get_by_role("button", name=said[1], exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text(re.compile("(a program .|程序.)aws"))
        dialog.locator("input[type=file]").set_input_files(upload(several))
        expect(dialog.get_by_role("status")).to_contain_text(f"{len(several):,}")
        dialog.get_by_role("button", name=said[1], exact=True).click()
        choice = page.get_by_role("dialog", name=said[5])
        expect(choice).to_contain_text("gpu-east")
        expect(dialog).to_have_count(0)
        choice.get_by_role("button", name=said[1], exact=True).click()
        expect(choice).to_have_count(0)
        line = page.locator(".join tr", has_text=said[2])
        expect(line).to_contain_text("watch events")
        expect(page.get_by_role("button", name=said[3], exact=True)).to_be_visible()
        keep_screen(page, f"joining-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.locator(".join").get_by_role("button", name=said[4]).click()
        expect(page.locator(".join")).to_have_count(0)


def test_a_cluster_is_joined_and_left_on_the_page(browser: Browser, kubeconfig: str, tmp_path: Path) -> None:
    """A bad name is reported at its field; a server with simulated clusters says when it uses the cluster."""
    folder = tmp_path / "data"
    folder.mkdir()
    with running(folder) as server:
        token = server.client.headers["authorization"].removeprefix("Bearer ")
        assert server.client.post("/api/v1/fleet/joins", json={"kubeconfig": kubeconfig}).status_code == 201
        with looking(browser, str(server.client.base_url).rstrip("/"), token) as looker:
            page = looker.open(PATH)
            page.get_by_role("button", name="Join gpu-east").click()
            dialog = page.get_by_role("dialog", name="Join gpu-east")
            dialog.get_by_role("textbox", name="Name").fill("No/name")
            page.keyboard.press("Enter")
            expect(dialog.get_by_role("alert").filter(has_text="is not a valid cluster name")).to_be_visible()
            dialog.get_by_role("textbox", name="Name").fill("gpu-west")
            page.keyboard.press("Enter")
            expect(dialog).to_have_count(0)
            expect(page.get_by_text("uses joined clusters after a restart")).to_be_visible()
            page.get_by_role("button", name="Leave cluster gpu-west").click()
            page.get_by_role("dialog").get_by_role("button", name="Leave", exact=True).click()
            expect(page.get_by_text("Cluster gpu-west was left")).to_be_visible()
            expect(page.get_by_role("button", name="Leave cluster gpu-west")).to_have_count(0)
        assert list(folder.glob("kubeconfigs/*.yaml")) == []


def test_an_admin_gets_a_command_and_others_do_not(look: Look) -> None:
    """The command is shown once, with the address of this server; operators have no way to join."""
    with look() as looker:
        page = looker.open(PATH)
        page.get_by_role("button", name="Get a command").click()
        dialog = page.get_by_role("dialog", name="Command for the cluster")
        command = dialog.get_by_role("textbox", name="Command").input_value()
        assert command.startswith("curl -fsS -H 'Authorization: Bearer sw_join-")
        assert f" {looker.url}/api/v1/fleet/joins/" in command
        dialog.get_by_role("button", name="Done").click()
        expect(page.get_by_text("waits for the command")).to_be_visible()
        expect(dialog).to_have_count(0)
        assert hindrances(page) == []
        page.get_by_role("button", name="Discard the join of New cluster").click()
        expect(page.locator(".join")).to_have_count(0)
    with look("operator") as looker:
        page = looker.open(PATH)
        expect(page.get_by_text("Admins join clusters on this page.", exact=False)).to_be_visible()
        expect(page.get_by_role("button", name="Get a command")).to_have_count(0)
