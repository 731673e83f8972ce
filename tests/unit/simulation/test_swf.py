"""Logs in the Standard Workload Format."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.simulation.swf import read_swf

HEADER = "; Version: 2.2\n; MaxNodes: 8\n; MaxProcs: 16\n"


def line(number: int, submit_s: int, lasts_s: int, allocated: int, requested: int = -1, user: int = -1) -> str:
    """Return a line of a log."""
    return f"{number} {submit_s} -1 {lasts_s} {allocated} -1 -1 {requested} -1 -1 1 {user} -1 -1 -1 -1 -1 -1\n"


def write(folder: Path, text: str) -> Path:
    """Write a log."""
    log = folder / "log.swf"
    log.write_text(text)
    return log


def test_a_log_is_a_cluster_with_gangs(tmp_path: Path) -> None:
    """A job of size s is a gang of s replicas; users are tenants; entries that never ran are left out."""
    text = HEADER + line(1, 5, 60, 4, user=7) + "\n; a comment\n" + line(2, 3, 10, -1, 2) + line(3, 9, -1, 4)
    log = read_swf(write(tmp_path, text))
    assert len(log.fleet.clusters[0].nodes) == 16
    assert [(job.name, job.arrives_s, job.expected_duration_s, job.replicas, job.tenant) for job in log.jobs] == [
        ("2", 3, 10, 2, "default"),
        ("1", 5, 60, 4, "user-7"),
    ]
    assert all(job.gang for job in log.jobs)
    assert log.skipped == 1


def test_parts_of_a_job_are_left_out(tmp_path: Path) -> None:
    """A job that was swapped out has a line for the whole, and lines with status 2 to 4 for its parts."""
    whole = line(1, 0, 100, 4)
    parts = "".join(
        whole.replace(" 1 -1 -1 -1 -1 -1 -1 -1\n", f" {status} -1 -1 -1 -1 -1 -1 -1\n") for status in (2, 3, 4)
    )
    later = parts.replace("1 0 -1 100", "1 -1 20 40")  # only the first part has a submit time
    log = read_swf(write(tmp_path, HEADER + whole + parts + later))
    assert [(job.name, job.expected_duration_s) for job in log.jobs] == [("1", 100)]


@pytest.mark.parametrize("text", ["2,048 (with spares)", "many", "9" * 5000, "0", "1000001"])
def test_a_header_without_a_number_is_rejected(tmp_path: Path, text: str) -> None:
    """A number of processors that is none is named, instead of being read in part."""
    log = write(tmp_path, f"; MaxProcs: {text}\n" + line(1, 0, 60, 4))
    with pytest.raises(RejectedError, match=r"MaxProcs is .*, no number from 1 to 1,000,000; set --processors"):
        read_swf(log)
    assert len(read_swf(log, 8).fleet.clusters[0].nodes) == 8
    with pytest.raises(RejectedError, match="at most 1,000,000"):
        read_swf(log, 50_000_000)


def test_the_number_of_processors_can_be_given(tmp_path: Path) -> None:
    """An explicit number replaces that of the header; without both, the file is rejected."""
    log = write(tmp_path, line(1, 0, 60, 4))
    assert len(read_swf(log, 4).fleet.clusters[0].nodes) == 4
    with pytest.raises(RejectedError, match="set --processors"):
        read_swf(log)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no job that ran"),
        (line(1, 0, -1, 4), "has no job that ran"),
        ("1 0 -1 60 4\n", "has 5 fields, but the format has 18"),
        (line(1, 0, 60, 4).replace("60", "x"), "a field is not a number"),
        (line(1, 0, 60, 4).replace("60", "nan"), "a field is not a number"),
        (line(1, -5, 60, 4), "submit time or the run time is out of range"),
        (line(1, 0, 60, 4) * 2, "job 1 appears twice"),
        (line(1, 0, 60, 17), "job 1 needs 17 processors, but there are 16; set --processors"),
    ],
)
def test_an_invalid_log_is_rejected(tmp_path: Path, text: str, said: str) -> None:
    """The error names the file, and the line where there is one."""
    log = write(tmp_path, HEADER + text)
    with pytest.raises(RejectedError, match=said) as refused:
        read_swf(log)
    assert refused.value.where.startswith(str(log))


def test_a_missing_log_is_rejected(tmp_path: Path) -> None:
    """A file that cannot be read is an error of the user."""
    with pytest.raises(RejectedError, match="cannot be read"):
        read_swf(tmp_path / "none.swf")


def test_a_compressed_log_is_read_as_it_is(tmp_path: Path) -> None:
    """The archive compresses its logs; a damaged file is an error of the user."""
    log = tmp_path / "log.swf.gz"
    log.write_bytes(gzip.compress((HEADER + line(1, 5, 60, 4)).encode()))
    assert [job.name for job in read_swf(log).jobs] == ["1"]
    for damaged in (b"no gzip", log.read_bytes()[:-12]):
        log.write_bytes(damaged)
        with pytest.raises(RejectedError, match="cannot be read") as refused:
            read_swf(log)
        assert refused.value.where == str(log)
