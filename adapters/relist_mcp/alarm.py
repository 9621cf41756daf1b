"""One timer for all who sleep on an event loop: one of them minds the clock for the others.

A process may hold thousands of catalogs, each with a time at which it wants to wake. Whoever came
first is the *leader*: it sleeps until the earliest of all those times, and then wakes whoever is
due. The others sleep without a timer. When the leader goes, another takes over, so that there is no
task that nobody owns. Nobody waits for anything else between two sleeps: the others would be late.
"""

import heapq
import math
from collections.abc import Callable
from itertools import count

import anyio
from anyio.lowlevel import RunVar

from relist_mcp.exchange import moment_s, now_ms

Step = Callable[[], tuple[anyio.Event, int | None] | None]
_SLACK = 16  # outdated times that are kept before the heap is made anew


class Sleeper:
    """Somebody who sleeps again and again, in one task."""

    __slots__ = ("_alarm", "due_at_ms", "wake")

    def __init__(self) -> None:
        self._alarm = _alarm()
        self.wake = anyio.Event()
        self.due_at_ms: int | None = None

    async def repeat(self, step: Step) -> None:
        """Do ``step`` again and again, and sleep in between, until it returns None.

        It says what wakes it: an event, and a time (None: never). It may be woken for no reason.
        """
        alarm = self._alarm
        alarm.join(self)
        try:
            going = True
            while going:
                if alarm.leader is self:
                    with alarm.mind():  # left when somebody is due, else it holds over many steps
                        going = await self._go_on(step)
                    alarm.ring()
                else:
                    going = await self._go_on(step)
        finally:
            alarm.leave(self)

    async def _go_on(self, step: Step) -> bool:
        """Whether there is more to do, once who leads has changed."""
        alarm, leading = self._alarm, self._alarm.leader is self
        while (alarm.leader is self) is leading:
            following = step()
            if following is None:
                return False
            self.wake, until_ms = following
            alarm.set(self, until_ms)
            await self.wake.wait()
        return True


class _Alarm:
    """The sleepers of one event loop. A time in the heap counts while it is its sleeper's."""

    def __init__(self) -> None:
        self._sleepers: dict[Sleeper, None] = {}
        self.leader: Sleeper | None = None
        self._block = anyio.CancelScope()  # in which the leader sleeps
        self._times: list[tuple[int, int, Sleeper]] = []
        self._number = count()  # among equal times, the first that was set is woken first

    def join(self, sleeper: Sleeper) -> None:
        self._sleepers[sleeper] = None
        self.leader = self.leader or sleeper

    def leave(self, sleeper: Sleeper) -> None:
        """The next leader is woken, and so learns that it is the leader."""
        del self._sleepers[sleeper]
        self.set(sleeper, None)
        if not self._sleepers:
            self._times.clear()  # an event loop is never freed if something here refers to it
        if self.leader is sleeper:
            self.leader = next(iter(self._sleepers), None)
            if self.leader is not None:
                self.leader.wake.set()

    def set(self, sleeper: Sleeper, due_at_ms: int | None) -> None:
        """This sleeper is due then, and at no other time."""
        if due_at_ms == sleeper.due_at_ms:
            return
        sleeper.due_at_ms = due_at_ms
        if due_at_ms is not None:
            heapq.heappush(self._times, (due_at_ms, next(self._number), sleeper))
        if len(self._times) > 2 * len(self._sleepers) + _SLACK:
            self._times = [
                (due.due_at_ms, next(self._number), due)
                for due in self._sleepers
                if due.due_at_ms is not None
            ]
            heapq.heapify(self._times)
        until_s = self._until_s()
        if until_s != self._block.deadline:
            self._block.deadline = until_s

    def mind(self) -> anyio.CancelScope:
        """The block that is left once somebody is due."""
        self._block = anyio.CancelScope(deadline=self._until_s())
        return self._block

    def _until_s(self) -> float:
        earliest_ms = self._earliest_ms()
        return math.inf if earliest_ms is None else moment_s(earliest_ms)

    def _earliest_ms(self) -> int | None:
        times = self._times
        while times and times[0][0] != times[0][2].due_at_ms:
            heapq.heappop(times)  # outdated
        return times[0][0] if times else None

    def ring(self) -> None:
        """Wake whoever is due."""
        reached_ms = now_ms()
        while (at_ms := self._earliest_ms()) is not None and at_ms <= reached_ms:
            _, _, due = heapq.heappop(self._times)
            due.due_at_ms = None
            due.wake.set()


_ALARM: RunVar[_Alarm | None] = RunVar("relist_mcp.alarm", None)


def _alarm() -> _Alarm:
    """That of the event loop that runs."""
    alarm = _ALARM.get(None)
    if alarm is None:
        alarm = _Alarm()
        _ALARM.set(alarm)
    return alarm
