"""Where a server is to be found, and how a transport to it is opened."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx2
from attrs import field, frozen
from mcp.client._transport import TransportStreams
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from relist.values import Wire
from relist_mcp.body import BODY_MAX
from relist_mcp.exchange import Ears
from relist_mcp.observed import ObservedTransport

_CONNECT_TIMEOUT_S = 30.0


@frozen
class Stdio:
    """A server that is started as a process: its command line and extra environment.

    Credentials go there, since there is no other way to it. Rule: AUTH-10.
    """

    command: Sequence[str]
    env: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    cwd: str | None = None

    wire = Wire.PIPE

    def open(self, _: Ears) -> AbstractAsyncContextManager[TransportStreams]:
        """Start the process. Raises OSError if it cannot be started."""
        command, *args = self.command
        return stdio_client(
            StdioServerParameters(command=command, args=args, env=dict(self.env), cwd=self.cwd)
        )


@frozen
class Http:
    """A Streamable HTTP endpoint; ``headers`` (also of authorization) go with every request and
    are never logged. Rule: AUTH-02.

    ``transport`` makes the httpx2 transport to use: for proxies, certificates, tests.
    """

    url: str
    headers: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    transport: Callable[[], httpx2.AsyncBaseTransport] = field(
        default=httpx2.AsyncHTTPTransport, repr=False
    )

    wire = Wire.HTTP

    @asynccontextmanager
    async def open(self, ears: Ears) -> AsyncGenerator[TransportStreams]:
        """Prepare to send; nothing is sent yet, and reading has no time limit of its own."""
        async with (
            httpx2.AsyncClient(
                transport=ObservedTransport(self.transport(), ears),
                headers={"accept-encoding": "identity", **self.headers},
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

    def open(self, _: Ears) -> AbstractAsyncContextManager[TransportStreams]:
        """Open the transport."""
        return self.connect()


Target = Stdio | Http | Streams
