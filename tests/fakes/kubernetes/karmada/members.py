"""The members of a control plane, and how fast it notices things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fakes.kubernetes.server import ApiServer


@dataclass(frozen=True, slots=True)
class Member:
    """One cluster, by its name in the control plane."""

    name: str
    server: ApiServer


@dataclass(frozen=True, slots=True)
class KarmadaPace:
    """How long Karmada takes, seconds; by default as good as nothing.

    Attributes
    ----------
    not_ready_s
        From a member's silence to its being known not to be ready.
    ready_s
        From its return to its being ready again.
    status_s
        Between two summaries of a member's resources.
    revert_s
        Until what a user changed in a member is put right.
    retry_s
        Until what a member denied is tried again.
    """

    not_ready_s: float = 0.0
    ready_s: float = 0.0
    status_s: float = 0.02
    revert_s: float = 0.0
    retry_s: float = 0.2

    @classmethod
    def real(cls) -> KarmadaPace:
        """Return what was seen on real servers."""
        return cls(80.0, 38.0, 10.0, 6.0)
