"""Tokens that end while a user looks."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import jwt
import pytest

from seaway.domain.errors import UnavailableError
from seaway.web import renewals as renewals_module
from seaway.web.drafts import draft_of
from seaway.web.renewals import Renewals, left_s
from seaway.web.visit import Visit
from seaway.wire.tokens import CallerOut

ADA = CallerOut(name="ada", role="user", tenant="t")
SECRET = "0123456789abcdef0123456789abcdef"


def duration(seconds: float) -> str:
    """Make a token that ends so soon."""
    return jwt.encode({"exp": time.time() + seconds}, SECRET, "HS256")


@dataclass
class Looking:
    """A page that is looked at: stands for its visit, its browser's tab, and who asks for it."""

    token: str
    who: CallerOut = ADA
    scripts: list[str] = field(default_factory=list)
    has_left: bool = False
    gone: list[Callable[[], object]] = field(default_factory=list)

    @property
    def asker(self) -> Looking:
        """A user who asks."""
        return self

    @property
    def client(self) -> Looking:
        """The browser's tab."""
        return self

    def on_delete(self, gone: Callable[[], object]) -> None:
        """Tell when the tab is closed."""
        self.gone.append(gone)

    def run_javascript(self, script: str) -> None:
        """Have the tab do something."""
        self.scripts.append(script)

    async def take(self, token: str) -> None:
        """Go on by another token."""
        self.token = token

    def leave(self) -> None:
        """Lead to the log-in."""
        self.has_left = True

    async def is_asked(self, times: int) -> str:
        """Wait until the tab was asked to renew so often; return the page's secret."""
        while len(self.scripts) < times:
            await asyncio.sleep(0.001)
        found = re.search(r'page: "([^"]+)"', self.scripts[-1])
        assert found is not None
        return found[1]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tokens renewed as soon as they came."""
    monkeypatch.setattr(renewals_module, "MIN_S", 0.0)
    monkeypatch.setattr(renewals_module, "EARLY_S", 1e9)


def test_a_token_is_renewed_before_it_ends_again_and_again() -> None:
    """The browser renews the token, and the page continues with the new one. A closed page is dropped."""
    renewals, looking = Renewals(), Looking(duration(0.02))

    async def test() -> None:
        renewals.watch(cast("Visit", looking))
        page = await looking.is_asked(1)
        following = duration(0.02)
        await renewals.renewed("another", ADA, "no")
        await renewals.renewed(page, ADA, following)
        assert looking.token == following
        assert await looking.is_asked(2) == page

    asyncio.run(test())
    looking.gone[0]()
    assert len(renewals) == 0


def test_a_page_does_not_become_another_s() -> None:
    """A user who logged in as another user in another tab is led to that, and this page shows it to no one."""
    renewals, looking = Renewals(), Looking(duration(0.02))

    async def test() -> None:
        renewals.watch(cast("Visit", looking))
        page, before = await looking.is_asked(1), looking.token
        await renewals.renewed(page, ADA.model_copy(update={"name": "bob"}), "bobs")
        assert (looking.token, looking.has_left) == (before, True)

    asyncio.run(test())


def test_a_page_that_cannot_go_on_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser keeps the next token all the same: what renewed it may hold once."""
    renewals, looking = Renewals(), Looking(duration(0.02))

    async def fail(*_: object) -> None:
        raise UnavailableError("away")

    async def test() -> None:
        renewals.watch(cast("Visit", looking))
        page = await looking.is_asked(1)
        monkeypatch.setattr(Looking, "take", fail)
        await renewals.renewed(page, ADA, duration(0.02))
        assert looking.has_left

    asyncio.run(test())


@pytest.mark.parametrize(
    "token", ["", "sw_one_two", "a.b.c", duration(-1), jwt.encode({"exp": 1e400}, SECRET, "HS256")]
)
def test_what_does_not_say_when_it_ends_is_not_renewed(token: str) -> None:
    """As Seaway's own tokens."""
    renewals = Renewals()
    renewals.watch(cast("Any", Looking(token)))
    assert (len(renewals), left_s(token)) == (0, 0.0)


def test_a_draft_is_one_person_s() -> None:
    """By name and tenant; a name is no JavaScript."""
    others = [ADA.model_copy(update=each) for each in ({"name": "bob"}, {"tenant": "u"}, {"name": 'a"+alert(1)+"'})]
    drafts = [draft_of(each) for each in (ADA, *others)]
    assert len(set(drafts)) == len(drafts)
    assert drafts[-1] == '"seaway-draft t/a\\"+alert(1)+\\""'
