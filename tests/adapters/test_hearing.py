"""What a peer may say, taken apart: nothing raises, and inputs carry only what was asked for."""

import json
import math
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY as SUBSCRIPTION_ID
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from relist import effects as e
from relist import inputs as i
from relist.requests import id_of
from relist.values import NO_CAPABILITIES, Channel, Failure, Kind
from relist_mcp.exchange import Exchange, retry_after_ms
from relist_mcp.hearing import Hearing, canonical

REQUESTS: list[Any] = [
    e.RequestPage(Kind.TOOLS, 3, None),
    e.RequestPage(Kind.TEMPLATES, 4, "c"),
    e.RequestDiscover(1, "2026-07-28"),
    e.RequestInitialize(2, "2025-11-25"),
    e.OpenListen(5, frozenset(Channel)),
    e.OpenUpdates(6, frozenset({"file:///one"})),
    e.RequestSubscribe(7, "file:///one"),
    e.RequestUnsubscribe(8, "file:///one"),
]
UNASKED = i.NoticeHeard | i.PushOpened | i.UpdatesOpened | i.UpdateHeard
IDS = [id_of(effect) for effect in REQUESTS]

WORDS = st.sampled_from(
    [
        *IDS,
        *("tools", "name", "uri", "nextCursor", "ttlMs", "capabilities", "supportedVersions"),
        *("_meta", SUBSCRIPTION_ID, "notifications", "toolsListChanged", "requestId", "resultType"),
        *("inputSchema", "protocolVersion", "code", "message", "data", "supported"),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(WORDS | st.text(max_size=3), JSON, max_size=4)
METHODS = st.sampled_from(
    [
        "notifications/tools/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "notifications/cancelled",
        "notifications/message",
    ]
)
ANY_ID = st.sampled_from([*IDS, "relist/listen/05", "relist/listen/-1", "relist/tools/x"]) | (
    st.integers() | st.text(max_size=3)
)
FRAMES = st.one_of(
    st.fixed_dictionaries({"id": ANY_ID, "result": OBJECTS}),
    st.fixed_dictionaries(
        {
            "id": ANY_ID | st.none(),
            "error": st.fixed_dictionaries(
                {"code": st.integers(), "message": st.text(max_size=5), "data": JSON}
            ),
        }
    ),
    st.fixed_dictionaries({"method": METHODS, "params": OBJECTS}),
    st.fixed_dictionaries({"method": METHODS}),
    st.fixed_dictionaries({"id": ANY_ID, "method": st.just("ping")}),
)
EXCHANGES = st.builds(
    Exchange,
    st.none() | st.sampled_from([200, 202, 307, 400, 401, 404, 429, 500, 599]),
    st.none() | st.integers(0, 10**9),
    JSON,
    st.booleans(),
)


def frame(**parts: Any) -> JSONRPCMessage:
    return jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **parts})


def asked() -> Hearing:
    hearing = Hearing()
    for effect in REQUESTS:
        hearing.expect(effect)
    return hearing


@pytest.mark.rule("NOTE-17")
@pytest.mark.rule("NOTE-18")
@given(st.lists(FRAMES, max_size=6), st.lists(st.tuples(st.sampled_from(IDS), EXCHANGES)))
def test_nothing_that_a_peer_says_raises(
    frames: list[dict[str, Any]], exchanges: list[tuple[str, Exchange]]
) -> None:
    hearing = asked()
    for wire_id, exchange in exchanges:
        hearing.exchange(wire_id, exchange)
    answered = 0
    for parts in frames:
        heard = hearing.hear(frame(**parts), 7)
        assert heard is None or heard.now_ms == 7
        answered += heard is not None and not isinstance(heard, UNASKED)
    assert answered <= len(REQUESTS)  # each request is answered once at most
    assert len(hearing._asked) == len(REQUESTS) - answered


