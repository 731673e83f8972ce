"""Calls about policies and their evaluations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seaway.client.call import PREFIX, Answer, Bytes, Call, Model, Nothing, get, part, send

if TYPE_CHECKING:
    from seaway.wire.evaluations import EvaluationDetail, EvaluationList
    from seaway.wire.policies import ActivatedOut, PolicyDetail, PolicyList

_WIRE = "seaway.wire.policies"
_FILE = "application/octet-stream"
_JSON = "application/json"
_CSV = "text/csv"

POLICY: Answer[PolicyDetail] = Model(_WIRE, "PolicyDetail")
POLICIES: Answer[PolicyList] = Model(_WIRE, "PolicyList")
EVALUATION: Answer[EvaluationDetail] = Model("seaway.wire.evaluations", "EvaluationDetail")
EVALUATIONS: Answer[EvaluationList] = Model("seaway.wire.evaluations", "EvaluationList")
ACTIVATED: Answer[ActivatedOut] = Model(_WIRE, "ActivatedOut")


def policies() -> Call[PolicyList]:
    """List the policies that queues may have."""
    return get("/policies", POLICIES)


def policy(name: str) -> Call[PolicyDetail]:
    """Return a policy; for a trained one, with its description, author and signer."""
    return get(f"/policies/{part(name)}", POLICY)


def import_policy(content: bytes) -> Call[PolicyDetail]:
    """Import a trained policy: the content of a policy file. The same file again changes nothing."""
    return Call("POST", f"{PREFIX}/policies", POLICY, {}, {"Content-Type": _FILE}, content)


def export_policy(name: str) -> Call[bytes]:
    """Return the file of a trained policy."""
    return get(f"/policies/{part(name)}/file", Bytes())


def delete_policy(name: str) -> Call[None]:
    """Remove a trained policy that no queue uses, live or as its shadow."""
    return send("DELETE", f"/policies/{part(name)}", Nothing(), repeatable=False)


def activate_policy(name: str, queue: str, *, shadow: bool = False) -> Call[ActivatedOut]:
    """Make a policy the active one of a queue; raises `ConflictError` if it is not permitted yet.

    Parameters
    ----------
    shadow
        Whether it becomes the queue's shadow instead, and the active policy stays.
    """
    return send("POST", f"/policies/{part(name)}/activate", ACTIVATED, {"queue": queue, "shadow": shadow})


def evaluations() -> Call[EvaluationList]:
    """List the stored results of `seaway evaluate`."""
    return get("/evaluations", EVALUATIONS)


def evaluation(name: str) -> Call[EvaluationDetail]:
    """Return an evaluation, summarized by policy."""
    return get(f"/evaluations/{part(name)}", EVALUATION)


def put_evaluation(name: str, rows: bytes, *, csv: bool = False) -> Call[EvaluationDetail]:
    """Store the output of `seaway evaluate -o json` or `-o csv`. The same output again changes nothing."""
    kind = {"Content-Type": _CSV if csv else _JSON}
    return Call("PUT", f"{PREFIX}/evaluations/{part(name)}", EVALUATION, {}, kind, rows)


def delete_evaluation(name: str) -> Call[None]:
    """Remove an evaluation."""
    return send("DELETE", f"/evaluations/{part(name)}", Nothing(), repeatable=False)
