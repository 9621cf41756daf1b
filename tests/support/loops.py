"""Run async tests without a plugin: in virtual time, or in real time, on trio and on asyncio."""

import asyncio
import functools
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

AsyncTest = Callable[..., Awaitable[None]]

VIRTUAL_LIMIT_S = 100_000.0  # a test that waits for ever ends at once: nothing else is left to do
REAL_LIMIT_S = 120.0  # nobody waits that long unless something hangs


class VirtualLoop(asyncio.SelectorEventLoop):
    """The clock of this loop jumps to the next timer once nothing else is left to do.

    For what neither reads from a descriptor nor starts a thread.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        self._now_s = 0.0
        self._resting: deque[asyncio.Future[None]] = deque()
        super().__init__()

    def time(self) -> float:
        return self._now_s

    async def at_rest(self) -> None:
        """Return once nobody else can go on before time does."""
        turn = self.create_future()
        self._resting.append(turn)
        await turn

    def _run_once(self) -> None:
        if not self._ready and self._resting:
            self._resting.popleft().set_result(None)
        elif not self._ready and self._scheduled:
            self._now_s = max(self._now_s, self._scheduled[0].when())
        super()._run_once()  # type: ignore[misc]


async def at_rest() -> None:
    """In virtual time: wait until everybody else waits. No time goes by."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        await anyio.wait_all_tasks_blocked()
    else:
        assert isinstance(loop, VirtualLoop)
        await loop.at_rest()


def run_virtually(test: AsyncTest, backend: str = "trio") -> None:
    """Run it where the clock jumps as soon as everybody waits for it."""
    options: dict[str, Any] = {"loop_factory": VirtualLoop}
    if backend == "trio":
        options = {"clock": MockClock(autojump_threshold=0), "strict_exception_groups": True}
    anyio.run(_limited, test, VIRTUAL_LIMIT_S, backend=backend, backend_options=options)


def run_really(test: AsyncTest, backend: str = "asyncio") -> None:
    """Run it in real time."""
    anyio.run(_limited, test, REAL_LIMIT_S, backend=backend)


async def _limited(test: AsyncTest, limit_s: float) -> None:
    with anyio.fail_after(limit_s):
        await test()


def virtually(test: AsyncTest) -> Callable[..., None]:
    """A test on trio, in virtual time."""

    @functools.wraps(test)
    def run(**arguments: Any) -> None:
        run_virtually(functools.partial(test, **arguments))

    return run


def really(test: AsyncTest) -> Callable[..., None]:
    """A test in real time, on trio and on asyncio."""

    def run(backend: str, **arguments: Any) -> None:
        run_really(functools.partial(test, **arguments), backend)

    return _on_both(run, test)


def everywhere(test: AsyncTest) -> Callable[..., None]:
    """A test on trio and on asyncio, in virtual time."""

    def run(backend: str, **arguments: Any) -> None:
        run_virtually(functools.partial(test, **arguments), backend)

    return _on_both(run, test)


def _on_both(run: Callable[..., None], test: AsyncTest) -> Callable[..., None]:
    functools.update_wrapper(run, test)
    del run.__wrapped__  # type: ignore[attr-defined]
    own = inspect.Parameter("backend", inspect.Parameter.KEYWORD_ONLY)
    signature = inspect.signature(test)
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), own]
    )
    on_both: Callable[..., Callable[..., None]] = pytest.mark.parametrize(
        "backend", ["trio", "asyncio"]
    )
    return on_both(run)
