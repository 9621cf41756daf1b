"""The referee: has the steps of a case performed against a client. No I/O, no clock.

Tell it what happened, with the time; then ``drain`` what is to be done, and call ``tick`` no later
than ``deadline_ms``. What each step does is in ``performing.py``.
"""

from collections.abc import Callable, Collection
from contextlib import suppress

from relist.check.history import Event
from relist_conformance.history import Recorder, TooMuch
from relist_conformance.leading import Ended, Lead, Until
from relist_conformance.legacy import LegacyServer
from relist_conformance.modern import ModernServer
from relist_conformance.outputs import ChannelKind, Finished, Outcome, Output, Reply
from relist_conformance.performing import Performer
from relist_conformance.script import Case
from relist_conformance.server import Server
from relist_conformance.wire import LEGACY, Message, WireFault

PATIENCE_MS = 8_000
FLOOD = "the client floods the run"


class Referee:
    """One run of one case: plays the server and leads the driver.

    ``patience_ms`` bounds each wait. ``token`` names the connection to the driver (of several, it
    begins the names) and begins the session ids; it must not repeat among runs that share an
    endpoint. ``ops`` are the commands that the driver offers: what it need not offer is done
    another way where there is one.
    """

    def __init__(
        self,
        case: Case,
        revision: str,
        transport: str,
        *,
        patience_ms: int = PATIENCE_MS,
        token: str = "c",
        ops: Collection[str] = (),
    ) -> None:
        self.outcome: Outcome | None = None
        self._revision = revision
        self._must_speak = case.must_speak
        self._recorder = Recorder()
        self._outputs: list[Output] = []
        era = LegacyServer if revision == LEGACY else ModernServer
        self._server: Server = era(case.server, self._recorder, self._outputs, token)
        self._lead = Lead(self._recorder, self._outputs, token, patience_ms)
        performer = Performer(case, self._server, self._lead, self._recorder, ops)
        self._script = performer.perform_all(revision, transport)
        self._waits: Until | None = None

    @property
    def connections(self) -> tuple[str, ...]:
        """The names of the connections that the driver was told to begin."""
        return self._lead.connections

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
        self._take(now_ms, lambda: self._lead.answered(ask_id, reply))

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
        if self._waits is None:
            return None
        due_ms = self._server.timers.due_ms
        return self._waits.deadline_ms if due_ms is None else min(self._waits.deadline_ms, due_ms)

    # --- the engine ---

    def _take(self, now_ms: int, act: Callable[[], None]) -> None:
        """Take in what happened and go on with the script.

        When the script is over the server still answers, so that a client can say goodbye.
        """
        self._recorder.now_ms = now_ms
        if self.outcome is not None:
            with suppress(Ended, WireFault, TooMuch):
                act()
            return
        try:
            self._server.timers.run()
            act()
            while (waits := self._waits) is not None:
                if waits.met():
                    self._resume(True)
                elif now_ms >= waits.deadline_ms:
                    self._resume(False)
                else:
                    return
        except Ended as end:
            self._finish(end.outcome)
        except WireFault as fault:
            self._finish(Outcome("harness_error", f"the referee would have sent a wrong {fault}"))
        except TooMuch as error:
            self._finish(Outcome("inconclusive", f"{FLOOD}: {error}"))

    def _resume(self, met: bool | None) -> None:
        try:
            self._waits = next(self._script) if met is None else self._script.send(met)
        except StopIteration:
            self._waits = None
            raise Ended(Outcome("judged")) from None

    def _finish(self, outcome: Outcome) -> None:
        spoken = self._server.spoken or self._must_speak
        if outcome.word == "judged" and not spoken:
            reason = f"the client never came to speak {self._revision} with the server"
            outcome = Outcome("not_applicable", reason)
        with suppress(TooMuch):
            self._recorder.add("note", ended=outcome.word)  # what was waited for, was until here
        self.outcome, self._waits = outcome, None
        self._script.close()
        self._outputs.append(Finished(outcome))
