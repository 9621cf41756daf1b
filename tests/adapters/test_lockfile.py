"""``relist.lock``: the same bytes for the same approvals, read strictly, and fit to be reviewed."""

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Ledger
from relist.drift.receive import receive
from relist.drift.review import reviews
from relist.drift.values import (
    CapabilityRef,
    ChangeClass,
    Chosen,
    Definition,
    ExactSelection,
    FollowPolicy,
    Newcomers,
    Profile,
    Rule,
    ServerIdentity,
    ServerSelection,
    Subject,
    Why,
    capability_id,
)
from relist.policy import Risk
from relist_mcp.drift.canonical import depth
from relist_mcp.drift.definitions import DEPTH_MAX, definition_of, from_fields
from relist_mcp.drift.lockfile import Lock, Locked, LockError, expected, lock_of, read, written

rule = pytest.mark.rule
GOLDEN = Path(__file__).parent / "golden.lock"
HOME = ServerIdentity("home", "https://home.test/mcp", "npm:@home/mcp", "https://home.test")
SEARCH: Mapping[str, Any] = {
    "name": "search",
    "description": "Finds text.\n\u202eHidden\u200b от людей — 検索",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {
        "type": "object",
        "required": ["q"],
        "properties": {"q": {"type": "string"}, "n": {"default": 1.50, "maximum": 1e21}},
    },
    "_meta": {"seen": 1},
}
NOTES: Mapping[str, Any] = {"name": "Notes", "uri": "file:///notes", "size": 2**60, "x": "\ud800"}
DEEP = b'{"name":"deep","x":' + b"[" * 120 + b"]" * 120 + b"}"


def made(subject: Subject, key: str, entry: Mapping[str, Any] | bytes) -> Definition:
    raw = entry if isinstance(entry, bytes) else json.dumps(entry).encode()
    return definition_of(CapabilityRef("home", subject, key), raw)


OFFERED = (
    made(Subject.TOOL, "search", SEARCH),
    made(Subject.TOOL, "deep", DEEP),
    made(Subject.RESOURCE, "file:///notes", NOTES),
)


def taken(*definitions: Definition, at_ms: int = 0) -> list[i.InventoryTaken]:
    return [
        i.InventoryTaken(
            HOME,
            subject,
            {one.ref.key: one for one in definitions if one.ref.subject is subject},
            frozenset(),
            True,
            "me",
            at_ms,
        )
        for subject in (Subject.TOOL, Subject.RESOURCE)
    ]


PROFILE = Profile(
    "agent",
    (ExactSelection({one.ref: Chosen(Rule.ALLOW, Risk.READ_ONLY) for one in OFFERED}),),
    FollowPolicy({Risk.READ_ONLY: frozenset({ChangeClass.TEXT})}, frozenset({Risk.READ_ONLY})),
)
WHOLE = Profile("person", (ServerSelection("home", newcomers=Newcomers.JOIN),))


def ledger(who: str = "me", at_ms: int = 5, *, backwards: bool = False) -> Ledger:
    """Two consumers, with all that is offered approved by somebody at some time."""
    step = -1 if backwards else 1
    told: list[Any] = [*taken(*OFFERED[::step], at_ms=at_ms)][::step]
    for profile in (PROFILE, WHOLE)[::step]:
        items = {one.ref: one.id for one in OFFERED[::step]}
        told.append(i.ProfileSet(profile, who, "", at_ms))
        told.append(i.Approved(profile.consumer, items, who, f"{who} says so", at_ms))
    found = Ledger()
    for heard in told:
        found = receive(found, heard).state
    return found


LOCK = lock_of(ledger())


# --- the same bytes -------------------------------------------------------------------------------


def test_the_file_is_as_it_always_was() -> None:
    """A change of these bytes changes everybody's lock file: raise the format instead."""
    assert written(LOCK) == GOLDEN.read_bytes()


def test_equal_approvals_give_equal_bytes_whoever_gave_them_and_when() -> None:
    assert written(lock_of(ledger("you", 77, backwards=True))) == written(LOCK)


def test_what_is_written_is_read() -> None:
    lock = read(written(LOCK))
    assert lock == LOCK
    assert [locked.profile for locked in lock.consumers] == [PROFILE, WHOLE]
    for locked in lock.consumers:
        assert dict(locked.approved) == {one.ref: evolve(one, upstream=one.id) for one in OFFERED}


