"""Items as JSON objects: what the server said, read once for each item that stays."""

from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relist.values import Item, Kind
from relist_mcp import Catalogs
from relist_mcp.hearing import canonical
from relist_mcp.parsed import Parsed
from support.brain import Brain, tool
from support.live import ERAS, LIST, names, policy
from support.loops import everywhere, virtually
from support.pipe import Pipe

NUMBERS = {"t": True, "one": 1, "float": 1.0, "big": 2**70, "none": None}
ODD = tool("odd", title="\u00e9", **{"x-unknown": {"kept": [NUMBERS]}})


@ERAS
@everywhere
async def test_what_the_server_said_is_there_with_every_field(era: str) -> None:
    brain = Brain(era)
    brain.lists["tools"] = [ODD, tool("b")]
    async with Catalogs.connect(Pipe(brain).target, policy=policy()) as catalogs:
        reading = await catalogs.tools.get()
        odd, b = catalogs.tools.parsed(reading)
        assert odd == ODD
        assert repr(odd["x-unknown"]["kept"]) == repr([dict(sorted(NUMBERS.items()))])
        assert mcp_types.Tool.model_validate(b, by_name=False).name == "b"
        assert catalogs.prompts.parsed(catalogs.prompts.read()) == ()


@virtually
async def test_only_what_changed_is_read_again() -> None:
    brain = Brain()
    brain.set_tools("a", "b", "c")
    pipe = Pipe(brain)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        tools = catalogs.tools
        before = tools.parsed(await tools.get())
        assert tools.parsed(await tools.refresh()) is before  # nothing differs
        brain.lists["tools"] = [tool("c"), tool("b", title="B"), tool("d"), tool("a")]
        pipe.send(brain.change())
        await brain.until_seen(LIST, 3)
        await catalogs.idle()
        after = tools.parsed(tools.read())
        assert [entry["name"] for entry in after] == names(tools.read()) == ["c", "b", "d", "a"]
        assert catalogs.tools.parsed(catalogs.tools.read()) is after  # whoever asks
        assert after[0] is before[2]
        assert after[3] is before[0]
        assert after[1] == tool("b", title="B")


@virtually
async def test_an_older_reading_is_still_what_it_was() -> None:
    brain = Brain()
    brain.set_tools("a", "b")
    async with Catalogs.connect(Pipe(brain).target, policy=policy()) as catalogs:
        tools = catalogs.tools
        old = await tools.get()
        brain.set_tools("b", "c")
        new = await tools.refresh()
        for reading in (new, old, new):
            assert [entry["name"] for entry in tools.parsed(reading)] == names(reading)


@pytest.mark.parametrize("kind", Kind)
@virtually
async def test_each_kind_has_its_own(kind: Kind) -> None:
    brain = Brain()
    brain.lists = {
        "tools": [tool("a")],
        "prompts": [{"name": "a"}],
        "resources": [{"uri": "a"}],
        "resourceTemplates": [{"uriTemplate": "a"}],
    }
    async with Catalogs.connect(Pipe(brain).target, policy=policy()) as catalogs:
        await catalogs.idle()
        views = (catalogs.tools, catalogs.prompts, catalogs.resources, catalogs.templates)
        (view,) = (view for view in views if view.kind is kind)
        (entry,) = view.parsed(view.read())
        assert "a" in entry.values()


KEYS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)
LISTS = st.lists(st.tuples(KEYS, st.integers(0, 1)), max_size=8)


@given(LISTS)
def test_entries_are_those_of_the_items_whatever_came_before(
    lists: list[tuple[list[str], int]],
) -> None:
    parsed = Parsed()
    pool: dict[tuple[str, int], Item] = {}
    for keys, version in lists:
        entries: list[Any] = [{"name": key, "v": version} for key in keys]
        items = tuple(
            pool.setdefault((key, version), Item(key, canonical(entry)))
            for key, entry in zip(keys, entries, strict=True)
        )
        assert list(parsed.of(items)) == entries
        assert parsed.of(items) is parsed.of(items)
        assert len(parsed._items) == len(parsed._entries) == len(keys)  # and nothing older
