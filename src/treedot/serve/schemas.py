"""JSON Schemas of the answers, for the description of the interface."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
ANYTHING: Schema = {"type": "object"}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _by_name(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


NODES = _described(_list(INTEGER), "Numbers of nodes in post-order")
TREE = _object(format=TEXT, nodes=INTEGER, depth=INTEGER, tree=_described(TEXT, "The tree in brackets"))
KERNEL = _described(
    _object(value=_or_null(NUMBER), normalized=_or_null(NUMBER)), "Null if it would take too long"
)
READ_BACK = _object(
    tree=_or_null(TEXT),
    is_same=_described(TRUTH, "Whether it is the tree that was encoded"),
    is_certified=TRUTH,
    distance=_or_null(NUMBER),
)
PRODUCTIONS = _by_name(_described(INTEGER, "How often the production occurs"))

ANSWERS: dict[str, Schema] = {
    "status": _object(
        model=_or_null(_object(classes=_or_null(_list({})))),
        index=_or_null(_object(trees=INTEGER, languages=_list(TEXT))),
    ),
    "compare": _object(
        a=TREE,
        b=TREE,
        similarity=_described(SHARE, "The share of the productions of either tree that both have"),
        cosine=_described(NUMBER, "The cosine of the rows of fragments"),
        kernels=_object(subset=KERNEL, partial=KERNEL, subtree=KERNEL),
        edits=_or_null(
            _object(
                distance=INTEGER,
                pairs=_list(NODES),
                relabelled=_list(NODES),
                deleted=NODES,
                inserted=NODES,
            )
        ),
        fragments=_list(
            _object(
                fragment=TEXT,
                value=_described(NUMBER, "What it adds to the normalised kernel of subset trees"),
                nodes_a=_list(NODES),
                nodes_b=_list(NODES),
            )
        ),
        productions=_object(shared=PRODUCTIONS, only_a=PRODUCTIONS, only_b=PRODUCTIONS),
    ),
    "estimates": _object(
        exact=NUMBER,
        estimates=_list(
            _object(
                components=INTEGER,
                values=_described(_list(NUMBER), "The dot product for every seed"),
                mean=NUMBER,
                error=_described(NUMBER, "The standard deviation over the seeds"),
                expected_error=_described(NUMBER, "That of a Gaussian random projection"),
            )
        ),
    ),
    "decode": _object(a=READ_BACK, b=READ_BACK),
    "explain": _object(
        input=_described(TEXT, "The format that the tree was read in"),
        scores=_list(_object(name=TEXT, score=NUMBER, probability=_or_null(SHARE))),
        explanation=_described(ANYTHING, "As treedot explain --json prints it"),
    ),
    "search": _object(
        format=TEXT,
        nodes=INTEGER,
        results=_list(
            _object(
                row=INTEGER,
                place=TEXT,
                language=_or_null(TEXT),
                cosine=NUMBER,
                similarity=SHARE,
                only_query=_described(_list(TEXT), "Productions that the unit lacks"),
                only_found=_described(_list(TEXT), "Productions that the query lacks"),
                difference=_or_null(
                    _object(lines=INTEGER, different=INTEGER, renamed=_list(_list(TEXT)), in_comments=TRUTH)
                ),
            )
        ),
    ),
}
