"""Calls through the gate, on live sessions: what is sent, what is refused, and why."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import TextContent

from relist import inputs as i
from relist.admission import Refusal
from relist.errors import ImpossibleAct
from relist.policy import Risk
from relist.values import Channel, Kind
from relist_mcp import (
    Ambiguous,
    CallRefused,
    Catalogs,
    ChangedSincePlanned,
    Credentials,
    InvalidArguments,
    NotConnected,
    Rejected,
    Removed,
    Unauthorized,
    Unreachable,
    Unsupported,
    UnusableSchema,
    Unverifiable,
)
from relist_mcp.calls import HISTORY_MAX
from relist_mcp.exchange import now_ms
from support.brain import LEGACY, MODERN, Frame, error_of, tool
from support.calls import CALL, SECRET, methods, refused, typed
from support.live import ERAS, LIST, policy, serve, serve_http
from support.loops import everywhere, virtually

rule = pytest.mark.rule


# --- admitted -------------------------------------------------------------------------------------


@rule("CALL-01")
@ERAS
@everywhere
async def test_a_call_that_fits_is_sent_as_it_is(era: str) -> None:
    brain, pipe = serve(era)
    brain.lists["tools"] = [typed("a")]
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        result = await catalogs.call_tool("a", {"n": 1}, planned=1)
    assert result.content == [TextContent(type="text", text="a")]
    (params,) = brain.params(CALL)
    assert (params["name"], params["arguments"]) == ("a", {"n": 1})
    assert methods(brain) == [LIST, CALL]


@ERAS
@everywhere
async def test_a_call_before_any_list_waits_for_the_first(era: str) -> None:
    brain, pipe = serve(era)
    brain.lists["tools"] = [typed("a")]
    brain.hold.add(LIST)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(catalogs.call_tool, "a", {"n": 1})
            request = await brain.until_held(LIST)
            assert not brain.count(CALL)
            pipe.reply(request)
        await catalogs.idle()
    assert methods(brain) == [LIST, CALL]


@everywhere
async def test_a_call_brings_about_a_list_that_nobody_else_asked_for() -> None:
    brain, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy(lazy=True)) as catalogs:
        await catalogs.idle()
        assert not brain.count(LIST)
        await catalogs.call_tool("a", {})
        assert methods(brain) == [LIST, CALL]


@rule("CALL-02")
@rule("CALL-21")
@ERAS
@everywhere
async def test_a_change_of_another_tool_is_no_obstacle(era: str) -> None:
    brain, pipe = serve(era, "a", "b")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.lists["tools"][1] = tool("b", description="other")
        assert (await catalogs.tools.refresh()).snapshot is not None
        await catalogs.call_tool("a", {}, planned=1)
        error = await refused(catalogs.call_tool("b", {}, planned=1))
    assert isinstance(error, ChangedSincePlanned)
    assert brain.count(CALL) == 1


@virtually
async def test_what_was_planned_on_a_list_of_long_ago_is_planned_anew() -> None:
    brain, pipe = serve(MODERN, "a", "b")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        for number in range(HISTORY_MAX):
            brain.lists["tools"][1] = tool("b", description=f"{number}")
            await catalogs.tools.refresh()
        await catalogs.call_tool("a", {}, planned=2)
        error = await refused(catalogs.call_tool("a", {}, planned=1))
    assert isinstance(error, ChangedSincePlanned)
    assert brain.count(CALL) == 1


# --- refused --------------------------------------------------------------------------------------


@rule("CALL-01")
@rule("CALL-19")
@ERAS
@everywhere
async def test_what_was_removed_is_not_called(era: str) -> None:
    brain, pipe = serve(era, "a", "b")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        pipe.send(brain.change())
        await catalogs.tools.get(at_least=2)
        error = await refused(catalogs.call_tool("a", {}, planned=1))
    assert isinstance(error, Removed)
    assert (error.refusal, error.kind, error.key) == (Refusal.REMOVED, Kind.TOOLS, "a")
    assert not brain.count(CALL)


@rule("CALL-02")
@ERAS
@everywhere
async def test_what_was_changed_is_refused_with_how_it_differs(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.lists["tools"] = [tool("a", description="other", title="A")]
        pipe.send(brain.change())
        await catalogs.tools.get(at_least=2)
        error = await refused(catalogs.call_tool("a", {}, planned=1))
        assert isinstance(error, ChangedSincePlanned)
        assert error.changed is not None
        assert error.changed.fields == ("description", "title")
        assert b"other" not in error.changed.before.canonical_json
        assert b"other" in error.changed.after.canonical_json
        await catalogs.call_tool("a", {}, planned=2)
    assert brain.count(CALL) == 1


@rule("CALL-21")
@everywhere
async def test_a_call_is_planned_on_what_the_model_was_given() -> None:
    brain, pipe = serve(MODERN, "a", "b")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        surface = catalogs.tools.surface()
        assert surface is not None
        surface.adopted(2)
        brain.lists["tools"] = [tool("a", description="other"), tool("b"), tool("c")]
        await catalogs.tools.refresh()
        for name in ("a", "c"):  # changed since, and not yet there
            assert isinstance(await refused(catalogs.call_tool(name, {})), ChangedSincePlanned)
        await catalogs.call_tool("b", {})
        later = catalogs.tools.surface()
        assert later is not None
        later.adopted(3)
        await catalogs.call_tool("a", {})
    assert [params["name"] for params in brain.params(CALL)] == ["b", "a"]


@rule("CALL-03")
@ERAS
@everywhere
async def test_arguments_that_do_not_fit_are_refused_by_their_place(era: str) -> None:
    brain, pipe = serve(era)
    brain.lists["tools"] = [typed("a")]
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        for arguments, place in (
            ({"n": SECRET}, ("/n", "type")),
            ({}, ("/n", "required")),
            ({"n": 1, "m": {SECRET}}, ("/m", "no JSON")),
        ):
            error = await refused(catalogs.call_tool("a", arguments))
            assert isinstance(error, InvalidArguments)
            assert (error.fault.path, error.fault.keyword) == place
            assert SECRET not in f"{error} {error!r} {error.__dict__}"
            assert error.__cause__ is None
    assert not brain.count(CALL)


@rule("CALL-14")
@rule("CALL-26")
@everywhere
async def test_a_schema_of_no_use_refuses_the_call_and_no_other() -> None:
    brain, pipe = serve(MODERN, "b")
    odd = {"type": "object", "$schema": "http://example.test/own"}
    brain.lists["tools"].append({"name": "a", "inputSchema": odd})
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        error = await refused(catalogs.call_tool("a", {}))
        await catalogs.call_tool("b", {})
    assert isinstance(error, UnusableSchema)
    assert error.refusal is Refusal.INVALID
    assert str(error) == "schema is of an unsupported dialect"


HOSTILE: dict[str, Frame] = {
    "network": {"$ref": "http://127.0.0.1:9/schema"},
    "file": {"properties": {"a": {"$ref": "file:///dev/zero"}}},
    "circle": {"allOf": [{"$ref": "#"}]},
    "pattern": {"properties": {"a": {"pattern": "("}}},
    "deep": {},
    "large": {"description": "x" * 5_000_000},
    "wrong": {"properties": {"a": 5}, "required": "a", "allOf": {}, "$defs": []},
}
for _ in range(80):
    HOSTILE["deep"] = {"not": HOSTILE["deep"]}


@rule("CALL-15")
@rule("CALL-16")
@rule("CALL-17")
@rule("CALL-26")
@pytest.mark.parametrize("name", HOSTILE)
@ERAS
@everywhere
async def test_a_hostile_schema_refuses_its_call(era: str, name: str) -> None:
    brain, pipe = serve(era)
    brain.lists["tools"] = [{"name": "a", "inputSchema": HOSTILE[name]}]
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert isinstance(await refused(catalogs.call_tool("a", {"a": {}})), UnusableSchema)
    assert not brain.count(CALL)


@rule("DISC-20")
@everywhere
async def test_two_definitions_of_a_name_make_it_uncallable() -> None:
    brain, pipe = serve(MODERN, "b")
    brain.lists["tools"] += [tool("a"), tool("a", description="other")]
    quick = policy(spoiled_in_row_max=1)
    async with Catalogs.connect(pipe.target, policy=quick) as catalogs:
        await catalogs.tools.get(max_stale_ms=1_000_000)
        error = await refused(catalogs.call_tool("a", {}))
        await catalogs.call_tool("b", {})
    assert isinstance(error, Ambiguous)


@rule("CALL-05")
@rule("CALL-06")
@ERAS
@everywhere
async def test_a_doubt_that_cannot_be_cleared_refuses_what_has_side_effects(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.answers[LIST] = lambda _: {"error": {"code": -32603, "message": SECRET}}
        pipe.send(brain.change())
        await brain.until_seen(LIST, 2)
        error = await refused(catalogs.call_tool("a", {}))
        assert isinstance(error, Unverifiable)
        assert error.doubt is not None
        assert SECRET not in str(error)
        await catalogs.call_tool("a", {}, risk=Risk.READ_ONLY)
    assert brain.count(CALL) == 1


@everywhere
async def test_without_any_list_nothing_is_called() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.answers[LIST] = lambda _: {"error": {"code": -32603, "message": "no"}}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        error = await refused(catalogs.call_tool("a", {}, risk=Risk.READ_ONLY))
    assert isinstance(error, Unverifiable)
    assert error.doubt is None or str(error.doubt.value) in str(error)
    assert not brain.count(CALL)


@rule("CALL-06")
@ERAS
@virtually
async def test_a_list_that_waits_for_credentials_refuses_the_call(era: str) -> None:
    brain, web = serve_http(era, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        web.fault = lambda _, frame: web.refusal(401) if frame.get("method") == LIST else None
        await catalogs.tools.refresh()
        error = await refused(catalogs.call_tool("a", {}))
    assert isinstance(error, Unauthorized)
    assert not brain.count(CALL)


@virtually
async def test_a_link_that_waits_for_credentials_refuses_calls_and_reads() -> None:
    _, web = serve_http(MODERN, "a")
    web.fault = lambda _, __: web.refusal(401)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        for call in (catalogs.call_tool("a", {}), catalogs.read_resource("x://1")):
            assert isinstance(await refused(call), Unauthorized)


@ERAS
@everywhere
async def test_a_kind_that_is_not_there_is_unsupported(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        for call in (catalogs.get_prompt("p"), catalogs.read_resource("x://1")):
            assert isinstance(await refused(call), Unsupported)
    assert not brain.count("prompts/get") + brain.count("resources/read")


@virtually
async def test_what_a_server_has_is_known_before_anything_is_sent() -> None:
    """The link is live, but the acknowledgement that listing waits for does not come."""
    brain, pipe = serve(MODERN, "a")
    brain.hold.add("subscriptions/listen")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await brain.until_held("subscriptions/listen")
        assert isinstance(await refused(catalogs.read_resource("x://1")), Unsupported)
    assert not brain.count("resources/read")


@ERAS
@everywhere
async def test_what_is_closed_is_unreachable(era: str) -> None:
    _, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
    error = await refused(catalogs.call_tool("a", {}))
    assert isinstance(error, Unreachable)
    assert isinstance(error, NotConnected)


@everywhere
async def test_a_generation_that_never_was_is_a_mistake_of_the_caller() -> None:
    _, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        for planned in (0, 2):
            with pytest.raises(ImpossibleAct, match=f"planned generation {planned}"):
                await catalogs.call_tool("a", {}, planned=planned)


# --- verified -------------------------------------------------------------------------------------


@rule("CALL-05")
@rule("CALL-22")
@ERAS
@everywhere
async def test_what_was_heard_counts_although_it_was_not_fed_yet(era: str) -> None:
    """The window would delay the walk for an hour; a call does not wait for it."""
    brain, pipe = serve(era, "a")
    slow = policy(gather_ms=3_600_000, gap_max_ms=3_600_000)
    async with Catalogs.connect(pipe.target, policy=slow) as catalogs:
        await catalogs.idle()
        serial = catalogs.session.listen.stream if era == MODERN else None
        catalogs.tell(i.NoticeHeard(Channel.TOOLS, serial, now_ms()))
        await catalogs.call_tool("a", {})
    assert methods(brain) == [LIST, LIST, CALL]


@rule("CALL-05")
@ERAS
@everywhere
async def test_two_calls_share_one_walk(era: str) -> None:
    brain, pipe = serve(era, "a", "b")
    async with Catalogs.connect(pipe.target, policy=policy(gather_ms=1_000)) as catalogs:
        await catalogs.idle()
        brain.hold.add(LIST)
        pipe.send(brain.change())
        while catalogs.tools.read().doubt is None:
            await catalogs._loop.moved()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(catalogs.call_tool, "a", {})
            tasks.start_soon(catalogs.call_tool, "b", {})
            request = await brain.until_held(LIST)
            assert not brain.count(CALL)
            pipe.reply(request)
    assert (brain.count(LIST), brain.count(CALL)) == (2, 2)


@rule("CALL-05")
@ERAS
@everywhere
async def test_a_server_that_never_stops_chattering_starves_no_call(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy(gap_base_ms=2)) as catalogs:
        await catalogs.idle()

        def chatter(frame: Frame) -> Frame:
            pipe.send(brain.change())
            return {"result": brain.page("tools", None)}

        brain.answers[LIST] = chatter
        pipe.send(brain.change())
        await brain.until_seen(LIST, 2)
        await catalogs.call_tool("a", {})
    assert brain.count(CALL) == 1


@rule("CALL-07")
@ERAS
@everywhere
async def test_a_change_does_not_cancel_what_runs(era: str) -> None:
    brain, pipe = serve(era, "a")
    brain.hold.add(CALL)
    answers: list[object] = []

    async def call() -> None:
        answers.append(await catalogs.call_tool("a", {}))

    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            request = await brain.until_held(CALL)
            brain.set_tools()
            pipe.send(brain.change())
            await catalogs.tools.get(at_least=2)
            assert not answers
            pipe.reply(request)
    assert len(answers) == 1
    assert not brain.count("notifications/cancelled")


# --- rejected -------------------------------------------------------------------------------------


@rule("CALL-08")
@rule("CALL-09")
@pytest.mark.parametrize(("code", "walks"), [(-32602, 2), (-32601, 2), (-32603, 1), (-32000, 1)])
@ERAS
@everywhere
async def test_a_rejection_is_told_once_and_may_bring_a_walk(
    era: str, code: int, walks: int
) -> None:
    brain, pipe = serve(era, "a")
    brain.answers[CALL] = lambda frame: {"error": error_of(frame, code)["error"]}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        with pytest.raises(MCPError) as caught:
            await catalogs.call_tool("a", {})
        await catalogs.idle()
    assert caught.value.code == code
    assert isinstance(caught.value, Rejected) is (code != -32000)  # may be a lost connection
    assert (brain.count(LIST), brain.count(CALL)) == (walks, 1)


def _mismatch(times: int) -> Callable[[Frame], Frame | None]:
    left = [times]

    def answer(frame: Frame) -> Frame | None:
        left[0] -= 1
        if left[0] >= 0:
            return {"error": error_of(frame, -32020)["error"]}
        return {"result": {"content": []}}

    return answer


@rule("CALL-10")
@everywhere
async def test_a_header_mismatch_brings_one_walk_and_one_more_try() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.answers[CALL] = _mismatch(1)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        await catalogs.call_tool("a", {})
        assert methods(brain) == [LIST, CALL, LIST, CALL]
        brain.answers[CALL] = _mismatch(3)
        assert isinstance(await refused(catalogs.call_tool("a", {})), Rejected)
    assert brain.count(CALL) == 4


@rule("CALL-02")
@rule("CALL-10")
@everywhere
async def test_the_second_try_never_sends_old_arguments_to_a_new_definition() -> None:
    brain, pipe = serve(MODERN, "a")
    mismatch = _mismatch(1)

    def change(frame: Frame) -> Frame | None:
        brain.lists["tools"] = [typed("a")]
        return mismatch(frame)

    brain.answers[CALL] = change
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        error = await refused(catalogs.call_tool("a", {}))
    assert isinstance(error, ChangedSincePlanned)
    assert brain.count(CALL) == 1


@virtually
async def test_a_transport_that_is_lost_is_no_rejection() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.answers[CALL] = lambda _: pipe.cut()
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        with pytest.raises(MCPError) as caught:
            await catalogs.call_tool("a", {})
        assert not isinstance(caught.value, CallRefused)
    assert brain.count(CALL) == 1


# --- headers --------------------------------------------------------------------------------------


@rule("CALL-11")
@rule("CALL-12")
@virtually
async def test_headers_repeat_arguments_by_the_schema_in_force() -> None:
    brain, web = serve_http(MODERN)
    brain.lists["tools"] = [typed("a", "Old")]
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        await catalogs.call_tool("a", {"n": 7})
        brain.lists["tools"] = [typed("a", "New")]
        web.change()
        await catalogs.tools.get(at_least=2)
        await catalogs.call_tool("a", {"n": 8})
        await catalogs.request(CALL, {"name": "a", "arguments": {"n": 9}}, name="a")
    sent = [headers for _, frame, headers in web.requests if frame.get("method") == CALL]
    told = [{k: v for k, v in one.items() if k.startswith("mcp-param")} for one in sent]
    assert told == [{"mcp-param-old": "7"}, {"mcp-param-new": "8"}, {}]


@rule("CALL-11")
@virtually
async def test_a_mismatch_over_http_is_mended_with_the_new_header() -> None:
    brain, web = serve_http(MODERN)
    brain.lists["tools"] = [typed("a"), typed("b", "Old")]

    def fault(request: Any, frame: Frame) -> Any:
        lacks = frame.get("method") == CALL and "mcp-param-n" not in request.headers
        return web.refusal(400, -32020) if lacks else None

    web.fault = fault
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.lists["tools"] = [typed("a", "N")]
        error = await refused(catalogs.call_tool("a", {"n": 1}))
        assert isinstance(error, ChangedSincePlanned)
        assert error.changed is not None
        assert error.changed.fields == ("inputSchema",)
        await catalogs.call_tool("a", {"n": 1})
    assert brain.count(LIST) == 2


@virtually
async def test_legacy_calls_carry_no_such_headers() -> None:
    brain, web = serve_http(LEGACY)
    brain.lists["tools"] = [typed("a", "N")]
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.call_tool("a", {"n": 7})
    sent = next(h for _, frame, h in web.requests if frame.get("method") == CALL)
    assert not [name for name in sent if name.startswith("mcp-param")]


# --- whose it is ----------------------------------------------------------------------------------


@rule("AUTH-03")
@everywhere
async def test_nothing_of_a_private_list_is_told_to_somebody_else() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.hints["cacheScope"] = "private"
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.lists["tools"] = [tool("a", description="for somebody else")]
        catalogs.change_credentials(Credentials(partition="other"))
        await catalogs.tools.get(at_least=2)
        error = await refused(catalogs.call_tool("a", {}, planned=1))
    assert isinstance(error, ChangedSincePlanned)
    assert error.changed is None


@everywhere
async def test_after_a_withdrawal_a_call_is_planned_on_the_next_list() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.hints["cacheScope"] = "private"
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.lists["tools"] = [tool("a", description="for somebody else")]
        catalogs.change_credentials(Credentials(partition="other"))
        assert catalogs.tools.read().snapshot is None
        await catalogs.call_tool("a", {})
    assert methods(brain) == [LIST, LIST, CALL]


@rule("AUTH-03")
@ERAS
@everywhere
async def test_a_call_that_waits_is_not_made_for_somebody_else(era: str) -> None:
    brain, pipe = serve(era, "a")
    brain.hold.add(LIST)
    refusals: list[CallRefused] = []

    async def call() -> None:
        refusals.append(await refused(catalogs.call_tool("a", {})))

    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await brain.until_held(LIST)
            brain.hold.clear()
            catalogs.change_credentials(Credentials(partition="other"))
        await catalogs.idle()
    assert [type(error) for error in refusals] == [Unauthorized]
    assert not brain.count(CALL)
