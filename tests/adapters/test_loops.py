"""Virtual time, which the tests of the live client rest on: it jumps, and stands while at rest."""

import anyio
import pytest

from support.loops import at_rest, run_virtually

BACKENDS = pytest.mark.parametrize("backend", ["trio", "asyncio"])


@BACKENDS
def test_time_jumps_from_timer_to_timer(backend: str) -> None:
    woken: list[tuple[str, float]] = []

    async def sleep(name: str, seconds: float) -> None:
        began = anyio.current_time()
        await anyio.sleep(seconds)
        woken.append((name, round(anyio.current_time() - began, 6)))

    async def test() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep, "late", 90_000.0)
            tasks.start_soon(sleep, "early", 0.001)
            with anyio.move_on_after(5.0) as limit:
                await anyio.sleep_forever()
            woken.append(("limit", 5.0 if limit.cancelled_caught else 0.0))

    run_virtually(test, backend)
    assert woken == [("early", 0.001), ("limit", 5.0), ("late", 90_000.0)]


@BACKENDS
def test_at_rest_all_have_gone_as_far_as_they_can_and_no_time_went_by(backend: str) -> None:
    reached: list[str] = []

    async def go() -> None:
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        reached.append("timer")
        await anyio.sleep(0.001)
        reached.append("end")

    async def test() -> None:
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go)
            await at_rest()
            assert (reached, anyio.current_time()) == (["timer"], began)
            await anyio.sleep(0.002)
            await at_rest()
            assert reached == ["timer", "end"]

    run_virtually(test, backend)
