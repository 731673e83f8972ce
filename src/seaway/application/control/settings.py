"""What the control loop can be told."""

from __future__ import annotations

from dataclasses import dataclass

MANY = 100
"""Replicas that a cluster takes another `assume_s` for: each may become an object of its own, or several."""


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """Delays and limits of the control loop.

    Attributes
    ----------
    batch
        Jobs decided, and stored, together.
    most_tried
        Jobs tried at a stretch, before others may look at the memory; the rest is tried in the next.
    assume_s
        How long a placement is held for a cluster that does not confirm it; as long again for every `MANY` replicas.
    stale_s
        After how many silent seconds a cluster gets no new work.
    grace_s
        After how many silent seconds its jobs are placed elsewhere.
    replace_per_minute
        At most how many jobs are taken from silent clusters in any minute, all clusters together.
    halt_share
        When more than this share of all clusters is silent, the fault is taken to be on this side, and
        nothing is placed elsewhere, nor for `grace_s` afterwards. A fleet of one cluster has no elsewhere.
    retry_s, most_retry_s
        Delay before a failed job is tried again; it doubles with every failure up to the most.
    forgive_s
        How long a job is kept from devices, nodes and clusters that refused it.
    keep_finished_s
        How long clusters keep what is left of ended jobs, so that logs can be read.
    reserve
        Whether the first job of a queue that does not fit gets a reservation.
    hold_s
        How long a place is kept where nobody knows when it comes free; for as long it is then not kept.
    longest_wait_s
        How long a policy may hold a job back that fits, because it waits for a better place; 0 for never.
    poll_s
        How often the loop looks around when nothing happens.
    round_s
        Pause between two rounds, in which what comes in gathers: many jobs together cost far less than each alone.
    calm_per_s, give_way
        While more than so many jobs are submitted in a second, the loop rests for so many times as long as
        its last round took, so that whoever submits is answered soon; it catches up afterwards.
    sample_s
        How often fleet and links are written down.
    network_breach_s
        For how long links have to break the bounds of a running job before that is told, or the job is moved.
    path_hold_s
        How long traffic between two gateways stays on a path that was chosen for jobs, unless nothing answers there.
    """

    batch: int = 64
    most_tried: int = 512
    assume_s: float = 60
    stale_s: float = 15
    grace_s: float = 60
    replace_per_minute: int = 120
    halt_share: float = 0.5
    retry_s: float = 5
    most_retry_s: float = 300
    forgive_s: float = 600
    keep_finished_s: float = 3600
    reserve: bool = True
    hold_s: float = 300
    longest_wait_s: float = 300
    poll_s: float = 1
    round_s: float = 0.02
    calm_per_s: int = 300
    give_way: float = 8
    sample_s: float = 60
    network_breach_s: float = 60
    path_hold_s: float = 30

    def confirm_s(self, replicas: int) -> float:
        """Return how long a placement of so many replicas is held for a cluster that does not confirm it, seconds."""
        return self.assume_s * (1 + replicas // MANY)

    def pause_s(self, failures: int) -> float:
        """Return how long a job pauses after so many failures, seconds."""
        doubled: float = self.retry_s * 2 ** min(failures - 1, 20)
        return min(doubled, self.most_retry_s)
