"""Each step of the language, performed by the referee. No I/O; the bench is in ``test_referee``."""

from typing import Any

import pytest

from conformance.test_referee import (
    ACKNOWLEDGED,
    HELLO,
    LISTEN,
    Bench,
    mirrored,
    modern,
    notified,
    pipe,
    request,
    sent,
)
from relist.check.history import RequestMatch
from relist_conformance import wire
from relist_conformance.outputs import SSE, Finish, Reset, Send, Status
from relist_conformance.wire import LEGACY, MODERN

LIST = {"method": "tools/list"}
NEVER = {"await": {"request": {"method": "never"}}}
SESSION = "mcp-session-id"
TAG = "io.modelcontextprotocol/subscriptionId"


def answer(**how: Any) -> dict[str, Any]:
    return {"answer": {"request": LIST, **how}}


def answered(*steps: Any, times: int = 1, **given: Any) -> list[Any]:
    """What so many list requests on a pipe are answered."""
    bench = Bench(*steps, NEVER, **given)
    channel = bench.opened()
    return [
        message
        for number in range(times)
        for message in sent(bench.said(channel, modern("tools/list", number)))
    ]


def listening(bench: Bench, listen_id: Any = "1") -> tuple[str, list[Any]]:
    channel = bench.opened()
    return channel, sent(bench.said(channel, modern("subscriptions/listen", listen_id, **LISTEN)))


# --- answers: what is said ---


def test_a_page_takes_the_place_of_the_served_one_and_its_cursor_can_be_new_each_time() -> None:
    page = {"items": ["x@7"], "next": "c{n}"}
    first, second = answered(answer(page=page, times="always"), times=2)
    assert first["result"]["tools"][0]["description"] == "x@7"
    assert first["result"]["resultType"] == "complete"
    assert first["result"]["nextCursor"] != second["result"]["nextCursor"]


def test_names_and_cursors_may_be_odd_and_long() -> None:
    items, cursor = ["a b/ü.λ@1", f"{'x' * 200}@2"], ' "\\\n' + "9" * 7990
    match: Any = {"method": "tools/list", "cursor": cursor}
    bench = Bench(answer(page={"items": items, "next": cursor}), {"await": {"request": match}})
    channel = bench.opened()
    (first,) = sent(bench.said(channel, modern("tools/list", 1)))
    assert [tool["name"] for tool in first["result"]["tools"]] == ["a b/ü.λ", "x" * 200]
    bench.said(channel, modern("tools/list", 2, cursor=first["result"]["nextCursor"]))
    assert bench.outcome == "judged: "
    assert len(str(RequestMatch(**match))) < 200  # a finding has room for the start of it


def test_an_answer_is_for_the_nth_and_so_many_from_then_on() -> None:
    error = {"code": -32603, "message": "no"}
    answers = answered(answer(error=error, nth=2, times=2), times=4)
    assert ["error" in one for one in answers] == [False, True, True, False]


def test_a_rule_for_some_goes_before_one_for_all() -> None:
    always = answer(set={"ttlMs": 5}, times="always")
    once = answer(error={"code": -32603, "message": "no", "data": {"x": 1}})
    first, second = answered(always, once, times=2)
    assert first["error"]["data"] == {"x": 1}
    assert second["result"]["ttlMs"] == 5


@pytest.mark.parametrize(
    ("bend", "check"),
    [
        ({"set": {"ttlMs": -1}, "malformed": True}, lambda r: r["ttlMs"] == -1),
        ({"set": {"tools": 7}, "malformed": True}, lambda r: r["tools"] == 7),
        ({"drop": ["tools"], "malformed": True}, lambda r: "tools" not in r),
        ({"add": [7], "malformed": True}, lambda r: r["tools"][1] == 7),
        ({"fill": {"items": 3, "chars": 9, "depth": 4}}, lambda r: len(r["tools"]) == 4),
        ({"set": {"ttlMs": 10**15}}, lambda r: r["ttlMs"] == 10**15),
    ],
)
def test_a_result_is_bent(bend: Any, check: Any) -> None:
    (one,) = answered(answer(**bend))
    assert check(one["result"])


