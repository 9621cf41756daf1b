"""Calls, prompts and reads against servers made of the SDK: both ends agree on what is sent."""

from typing import Annotated, Any

import pytest
from mcp.client._memory import InMemoryTransport
from mcp.client.session import ClientRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ElicitRequestParams, ElicitResult, TextContent, TextResourceContents
from pydantic import BaseModel

from relist.policy import Policy
from relist_mcp import Catalogs, Handlers, InvalidArguments, Streams
from support.loops import really

QUICK: dict[str, Any] = {"seed": b"t", "gather_ms": 2}
POLICIES = pytest.mark.parametrize(
    "policy", [Policy(**QUICK), Policy(**QUICK, modern_versions=())], ids=["modern", "legacy"]
)


class Sum(BaseModel):
    """What ``add`` gives."""

    total: int


class Name(BaseModel):
    """What ``greet`` asks for."""

    name: str


def ask() -> Elicit[Name]:
    """Asked in the way of the era: by a request of the server, or in a result."""
    return Elicit("who?", Name)


def server() -> MCPServer:
    """A server with a tool that has an output schema, one that asks, a prompt and a resource."""
    made = MCPServer("calls")

    @made.tool()
    def add(a: int, b: int) -> Sum:
        return Sum(total=a + b)

    @made.tool()
    def greet(who: Annotated[Name, Resolve(ask)]) -> str:
        return f"hello {who.name}"

    @made.prompt()
    def hello(who: str) -> str:
        return f"hello {who}"

    @made.resource("x://1")
    def one() -> str:
        return "one"

    return made


async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Say who."""
    return ElicitResult(action="accept", content={"name": "you"})


@POLICIES
@really
async def test_a_high_level_server_is_called_asked_and_read(policy: Policy) -> None:
    """In real time: the SDK runs the functions of a server in threads."""
    made = server()
    target = Streams(lambda: InMemoryTransport(made))
    handlers = Handlers(elicitation=elicit)
    async with Catalogs.connect(target, policy=policy, handlers=handlers) as catalogs:
        result = await catalogs.call_tool("add", {"a": 1, "b": 2})
        assert result.structured_content == {"total": 3}
        with pytest.raises(InvalidArguments, match="'/b'"):
            await catalogs.call_tool("add", {"a": 1})
        greeted = await catalogs.call_tool("greet", {})
        assert greeted.content == [TextContent(type="text", text="hello you")]
        prompt = await catalogs.get_prompt("hello", {"who": "me"})
        assert prompt.messages[0].content == TextContent(type="text", text="hello me")
        (content,) = (await catalogs.read_resource("x://1")).contents
        assert isinstance(content, TextResourceContents)
        assert content.text == "one"
