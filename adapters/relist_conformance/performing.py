"""What each step of a case does. Steps are generators that yield what they wait for, so that a
script reads from top to bottom. No I/O, no clock.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import partial, singledispatchmethod

from relist.check.history import RequestMatch, marked
from relist.check.judge import labels
from relist_conformance import steps as s
from relist_conformance.history import Recorder
from relist_conformance.leading import Ended, Flow, Lead, TrueIfMet
from relist_conformance.outputs import Outcome
from relist_conformance.script import Case
from relist_conformance.server import Server, token_of

_FIRST_PAUSE_MS = 50
_LONGEST_PAUSE_MS = 1_600
_PING_PATIENCE_MS = 1_000


class Performer:
    """Performs the steps of one case. ``ops`` are the commands that the driver offers."""

    def __init__(
        self, case: Case, server: Server, lead: Lead, recorder: Recorder, ops: Collection[str]
    ) -> None:
        self._case = case
        self._server = server
        self._lead = lead
        self._recorder = recorder
        self._ops = ops
        self._principals: dict[str, str] = {}
        self._turn = ""

    def perform_all(self, revision: str, transport: str) -> Flow:
        """All steps that apply, in order."""
        self._tell_truth("")
        for principal in self._case.server.principals:
            self._tell_truth(principal)
        for index, step in enumerate(self._case.steps):
            given = step.given is None or marked(self._recorder.events, step.given) is not None
            if given and step.applies(revision, transport):
                self._recorder.add("step", index=index, op=s.NAMES[type(step)])
                flow = self._perform(step, revision)
                if flow is not None:
                    yield from flow

    @singledispatchmethod
    def _perform(self, step: s.Step, revision: str) -> Flow | None:
        raise TypeError(f"no such step: {step} in {revision}")

    # --- the driver ---

    @_perform.register
    def _(self, step: s.Connect, revision: str) -> None:
        self._take_turn(step.name)
        limit = step.request_timeout_ms
        more = {} if limit is None else {"request_timeout_ms": limit}
        self._lead.ask("connect", revision=revision, **more)

    @_perform.register
    def _(self, step: s.Turn, _: str) -> None:
        self._take_turn(step.to)

    def _take_turn(self, name: str) -> None:
        self._turn = name
        self._lead.turn(name)
        self._server.principal = self._principals.get(name, "")

    @_perform.register
    def _(self, step: s.Need, _: str) -> Flow:
        if not step.wait:
            self._lead.ask("need", step.name, kind=step.kind)
            return
        if step.until is None:
            yield from self._lead.asking("need", step.name, kind=step.kind)
            return
        ask = partial(self._lead.ask, "need", step.name, kind=step.kind)
        given = yield from self._asking_until(step.until, step.tries, ask)
        if not given and step.otherwise != "continue":
            reason = step.why or f"the client was not given {', '.join(step.until) or 'no item'}"
            raise Ended(Outcome(step.otherwise, reason))

    @_perform.register
    def _(self, step: s.Read, _: str) -> Flow:
        ask = partial(self._lead.ask, "read", step.name, uri=step.uri)
        if step.until is not None:
            yield from self._asking_until((step.until,), step.tries, ask)
            return
        ask_id = ask()
        if step.wait:
            yield self._lead.until(self._lead.replied(ask_id))

    def _asking_until(
        self, until: tuple[str, ...], tries: int, ask: Callable[[], int]
    ) -> TrueIfMet:
        """Ask again, with growing pauses, until the answer holds exactly this."""
        wanted = Counter(until)
        give_up_ms = self._recorder.now_ms + 2 * self._lead.patience_ms
        for pause_ms in _pauses(tries):
            yield self._lead.until(_never, pause_ms)
            # Where the wire is ordered, a pong says that the client has heard what was sent before.
            yield from self._pinging(_PING_PATIENCE_MS)
            ask_id = ask()
            if not (yield self._lead.until(self._lead.replied(ask_id))):
                return False
            said = labels(self._lead.replies[ask_id].ok)
            if said is not None and Counter(said) == wanted:
                return True
            if self._recorder.now_ms >= give_up_ms:
                return False
        return False

    @_perform.register
    def _(self, step: s.Believe | s.Refresh, _: str) -> Flow:
        yield from self._lead.asking(s.NAMES[type(step)], step.name, kind=step.kind)

    @_perform.register
    def _(self, step: s.Call, _: str) -> Flow:
        planned = step.planned
        more = {} if planned is None else {"planned": _item(planned)}
        fields = {"name": step.tool, "arguments": dict(step.arguments), **more}
        ask_id = self._lead.ask("call", step.name, **fields)
        if step.wait:
            yield self._lead.until(self._lead.replied(ask_id))

    @_perform.register
    def _(self, step: s.GetPrompt, _: str) -> Flow:
        fields = {"name": step.prompt, "arguments": dict(step.arguments)}
        yield from self._lead.asking("get_prompt", step.name, **fields)

    @_perform.register
    def _(self, step: s.Subscribe, _: str) -> Flow:
        yield from self._lead.asking(s.NAMES[type(step)], uri=step.uri)

    @_perform.register
    def _(self, step: s.Credentials, _: str) -> Flow:
        self._server.principal = self._principals[self._turn] = step.principal
        yield from self._lead.asking("credentials", token=token_of(step.principal))

    @_perform.register
    def _(self, step: s.Advance, _: str) -> Flow:
        if "advance" in self._ops:
            yield from self._lead.asking("advance", ms=step.ms)
        else:
            yield self._lead.until(_never, step.ms)

    @_perform.register
    def _(self, step: s.Idle | s.Stop, _: str) -> Flow:
        yield from self._lead.asking(s.NAMES[type(step)])

    @_perform.register
    def _(self, _step: s.Fence, _: str) -> Flow:
        by = "ping"
        passed = yield from self._pinging(self._lead.patience_ms)
        if not passed:
            by, since = "call", self._recorder.next_seq
            for tool in self._server.catalogs.tools(self._server.principal)[:1]:
                yield from self._lead.asking("call", name=tool, arguments={})
            passed = any(
                request.seq > since and request.method == "tools/call"
                for request in self._server.accepted
            )
        if not passed:
            by, kind = "need", next(iter(self._case.server.pages), "tools")
            passed = yield from self._lead.asking("need", kind=kind)
        self._recorder.add("fence", passed=passed, by=by)

    # --- answers ---

    @_perform.register
    def _(self, step: s.Answer, _: str) -> None:
        self._server.rules.arm(step)

    @_perform.register
    def _(self, step: s.Release, _: str) -> None:
        sent = self._server.release(step.name)
        self._recorder.add("note", released=step.name, sent=sent)

    # --- waiting ---

    @_perform.register
    def _(self, step: s.Await, _: str) -> Flow:
        came = partial(self._has_come, step.request, step.since, step.nth)
        limit_ms = self._lead.patience_ms if step.within_ms is None else step.within_ms
        if step.need is None:
            yield self._lead.until(came, limit_ms)
        else:
            yield from self._needing_until(came, step, step.need, limit_ms)
        if came():
            if step.name is not None:
                self._recorder.add("mark", name=step.name)
        elif step.otherwise != "continue":
            reason = step.why or f"the client did not send {step.request}"
            raise Ended(Outcome(step.otherwise, reason))

    def _has_come(self, match: RequestMatch, mark: str | None, nth: int = 1) -> bool:
        since = -1 if mark is None else marked(self._recorder.events, mark) or -1
        matching = (
            request.seq > since and request.fits(match) for request in self._server.accepted
        )
        return sum(matching) >= nth

    def _needing_until(
        self, came: Callable[[], bool], step: s.Await, kind: str, limit_ms: int
    ) -> Flow:
        """The application needs the list until the request came or it has asked often enough.

        It asks again only when it was answered: its own impatience is not to cause requests.
        """
        lead = self._lead
        for pause_ms in _pauses(step.tries):
            if (yield lead.until(came, pause_ms)):
                return
            if not (yield lead.until(_either(came, lead.no_open_need), limit_ms)) or came():
                return
            lead.ask("need", step.name, kind=kind)
        yield lead.until(_either(came, lead.no_open_need), limit_ms)

    @_perform.register
    def _(self, step: s.Excuse, _: str) -> None:
        if self._has_come(step.request, step.since):
            raise Ended(Outcome("not_applicable", step.why))

    @_perform.register
    def _(self, step: s.Covered, _: str) -> Flow:
        yield from self._covered(step.topic)

    def _covered(self, topic: str) -> Flow:
        """A client need not listen: the case is then not applicable, never failed."""
        limit_ms = self._lead.patience_ms // 2
        if not (yield self._lead.until(lambda: self._server.can_notify(topic), limit_ms)):
            raise Ended(Outcome("not_applicable", self._server.why_mute(topic)))

    def _pinging(self, limit_ms: int) -> TrueIfMet:
        """Ping where the era has it; true when the answer came."""
        ping_id = self._server.ping()
        if ping_id is None:
            return False
        return (yield self._lead.until(lambda: ping_id in self._server.pongs, limit_ms))

    @_perform.register
    def _(self, step: s.Mark, _: str) -> None:
        self._recorder.add("mark", name=step.name)

    # --- the server ---

    @_perform.register
    def _(self, step: s.Change, _: str) -> Flow:
        topics = (*step.pages, *step.contents)
        if step.notify:
            for topic in topics:
                yield from self._covered(topic)
        self._server.set_up(step.setup)
        for kind, pages in step.pages.items():
            self._server.catalogs.change(kind, pages, step.principal)
        self._server.catalogs.fill(step.contents, step.principal)
        self._tell_truth(step.principal)
        if step.notify:
            self._server.notify_changes(topics)

    def _tell_truth(self, principal: str) -> None:
        """What the catalogs are from now on, for reports and for the judge."""
        whose = {"principal": principal} if principal else {}
        self._recorder.add("truth", pages=self._server.catalogs.truth(principal), **whose)

    @_perform.register
    def _(self, step: s.Notify, _: str) -> Flow:
        if step.to == "covered":
            yield from self._covered(step.topic)
        send = partial(self._server.notify, step.topic, step.tag, step.to)
        send()
        for number in range(1, step.times):
            self._server.timers.later(number * step.every_ms, send)
        if step.wait and step.times > 1:
            yield self._lead.until(_never, (step.times - 1) * step.every_ms)

    @_perform.register
    def _(self, step: s.Send, _: str) -> None:
        about = None
        if step.to is not None:
            about = next((r for r in reversed(self._server.accepted) if r.fits(step.to)), None)
        if (about is None and step.to is not None) or not self._server.say(
            step.text, about, raw=step.raw
        ):
            raise Ended(Outcome("not_applicable", "the client has no channel to write this on"))

    @_perform.register
    def _(self, step: s.EndSubscriptions, _: str) -> None:
        if not self._server.end_subscriptions(step.how):
            raise Ended(Outcome("not_applicable", "the client has no such subscription"))

    @_perform.register
    def _(self, step: s.Cut, _: str) -> None:
        if not self._server.cut(step.what):
            raise Ended(Outcome("not_applicable", f"the client has no {step.what} to lose"))


def _item(label: str) -> dict[str, str]:
    return {"name": label.rpartition("@")[0], "description": label}


def _never() -> bool:
    return False


def _either(one: Callable[[], bool], other: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: one() or other()


def _pauses(tries: int) -> Iterator[int]:
    """Growing pauses in milliseconds, one before each try but the first."""
    yield 0
    for attempt in range(tries - 1):
        yield min(_FIRST_PAUSE_MS * 2**attempt, _LONGEST_PAUSE_MS)
