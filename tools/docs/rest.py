"""The reference of the REST API, from its description (OpenAPI)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tools.docs.markdown import code, table

Schema = dict[str, Any]

REFERENCE = "#/components/schemas/"
PROBLEM = {"$ref": f"{REFERENCE}Problem"}


def rest_page(described: dict[str, Any]) -> str:
    """Return the page: operations by tag, then the schemas that they use."""
    operations = [
        (method, path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    parts = ["# REST API\n", f"{described['info']['description']}\n", "`/openapi.json` has the same for programs.\n"]
    for tag in described["tags"]:
        parts += [f"## {tag['name'].capitalize()}\n", f"{tag['description']}\n"]
        parts += [_operation(*each) for each in operations if tag["name"] in each[2].get("tags", ())]
    parts += ["## Errors\n", f"The body of an error is a {type_of(PROBLEM)}.\n"]
    errors = {
        status: answer["description"] for *_, each in operations for status, answer in _answers(each, failed=True)
    }
    parts.append(table(["status", "meaning"], sorted(errors.items())))
    parts.append("## Schemas\n")
    parts += [_schema(name, schema) for name, schema in sorted(described["components"]["schemas"].items())]
    return "\n".join(parts)


def _operation(method: str, path: str, operation: Schema) -> str:
    parts = [f"### `{method.upper()} {path}`\n", f"{operation['description']}\n"]
    rows = [
        [
            _name(each["name"], required=each.get("required", False)),
            each["in"],
            type_of(each["schema"]),
            _default(each["schema"]),
            each.get("description", ""),
        ]
        for each in operation.get("parameters", ())
    ]
    if rows:
        parts.append(table(["parameter", "in", "type", "default", "description"], rows))
    if "requestBody" in operation:
        parts.append(f"Body: {_content(operation['requestBody'])}\n")
    answers = [[status, each["description"], _content(each)] for status, each in _answers(operation, failed=False)]
    parts.append(table(["status", "meaning", "body"], answers))
    errors = ", ".join(status for status, _ in _answers(operation, failed=True))
    parts.append(f"Errors: {errors}.\n" if errors else "")
    return "\n".join(parts)


def _answers(operation: Schema, *, failed: bool) -> Iterator[tuple[str, Schema]]:
    """Yield the answers that are errors, or those that are not."""
    for status, answer in operation["responses"].items():
        kinds = [content.get("schema") for content in answer.get("content", {}).values()]
        if (kinds == [PROBLEM]) == failed:
            yield status, answer


def _content(answer: Schema) -> str:
    """Return what a body holds, and its media types."""
    kinds: dict[str, list[str]] = {}
    for media_type, content in answer.get("content", {}).items():
        kinds.setdefault(type_of(content.get("schema", {})), []).append(media_type)
    return ", ".join(
        kind if media_types == ["application/json"] else f"{kind} ({' or '.join(media_types)})"
        for kind, media_types in kinds.items()
    )


def _name(name: str, *, required: bool) -> str:
    return f"`{name}`" + (" (required)" if required else "")


def _schema(name: str, schema: Schema) -> str:
    required = set(schema.get("required", ()))
    rows = [
        [
            _name(field, required=field in required),
            type_of(of),
            _default(of),
            of.get("description", ""),
        ]
        for field, of in schema.get("properties", {}).items()
    ]
    fields = table(["field", "type", "default", "description"], rows) if rows else f"{type_of(schema)}\n"
    return f"### {name}\n\n{schema.get('description', '')}\n\n{fields}"


def type_of(schema: Schema) -> str:
    """Return the type of a schema in words; a schema with a name is linked."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        return f"[{name}](#{name.lower()})"
    if kinds := [kind for key in ("anyOf", "oneOf", "allOf") for kind in schema.get(key, ())]:
        return " or ".join(dict.fromkeys(type_of(each) for each in kinds))
    if values := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(code(each) for each in values)
    if "items" in schema:
        return f"list of {type_of(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {type_of(schema['additionalProperties'])}"
    return " ".join([str(schema.get("type", "anything")), *_bounds(schema)])


def _bounds(schema: Schema) -> Iterator[str]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None or high is not None:
        yield f"({'' if low is None else f'{low:,}'}–{'' if high is None else f'{high:,}'})"


def _default(schema: Schema) -> str:
    default = schema.get("default")
    return "" if default in (None, "", [], {}) else code(json.dumps(default))
