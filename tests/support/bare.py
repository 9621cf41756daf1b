"""The SDK's HTTP transport with nothing of ours around it, at a scripted server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import jsonrpc_message_adapter

from support.brain import LEGACY, Brain, Frame, notice
from support.web import Web


class Bare:
    """The SDK's HTTP transport with nothing of ours around it."""

    def __init__(self, web: Web, read: Any, write: Any) -> None:
        self.web = web
        self.read = read
        self._write = write

    async def send(self, frame: Frame, version: str = LEGACY) -> None:
        message = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **frame})
        metadata = ClientMessageMetadata(headers={"mcp-protocol-version": version})
        await self._write.send(SessionMessage(message, metadata))

    async def begin(self) -> None:
        await self.send({"id": 0, "method": "initialize", "params": {}})
        await self.read.receive()
        await self.send(notice("notifications/initialized"))
        await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def bare(era: str) -> AsyncGenerator[Bare]:
    web = Web(Brain(era, "a"))
    client = httpx2.AsyncClient(transport=web)
    async with client, streamable_http_client("http://x.test/mcp", http_client=client) as streams:
        yield Bare(web, *streams)
