"""What comes of calls on live sessions: results that are checked, prompts, questions on the way."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.client.session import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from relist_mcp import (
    CallRefused,
    Catalogs,
    ChangedSincePlanned,
    Credentials,
    Handlers,
    InvalidArguments,
    InvalidResult,
    Removed,
    Unauthorized,
)
from support.brain import MODERN, Brain, Frame, tool
from support.calls import CALL, SECRET, refused, typed
from support.live import ERAS, policy, serve
from support.loops import everywhere, virtually

rule = pytest.mark.rule


# --- results --------------------------------------------------------------------------------------


def _structured(value: object) -> Callable[[Frame], Frame]:
    return lambda _: {"result": {"content": [], "structuredContent": value}}


@rule("CALL-18")
@ERAS
@everywhere
async def test_a_structured_result_is_held_to_the_schema_of_its_tool(era: str) -> None:
    brain, pipe = serve(era, "b")
    brain.lists["tools"].append(tool("a", outputSchema=typed("a")["inputSchema"]))
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        brain.answers[CALL] = _structured({"n": 1})
        assert (await catalogs.call_tool("a", {})).structured_content == {"n": 1}
        brain.answers[CALL] = _structured({"n": SECRET})
        with pytest.raises(InvalidResult, match="'/n'") as caught:
            await catalogs.call_tool("a", {})
        assert SECRET not in str(caught.value)
        assert caught.value.result.structured_content == {"n": SECRET}
        assert (await catalogs.call_tool("b", {})).structured_content == {"n": SECRET}
        del brain.answers[CALL]
        with pytest.raises(InvalidResult, match="missing"):
            await catalogs.call_tool("a", {})
        brain.answers[CALL] = lambda _: {"result": {"content": [], "isError": True}}
        assert (await catalogs.call_tool("a", {})).is_error


@rule("CALL-18")
@ERAS
@everywhere
async def test_the_output_schema_is_that_of_when_the_call_was_sent(era: str) -> None:
    brain, pipe = serve(era)
    brain.lists["tools"] = [tool("a", outputSchema={"type": "object", "required": ["old"]})]
    brain.answers[CALL] = _structured({"old": 1})
    brain.hold.add(CALL)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(catalogs.call_tool, "a", {})  # raises if it is not held to the old one
            request = await brain.until_held(CALL)
            brain.lists["tools"] = [tool("a", outputSchema={"type": "object", "required": ["new"]})]
            pipe.send(brain.change())
            await catalogs.tools.get(at_least=2)
            pipe.reply(request)


@everywhere
async def test_an_output_schema_of_no_use_leaves_the_result_to_the_host() -> None:
    brain, pipe = serve(MODERN)
    brain.lists["tools"] = [tool("a", outputSchema={"$ref": "https://example.test/schema"})]
    brain.answers[CALL] = _structured({"n": 1})
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        with pytest.raises(InvalidResult, match="outside") as caught:
            await catalogs.call_tool("a", {})
    assert caught.value.fault is None
    assert caught.value.result.structured_content == {"n": 1}


@pytest.mark.parametrize("result", [{}, {"content": 5}, {"content": [], "resultType": "odd"}])
@everywhere
async def test_a_result_of_the_wrong_shape_is_an_error(result: Frame) -> None:
    brain, pipe = serve(MODERN, "a")
    brain.answers[CALL] = lambda _: {"result": result}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        with pytest.raises(MCPError, match="malformed result of tools/call"):
            await catalogs.call_tool("a", {})


# --- prompts --------------------------------------------------------------------------------------


def _prompt(**more: Any) -> Frame:
    return {"name": "p", "arguments": [{"name": "who", "required": True}, {"name": "how"}], **more}


@rule("CALL-03")
@ERAS
@everywhere
async def test_prompts_pass_the_same_gate(era: str) -> None:
    brain, pipe = serve(era)
    brain.lists["prompts"] = [_prompt()]
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        made = await catalogs.get_prompt("p", {"who": "me"}, planned=1)
        assert made.messages[0].content == TextContent(type="text", text="p")
        for arguments, place in (({}, "/who"), ({"who": "me", "how": 5}, "/how")):
            wrong: Any = arguments
            error = await refused(catalogs.get_prompt("p", wrong))
            assert isinstance(error, InvalidArguments)
            assert error.fault.path == place
        assert isinstance(await refused(catalogs.get_prompt("q")), Removed)
        brain.lists["prompts"] = [_prompt(description="other")]
        await catalogs.prompts.refresh()
        error = await refused(catalogs.get_prompt("p", {"who": "me"}, planned=1))
        assert isinstance(error, ChangedSincePlanned)
    assert brain.count("prompts/get") == 1


@rule("RES-18")
@ERAS
@everywhere
async def test_a_prompt_is_rendered_anew_each_time(era: str) -> None:
    brain, pipe = serve(era)
    brain.lists["prompts"] = [_prompt()]
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        for _ in range(2):
            await catalogs.get_prompt("p", {"who": "me"})
    assert brain.count("prompts/get") == 2


@pytest.mark.parametrize("listed", [5, {}, [5], [{}], [{"name": 5, "required": True}]])
@everywhere
async def test_a_prompt_whose_arguments_are_no_list_asks_for_little(listed: object) -> None:
    brain, pipe = serve(MODERN)
    brain.lists["prompts"] = [{"name": "p", "arguments": listed}]
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        if listed == [{"name": 5, "required": True}]:  # what it asks for cannot be given
            error = await refused(catalogs.get_prompt("p", {}))
            assert isinstance(error, InvalidArguments)
            assert error.fault.path == "/5"
        else:
            await catalogs.get_prompt("p", {})


# --- several rounds -------------------------------------------------------------------------------


def _asking(final: Frame, **asked: Any) -> Callable[[Frame], Frame]:
    """Asks for input first; whoever answers gets the final result."""

    def answer(frame: Frame) -> Frame:
        if "inputResponses" in frame["params"] or "requestState" in frame["params"]:
            return {"result": final}
        return {"result": {"resultType": "input_required", **asked}}

    return answer


QUESTION: Frame = {
    "q": {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "who?",
            "requestedSchema": {"type": "object", "properties": {"who": {"type": "string"}}},
        },
    }
}


async def _elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"who": "me"})


async def _all_three(catalogs: Catalogs) -> None:
    await catalogs.call_tool("a", {})
    await catalogs.get_prompt("p", {"who": "x"})
    await catalogs.read_resource("x://1")


THREE: dict[str, Frame] = {
    CALL: {"content": []},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": [{"uri": "x://1", "text": "x"}], "ttlMs": 60_000},
}


def _serve_three(**asked: Any) -> tuple[Brain, Any]:
    brain, pipe = serve(MODERN, "a")
    brain.lists |= {"prompts": [_prompt()], "resources": [{"name": "r", "uri": "x://1"}]}
    for method, final in THREE.items():
        brain.answers[method] = _asking(final, **asked)
    return brain, pipe


@rule("RES-09")
@everywhere
async def test_what_the_server_asks_meanwhile_is_answered_by_the_handlers() -> None:
    brain, pipe = _serve_three(inputRequests=QUESTION, requestState="opaque")
    handlers = Handlers(elicitation=_elicit)
    async with Catalogs.connect(pipe.target, policy=policy(), handlers=handlers) as catalogs:
        await _all_three(catalogs)
        await catalogs.read_resource("x://1")  # such a read is not kept
    for method in THREE:
        first, second = brain.params(method)[:2]
        assert second["requestState"] == "opaque"
        response = {"action": "accept", "content": {"who": "me"}}
        assert second["inputResponses"] == {"q": response}
        assert {key: second.get(key) for key in first} == first
    assert brain.count("resources/read") == 4


@everywhere
async def test_without_a_handler_a_question_is_a_clear_error() -> None:
    brain, pipe = _serve_three(inputRequests=QUESTION)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        for ask in (
            lambda: catalogs.call_tool("a", {}),
            lambda: catalogs.get_prompt("p", {"who": "x"}),
            lambda: catalogs.read_resource("x://1"),
        ):
            with pytest.raises(MCPError, match="not supported") as caught:
                await ask()
            assert not isinstance(caught.value, CallRefused)
    assert [brain.count(method) for method in THREE] == [1, 1, 1]


@virtually
async def test_questions_without_end_are_an_error() -> None:
    brain, pipe = serve(MODERN, "a")
    endless = {"resultType": "input_required", "requestState": "again"}
    brain.answers[CALL] = lambda _: {"result": endless}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        with pytest.raises(MCPError, match="more than 10 times"):
            await catalogs.call_tool("a", {})
    assert brain.count(CALL) == 11


@pytest.mark.parametrize("asked", [{}, {"inputRequests": 5}, {"inputRequests": {"q": 5}}])
@everywhere
async def test_a_question_of_the_wrong_shape_is_an_error(asked: Frame) -> None:
    brain, pipe = serve(MODERN, "a")
    brain.answers[CALL] = lambda _: {"result": {"resultType": "input_required", **asked}}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        with pytest.raises(MCPError, match="malformed"):
            await catalogs.call_tool("a", {})


@rule("AUTH-03")
@everywhere
async def test_questions_to_one_user_are_not_answered_as_another() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.answers[CALL] = _asking({"content": []}, inputRequests=QUESTION)

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        catalogs.change_credentials(Credentials(partition="other"))
        await catalogs._loop.moved()
        return ElicitResult(action="accept", content={"who": "me"})

    handlers = Handlers(elicitation=elicit)
    async with Catalogs.connect(pipe.target, policy=policy(), handlers=handlers) as catalogs:
        error = await refused(catalogs.call_tool("a", {}))
    assert isinstance(error, Unauthorized)
    assert brain.count(CALL) == 1


@rule("CALL-02")
@everywhere
async def test_an_answer_is_not_sent_to_a_tool_that_changed_while_it_was_thought_about() -> None:
    """The server is not running anything: it asked, and each round is a request of its own."""
    brain, pipe = serve(MODERN, "a")
    brain.answers[CALL] = _asking({"content": []}, inputRequests=QUESTION)

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        brain.lists["tools"] = [tool("a", description="and mails it")]
        pipe.send(brain.change())
        await brain.until_seen("tools/list", 2)
        return ElicitResult(action="accept", content={"who": "me"})

    handlers = Handlers(elicitation=elicit)
    async with Catalogs.connect(pipe.target, policy=policy(), handlers=handlers) as catalogs:
        error = await refused(catalogs.call_tool("a", {}))
    assert isinstance(error, ChangedSincePlanned)
    assert error.changed is not None
    assert error.changed.fields == ("description",)
    assert brain.count(CALL) == 1
