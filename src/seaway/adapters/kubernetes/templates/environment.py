"""Variables of a container's environment that say which devices it gets, and how much of them.

Device plugins and container runtimes speak to each other, and to what limits a share, by variables; one that stands
in a pod wins over a device plugin's. A tenant who sets one would get devices of others, or more of one than was
booked. So jobs may not. Templates that operators write may: what stands there is the operator's word.

What a job does inside of its container no one checks here: HAMi-core's limits are for tenants who work together, and a
process can change its own environment. What decides which devices are there at all is settled before it starts.

Variables stay free that only choose among the devices that a container has (``CUDA_VISIBLE_DEVICES``) or which of the
driver's libraries are there (``NVIDIA_DRIVER_CAPABILITIES``), and ``LD_PRELOAD`` and ``LD_LIBRARY_PATH``: what limits
shares of HAMi, of Volcano's vGPU and of Ascend's cards is loaded by ``/etc/ld.so.preload``, which is read besides, and
allocators of memory are loaded so.

References
----------
NVIDIA container toolkit ``internal/config/image``, ``internal/modifier/cdi.go``, ``pkg/nvcdi/wrapper.go`` (which sets
``void`` as well). NVIDIA's device plugin, issues 61 and 87 (who asks for no device sees all). HAMi v2.10
``pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go``, ``pkg/device/*/device.go``, ``SECURITY.md``. HAMi-core
``src/multiprocess/multiprocess_memory_limit.c``, ``src/libvgpu.c``. HAMi's device plugins for Ascend
(``internal/server/allocate.go``) and AMD (``internal/pkg/plugin/plugin.go``), Cambricon's (``pkg/mlu/const.go``) and
Iluvatar's (``pkg/dpm/plugin.go``). Linux man-pages, ld.so(8).
"""

from __future__ import annotations

from collections.abc import Iterator

from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec

_CHOOSE = "_VISIBLE_DEVICES"
"""How variables end by which container runtimes choose devices: NVIDIA, ASCEND, CAMBRICON, IX, MTHREADS, HABANA ..."""

_AMONG = frozenset({"CUDA", "HIP", "MUSA", "MACA", "TOPS", "XPU", "MLU", "ASCEND_RT"})
"""How those begin that programs read, to choose among the devices of their container."""

_OPENS = "it opens further devices of the node to a container"
_LIMITS = "it sets what of a device a container may use"
_UNLIMITED = "it lifts the limits of a share"
_BESIDE = "it says how the users of a device are kept apart"

_NAMES = {
    "NVIDIA_MIG_CONFIG_DEVICES": "it lets a container cut devices of the node again",
    "NVIDIA_MIG_MONITOR_DEVICES": _OPENS,
    "NVIDIA_IMEX_CHANNELS": _OPENS,
    "NVIDIA_GDS": _OPENS,
    "NVIDIA_MOFED": _OPENS,
    "NVIDIA_GDRCOPY": _OPENS,
    "NVIDIA_NVSWITCH": _OPENS,
    "CUDA_MPS_PIPE_DIRECTORY": _BESIDE,
    "CUDA_DISABLE_CONTROL": _UNLIMITED,
    "GPU_CORE_UTILIZATION_POLICY": _UNLIMITED,
    "ACTIVE_OOM_KILLER": _UNLIMITED,
    "CUDA_REDIRECT": _UNLIMITED,
    "CUDA_OVERSUBSCRIBE": _LIMITS,
    "CUDA_TASK_PRIORITY": _BESIDE,
    "LD_AUDIT": "HAMi's limits of AMD's devices are loaded by it",
    "HSA_CU_MASK": _LIMITS,
    "HIP_DEVICE_MEMORY_LIMIT": _LIMITS,
    "ASCEND_RUNTIME_OPTIONS": _OPENS,
    "ASCEND_RUNTIME_MOUNTS": "it mounts folders of the node",
    "ASCEND_VNPU_SPECS": _LIMITS,
    "NPU_MEM_QUOTA": _LIMITS,
    "NPU_PRIORITY": _LIMITS,
    "NPU_GLOBAL_SHM_PATH": _BESIDE,
    "NPU_LOCAL_SHM_PATH": _BESIDE,
    "VIRTUAL_DEVICES": _LIMITS,
    "IX_REPLICA_DEVICES": _LIMITS,
}
"""Variables by name, with why they are not for jobs to set."""

_BEGIN = {
    "CUDA_DEVICE_MEMORY_": _LIMITS,  # LIMIT, LIMIT_0 and so on, SHARED_CACHE
    "CUDA_DEVICE_SM_LIMIT": _LIMITS,
    "CAMBRICON_SPLIT_": _LIMITS,
    "CAMBRICON_DSMLU_": _LIMITS,
}
"""Likewise, by how they begin."""

NO_DEVICES = (("NVIDIA_VISIBLE_DEVICES", "void"), ("ASCEND_VISIBLE_DEVICES", ""))
"""For containers that get no device: where a vendor's runtime is the default one it obeys what an image says, and those
with CUDA say that they want all. A device plugin sets nothing for such containers, and a resource claim gives none."""


def forbidden_variables(spec: JobSpec) -> Iterator[RejectedError]:
    """Say which of a job's variables are not for jobs to set."""
    for name, _ in spec.run.env:
        if why := _why(name):
            yield RejectedError(f"{name!r} is not for jobs to set, as {why}: leave it out", where="run.env")


def _why(name: str) -> str:
    """Say why a variable is not for jobs to set; empty for one that is."""
    if name.endswith(_CHOOSE) and name.removesuffix(_CHOOSE) not in _AMONG:
        return "it chooses the devices that a container gets"
    begins = next((why for begin, why in _BEGIN.items() if name.startswith(begin)), "")
    return _NAMES.get(name, begins)
