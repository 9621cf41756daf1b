"""Schemas of a server that means harm, and what else an entry says of arguments and results."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relist.values import Item
from relist_mcp import schemas
from relist_mcp.arguments import ENTRY_MAX, Definition, plain
from relist_mcp.schemas import (
    DEPTH_MAX,
    SCHEMA_MAX,
    VALUE_MAX,
    Fault,
    Schema,
    Unusable,
    fault_of,
    pointer,
)

rule = pytest.mark.rule
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def checked(schema: object, value: object) -> Fault | None:
    """What a schema says of a value, once it has been read."""
    return Schema(schema).fault_of(value)


def why_not(schema: object, value: object = None) -> str:
    """Why nothing can be checked against it."""
    with pytest.raises(Unusable) as caught:
        checked(schema, value)
    assert caught.value.__cause__ is None
    return str(caught.value)


# --- nothing is fetched ---------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """The address of an HTTP server on this machine, and the paths that it was asked for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            body = b'{"type": "integer"}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/schema", paths
    server.shutdown()
    thread.join()
    server.server_close()


REFUSED = (
    "schema refers to something outside of it",
    "schema has another schema with an $id in it",
)


def _referring(uri: str) -> list[dict[str, Any]]:
    return [
        {"$ref": uri},
        {"properties": {"n": {"$ref": uri}}},
        {"$dynamicRef": f"{uri}#x"},
        {"$id": uri.removesuffix("schema"), "$ref": "schema"},
        {"$id": uri, "$defs": {"a": {"$id": "other", "$ref": "more"}}, "$ref": "#/$defs/a"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": f"{uri}#/x"}}}},
        {"$ref": "#/elsewhere", "elsewhere": {"allOf": [{"$ref": uri}]}},
        {"$schema": DRAFT_7, "definitions": {"a": {"$ref": uri}}, "$ref": "#/definitions/a"},
    ]


@rule("CALL-15")
@rule("CALL-16")
def test_what_a_schema_refers_to_is_not_fetched(asked: tuple[str, list[str]]) -> None:
    uri, paths = asked
    assert jsonschema_rs.is_valid({"$ref": uri}, 1)  # what the library does for anybody
    assert paths == ["/schema"]
    for schema in _referring(uri):
        assert why_not(schema, {"n": 1}) in REFUSED
    assert paths == ["/schema"]


@rule("CALL-15")
def test_the_library_is_given_nothing_to_fetch_with(asked: tuple[str, list[str]]) -> None:
    """Should a reference ever get past our reading of a schema."""
    uri, paths = asked
    for schema in _referring(uri):
        with pytest.raises(ValueError, match=r"."):
            schemas._compiled(jsonschema_rs.Draft202012Validator, schema, schemas._LINEAR)
    assert paths == []


@rule("CALL-15")
@rule("CALL-16")
def test_a_file_that_a_schema_refers_to_is_not_opened(tmp_path: Path) -> None:
    """To open a named pipe for reading waits until somebody writes, and nobody does."""
    read, unread = tmp_path / "schema", tmp_path / "pipe"
    read.write_text('{"type": "integer"}')
    os.mkfifo(unread)
    assert not jsonschema_rs.is_valid({"$ref": read.as_uri()}, "x")  # so it does read files
    for schema in _referring(unread.as_uri()):
        assert why_not(schema, {"n": 1}) in REFUSED
    with pytest.raises(ValueError, match=r"."):
        schemas._compiled(
            jsonschema_rs.Draft202012Validator, {"$ref": unread.as_uri()}, schemas._LINEAR
        )


@rule("CALL-16")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/nowhere"},
        {"$ref": "#nowhere"},
        {"$ref": "#/allOf/7", "allOf": [True]},
        {"$ref": "#/allOf/x", "allOf": [True]},
        {"$ref": "#/type/x", "type": "object"},
    ],
)
def test_what_is_not_there_is_not_waved_through(schema: object) -> None:
    assert why_not(schema) == "schema refers to something that is not there"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}},
        {"$ref": "#a", "$defs": {"x": {"$anchor": "a", "type": "integer"}}},
        {"$dynamicRef": "#a", "$defs": {"x": {"$dynamicAnchor": "a", "type": "integer"}}},
        {"$ref": "#/$defs/a~1b~0c%25", "$defs": {"a/b~c%": {"type": "integer"}}},
        {"$ref": "#/allOf/1", "allOf": [True, {"type": "integer"}]},
        {"$id": "http://x.test/s", "$ref": "http://x.test/s#/$defs/a", "$defs": {"a": False}},
        {"$ref": "#/elsewhere/a", "elsewhere": {"a": {"type": "integer"}}},
    ],
    ids=str,
)
def test_what_stands_in_the_schema_is_followed(schema: dict[str, Any]) -> None:
    assert checked(schema, "x") is not None
    assert jsonschema_rs.is_valid(schema, "x") is False


