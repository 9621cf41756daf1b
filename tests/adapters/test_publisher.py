"""The server's side on the SDK's servers: what is declared, served and told, and to whom."""

import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest
from attrs import evolve
from mcp import MCPError
from mcp.server import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, TextContent, Tool

import support.published
from relist.errors import ImpossibleAct
from relist.machine import Hit
from relist.policy import Policy
from relist.publisher import PublisherPolicy
from relist.values import CHANNELS, KINDS, Capabilities, Channel, Kind, ListenPhase
from relist_mcp import Catalogs, Http
from relist_mcp.mcpserver import publish
from relist_mcp.notices import Mailbox
from relist_mcp.publisher import Publishing
from support.brain import LEGACY, MODERN, notice
from support.live import ERAS, names
from support.loops import everywhere, really, run_really, virtually
from support.ports import free_port
from support.speaker import Speaker, speaking

rule = pytest.mark.rule
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")
TOOLS = Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.TOOLS}))
EVERYTHING = Capabilities(frozenset(KINDS), frozenset(CHANNELS), subscribe=True)
QUICK = PublisherPolicy(merge_ms=2, gap_ms=5, page_max=2)
URI = "file:///one"
TOLD = "notifications/tools/list_changed"


def tools(keys: str) -> list[Tool]:
    return [Tool(name=key, input_schema={"type": "object"}) for key in keys]


async def _call(_: Any, params: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=params.name)])


def low(offer: Capabilities = TOOLS, **more: Any) -> tuple[Server[Any], Publishing]:
    """A low-level server with the tools a, b and c."""
    server: Server[Any] = Server("low", on_call_tool=_call)
    publishing = Publishing(server, offer, **{"policy": QUICK, **more})
    publishing.commit(Kind.TOOLS, tools("cab"))
    return server, publishing


def speaks(era: str) -> Policy:
    """A client of this era."""
    only: dict[str, Any] = {} if era == MODERN else {"modern_versions": ()}
    return Policy(seed=b"t", gather_ms=2, gap_base_ms=2, **only)


@asynccontextmanager
async def hearing(
    server: Server[Any] | MCPServer[Any], era: str, scope: str | None = None, **asked: Any
) -> AsyncGenerator[Speaker]:
    """A client that has read the tools, and is told: in the modern era it has to ask for that."""
    async with speaking(server, era, scope) as speaker:
        await speaker.begin()
        if era == MODERN:
            await speaker.listen(**{"toolsListChanged": True, **asked})
        await speaker.keys()
        yield speaker


async def settled() -> None:
    """Whatever was to be told has been told by now."""
    await anyio.sleep(3)


async def until(catalogs: Catalogs, listed: list[str]) -> None:
    """Wait until this is what is read, fresh."""
    while (reading := catalogs.tools.read()).hit is not Hit.HIT or names(reading) != listed:
        await catalogs.tools._moved()


# --- our own client -------------------------------------------------------------------------------


@ERAS
@everywhere
async def test_a_client_ends_fresh_with_the_right_list(era: str) -> None:
    server, publishing = low()
    async with Catalogs.connect(server, policy=speaks(era)) as catalogs:
        assert names(await catalogs.tools.get()) == ["a", "b", "c"]
        await catalogs.idle()
        assert catalogs.session.catalog(Kind.TOOLS).vouched
        publishing.commit(Kind.TOOLS, tools("zyx"))
        await until(catalogs, ["x", "y", "z"])


@rule("EMIT-04")
@ERAS
@virtually
async def test_a_burst_gives_no_more_notices_than_the_ceiling(era: str) -> None:
    server, publishing = low(policy=PublisherPolicy(merge_ms=10, gap_ms=100))
    async with (
        hearing(server, era) as speaker,
        Catalogs.connect(server, policy=speaks(era)) as catalogs,
    ):
        await catalogs.idle()
        for number in range(1_000):
            publishing.commit(Kind.TOOLS, tools("abcdefg"[number % 5 :]))
            await speaker.keys()
            await anyio.sleep(0.001)
        await settled()
        told_ms = [round(1000 * at) for at, _ in speaker.changes()]
        assert 10 <= len(told_ms) <= 11
        assert min(b - a for a, b in pairwise(told_ms)) >= 100
        await catalogs.idle()
        assert catalogs.tools.read().hit is Hit.HIT
        assert names(catalogs.tools.read()) == ["e", "f", "g"]


