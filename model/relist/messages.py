"""From JSON-decoded messages of a peer to inputs: total over arbitrary JSON, and pure.

Nothing here raises for what a peer sends: what is malformed leaves a Note, and a Failure where it
cannot be used. What is kept of a message is bounded: here, or by ``policy.bytes_max``. The core
needs no JSON library, so an adapter hands in ``canonical``, which turns a JSON value into bytes
that are equal exactly when the values are; it may raise ValueError, TypeError or RecursionError.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeGuard, TypeVar

from relist.effects import Note
from relist.failures import UNSUPPORTED_VERSION
from relist.inputs import (
    DiscoverAnswered,
    DiscoverFailed,
    InitializeAnswered,
    InitializeFailed,
    PageArrived,
    PageFailed,
    PushOpened,
    UpdatesOpened,
)
from relist.values import CHANNEL_OF, KINDS, Capabilities, Channel, Failure, Item, Kind, Scope

Canonical = Callable[[object], bytes]
Exclude = Callable[[Kind, Mapping[str, object]], str | None]
"""Why the transport at hand cannot use an entry; None if it can. Rule: DISC-23, DISC-24."""

REASON_MAX = 200  # characters of a text that reach a Failure or Note
INTEGER_MAX = 2**53 - 1  # beyond it, JSON numbers mean different things to different readers
VERSIONS_MAX = 64  # versions of one list that are looked at
NOTES_MAX = 8  # notes about one message

HeardT_co = TypeVar("HeardT_co", covariant=True)


class Heard(NamedTuple, Generic[HeardT_co]):
    """A message as an input, and what is worth noting about it."""

    heard: HeardT_co
    notes: tuple[Note, ...]


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


def is_integer(value: object) -> TypeGuard[int]:
    """Whether this is a number that JSON carries safely: a whole one, not too large, no boolean."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= INTEGER_MAX


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


_FLAGS = (("listChanged", "CAP-06"), ("subscribe", "CAP-09"))


def _notes_on_capabilities(value: object) -> Iterator[Note]:
    if not is_object(value):
        yield Note("CAP-03", "capabilities are no object")
        return
    for name in dict.fromkeys(names.capability for names in NAMES.values()):
        capability = value.get(name, {})
        if not is_object(capability):
            yield Note("CAP-03", "capability is no object", (name,))
            continue
        for flag, rule in _FLAGS if name == "resources" else _FLAGS[:1]:
            if not isinstance(capability.get(flag, False), bool):
                yield Note(rule, "flag of a capability is no boolean", (name, flag))


def read_versions(result: object) -> tuple[str, ...]:
    """``supportedVersions`` of a discovery result; empty if there is no such list."""
    listed = result.get("supportedVersions") if is_object(result) else None
    return tuple(_strings(listed))


def _strings(values: object) -> Iterator[str]:
    if is_list(values):
        for value in values[:VERSIONS_MAX]:
            if isinstance(value, str):
                yield value[:REASON_MAX]


def read_discovery(
    serial: int, result: object, now_ms: int
) -> Heard[DiscoverAnswered | DiscoverFailed]:
    """The answer to ``server/discover``, received at ``now_ms``. Rule: LIFE-28, LIFE-43."""
    listed = result.get("supportedVersions") if is_object(result) else None
    complete = is_object(result) and result.get("resultType", "complete") == "complete"
    if not is_object(result) or not complete or not is_list(listed):
        failure = Failure("no discovery result")
        note = Note("LIFE-28" if complete else "LIFE-43", failure.reason, (serial,))
        return Heard(DiscoverFailed(serial, failure, now_ms), (note,))
    offered, versions = result.get("capabilities"), read_versions(result)
    notes = [*_notes_on_capabilities(offered), *_notes_on_ttl_ms(result, serial)]
    if list(versions) != listed:
        notes.append(Note("LIFE-28", "supportedVersions is no (short) list of versions", (serial,)))
    declared, ttl_ms = read_capabilities(offered), read_ttl_ms(result)
    return Heard(DiscoverAnswered(serial, versions, declared, now_ms, ttl_ms), tuple(notes))


def read_initialization(
    serial: int, result: object, now_ms: int
) -> Heard[InitializeAnswered | InitializeFailed]:
    """The answer to ``initialize``, received at ``now_ms``. Rule: LIFE-05."""
    version = result.get("protocolVersion") if is_object(result) else None
    if not is_object(result) or not isinstance(version, str):
        failure = Failure("no initialize result")
        note = Note("LIFE-05", failure.reason, (serial,))
        return Heard(InitializeFailed(serial, failure, now_ms), (note,))
    offered = result.get("capabilities")
    answered = InitializeAnswered(serial, version, read_capabilities(offered), now_ms)
    return Heard(answered, tuple(_notes_on_capabilities(offered)))


def read_granted(params: object) -> frozenset[Channel]:
    """The channels that an acknowledgement grants: those that are exactly true.

    Other fields are passed over. Rule: SUB-06, SUB-36.
    """
    granted = _granted(params) or {}
    return frozenset(channel for channel, name in FILTERS.items() if granted.get(name) is True)


def read_granted_uris(params: object) -> frozenset[str]:
    """The resources that an acknowledgement grants, URI by URI. Rule: SUB-08."""
    uris = (_granted(params) or {}).get("resourceSubscriptions")
    return frozenset(uri for uri in uris if isinstance(uri, str)) if is_list(uris) else frozenset()


def _granted(params: object) -> Mapping[str, object] | None:
    granted = params.get("notifications") if is_object(params) else None
    return granted if is_object(granted) else None


