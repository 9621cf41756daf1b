"""What a session of the SDK keeps from those who do not own it: see specs/sdk-notes.md.

Each test shows the bare SDK, so it fails once that is fixed; then what the note names can go.
"""

import inspect
import re

import anyio
import httpx2
import pytest
from anyio.lowlevel import checkpoint
from mcp import ClientSession, MCPError
from pydantic import ValidationError

from support.bare import bare
from support.brain import LEGACY, MODERN
from support.live import LIST, serve
from support.loops import virtually
from support.owned import owned

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")


def test_nobody_else_can_listen_to_a_session() -> None:
    """It hears with what it was built with: that is why ``seam`` goes to its dispatcher."""
    public = [name for name in dir(ClientSession) if not name.startswith("_")]
    assert not [name for name in public if re.search("handler|hear|listen|observ|intercept", name)]


def test_a_request_cannot_be_sent_under_an_id() -> None:
    """Nor without its result being judged, nor without a time limit: so below ``send_request``."""
    assert "request_id" not in inspect.signature(ClientSession.send_request).parameters


@virtually
async def test_one_bad_entry_fails_the_whole_page() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.lists["tools"].append({"name": 7})
    async with owned("session", MODERN, pipe.target.connect) as session:
        with pytest.raises(ValidationError):
            await session.list_tools()


@virtually
async def test_a_handler_may_hear_a_notice_after_the_answer_behind_it() -> None:
    """Each notice has a task of its own, so the order received is lost above the dispatcher."""
    order: list[str] = []

    async def handler(_: object) -> None:
        for _step in range(5):
            await checkpoint()
        order.append("notice")

    async def list_tools(session: ClientSession) -> None:
        await session.list_tools()
        order.append("answer")

    brain, pipe = serve(MODERN, "a")
    async with owned("session", MODERN, pipe.target.connect, message_handler=handler) as session:
        brain.hold.add(LIST)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(list_tools, session)
            request = await brain.until_held(LIST)
            pipe.send(brain.change())
            pipe.reply(request)
        await anyio.wait_all_tasks_blocked()
    assert order == ["answer", "notice"]


@virtually
async def test_the_end_of_a_connection_is_told_to_nobody() -> None:
    """Unless a request is under way: then that one fails."""
    heard: list[object] = []

    async def handler(message: object) -> None:
        heard.append(message)

    _, pipe = serve(LEGACY, "a")
    async with owned("client", LEGACY, pipe.target.connect, message_handler=handler) as client:
        pipe.cut()
        await anyio.sleep(600)
        assert client.session.protocol_version == LEGACY
        assert not heard
        with pytest.raises(MCPError, match="Connection closed"):
            await client.list_tools()


@virtually
async def test_whether_the_get_stream_stands_is_told_to_nobody() -> None:
    async with bare(LEGACY) as sdk:
        sdk.web.fault = lambda r, _: httpx2.Response(405) if r.method == "GET" else None
        await sdk.begin()
        with anyio.move_on_after(600) as limit:
            await sdk.read.receive()
        assert limit.cancelled_caught
        assert sdk.web.verbs("GET")


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
@virtually
async def test_a_status_is_told_as_one_and_the_same_error(status: int) -> None:
    refusal = httpx2.Response(status, headers={"retry-after": "7"})
    async with bare(MODERN) as sdk:
        sdk.web.fault = lambda _, __: refusal
        await sdk.send({"id": 1, "method": LIST, "params": {}}, MODERN)
        error = (await sdk.read.receive()).message.error
        assert (error.code, error.message) == (-32603, "Server returned an error response")
        assert error.data is None


@virtually
async def test_a_lost_session_is_told_by_words() -> None:
    """Those that ``attached`` knows; or by the server's own error, which may be any."""
    async with bare(LEGACY) as sdk:
        await sdk.begin()
        sdk.web.fault = lambda _, __: httpx2.Response(404)
        await sdk.send({"id": 1, "method": LIST})
        error = (await sdk.read.receive()).message.error
        assert (error.code, error.message) == (-32600, "Session terminated")
