"""Errors as Kubernetes writes them: an HTTP status and a body of kind Status."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes.kubernetes.kinds import Json, Kind


class FailureError(Exception):
    """A request that ends with an error.

    Parameters
    ----------
    code
        HTTP status.
    reason
        One word, such as ``NotFound``.
    message
        One sentence.
    details
        Details of the object for the Status.
    headers
        Headers to send along.
    """

    def __init__(
        self, code: int, reason: str, message: str, details: Json | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}

    def status(self) -> Json:
        """Return the body."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def _details(kind: Kind, name: str, **more: object) -> Json:
    found: Json = {"name": name}
    if kind.group:
        found["group"] = kind.group
    return {**found, "kind": kind.plural, **more}


def not_found(kind: Kind, name: str) -> FailureError:
    """Return 404 for an object."""
    return FailureError(404, "NotFound", f'{kind.qualified} "{name}" not found', _details(kind, name))


def no_such_path() -> FailureError:
    """Return 404 for a path that is not served."""
    return FailureError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str) -> FailureError:
    """Return 409 for a name that is taken."""
    return FailureError(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', _details(kind, name))


def conflict(kind: Kind, name: str, why: str = "") -> FailureError:
    """Return 409 for a write that is based on an old version."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    return FailureError(
        409, "Conflict", f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}', _details(kind, name)
    )


def invalid(kind: Kind, name: str, causes: Sequence[tuple[str, str, str]]) -> FailureError:
    """Return 422; each cause is a field, a reason (``FieldValueRequired``) and a text."""
    said = [f"{field}: {text}" for field, _, text in causes]
    listed = said[0] if len(said) == 1 else "[" + ", ".join(said) + "]"
    named = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details: Json = {"name": name}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.kind
    details["causes"] = [{"reason": reason, "message": text, "field": field} for field, reason, text in causes]
    return FailureError(422, "Invalid", f'{named} "{name}" is invalid: {listed}', details)


def bad_request(message: str) -> FailureError:
    """Return 400."""
    return FailureError(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str) -> FailureError:
    """Return 403 for an object."""
    return FailureError(403, "Forbidden", f'{kind.qualified} "{name}" is forbidden: {why}', _details(kind, name))


def denied(hook: str, why: str) -> FailureError:
    """Return 403 as an admission webhook reports it."""
    return FailureError(403, "Forbidden", f'admission webhook "{hook}" denied the request: {why}')


def expired(message: str) -> FailureError:
    """Return 410."""
    return FailureError(410, "Expired", message)


def unauthorized() -> FailureError:
    """Return 401."""
    return FailureError(401, "Unauthorized", "Unauthorized")


def not_supported(method: str) -> FailureError:
    """Return 405."""
    del method
    return FailureError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_media_type(found: str, accepted: Sequence[str]) -> FailureError:
    """Return 415."""
    return FailureError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}",
        {"causes": [{"message": found}]},
    )