@everywhere
async def test_a_burst_within_one_moment_is_one_notice() -> None:
    server, publishing = low()
    async with hearing(server, MODERN) as speaker:
        for number in range(1_000):
            publishing.commit(Kind.TOOLS, tools("xy"[number % 2]))
        await speaker.until(speaker.changes)
        assert await speaker.keys() == ["y"]
        assert len(speaker.changes()) == 1


@virtually
async def test_a_subscription_that_the_server_closes_is_renewed() -> None:
    server, publishing = low()
    async with Catalogs.connect(server, policy=speaks(MODERN)) as catalogs:
        await catalogs.idle()
        publishing.close()
        publishing.commit(Kind.TOOLS, tools("z"))
        await until(catalogs, ["z"])
        await catalogs.idle()
        assert catalogs.session.listen.phase is ListenPhase.OPEN


# --- what is told, to whom ------------------------------------------------------------------------


@rule("EMIT-03")
@ERAS
@virtually
async def test_when_the_notice_comes_the_list_is_in_force(era: str) -> None:
    server, publishing = low()
    async with hearing(server, era) as speaker:
        publishing.commit(Kind.TOOLS, tools("x"))
        await speaker.until(speaker.changes)
        assert await speaker.keys() == ["x"]


@rule("EMIT-04")
@ERAS
@virtually
async def test_a_change_waits_for_others_as_long_as_the_policy_says(era: str) -> None:
    server, publishing = low(policy=PublisherPolicy(merge_ms=200))
    async with hearing(server, era) as speaker:
        await anyio.sleep(7)
        begun = anyio.current_time()
        publishing.commit(Kind.TOOLS, tools("x"))
        await settled()
        assert [round(at - begun, 1) for at, _ in speaker.changes()] == [0.2]


@rule("EMIT-05")
@ERAS
@virtually
async def test_no_notice_without_a_visible_change(era: str) -> None:
    server, publishing = low()
    async with hearing(server, era) as speaker:
        publishing.commit(Kind.TOOLS, tools("bca"))
        publishing.commit(Kind.TOOLS, tools("x"))
        publishing.commit(Kind.TOOLS, tools("abc"))
        await settled()
        assert speaker.changes() == []


@rule("EMIT-01", "CAP-22")
@ERAS
@virtually
async def test_nothing_is_declared_or_told_beyond_the_offer(era: str) -> None:
    kinds = frozenset({Kind.TOOLS, Kind.PROMPTS, Kind.TEMPLATES})
    server, publishing = low(Capabilities(kinds, frozenset({Channel.PROMPTS})))
    async with speaking(server, era) as speaker:
        declared = await speaker.begin()
        assert declared["tools"] == {"listChanged": False}
        assert declared["prompts"] == {"listChanged": True}
        assert declared["resources"] == {"listChanged": False, "subscribe": False}
        if era == MODERN:
            everything = {"toolsListChanged": True, "resourcesListChanged": True}
            number = await speaker.listen(**everything, resourceSubscriptions=[URI])
            assert speaker.tagged(number)[0]["params"]["notifications"] == {}
        await speaker.keys()
        publishing.commit(Kind.TOOLS, tools("x"))
        publishing.updated(URI)
        await settled()
        assert [frame for _, frame in speaker.frames if "acknowledged" not in frame["method"]] == []


