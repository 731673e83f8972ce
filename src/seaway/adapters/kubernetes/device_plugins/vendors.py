"""Vendors that HAMi supports: their registers and resource names.

The resource names are those of HAMi's chart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from seaway.adapters.kubernetes.device_plugins.views import CoreUnit, DevicePlugin, DeviceResources, PluginOptions

NVIDIA_KEY = "hami.io/node-nvidia-register"
AMD_KEY = "hami.io/node-amd-register"
METAX_KEY = "metax-tech.com/node-gpu-devices"
ENFLAME_KEY = "enflame.com/gcu-drs-capacity"
CORDON_KEY = "hami.io/device-cordon"

_BY_CHIP = re.compile(r"hami\.io/node-register-(.+)")
_BY_NAME = re.compile(r"hami\.io/node-(.+)-register")


@dataclass(frozen=True, slots=True)
class Vendor:
    """Vendor of the cards in a register.

    Attributes
    ----------
    key
        Annotation of the register.
    handshake
        Annotation of the handshake; empty for none.
    core_unit
        Unit of the core numbers.
    whole_cores
        Cores of a card if the register's number has no meaning; else 0.
    """

    key: str
    handshake: str
    terms: DeviceResources
    core_unit: CoreUnit = CoreUnit.SHARE
    whole_cores: int = 0

    @property
    def nvidia(self) -> bool:
        """True for NVIDIA."""
        return self.key == NVIDIA_KEY


_HAMI = DevicePlugin.HAMI
DCU = DeviceResources(
    _HAMI, "DCU", "hygon.com/dcunum", "hygon.com/dcumem", "hygon.com/dcucores", pin="hygon.com/use-gpuuuid"
)
AMD = DeviceResources(_HAMI, "AMD", "amd.com/gpu", "amd.com/gpumem", "amd.com/gpucores", pin="amd.com/use-gpu-uuid")
BIREN = DeviceResources(_HAMI, "Biren", "birentech.com/gpu", pin="birentech.com/use-gpuuuid")
VASTAI = DeviceResources(_HAMI, "Vastai", "vastaitech.com/va", pin="vastaitech.com/use-gpuuuid")
XPU = DeviceResources(_HAMI, "XPU", "kunlunxin.com/vxpu", "kunlunxin.com/vxpu-memory", pin="baidu.com/use-gpuuuid")
METAX_SLICES = DeviceResources(
    _HAMI,
    "Metax-SGPU",
    "metax-tech.com/sgpu",
    "metax-tech.com/vmemory",
    "metax-tech.com/vcore",
    memory_unit_mib=1024,
    pin="metax-tech.com/use-gpuuuid",
)
ENFLAME_SLICES = DeviceResources(
    _HAMI,
    "Enflame",
    "enflame.com/drs-gcu",
    "enflame.com/gcu-memory",
    "enflame.com/gcu-core",
    memory_unit_mib=1024,
    pin="enflame.com/use-gpuuuid",
)


def nvidia(options: PluginOptions) -> DeviceResources:
    """Return the resources of NVIDIA cards under HAMi."""
    return DeviceResources(
        _HAMI,
        "NVIDIA",
        options.nvidia_count,
        options.nvidia_memory,
        options.nvidia_cores,
        pin="nvidia.com/use-gpuuuid",
        memory_percent=options.nvidia_memory_percent,
    )


def ascend(chip: str) -> DeviceResources:
    """Return the resources of Huawei cards with the given chip."""
    name = f"huawei.com/{chip}"
    return DeviceResources(_HAMI, chip, name, f"{name}-memory", f"{name}-core", pin=f"hami.io/use-{chip}-uuid")


def iluvatar(chip: str) -> DeviceResources:
    """Return the resources of Iluvatar cards with the given chip."""
    name = f"iluvatar.ai/{chip}"
    pin = f"hami.io/use-{chip}-uuid"
    return DeviceResources(_HAMI, chip, f"{name}-vgpu", f"{name}.vMem", f"{name}.vCore", memory_unit_mib=256, pin=pin)


def registered(keys: Iterable[str], options: PluginOptions) -> list[Vendor]:
    """Return the vendors whose registers are among a node's annotations, NVIDIA first, then by name."""
    found = [vendor for key in sorted(keys) if (vendor := _vendor(key, options)) is not None]
    return sorted(found, key=lambda vendor: not vendor.nvidia)


@lru_cache(4096)  # the annotations of a cluster's nodes have the same few names
def _vendor(key: str, options: PluginOptions) -> Vendor | None:
    if by_chip := _BY_CHIP.fullmatch(key):
        return _chip_first(key, by_chip[1])
    if by_name := _BY_NAME.fullmatch(key):
        return _chip_last(key, by_name[1], options)
    return None


def _chip_first(key: str, chip: str) -> Vendor:
    handshake = f"hami.io/node-handshake-{chip}"
    return Vendor(key, handshake, XPU if chip == "xpu" else ascend(chip))


def _chip_last(key: str, name: str, options: PluginOptions) -> Vendor:
    handshake = f"hami.io/node-handshake-{name}"
    if name == "nvidia":
        return Vendor(key, "hami.io/node-handshake", nvidia(options), CoreUnit.PERCENT)
    if name == "amd":
        return Vendor(key, "", AMD)
    if name in {"biren", "va"}:  # HAMi does not read their registered cores
        return Vendor(key, handshake, BIREN if name == "biren" else VASTAI, whole_cores=100)
    return Vendor(key, handshake, DCU if name == "dcu" else iluvatar(name))


NVIDIA = "NVIDIA"
UNKNOWN_NVIDIA = "NVIDIA GPU"
"""Model name of a card with an unknown model."""

_OWN_DASHES = re.compile(r"[A-Z0-9]+-(?:SXM[0-9]?|PCIE)(?:-[0-9]+GB)?(?:-LS)?\b|Max-Q")
"""Parts of product names that contain dashes, such as ``A100-SXM4-80GB``."""

_FOUR_SLICES = ("A30", "RTX PRO 6000")


@lru_cache(1024)  # a fleet has cards of a few models
def nvidia_model(name: str) -> str:
    """Return the product name as in NVIDIA's library, with the vendor as prefix once.

    HAMi up to v2.7 and Volcano add ``NVIDIA-`` to names that already begin with it.
    """
    words = " ".join(name.split())
    while words.startswith((f"{NVIDIA}-", f"{NVIDIA} ")):
        words = words[len(NVIDIA) + 1 :].lstrip("- ")
    return f"{NVIDIA} {words}" if words and words != NVIDIA else UNKNOWN_NVIDIA


def nvidia_label_model(label: str) -> str:
    """Return the product name of a label; labels have dashes instead of spaces."""
    words, at = "", 0
    for retained in _OWN_DASHES.finditer(label):
        words += label[at : retained.start()].replace("-", " ") + retained.group()
        at = retained.end()
    return nvidia_model(words + label[at:].replace("-", " "))


def compute_slices(model: str) -> int:
    """Return the number of MIG compute slices of a card model."""
    return 4 if any(name in model for name in _FOUR_SLICES) else 7


def profile_slices(profile: str) -> int:
    """Return the compute slices of a MIG profile such as ``3g.20gb``; 0 if its name does not contain them."""
    found = re.match(r"([1-7])g(?:[.0-9]|$)", profile)
    return int(found[1]) if found else 0