def test_filling_is_as_long_and_as_deep_as_told() -> None:
    (one,) = answered(answer(fill={"items": 1, "chars": 50, "depth": 3}))
    filler = one["result"]["tools"][-1]
    assert filler["title"] == "x" * 50
    assert filler["inputSchema"]["properties"]["x"]["properties"]["x"] == {"type": "object"}


@pytest.mark.parametrize("how", [{"set": {"ttlMs": -1}}, {"set": {"ttlMs": 1}, "malformed": True}])
def test_malformed_is_said_exactly_where_it_is_so(how: Any) -> None:
    bench = Bench(answer(**how), NEVER)
    bench.said(bench.opened(), modern("tools/list"))
    assert bench.outcome.startswith("harness_error: the referee would have sent a wrong result")


def test_what_is_malformed_is_marked_in_the_history_and_nothing_else() -> None:
    bench = Bench(answer(set={"ttlMs": -1}, malformed=True), NEVER)
    channel = bench.opened()
    for number in range(2):
        bench.said(channel, modern("tools/list", number))
    outs = [event for event in bench.referee.history if event.kind == "out"]
    assert [event.data.get("malformed") for event in outs] == [True, None]


def test_a_frame_can_be_any_text() -> None:
    twice = '{"jsonrpc":"2.0","id":{id},"result":{"tools":[],"tools":[1]}}'
    bench = Bench(answer(text=twice), NEVER)
    (out,) = bench.said(bench.opened(), modern("tools/list", "one"))
    assert isinstance(out, Send)
    assert out.text == twice.replace("{id}", '"one"')
    over_http = Bench(answer(text="no JSON"), NEVER, transport="http")
    status = over_http.posted(modern("tools/list"), **mirrored("tools/list"))
    assert (status.code, status.body) == (200, "no JSON")


def test_an_error_is_said_even_to_who_would_have_been_refused() -> None:
    error = {"code": -32099, "message": "what?"}
    steps = [{"answer": {"request": {"method": "server/discover"}, "error": error}}, NEVER]
    bench = Bench(*steps, revision=LEGACY)
    channel = bench.opened()
    codes = [
        sent(bench.said(channel, request("server/discover", number)))[0]["error"]["code"]
        for number in range(2)
    ]
    assert codes == [-32099, wire.METHOD_NOT_FOUND]


# --- answers: when ---


def test_slow_answers_come_by_the_clock_of_the_referee() -> None:
    bench = Bench(answer(after_ms=700), NEVER)
    channel = bench.opened()
    assert bench.said(channel, modern("tools/list")) == []
    assert bench.referee.deadline_ms() == 700
    bench.now_ms = 699
    assert bench.later(0) == []
    assert len(sent(bench.later(1))) == 1


OVER_HTTP = {"when": {"transports": ["http"]}}


def test_an_answer_over_http_can_be_a_stream_with_text_and_a_notice_ahead() -> None:
    stream = {"begin": ": hi\n\n", "notice": "tools"}
    steps = [answer(stream=how) | OVER_HTTP for how in (stream, None)]
    bench = Bench(*steps, NEVER, transport="http")
    channel = bench.opened("post", **mirrored("tools/list"))
    outputs: list[Any] = [*bench.said(channel, modern("tools/list"))]
    begun, bare, notice, listed, ended = outputs
    assert (begun.headers["content-type"], bare.text, bare.bare) == (SSE, ": hi\n\n", True)
    assert notice.message["method"] == "notifications/tools/list_changed"
    assert (len(listed.message["result"]["tools"]), ended) == (1, Finish(channel))
    channel = bench.opened("post", **mirrored("tools/list"))
    outputs = [*bench.said(channel, modern("tools/list"))]
    assert [type(one) for one in outputs] == [Status, Send, Finish]
    assert not outputs[1].bare


