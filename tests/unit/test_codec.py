"""Values as JSON and back: the same value, strictly, and as the schema says."""

import json
from contextlib import suppress
from copy import deepcopy
from functools import cache
from typing import Any, get_args

import jsonschema_rs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relist import inputs as i
from relist.check.codec import Malformed, decode, encode, parsed, schema, text_of
from relist.check.trace import trace_schema
from relist.inputs import SessionInput
from relist.policy import Policy
from relist.values import Channel, Failure, Item, Kind, Scope
from support.anything import JSON
from support.one import SEED
from support.typed import values_of

INPUTS = get_args(SessionInput)


@cache
def validator() -> Any:
    definitions: dict[str, Any] = {}
    found = schema(SessionInput, definitions)
    return jsonschema_rs.Draft202012Validator({**found, "$defs": definitions})


def is_valid(data: Any) -> bool:
    """Whether the schema takes it. The validator knows no half of a surrogate pair."""
    text = json.dumps(data, ensure_ascii=False).encode(errors="xmlcharrefreplace")
    return bool(validator().is_valid(json.loads(text)))


def complaint_on(data: Any) -> str:
    """What is wrong with it as an input; empty if nothing is."""
    try:
        decode(data, SessionInput, "heard")
    except Malformed as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", INPUTS, ids=lambda kind: kind.__name__)
def test_every_input_comes_back_as_it_was(kind: type[Any]) -> None:
    @given(values_of(kind))
    def comes_back(heard: Any) -> None:
        text = text_of(encode(heard, SessionInput))
        assert text.isascii()
        assert "\n" not in text
        data = parsed(text)
        assert decode(data, SessionInput, "heard") == heard
        assert is_valid(data)

    comes_back()


@given(values_of(i.PushOpened), values_of(i.PushOpened))
def test_different_values_have_different_texts(one: Any, other: Any) -> None:
    same = text_of(encode(one, SessionInput)) == text_of(encode(other, SessionInput))
    assert same is (one == other)


def test_a_list_and_a_resource_of_its_name_are_told_apart() -> None:
    opened = i.PushOpened(1, frozenset({Channel.TOOLS, "tools"}), 0)
    data = encode(opened, SessionInput)
    assert data["PushOpened"]["topics"] == ["tools", {"Channel": "tools"}]
    assert decode(data, SessionInput, "heard") == opened


def test_a_policy_comes_back_and_an_old_one_has_the_defaults_of_today() -> None:
    policy = Policy(seed=SEED + b"\xff", lazy=True, poll_ms=None)
    data = encode(policy, Policy)
    assert data["seed"] == {"hex": (SEED + b"\xff").hex()}
    assert decode(data, Policy, "policy") == policy
    del data["ack_limit_ms"]
    assert decode(data, Policy, "policy") == policy


