"""Which pods tell what is used, and where they do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seaway.adapters.kubernetes.objects.pod import PodObject
from seaway.domain.errors import RejectedError

WHERE = "[clusters] usage.exporters"
_WRITTEN = re.compile(r"(?P<selector>[^:@;\s]+):(?P<port>[0-9]{1,5})(?:@(?P<namespace>[a-z0-9-]+))?")
LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Exporters:
    """Pods that tell what is used.

    Attributes
    ----------
    selector
        Their labels.
    port
        Where they tell it, at ``/metrics``.
    namespace
        Where they are; empty for any.
    """

    selector: str
    port: int
    namespace: str = ""

    @property
    def collection(self) -> str:
        """The path of the pods that they are among."""
        return f"/api/v1/namespaces/{self.namespace}/pods" if self.namespace else "/api/v1/pods"


@dataclass(frozen=True, slots=True)
class Exporter:
    """One such pod.

    Attributes
    ----------
    rank
        Which of the settings found it: where two tell the same, the lower one counts.
    """

    namespace: str
    name: str
    port: int
    node: str
    rank: int

    @property
    def path(self) -> str:
        """Where the API server's proxy to its page is."""
        return page_of(self.namespace, self.name, self.port)


def page_of(namespace: str, pod: str, port: int) -> str:
    """Return the path of a pod's metrics behind the API server's proxy."""
    return f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy/metrics"


def read_exporters(text: str) -> tuple[Exporters, ...]:
    """Read ``SELECTOR:PORT`` or ``SELECTOR:PORT@NAMESPACE``, several with ``;`` between.

    Raises
    ------
    RejectedError
        When it is written otherwise.
    """
    found = []
    for each in filter(None, map(str.strip, text.split(";"))):
        read = _WRITTEN.fullmatch(each)
        if read is None or not 0 < int(read["port"]) <= LAST_PORT:
            raise RejectedError(f"{each!r} has to be LABEL=VALUE:PORT or LABEL=VALUE:PORT@NAMESPACE", where=WHERE)
        found.append(Exporters(read["selector"], int(read["port"]), read["namespace"] or ""))
    return tuple(found)


def exporter_of(pod: PodObject, port: int, rank: int) -> Exporter | None:
    """Return the exporter that a pod is; None while it does not run."""
    meta = pod.metadata
    if not pod.spec.node_name or pod.status.phase != "Running" or meta.deletion_timestamp:
        return None
    return Exporter(meta.namespace, meta.name, port, pod.spec.node_name, rank)
