"""Arrays of messages, which only 2025-03-26 has and the SDK refuses: taken apart around it.

The schema knows arrays of requests and notifications, and arrays of answers, but none that mixes
the two. On a pipe the SDK hands up what it could not read; over HTTP the body is rewritten before
the SDK sees it, event by event. Rule: LIFE-10.
"""

import json
import re
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from relist.messages import is_list, is_object
from relist_mcp.exchange import WireId

ARRAYS_VERSION = "2025-03-26"
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LINE_END = re.compile(rb"\r\n|\n|\r")


def messages_of(error: Exception) -> list[SessionMessage]:
    """The messages of the array that the SDK could not read; none if it was something else."""
    if not isinstance(error, ValidationError):
        return []
    first = error.errors(include_url=False, include_context=False)[0]
    if len(first["loc"]) > 1 or not is_list(first["input"]):
        return []
    return [message for one in first["input"] if (message := _message(one)) is not None]


def _message(one: object) -> SessionMessage | None:
    """One element as a message; a bad one costs only itself."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(one, by_name=False))
    except ValidationError:
        return None


class Apart(httpx2.AsyncByteStream):
    """A body whose arrays are taken apart. ``wire_id`` is that of the request it answers, if any.

    Of an array of answers the one to this request is kept. At most ``limit`` bytes are held back,
    beyond which the rest is passed on as it comes.
    """

    def __init__(self, inner: Any, wire_id: WireId | None, limit: int, *, events: bool) -> None:
        self._inner = inner
        self._wire_id = wire_id
        self._limit = limit
        self._events = events

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        held = b""
        async for chunk in self._inner:
            held += chunk
            while self._events and (end := _EVENT_END.search(held)):
                event, held = held[: end.end()], held[end.end() :]
                yield self._event(event)
            if len(held) > self._limit:
                yield held
                held = b""
        if held:
            yield held if self._events else self._whole(held)

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()

    def _event(self, event: bytes) -> bytes:
        """One event as it is, or one for each message of the array in it."""
        lines = _LINE_END.split(event)
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line[:5] == b"data:")
        messages = self._kept(data)
        if messages is None:
            return event
        rest = b"".join(line + b"\n" for line in lines if line and line[:5] != b"data:")
        return b"".join(rest + b"data: " + message + b"\n\n" for message in messages)

    def _whole(self, body: bytes) -> bytes:
        """A JSON body as it is, or the one answer in it."""
        messages = self._kept(body)
        return body if messages is None or len(messages) != 1 else messages[0]

    def _kept(self, data: bytes) -> list[bytes] | None:
        """The messages of an array that are for this exchange; None if it is no array."""
        if data.lstrip()[:1] != b"[":
            return None
        try:
            found: object = json.loads(data)
        except (ValueError, RecursionError):
            return None
        messages = found if is_list(found) else []
        return [json.dumps(one).encode() for one in messages if self._is_ours(one)]

    def _is_ours(self, message: object) -> bool:
        return not is_object(message) or "method" in message or message.get("id") == self._wire_id
