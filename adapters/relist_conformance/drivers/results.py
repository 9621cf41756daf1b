"""How the use of a tool, resource or prompt ended, for drivers of clients made of `mcp`."""

from collections.abc import Awaitable

from mcp import MCPError
from mcp_types import CallToolResult, GetPromptResult, ReadResourceResult

from relist_conformance.drivers.base import Answer, texts

Result = CallToolResult | ReadResourceResult | GetPromptResult


async def outcome_of(
    use: Awaitable[Result],
    refused: tuple[type[Exception], ...] = (),
    errors: tuple[type[Exception], ...] = (MCPError,),
) -> Answer:
    """The outcome of the contract, and the text that was given.

    The server or the wire said no by ``errors``, the client itself by those that are ``refused``;
    what is both is an error.
    """
    try:
        result = await use
    except errors as error:
        return {"outcome": "error", "detail": str(error)}
    except refused as error:
        return {"outcome": "refused", "detail": type(error).__name__}
    match result:
        case CallToolResult():
            return {"outcome": "error" if result.is_error else "result"}
        case ReadResourceResult():
            return {"outcome": "result", "text": texts(result.contents)}
        case GetPromptResult():
            return {"outcome": "result", "text": texts(one.content for one in result.messages)}
