"""A dispatcher around the SDK's that hears every inbound frame first, in the order received.

The SDK resolves answers in the task that waits for them and notices in tasks of their own, so
their order is lost above it. The core judges by order; so frames are tapped where they come off the
transport. Requests of the core are written beside the SDK's, under ids it never mints; what answers
them, and every list_changed notice, ends here.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.abc
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from relist_mcp.arrays import messages_of

OnFrame = Callable[[JSONRPCMessage], bool]


class _Watched:
    """A read stream that shows each message to ``on_frame``, and gives on what that does not take.

    Nothing is read while there is no ``room``: a peer that talks faster than it is heard waits.
    ``takes_arrays``: whether one item may hold several messages by now.
    """

    __slots__ = ("_apart", "_inner", "_on_end", "_on_frame", "_room", "_takes_arrays")

    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
        on_frame: OnFrame,
        room: Callable[[], Awaitable[None]],
        on_end: Callable[[], None],
        takes_arrays: Callable[[], bool],
    ) -> None:
        self._inner = inner
        self._takes_arrays = takes_arrays
        self._apart: list[SessionMessage] = []  # the next is the last
        self._on_frame = on_frame
        self._room = room
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        """What the SDK asks of its own streams."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            while True:
                await self._room()
                item = self._apart.pop() if self._apart else await self._inner.receive()
                if isinstance(item, Exception) and self._takes_arrays():
                    self._apart = messages_of(item)[::-1]
                    if self._apart:
                        continue
                if not (isinstance(item, SessionMessage) and self._on_frame(item.message)):
                    return item
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> ReadStream[SessionMessage | Exception]:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


class Tap(Dispatcher[TransportContext]):
    """The SDK's JSON-RPC dispatcher, tapped. ``on_end`` is called once the peer is gone."""

    def __init__(
        self,
        read: ReadStream[SessionMessage | Exception],
        write: WriteStream[SessionMessage],
        on_frame: OnFrame,
        room: Callable[[], Awaitable[None]],
        on_end: Callable[[], None],
        takes_arrays: Callable[[], bool] = lambda: False,
    ) -> None:
        self._write = write
        self._inner: JSONRPCDispatcher[TransportContext] = JSONRPCDispatcher(
            _Watched(read, on_frame, room, on_end, takes_arrays), write
        )

    async def post(
        self, message: JSONRPCRequest | JSONRPCNotification, headers: dict[str, str]
    ) -> None:
        """Write a frame of our own. Raises anyio's stream errors once the transport is closed."""
        await self._write.send(SessionMessage(message, ClientMessageMetadata(headers=headers)))

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request of the application's. Raises MCPError as the SDK's dispatcher does."""
        return await self._inner.send_raw_request(method, params, opts)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification of the application's."""
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Drive the receive loop until the channel closes."""
        await self._inner.run(on_request, on_notify, on_notify_intercept, task_status=task_status)
