"""An SDK server that offers what a file says, at the moment it is asked.

    python offering.py FILE

The file is an object with lists of ``tools``, ``prompts`` and ``resources`` as MCP spells them; a
kind that it does not name is not offered. ``log`` is written to stderr, ``exit`` ends the process.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[Any, Any]
Paged = types.PaginatedRequestParams | None


def serving(path: Path) -> Server[Any]:
    """The server; which kinds it has is settled when it starts."""

    def now(kind: str) -> Any:
        return json.loads(path.read_text())[kind]

    async def tools(_: Context, __: Paged) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate({"tools": now("tools")})

    async def prompts(_: Context, __: Paged) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate({"prompts": now("prompts")})

    async def resources(_: Context, __: Paged) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate({"resources": now("resources")})

    offered = json.loads(path.read_text())
    return Server(
        "offering",
        on_list_tools=tools if "tools" in offered else None,
        on_list_prompts=prompts if "prompts" in offered else None,
        on_list_resources=resources if "resources" in offered else None,
    )


async def serve(server: Server[Any]) -> None:
    """Until stdin closes."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main(path: str) -> None:
    """Serve what the file says."""
    offered = json.loads(Path(path).read_text())
    print(offered.get("log", ""), file=sys.stderr, flush=True)
    if "exit" in offered:
        sys.exit(offered["exit"])
    anyio.run(serve, serving(Path(path)))


if __name__ == "__main__":
    main(*sys.argv[1:])
