"""What a change of a definition can do, field by field. Rule: DRIFT-26 to DRIFT-29.

Only a proof counts as one: whether one schema accepts all that another does is asked of a *port*,
since that takes a library. What the port cannot tell is a change to be reviewed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, cast

from relist.drift.values import Change, ChangeClass, Definition, FieldChange, Subject


class Relation(Enum):
    """How the second of two different schemas stands to the first, if that could be proved.

    Several may hold: a schema that accepts more and says something else is both.
    """

    REORDERED = "reordered"  # the same, written in another order
    TEXT = "text"  # says something else: titles, descriptions, examples
    WIDENED = "widened"  # accepts all that the first does, and more
    NARROWED = "narrowed"  # accepts less
    UNPROVED = "unproved"  # neither, or nobody could tell


Relate = Callable[[bytes, bytes], frozenset[Relation]]
"""The port: two JSON Schemas as canonical JSON, which differ. Never raises, never says nothing."""


def unproved(_: bytes, __: bytes) -> frozenset[Relation]:
    """The port of those who have no library for it."""
    return frozenset({Relation.UNPROVED})


UNPROVED = frozenset({Relation.UNPROVED})

_INPUT: Mapping[Relation, ChangeClass] = {
    Relation.REORDERED: ChangeClass.SCHEMA_REORDERED,
    Relation.TEXT: ChangeClass.SCHEMA_TEXT,
    Relation.WIDENED: ChangeClass.INPUT_WIDENED,
    Relation.NARROWED: ChangeClass.INPUT_NARROWED,
    Relation.UNPROVED: ChangeClass.INPUT_CHANGED,
}
_OUTPUT: Mapping[Relation, ChangeClass] = {
    **_INPUT,
    Relation.WIDENED: ChangeClass.OUTPUT_WIDENED,
    Relation.NARROWED: ChangeClass.OUTPUT_NARROWED,
    Relation.UNPROVED: ChangeClass.OUTPUT_CHANGED,
}
_SCHEMAS = {"inputSchema": _INPUT, "outputSchema": _OUTPUT}
_SAFETY = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_TEXTS = dict.fromkeys(("title", "description", "icons"), ChangeClass.TEXT)
_COMMON: Mapping[str, ChangeClass] = {**_TEXTS, "_meta": ChangeClass.META}
_LOCATION = dict.fromkeys(("mimeType", "size"), ChangeClass.LOCATION)
_FIELDS: Mapping[Subject, Mapping[str, ChangeClass]] = {
    # How a tool is executed (as a task, say) is a matter of safety as well.
    Subject.TOOL: {**_COMMON, "name": ChangeClass.LOCATION, "execution": ChangeClass.SAFETY},
    Subject.PROMPT: {
        **_COMMON,
        "name": ChangeClass.LOCATION,
        "arguments": ChangeClass.ARGUMENTS,
    },
    Subject.RESOURCE: {
        **_COMMON,
        **_LOCATION,
        "name": ChangeClass.TEXT,
        "uri": ChangeClass.LOCATION,
        "annotations": ChangeClass.ANNOTATIONS,
    },
    Subject.TEMPLATE: {
        **_COMMON,
        **_LOCATION,
        "name": ChangeClass.TEXT,
        "uriTemplate": ChangeClass.LOCATION,
        "annotations": ChangeClass.ANNOTATIONS,
    },
    Subject.INSTRUCTIONS: {"instructions": ChangeClass.INSTRUCTIONS},
}
"""The fields that are known, by subject; any other is ``OTHER``."""


def classify(before: Definition | None, after: Definition, relate: Relate = unproved) -> Change:
    """What differs between two definitions of one reference; all of it is new without a first."""
    old: Mapping[str, bytes] = {} if before is None else before.fields
    names = sorted(old.keys() | after.fields.keys())
    changes = (
        FieldChange(name, old.get(name), after.fields.get(name), classes)
        for name in names
        if old.get(name) != after.fields.get(name)
        for classes in (_classes(after.ref.subject, name, old, after.fields, relate),)
    )
    return Change(after.ref, before, after, tuple(changes))


def _classes(
    subject: Subject,
    name: str,
    old: Mapping[str, bytes],
    new: Mapping[str, bytes],
    relate: Relate,
) -> frozenset[ChangeClass]:
    before, after = old.get(name), new.get(name)
    if subject is Subject.TOOL and name in _SCHEMAS:
        classes = _SCHEMAS[name]
        if before is None or after is None:
            return frozenset({classes[Relation.UNPROVED]})
        return frozenset(classes[relation] for relation in relate(before, after) or UNPROVED)
    if subject is Subject.TOOL and name == "annotations":
        try:
            return frozenset(_annotations(_parsed(before), _parsed(after)))
        except (ValueError, RecursionError):  # no annotations: whatever they say is not read
            return frozenset({ChangeClass.SAFETY})
    return frozenset({_FIELDS[subject].get(name, ChangeClass.OTHER)})


def _annotations(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ChangeClass]:
    """Those of a tool: hints of safety, its title, and whatever else there is.

    Compared as JSON text, since Python takes True for 1.
    """
    for name in before.keys() | after.keys():
        same = name in before and name in after
        if same and json.dumps(before[name]) == json.dumps(after[name]):
            continue
        if name in _SAFETY:
            yield ChangeClass.SAFETY
        else:
            yield ChangeClass.TEXT if name == "title" else ChangeClass.OTHER


def _parsed(canonical: bytes | None) -> Mapping[str, Any]:
    found: Any = {} if canonical is None else json.loads(canonical)
    if not isinstance(found, dict):
        raise ValueError("no annotations")
    return cast("Mapping[str, Any]", found)
