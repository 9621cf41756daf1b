"""One timer for all who sleep on an event loop, whoever of them comes and goes."""

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
import sniffio
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from relist_mcp import Catalogs
from relist_mcp.alarm import _ALARM, _SLACK, Sleeper
from relist_mcp.exchange import moment_s, now_ms
from support.live import policy, serve
from support.loops import everywhere, run_virtually, virtually


def timers() -> int:
    """How many timers the event loop holds."""
    if sniffio.current_async_library() == "trio":
        deadlines: Any = trio._core._run.GLOBAL_RUN_CONTEXT.runner.deadlines
        return int(deadlines._active)
    loop: Any = asyncio.get_running_loop()
    return sum(not handle.cancelled() for handle in loop._scheduled)


async def settled() -> None:
    """Everybody who can run has run."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()


class Clocks:
    """Sleepers in tasks of their own: ``woken`` names who was woken by the clock, and when."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self.woken: list[tuple[str, int]] = []
        self.wakes: dict[str, anyio.Event] = {}
        self.scopes: dict[str, anyio.CancelScope] = {}
        self.begun_ms = now_ms()

    def start(self, name: str, *due_ms: int | None) -> None:
        """It sleeps until each of these times after the beginning, one after the other."""
        self.scopes[name] = anyio.CancelScope()
        self._tasks.start_soon(self._run, name, due_ms)

    async def _run(self, name: str, due_ms: tuple[int | None, ...]) -> None:
        times = list(due_ms)

        def step() -> tuple[anyio.Event, int | None] | None:
            passed_ms = now_ms() - self.begun_ms
            while times and times[0] is not None and times[0] <= passed_ms:
                times.pop(0)
                self.woken.append((name, passed_ms))
            if not times:
                return None
            self.wakes[name] = anyio.Event()
            return self.wakes[name], None if times[0] is None else self.begun_ms + times[0]

        with self.scopes[name]:
            await Sleeper().repeat(step)


@asynccontextmanager
async def clocks() -> AsyncGenerator[Clocks]:
    async with anyio.create_task_group() as tasks:
        yield Clocks(tasks)
        tasks.cancel_scope.cancel()


@virtually
async def test_each_is_woken_at_its_time() -> None:
    async with clocks() as made:
        made.start("leader", 50, 60)
        made.start("early", 20, 70)
        made.start("late", 90)
        made.start("equal", 50)
        made.start("never", None)
        await anyio.sleep(1)
        assert sorted(made.woken, key=lambda woken: (woken[1], woken[0])) == [
            ("early", 20),
            ("equal", 50),
            ("leader", 50),
            ("leader", 60),
            ("early", 70),
            ("late", 90),
        ]


@everywhere
async def test_there_is_one_timer_however_many_sleep() -> None:
    before = timers()
    async with clocks() as made:
        for number in range(50):
            made.start(f"{number}", 3_600_000 + number)
            await settled()
            assert timers() == before + 1
        made.start("sooner", 3_000_000)  # than what the leader waits for
        await settled()
        assert timers() == before + 1
    assert timers() == before


@everywhere
async def test_nobody_who_is_due_never_needs_a_timer() -> None:
    before = timers()
    async with clocks() as made:
        made.start("a", None)
        made.start("b", None)
        await settled()
        assert timers() == before


@virtually
async def test_a_time_in_the_past_is_reached_at_once() -> None:
    async with clocks() as made:
        made.start("leader", 1_000)
        await anyio.sleep(0.5)

        due = iter([made.begun_ms, None])

        def step() -> tuple[anyio.Event, int | None] | None:
            until_ms = next(due)
            if until_ms is None:
                made.woken.append(("late", now_ms() - made.begun_ms))
                return None
            return anyio.Event(), until_ms

        await Sleeper().repeat(step)
        await anyio.sleep(1)
        assert made.woken == [("late", 500), ("leader", 1_000)]


@everywhere
async def test_the_time_of_who_is_gone_needs_no_timer() -> None:
    before = timers()
    async with clocks() as made:
        for name, due_ms in [("leader", None), ("a", 3_600_000), ("b", 3_600_000)]:
            made.start(name, due_ms)
        await settled()
        made.scopes["a"].cancel()
        made.scopes["b"].cancel()
        await settled()
        made.wakes["leader"].set()
        await settled()
        assert timers() == before


@virtually
async def test_the_same_time_is_reached_again_and_again() -> None:
    """Whoever sleeps until a time that is over does not sleep."""
    until_ms, steps = now_ms() + 10, iter(range(4))

    def step() -> tuple[anyio.Event, int | None] | None:
        number = next(steps)
        assert now_ms() == until_ms - (0 if number else 10)
        return None if number == 3 else (anyio.Event(), until_ms)

    await Sleeper().repeat(step)


