"""A trace replays as it was recorded, or says where it differs; a broken promise is found."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relist import inputs as i
from relist.check.codec import Malformed
from relist.check.trace import Replayed, read_header, read_step, trace_schema
from relist.session import new_session, receive
from relist.values import Kind, LinkPhase, Phase, Wire
from support.faults import forgotten_rewalk
from support.play import SETTINGS, Setting
from support.traced import (
    QUICK,
    a_notice_during_a_walk,
    item,
    page,
    played,
    replayed,
    trace_of,
)


def lines() -> list[str]:
    return trace_of(QUICK, Wire.PIPE, a_notice_during_a_walk())


def last(steps: list[Replayed]) -> Any:
    observed = steps[-1].observed
    assert observed is not None
    return observed.whole.after


@given(st.sampled_from(SETTINGS), st.binary(max_size=40))
def test_whatever_was_played_is_replayed(setting: Setting, script: bytes) -> None:
    trace = played(setting, script)
    steps = replayed(trace)
    assert len(steps) == len(trace) - 1
    assert [step for step in steps if step.broken or step.differs] == []


def test_replay_comes_to_the_same_end() -> None:
    session = new_session(Wire.PIPE, "A")
    for heard in a_notice_during_a_walk():
        session = receive(session, heard, QUICK).state
    assert last(replayed(lines())) == session
    tools = session.catalog(Kind.TOOLS)
    assert (tools.phase, tools.generation) == (Phase.FRESH, 1)
    assert session.link.phase is LinkPhase.LIVE


def test_every_line_is_as_the_schema_says() -> None:
    valid = jsonschema_rs.Draft202012Validator(trace_schema()).is_valid
    assert all(valid(json.loads(line)) for line in lines())
    for line in lines():
        assert not valid({**json.loads(line), "more": 1})


def test_items_are_told_once_where_they_came_in() -> None:
    published = [line for line in lines() if "Publish" in line]
    assert len(published) == 1
    step = json.loads(published[0])
    (effect,) = (one["Publish"] for one in step["effects"] if "Publish" in one)
    assert effect["snapshot"]["items"]["count"] == 3
    assert published[0].count("inputSchema") == 3


# --- what is found --------------------------------------------------------------------------------


def test_a_fault_in_the_law_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = lines()
    forgotten_rewalk(monkeypatch)
    found = [(step.number, str(broken)) for step in replayed(trace) for broken in step.broken]
    assert found[0] == (6, "doubt-is-heeded: tools: the open walk was not spoiled")
    first = next(step for step in replayed(trace) if step.differs)
    assert first.number == 6
    assert '"doubt":"noticed"' in (first.differs or "").partition(", now ")[0]


def altered(number: int, **changes: Any) -> list[str]:
    trace = lines()
    trace[number] = json.dumps({**json.loads(trace[number]), **changes})
    return trace


@pytest.mark.parametrize(
    ("trace", "difference"),
    [
        (
            altered(1, effects=[]),
            'effect 1 was nothing, now {"OpenTransport":{"epoch":1}}',
        ),
        (
            altered(1, effects=[{"OpenTransport": {"epoch": 1}}, {"Paint": {}}]),
            'effect 2 was {"Paint":{}}, now nothing',
        ),
        (
            altered(1, after={**json.loads(lines()[1])["after"], "link": "live"}),
            'link was "live", now "opening"',
        ),
        (
            altered(1, after={**json.loads(lines()[1])["after"], "mood": "good"}),
            'mood was "good", now nothing',
        ),
    ],
)
def test_a_difference_is_told_where_it_begins(trace: list[str], difference: str) -> None:
    differing = [step for step in replayed(trace) if step.differs]
    assert [(step.number, step.differs) for step in differing] == [(1, difference)]


def test_an_act_that_is_refused_is_a_difference_and_changes_nothing() -> None:
    trace = lines()
    impossible = {"StalenessProved": {"kind": "tools", "generation": 9, "now_ms": 500}}
    trace.insert(3, json.dumps({**json.loads(trace[2]), "heard": impossible}))
    steps = replayed(trace)
    assert steps[2].observed is None
    assert (steps[2].differs or "").startswith("the act is refused: StalenessProved.generation 9")
    assert [step for step in steps if step.differs] == [steps[2]]
    assert last(steps) == last(replayed(lines()))


# --- what is no trace -----------------------------------------------------------------------------


def header(**changes: Any) -> str:
    return json.dumps({**json.loads(lines()[0]), **changes})


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[]", "must be an object"),
        ("{}", "header lacks 'format'"),
        (header(format=2), "is of trace format 2; this version reads 1"),
        (header(format="1"), "header.format is '1', not one of 1"),
        (header(wire="smoke"), "header.wire is 'smoke', not one of 'pipe', 'http'"),
        (header(policy={}), "header.policy lacks 'seed'"),
        (
            header(policy={"seed": "x", "gather_ms": -1}),
            "header: policy.gather_ms must be an integer >= 0: -1",
        ),
    ],
)
def test_a_complaint_about_a_header(line: str, complaint: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_header(line)
    assert str(caught.value) == complaint


def step(**changes: Any) -> str:
    return json.dumps(
        {"heard": {"TimePassed": {"now_ms": 1}}, "effects": [], "after": {}, **changes}
    )


def listing(canonical_json: str) -> str:
    (given,) = (
        json.loads(line) for line in trace_of(QUICK, Wire.PIPE, [page(1, 0, item("a"))])[1:]
    )
    given["heard"]["PageArrived"]["items"][0]["canonical_json"] = canonical_json
    return json.dumps(given)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "is not JSON"),
        ("1", "must be an object"),
        (lines()[0], "must have 'heard', 'effects' and 'after', and nothing else"),
        (step(effects={}), "effects must be a list"),
        (step(after=[]), "after must be an object"),
        (step(heard={"Popen": {}}), "heard names 'Popen', which is not known"),
        (listing("1"), "heard.PageArrived.items[0].canonical_json is no object"),
        (listing("{"), "heard.PageArrived.items[0].canonical_json is not JSON"),
        (listing("[" * 99_999), "heard.PageArrived.items[0].canonical_json is not JSON"),
    ],
)
def test_a_complaint_about_a_step(line: str, complaint: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_step(line)
    assert str(caught.value) == complaint


def test_a_step_is_read_as_it_was_written() -> None:
    assert [read_step(line).heard for line in lines()[1:]] == a_notice_during_a_walk()
    assert isinstance(read_step(step()).heard, i.TimePassed)
