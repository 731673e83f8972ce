"""Filters in query parameters."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from seaway.application.fleet.search import FleetFilter
from seaway.application.ports.store import MAX_ROWS, JobFilter
from seaway.domain.job_state import JobState
from seaway.wire.fields import LABEL_PATTERN, LINE_PATTERN, at_ns
from seaway.wire.job_out import StateName

MAX_DEFAULT = 25
LONGEST_NS = 2**63 - 1


def require_moment(text: str) -> str:
    """Check a timestamp."""
    try:
        at = at_ns(text) if text else 0
    except (ValueError, OverflowError):
        at = -1
    if not 0 <= at <= LONGEST_NS:
        raise PydanticCustomError("moment", "must be a moment with its zone, like 2026-11-21T10:00:00Z")
    return text


def require_shown(state: StateName) -> StateName:
    """Check that jobs in a state can be listed."""
    if state == "deleted":
        raise PydanticCustomError("deleted", "may not be 'deleted': deleted jobs are not shown any more")
    return state


Word = Annotated[str, Field(max_length=253, pattern=LINE_PATTERN)]
Moment = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"}), AfterValidator(require_moment)]


class JobQuery(BaseModel):
    """Filter of jobs. Omitted fields do not filter."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tenant: Word = ""
    """Tenant of the jobs. Default: your own tenant; all tenants for operators and admins."""
    queue: Word = ""
    state: Annotated[list[Annotated[StateName, AfterValidator(require_shown)]], Field(max_length=len(JobState))] = []
    """States to match; repeat for several."""
    cluster: Word = ""
    """Cluster of the latest attempt."""
    name: Word = ""
    """Part of the name."""
    submitted_by: Word = ""
    label: Annotated[str, Field(max_length=400, pattern=LABEL_PATTERN)] = ""
    """Key and value of a label, like `team=a`."""
    submitted_from: Moment = ""
    """Start of the time of submission, like 2026-11-21T10:00:00Z."""
    submitted_until: Moment = ""
    """End of the time of submission, exclusive."""
    after: Annotated[str, Field(max_length=100)] = ""
    """Value of `next` from the previous page."""
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = MAX_DEFAULT
    """Maximum number of jobs on a page."""

    def filter(self, tenant: str, before: str) -> JobFilter:
        """Return the filter for the store."""
        key, _, value = self.label.partition("=")
        return JobFilter(
            tenant=tenant,
            queue=self.queue,
            states=frozenset(map(JobState, self.state)),
            cluster=self.cluster,
            name=self.name,
            submitted_by=self.submitted_by,
            label=(key, value) if key else None,
            submitted_from_ns=at_ns(self.submitted_from) if self.submitted_from else None,
            submitted_until_ns=at_ns(self.submitted_until) if self.submitted_until else None,
            before=before,
        )


MOST = 2**31 - 1
LIMIT = 100


class FleetQuery(BaseModel):
    """Filter of nodes and devices. Omitted fields do not filter."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    cluster: Word = ""
    """Filter by cluster."""
    node: Word = ""
    """Filter by node."""
    name: Word = ""
    """Filter nodes by a part of their name."""
    device: Word = ""
    """Part of the UUID of devices. Nodes match if they have a matching device; this applies to the next fields too."""
    model: Word = ""
    """Part of the model of devices, like `A100`."""
    free_memory_mib: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Minimum free memory of devices, MiB."""
    free_core_milli: Annotated[int, Field(ge=0, le=MOST)] = 0
    """Minimum free cores of devices, thousandths."""
    ready: bool | None = None
    """True for nodes and devices that accept new jobs, false for nodes that do not."""
    after: Annotated[str, Field(max_length=100)] = ""
    """Value of `next` from the previous page."""
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = LIMIT
    """Maximum number of entries on a page."""

    @property
    def wanted(self) -> FleetFilter:
        """The filter."""
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
