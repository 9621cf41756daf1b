"""The live client on the SDK's own servers: in memory, as a process on a pipe, and over HTTP."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import Context, MCPServer

import support.sdk
from relist.machine import Hit
from relist.policy import Policy
from relist.values import Era, Kind, LinkPhase, ListenPhase
from relist_mcp import Catalogs, Http, Stdio, Streams
from support.live import names
from support.loops import everywhere, really, virtually
from support.ports import free_port
from support.sdk import ChangingServer

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

QUICK: dict[str, Any] = {"seed": b"t", "gather_ms": 2, "backoff_base_ms": 20, "backoff_max_ms": 80}
MODERN_FIRST = Policy(**QUICK)
LEGACY_ONLY = Policy(**QUICK, modern_versions=())
POLICIES = pytest.mark.parametrize("policy", [MODERN_FIRST, LEGACY_ONLY], ids=["modern", "legacy"])
SCRIPT = str(Path(support.sdk.__file__))


async def _until(catalogs: Catalogs, listed: list[str], what: str = "") -> None:
    """Wait until this is what is read, fresh; each change of the state is looked at."""
    while True:
        reading = catalogs.read(Kind.TOOLS)
        if reading.hit in (Hit.HIT, Hit.EXPIRED) and names(reading) == listed:
            return
        await catalogs._loop.moved()


@POLICIES
@everywhere
async def test_in_memory_all_pages_and_every_change(policy: Policy) -> None:
    changing = ChangingServer(["a", "b", "become"])
    target = Streams(lambda: InMemoryTransport(changing.server))
    async with Catalogs.connect(target, policy=policy) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a", "b", "become"]
        assert (await catalogs.get(Kind.PROMPTS)).hit is Hit.UNSUPPORTED
        await catalogs.idle()
        await catalogs.call_tool("become", {"names": ["c", "d", "e", "become"]})
        await _until(catalogs, ["c", "d", "e", "become"])
        era = Era.MODERN if policy.modern_versions else Era.LEGACY
        assert catalogs.session.link.era is era
        assert catalogs.session.catalog(Kind.TOOLS).vouched


@virtually
async def test_in_memory_a_subscription_that_the_server_closes_is_renewed() -> None:
    changing = ChangingServer(["a"])
    target = Streams(lambda: InMemoryTransport(changing.server))
    async with Catalogs.connect(target, policy=MODERN_FIRST) as catalogs:
        await catalogs.idle()
        changing.names = ["b"]
        changing.listen.close()
        await _until(catalogs, ["b"])
        await catalogs.idle()
        assert catalogs.session.listen.phase is ListenPhase.OPEN


@POLICIES
@everywhere
async def test_in_memory_the_high_level_server(policy: Policy) -> None:
    """It declares no listChanged to a legacy client: there is a list, and no coverage."""
    server = MCPServer("high")

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def grow(ctx: Context) -> str:
        server.add_tool(add, name="more")
        await ctx.notify_tools_changed()
        return "grown"

    @server.prompt()
    def hello() -> str:
        return "hello"

    target = Streams(lambda: InMemoryTransport(server))
    async with Catalogs.connect(target, policy=policy) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["add", "grow"]
        assert names(await catalogs.get(Kind.PROMPTS)) == ["hello"]
        await catalogs.idle()
        await catalogs.call_tool("grow", {})
        if policy.modern_versions:
            await _until(catalogs, ["add", "grow", "more"])
        else:
            assert not catalogs.session.catalog(Kind.TOOLS).vouched
            assert names(await catalogs.refresh(Kind.TOOLS)) == ["add", "grow", "more"]


# --- processes ------------------------------------------------------------------------------------


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(["a", "b", "c"]))
    return path


async def _call(catalogs: Catalogs, name: str, **arguments: Any) -> None:
    """Call what is not listed."""
    await catalogs.request("tools/call", {"name": name, "arguments": arguments}, name=name)


async def _change_by_a_call(catalogs: Catalogs) -> None:
    await catalogs.idle()
    await _call(catalogs, "become", names=["d", "e", "f"])
    await _until(catalogs, ["d", "e", "f"])
    await catalogs.idle()


@POLICIES
@really
async def test_a_process_on_a_pipe_that_dies_is_started_again(policy: Policy, tools: Path) -> None:
    target = Stdio([sys.executable, SCRIPT, "stdio", str(tools)])
    async with Catalogs.connect(target, policy=policy) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a", "b", "c"]
        await _change_by_a_call(catalogs)
        tools.write_text(json.dumps(["g"]))
        epoch = catalogs.session.link.epoch
        with pytest.raises(MCPError, match="Connection closed"):
            await _call(catalogs, "die")
        await _until(catalogs, ["g"])
        assert catalogs.session.link.epoch > epoch


@contextmanager
def _serving(port: int, tools: Path) -> Iterator[None]:
    command = [sys.executable, SCRIPT, "http", str(tools), str(port)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


@POLICIES
@really
async def test_a_process_behind_http_may_come_late_and_be_restarted(
    policy: Policy, tools: Path
) -> None:
    port = free_port()
    target = Http(f"http://127.0.0.1:{port}/mcp")
    async with Catalogs.connect(target, policy=policy) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS  # nobody there yet
        with _serving(port, tools):
            await _until(catalogs, ["a", "b", "c"])
            await _change_by_a_call(catalogs)
        tools.write_text(json.dumps(["g"]))
        reading = await catalogs.refresh(Kind.TOOLS)
        assert (reading.hit, names(reading)) == (Hit.DOUBTED, ["d", "e", "f"])
        with _serving(port, tools):
            await _until(catalogs, ["g"])
            await catalogs.idle()
            assert catalogs.session.listen.phase is ListenPhase.OPEN
            assert catalogs.session.link.phase is LinkPhase.LIVE


@really
async def test_a_command_that_does_not_exist_is_no_reason_to_fail() -> None:
    target = Stdio(["/nonexistent/server"])
    async with Catalogs.connect(target, policy=MODERN_FIRST) as catalogs:
        with anyio.fail_after(5):
            assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS


def _is_running(tools: Path) -> bool:
    try:
        os.kill(int(tools.with_suffix(".pid").read_text()), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True


@pytest.mark.parametrize("cancelled", [True, False])
@really
async def test_a_process_does_not_outlive_the_block(cancelled: bool, tools: Path) -> None:
    target = Stdio([sys.executable, SCRIPT, "stdio", str(tools)])
    with anyio.CancelScope() as scope:
        async with Catalogs.connect(target, policy=MODERN_FIRST) as catalogs:
            await catalogs.idle()
            assert _is_running(tools)
            if cancelled:
                scope.cancel()
    assert not _is_running(tools)
