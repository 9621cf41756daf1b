"""From effects to messages and back: each effect is asked in one way, each answer told in one."""

import json
from typing import Any

import pytest
from attrs import evolve

from relist import effects as e
from relist import inputs as i
from relist.effects import Effect, RequestEffect
from relist.messages import Heard
from relist.requests import Client, Tags, id_of, message_of, reply_of, understood
from relist.values import NO_CAPABILITIES, Channel, Failure, Kind

rule = pytest.mark.rule
ME = Client({"name": "me"}, {"roots": {}})
TOOLS, URIS = frozenset({Channel.TOOLS}), frozenset({"file:///b", "file:///a"})
ERROR = {"code": -32603, "message": "no"}
FAILURE = Failure("error answer", -32603)

ASKED: list[tuple[RequestEffect, str, dict[str, Any]]] = [
    (e.RequestPage(Kind.TOOLS, 1, None), "tools/list", {}),
    (e.RequestPage(Kind.TEMPLATES, 2, ""), "resources/templates/list", {"cursor": ""}),
    (
        e.RequestInitialize(3, "v"),
        "initialize",
        {"protocolVersion": "v", "capabilities": {"roots": {}}, "clientInfo": {"name": "me"}},
    ),
    (e.RequestDiscover(4, "v"), "server/discover", {}),
    (
        e.OpenListen(5, TOOLS),
        "subscriptions/listen",
        {"notifications": {"toolsListChanged": True}},
    ),
    (
        e.OpenUpdates(6, URIS),
        "subscriptions/listen",
        {"notifications": {"resourceSubscriptions": ["file:///a", "file:///b"]}},
    ),
    (e.RequestSubscribe(7, "file:///a"), "resources/subscribe", {"uri": "file:///a"}),
    (e.RequestUnsubscribe(8, "file:///a"), "resources/unsubscribe", {"uri": "file:///a"}),
]


def to_bytes(value: object) -> bytes:
    return json.dumps(value).encode()


def hear(message: object, *asked: RequestEffect, tags: Tags | None = None) -> i.SessionInput | None:
    outstanding = {id_of(effect): effect for effect in asked}
    heard = understood(message, outstanding, to_bytes, 9, tags or Tags())
    return None if heard is None else heard.heard


@rule("LIFE-15")
def test_no_two_requests_share_an_id() -> None:
    ids = {id_of(evolve(effect, serial=1)) for effect, *_ in ASKED}
    kinds = len({Kind.TOOLS, Kind.TEMPLATES})
    machines = len(("link", "listen", "updates", "subscribe"))
    assert len(ids) == kinds + machines


@pytest.mark.parametrize(("effect", "method", "params"), ASKED)
def test_an_effect_is_asked_in_one_way(
    effect: RequestEffect, method: str, params: dict[str, Any]
) -> None:
    frame = {"jsonrpc": "2.0", "id": id_of(effect), "method": method, "params": params}
    assert message_of(effect, ME) == frame


@rule("FAIL-24")
@pytest.mark.parametrize(
    ("given_up", "asked"),
    [
        (e.AbandonWalk(Kind.TOOLS, 1), e.RequestPage(Kind.TOOLS, 1, None)),
        (e.CancelListen(5), e.OpenListen(5, TOOLS)),
        (e.CancelUpdates(6), e.OpenUpdates(6, URIS)),
        (e.CancelSubscribe(7), e.RequestSubscribe(7, "file:///a")),
    ],
)
def test_what_is_given_up_is_cancelled_by_its_id(given_up: Effect, asked: RequestEffect) -> None:
    message = message_of(given_up, ME)
    assert message is not None
    assert message["method"] == "notifications/cancelled"
    assert message["params"] == {"requestId": id_of(asked), "reason": "no longer awaited"}


def test_other_effects() -> None:
    initialized = message_of(e.SendInitialized("v"), ME)
    assert initialized == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for effect in (e.OpenTransport(1), e.Withdraw(Kind.TOOLS), e.Note("X", "y")):
        assert message_of(effect, ME) is None


