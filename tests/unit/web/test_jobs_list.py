"""The list of jobs, as far as it takes no browser."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, MagicMock

import pytest
from nicegui import ui

from seaway.domain.errors import UnavailableError
from seaway.web.latest import Latest
from seaway.web.pages.jobs.list import _Jobs

pytestmark = pytest.mark.anyio


async def test_a_list_that_could_not_be_had_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything that is wanted is followed once it can be: a list of what was wanted before does not stay for ever."""
    timer, page = MagicMock(), cast("Any", object.__new__(_Jobs))
    monkeypatch.setattr(ui, "timer", timer)
    visit = SimpleNamespace(follow=AsyncMock(side_effect=[UnavailableError("busy"), MagicMock(), MagicMock()]))
    page._looking, page._wanted, page._states, page._after = Latest(cast("Any", visit)), {}, [], ""  # noqa: SLF001
    page._strange, page._wrong = [], MagicMock()  # noqa: SLF001
    await page._look()  # noqa: SLF001
    page._wrong.set_text.assert_called_with("busy")  # noqa: SLF001
    await timer.call_args.args[1]()
    page._wrong.set_text.assert_called_with("")  # noqa: SLF001
    assert timer.call_count == 1
