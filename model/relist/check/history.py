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

_SHOWN_CHARS = 60


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


@frozen(kw_only=True)
class RequestMatch:
    """Which requests (and notifications) of a client are meant; what is left out does not matter.

    ``method``: also ``GET`` and ``DELETE`` for such HTTP exchanges. ``page``: the page asked for
    (1 has no cursor). ``params`` and ``headers`` are subsets; None stands for *not there*.
    ``principal``: who it was sent for. ``reply``: no request, but the answer to ours of that id.
    """

    method: str | None = None
    page: int | None = None
    cursor: str | None = None
    params: Mapping[str, Any] = field(factory=dict[str, Any])
    headers: Mapping[str, str | None] = field(factory=dict[str, "str | None"])
    principal: str | None = None
    reply: str | None = None

    def matches(
        self,
        message: Mapping[str, Any],
        page: int | None,
        headers: Mapping[str, Any],
        principal: str = "",
    ) -> bool:
        """Whether this message, which asks for ``page`` of its list, is meant."""
        if "method" not in message:
            return self.reply is not None and message.get("id") == self.reply
        if self.reply is not None:
            return False
        if self.method not in (None, message.get("method")) or self.page not in (None, page):
            return False
        if self.principal not in (None, principal):
            return False
        params = mapping(message.get("params")) or {}
        if self.cursor is not None and params.get("cursor") != self.cursor:
            return False
        return _holds(params, self.params) and _holds(headers, self.headers)

    def __str__(self) -> str:
        """For people: what is asked for."""
        told = self.method or "a request"
        if self.reply is not None:
            told = f"an answer to our request {self.reply!r}"
        if self.cursor is not None:
            told += f" with the cursor {_brief(self.cursor)}"
        elif self.page is not None:
            told += f" for page {self.page}"
        for what, wanted in (("parameters", self.params), ("headers", self.headers)):
            told += f" with the {what} {dict(wanted)}" if wanted else ""
        return told if self.principal is None else f"{told} for {self.principal or 'nobody'}"


def _brief(text: str) -> str:
    """A text in quotes, cut where it is too long for a line."""
    return repr(text) if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]!r}..."


def _holds(whole: object, part: object) -> bool:
    """Whether all of ``part`` is in ``whole``, type included; None in a mapping: is not there."""
    if not isinstance(part, Mapping):
        return type(whole) is type(part) and whole == part
    found = mapping(whole)
    return found is not None and all(
        (found.get(key) is None) if value is None else _holds(found.get(key), value)
        for key, value in cast("Mapping[str, Any]", part).items()
    )


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
