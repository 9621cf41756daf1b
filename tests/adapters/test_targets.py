"""What may be connected to, and what the application serves while connected."""

import sys
from typing import Any

import mcp_types as types
import pytest
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import Context, MCPServer
from pydantic import FileUrl

from relist.machine import Hit
from relist.policy import Policy
from relist.values import Kind
from relist_mcp import Catalogs, Handlers, Http, Stdio
from relist_mcp.targets import target_of
from support.live import ERAS, names, policy, serve
from support.loops import everywhere, really, virtually
from support.sdk import ChangingServer

rule = pytest.mark.rule


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("https://example.test/mcp", Http("https://example.test/mcp")),
        ("http://[::1]:80/mcp", Http("http://[::1]:80/mcp")),
        ("server --name 'two words'", Stdio(("server", "--name", "two words"))),
        (["server", "--name", "two words"], Stdio(("server", "--name", "two words"))),
        (("server",), Stdio(("server",))),
        (Stdio(("x",)), Stdio(("x",))),
        (Http("ftp://x"), Http("ftp://x")),
    ],
)
def test_a_text_is_a_url_or_a_command(given: Any, meant: object) -> None:
    assert target_of(given) == meant


@pytest.mark.parametrize("given", ["", "   ", [], ()])
def test_an_empty_command_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="target must be a command of at least one word"):
        target_of(given)


@pytest.mark.parametrize("given", [None, 3, object(), {"url": "http://x"}])
def test_anything_else_is_refused_by_name(given: Any) -> None:
    with pytest.raises(TypeError, match=f"no {type(given).__name__}"):
        target_of(given)


@pytest.mark.parametrize("versions", [("2026-07-28",), ()])
@everywhere
async def test_servers_in_this_process(versions: tuple[str, ...]) -> None:
    high = MCPServer("high")
    high.add_tool(lambda: "hello", name="hello")
    for server, listed in ((high, ["hello"]), (ChangingServer(["a", "b", "c"]).server, [*"abc"])):
        chosen = policy(modern_versions=versions)
        async with Catalogs.connect(server, policy=chosen) as catalogs:
            assert names(await catalogs.get(Kind.TOOLS)) == listed


@everywhere
async def test_a_transport_of_the_sdk() -> None:
    transport = InMemoryTransport(ChangingServer(["a"]).server)
    async with Catalogs.connect(transport, policy=policy()) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]


@really
async def test_a_command_line() -> None:
    """A process that speaks no MCP: what matters is that it is started, and given up."""
    quick = policy(probe_limit_ms=1, handshake_limit_ms=50, backoff_base_ms=1, backoff_max_ms=1)
    target = [sys.executable, "-c", "import sys; sys.exit(3)"]
    async with Catalogs.connect(target, policy=quick) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS
        assert catalogs.session.link.failures > 0


# --- handlers -------------------------------------------------------------------------------------


async def _roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///work"), name="work")])


async def _elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="decline")


async def _sample(context: Any, params: Any) -> types.ErrorData:
    return types.ErrorData(code=-1, message="no")


@rule("LIFE-16")
@pytest.mark.parametrize(
    ("handlers", "declared"),
    [
        (Handlers(), {}),
        (Handlers(roots=_roots), {"roots": {}}),
        (Handlers(elicitation=_elicit), {"elicitation": {"form": {}, "url": {}}}),
        (Handlers(sampling=_sample, roots=_roots), {"sampling": {}, "roots": {}}),
    ],
)
@ERAS
@virtually
async def test_only_what_is_served_is_declared(
    era: str, handlers: Handlers, declared: dict[str, Any]
) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy(), handlers=handlers) as catalogs:
        await catalogs.idle()
    said = [
        params.get(
            "capabilities",
            params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities"),
        )
        for params in (*brain.params("initialize"), *brain.params("tools/list"))
    ]
    assert [one for one in said if one is not None] == [declared]


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
@everywhere
async def test_handlers_serve_and_hear_what_the_catalogs_do_not() -> None:
    """The server asks for roots during a call, and logs; list notices stay with the catalogs."""
    heard: list[str] = []
    server = MCPServer("asking")

    @server.tool()
    async def ask(ctx: Context) -> str:
        result = await ctx.request_context.session.list_roots()
        await ctx.request_context.session.send_tool_list_changed()
        await ctx.request_context.session.send_log_message("info", "said")
        return str(result.roots[0].name)

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(str(params.data))

    async def messages(message: Any) -> None:
        heard.append(type(message).__name__)

    legacy = Policy(seed=b"t", modern_versions=())
    handlers = Handlers(roots=_roots, logging=log, messages=messages)
    async with Catalogs.connect(server, policy=legacy, handlers=handlers) as catalogs:
        result = await catalogs.call_tool("ask", {})
        assert isinstance(result.content[0], types.TextContent)
        assert result.content[0].text == "work"
    assert "said" in heard
    assert "ToolListChangedNotification" not in heard