@pytest.mark.parametrize("effect", REQUESTS)
def test_an_answer_comes_once(effect: Any) -> None:
    hearing = asked()
    answer = frame(id=id_of(effect), error={"code": -32603, "message": "no"})
    heard = hearing.hear(answer, 0)
    assert heard is not None
    assert heard.serial == effect.serial  # type: ignore[union-attr]
    assert hearing.hear(answer, 0) is None


TAGS = pytest.mark.parametrize(
    ("tag", "serial"), [("relist/updates/6", 6), ("relist/listen/5", 0), (6, 0), (None, None)]
)


@pytest.mark.rule("SUB-10")
@TAGS
def test_an_update_is_told_with_its_subscription(tag: object, serial: int | None) -> None:
    params: dict[str, Any] = {"uri": "file:///one"}
    if tag is not None:
        params["_meta"] = {SUBSCRIPTION_ID: tag}
    heard = asked().hear(frame(method="notifications/resources/updated", params=params), 7)
    assert heard == i.UpdateHeard("file:///one", serial, 7)


@pytest.mark.rule("SUB-08")
def test_an_acknowledgement_goes_to_the_subscription_it_names() -> None:
    method = "notifications/subscriptions/acknowledged"
    granted = {"toolsListChanged": True, "resourceSubscriptions": ["file:///one", 2]}
    for tag, expected in (
        ("relist/updates/6", i.UpdatesOpened(6, frozenset({"file:///one"}), 7)),
        ("relist/listen/5", i.PushOpened(5, frozenset({Channel.TOOLS}), 7)),
    ):
        params = {"notifications": granted, "_meta": {SUBSCRIPTION_ID: tag}}
        assert asked().hear(frame(method=method, params=params), 7) == expected


@pytest.mark.rule("SUB-21")
def test_the_server_may_cancel_either_subscription_and_nothing_else() -> None:
    hearing = asked()
    for wire_id, expected in (
        ("relist/updates/6", i.UpdatesEnded(6, None, 7)),
        ("relist/listen/5", i.PushEnded(5, None, 7)),
        ("relist/subscribe/7", None),
    ):
        cancelled = frame(method="notifications/cancelled", params={"requestId": wire_id})
        assert hearing.hear(cancelled, 7) == expected


@pytest.mark.rule("LIFE-45")
def test_a_discovery_is_told_with_its_lifetime() -> None:
    result = {"supportedVersions": ["v"], "capabilities": {}, "ttlMs": 5}
    heard = asked().hear(frame(id=IDS[2], result=result), 7)
    assert heard == i.DiscoverAnswered(1, ("v",), NO_CAPABILITIES, 7, 5)


@pytest.mark.parametrize(
    ("exchange", "code", "failure"),
    [
        (None, -32603, Failure("error answer", -32603)),
        (Exchange(200), -32603, Failure("error answer", -32603)),
        (Exchange(200), -32000, Failure("stream ended without an answer")),
        (Exchange(None), -32000, Failure("network failure")),
        (Exchange(503, 9_000), -32603, Failure("refused", None, 503, 9_000)),
        (Exchange(404), -32601, Failure("refused", None, 404)),
        (
            Exchange(400, None, {"code": -32022, "data": {"supported": ["v"]}}),
            -32603,
            Failure("error answer", -32022, 400, None, ("v",)),
        ),
    ],
)
def test_a_failure_is_what_really_happened(
    exchange: Exchange | None, code: int, failure: Failure
) -> None:
    """Over HTTP the SDK makes up the error frame; what went before tells more."""
    hearing = asked()
    if exchange is not None:
        hearing.exchange(IDS[0], exchange)
    message = "SSE stream ended without a response"
    heard = hearing.hear(frame(id=IDS[0], error={"code": code, "message": message}), 0)
    assert heard == i.PageFailed(Kind.TOOLS, 3, failure, 0)


# --- canonical bytes ------------------------------------------------------------------------------

