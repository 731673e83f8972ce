"""Being let in and out: what a browser is given to keep, and where it is led."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from seaway.web import addresses
from seaway.web.cookies import PART, SECURE
from seaway.web.provider import PendingLogin
from seaway.web.renewals import Renewals
from seaway.web.routes import LoginRoutes
from tests.unit.web.test_provider import BACK, BEGUN, ISSUER, World, answer, token

OURS = token(aud="seaway")
NEXT = token(aud="seaway", jti="next")
LONG = "sw_" + "x" * PART


async def api(scope: Scope, _: Receive, send: Send) -> None:
    """Let some tokens in."""
    known = {f"Bearer {each}".encode() for each in ("sw_mine", LONG, OURS, NEXT)}
    lets_in = dict(scope["headers"]).get(b"authorization") in known
    body = (
        {"name": "ada", "role": "user", "tenant": "t"} if lets_in else {"status": 401, "detail": "no <b>such</b> token"}
    )
    head = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200 if lets_in else 401, "headers": head})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


@dataclass
class Browser:
    """A browser at the entrance.

    Attributes
    ----------
    world
        The provider behind it; None for none.
    secure
        Whether people come over https, as the entrance was reported.
    """

    world: World | None = None
    secure: bool = False
    cookies: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    said: httpx.Response = field(default_factory=lambda: httpx.Response(200))

    def ask(self, method: str, path: str, data: Mapping[str, Any] | None = None, scheme: str = "http") -> str:
        """Ask for something; return where that leads."""

        async def asked() -> None:
            app = FastAPI()
            provider = self.world.provider() if self.world else None
            LoginRoutes(api, provider, Renewals()).add_to(app)

            async def behind_proxy(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401  # ASGI's
                await app({**scope, SECURE: self.secure}, receive, send)

            base = f"{scheme}://seaway.example"
            async with httpx.AsyncClient(transport=httpx.ASGITransport(behind_proxy), base_url=base) as client:
                retained = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
                self.said = await client.request(method, path, data=data, headers={"cookie": retained})

        asyncio.run(asked())
        for line in self.said.headers.get_list("set-cookie"):
            name, _, rest = line.partition("=")
            value = rest.partition(";")[0].strip('"')
            self.cookies.pop(name, None)
            self.paths[name] = line
            if value:
                self.cookies[name] = value
        return str(self.said.headers.get("location", ""))


def test_a_token_lets_in_and_is_stored_where_no_script_reads() -> None:
    """In parts where it is longer than a cookie; over https alone where people come so, whatever the proxy hides."""
    browser = Browser()
    assert browser.ask("POST", "/login", {"token": " sw_mine ", "next": "/jobs?state=running"}) == "/jobs?state=running"
    assert browser.cookies == {"seaway_token": "sw_mine"}
    assert "httponly" in browser.paths["seaway_token"].lower()
    assert "samesite=lax" in browser.paths["seaway_token"].lower()
    assert "secure" not in browser.paths["seaway_token"].lower()
    for other, scheme in ((Browser(secure=True), "http"), (Browser(), "https")):
        other.ask("POST", "/login", {"token": "sw_mine"}, scheme)
        assert other.cookies == {"__Host-seaway_token": "sw_mine"}
        line = other.paths["__Host-seaway_token"].lower()
        assert "secure" in line
        assert "path=/;" in line
        assert "domain" not in line
    browser.ask("POST", "/login", {"token": LONG})
    assert browser.cookies == {"seaway_token": LONG[:PART], "seaway_token_1": LONG[PART:]}
    browser.ask("POST", "/login", {"token": "sw_mine"})
    assert browser.cookies == {"seaway_token": "sw_mine"}


def test_cookie_of_plain_http_is_no_login_over_https() -> None:
    """Another host of the domain, or plain http, can set a cookie without the prefix, so it is not read."""
    world = World(answer())
    browser = Browser(world, secure=True, cookies={"seaway_token": "sw_mine", "seaway_renewal": "renewal-1"})
    assert browser.ask("GET", "/login?ended=1&next=/jobs") == ""
    assert world.asked == []
    browser.cookies = {"__Host-seaway_token": "sw_mine"}
    assert browser.ask("GET", "/login?ended=1&next=/jobs") == "/jobs"
    browser.ask("POST", "/logout")
    assert browser.cookies == {}


@pytest.mark.parametrize(
    ("given", "says", "status"),
    [("sw_no", "no &lt;b&gt;such", 401), ("a b", "characters", 400), ("x" * 10_801, "10801", 400)],
)
def test_who_is_not_let_in_reads_why_and_is_not_asked_again_where_to(given: str, says: str, status: int) -> None:
    """An error is shown on the form as text, and never in an address.

    Programs see it.
    """
    browser = Browser()
    assert browser.ask("POST", "/login", {"token": given, "next": "/jobs?a=b&c=d"}) == ""
    assert says in browser.said.text
    assert browser.said.status_code == status
    assert 'value="/jobs?a=b&amp;c=d"' in browser.said.text
    assert browser.cookies == {}
    browser.ask("GET", "/login?why=Call+0800")
    assert "0800" not in browser.said.text


def test_the_form_needs_no_script_and_none_would_run() -> None:
    """Anything that the page allows itself is its style, and to send the form here."""
    browser = Browser()
    browser.ask("GET", "/login")
    assert "<script" not in browser.said.text
    assert "default-src 'none'" in browser.said.headers["content-security-policy"]
    assert browser.said.headers["cache-control"] == "no-store"


def logged_in() -> Browser:
    """Have a browser that has come from the provider."""
    answered = answer(access_token=OURS, refresh_token="renewal-1")
    browser = Browser(World(answered, end_session_endpoint=f"{ISSUER}/out"), cookies={"seaway_login": BEGUN.text()})
    assert browser.ask("GET", f"/login/callback?{BACK}") == BEGUN.wanted
    return browser


def test_who_comes_from_the_provider_keeps_by_cause_his_token_is_renewed_where_no_page_sees_it() -> None:
    """Anything that renews goes to the log-in alone, and the hint to the log-out."""
    browser = logged_in()
    assert browser.cookies == {"seaway_token": OURS, "seaway_renewal": "renewal-1", "seaway_hint": token()}
    assert "path=/login;" in browser.paths["seaway_renewal"].lower()
    assert "path=/logout;" in browser.paths["seaway_hint"].lower()


def test_a_log_in_that_has_ended_is_renewed_on_the_way() -> None:
    """He comes to the same address, with what is looked at; without the provider's yes he is asked to log in."""
    browser = logged_in()
    assert browser.world is not None
    browser.cookies["seaway_token"] = "ended"
    browser.world.answer = answer(access_token=NEXT, refresh_token="renewal-2")
    assert browser.ask("GET", "/login?next=%2Fjobs%3Fstate%3Drunning&ended=1") == "/jobs?state=running"
    assert (browser.cookies["seaway_token"], browser.cookies["seaway_renewal"]) == (NEXT, "renewal-2")
    browser.cookies["seaway_token"] = "ended"
    browser.world.answer = {"error": "invalid_grant"}
    assert browser.ask("GET", "/login?next=%2Fjobs%3Fstate%3Drunning&ended=1") == ""
    assert "Your token is not valid any more." in browser.said.text
    assert 'href="/login/provider?next=%2Fjobs%3Fstate%3Drunning"' in browser.said.text
    assert browser.cookies == {}


