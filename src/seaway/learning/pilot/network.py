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
        first = torch.relu(nodes @ self.node_in + (job @ self.job_in + self.bias_in))
        hidden = torch.relu(first @ self.hidden + self.bias_hidden)
        found = torch.softmax(hidden @ self.attend, dim=0).T @ hidden
        pooled = found.reshape(-1)
        out = torch.relu(hidden @ self.own + (pooled @ self.pooled + self.bias_out))
        scores = out @ self.last + nodes @ self.skip
        wish = torch.relu(job @ self.wait_job + pooled @ self.wait_pooled + self.bias_wait) @ self.wait_last
        wish = (wish + job @ self.wait_skip[:JOB_FIGURES] + self.wait_skip[JOB_FIGURES]).reshape(1)
        size = STEEP * (job[JOB_RANK : JOB_RANK + 1] - LEAST_RANK)
        room = STEEP * (MOST_FREE - job[FLEET_GPU_CORE_FREE : FLEET_GPU_CORE_FREE + 1])
        return scores, scores.max().reshape(1) + torch.minimum(wish, torch.minimum(size, room))


def weights_of(network: PilotNetwork) -> PilotWeights:
    """Return a network's weights as machine code takes them."""
    return PilotWeights(*(getattr(network, name).detach().numpy().copy() for name in PilotWeights._fields))
