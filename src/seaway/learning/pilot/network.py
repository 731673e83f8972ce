"""The network of `pilot` in torch, as it is written to a policy file.

For each node on the shortlist two layers look at its figures, the job's and the fleet's. Heads of attention, softmax
over the nodes, pick out what is there altogether; a third layer puts both together to a score, to which the figures
themselves are added with weights of their own. Another layer says from the job and from what the heads found whether
to wait. Neither the number of nodes nor their order is anywhere in it.
"""

from __future__ import annotations

import torch

from seaway.scheduling.kernels.features import FLEET_GPU_CORE_FREE, JOB_FIGURES, JOB_RANK
from seaway.scheduling.kernels.pilot import LEAST_RANK, MOST_FREE, STEEP, PilotWeights

ABSENT = -1e9
"""The score of a node that is not there."""


class PilotNetwork(torch.nn.Module):
    """The network with given weights.

    Parameters
    ----------
    weights
        As machine code has them.
    """

    def __init__(self, weights: PilotWeights) -> None:
        super().__init__()
        for name, values in weights._asdict().items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(values.copy())))

    def forward(self, nodes: torch.Tensor, job: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a score for each node, shape (N,), and one for waiting, shape (1,), above all others to wait.

        Parameters
        ----------
        nodes
            Shape (N, FIGURES).
        job
            Shape (JOB_FIGURES,).
        """
        scores, wish = self.judge(nodes, job)
        size = STEEP * (job[JOB_RANK : JOB_RANK + 1] - LEAST_RANK)
        room = STEEP * (MOST_FREE - job[FLEET_GPU_CORE_FREE : FLEET_GPU_CORE_FREE + 1])
        return scores, scores.max().reshape(1) + torch.minimum(wish.reshape(1), torch.minimum(size, room))

    def judge(
        self, nodes: torch.Tensor, job: torch.Tensor, listed: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores, shape (..., N), and wishes to wait, shape (...), without the bounds on them.

        Parameters
        ----------
        nodes, job
            Of several decisions at once, shapes (..., N, FIGURES) and (..., JOB_FIGURES).
        listed
            Which nodes are there, shape (..., N): the others have no say, and scores far below all. None for all.
        """
        first = torch.relu(nodes @ self.node_in + (job @ self.job_in + self.bias_in).unsqueeze(-2))
        hidden = torch.relu(first @ self.hidden + self.bias_hidden)
        sought = hidden @ self.attend
        if listed is not None:
            sought = sought.masked_fill(~listed.unsqueeze(-1), ABSENT)
        found = torch.softmax(sought, dim=-2).transpose(-1, -2) @ hidden
        pooled = found.flatten(-2)
        out = torch.relu(hidden @ self.own + (pooled @ self.pooled + self.bias_out).unsqueeze(-2))
        scores = out @ self.last + nodes @ self.skip
        if listed is not None:
            scores = scores.masked_fill(~listed, ABSENT)
        wish = torch.relu(job @ self.wait_job + pooled @ self.wait_pooled + self.bias_wait) @ self.wait_last
        return scores, wish + job @ self.wait_skip[:JOB_FIGURES] + self.wait_skip[JOB_FIGURES]


def weights_of(network: PilotNetwork) -> PilotWeights:
    """Return a network's weights as machine code takes them."""
    return PilotWeights(*(getattr(network, name).detach().numpy().copy() for name in PilotWeights._fields))
