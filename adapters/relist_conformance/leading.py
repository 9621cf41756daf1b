"""The driver's side of a run: commands asked, answers that came; and how a script waits."""

from collections.abc import Callable, Generator
from typing import Any

from attrs import frozen

from relist_conformance.history import Recorder
from relist_conformance.outputs import Ask, Outcome, Output, Reply


@frozen(eq=False)
class Until:
    """What a step waits for: the condition, or the time when it stops waiting."""

    met: Callable[[], bool]
    deadline_ms: int


Flow = Generator[Until, bool, None]
TrueIfMet = Generator[Until, bool, bool]


class Ended(Exception):
    """The run is over before its last step."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class Lead:
    """Puts commands to the driver, for one connection at a time; ``patience_ms`` bounds each wait.

    ``connections`` are the names that the driver was given, in order.
    """

    def __init__(
        self, recorder: Recorder, outputs: list[Output], token: str, patience_ms: int
    ) -> None:
        self.patience_ms = patience_ms
        self.replies: dict[int, Reply] = {}
        self._recorder = recorder
        self._outputs = outputs
        self._token = self._connection = token
        self.connections: tuple[str, ...] = ()
        self._asked: dict[int, tuple[str, dict[str, Any]]] = {}

    def until(self, met: Callable[[], bool], limit_ms: int | None = None) -> Until:
        """Wait for this, at most so long (default: the patience)."""
        limit_ms = self.patience_ms if limit_ms is None else limit_ms
        return Until(met, self._recorder.now_ms + limit_ms)

    def turn(self, name: str) -> None:
        """What follows is about this connection; ``""`` is the only one of most runs."""
        self._connection = f"{self._token}-{name}" if name else self._token
        if self._connection not in self.connections:
            self.connections += (self._connection,)

    def ask(self, op: str, as_: str | None = None, /, **fields: Any) -> int:
        """Put a command; its answer will be known by the number given back."""
        ask_id = len(self._asked) + 1
        told: dict[str, Any] = {"op": op, "as": as_} | fields
        self._asked[ask_id] = op, told
        self._recorder.add("ask", ask=ask_id, **told)
        self._outputs.append(Ask(ask_id, op, {"connection": self._connection, **fields}))
        return ask_id

    def answered(self, ask_id: int, reply: Reply) -> None:
        """Take in an answer. Raises ``Ended`` where the run cannot go on with this driver."""
        op, told = self._asked[ask_id]
        if fault := reply.fault(op):
            raise Ended(Outcome("harness_error", f"driver answered {op!r} wrongly: {fault}"))
        self.replies[ask_id] = reply
        self._recorder.add("answer", ask=ask_id, **told, **reply.told(op))
        if reply.code == "unsupported":
            raise Ended(Outcome("untestable", f"the driver does not offer {op!r}"))
        if op == "connect" and reply.ok is None:
            raise Ended(Outcome("harness_error", f"driver cannot connect: {reply.error}"))

    def asking(self, op: str, as_: str | None = None, /, **fields: Any) -> TrueIfMet:
        """Ask and wait for the answer."""
        return (yield self.until(self.replied(self.ask(op, as_, **fields))))

    def replied(self, ask_id: int) -> Callable[[], bool]:
        """The condition that this command was answered."""
        return lambda: ask_id in self.replies

    def no_open_need(self) -> bool:
        """Whether each need was answered."""
        return all(op != "need" or ask in self.replies for ask, (op, _) in self._asked.items())
