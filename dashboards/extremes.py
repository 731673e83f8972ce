"""Which series a panel draws where there are too many for all."""

from __future__ import annotations

import re

from dashboards.once import once

MOST = 20
"""Series that one panel draws: those that matter most."""

DEVICE = "cluster, nodeid, deviceidx, deviceuuid"
VGPU = f"{DEVICE}, namespace, pod, container"
LINK = "source, target, cluster"
"""What tells devices, vGPUs and links apart."""


def most(query: str, where: str, labels: str, *, least: bool = False) -> str:
    """Ask for the courses of the series that are highest at the end of what is looked at.

    ``topk`` alone chooses again at each moment, so that a panel draws every series that was among them at any. Where
    the end is still to come, as of "today", nothing has a figure there, and the last one of each series counts, be it
    of one that has ended meanwhile.

    Parameters
    ----------
    where
        What stands behind each metric in the query.
    labels
        By what series are told apart.
    least
        Whether to ask for the lowest in place of the highest.
    """
    end = once(query.replace(where, f"{where} @ end()"), labels)
    last = once(re.sub(rf"\w+{re.escape(where)}", r"last_over_time(\g<0>[$__range] @ end())", query), labels)
    chosen = f"{'bottomk' if least else 'topk'}({MOST}, {end} or ({last} unless on () {end}))"
    return once(f"({query}) and on ({labels}) {chosen}", labels)
