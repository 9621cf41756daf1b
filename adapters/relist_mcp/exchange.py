"""What an HTTP exchange tells besides its messages, and who wants to know."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

import anyio
import httpx2
from attrs import frozen

from relist.messages import is_object

SESSION_HEADER = "mcp-session-id"
WireId = str | int


@frozen
class Exchange:
    """How a POST went: status (None: the network failed), Retry-After, the error object it held.

    ``names_session``: the answer opened a legacy session. ``speaks``: it can carry a message, so an
    error frame after it is the server's, and not the SDK's own.
    """

    status: int | None
    retry_after_ms: int | None = None
    error: object = None
    names_session: bool = False
    speaks: bool = True


class Ears(Protocol):
    """Who hears what the SDK hides of HTTP. Called in the order of events, never concurrently."""

    def on_exchange(self, wire_id: WireId, exchange: Exchange) -> None:
        """How the POST of a request goes; comes before the frame that the SDK makes of it."""

    def on_expired(self) -> None:
        """The server does not know the legacy session any more."""

    def on_undelivered(self) -> None:
        """``notifications/initialized`` was not accepted, so the session never began."""

    def on_stream_opened(self) -> None:
        """The legacy GET stream stands."""

    def on_stream_ended(self, status: int | None) -> None:
        """The legacy GET stream ended (None), or was refused with this status."""


def message_of(content: bytes) -> Mapping[str, object]:
    """The JSON-RPC message that a POST carries; empty if it carries none."""
    try:
        message = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return message if is_object(message) else {}


def wire_id_of(message: Mapping[str, object], key: str = "id") -> WireId | None:
    """The request id under this key, if it is one."""
    found = message.get(key)
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def error_of(response: httpx2.Response, body: bytes | None) -> object:
    """The JSON-RPC error object that this refusal holds, if any."""
    if body is None or not media_type(response).startswith("application/json"):
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return message.get("error") if is_object(message) else None


def media_type(response: httpx2.Response) -> str:
    """The media type of an answer, in lower case and without parameters."""
    content_type: str = response.headers.get("content-type", "")
    return content_type.partition(";")[0].strip().lower()


def retry_after_ms(response: httpx2.Response) -> int | None:
    """Retry-After in milliseconds from now; a date is measured against the server's own Date."""
    text: str | None = response.headers.get("retry-after")
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text[:9]) * 1000
    try:
        wait = _date(text) - _date(response.headers["date"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return max(0, int(wait.total_seconds() * 1000))


def _date(text: str) -> datetime:
    return parsedate_to_datetime(text).astimezone(UTC)


def now_ms() -> int:
    """The event loop's monotonic clock in milliseconds: virtual wherever the loop's clock is."""
    return int(anyio.current_time() * 1000)


def moment_s(at_ms: int) -> float:
    """When on the event loop's clock ``now_ms`` is this: not a rounding error too early."""
    return math.nextafter(at_ms / 1000, math.inf)
