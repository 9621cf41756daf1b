"""What the SDK does that its bindings here work around: specs/sdk-notes.md, by the same names.

Each test shows the bare SDK misbehave, so it fails once that is fixed; then the workaround that the
note names can go.
"""

import json
import warnings
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import _parse_line
from mcp.server import NotificationOptions, Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    ListToolsResult,
    Tool,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from support.bare import bare
from support.brain import LEGACY, MODERN, Frame, notice
from support.live import LIST
from support.loops import virtually
from support.speaker import speaking

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")
DISCOVER = "server/discover"


# --- one failed exchange ends the transport -------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.ConnectError("scripted"),
        httpx2.Response(307, headers={"location": "//@@@@???"}),
        httpx2.Response(
            200,
            headers={"content-encoding": "gzip", "content-type": "application/json"},
            stream=httpx2.ByteStream(b"no gzip"),
        ),
    ],
)
@virtually
async def test_one_failed_exchange_ends_the_transport(answer: Any) -> None:
    async def ask() -> None:
        async with bare(MODERN) as sdk:
            sdk.web.fault = lambda _, __: answer
            await sdk.send({"id": 1, "method": DISCOVER, "params": {}}, MODERN)
            await anyio.sleep_forever()

    with pytest.raises(ExceptionGroup):
        await ask()


# --- the GET stream -------------------------------------------------------------------------------


@virtually
async def test_the_get_stream_is_given_up_after_two_failures() -> None:
    async with bare(LEGACY) as sdk:
        sdk.web.fault = lambda r, _: httpx2.Response(503) if r.method == "GET" else None
        await sdk.begin()
        await anyio.sleep(600)
        assert len(sdk.web.verbs("GET")) == 2


@virtually
async def test_no_get_stream_without_a_session() -> None:
    async with bare(LEGACY) as sdk:
        sdk.web.with_session = False
        await sdk.begin()
        await anyio.sleep(600)
        assert not sdk.web.verbs("GET")


@virtually
async def test_a_lost_session_is_deleted_all_the_same() -> None:
    async with bare(LEGACY) as sdk:
        await sdk.begin()
        sdk.web.sessions.clear()
        await sdk.send({"id": 1, "method": LIST})
        await sdk.read.receive()
    assert len(sdk.web.verbs("DELETE")) == 1


# --- requests and notifications -------------------------------------------------------------------


@virtually
async def test_a_cancelled_request_keeps_its_connection_in_the_legacy_era() -> None:
    async with bare(LEGACY) as sdk:
        sdk.web.brain.hold.add(LIST)
        sdk.web.streaming.add(LIST)
        await sdk.begin()
        await sdk.send({"id": 1, "method": LIST})
        await sdk.send(notice("notifications/cancelled", requestId=1))
        await anyio.sleep(600)
        assert sdk.web.bodies[1].open


@virtually
async def test_a_notification_without_an_answer_blocks_the_rest() -> None:
    async with bare(LEGACY) as sdk:
        await sdk.begin()
        handle = sdk.web.handle_async_request

        async def hang(request: httpx2.Request) -> httpx2.Response:
            if b"notifications/x" in request.content:
                await anyio.sleep_forever()
            return await handle(request)

        sdk.web.handle_async_request = hang  # type: ignore[method-assign]
        await sdk.send(notice("notifications/x"))
        with anyio.move_on_after(600) as limit:
            await sdk.send({"id": 1, "method": LIST})
            await sdk.read.receive()
        assert limit.cancelled_caught
        assert not sdk.web.brain.count(LIST)


@virtually
async def test_a_cut_stream_is_resumed_in_the_modern_era_too() -> None:
    """Which has no resumption: the end of a subscription is known only after two more tries."""
    async with bare(MODERN) as sdk:
        await sdk.send({"id": 1, "method": LIST, "params": {"_meta": {}}}, MODERN)
        await sdk.read.receive()
        sdk.web.brain.hold.add(LIST)
        sdk.web.streaming.add(LIST)
        await sdk.send({"id": 2, "method": LIST, "params": {"_meta": {}}}, MODERN)
        await anyio.wait_all_tasks_blocked()
        sdk.web.bodies[2].prime("7", 1_000)
        sdk.web.bodies[2].cut()
        await sdk.web.brain.until(lambda: sdk.web.verbs("GET"))


