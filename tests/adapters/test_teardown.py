"""Leaving the block at any moment: nothing leaks, nobody waits for ever, errors come out bare."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint
from trio.testing import MockClock

from relist.machine import Hit
from relist.values import Kind, LinkPhase
from relist_mcp import Catalogs, NotConnected, Streams
from support.brain import LEGACY, MODERN, Brain
from support.cancel import CancelAt
from support.live import ERAS, LIST, policy, serve
from support.loops import everywhere, virtually
from support.pipe import Pipe
from support.web import Web

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

Server = Pipe | Web
Serves = Callable[[Brain], Server]
QUICK: dict[str, Any] = {
    "gather_ms": 0,
    "gap_base_ms": 1,
    "backoff_base_ms": 1,
    "backoff_max_ms": 1,
    "uncovered_grace_ms": 0,
}


async def _day(server: Server) -> None:
    """What happens in a life: listing, a notice, a call, a lost server, a refresh, the end."""
    brain = server.brain
    async with Catalogs.connect(server.target, policy=policy(**QUICK)) as catalogs:
        await catalogs.get(Kind.TOOLS)
        await catalogs.idle()
        brain.set_tools("b")
        if isinstance(server, Pipe):
            server.send(brain.change())
            await brain.until_seen(LIST, 2)
            await catalogs.tools.get(at_least=2)
            await catalogs.call_tool("b", {})
            server.cut()
        else:
            server.change()
            await brain.until_seen(LIST, 2)
            await catalogs.tools.get(at_least=2)
            await catalogs.call_tool("b", {})
            for stream in (*server.streams, *server.bodies.values()):
                stream.cut()
        await brain.until_seen(LIST, 3)
        await catalogs.refresh(Kind.TOOLS)
        await catalogs.idle()


def _cancelled_at(step: int, server: Server) -> int:
    """The day, cancelled at this step; how many steps it had."""
    instrument = CancelAt(step)

    async def day() -> None:
        with trio.CancelScope() as scope:
            instrument.scope = scope
            await _day(server)
        instrument.scope = None

    clock = MockClock(autojump_threshold=0)
    anyio.run(day, backend="trio", backend_options={"clock": clock, "instruments": [instrument]})
    return instrument.steps


def _check_closed(server: Server) -> None:
    if isinstance(server, Web):
        assert not [stream for stream in (*server.streams, *server.bodies.values()) if stream.open]
    else:
        assert server.open == 0


SERVERS = pytest.mark.parametrize("serves", [Pipe, Web])


@SERVERS
@ERAS
def test_cancelling_at_every_step_leaks_nothing(
    era: str, serves: Callable[[Brain], Server]
) -> None:
    steps = _cancelled_at(-1, serves(Brain(era, "a")))
    assert steps > 100
    for step in range(1, steps, 1 if serves is Pipe else 2):
        server = serves(Brain(era, "a"))
        _cancelled_at(step, server)
        _check_closed(server)


@SERVERS
@ERAS
def test_cancelling_on_asyncio_leaks_nothing(era: str, serves: Serves) -> None:
    async def day(server: Server, rounds: int) -> None:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:

                async def cancel() -> None:
                    for _ in range(rounds):
                        await checkpoint()
                    scope.cancel()

                tasks.start_soon(cancel)
                await _day(server)
                tasks.cancel_scope.cancel()

    for rounds in range(1, 300, 7):
        server = serves(Brain(era, "a"))
        anyio.run(day, server, rounds)
        _check_closed(server)


@everywhere
async def test_a_transport_that_fails_while_it_is_cancelled_is_just_gone() -> None:
    _, pipe = serve(MODERN, "a")

    @asynccontextmanager
    async def failing() -> AsyncGenerator[Any]:
        async with pipe.target.connect() as streams, anyio.create_task_group() as tasks:
            try:
                tasks.start_soon(anyio.sleep_forever)
                yield streams
            finally:
                raise RuntimeError("scripted")

    with anyio.move_on_after(0.02) as scope:
        async with Catalogs.connect(Streams(failing), policy=policy()) as catalogs:
            await catalogs.idle()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert pipe.open == 0


# --- errors of the block --------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("when", ["at once", "later"])
@virtually
async def test_an_error_of_the_block_comes_out_as_it_is(error: BaseException, when: str) -> None:
    _, pipe = serve(MODERN, "a")

    async def block() -> None:
        async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
            if when == "later":
                await catalogs.idle()
            raise error

    with pytest.raises(type(error)) as caught:
        await block()
    assert caught.value is error
    assert pipe.open == 0


@everywhere
async def test_a_group_of_the_block_comes_out_as_it_is() -> None:
    _, pipe = serve(MODERN, "a")
    mine = ExceptionGroup("mine", [ValueError("1"), KeyError("2")])
    with pytest.raises(ExceptionGroup) as caught:
        async with Catalogs.connect(pipe.target, policy=policy()):
            raise mine
    assert caught.value is mine


@everywhere
async def test_an_error_under_cancellation_is_not_lost() -> None:
    _, pipe = serve(MODERN, "a")

    async def block() -> None:
        with anyio.CancelScope() as scope:
            async with Catalogs.connect(pipe.target, policy=policy()):
                scope.cancel()
                raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await block()


@everywhere
async def test_a_limit_around_the_block_or_within_it_works() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.hold.add(LIST)
    with anyio.move_on_after(0.02) as outer:
        async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
            await catalogs.get(Kind.TOOLS)
    assert outer.cancelled_caught
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        with pytest.raises(TimeoutError), anyio.fail_after(0.02):
            await catalogs.get(Kind.TOOLS)
        assert catalogs.read(Kind.TOOLS).hit is Hit.MISS


# --- those who wait outside -----------------------------------------------------------------------

WAITS: list[Callable[[Catalogs], Awaitable[object]]] = [
    lambda catalogs: catalogs.get(Kind.TOOLS),
    lambda catalogs: catalogs.refresh(Kind.TOOLS),
    lambda catalogs: catalogs.idle(),
]


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("cancelled", [False, True])
@everywhere
async def test_nobody_waits_for_what_is_closed(
    wait: Callable[[Catalogs], Awaitable[object]], cancelled: bool
) -> None:
    brain, pipe = serve(LEGACY, "a")
    brain.hold |= {LIST, "tools/call"}
    waited: list[object] = []

    async def waiting(catalogs: Catalogs) -> None:
        waited.append(await wait(catalogs))

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
                await brain.until_seen(LIST)
                tasks.start_soon(waiting, catalogs)
                await checkpoint()
                if cancelled:
                    scope.cancel()
                    await checkpoint()
    assert len(waited) == 1
    await wait(catalogs)  # nor for what has long been closed
    assert catalogs.session.link.phase is LinkPhase.CLOSED
    with pytest.raises(NotConnected, match="closed"):
        await catalogs.call_tool("a", {})


@ERAS
@everywhere
async def test_closing_before_anything_happened(era: str) -> None:
    _, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()):
        pass
    assert pipe.open == 0
