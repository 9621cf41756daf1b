"""The referee: performs the steps of a case against a client. No I/O, no clock.

Tell it what happened, with the time; then ``drain`` what is to be done, and call ``tick`` no later
than ``deadline_ms``. Each step is a generator that yields what it waits for, so a script reads from
top to bottom.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import singledispatchmethod
from typing import Any

from attrs import frozen

from relist.check.history import Event, marked
from relist.check.judge import labels
from relist_conformance import steps as s
from relist_conformance.history import Recorder, TooMuch
from relist_conformance.legacy import LegacyServer
from relist_conformance.modern import ModernServer
from relist_conformance.outputs import Ask, ChannelKind, Finished, Outcome, Output, Reply
from relist_conformance.script import Case
from relist_conformance.server import Server
from relist_conformance.wire import LEGACY, Message, WireFault

PATIENCE_MS = 8_000
_FIRST_PAUSE_MS = 50
_LONGEST_PAUSE_MS = 1_600
_PING_PATIENCE_MS = 1_000


@frozen(eq=False)
class _Until:
    """What a step waits for: the condition, or the time when it stops waiting."""

    met: Callable[[], bool]
    deadline_ms: int


_Flow = Generator[_Until, bool, None]
_TrueIfMet = Generator[_Until, bool, bool]


class _End(Exception):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class Referee:
    """One run of one case: plays the server and leads the driver.

    ``patience_ms`` bounds each wait. ``token`` names the connection to the driver and begins the
    session ids; it must not repeat among runs that share an endpoint.
    """

    def __init__(
        self,
        case: Case,
        revision: str,
        transport: str,
        *,
        patience_ms: int = PATIENCE_MS,
        token: str = "c",
    ) -> None:
        self.outcome: Outcome | None = None
        self._case = case
        self._revision = revision
        self._transport = transport
        self._patience_ms = patience_ms
        self._token = token
        self._recorder = Recorder()
        self._outputs: list[Output] = []
        era = LegacyServer if revision == LEGACY else ModernServer
        self._server: Server = era(case.server, self._recorder, self._outputs, token)
        self._asked: dict[int, tuple[str, dict[str, Any]]] = {}
        self._replies: dict[int, Reply] = {}
        self._script = self._perform_all()
        self._waits: _Until | None = None

    @property
    def history(self) -> tuple[Event, ...]:
        """What happened so far."""
        return self._recorder.events

    # --- what the host reports ---

    def start(self, now_ms: int) -> None:
        """Begin the script. Call this once, before anything else."""
        self._take(now_ms, lambda: self._resume(None))

    def channel_opened(
        self, channel: str, kind: ChannelKind, headers: Message, now_ms: int
    ) -> None:
        """A connection stands, or an HTTP exchange has begun; channel names are never reused."""
        self._take(now_ms, lambda: self._server.opened(channel, kind, headers))

    def received(self, channel: str, message: object, now_ms: int) -> None:
        """The client sent a message: decoded JSON, or ``wire.Unreadable``."""
        self._take(now_ms, lambda: self._server.received(channel, message))

    def channel_closed(self, channel: str, now_ms: int) -> None:
        """The client ended a channel, or it broke."""
        self._take(now_ms, lambda: self._server.closed(channel))

    def driver_answered(self, ask_id: int, reply: Reply, now_ms: int) -> None:
        """The driver answered a command."""
        self._take(now_ms, lambda: self._answered(ask_id, reply))

    def give_up(self, outcome: Outcome, now_ms: int) -> None:
        """End the run from outside: the harness itself failed."""
        self._recorder.now_ms = now_ms
        if self.outcome is None:
            self._finish(outcome)

    def tick(self, now_ms: int) -> None:
        """Time passed."""
        self._take(now_ms, lambda: None)

    def drain(self) -> tuple[Output, ...]:
        """What is to be done, in order; handed out once. ``Finished`` is the last."""
        outputs = tuple(self._outputs)
        self._outputs.clear()
        return outputs

    def deadline_ms(self) -> int | None:
        """When the next ``tick`` is due; None when the run is over."""
        return None if self._waits is None else self._waits.deadline_ms

    # --- the engine ---

    def _take(self, now_ms: int, act: Callable[[], None]) -> None:
        """Take in what happened and go on with the script.

        When the script is over the server still answers, so that a client can say goodbye.
        """
        self._recorder.now_ms = now_ms
        if self.outcome is not None:
            with suppress(_End, WireFault, TooMuch):
                act()
            return
        try:
            act()
            while (waits := self._waits) is not None:
                if waits.met():
                    self._resume(True)
                elif now_ms >= waits.deadline_ms:
                    self._resume(False)
                else:
                    return
        except _End as end:
            self._finish(end.outcome)
        except WireFault as fault:
            self._finish(Outcome("harness_error", f"the referee would have sent a wrong {fault}"))
        except TooMuch as error:
            self._finish(Outcome("inconclusive", f"the client floods the run: {error}"))

    def _resume(self, met: bool | None) -> None:
        try:
            self._waits = next(self._script) if met is None else self._script.send(met)
        except StopIteration:
            self._waits = None
            raise _End(Outcome("judged")) from None

    def _finish(self, outcome: Outcome) -> None:
        if outcome.word == "judged" and not self._server.spoken:
            reason = f"the client never came to speak {self._revision} with the server"
            outcome = Outcome("not_applicable", reason)
        self.outcome, self._waits = outcome, None
        self._script.close()
        self._outputs.append(Finished(outcome))

    def _perform_all(self) -> _Flow:
        for index, step in enumerate(self._case.steps):
            given = step.given is None or marked(self.history, step.given) is not None
            if given and step.applies(self._revision, self._transport):
                self._recorder.add("step", index=index, op=type(step).__name__.lower())
                flow = self._perform(step)
                if flow is not None:
                    yield from flow

    def _until(self, met: Callable[[], bool], limit_ms: int | None = None) -> _Until:
        limit_ms = self._patience_ms if limit_ms is None else limit_ms
        return _Until(met, self._recorder.now_ms + limit_ms)

    # --- the driver ---

    def _ask(self, op: str, as_: str | None = None, /, **fields: Any) -> int:
        ask_id = len(self._asked) + 1
        told: dict[str, Any] = {"op": op, "as": as_} | fields
        self._asked[ask_id] = op, told
        self._recorder.add("ask", ask=ask_id, **told)
        self._outputs.append(Ask(ask_id, op, {"connection": self._token, **fields}))
        return ask_id

    def _answered(self, ask_id: int, reply: Reply) -> None:
        op, told = self._asked[ask_id]
        if fault := reply.fault(op):
            raise _End(Outcome("harness_error", f"driver answered {op!r} wrongly: {fault}"))
        self._replies[ask_id] = reply
        self._recorder.add("answer", ask=ask_id, **told, **reply.told())
        if op == "connect" and reply.ok is None:
            raise _End(Outcome("harness_error", f"driver cannot connect: {reply.error}"))

    def _asking(self, op: str, as_: str | None = None, /, **fields: Any) -> _TrueIfMet:
        """Ask and wait for the answer."""
        return (yield self._until(self._replied(self._ask(op, as_, **fields))))

    def _replied(self, ask_id: int) -> Callable[[], bool]:
        return lambda: ask_id in self._replies

    # --- steps ---

    @singledispatchmethod
    def _perform(self, step: s.Step) -> _Flow | None:
        raise TypeError(f"no such step: {step}")

    @_perform.register
    def _(self, step: s.Connect) -> None:
        limit = step.request_timeout_ms
        more: dict[str, Any] = {} if limit is None else {"request_timeout_ms": limit}
        self._ask("connect", revision=self._revision, **more)

    @_perform.register
    def _(self, step: s.Need) -> _Flow:
        if not step.wait:
            self._ask("need", step.name, kind=step.kind)
            return
        if step.until is None:
            yield from self._asking("need", step.name, kind=step.kind)
            return
        wanted = Counter(step.until)
        give_up_ms = self._recorder.now_ms + 2 * self._patience_ms
        for pause_ms in _pauses(step.tries):
            yield self._until(_never, pause_ms)
            # Where the wire is ordered, a pong says that the client has heard what was sent before.
            yield from self._pinging(_PING_PATIENCE_MS)
            ask_id = self._ask("need", step.name, kind=step.kind)
            if not (yield self._until(self._replied(ask_id))):
                return
            items = labels(self._replies[ask_id].ok)
            if items is not None and Counter(items) == wanted:
                return
            if self._recorder.now_ms >= give_up_ms:
                return

    @_perform.register
    def _(self, step: s.Believe) -> _Flow:
        yield from self._asking("believe", step.name, kind=step.kind)

    @_perform.register
    def _(self, step: s.Call) -> _Flow:
        yield from self._asking("call", step.name, name=step.tool, arguments={})

    @_perform.register
    def _(self, _step: s.Idle) -> _Flow:
        yield from self._asking("idle")

    @_perform.register
    def _(self, _step: s.Stop) -> _Flow:
        yield from self._asking("stop")

    @_perform.register
    def _(self, step: s.Hold | s.Fail) -> None:
        self._server.rules.arm(step)

    @_perform.register
    def _(self, step: s.Release) -> None:
        sent = self._server.release(step.name)
        self._recorder.add("note", released=step.name, sent=sent)

    @_perform.register
    def _(self, step: s.Await) -> _Flow:
        since = -1 if step.since is None else marked(self.history, step.since) or -1

        def came() -> bool:
            matching = (
                request.seq > since and step.request.matches(request.message, request.page)
                for request in self._server.accepted
            )
            return sum(matching) >= step.nth

        limit_ms = self._patience_ms if step.within_ms is None else step.within_ms
        if step.need is None:
            yield self._until(came, limit_ms)
        else:
            yield from self._needing_until(came, step, step.need, limit_ms)
        if came():
            if step.name is not None:
                self._recorder.add("mark", name=step.name)
        elif step.otherwise != "continue":
            reason = step.why or f"the client did not send {step.request.method}"
            raise _End(Outcome(step.otherwise, reason))

    def _needing_until(
        self, came: Callable[[], bool], step: s.Await, kind: str, limit_ms: int
    ) -> _Flow:
        """The application needs the list until the request came or it has asked often enough.

        It asks again only when it was answered: its own impatience is not to cause requests.
        """
        for pause_ms in _pauses(step.tries):
            if (yield self._until(came, pause_ms)):
                return
            if not (yield self._until(_either(came, self._no_open_need), limit_ms)) or came():
                return
            self._ask("need", step.name, kind=kind)
        yield self._until(_either(came, self._no_open_need), limit_ms)

    def _no_open_need(self) -> bool:
        return all(op != "need" or ask in self._replies for ask, (op, _) in self._asked.items())

    @_perform.register
    def _(self, step: s.Covered) -> _Flow:
        yield from self._covered(step.kind)

    @_perform.register
    def _(self, step: s.Change) -> _Flow:
        if step.notify:
            for kind in step.pages:
                yield from self._covered(kind)
        for kind, pages in step.pages.items():
            self._server.catalogs.change(kind, pages)
        self._recorder.add("note", changed=sorted(step.pages))
        if step.notify:
            self._server.notify_changes(step.pages)

    @_perform.register
    def _(self, step: s.Notify) -> _Flow:
        yield from self._covered(step.kind)
        self._server.notify(step.kind)

    @_perform.register
    def _(self, _step: s.Cut) -> None:
        self._server.cut()

    @_perform.register
    def _(self, step: s.Mark) -> None:
        self._recorder.add("mark", name=step.name)

    @_perform.register
    def _(self, _step: s.Fence) -> _Flow:
        by = "ping"
        passed = yield from self._pinging(self._patience_ms)
        if not passed:
            by, since = "call", self._recorder.next_seq
            for tool in self._server.catalogs.tools()[:1]:
                yield from self._asking("call", name=tool, arguments={})
            passed = any(
                request.seq > since and request.method == "tools/call"
                for request in self._server.accepted
            )
        if not passed:
            by, kind = "need", next(iter(self._case.server.pages), "tools")
            passed = yield from self._asking("need", kind=kind)
        self._recorder.add("fence", passed=passed, by=by)

    def _covered(self, kind: str) -> _Flow:
        """A client need not listen: the case is then not applicable, never failed."""
        limit_ms = self._patience_ms // 2
        if not (yield self._until(lambda: self._server.can_notify(kind), limit_ms)):
            raise _End(Outcome("not_applicable", self._server.why_mute(kind)))

    def _pinging(self, limit_ms: int) -> _TrueIfMet:
        """Ping where the era has it; true when the answer came."""
        ping_id = self._server.ping()
        if ping_id is None:
            return False
        return (yield self._until(lambda: ping_id in self._server.pongs, limit_ms))


def _never() -> bool:
    return False


def _either(one: Callable[[], bool], other: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: one() or other()


def _pauses(tries: int) -> Iterator[int]:
    """Growing pauses in milliseconds, one before each try but the first."""
    yield 0
    for attempt in range(tries - 1):
        yield min(_FIRST_PAUSE_MS * 2**attempt, _LONGEST_PAUSE_MS)
