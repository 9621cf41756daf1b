"""One kind as an application meets it: barriers, changes, surfaces, in both eras."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from relist.errors import ImpossibleAct
from relist.machine import Hit
from relist.surface import Lag
from relist.values import Doubt, Item, Kind
from relist_mcp import Catalogs
from relist_mcp.changes import Change, Changed, change, fields
from support.brain import tool
from support.live import ERAS, LIST, names, policy, serve
from support.loops import everywhere, virtually

rule = pytest.mark.rule


def item(key: str, text: str) -> Item:
    return Item(key, text.encode())


async def _next(changes: AsyncGenerator[Change]) -> Change:
    with anyio.fail_after(60):
        return await anext(changes)


# --- changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('{"a":1}', '{"a":true}', ("a",)),
        ('{"a":1,"b":2}', '{"b":2}', ("a",)),
        ('{"b":{"x":1,"y":2}}', '{"a":null,"b":{"y":2,"x":1}}', ("a",)),
        ('{"b":[1,2],"a":0}', '{"b":[2,1],"a":0.0}', ("a", "b")),
    ],
)
def test_fields_differ_as_json_does(before: str, after: str, expected: tuple[str, ...]) -> None:
    assert fields(item("k", before), item("k", after)) == expected


@rule("NOTE-20")
def test_nothing_is_no_change() -> None:
    assert change(Kind.TOOLS, None, None) is None


@rule("RES-15")
@ERAS
@everywhere
async def test_each_change_is_told_once_and_with_its_fields(era: str) -> None:
    brain, pipe = serve(era, "a", "b")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        changes = catalogs.tools.changes()
        first = catalogs.tools.read().snapshot
        assert first is not None
        await catalogs.tools.refresh()  # the same again: nothing to tell
        brain.lists["tools"] = [tool("c"), tool("b", description="new")]
        pipe.send(brain.change())
        told = await _next(changes)
        await changes.aclose()
        assert (told.kind, told.generation) == (Kind.TOOLS, 2)
        assert [entry.key for entry in told.added] == ["c"]
        assert told.removed == (first.items[0],)
        assert [(one.after.key, one.fields) for one in told.changed] == [("b", ("description",))]
        assert isinstance(told.changed[0], Changed)


@virtually
async def test_changes_end_with_the_block() -> None:
    _, pipe = serve("2026-07-28", "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        changes = catalogs.tools.changes()
    assert [told async for told in changes] == []


# --- waiting --------------------------------------------------------------------------------------


@ERAS
@virtually
async def test_a_list_that_is_young_enough_is_good_enough(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy(lazy=True)) as catalogs:
        assert names(await catalogs.tools.get()) == ["a"]
        pipe.send(brain.change())
        while catalogs.tools.read().doubt is None:
            await anyio.lowlevel.checkpoint()
        listed = brain.count(LIST)
        reading = await catalogs.tools.get(max_stale_ms=10_000)
        assert (reading.hit, reading.doubt) == (Hit.DOUBTED, Doubt.NOTICED)
        assert brain.count(LIST) == listed
        await anyio.sleep(11)
        assert (await catalogs.tools.get(max_stale_ms=10_000)).hit is Hit.HIT
        assert brain.count(LIST) == listed + 1


@ERAS
@virtually
async def test_a_generation_is_a_barrier(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        done: list[Any] = []

        async def wait() -> None:
            done.append(await catalogs.tools.get(at_least=2))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert not done
            brain.set_tools("b")
            pipe.send(brain.change())
        assert names(done[0]) == ["b"]


@virtually
async def test_what_the_server_does_not_have_is_not_waited_for() -> None:
    _, pipe = serve("2026-07-28", "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        assert (await catalogs.prompts.get(at_least=1)).hit is Hit.UNSUPPORTED
        assert (await catalogs.templates.wait_fresh()).hit is Hit.UNSUPPORTED


@ERAS
@virtually
async def test_waiting_for_a_fresh_list_asks_for_nothing(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy(gather_ms=500)) as catalogs:
        assert (await catalogs.tools.wait_fresh()).hit is Hit.HIT
        brain.set_tools("b")
        pipe.send(brain.change())
        while catalogs.tools.read().doubt is None:
            await anyio.lowlevel.checkpoint()
        began = anyio.current_time()
        assert names(await catalogs.tools.wait_fresh()) == ["b"]
        assert anyio.current_time() - began >= 0.5  # its window was not cut short


# --- surfaces -------------------------------------------------------------------------------------


@rule("ATOM-16")
@rule("OBS-04")
@virtually
async def test_a_surface_is_adopted_by_generation_and_count() -> None:
    brain, pipe = serve("2026-07-28", "a", "b")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert catalogs.tools.surface() is None
        await catalogs.idle()
        surface = catalogs.tools.surface()
        assert surface is not None
        assert [entry.key for entry in surface.items] == ["a", "b"]
        with pytest.raises(ImpossibleAct, match="count"):
            surface.adopted(3)
        surface.adopted(1)
        await catalogs.idle()
        assert catalogs.tools.lag() == Lag(0, 1, 2)
        brain.set_tools("a")
        pipe.send(brain.change())
        while catalogs.tools.lag().generations != 1:
            await catalogs.idle()
            await anyio.lowlevel.checkpoint()
        assert catalogs.tools.lag() == Lag(1, 1, 1)


@rule("CALL-28")
@virtually
async def test_what_has_two_definitions_is_not_handed_out() -> None:
    brain, pipe = serve("2026-07-28")
    brain.lists["tools"] = [tool("a"), tool("a", description="other"), tool("b")]
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        surface = catalogs.tools.surface()
        assert surface is not None
        assert [entry.key for entry in surface.items] == ["b"]