@pytest.mark.parametrize(
    ("effect", "result", "told", "failed"),
    [
        (
            e.RequestPage(Kind.TOOLS, 1, None),
            7,
            i.PageFailed(Kind.TOOLS, 1, Failure("result is no object"), 9),
            i.PageFailed(Kind.TOOLS, 1, FAILURE, 9),
        ),
        (
            e.RequestInitialize(3, "v"),
            {"protocolVersion": "v", "capabilities": {}},
            i.InitializeAnswered(3, "v", NO_CAPABILITIES, 9),
            i.InitializeFailed(3, FAILURE, 9),
        ),
        (
            e.RequestDiscover(4, "v"),
            {"supportedVersions": ["v"], "capabilities": {}, "ttlMs": 5},
            i.DiscoverAnswered(4, ("v",), NO_CAPABILITIES, 9, 5),
            i.DiscoverFailed(4, FAILURE, 9),
        ),
        (e.OpenListen(5, TOOLS), {}, i.PushEnded(5, None, 9), i.PushEnded(5, FAILURE, 9)),
        (e.OpenUpdates(6, URIS), {}, i.UpdatesEnded(6, None, 9), i.UpdatesEnded(6, FAILURE, 9)),
        (
            e.RequestSubscribe(7, "u"),
            {},
            i.SubscribeAnswered(7, None, 9),
            i.SubscribeAnswered(7, FAILURE, 9),
        ),
    ],
)
def test_an_answer_is_told_in_one_way_and_once(
    effect: RequestEffect, result: object, told: i.SessionInput, failed: i.SessionInput
) -> None:
    assert hear({"id": id_of(effect), "result": result}, effect) == told
    assert hear({"id": id_of(effect), "error": ERROR}, effect) == failed
    asked = {id_of(effect): effect}
    answer = {"id": id_of(effect), "error": ERROR}
    assert isinstance(understood(answer, asked, to_bytes, 9), Heard)
    assert understood(answer, asked, to_bytes, 9) is None


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"id": 1, "result": {}},
        {"id": "relist/link/9", "result": {}},
        {"id": "x", "method": "ping"},
        {"id": "x", "method": "notifications/tools/list_changed"},
        {"method": "notifications/message", "params": {}},
    ],
)
def test_what_is_none_of_ours_is_passed_over(message: object) -> None:
    assert hear(message, e.RequestPage(Kind.TOOLS, 1, None)) is None


@pytest.mark.parametrize(
    ("method", "params", "told"),
    [
        ("notifications/tools/list_changed", None, i.NoticeHeard(Channel.TOOLS, 3, 9)),
        ("notifications/resources/updated", {"uri": "u"}, i.UpdateHeard("u", 4, 9)),
        ("notifications/resources/updated", {"uri": 7}, i.UpdateHeard("", 4, 9)),
        ("notifications/resources/updated", [], i.UpdateHeard("", 4, 9)),
    ],
)
def test_a_notice_is_told_with_its_tag(method: str, params: Any, told: i.SessionInput) -> None:
    assert hear({"method": method, "params": params}, tags=Tags(3, 4)) == told


@rule("SUB-08")
def test_an_acknowledgement_is_told_to_whom_it_is_tagged() -> None:
    granted = {"toolsListChanged": True, "resourceSubscriptions": ["u"]}
    message = {
        "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": granted},
    }
    assert hear(message, tags=Tags(3, 0)) == i.PushOpened(3, TOOLS, 9)
    assert hear(message, tags=Tags(0, 4)) == i.UpdatesOpened(4, frozenset({"u"}), 9)
    assert hear(message) == i.PushOpened(0, TOOLS, 9)


def test_a_request_of_the_server_is_answered() -> None:
    assert reply_of({"id": 7, "method": "ping"}) == {"jsonrpc": "2.0", "id": 7, "result": {}}
    unknown = {"code": -32601, "message": "Method not found"}
    roots = {"id": "x", "method": "roots/list"}
    assert reply_of(roots) == {"jsonrpc": "2.0", "id": "x", "error": unknown}
    others: list[object] = [None, [], {}, {"id": 7, "result": {}}, {"id": 7, "method": 8}]
    for other in (*others, {"method": "ping"}):
        assert reply_of(other) is None
