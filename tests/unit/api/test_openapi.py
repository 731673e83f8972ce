"""The API's description."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from seaway.api.http.examples import EXAMPLES
from seaway.api.http.openapi import describe
from seaway.api.http.routes import MESSAGES
from seaway.wire import (
    evaluations,
    events,
    explanations,
    fleet,
    job_out,
    joins,
    links,
    network_views,
    notifications,
    policies,
    reservations,
    tenancy,
    tokens,
    whatif,
)
from seaway.wire import links as link_matrix
from seaway.wire import queues as queue_views
from tests.unit.api.rig import Rig

MODELS: dict[str, type[BaseModel]] = {each.__name__: each for each in MESSAGES} | {
    name: each
    for module in (
        evaluations,
        events,
        explanations,
        fleet,
        job_out,
        joins,
        link_matrix,
        links,
        network_views,
        notifications,
        policies,
        queue_views,
        reservations,
        tenancy,
        tokens,
        whatif,
    )
    for name, each in vars(module).items()
    if isinstance(each, type) and issubclass(each, BaseModel)
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_are_what_they_are_examples_of(name: str) -> None:
    """Each example is valid for its message, and has all fields that the message shows."""
    read = MODELS[name].model_validate(EXAMPLES[name])
    assert read.model_dump(exclude_unset=True, mode="json") == EXAMPLES[name]


def test_every_body_has_an_example(rig: Rig) -> None:
    """Each request body has an example, and so have the main answers."""
    described = describe(rig.app)
    schemas: dict[str, Any] = described["components"]["schemas"]
    lacking, answers = [], 0
    for operations in described["paths"].values():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                name = content["schema"]["$ref"].rpartition("/")[2]
                if "example" not in content and "examples" not in schemas[name]:
                    lacking.append(operation["operationId"])
            answers += "example" in operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    assert lacking == []
    assert answers > 30


@pytest.mark.parametrize(
    ("message", "field", "says"),
    [
        ("JobIn", "run", "Program of each replica."),
        ("RequestOut", "cpu_milli", "CPU of the node, thousandths of a core."),
        ("JobIn", "priority", "Priority. Jobs with a higher priority go first."),
        ("MetricsOut", "data", "Series by metric."),
    ],
)
def test_what_stands_below_a_field_is_informed_of_it(rig: Rig, message: str, field: str, says: str) -> None:
    """The text below a field of a message is its description."""
    schema = describe(rig.app)["components"]["schemas"][message]
    assert schema["properties"][field]["description"].startswith(says)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "field", "says"),
    [
        ("limit=x", "limit", "must be a whole number"),
        ("limit=0", "limit", "must be at least 1"),
        ("limit=1001", "limit", "at most"),
        ("state=lost", "state.0", "must be one of"),
        ("state=deleted", "state.0", "not shown any more"),
    ],
)
async def test_parameters_are_refused_in_our_words(rig: Rig, query: str, field: str, says: str) -> None:
    """Errors of parameters are reported as for fields of bodies; no parameter finds deleted jobs."""
    async with rig.client("user") as client:
        for path in ("jobs", "job-counts"):
            answer = await client.get(f"/api/v1/{path}?{query}")
            (error,) = answer.json()["errors"]
            assert (answer.status_code, error["field"], says in error["message"]) == (422, field, True), error
