"""Claims and the pods that use them."""

from __future__ import annotations

from typing import Any

from seaway.adapters.kubernetes.collect.device_shares import Claims
from seaway.adapters.kubernetes.objects.core import PodObject
from seaway.adapters.kubernetes.objects.dra import ResourceClaim
from tests.unit.adapters.kubernetes.device_plugins.samples import decoded


def claim(name: str, **status: Any) -> ResourceClaim:  # noqa: ANN401  # fields of a status
    """Write a claim."""
    return decoded({"metadata": {"name": name, "namespace": "ns"}, "status": status}, ResourceClaim)


def pod(*claims: str, made: str = "") -> PodObject:
    """Write a pod that uses claims, one of them made from a template."""
    named = [{"name": f"c{at}", "resourceClaimName": name} for at, name in enumerate(claims)]
    template = [{"name": "t", "resourceClaimTemplateName": "any"}] if made else []
    statuses = [{"name": "t", "resourceClaimName": made}] if made else []
    body = {"spec": {"resourceClaims": named + template}, "status": {"resourceClaimStatuses": statuses}}
    return decoded({"metadata": {"name": "p", "namespace": "ns"}, **body}, PodObject)


def test_a_claim_concerns_the_pods_that_use_it() -> None:
    """A claim affects pods that name it and pods that it was created for, in any order, until they use another."""
    claims = Claims()
    assert claims.used_by("ns/p", pod("shared")) == []
    assert claims.used_by("ns/q", pod("shared", "shared", made="made")) == []
    assert claims.put(claim("shared")) == ["ns/p", "ns/q"]
    assert claims.put(claim("made")) == ["ns/q"]
    assert claims.put(claim("other")) == []
    assert claims.used_by("ns/q", pod("shared", "shared", made="made")) == [claim("shared"), claim("made")]
    assert claims.used_by("ns/q", pod("other")) == [claim("other")]
    assert claims.drop("ns/shared") == ["ns/p"]
    claims.forget("ns/q")
    assert claims.drop("ns/other") == []
    assert claims.names == {"ns/made"}


def test_a_claim_that_says_nothing_new_concerns_no_one() -> None:
    """A repeated list causes no changes."""
    claims = Claims()
    claims.used_by("ns/p", pod("gpu"))
    user = [{"resource": "pods", "name": "p", "uid": "1"}]
    assert claims.put(claim("gpu")) == ["ns/p"]
    assert claims.put(claim("gpu")) == []
    assert claims.put(claim("gpu", reservedFor=user)) == ["ns/p"]
    assert claims.drop("ns/gpu") == ["ns/p"]
    assert claims.drop("ns/gpu") == []
