"""Waiting on the network in a way that can be severed, and bodies that always end in good order."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import httpx2

BODY_MAX = 64 * 1024 * 1024  # bytes: of a JSON answer, and of one event of a stream
ERROR_BODY_MAX = 1024 * 1024  # bytes of the body of a refusal

_T = TypeVar("_T")


class Line:
    """One exchange. Once severed, whatever waits on it goes on without a result."""

    def __init__(self) -> None:
        self.severed = False
        self._scope: anyio.CancelScope | None = None

    def sever(self) -> None:
        """End the wait that is under way, and every later one."""
        self.severed = True
        if self._scope is not None:
            self._scope.cancel()

    async def wait(self, call: Callable[[], Awaitable[_T]]) -> _T | None:
        """What ``call`` gives, or None once severed."""
        if self.severed:
            return None
        with anyio.CancelScope() as self._scope:
            return await call()
        return None


class Body(httpx2.AsyncByteStream):
    """A body that ends where the network breaks it, the limit is reached, or its line is severed.

    ``on_end`` is called once, with whether it was cut short. ``final``: to the SDK the end is an
    error, so that it does not try to resume this stream of server-sent events.
    """

    def __init__(
        self,
        inner: Any,
        line: Line,
        on_end: Callable[[bool], None],
        *,
        limit: int | None = None,
        final: bool = False,
    ) -> None:
        self._inner = inner
        self._chunks = aiter(inner)
        self._line = line
        self._on_end: Callable[[bool], None] | None = on_end
        self._left = limit
        self._final = final

    def __aiter__(self) -> "Body":
        return self

    async def __anext__(self) -> bytes:
        cut = False
        try:
            chunk: bytes | None = await self._line.wait(self._chunks.__anext__)
        except StopAsyncIteration:
            chunk = None
        except httpx2.RequestError:
            chunk, cut = None, True
        if chunk is not None and self._has_room(len(chunk)):
            return chunk
        self._end(cut or chunk is not None)
        if self._final:
            raise httpx2.SSEError("the stream ended without an answer")
        raise StopAsyncIteration

    def _has_room(self, size: int) -> bool:
        if self._left is None:
            return True
        self._left -= size
        return self._left >= 0

    def _end(self, cut: bool) -> None:
        if self._on_end is not None:
            self._on_end(cut)
            self._on_end = None

    async def aclose(self) -> None:
        """Close the connection, or give it back."""
        self._end(False)
        try:
            await self._chunks.aclose()
        finally:
            await self._inner.aclose()


async def read_whole(stream: Any, line: Line, limit: int) -> bytes | None:
    """The whole body; None if it is longer than ``limit`` bytes, or broken, or severed."""
    cuts: list[bool] = []
    body = Body(stream, line, cuts.append, limit=limit)
    try:
        content = b"".join([chunk async for chunk in body])
    finally:
        await body.aclose()
    return None if cuts[0] or line.severed else content