BIG = 2**64
LEAVES = st.sampled_from(
    [
        *(None, True, False, 0, 1, -1, 0.0, -0.0, 1.0, "", "0", "1", "null", "NaN"),
        *(2**53, 2.0**53, 2**53 + 1, 2**63, -(2**63) - 1, BIG - 1, BIG, float(BIG), 10**22, 1e22),
        *("\u00e9", "e\u0301", "\u2028", "\ud800", "\\ud800", "\x00", "\U0001f600"),
    ]
)
KEYS = st.sampled_from(["", "a", "b", "\u00e9", "\U0001f600", "\uffff", "\ud800"])
PAIRS = st.recursive(
    LEAVES.map(lambda leaf: (leaf, leaf)) | st.tuples(LEAVES, LEAVES),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda pairs: tuple([p[n] for p in pairs] for n in (0, 1)))
        | st.dictionaries(KEYS, inner, max_size=3).map(
            lambda pairs: (
                {key: pair[0] for key, pair in pairs.items()},
                {key: pairs[key][1] for key in reversed(pairs)},
            )
        )
    ),
    max_leaves=6,
)


def _plainly(value: Any) -> str:
    """What the standard library writes: the same text exactly for the same value."""
    return json.dumps(value, sort_keys=True)


@given(PAIRS)
@example((1, True))
@example((BIG, float(BIG)))
@example(("\ud800", "\\ud800"))
def test_bytes_are_equal_exactly_when_the_values_are(pair: tuple[Any, Any]) -> None:
    """Whatever the order of keys, and which of the two writers wrote them."""
    one, other = pair
    assert (canonical(one) == canonical(other)) is (_plainly(one) == _plainly(other))


@given(JSON)
def test_what_was_said_can_be_read_again(value: Any) -> None:
    said = json.loads(json.dumps(value), parse_constant=lambda _: None)
    assert _plainly(json.loads(canonical(value))) == _plainly(said)


@pytest.mark.parametrize("deep", [100, 300])
def test_depth_changes_nothing(deep: int) -> None:
    """The quicker writer gives up at 254."""
    one: Any = [1]
    other: Any = [True]
    for _ in range(deep):
        one, other = {"x": one}, {"x": other}
    assert json.loads(canonical(one)) == one
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("beside", [1, BIG])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_has_not_is_null(number: float, beside: int) -> None:
    assert json.loads(canonical({"x": [number], "y": beside})) == {"x": [None], "y": beside}


@pytest.mark.parametrize("value", [{1, 2}, datetime.now(tz=UTC), object(), [b"x"]])
def test_what_is_no_json_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical(value)


def test_canonical_bytes_take_no_more_room_than_they_need() -> None:
    """The quicker writer returns bytes with up to eight thousand more behind them."""
    value = {"name": "a", "description": "x" * 700}
    tracemalloc.start()
    try:
        kept = [canonical(value) for _ in range(100)]
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 1.2 * sum(map(sys.getsizeof, kept))


# --- Retry-After ----------------------------------------------------------------------------------

NOW = datetime(2026, 7, 28, 12, tzinfo=UTC)


TODAY = format_datetime(NOW, usegmt=True)


def _busy(retry_after: str, date: str | None = TODAY) -> httpx2.Response:
    headers = [(b"retry-after", retry_after.encode("utf-8", "replace"))]
    if date is not None:
        headers.append((b"date", date.encode("utf-8", "replace")))
    return httpx2.Response(503, headers=headers)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("0", 0),
        ("120", 120_000),
        ("9" * 5_000, 999_999_999_000),
        (format_datetime(NOW + timedelta(minutes=2), usegmt=True), 120_000),
        (format_datetime(NOW - timedelta(minutes=2), usegmt=True), 0),
        ("-1", None),
        ("1.5", None),
        ("٣", None),
        ("soon", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
        ("", None),
    ],
)
def test_retry_after(text: str, expected_ms: int | None) -> None:
    assert retry_after_ms(_busy(text)) == expected_ms


def test_a_date_means_nothing_without_the_servers_clock() -> None:
    assert retry_after_ms(_busy(TODAY, None)) is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_retry_after_never_raises(text: str, date: str) -> None:
    found = retry_after_ms(_busy(text, date))
    assert found is None or found >= 0
