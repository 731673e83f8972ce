"""Valid and invalid requests generated from the API's own description."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from schemathesis.core.result import Ok

from seaway.api.http.routes import ROLE
from seaway.application.login_limit import WINDOW_S
from seaway.application.records import Role
from tests.integration.served import Served, serving
from tests.unit.api.rig import JOB

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("SEAWAY_FUZZ_EXAMPLES", "20"))
"""Number of requests for each operation; all of them took a minute on two idle cores."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
    allow_header_conformance,
    ignored_auth,
]
"""Checks of responses. Those of rejected and accepted data are left out: the description cannot express all rules."""

KNOWN = {"job": "train", "cluster": "a", "name": "default", "gateway": "gw-a"}
"""Existing objects, so that requests pass the check for 404."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Serve a fleet with some jobs."""
    with serving() as made:
        with made.client() as client:
            for name in ("train", "serve"):
                assert client.post("/api/v1/jobs", json={**JOB, "name": name}).status_code == 201
        network = {"gateways": [{"name": f"gw-{name}", "cluster": name, "address": f"fd00::{name}"} for name in "ab"]}
        with made.client("operator") as client:
            assert client.put("/api/v1/network", json=network).status_code == 200
        made.rig.step(3)
        yield made


def test_no_request_causes_an_undocumented_response(served: Served) -> None:
    """No generated request causes a 5xx response."""
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json").exclude(path="/api/v1/events")
    schema = schema.exclude(path="/api/v1/jobs/{job}/logs/follow")
    admin, agent = ({"Authorization": served.headers(name)["authorization"]} for name in ("admin", "agent"))
    failures: list[str] = []
    asked = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()

        @given(
            case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
            | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
        )
        @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        def ask(case: Case[Any]) -> None:
            nonlocal asked
            of_agents = case.operation.definition.raw.get(ROLE) == Role.AGENT.value
            asked += 1
            served.rig.clock.advance_s(WINDOW_S)  # failed logins are tried too, without a limit
            if asked % 2:
                for name in case.path_parameters:
                    case.path_parameters[name] = KNOWN.get(name, case.path_parameters[name])
                if isinstance(case.body, dict) and "gateway" in case.body and of_agents:
                    case.body["gateway"] = KNOWN["gateway"]
            case.call_and_validate(headers=agent if of_agents else admin, checks=CHECKS)

        try:
            ask()
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001  # all operations are tried, and all failures are reported
            failures.append(f"{operation.label}: {error}")
    assert asked >= EXAMPLES * 20
    assert not failures, "\n\n".join(failures)
