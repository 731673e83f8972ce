"""Environment variables that control the devices of a container and their limits.

Device plugins and container runtimes use variables to configure devices and the limits of a share. A variable of the
pod overrides that of a device plugin. A tenant could therefore get devices of others, or more of a device than
reserved. Jobs may not set such variables; templates of operators may.

This module does not control the job's own processes. The limits of HAMi-core are for cooperating tenants, because a
process can change its own environment. The set of devices is fixed before the process starts.

Some variables stay allowed. ``CUDA_VISIBLE_DEVICES`` selects among the container's devices, and
``NVIDIA_DRIVER_CAPABILITIES`` selects driver libraries. ``LD_PRELOAD`` and ``LD_LIBRARY_PATH`` are used to load memory
allocators. HAMi, Volcano's vGPU and Ascend load their limiting libraries by ``/etc/ld.so.preload``, which the dynamic
linker always reads.

References
----------
NVIDIA container toolkit ``internal/config/image``, ``internal/modifier/cdi.go``, ``pkg/nvcdi/wrapper.go`` (which sets
``void`` as well). NVIDIA's device plugin, issues 61 and 87 (a container that requests no device sees all). HAMi v2.10
``pkg/device-plugin/nvidiadevice/nvinternal/plugin/server.go``, ``pkg/device/*/device.go``, ``SECURITY.md``. HAMi-core
``src/multiprocess/multiprocess_memory_limit.c``, ``src/libvgpu.c``. HAMi's device plugins for Ascend
(``internal/server/allocate.go``) and AMD (``internal/pkg/plugin/plugin.go``), Cambricon's (``pkg/mlu/const.go``) and
Iluvatar's (``pkg/dpm/plugin.go``). Linux man-pages, ld.so(8).
"""

from __future__ import annotations

from collections.abc import Iterator

from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec
from seaway.domain.reasons import Reason
from seaway.domain.runtime import programs

_CHOOSE = "_VISIBLE_DEVICES"
"""Suffix of variables that select devices in container runtimes: NVIDIA, ASCEND, CAMBRICON, IX, MTHREADS, HABANA ..."""

_AMONG = frozenset({"CUDA", "HIP", "MUSA", "MACA", "TOPS", "XPU", "MLU", "ASCEND_RT"})
"""Prefixes of variables with that suffix that only select among the devices of the container."""

_OPENS = Reason("opens_devices")
_LIMITS = Reason("sets_device_limits")
_UNLIMITED = Reason("lifts_limits")
_ISOLATION_CONTROL = Reason("controls_isolation")

_NAMES = {
    "NVIDIA_MIG_CONFIG_DEVICES": Reason("partitions_devices"),
    "NVIDIA_MIG_MONITOR_DEVICES": _OPENS,
    "NVIDIA_IMEX_CHANNELS": _OPENS,
    "NVIDIA_GDS": _OPENS,
    "NVIDIA_MOFED": _OPENS,
    "NVIDIA_GDRCOPY": _OPENS,
    "NVIDIA_NVSWITCH": _OPENS,
    "CUDA_MPS_PIPE_DIRECTORY": _ISOLATION_CONTROL,
    "CUDA_DISABLE_CONTROL": _UNLIMITED,
    "GPU_CORE_UTILIZATION_POLICY": _UNLIMITED,
    "ACTIVE_OOM_KILLER": _UNLIMITED,
    "CUDA_REDIRECT": _UNLIMITED,
    "CUDA_OVERSUBSCRIBE": _LIMITS,
    "CUDA_TASK_PRIORITY": _ISOLATION_CONTROL,
    "LD_AUDIT": Reason("loads_limits"),
    "HSA_CU_MASK": _LIMITS,
    "HIP_DEVICE_MEMORY_LIMIT": _LIMITS,
    "ASCEND_RUNTIME_OPTIONS": _OPENS,
    "ASCEND_RUNTIME_MOUNTS": Reason("mounts_folders"),
    "ASCEND_VNPU_SPECS": _LIMITS,
    "NPU_MEM_QUOTA": _LIMITS,
    "NPU_PRIORITY": _LIMITS,
    "NPU_GLOBAL_SHM_PATH": _ISOLATION_CONTROL,
    "NPU_LOCAL_SHM_PATH": _ISOLATION_CONTROL,
    "VIRTUAL_DEVICES": _LIMITS,
    "IX_REPLICA_DEVICES": _LIMITS,
}
"""Names of forbidden variables, with the reasons."""

_BEGIN = {
    "CUDA_DEVICE_MEMORY_": _LIMITS,  # LIMIT, LIMIT_0 and so on, SHARED_CACHE
    "CUDA_DEVICE_SM_LIMIT": _LIMITS,
    "CAMBRICON_SPLIT_": _LIMITS,
    "CAMBRICON_DSMLU_": _LIMITS,
}
"""Prefixes of forbidden variables, with the reasons."""

NO_DEVICES = (("NVIDIA_VISIBLE_DEVICES", "void"), ("ASCEND_VISIBLE_DEVICES", ""))
"""Variables for containers without devices.

A vendor's runtime that is the default one uses the variables of the image, and CUDA images request all devices. Device
plugins and resource claims set nothing for such containers.
"""


def forbidden_variables(spec: JobSpec) -> Iterator[RejectedError]:
    """Yield an error for each forbidden variable of a job."""
    for where, program in programs(spec.run, spec.runtime):
        for field in ("env", "env_from_secret", "env_from_config_map"):
            for name, _ in getattr(program, field):
                if why := _why(name):
                    said = Reason("variable_forbidden", name=name, cause=why)
                    yield RejectedError(said, where=f"{where}.{field}")
    for name, _ in spec.array.matrix if spec.array else ():
        if why := _why(name):
            yield RejectedError(Reason("variable_forbidden", name=name, cause=why), where="matrix")


def _why(name: str) -> str:
    """Return the reason why a variable is forbidden; empty if it is allowed."""
    if name.endswith(_CHOOSE) and name.removesuffix(_CHOOSE) not in _AMONG:
        return Reason("chooses_devices")
    begins = next((why for begin, why in _BEGIN.items() if name.startswith(begin)), "")
    return _NAMES.get(name, begins)
