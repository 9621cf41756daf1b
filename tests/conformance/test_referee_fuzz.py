"""Whatever a client sends, in whatever order, the referee answers with JSON and never breaks."""

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.test_referee import HELLO, META, Bench
from relist_conformance.outputs import Ask
from relist_conformance.wire import LEGACY, MODERN

METHODS = (
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/templates/list",
    "logging/setLevel",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = ("cursor", "name", "uri", "arguments", "notifications", "requestId", "_meta", "level")
PARAMS = st.one_of(
    VALUES,
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4).map(lambda p: p | {"_meta": META}),
    st.just(HELLO | {"_meta": META}),
)
MESSAGES = VALUES | st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.sampled_from([1, "1", None, True, 1.5]) | VALUES,
        "method": st.sampled_from(METHODS) | VALUES,
        "params": PARAMS,
        "result": VALUES,
        "error": VALUES,
    },
)
HEADERS = st.dictionaries(
    st.sampled_from(["accept", "mcp_session_id", "mcp_protocol_version", "mcp_method", "mcp_name"]),
    st.sampled_from(["text/event-stream", "c1", MODERN, LEGACY, "tools/list", "=?base64?!?=", ""]),
)
ACTS = st.one_of(
    st.tuples(st.just("open"), st.sampled_from(["stdio", "post", "get", "delete"]), HEADERS),
    st.tuples(st.just("say"), st.integers(1, 6), MESSAGES),
    st.tuples(st.just("close"), st.integers(1, 6), st.none()),
    st.tuples(st.just("wait"), st.integers(0, 5_000), st.none()),
    st.tuples(st.just("answer"), st.integers(1, 6), VALUES),
)
STEPS = (
    {"connect": None},
    {"answer": {"request": {"method": "tools/list"}, "hold": "one"}},
    {"need": {"kind": "tools", "wait": False}},
    {"await": {"request": {"method": "tools/list"}, "need": "tools", "else": "continue"}},
    {"change": {"tools": [["a@2"]], "notify": True}},
    {"fence": None},
    {"release": {"name": "one"}},
    {"cut": {"what": "connection"}},
    {"need": {"kind": "tools", "until": ["a@2"]}},
    {"send": {"text": "{id", "to": {"method": "subscriptions/listen"}}},
)


SERVER = {
    "capabilities": {"tools": {"listChanged": True}, "prompts": {}, "resources": {}},
    "tools": [["a@1"], ["b@1"]],
    "prompts": [["a@1"]],
}


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@given(acts=st.lists(ACTS, max_size=25))
def test_nothing_breaks_the_referee(revision: str, acts: list[tuple[str, Any, Any]]) -> None:
    bench = Bench(*STEPS, revision=revision, server=SERVER)
    for act, which, what in acts:
        if act == "open":
            bench.opened(which, **what)
        elif act == "say":
            bench.said(f"c{which}", what)
        elif act == "close":
            bench.referee.channel_closed(f"c{which}", bench.now_ms)
        elif act == "wait":
            bench.later(which)
        elif any(ask.ask_id == which for ask in bench.asks()):
            bench.answer(which, what if isinstance(what, dict) else None, "no")
    bench.drain()
    for output in bench.outputs:
        if not isinstance(output, Ask):
            json.dumps(attrs.asdict(output))
    outcome = bench.referee.outcome
    assert outcome is None or "would have sent" not in outcome.reason
    history = bench.referee.history
    assert [event.seq for event in history] == list(range(len(history)))
    json.dumps([attrs.asdict(event) for event in history])
