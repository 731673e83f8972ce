"""Live updates of pages: focus and selection stay, keyboards work, errors show, and a restart is survived."""

from __future__ import annotations

import re
from contextlib import suppress
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look
from tests.browser.looking import keep_screen
from tests.integration.running import Running

pytestmark = pytest.mark.slow

SERVES = {"image": "ubuntu", "command": ["sleep", "inf"]}

HOLD = """link => {
  link.focus();
  window.held = link;
  getSelection().selectAllChildren(link.closest("tr").cells[0]);
  link.closest(".scroll").scrollLeft = 40;
}"""
HELD = """() => [document.activeElement === held && held.isConnected, String(getSelection()).trim(),
               held.closest(".scroll").scrollLeft]"""

MIDDLE_OF_A_LINE = """() => {
  const line = [...document.querySelectorAll(".links-graph svg path")]
      .find(path => path.getAttribute("fill") === "none" && path.getTotalLength() > 120);
  const at = line.getPointAtLength(line.getTotalLength() / 2).matrixTransform(line.getScreenCTM());
  return [at.x, at.y];
}"""


def serve(demo: Running, what: str) -> tuple[str, str]:
    """Run a job; return its name and its id."""
    name = f"{what}-{uuid4().hex[:8]}"
    return name, demo.submit(name=name, resources={"gpus": 0}, run=SERVES)


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until an element whose name has this start is focused."""
    said = []
    for _ in range(60):
        page.keyboard.press("Tab")
        said.append(
            page.evaluate(
                "() => document.activeElement.ariaLabel || document.activeElement.innerText.replace(/^[a-z_]+\\n/, '')"
            )
        )
        if said[-1].startswith(wanted):
            return
    raise AssertionError(f"no {wanted!r} in {said}")


def test_what_a_user_holds_stays_where_it_is(look: Look, demo: Running) -> None:
    """Focus, selection, scrolling and folded parts survive updates."""
    name, job = serve(demo, "held")
    demo.await_state(job, "running")
    with look("viewer", size=(700, 800)) as looker:
        page = looker.open(f"/jobs?name={name}")
        page.locator(".jobs-rows a", has_text=name).evaluate(HOLD)
        before = page.evaluate(HELD)
        assert before[0]
        assert before[2] > 0
        assert name in before[1]
        other = demo.submit(name=f"{name}-other", resources={"gpus": 0}, run=SERVES)
        expect(page.locator(".jobs-rows tbody tr")).to_have_count(2)
        assert page.evaluate(HELD) == before
        looker.go(page, f"/jobs/{other}")
        expect(page.locator(".yaml")).to_be_visible()
        page.locator("summary").click()
        demo.client.post(f"/api/v1/jobs/{other}/cancel")
        expect(page.locator(".job-title .state")).to_have_text("cancelled")
        expect(page.locator(".yaml")).to_be_hidden()
    demo.client.delete(f"/api/v1/jobs/{job}")


def test_all_goes_by_keyboard(look: Look, demo: Running) -> None:
    """With Tab and Enter alone a user gets through the menu to a form, submits a job, and opens it from the list."""
    name = f"typed-{uuid4().hex[:8]}"
    with look("user") as looker:
        page = looker.open("/")
        tab_to(page, "Submit")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/submit$"))
        looker.settled(page)
        expect(page.get_by_label("Name")).to_be_enabled()  # once the draft is loaded
        tab_to(page, "Name")
        page.keyboard.type(name)
        tab_to(page, "Submit")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        looker.go(page, f"/jobs?name={name}")
        tab_to(page, name)
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/jobs/[a-z0-9]{13}$"))
    demo.client.delete(f"/api/v1/jobs/{name}")


def test_a_line_of_the_graph_leads_to_its_link(look: Look) -> None:
    """A click on a link in the graph opens its page."""
    with look("viewer") as looker:
        page = looker.open("/network?view=graph")
        expect(page.locator(".links-graph svg text", has_text="gw-4")).to_be_visible()
        there, tries = re.compile(r"/network/gw-\d/gw-\d$"), 10
        while tries and not there.search(page.url):  # clicks while the lines are still drawn may miss
            page.mouse.click(*page.evaluate(MIDDLE_OF_A_LINE))
            with suppress(AssertionError):
                expect(page).to_have_url(there, timeout=2_000)
            tries -= 1
        expect(page).to_have_url(there)


def test_what_goes_wrong_with_a_press_is_reported(look: Look, demo: Running) -> None:
    """A failed action shows its reason, on any page."""
    _, job = serve(demo, "gone")
    with look("viewer") as looker:
        page = looker.open(f"/jobs/{job}")
        demo.client.delete(f"/api/v1/jobs/{job}")
        page.get_by_role("tab", name="Events").click()
        expect(page.locator(".q-notification")).to_contain_text(job)


def test_a_page_says_that_its_server_is_gone_and_returns_by_itself(look: Look, demo: Running) -> None:
    """An open page reports a restart of the server, and shows new data afterwards, without a reload.

    A page that is opened meanwhile says so, and comes with the server.

    The message is in the user's language, as all messages of the page itself.
    """
    with look(language="zh") as looker:
        page = looker.open("/jobs")
        expect(page.get_by_label("名称")).to_be_visible()
        lost = page.get_by_text("与服务器的连接已断开。")
        expect(lost).to_be_hidden()
        expect(page.locator("#too_long_message_popup")).to_contain_text("请缩短内容后重试。")
        demo.process.kill()
        expect(lost).to_be_visible()
        expect(page.locator("#popup")).to_contain_text(re.compile(r"最近的数据.\d\d:\d\d:\d\d.正在重新连接"))
        assert page.locator("#popup").bounding_box()["y"] == 0  # type: ignore[index]  # it is visible
        keep_screen(page, "server-gone-zh")
        other = looker.context.new_page()
        other.goto(f"{looker.url}/queues?queue=default")
        expect(other.get_by_role("heading", name="无法连接服务器")).to_be_visible()
        keep_screen(other, "server-down-zh")
        demo.restart()
        expect(other.locator(".fragment-queues tbody tr").first).to_be_visible(timeout=30_000)
        for what in ("after", "live"):
            name, _ = serve(demo, what)
            expect(page.locator(".jobs-rows a", has_text=name)).to_be_visible(timeout=30_000)
        expect(lost).to_be_hidden()
        looker.wrong.clear()  # the browser reports a server that does not answer


def test_nothing_acts_while_the_server_does_not_answer(look: Look, demo: Running) -> None:
    """Buttons are disabled while the server does not answer, and none of them acts afterwards."""
    name = f"late-{uuid4().hex[:8]}"
    with look("user") as looker:
        page = looker.open("/submit")
        page.get_by_label("Name", exact=True).fill(name)
        submit = page.get_by_role("button", name="Submit", exact=True)
        expect(submit).to_be_enabled()
        demo.process.kill()
        expect(submit).to_be_disabled()
        page.get_by_label("Name", exact=True).press("Enter")
        expect(page.locator("#popup")).to_contain_text(re.compile(r"Last figures: \d\d:\d\d:\d\d\. Reconnecting…"))
        keep_screen(page, "server-gone-submit")
        demo.restart()
        expect(submit).to_be_enabled(timeout=30_000)
        assert demo.client.get("/api/v1/jobs", params={"name": name}).json()["jobs"] == []
        looker.wrong.clear()  # the browser reports a server that does not answer