@rule("EMIT-08", "EMIT-09", "EMIT-10", "EMIT-11", "EMIT-27", "SUB-38")
@virtually
async def test_a_subscription_is_acknowledged_tagged_filtered_and_ended_in_good_order() -> None:
    server, publishing = low(EVERYTHING)
    async with speaking(server, MODERN) as speaker:
        await speaker.keys()
        wants_tools = await speaker.listen(toolsListChanged=True)
        wants_one = await speaker.listen(resourceSubscriptions=[URI], promptsListChanged=True)
        publishing.commit(Kind.TOOLS, tools("x"))
        publishing.updated(URI)
        publishing.updated("file:///two")
        await settled()
        publishing.close()
        ended = [await speaker.answer(number) for number in (wants_tools, wants_one)]
        assert [frame["method"] for frame in speaker.tagged(wants_tools)] == [
            "notifications/subscriptions/acknowledged",
            TOLD,
        ]
        granted = {"promptsListChanged": True, "resourceSubscriptions": [URI]}
        assert speaker.tagged(wants_one)[0]["params"]["notifications"] == granted
        assert speaker.updates() == [URI]
        assert len(speaker.frames) == 4
        tag = "io.modelcontextprotocol/subscriptionId"
        assert [result["_meta"][tag] for result in ended] == [wants_tools, wants_one]


@rule("EMIT-28")
@virtually
async def test_after_a_cancellation_nothing_more_is_sent() -> None:
    server, publishing = low()
    async with hearing(server, MODERN) as speaker:
        await speaker.say(notice("notifications/cancelled", requestId=1))
        await speaker.say(notice("notifications/cancelled", requestId=2))
        await anyio.wait_all_tasks_blocked()
        publishing.commit(Kind.TOOLS, tools("x"))
        await settled()
        assert speaker.changes() == []


@rule("EMIT-07", "EMIT-26")
@virtually
async def test_a_session_is_told_once_and_only_after_initialized() -> None:
    server, publishing = low()
    async with speaking(server, LEGACY) as early, hearing(server, LEGACY) as twice:
        await early.ask("initialize", {"protocolVersion": LEGACY, **_CLIENT})
        await early.keys()
        await twice.say(notice("notifications/initialized"))
        await anyio.wait_all_tasks_blocked()
        publishing.commit(Kind.TOOLS, tools("x"))
        await settled()
        assert early.changes() == []
        assert len(twice.changes()) == 1