def test_a_stream_of_initialize_names_the_session() -> None:
    for how in ({"stream": None}, {"hold": "hello"}):
        step = {"answer": {"request": {"method": "initialize"}, **how}} | OVER_HTTP
        bench = Bench(step, NEVER, revision=LEGACY, transport="http")
        assert bench.posted(request("initialize", **HELLO)).headers[SESSION]


def test_a_stream_can_break_after_it_began() -> None:
    step = answer(stream={"begin": "id: 7\n\n"}, cut=True) | OVER_HTTP
    bench = Bench(step, NEVER, transport="http")
    channel = bench.opened("post", **mirrored("tools/list"))
    outputs = bench.said(channel, modern("tools/list"))
    assert [type(one) for one in outputs] == [Status, Send, Reset]


def test_an_answer_can_never_come_or_the_channel_break() -> None:
    bench = Bench(answer(never=True), answer(cut=True), NEVER)
    channel = bench.opened()
    assert bench.said(channel, modern("tools/list", 1)) == []
    assert bench.said(channel, modern("tools/list", 2)) == [Reset(channel)]


def test_notices_right_before_and_after_an_answer() -> None:
    bench = Bench(answer(notify="tools", notify_first="tools"), NEVER)
    channel, _ = listening(bench)
    methods = [one.get("method") for one in sent(bench.said(channel, modern("tools/list", 2)))]
    assert methods == ["notifications/tools/list_changed", None, "notifications/tools/list_changed"]


def test_an_initialize_can_be_preceded_by_a_notice_and_answered_otherwise() -> None:
    how = {"set": {"protocolVersion": "1999-01-01"}, "notify_first": "tools"}
    bench = Bench({"answer": {"request": {"method": "initialize"}, **how}}, NEVER, revision=LEGACY)
    notice, hello = sent(bench.said(bench.opened(), request("initialize", **HELLO)))
    assert notice["method"] == "notifications/tools/list_changed"
    assert hello["result"]["protocolVersion"] == "1999-01-01"


# --- answers: over HTTP ---


def test_a_bare_status_for_messages_notifications_and_get() -> None:
    def refuse(method: str, code: int, **more: Any) -> dict[str, Any]:
        status = {"code": code, "headers": {"retry-after": "1"}}
        return {"answer": {"request": {"method": method}, "status": status, **more}}

    steps = [
        refuse("GET", 405),
        refuse("notifications/initialized", 500),
        refuse("tools/list", 503, nth=2),
    ]
    for step in steps:
        step["when"] = {"transports": ["http"]}
    bench = Bench(*steps, NEVER, revision=LEGACY, transport="http")
    session = bench.posted(request("initialize", **HELLO)).headers[SESSION]
    told = {"mcp_session_id": session}
    assert bench.posted(notified("notifications/initialized"), **told).code == 500
    stream = bench.opened("get", accept="text/event-stream", **told)
    assert bench.drain() == [Status(stream, 405, {"retry-after": "1"})]
    codes = [bench.posted(request("tools/list", number), **told).code for number in range(3)]
    assert codes == [200, 503, 200]


def test_a_match_can_ask_for_parameters_headers_and_principal() -> None:
    def fits(match: Any, message: Any, **headers: str) -> bool:
        error = {"code": -32001, "message": "it fits"}
        steps = [{"answer": {"request": match, "error": error}}, NEVER]
        bench = Bench(*steps, transport="http")
        return bool(bench.posted(message, **headers).body.get("error"))

    headers = mirrored("tools/call", mcp_name="a")
    call = modern("tools/call", name="a", arguments={"x": 1, "y": 2})
    for match, expected in (
        ({"params": {"arguments": {"x": 1}}}, True),
        ({"params": {"arguments": {"x": True}}}, False),
        ({"params": {"arguments": {"z": None}}}, True),
        ({"params": {"arguments": {"x": None}}}, False),
        ({"headers": {"mcp-name": "a", SESSION: None}}, True),
        ({"headers": {"mcp-name": "b"}}, False),
        ({"principal": ""}, True),
        ({"principal": "bob"}, False),
    ):
        assert fits(match, call, **headers) is expected, match
    assert fits({"principal": "bob"}, call, authorization="Bearer relist-bob", **headers)


