"""Recording a run: events in causal order, bounded, ready for the judge and for JSON."""

import json
from collections.abc import Mapping
from typing import Any

from relist.check.history import Event, EventKind, mapping

MAX_EVENTS = 5_000
_MAX_RECORDED_BYTES = 64 * 1024


class TooMuch(Exception):
    """The client sent more than a run may hold."""


class Recorder:
    """Appends events; the position in the list is the ``seq``."""

    def __init__(self) -> None:
        self._events: list[Event] = []
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
        """Record one event. Raises ``TooMuch`` beyond ``MAX_EVENTS``."""
        if len(self._events) >= MAX_EVENTS:
            raise TooMuch(f"more than {MAX_EVENTS} events")
        event = Event(len(self._events), self.now_ms, kind, channel, _bounded(message), data)
        self._events.append(event)
        return event


def _bounded(message: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A huge message is kept in outline, so that a history stays printable."""
    if message is None or len(json.dumps(message, default=str)) <= _MAX_RECORDED_BYTES:
        return message
    outline = {key: message[key] for key in ("jsonrpc", "id", "method") if key in message}
    params = mapping(message.get("params")) or {}
    cursor = {"params": {"cursor": params["cursor"]}} if "cursor" in params else {}
    return outline | cursor | {"relist-cut": True}
