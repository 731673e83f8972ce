"""Logging in at an identity provider."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.looking import looking
from tests.browser.provider import CLIENT, Provider
from tests.integration.running import running
from tests.servers.databases import free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """Run a provider."""
    with Provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def url(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server whose users log in there."""
    folder: Path = tmp_path_factory.mktemp("login")
    port = free_port()
    (folder / "seaway.toml").write_text(
        f"""
        [oidc]
        issuer = "{provider.url}"
        audience = "{CLIENT}"
        jwks = "{provider.url}/keys"
        client_id = "{CLIENT}"
        redirect = "http://127.0.0.1:{port}/login/callback"
        """,
        encoding="utf-8",
    )
    with running(folder, "--config", str(folder / "seaway.toml"), "--port", str(port)) as server:
        yield str(server.client.base_url).rstrip("/")


def test_a_person_of_the_provider_comes_to_where_he_wanted(browser: Browser, url: str, provider: Provider) -> None:
    """The request to the provider has a challenge; afterwards the page knows the user and the role."""
    provider.role = "operator"
    with looking(browser, url) as looker:
        page = looker.context.new_page()
        page.goto(f"{url}/?from=there")
        page.get_by_role("link", name="Log in at 127.0.0.1").click()
        expect(page).to_have_url(f"{url}/?from=there")
        expect(page.locator(".who-name")).to_have_text("ada")
        expect(page.locator(".who-role")).to_have_text("operator")
        assert provider.asked[-1]["code_challenge_method"] == "S256"
        retained = {each["name"]: each for each in looker.context.cookies()}
        assert retained["seaway_token"]["httpOnly"] is True
        assert "seaway_login" not in retained


def test_a_log_in_that_has_ended_is_renewed_and_one_that_is_over_ends_at_the_provider_too(
    browser: Browser, url: str, provider: Provider
) -> None:
    """The renewal is invisible, with the page unchanged; log-out leads to the provider and back, by a button."""
    provider.role = "operator"
    with looking(browser, url) as looker:
        page = looker.context.new_page()
        page.goto(f"{url}/jobs?state=running")
        page.get_by_role("link", name="Log in at 127.0.0.1").click()
        expect(page).to_have_url(f"{url}/jobs?state=running")
        looker.context.add_cookies([{"name": "seaway_token", "value": "ended", "url": url}])
        asked = len(provider.asked)
        page.reload()
        expect(page.locator(".who-name")).to_have_text("ada")
        expect(page).to_have_url(f"{url}/jobs?state=running")
        assert (provider.renewed, len(provider.asked)) == (1, asked)
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("status")).to_have_text("You are logged out.")
        assert provider.left[-1]["id_token_hint"].count(".") == 2
        assert looker.context.cookies() == []


def test_whom_the_provider_refuses_reads_why(browser: Browser, url: str, provider: Provider) -> None:
    """The log-in page shows the provider's own message."""
    provider.role = ""
    with looking(browser, url) as looker:
        page = looker.context.new_page()
        page.goto(f"{url}/login")
        page.get_by_role("link", name="Log in at 127.0.0.1").click()
        expect(page.get_by_role("alert")).to_contain_text("not today")


def test_an_answer_to_another_log_in_is_not_taken(browser: Browser, url: str, provider: Provider) -> None:
    """A code without a log-in of the same browser is rejected."""
    provider.role = "operator"
    with looking(browser, url) as looker:
        page = looker.context.new_page()
        page.goto(f"{url}/login/callback?code=a-code&state=another-users")
        expect(page).to_have_url(re.compile("/login"))
        expect(page.get_by_role("alert")).to_contain_text("try again")
        assert "seaway_token" not in {each["name"] for each in looker.context.cookies()}
