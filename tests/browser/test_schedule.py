"""Running and planned jobs on a time axis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen
from tests.integration.running import Running

pytestmark = pytest.mark.slow

WHOLE = {"cpu": 1, "memory": "1Gi", "gpus": 1, "gpu_memory": "100%"}


@pytest.fixture
def planned(demo: Running) -> str:
    """Run a job in a queue of one GPU, let another wait for it, and return the queue."""
    made = demo.client.put("/api/v1/queues/one-by-one", json={"limit": {"gpus": 1}})
    assert made.is_success, made.text
    for state in ("running", "queued"):
        job = demo.submit(name=f"axis-{state}", queue="one-by-one", resources=WHOLE, expected_duration="30m")
        demo.await_state(job, state)
    return "one-by-one"


@pytest.fixture(autouse=True)
def no_jobs(demo: Running) -> None:
    """Cancel jobs of earlier tests."""
    listed = demo.client.get("/api/v1/jobs", params={"queue": "one-by-one", "limit": 100}).json()
    for job in listed.get("jobs", ()):  # an error before the first test creates the queue
        demo.client.post(f"/api/v1/jobs/{job['id']}/cancel")


@pytest.fixture
def reserved(demo: Running) -> Iterator[str]:
    """Reserve capacity in a later hour, plan maintenance of a cluster, and return the cluster's name."""
    cluster = "cluster-1"
    starts, ends = (f"{datetime.now(UTC) + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}" for hours in (1, 3))
    made: dict[str, dict[str, object]] = {
        "exam": {"tenant": "default", "gpus": 2},
        "repair": {"clusters": [cluster], "description": "new disks"},
    }
    for name, body in made.items():
        answer = demo.client.put(f"/api/v1/reservations/{name}", json={"starts": starts, "ends": ends, **body})
        assert answer.is_success, answer.text
    yield cluster
    for name in made:
        demo.client.delete(f"/api/v1/reservations/{name}")


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh")])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_reservations_are_bars_that_lead_to_their_rows(
    look: Look, reserved: str, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Maintenance is a bar of its cluster. A bar has a tooltip, can be read by everybody, and leads to its row."""
    with look("operator", theme=theme, language=language, size=size) as looker:
        page = looker.open("/schedule?range=6h")
        group = page.locator(".gantt-group", has=page.get_by_role("heading", name=reserved))
        bar = group.get_by_role("link", name=re.compile("^repair (maintenance|维护)"))
        expect(bar).to_have_attribute("title", re.compile(f"^repair: .*{reserved}.*UTC.*new disks$"))
        expect(page.get_by_role("link", name=re.compile("^exam (tenant default|租户 default)"))).to_be_visible()
        keep_screen(page, f"schedule-reserved-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        bar.focus()
        page.keyboard.press("Enter")
        expect(page.locator("tr:target")).to_contain_text("new disks")


@pytest.mark.parametrize(("theme", "language"), [("light", "en"), ("dark", "zh")])
@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_schedule_can_be_read_by_everybody(
    look: Look, planned: str, theme: str, language: str, size: tuple[int, int]
) -> None:
    """In both themes, languages and widths: nothing is hidden sideways, and labels and contrast are good enough."""
    with look("operator", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/schedule?by=queue&range=6h&queue={planned}")
        expect(page.get_by_role("link", name=re.compile("axis-queued (planned|计划中)"))).to_be_visible()
        keep_screen(page, f"schedule-{theme}-{language}-{size[0]}")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []


def test_bars_follow_each_other_and_lead_to_their_jobs(look: Look, planned: str, demo: Running) -> None:
    """A planned bar begins where the running one ends. It becomes a running one without a reload, and is a link."""
    with look("user") as looker:
        page = looker.open(f"/schedule?range=6h&queue={planned}")
        running, waiting = page.locator(".bar-running:not(.bar-key)"), page.locator(".bar-planned:not(.bar-key)")
        expect(waiting).to_have_count(1)
        now = page.locator(".gantt-now").bounding_box()
        first, second = running.bounding_box(), waiting.bounding_box()
        assert now
        assert first
        assert second
        assert first["x"] <= now["x"] + 3 < first["x"] + first["width"] <= second["x"] + 3
        assert abs(first["width"] - second["width"]) < 5
        (job,) = demo.client.get("/api/v1/jobs", params={"name": "axis-running", "state": "running"}).json()["jobs"]
        demo.client.post(f"/api/v1/jobs/{job['id']}/cancel")
        expect(waiting).to_have_count(0)
        bar = page.get_by_role("link", name=re.compile("^axis-queued running, queue one-by-one"))
        bar.focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/jobs/[a-z0-9]+$"))


def test_choices_stay_after_a_reload(look: Look, planned: str) -> None:
    """Grouping, range and filters are in the address; an unknown queue is reported."""
    with look("operator") as looker:
        page = looker.open("/schedule")
        page.get_by_role("button", name="Per queue").click()
        expect(page).to_have_url(re.compile("by=queue"))
        expect(page.get_by_role("heading", name=planned)).to_be_visible()
        page.get_by_role("button", name="1 hour").click()
        expect(page).to_have_url(re.compile("range=1h"))
        page.get_by_role("combobox", name="Tenant").click()
        page.get_by_role("option", name="default").click()
        expect(page).to_have_url(re.compile("tenant=default"))
        looker.go(page, page.url.removeprefix(looker.url))
        expect(page.get_by_role("heading", name=planned)).to_be_visible()
        expect(page.get_by_role("button", name="1 hour")).to_have_attribute("aria-pressed", "true")
        looker.go(page, "/schedule?queue=nowhere")
        expect(page.get_by_role("alert")).to_contain_text("'nowhere' not found")
        assert [each for each in looker.wrong if "404" not in each] == []


def test_operators_reserve_capacity_with_a_form(look: Look, demo: Running) -> None:
    """Times are local, and errors at their field. The reservation is listed, changed, and removed after a question."""
    begins, ends = "Begin (Asia/Shanghai)", "End (Asia/Shanghai)"
    with look("operator", size=WIDE, zone="Asia/Shanghai") as looker:
        page = looker.open("/schedule")
        page.get_by_role("button", name="New reservation").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("exam")
        dialog.get_by_label(ends).fill("soon")
        dialog.get_by_role("button", name="Save").click()
        expect(dialog.get_by_role("alert")).to_contain_text("soon")
        dialog.get_by_label(ends).fill("2000-01-01 00:00")
        dialog.get_by_label("Whole GPUs").fill("2")
        dialog.get_by_role("combobox", name="Tenant").click()
        page.get_by_role("option", name="default").click()
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).to_contain_text("must be after the start")
        dialog.get_by_label(ends).fill("2099-01-01 00:00")
        dialog.get_by_label(begins).fill("2098-12-31 00:00")
        keep_screen(page, "reservation-form")
        dialog.get_by_role("button", name="Save").click()
        row = page.get_by_role("row", name=re.compile("^exam"))
        expect(row).to_contain_text("tenant default")
        expect(row).to_contain_text("2 of 2")
        (stored,) = demo.client.get("/api/v1/reservations").json()["reservations"]
        assert (stored["starts"], stored["ends"]) == (
            "2098-12-30T16:00:00.000000Z",
            "2098-12-31T16:00:00.000000Z",
        )
        row.get_by_role("button", name="Change reservation exam").click()
        expect(dialog.get_by_label(begins)).to_have_value("2098-12-31 00:00")
        dialog.get_by_label("Description").fill("of the course")
        dialog.get_by_role("button", name="Save").click()
        expect(row).to_contain_text("of the course")
        keep_screen(page, "reservations")
        changes = looker.open("/").locator(".fragment-recent")
        expect(changes).to_contain_text("from 2098-12-31 00:00 to 2099-01-01 00:00")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        row.get_by_role("button", name="Remove reservation exam").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(row).to_have_count(0)
    assert demo.client.get("/api/v1/reservations").json() == {"reservations": []}
