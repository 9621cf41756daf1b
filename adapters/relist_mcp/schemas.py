"""JSON Schemas of an untrusted peer: closed, bounded in size, and bounded in what a check costs.

`jsonschema-rs` does the checking. What it would do for anybody, and must not do for a server: fetch
``http:`` and ``file:`` references, follow references through all their combinations, match patterns
for hours, copy a value into each of its errors. So a schema is read here before it is handed over,
and each check is counted before it is made. Rule: CALL-26.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard, cast
from urllib.parse import unquote

import jsonschema_rs
from attrs import frozen

from relist.messages import is_list, is_object

DEPTH_MAX = 64  # levels of a value, or of a schema
SCHEMA_MAX = 256 * 1024  # characters and nodes of a schema
VALUE_MAX = 1024 * 1024  # characters and nodes of a value
EFFORT_MAX = 100_000  # steps of one check: a schema met by a value, a character met by a pattern
NESTING_MAX = 256  # schemas within schemas that meet one and the same value
DETAIL_MAX = 100_000_000  # meetings times characters: up to it the place of a fault is looked for
PATH_MAX = 200  # characters of a path that are told

_Object = Mapping[str, object]

_DIALECTS: Mapping[str, Callable[..., jsonschema_rs.Validator]] = {
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "http://json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
}
_DEFAULT = "https://json-schema.org/draft/2020-12/schema"

# The first is linear in the text. A pattern that it does not know is matched by going back, which
# is limited; each step back may look at all of the text once more, so it is counted as more.
_LINEAR = jsonschema_rs.RegexOptions(size_limit=256 * 1024, dfa_size_limit=8 * 1024 * 1024)
_BACKTRACKING = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=1_000, size_limit=256 * 1024, dfa_size_limit=8 * 1024 * 1024
)

# Where schemas stand within a schema, and what of the value they meet.
_SAME_ONE = ("not", "if", "then", "else")
_SAME_MANY = ("allOf", "anyOf", "oneOf")
_SAME_BY_NAME = ("dependentSchemas", "dependencies")
_ENTRIES = ("items", "contains", "unevaluatedItems", "additionalItems")
_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")
_NAMED_WITHIN = "schema has another schema with an $id in it"


class Unusable(Exception):
    """Nothing can be checked against this schema. Its text says why, in words of ours."""


@frozen
class Fault:
    """Where a value does not fit, as a JSON Pointer, and by which keyword (or word of ours).

    It never holds what stands there.
    """

    path: str
    keyword: str


class Schema:
    """A schema that may be used. Raises Unusable for any other.

    Read by the dialect that it names, 2020-12 by default. Rule: CALL-14, CALL-16, CALL-17.
    """

    def __init__(self, root: object) -> None:
        fault = fault_of(root, SCHEMA_MAX)
        if fault is not None:
            raise Unusable(f"schema is {fault.keyword}")
        dialect = _dialect_of(root)
        self._references = _References(root)
        self._root = root
        self._size = len(json.dumps(root))
        self._linear = True
        try:
            self._validator = _compiled(dialect, root, _LINEAR)
        except ValueError:
            self._linear = False
            self._validator = _compiled_at_last(dialect, root)

    def fault_of(self, value: object) -> Fault | None:
        """Where the value does not fit, None if it does. Raises Unusable if that costs too much.

        Only the first fault is told, and its place only where it is cheap to find. Rule: CALL-17.
        """
        fault = fault_of(value, VALUE_MAX)
        if fault is not None:
            return fault
        meetings = self._meetings(value)
        if self._validator.is_valid(value):
            return None
        # The first error of many may hold the others, and each a copy of what it is about.
        if meetings * (self._size + _size_of(value)) > DETAIL_MAX:
            return Fault("", "schema")
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            steps, kind = error.instance_path, error.kind
            if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
                steps = [*steps, kind.property]
            return Fault(pointer(steps), kind.name)
        return Fault("", "schema")  # as it was found the first time

    def _meetings(self, value: object) -> int:
        """How often a schema meets a part of the value at most: nothing remembered or left out."""
        meetings = effort = 0
        waiting: list[tuple[object, object, int]] = [(self._root, value, 0)]
        while waiting:
            schema, met, nesting = waiting.pop()
            meetings += 1
            if is_object(schema):
                effort += self._own_effort(schema, met)
                waiting.extend((sub, met, nesting + 1) for sub in self._same(schema))
                waiting.extend((sub, part, 0) for sub, part in _parts(schema, met))
            if effort + meetings + len(waiting) > EFFORT_MAX or nesting > NESTING_MAX:
                raise Unusable("schema takes too much effort to check")
        return meetings

    def _own_effort(self, schema: _Object, met: object) -> int:
        """Of the keywords that are no schemas."""
        effort = sum(_count(schema, name) for name in ("enum", "required", "properties")) // 16
        pattern, patterns = schema.get("pattern"), schema.get("patternProperties")
        if isinstance(met, str) and isinstance(pattern, str):
            effort += self._match_effort(pattern, met)
        if is_object(met) and is_object(patterns):
            effort += sum(self._match_effort(one, key) for one in patterns for key in met)
        return effort

    def _match_effort(self, pattern: str, text: str) -> int:
        return len(text) * (1 if self._linear else 1 + len(pattern) // 8)

    def _same(self, schema: _Object) -> Iterator[object]:
        """The schemas within this one that meet the same value."""
        for name, sub in schema.items():
            if name in _SAME_ONE:
                yield sub
            elif name in _SAME_MANY and is_list(sub):
                yield from sub
            elif name in _SAME_BY_NAME and is_object(sub):
                yield from sub.values()
            elif name in _REFERENCES and isinstance(sub, str):
                yield self._references.targets[sub]


def _parts(schema: _Object, met: object) -> Iterator[tuple[object, object]]:
    """The schemas within this one that meet parts of the value, each with its part."""
    if _is_array(met):
        for name in ("prefixItems", "items"):
            if is_list(subs := schema.get(name)):
                yield from zip(subs, met, strict=False)
        for sub in (schema[name] for name in _ENTRIES if is_object(schema.get(name))):
            yield from ((sub, entry) for entry in met)
    elif is_object(met):
        listed, patterns = schema.get("properties"), schema.get("patternProperties")
        if is_object(listed):
            yield from ((listed[name], met[name]) for name in listed.keys() & met.keys())
        others = [schema[name] for name in _MEMBERS if name in schema]
        for sub in (*others, *(patterns.values() if is_object(patterns) else ())):
            yield from ((sub, member) for member in met.values())
        if "propertyNames" in schema:
            yield from ((schema["propertyNames"], name) for name in met)


def _count(schema: _Object, name: str) -> int:
    found = schema.get(name)
    return len(found) if is_list(found) or is_object(found) else 0


class _References:
    """What the references of a schema lead to, all of it within this very schema.

    Only the root may have an ``$id``: whatever is named within it could be named twice, or named
    what is meant to be fetched. Raises Unusable for a reference that leads anywhere else.
    Rule: CALL-15, CALL-16.
    """

    def __init__(self, root: object) -> None:
        self._root = root
        self._base = str(root.get("$id", "")).partition("#")[0] if is_object(root) else ""
        self._anchors: dict[object, object] = {}
        self._known: set[int] = set()
        self.targets: dict[str, object] = {}
        references: list[str] = []
        waiting: list[object] = [root]
        while waiting:
            references.extend(self._read(waiting.pop(), waiting))
            if not waiting:  # by now all anchors are known; read what is referred to as well
                found = {reference: self._target(reference) for reference in references}
                self.targets.update(found)
                waiting.extend(one for one in found.values() if id(one) not in self._known)
                references.clear()

    def _read(self, schema: object, waiting: list[object]) -> Iterator[str]:
        """Note the anchors of one schema, and go on with those within it."""
        if not is_object(schema) or id(schema) in self._known:
            return
        self._known.add(id(schema))
        if schema is not self._root and isinstance(schema.get("$id"), str):
            raise Unusable(_NAMED_WITHIN)
        anchors = {schema.get(name) for name in _ANCHORS if isinstance(schema.get(name), str)}
        for anchor in anchors:
            if anchor in self._anchors:
                raise Unusable("schema has an anchor twice")
            self._anchors[anchor] = schema
        waiting.extend(_within(schema))
        for name in _REFERENCES:
            if isinstance(reference := schema.get(name), str):
                yield reference

    def _target(self, reference: str) -> object:
        base, _, fragment = reference.partition("#")
        if base not in ("", self._base):
            raise Unusable("schema refers to something outside of it")
        name = unquote(fragment)
        if name == "" or name.startswith("/"):
            return self._pointed(name)
        if name not in self._anchors:
            raise Unusable("schema refers to something that is not there")
        return self._anchors[name]

    def _pointed(self, name: str) -> object:
        found = self._root
        steps = (step.replace("~1", "/").replace("~0", "~") for step in name.split("/")[1:])
        for step in steps:
            if found is not self._root and is_object(found) and "$id" in found:
                raise Unusable(_NAMED_WITHIN)
            if is_object(found) and step in found:
                found = found[step]
            elif is_list(found) and step.isdecimal() and int(step[:9]) < len(found):
                found = found[int(step[:9])]
            else:
                raise Unusable("schema refers to something that is not there")
        return found


def _within(schema: _Object) -> Iterator[object]:
    """The schemas within a schema, whatever they meet."""
    for name, sub in schema.items():
        if name in (*_BY_NAME, *_SAME_BY_NAME) and is_object(sub):
            yield from sub.values()
        elif name in (*_SAME_MANY, "items", "prefixItems") and is_list(sub):
            yield from sub
        elif name in (*_SAME_ONE, *_ENTRIES, *_MEMBERS, "propertyNames", "contentSchema"):
            yield sub


def _dialect_of(root: object) -> Callable[..., jsonschema_rs.Validator]:
    named = root.get("$schema", _DEFAULT) if is_object(root) else _DEFAULT
    found = _DIALECTS.get(named.removesuffix("#")) if isinstance(named, str) else None
    if found is None:
        raise Unusable("schema is of an unsupported dialect")
    return found


def _compiled(
    dialect: Callable[..., jsonschema_rs.Validator],
    root: object,
    patterns: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions,
) -> jsonschema_rs.Validator:
    return dialect(
        root, retriever=_refuse, pattern_options=patterns, validate_formats=False, mask="it"
    )


def _compiled_at_last(
    dialect: Callable[..., jsonschema_rs.Validator], root: object
) -> jsonschema_rs.Validator:
    try:
        return _compiled(dialect, root, _BACKTRACKING)
    except ValueError:  # not chained: the reason quotes what the server sent
        raise Unusable("schema is none of its dialect") from None


def _refuse(_: str) -> Any:
    """Nothing is fetched and nothing is read. Rule: CALL-15."""
    raise ValueError("references to the outside are not followed")


# --- any value ------------------------------------------------------------------------------------

_Place = tuple["_Place", object] | None
"""How a part was come by: the last step first."""


def fault_of(value: object, size_max: int) -> Fault | None:
    """Why a value is no JSON, or too large or too deep to be looked at; None if it is neither."""
    size = 0
    waiting: list[tuple[object, _Place, int]] = [(value, None, 0)]
    while waiting:
        part, place, depth = waiting.pop()
        size += 1 + (len(part) if isinstance(part, str) else 0)
        if not _is_json(part):
            return Fault(pointer(_steps(place)), "no JSON")
        if depth > DEPTH_MAX:
            return Fault("", "nested too deeply")
        if is_object(part):
            size += sum(map(len, part))
            waiting.extend((sub, (place, name), depth + 1) for name, sub in part.items())
        elif _is_array(part):
            waiting.extend((sub, (place, at), depth + 1) for at, sub in enumerate(part))
        if size + len(waiting) > size_max:
            return Fault("", "too large")
    return None


def _is_json(part: object) -> bool:
    """Whether this can be written as JSON that every reader takes for the same."""
    if isinstance(part, str):
        return _is_text(part)
    if isinstance(part, dict):
        return all(map(_is_name, cast(Iterable[object], part)))
    if isinstance(part, int):
        return part.bit_length() <= 1024
    if isinstance(part, float):
        return part - part == 0  # neither infinite nor no number
    return part is None or _is_array(part)


def _is_array(part: object) -> TypeGuard[Sequence[object]]:
    return isinstance(part, list | tuple)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and _is_text(name)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _size_of(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _steps(place: _Place) -> list[object]:
    steps: list[object] = []
    while place is not None:
        place, step = place
        steps.append(step)
    return steps[::-1]


def pointer(steps: Sequence[object]) -> str:
    """The JSON Pointer of these steps, cut where it is long."""
    text = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= PATH_MAX else text[:PATH_MAX] + "…"
