"""How one JSON Schema stands to another, by `jsonschema-rs`. Only its yes is a proof.

Nothing is fetched: a schema that refers outside itself cannot be compared. What a schema says to
people and models (descriptions) is looked at apart from what it accepts, and keywords that only
some understand make it incomparable where they differ: nobody knows what they do.
"""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs as js
from jsonschema_rs.canonical import Containment

from relist.drift.classify import UNPROVED, Relation
from relist.messages import is_list, is_object
from relist_mcp.drift.canonical import depth

SIZE_MAX = 256 * 1024  # bytes of a schema that is compared
DEPTH_MAX = 64

_TEXTS = frozenset({"title", "description", "$comment", "examples", "deprecated"})
_OF_NAMES = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_OF_ONE = frozenset(
    {"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
    | {"unevaluatedItems", "unevaluatedProperties", "additionalItems"}
)
_OF_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_KNOWN = (
    _TEXTS
    | _OF_NAMES
    | _OF_ONE
    | _OF_MANY
    | {"$schema", "$id", "$ref", "$anchor", "type", "enum", "const", "required", "minimum"}
    | {"maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"}
    | {"pattern", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains"}
    | {"minProperties", "maxProperties", "dependentRequired"}
)
Told = tuple[tuple[str, ...], str]


def relate(before: bytes, after: bytes) -> frozenset[Relation]:
    """How the second schema stands to the first; both as JSON. Never raises."""
    if max(len(before), len(after)) > SIZE_MAX:
        return UNPROVED
    try:
        old, new = json.loads(before), json.loads(after)
        if max(depth(old, DEPTH_MAX), depth(new, DEPTH_MAX)) > DEPTH_MAX:
            return UNPROVED
        return _related(old, new)
    except Exception:  # of a library that reads what a stranger wrote
        return UNPROVED


def _related(old: Any, new: Any) -> frozenset[Relation]:
    said, says = set(_words(old, ())), set(_words(new, ()))
    if {word for word in said if _is_odd(word)} != {word for word in says if _is_odd(word)}:
        return UNPROVED
    texts = frozenset({Relation.TEXT}) if said != says else frozenset[Relation]()
    one, other = _compiled(old), _compiled(new)
    wider = other.covers(one) is Containment.YES
    narrower = one.covers(other) is Containment.YES
    if wider and narrower:
        return texts or frozenset({Relation.REORDERED})
    if wider or narrower:
        return texts | {Relation.WIDENED if wider else Relation.NARROWED}
    return texts | UNPROVED


def _compiled(schema: Any) -> js.CanonicalSchema:
    return js.canonicalize(schema, offline=True, validate_formats=True)


def _words(schema: object, path: tuple[str, ...]) -> Iterator[Told]:
    """All texts and unknown keywords, with where they stand."""
    if not is_object(schema):
        return
    for keyword, value in schema.items():
        here = (*path, keyword)
        if keyword in _OF_NAMES and is_object(value):
            for name, inner in value.items():
                yield from _words(inner, (*here, name))
        elif keyword in _OF_MANY and is_list(value):
            for number, inner in enumerate(value):
                yield from _words(inner, (*here, str(number)))
        elif keyword in _OF_ONE:
            yield from _words(value, here)
        elif keyword in _TEXTS or keyword not in _KNOWN:
            yield here, json.dumps(value, sort_keys=True)


def _is_odd(word: Told) -> bool:
    return word[0][-1] not in _TEXTS
