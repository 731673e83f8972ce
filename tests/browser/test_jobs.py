"""Submitting jobs, the list of jobs, and the page of a job."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen
from tests.integration.running import Running

pytestmark = pytest.mark.slow

SLOW_TO_TELL = """
    const tell = Storage.prototype.getItem;
    Storage.prototype.getItem = function (name) {
        for (const begun = Date.now(); name.startsWith("seaway-draft") && Date.now() < begun + 2000; );
        return tell.call(this, name);
    };
"""
"""Makes a browser delay stored drafts by two seconds."""

SERVES = {"image": "ubuntu", "command": ["sleep", "inf"]}


def named(what: str) -> str:
    """Return a unique name of a job."""
    return f"{what}-{uuid4().hex[:8]}"


def write(page: Page, text: str) -> None:
    """Replace the text of the editor, as if pasted."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def test_candidates_appear_while_one_types_and_refusals_are_at_the_field(look: Look) -> None:
    """The form shows the best nodes, the reasons against others, and errors at their fields."""
    name = named("typed")
    with look("user") as looker:
        page = looker.open("/submit")
        trial = page.locator(".submit-trial")
        expect(trial).to_contain_text("Fill in the form")
        expect(trial.locator(".chosen")).to_have_count(0)
        page.get_by_label("Name").fill("Not A Name")
        expect(page.get_by_text("'Not A Name' is not valid")).to_be_visible()
        page.get_by_label("Name").fill(name)
        page.get_by_label("GPUs", exact=True).fill("1")
        page.get_by_label("Memory of each GPU").fill("20GB")
        page.get_by_label("Maximum latency").fill("20ms")
        expect(page.get_by_text("is needed, for bounds on the network are measured from it")).to_be_visible()
        page.get_by_label("Your gateway").fill("gw-1")
        page.keyboard.press("Enter")
        row = trial.get_by_role("row").filter(has_text="latency above the bound")
        expect(row).to_contain_text("cluster-3")
        expect(page.get_by_text("'Not A Name' is not valid")).to_have_count(0)
        page.get_by_role("button", name="Submit", exact=True).click()
        expect(page).to_have_url(re.compile("/jobs/[a-z0-9]{13}$"))
        expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_the_form_and_its_yaml_are_one_job(look: Look, demo: Running) -> None:
    """Fields update the YAML; pasted YAML stays unchanged, fills the form, and shows the positions of its errors."""
    name = named("pasted")
    with look("user") as looker:
        page = looker.open("/submit")
        page.get_by_label("Name").fill(name)
        page.get_by_label("GPUs", exact=True).fill("2")
        page.get_by_role("button", name="YAML").click()
        expect(page.locator(".cm-content")).to_contain_text("gpus: 2")
        write(page, f"# night\nname: {name}\nresources:\n  gpus: 1\n  gpu_mem: 1GB\n")
        expect(page.get_by_role("alert").filter(has_text="line 5")).to_contain_text("did you mean 'gpu_memory'?")
        expect(page.locator(".line-wrong")).to_contain_text("gpu_mem")
        write(page, f"# night\nname: {name}\nresources:\n  gpus: 1\n  gpu_memory: 1GB\n  exclusive: no\n")
        expect(page.locator(".submit-trial .chosen")).to_have_count(1)
        expect(page.locator(".cm-content")).to_contain_text("# night")
        page.get_by_role("button", name="Form").click()
        expect(page.get_by_label("Memory of each GPU")).to_have_value("1GB")
        page.reload()
        expect(page.get_by_label("Memory of each GPU")).to_have_value("1GB")
        page.get_by_role("button", name="Submit", exact=True).click()
        expect(page.get_by_role("heading", name=name)).to_be_visible()
    assert demo.client.get(f"/api/v1/jobs/{name}").json()["spec"]["resources"]["gpu_memory"] == "1GB"


def test_a_draft_survives_a_slow_browser(look: Look) -> None:
    """Fields are disabled until the stored draft is loaded, however late."""
    name = named("slow")
    with look("user") as looker:
        page = looker.open("/submit")
        page.get_by_label("Name").fill(name)
        page.wait_for_function(f"Object.values(sessionStorage).some(each => each.includes('{name}'))")
        page.add_init_script(SLOW_TO_TELL)
        page.reload()
        expect(page.get_by_label("Name")).to_be_disabled()
        expect(page.get_by_label("Name")).to_have_value(name)
        expect(page.get_by_label("Name")).to_be_enabled()


