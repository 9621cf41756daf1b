"""From JSON to inputs: total over arbitrary JSON, exact about the shapes that count."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relist.inputs import PageArrived, PageFailed
from relist.messages import (
    FILTERS,
    NAMES,
    NOTICES,
    REASON_MAX,
    Page,
    read_capabilities,
    read_failure,
    read_granted,
    read_page,
    read_versions,
)
from relist.values import CHANNEL_OF, KINDS, Channel, Kind, Scope

rule = pytest.mark.rule
TOOL = {"name": "a", "inputSchema": {"type": "object"}}


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, allow_nan=False).encode()


def page(result: object, kind: Kind = Kind.TOOLS) -> Page:
    return read_page(kind, 3, result, canonical, 1_000)


def arrived(result: object, kind: Kind = Kind.TOOLS) -> PageArrived:
    heard = page(result, kind).heard
    assert isinstance(heard, PageArrived)
    return heard


# --- any JSON -------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        *(name for names in NAMES.values() for name in names),
        *FILTERS.values(),
        "nextCursor",
        "ttlMs",
        "cacheScope",
        "resultType",
        "listChanged",
        "notifications",
        "inputSchema",
        "supportedVersions",
        "supported",
        "code",
        "data",
        "public",
        "complete",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=25,
)
RESULTS = JSON | st.fixed_dictionaries(
    {"tools": st.lists(JSON | st.fixed_dictionaries({"name": SCALARS, "inputSchema": JSON}))},
    optional={"nextCursor": JSON, "ttlMs": JSON, "cacheScope": JSON, "resultType": JSON},
)


@rule("DISC-22")
@given(result=RESULTS, kind=st.sampled_from(KINDS))
def test_no_result_raises(result: object, kind: Kind) -> None:
    heard, notes = page(result, kind)
    assert len(notes) <= 8
    assert all(len(str(note.values)) < 1_000 for note in notes)
    assert (heard.kind, heard.serial, heard.now_ms) == (kind, 3, 1_000)
    if isinstance(heard, PageArrived):
        assert heard.ttl_ms is None or type(heard.ttl_ms) is int
        assert heard.next_cursor is None or isinstance(heard.next_cursor, str)


@given(value=JSON)
def test_nothing_else_raises_either(value: object) -> None:
    capabilities = read_capabilities(value)
    assert capabilities.channels <= {CHANNEL_OF[kind] for kind in capabilities.kinds}
    assert read_granted(value) <= set(Channel)
    assert all(len(version) <= REASON_MAX for version in read_versions(value))
    failure = read_failure(value)
    assert failure.code is None or type(failure.code) is int


def test_very_deep_entries_are_left_out() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"x": deep}
    heard, notes = page({"tools": [TOOL, {**TOOL, "name": "deep", "x": deep}]})
    assert isinstance(heard, PageArrived)
    assert [item.key for item in heard.items] == ["a"]
    assert [note.rule for note in notes] == ["DISC-25"]


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
    "result",
    [
        None,
        [],
        "x",
        {},
        {"tools": None},
        {"tools": {}},
        {"prompts": []},
        {"tools": [], "nextCursor": 7},
        {"tools": [], "nextCursor": False},
        {"tools": [], "resultType": "input_required"},
        {"tools": [], "resultType": None},
    ],
)
def test_a_result_of_the_wrong_shape_fails_the_walk(result: object) -> None:
    heard, notes = page(result)
    assert isinstance(heard, PageFailed)
    assert [note.rule for note in notes] == ["DISC-22"]


@rule("DISC-25")
@pytest.mark.parametrize(
    "entry",
    [
        None,
        7,
        "a",
        [],
        {},
        {"name": None, "inputSchema": {}},
        {"name": 1, "inputSchema": {}},
        {"name": "b"},
        {"name": "b", "inputSchema": []},
        {"name": "b", "inputSchema": {}, "x": float("nan")},
    ],
)
def test_one_bad_entry_is_left_out_and_noted(entry: object) -> None:
    heard, notes = page({"tools": [entry, TOOL]})
    assert isinstance(heard, PageArrived)
    assert [item.key for item in heard.items] == ["a"]
    (note,) = notes
    assert (note.rule, note.values) == ("DISC-25", ("tools", 3, 0))


def test_notes_about_one_page_are_bounded() -> None:
    assert len(page({"tools": [None] * 1_000}).notes) == 8


@rule("TTL-08")
@pytest.mark.parametrize(
    ("raw", "ttl_ms", "noted"),
    [(5, 5, 0), (0, 0, 0), (-5, -5, 0), (None, None, 0), ("5", 0, 1), (5.0, 0, 1), (True, 0, 1)],
)
def test_a_lifetime_that_is_no_integer_is_zero_and_noted(
    raw: object, ttl_ms: int | None, noted: int
) -> None:
    heard, notes = page({"tools": [], "ttlMs": raw})
    assert isinstance(heard, PageArrived)
    assert heard.ttl_ms == ttl_ms
    assert len(notes) == noted


@rule("TTL-26")
@pytest.mark.parametrize("scope", [None, "private", "PUBLIC", True, "x", ["public"]])
def test_only_public_is_public(scope: object) -> None:
    assert arrived({"tools": [], "cacheScope": scope}).scope is Scope.PRIVATE
    assert arrived({"tools": []}).scope is Scope.PRIVATE
    assert arrived({"tools": [], "cacheScope": "public"}).scope is Scope.PUBLIC


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
    assert (failure.code, failure.status, failure.retry_after_ms) == (-32022, 400, 70)
    assert failure.supported == ("v1", "v2")
    assert "secret" not in repr(failure)


@pytest.mark.parametrize("error", [None, [], {}, {"code": "x"}, {"code": True}, {"code": 1.5}])
def test_a_malformed_error_is_one_without_a_code(error: object) -> None:
    assert read_failure(error, 500).code is None


def test_lists_of_versions_are_bounded() -> None:
    versions = read_versions({"supportedVersions": ["x" * 1_000] * 1_000})
    assert len(versions) == 64
    assert set(map(len, versions)) == {REASON_MAX}
