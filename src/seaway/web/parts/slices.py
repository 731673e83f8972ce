"""Colours and texts of slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from zlib import crc32

from markupsafe import escape

from seaway.domain.device import mig_figures
from seaway.web import words as figures
from seaway.web.words import Words

if TYPE_CHECKING:
    from seaway.wire.fleet import AllocatedSlice, DeviceOut, UsedOut


COLOURS = 10
"""Number of colours, as in `static/fleet.css`."""


def colours_of(names: Iterable[str]) -> Mapping[str, int]:
    """Assign a colour to each name, 0 to `COLOURS` - 1. Colours repeat only beyond `COLOURS` names."""
    found: dict[str, int] = {}
    taken: set[int] = set()
    for name in sorted(set(names)):
        at = crc32(name.encode()) % COLOURS
        if len(taken) == COLOURS:
            taken.clear()
        while at in taken:
            at = (at + 1) % COLOURS
        taken.add(at)
        found[name] = at
    return found


Held = TypeVar("Held", bound="AllocatedSlice")

TENANT, JOB = "tenant", "job"
"""Meanings of colours."""

HIDDEN, UNMANAGED = "theirs", "unmanaged"
"""CSS classes of slices without a colour: hidden slices of other tenants, and slices of pods that belong to no job."""

BYTES_PER_MIB = 1 << 20

MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class Holder:
    """Entry of the legend.

    Attributes
    ----------
    colour
        CSS class of its slices.
    """

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Slice in the bars of its device.

    Attributes
    ----------
    job
        ID of the job whose page it links to; empty for none.
    who, tip
        Its title and description, escaped for HTML.
    cores, memory
        Its width in each bar in percent; 0 without an allocation.
    """

    job: str
    colour: str
    who: str
    tip: str
    cores: float
    memory: float


@dataclass(frozen=True, slots=True)
class Painter:
    """Colours and texts of a page's slices.

    Attributes
    ----------
    by
        Meaning of the colours.
    colours
        Colours by name of the tenant or job.
    """

    words: Words
    by: str
    colours: Mapping[str, int]

    def colour(self, held: AllocatedSlice) -> str:
        """Return the CSS class of a slice."""
        if not held.job:
            return HIDDEN
        if not held.job_id or not held.tenant:
            return UNMANAGED
        return f"c{self.colours.get(self._name(held), 0)}"

    def who(self, held: AllocatedSlice) -> str:
        """Return the title of a slice."""
        return held.job or self.words("another tenant's job")

    def tip(self, held: AllocatedSlice, device: DeviceOut) -> str:
        """Describe a slice, line by line."""
        words, locale = self.words, self.words.locale
        lines = [f"{self.who(held)} · {held.tenant}" if held.tenant else self.who(held)]
        if held.pod and held.pod != held.job:
            lines.append(f"{held.pod} {held.container}".strip())
        cores = self.cores(held, device.core_milli.total)
        share = figures.percent(figures.share(held.memory_mib, device.memory_mib.total), locale)
        lines.append(words("{cores} of the cores", cores=cores))
        lines.append(words("{memory} of memory, {share}", memory=figures.gib(held.memory_mib, locale), share=share))
        if held.mig_profile:
            lines.append(f"MIG {held.mig_profile}")
        if held.used:
            lines.append(words("Measured use: {used}", used=used_text(held.used, device, words)))
        return "\n".join(lines)

    def cores(self, held: AllocatedSlice, total: int) -> str:
        """Return the share of a device's cores: of a MIG instance its compute slices, whose percents are rounded up."""
        slices, _ = mig_figures(held.mig_profile)
        if slices and held.core_milli:
            return f"{slices}/{round(slices * total / held.core_milli)}"
        return figures.percent(figures.share(held.core_milli, total), self.words.locale)

    def cuts(self, device: DeviceOut) -> list[Cut]:
        """Return the slices of a device for its bars. Both bars share the texts, and no bar exceeds its track."""
        cores = max(device.core_milli.total, sum(each.core_milli for each in device.slices))
        memory = max(device.memory_mib.total, sum(each.memory_mib for each in device.slices))
        return [
            Cut(
                each.job_id if each.tenant else "",
                self.colour(each),
                escape(self.who(each)),
                escape(self.tip(each, device)),
                figures.share(each.core_milli, cores),
                figures.share(each.memory_mib, memory),
            )
            for each in device.slices
        ]

    def card_tip(self, device: DeviceOut) -> str:
        """Describe a device, line by line."""
        words, locale = self.words, self.words.locale
        cores = figures.percent(figures.share(device.core_milli.used, device.core_milli.total), locale)
        of = {
            "used": figures.gib(device.memory_mib.used, locale),
            "total": figures.gib(device.memory_mib.total, locale),
        }
        lines = [
            f"#{device.index} {device.model}",
            device.uuid,
            words("Allocated: {cores} of the cores, {used} of {total}", cores=cores, **of),
            words("Slices: {n} of {most}", n=len(device.slices), most=device.share_limit),
        ]
        if device.island is not None:
            lines.append(words("NVLink island {number}", number=device.island))
        if device.used:
            lines.insert(3, words("Measured use: {used}", used=used_text(device.used, device, words)))
        return "\n".join([*lines, *([words.plain(device)] if device.message else [])])

    def legend(self, slices: Iterable[AllocatedSlice]) -> list[Holder]:
        """Return the names with colours on a page."""
        named = {self._name(each): self.colour(each) for each in slices if each.job_id and each.tenant}
        return [Holder(name, colour) for name, colour in sorted(named.items())]

    def _name(self, held: AllocatedSlice) -> str:
        return held.tenant if self.by == TENANT else held.job


def without_seconds(devices: Sequence[DeviceOut]) -> list[DeviceOut]:
    """Return devices with the age of measurements in whole minutes, so that equal answers compare equal."""
    return [
        each.model_copy(update={"used": _still(each.used), "slices": slices_without_seconds(each.slices)})
        for each in devices
    ]


def slices_without_seconds(slices: Sequence[Held]) -> list[Held]:
    """Return slices with the age of measurements in whole minutes."""
    return [each.model_copy(update={"used": _still(each.used)}) if each.used else each for each in slices]


def _still(used: UsedOut | None) -> UsedOut | None:
    if used is None:
        return None
    age_s = used.age_s // MINUTE_S * MINUTE_S
    return used.model_copy(update={"age_s": age_s})


def painter(words: Words, by: str, slices: Iterable[AllocatedSlice]) -> Painter:
    """Choose the colours of a page."""
    return Painter(words, by, colours_of(each.tenant if by == TENANT else each.job for each in slices if each.job_id))


def used_text(used: UsedOut, device: DeviceOut, words: Words) -> str:
    """Format the measured values."""
    said = []
    if used.core_milli is not None:
        cores = figures.percent(figures.share(used.core_milli, device.core_milli.total), words.locale)
        said.append(words("{cores} of the cores", cores=cores))
    if used.memory_bytes is not None:
        said.append(figures.gib(used.memory_bytes / BYTES_PER_MIB, words.locale))
    return ", ".join([*said, *([old] if (old := age_text(used, words)) else [])])


def age_text(used: UsedOut, words: Words) -> str:
    """Return the age of a measurement as text if it is at least one minute; otherwise return an empty text."""
    if used.age_s < MINUTE_S:
        return ""
    return words("measured {age} ago", age=figures.span(used.age_s, words.locale))