def read_acknowledgement(serial: int, params: object, now_ms: int) -> Heard[PushOpened]:
    """The acknowledgement of a listen request, received at ``now_ms``. Rule: SUB-05, SUB-06."""
    opened, granted = PushOpened(serial, read_granted(params), now_ms), _granted(params)
    if granted is None:
        return Heard(opened, (Note("SUB-06", "notifications is no object", (serial,)),))
    wrong = (name for name in FILTERS.values() if not isinstance(granted.get(name, False), bool))
    return Heard(opened, tuple(Note("SUB-06", "grant is no boolean", (name,)) for name in wrong))


def read_updates_acknowledgement(serial: int, params: object, now_ms: int) -> Heard[UpdatesOpened]:
    """The same for a request that listens to single resources. Rule: SUB-08."""
    opened = UpdatesOpened(serial, read_granted_uris(params), now_ms)
    uris = (_granted(params) or {}).get("resourceSubscriptions")
    if is_list(uris) and all(isinstance(uri, str) for uri in uris):
        return Heard(opened, ())
    return Heard(opened, (Note("SUB-08", "resourceSubscriptions is no list of URIs", (serial,)),))


def read_ttl_ms(result: object) -> int | None:
    """``ttlMs`` of a result: None when missing, 0 when it is no integer. Rule: TTL-06, TTL-08."""
    ttl_ms = result.get("ttlMs") if is_object(result) else None
    if ttl_ms is None or is_integer(ttl_ms):
        return ttl_ms
    return 0


def _notes_on_ttl_ms(result: Mapping[str, object], *about: str | int) -> Iterator[Note]:
    ttl_ms = result.get("ttlMs")
    if ttl_ms is not None and not is_integer(ttl_ms):
        yield Note("TTL-08", "ttlMs is no integer", about)


def read_failure(
    error: object, status: int | None = None, retry_after_ms: int | None = None
) -> Failure:
    """A JSON-RPC error object as a Failure. The peer's text is not kept. Rule: FAIL-07."""
    code = error.get("code") if is_object(error) else None
    if not is_integer(code):
        return Failure(_NO_CODE, None, status, retry_after_ms)
    supported: tuple[str, ...] = ()
    data = error.get("data") if is_object(error) else None
    if is_object(data):
        supported = tuple(_strings(data.get("supported")))
    reason = _NO_VERSIONS if code == UNSUPPORTED_VERSION and not supported else "error answer"
    return Failure(reason, code, status, retry_after_ms, supported)


_NO_CODE = "malformed error"
_NO_VERSIONS = "unsupported version, and no list of others"


def notes_on_failure(failure: Failure) -> tuple[Note, ...]:
    """What is worth noting about an error object that ``read_failure`` read. Rule: FAIL-07."""
    malformed = failure.reason in (_NO_CODE, _NO_VERSIONS)
    return (Note("FAIL-07", failure.reason, (failure.status,)),) if malformed else ()


def use_all(_: Kind, __: Mapping[str, object]) -> None:
    """No entry is left out for the sake of the transport."""


def read_page(
    kind: Kind,
    serial: int,
    result: object,
    canonical: Canonical,
    now_ms: int,
    exclude: Exclude = use_all,
) -> Heard[PageArrived | PageFailed]:
    """The answer to a list request, received at ``now_ms``. Never raises for a peer's fault.

    A result of the wrong shape fails the walk, also one that asks for input or is no final one; one
    bad entry is left out and noted (DISC-25), as is one that the transport excludes. A null cursor
    is an absent one.

    Rule: CALL-13, DISC-06, DISC-21, DISC-22, LIFE-42, LIFE-43, OBS-10, TTL-26, TTL-27.
    """
    fault = _fault_of(kind, result)
    if fault is not None or not is_object(result):
        failure = Failure(fault or "result is no object")
        note = Note("DISC-22", failure.reason, (kind.value, serial))
        return Heard(PageFailed(kind, serial, failure, now_ms), (note,))
    notes = list(_notes_on_ttl_ms(result, kind.value, serial))
    cursor, scope = result.get("nextCursor"), result.get("cacheScope")
    if scope not in (None, "public", "private"):
        notes.append(Note("TTL-26", "cacheScope is unknown", (kind.value, serial)))
    items: list[Item] = []
    entries = result[NAMES[kind].field]
    for position, entry in enumerate(entries if is_list(entries) else ()):
        item = _read_item(kind, entry, canonical)
        why = None if isinstance(item, str) or not is_object(entry) else exclude(kind, entry)
        if isinstance(item, Item) and why is None:
            items.append(item)
        elif len(notes) < NOTES_MAX:
            notes.append(_left_out(item, why, kind, serial, position))
    arrived = PageArrived(
        kind,
        serial,
        tuple(items),
        cursor if isinstance(cursor, str) else None,
        read_ttl_ms(result),
        Scope.PUBLIC if scope == "public" else Scope.PRIVATE,
        now_ms,
    )
    return Heard(arrived, tuple(notes))


def _left_out(item: Item | str, why: str | None, kind: Kind, serial: int, position: int) -> Note:
    """A note on an entry that is no item, or that the transport excludes."""
    if isinstance(item, str):
        return Note("DISC-25", item, (kind.value, serial, position))
    about = (kind.value, serial, item.key[:REASON_MAX], (why or "")[:REASON_MAX])
    return Note("OBS-10", "entry is of no use on this transport", about)


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
    except (ValueError, TypeError, RecursionError):
        return "entry has no canonical form"
