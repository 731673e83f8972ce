"""The parts of a job as people write it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from seaway.wire.fields import (
    Bound,
    Cores,
    Cpu,
    GpuMemory,
    LabelKey,
    LabelValue,
    Loss,
    Memory,
    OneOrMore,
    Rate,
    ReferenceOrNone,
    References,
    Text,
    Variable,
    no_entries,
    no_pairs,
    several,
)
from seaway.wire.message import Incoming

MOST_GPUS = 1024
"""Devices that one replica may ask for; no node has more."""

Mode = Literal["hami-core", "mig", "mps", "whole", "shared"]
Modes = Annotated[list[Mode], Field(max_length=5), BeforeValidator(several, json_schema_input_type=Mode | list[Mode])]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class ResourcesIn(Incoming):
    """What each replica needs of its node, and of each of its devices."""

    cpu: Cpu = 0
    """CPU cores of the node."""
    memory: Memory = 0
    """Memory of the node, with its unit."""
    gpus: Annotated[int, Field(ge=0, le=MOST_GPUS)] = 0
    """How many devices. A slice never spans devices: each of them gives the same."""
    gpu_memory: GpuMemory | None = None
    """Memory of each device, with its unit or as a share; all of it when left out."""
    gpu_cores: Cores | None = None
    """Cores of each device, as a share; left out, none are reserved, or all where all the memory is taken."""
    gpu_model: OneOrMore = no_entries()
    """Product names that will do, whole and without regard to case; any when left out."""
    gpu_vendor: OneOrMore = no_entries()
    """Vendors that will do, like NVIDIA; any when left out."""
    gpu_use_types: References = no_entries()
    """Parts of product names, one of which the device's has to contain."""
    gpu_avoid_types: References = no_entries()
    """Parts of product names that the device's may not contain."""
    gpu_uuids: References = no_entries()
    """The only devices that will do."""
    gpu_avoid_uuids: References = no_entries()
    """Devices that will not do."""
    gpu_mode: Modes = no_entries()
    """Ways of sharing that will do; any when left out. ``whole`` is none, ``shared`` by turns and unbounded."""
    same_numa: bool = False
    """Whether all devices have to hang on one NUMA node."""
    exclusive: bool = False
    """Whether the devices have to be idle."""


class NetworkIn(Incoming):
    """Bounds on a link; what is left out sets none."""

    max_latency: Bound | None = None
    """Largest round-trip time."""
    max_jitter: Bound | None = None
    """Largest spread of the round-trip time."""
    max_loss: Loss | None = None
    """Largest share of lost packets."""
    min_bandwidth: Rate = 0
    """Bandwidth that the job takes while it runs; a figure alone is Mbit/s."""


class UserNetworkIn(NetworkIn):
    """Bounds on the link from the user's gateway, and what is done when a link breaks a bound of the job."""

    on_breach: Literal["report", "move"] = "report"
    """What is done when a running job's links break its bounds for too long: it is told of, or started elsewhere."""


class DataIn(Incoming):
    """Where the job's data is: a wish, not a rule."""

    location: ReferenceOrNone = ""
    """A cluster, a gateway or a region."""
    size: Memory = 0
    """How much there is of it, with its unit."""


class TolerationIn(Incoming):
    """Leave to run on nodes with a taint, as in Kubernetes."""

    key: Annotated[str, Field(max_length=317)] = ""
    """The taint's key; empty bears every taint."""
    value: LabelValue | None = None
    """The taint's value; any when left out."""
    effect: Effect | None = None
    """The taint's effect; any when left out."""


class PlacementIn(Incoming):
    """Where replicas may go; what is left out does not narrow it."""

    clusters: References = no_entries()
    """Clusters by name."""
    regions: References = no_entries()
    """Regions."""
    hardware: References = no_entries()
    """Special hardware that the cluster has to have, all of it."""
    node_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=64)] = no_pairs()
    """Labels that the node has to carry."""
    tolerations: Annotated[list[TolerationIn], Field(max_length=64)] = no_entries()
    """Taints that the job bears."""


class RunIn(Incoming):
    """What each replica runs."""

    image: ReferenceOrNone = ""
    """The container's image."""
    command: Annotated[list[Text], Field(max_length=256)] = no_entries()
    """Instead of the image's entry point."""
    args: Annotated[list[Text], Field(max_length=256)] = no_entries()
    """Instead of the image's arguments."""
    env: Annotated[dict[Variable, Text], Field(max_length=256)] = no_pairs()
    """Environment variables."""
    ports: Annotated[list[Annotated[int, Field(ge=1, le=65_535)]], Field(max_length=64)] = no_entries()
    """TCP ports that it listens on."""
