"""A run's curves for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seaway.learning.training.listener import NullListener, Plan, Reached, Row


class Events(NullListener):
    """Writes figures of each episode as events; what an earlier part of the run wrote after its checkpoint is hidden.

    Parameters
    ----------
    folder
        Where `tensorboard --logdir` is to look.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None

    def begins(self, plan: Plan) -> None:
        """Begin a file of events."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._folder), purge_step=plan.done + 1)

    def played(self, row: Row) -> None:
        """Write what there is of an episode."""
        play, evaluated = row.play, row.evaluated
        figures = {
            "episode/reward": play.reward,
            "episode/placed": play.placed,
            "episode/failed": play.failed,
            "episode/fragmentation": play.fragmentation,
            "episode/gpu_load_variance": play.gpu_load_variance,
            "episode/seconds": play.seconds,
            **{f"learning/{name}": value for name, value in play.figures.items()},
        }
        if evaluated:
            figures["evaluated/placed"] = evaluated.placed
            figures["evaluated/gpu_load_variance"] = evaluated.gpu_load_variance
            figures["evaluated/reward"] = evaluated.reward
        for name, value in figures.items():
            if value is not None:
                self._writer.add_scalar(name, value, row.episode)

    def saved(self, episode: int) -> None:
        """Have on the disk what a checkpoint says is done."""
        self._writer.flush()

    def ends(self, reached: Reached) -> None:
        """Close the file."""
        self._writer.close()
