"""From JSON-decoded messages of a peer to inputs: total over arbitrary JSON, and pure.

Nothing here raises for what a peer sends: what is malformed becomes a Failure or a Note. The core
needs no JSON library, so an adapter hands in ``canonical``, which turns a JSON value into bytes
that are equal exactly when the values are.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeGuard

from relist.effects import Note
from relist.inputs import PageArrived, PageFailed
from relist.values import CHANNEL_OF, KINDS, Capabilities, Channel, Failure, Item, Kind, Scope

Canonical = Callable[[object], bytes]

REASON_MAX = 200  # characters of a text that reach a Failure or Note


class Names(NamedTuple):
    """How the protocol spells one kind."""

    method: str  # the list method
    field: str  # the result field that holds the entries
    key: str  # the field of an entry that identifies it (DISC-27)
    capability: str  # its top-level capability; templates have none of their own (CAP-04)


NAMES = {
    Kind.TOOLS: Names("tools/list", "tools", "name", "tools"),
    Kind.PROMPTS: Names("prompts/list", "prompts", "name", "prompts"),
    Kind.RESOURCES: Names("resources/list", "resources", "uri", "resources"),
    Kind.TEMPLATES: Names(
        "resources/templates/list", "resourceTemplates", "uriTemplate", "resources"
    ),
}
UPDATED = "notifications/resources/updated"
NOTICES = {
    "notifications/tools/list_changed": Channel.TOOLS,
    "notifications/prompts/list_changed": Channel.PROMPTS,
    "notifications/resources/list_changed": Channel.RESOURCES,
}
# The filter of a listen request has no field for templates (SUB-04).
FILTERS = {
    Channel.TOOLS: "toolsListChanged",
    Channel.PROMPTS: "promptsListChanged",
    Channel.RESOURCES: "resourcesListChanged",
}


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether this is a JSON array."""
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether this is a JSON object."""
    return isinstance(value, Mapping)


def read_capabilities(value: object) -> Capabilities:
    """What a capabilities object declares. An empty object counts, null does not.

    What is not known is passed over. Rule: CAP-03, LIFE-44.
    """
    if not is_object(value):
        return Capabilities(frozenset(), frozenset())
    kinds = frozenset(kind for kind in KINDS if is_object(value.get(NAMES[kind].capability)))
    return Capabilities(
        kinds,
        frozenset(
            CHANNEL_OF[kind]
            for kind in kinds
            if _flag(value[NAMES[kind].capability], "listChanged")
        ),
        _flag(value.get("resources"), "subscribe"),
    )


def _flag(capability: object, name: str) -> bool:
    return is_object(capability) and capability.get(name) is True


def read_granted(params: object) -> frozenset[Channel]:
    """The channels that an acknowledgement grants: those that are exactly true.

    Other fields are passed over. Rule: SUB-06, SUB-36.
    """
    granted = _granted(params)
    return frozenset(channel for channel, name in FILTERS.items() if granted.get(name) is True)


def read_granted_uris(params: object) -> frozenset[str]:
    """The resources that an acknowledgement grants, URI by URI. Rule: SUB-08."""
    uris = _granted(params).get("resourceSubscriptions")
    return frozenset(uri for uri in uris if isinstance(uri, str)) if is_list(uris) else frozenset()


def _granted(params: object) -> Mapping[str, object]:
    granted = params.get("notifications") if is_object(params) else None
    return granted if is_object(granted) else {}


def read_ttl_ms(result: object) -> int | None:
    """``ttlMs`` of a result: None when missing, 0 when it is no integer. Rule: TTL-06, TTL-08."""
    ttl_ms = result.get("ttlMs") if is_object(result) else None
    if ttl_ms is None:
        return None
    return 0 if isinstance(ttl_ms, bool) or not isinstance(ttl_ms, int) else ttl_ms


def read_failure(
    error: object, status: int | None = None, retry_after_ms: int | None = None
) -> Failure:
    """A JSON-RPC error object as a Failure. The peer's text is not kept. Rule: FAIL-07."""
    code = error.get("code") if is_object(error) else None
    if isinstance(code, bool) or not isinstance(code, int):
        return Failure("malformed error", None, status, retry_after_ms)
    supported: tuple[str, ...] = ()
    data = error.get("data") if is_object(error) else None
    if is_object(data):
        supported = tuple(_strings(data.get("supported")))
    return Failure("error answer", code, status, retry_after_ms, supported)


def _strings(values: object) -> Iterator[str]:
    if is_list(values):
        for value in values[:64]:
            if isinstance(value, str):
                yield value[:REASON_MAX]


def read_versions(result: object) -> tuple[str, ...]:
    """``supportedVersions`` of a discovery result; empty if there is no such list."""
    listed = result.get("supportedVersions") if is_object(result) else None
    return tuple(_strings(listed))


class Page(NamedTuple):
    """A list answer as an input, and what is worth noting about it."""

    heard: PageArrived | PageFailed
    notes: tuple[Note, ...]


def read_page(kind: Kind, serial: int, result: object, canonical: Canonical, now_ms: int) -> Page:
    """The answer to a list request, received at ``now_ms``. Never raises for a peer's fault.

    A result of the wrong shape fails the walk, also one that asks for input or is no final one; one
    bad entry is left out and noted (DISC-25). A null cursor is an absent one.

    Rule: DISC-06, DISC-21, DISC-22, LIFE-42, LIFE-43, TTL-26, TTL-27.
    """
    fault = _fault_of(kind, result)
    if fault is not None or not is_object(result):
        failure = Failure(fault or "result is no object")
        note = Note("DISC-22", failure.reason, (kind.value, serial))
        return Page(PageFailed(kind, serial, failure, now_ms), (note,))
    entries = result[NAMES[kind].field]
    items: list[Item] = []
    notes: list[Note] = []
    for position, entry in enumerate(entries if is_list(entries) else ()):
        item = _read_item(kind, entry, canonical)
        if isinstance(item, Item):
            items.append(item)
        else:
            notes.append(Note("DISC-25", item, (kind.value, serial, position)))
    cursor = result.get("nextCursor")
    ttl_ms = read_ttl_ms(result)
    if ttl_ms is not None and ttl_ms is not result["ttlMs"]:
        notes.append(Note("TTL-08", "ttlMs is no integer", (kind.value, serial)))
    arrived = PageArrived(
        kind,
        serial,
        tuple(items),
        cursor if isinstance(cursor, str) else None,
        ttl_ms,
        Scope.PUBLIC if result.get("cacheScope") == "public" else Scope.PRIVATE,
        now_ms,
    )
    return Page(arrived, tuple(notes[:8]))


def _fault_of(kind: Kind, result: object) -> str | None:
    if not is_object(result):
        return "result is no object"
    if result.get("resultType", "complete") != "complete":
        return "resultType is not complete"
    if not isinstance(result.get(NAMES[kind].field), list):
        return f"{NAMES[kind].field} is no list"
    cursor = result.get("nextCursor")
    return None if cursor is None or isinstance(cursor, str) else "nextCursor is no string"


def _read_item(kind: Kind, entry: object, canonical: Canonical) -> Item | str:
    """The entry as an Item, or why it is left out. Any text will do as a name. Rule: DISC-29."""
    if not is_object(entry):
        return "entry is no object"
    key = entry.get(NAMES[kind].key)
    if not isinstance(key, str):
        return f"entry without {NAMES[kind].key}"
    if kind is Kind.TOOLS and not is_object(entry.get("inputSchema")):
        return "inputSchema is no object"
    try:
        return Item(key, canonical(entry))
    except (ValueError, RecursionError):
        return "entry has no canonical form"
