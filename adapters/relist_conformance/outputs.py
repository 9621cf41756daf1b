"""What the referee asks its host to do, and how a run can end. Values only."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from attrs import field, frozen

from relist.check.history import mapping

ChannelKind = Literal["stdio", "memory", "post", "get", "delete"]
SSE = "text/event-stream"
JSON = "application/json"
URL = ":url"
"""Among the headers of an HTTP exchange, the URL of the server: no client can send such a one."""


@frozen
class Status:
    """Answer an HTTP exchange. With the content type of SSE the stream stays open, else it ends."""

    channel: str
    code: int
    headers: Mapping[str, str] = field(factory=dict[str, str])
    body: Mapping[str, Any] | str | None = None


@frozen
class Send:
    """Send a message on a connection, or as an event of an open stream.

    ``text`` takes the place of a message that the script wrote itself, and need not be JSON. It is
    written on a stream as it stands, and not as an event, if it is ``bare``.
    """

    channel: str
    message: Mapping[str, Any]
    text: str | None = None
    bare: bool = False


@frozen
class Finish:
    """End a channel in good order."""

    channel: str


@frozen
class Reset:
    """Cut a channel off without a farewell."""

    channel: str


@frozen
class Ask:
    """Put a command to the driver; the answer comes back with the same ``ask_id``."""

    ask_id: int
    op: str
    fields: Mapping[str, Any]


Word = Literal["judged", "not_applicable", "untestable", "inconclusive", "harness_error"]


@frozen
class Outcome:
    """How a run ended. Only a judged one has a verdict; the others have a reason."""

    word: Word
    reason: str = ""


@frozen
class Finished:
    """The run is over."""

    outcome: Outcome


Output = Status | Send | Finish | Reset | Ask | Finished


@frozen
class Reply:
    """What the driver answered: an ``ok`` object, or the text and code of an error."""

    ok: Mapping[str, Any] | None = None
    error: str | None = None
    code: str | None = None

    def fault(self, op: str) -> str | None:
        """Why this is no answer to that command by the contract, or None."""
        if self.ok is None:
            return None
        if op in SHOWING:
            text = self.ok.get("text")
            return None if text is None or isinstance(text, str) else "'text' is not a text"
        if op not in LISTING:
            return None
        items = self.ok.get("items")
        if items is None:
            return None
        if not isinstance(items, list):
            return "'items' is not a list"
        for entry in cast("list[object]", items):
            found = mapping(entry) or {}
            if not all(isinstance(found.get(key), str) for key in ("name", "description")):
                return "an item has no text as 'name' or 'description'"
        return None

    def told(self, op: str) -> dict[str, Any]:
        """What a history keeps of it as the answer to that command; items only where a list was
        asked for, since nobody looked at others."""
        if self.ok is None:
            return {"error": self.error, "code": self.code}
        plain = (key for key in _KEPT if not isinstance(self.ok.get(key), dict | list))
        kept = {key: self.ok[key] for key in plain if key in self.ok}
        items = self.ok.get("items") if op in LISTING else None
        if items is not None:
            kept["items"] = [{key: item[key] for key in _ITEM} for item in items]
        return {"ok": kept}


LISTING = ("need", "believe", "refresh")
"""The commands that are answered with a list."""

SHOWING = ("read", "get_prompt")
"""The commands that are answered with a text."""

_KEPT = ("items", "state", "outcome", "detail", "idle", "text")
_ITEM = ("name", "description")