@pytest.mark.parametrize("end", ["end", "cut"])
@virtually
async def test_a_cut_answer_is_told_as_an_error_of_the_peer(end: str) -> None:
    """Told apart from a real one only by its words, which ``hearing`` knows."""
    async with bare(LEGACY) as sdk:
        sdk.web.brain.hold.add(LIST)
        sdk.web.streaming.add(LIST)
        await sdk.begin()
        await sdk.send({"id": 1, "method": LIST})
        await anyio.wait_all_tasks_blocked()
        getattr(sdk.web.bodies[1], end)()
        item = await sdk.read.receive()
        assert isinstance(item.message, JSONRPCError)
        assert item.message.error.code == -32000
        assert item.message.error.message.startswith("SSE stream")


@virtually
async def test_generators_are_left_unfinished() -> None:
    async with bare(LEGACY) as sdk:
        sdk.web.streaming.add(LIST)
        await sdk.begin()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            await sdk.send({"id": 1, "method": LIST})
            await sdk.read.receive()
            await anyio.wait_all_tasks_blocked()
        assert [w for w in caught if "httpx2" in str(w.message)]


# --- frames and servers ---------------------------------------------------------------------------


@pytest.mark.parametrize("body", [{"result": []}, {"result": None}, {"error": {"code": "x"}}])
def test_an_answer_of_the_wrong_shape_is_no_frame(body: Frame) -> None:
    """On a pipe it is dropped, so the request is waited for until its limit."""
    with pytest.raises(ValueError, match="validation error"):
        jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", "id": "1", **body})


ARRAY = [notice("notifications/tools/list_changed")]


@pytest.mark.parametrize("array", [ARRAY, [{"jsonrpc": "2.0", "id": "1", "result": {}}]])
def test_arrays_of_messages_are_refused_on_a_pipe(array: list[Frame]) -> None:
    """Whatever the version: the transport hands up the error, which holds the array."""
    item = _parse_line(json.dumps(array))
    assert isinstance(item, ValidationError)
    assert item.errors()[0]["input"] == array


@pytest.mark.parametrize("streaming", [True, False])
@virtually
async def test_arrays_of_messages_are_refused_over_http(streaming: bool) -> None:
    """The answer in it is lost: the request has failed."""
    async with bare(LEGACY) as sdk:
        await sdk.begin()
        array = json.dumps([{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}])
        kind, body = "application/json", array
        if streaming:
            kind, body = "text/event-stream", f"data: {array}\n\n"
        answer = httpx2.Response(200, headers={"content-type": kind}, content=body.encode())
        sdk.web.fault = lambda _, frame: answer if frame.get("method") == LIST else None
        await sdk.send({"id": 1, "method": LIST}, "2025-03-26")
        item = await sdk.read.receive()
        assert isinstance(item.message, JSONRPCError)
        assert item.message.error.code == -32700


@virtually
async def test_arrays_of_messages_are_refused_on_the_get_stream() -> None:
    async with bare(LEGACY) as sdk:
        await sdk.begin()
        sdk.web.streams[0].send_bytes(f"data: {json.dumps(ARRAY)}\n\n".encode())
        assert isinstance(await sdk.read.receive(), ValidationError)


@virtually
async def test_requests_of_a_modern_server_are_answered() -> None:
    sends, read = anyio.create_memory_object_stream[SessionMessage | Exception](4)
    write, receives = anyio.create_memory_object_stream[SessionMessage](4)

    async def serve() -> JSONRPCMessage:
        asked = (await receives.receive()).message
        assert isinstance(asked, JSONRPCRequest)
        offer = {"supportedVersions": [MODERN], "capabilities": {}, "ttlMs": 0}
        result = {"resultType": "complete", "cacheScope": "private", **offer}
        discovered = JSONRPCResponse(jsonrpc="2.0", id=asked.id, result=result)
        await sends.send(SessionMessage(discovered))
        ping = JSONRPCRequest(jsonrpc="2.0", id="of the server", method="ping")
        await sends.send(SessionMessage(ping))
        return (await receives.receive()).message

    async with sends, receives, ClientSession(read, write) as session:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.discover)
            answer = await serve()
        assert session.protocol_version == MODERN
    assert answer.model_dump(exclude_none=True).get("id") == "of the server"


