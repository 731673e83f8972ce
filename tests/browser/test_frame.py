"""The frame of every page, the log-in page, and the overview."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, english, hidden_sideways, hindrances, keep_screen, looking, spilled
from tests.integration.running import Running

pytestmark = pytest.mark.slow

WHOLE = (
    ("/", ".fragment-clusters tbody tr"),
    ("/submit", ".submit-trial"),
    ("/jobs", ".jobs-rows tbody tr"),
    ("/queues", ".fragment-queues tbody tr"),
    ("/queues?queue=default", ".fragment-queues tbody tr"),
    ("/schedule", ".gantt-bar"),
    ("/history", ".fragment-history"),
    ("/fleet", ".heat canvas"),
    ("/fleet?view=nodes", ".node-name"),
    ("/fleet?view=cards", ".fragment-fleet-cards tbody tr"),
    ("/fleet/cluster-1/cluster-1-n0", ".fragment-node-head"),
    ("/network?view=graph", ".links-graph svg text"),
    ("/network", ".fragment-links tbody tr"),
    ("/network/gw-4/gw-3", ".fragment-link-head"),
    ("/policies", ".fragment-policies tbody tr"),
    ("/whatif?lose=cluster-3", ".fragment-whatif summary"),
    ("/settings?section=tokens", ".panel tbody tr"),
    ("/settings?section=clusters", ".panel tbody tr"),
    ("/settings?section=gateways", ".panel"),
    ("/settings?section=users", ".panel tbody tr"),
    ("/settings?section=provider", ".panel"),
    ("/settings?section=notifications", ".fragment-messages"),
    ("/settings?section=workdirs", ".fragment-workdirs"),
    ("/settings?section=audit", ".panel tbody tr"),
    ("/settings?section=server", ".panel"),
)
"""Pages of an admin, with their required content."""


def test_who_is_not_known_logs_in_and_comes_to_where_he_wanted(look: Look, tokens: dict[str, str]) -> None:
    """Without a log-in, a page asks for a token, reports an invalid one, and continues with a valid one."""
    with look("") as looker:
        page = looker.open("/?from=a-link")
        expect(page).to_have_url(re.compile("/login"))
        page.get_by_label("Token").fill("sw_nobody_nothing")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("token")
        assert [each for each in looker.wrong if "401" not in each] == []
        looker.wrong.clear()  # browsers log every rejection to their console
        page.get_by_label("Token").fill(tokens["viewer"])
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"/\?from=a-link$"))
        expect(page.get_by_text("a-viewer")).to_be_visible()
        page.get_by_label("Log out").click()
        expect(page.get_by_role("status")).to_have_text("You are logged out.")


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh")])
def test_the_way_in_can_be_read_by_everybody(look: Look, theme: str, language: str) -> None:
    """In both themes and languages, on a phone: errors are at their field, another language is available."""
    with look("", theme=theme, language=language, size=NARROW) as looker:
        page = looker.open("/login")
        assert page.evaluate("document.documentElement.lang") == language
        page.locator("#token").fill("nobody")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_be_visible()
        assert [each for each in looker.wrong if "401" not in each] == []
        looker.wrong.clear()  # browsers log every rejection to their console
        keep_screen(page, f"login-{theme}-{language}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.locator(".plain-language").click()
        expect(page.get_by_role("heading")).to_have_text("登录 Seaway" if language == "en" else "Log in to Seaway")


def test_the_way_in_needs_no_script(browser: Browser, demo: Running, tokens: dict[str, str]) -> None:
    """The form is a plain HTML form."""
    url = str(demo.client.base_url).rstrip("/")
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{url}/login?next=/healthz")
        page.locator("#token").fill(tokens["viewer"])
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{url}/healthz")


def test_a_draft_ends_with_the_log_in(look: Look) -> None:
    """The next user of the browser finds no draft, and no other tab with content."""
    with look("user") as looker:
        other, page = looker.open("/settings"), looker.open("/submit")
        page.get_by_label("Name", exact=True).fill("secret-plan")
        page.wait_for_function("Object.values(sessionStorage).some(each => each.includes('secret-plan'))")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("status")).to_have_text("You are logged out.")
        assert not page.evaluate("Object.values(sessionStorage).some(each => each.includes('secret-plan'))")
        expect(other.get_by_role("status")).to_have_text("You are logged out.")


def test_no_one_is_led_to_another_site(look: Look, tokens: dict[str, str]) -> None:
    """A log-in redirects only to this server, whatever a link contains."""
    with look("") as looker:
        page = looker.open("/login?next=//example.org/")
        page.get_by_label("Token").fill(tokens["viewer"])
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{looker.url}/")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_overview_can_be_read_by_everybody(look: Look, theme: str, language: str, size: tuple[int, int]) -> None:
    """In both themes, languages and widths: nothing is hidden sideways, and labels and contrast are good enough."""
    with look(theme=theme, language=language, size=size) as looker:
        page = looker.open("/")
        expect(page.get_by_text("cluster-1").first).to_be_visible()
        assert page.evaluate("document.documentElement.lang") == language
        keep_screen(page, f"overview-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []


@pytest.mark.parametrize(("size", "language"), [(WIDE, "en"), (WIDE, "zh"), (NARROW, "en"), (NARROW, "zh")])
def test_no_page_hides_anything_sideways(look: Look, demo: Running, size: tuple[int, int], language: str) -> None:
    """Tables fit on a desktop, with cordons; on a phone rows are cards, or an edge shows that a table continues.

    Nothing is wider than its card, and no text is clipped without a tooltip. In Chinese, no text is English.
    """
    job = demo.submit(name="seen-whole", run={"image": "ubuntu", "command": ["sleep", "inf"]})
    demo.await_state(job, "running")
    cordon = {"cluster": "cluster-2", "drain": True, "reason": "rebuilding"}
    assert demo.client.post("/api/v1/cordons", json=cordon).is_success
    assert demo.client.put("/api/v1/tenants/robotics-research", json={"description": "Robots"}).is_success
    found = {}
    jobs = (
        (f"/jobs/{job}", ".job-title"),
        (f"/jobs/{job}?tab=why", ".fragment-job-why"),
        (f"/jobs/{job}?tab=events", ".events"),
        (f"/compare?jobs={job},{job}", ".compare"),
    )
    with look(size=size, language=language) as looker:
        page = looker.open("/")
        expect(page.locator(".state-cordoned").first).to_be_visible()
        for path, shows in (*WHOLE, *jobs):
            looker.go(page, path)
            expect(page.locator(shows).first).to_be_visible()
            page.wait_for_timeout(300)  # also measure content that appears a moment later
            keep_screen(page, f"whole-{path.strip('/') or 'overview'}-{language}-{size[0]}")
            found[path] = hidden_sideways(page) + spilled(page) + (english(page) if language == "zh" else [])
    demo.client.delete("/api/v1/tenants/robotics-research")
    demo.client.delete("/api/v1/cordons", params={"cluster": "cluster-2"})
    demo.client.post(f"/api/v1/jobs/{job}/cancel")
    assert {path: cut for path, cut in found.items() if cut} == {}


@pytest.mark.parametrize(("size", "hint"), [(WIDE, "local"), (NARROW, "scroll")])
def test_what_is_hidden_sideways_is_found(look: Look, size: tuple[int, int], hint: str) -> None:
    """A table wider than its place is found: on a desktop always, on a phone without a sign that it continues."""
    with look(size=size) as looker:
        page = looker.open("/")
        expect(page.get_by_text("cluster-1").first).to_be_visible()
        style = (
            f".fragment-clusters .scroll {{background-attachment: {hint} !important}}"
            ".fragment-clusters .rows {display: table !important; width: 3000px}"
        )
        page.add_style_tag(content=style)
        assert len(hidden_sideways(page)) == 1


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ("<p style='min-width: 600px'>wide</p>", "is wider than"),
        ("<p style='width: 40px; overflow: hidden; white-space: nowrap'>more than there is room for</p>", "is clipped"),
        ("<a class='act' style='display: block; width: 60px; white-space: normal'>one two three four</a>", "several"),
        ("<p style='width: 8px; overflow-wrap: anywhere'>letters</p>", "7 lines of letters"),
        ("<p style='width: 15px'>竖排文字</p>", "4 lines of letters"),
    ],
)
def test_what_spills_out_of_its_card_is_found(look: Look, planted: str, said: str) -> None:
    """An element wider than its card, clipped text, a folded button and a column of letters are found."""
    with look(size=NARROW) as looker:
        page = looker.open("/history")
        expect(page.locator(".fragment-history")).to_be_visible()
        assert spilled(page) == []
        page.locator(".panel").first.evaluate("(panel, text) => panel.insertAdjacentHTML('beforeend', text)", planted)
        assert len(found := spilled(page)) == 1, found
        assert said in found[0]


def test_on_a_phone_the_menu_is_turned_on_and_off_by_keyboard(look: Look) -> None:
    """The menu is closed at first; opening it moves the focus there, and Escape returns it to the button."""
    with look(size=NARROW) as looker:
        page = looker.open("/")
        menu = page.get_by_role("button", name="Menu")
        expect(menu).to_have_attribute("aria-expanded", "false")
        menu.focus()
        page.keyboard.press("Enter")
        expect(menu).to_have_attribute("aria-expanded", "true")
        expect(page.get_by_role("link", name="Overview", exact=True)).to_be_focused()
        page.keyboard.press("Escape")
        expect(menu).to_be_focused()
        expect(page.get_by_role("link", name="Overview", exact=True)).to_be_hidden()
        menu.click()
        page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        expect(page.get_by_role("link", name="Overview", exact=True)).to_be_visible()
        expect(menu).to_have_attribute("aria-expanded", "true")


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_everything_with_a_name_is_found_by_keyboard(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Ctrl-K opens the search on each page; arrow keys choose a result, and Enter opens it."""
    job = demo.submit(name=f"needle-{language}", run={"image": "ubuntu", "command": ["sleep", "inf"]})
    with look(theme=theme, language=language, size=size) as looker:
        page = looker.open("/queues")
        page.keyboard.press("Control+k")
        typed, results = page.get_by_role("combobox"), page.get_by_role("option")
        expect(typed).to_be_focused()
        expect(results.filter(has_text="Overview" if language == "en" else "总览")).to_be_visible()
        for text, result in (
            (f"needle-{language}", job),
            (job, job),
            ("cluster-1-n0", "cluster-1-n0"),
            ("cluster-2", "cluster-2"),
            ("gw-4 gw-3", "gw-4 → gw-3"),
            ("default", "default"),
        ):
            typed.fill(text)
            expect(results.filter(has_text=result).first).to_be_visible()
        assert hindrances(page) == []
        keep_screen(page, f"search-{theme}-{language}-{size[0]}")
        typed.fill("nothing-has-this-name")
        expect(results).to_have_count(0)
        typed.fill(f"needle-{language}")
        page.keyboard.press("Enter")  # before the results are there
        expect(page).to_have_url(re.compile(f"/jobs/{job}$"))
        page.locator(".search-button").click()
        expect(results.nth(1)).to_be_visible()
        page.keyboard.press("ArrowDown")
        expect(results.nth(1)).to_have_attribute("aria-selected", "true")
        expect(page.get_by_role("combobox")).to_have_attribute("aria-activedescendant", "palette-1")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    demo.client.post(f"/api/v1/jobs/{job}/cancel")


