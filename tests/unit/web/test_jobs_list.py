"""The list of jobs, as far as it takes no browser."""

from __future__ import annotations

import csv
import io
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, MagicMock
from zoneinfo import ZoneInfo

import pytest
from nicegui import ui

from seaway.domain.errors import UnavailableError
from seaway.domain.job_state import JobState
from seaway.web.latest import Latest
from seaway.web.pages.jobs.columns import (
    COLUMNS,
    DEFAULT_COLUMNS,
    csv_of,
    date_of,
    least_px,
    moment_of,
    time_of,
    waited_s,
)
from seaway.web.pages.jobs.list import _Jobs
from seaway.wire.job_out import CostOut, JobOut
from tests.fakes import records as make

pytestmark = pytest.mark.anyio


async def test_a_list_that_could_not_be_had_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything that is wanted is followed once it can be: a list of what was wanted before does not stay for ever."""
    timer, page = MagicMock(), cast("Any", object.__new__(_Jobs))
    monkeypatch.setattr(ui, "timer", timer)
    visit = SimpleNamespace(follow=AsyncMock(side_effect=[UnavailableError("busy"), MagicMock(), MagicMock()]))
    page._looking, page._wanted, page._states, page._after = Latest(cast("Any", visit)), {}, [], ""  # noqa: SLF001
    page._strange, page._wrong = [], MagicMock()  # noqa: SLF001
    page._columns, page._sort, page._group = [], "", ""  # noqa: SLF001
    await page._look()  # noqa: SLF001
    page._wrong.set_text.assert_called_with("busy")  # noqa: SLF001
    await timer.call_args.args[1]()
    page._wrong.set_text.assert_called_with("")  # noqa: SLF001
    assert timer.call_count == 1


def test_a_date_is_a_whole_day() -> None:
    """It is a day in the zone of the browser, or in UTC. Times with a zone, and what is no date, stay as they are."""
    assert moment_of("submitted_from", "2026-11-21") == "2026-11-21T00:00:00Z"
    assert moment_of("ended_until", "2026-12-31") == "2027-01-01T00:00:00Z"
    for value in ("2026-11-21T10:00:00+02:00", "2026-13-01", "soon", "9999-12-31"):
        assert moment_of("submitted_until", value) == value
    assert moment_of("name", "2026-11-21") == "2026-11-21"
    berlin = ZoneInfo("Europe/Berlin")
    for name, at in ("submitted_from", "2026-10-25T00:00:00+02:00"), ("submitted_until", "2026-10-26T00:00:00+01:00"):
        assert moment_of(name, "2026-10-25", berlin) == at
        assert date_of(name, at) == date_of(name, "2026-10-25") == "2026-10-25"
    assert date_of("submitted_from", "soon") == ""
    assert str(time_of("ended_until", "<soon>")) == "<soon>"
    assert "2026-11-21 08:00:00 UTC" in time_of("ended_from", "2026-11-21T10:00:00+02:00")


def test_the_usual_columns_fit_a_page_of_1440_pixels() -> None:
    """The table has 1,158 pixels beside the menu; with all columns it scrolls, and no column is narrower."""
    assert least_px(DEFAULT_COLUMNS) <= 1158 < least_px(tuple(COLUMNS))


def test_a_job_shows_how_long_it_waited() -> None:
    """It waits from its submission to its first start. A job that ended before has no wait."""
    second_ns = 10**9
    job = make.job_record(spec=make.spec("a"), state=JobState.RUNNING, started_ns=make.NOW_NS + 90 * second_ns)
    shown = JobOut.of(job)
    late = waited_s(shown)
    assert late is not None
    assert late == (90 * second_ns - (job.submitted_ns - make.NOW_NS)) / second_ns
    ended = shown.model_copy(update={"started_at": None, "ended_at": shown.submitted_at})
    assert waited_s(ended) is None


def test_an_exported_file_has_a_row_for_each_job_and_no_formulas() -> None:
    """Texts with commas, quotes and line breaks are quoted; those that a spreadsheet would run get an apostrophe."""
    start_ns, second_ns = make.NOW_NS, 10**9
    job = make.job_record(
        spec=make.spec("a", labels={"team": "x", "b": "c,d"}),
        reason='=1+1, "quoted"\nand more',
        started_ns=start_ns,
        ended_ns=start_ns + 90 * second_ns,
        state=JobState.FAILED,
        clusters=("c1", "c2"),
    )
    cost = CostOut(gpu_hours=1.5, unpriced_gpu_hours=0.5, cost="2.50", cost_per_hour="0.00", unpriced_gpus=0)
    held = JobOut.of(job).model_copy(update={"gpu_hours": 1.5, "cost": cost})
    text = csv_of([held, JobOut.of(make.job_record())]).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 2
    first = rows[0]
    assert (first["id"], first["state"], first["duration_s"], first["gpu_hours"]) == (job.id, "failed", "90", "1.5")
    assert (first["message"], first["clusters"], first["labels"]) == ("'" + job.reason, "c1 c2", "team=x b=c,d")
    assert [(each["cost"], each["unpriced_gpu_hours"]) for each in rows] == [("2.50", "0.5"), ("", "")]
    assert (rows[1]["started_at"], rows[1]["duration_s"], rows[1]["gpu_hours"]) == ("", "", "")
