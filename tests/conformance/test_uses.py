"""What resources contain, prompts, and notices of single resources, as the referee plays them."""

from typing import Any

import pytest

from conformance.test_referee import (
    ACKNOWLEDGED,
    Bench,
    mirrored,
    modern,
    pipe,
    request,
    sent,
)
from relist.check.expect import Answered
from relist.check.judge import judge
from relist_conformance import wire
from relist_conformance.wire import LEGACY, MODERN

R, UNDER = "relist://r", "relist://r/x"
UPDATED = "notifications/resources/updated"
NEVER = {"await": {"request": {"method": "never"}}}
SERVER: dict[str, Any] = {
    "capabilities": {"resources": {"subscribe": True}, "prompts": {}, "tools": {}},
    "resources": [["r@1"], ["s@1"]],
    "prompts": [["p@1"]],
    "contents": {"relist://unlisted": "u@1"},
    "principals": {"alice": {"contents": {R: "alices@1"}}},
}


def bench_of(*steps: Any, revision: str = MODERN, **given: Any) -> tuple[Bench, str]:
    bench = Bench(*steps, NEVER, revision=revision, server=SERVER, **given)
    return bench, pipe(bench) if revision == LEGACY else bench.opened()


def asked(bench: Bench, channel: str, method: str, revision: str = MODERN, **params: Any) -> Any:
    ask = request if revision == LEGACY else modern
    return sent(bench.said(channel, ask(method, **params)))[0]


def read(bench: Bench, channel: str, uri: str, revision: str = MODERN) -> Any:
    answer = asked(bench, channel, "resources/read", revision, uri=uri)
    return answer["result"]["contents"][0]["text"] if "result" in answer else answer["error"]


def subscribed(bench: Bench, channel: str, *uris: str) -> Any:
    filter_ = {"resourceSubscriptions": list(uris)}
    return asked(bench, channel, "subscriptions/listen", notifications=filter_)


# --- what is served ---


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_read_gives_what_was_said_of_the_uri_or_the_item_listed(revision: str) -> None:
    bench, channel = bench_of(revision=revision)
    assert read(bench, channel, R, revision) == "r@1"
    assert read(bench, channel, "relist://s", revision) == "s@1"
    assert read(bench, channel, "relist://unlisted", revision) == "u@1"
    code = wire.RESOURCE_NOT_FOUND if revision == LEGACY else wire.INVALID_PARAMS
    assert read(bench, channel, "relist://none", revision)["code"] == code


def test_contents_change_by_themselves_and_for_one_principal() -> None:
    steps = [
        {"change": {"contents": {R: "r@2"}}},
        {"await": {"request": {"method": "resources/read"}, "nth": 2}},
        {"change": {"contents": {R: "alices@2"}, "for": "alice"}},
    ]
    bench = Bench(*steps, NEVER, server=SERVER, transport="http")

    def text(**headers: str) -> str:
        told = mirrored("resources/read", mcp_name=R, **headers)
        body: Any = bench.posted(modern("resources/read", uri=R), **told).body
        return str(body["result"]["contents"][0]["text"])

    alice = {"authorization": "Bearer relist-alice"}
    assert [text(), text(**alice), text(), text(**alice)] == ["r@2", "alices@1", "r@2", "alices@2"]


def test_a_prompt_renders_its_item_while_it_is_listed() -> None:
    bench, channel = bench_of()
    (message,) = asked(bench, channel, "prompts/get", name="p")["result"]["messages"]
    assert message["content"]["text"] == "p@1"
    gone = asked(bench, channel, "prompts/get", name="q")
    assert gone["error"]["code"] == wire.INVALID_PARAMS


def test_details_are_part_of_the_item_and_know_the_url_of_the_server() -> None:
    ref = {"inputSchema": {"type": "object", "$ref": "{url}#/x"}}
    server = {"capabilities": {"tools": {}}, "tools": [["a@1", "b@1"]], "details": {"a@1": ref}}
    bench = Bench(NEVER, server=server, transport="http")
    channel = bench.opened("post", **mirrored("tools/list"))
    told = {**mirrored("tools/list"), ":url": "http://here/mcp"}
    bench.referee.channel_opened("c9", "post", {k.replace("_", "-"): told[k] for k in told}, 0)
    for one, url in ((channel, ""), ("c9", "http://here/mcp")):
        status: Any = bench.said(one, modern("tools/list"))[0]
        a, b = status.body["result"]["tools"]
        assert a["inputSchema"]["$ref"] == f"{url}#/x"
        assert (a["description"], b["inputSchema"]) == ("a@1", {"type": "object"})


# --- notices of single resources ---


def test_a_modern_subscription_is_granted_the_uris_and_told_of_what_lies_below() -> None:
    notices = [{"notify": {"uri": uri}} for uri in (R, UNDER)]
    bench, channel = bench_of({"covered": {"uri": UNDER}}, *notices)
    filter_ = {"resourceSubscriptions": [R]}
    listen = modern("subscriptions/listen", "7", notifications=filter_)
    acknowledged, *updates = sent(bench.said(channel, listen))
    assert acknowledged["method"] == ACKNOWLEDGED
    assert acknowledged["params"]["notifications"] == filter_
    assert [(one["method"], one["params"]["uri"]) for one in updates] == [
        (UPDATED, R),
        (UPDATED, UNDER),
    ]
    assert updates[0]["params"]["_meta"] == {wire.SUBSCRIPTION_ID: "7"}