@pytest.mark.parametrize("gone", [["a"], ["a", "b"], ["b"], ["a", "b", "c"], ["d", "a"]])
@everywhere
async def test_another_takes_over_when_the_leader_goes(gone: list[str]) -> None:
    """Also when its successor goes at the same moment, and before it has taken over."""
    before = timers()
    async with clocks() as made:
        for number, name in enumerate("abcd"):
            made.start(name, 20 + number)
        await settled()
        for name in gone:
            made.scopes[name].cancel()
        await settled()
        assert timers() == before + 1
        with anyio.fail_after(5):
            while len(made.woken) < 4 - len(gone):
                await anyio.sleep(0.01)
        assert {name for name, _ in made.woken} == set("abcd") - set(gone)


@virtually
async def test_who_is_woken_by_somebody_else_sleeps_on_as_before() -> None:
    async with clocks() as made:
        made.start("a", 100)
        made.start("b", 100)
        for _ in range(5):
            await anyio.sleep(0.01)
            made.wakes["a"].set()
            await anyio.sleep(0.01)
            made.wakes["b"].set()
        await anyio.sleep(1)
        assert sorted(made.woken) == [("a", 100), ("b", 100)]


@virtually
async def test_times_that_move_leave_nothing_behind() -> None:
    """A catalog moves its time with each step; what is outdated is dropped, or counted once."""
    asleep, beside = Sleeper(), Sleeper()
    alarm = asleep._alarm
    alarm.join(asleep)
    alarm.join(beside)
    for number in range(1_000):
        alarm.set(asleep, 1_000_000 if number % 2 else 1_000 + number)
        assert len(alarm._times) <= 2 * 2 + _SLACK
    alarm.leave(asleep)
    alarm.leave(beside)


SCHEDULE = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(["start", "cancel", "wake"]),
        st.integers(0, 60),  # ms until it is due
        st.integers(0, 20),  # ms until the next act
    ),
    max_size=25,
)


@given(SCHEDULE)
@settings(max_examples=150)
def test_whoever_comes_and_goes_each_is_woken_in_time(
    acts: list[tuple[str, str, int, int]],
) -> None:
    async def play() -> None:
        async with clocks() as made:
            expected: dict[str, int] = {}
            for number, (name, act, due_ms, pause_ms) in enumerate(acts):
                alive = [known for known in made.scopes if known.startswith(name)]
                if act == "start":
                    due = now_ms() - made.begun_ms + due_ms
                    made.start(f"{name}{number}", due)
                    expected[f"{name}{number}"] = due
                elif alive and act == "wake" and alive[-1] in made.wakes:
                    made.wakes[alive[-1]].set()
                elif alive and act == "cancel":
                    made.scopes[alive[-1]].cancel()
                    if expected[alive[-1]] >= now_ms() - made.begun_ms:
                        del expected[alive[-1]]
                    del made.scopes[alive[-1]]
                await anyio.sleep(pause_ms / 1000)
                assert timers() <= 2  # theirs, and the limit of the test
            await anyio.sleep(1)
            assert dict(made.woken).items() >= expected.items()

    run_virtually(play)


def test_a_moment_is_not_a_rounding_error_too_early() -> None:
    for at_ms in [*range(100_000), *range(10**9, 10**9 + 10_000)]:
        assert int(moment_s(at_ms) * 1000) == at_ms


# --- in a live client -----------------------------------------------------------------------------


@everywhere
async def test_many_live_servers_have_one_timer() -> None:
    """Each waits for its next poll."""
    before = timers()
    async with anyio.create_task_group() as tasks:

        async def live(ready: anyio.Event) -> None:
            _, pipe = serve("2026-07-28", "a")
            rules = policy(poll_ms=3_600_000)
            async with Catalogs.connect(pipe.target, policy=rules) as catalogs:
                await catalogs.idle()
                assert catalogs._loop.core.deadline_ms() is not None
                ready.set()
                await anyio.Event().wait()  # on asyncio, sleep_forever is a timer, too

        for _ in range(20):
            ready = anyio.Event()
            tasks.start_soon(live, ready)
            await ready.wait()
        await settled()
        assert timers() == before + 1
        tasks.cancel_scope.cancel()


def test_an_event_loop_is_freed() -> None:
    """What is kept for it refers to it no more once nobody sleeps."""

    async def main() -> "weakref.ref[asyncio.AbstractEventLoop]":
        async with clocks() as made:
            made.start("a", 5)
            made.start("b", 3_600_000)
            await anyio.sleep(0.02)
        assert _ALARM.get(None) is not None
        return weakref.ref(asyncio.get_running_loop())

    gone = asyncio.run(main())
    gc.collect()
    assert gone() is None