def test_while_the_provider_is_away_what_renews_is_stored() -> None:
    """It may hold again a minute later."""
    browser = logged_in()
    assert browser.world is not None
    browser.cookies["seaway_token"], browser.world.answer = "ended", b"[1]"
    browser.ask("GET", "/login?ended=1")
    assert 'role="alert"' in browser.said.text
    assert browser.cookies["seaway_renewal"] == "renewal-1"


def test_who_logged_in_in_another_tab_is_led_on() -> None:
    """A page whose token ended does not end the log-in that came after."""
    browser = Browser(cookies={"seaway_token": "sw_mine"})
    assert browser.ask("GET", "/login?next=%2Fjobs%3Fa%3Db&ended=1") == "/jobs?a=b"


def test_a_page_has_its_token_renewed() -> None:
    """The browser stores the new token and log-out hint; without new ones it retains the present ones."""
    browser = logged_in()
    assert browser.world is not None
    browser.world.answer = {"token_type": "Bearer", "access_token": NEXT, "refresh_token": "renewal-2"}
    browser.ask("POST", "/login/renew", {"page": "unknown"})
    assert (browser.said.status_code, browser.cookies["seaway_token"]) == (204, NEXT)
    assert (browser.cookies["seaway_renewal"], browser.cookies["seaway_hint"]) == ("renewal-2", token())
    browser.world.answer = {"error": "invalid_grant"}
    browser.cookies["seaway_renewal"] = "renewal-3"
    browser.ask("POST", "/login/renew", {"page": "unknown"})
    assert (browser.said.status_code, browser.cookies["seaway_token"]) == (204, NEXT)


