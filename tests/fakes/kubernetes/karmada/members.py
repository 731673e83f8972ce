"""The members of a control plane, and its reaction times."""

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
    """Reaction times of Karmada, seconds; close to zero by default.

    Attributes
    ----------
    not_ready_s
        From a member's last answer to its being marked as not ready.
    ready_s
        From its return to its being ready again.
    status_s
        Between two summaries of a member's resources.
    revert_s
        Until Karmada reverts a change of a user in a member.
    retry_s
        Until Karmada retries a write that a member denied.
    """

    not_ready_s: float = 0.0
    ready_s: float = 0.0
    status_s: float = 0.02
    revert_s: float = 0.0
    retry_s: float = 0.2

    @classmethod
    def real(cls) -> KarmadaPace:
        """Return the times measured on real servers."""
        return cls(80.0, 38.0, 10.0, 6.0)