def test_a_job_like_another_can_be_written_as_yaml_after_a_reload(look: Look, demo: Running) -> None:
    """Its address names the job and the view; the editor accepts input, the form follows, a reload keeps it."""
    job, name = demo.submit(name=named("like"), resources={"gpus": 0}, run=SERVES), named("typed-after")
    demo.await_state(job, "running")
    with look("user") as looker:
        page = looker.open(f"/submit?from={job}")
        page.get_by_role("button", name="YAML").click()
        expect(page).to_have_url(re.compile(f"from={job}&as=yaml$"))
        page.reload()
        looker.settled(page)
        expect(page.locator(".cm-content")).to_have_attribute("contenteditable", "true")
        write(page, f"name: {name}\nresources: {{gpus: 1}}\n")
        expect(page.locator(".submit-trial .chosen")).to_have_count(1)
        page.get_by_role("button", name="Form").click()
        expect(page.get_by_label("Name")).to_be_editable()
        expect(page.get_by_label("Name")).to_have_value(name)
        expect(page).to_have_url(re.compile("/submit$"))  # the draft is stored
        page.reload()
        expect(page.get_by_label("Name")).to_have_value(name)
        expect(page.get_by_text("Your unsent draft.")).to_be_visible()
        page.get_by_role("button", name="Clear").click()
        expect(page.get_by_label("Name")).to_have_value("")
        expect(page.locator(".submit-trial .chosen")).to_have_count(0)
        page.reload()
        expect(page.get_by_label("Name")).to_have_value("")
    demo.client.delete(f"/api/v1/jobs/{job}")


def test_what_json_does_not_hold_is_refused_as_the_api_says_it(look: Look) -> None:
    """Invalid JSON is rejected with the API's message, also without a name; earlier candidates disappear."""
    with look("user") as looker:
        page = looker.open("/submit?as=yaml")
        expect(page.locator(".submit-trial")).to_contain_text("Fill in the form")
        write(page, "labels: {2024-01-01: x}")
        expect(page.get_by_role("alert").filter(has_text="cannot be written as JSON")).to_be_visible()
        expect(page.locator(".submit-trial .chosen")).to_have_count(0)
        write(page, "resources: {gpus: 1}")
        expect(page.locator(".submit-trial .chosen")).to_have_count(1)
        page.get_by_role("button", name="Form").click()
        page.get_by_label("Priority").fill("9" * 5000)
        expect(page.get_by_text("must be a whole number")).to_be_visible()
        page.get_by_label("Priority").fill("1")
        expect(page.locator(".submit-trial .chosen")).to_have_count(1)


def test_on_a_phone_the_verdict_stands_beside_the_button(look: Look) -> None:
    """The verdict and its reason are visible without scrolling past the form; on a desktop they are beside it."""
    with look("user", size=NARROW) as looker:
        page = looker.open("/submit")
        verdict = page.locator(".submit-foot .fragment-job-verdict")
        expect(verdict).to_contain_text("Fill in the form")
        page.get_by_label("GPUs", exact=True).fill("1")
        expect(verdict).to_contain_text("nodes fit")
        button = page.get_by_role("button", name="Submit", exact=True)
        button.scroll_into_view_if_needed()
        expect(verdict).to_be_in_viewport()
        page.get_by_label("GPUs", exact=True).fill("16")
        expect(verdict).to_contain_text("0 of 29 nodes fit")
        keep_screen(page, "submit-verdict-390")
    with look("user", size=WIDE) as looker:
        page = looker.open("/submit")
        page.get_by_label("GPUs", exact=True).fill("1")
        expect(page.locator(".submit-trial .verdict")).to_be_visible()
        expect(page.locator(".submit-foot .fragment-job-verdict")).to_be_hidden()


