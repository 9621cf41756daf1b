"""Ids of definitions: the published vectors, and what is equal exactly when JSON is."""

import copy
import json
import math
from hashlib import sha256
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relist.drift.values import CapabilityRef, Hints, Subject
from relist.values import Item, Kind, Scope, Snapshot
from relist_mcp.drift.canonical import NotCanonical, canonical
from relist_mcp.drift.definitions import Reader, definition_of
from support.drift import HOME

rule = pytest.mark.rule
VECTORS = json.loads((files("relist_specs") / "vectors" / "capability-ids.json").read_text())
TEXTS = st.text(st.characters(exclude_categories=()), max_size=6)  # lone surrogates as well
NUMBERS = (
    st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
REF = CapabilityRef("srv", Subject.TOOL, "t")


@rule("DRIFT-03", "DRIFT-07")
@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["name"])
def test_a_vector(vector: dict[str, str]) -> None:
    about = CapabilityRef(vector["server"], Subject(vector["subject"]), vector["key"])
    made = definition_of(about, vector["entry"].encode())
    shown = (str(made.id), str(made.upstream), str(made.body))
    assert shown == (vector["id"], vector["upstream"], vector["body"])
    domain = b"relist/capability/1\x00"
    assert vector["id"] == "relist1:" + sha256(domain + vector["canonical"].encode()).hexdigest()


def _same(one: Any, other: Any) -> bool:
    """Whether these are the same JSON value: numbers by value, true is not one."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return _number(one) == _number(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


def _number(value: float) -> object:
    """Integers beyond 2^53 are themselves; all else is what JSON readers make of it."""
    big = isinstance(value, int) and abs(value) >= 2**53
    return ("integer", value) if big else ("double", float(value))


@rule("DRIFT-07")
@given(JSON, JSON)
def test_equal_forms_are_equal_values(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) is _same(one, other)


@rule("DRIFT-07")
@given(JSON, st.randoms(use_true_random=False))
def test_no_order_of_keys_matters(value: Any, random: Any) -> None:
    assert canonical(_shuffled(value, random)) == canonical(value)


def _shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        pairs = [(key, _shuffled(one, random)) for key, one in value.items()]
        random.shuffle(pairs)
        return dict(pairs)
    return [_shuffled(one, random) for one in value] if isinstance(value, list) else value


def test_a_value_that_looks_like_a_substitute_is_another() -> None:
    for value, like in (
        (2**60, f"\x00i{2**60}"),
        ("\ud800", "\x00s\x00d800"),
        ("\x00", "\x00\x00"),
    ):
        assert canonical(value) != canonical(like)


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": object()}, {"deep": None}])
def test_what_has_no_form_is_refused(value: Any) -> None:
    if value == {"deep": None}:
        for _ in range(100_000):
            value = [value]
    with pytest.raises(NotCanonical):
        canonical(value)


# --- definitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b'{"n":NaN}', b"[1]", b'"x"', b"{" * 50_000, b'{"a":' * 20_000])
def test_what_cannot_be_read_is_opaque(raw: bytes) -> None:
    made = definition_of(REF, raw)
    assert made.fields == {"": raw}
    assert made.id != definition_of(REF, raw + b" ").id
    assert made.hints == Hints()


def test_what_a_host_makes_of_an_entry_is_what_counts() -> None:
    raw = b'{"name":"t","description":"d"}'
    plain = definition_of(REF, raw)
    shown = definition_of(REF, raw, lambda entry: {**entry, "name": "srv_t"})
    assert shown.upstream == plain.upstream
    assert shown.id != plain.id
    assert shown.fields["name"] == b'"srv_t"'


def test_hints_are_read_and_nothing_else_is_taken_for_one() -> None:
    said = {"readOnlyHint": True, "destructiveHint": 1, "openWorldHint": False}
    assert definition_of(REF, json.dumps({"annotations": said}).encode()).hints == Hints(
        True, None, False
    )


def _snapshot(
    *items: Item, clean: bool = True, ambiguous: frozenset[str] = frozenset()
) -> Snapshot:
    return Snapshot(items, 1, Scope.PUBLIC, "", "", 1, 1, 0, None, clean, ambiguous)


@rule("DRIFT-34", "DRIFT-48")
def test_an_inventory_says_what_the_list_says() -> None:
    items = (Item("a", b'{"name":"a"}'), Item("b", b'{"name":"b"}'))
    taken = Reader("home", Kind.TOOLS).inventory(
        HOME, _snapshot(*items, clean=False, ambiguous=frozenset({"b"})), "me", 7
    )
    assert (taken.server, taken.subject, taken.partition, taken.at_ms) == (
        HOME,
        Subject.TOOL,
        "me",
        7,
    )
    assert set(taken.definitions) == {"a"}
    assert taken.ambiguous == {"b"}
    assert not taken.clean


def test_an_unchanged_item_is_not_read_again() -> None:
    reader = Reader("home", Kind.RESOURCES)
    one, two = Item("u:a", b'{"uri":"u:a"}'), Item("u:b", b'{"uri":"u:b"}')
    first = reader.read((one, two))
    changed = Item("u:b", b'{"uri":"u:b","size":1}')
    second = reader.read((one, changed))
    assert second["u:a"] is first["u:a"]
    assert second["u:b"].id != first["u:b"].id
    assert set(reader.read((changed,))) == {"u:b"}
    again = reader.read((copy.copy(changed),))
    assert again["u:b"].id == second["u:b"].id


@rule("DRIFT-07")
def test_what_looks_like_the_escape_of_a_surrogate_is_no_surrogate() -> None:
    entries = (
        rb'{"name":"t","title":"x\u0000d800\ud800"}',
        rb'{"name":"t","title":"x\ud800\ud800"}',
    )
    one, other = (definition_of(REF, entry) for entry in entries)
    assert one.id != other.id


def test_an_entry_that_upsets_the_host_is_opaque() -> None:
    def effect(entry: Any) -> Any:
        return {"description": entry["description"].upper()}

    for entry in (b'{"name":"t"}', b'{"name":"t","description":5}'):
        assert definition_of(REF, entry, effect).fields == {"": entry}
