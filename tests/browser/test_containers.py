"""Terminal and logs on the page of a job, in a cluster whose programs are processes of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.looking import NARROW, WIDE, Theme, hidden_sideways, hindrances, keep_screen, looking
from tests.conformance.test_kubernetes_backends import gpu_node
from tests.fakes.kubernetes import ApiServer
from tests.fakes.kubernetes.kinds import PODS
from tests.integration.running import Running, running

pytestmark = pytest.mark.slow


@dataclass
class Place:
    """A server with one cluster and a running job of two replicas, and tokens by role."""

    server: Running
    api: ApiServer
    job: str
    tokens: dict[str, str]

    @property
    def url(self) -> str:
        """Address of the server."""
        return str(self.server.client.base_url).rstrip("/")

    def write(self, text: str) -> None:
        """Write lines into the log of each replica."""
        for each in self.api.list(PODS, "seaway-default"):
            self.api.write_log("seaway-default", each["metadata"]["name"], text)

    def audited(self) -> list[str]:
        """Return the targets of the sessions in the audit log."""
        entries = self.server.client.get("/api/v1/audit", params={"limit": 1000}).json()["entries"]
        return [each["target"] for each in entries if each["verb"].endswith("exec_job")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run the job."""
    folder = tmp_path_factory.mktemp("terminal")
    clusters = folder / "clusters"
    clusters.mkdir()
    with ApiServer("alpha") as api:
        api.put(gpu_node("alpha-0", 2))
        api.kubeconfig(clusters / "alpha")
        (folder / "seaway.toml").write_text(
            f'[clusters]\nkubeconfig_dir = "{clusters}"\n[control]\ninitial_backoff_s = 0.1\n', encoding="utf-8"
        )
        (folder / "data").mkdir()
        with running(folder / "data", "--config", str(folder / "seaway.toml")) as server:
            job = server.submit(name="train", replicas=2, run={"image": "train:1", "command": ["sleep", "inf"]})
            server.await_state(job, "running")
            tokens = {}
            for role in ("viewer", "user"):
                body = {"name": role, "role": role, "tenant": "default"}
                tokens[role] = server.client.post("/api/v1/tokens", json=body).json()["secret"]
            yield Place(server, api, job, tokens)


def connect(page: Page, name: str = "Connect") -> None:
    """Begin a session, and wait for the prompt of its shell."""
    page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator(".job-terminal .xterm-rows")).to_contain_text(re.compile("[$#]"))


def type_line(page: Page, text: str) -> None:
    """Type a line into the terminal."""
    page.locator(".job-terminal textarea").focus()
    page.keyboard.type(f"{text}\n")


def test_a_shell_takes_keys_and_the_size_of_the_window(place: Place, browser: Browser) -> None:
    """Ctrl-C interrupts a command. The session ends with the shell, and begins again by a button."""
    with looking(browser, place.url, place.tokens["user"]) as looker:
        page = looker.open(f"/jobs/{place.job}?tab=terminal")
        expect(page.get_by_role("button", name="Disconnect")).to_have_count(0)
        connect(page)
        type_line(page, "echo $((6 * 7))-$(stty size | cut -d' ' -f2); sleep 1000")
        lines = page.locator(".job-terminal .xterm-rows")
        expect(lines).to_contain_text("42-1")
        page.keyboard.press("Control+c")
        page.set_viewport_size({"width": 700, "height": 800})
        type_line(page, "while [ $(stty size | cut -d' ' -f2) -gt 100 ]; do sleep 0.1; done; echo resi''zed; exit 3")
        expect(lines).to_contain_text("resized")
        expect(page.get_by_role("button", name="Connect", exact=True)).to_be_enabled()
        expect(page.get_by_text("The terminal is disconnected. Exit code: 3")).to_be_visible()
        connect(page)
        page.get_by_role("button", name="Disconnect").click()
        expect(page.get_by_role("button", name="Connect", exact=True)).to_be_enabled()
    assert any(each.startswith("exit code 3 after ") for each in place.audited())


def test_a_session_ends_with_its_page(place: Place, browser: Browser) -> None:
    """A replica is chosen before. Its session is in the audit log, and is over when the page is closed."""
    with looking(browser, place.url, place.tokens["user"]) as looker:
        page = looker.open(f"/jobs/{place.job}?tab=terminal")
        page.get_by_label("Replica", exact=True).fill("1")
        expect(page).to_have_url(f"{place.url}/jobs/{place.job}?tab=terminal&replica=1")
        connect(page)
        before = len(place.audited())
        page.close()
        other = looker.open(f"/jobs/{place.job}?tab=terminal")
        expect(other.get_by_role("button", name="Connect", exact=True)).to_be_enabled()
        for _ in range(300):
            if len(ended := place.audited()) > before:
                break
            other.wait_for_timeout(200)
        assert any("the client left after " in each and "--replica 1" in each for each in ended)


def test_a_key_leaves_the_terminal(place: Place, browser: Browser) -> None:
    """The terminal takes Tab. The key that leaves it is named on the page, and the container does not get it."""
    with looking(browser, place.url, place.tokens["user"]) as looker:
        page = looker.open(f"/jobs/{place.job}?tab=terminal")
        expect(page.get_by_text("Shift+F6 leaves the terminal.")).to_be_visible()
        connect(page)
        inside = page.locator(".job-terminal textarea")
        type_line(page, "cat -v")
        page.keyboard.press("Tab")
        expect(inside).to_be_focused()
        page.keyboard.press("Shift+F6")
        expect(page.get_by_role("button", name="Disconnect")).to_be_focused()
        inside.focus()
        page.keyboard.type("|seen\n")
        expect(page.locator(".job-terminal .xterm-rows")).to_contain_text("|seen")
        expect(page.locator(".job-terminal .xterm-rows")).not_to_contain_text("^[")


