"""Any JSON at all from a peer: nothing raises, nothing grows beyond policy, faults leave a note.

First each kind of message by itself, against a JSON Schema of what the protocol says. Then whole
sessions, whose peer answers what it is asked with anything, and whose size is measured.
"""

import pickle
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from attrs import evolve, frozen
from hypothesis import Phase as Stage
from hypothesis import given, settings
from hypothesis import strategies as st

from relist import inputs as i
from relist import messages, paging
from relist.effects import Note
from relist.inputs import SessionInput
from relist.messages import (
    FILTERS,
    INTEGER_MAX,
    NAMES,
    NOTES_MAX,
    REASON_MAX,
    VERSIONS_MAX,
    notes_on_failure,
    read_acknowledgement,
    read_discovery,
    read_failure,
    read_initialization,
    read_page,
    read_updates_acknowledgement,
)
from relist.policy import Policy
from relist.rules import guards
from relist.values import CHANNELS, KINDS, Channel, Kind, Walk
from support import anything
from support.anything import JSON
from support.one import LEGACY, MODERN, SEED
from support.wild import WildPeer, canonical

# --- one message ----------------------------------------------------------------------------------

OBJECT: Any = {"type": "object"}
SAFE = {"type": "integer", "minimum": -INTEGER_MAX, "maximum": INTEGER_MAX}
FLAG = {"type": "boolean"}
CAPABILITIES = OBJECT | {
    "properties": {
        "tools": OBJECT | {"properties": {"listChanged": FLAG}},
        "prompts": OBJECT | {"properties": {"listChanged": FLAG}},
        "resources": OBJECT | {"properties": {"listChanged": FLAG, "subscribe": FLAG}},
    }
}
DISCOVERY = OBJECT | {
    "required": ["supportedVersions", "capabilities"],
    "properties": {
        "supportedVersions": {
            "type": "array",
            "items": {"type": "string", "maxLength": REASON_MAX},
            "maxItems": VERSIONS_MAX,
        },
        "capabilities": CAPABILITIES,
        "resultType": {"const": "complete"},
        "ttlMs": {"anyOf": [SAFE, {"type": "null"}]},
    },
}
GREETING = OBJECT | {
    "required": ["protocolVersion", "capabilities"],
    "properties": {"protocolVersion": {"type": "string"}, "capabilities": CAPABILITIES},
}
GRANTS = OBJECT | {"properties": dict.fromkeys(FILTERS.values(), FLAG)}
URIS = {"type": "array", "items": {"type": "string"}}
GRANTED_URIS = OBJECT | {
    "required": ["resourceSubscriptions"],
    "properties": {"resourceSubscriptions": URIS},
}
UPDATES = OBJECT | {
    "required": ["notifications"],
    "properties": {"notifications": GRANTED_URIS},
}
ACKNOWLEDGEMENT = OBJECT | {"required": ["notifications"], "properties": {"notifications": GRANTS}}
VERSIONS = OBJECT | {
    "required": ["supported"],
    "properties": {"supported": {"type": "array", "contains": {"type": "string"}}},
}
ERROR = OBJECT | {
    "required": ["code"],
    "properties": {"code": SAFE},
    "if": {"properties": {"code": {"const": -32022}}, "required": ["code"]},
    "then": {"required": ["data"], "properties": {"data": VERSIONS}},
}


def page_schema(kind: Kind) -> Any:
    names = NAMES[kind]
    entry = {"required": [names.key], "properties": {names.key: {"type": "string"}}}
    if kind is Kind.TOOLS:
        entry = {
            "required": [names.key, "inputSchema"],
            "properties": {names.key: {"type": "string"}, "inputSchema": OBJECT},
        }
    return OBJECT | {
        "required": [names.field],
        "properties": {
            names.field: {"type": "array", "items": OBJECT | entry},
            "nextCursor": {"type": ["string", "null"]},
            "ttlMs": {"anyOf": [SAFE, {"type": "null"}]},
            "cacheScope": {"enum": ["public", "private", None]},
            "resultType": {"const": "complete"},
        },
    }


@frozen
class Message:
    """One kind of message: what it may be, what it should be, and the notes it leaves."""

    name: str
    sent: st.SearchStrategy[Any]
    schema: Any
    notes_on: Callable[[Any], tuple[Note, ...]]


