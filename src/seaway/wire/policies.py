"""Views of policies and of trained policies."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, RootModel

from seaway.wire.fields import Name, moment
from seaway.wire.message import CodedOut, Incoming, Shown, coded, fields_of
from seaway.wire.queues import QueueOut
from seaway.wire.tenancy import versioned

if TYPE_CHECKING:
    from seaway.application.policies import ImportedPolicy
    from seaway.application.views import PolicyView

FILE = "application/octet-stream"
"""Media type of a policy file."""


class PolicyFileIn(RootModel[bytes]):
    """A policy file, as written by `seaway train` and `seaway policy export`."""

    model_config = ConfigDict(json_schema_extra={"examples": ["PK..."]})


class ActivateIn(Incoming):
    """Queue in which a policy is activated. The policy is part of the path."""

    queue: Name
    shadow: bool = False
    """True to activate the policy as the shadow of the queue."""


class PolicyOut(Shown):
    """A scheduling policy."""

    name: str
    description: str
    sentence: CodedOut | None = None
    """`description` with the code and the parameters of its text, for translations."""
    queues: list[str]
    """Queues that use the policy."""
    source: str
    """`seaway` for a built-in heuristic, `package` for a policy of another package, `profile` for a profile file of the
    server, `trained` for a trained policy."""
    warning: CodedOut | None = None
    """Limits to consider before the policy decides for a queue; empty for none."""


class PolicyList(Shown):
    """Policies, built-in ones first."""

    policies: list[PolicyOut]


class CurvePointOut(Shown):
    """Evaluation of a policy after a number of episodes."""

    episode: int
    placed: int
    refused: int
    """Number of infeasible jobs."""
    gpu_load_variance: float
    reward: float


class TrainedOut(Shown):
    """Properties of a trained policy."""

    level: str
    """`cluster` for a policy that selects among a fixed number of clusters, `node` for one that scores any nodes."""
    algo: str
    """Training algorithm."""
    clusters: int | None
    """Number of clusters in training; null for any number."""
    network: bool
    """True if the policy uses links and network bounds."""
    features: int
    """Version of the input features."""
    digest: str
    """SHA-256 of the manifest, which includes the digest of the model. Signatures refer to this digest."""
    model_sha256: str
    size_bytes: int
    """Size of the policy file, bytes."""
    signed_by: str
    """Fingerprint of the signing key; empty if unsigned."""
    imported_by: str
    """Name of the token that imported the policy; empty for built-in policies."""
    at: str | None
    """Time of the import; null for built-in policies."""
    made_by: str
    """Command that created the policy."""
    created: str
    """Creation time."""
    config: dict[str, Any]
    """Training settings."""
    figures: dict[str, float]
    """Figures of the policy in evaluations."""
    curve: list[CurvePointOut]
    """Learning curve by episode; empty if the policy file has none."""


class PolicyDetail(PolicyOut):
    """A policy, with the properties of a trained one."""

    version: str
    """Version of this document, used as ETag. It changes with any field."""
    trained: TrainedOut | None
    """Properties of a trained policy; null for heuristics."""


class ActivatedOut(Shown):
    """Result of activating a policy."""

    queue: QueueOut
    left: str
    """Remaining condition before the policy may be activated, one sentence; empty if none."""
    warning: CodedOut | None = None
    """Limits of the policy while it decides; null for none."""


def policy_fields(policy: PolicyView, seen: Container[str]) -> dict[str, Any]:
    """Return the fields of `PolicyOut` for a policy, with only the queues in `seen`."""
    queues = [name for name in policy.queues if name in seen]
    return fields_of(
        PolicyOut,
        policy,
        description=policy.says,
        sentence=coded(policy.says),
        queues=queues,
        warning=coded(policy.warning),
    )


def detail_fields(policy: PolicyView, seen: Container[str], brought: ImportedPolicy | None) -> dict[str, Any]:
    """Return the fields of `PolicyDetail` for a policy."""
    trained, fields = trained_fields(brought) if brought else None, policy_fields(policy, seen)
    warning = fields.pop("warning")  # it depends on the fleet, and is no change of the policy
    return {**versioned({**fields, "trained": trained}), "warning": warning}


def trained_fields(brought: ImportedPolicy) -> dict[str, Any]:
    """Return the fields of `TrainedOut` for a trained policy."""
    file, said = brought.file, brought.file.manifest
    return {
        "level": said.level.value,
        "algo": said.algo,
        "clusters": said.clusters,
        "network": said.network,
        "features": said.features,
        "digest": file.digest,
        "model_sha256": said.model_sha256,
        "size_bytes": file.size_bytes,
        "signed_by": brought.signed_by.fingerprint if brought.signed_by else "",
        "imported_by": brought.actor,
        "at": moment(brought.at_ns) if brought.at_ns else None,
        "made_by": said.made_by,
        "created": said.created,
        "config": dict(said.config),
        "figures": dict(said.figures),
        "curve": [
            {
                "episode": each.episode,
                "placed": each.placed,
                "refused": each.refused,
                "gpu_load_variance": each.gpu_load_variance,
                "reward": each.reward,
            }
            for each in said.curve
        ],
    }
