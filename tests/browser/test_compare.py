"""Comparisons of jobs and attempts, the topology of replicas, and costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Look
from tests.browser.looking import NARROW, WIDE, hidden_sideways, hindrances, keep_screen, spilled
from tests.integration.running import Running

pytestmark = pytest.mark.slow

SERVES = {"image": "ubuntu", "command": ["sleep", "inf"]}
WHOLE = {"cpu": 1, "memory": "1Gi", "gpu_memory": "100%"}
VIEWS = pytest.mark.parametrize(("theme", "language", "size"), [("light", "en", WIDE), ("dark", "zh", NARROW)])


@pytest.fixture
def name(demo: Running) -> Iterator[str]:
    """Return a unique part of the names of jobs, which are deleted at the end."""
    part = f"side-{uuid4().hex[:8]}"
    yield part
    for job in demo.client.get("/api/v1/jobs", params={"name": part}).json()["jobs"]:
        demo.client.delete(f"/api/v1/jobs/{job['id']}")


@VIEWS
def test_two_selected_jobs_are_compared(
    look: Look, demo: Running, name: str, theme: str, language: str, size: tuple[int, int]
) -> None:
    """The page shows only fields of the specs that differ, and marks rows whose values differ."""
    small = demo.submit(name=f"{name}-a", resources={**WHOLE, "gpus": 1}, run=SERVES, priority=1)
    large = demo.submit(name=f"{name}-b", resources={**WHOLE, "gpus": 2}, run=SERVES, priority=3)
    for job in (small, large):
        demo.await_state(job, "running")
    with look("user", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/jobs?name={name}&sort=name")
        for job in ("a", "b"):
            page.get_by_role("checkbox", name=re.compile(f"{name}-{job}$")).click()
        page.locator(".bulk").get_by_role("button", name="Compare" if language == "en" else "比较").click()
        expect(page).to_have_url(re.compile(f"/compare.*{small}.*{large}"))
        table = page.locator(".compare")
        expect(table.get_by_role("columnheader").get_by_role("link")).to_have_text([f"{name}-a", f"{name}-b"])
        for row, values in (("resources.gpus", ["1", "2"]), ("priority", ["1", "3"])):
            cells = table.locator("tr.differs", has=page.get_by_role("rowheader", name=row, exact=True)).locator("td")
            expect(cells).to_have_text([re.compile(rf"^{value}\b") for value in values])
        expect(table.get_by_role("rowheader", name="resources.cpu", exact=True)).to_have_count(0)
        policy = page.get_by_role("rowheader", name="Policy" if language == "en" else "策略", exact=True)
        expect(table.locator("tr:not(.differs)", has=policy)).to_have_count(1)
        assert hidden_sideways(page) + spilled(page) == []
        assert hindrances(page) == []
        keep_screen(page, f"compare-{theme}-{language}-{size[0]}")


def test_two_attempts_of_a_job_are_compared(look: Look, demo: Running, name: str) -> None:
    """An earlier attempt leads to its comparison with the latest one, also of their specifications.

    A missing attempt is reported.
    """
    job = demo.submit(name=name, resources={**WHOLE, "gpus": 1}, run=SERVES)
    for step, state in (("", "running"), ("suspend", "suspended"), ("resume", "running")):
        if step == "resume":
            demo.client.patch(f"/api/v1/jobs/{job}", json={"resources": {**WHOLE, "gpus": 2}}).raise_for_status()
        if step:
            demo.client.post(f"/api/v1/jobs/{job}/{step}").raise_for_status()
        demo.await_state(job, state)
    with look("viewer") as looker:
        page = looker.open(f"/jobs/{job}")
        page.get_by_role("link", name="Compare with attempt 2").click()
        table = page.locator(".compare")
        expect(table.get_by_role("columnheader")).to_contain_text(["attempt 1", "attempt 2"])
        for row in ("resources.gpus", "Placed", "Result"):
            expect(table.locator("tr.differs", has=page.get_by_role("rowheader", name=row))).to_have_count(1)
        looker.go(page, f"/compare?jobs={job}&attempts=1,9")
        expect(page.get_by_role("alert")).to_contain_text("has no attempt 9")
        looker.go(page, f"/compare?jobs={job}")
        expect(page.get_by_role("alert")).to_contain_text("Choose two jobs")
        assert [each for each in looker.wrong if not re.search("40[049]|422", each)] == []
        looker.wrong.clear()  # browsers log every rejection to their console


@VIEWS
def test_the_topology_has_each_replica_once(
    look: Look, demo: Running, name: str, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Nodes are links below their cluster, with a box for each GPU that has the numbers of its replicas."""
    job = demo.submit(name=name, replicas=6, resources={**WHOLE, "gpus": 2, "gpu_model": "NVIDIA L40S"}, run=SERVES)
    demo.await_state(job, "running")
    (attempt,) = demo.client.get(f"/api/v1/jobs/{job}/attempts").json()["attempts"]
    nodes = {each["node"] for each in attempt["placements"]}
    with look("viewer", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/jobs/{job}")
        drawn = page.locator(".topology-node")
        expect(drawn).to_have_count(len(nodes))
        for node in drawn.all():
            shown = node.get_by_role("link").inner_text()
            held = {
                taken["uuid"]: str(each["replica"])
                for each in attempt["placements"]
                if each["node"] == shown
                for taken in each["slices"]
            }
            boxes = node.locator(".topology-device").all()
            assert {box.get_attribute("title"): box.inner_text() for box in boxes} == held
        assert hidden_sideways(page) + spilled(page) == []
        keep_screen(page, f"topology-{theme}-{language}-{size[0]}")
        drawn.first.get_by_role("link").click()
        expect(page).to_have_url(re.compile("/fleet/cluster-2/cluster-2-n[0-9]+$"))


@VIEWS
def test_jobs_are_sorted_by_cost_and_by_gpu_hours(
    look: Look, demo: Running, name: str, theme: str, language: str, size: tuple[int, int]
) -> None:
    """Dear GPUs come before many cheap ones by cost, and after them by GPU-hours. A job has its cost per hour."""
    cost, hours = ("Cost", "GPU-hours") if language == "en" else ("费用", "GPU 小时")
    dear = {**WHOLE, "gpus": 4, "gpu_model": "NVIDIA A100-SXM4-80GB"}
    cheap = {**WHOLE, "gpus": 8, "gpu_model": "NVIDIA V100-SXM2-32GB"}
    jobs = {each: demo.submit(name=f"{name}-{each}", resources=held, run=SERVES) for each, held in (
        ("free", {"gpus": 0}), ("dear", dear), ("cheap", cheap)
    )}  # fmt: skip
    for job in jobs.values():
        demo.await_state(job, "running")
    with look("viewer", theme=theme, language=language, size=size) as looker:
        page = looker.open(f"/jobs?name={name}&columns=gpu_hours,cost")
        rows = page.locator(".jobs-rows tbody tr")
        for column, order in (
            (cost, ["dear", "cheap", "free"]),
            (cost, ["free", "cheap", "dear"]),
            (hours, ["cheap", "dear", "free"]),
            (hours, ["free", "dear", "cheap"]),
        ):
            page.locator("thead").get_by_role("button", name=column, exact=True).click()
            expect(rows).to_contain_text([f"{name}-{each}" for each in order])
        expect(page).to_have_url(re.compile("sort=gpu_hours"))
        looker.go(page, f"/jobs/{jobs['dear']}")
        expect(page.locator(".facts")).to_contain_text("9.60")
        keep_screen(page, f"cost-{theme}-{language}-{size[0]}")
