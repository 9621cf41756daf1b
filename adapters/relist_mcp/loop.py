"""One core and the one loop around it: feed what was heard, perform what follows, wait.

Inputs are fed in the order they were told, each with all its effects before the next. Whoever wants
to see what happened (logs, metrics, recordings, caches) observes: called after each input, never
concurrently. An observer must not raise: it has no say in what happens.
"""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import anyio

from relist import inputs as i
from relist.core import Relist
from relist.effects import Effect
from relist.inputs import SessionInput
from relist.session import Session
from relist.values import Listen
from relist_mcp.alarm import Sleeper
from relist_mcp.exchange import now_ms

INBOX_MAX = 1024  # inputs that wait to be fed; beyond it, transports wait


class Fed(NamedTuple):
    """One input, what the session was and became, and what it asked for."""

    heard: SessionInput
    before: Session
    after: Session
    effects: tuple[Effect, ...]


Observer = Callable[[Fed], None]


class Loop:
    """Feeds ``core``. ``perform`` does what an effect asks for, without waiting."""

    def __init__(self, core: Relist, perform: Callable[[Effect], None]) -> None:
        self.core = core
        self.observers: list[Observer] = []
        self.over = False
        self._perform = perform
        self._inbox: list[SessionInput] = []
        self._draining = False
        self._deadline_ms: int | None = None  # of the session that was judged last
        self._judged: Session | None = None
        self._told = 0
        self._fed = 0
        self._wake = anyio.Event()
        self._moved: anyio.Event | None = None  # made when somebody waits for it

    @property
    def session(self) -> Session:
        """The frozen state of the core."""
        return self.core.session

    @property
    def listen(self) -> Listen:
        """The state of the channel for notices."""
        return self.session.listen

    @property
    def waiting(self) -> int:
        """How many inputs have been told and not fed yet."""
        return len(self._inbox)

    def tell(self, heard: SessionInput) -> int:
        """Queue an input. Returns a ticket for ``has_fed``; once over, nothing is queued."""
        if not self.over:
            self._inbox.append(heard)
            self._told += 1
            self._wake.set()
        return self._told

    def has_fed(self, ticket: int) -> bool:
        """Whether the input of this ticket has been fed."""
        return self._fed >= ticket

    async def moved(self) -> None:
        """Wait until something may have changed."""
        if self._moved is None:
            self._moved = anyio.Event()
        await self._moved.wait()

    async def room(self) -> None:
        """Wait until the core has caught up with what it was told."""
        while self.waiting >= INBOX_MAX:
            await self.moved()

    def run(self) -> Coroutine[Any, Any, None]:
        """Go on until cancelled."""
        return Sleeper().repeat(self._step)

    def _step(self) -> tuple[anyio.Event, int | None]:
        """Feed what there is. Returns what is waited for: an event, and a time."""
        if self._deadline_ms is not None and now_ms() >= self._deadline_ms:
            self.tell(i.TimePassed(now_ms()))
        self.drain()
        if self.session is not self._judged:  # most of a storm changes nothing
            self._deadline_ms, self._judged = self.core.deadline_ms(), self.session
        self._wake = anyio.Event()
        return self._wake, self._deadline_ms

    def drain(self) -> None:
        """Feed all that was told, and tell everybody who waits.

        What an observer tells is fed in its turn, also if it asks for it here.
        """
        if self._draining:
            return
        self._draining = True
        try:
            while self._inbox:
                told, self._inbox = self._inbox, []
                for heard in told:
                    self._feed(heard)
        finally:
            self._draining = False
        self._signal()

    def end(self) -> None:
        """Nothing is heard any more; whoever still waits is told that the link is closed."""
        self.over = True
        self._inbox.clear()
        self._fed = self._told
        self._feed(i.CloseWanted(now_ms()))
        self._signal()

    def _feed(self, heard: SessionInput) -> None:
        before = self.core.session
        self.core.receive(heard)
        self._fed += 1
        effects = self.core.effects()
        for effect in effects:
            self._perform(effect)
        if self.observers:
            fed = Fed(heard, before, self.core.session, effects)
            for observer in self.observers:
                observer(fed)

    def _signal(self) -> None:
        if self._moved is not None:
            self._moved.set()
            self._moved = None
