"""An HTTP transport that tells what the SDK hides: status, Retry-After, cuts, the GET stream.

It also keeps the SDK's transport alive: an exchange that fails on the network becomes a synthetic
answer, since one refused connection must not end a stateless link (DESIGN, section 3, epoch).
"""

import json
from collections.abc import AsyncIterator, Callable
from email.utils import parsedate_to_datetime
from http import HTTPMethod
from typing import Any

import anyio
import httpx2
from attrs import frozen

from relist.messages import is_object

_BODY_MAX = 1_000_000  # bytes of an error body that are looked at
SYNTHETIC_STATUS = 599


@frozen
class Exchange:
    """How a POST went: status (None: the network failed), Retry-After, the error object it held.

    ``in_session``: the request named a legacy session.
    """

    status: int | None
    retry_after_ms: int | None
    error: object
    in_session: bool


class Ears:
    """What an observed transport reports; the connection fills it in."""

    def __init__(
        self,
        on_exchange: Callable[[str | int, Exchange], None],
        on_stream_opened: Callable[[], None],
        on_stream_ended: Callable[[int | None], None],
    ) -> None:
        self.on_exchange = on_exchange
        self.on_stream_opened = on_stream_opened
        self.on_stream_ended = on_stream_ended


class ObservedTransport(httpx2.AsyncBaseTransport):
    """Wraps an httpx2 transport and reports each exchange to ``ears``."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, ears: Ears) -> None:
        self._inner = inner
        self._ears = ears

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it, and report."""
        if request.method == HTTPMethod.GET:
            return await self._stream(request)
        request_id = _request_id(request)
        in_session = "mcp-session-id" in request.headers
        try:
            response = await self._inner.handle_async_request(request)
            error = await _error_of(response) if response.status_code >= 400 else None
        except httpx2.TransportError:
            if request_id is not None:
                self._ears.on_exchange(request_id, Exchange(None, None, None, in_session))
            return httpx2.Response(SYNTHETIC_STATUS, request=request)
        if request_id is not None:
            exchange = Exchange(response.status_code, _retry_after_ms(response), error, in_session)
            self._ears.on_exchange(request_id, exchange)
        if error is None and response.status_code < 400:
            body = _Mended(response.stream, lambda: None)
            return _with_stream(response, body)
        return response

    async def _stream(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError:
            self._ears.on_stream_ended(None)
            return httpx2.Response(SYNTHETIC_STATUS, request=request)
        if response.status_code >= 400:
            self._ears.on_stream_ended(response.status_code)
            return response
        self._ears.on_stream_opened()
        return _with_stream(
            response, _Mended(response.stream, lambda: self._ears.on_stream_ended(None))
        )

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._inner.aclose()


class _Mended(httpx2.AsyncByteStream):
    """A body that ends where the network breaks it, and says that it ended."""

    def __init__(self, inner: Any, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except httpx2.TransportError:
            return
        finally:
            self._on_end()

    async def aclose(self) -> None:
        await self._inner.aclose()


def _with_stream(response: httpx2.Response, stream: httpx2.AsyncByteStream) -> httpx2.Response:
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=stream,
        extensions=response.extensions,
    )


def _request_id(request: httpx2.Request) -> str | int | None:
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    found = message.get("id") if is_object(message) else None
    return found if isinstance(found, str | int) else None


async def _error_of(response: httpx2.Response) -> object:
    """The JSON-RPC error object of a refusal, if its body is one and small enough."""
    if not response.headers.get("content-type", "").lower().startswith("application/json"):
        return None
    body = await response.aread()
    try:
        message = json.loads(body) if len(body) <= _BODY_MAX else None
    except (ValueError, RecursionError):
        return None
    return message.get("error") if is_object(message) else None


def _retry_after_ms(response: httpx2.Response) -> int | None:
    """Retry-After in milliseconds from now; a date is measured against the server's own Date."""
    text = response.headers.get("retry-after")
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text[:9]) * 1000
    try:
        at, now = parsedate_to_datetime(text), parsedate_to_datetime(response.headers["date"])
        return max(0, int((at - now).total_seconds() * 1000))
    except (KeyError, TypeError, ValueError):
        return None


def now_ms() -> int:
    """The event loop's monotonic clock in milliseconds: virtual wherever the loop's clock is."""
    return int(anyio.current_time() * 1000)
