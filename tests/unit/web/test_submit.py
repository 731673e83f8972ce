"""Submitting a job, as far as it takes no browser."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, MagicMock

import pytest

from seaway.web.job_draft import JobDraft
from seaway.web.job_fields import AMOUNT
from seaway.web.pages.submit import FORM, _Submit

pytestmark = pytest.mark.anyio


async def test_a_change_that_is_taken_is_gone_to() -> None:
    """Its button goes with what it mends: who pressed it by keyboard stands at the field then, not nowhere."""
    page = cast("Any", object.__new__(_Submit))
    page._draft, page._way, page._soon = JobDraft(), SimpleNamespace(value=FORM), AsyncMock()  # noqa: SLF001
    page._form = MagicMock(fields={"resources.gpus": SimpleNamespace(kind=AMOUNT)})  # noqa: SLF001
    await page._take("resources.gpus", "4")  # noqa: SLF001
    assert page._draft.document == {"resources": {"gpus": 4}}  # noqa: SLF001
    page._form.lead.assert_called_once_with("resources.gpus")  # noqa: SLF001