def test_only_users_have_a_terminal(place: Place, browser: Browser) -> None:
    """Viewers see no tab for it."""
    with looking(browser, place.url, place.tokens["viewer"]) as looker:
        page = looker.open(f"/jobs/{place.job}?tab=terminal")
        expect(page.get_by_role("tab", name="Logs")).to_be_visible()
        expect(page.get_by_role("tab", name="Terminal")).to_have_count(0)


@pytest.mark.parametrize(
    ("theme", "size", "language"),
    [("light", WIDE, "en"), ("dark", NARROW, "zh")],
)
def test_the_terminal_fits_and_can_be_used_by_everybody(
    place: Place, browser: Browser, theme: Theme, size: tuple[int, int], language: str
) -> None:
    """In each theme, language and width, nothing is cut, and the check for accessibility finds nothing."""
    with looking(browser, place.url, place.tokens["user"], theme=theme, size=size, language=language) as looker:
        page = looker.open(f"/jobs/{place.job}?tab=terminal")
        connect(page, {"en": "Connect", "zh": "连接"}[language])
        type_line(page, "echo seaway-$((6 * 7))")
        expect(page.locator(".job-terminal .xterm-rows")).to_contain_text("seaway-42")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        keep_screen(page, f"terminal {theme} {size[0]} {language}")


def test_logs_are_searched_and_downloaded_for_all_replicas(place: Place, browser: Browser) -> None:
    """The address has what is shown. New lines appear, until a user stops them."""
    place.write("epoch 1\nWARNING: slow")
    with looking(browser, place.url, place.tokens["viewer"]) as looker:
        page = looker.open(f"/jobs/{place.job}?tab=logs")
        log = page.get_by_role("log")
        expect(log).to_contain_text("epoch 1")
        page.get_by_role("textbox", name="Search").fill("warning")
        expect(log).not_to_contain_text("epoch 1")
        expect(log).to_contain_text("WARNING: slow")
        page.get_by_role("checkbox", name="All replicas").click()
        expect(log).to_contain_text("[1] WARNING: slow")
        expect(page).to_have_url(re.compile("replicas=all.*contains=warning"))
        place.write("WARNING: again")
        expect(log).to_contain_text("[1] WARNING: again")
        page.get_by_role("checkbox", name="Follow").click()
        with page.expect_download() as saved:
            page.get_by_role("button", name="Download").click()
        text = saved.value.path().read_text(encoding="utf-8")
        assert saved.value.suggested_filename == "train.log"
        assert "[0] epoch 1\n[0] WARNING: slow\n[0] WARNING: again\n[1] epoch 1\n" in text
        looker.settled(page)


def test_the_log_of_an_attempt_that_was_retried_is_chosen(place: Place, browser: Browser) -> None:
    """Its pods wait until their log is stored. The page follows the latest attempt, or shows an earlier one."""
    server, api = place.server, place.api
    job = server.submit(name="retried", retries=1, run={"image": "train:1", "command": ["sleep", "inf"]})
    server.await_state(job, "running")
    (pod,) = api.list(PODS, "seaway-default", labels=f"seaway.io/job={job}")
    name, node = pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]
    api.write_log("seaway-default", name, "out of memory")
    ended = {"name": node, "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
    api.patch(PODS, "seaway-default", name, {"status": {"phase": "Failed", "containerStatuses": [ended]}}, "status")
    with looking(browser, place.url, place.tokens["viewer"]) as looker:
        page = looker.open(f"/jobs/{job}")
        link = page.locator(".places").get_by_role("link", name="Logs")
        link.click(timeout=60_000)
        expect(page).to_have_url(re.compile(f"/jobs/{job}.*attempt=1"))
        log = page.get_by_role("log")
        expect(log).to_contain_text("out of memory")
        number = page.get_by_label("Attempt", exact=True)
        expect(number).to_have_value("1")
        number.fill("2")
        expect(log).not_to_contain_text("out of memory")
        expect(page).not_to_have_url(re.compile("attempt="))
        server.await_state(job, "running")
        (pod,) = api.list(PODS, "seaway-default", labels=f"seaway.io/job={job}")
        api.write_log("seaway-default", pod["metadata"]["name"], "it fits now")
        expect(log).to_contain_text("it fits now")
        looker.settled(page)
    server.client.delete(f"/api/v1/jobs/{job}")


@pytest.mark.parametrize(
    ("theme", "size", "language"),
    [("dark", WIDE, "zh"), ("light", NARROW, "en")],
)
def test_logs_fit_and_can_be_used_by_everybody(
    place: Place, browser: Browser, theme: Theme, size: tuple[int, int], language: str
) -> None:
    """In each theme, language and width, nothing is cut, and the check for accessibility finds nothing."""
    place.write("epoch 1")
    with looking(browser, place.url, place.tokens["viewer"], theme=theme, size=size, language=language) as looker:
        page = looker.open(f"/jobs/{place.job}?tab=logs&replicas=all&contains=epoch")
        expect(page.get_by_role("log")).to_contain_text("[1] epoch 1")
        assert hidden_sideways(page) == []
        assert hindrances(page) == []
        keep_screen(page, f"logs {theme} {size[0]} {language}")