def test_a_schema_that_holds_itself_is_followed_as_far_as_the_value_goes() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert checked(tree, {"next": {"next": {}}}) is None
    assert checked(tree, {"next": {"next": 5}}) == Fault("/next/next", "type")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$defs": {"a": {"$id": "x"}}}, "another schema with an $id"),
        ({"$ref": "#/x/a", "x": {"$id": "y", "a": {}}}, "another schema with an $id"),
        ({"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}}, "an anchor twice"),
    ],
)
def test_names_within_a_schema_lead_nobody_astray(schema: object, why: str) -> None:
    assert why in why_not(schema)


def test_what_only_looks_like_a_name_or_reference_is_data() -> None:
    properties = {"$id": {"type": "string"}, "$ref": {"const": {"$ref": "http://x.test/"}}}
    schema = {"properties": properties, "default": {"$id": "x", "$ref": "y"}}
    assert checked(schema, {"$id": 5}) == Fault("/$id", "type")


# --- dialects -------------------------------------------------------------------------------------


@rule("CALL-14")
def test_each_schema_is_read_by_its_own_dialect() -> None:
    """A list of items means a tuple up to 2019-09, and nothing that is valid since."""
    pair = {"items": [{"type": "integer"}]}
    for dialect in (DRAFT_7, "http://json-schema.org/draft-06/schema#"):
        assert checked({"$schema": dialect, **pair}, ["x"]) == Fault("/0", "type")
    latest = {"prefixItems": [{"type": "integer"}]}
    assert checked(latest, ["x"]) == Fault("/0", "type")
    assert checked({"$schema": DRAFT_7, **latest}, ["x"]) is None
    assert why_not(pair) == "schema is none of its dialect"


@rule("CALL-14")
@pytest.mark.parametrize(
    "named", ["http://x.test/own", "http://json-schema.org/draft-04/schema#", "", 5, None, ["x"]]
)
def test_an_unsupported_dialect_is_reported_as_such(named: object) -> None:
    assert why_not({"$schema": named}) == "schema is of an unsupported dialect"


# --- what it may cost -----------------------------------------------------------------------------


def nested(depth: int, value: Any = None) -> Any:
    for _ in range(depth):
        value = {"properties": value} if value is not None else {"a": 1}
    return value


def chain(length: int, keyword: str) -> dict[str, Any]:
    """Each definition holds the next one twice."""
    links: dict[str, Any] = {
        f"n{at}": {keyword: [{"$ref": f"#/$defs/n{at + 1}"}] * 2} for at in range(length)
    }
    return {"$ref": "#/$defs/n0", "$defs": {**links, f"n{length}": {"type": "integer"}}}


def web(size: int) -> dict[str, Any]:
    """Each definition holds all others."""
    links = {
        f"n{at}": {"allOf": [{"$ref": f"#/$defs/n{to}"} for to in range(size) if to != at]}
        for at in range(size)
    }
    return {"$ref": "#/$defs/n0", "$defs": links}


TOO_MUCH = "schema takes too much effort to check"


@rule("CALL-17")
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_few_definitions_that_double_each_other_are_too_much(keyword: str) -> None:
    assert why_not(chain(40, keyword), "x") == TOO_MUCH
    assert checked(chain(5, keyword), "x") is not None


@rule("CALL-17")
@pytest.mark.parametrize("schema", [web(12), {"$ref": "#"}, {"allOf": [{"$ref": "#"}]}], ids=str)
def test_references_that_run_in_a_circle_are_too_much(schema: object) -> None:
    assert why_not(schema, {}) == TOO_MUCH


HERE = {"$ref": "#"}
SAME_TWICE: list[dict[str, Any]] = [
    {"not": HERE, "allOf": [HERE]},
    {"if": HERE, "then": HERE},
    {"if": HERE, "else": HERE},
    {"dependentSchemas": {"a": HERE, "b": HERE}},
    {"$dynamicRef": "#", "$ref": "#"},
]
PARTS_TWICE: list[dict[str, Any]] = [
    {"additionalProperties": HERE},
    {"unevaluatedProperties": HERE},
    {"patternProperties": {"a": HERE}},
    {"prefixItems": [HERE]},
    {"contains": HERE},
    {"unevaluatedItems": HERE},
]