def test_the_published_schema_describes_it() -> None:
    schema = json.loads((files("relist_specs") / "schemas" / "lock.schema.json").read_bytes())
    jsonschema_rs.meta.validate(schema)
    jsonschema_rs.validator_for(schema).validate(json.loads(written(LOCK)))


def test_everything_can_be_seen_in_it() -> None:
    text = written(LOCK).decode()
    assert r"Finds text.\n\u202eHidden\u200b от людей — 検索" in text
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "me" not in json.loads(text)
    assert "says so" not in text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5) | st.just("name"), JSON, max_size=4), st.text())
def test_any_definition_keeps_its_id(entry: Mapping[str, Any], key: str) -> None:
    raw = json.dumps(entry).encode()
    definition = made(Subject.TOOL, key, raw)
    again = from_fields(definition.ref, definition.fields)
    assert (again.id, again.body, again.hints) == (
        definition.id,
        definition.body,
        definition.hints,
    )
    profile = Profile("agent", (ServerSelection("home"),))
    lock = Lock((HOME,), (Locked(profile, {again.ref: again}),))
    assert read(written(lock)) == lock


def test_what_is_too_deep_is_opaque_on_every_version_of_python() -> None:
    def nested(levels: int) -> Definition:
        # The entry is a level, and so is the list that holds another.
        return made(Subject.TOOL, "a", b'{"x":' + b"[" * levels + b"]" * levels + b"}")

    assert "x" in nested(DEPTH_MAX - 1).fields
    assert set(nested(DEPTH_MAX).fields) == {""}
    assert set(nested(50_000).fields) == {""}
    assert nested(DEPTH_MAX).id != nested(DEPTH_MAX + 1).id
    assert depth([[], [[]]], 9) == 3


# --- what it means --------------------------------------------------------------------------------


@rule("DRIFT-22")
def test_what_was_not_approved_or_was_taken_back_is_not_in_it() -> None:
    search, deep, notes = OFFERED
    changed = made(Subject.TOOL, "search", {**SEARCH, "inputSchema": {"type": "object"}})
    now = ledger()
    refused = i.Rejected("agent", {deep.ref: deep.id}, "me", "", 6)
    told: list[LedgerInput] = [*taken(changed, deep), refused]
    for heard in told:
        now = receive(now, heard).state
    agent, person = lock_of(now).consumers
    assert set(agent.approved) == {search.ref}  # notes are gone, and would be reviewed
    assert agent.approved[search.ref].id == search.id != changed.id
    assert set(person.approved) == {search.ref, deep.ref}
    assert notes.ref not in person.approved


@pytest.mark.parametrize("number", [0, 1])
def test_what_is_expected_is_exactly_what_is_locked(number: int) -> None:
    lock = read(written(LOCK))
    locked = lock.consumers[number]
    now = expected(lock, locked, "me")
    assert list(reviews(now)) == []
    assert now.publications[locked.profile.consumer].manifest.items == {
        one.ref: one.id for one in OFFERED
    }
    # What a policy lets through is another thing than what is locked.
    _, deep, notes = OFFERED
    changed = made(Subject.TOOL, "search", {**SEARCH, "description": "other"})
    more = made(Subject.RESOURCE, "file:///more", {"uri": "file:///more"})
    for heard in taken(changed, deep, notes, more):
        now = receive(now, heard).state
    found = {review.ref.key: review.why for review in reviews(now)}
    assert found["search"] is Why.CHANGED
    assert ("file:///more" in found) == (locked.profile is WHOLE or number == 1)


def test_an_id_of_something_else_is_not_written() -> None:
    strange = evolve(OFFERED[0], id=capability_id(b"another"))
    strange = evolve(strange, upstream=strange.id)
    lock = evolve(LOCK, consumers=(Locked(WHOLE, {strange.ref: strange}),))
    with pytest.raises(LockError, match=r"/consumers/0/approved/0: .* does not have this id"):
        written(lock)


# --- what is refused ------------------------------------------------------------------------------

Edit = Callable[[str], str]


def instead(old: str, new: str, count: int = 1) -> Edit:
    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new, count)

    return edit


