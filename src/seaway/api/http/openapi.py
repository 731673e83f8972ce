"""OpenAPI description, and a page that renders it without external resources."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from seaway.api.http.routes import MESSAGES, ROLE
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


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-family:ui-monospace,monospace}summary{cursor:pointer;padding:.3rem 0}h2{margin-top:2rem}"
    "td,th{text-align:left;vertical-align:top;padding:.1rem 1rem .1rem 0}"
)


def page(described: dict[str, Any]) -> str:
    """Render the description as HTML."""
    parts = [f"<!doctype html><html lang=en><meta charset=utf-8><title>Seaway API</title><style>{STYLE}</style>"]
    parts.append(f"<h1>Seaway API</h1><p>{escape(DESCRIPTION)}</p><p><a href=/openapi.json>openapi.json</a></p>")
    for tag in described["tags"]:
        parts.append(f"<h2>{escape(tag['name'])}</h2><p>{escape(tag['description'])}</p>")
        for path, operations in described["paths"].items():
            parts += [
                _operation(method, path, operation)
                for method, operation in operations.items()
                if tag["name"] in operation.get("tags", ())
            ]
    return "".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [
        f"<tr><td><code>{escape(each['name'])}</code><td>{each['in']}<td>{escape(each.get('description', ''))}"
        for each in operation.get("parameters", ())
    ]
    rows += [
        f"<tr><td>{status}<td>answer<td>{escape(answer.get('description', ''))}"
        for status, answer in operation.get("responses", {}).items()
    ]
    role = f" <small>{escape(operation[ROLE])}</small>" if ROLE in operation else ""
    return (
        f"<details><summary><code>{method.upper()} {escape(path)}</code> "
        f"{escape(operation.get('summary', ''))}{role}</summary>"
        f"<p>{escape(operation.get('description', ''))}</p><table>{''.join(rows)}</table></details>"
    )
