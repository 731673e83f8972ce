"""Selection of series for panels that cannot draw all."""

from __future__ import annotations

import re

from dashboards.once import once

MOST = 20
"""Maximum number of series in one panel."""

DEVICE = "cluster, nodeid, deviceidx, deviceuuid"
VGPU = f"{DEVICE}, namespace, pod, container"
LINK = "source, target, cluster"
"""Labels that identify devices, vGPUs and links."""


def most(query: str, where: str, labels: str, *, least: bool = False) -> str:
    """Return a query for the series that are highest at the end of the time range.

    ``topk`` alone selects again at each step, so a panel draws every series that was selected at any step. If the end
    is in the future, as of "today", no series has a value there. Then the last value of each series counts, also of
    series that ended earlier.

    Parameters
    ----------
    where
        Label matchers behind each metric in the query.
    labels
        Labels that identify the series.
    least
        True for the lowest instead of the highest.
    """
    end = once(query.replace(where, f"{where} @ end()"), labels)
    last = once(re.sub(rf"\w+{re.escape(where)}", r"last_over_time(\g<0>[$__range] @ end())", query), labels)
    chosen = f"{'bottomk' if least else 'topk'}({MOST}, {end} or ({last} unless on () {end}))"
    return once(f"({query}) and on ({labels}) {chosen}", labels)
