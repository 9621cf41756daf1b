"""What the script lets happen to requests, and the answers that come of it."""

from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from relist.check.history import RequestMatch
from relist_conformance import steps as s
from relist_conformance.outputs import ChannelKind
from relist_conformance.wire import Message, params_of


@define(eq=False)
class Channel:
    """A connection, or one HTTP exchange. ``streaming`` once an event stream was begun on it.

    ``principal`` is who the client acts for here: nobody, unless the script gave it credentials.
    """

    id: str
    kind: ChannelKind
    headers: Message = field(factory=dict[str, Any])
    principal: str = ""
    is_open: bool = True
    streaming: bool = False

    @property
    def is_pipe(self) -> bool:
        """Whether the channel is a connection that carries everything."""
        return self.kind in ("stdio", "memory")


@frozen(eq=False)
class Request:
    """What the client sent: the page of its list, if any, and the number of its event.

    Notifications, answers, and HTTP exchanges without a message (method ``GET`` or ``DELETE``), are
    among them; only an answer has an id, that of our request.
    """

    channel: Channel
    message: Message
    page: int | None
    seq: int

    @property
    def id(self) -> object:
        """The JSON-RPC id with its type; None where there is none."""
        return self.message.get("id")

    @property
    def method(self) -> str:
        """The JSON-RPC method, empty for an answer to a request of ours."""
        return str(self.message.get("method", ""))

    @property
    def params(self) -> Message:
        """The parameters, empty when there were none."""
        return params_of(self.message)

    def fits(self, match: RequestMatch) -> bool:
        """Whether it is meant."""
        channel = self.channel
        return match.matches(self.message, self.page, channel.headers, channel.principal)


@frozen
class Refusal:
    """An error answer; ``http`` is the status it has where HTTP carries it alone."""

    code: int
    message: str
    data: object = None
    http: int = 200


@frozen
class Bare:
    """An HTTP answer without a message of MCP."""

    code: int
    headers: Message = field(factory=dict[str, Any])
    body: str = ""


@frozen
class Text:
    """A frame as the script wrote it, which need not be JSON."""

    text: str


@frozen
class Granted:
    """The acknowledgment of a subscription: these filter fields."""

    fields: Mapping[str, Any]


@frozen
class Answer:
    """A request with the answer computed for it, and the HTTP headers that go along.

    ``malformed``: the script owns that it does not fit. ``notify``: a kind noticed right after.
    """

    request: Request
    content: Message | Refusal | Bare | Text | Granted
    headers: Message = field(factory=dict[str, Any])
    malformed: bool = False
    notify: str | None = None


@define
class _Armed:
    rule: s.Answer
    skip: int
    left: int | None


class Rules:
    """The rules in force; one for some requests has its turn before one for all."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []
        self.held: dict[str, Answer] = {}

    def arm(self, rule: s.Answer) -> None:
        """Put a rule in force from now on."""
        self._armed.append(_Armed(rule, rule.nth - 1, rule.times))

    def disarm(self, name: str) -> None:
        """Forget a hold that has not met its request."""
        self._armed = [armed for armed in self._armed if armed.rule.delivery.hold != name]

    def find(self, request: Request, *, overriding: bool = False) -> s.Answer | None:
        """The rule that decides on this request, used up once; perhaps only one that overrides."""
        for armed in sorted(self._armed, key=lambda one: one.left is None):
            if armed.left == 0 or not request.fits(armed.rule.request):
                continue
            if overriding and not armed.rule.overrides:
                continue
            if armed.skip:
                armed.skip -= 1
                continue
            if armed.left is not None:
                armed.left -= 1
            return armed.rule
        return None
