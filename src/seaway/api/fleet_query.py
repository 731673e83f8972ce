"""Which nodes and devices are asked for, in the parameters of a request."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from seaway.api.job_query import Word
from seaway.application.fleet_search import FleetFilter
from seaway.application.ports.store import MOST_ROWS

MOST = 2**31 - 1
LIMIT = 100


class FleetQuery(BaseModel):
    """Which nodes and devices are asked for; what is left out does not filter."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    cluster: Word = ""
    """Only in this cluster."""
    node: Word = ""
    """Only on this node."""
    name: Word = ""
    """Only nodes with this in the name."""
    device: Word = ""
    """Only devices with this in the uuid; of nodes, those that have such a device, and likewise with what follows."""
    model: Word = ""
    """Only devices with this in the model, like `A100`."""
    free_memory_mib: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Only devices with at least so much memory that nobody holds."""
    free_core_milli: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Only devices with at least so many thousandths of cores that nobody holds."""
    ready: bool | None = None
    """Only nodes that take new work, or only those that do not; devices that are asked for have to take it, too."""
    after: Annotated[str, Field(max_length=100)] = ""
    """What `next` of the page before said."""
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = LIMIT
    """Entries on a page."""

    @property
    def wanted(self) -> FleetFilter:
        """What to look for."""
        return FleetFilter(
            self.cluster,
            self.node,
            self.name,
            self.device,
            self.model,
            self.free_memory_mib,
            self.free_core_milli,
            self.ready,
        )