@pytest.mark.parametrize("capability", [{}, {"subscribe": False}])
def test_who_does_not_declare_it_grants_no_uris(capability: Any) -> None:
    server = {**SERVER, "capabilities": {"resources": capability}}
    bench = Bench(NEVER, server=server)
    acknowledged = subscribed(bench, bench.opened(), R)
    assert acknowledged["params"]["notifications"] == {}
    legacy = Bench(NEVER, server=server, revision=LEGACY)
    refused = asked(legacy, pipe(legacy), "resources/subscribe", LEGACY, uri=R)
    assert refused["error"]["code"] == wire.METHOD_NOT_FOUND


def test_a_legacy_session_hears_of_what_it_subscribed_to_until_it_ends_that() -> None:
    steps = [
        {"change": {"contents": {R: "r@2"}, "notify": True}},
        {"await": {"request": {"method": "resources/unsubscribe"}}},
        {"notify": {"uri": R}},
    ]
    bench, channel = bench_of(*steps, revision=LEGACY)
    outs = sent(bench.said(channel, request("resources/subscribe", uri=R)))
    assert [out.get("method") for out in outs] == [None, UPDATED]
    bench.said(channel, request("resources/unsubscribe", 2, uri=R))
    bench.later(8_000)
    assert bench.outcome == f"not_applicable: the client has not subscribed to {R}"


@pytest.mark.parametrize("uri", ["relist://other", "relist://rr", "relist:/", "relist://r"])
def test_a_uri_lies_below_another_by_whole_segments(uri: str) -> None:
    assert wire.reaches(R, uri) == (uri == R)
    assert wire.reaches(R, UNDER)
    assert wire.reaches(R + "/", UNDER)


def test_a_notice_can_reach_who_did_not_ask() -> None:
    ready = {"await": {"request": {"method": "notifications/initialized"}}}
    bench, _ = bench_of(ready, {"notify": {"uri": R, "to": "any"}}, revision=LEGACY)
    told = [out for out in sent(bench.outputs) if out.get("method") == UPDATED]
    assert [out["params"] for out in told] == [{"uri": R}]


# --- what the application does ---


def test_what_is_read_and_watched_is_put_to_the_driver() -> None:
    steps = [
        {"read": {"uri": R, "as": "text"}},
        {"read": {"uri": R, "wait": False}},
        {"get_prompt": {"prompt": "p", "arguments": {"x": "y"}, "as": "text"}},
        {"subscribe": {"uri": R}},
        {"unsubscribe": {"uri": R}},
    ]
    bench = Bench(*steps)
    for number in (1, 3, 4, 5):
        bench.answer(number, {})
    assert [ask.op for ask in bench.asks()] == [
        *("read", "read", "get_prompt", "subscribe", "unsubscribe")
    ]
    assert bench.asks()[2].fields["arguments"] == {"x": "y"}
    assert bench.asks()[4].fields["uri"] == R


def test_who_is_not_given_the_list_in_time_can_be_left_alone() -> None:
    step = {"kind": "tools", "until": ["a@2"], "tries": 2, "else": "not_applicable"}
    for why in ({}, {"why": "it lists no more"}):
        bench = Bench({"need": {**step, **why}}, must_speak=True)
        bench.answer(1, {"items": []})
        bench.later(50)
        bench.answer(2, {"items": []})
        reason = why.get("why", "the client was not given a@2")
        assert bench.outcome == f"not_applicable: {reason}"


def test_two_connections_have_their_turns_and_each_its_principal() -> None:
    steps = [
        {"connect": {"as": "one"}},
        {"credentials": {"of": "alice"}},
        {"connect": {"as": "two"}},
        {"need": {"kind": "tools"}},
        {"turn": {"to": "one"}},
        {"need": {"kind": "tools"}},
    ]
    bench = Bench(*steps, NEVER)
    bench.answer(1, {})
    principals = []
    for number in (2, 3, 4):
        bench.answer(number, {"items": None})
        bench.opened()
        told = bench.referee.history[-1].data
        principals.append(told.get("principal"))
    assert principals == [None, None, "alice"]
    assert [ask.fields["connection"] for ask in bench.asks()] == [
        *("c-one", "c-one", "c-two", "c-two", "c-one")
    ]
    assert bench.referee.connections == ("c-one", "c-two")


def test_a_read_is_repeated_until_it_gives_the_text() -> None:
    bench = Bench({"read": {"uri": R, "as": "text", "until": "r@2"}})
    bench.answer(1, {"outcome": "result", "text": "r@1"})
    bench.later(50)
    bench.answer(2, {"outcome": "result", "text": "r@2"})
    assert len(bench.asks()) == 2
    assert bench.outcome.startswith("not_applicable")  # nobody spoke


@pytest.mark.parametrize(("text", "word"), [("r@1", "pass"), ("r@2", "fail"), (None, "fail")])
def test_a_text_is_judged_like_a_list_of_one(text: str | None, word: str) -> None:
    bench = Bench({"read": {"uri": R, "as": "text"}}, {"read": {"uri": R}})
    bench.answer(1, {"outcome": "result", "text": text})
    common: Any = {"rule": {MODERN: "R-1"}, "severity": {MODERN: "fail"}}
    expected = Answered(of="text", one_of=(("r@1",),), anomaly="stale list", **common)
    assert judge([expected], bench.referee.history, MODERN).word == word


def test_a_text_that_is_none_breaks_the_contract() -> None:
    bench = Bench({"read": {"uri": R}})
    bench.answer(1, {"outcome": "result", "text": 7})
    assert bench.outcome == ("harness_error: driver answered 'read' wrongly: 'text' is not a text")
