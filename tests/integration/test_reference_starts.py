"""Starts of the jobs of two logs, against reference simulations of four disciplines."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from seaway.cli.main import main

PROCESSORS = {"lublin256": "256", "nasa128-double": "128"}


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(
    ("log", "order", "backfill", "column"),
    [
        ("lublin256", "fifo", "easy", "easy_start_s"),
        ("lublin256", "fifo", "conservative", "conservative_start_s"),
        ("nasa128-double", "fifo", "none", "fcfs_start_s"),
        ("nasa128-double", "shortest", "none", "sjf_start_s"),
    ],
)
def test_every_job_starts_at_the_second_of_the_reference(
    shared: Path, tmp_path: Path, log: str, order: str, backfill: str, column: str
) -> None:
    """The command replays a log with exact run times, and each job starts when the reference starts it."""
    with (shared / "traces" / "queues" / f"{log}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    swf, starts = tmp_path / "log.swf", tmp_path / "starts.csv"
    swf.write_text(
        "".join(
            f"{row['job']} {row['submit_s']} -1 {row['run_s']} {row['size']}{' -1' * 6} {row['user']}{' -1' * 6}\n"
            for row in rows
        )
    )
    given = ["--swf", str(swf), "--processors", PROCESSORS[log], "--order", order, "--backfill", backfill]
    with pytest.raises(SystemExit) as done:
        main(["replay", *given, "--starts", str(starts), "-o", "json"])
    assert not done.value.code
    with starts.open(newline="") as file:
        begun = {row["job"]: row["start_s"] for row in csv.DictReader(file)}
    assert begun == {row["job"]: row[column] for row in rows}