def test_the_list_is_narrowed_by_the_server_and_its_address_says_how(look: Look, demo: Running) -> None:
    """Text and states filter; the address has them, so that a reload shows the same."""
    name = named("listed")
    job = demo.submit(name=name, run=SERVES)
    demo.await_state(job, "running")
    with look("viewer") as looker:
        page = looker.open("/jobs")
        page.get_by_label("Name").fill(name)
        expect(page).to_have_url(re.compile(f"name={name}"))
        expect(page.locator(".jobs-rows tbody tr")).to_have_count(1)
        page.get_by_role("button", name=re.compile("^running")).click()
        expect(page).to_have_url(re.compile("state=running"))
        page.reload()
        looker.settled(page)
        expect(page.get_by_label("Name")).to_have_value(name)
        expect(page.get_by_role("button", name=re.compile("^running"))).to_have_attribute("aria-pressed", "true")
        demo.client.post(f"/api/v1/jobs/{job}/cancel")
        expect(page.get_by_text("No jobs match.")).to_be_visible()


def test_what_only_an_address_requests_for_can_be_taken_off(look: Look, demo: Running) -> None:
    """A label and a submitter are shown beside the states; an address of a missing page starts over."""
    name = named("labelled")
    job = demo.submit(name=name, resources={"gpus": 0}, labels={"team": name})
    demo.submit(name=f"{name}-other", resources={"gpus": 0})
    with look("viewer") as looker:
        page = looker.open(f"/jobs?name={name}&label=team%3D{name}&submitted_by=eve&after=gone")
        expect(page.get_by_text("No jobs match.")).to_be_visible()
        page.get_by_role("button", name="submitted by eve").click()
        expect(page.locator(".jobs-rows tbody tr")).to_have_count(1)
        expect(page.locator(".jobs-rows")).to_contain_text(job)
        page.get_by_role("button", name=f"label team={name}").click()
        expect(page.locator(".jobs-rows tbody tr")).to_have_count(2)
        expect(page).to_have_url(re.compile(rf"/jobs\?name={name}$"))


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_several_jobs_are_sorted_selected_and_changed(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Sorting, columns and filters are part of the address; an action on several jobs is confirmed once."""
    name = named("several")
    jobs = [demo.submit(name=f"{name}-{at}", resources={"gpus": 0}, run=SERVES) for at in "bca"]
    said = {
        "en": ("Job", "Select all jobs of this page", "Suspend", "Priority", "Change"),
        "zh": ("作业", "选择本页所有作业", "挂起", "优先级", "修改"),
    }[language]
    with look("user", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/jobs?name={name}&columns=labels,started,duration,gpu_hours,cost")
        rows = page.locator(".jobs-rows tbody tr")
        expect(rows).to_have_count(3)
        page.locator("thead").get_by_role("button", name=said[0], exact=True).click()
        expect(page).to_have_url(re.compile(r"sort=name"))
        expect(rows.first).to_contain_text(f"{name}-a")
        page.get_by_role("checkbox", name=said[1]).click()
        expect(page.locator(".bulk")).to_be_visible()
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        keep_screen(page, f"jobs-selected-{theme}-{language}-{size[0]}")
        page.locator(".bulk").get_by_role("button", name=said[3]).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("textbox").fill("7")
        dialog.get_by_role("button", name=said[4]).click()
        expect(dialog).to_have_count(0)
        for job in jobs:
            assert demo.client.get(f"/api/v1/jobs/{job}").json()["priority"] == 7
        page.get_by_role("checkbox", name=said[1]).click()
        page.locator(".bulk").get_by_role("button", name=said[2]).click()
        page.get_by_role("dialog").get_by_role("button", name=said[2]).click()
        for job in jobs:
            demo.await_state(job, "suspended")
    for job in jobs:
        demo.client.delete(f"/api/v1/jobs/{job}")


def test_filters_are_saved_and_lists_exported(look: Look, demo: Running) -> None:
    """A saved filter brings back the order and columns; the file has all jobs that match."""
    name = named("export")
    jobs = [demo.submit(name=f"{name}-{at}", resources={"gpus": 0}, labels={"part": name}) for at in range(3)]
    with look("user") as looker:
        page = looker.open(f"/jobs?name={name}&sort=-name&columns=labels")
        page.get_by_role("button", name="Save these filters").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("textbox", name="Name").fill(f"view of {name}")
        dialog.get_by_role("button", name="Save").click()
        expect(page.get_by_role("combobox", name="Saved filters")).to_be_visible()
        looker.go(page, "/jobs")
        page.get_by_role("combobox", name="Saved filters").click()
        page.get_by_role("option", name=f"view of {name}").click()
        expect(page).to_have_url(re.compile(rf"name={name}&sort=-name&columns=labels$"))
        expect(page.locator(".jobs-rows tbody tr").first).to_contain_text(f"{name}-2")
        looker.settled(page)
        with page.expect_download() as downloaded:
            page.get_by_role("button", name="Export CSV").click()
        lines = downloaded.value.path().read_text(encoding="utf-8").splitlines()
        assert [line.split(",")[0] for line in lines] == ["id", *jobs[::-1]]
        page.get_by_role("button", name="Delete this saved filter").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("button", name="Delete this saved filter")).to_have_count(0)
    for job in jobs:
        demo.client.delete(f"/api/v1/jobs/{job}")


def test_a_job_is_stopped_by_a_user_who_may_and_after_a_question(look: Look, demo: Running) -> None:
    """A user suspends a job with a reason, which shows immediately; a viewer has no actions."""
    job = demo.submit(name=named("stopped"), run=SERVES)
    demo.await_state(job, "running")
    with look("user") as looker:
        page = looker.open(f"/jobs/{job}")
        page.get_by_role("button", name="Suspend").click()
        page.get_by_label("Reason").fill("<b>maintenance</b>")
        page.get_by_role("dialog").get_by_role("button", name="Suspend").click()
        expect(page.locator(".job-title .state")).to_have_text("suspended")
        expect(page.locator(".job-reason")).to_have_text("<b>maintenance</b>")
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
    with look("viewer") as looker:
        page = looker.open(f"/jobs/{job}")
        expect(page.locator(".job-title .state")).to_have_text("suspended")
        expect(page.get_by_role("button", name="Resume")).to_have_count(0)
    demo.client.delete(f"/api/v1/jobs/{job}")


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_a_change_that_admits_a_job_is_applied_with_a_button(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """After a question, a user applies a change that the explanation offers, and the job starts. Viewers see it."""
    holder = demo.submit(name=named("holder"), replicas=3, resources={"gpus": 8}, run=SERVES)
    demo.await_state(holder, "running")
    job = demo.submit(name=named("too-many"), replicas=3, resources={"gpus": 8}, run=SERVES)
    demo.await_state(job, "queued")
    with look("viewer") as looker:
        page = looker.open(f"/jobs/{job}?tab=why")
        expect(page.locator(".remedies code", has_text="replicas")).to_be_visible()
        expect(page.locator(".remedies button")).to_have_count(0)
    with look("user", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/jobs/{job}?tab=why")
        apply = "Apply" if language == "en" else "采用"
        fewer = page.locator(".remedies li").filter(has=page.locator("code", has_text="replicas"))
        fewer.get_by_role("button", name=apply).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("replicas")
        keep_screen(page, f"job-remedy-{theme}-{language}-{size[0]}")
        assert hindrances(page) == []
        dialog.get_by_role("button", name=apply).click()
        demo.await_state(job, "running")
        expect(page.locator(".job-title .state-running")).to_be_visible()
    for each in (job, holder):
        demo.client.post(f"/api/v1/jobs/{each}/cancel")


def test_a_job_that_is_deleted_says_so_and_can_be_submitted_again(look: Look, demo: Running) -> None:
    """Its state, tabs and actions disappear but for submitting a similar job; the page sends no more requests."""
    name = named("deleted")
    job = demo.submit(name=name, run=SERVES)
    demo.await_state(job, "running")
    with look("user") as looker:
        page = looker.open(f"/jobs/{job}")
        expect(page.locator(".places a").first).to_be_visible()
        demo.client.delete(f"/api/v1/jobs/{job}")
        expect(page.locator(".job-reason")).to_have_text("This job was deleted.")
        expect(page.locator(".job-title .state")).to_have_count(0)
        expect(page.locator(".trouble")).to_be_hidden()
        expect(page.locator(".job-panels")).to_be_hidden()
        expect(page.get_by_role("group", name="Actions").get_by_role("button")).to_have_count(1)
        keep_screen(page, "job-deleted")
        page.get_by_role("button", name="Clone").click()
        expect(page).to_have_url(re.compile("/submit$"))
        expect(page.get_by_label("Name")).to_have_value(name)


def test_another_user_s_change_of_priority_is_reported_before_it_is_undone(look: Look, demo: Running) -> None:
    """The dialog compares with the priority at its opening; a user who knows of the new one may continue."""
    job = demo.submit(name=named("raised"), run=SERVES)
    demo.await_state(job, "running")
    with look("user") as looker:
        page = looker.open(f"/jobs/{job}")
        page.get_by_role("button", name="Change priority").click()
        asked = page.get_by_role("dialog")
        merge = {"content-type": "application/merge-patch+json"}
        assert demo.client.patch(f"/api/v1/jobs/{job}", headers=merge, json={"priority": 7}).is_success
        expect(page.locator(".facts")).to_contain_text("7")
        asked.get_by_label("Priority").fill("3")
        asked.get_by_role("button", name="Change").click()
        expect(asked.get_by_role("alert")).to_contain_text("changed from 0 to 7")
        assert demo.client.get(f"/api/v1/jobs/{job}").json()["priority"] == 7
        asked.get_by_role("button", name="Change").click()
        expect(asked).to_have_count(0)
        assert demo.client.get(f"/api/v1/jobs/{job}").json()["priority"] == 3
    demo.client.delete(f"/api/v1/jobs/{job}")


def test_a_failed_job_opens_with_its_failure(look: Look, demo: Running) -> None:
    """A page that is open shows the failure when it happens, and a page that is opened later shows it first."""
    job = demo.submit(name=named("fails"), resources={"gpus": 0}, run=SERVES, time_limit="6s", retries=0)
    with look("viewer") as looker:
        page = looker.open(f"/jobs/{job}")
        failure = page.locator(".fragment-job-failure")
        expect(failure).to_be_hidden()
        demo.await_state(job, "failed")
        expect(failure).to_contain_text("Its log is not available.")  # its cluster removed it at the limit
        page.reload()
        expect(failure).to_be_visible()
        first, second = failure.bounding_box(), page.locator(".fragment-job-timeline").bounding_box()
        assert first
        assert second
        assert first["y"] < second["y"]
        assert hindrances(page) == []
    demo.client.delete(f"/api/v1/jobs/{job}")


LOADED = """() => performance.getEntriesByType("resource").map(each => each.name.split("/").at(-1))"""


def test_a_job_page_loads_charts_the_editor_and_the_terminal_when_they_are_shown(look: Look, demo: Running) -> None:
    """The first view of a job is small. What draws a tab comes with the tab, and charts with the first figures."""
    job = demo.submit(name=named("small"), resources={"gpus": 0}, run=SERVES)
    demo.await_state(job, "running")
    with look() as looker:
        page = looker.open(f"/jobs/{job}")
        expect(page.locator(".places tbody tr")).to_have_count(1)
        page.wait_for_load_state("networkidle")
        assert {"echart.js", "codemirror.js", "xterm.js"}.isdisjoint(page.evaluate(LOADED))
        page.get_by_role("tab", name="Manifests").click()
        expect(page.locator(".manifest")).to_contain_text("apiVersion")
        assert "codemirror.js" in page.evaluate(LOADED)
        page.get_by_role("tab", name="Terminal").click()
        expect(page.locator(".job-terminal .xterm")).to_be_visible()
    demo.client.delete(f"/api/v1/jobs/{job}")


def test_what_is_looked_at_of_a_job_is_stored_in_its_address(look: Look, demo: Running) -> None:
    """A tab and a replica are in the address; the log continues by itself."""
    job = demo.submit(name=named("kept"), replicas=2, run=SERVES)
    demo.await_state(job, "running")
    with look("viewer") as looker:
        page = looker.open(f"/jobs/{job}")
        page.get_by_role("tab", name="Logs").click()
        page.get_by_label("Replica", exact=True).fill("1")
        expect(page).to_have_url(re.compile("tab=logs&replica=1|replica=1&tab=logs"))
        expect(page.get_by_role("log")).to_contain_text("replica 1")
        page.reload()
        expect(page.get_by_role("log")).to_contain_text("replica 1")
        for tab, said in (("Events", "runs on"), ("Explanation", "By cluster"), ("Manifests", "apiVersion")):
            page.get_by_role("tab", name=tab).click()
            expect(page.locator(".q-tab-panel").filter(has_text=said)).to_be_visible()
    demo.client.delete(f"/api/v1/jobs/{job}")


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_pages_of_jobs_can_be_read_by_everybody(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """In both themes, languages and widths: nothing is hidden sideways, and labels and contrast are good enough."""
    job = demo.submit(name="a-name-of-sixty-three-letters-that-goes-on-and-on-and-on-an", run=SERVES, replicas=2)
    demo.await_state(job, "running")
    with look(theme=theme, language=language, size=size) as looker:
        for path, seen in (
            (f"/submit?from={job}", ".chosen"),
            ("/jobs", ".jobs-rows a"),
            (f"/jobs/{job}", ".places a"),
        ):
            page = looker.open(path)
            expect(page.locator(seen).first).to_be_visible()
            part = path.split("/")[1].partition("?")[0]
            keep_screen(page, f"{part}{'-one' if path.endswith(f'/{job}') else ''}-{theme}-{language}-{size[0]}")
            assert hidden_sideways(page) == []
            assert hindrances(page) == []
    demo.client.delete(f"/api/v1/jobs/{job}")


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_the_measured_use_of_a_job_is_a_chart(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """It is the share of what the job has reserved, with the use on each node. A job without GPUs has none."""
    request = {"gpus": 2, "gpu_memory": "8GB", "gpu_cores": "30%"}
    job = demo.submit(name=named("measured"), resources=request, run=SERVES)
    other = demo.submit(name=named("unmeasured"), resources={"gpus": 0}, run=SERVES)
    for each in (job, other):
        demo.await_state(each, "running")
    with look("viewer", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/jobs/{job}")
        expect(page.locator(".job-use-chart svg")).to_be_visible()
        nodes = page.locator(".fragment-job-use tbody tr")
        expect(nodes).to_have_count(1)
        expect(nodes).to_contain_text("30 %")
        nodes.locator("summary").click()
        expect(nodes.locator("details .slice")).to_have_count(2)
        page.locator(".job-use .q-btn-toggle button").nth(2).click()
        page.wait_for_url("**use=week*")
        expect(page.locator(".job-use-chart svg")).to_be_visible()
        page.reload()
        expect(page.locator(".job-use .q-btn-toggle [aria-pressed=true]")).to_have_text(
            "Week" if language == "en" else "周"
        )
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        keep_screen(page, f"job-use-{theme}-{language}-{size[0]}")
        looker.go(page, f"/jobs/{other}")
        expect(page.locator(".fragment-job-places")).to_be_visible()
        expect(page.locator(".job-use")).to_be_hidden()
    for each in (job, other):
        demo.client.delete(f"/api/v1/jobs/{each}")


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_a_service_is_switched_to_its_standby(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Its page shows the standby with its addresses, and after the switch it leads to the active copy."""
    english, name = language == "en", named("served")
    job = demo.submit(name=name, template="deployment", run={**SERVES, "ports": [80]}, standby={"clusters": 1})
    demo.await_state(job, "running")
    with look("user", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/jobs/{job}")
        facts = page.locator(".facts")
        expect(facts).to_contain_text(re.compile("warm · running" if english else "热备 · 运行中"))
        expect(page.locator(".addresses")).to_contain_text("(standby)" if english else "(备用)")
        keep_screen(page, f"standby-{theme}-{language}-{size[0]}")
        switch = "Switch to standby" if english else "切换到备用副本"
        page.get_by_role("button", name=switch).click()
        page.get_by_role("dialog").get_by_role("button", name=switch).click()
        expect(facts).to_contain_text("This is the standby." if english else "这是备用副本。")
        keep_screen(page, f"standby-switched-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.get_by_role("link", name="Active copy" if english else "活动副本").click()
        expect(page.locator("h1")).to_have_text(name)
        page.get_by_role("tab", name="Events" if english else "事件").click()
        said = "is active instead of" if english else "成为活动副本"
        expect(page.locator(".events").get_by_text(said)).to_be_visible()
    demo.client.delete(f"/api/v1/jobs/{job}")


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh")])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_nodes_and_the_price_of_all_replicas_are_shown(
    look: Look, theme: str, language: str, size: tuple[int, int]
) -> None:
    """A bound on the price and labels of clusters are fields, and an invalid price is reported at its field."""
    english = language == "en"
    with look("user", theme=theme, language=language, size=size) as looker:
        page = looker.open("/submit")
        page.get_by_label("Name" if english else "名称", exact=True).fill(named("gang"))
        page.get_by_label("Replicas" if english else "副本数", exact=True).fill("12")
        page.get_by_label("GPUs" if english else "GPU 数", exact=True).fill("1")
        page.get_by_label("Memory of each GPU" if english else "每块 GPU 的显存").fill("100%")
        trial = page.locator(".submit-trial")
        total = "^All replicas: [0-9.]+ USD per hour in total" if english else "^所有副本: .*[0-9.]+"
        expect(trial.get_by_role("table", name=re.compile(total))).to_be_visible()
        keep_screen(page, f"submit-gang-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.get_by_role("button", name="Placement and time limits" if english else "位置与时限").click()
        price = page.get_by_label("Maximum price of a GPU hour" if english else "每 GPU 小时最高价格")
        price.fill("cheap")
        expect(page.get_by_role("alert").filter(has_text="cheap")).to_be_visible()
        price.fill("0.01")
        expect(trial.get_by_text(re.compile("price above the maximum|价格超过上限"))).to_be_visible()
        price.fill("")
        page.get_by_label("Labels of the cluster" if english else "集群标签").fill("tier=none")
        expect(trial.get_by_text(re.compile("label of the cluster missing|集群缺少标签"))).to_be_visible()


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_bounds_triggers_and_windows_of_an_elastic_job_are_fields(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Errors are at their fields, and the job has what was typed."""
    english, name = language == "en", named("elastic")

    def label(text: str, chinese: str) -> Locator:
        return page.get_by_label(text if english else chinese, exact=True)

    def choose(field: Locator, option: str) -> None:
        field.click()
        page.get_by_role("option", name=option, exact=True).click()
        expect(page.get_by_role("listbox")).to_have_count(0)

    def error(field: Locator, text: str) -> None:
        expect(page.locator(".q-field").filter(has=field).get_by_role("alert")).to_contain_text(text)

    with look("user", theme=theme, language=language, size=size) as looker:
        page = looker.open("/submit")
        label("Name", "名称").fill(name)
        choose(label("Template", "模板"), "deployment")
        label("Image", "镜像").fill("server:1")
        page.get_by_role("button", name="Elastic replicas" if english else "弹性副本").click()
        least, most = label("Minimum", "最少"), label("Maximum", "最多")
        least.fill("1")
        error(most, "is missing" if english else "缺少此项")
        most.fill("4")
        expect(label("Replicas", "副本数")).to_have_value("1-4")
        choose(label("Scaled by", "伸缩依据"), "queue_depth")
        target, start = label("Target", "目标值"), label("Time window begins", "时间窗口开始")
        target.fill("many")
        error(target, "'many' is not valid" if english else "'many' 无效")
        target.fill("5")
        start.fill("daily")
        error(start, "is not a cron expression" if english else "不是会到期的 cron 表达式")
        start.fill("0 8 * * 1-5")
        label("Time window ends", "时间窗口结束").fill("0 18 * * 1-5")
        label("Time zone", "时区").fill("Europe/Berlin")
        label("Replicas in the time window", "时间窗口内的副本数").fill("9")
        error(
            label("Replicas in the time window", "时间窗口内的副本数"),
            "the job has at most 4" if english else "作业最多有 4 个",
        )
        label("Replicas in the time window", "时间窗口内的副本数").fill("2")
        expect(page.locator(".submit-trial .chosen")).to_have_count(1)
        keep_screen(page, f"submit-elastic-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        page.get_by_role("button", name="Submit" if english else "提交作业", exact=True).click()
        expect(page.locator("h1")).to_have_text(name)
    spec = demo.client.get(f"/api/v1/jobs/{name}").json()["spec"]
    window = {"start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "timezone": "Europe/Berlin", "replicas": 2}
    assert spec["scale"] == [{"metric": "queue_depth", "target": 5}, window]
    assert (spec["replicas"]["min"], spec["replicas"]["max"]) == (1, 4)
    demo.client.delete(f"/api/v1/jobs/{name}")