def test_a_legacy_server_over_http_declares_no_list_changed() -> None:
    """The HTTP application asks for the default options, and there is no way to give it others."""
    server: Server[Any] = Server("x", on_list_tools=lambda *_: None)  # type: ignore[arg-type]
    tools = server.create_initialization_options().capabilities.tools
    assert tools is not None
    assert tools.list_changed is False
    declared = NotificationOptions(tools_changed=True)
    tools = server.create_initialization_options(declared).capabilities.tools
    assert tools is not None
    assert tools.list_changed is True


# --- the server's side ----------------------------------------------------------------------------


def _listing(**more: Any) -> Server[Any]:
    """A server with one tool, and a subscription for whatever is asked."""

    async def tools(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="a", input_schema={"type": "object"})])

    return Server("x", on_list_tools=tools, **more)


def _nothing() -> str:
    return "nothing"


def test_a_modern_server_declares_all_channels_or_none() -> None:
    async def never(*_: Any) -> Any: ...

    for handlers, declared in (({}, False), ({"on_subscriptions_listen": never}, True)):
        server = _listing(on_list_prompts=never, **handlers)
        found = server.get_capabilities(protocol_version=MODERN)
        assert found.tools is not None
        assert found.prompts is not None
        assert found.tools.list_changed is found.prompts.list_changed is declared


@virtually
async def test_a_subscription_is_granted_whatever_it_asks_for() -> None:
    server = _listing(on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()))
    async with speaking(server, MODERN) as speaker:
        number = await speaker.listen(promptsListChanged=True)
        granted = speaker.tagged(number)[0]["params"]["notifications"]
        assert granted == {"promptsListChanged": True}


@virtually
async def test_every_event_is_told_to_everybody() -> None:
    """Not merged, whether or not anything differs, and whatever the authorization."""
    bus = InMemorySubscriptionBus()
    server = _listing(on_subscriptions_listen=ListenHandler(bus))
    async with speaking(server, MODERN, "one") as one, speaking(server, MODERN, "two") as two:
        for speaker in (one, two):
            await speaker.listen(toolsListChanged=True)
        for _ in range(100):
            await bus.publish(ToolsListChanged())
        await anyio.sleep(1)
        assert len(one.changes()) == len(two.changes()) == 100


@virtually
async def test_a_subscriber_that_does_not_read_is_dropped() -> None:
    bus = InMemorySubscriptionBus()
    listen = ListenHandler(bus, max_buffered_events=1)
    async with speaking(_listing(on_subscriptions_listen=listen), MODERN) as speaker:
        number = await speaker.listen(toolsListChanged=True)
        for listener in list(bus._listeners.values()):
            for _ in range(3):  # at once: before anybody can read
                listener(ToolsListChanged())
        assert (await speaker.answer(number))["resultType"] == "complete"


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@virtually
async def test_a_high_level_server_tells_nobody_of_an_added_tool(era: str) -> None:
    server: MCPServer[Any] = MCPServer("x")
    async with speaking(server, era) as speaker:
        await speaker.begin()
        if era == MODERN:
            await speaker.listen(toolsListChanged=True)
        server.add_tool(_nothing, name="a")
        await anyio.sleep(1)
        assert speaker.changes() == []


@virtually
async def test_a_high_level_server_tells_no_legacy_session() -> None:
    """And declares to it that it will not."""
    server: MCPServer[Any] = MCPServer("x")

    @server.tool()
    async def change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        return "changed"

    async with speaking(server, LEGACY) as speaker:
        assert (await speaker.begin())["tools"] == {"listChanged": False}
        await speaker.ask("tools/call", {"name": "change"})
        await anyio.sleep(1)
        assert speaker.changes() == []


@virtually
async def test_a_high_level_server_lists_in_the_order_of_registration() -> None:
    server: MCPServer[Any] = MCPServer("x")
    for name in ("a", "b"):
        server.add_tool(_nothing, name=name)
    async with speaking(server, MODERN) as speaker:
        assert await speaker.keys() == ["a", "b"]
        server.remove_tool("a")
        server.add_tool(_nothing, name="a")
        assert await speaker.keys() == ["b", "a"]


def test_a_high_level_server_hides_its_low_level_one() -> None:
    """So that ``mcpserver.py`` has to reach for it, and for its bus."""
    public = [name for name in dir(MCPServer("x")) if not name.startswith("_")]
    values = [getattr(MCPServer("x"), name, None) for name in public if name != "session_manager"]
    assert not any(isinstance(value, Server | InMemorySubscriptionBus) for value in values)