@rule("CALL-17")
@pytest.mark.parametrize("twice", SAME_TWICE, ids="+".join)
def test_whatever_meets_a_value_twice_is_counted_twice(twice: dict[str, Any]) -> None:
    text = json.dumps(twice)
    links = {f"n{at}": json.loads(text.replace('"#"', f'"#/$defs/n{at + 1}"')) for at in range(40)}
    schema = {"$ref": "#/$defs/n0", "$defs": {**links, "n40": True}}
    assert why_not(schema, {"a": 1, "b": 2}) == TOO_MUCH


@rule("CALL-17")
@pytest.mark.parametrize("twice", PARTS_TWICE, ids="+".join)
def test_whatever_doubles_at_each_level_of_a_value_is_too_much(twice: dict[str, Any]) -> None:
    once: dict[str, Any] = {"properties": {"a": HERE}, "items": HERE}
    if "prefixItems" in twice:
        once = {"contains": HERE}
    value: Any = 1
    for _ in range(30):
        value = {"a": value} if any("Properties" in name for name in twice) else [value]
    assert why_not({"allOf": [once, twice]}, value) == TOO_MUCH


@rule("CALL-17")
def test_each_name_of_many_is_counted() -> None:
    names = {"propertyNames": {"pattern": "^(a|a)*$"}}
    assert why_not(names, {"a" * 60_000: 1, "a" * 59_999: 2}) == TOO_MUCH


@rule("CALL-17")
@pytest.mark.parametrize(
    "pattern", [r"^(a+)+$", r"(a|a)*b", r"(a+)+\1b", r"(?=(a+)+b)", "(?=a)a*b"]
)
def test_a_pattern_takes_no_more_than_its_text_allows(pattern: str) -> None:
    """Some of these take for ever where matching goes back without a limit."""
    schema = Schema({"type": "string", "pattern": pattern})
    assert schema.fault_of("a" * 1_000 + "!") == Fault("", "pattern")
    with pytest.raises(Unusable, match="effort"):
        schema.fault_of("a" * 200_000)
    names = Schema({"patternProperties": {pattern: True}})
    with pytest.raises(Unusable, match="effort"):
        names.fault_of({"a" * 200_000: 1})


def test_patterns_that_look_around_are_known() -> None:
    assert checked({"pattern": r"^(?!\s)\w+$"}, "ok") is None
    assert checked({"pattern": r"^(?!\s)\w+$"}, " ok") == Fault("", "pattern")


@pytest.mark.parametrize("pattern", ["(", r"(\w{1000}){1000}", "(?<x>"])
def test_a_pattern_of_no_use_is_told(pattern: str) -> None:
    assert why_not({"pattern": pattern}) == "schema is none of its dialect"


@rule("CALL-17")
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (nested(10_000, {}), "nested too deeply"),
        ({"description": "x" * 5_000_000}, "too large"),
        ({"required": ["x"] * SCHEMA_MAX}, "too large"),
    ],
    ids=["deep", "long", "wide"],
)
def test_schemas_and_values_are_bounded(value: Any, why: str) -> None:
    assert why_not(value) == f"schema is {why}"
    if why == "nested too deeply":
        assert checked({}, value) == Fault("", why)


def test_what_is_within_bounds_is_looked_at() -> None:
    assert fault_of(nested(DEPTH_MAX, {}), VALUE_MAX) is None
    assert fault_of(nested(DEPTH_MAX + 1, {}), VALUE_MAX) == Fault("", "nested too deeply")
    assert fault_of("x" * (VALUE_MAX - 1), VALUE_MAX) is None
    assert fault_of("x" * VALUE_MAX, VALUE_MAX) == Fault("", "too large")


def test_many_faults_are_told_as_one_and_copy_nothing() -> None:
    """The library would make an error of each, with a copy of all that it is about."""
    assert checked({"items": {"type": "integer"}}, ["x"] * 20_000) == Fault("", "schema")
    assert checked({"anyOf": [{"type": "integer"}] * 1_000}, "x" * 1_000_000) == Fault("", "schema")
    assert checked({"items": {"type": "integer"}}, [1, "x", "y"]) == Fault("/1", "type")


# --- anything at all ------------------------------------------------------------------------------

