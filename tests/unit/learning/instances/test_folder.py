from __future__ import annotations

from pathlib import Path

import pytest

from seaway.domain.errors import RejectedError
from seaway.learning.instances.folder import read_instances

NODES = "cluster,node,cpu_milli,memory_mib,gpu,model,gpu_memory_mib\nc0,n0,8000,16384,1,T4,15360\n"
JOBS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib\n{name},1000,1024,1,100,1024\n"


def written(parent: Path, *names: str) -> Path:
    """Write an instance of one job, called like it, for each name."""
    for name in names:
        folder = parent / name
        folder.mkdir(parents=True)
        (folder / "nodes.csv").write_text(NODES)
        (folder / "jobs.csv").write_text(JOBS.format(name=f"job-of-{name}"))
    return parent


def test_a_folder_of_instances_is_read_by_name(tmp_path: Path) -> None:
    """Whichever folders are named, one with instances in it or one that is one, in whatever order, each comes once."""
    parent = written(tmp_path, "b", "a", "c")
    (parent / "notes").mkdir()
    assert [each.name for each in read_instances([parent / "c", parent])] == ["a", "b", "c"]


def test_siblings_are_the_past_of_an_instance(tmp_path: Path) -> None:
    """Those that differ by a number at the end alone, though they were not asked for; never the instance itself."""
    parent = written(tmp_path, "small-seed0", "small-seed1", "small-seed12", "large-seed0", "small-seed")
    (read,) = read_instances([parent / "small-seed1"])
    assert [job.name for job in read.mix] == ["job-of-small-seed0", "job-of-small-seed12"]
    (alone,) = read_instances([parent / "large-seed0"])
    assert alone.mix == ()


def test_links_are_read_where_there_are_any(tmp_path: Path) -> None:
    """A fleet without the file knows nothing of its network."""
    parent = written(tmp_path, "with", "without")
    links = "source,target,latency_us,jitter_us,loss,bandwidth_mbps\ngw-1,user,10,1,0,100\n"
    (parent / "with" / "links.csv").write_text(links)
    read, without = read_instances([parent])
    assert len(read.fleet.links) == 2
    assert not without.fleet.links


def test_the_best_that_is_known_stands_beside_the_instances(tmp_path: Path) -> None:
    """Of those that the file names; the caller's word goes before it."""
    parent = written(tmp_path, "a", "b", "c")
    (parent / "best.csv").write_text("instance,placed\na,1\nb,0\n")
    assert [each.best_known for each in read_instances([parent], {"b": 7})] == [1, 7, None]


def test_what_is_no_instance_is_rejected_by_place(tmp_path: Path) -> None:
    """A path that is not there, a folder without instances, and a file that is wrong are named."""
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


def test_two_instances_of_one_name_are_rejected(tmp_path: Path) -> None:
    """Tables would not tell them apart."""
    one, other = written(tmp_path / "x", "same"), written(tmp_path / "y", "same")
    with pytest.raises(RejectedError, match="'same'"):
        read_instances([one, other])


@pytest.mark.shared
def test_the_benchmarks_are_instances() -> None:
    """Each has the other four of its kind as its past."""
    read = read_instances([Path("../shared/benchmarks")])
    assert len(read) == 10
    assert {len(each.jobs) for each in read} == {80, 220}
    assert all(len(each.mix) == 4 * len(each.jobs) for each in read)