# --- subscriptions ---


def test_an_acknowledgment_can_be_partial_late_or_an_error() -> None:
    def rule(**how: Any) -> dict[str, Any]:
        return {"answer": {"request": {"method": "subscriptions/listen"}, **how}}

    _, (partial,) = listening(Bench(rule(grant=["prompts"]), NEVER))
    assert partial["params"]["notifications"] == {"promptsListChanged": True}
    _, (refused,) = listening(Bench(rule(error={"code": -32601, "message": "no"}), NEVER))
    assert refused["error"]["code"] == -32601
    late = Bench(
        rule(hold="ack"), {"await": {"request": LIST}}, {"release": {"name": "ack"}}, NEVER
    )
    channel, nothing = listening(late)
    assert nothing == []
    assert not late.referee._server.can_notify("tools")
    _, acknowledged = sent(late.said(channel, modern("tools/list", 2)))
    assert acknowledged["method"] == ACKNOWLEDGED
    assert late.referee._server.can_notify("tools")


@pytest.mark.parametrize(
    ("tag", "listen_id", "told"),
    [
        ("right", 7, 7),
        ("none", 7, None),
        ("foreign", 7, "relist-foreign"),
        ("other_type", 7, "7"),
        ("other_type", "7", 7),
        ("other_type", "x", 0),
    ],
)
def test_notices_bear_the_tag_they_are_told_to(tag: str, listen_id: Any, told: Any) -> None:
    bench = Bench({"await": {"request": LIST}}, {"notify": {"kind": "tools", "tag": tag}}, NEVER)
    channel, _ = listening(bench, listen_id)
    _, notice = sent(bench.said(channel, modern("tools/list", 9)))
    meta = notice.get("params", {}).get("_meta", {})
    assert (meta.get(TAG), type(meta.get(TAG))) == (told, type(told))


def test_a_notice_can_come_before_the_acknowledgment_and_for_what_was_not_granted() -> None:
    hold = {"answer": {"request": {"method": "subscriptions/listen"}, "hold": "ack"}}
    notify = {"notify": {"kind": "resources", "to": "any"}}
    bench = Bench(hold, {"await": {"request": LIST}}, notify, NEVER)
    channel, _ = listening(bench)
    _, notice = sent(bench.said(channel, modern("tools/list", 2)))
    assert notice["method"] == "notifications/resources/list_changed"
    early = Bench({"await": {"request": {"method": "ping"}}}, notify, NEVER, revision=LEGACY)
    channel = early.opened()
    _, notice = sent(early.said(channel, request("ping")))
    assert notice["method"] == "notifications/resources/list_changed"


@pytest.mark.parametrize("wait", [True, False])
def test_a_storm_has_a_period_and_may_go_on_beside_the_script(wait: bool) -> None:
    storm = {"notify": {"kind": "tools", "times": 4, "every_ms": 100, "wait": wait}}
    bench = Bench({"await": {"request": LIST}}, storm, {"stop": None}, NEVER)
    channel, _ = listening(bench)
    heard = [len(sent(bench.said(channel, modern("tools/list", 2)))) - 1]
    assert bool(bench.asks()) is not wait
    for _ in range(4):
        heard.append(len(sent(bench.later(100))))
    assert heard == [1, 1, 1, 1, 0]
    assert [ask.op for ask in bench.asks()] == ["stop"]