def _page_message(kind: Kind) -> Message:
    def notes_on(result: Any) -> tuple[Note, ...]:
        return read_page(kind, 1, result, canonical, 0).notes

    return Message(f"page of {kind.value}", anything.pages(kind), page_schema(kind), notes_on)


GREETINGS = Message(
    "greeting",
    anything.greetings(LEGACY),
    GREETING,
    lambda result: read_initialization(1, result, 0).notes,
)
MESSAGES = (
    *map(_page_message, KINDS),
    GREETINGS,
    Message(
        "discovery",
        anything.discoveries(MODERN),
        DISCOVERY,
        lambda result: read_discovery(1, result, 0).notes,
    ),
    Message(
        "acknowledgement",
        anything.acknowledgements(),
        ACKNOWLEDGEMENT,
        lambda params: read_acknowledgement(1, params, 0).notes,
    ),
    Message(
        "acknowledgement of updates",
        anything.acknowledgements(),
        UPDATES,
        lambda params: read_updates_acknowledgement(1, params, 0).notes,
    ),
    Message("error", anything.errors(), ERROR, lambda error: notes_on_failure(read_failure(error))),
)


def malformed_is_noted(message: Message, value: Any) -> None:
    """What the schema refuses leaves a note, and nothing else does."""
    notes = message.notes_on(value)
    assert bool(notes) is not jsonschema_rs.is_valid(message.schema, value)
    assert len(notes) <= NOTES_MAX
    assert all(len(repr(note)) < 1_000 for note in notes)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_malformed_messages_are_noted(message: Message) -> None:
    values = message.sent | JSON
    given(value=values)(lambda value: malformed_is_noted(message, value))()


# --- whole sessions -------------------------------------------------------------------------------

POLICY = Policy(seed=SEED, pages_max=3, items_max=20, bytes_max=1_000, spoiled_in_row_max=2)
EFFECTS_MAX = 20  # for one message: four kinds hear of it, and each says a few things
BASE = 20_000  # bytes of a pickled session without lists, with room to spare
ITEM = 150  # bytes that pickling adds to an item


def size_max(policy: Policy) -> int:
    """The most bytes that a pickled session of this policy has.

    Each kind holds a published list, a candidate, an open walk, a cursor, and the list that was
    adopted; a character of a key or cursor may take four bytes. The rest is the caller's.
    """
    one_list = 4 * policy.bytes_max + ITEM * policy.items_max
    return BASE + len(KINDS) * (4 * one_list + 4 * policy.bytes_max)


class Measured(WildPeer):
    """A session that is measured at every step."""

    def hear(self, heard: SessionInput, notes: tuple[Note, ...] = ()) -> None:
        effects = self.step(heard)
        assert len(effects) <= EFFECTS_MAX
        notes += tuple(told for told in effects if isinstance(told, Note))
        assert len(notes) <= 2 * NOTES_MAX
        assert all(len(repr(note)) < 1_000 for note in notes)
        size = len(pickle.dumps(self.session))
        assert size <= size_max(POLICY), f"{size} bytes"


STARTS = st.sampled_from(["unknown", "modern", "legacy"])


def wild_session(start: str, data: st.DataObject) -> None:
    """A peer that says anything makes the core neither raise nor grow beyond what policy allows."""
    peer = Measured(POLICY)
    peer.start(start)
    for _ in range(data.draw(st.integers(1, 12))):
        peer.act(data)


@given(start=STARTS, data=st.data())
def test_a_session_survives_anything(start: str, data: st.DataObject) -> None:
    wild_session(start, data)


def test_the_fullest_session_comes_near_the_bound() -> None:
    """Each kind with a list, a candidate, half a walk and a cursor, as large as they may be."""
    peer = Measured(POLICY)
    peer.start("modern")
    for turn in ("published", "candidate", "open"):
        for kind in KINDS:
            if turn != "published":
                peer.hear(i.RefreshWanted(kind, peer.now_ms))
        for channel in CHANNELS if turn == "candidate" else ():
            peer.hear(i.NoticeHeard(channel, peer.session.listen.serial, peer.now_ms))
        for kind in KINDS:
            serial = peer.session.catalog(kind).serial
            result = _largest(kind, turn)
            peer.hear(*read_page(kind, serial, result, canonical, peer.now_ms))
    for catalog in peer.session.catalogs:
        assert catalog.snapshot is not None
        assert catalog.candidate is not None
        assert catalog.walk is not None
        assert catalog.walk.size_bytes == POLICY.bytes_max
    assert size_max(POLICY) / 8 < len(pickle.dumps(peer.session))


