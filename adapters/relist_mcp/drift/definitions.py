"""From listed entries to definitions: what a consumer would see of them, and its ids."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from attrs import frozen

from relist.drift.inputs import InventoryTaken
from relist.drift.values import (
    CapabilityRef,
    Definition,
    Hints,
    ServerIdentity,
    Subject,
    capability_id,
)
from relist.messages import is_object
from relist.values import Item, Items, Kind, Snapshot
from relist_mcp.drift.canonical import NotCanonical, canonical, depth, reread, rewritten

SUBJECTS: Mapping[Kind, Subject] = {
    Kind.TOOLS: Subject.TOOL,
    Kind.PROMPTS: Subject.PROMPT,
    Kind.RESOURCES: Subject.RESOURCE,
    Kind.TEMPLATES: Subject.TEMPLATE,
}
_KEYS = {
    Subject.TOOL: "name",
    Subject.PROMPT: "name",
    Subject.RESOURCE: "uri",
    Subject.TEMPLATE: "uriTemplate",
}
DEPTH_MAX = 100
"""Deeper JSON is opaque: how deep one can read depends on the version of Python, ids must not."""

Entry = Mapping[str, Any]
Effect = Callable[[Entry], Entry]
"""What a host makes of an entry before anybody sees it: renamed, prefixed, filtered."""


def without_meta(entry: Entry) -> Entry:
    """The entry as a model sees it: ``_meta`` is not for it. Rule: DRIFT-24."""
    return {name: value for name, value in entry.items() if name != "_meta"}


def definition_of(ref: CapabilityRef, raw: bytes, effect: Effect = without_meta) -> Definition:
    """The definition of one entry, whose JSON this is.

    What has no canonical form is one opaque field, so that any change of it goes to review. The
    hash covers server, subject and key, so equal texts elsewhere have other ids. Rule: DRIFT-03,
    DRIFT-07. So is what upsets the host's ``effect``: no server may end a host by an entry.
    """
    try:
        entry = _entry(raw)
        effective = _effective(effect, entry)
        fields = {name: canonical(value) for name, value in effective.items()}
        return Definition(
            ref,
            capability_id(_envelope(ref, effective)),
            capability_id(_envelope(ref, entry)),
            capability_id(canonical({"body": _body(ref.subject, effective)})),
            fields,
            _hints(effective.get("annotations")),
        )
    except (NotCanonical, RecursionError, ValueError):
        return opaque_of(ref, raw)


def _effective(effect: Effect, entry: Entry) -> Entry:
    try:
        return effect(entry)
    except Exception as error:
        raise NotCanonical("the effect failed") from error


def opaque_of(ref: CapabilityRef, raw: bytes) -> Definition:
    """The definition of what has no canonical form: its text is all that is known of it."""
    id = capability_id(b"opaque\x00" + canonical([ref.server, ref.subject.value, ref.key]) + raw)
    return Definition(ref, id, id, capability_id(b"opaque\x00" + raw), {"": raw})


def from_fields(ref: CapabilityRef, fields: Mapping[str, bytes]) -> Definition:
    """The definition with these fields, as canonical JSON: its ids are worked out anew.

    What the server had sent cannot be: ``upstream`` is the id. Raises ValueError.
    """
    values = {_reread(name): reread(value) for name, value in fields.items()}
    about = {"server": ref.server, "subject": ref.subject.value, "key": ref.key}
    named = {name: _reread(value) for name, value in about.items()}
    id = capability_id(rewritten({**named, "definition": values}))
    body = capability_id(rewritten({"body": _body(ref.subject, values)}))
    return Definition(ref, id, id, body, fields, _hints(values.get("annotations")))


def _reread(text: str) -> Any:
    return reread(canonical(text))


def _entry(raw: bytes) -> Entry:
    value: object = json.loads(raw)
    if not is_object(value):
        raise NotCanonical("no JSON object")
    if raw.count(b"{") + raw.count(b"[") > DEPTH_MAX and depth(value, DEPTH_MAX) > DEPTH_MAX:
        raise NotCanonical("nested too deeply")
    return value


def _envelope(ref: CapabilityRef, entry: Entry) -> bytes:
    about = {"server": ref.server, "subject": ref.subject.value, "key": ref.key}
    return canonical({**about, "definition": dict(entry)})


def _body(subject: Subject, effective: Entry) -> Entry:
    """All but what it is called. Rule: DRIFT-09."""
    return {name: value for name, value in effective.items() if name != _KEYS.get(subject)}


def _hints(annotations: object) -> Hints:
    if not isinstance(annotations, dict):
        return Hints()
    found = cast("Mapping[str, object]", annotations)

    def hint(name: str) -> bool | None:
        value = found.get(name)
        return value if isinstance(value, bool) else None

    return Hints(hint("readOnlyHint"), hint("destructiveHint"), hint("openWorldHint"))


@frozen
class _Read:
    item: Item
    definition: Definition


class Reader:
    """Reads lists of one server and kind; an unchanged item is not read again."""

    def __init__(self, server: str, kind: Kind, effect: Effect = without_meta) -> None:
        self._server = server
        self._subject = SUBJECTS[kind]
        self._effect = effect
        self._read: dict[str, _Read] = {}

    def read(self, items: Items) -> Mapping[str, Definition]:
        """The definitions by key."""
        before, self._read = self._read, {}
        for item in items:
            held = before.get(item.key)
            if held is None or held.item is not item:
                ref = CapabilityRef(self._server, self._subject, item.key)
                held = _Read(item, definition_of(ref, item.canonical_json, self._effect))
            self._read[item.key] = held
        return {key: read.definition for key, read in self._read.items()}

    def one(self, item: Item) -> Definition:
        """The definition of one item, whether it was read before or not."""
        held = self._read.get(item.key)
        if held is not None and held.item is item:
            return held.definition
        ref = CapabilityRef(self._server, self._subject, item.key)
        return definition_of(ref, item.canonical_json, self._effect)

    def inventory(
        self, identity: ServerIdentity, snapshot: Snapshot, partition: str, at_ms: int
    ) -> InventoryTaken:
        """What this list says of the server. Rule: DRIFT-34, DRIFT-48."""
        clear = tuple(item for item in snapshot.items if item.key not in snapshot.ambiguous)
        return InventoryTaken(
            identity,
            self._subject,
            self.read(clear),
            frozenset(snapshot.ambiguous),
            snapshot.clean,
            partition,
            at_ms,
        )