@pytest.mark.parametrize(
    ("how", "frame", "finished"),
    [
        ("result", "result", True),
        ("error", "error", True),
        ("cancelled", "method", True),
        ("closed", None, True),
    ],
)
def test_a_subscription_ends_in_four_ways(how: str, frame: str | None, finished: bool) -> None:
    end = {"end_subscriptions": {"how": how}, "when": {"transports": ["http"]}}
    bench = Bench({"covered": {"kind": "tools"}}, end, NEVER, transport="http")
    listen = bench.opened("post", **mirrored("subscriptions/listen"))
    outputs = bench.said(listen, modern("subscriptions/listen", 5, **LISTEN))
    frames = sent(outputs)[1:]
    assert [frame in one for one in frames] == ([] if frame is None else [True])
    assert (Finish(listen) in outputs) is finished
    assert not bench.referee._server.can_notify("tools")
    if how == "result":
        assert frames[0]["result"]["_meta"][TAG] == 5
    if how == "cancelled":
        assert frames[0]["params"]["requestId"] == 5


def test_who_has_no_subscription_to_end_is_not_judged() -> None:
    bench = Bench({"end_subscriptions": {"how": "result"}}, NEVER)
    assert bench.outcome == "not_applicable: the client has no such subscription"


# --- what the script writes itself ---

SAID = {"send": {"text": "[{id}", "to": {"method": "subscriptions/listen"}}}


@pytest.mark.parametrize("listen_id", ["7", 7])
def test_a_text_goes_where_its_request_waits(listen_id: Any) -> None:
    bench = Bench({"covered": {"kind": "tools"}}, SAID, NEVER)
    channel = bench.opened()
    outputs = bench.said(channel, modern("subscriptions/listen", listen_id, **LISTEN))
    assert outputs[-1] == Send(channel, {}, f"[{wire.encode_any(listen_id)}")


def test_a_text_goes_on_the_answer_that_is_held() -> None:
    """On a legacy POST that became a stream, and not on the stream of notices."""
    call = {"method": "tools/call"}
    send = {"send": {"text": "x", "to": call}, "when": {"transports": ["http"]}}
    steps = [{"answer": {"request": call, "hold": "it"}}, {"await": {"request": call}}, send]
    bench = Bench(*steps, NEVER, transport="http", revision=LEGACY)
    session = {"mcp_session_id": bench.posted(request("initialize", **HELLO)).headers[SESSION]}
    bench.posted(notified("notifications/initialized"), **session)
    bench.opened("get", accept="text/event-stream", **session)
    post = bench.opened("post", **session)
    assert bench.said(post, request("tools/call", 2, name="a"))[-1] == Send(post, {}, "x")


def test_a_text_without_a_request_goes_where_notices_go() -> None:
    send = {"send": {"text": ": x\n\n", "raw": True}, "when": {"transports": ["http"]}}
    covered = {"covered": {"kind": "tools"}}
    bench = Bench(covered, send, NEVER, transport="http")
    listen = bench.opened("post", **mirrored("subscriptions/listen"))
    outputs = bench.said(listen, modern("subscriptions/listen", **LISTEN))
    assert outputs[-1] == Send(listen, {}, ": x\n\n", bare=True)
    bench = Bench(covered, {"send": {"text": "x"}}, NEVER, revision=LEGACY)
    assert Send(pipe(bench), {}, "x") in bench.outputs


def test_who_has_no_channel_to_write_on_is_not_judged() -> None:
    for step in (SAID, {"send": {"text": "x"}}):
        bench = Bench(step, NEVER)
        assert bench.outcome == "not_applicable: the client has no channel to write this on"