def alter(change: Callable[[Any], object]) -> Edit:
    def edit(text: str) -> str:
        data = json.loads(text)
        change(data)
        return json.dumps(data, indent=2, ensure_ascii=False)

    return edit


def doubled(text: str) -> str:
    data = json.loads(text)
    data["consumers"][0]["approved"].insert(0, data["consumers"][0]["approved"][0])
    return json.dumps(data)


DAMAGE: list[tuple[Edit, str]] = [
    (instead("Finds text.", "Finds texts."), r"/consumers/0/approved/2: home/tool/search does not"),
    (instead('"type": "string"', '"type": "number"'), "/consumers/0/approved/2: home/tool/search"),
    (instead("[[", "[[[", 1), "/consumers/0/approved/1: home/tool/deep does not have this id"),
    (instead("relist1:", "relist2:"), "/consumers/0/approved/0/id: relist2 is a formula that"),
    (instead("relist1:", "md5:"), '/consumers/0/approved/0/id: "md5:'),
    (instead('"relist_lock": 1', '"relist_lock": 2'), "/relist_lock: 1 was expected"),
    (instead('"relist_lock": 1', '"relist_lock": NaN'), "is no JSON that can be read: NaN"),
    (instead('"relist_lock": 1,', '"relist_lock": 1'), r"line 3: Expecting ',' delimiter"),
    (instead('"allow"', '"permit"'), '/consumers/0/selections/0/exactly/0/rule: "permit" is not'),
    (instead('"key": "deep"', '"key": "d\u0435ep"', 2), "/consumers/0/approved/1: "),
    (instead('"whole_server": "home"', '"whole_server": "away"'), "/consumers/1/approved/0: home/"),
    (lambda text: text[: len(text) // 2], "line "),
    (lambda text: text + " ", "line "),
    (lambda text: "[" * 50_000 + text, "is no JSON that can be read"),
    (lambda text: "", "line 1: Expecting value"),
    (lambda text: "<<<<<<< ours\n" + text, "line 1: Expecting value"),
    (lambda text: "{}", '/: "relist_lock" is a required property'),
    # What a reviewer reads first, and a parser last.
    (instead('"name": "search"', '"name": "find",\n "name": "search"'), "line "),
    (instead("  ", "\t"), "line 2: is not as 'relist lock' writes it"),
    (alter(lambda data: data["consumers"].reverse()), "line 13: is not as"),
    (alter(lambda data: data["consumers"][0]["approved"].reverse()), "line "),
    (alter(lambda data: data["consumers"][0].update(who="me")), "/consumers/0: Additional"),
    (alter(lambda data: data["consumers"][0].update(consumer="")), '/consumers/0/consumer: ""'),
    (alter(lambda data: data["consumers"][1].update(consumer="agent")), "/consumers/1: 'agent'"),
    (alter(lambda data: data["servers"].append(data["servers"][0])), "/servers/1: 'home' is"),
    (alter(lambda data: data["servers"].clear()), "/consumers/0/approved/0/server: there is no"),
    (alter(lambda data: data["consumers"][0]["selections"].pop()), "/consumers/0/approved/0: "),
    (doubled, "/consumers/0/approved/1: home/resource/file:///notes is there twice"),
]


@pytest.mark.parametrize(("edit", "said"), DAMAGE)
def test_a_damaged_file_is_refused_with_the_place(edit: Edit, said: str) -> None:
    with pytest.raises(LockError) as raised:
        read(edit(written(LOCK).decode()).encode())
    message = str(raised.value)
    assert message.startswith(said)
    assert "\n" not in message
    assert len(message) < 500


def test_what_is_no_text_or_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LockError, match="is no UTF-8 at byte 1"):
        read(b"{\xff}")
    monkeypatch.setattr("relist_mcp.drift.lockfile.SIZE_MAX", 100)
    with pytest.raises(LockError, match="is larger than 100 bytes"):
        read(GOLDEN.read_bytes())


def test_line_ends_of_another_system_are_no_difference() -> None:
    assert read(written(LOCK).replace(b"\n", b"\r\n")) == LOCK


@given(st.data())
def test_no_byte_can_be_changed_without_notice(data: st.DataObject) -> None:
    content = bytearray(GOLDEN.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    try:
        lock = read(bytes(content))
    except LockError:
        return
    assert lock != LOCK  # what a file may say: another server, another rule
    assert written(lock) == bytes(content)