_CLIENT: dict[str, Any] = {"capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


@virtually
async def test_a_session_subscribes_to_single_resources() -> None:
    server, publishing = low(EVERYTHING, policy=PublisherPolicy(uris_max=1))
    async with hearing(server, LEGACY) as speaker, hearing(server, LEGACY) as other:
        assert await speaker.ask("resources/subscribe", {"uri": URI}) == {}
        refused = await speaker.ask("resources/subscribe", {"uri": "file:///two"})
        assert refused["code"] == -32603
        publishing.updated(URI)
        publishing.updated("file:///two")
        await settled()
        assert await speaker.ask("resources/unsubscribe", {"uri": URI}) == {}
        publishing.updated(URI)
        publishing.commit(Kind.TOOLS, tools("x"))
        await settled()
        assert (speaker.updates(), other.updates()) == ([URI], [])
        assert len(speaker.changes()) == len(other.changes()) == 1


@virtually
async def test_a_session_subscribes_only_after_initialized() -> None:
    server, _ = low(EVERYTHING)
    async with speaking(server, LEGACY) as speaker:
        await speaker.ask("initialize", {"protocolVersion": LEGACY, **_CLIENT})
        assert (await speaker.ask("resources/subscribe", {"uri": URI}))["code"] == -32600
        number = await speaker.request("resources/subscribe", {"uri": URI})
        await speaker.say(notice("notifications/initialized"))
        assert await speaker.answer(number) == {}


@virtually
async def test_a_session_goes_on_when_subscriptions_are_closed() -> None:
    server, publishing = low()
    async with hearing(server, LEGACY) as speaker:
        publishing.close()
        publishing.commit(Kind.TOOLS, tools("x"))
        await settled()
        assert len(speaker.changes()) == 1


@virtually
async def test_who_finds_no_room_is_refused_or_not_told(caplog: pytest.LogCaptureFixture) -> None:
    server, publishing = low(policy=PublisherPolicy(subscribers_max=1))
    async with hearing(server, MODERN) as first, speaking(server, MODERN) as second:
        number = await second.request(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
        )
        assert (await second.answer(number))["code"] == -32603
        async with hearing(server, LEGACY) as third:
            publishing.commit(Kind.TOOLS, tools("x"))
            await settled()
            assert (len(first.changes()), third.changes()) == (1, [])
    assert "raised" not in caplog.text


@virtually
async def test_who_left_leaves_nothing_behind() -> None:
    server, publishing = low(EVERYTHING)
    for era in (MODERN, LEGACY):
        async with hearing(server, era):
            pass
    assert publishing._boxes == {}
    assert publishing._sessions == {}
    assert publishing._publisher.views[""].subscribers == ()


@everywhere
async def test_a_mailbox_holds_each_topic_once() -> None:
    box = Mailbox()
    for topic in (Channel.TOOLS, URI, Channel.TOOLS):
        box.put(topic)
    box.close()
    assert [await box.next() for _ in range(3)] == [Channel.TOOLS, URI, None]


# --- pages and calls ------------------------------------------------------------------------------


@rule("EMIT-12", "EMIT-13", "EMIT-19", "EMIT-29", "TTL-01")
@ERAS
@virtually
async def test_pages_on_the_wire(era: str) -> None:
    server, publishing = low(policy=PublisherPolicy(page_max=2, ttl_ms=7))
    async with speaking(server, era) as speaker:
        await speaker.begin()
        page = await speaker.ask("tools/list")
        publishing.commit(Kind.TOOLS, tools("x"))
        rest = await speaker.ask("tools/list", {"cursor": page["nextCursor"]})
        dead = await speaker.ask("tools/list", {"cursor": ""})
        assert [entry["name"] for entry in (*page["tools"], *rest["tools"])] == ["a", "b", "c"]
        assert dead["code"] == -32602
        if era == MODERN:
            assert (page["ttlMs"], page["cacheScope"], page["resultType"]) == (
                *(7, "private", "complete"),
            )
            assert (rest["ttlMs"], rest["cacheScope"]) == (0, "private")
        else:
            assert set(page) == {"tools", "nextCursor"}


@rule("EMIT-24")
@ERAS
@virtually
async def test_a_kind_that_is_not_offered_is_an_unknown_method(era: str) -> None:
    server, publishing = low()
    async with speaking(server, era) as speaker:
        assert set(await speaker.begin()) & {"tools", "prompts", "resources"} == {"tools"}
        assert (await speaker.ask("prompts/list"))["code"] == -32601
        with pytest.raises(ImpossibleAct):
            publishing.commit(Kind.PROMPTS, [])


@rule("CALL-04", "CALL-20", "EMIT-15")
@ERAS
@virtually
async def test_what_is_not_in_force_cannot_be_called(era: str) -> None:
    server, publishing = low()
    async with speaking(server, era) as speaker:
        await speaker.begin()
        assert "content" in await speaker.ask("tools/call", {"name": "a"})
        publishing.commit(Kind.TOOLS, tools("bc"))
        refused = await speaker.ask("tools/call", {"name": "a"})
        assert refused == {"code": -32602, "message": "Unknown tool: a"}


# --- the life of a server -------------------------------------------------------------------------


@everywhere
async def test_the_servers_own_life_goes_on_as_before() -> None:
    lived: list[str] = []

    @asynccontextmanager
    async def life(_: Server[str]) -> AsyncGenerator[str]:
        lived.append("begun")
        try:
            yield "context"
        finally:
            lived.append("over")

    server: Server[str] = Server("x", lifespan=life)
    Publishing(server, TOOLS)

    async def fail() -> None:
        async with server.lifespan(server) as context:
            assert context == "context"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert lived == ["begun", "over"]


@virtually
async def test_each_run_brings_its_own_loop() -> None:
    server, publishing = low()
    async with anyio.create_task_group() as tasks:
        over = anyio.Event()

        async def first() -> None:
            async with hearing(server, MODERN):
                await over.wait()

        tasks.start_soon(first)
        await anyio.wait_all_tasks_blocked()
        async with hearing(server, MODERN) as speaker:
            over.set()
            await anyio.wait_all_tasks_blocked()
            publishing.commit(Kind.TOOLS, tools("x"))
            await settled()
            assert len(speaker.changes()) == 1


def test_a_server_may_run_again_in_another_loop() -> None:
    server, publishing = low()
    other, _ = high()

    async def run() -> None:
        async with hearing(server, MODERN) as speaker, hearing(other, MODERN) as listener:
            publishing.commit(Kind.TOOLS, tools("x"))
            await speaker.until(speaker.changes)
            other.remove_tool("shrink")
            await listener.until(listener.changes)
        publishing.commit(Kind.TOOLS, tools("abc"))
        other.add_tool(run, name="shrink")

    for backend in ("trio", "asyncio", "trio"):
        run_really(run, backend)


# --- views ----------------------------------------------------------------------------------------


def _view_of(token: Any) -> str:
    return "nobody" if token is None else str(token.client_id)


@rule("EMIT-14", "EMIT-16", "EMIT-32", "EMIT-33", "DISC-30")
@ERAS
@virtually
async def test_views_go_by_authorization_and_never_by_connection(era: str) -> None:
    server, publishing = low(view_of=_view_of)
    publishing.commit(Kind.TOOLS, tools("r"), "reader")
    publishing.commit(Kind.TOOLS, tools("rw"), "writer")
    async with (
        hearing(server, era, "reader") as reader,
        hearing(server, era, "writer") as writer,
        hearing(server, era, "writer") as another,
        speaking(server, era) as anonymous,
    ):
        await anonymous.begin()
        assert await reader.keys() == ["r"]
        assert await writer.keys() == await another.keys() == ["r", "w"]
        assert await anonymous.keys() == []
        publishing.commit(Kind.TOOLS, tools("rwx"), "writer")
        await settled()
        assert await writer.keys() == await another.keys() == ["r", "w", "x"]
        assert await reader.keys() == ["r"]
        told = [len(one.changes()) for one in (reader, writer, another, anonymous)]
        assert told == [0, 1, 1, 0]
        assert (await reader.ask("tools/call", {"name": "w"}))["code"] == -32602
        assert "content" in await writer.ask("tools/call", {"name": "w"})


@pytest.fixture
def url() -> Iterator[str]:
    """Where a published server will soon be."""
    port = free_port()
    command = [sys.executable, support.published.__file__, str(port)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@rule("EMIT-02", "EMIT-14")
@ERAS
@really
async def test_over_http_each_view_is_served_and_told_of_its_own(era: str, url: str) -> None:
    """Also in the legacy era, where the SDK itself declares no listChanged over HTTP."""

    def client(token: str) -> Any:
        target = Http(url, {"authorization": f"Bearer {token}"})
        return Catalogs.connect(target, policy=evolve(speaks(era), backoff_base_ms=20))

    async with client("writer") as writer, client("reader") as reader:
        await until(writer, ["become"])
        await until(reader, ["look"])
        for catalogs in (writer, reader):
            await catalogs.idle()
            assert catalogs.session.catalog(Kind.TOOLS).vouched
        listed = reader.tools.read().snapshot
        await writer.call_tool("become", {"names": ["x", "become"]})
        await until(writer, ["become", "x"])
        params = {"name": "become", "arguments": {"names": []}}
        with pytest.raises(MCPError, match="Unknown tool: become"):  # past our own gate
            await reader.request("tools/call", params, name="become")
        assert reader.tools.read().snapshot is listed


# --- MCPServer ------------------------------------------------------------------------------------


def high(**more: Any) -> tuple[MCPServer[Any], Publishing]:
    """A high-level server whose tools change it."""
    server: MCPServer[Any] = MCPServer("high")
    publishing = publish(server, **{"policy": QUICK, **more})

    def extra() -> str:
        return "extra"

    @server.tool()
    def grow() -> str:  # in a thread
        server.add_tool(extra)
        return "grown"

    @server.tool()
    async def shrink() -> str:
        server.remove_tool("extra")
        return "shrunk"

    @server.tool()
    async def cry_wolf(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        await ctx.notify_resource_updated(URI)
        return "changed?"

    return server, publishing


@ERAS
@really
async def test_what_is_added_and_removed_is_in_force_and_told(era: str) -> None:
    server, _ = high()
    async with Catalogs.connect(server, policy=speaks(era)) as catalogs:
        listed = ["cry_wolf", "grow", "shrink"]
        assert names(await catalogs.tools.get()) == listed
        await catalogs.idle()
        await catalogs.call_tool("grow", {})
        await until(catalogs, ["cry_wolf", "extra", "grow", "shrink"])
        await catalogs.call_tool("shrink", {})
        await until(catalogs, listed)


@ERAS
@virtually
async def test_an_event_of_the_servers_own_means_read_again(era: str) -> None:
    server, _ = high()
    async with hearing(server, era, resourceSubscriptions=[URI]) as speaker:
        if era == LEGACY:
            await speaker.ask("resources/subscribe", {"uri": URI})
        await speaker.ask("tools/call", {"name": "cry_wolf"})
        await settled()
        assert (speaker.changes(), speaker.updates()) == ([], [URI])


@ERAS
@virtually
async def test_all_kinds_of_a_server_are_published(era: str) -> None:
    server, _ = high()
    async with Catalogs.connect(server, policy=speaks(era)) as catalogs:
        await catalogs.idle()

        @server.prompt()
        def hello() -> str:
            return "hello"

        @server.resource("file:///one")
        def one() -> str:
            return "one"

        await settled()

        @server.resource("file:///{any}")
        def some(any: str) -> str:
            return any

        await settled()
        await catalogs.idle()
        for view, key in (
            (catalogs.prompts, "hello"),
            (catalogs.resources, "file:///one"),
            (catalogs.templates, "file:///{any}"),
        ):
            assert view.read().hit is Hit.HIT
            assert names(view.read()) == [key]
        server.remove_prompt("hello")
        await settled()
        await catalogs.idle()
        assert names(catalogs.prompts.read()) == []


@rule("EMIT-17")
@ERAS
@virtually
async def test_what_a_view_is_not_shown_it_cannot_call(era: str) -> None:
    hidden = {"shrink"}
    server, publishing = high(
        view_of=_view_of, sees=lambda view, _, entry: view == "writer" or entry.name not in hidden
    )
    async with hearing(server, era, "reader") as reader, hearing(server, era, "writer") as writer:
        assert await reader.keys() == ["cry_wolf", "grow"]
        assert await writer.keys() == ["cry_wolf", "grow", "shrink"]
        assert (await reader.ask("tools/call", {"name": "shrink"}))["code"] == -32602
        hidden.add("grow")
        publishing.changed()
        await settled()
        assert await reader.keys() == ["cry_wolf"]
        assert (len(reader.changes()), len(writer.changes())) == (1, 0)


@virtually
async def test_views_make_room_for_each_other() -> None:
    server, _ = high(view_of=_view_of, policy=PublisherPolicy(views_max=2))
    async with (
        hearing(server, MODERN, "a"),
        hearing(server, MODERN, "b"),
        speaking(server, MODERN, "c") as speaker,
    ):
        assert (await speaker.ask("tools/list"))["code"] == -32603
    for scope in "abcd":
        async with speaking(server, MODERN, scope) as speaker:
            assert await speaker.keys() == ["cry_wolf", "grow", "shrink"]


@virtually
async def test_lists_that_cannot_be_read_are_read_again(caplog: pytest.LogCaptureFixture) -> None:
    server, publishing = high()
    async with hearing(server, MODERN) as speaker:
        right, server.list_prompts = server.list_prompts, _fails  # type: ignore[method-assign]
        publishing.changed()
        assert (await speaker.ask("tools/list"))["code"] == -32603
        server.list_prompts = right  # type: ignore[method-assign]
        assert await speaker.keys() == ["cry_wolf", "grow", "shrink"]
        await settled()
        assert speaker.changes() == []
    assert "lists cannot be read" in caplog.text


async def _fails() -> Any:
    raise RuntimeError("scripted")


def test_schemas_go_by_view_only_where_there_are_views() -> None:
    one, _ = high()
    assert one._lowlevel_server.get_tool_input_schema == one._tool_input_schema
    many, _ = high(view_of=_view_of, sees=lambda view, _, entry: entry.name != "shrink")
    lookup = many._lowlevel_server.get_tool_input_schema
    assert lookup is not None

    async def read() -> None:
        async with speaking(many, MODERN) as speaker:
            await speaker.keys()

    anyio.run(read)
    assert lookup("shrink") is None
    assert (lookup("grow") or {})["type"] == "object"
