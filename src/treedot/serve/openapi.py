"""The description of the JSON interface, in OpenAPI 3.1, made from the table of fields."""

from __future__ import annotations

from typing import Any

from treedot._version import __version__
from treedot.serve.fields import MAX_TEXT, TOPICS, Field
from treedot.serve.schemas import ANSWERS

_ERROR = {
    "description": "An error; its text says what to change",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_CODES = ("400", "403", "405", "408", "413", "415", "421", "429", "431", "500")


def description() -> dict[str, Any]:
    """Return the description of all routes of the JSON interface."""
    error = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "treedot serve", "version": __version__},
        "paths": {f"/api/{name}": _methods(name) for name in TOPICS},
        "components": {"schemas": {"Error": error, **ANSWERS}},
    }


def _methods(name: str) -> dict[str, Any]:
    summary, fields, _ = TOPICS[name]
    schema = {"$ref": f"#/components/schemas/{name}"}
    responses = {
        "200": {"description": summary, "content": {"application/json": {"schema": schema}}},
        **dict.fromkeys(_CODES, _ERROR),
    }
    parameters = [
        {"name": one.name, "in": "query", "description": one.about, "schema": _schema(one)} for one in fields
    ]
    body = {
        "type": "object",
        "properties": {one.name: {"description": one.about, **_schema(one)} for one in fields},
        "additionalProperties": False,
    }
    return {
        "get": {"summary": summary, "parameters": parameters, "responses": responses},
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": responses,
        },
    }


def _schema(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"default": field.default}
    match field.default:
        case str():
            found |= {"type": "string"} if field.choices else {"type": "string", "maxLength": MAX_TEXT}
        case float():
            found |= {"type": "number", "minimum": 0, "maximum": 1}
        case _ if not field.choices:
            found |= {"type": "integer", "minimum": field.low, "maximum": field.high}
        case _:
            found |= {"type": "integer"}
    return found | ({"enum": list(field.choices)} if field.choices else {})
