"""What is asked of Prometheus about one interface, and what its answer says.

References
----------
Prometheus, "HTTP API": instant queries. "Querying basics": double-quoted strings take Go's escapes.
"""

from __future__ import annotations

import math
import re
from urllib.parse import urlsplit

import msgspec

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import GatewayConfig

FIGURE = "seaway_figure"
"""The label that tells the four parts of an answer apart."""

PLACES = ("exporter", "name", "address")
"""What may stand in braces: host and port of a gateway's exporter, and what the gateway is called and where it is."""

_IN_BRACES = re.compile(r"\{([a-z_]+)\}")

RECEIVED, TRANSMITTED, SPEED, AGE = "received", "transmitted", "speed", "age"


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Series]


class _Answer(msgspec.Struct):
    data: _Data


def require_known(labels: str) -> None:
    """Look whether names in braces are all known.

    Raises
    ------
    RejectedError
        When one is not.
    """
    unknown = [name for name in _IN_BRACES.findall(labels) if name not in PLACES]
    if unknown:
        text = f"{unknown[0]!r} in braces is none of {', '.join(PLACES)}"
        raise RejectedError(text, where="[network] prometheus.labels")


def fill_in(labels: str, gateway: GatewayConfig) -> str | None:
    """Return what selects a gateway's node-exporter in PromQL; None when the gateway lacks what it takes.

    Parameters
    ----------
    labels
        As ``instance="{exporter}"``, with any of `PLACES` in braces.
    """
    exporter = urlsplit(gateway.exporter).netloc
    known = dict(zip(PLACES, (exporter, gateway.name, str(gateway.address)), strict=True))
    if not all(known[name] for name in _IN_BRACES.findall(labels)):
        return None
    return _IN_BRACES.sub(lambda found: _escaped(known[found[1]]), labels)


def query(labels: str, interface: str, window_s: int) -> str:
    """Return the PromQL that asks for all that is wanted of an interface at once."""
    where = f'{{{labels},device="{_escaped(interface)}"}}'
    received, transmitted = f"node_network_receive_bytes_total{where}", f"node_network_transmit_bytes_total{where}"
    parts = {
        RECEIVED: f"rate({received}[{window_s}s])",
        TRANSMITTED: f"rate({transmitted}[{window_s}s])",
        SPEED: f"node_network_speed_bytes{where}",
        AGE: f"time() - timestamp({received})",
    }
    return " or ".join(f'label_replace({text}, "{FIGURE}", "{part}", "", "")' for part, text in parts.items())


def read_answer(body: bytes) -> dict[str, float]:
    """Return what Prometheus answers, by figure.

    Raises
    ------
    ValueError
        When it is no answer, or has something twice.
    """
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.DecodeError as error:
        raise ValueError(f"it answers something else than a query's result: {error}") from error
    found: dict[str, float] = {}
    for series in answer.data.result:
        figure = series.metric.get(FIGURE, "")
        if figure in found:
            raise ValueError("several series are selected; [network] prometheus.labels has to select one exporter")
        found[figure] = float(series.value[1])
    return {figure: value for figure, value in found.items() if math.isfinite(value)}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
