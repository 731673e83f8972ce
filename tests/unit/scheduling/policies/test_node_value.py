"""Value tables of nodes, where they are known by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seaway.domain.job import Job
from seaway.domain.node import Node
from seaway.scheduling.policies.seaway.node_value import (
    MAX_TYPES,
    MixFigures,
    bound_groups,
    device_worths,
    hosting_table,
    mix_figures,
    served_tables,
)
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import cluster, fleet, gpu, job, node

EMPTY: list[Job] = []


def figures(jobs: list[Job], *nodes: Node) -> MixFigures:
    """Analyse a mix for a fleet."""
    return mix_figures(Snapshot(fleet(*(nodes or [node(gpu(memory_mib=1_000))]))), jobs)


def slice_(milli: int, **rules: Any) -> Job:  # noqa: ANN401
    """Create a job that requests equal fractions of a device's memory and cores."""
    return job(gpus=1, gpu_milli=milli, gpu_memory_percent=milli // 10, **rules)


def test_value_of_free_capacity_is_that_of_fitting_jobs() -> None:
    """Extra capacity without another fitting job adds no value, and an idle device has a value of 1,000."""
    worth = device_worths(figures([slice_(600), slice_(400)])).reshape(101, 101)
    assert worth[100, 100] == pytest.approx(1_000)
    assert worth[39, 39] == 0
    assert worth[40, 40] == worth[59, 59] > 0
    assert worth[60, 60] == worth[79, 79] > worth[59, 59]
    assert worth[100, 40] == worth[40, 100] == worth[40, 40]


def test_memory_and_cores_have_separate_values() -> None:
    """With unequal demands of memory and cores, free capacity of one does not replace the other."""
    jobs = [
        job(gpus=1, gpu_milli=200, gpu_memory_percent=80),
        job(gpus=1, gpu_milli=800, gpu_memory_percent=20),
    ]
    worth = device_worths(figures(jobs)).reshape(101, 101)
    assert worth[80, 20] > 0 < worth[20, 80]
    assert worth[20, 20] == worth[60, 60] == 0


def test_value_is_proportional_without_a_mix() -> None:
    """Without a mix, half a device has half the value of a whole one."""
    worth = device_worths(figures(EMPTY)).reshape(101, 101)
    assert worth[50, 50] == worth[50, 100] == pytest.approx(500)


def test_served_fraction_rises_to_one() -> None:
    """No CPU serves nothing, the demand of all jobs serves all, and half of it more than half."""
    tables, steps = served_tables(figures([job(gpus=1, cpu_milli=4_000, memory_mib=8_000)]))
    assert tables[:, 0] == pytest.approx([0, 0])
    assert tables[:, -1] == pytest.approx([1, 1])
    assert (np.diff(tables, axis=1) >= 0).all()
    assert steps[0, 0] * 4_000 / 1_000 == pytest.approx(tables.shape[1] - 1)  # one job to a device
    half = tables[0, tables.shape[1] // 2]
    assert half == pytest.approx(0.5 * (1 - np.log(0.5)), abs=0.01)


def test_hosting_counts_what_fits_by_cpu_and_idle_devices() -> None:
    """A node hosts a multi-device job with enough CPU and idle devices, where its rules allow."""
    pair = job(gpus=2, cpu_milli=8_000, models={"A"})
    found = figures([pair], node(gpu(model="A")), node(gpu(model="B")))
    steps, table = hosting_table(found, 3)
    assert steps.tolist() == [8_000]
    lines = table.reshape(len(found.allowed), 2, 4)
    for kind, allowed in enumerate(found.allowed[:, 0]):
        assert not lines[kind, 0].any()
        assert (lines[kind, 1] > 0).tolist() == [False, False, bool(allowed), bool(allowed)]


def test_groups_are_allowed_kinds_of_jobs_and_their_unions() -> None:
    """Each set of allowed kinds, and each union of two, has the work that it alone can serve."""
    nodes = [node(gpu(model=model)) for model in "ABC"]
    jobs = [slice_(500, models={"A"}), slice_(500, models={"B"}), slice_(1_000)]
    found = figures(jobs, *nodes)
    group, work = bound_groups(found)
    kind_of = {model: int(found.kind[n]) for n, model in enumerate("ABC")}
    by_set = {frozenset(np.flatnonzero(line).tolist()): share for line, share in zip(group, work, strict=True)}
    assert by_set == {
        frozenset({kind_of["A"]}): pytest.approx(0.25),
        frozenset({kind_of["B"]}): pytest.approx(0.25),
        frozenset({kind_of["A"], kind_of["B"]}): pytest.approx(0.5),
    }


def test_no_group_without_narrow_rules() -> None:
    """Unrestricted jobs make no kind of node scarce."""
    group, work = bound_groups(figures([slice_(500)], node(gpu(model="A")), node(gpu(model="B")), node()))
    assert len(group) == len(work) == 0


def test_many_kinds_of_job_are_sampled() -> None:
    """An even sample represents more kinds of job than the tables are made from."""
    jobs = [job(gpus=1, gpu_milli=milli, gpu_memory_percent=50) for milli in range(1, 4 * MAX_TYPES)]
    found = figures(jobs)
    assert len(found.share) <= MAX_TYPES
    assert found.share.sum() == pytest.approx(1)


def test_empty_fleet_has_empty_tables() -> None:
    """Fleets and clusters without nodes need no special case."""
    found = mix_figures(Snapshot(fleet(cluster())), [slice_(500)])
    assert device_worths(found).shape == (0, 101 * 101)
    assert hosting_table(found, 0)[1].shape[1] == 1
    assert bound_groups(found)[0].shape[0] == 0