def test_logging_out_takes_a_form_and_leads_to_the_provider() -> None:
    """A link or picture on another site logs no one out; a user with a token is not sent to the provider."""
    browser = logged_in()
    browser.ask("GET", "/logout")
    assert (browser.said.status_code, "seaway_token" in browser.cookies) == (405, True)
    browser.ask("POST", "/logout")
    assert f"url={ISSUER}/out?client_id=pages" in browser.said.text
    assert browser.cookies == {}
    other = Browser(browser.world, cookies={"seaway_token": "sw_mine"})
    assert other.ask("POST", "/logout") == "/login?state=left"
    assert other.cookies == {}
    other.ask("GET", "/login?state=left")
    assert "You are logged out." in other.said.text


@pytest.mark.parametrize(
    "address",
    [
        *("//evil.example", " ////evil.example", "////evil.example", "/\n///evil.example", "/\t//evil.example"),
        *("/\\evil.example", "\\\\evil.example", "\x00//evil.example", "https://evil.example", "https:/evil.example"),
        *("/logout", "/logout?a=b", "/login/renew", "/jobs ", "\x85/jobs", "\u2028//evil.example", "jobs", "", "//[x"),
    ],
)
def test_no_one_is_led_elsewhere_by_an_address_that_a_browser_reads_otherwise(address: str) -> None:
    """Without a log-in, and with one: what may be another server's, or shows nothing, counts as none."""
    assert addresses.own(address) == "/"
    browser = Browser()
    assert browser.ask("GET", f"/preferences?{urlencode({'theme': 'dark', 'next': address})}") == "/"
    assert browser.ask("POST", "/login", {"token": "sw_mine", "next": address}) == "/"


@pytest.mark.parametrize("address", ["/", "/jobs?state=running&name=a%20b", "/fleet/c-1/n-1?tab=x#y", "/fleet/c%2F1/n"])
def test_who_looked_at_something_is_led_back_to_it(address: str) -> None:
    """With what is looked at; a fragment the browser keeps to itself."""
    assert addresses.own(address) == address.partition("#")[0]


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("10", 0), ("9" * 5_000, 0), ("-1", 0), ("\u0663", 0), ("\u00b2", 0), ("", 0), ("003", 0)],
)
def test_a_number_in_an_address_is_one_that_there_is_or_none(text: str, number: int) -> None:
    """Whatever a user writes there, however long."""
    assert addresses.number_of(text, 10) == number


@pytest.mark.parametrize(
    ("origin", "site", "own"),
    [
        (None, None, True),
        ("http://seaway.internal:8080", None, True),
        ("https://seaway.example", None, True),
        ("https://seaway.example.evil", None, False),
        ("null", "same-origin", True),
        ("null", None, False),
        ("null", "cross-site", False),
        ("//[", None, False),
    ],
)
def test_what_another_site_sends_is_known(origin: str | None, site: str | None, own: bool) -> None:
    """Its own are the address that is asked and the one that people know, also where a proxy says another host."""
    headers = {"host": "seaway.internal:8080", "origin": origin, "sec-fetch-site": site}
    given = Headers({name: value for name, value in headers.items() if value is not None})
    assert addresses.is_own_origin(given, addresses.origin_of("https://Seaway.example:443/")) is own


def test_an_origin_is_written_as_browsers_do() -> None:
    """In small letters, without a usual port."""
    urls = ("", "https://A.example/", "http://a.example:80", "http://a.example:8080", "https://[FD00::1]:443")
    written = ["", "https://a.example", "http://a.example", "http://a.example:8080", "https://[fd00::1]"]
    assert [addresses.origin_of(each) for each in urls] == written


def test_a_begun_log_in_is_stored_for_the_way_back_alone() -> None:
    """It leads to the provider with a challenge, and the address that was wanted is this server's."""
    browser = Browser(World(answer()))
    leads = urlsplit(browser.ask("GET", "/login/provider?next=//evil.example/"))
    assert leads.netloc == urlsplit(ISSUER).netloc
    assert parse_qs(leads.query)["code_challenge_method"] == ["S256"]
    assert PendingLogin.read(browser.cookies["seaway_login"]).wanted == "/"
