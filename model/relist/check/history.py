"""What happened between a referee and a client: one ordered list of events.

The referee is single-threaded, so ``seq`` is a causal order: an event can only depend on events
with a smaller number. ``at_ms`` is for readers; no judgement rests on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from attrs import field, frozen

EventKind = Literal[
    "open",
    "close",
    "in",
    "out",
    "status",
    "cut",
    "ask",
    "answer",
    "step",
    "mark",
    "fence",
    "note",
    "truth",
]
"""``in`` and ``out`` are JSON-RPC messages from and to the client, ``ask`` and ``answer`` the
driver's; ``status`` is an HTTP answer without a message; ``truth`` is what the catalogs are from
then on (``pages`` by kind, ``principal`` whose); the others are the referee's own."""

LIST_METHODS: Mapping[str, str] = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resource_templates": "resources/templates/list",
}
"""Which request lists which kind."""


@frozen
class Event:
    """One thing that happened. ``message`` is the JSON-RPC message, ``data`` all else (JSON)."""

    seq: int
    at_ms: int
    kind: EventKind
    channel: str = ""
    message: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = field(factory=dict[str, Any])


History = Sequence[Event]


@frozen
class Exchange:
    """A request of the client and the answer it was sent, if it was sent one."""

    asked: Event
    answered: Event | None

    @property
    def method(self) -> str:
        """The JSON-RPC method."""
        return str((self.asked.message or {}).get("method"))

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters, empty when there were none."""
        return mapping((self.asked.message or {}).get("params")) or {}

    @property
    def has_cursor(self) -> bool:
        """Whether a cursor was sent; the empty string is one. Rule: DISC-04."""
        return self.params.get("cursor") is not None

    @property
    def result(self) -> Mapping[str, Any] | None:
        """The result sent, None when there was none or it was an error."""
        return mapping(((self.answered and self.answered.message) or {}).get("result"))


def mapping(value: object) -> Mapping[str, Any] | None:
    """A JSON object, or None for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def exchanges(history: History) -> tuple[Exchange, ...]:
    """All requests of the client with their answers, in the order in which they were asked.

    A request and its answer share a channel, and an id belongs to one open request of a channel.
    """
    answers: dict[int, Event] = {}
    waiting: dict[tuple[str, str], Event] = {}
    asked: list[Event] = []
    for event in history:
        message = event.message or {}
        key = (event.channel, repr(message.get("id")))
        if event.kind == "in" and "method" in message and "id" in message:
            asked.append(event)
            waiting[key] = event
        elif event.kind == "out" and "method" not in message and key in waiting:
            answers[waiting.pop(key).seq] = event
    return tuple(Exchange(event, answers.get(event.seq)) for event in asked)


def marked(history: History, name: str) -> int | None:
    """The number of the last mark of that name, None when the script never came there."""
    return next(
        (e.seq for e in reversed(history) if e.kind == "mark" and e.data.get("name") == name), None
    )


def last_fence(history: History) -> int | None:
    """The number of the last fence that the client passed. Absence is only judged before it."""
    return next(
        (e.seq for e in reversed(history) if e.kind == "fence" and e.data.get("passed")), None
    )
