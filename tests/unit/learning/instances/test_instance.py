from __future__ import annotations

from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.instances.instance import read_instances

NODES = "cluster,node,cpu_milli,memory_mib,gpu,model,gpu_memory_mib\nc0,n0,8000,16384,1,T4,15360\n"
JOBS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib\n{name},1000,1024,1,100,1024\n"


def written(parent: Path, *names: str) -> Path:
    """Write instances with these names, each with one job of the same name."""
    for name in names:
        folder = parent / name
        folder.mkdir(parents=True)
        (folder / "nodes.csv").write_text(NODES)
        (folder / "jobs.csv").write_text(JOBS.format(name=f"job-of-{name}"))
    return parent


def test_instances_are_read_sorted_by_name(tmp_path: Path) -> None:
    """Duplicates are ignored, for single instances and parent folders in any order."""
    parent = written(tmp_path, "b", "a", "c")
    (parent / "notes").mkdir()
    assert [each.name for each in read_instances([parent / "c", parent])] == ["a", "b", "c"]


def test_the_mix_has_the_jobs_of_siblings(tmp_path: Path) -> None:
    """Siblings differ by a number at the end, and need not be named; the mix has no jobs of the instance."""
    parent = written(tmp_path, "small-seed0", "small-seed1", "small-seed12", "large-seed0", "small-seed")
    (read,) = read_instances([parent / "small-seed1"])
    assert [job.name for job in read.mix] == ["job-of-small-seed0", "job-of-small-seed12"]
    (alone,) = read_instances([parent / "large-seed0"])
    assert alone.mix == ()


def test_links_are_optional(tmp_path: Path) -> None:
    """A fleet without the file has no links."""
    parent = written(tmp_path, "with", "without")
    links = "source,target,latency_us,jitter_us,loss,bandwidth_mbps\ngw-1,user,10,1,0,100\n"
    (parent / "with" / "links.csv").write_text(links)
    read, without = read_instances([parent])
    assert len(read.fleet.links) == 2
    assert not without.fleet.links


def test_best_known_numbers_are_read_from_the_parent_folder(tmp_path: Path) -> None:
    """Given numbers take precedence."""
    parent = written(tmp_path, "a", "b", "c")
    (parent / "best.csv").write_text("instance,placed\na,1\nb,0\n")
    assert [each.best_known for each in read_instances([parent], {"b": 7})] == [1, 7, None]


def test_invalid_instances_are_rejected(tmp_path: Path) -> None:
    """The error names the missing path, the folder without instances, or the invalid file."""
    with pytest.raises(RejectedError, match="folder not found") as failure:
        read_instances([tmp_path / "away"])
    assert failure.value.where == str(tmp_path / "away")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RejectedError, match="has no nodes") as failure:
        read_instances([tmp_path / "empty"])
    assert str(tmp_path / "empty") in str(failure.value.where)
    written(tmp_path, "bad")
    (tmp_path / "bad" / "jobs.csv").write_text("name\nx\n")
    with pytest.raises(RejectedError) as failure:
        read_instances([tmp_path])
    assert "bad/jobs.csv" in str(failure.value.where)


def test_duplicate_names_are_rejected(tmp_path: Path) -> None:
    """Names in tables must be unique."""
    one, other = written(tmp_path / "x", "same"), written(tmp_path / "y", "same")
    with pytest.raises(RejectedError, match="'same'"):
        read_instances([one, other])


@pytest.mark.shared
def test_the_benchmarks_are_instances() -> None:
    """The mix of each has the jobs of the other four of its kind."""
    read = read_instances([Path("../shared/benchmarks")])
    assert len(read) == 10
    assert {len(each.jobs) for each in read} == {80, 220}
    assert all(len(each.mix) == 4 * len(each.jobs) for each in read)
