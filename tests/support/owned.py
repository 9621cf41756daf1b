"""Clients that an application owns, connected in each of the ways there are, to attach to."""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import fastmcp
import httpx2
import pytest
from fastmcp.client.transports import ClientTransport
from mcp import Client, ClientSession
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server

from relist.machine import Hit
from relist.policy import Policy
from relist.values import Kind, LinkPhase, Wire
from relist_mcp import Catalogs
from support.brain import MODERN, Brain, Frame
from support.live import names
from support.loops import AsyncTest, run_really, run_virtually
from support.web import Web

Connect = Callable[[], AbstractAsyncContextManager[TransportStreams]]


class _Reopened(ClientTransport):
    """FastMCP opens a transport for each of its connections."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: Any = None, **handlers: Any
    ) -> AsyncGenerator[ClientSession]:
        async with self._connect() as streams, ClientSession(*streams, **handlers) as session:
            yield session


def fastmcp_client(connect: Connect, era: str, **handlers: Any) -> "fastmcp.Client[Any]":
    """FastMCP's client, which can be connected again and again. It needs asyncio."""
    mode: Any = "auto" if era == MODERN else "legacy"
    return fastmcp.Client(_Reopened(connect), mode=mode, **handlers)


@asynccontextmanager
async def over_http(web: Web) -> AsyncGenerator[TransportStreams]:
    """The SDK's own transport to a scripted server, with nothing of ours around it."""
    async with (
        httpx2.AsyncClient(transport=web) as http,
        streamable_http_client("http://scripted.test/mcp", http_client=http) as streams,
    ):
        yield streams


@asynccontextmanager
async def owned(
    owner: str, era: str, connect: Connect | Server[Any], **handlers: Any
) -> AsyncGenerator[Any]:
    """A connected client: ``client`` and ``session`` are the SDK's, ``fastmcp`` is FastMCP's.

    Given a server, the SDK's client calls it without any transport in the modern era.
    """
    mode: Any = "auto" if era == MODERN else "legacy"
    if isinstance(connect, Server):
        async with Client(connect, mode=mode, **handlers) as client:
            yield client
    elif owner == "client":
        async with Client(connect(), mode=mode, **handlers) as client:
            yield client
    elif owner == "session":
        async with connect() as streams, ClientSession(*streams, **handlers) as session:
            await (session.discover() if era == MODERN else session.initialize())
            yield session
    else:
        async with fastmcp_client(connect, era, **handlers) as other:
            yield other


@asynccontextmanager
async def attached(
    owner: str, era: str, connect: Connect | Server[Any], policy: Policy, wire: Wire = Wire.PIPE
) -> AsyncGenerator[Catalogs]:
    """Catalogs over the connection of such a client; it acts for nobody, as ``connect`` does."""
    async with (
        owned(owner, era, connect) as client,
        Catalogs.attach(client, policy=policy, partition="", wire=wire) as catalogs,
    ):
        yield catalogs


def by_each_owner(test: AsyncTest) -> Callable[..., None]:
    """A test with each client, on each event loop that it runs on; ``owner`` says which."""

    def run(on: tuple[str, str], **arguments: Any) -> None:
        owner, backend = on
        runner = run_virtually if backend == "trio" else run_really
        runner(functools.partial(test, owner=owner, **arguments))

    functools.update_wrapper(run, test)
    del run.__wrapped__  # type: ignore[attr-defined]
    signature = inspect.signature(test)
    given = [one for one in signature.parameters.values() if one.name != "owner"]
    on = inspect.Parameter("on", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(parameters=[*given, on])  # type: ignore[attr-defined]
    by_each: Callable[..., Callable[..., None]] = pytest.mark.parametrize("on", _ON, ids="-".join)
    return by_each(run)


_ON = [
    *((owner, backend) for owner in ("client", "session") for backend in ("trio", "asyncio")),
    ("fastmcp", "asyncio"),
]


def session_of(client: Any) -> ClientSession:
    """The session of any of them."""
    session = client if isinstance(client, ClientSession) else client.session
    assert isinstance(session, ClientSession)
    return session


def condition(client: Any) -> dict[str, Any]:
    """All that a session and its dispatcher hold, but the counter of their requests."""
    session = session_of(client)
    held = [*vars(session).items(), *vars(session._dispatcher).items()]
    return {
        name: dict(value) if isinstance(value, dict) else value
        for name, value in held
        if name != "_next_id"
    }


async def until_listed(catalogs: Catalogs, *listed: str) -> None:
    """Wait until these are the tools that are read, undoubted."""
    while True:
        reading = catalogs.read(Kind.TOOLS)
        if reading.hit in (Hit.HIT, Hit.EXPIRED) and names(reading) == list(listed):
            return
        await catalogs._loop.moved()


async def until_phase(catalogs: Catalogs, phase: LinkPhase) -> None:
    """Wait until the link is in this phase."""
    while catalogs.session.link.phase is not phase:
        await catalogs._loop.moved()


def stands(brain: Brain, listen: Frame) -> bool:
    """Whether this subscription has not been cancelled by the client."""
    return listen["id"] not in [
        params["requestId"] for params in brain.params("notifications/cancelled")
    ]
