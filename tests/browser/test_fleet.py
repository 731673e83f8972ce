"""The pages of the fleet and its nodes."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen
from tests.integration.running import Running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def job(demo: Running) -> str:
    """Submit a job with a part of two cards; return its place as ``cluster/node``."""
    made = demo.submit(
        name="fleet-holder",
        resources={"cpu": 1, "memory": "1Gi", "gpus": 2, "gpu_memory": "2Gi", "gpu_cores": "20%"},
        run={"image": "ubuntu", "command": ["sleep", "inf"]},
    )
    demo.await_state(made, "running")
    slices = demo.client.get("/api/v1/fleet/slices", params={"limit": 1000}).json()["slices"]
    held = next(each for each in slices if each["job_id"] == made)
    return f"{held['cluster']}/{held['node']}"


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_the_fleet_can_be_read_by_everybody(
    look: Look, job: str, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Nodes, containers and one node: nothing is hidden sideways, and labels and contrast are good enough."""
    name = job.split("/")[1]
    with look(theme=theme, language=language, size=size) as looker:
        for path in (f"/fleet?name={name}", "/fleet?view=slices", f"/fleet/{job}"):
            page = looker.open(path)
            expect(page.locator(".cut").first).to_be_visible()
            keep_screen(page, f"{path}-{theme}-{language}-{size[0]}")
            assert hidden_sideways(page) == []
            assert hindrances(page) == []


def test_the_map_shows_all_nodes_and_opens_one(look: Look) -> None:
    """Without filters the page is a map; keys and the pointer name a node with its use, and Enter opens it."""
    with look("viewer", size=NARROW) as looker:
        page = looker.open("/fleet")
        first = page.locator(".heat").first
        expect(page.locator(".heat")).to_have_count(3)
        assert hindrances(page) == []
        first.locator("canvas").focus()
        page.keyboard.press("ArrowRight")
        expect(first.get_by_role("status")).to_contain_text("-n1")
        first.locator("canvas").hover(position={"x": 5, "y": 5})
        expect(first.get_by_role("status")).to_contain_text(re.compile(r"-n0\n.*\n\d+ % allocated"))
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"/fleet/cluster-\d/.*-n0$"))


def test_what_is_looked_for_is_counted_and_survives_a_reload(look: Look, job: str) -> None:
    """Filters are in the address; totals count matches only; a bad number is reported at its field."""
    name = job.split("/")[1]
    with look("viewer") as looker:
        page = looker.open("/fleet?view=nodes")
        page.get_by_label("Node", exact=True).fill(name)
        expect(page.locator(".node-name")).to_have_text([name])
        page.get_by_label("Free memory ≥ GiB").fill("100000")
        expect(page.get_by_text("Nothing matches.")).to_be_visible()
        expect(page).to_have_url(re.compile(f"name={name}&memory=100000"))
        page.reload()
        expect(page.get_by_label("Free memory ≥ GiB")).to_have_value("100000")
        page.get_by_role("button", name="Clear the filters").click()
        expect(page.locator(".node-name")).to_have_count(12)
        page.get_by_role("button", name="Next").click()
        expect(page.get_by_text("13 to 24 of 29")).to_be_visible()
        page.get_by_label("Free cores ≥ %").fill("many")
        expect(page.get_by_text("a number ≥ 0")).to_be_visible()


def test_one_gets_back_to_what_was_looked_at_before(look: Look) -> None:
    """Another list and a selected cluster are steps in the browser's history; typed text is not."""
    with look("viewer") as looker:
        page = looker.open("/fleet")
        page.get_by_role("button", name="Cards", exact=True).click()
        expect(page).to_have_url(re.compile(r"/fleet\?view=cards$"))
        page.locator(".strip-one").first.click()
        expect(page.locator(".strip-here")).to_have_count(1)
        expect(page).to_have_url(re.compile("cluster="))
        page.go_back()
        expect(page).to_have_url(re.compile(r"/fleet\?view=cards$"))
        expect(page.locator(".strip-here")).to_have_count(0)
        looker.settled(page)
        page.go_back()
        expect(page).to_have_url(re.compile("/fleet$"))
        expect(page.locator(".heat").first).to_be_visible()
        page.go_forward()
        expect(page.locator(".fragment-fleet-cards")).to_be_visible()


def test_operators_drain_a_node_with_a_reason_and_others_may_not(look: Look) -> None:
    """A cordon requires a reason, shows immediately and can be undone; a viewer has no buttons."""
    path = "/fleet/cluster-3/cluster-3-n0"
    with look("operator") as looker:
        page = looker.open(path)
        page.get_by_role("button", name="Cordon").click()
        page.get_by_label("Reason").fill("<b>fans</b>")
        page.keyboard.press("Enter")
        expect(page.locator(".closing q")).to_have_text("<b>fans</b>")
        with look("viewer") as other:
            seen = other.open(path)
            expect(seen.locator(".closing")).to_contain_text("gets no new jobs")
            expect(seen.get_by_role("button", name="Uncordon")).to_have_count(0)
        page.get_by_role("button", name="Uncordon").click()
        page.get_by_role("dialog").get_by_role("button", name="Uncordon").click()
        expect(page.locator(".closing")).to_contain_text("schedulable")


@pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])
def test_a_drain_shows_its_impact_and_can_be_undone(
    look: Look, demo: Running, theme: str, language: str, size: tuple[int, int]
) -> None:
    """The dialog names the jobs that move or wait; the page counts those that have not left, until none is left."""
    name = f"drained-{uuid4().hex[:8]}"
    run = {"image": "ubuntu", "command": ["sleep", "inf"]}
    job = demo.submit(name=name, resources={"gpus": 1}, placement={"clusters": ["cluster-3"]}, run=run)
    demo.await_state(job, "running")
    node = demo.client.get(f"/api/v1/jobs/{job}").json()["nodes"][0]
    drain, reason, uncordon, left = {
        "en": ("Drain", "Reason", "Uncordon", "No job is left."),
        "zh": ("排空", "原因", "恢复", "已没有作业。"),
    }[language]
    with look("operator", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/fleet/cluster-3/{node}")
        page.get_by_role("button", name=drain, exact=True).click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator(".impact-rows")).to_contain_text(name)
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        keep_screen(page, f"drain-impact-{theme}-{language}-{size[0]}")
        dialog.get_by_label(reason).fill("fans")
        dialog.get_by_role("button", name=drain, exact=True).click()
        expect(page.locator(".closing")).to_contain_text(left, timeout=60_000)
        page.get_by_role("button", name=uncordon).click()
        page.get_by_role("dialog").get_by_role("button", name=uncordon).click()
        expect(page.get_by_role("button", name=uncordon)).to_have_count(0)
    demo.client.delete(f"/api/v1/jobs/{job}")


def test_a_node_that_is_not_there_says_so(look: Look) -> None:
    """The page of an unknown node shows a message instead of an empty page."""
    with look() as looker:
        page = looker.open("/fleet/cluster-1/no-such-node")
        expect(page.get_by_role("alert")).to_contain_text("Node no-such-node not found in cluster-1.")
        looker.wrong.clear()  # the browser reports the status as an error