ODD = [5, -1, 1.5, "x", [], [5], {}, {"a": 5}, None, "\ud800", float("nan"), 10**400]
KEYWORDS = sorted(
    {
        *("$ref", "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor", "$defs"),
        *("definitions", "dependencies", "dependentSchemas", "properties", "patternProperties"),
        *("additionalProperties", "propertyNames", "items", "prefixItems", "additionalItems"),
        *("contains", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "unevaluatedItems"),
        *("unevaluatedProperties", "enum", "const", "type", "required", "pattern", "minLength"),
        *("uniqueItems", "multipleOf", "maximum", "format", "contentSchema", "dependentRequired"),
    }
)


@rule("CALL-26")
@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("dialect", list(schemas._DIALECTS))
def test_the_wrong_type_for_a_keyword_breaks_nothing(keyword: str, dialect: str) -> None:
    for odd in ODD:
        for schema in ({keyword: odd}, {"properties": {"a": {keyword: odd}}}):
            for value in ({"a": {"a": [1, "x"]}}, {"a": [1]}, "x"):
                with suppress(Unusable):
                    assert isinstance(checked({"$schema": dialect, **schema}, value), Fault | None)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@rule("CALL-26")
@given(_JSON, _JSON)
def test_any_schema_and_any_value_end_in_a_verdict(schema: Any, value: object) -> None:
    try:
        fault = checked(schema, value)
    except Unusable:
        return
    # What is judged is judged as the library judges, which here has nothing to fetch.
    usable = fault_of(value, VALUE_MAX) is None
    options: Any = {"validate_formats": False, "retriever": schemas._refuse}
    assert (fault is None) is (usable and jsonschema_rs.is_valid(schema, value, **options))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": object()}, "/a"),
        ({"a": [0, {1: 2}]}, "/a/1"),
        ((1, {2}), "/1"),
        ([float("inf")], "/0"),
        ({"a": float("nan")}, "/a"),
        (["\ud800"], "/0"),
        ({"\ud800": 1}, ""),
        ([10**400], "/0"),
        (b"x", ""),
    ],
    ids=["object", "key", "tuple", "inf", "nan", "text", "name", "digits", "bytes"],
)
def test_what_is_no_json_is_told_by_its_place(value: object, path: str) -> None:
    assert fault_of(value, VALUE_MAX) == Fault(path, "no JSON")


def test_a_pointer_is_escaped_and_short() -> None:
    assert pointer(["a/b", "~", 0, "\ud800"]) == "/a~1b/~0/0/?"
    assert len(pointer(["x" * 1_000])) == schemas.PATH_MAX + 1


# --- entries --------------------------------------------------------------------------------------


def definition(**entry: Any) -> Definition:
    return Definition(Item("a", json.dumps({"name": "a", **entry}).encode()))


def test_an_entry_that_cannot_be_read_is_of_no_use() -> None:
    deep = b'{"inputSchema":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
    digits = b'{"inputSchema":{"minimum":' + b"9" * 10_000 + b"}}"
    long = json.dumps({"inputSchema": {}, "icons": "x" * ENTRY_MAX}).encode()
    for text, why in ((deep, "read"), (digits, "read"), (long, "large")):
        with pytest.raises(Unusable, match=why):
            Definition(Item("a", text)).fault_of_call({})


def test_a_large_icon_is_no_obstacle() -> None:
    assert definition(inputSchema={}, icons=["x" * SCHEMA_MAX]).fault_of_call({}) is None


@rule("CALL-18")
def test_results_are_checked_where_there_is_a_schema() -> None:
    told = definition(outputSchema={"type": "object", "required": ["n"]})
    assert told.fault_of_result({}) == Fault("", "missing")
    assert told.fault_of_result({"structuredContent": {}}) == Fault("/n", "required")
    assert told.fault_of_result({"structuredContent": None}) == Fault("", "type")
    assert told.fault_of_result({"structuredContent": {"n": 1}}) is None
    assert told.fault_of_result({"isError": True}) is None
    assert definition().fault_of_result({"structuredContent": 5}) is None


@rule("CALL-11")
def test_headers_follow_the_schema() -> None:
    number = {"type": "integer", "x-mcp-header": "N"}
    told = definition(inputSchema={"type": "object", "properties": {"n": number, "m": {}}})
    assert told.headers({"n": 7, "m": 8}) == {"Mcp-Param-N": "7"}
    assert told.headers({}) == {}


def test_arguments_are_copied_before_anybody_can_change_them() -> None:
    given_: dict[str, Any] = {"a": [1]}
    copied, fault = plain(given_)
    given_["a"].append(2)
    assert (copied, fault) == ({"a": [1]}, None)
    assert plain({"a": (1, 2)}) == ({"a": [1, 2]}, None)
    assert plain({"a": {1, 2}}) == ({}, Fault("/a", "no JSON"))
