"""An HTTP transport that tells what the SDK hides: status, Retry-After, cuts, the GET stream.

It also keeps the SDK's transport alive and bounded: an exchange that fails on the network becomes
a synthetic answer, since one refused connection must not end a stateless link;
a notification that is not accepted in time blocks nobody; a cancelled request is let go of;
the GET stream is asked for until it is granted. What the SDK does otherwise: specs/sdk-notes.md.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from http import HTTPMethod
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import anyio
import httpx2
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER

from relist.failures import METHOD_NOT_FOUND
from relist.messages import is_object
from relist_mcp.arrays import ARRAYS_VERSION, Apart
from relist_mcp.body import BODY_MAX, ERROR_BODY_MAX, Body, Line, read_whole
from relist_mcp.exchange import (
    SESSION_HEADER,
    Ears,
    Exchange,
    WireId,
    error_of,
    media_type,
    message_of,
    retry_after_ms,
    wire_id_of,
)

SYNTHETIC_STATUS = 599
NOTIFY_LIMIT_S = 10.0
STREAM_PAUSE_S = 1.0
STREAM_PAUSE_MAX_S = 60.0
STREAM_PATIENCE_S = 3_600.0  # the longest Retry-After that is heeded

# What the running task asked by POST: a GET of the same task resumes the answer to it.
_asking: ContextVar[tuple[WireId, Line] | None] = ContextVar("relist_asking", default=None)


class _Outcome(NamedTuple):
    """An answer as the SDK gets it, and as it really was (None: there was none)."""

    response: httpx2.Response
    status: int | None
    error: object


class ObservedTransport(httpx2.AsyncBaseTransport):
    """Wraps an httpx2 transport and reports each exchange to ``ears``."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, ears: Ears) -> None:
        self._inner = inner
        self._ears = ears
        self._lines: WeakValueDictionary[WireId, Line] = WeakValueDictionary()
        self._expired = False
        self._streamed = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it, and report."""
        if request.method == HTTPMethod.POST:
            message = message_of(await request.aread())
            wire_id = wire_id_of(message)
            if wire_id is not None and "method" in message:
                return await self._ask(request, wire_id)
            return await self._notify(request, message)
        if request.method == HTTPMethod.GET:
            asked = _asking.get()
            return await (self._stream(request) if asked is None else self._resume(request, *asked))
        return await self._give_back(request)

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._inner.aclose()

    # --- the four things that the SDK sends -------------------------------------------------------

    async def _ask(self, request: httpx2.Request, wire_id: WireId) -> httpx2.Response:
        """A request. In the modern era the end of its stream is final: nothing can be resumed.

        Rule: FAIL-13, SUB-33.
        """
        line = self._lines[wire_id] = Line()
        _asking.set((wire_id, line))
        outcome = await self._send(request, line)
        self._ears.on_exchange(wire_id, _exchange(outcome))
        if outcome.status is None or outcome.status >= 400:
            return outcome.response
        final = MCP_METHOD_HEADER in request.headers
        return self._heard(request, outcome.response, wire_id, line, final=final)

    async def _resume(
        self, request: httpx2.Request, wire_id: WireId, line: Line
    ) -> httpx2.Response:
        """The SDK asks for the rest of an answer that was cut; only the legacy era can do so."""
        outcome = await self._send(request, line)
        if outcome.status is None or outcome.status >= 400:
            return outcome.response
        self._ears.on_exchange(wire_id, _exchange(outcome))
        return self._heard(request, outcome.response, wire_id, line, final=False)

    async def _notify(
        self, request: httpx2.Request, message: Mapping[str, object]
    ) -> httpx2.Response:
        """A notification, or an answer to the server. The SDK sends nothing else meanwhile."""
        outcome = _Outcome(_synthetic(request), None, None)
        with anyio.move_on_after(NOTIFY_LIMIT_S):
            outcome = await self._send(request, Line())
        if message.get("method") == "notifications/cancelled":
            self._sever(message.get("params"))
        accepted = outcome.status is not None and outcome.status < 400
        if message.get("method") == "notifications/initialized" and not accepted:
            self._ears.on_undelivered()
        return outcome.response

    async def _stream(self, request: httpx2.Request) -> httpx2.Response:
        """The GET stream, asked for until it is granted or refused for good."""
        pause_s, told = STREAM_PAUSE_S, False
        while True:
            outcome = await self._send(request, Line())
            status = outcome.status
            if status is not None and status != 429 and status < 500:
                break
            if not told:
                self._ears.on_stream_ended(status)
                told = True
            await outcome.response.aclose()
            asked_s = min((retry_after_ms(outcome.response) or 0) / 1000, STREAM_PATIENCE_S)
            await anyio.sleep(max(pause_s, asked_s))
            pause_s = min(2 * pause_s, STREAM_PAUSE_MAX_S)
        if status == 200 and media_type(outcome.response) == "text/event-stream":
            self._streamed = True
            self._ears.on_stream_opened()
            stream = _apart(request, outcome.response, None)
            body = Body(stream, Line(), lambda _: self._ears.on_stream_ended(None))
            return _with_body(outcome.response, body)
        if not told and not 300 <= status < 400:
            self._ears.on_stream_ended(status)
        return outcome.response

    async def _give_back(self, request: httpx2.Request) -> httpx2.Response:
        """DELETE: a session that the server does not know, or cannot be told of, is gone anyway."""
        gone = httpx2.Response(204, request=request)
        if self._expired:
            return gone
        outcome = await self._send(request, Line())
        return gone if outcome.status is None else outcome.response

    # --- sending ----------------------------------------------------------------------------------

    async def _send(self, request: httpx2.Request, line: Line) -> _Outcome:
        """Send it; a network failure, or an answer nobody can use, becomes a synthetic one."""
        try:
            response = await line.wait(lambda: self._inner.handle_async_request(request))
        except httpx2.RequestError:
            response = None
        if response is None:
            return _Outcome(_synthetic(request), None, None)
        if response.status_code < 400 and not _is_usable(request, response):
            await response.stream.aclose()  # type: ignore[union-attr]
            return _Outcome(_synthetic(request), None, None)
        if response.status_code < 400:
            return _Outcome(response, response.status_code, None)
        return await self._refused(request, response, line)

    async def _refused(
        self, request: httpx2.Request, response: httpx2.Response, line: Line
    ) -> _Outcome:
        body = await read_whole(response.stream, line, ERROR_BODY_MAX)
        error = error_of(response, body)
        if response.status_code == 404 and SESSION_HEADER in request.headers:
            self._not_found(request, error)
        content = body if error is not None else b""
        headers = [(key, value) for key, value in response.headers.multi_items() if key in _KEPT]
        refusal = httpx2.Response(response.status_code, headers=headers, content=content)
        return _Outcome(refusal, response.status_code, error)

    def _not_found(self, request: httpx2.Request, error: object) -> None:
        """A 404 within a session ends it, unless it says that a method or GET is not served.

        Rule: CAP-20, LIFE-12.
        """
        unserved = request.method == HTTPMethod.GET and not self._streamed
        unknown = is_object(error) and error.get("code") == METHOD_NOT_FOUND
        if not (unserved or unknown):
            self._expired = True
            self._ears.on_expired()

    def _heard(
        self,
        request: httpx2.Request,
        response: httpx2.Response,
        wire_id: WireId,
        line: Line,
        *,
        final: bool,
    ) -> httpx2.Response:
        is_stream = media_type(response) == "text/event-stream"

        def ended(cut: bool) -> None:
            if cut:
                self._ears.on_exchange(wire_id, Exchange(None))

        limit = None if is_stream else BODY_MAX
        stream = _apart(request, response, wire_id)
        body = Body(stream, line, ended, limit=limit, final=final and is_stream)
        return _with_body(response, body)

    def _sever(self, cancelled: object) -> None:
        """Let go of a request that was cancelled: in the legacy era the SDK keeps waiting."""
        wire_id = wire_id_of(cancelled, "requestId") if is_object(cancelled) else None
        line = None if wire_id is None else self._lines.get(wire_id)
        if line is not None:
            line.sever()


_MESSAGES = ("application/json", "text/event-stream")
_KEPT = ("content-type", "retry-after", "date")


def _exchange(outcome: _Outcome) -> Exchange:
    response = outcome.response
    speaks = outcome.status in range(200, 300) and media_type(response) in _MESSAGES
    return Exchange(
        outcome.status,
        retry_after_ms(response),
        outcome.error,
        SESSION_HEADER in response.headers,
        speaks,
    )


def _is_usable(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Not compressed, which was not asked for, and no redirect that ends the SDK's transport."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return False
    if "location" not in response.headers:
        return True
    try:
        there = request.url.join(response.headers["location"])
    except (httpx2.InvalidURL, ValueError):
        return False
    response.headers["location"] = str(there)
    return there.scheme in ("http", "https") and bool(there.host)


def _apart(request: httpx2.Request, response: httpx2.Response, wire_id: WireId | None) -> Any:
    """The body, its arrays taken apart where the version in force has some. Rule: LIFE-10."""
    if request.headers.get(MCP_PROTOCOL_VERSION_HEADER) != ARRAYS_VERSION:
        return response.stream
    events = media_type(response) == "text/event-stream"
    return Apart(response.stream, wire_id, BODY_MAX, events=events)


def _synthetic(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(SYNTHETIC_STATUS, request=request)


def _with_body(response: httpx2.Response, body: Body) -> httpx2.Response:
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=body,
        extensions=response.extensions,
    )
