"""Which series a panel draws where there are too many for all."""

from __future__ import annotations

MOST = 20
"""Series that one panel draws: those that matter most."""

DEVICE = "cluster, nodeid, deviceuuid"
VGPU = f"{DEVICE}, namespace, pod, container"
LINK = "source, target, cluster"
"""What tells devices, vGPUs and links apart."""


def most(query: str, where: str, labels: str, *, least: bool = False) -> str:
    """Ask for the courses of the series that are highest at the end of what is looked at.

    ``topk`` alone chooses anew at each moment, so that a panel draws every series that was among them at any.

    Parameters
    ----------
    where
        What stands behind each metric in the query.
    labels
        By what series are told apart.
    least
        Whether to ask for the lowest in place of the highest.
    """
    end = query.replace(where, f"{where} @ end()")
    return f"({query}) and on ({labels}) {'bottomk' if least else 'topk'}({MOST}, {end})"
