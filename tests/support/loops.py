"""Run async tests without a plugin: in virtual time on trio, in real time on asyncio."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

AsyncTest = Callable[..., Awaitable[None]]

VIRTUAL_LIMIT_S = 100_000.0  # a test that waits for ever ends at once: nothing else is left to do
REAL_LIMIT_S = 120.0  # nobody waits that long unless something hangs


def run_virtually(test: AsyncTest) -> None:
    """Run it on trio, where the clock jumps as soon as everybody waits for it."""
    clock = MockClock(autojump_threshold=0)
    options = {"clock": clock, "strict_exception_groups": True}
    anyio.run(_limited, test, VIRTUAL_LIMIT_S, backend="trio", backend_options=options)


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
    """A test on both: it must be quick, since on asyncio time is real."""

    def run(backend: str, **arguments: Any) -> None:
        runner = run_virtually if backend == "trio" else run_really
        runner(functools.partial(test, **arguments))

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
