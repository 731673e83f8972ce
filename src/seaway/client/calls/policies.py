"""Calls about policies: what there is, and trained ones."""

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
    """Look a policy up: of a trained one, what it says of itself, who brought it, and who signed it."""
    return get(f"/policies/{part(name)}", POLICY)


def import_policy(content: bytes) -> Call[PolicyDetail]:
    """Bring a trained policy: the content of a policy file. The same file again changes nothing."""
    return Call("POST", f"{PREFIX}/policies", POLICY, {}, {"Content-Type": _FILE}, content)


def export_policy(name: str) -> Call[bytes]:
    """Return the file of a trained policy."""
    return get(f"/policies/{part(name)}/file", Bytes())


def delete_policy(name: str) -> Call[None]:
    """Remove a trained policy that no queue has, live or as its shadow."""
    return send("DELETE", f"/policies/{part(name)}", Nothing(), repeatable=False)


def activate_policy(name: str, queue: str, *, shadow: bool = False) -> Call[ActivatedOut]:
    """Let a policy decide for a queue; one that may not yet is refused with `ConflictError`.

    Parameters
    ----------
    shadow
        Whether it becomes the queue's shadow instead, and what decides stays.
    """
    return send("POST", f"/policies/{part(name)}/activate", ACTIVATED, {"queue": queue, "shadow": shadow})


def evaluations() -> Call[EvaluationList]:
    """List what `seaway evaluate` found of policies, as far as the server keeps it."""
    return get("/evaluations", EVALUATIONS)


def evaluation(name: str) -> Call[EvaluationDetail]:
    """Look an evaluation up, summed up by policy."""
    return get(f"/evaluations/{part(name)}", EVALUATION)


def put_evaluation(name: str, rows: bytes, *, csv: bool = False) -> Call[EvaluationDetail]:
    """Have the server keep what `seaway evaluate -o json` wrote, or `-o csv`. The same again changes nothing."""
    kind = {"Content-Type": _CSV if csv else _JSON}
    return Call("PUT", f"{PREFIX}/evaluations/{part(name)}", EVALUATION, {}, kind, rows)


def delete_evaluation(name: str) -> Call[None]:
    """Remove an evaluation."""
    return send("DELETE", f"/evaluations/{part(name)}", Nothing(), repeatable=False)