def _largest(kind: Kind, turn: str) -> dict[str, Any]:
    """A page of one entry that takes all there is; a character of its key is pickled as four."""
    key = turn + "\N{GRINNING FACE}" * 50
    entry = {NAMES[kind].key: key, "inputSchema": {}, "x": ""}
    entry["x"] = "x" * (POLICY.bytes_max - len(key) - len(canonical(entry)))
    more = "c" * POLICY.bytes_max if turn == "open" else None
    return {NAMES[kind].field: [entry], "nextCursor": more}


def test_a_session_does_not_grow_with_time() -> None:
    """Names, cursors and failures that are new each time leave nothing but larger numbers."""
    peer, sizes = Measured(POLICY), list[int]()
    peer.start("modern")
    for turn in range(400):
        peer.now_ms += 10_000
        peer.hear(i.RefreshWanted(Kind.TOOLS, peer.now_ms))
        peer.hear(i.NoticeHeard(Channel.TOOLS, turn, peer.now_ms))
        serial = peer.session.catalog(Kind.TOOLS).serial
        for page in range(2):
            tools = [{"name": f"{turn}-{page}-{n}", "inputSchema": {}} for n in range(9)]
            result = {"tools": tools, "nextCursor": None if page else f"cursor {turn}"}
            peer.hear(*read_page(Kind.TOOLS, serial + page, result, canonical, peer.now_ms))
        if turn % 3 == 0:
            peer.hear(i.TransportLost(peer.session.link.epoch, peer.now_ms))
            peer.now_ms += 60_000
            peer.hear(i.TimePassed(peer.now_ms))
            peer.start("modern")
        sizes.append(len(pickle.dumps(peer.session)))
    assert peer.session.catalog(Kind.TOOLS).generation > 300
    assert max(sizes[200:]) - max(sizes[:200]) < 100


# --- both bite ------------------------------------------------------------------------------------


def _weightless(patch: pytest.MonkeyPatch) -> None:
    """Bytes are not counted."""
    patch.setattr(i, "size_bytes", lambda _: 0)


def _any_cursor(patch: pytest.MonkeyPatch) -> None:
    """A cursor may be as long as it likes."""

    def too_long(walk: Walk, page: i.PageArrived, policy: Policy) -> bool:
        short = page if page.next_cursor is None else evolve(page, next_cursor="c")
        return paging.too_long(walk, short, policy)

    patch.setattr(guards, "too_long", too_long)


def _all_notes(patch: pytest.MonkeyPatch) -> None:
    """Every bad entry is noted."""
    patch.setattr(messages, "NOTES_MAX", 10**9)


def _trusting(patch: pytest.MonkeyPatch) -> None:
    """Whatever comes is taken for an object."""
    patch.setattr(messages, "is_object", lambda _: True)


def _silent(patch: pytest.MonkeyPatch) -> None:
    """Malformed capabilities are passed over."""
    patch.setattr(messages, "_notes_on_capabilities", lambda _: ())


Fault = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("fault", [_weightless, _any_cursor, _all_notes, _trusting])
def test_wild_sessions_find(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    with pytest.raises((AssertionError, AttributeError)):
        _hunt(wild_session, start=STARTS, data=st.data())


@pytest.mark.parametrize("fault", [_all_notes, _trusting, _silent])
def test_malformed_messages_find(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    message = GREETINGS if fault is _silent else MESSAGES[0]
    with pytest.raises((AssertionError, AttributeError)):
        _hunt(malformed_is_noted, message=st.just(message), value=message.sent | JSON)


def _hunt(test: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> None:
    """Within the profile in force, with the same examples each time."""
    hunting = settings(settings(), phases=[Stage.generate], derandomize=True, database=None)
    hunting(given(**strategies)(test))()