def test_the_answer_to_a_request_of_the_script_can_be_awaited() -> None:
    ask = {"send": {"text": '{"jsonrpc":"2.0","id":"r","method":"ping"}'}}
    answered = {"await": {"request": {"reply": "r"}, "as": "answered"}}
    bench = Bench({"covered": {"kind": "tools"}}, ask, answered, NEVER, revision=LEGACY)
    channel = pipe(bench)
    bench.said(channel, {"jsonrpc": "2.0", "id": "other", "result": {}})
    assert not [event for event in bench.referee.history if event.kind == "mark"]
    bench.said(channel, {"jsonrpc": "2.0", "id": "r", "result": {}})
    assert [event for event in bench.referee.history if event.kind == "mark"]


def test_an_acknowledgment_can_say_more_than_it_was_asked() -> None:
    more = {"answer": {"request": {"method": "subscriptions/listen"}, "set": {"x": [1]}}}
    _, (acknowledged,) = listening(Bench(more, NEVER))
    assert acknowledged["params"]["notifications"]["x"] == [1]
    assert acknowledged["params"]["notifications"]["toolsListChanged"]


# --- what is cut ---


def test_a_lost_session_gets_404_and_its_stream_ends() -> None:
    cut = {"cut": {"what": "session"}, "when": {"transports": ["http"]}}
    bench = Bench({"await": {"request": {"method": "ping"}}}, cut, NEVER, transport="http",
                  revision=LEGACY)  # fmt: skip
    session = bench.posted(request("initialize", **HELLO)).headers[SESSION]
    told = {"mcp_session_id": session}
    stream = bench.opened("get", accept="text/event-stream", **told)
    assert bench.posted(request("ping"), **told).code == 200
    assert Finish(stream) in bench.outputs
    assert bench.posted(request("tools/list"), **told).code == 404


def test_cut_streams_leave_the_session_and_other_exchanges() -> None:
    cut = {"cut": {"what": "streams"}, "when": {"transports": ["http"]}}
    bench = Bench({"covered": {"kind": "tools"}}, cut, NEVER, transport="http")
    listen = bench.opened("post", **mirrored("subscriptions/listen"))
    assert Reset(listen) in bench.said(listen, modern("subscriptions/listen", **LISTEN))
    legacy = Bench({"covered": {"kind": "tools"}}, cut, NEVER, transport="http", revision=LEGACY)
    told = {"mcp_session_id": legacy.posted(request("initialize", **HELLO)).headers[SESSION]}
    legacy.posted(notified("notifications/initialized"), **told)
    stream = legacy.opened("get", accept="text/event-stream", **told)
    assert Reset(stream) in legacy.drain()
    assert legacy.posted(request("tools/list"), **told).code == 200


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_who_has_nothing_of_the_kind_to_lose_is_not_judged(revision: str) -> None:
    cut = {"cut": {"what": "streams"}, "when": {"transports": ["http"]}}
    bench = Bench(cut, NEVER, transport="http", revision=revision)
    assert bench.outcome == "not_applicable: the client has no streams to lose"


# --- the server ---


def test_a_server_may_say_something_else_of_itself() -> None:
    change = {
        "change": {
            "capabilities": {"prompts": {}},
            "server_info": {"name": "other", "version": "2"},
            "ttl_ms": 0,
            "cache_scope": "private",
            "prompts": [["p@1"]],
        }
    }
    bench = Bench({"await": {"request": LIST}}, change, NEVER)
    channel = bench.opened()
    bench.said(channel, modern("tools/list"))
    (found,) = sent(bench.said(channel, modern("server/discover", 2)))
    assert found["result"]["capabilities"] == {"prompts": {}}
    assert (found["result"]["ttlMs"], found["result"]["cacheScope"]) == (0, "private")
    name = "io.modelcontextprotocol/serverInfo"
    assert found["result"]["_meta"][name] == {"name": "other", "version": "2"}
    (gone,) = sent(bench.said(channel, modern("tools/list", 3)))
    assert gone["error"]["code"] == wire.METHOD_NOT_FOUND
    (page,) = sent(bench.said(channel, modern("prompts/list", 4)))
    assert page["result"]["prompts"][0]["name"] == "p"


