"""Where a server is to be found, and how a transport to it is opened."""

import shlex
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import IO, Any, TextIO, cast

import httpx2
from attrs import field, frozen
from mcp.client._memory import InMemoryTransport
from mcp.client._transport import Transport, TransportStreams
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer

from relist.values import Wire
from relist_mcp.body import BODY_MAX
from relist_mcp.credentials import Credentials
from relist_mcp.exchange import Ears
from relist_mcp.observed import ObservedTransport

_CONNECT_TIMEOUT_S = 30.0
# The kernel asks an idle connection after a minute, and gives it up after two: what is half open is
# found to be dead, which a stream of notices has no other way to learn.
_KEEPALIVE_S = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}


def probing_transport() -> httpx2.AsyncHTTPTransport:
    """The default transport; its idle connections are probed, as far as the platform can."""
    known = [(name, value) for name, value in _KEEPALIVE_S.items() if hasattr(socket, name)]
    options = [(socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in known]
    return httpx2.AsyncHTTPTransport(
        socket_options=[(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *options]
    )


@frozen
class Stdio:
    """A server that is started as a process: its command line and extra environment.

    Credentials go there, since there is no other way to it. Rule: AUTH-10. ``errlog`` is the file,
    with a descriptor, that its stderr goes to; ours by default.
    """

    command: Sequence[str]
    env: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    cwd: str | None = None
    errlog: IO[Any] | None = field(default=None, repr=False)

    wire = Wire.PIPE

    def open(
        self, _: Ears, credentials: Credentials
    ) -> AbstractAsyncContextManager[TransportStreams]:
        """Start the process. Raises OSError if it cannot be started."""
        command, *args = self.command
        env = {**self.env, **credentials.env}
        server = StdioServerParameters(command=command, args=args, env=env, cwd=self.cwd)
        if self.errlog is None:
            return stdio_client(server)
        return stdio_client(server, cast(TextIO, self.errlog))  # only its descriptor is used


@frozen
class Http:
    """A Streamable HTTP endpoint; ``headers`` go with every request and are never logged.

    ``transport`` makes the httpx2 transport to use: for proxies, certificates, tests.
    Rule: AUTH-02.
    """

    url: str
    headers: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    transport: Callable[[], httpx2.AsyncBaseTransport] = field(
        default=probing_transport, repr=False
    )

    wire = Wire.HTTP

    @asynccontextmanager
    async def open(self, ears: Ears, credentials: Credentials) -> AsyncGenerator[TransportStreams]:
        """Prepare to send; nothing is sent yet, and reading has no time limit of its own."""
        async with (
            httpx2.AsyncClient(
                transport=ObservedTransport(self.transport(), ears),
                headers={"accept-encoding": "identity", **self.headers, **credentials.headers},
                auth=credentials.auth,
                timeout=httpx2.Timeout(_CONNECT_TIMEOUT_S, read=None),
            ) as client,
            streamable_http_client(
                self.url, http_client=client, max_sse_event_size=BODY_MAX
            ) as streams,
        ):
            yield streams


@frozen
class Streams:
    """Any `mcp` transport: ``connect`` opens one each time it is called."""

    connect: Callable[[], AbstractAsyncContextManager[TransportStreams]]

    wire = Wire.PIPE

    def open(self, _: Ears, __: Credentials) -> AbstractAsyncContextManager[TransportStreams]:
        """Open the transport."""
        return self.connect()


Target = Stdio | Http | Streams
AnyTarget = Target | str | Sequence[str] | Server[Any] | MCPServer | Transport


def target_of(given: AnyTarget) -> Target:
    """The target that is meant: a URL, a command line (a text, or its words), a server of the
    `mcp` SDK in this process, or a transport of it.

    A transport object can be opened once; give ``Streams`` to have it opened again after a loss.
    Raises ValueError for an empty command, TypeError for what is none of these.
    """
    match given:
        case Stdio() | Http() | Streams():
            return given
        case str() if given.startswith(("http://", "https://")):
            return Http(given)
        case str():
            return Stdio(_command(shlex.split(given), given))
        case MCPServer() | Server():
            return Streams(lambda: InMemoryTransport(given))
        case Sequence():
            return Stdio(_command(given, given))
        case _ if isinstance(given, AbstractAsyncContextManager):
            return Streams(lambda: given)
        case _:
            what = type(given).__name__
            raise TypeError(f"target must be a URL, a command, a server or a transport, no {what}")


def _command(words: Sequence[str], given: object) -> tuple[str, ...]:
    if not words:
        raise ValueError(f"target must be a command of at least one word: {given!r}")
    return tuple(words)
