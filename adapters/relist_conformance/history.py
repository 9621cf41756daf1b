"""Recording a run: events in causal order, bounded, ready for the judge and for JSON."""

from collections.abc import Mapping
from typing import Any

from relist.check.history import Event, EventKind
from relist_conformance.bounding import as_it_is, bounded

MAX_EVENTS = 5_000
MAX_CHARS = 8 * 1024 * 1024
"""Of all that is recorded of a run, as JSON."""
_OF_OTHERS: tuple[EventKind, ...] = ("open", "in", "answer")
"""What is told of a client or a driver; all else is the script's own."""
_MESSAGE_MAX = 64 * 1024
_ANSWER_MAX = 512 * 1024
"""Of what a driver says: a list that is cut cannot be judged any more."""


class TooMuch(Exception):
    """More was sent or said than a run may hold."""


class Recorder:
    """Appends events; the position in the list is the ``seq``."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._chars = 0
        self.now_ms = 0

    @property
    def events(self) -> tuple[Event, ...]:
        """What was recorded so far."""
        return tuple(self._events)

    @property
    def next_seq(self) -> int:
        """The number the next event will have."""
        return len(self._events)

    def since(self, seq: int) -> tuple[Event, ...]:
        """The events from number ``seq`` on."""
        return tuple(self._events[seq:])

    def add(
        self,
        kind: EventKind,
        channel: str = "",
        message: Mapping[str, Any] | None = None,
        /,
        **data: Any,
    ) -> Event:
        """Record one event, ``cut`` (in its data) where entries are missing.

        Raises ``TooMuch`` beyond ``MAX_EVENTS`` and ``MAX_CHARS``.
        """
        sent = bounded(message, _MESSAGE_MAX)
        told = bounded(data, _ANSWER_MAX) if kind in _OF_OTHERS else as_it_is(data)
        self._chars += sent.length + told.length
        if len(self._events) >= MAX_EVENTS:
            raise TooMuch(f"more than {MAX_EVENTS} events")
        if self._chars > MAX_CHARS:
            raise TooMuch(f"more than {MAX_CHARS} characters")
        missing = sent.missing + told.missing
        cut = {"cut": missing} if missing else {}
        event = Event(len(self._events), self.now_ms, kind, channel, sent.value, told.value | cut)
        self._events.append(event)
        return event


_TOLD_HEADERS = (
    *("accept", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"),
    "last-event-id",
)
_TOLD_PARAMETERS = "mcp-param-"


def told_headers(headers: Mapping[str, Any]) -> dict[str, str]:
    """The headers worth a line in the history; no credentials are kept."""
    told = (key for key in headers if key in _TOLD_HEADERS or key.startswith(_TOLD_PARAMETERS))
    return {key: str(headers[key]) for key in told}