def test_the_search_offers_what_the_role_allows(look: Look) -> None:
    """A viewer finds no page or action that requires another role."""
    for role, offered in (("viewer", False), ("admin", True)):
        with look(role) as looker:
            page = looker.open("/jobs")
            page.keyboard.press("Control+k")
            results = page.get_by_role("option")
            expect(results.filter(has_text="Overview")).to_be_visible()
            for title in ("What if", "Join a cluster", "Audit log"):
                expect(results.filter(has_text=title)).to_have_count(int(offered))


def test_who_skips_to_the_content_lands_in_the_one_main_landmark(look: Look) -> None:
    """With the keyboard, Tab first reaches a link that skips the menu."""
    with look() as looker:
        page = looker.open("/")
        expect(page.get_by_role("main")).to_have_count(1)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("main")).to_be_focused()


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_an_error_page_keeps_the_menu(look: Look, theme: str, language: str, size: tuple[int, int]) -> None:
    """A wrong address shows what to do next beside the menu, readable in both themes and languages."""
    with look("viewer", theme=theme, language=language, size=size) as looker:
        page = looker.open("/jobs/no-such-job")
        expect(page.get_by_role("alert").get_by_role("link").first).to_have_attribute("href", "/jobs?name=no-such-job")
        keep_screen(page, f"error-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.get_by_role("navigation").get_by_role("link", name="Fleet" if language == "en" else "资源").click()
        expect(page).to_have_url(re.compile("/fleet$"))
        assert [each for each in looker.wrong if "404" not in each] == []
        looker.wrong.clear()  # browsers log every rejection to their console


def test_an_operation_is_tried_in_the_reference(look: Look, tokens: dict[str, str]) -> None:
    """The reference loads nothing from elsewhere, accepts a token, and shows the answer of an operation."""
    with look("") as looker:
        page = looker.open("/docs")
        page.get_by_role("button", name="Authorize").first.click()
        page.locator(".modal-ux input").fill(tokens["viewer"])
        page.locator(".modal-ux").get_by_role("button", name="Apply credentials").click()
        page.locator(".modal-ux").get_by_role("button", name="Close").first.click()
        page.locator("#operations-tag-access").click()
        operation = page.locator("#operations-access-who_am_i")
        operation.locator(".opblock-summary-control").click()
        operation.get_by_role("button", name="Execute").click()
        expect(operation.locator(".live-responses-table")).to_contain_text("a-viewer")


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_the_bell_lists_jobs_that_ended(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """It counts the user's jobs that ended since it was last opened, on each page, and lists them with links."""
    name = f"rings-{language}"
    with look(theme=theme, language=language, size=size) as looker:
        job = demo.submit(name=name, run={"image": "ubuntu", "command": ["sleep", "inf"]})
        demo.await_state(job, "running")
        other = demo.submit(name=f"{name}-2", run={"image": "ubuntu", "command": ["true"]}, time_limit="1s", retries=0)
        demo.await_state(other, "failed")
        page = looker.open("/jobs")
        expect(page.locator(".bell-number")).to_be_visible()
        page.locator(".bell").click()
        expect(page.get_by_role("dialog").get_by_role("link", name=f"{name}-2")).to_be_visible()
        assert hindrances(page) == []
        keep_screen(page, f"bell-{theme}-{language}-{size[0]}")
        page.wait_for_function("document.cookie.includes('seaway_seen')")
        page.get_by_role("dialog").get_by_role("link", name=f"{name}-2").click()
        expect(page).to_have_url(re.compile(f"/jobs/{other}$"))
    demo.client.post(f"/api/v1/jobs/{job}/cancel")


def test_detail_pages_lead_back(look: Look, demo: Running) -> None:
    """A job, a node and a link show their place, with links to the pages above them."""
    job = demo.submit(name="lead-back", run={"image": "ubuntu", "command": ["sleep", "inf"]})
    with look() as looker:
        page = looker.open(f"/jobs/{job}")
        for path, above, name in (
            (f"/jobs/{job}", ["Jobs"], "lead-back"),
            ("/fleet/cluster-1/cluster-1-n0", ["Fleet", "cluster-1"], "cluster-1-n0"),
            ("/network/gw-4/gw-3", ["Network", "gw-4"], "gw-4 → gw-3"),
            ("/queues?queue=default", ["Queues"], "default"),
            ("/settings?section=audit", ["Settings"], "Audit log"),
        ):
            looker.go(page, path)
            place = page.get_by_role("navigation", name="Location")
            expect(place.locator("[aria-current=page]")).to_have_text(name)
            expect(place.get_by_role("link")).to_have_text(above)
            expect(page).to_have_title(f"{name} · Seaway")
            place.get_by_role("link").last.click()
            expect(page).to_have_url(re.compile(re.escape(re.split("[/?]", path)[1])))
            assert page.locator(".login-form").count() == 0
    demo.client.post(f"/api/v1/jobs/{job}/cancel")


def test_what_happens_is_seen_without_a_reload(look: Look, demo: Running) -> None:
    """A started job is counted without a reload, and an ended one no longer."""
    with look() as looker:
        page = looker.open("/")
        tile = page.locator(".tile", has_text="Running jobs").locator(".tile-figure")
        before = int(tile.inner_text())
        job = demo.submit(name="seen-at-once", run={"image": "ubuntu", "command": ["sleep", "inf"]})
        demo.await_state(job, "running")
        expect(tile).to_have_text(str(before + 1))
        demo.client.post(f"/api/v1/jobs/{job}/cancel")
        expect(tile).to_have_text(str(before))


def test_language_and_colours_are_chosen_once_for_all_pages(look: Look) -> None:
    """A choice stays after a reload."""
    with look() as looker:
        page = looker.open("/?from=here")
        page.get_by_text("中文").click()
        expect(page).to_have_url(re.compile("from=here"))
        expect(page.get_by_role("heading", name="告警")).to_be_visible()
        looker.go(page, "/")
        expect(page.get_by_role("heading", name="告警")).to_be_visible()
        page.get_by_label(re.compile("配色")).click()
        expect(page.get_by_label(re.compile("浅色"))).to_be_visible()
        page.get_by_label(re.compile("浅色")).click()
        expect(page.locator("body")).to_have_class(re.compile("body--dark"))


def test_a_token_that_is_revoked_ends_what_is_looked_at(demo: Running, browser: Browser) -> None:
    """The page leads to the log-in within seconds, gives the reason, and remembers the address."""
    made = demo.client.post("/api/v1/tokens", json={"name": "leaver", "role": "viewer", "tenant": "default"}).json()
    with looking(browser, str(demo.client.base_url).rstrip("/"), made["secret"]) as looker:
        page = looker.open("/jobs?state=running")
        assert demo.client.delete(f"/api/v1/tokens/{made['id']}").is_success
        expect(page).to_have_url(re.compile("/login"))
        expect(page.get_by_role("status")).to_have_text("Your token is not valid any more.")
        expect(page.locator("input[name=next]")).to_have_value("/jobs?state=running")


def test_a_log_in_that_another_site_sends_is_not_taken(demo: Running, tokens: dict[str, str]) -> None:
    """A page of another site cannot log a user in as another user."""
    url = str(demo.client.base_url).rstrip("/")
    form = {"token": tokens["viewer"], "next": "/"}
    for origin in ("https://elsewhere.example", "null"):
        answer = httpx.post(f"{url}/login", data=form, headers={"origin": origin})
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
        assert "another site" in answer.text
    assert "set-cookie" in httpx.post(f"{url}/login", data=form, headers={"origin": url}).headers


@pytest.mark.parametrize("next_", ["//example.org/", "//[x", "https://example.org", "/\\example.org"])
def test_whatever_a_link_says_the_log_in_page_is_shown(demo: Running, next_: str) -> None:
    """An invalid or external address is ignored."""
    answer = httpx.get(str(demo.client.base_url.join("/login")), params={"next": next_})
    assert answer.status_code == 200
    assert "example.org" not in answer.text
