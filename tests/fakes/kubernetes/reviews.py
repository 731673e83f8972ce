"""Reviews of a client's own rights, which clients ask for with a SelfSubjectAccessReview."""

from __future__ import annotations

import orjson

from tests.fakes.kubernetes.exchange import Answer, Request

PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class AccessReviews:
    """Answers reviews. They say nothing about what the server allows; see `ApiServer.deny` for that.

    Attributes
    ----------
    denied
        Verb and resource, as ``create jobs.batch``, of each right that the client lacks.
    """

    def __init__(self) -> None:
        self.denied: set[str] = set()

    async def __call__(self, request: Request) -> Answer | None:
        """Answer a review; None for other requests."""
        if request.path != PATH or request.method != "POST":
            return None
        body = orjson.loads(request.body)
        asked = body["spec"]["resourceAttributes"]
        resource = ".".join(filter(None, (asked["resource"], asked["group"])))
        right = f"{asked['verb']} {'/'.join(filter(None, (resource, asked['subresource'])))}"
        return Answer(orjson.dumps(body | {"status": {"allowed": right not in self.denied}}), 201)
