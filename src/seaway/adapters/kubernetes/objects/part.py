"""What all objects and their parts have in common.

Fields that are not named are skipped while decoding. Every field has a default, so an object may lack any of them; a
null counts as lacking.
"""

from __future__ import annotations

import msgspec

Quantity = str | int | float
"""An amount as it stands in JSON; `quantities` reads it."""


class Part(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """What all structs here are: frozen, spelt as in JSON, and passed over by the garbage collector (no cycles)."""
