"""What the script lets happen to requests: answers held back and answers replaced by errors."""

from typing import Any

from attrs import define, field, frozen

from relist_conformance.outputs import ChannelKind
from relist_conformance.steps import Fail, Hold
from relist_conformance.wire import Message, params_of


@define(eq=False)
class Channel:
    """A connection, or one HTTP exchange. ``streaming`` once an event stream was begun on it."""

    id: str
    kind: ChannelKind
    headers: Message = field(factory=dict[str, Any])
    is_open: bool = True
    streaming: bool = False

    @property
    def is_pipe(self) -> bool:
        """Whether the channel is a connection that carries everything."""
        return self.kind in ("stdio", "memory")


@frozen(eq=False)
class Request:
    """A request of the client: the page of its list, if any, and the number of its event."""

    channel: Channel
    message: Message
    page: int | None
    seq: int

    @property
    def id(self) -> object:
        """The JSON-RPC id with its type."""
        return self.message["id"]

    @property
    def method(self) -> str:
        """The JSON-RPC method."""
        return str(self.message["method"])

    @property
    def params(self) -> Message:
        """The parameters, empty when there were none."""
        return params_of(self.message)


@frozen
class Refusal:
    """An error answer; ``http`` is the status it has where HTTP carries it alone."""

    code: int
    message: str
    data: object = None
    http: int = 200


@frozen
class Answer:
    """A request with the answer computed for it: a result, or a refusal."""

    request: Request
    content: Message | Refusal


@define
class _Armed:
    rule: Hold | Fail
    skip: int
    left: int


class Rules:
    """The rules in force, in script order; the first that matches a request has it."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []
        self.held: dict[str, Answer] = {}

    def arm(self, rule: Hold | Fail) -> None:
        """Put a rule in force from now on."""
        if isinstance(rule, Hold):
            self._armed.append(_Armed(rule, rule.nth - 1, 1))
        else:
            self._armed.append(_Armed(rule, 0, rule.times))

    def disarm(self, name: str) -> None:
        """Forget a hold that has not met its request."""
        self._armed = [
            armed
            for armed in self._armed
            if not (isinstance(armed.rule, Hold) and armed.rule.name == name)
        ]

    def take(self, request: Request) -> Hold | Fail | None:
        """The rule that decides on this request, used up once."""
        for armed in self._armed:
            if not armed.left or not armed.rule.request.matches(request.message, request.page):
                continue
            if armed.skip:
                armed.skip -= 1
                continue
            armed.left -= 1
            return armed.rule
        return None
