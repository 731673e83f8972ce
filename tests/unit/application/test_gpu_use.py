"""The measured use of the GPUs of jobs, now and in the last hour."""

from __future__ import annotations

from dataclasses import replace

from seaway.adapters.simulated.faults import Options
from seaway.application.fleet.gpu_use import INTERVAL_S, MAX_SAMPLES
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


def test_without_exporters_nothing_is_recorded() -> None:
    """The slices are listed, without their use."""
    made = scene(fleet(*two_clusters().clusters))
    job_id = made.submit()
    made.plane.overview.record_gpu_use()
    (taken,), samples = made.plane.overview.gpu_use(made.job(job_id))
    assert (taken.used, samples) == (None, [])