def test_principals_see_their_own_lists() -> None:
    server = {
        "capabilities": {"tools": {}},
        "tools": [["a@1"]],
        "principals": {"bob": {"tools": [["b@1"], ["c@1"]]}},
    }
    change = {"change": {"for": "bob", "tools": [["b@2"]]}}
    bench = Bench({"credentials": {"of": "bob"}}, change, NEVER, server=server)
    nobody = Bench(server=server)
    for one, expected in ((nobody, "a@1"), (bench, "b@1")):
        (page,) = sent(one.said(one.opened(), modern("tools/list")))
        assert page["result"]["tools"][0]["description"] == expected
    (ask,) = bench.asks()
    assert (ask.op, ask.fields["token"]) == ("credentials", "relist-bob")
    bench.answer(ask.ask_id, {})
    for headers, expected in (({}, "a@1"), ({"authorization": "Bearer relist-bob"}, "b@2")):
        answer_ = bench.posted(modern("tools/list"), **mirrored("tools/list"), **headers)
        assert answer_.body["result"]["tools"][0]["description"] == expected


def test_the_truth_is_told_at_the_start_and_at_each_change() -> None:
    bench = Bench({"change": {"tools": [["a@2"]]}}, NEVER)
    told = [
        event.data["pages"]["tools"] for event in bench.referee.history if event.kind == "truth"
    ]
    assert told == [(("a@1",), ("b@1",)), (("a@2",),)]


# --- the driver ---


def test_what_the_application_does_is_put_to_the_driver() -> None:
    steps = [
        {"refresh": {"kind": "tools", "as": "now"}},
        {"call": {"tool": "a", "planned": "a@1", "arguments": {"x": 1}, "as": "called"}},
        {"call": {"tool": "a", "wait": False}},
        {"stop": None},
    ]
    bench = Bench(*steps)
    for number in (1, 2, 4):
        bench.answer(number, {"items": None})
    first, planned, loose, stop = bench.asks()
    assert (first.op, first.fields["kind"]) == ("refresh", "tools")
    assert planned.fields["planned"] == {"name": "a", "description": "a@1"}
    assert planned.fields["arguments"] == {"x": 1}
    assert "planned" not in loose.fields
    assert stop.op == "stop"


@pytest.mark.parametrize("offered", [True, False])
def test_time_is_moved_by_the_driver_or_waited_for(offered: bool) -> None:
    ops = ("advance",) if offered else ()
    bench = Bench({"advance": {"ms": 300}}, {"stop": None}, ops=ops)
    assert [ask.op for ask in bench.asks()] == (["advance"] if offered else [])
    bench.answer(1, {}) if offered else bench.later(300)
    assert bench.asks()[-1].op == "stop"


def test_a_driver_that_does_not_offer_a_command_is_untestable() -> None:
    bench = Bench({"refresh": {"kind": "tools"}})
    bench.answer(1, error="unknown op", code="unsupported")
    assert bench.outcome == "untestable: the driver does not offer 'refresh'"


def test_who_sent_such_a_request_is_excused() -> None:
    excuse = {"excuse": {"request": LIST, "why": "it keeps no list", "since": "then"}}
    steps = [{"await": {"request": LIST}}, {"mark": {"name": "then"}}]
    for again, outcome in ((True, "not_applicable: it keeps no list"), (False, "judged: ")):
        other = {"await": {"request": {"method": "server/discover"}}}
        bench = Bench(*steps, other, excuse)
        channel = bench.opened()
        bench.said(channel, modern("tools/list", 1))
        if again:
            bench.said(channel, modern("tools/list", 2))
        bench.said(channel, modern("server/discover", 3))
        assert bench.outcome == outcome


def test_notifications_of_the_client_can_be_awaited() -> None:
    bench = Bench({"await": {"request": {"method": "notifications/initialized"}}}, revision=LEGACY)
    pipe(bench)
    assert bench.outcome == "judged: "
