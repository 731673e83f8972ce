"""The measured use of the GPUs of jobs: now, in the last hour, and over the life of a job."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from seaway.adapters.simulated.faults import Options
from seaway.application.fleet.gpu_use import (
    INTERVAL_S,
    MAX_SAMPLES,
    STORED_EVERY,
    WIDTH,
    UseSample,
    joined,
    packed,
    row_of,
    sample_of,
    unpacked,
)
from seaway.application.ports.store import Retention
from seaway.domain.usage import UsageSpan
from seaway.scheduling.arrays import Int64
from seaway.testing.plugins import fleet
from tests.unit.application.scene import Scene, scene, two_clusters


def measuring() -> Scene:
    """Return clusters that measure."""
    made = scene()
    for each in ("alpha", "beta"):
        made.cluster(each)._options = replace(Options(waits=False), measures=True)  # noqa: SLF001  # as a server does
    return made


def test_a_job_has_the_use_of_its_own_slices() -> None:
    """On a shared device, that of its pods; what is reserved beside it says how much of it is used."""
    made = measuring()
    first = made.submit(gpu_memory_mib=1000, gpu_milli=100)
    other = made.submit(gpu_memory_mib=5000, gpu_milli=500)
    made.clock.advance_s(60)
    made.plane.settle()
    for job_id, memory_mib, core_milli in ((first, 1000, 100), (other, 5000, 500)):
        (taken,), (sample,) = made.plane.overview.gpu_use(made.job(job_id))
        assert (taken.replica, taken.cluster, taken.memory_mib, taken.core_milli) == (
            0,
            made.where(job_id),
            memory_mib,
            core_milli,
        )
        assert taken.used is not None
        assert sample[2:] == (core_milli, sample.memory_mib, memory_mib)
        assert 0.59 * memory_mib < (sample.memory_mib or 0) < memory_mib
        assert 0.19 * core_milli < (sample.core_milli or 0) <= core_milli


def test_samples_of_the_last_hour_stay_after_the_end_of_a_job() -> None:
    """Older ones are dropped, and with the last one all that is known of a job."""
    made = measuring()
    job_id = made.submit(gpus=2)
    overview, begin_s = made.plane.overview, made.clock.now_ns() // 10**9
    for _ in range(MAX_SAMPLES + 5):
        made.clock.advance_s(INTERVAL_S)
        overview.record_gpu_use()
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.settle()
    slices, samples = overview.gpu_use(made.job(job_id))
    assert slices == []
    assert [each.at_s for each in samples] == [begin_s + INTERVAL_S * number for number in range(6, MAX_SAMPLES + 6)]
    made.clock.advance_s(INTERVAL_S * (MAX_SAMPLES + 1))
    overview.record_gpu_use()
    assert overview.gpu_use(made.job(job_id)) == ([], [])


def test_older_samples_survive_restarts_and_the_end_of_a_job_until_it_is_removed() -> None:
    """Those in memory and in the database follow each other. A job that ends is stored at once, and pruned with it."""
    made = measuring()
    job_id = made.submit(gpus=2)
    for _ in range(STORED_EVERY):
        made.clock.advance_s(INTERVAL_S)
        made.plane.overview.record_gpu_use()
    made.plane.restart()
    made.plane.settle()
    for _ in range(STORED_EVERY):
        made.clock.advance_s(INTERVAL_S)
        made.plane.overview.record_gpu_use()
    times = [each.at_s for each in made.plane.overview.gpu_use(made.job(job_id))[1]]
    assert times[:-1] == sorted(set(times))  # the present sample was recorded too
    assert times[-1] - times[0] > 1.4 * STORED_EVERY * INTERVAL_S
    made.plane.jobs.cancel(job_id, "ada")
    made.plane.settle()
    made.plane.overview.record_gpu_use()
    made.clock.advance_s(20 * 3600)
    made.plane.overview.record_gpu_use()
    day = made.plane.overview.gpu_use(made.job(job_id), UsageSpan.DAY)[1]
    assert (day[0].at_s - times[0], day[-1].at_s - times[-1]) == (0, 0)
    assert {each.core_milli_reserved for each in day} == {2000}
    assert made.plane.overview.gpu_use(made.job(job_id)) == ([], [])
    made.plane.jobs.delete(job_id, "ada")
    made.plane.settle()
    made.plane.store.prune(Retention(None, None, None, None), made.clock.now_ns())
    assert made.plane.store.job_uses([job_id]) == []


def test_joined_samples_keep_the_means_and_little_of_the_past() -> None:
    """A month of samples is a few hundred. Unknown values are left out of means, and packing loses nothing."""
    month_s = 30 * 86_400
    rows = array_of()
    for at_s in range(0, month_s, 600):
        new = (UseSample(each, 500 + each // 60 % 2 * 100, 1000, None, 8) for each in range(at_s, at_s + 600, 60))
        rows = joined(np.concatenate([rows, array_of(*new)]), at_s + 600)
    samples = [sample_of(each) for each in rows.tolist()]
    assert 500 < len(samples) < 700
    assert samples[-1].at_s == month_s - 60
    assert all(540 <= (each.core_milli or 0) <= 560 for each in samples[:300])
    gaps = [(after.at_s - before.at_s) / (month_s - before.at_s) for before, after in pairwise(samples[:-60])]
    assert max(gaps) < 1 / 25
    two = array_of(UseSample(0, None, 10, 3, 8), UseSample(30, 40, 20, None, 8))
    assert joined(two, 60).tolist() == array_of(UseSample(30, 40, 15, 3, 8)).tolist()
    assert unpacked(packed(rows)).tolist() == rows.tolist()
    assert len(packed(rows)) < 4_000


def array_of(*samples: UseSample) -> Int64:
    """Return the rows of samples."""
    return np.array([row_of(each) for each in samples], np.int64).reshape(-1, WIDTH)


def test_without_exporters_nothing_is_recorded() -> None:
    """The slices are listed, without their use."""
    made = scene(fleet(*two_clusters().clusters))
    job_id = made.submit()
    made.plane.overview.record_gpu_use()
    (taken,), samples = made.plane.overview.gpu_use(made.job(job_id))
    assert (taken.used, samples) == (None, [])


def test_jobs_with_unused_gpus_come_first() -> None:
    """The measured use of running jobs in the last hour is set against what they hold; ended jobs are left out."""
    made = measuring()
    large, small, over = made.submit(gpus=2), made.submit(gpus=1), made.submit(gpus=1)
    made.plane.settle()
    for _ in range(10):
        made.clock.advance_s(INTERVAL_S)
        made.plane.overview.record_gpu_use()
    made.plane.jobs.cancel(over, "ada")
    made.plane.settle()
    found = made.plane.overview.unused_gpus()
    assert sorted(each.job.id for each in found) == sorted([large, small])
    assert [each.unused_gpu_core_hours for each in found] == sorted(
        (each.unused_gpu_core_hours for each in found), reverse=True
    )
    held = {each.job.id: each.gpu_core_hours for each in found}
    assert held[large] == 2 * held[small] == 2 * 10 * INTERVAL_S / 3600
    for each in found:
        samples = [one for one in made.plane.overview.gpu_use(each.job)[1] if one.core_milli is not None][:10]
        used_hours = sum(one.core_milli or 0 for one in samples) * INTERVAL_S / 3600 / 1000
        assert abs(each.gpu_core_hours - each.unused_gpu_core_hours - used_hours) < 1e-9


def test_unused_gpus_are_known_after_a_restart() -> None:
    """The stored samples of the last hour count, each for the time since the one before it."""
    made = measuring()
    job_id = made.submit(gpus=2)
    for _ in range(STORED_EVERY):
        made.clock.advance_s(INTERVAL_S)
        made.plane.overview.record_gpu_use()
    (before,) = made.plane.overview.unused_gpus()
    made.plane.restart()
    made.plane.settle()
    made.clock.advance_s(INTERVAL_S)
    made.plane.overview.record_gpu_use()
    (found,) = made.plane.overview.unused_gpus()
    assert found.job.id == job_id
    stored = made.plane.overview.gpu_use(made.job(job_id))[1][:-1]
    spans_s = [INTERVAL_S, *(after.at_s - before.at_s for before, after in pairwise(stored))]
    assert found.gpu_core_hours == 2 * sum(min(each, 2 * INTERVAL_S) for each in spans_s) / 3600
    assert found.gpu_core_hours > before.gpu_core_hours / 2 > 0
    assert found.unused_gpu_core_hours > before.unused_gpu_core_hours / 2 > 0
