"""OpenAPI description, and a reference by Swagger UI without external resources."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import FileResponse, Response

from seaway.api.http.routes import MESSAGES, ROLE
from seaway.domain.errors import UnknownError
from seaway.domain.reasons import Reason
from seaway.wire.message import Incoming, Shown


def explain_fields(schemas: dict[str, Any]) -> None:
    """Add descriptions of fields to the schemas of messages, by name, in place."""
    for model in _models(Incoming, Shown):
        fields = schemas.get(model.__name__, {}).get("properties", {})
        for name, text in _texts(model).items():
            if name in fields:
                fields[name].setdefault("description", text)


def _models(*bases: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Return all classes of messages."""
    for base in bases:
        yield base
        yield from _models(*base.__subclasses__())


@cache
def _texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring of each field of a message, including inherited ones."""
    texts: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, (Incoming, Shown)):
            texts |= _written(each)
    return texts


@cache
def _written(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring of each field that a class defines itself."""
    body = _classes(inspect.getsourcefile(model) or "")[model.__qualname__].body
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


@cache
def _classes(file: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}


TAGS = [
    {"name": "jobs", "description": "Submit, watch, update and explain jobs."},
    {"name": "workdirs", "description": "Archives with working directories of jobs."},
    {"name": "events", "description": "Follow events live."},
    {"name": "fleet", "description": "Clusters, nodes, devices, slices and links."},
    {"name": "network", "description": "Configuration of the network between gateways, and its agents."},
    {"name": "cordons", "description": "Exclude clusters and nodes from new jobs."},
    {"name": "queues", "description": "Queues of jobs, with their pools and policies."},
    {"name": "pools", "description": "Sets of clusters."},
    {"name": "reservations", "description": "Capacity for a tenant or queue at a later time, and maintenance."},
    {"name": "tenants", "description": "Owners of jobs."},
    {"name": "notifications", "description": "Messages about jobs to webhooks, Slack and e-mail addresses."},
    {"name": "policies", "description": "Scheduling policies, trained policies and evaluations."},
    {"name": "access", "description": "Tokens and the audit log."},
    {"name": "health", "description": "Liveness, readiness and alerts."},
]

DESCRIPTION = (
    "Schedules GPU work across clusters, and the network between them. Send a token as "
    "`Authorization: Bearer sw_…`. Errors are problem details (RFC 9457)."
)


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description. It is cached."""
    if app.openapi_schema:
        return app.openapi_schema
    described = get_openapi(title="Seaway", version=app.version, description=DESCRIPTION, routes=app.routes, tags=TAGS)
    _, definitions = models_json_schema(
        [(each, "validation") for each in sorted(MESSAGES, key=lambda each: each.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    components = described.setdefault("components", {})
    components.setdefault("schemas", {}).update(definitions["$defs"])
    explain_fields(components["schemas"])
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for operations in described["paths"].values():
        for operation in operations.values():
            operation["security"] = [{"token": []}] if ROLE in operation else []
    app.openapi_schema = described
    return described


REFERENCE = """<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>Seaway API</title><link rel=stylesheet href=docs/swagger-ui.css><main id=reference></main>
<noscript>The reference needs JavaScript. Programs read <a href=openapi.json>openapi.json</a>.</noscript>
<script src=docs/swagger-ui-bundle.js></script><script src=docs/start.js></script></html>"""
"""Page with the reference. It loads nothing from other hosts."""

START = """document.documentElement.classList.toggle("dark-mode", matchMedia("(prefers-color-scheme: dark)").matches);
SwaggerUIBundle({
    url: "openapi.json", dom_id: "#reference", deepLinking: true, docExpansion: "none", defaultModelsExpandDepth: -1,
    displayRequestDuration: true, filter: true, showExtensions: true, tryItOutEnabled: true, validatorUrl: null,
});
"""
"""Script that starts the reference. The extension x-role of an operation is the lowest role that may call it."""

REFERENCE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy of the reference. Swagger UI sets styles of elements."""

STORED_S = 3600
"""Time for which browsers store the files of the reference, in seconds."""

FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
"""Files of Swagger UI, with their media types."""


def reference() -> Response:
    """Return the page with the reference."""
    return Response(REFERENCE, media_type="text/html", headers={"content-security-policy": REFERENCE_POLICY})


def reference_file(name: str) -> Response:
    """Return a file that the reference needs.

    Raises
    ------
    UnknownError
        When there is no such file.
    """
    headers = {"cache-control": f"max-age={STORED_S}"}
    if name == "start.js":
        return Response(START, media_type="text/javascript", headers=headers)
    if name not in FILES:
        raise UnknownError(Reason("not_found_reference"))
    path = Path(str(files("fastapi_swagger"))) / "resources" / name
    return FileResponse(path, media_type=FILES[name], headers=headers)
