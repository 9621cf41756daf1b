"""The referee as a server, message by message, and as the one who performs a script. No I/O."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from relist_conformance import wire
from relist_conformance.outputs import Ask, Finish, Finished, Output, Reply, Reset, Send, Status
from relist_conformance.referee import Referee
from relist_conformance.script import parse_case
from relist_conformance.wire import LEGACY, MODERN

VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
LISTEN = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Bench:
    """A referee with the time and the outputs at hand."""

    def __init__(
        self,
        *steps: Any,
        revision: str = MODERN,
        transport: str = "stdio",
        server: Mapping[str, Any] | None = None,
        ops: tuple[str, ...] = (),
        must_speak: bool = False,
    ) -> None:
        case = {
            "id": "test:case",
            "title": "t",
            "text": "t",
            "rules": ["R-1"],
            "source": [{"name": "s"}],
            "strength": {revision: "SHOULD"},
            "severity": {revision: "warn"},
            "anomaly": "lost notice",
            "profile": "mcp",
            "revisions": [revision],
            "transports": ["stdio", "http"],
            "must_speak": must_speak,
            "level": "full",
            "server": server
            or {
                "capabilities": {"tools": {"listChanged": True}},
                "tools": [["a@1"], ["b@1"]],
            },
            "steps": list(steps) or [{"await": {"request": {"method": "never"}}}],
            "expect": [{"requested": {"method": "tools/list"}}],
        }
        self.referee = Referee(
            parse_case(json.dumps(case).encode(), "test.yaml"), revision, transport, ops=ops
        )
        self.now_ms = 0
        self.channels = 0
        self.referee.start(0)
        self.outputs = list(self.referee.drain())

    def drain(self) -> list[Output]:
        new = list(self.referee.drain())
        self.outputs += new
        return new

    def opened(self, kind: Any = "stdio", **headers: str) -> str:
        self.channels += 1
        channel = f"c{self.channels}"
        told = {key.replace("_", "-"): value for key, value in headers.items()}
        self.referee.channel_opened(channel, kind, told, self.now_ms)
        return channel

    def said(self, channel: str, message: object) -> list[Output]:
        self.referee.received(channel, message, self.now_ms)
        return self.drain()

    def posted(self, message: object, **headers: str) -> Any:
        """What one POST is answered: the first output of its channel."""
        channel = self.opened("post", **headers)
        outputs = self.said(channel, message)
        return next(output for output in outputs if getattr(output, "channel", "") == channel)

    def later(self, ms: int) -> list[Output]:
        self.now_ms += ms
        self.referee.tick(self.now_ms)
        return self.drain()

    def asks(self) -> list[Ask]:
        return [output for output in self.outputs if isinstance(output, Ask)]

    def answer(
        self, ask_id: int, ok: Any = None, error: str | None = None, code: str | None = None
    ) -> list[Output]:
        self.referee.driver_answered(ask_id, Reply(ok, error, code), self.now_ms)
        return self.drain()

    @property
    def outcome(self) -> str:
        assert self.referee.outcome is not None
        return f"{self.referee.outcome.word}: {self.referee.outcome.reason}"


def request(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    given = {"params": params} if params else {}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **given}


def modern(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    return request(method, request_id, _meta=META, **params)


def notified(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def sent(outputs: list[Output]) -> list[Any]:
    return [output.message for output in outputs if isinstance(output, Send)]


def mirrored(method: str, **more: str) -> dict[str, str]:
    return {"mcp_protocol_version": MODERN, "mcp_method": method, **more}


def pipe(bench: Bench) -> str:
    """A legacy connection after its handshake."""
    channel = bench.opened()
    bench.said(channel, request("initialize", **HELLO))
    bench.said(channel, notified("notifications/initialized"))
    return channel


# --- 2025-11-25 ---


def test_legacy_handshake_on_a_pipe() -> None:
    bench = Bench(revision=LEGACY)
    channel = bench.opened()
    (early,) = sent(bench.said(channel, request("server/discover", _meta=META)))
    assert early["error"]["code"] == wire.METHOD_NOT_FOUND
    (ping,) = sent(bench.said(channel, request("ping")))
    assert ping["result"] == {}
    (hello,) = sent(bench.said(channel, request("initialize", "one", **HELLO)))
    assert hello["id"] == "one"
    assert hello["result"]["protocolVersion"] == LEGACY
    assert "resultType" not in hello["result"]
    (page,) = sent(bench.said(channel, request("tools/list", 3)))
    assert [tool["description"] for tool in page["result"]["tools"]] == ["a@1"]


def test_legacy_http_sessions() -> None:
    bench = Bench(revision=LEGACY, transport="http")
    probe = bench.posted(modern("server/discover"), **mirrored("server/discover"))
    assert (probe.code, probe.body["error"]["code"]) == (400, wire.METHOD_NOT_FOUND)
    assert bench.posted(request("tools/list")).code == 400
    hello = bench.posted(request("initialize", **HELLO))
    session = hello.headers["mcp-session-id"]
    assert hello.code == 200
    told = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
    assert bench.posted(notified("notifications/initialized"), **told).code == 202
    assert bench.posted(request("tools/list"), **told).body["result"]["nextCursor"]
    assert bench.posted(request("tools/list"), mcp_session_id="other").code == 404
    wrong = {**told, "mcp_protocol_version": "1999-01-01"}
    assert bench.posted(request("tools/list"), **wrong).code == 400
    again = bench.posted(request("initialize", **HELLO))
    assert again.headers["mcp-session-id"] != session


def test_legacy_get_and_delete() -> None:
    bench = Bench(revision=LEGACY, transport="http")
    session = bench.posted(request("initialize", **HELLO)).headers["mcp-session-id"]
    accept = {"accept": "text/event-stream", "mcp_session_id": session}
    for headers, code in (({}, 400), ({"mcp_session_id": "x"}, 404), (accept, 200)):
        channel = bench.opened("get", **headers)
        assert bench.drain()[0] == Status(channel, code, *_of(code))
    refused = bench.opened("get", mcp_session_id=session)
    assert bench.drain() == [Status(refused, 406)]
    ended = bench.opened("delete", mcp_session_id=session)
    assert bench.drain() == [Finish(channel), Status(ended, 200)]
    assert bench.posted(request("tools/list"), mcp_session_id=session).code == 404


def _of(code: int) -> list[Any]:
    return [{"content-type": "text/event-stream"}] if code == 200 else []


def test_a_legacy_notice_waits_for_a_session_and_goes_out_once_per_session() -> None:
    change = {"change": {"tools": [["a@2"]], "notify": True}}
    bench = Bench(change, revision=LEGACY, transport="http")
    session = bench.posted(request("initialize", **HELLO)).headers["mcp-session-id"]
    bench.posted(notified("notifications/initialized"), mcp_session_id=session)
    streams = [
        bench.opened("get", accept="text/event-stream", mcp_session_id=session) for _ in range(2)
    ]
    notices = [output for output in bench.drain() if isinstance(output, Send)]
    assert [(one.channel, one.message["method"]) for one in notices] == [
        (streams[0], "notifications/tools/list_changed")
    ]


def test_a_legacy_client_without_a_stream_is_not_applicable() -> None:
    bench = Bench({"notify": {"kind": "tools"}}, revision=LEGACY, transport="http")
    session = bench.posted(request("initialize", **HELLO)).headers["mcp-session-id"]
    bench.posted(notified("notifications/initialized"), mcp_session_id=session)
    bench.later(4_000)
    assert bench.outcome == "not_applicable: the client opened no stream for notices (HTTP GET)"


def test_a_legacy_fence_is_a_ping_on_the_pipe() -> None:
    bench = Bench({"await": {"request": {"method": "ping"}}}, {"fence": None}, revision=LEGACY)
    channel = pipe(bench)
    (_, ping) = sent(bench.said(channel, request("ping")))
    assert ping["method"] == "ping"
    bench.said(channel, {"jsonrpc": "2.0", "id": ping["id"], "result": {}})
    assert bench.outcome == "judged: "
    assert bench.referee.history[-2].data == {"passed": True, "by": "ping"}


# --- 2026-07-28 ---


def test_modern_results_carry_what_the_revision_asks_for() -> None:
    bench = Bench()
    channel = bench.opened()
    (found,) = sent(bench.said(channel, modern("server/discover")))
    (page,) = sent(bench.said(channel, modern("tools/list")))
    for result in (found["result"], page["result"]):
        assert (result["resultType"], result["ttlMs"]) == ("complete", 600_000)
        assert result["cacheScope"] == "public"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]
    (called,) = sent(bench.said(channel, modern("tools/call", name="a", arguments={})))
    assert "ttlMs" not in called["result"]


@pytest.mark.parametrize(
    ("message", "code", "http"),
    [
        (request("initialize", **HELLO), wire.UNSUPPORTED_VERSION, 400),
        (request("tools/list"), wire.INVALID_PARAMS, 400),
        (request("tools/list", _meta={VERSION: MODERN}), wire.INVALID_PARAMS, 400),
        (request("tools/list", _meta={**META, VERSION: "2099-01-01"}), -32020, 400),
        (modern("prompts/list"), wire.METHOD_NOT_FOUND, 404),
        (modern("resources/templates/list"), wire.METHOD_NOT_FOUND, 404),
        (modern("ping"), wire.METHOD_NOT_FOUND, 404),
        (modern("subscriptions/listen"), wire.INVALID_PARAMS, 200),
        (modern("tools/list", cursor="made up"), wire.INVALID_PARAMS, 200),
        (modern("tools/list", cursor=7), wire.INVALID_PARAMS, 200),
        (modern("tools/call", name="zzz", arguments={}), wire.INVALID_PARAMS, 200),
    ],
)
def test_modern_refusals(message: Any, code: int, http: int) -> None:
    headers = mirrored(message["method"], mcp_name="zzz")
    answer = Bench(transport="http").posted(message, **headers)
    assert (answer.code, answer.body["error"]["code"]) == (http, code)


def test_an_unsupported_version_is_told_the_supported_ones() -> None:
    future = {**META, VERSION: "2099-01-01"}
    headers = {"mcp_protocol_version": "2099-01-01", "mcp_method": "tools/list"}
    answer = Bench(transport="http").posted(request("tools/list", _meta=future), **headers)
    assert answer.body["error"]["code"] == wire.UNSUPPORTED_VERSION
    assert answer.body["error"]["data"]["supported"] == [MODERN]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 400),
        ({"mcp_name": "b"}, 400),
        ({"mcp_name": "a"}, 200),
        ({"mcp_name": f"=?base64?{base64.b64encode(b'a').decode()}?="}, 200),
        ({"mcp_name": "=?base64?!?="}, 400),
        ({"mcp_name": "a", "mcp_method": "tools/list"}, 400),
    ],
)
def test_modern_headers_mirror_the_body(headers: dict[str, str], code: int) -> None:
    message = modern("tools/call", name="a", arguments={})
    answer = Bench(transport="http").posted(message, **{**mirrored("tools/call"), **headers})
    assert answer.code == code
    assert code == 200 or answer.body["error"]["code"] == wire.HEADER_MISMATCH


def test_modern_http_has_neither_get_nor_delete() -> None:
    bench = Bench(transport="http")
    for kind in ("get", "delete"):
        channel = bench.opened(kind, accept="text/event-stream")
        assert bench.drain() == [Status(channel, 405, {"allow": "POST"})]


def test_a_subscription_is_acknowledged_first_and_tagged_with_its_typed_id() -> None:
    changes = [{"change": {"tools": [["a@2"]], "notify": True}}, {"notify": {"kind": "tools"}}]
    bench = Bench(*changes)
    channel = bench.opened()
    acknowledged, notice, second = sent(
        bench.said(channel, modern("subscriptions/listen", "1", **LISTEN))
    )
    assert acknowledged["method"] == ACKNOWLEDGED
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    assert notice["method"] == second["method"] == "notifications/tools/list_changed"
    for message in (acknowledged, notice):
        assert message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "1"


@pytest.mark.parametrize(("cancelled", "covered"), [("1", False), (1, True)])
def test_cancelling_a_subscription_minds_the_type_of_the_id(
    cancelled: object, covered: bool
) -> None:
    bench = Bench({"await": {"request": {"method": "tools/list"}}}, {"notify": {"kind": "tools"}})
    channel = bench.opened()
    bench.said(channel, modern("subscriptions/listen", "1", **LISTEN))
    bench.said(channel, notified("notifications/cancelled", requestId=cancelled))
    notices = sent(bench.said(channel, modern("tools/list", 2)))[1:]
    assert bool(notices) is covered
    bench.later(4_000)
    assert bench.outcome.startswith("judged" if covered else "not_applicable: the client has no")


def test_closing_the_stream_ends_a_modern_http_subscription() -> None:
    bench = Bench({"await": {"request": {"method": "tools/list"}}}, {"covered": {"kind": "tools"}})
    listen = bench.opened("post", **mirrored("subscriptions/listen"))
    outputs = bench.said(listen, modern("subscriptions/listen", **LISTEN))
    assert outputs[0] == Status(listen, 200, {"content-type": "text/event-stream"})
    bench.referee.channel_closed(listen, 0)
    bench.posted(modern("tools/list"), **mirrored("tools/list"))
    bench.later(4_000)
    assert bench.outcome.startswith("not_applicable")


def test_a_kind_without_list_changed_is_not_granted() -> None:
    server = {"capabilities": {"tools": {}, "prompts": {"listChanged": True}}}
    bench = Bench(server=server)
    (acknowledged,) = sent(bench.said(bench.opened(), modern("subscriptions/listen", **LISTEN)))
    assert acknowledged["params"]["notifications"] == {"promptsListChanged": True}


# --- cursors and kinds ---


def test_an_old_cursor_leads_on_in_the_list_it_was_given_for() -> None:
    second = {"await": {"request": {"method": "tools/list", "page": 2}}}
    change = {"change": {"tools": [["a@2"], ["b@2"]]}}
    bench = Bench({"await": {"request": {"method": "tools/list"}}}, change, second)
    channel = bench.opened()
    (old,) = sent(bench.said(channel, modern("tools/list")))
    (new,) = sent(bench.said(channel, modern("tools/list", 2)))
    for page, expected in ((old, "b@1"), (new, "b@2")):
        cursor = page["result"]["nextCursor"]
        (answer,) = sent(bench.said(channel, modern("tools/list", 3, cursor=cursor)))
        assert answer["result"]["tools"][0]["description"] == expected
        assert "nextCursor" not in answer["result"]


def test_the_four_kinds_have_items_of_their_shape() -> None:
    pages = {"tools": [["a@1"]], "prompts": [["a@1"]], "resources": [["a@1"]]}
    server = {
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        **pages,
        "resource_templates": [["a@1"]],
    }
    for revision in (LEGACY, MODERN):
        bench = Bench(revision=revision, server=server)
        channel = pipe(bench) if revision == LEGACY else bench.opened()
        ask = request if revision == LEGACY else modern
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            (answer,) = sent(bench.said(channel, ask(method)))
            (item,) = next(v for v in answer["result"].values() if isinstance(v, list))
            assert (item["name"], item["description"]) == ("a", "a@1")
        for method, params in (
            ("prompts/get", {"name": "a"}),
            ("resources/read", {"uri": "relist://a"}),
        ):
            (answer,) = sent(bench.said(channel, ask(method, **params)))
            assert "result" in answer


# --- scripts ---


def test_a_held_answer_is_that_of_its_moment_and_is_sent_when_released() -> None:
    steps = [
        {"answer": {"request": {"method": "tools/list"}, "hold": "old"}},
        {"await": {"request": {"method": "tools/list"}}},
        {"change": {"tools": [["a@2"]]}},
        {"await": {"request": {"method": "tools/list"}, "nth": 2}},
        {"release": {"name": "old"}},
    ]
    bench = Bench(*steps)
    channel = bench.opened()
    assert sent(bench.said(channel, modern("tools/list", 1))) == []
    newer, older = sent(bench.said(channel, modern("tools/list", 2)))
    assert (newer["id"], older["id"]) == (2, 1)
    assert newer["result"]["tools"][0]["description"] == "a@2"
    assert older["result"]["tools"][0]["description"] == "a@1"
    assert bench.outcome == "judged: "


def test_a_held_http_answer_is_a_stream_and_gone_when_the_client_closed_it() -> None:
    steps = [
        {"answer": {"request": {"method": "tools/list"}, "hold": "old"}},
        {"await": {"request": {"method": "server/discover"}}},
        {"release": {"name": "old"}},
    ]
    for closes in (False, True):
        bench = Bench(*steps, transport="http")
        held = bench.opened("post", **mirrored("tools/list"))
        assert isinstance(bench.said(held, modern("tools/list"))[0], Status)
        if closes:
            bench.referee.channel_closed(held, 0)
        bench.posted(modern("server/discover"), **mirrored("server/discover"))
        kinds = [type(output) for output in bench.outputs if getattr(output, "channel", "") == held]
        assert kinds == ([Status] if closes else [Status, Send, Finish])


def test_requests_fail_as_often_as_told() -> None:
    error = {"code": -32603, "message": "no"}
    fail = {"answer": {"request": {"method": "tools/list"}, "error": error, "times": 2}}
    bench = Bench(fail, {"await": {"request": {"method": "never"}}})
    channel = bench.opened()
    answers = [sent(bench.said(channel, modern("tools/list", n)))[0] for n in range(3)]
    assert ["error" in answer for answer in answers] == [True, True, False]


def test_a_need_is_repeated_with_growing_pauses_until_the_answer_is_the_set() -> None:
    bench = Bench({"need": {"kind": "tools", "as": "list", "until": ["a@1"], "tries": 4}})
    times: list[int] = []
    for label in ("a@0", "a@0", "a@1"):
        while len(bench.asks()) == len(times):
            bench.later((bench.referee.deadline_ms() or 0) - bench.now_ms)
        times.append(bench.now_ms)
        items = [{"name": "a", "description": label}]
        bench.answer(bench.asks()[-1].ask_id, {"items": items})
    assert times == [0, 50, 150]
    assert isinstance(bench.outputs[-1], Finished)


def test_an_application_asks_again_only_when_it_was_answered() -> None:
    bench = Bench({"await": {"request": {"method": "tools/list"}, "need": "tools", "tries": 3}})
    bench.later(2_000)
    assert len(bench.asks()) == 1
    bench.answer(1, {"items": None})
    bench.later(50)
    assert len(bench.asks()) == 2
    bench.said(bench.opened(), modern("tools/list"))
    assert bench.outcome == "judged: "


def test_patience_ends_in_what_the_case_says() -> None:
    step = {"request": {"method": "tools/list"}, "else": "not_applicable", "why": "it may"}
    bench = Bench({"await": step})
    bench.later(7_999)
    assert bench.referee.outcome is None
    bench.later(1)
    assert bench.outcome == "not_applicable: it may"


def test_a_cut_forgets_legacy_sessions_and_resets_what_stands_open() -> None:
    steps = [{"await": {"request": {"method": "ping"}}}, {"cut": {"what": "connection"}}]
    bench = Bench(*steps, {"await": {"request": {"method": "x"}}}, revision=LEGACY)
    session = bench.posted(request("initialize", **HELLO)).headers["mcp-session-id"]
    stream = bench.opened("get", accept="text/event-stream", mcp_session_id=session)
    channel = bench.opened("post", mcp_session_id=session)
    assert Reset(stream) in bench.said(channel, request("ping"))
    assert bench.posted(request("tools/list"), mcp_session_id=session).code == 404


def test_a_cut_resets_the_pipe() -> None:
    bench = Bench({"await": {"request": {"method": "tools/list"}}}, {"cut": {"what": "connection"}})
    channel = bench.opened()
    assert Reset(channel) in bench.said(channel, modern("tools/list"))
    assert bench.said(channel, modern("tools/list")) == []


def test_steps_and_marks_can_be_conditional() -> None:
    bench = Bench(
        {"mark": {"name": "one"}, "when": {"transports": ["http"]}},
        {"stop": None, "when": {"given": "one"}},
        {"mark": {"name": "two"}},
        {"idle": None, "when": {"given": "two"}},
    )
    assert [ask.op for ask in bench.asks()] == ["idle"]


def test_a_client_that_never_speaks_the_revision_is_not_judged() -> None:
    bench = Bench({"need": {"kind": "tools", "as": "list"}})
    bench.said(bench.opened(), request("initialize", **HELLO))
    bench.answer(1, {"items": None})
    assert bench.outcome.startswith("not_applicable: the client never came to speak 2026-07-28")


def test_a_client_that_must_speak_the_revision_is_judged_when_it_does_not() -> None:
    bench = Bench({"need": {"kind": "tools", "as": "list"}}, must_speak=True)
    bench.answer(1, {"items": None})
    assert bench.outcome == "judged: "


def test_a_wrong_frame_that_no_script_asked_for_is_our_own_fault() -> None:
    bench = Bench(server={"capabilities": {"tools": 7}, "tools": [["a@1"]]})
    bench.said(bench.opened(), modern("server/discover"))
    assert bench.outcome.startswith("harness_error: the referee would have sent a wrong result")


@pytest.mark.parametrize(
    "ok",
    [{"items": "a"}, {"items": [1]}, {"items": [{"name": "a"}]}, {"items": [{"name": 1}]}],
)
def test_a_driver_that_answers_wrongly_is_named(ok: Any) -> None:
    bench = Bench({"need": {"kind": "tools"}})
    bench.answer(1, ok)
    assert bench.outcome.startswith("harness_error: driver answered 'need' wrongly")


def test_items_of_a_command_that_lists_nothing_are_nobody_s_business() -> None:
    bench = Bench({"connect": None}, {"call": {"tool": "a"}})
    bench.answer(1, {"items": [[[]]]})
    bench.answer(2, {"outcome": "result", "items": [7]})
    assert not bench.outcome.startswith("harness_error")


def test_a_driver_that_cannot_connect_ends_the_run() -> None:
    bench = Bench({"connect": None}, {"idle": None})
    bench.answer(1, error="no such transport")
    assert bench.outcome == "harness_error: driver cannot connect: no such transport"


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        7,
        wire.Unreadable("x"),
        {},
        {"jsonrpc": "1.0", "id": 1, "method": "x"},
        {"jsonrpc": "2.0", "id": None, "method": "x"},
        {"jsonrpc": "2.0", "id": True, "method": "x"},
        {"jsonrpc": "2.0", "id": [], "result": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "x", "params": []},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
    ],
)
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_malformed_messages_are_noted_and_harm_nothing(message: object, revision: str) -> None:
    bench = Bench(revision=revision)
    assert bench.said(bench.opened(), message) == []
    assert bench.posted(message).code == 400
    assert "malformed" in bench.referee.history[3].data


def test_a_flood_ends_the_run_and_the_server_goes_on() -> None:
    bench = Bench()
    channel = bench.opened()
    for number in range(3_000):
        bench.said(channel, modern("tools/list", number))
    assert bench.outcome.startswith("inconclusive: the client floods the run")
    assert len(bench.referee.history) <= 5_000


def test_after_the_end_the_server_still_says_goodbye() -> None:
    bench = Bench({"await": {"request": {"method": "tools/list"}}})
    channel = bench.opened()
    bench.said(channel, modern("tools/list"))
    assert isinstance(bench.outputs[-1], Finished)
    assert bench.referee.deadline_ms() is None
    assert sent(bench.said(channel, modern("tools/list", 2)))


def test_parse_refuses_what_is_too_deep_too_long_or_no_json() -> None:
    deep = b"[" * 100 + b"]" * 100
    for data in (deep, b"[" * 100_000, b"NaN", b"\xff", b"", b"1" * 5_000, b" " * (1 << 21)):
        assert isinstance(wire.parse(data), wire.Unreadable)
    assert wire.parse(b'{"id": "\\ud800"}') == {"id": "\ud800"}
    assert wire.encode({"id": "\ud800"}) == b'{"id":"\\ud800"}'
