"""Devices in MIG mode: the instances of slices and their rejection."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seaway.testing.plugins import A100_40GB_PROFILES, gpu, job, mig_gpu, node
from tests.unit.scheduling.requesting import place, refusals, slices, snapshot_of

NO_PLACEMENT = "no free MIG placement"


def test_slice_gets_the_smallest_sufficient_profile() -> None:
    """The slice allocates the memory and the cores of the profile."""
    [taken] = slices(snapshot_of(node(mig_gpu())), job(gpus=1, gpu_memory_mib=4_865))
    assert (taken.mig_profile, taken.memory_mib, taken.core_milli) == ("2g.10gb", 9_984, 290)


def test_one_and_three_slice_instances_are_placed_from_the_top() -> None:
    """Profiles 1g and 3g take the highest free start, the others the lowest."""
    snapshot = snapshot_of(node(mig_gpu()))
    small, middle, large = (job(gpus=1, gpu_memory_mib=mib) for mib in (4_000, 9_000, 20_000))
    starts = [slices(snapshot, each)[0].mig_start for each in (small, small, middle)]
    assert starts == [6, 5, 0]
    assert [each.mig_start for each in slices(snapshot_of(node(mig_gpu())), large)] == [4]


def test_slice_gets_a_larger_profile_when_the_smallest_is_full() -> None:
    """A slice gets the next profile where no placement of the smallest is free."""
    one, _, three, _ = A100_40GB_PROFILES
    device = mig_gpu(mig_profiles=(replace(one, starts=(0, 1)), three))
    snapshot = snapshot_of(node(device))
    taken = [slices(snapshot, job(gpus=1, gpu_memory_mib=4_000))[0] for _ in range(3)]
    assert [(each.mig_profile, each.mig_start) for each in taken] == [
        ("1g.5gb", 1),
        ("1g.5gb", 0),
        ("3g.20gb", 4),
    ]
    assert taken[2].memory_mib == three.memory_mib


def test_overlapping_placements_exclude_each_other() -> None:
    """A 2g instance at the bottom leaves no room for 7g, nor for the 3g that overlaps it."""
    snapshot = snapshot_of(node(mig_gpu()))
    place(snapshot, job(gpus=1, gpu_memory_mib=9_000))
    assert refusals(snapshot, job(gpus=1, gpu_memory_mib=20_000)) == [""]
    place(snapshot, job(gpus=1, gpu_memory_mib=20_000))
    assert refusals(snapshot, job(gpus=1, gpu_memory_mib=10_000)) == [NO_PLACEMENT]


def test_several_instances_of_one_job_may_share_a_device() -> None:
    """A job for n devices may get several instances on one device in MIG mode."""
    taken = slices(snapshot_of(node(mig_gpu())), job(gpus=3, gpu_memory_mib=9_000))
    assert len({each.uuid for each in taken}) == 1
    assert [each.mig_start for each in taken] == [0, 2, 4]


def test_uncountable_instances_are_on_one_device() -> None:
    """A pod that cannot request a number per device needs one device for all, however much two have together."""
    pair = [mig_gpu(mig_single_device=True), mig_gpu(mig_single_device=True)]
    snapshot = snapshot_of(node(*pair))
    asked = job(gpus=2, gpu_memory_mib=9_000)
    for _ in range(2):
        assert len({each.uuid for each in slices(snapshot, asked)}) == 1
    assert refusals(snapshot, asked) == [NO_PLACEMENT]
    assert refusals(snapshot, job(gpus=1, gpu_memory_mib=9_000)) == [""]


def test_devices_with_room_for_one_instance_each_are_combined() -> None:
    """The number on each device is then known to be one."""
    snapshot = snapshot_of(node(*(mig_gpu(mig_single_device=True) for _ in range(3))))
    taken = slices(snapshot, job(gpus=2, gpu_memory_mib=30_000))
    assert ([each.mig_profile for each in taken], len({each.uuid for each in taken})) == (["7g.40gb"] * 2, 2)
    assert refusals(snapshot, job(gpus=2, gpu_memory_mib=30_000)) == ["not enough free GPU memory on one device"]
    assert refusals(snapshot, job(gpus=4, gpu_memory_mib=30_000)) == ["too few GPUs"]


def test_device_has_to_hold_all_its_instances() -> None:
    """A device that holds some of the instances but not all is rejected."""
    snapshot = snapshot_of(node(mig_gpu()))
    assert refusals(snapshot, job(gpus=4, gpu_memory_mib=9_000)) == [NO_PLACEMENT]
    assert refusals(snapshot, job(gpus=7, gpu_memory_mib=4_000)) == [""]
    assert refusals(snapshot, job(gpus=8, gpu_memory_mib=4_000)) == ["no slot left on one GPU"]


def test_seven_small_instances_exceed_the_cores_of_a_device() -> None:
    """Cores of profiles are rounded up, so seven 1g instances allocate 1,050 thousandths without harm."""
    taken = slices(snapshot_of(node(mig_gpu())), job(gpus=7, gpu_memory_mib=4_000))
    assert sum(each.core_milli for each in taken) == 1_050


def test_requested_cores_have_to_fit_beside_instances() -> None:
    """A request for cores is compared with the cores that the allocated profiles leave."""
    snapshot = snapshot_of(node(mig_gpu()))
    place(snapshot, job(gpus=1, gpu_memory_mib=20_000))
    assert refusals(snapshot, job(gpus=1, gpu_memory_mib=4_000, gpu_milli=570)) == [""]
    refused = refusals(snapshot, job(gpus=1, gpu_memory_mib=4_000, gpu_milli=571))
    assert refused == ["not enough free GPU cores on one device"]


def test_whole_gpu_does_not_fit_on_a_mig_device() -> None:
    """All memory of a device is more than its largest profile has."""
    snapshot = snapshot_of(node(mig_gpu()), node(gpu()))
    assert refusals(snapshot, job(gpus=1)) == [NO_PLACEMENT, ""]
    assert refusals(snapshot, job(gpus=1, gpu_memory_mib=40_448)) == ["", ""]


def test_exclusive_job_gets_one_instance_of_a_device() -> None:
    """After the first instance the device is in use, so an exclusive job gets no second one there."""
    snapshot = snapshot_of(node(mig_gpu()), node(mig_gpu(), mig_gpu()))
    asked = job(gpus=2, gpu_memory_mib=4_000, exclusive=True)
    assert refusals(snapshot, asked) == ["GPU in use, but requested exclusively", ""]


def test_profile_requested_by_name_is_the_only_one_allocated() -> None:
    """Larger profiles do not take its place, and their memory does not matter."""
    snapshot = snapshot_of(node(mig_gpu()))
    named = job(gpus=1, mig="2g.10gb")
    assert [slices(snapshot, named)[0].mig_start for _ in range(3)] == [0, 2, 4]
    assert refusals(snapshot, named) == [NO_PLACEMENT]
    taken = slices(snapshot_of(node(mig_gpu())), named)[0]
    assert (taken.mig_profile, taken.memory_mib, taken.core_milli) == ("2g.10gb", 9_984, 290)


def test_devices_without_the_requested_profile_are_rejected() -> None:
    """Neither other profiles nor devices without MIG serve a request for a profile."""
    snapshot = snapshot_of(node(mig_gpu()), node(gpu()), node(gpu(healthy=False)))
    asked = job(gpus=1, mig="3g.40gb")
    assert refusals(snapshot, asked) == ["no such MIG profile"] * 3


@pytest.mark.parametrize("single", [False, True])
def test_profile_without_own_memory_size_cannot_be_requested_by_memory(single: bool) -> None:
    """A pod that requests by memory gets the profile with the fewest cores of that size."""
    three = A100_40GB_PROFILES[2]
    four = replace(three, name="4g.20gb", slice_count=4, core_milli=580, starts=(0,))
    snapshot = snapshot_of(node(mig_gpu(mig_profiles=(*A100_40GB_PROFILES, four), mig_single_device=single)))
    assert refusals(snapshot, job(gpus=1, mig="4g.20gb")) == (["no such MIG profile"] if single else [""])
    assert refusals(snapshot, job(gpus=1, mig="3g.20gb")) == [""]


def test_rejected_profile_does_not_stand_for_others() -> None:
    """A queue that finds no room for one profile still places jobs for another."""
    snapshot = snapshot_of(node(mig_gpu()))
    jobs = [job(f"{at}", gpus=1, mig=name) for at, name in enumerate(("7g.40gb", "1g.5gb", "7g.40gb", "3g.20gb"))]
    place(snapshot, job(gpus=1, mig="1g.5gb"))
    assert [each.slices[0].mig_profile for each in place(snapshot, *jobs)] == ["1g.5gb", "3g.20gb"]
