"""Exporters' pages: all former metric names, and invalid pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from seaway.adapters.kubernetes.usage.parse import (
    FIGURES,
    LONGEST_LINE,
    MAX_ESCAPES,
    MAX_LINES,
    MAX_SERIES,
    read_page,
)
from seaway.application.ports.usage import Used

PAGES = Path(__file__).parent / "pages"
FIRST, SECOND = "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448", "GPU-7c1d0a52-11e2-4b5f-9a3e-2f6b8c90d311"
MIB, GIB = 1 << 20, 1 << 30
BOTH = {FIRST: Used(20 * GIB, 870), SECOND: Used(440 * MIB, 0)}
VGPUS = {(FIRST, "seaway", "sw-1"): {"train": Used(15 * GIB, 630), "side": Used(GIB, 1000)}}

SAMPLES = {
    "hami-2.10": (BOTH, VGPUS),
    "hami-2.7": (BOTH, VGPUS),
    "dcgm-4": (BOTH, {}),
    "dcgm-1": (BOTH, {}),
    "dcgm-profiling-only": ({FIRST: Used(20 * GIB, 861)}, {}),
    "dcgm-mig": ({FIRST: Used(12_037 * MIB, None)}, {}),
}


def page(name: str) -> bytes:
    """Return a sample page of an exporter."""
    return (PAGES / f"{name}.prom").read_bytes()


def test_there_is_a_case_for_each_sample() -> None:
    """Every sample page is tested, and every metric is on one."""
    assert {each.stem for each in PAGES.iterdir()} == SAMPLES.keys()
    everything = b"".join(page(name) for name in SAMPLES).decode()
    assert [name for name in FIGURES if f"\n{name}{{" not in everything] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str) -> None:
    """Memory is in bytes and cores in thousandths, whatever the exporter's unit; pods in DCGM's labels are ignored."""
    read = read_page(page(name))
    assert (read.devices, read.containers, read.broken) == (*SAMPLES[name], 0)


def test_old_and_new_names_on_one_page_are_one_figure() -> None:
    """HAMi writes both with legacy metrics enabled: nothing is counted twice, and the new name wins."""
    read = read_page(page("hami-2.7") + page("hami-2.10"))
    assert (read.devices, read.containers) == (BOTH, VGPUS)
    old = b'HostGPUMemoryUsage{deviceuuid="GPU-0"} 7\n'
    assert read_page(old + b'hami_host_gpu_memory_used_bytes{device_uuid="GPU-0"} 8\n').devices["GPU-0"][0] == 8


def test_shares_that_a_container_has_of_one_card_add_up() -> None:
    """Each is a series of its own, by the index of the virtual device."""
    line = 'hami_vgpu_memory_used_bytes{namespace="a",pod="b",container="c",device_uuid="GPU-0",vdevice_index="%d"} 5\n'
    read = read_page("".join(line % index for index in (0, 1)).encode())
    assert read.containers == {("GPU-0", "a", "b"): {"c": Used(10, None)}}


@pytest.mark.parametrize(
    "line",
    [
        '{UUID="GPU-0"} NaN',
        '{UUID="GPU-0"} +Inf',
        '{UUID="GPU-0"} -1',
        '{UUID="GPU-0"} 140737488355328',
        '{UUID="GPU-0"} 1e400',
        '{UUID="GPU-0"} ' + "9" * 500,
        '{UUID="GPU-0"} many',
        '{UUID="GPU-0"}',
        '{UUID=""} 1',
        '{gpu="0"} 1',
        '{UUID="GPU-0" 1',
        '{UUID="GPU-0} 1',
        '{UUID="GPU-0",UUID="GPU-1"} 1',
        '{UUID="' + "x" * LONGEST_LINE + '"} 1',
        '{UUID="' + "\\\\" * MAX_ESCAPES + '"} 1',
        " 1",
    ],
    ids=lambda line: line[:40],
)
def test_what_makes_no_sense_is_left_out_and_counted(line: str) -> None:
    """An impossible value is left out, and the others on the page count."""
    read = read_page(f"DCGM_FI_DEV_FB_USED{line}\n".encode() + page("dcgm-4"))
    assert (read.devices, read.broken) == (BOTH, 1)


def test_bytes_that_are_no_text_are_left_out() -> None:
    """The page need not be text as a whole."""
    read = read_page(b'\xff\xfe\n\0\0\nDCGM_FI_DEV_FB_USED{UUID="\xff"} 1\n' + page("dcgm-4"))
    assert (read.devices, read.broken) == (BOTH, 1)


def test_more_than_the_whole_device_cannot_be_busy() -> None:
    """Above 100 % a device's cores are invalid; a container's are a sum of rounded values, and cut."""
    assert read_page(b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-0"} 101\n').devices == {}
    assert read_page(b'DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID="GPU-0"} 1.1\n').devices == {}


def test_a_page_without_end_is_read_to_a_limit() -> None:
    """The size of a page is limited; a longer page counts as broken."""
    lines = "".join(f'DCGM_FI_DEV_FB_USED{{UUID="GPU-{number}"}} 1\n' for number in range(MAX_SERIES + 100))
    read = read_page(lines.encode())
    assert (len(read.devices), read.broken) == (MAX_SERIES, 1)
    assert read_page(b"\n" * MAX_LINES + page("dcgm-4")).devices == {}


@pytest.mark.parametrize("text", [b"", b"\n" * 1000, b"<html>502</html>", b'{"kind":"Status"}', b"# HELP x y\nup 1\n"])
def test_other_pages_say_nothing(text: bytes) -> None:
    """A page of another program has no values and is not broken."""
    read = read_page(text)
    assert (read.devices, read.containers, read.broken) == ({}, {}, 0)
