"""Training instances of a policy, identified by their content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from seaway.learning.instances.instance import Instance
from seaway.learning.instances.kinds import KINDS, family_of, generate_one
from seaway.learning.runs.instances import digest_of


@dataclass(frozen=True, slots=True)
class Seen:
    """Instances that something was trained on.

    Attributes
    ----------
    digests
        Of each, see `digest_of`.
    draw, draws, draw_seed
        Kinds of which instances were drawn besides, how many of each, and from which seed. One of them is known by its
        name, and by its content when it is drawn again.
    also
        What others were trained on that decide with it.
    """

    digests: frozenset[str] = frozenset()
    draw: tuple[str, ...] = ()
    draws: int = 0
    draw_seed: int = 0
    also: tuple[Seen, ...] = ()

    def has(self, instance: Instance, digest: str) -> bool:
        """Tell whether an instance is one of them, given its digest."""
        return (
            digest in self.digests
            or any(self._drew(kind, instance, digest) for kind in self.draw)
            or any(each.has(instance, digest) for each in self.also)
        )

    def _drew(self, kind: str, instance: Instance, digest: str) -> bool:
        family, name = family_of(kind, self.draw_seed), instance.name
        number = name.removeprefix(family)
        if kind not in KINDS or not name.startswith(family) or not number.isdecimal() or int(number) >= self.draws:
            return False
        return digest_of(generate_one(kind, int(number), self.draw_seed)) == digest


class _Draws(msgspec.Struct):
    draws: int = 0
    draw_seed: int = 0


class _Stored(msgspec.Struct):
    digests: dict[str, str]
    draw: tuple[str, ...] = ()
    settings: _Draws = msgspec.field(default_factory=_Draws)


def seen_by(config: Mapping[str, Any]) -> Seen | None:
    """Return what the settings in a policy file say it was trained on; None where they do not say."""
    try:
        reported = msgspec.convert(config, _Stored)
    except msgspec.ValidationError:
        return None
    return Seen(
        frozenset(reported.digests.values()), reported.draw, reported.settings.draws, reported.settings.draw_seed
    )


def seen_together(configs: Sequence[Mapping[str, Any]]) -> Seen | None:
    """Return what policies that decide together were trained on; None where one of them, or none, says it."""
    seen = [each for config in configs if (each := seen_by(config))]
    return Seen(also=tuple(seen)) if seen and len(seen) == len(configs) else None
