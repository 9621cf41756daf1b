"""From JSON to inputs: exact about the shapes that count. Any JSON: ``test_fuzz``."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve

from relist.effects import Note
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
from relist.messages import (
    FILTERS,
    NAMES,
    NOTICES,
    REASON_MAX,
    Heard,
    notes_on_failure,
    read_acknowledgement,
    read_capabilities,
    read_discovery,
    read_failure,
    read_granted,
    read_granted_uris,
    read_initialization,
    read_page,
    read_updates_acknowledgement,
    read_versions,
)
from relist.values import Capabilities, Channel, Failure, Kind, Scope

rule = pytest.mark.rule
TOOL = {"name": "a", "inputSchema": {"type": "object"}}


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, allow_nan=False).encode()


def page(result: object, kind: Kind = Kind.TOOLS) -> Heard[PageArrived | PageFailed]:
    return read_page(kind, 3, result, canonical, 1_000)


def arrived(result: object, kind: Kind = Kind.TOOLS) -> PageArrived:
    heard = page(result, kind).heard
    assert isinstance(heard, PageArrived)
    return heard


# --- more than readers can take -------------------------------------------------------------------


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"x": value}
    return value


ENDLESS = 10**5_000  # more digits than Python prints


@rule("DISC-25")
@pytest.mark.parametrize("value", [deep(100_000), ENDLESS], ids=["levels", "digits"])
def test_entries_without_a_canonical_form_are_left_out(value: object) -> None:
    heard, notes = page({"tools": [TOOL, {**TOOL, "name": "b", "x": value}]})
    assert isinstance(heard, PageArrived)
    assert [item.key for item in heard.items] == ["a"]
    assert [note.rule for note in notes] == ["DISC-25"]


@rule("TTL-08")
@rule("FAIL-07")
def test_numbers_without_end_are_none() -> None:
    """Kept, they could not even be printed."""
    assert arrived({"tools": [], "ttlMs": ENDLESS}).ttl_ms == 0
    assert read_failure({"code": -ENDLESS}).code is None
    assert read_failure({"code": -(2**53) + 1}).code == -(2**53) + 1


# --- pages ----------------------------------------------------------------------------------------


@rule("DISC-27")
@pytest.mark.parametrize(
    ("kind", "entry", "key"),
    [
        (Kind.TOOLS, TOOL, "a"),
        (Kind.PROMPTS, {"name": "p"}, "p"),
        (Kind.RESOURCES, {"uri": "x://1", "name": "n"}, "x://1"),
        (Kind.TEMPLATES, {"uriTemplate": "x://{a}", "name": "n"}, "x://{a}"),
    ],
)
def test_an_entry_is_known_by_its_key(kind: Kind, entry: dict[str, Any], key: str) -> None:
    (item,) = arrived({NAMES[kind].field: [entry]}, kind).items
    assert (item.key, item.canonical_json) == (key, canonical(entry))


@rule("DISC-29")
@pytest.mark.parametrize("name", ["", "a b", "a/b", "zoë", "x" * 200])
def test_a_name_against_the_advice_is_listed(name: str) -> None:
    assert arrived({"tools": [{**TOOL, "name": name}]}).items[0].key == name


@rule("DISC-04")
@rule("DISC-06")
@pytest.mark.parametrize(
    ("fields", "cursor"),
    [
        ({}, None),
        ({"nextCursor": None}, None),
        ({"nextCursor": ""}, ""),
        ({"nextCursor": "x"}, "x"),
    ],
)
def test_the_empty_cursor_is_one_and_null_is_none(
    fields: dict[str, Any], cursor: str | None
) -> None:
    assert arrived({"tools": [], **fields}).next_cursor == cursor


@rule("DISC-21")
@rule("TTL-27")
@rule("DISC-22")
@rule("LIFE-43")
@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (None, "result is no object"),
        ([], "result is no object"),
        ("x", "result is no object"),
        ({}, "tools is no list"),
        ({"tools": None}, "tools is no list"),
        ({"tools": {}}, "tools is no list"),
        ({"prompts": []}, "tools is no list"),
        ({"tools": [], "nextCursor": 7}, "nextCursor is no string"),
        ({"tools": [], "nextCursor": False}, "nextCursor is no string"),
        ({"tools": [], "resultType": "input_required"}, "resultType is not complete"),
        ({"tools": [], "resultType": None}, "resultType is not complete"),
    ],
)
def test_a_result_of_the_wrong_shape_fails_the_walk(result: object, reason: str) -> None:
    heard, notes = page(result)
    assert heard == PageFailed(Kind.TOOLS, 3, Failure(reason), 1_000)
    assert notes == (Note("DISC-22", reason, ("tools", 3)),)


@rule("DISC-25")
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (None, "entry is no object"),
        (7, "entry is no object"),
        ("a", "entry is no object"),
        ([], "entry is no object"),
        ({}, "entry without name"),
        ({"name": None, "inputSchema": {}}, "entry without name"),
        ({"name": 1, "inputSchema": {}}, "entry without name"),
        ({"name": "b"}, "inputSchema is no object"),
        ({"name": "b", "inputSchema": []}, "inputSchema is no object"),
        ({"name": "b", "inputSchema": {}, "x": float("nan")}, "entry has no canonical form"),
    ],
)
def test_one_bad_entry_is_left_out_and_noted(entry: object, reason: str) -> None:
    heard, notes = page({"tools": [entry, TOOL]})
    assert isinstance(heard, PageArrived)
    assert [item.key for item in heard.items] == ["a"]
    assert notes == (Note("DISC-25", reason, ("tools", 3, 0)),)


def test_notes_about_one_page_are_bounded() -> None:
    """What is said of the page as a whole is among them."""
    notes = page({"tools": [None] * 1_000, "ttlMs": "soon", "cacheScope": 7}).notes
    assert [note.rule for note in notes] == ["TTL-08", "TTL-26"] + ["DISC-25"] * 6


@rule("DISC-25")
def test_what_a_stricter_canonical_form_refuses_is_left_out() -> None:
    """As orjson does with integers of more than 64 bits and with halves of surrogate pairs."""

    def strict(value: object) -> bytes:
        raise TypeError(value)

    heard, notes = read_page(Kind.TOOLS, 3, {"tools": [TOOL]}, strict, 0)
    assert isinstance(heard, PageArrived)
    assert heard.items == ()
    assert [note.rule for note in notes] == ["DISC-25"]


@rule("TTL-08")
@pytest.mark.parametrize(
    ("raw", "ttl_ms", "noted"),
    [
        (5, 5, False),
        (0, 0, False),
        (-5, -5, False),
        (None, None, False),
        ("5", 0, True),
        (5.0, 0, True),
        (True, 0, True),
    ],
)
def test_a_lifetime_that_is_no_integer_is_zero_and_noted(
    raw: object, ttl_ms: int | None, noted: bool
) -> None:
    heard, notes = page({"tools": [], "ttlMs": raw})
    assert isinstance(heard, PageArrived)
    assert heard.ttl_ms == ttl_ms
    assert notes == ((Note("TTL-08", "ttlMs is no integer", ("tools", 3)),) if noted else ())


@rule("TTL-26")
@pytest.mark.parametrize(
    ("scope", "noted"),
    [(None, 0), ("private", 0), ("PUBLIC", 1), (True, 1), ("x", 1), (["public"], 1)],
)
def test_only_public_is_public(scope: object, noted: int) -> None:
    heard, notes = page({"tools": [], "cacheScope": scope})
    assert isinstance(heard, PageArrived)
    assert heard.scope is Scope.PRIVATE
    assert [note.rule for note in notes] == ["TTL-26"] * noted
    assert arrived({"tools": []}).scope is Scope.PRIVATE
    assert page({"tools": [], "cacheScope": "public"}) == (
        evolve(arrived({"tools": []}), scope=Scope.PUBLIC),
        (),
    )


# --- capabilities, grants, errors -----------------------------------------------------------------


@rule("CAP-03")
@rule("CAP-04")
@rule("LIFE-44")
def test_an_empty_object_declares_and_null_does_not() -> None:
    assert read_capabilities({"tools": {}, "x/new": {}}).kinds == {Kind.TOOLS}
    assert read_capabilities({"tools": None, "prompts": True}).kinds == set()
    assert read_capabilities({"resources": {}}).kinds == {Kind.RESOURCES, Kind.TEMPLATES}


@rule("CAP-06")
@pytest.mark.parametrize(
    ("flag", "heeded"), [(True, True), (False, False), (1, False), ("true", False), (None, False)]
)
def test_list_changed_is_declared_by_true_alone(flag: object, heeded: bool) -> None:
    channels = read_capabilities({"resources": {"listChanged": flag}}).channels
    assert channels == ({Channel.RESOURCES} if heeded else set())


@rule("CAP-08")
@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("subscribe", [True, False])
def test_updates_and_changes_are_declared_apart(subscribe: bool, changed: bool) -> None:
    offered = read_capabilities({"resources": {"subscribe": subscribe, "listChanged": changed}})
    assert (offered.subscribe, bool(offered.channels)) == (subscribe, changed)


@rule("SUB-06")
@rule("SUB-36")
def test_only_true_grants() -> None:
    granted = {"toolsListChanged": True, "promptsListChanged": 1, "resourcesListChanged": "true"}
    granted["taskIds"] = ["1"]
    assert read_granted({"notifications": granted}) == {Channel.TOOLS}


def test_every_channel_has_a_notice_and_a_filter() -> None:
    assert set(NOTICES.values()) == set(FILTERS) == set(Channel)


@rule("FAIL-07")
def test_of_an_error_only_what_is_needed_is_kept() -> None:
    error = {"code": -32022, "message": "secret" * 99, "data": {"supported": ["v1", 7, "v2"]}}
    failure = read_failure(error, 400, 70)
    assert failure == Failure("error answer", -32022, 400, 70, ("v1", "v2"))


@pytest.mark.parametrize("error", [None, [], {}, {"code": "x"}, {"code": True}, {"code": 1.5}])
def test_a_malformed_error_is_one_without_a_code(error: object) -> None:
    failure = read_failure(error, 500, 70)
    assert failure == Failure("malformed error", None, 500, 70)
    assert [note.rule for note in notes_on_failure(failure)] == ["FAIL-07"]


@rule("LIFE-24")
def test_an_unsupported_version_comes_with_others() -> None:
    bare, listed = ({"code": -32022, "data": data} for data in ({}, {"supported": ["v1"]}))
    assert [note.rule for note in notes_on_failure(read_failure(bare))] == ["FAIL-07"]
    assert notes_on_failure(read_failure(listed)) == ()
    assert notes_on_failure(read_failure({"code": -32603})) == ()


def test_lists_of_versions_are_bounded() -> None:
    versions = read_versions({"supportedVersions": ["x" * 1_000] * 1_000})
    assert len(versions) == 64
    assert set(map(len, versions)) == {REASON_MAX}


# --- whole answers --------------------------------------------------------------------------------

DECLARED = {"tools": {"listChanged": True}, "logging": 7}
CLEAN = Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.TOOLS}))


@rule("LIFE-28")
def test_a_discovery_is_its_versions_and_capabilities() -> None:
    result = {"supportedVersions": ["v2", "v1"], "capabilities": DECLARED}
    heard, notes = read_discovery(3, result, 7)
    assert heard == DiscoverAnswered(3, ("v2", "v1"), CLEAN, 7)
    assert notes == ()


@rule("LIFE-43")
@pytest.mark.parametrize("result", [None, [], {"resultType": "input_required"}])
def test_what_is_no_discovery_fails(result: object) -> None:
    heard, notes = read_discovery(3, result, 7)
    assert heard == DiscoverFailed(3, Failure("no discovery result"), 7)
    assert [note.rule for note in notes] == ["LIFE-43"]


@rule("LIFE-28")
@pytest.mark.parametrize("listed", [None, "v1", {"v1": 1}, ["v1", 7], ["v1"] * 65])
def test_versions_that_are_no_list_are_noted(listed: object) -> None:
    _, notes = read_discovery(3, {"supportedVersions": listed, "capabilities": {}}, 7)
    assert [note.rule for note in notes] == ["LIFE-28"]


@rule("LIFE-05")
def test_a_greeting_is_its_version_and_capabilities() -> None:
    heard, notes = read_initialization(3, {"protocolVersion": "v", "capabilities": DECLARED}, 7)
    assert heard == InitializeAnswered(3, "v", CLEAN, 7)
    assert notes == ()


@rule("LIFE-05")
@pytest.mark.parametrize("result", [None, {}, {"protocolVersion": 1}])
def test_what_is_no_greeting_fails(result: object) -> None:
    heard, notes = read_initialization(3, result, 7)
    assert heard == InitializeFailed(3, Failure("no initialize result"), 7)
    assert [note.rule for note in notes] == ["LIFE-05"]


@rule("CAP-03")
@rule("CAP-06")
@rule("CAP-09")
@pytest.mark.parametrize(
    ("capabilities", "rules"),
    [
        (None, ["CAP-03"]),
        ({"tools": None, "prompts": []}, ["CAP-03", "CAP-03"]),
        ({"resources": {"listChanged": 1, "subscribe": {}}}, ["CAP-06", "CAP-09"]),
        ({"tools": {"listChanged": False, "subscribe": 7}, "experimental": None}, []),
    ],
)
def test_malformed_capabilities_are_noted(capabilities: object, rules: list[str]) -> None:
    result = {"protocolVersion": "v", "capabilities": capabilities}
    assert [note.rule for note in read_initialization(3, result, 7).notes] == rules


TOOLS_GRANTED = {"toolsListChanged": True}


@rule("SUB-06")
@pytest.mark.parametrize(
    ("params", "granted", "notes"),
    [
        ({"notifications": {"toolsListChanged": True}}, {Channel.TOOLS}, 0),
        (
            {"notifications": {"toolsListChanged": True, "promptsListChanged": 1}},
            {Channel.TOOLS},
            1,
        ),
        ({"notifications": []}, set(), 1),
        (None, set(), 1),
    ],
)
def test_an_acknowledgement_grants_what_is_true(
    params: object, granted: set[Channel], notes: int
) -> None:
    read = read_acknowledgement(3, params, 7)
    assert read.heard == PushOpened(3, frozenset(granted), 7)
    assert [note.rule for note in read.notes] == ["SUB-06"] * notes


@rule("SUB-08")
@pytest.mark.parametrize(
    ("uris", "granted", "notes"),
    [
        (["file:///a", "file:///b"], {"file:///a", "file:///b"}, 0),
        ([], set(), 0),
        (["file:///a", 1, None], {"file:///a"}, 1),
        ("file:///a", set(), 1),
        (None, set(), 1),
    ],
)
def test_an_acknowledgement_grants_resources_uri_by_uri(
    uris: object, granted: set[str], notes: int
) -> None:
    params = {"notifications": {"resourceSubscriptions": uris}}
    read = read_updates_acknowledgement(3, params, 7)
    assert read.heard == UpdatesOpened(3, frozenset(granted), 7)
    assert [note.rule for note in read.notes] == ["SUB-08"] * notes
    assert read_granted_uris(params) == granted


@rule("CALL-13")
@rule("DISC-23")
@rule("OBS-10")
def test_what_the_transport_cannot_use_is_left_out_and_named_while_its_neighbours_stay() -> None:
    def exclude(kind: Kind, entry: Mapping[str, object]) -> str | None:
        return "x" * 500 if kind is Kind.TOOLS and entry["name"] == "bad" else None

    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("a", "bad", "c")]
    page = read_page(Kind.TOOLS, 1, {"tools": tools}, canonical, 7, exclude)
    assert isinstance(page.heard, PageArrived)
    assert [item.key for item in page.heard.items] == ["a", "c"]
    (note,) = page.notes
    assert note.rule == "OBS-10"
    assert note.values == ("tools", 1, "bad", "x" * REASON_MAX)


@rule("LIFE-28")
@pytest.mark.parametrize("versions", [None, "2026-07-28", {"0": "2026-07-28"}])
def test_a_discovery_without_a_list_of_versions_is_none(versions: object) -> None:
    """A server that says nothing usable is tried again, not given up."""
    read = read_discovery(1, {"supportedVersions": versions, "capabilities": {}}, 7)
    assert read.heard == DiscoverFailed(1, Failure("no discovery result"), 7)
    assert [note.rule for note in read.notes] == ["LIFE-28"]