# --- what is wrong --------------------------------------------------------------------------------


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every place in it: what holds it, and under which name or number."""
    names = list(data) if isinstance(data, dict) else []
    found = names or list(range(len(data) if isinstance(data, list) else 0))
    return [
        *((data, name) for name in found),
        *(place for name in found for place in places(data[name])),
    ]


@given(values_of(SessionInput), JSON | st.just({"hex": "0g"}), st.data())
def test_what_the_schema_refuses_is_malformed_and_nothing_else(
    heard: Any, other: Any, draw: st.DataObject
) -> None:
    """Anything, anywhere: another value, one thing too many, one too few."""
    data = deepcopy(encode(heard, SessionInput))
    holder, name = draw.draw(st.sampled_from(places(data)))
    how = draw.draw(st.sampled_from(["replace", "drop", "add"]))
    if how == "replace":
        holder[name] = other
    elif how == "drop":
        del holder[name]
    elif isinstance(holder, dict):
        holder["more"] = other
    else:
        holder.append(other)
    complaint = complaint_on(data)
    assert bool(complaint) is not is_valid(data)
    assert "\n" not in complaint
    assert len(complaint) < 300


@example("[" * 100_000)
@example("9" * 5_000)
@example('{"a":' * 50_000)
@given(st.text())
def test_any_text_is_json_or_malformed(text: str) -> None:
    with suppress(Malformed):
        parsed(text)


PAGE = encode(
    i.PageArrived(Kind.TOOLS, 1, (Item("a", b"{}"),), None, None, Scope.PUBLIC, 5), SessionInput
)


def changed(**fields: Any) -> Any:
    return {"PageArrived": {**PAGE["PageArrived"], **fields}}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (None, "heard must be an object with one name in it"),
        ({**PAGE, "TimePassed": {}}, "heard must be an object with one name in it"),
        ({"os.system": {}}, "heard names 'os.system', which is not known"),
        ({"x" * 999: {}}, f"heard names '{'x' * 39}..., which is not known"),
        ({"TimePassed": []}, "heard.TimePassed must be an object, not a list"),
        ({"TimePassed": {}}, "heard.TimePassed lacks 'now_ms'"),
        (
            {"TimePassed": {"now_ms": True}},
            "heard.TimePassed.now_ms must be an integer, not a boolean",
        ),
        (
            {"TimePassed": {"now_ms": 2**53}},
            f"heard.TimePassed.now_ms is an integer beyond {2**53 - 1}",
        ),
        (
            {"TimePassed": {"now_ms": 0, "__class__": ""}},
            "heard.TimePassed has '__class__', which is no field of TimePassed",
        ),
        (
            changed(size_bytes=0),
            "heard.PageArrived has 'size_bytes', which is no field of PageArrived",
        ),
        (changed(items={}), "heard.PageArrived.items must be a list, not an object"),
        (
            changed(items=[{"key": None, "canonical_json": ""}]),
            "heard.PageArrived.items[0].key must be a text, not null",
        ),
        (
            changed(items=[{"key": "", "canonical_json": "\ud800"}]),
            "heard.PageArrived.items[0].canonical_json holds half of a surrogate pair",
        ),
        (
            changed(items=[{"key": "", "canonical_json": {"hex": "0"}}]),
            "heard.PageArrived.items[0].canonical_json must be a text, or an object with 'hex' and"
            " hexadecimal digits",
        ),
        (
            changed(items=[{"key": "", "canonical_json": 1}]),
            "heard.PageArrived.items[0].canonical_json must be a text, or an object with 'hex' and"
            " hexadecimal digits",
        ),
        (
            changed(kind="tool"),
            "heard.PageArrived.kind is 'tool', not one of 'tools', 'prompts', 'resources',"
            " 'resource_templates'",
        ),
        (
            changed(scope=[]),
            "heard.PageArrived.scope is a list, not one of 'public', 'private'",
        ),
        (
            {"UpdatesWanted": {"uris": ["a:1", "a:1"], "now_ms": 0}},
            "heard.UpdatesWanted.uris names something twice",
        ),
    ],
)
def test_a_complaint_names_the_place(data: Any, complaint: str) -> None:
    assert complaint_on(data) == complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        (b"\xff\xff", "is not JSON"),
        ('{"a":1,"b":2,"a":1}', "names 'a' twice"),
        ("[1.5]", "holds '1.5', which is no integer"),
        ("[NaN]", "holds 'NaN', which is no integer"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_text_that_is_no_json_of_ours(text: str | bytes, complaint: str) -> None:
    with pytest.raises(Malformed) as caught:
        parsed(text)
    assert str(caught.value) == complaint


def test_the_schema_of_a_trace_is_a_schema() -> None:
    jsonschema_rs.meta.validate(trace_schema())
    assert json.loads(json.dumps(trace_schema())) == trace_schema()


def test_none_among_several() -> None:
    kind = Failure | int | None
    for value in (None, 1, Failure("x")):
        assert decode(encode(value, kind), kind, "x") == value
    assert schema(kind, {})["anyOf"][0] == {"type": "null"}
