"""A published server behind HTTP, as a process: ``python published.py PORT``.

A bearer token is the name of its client, and decides what is shown: "writer" has the tool
``become``, which puts other tools in force for writers; "reader" has the tool ``look``.
"""

import sys
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp_types import CallToolRequestParams, CallToolResult, TextContent, Tool
from pydantic import AnyHttpUrl

from relist.values import Capabilities, Channel, Kind
from relist_mcp.publisher import Publishing

OFFER = Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.TOOLS}))


class Verifier:
    """Believes everything."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id=token, scopes=[])


def published() -> Server[Any]:
    """The server."""

    async def call(_: Any, params: CallToolRequestParams) -> CallToolResult:
        if params.name == "become":
            publishing.commit(Kind.TOOLS, _tools(*(params.arguments or {})["names"]), "writer")
        return CallToolResult(content=[TextContent(text=params.name)])

    server: Server[Any] = Server("published", on_call_tool=call)
    publishing = Publishing(
        server, OFFER, view_of=lambda token: "" if token is None else token.client_id
    )
    publishing.commit(Kind.TOOLS, _tools("become"), "writer")
    publishing.commit(Kind.TOOLS, _tools("look"), "reader")
    return server


def _tools(*names: str) -> list[Tool]:
    return [Tool(name=name, input_schema={"type": "object"}) for name in names]


def main(port: str) -> None:
    """Serve until killed."""
    url = AnyHttpUrl(f"http://127.0.0.1:{port}/mcp")
    app = published().streamable_http_app(
        auth=AuthSettings(issuer_url=url, resource_server_url=url), token_verifier=Verifier()
    )
    uvicorn.run(app, port=int(port), log_level="critical")


if __name__ == "__main__":
    main(*sys.argv[1:])
