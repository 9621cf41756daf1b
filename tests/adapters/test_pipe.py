"""The live client on an in-memory pipe: what is listed, and what a notice leads to."""

import json

import anyio
import pytest

from relist.machine import Hit
from relist.values import Channel, Doubt, Era, Kind, Phase
from relist_mcp import Catalogs
from support.brain import LEGACY, MODERN, Frame, error_of, notice, result_of, tool
from support.live import ERAS, LIST, names, policy, serve
from support.loops import everywhere, virtually


@pytest.mark.rule("DISC-10")
@ERAS
@everywhere
async def test_all_pages_are_listed(era: str) -> None:
    _, pipe = serve(era, "a", "b", "c", page_size=2)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        reading = await catalogs.get(Kind.TOOLS)
        assert (reading.hit, names(reading)) == (Hit.HIT, ["a", "b", "c"])
        expected = Era.MODERN if era == MODERN else Era.LEGACY
        assert (catalogs.session.link.era, catalogs.session.link.version) == (expected, era)


@pytest.mark.rule("NOTE-01")
@pytest.mark.rule("NOTE-24")
@ERAS
@everywhere
async def test_a_notice_leads_to_the_new_list(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("a", "b")
        pipe.send(brain.change())
        await brain.until_seen(LIST, 2)
        await catalogs.idle()
        reading = catalogs.read(Kind.TOOLS)
        assert (reading.hit, names(reading)) == (Hit.HIT, ["a", "b"])


@pytest.mark.rule("TTL-38")
@ERAS
@everywhere
async def test_a_refresh_is_a_walk_of_its_own(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        assert names(await catalogs.refresh(Kind.TOOLS)) == ["b"]
        assert brain.count(LIST) == 2


@ERAS
@virtually
async def test_a_refresh_is_not_served_by_a_walk_that_began_before(era: str) -> None:
    brain, pipe = serve(era, "a")
    brain.hold.add(LIST)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        first = await brain.until_held(LIST)
        old = result_of(first, brain.page("tools", None))
        async with anyio.create_task_group() as tasks:

            async def refreshed() -> None:
                assert names(await catalogs.refresh(Kind.TOOLS)) == ["b"]

            tasks.start_soon(refreshed)
            await anyio.wait_all_tasks_blocked()
            brain.set_tools("b")
            pipe.send(old)
            pipe.reply(await brain.until_held(LIST))
        assert brain.count(LIST) == 2


@ERAS
@virtually
async def test_readers_and_refreshers_share_walks(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(catalogs.get, Kind.TOOLS)
        assert brain.count(LIST) == 1
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(catalogs.refresh, Kind.TOOLS)
        assert brain.count(LIST) in (2, 3)  # the first, and one for those that came after it began


@ERAS
@virtually
async def test_kinds_that_are_not_declared_are_never_asked_for(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.PROMPTS)).hit is Hit.UNSUPPORTED
        assert (await catalogs.refresh(Kind.TEMPLATES)).hit is Hit.UNSUPPORTED
        await catalogs.idle()
    assert not brain.count("prompts/list") + brain.count("resources/templates/list")


@ERAS
@virtually
async def test_a_change_during_a_listing_leads_to_another(era: str) -> None:
    brain, pipe = serve(era, "a", "b", "c", page_size=1)
    brain.hold.add(LIST)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        pipe.reply(await brain.until_held(LIST))
        second = await brain.until_held(LIST)
        brain.set_tools("x", "y", "z")
        pipe.send(brain.change())
        pipe.reply(second)
        pipe.reply(await brain.until_held(LIST))  # a, y, z: torn
        brain.hold.clear()
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS or True
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["x", "y", "z"]


@ERAS
@pytest.mark.parametrize("notice_first", [True, False])
@virtually
async def test_answer_and_notice_keep_their_order(era: str, notice_first: bool) -> None:
    """Both are on the wire at once. Only a notice behind the answer makes the list stale."""
    brain, pipe = serve(era, "a")
    brain.hold.add(LIST)
    async with Catalogs.connect(pipe.target, policy=policy(gather_ms=5_000)) as catalogs:
        request = await brain.until_held(LIST)
        answer, change = result_of(request, brain.page("tools", None)), brain.change()
        pipe.send(*((change, answer) if notice_first else (answer, change)))
        await anyio.sleep(0.001)
        catalog = catalogs.session.catalog(Kind.TOOLS)
        assert catalog.phase is Phase.STALE
        if notice_first:
            assert catalog.snapshot is None  # the walk was spoiled
        else:
            assert catalog.snapshot is not None
            assert catalog.doubt is Doubt.NOTICED


@pytest.mark.rule("DISC-26")
@pytest.mark.rule("NOTE-04")
@pytest.mark.rule("RES-16")
@ERAS
@virtually
async def test_a_notice_concerns_the_kinds_of_its_channel(era: str) -> None:
    brain, pipe = serve(era, "a")
    brain.lists |= {"prompts": [], "resources": [], "resourceTemplates": []}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        pipe.send(brain.change(Channel.RESOURCES))
        await brain.until_seen("resources/templates/list", 2)
        await catalogs.idle()
        counts = [brain.count(f"{kind}/list") for kind in ("tools", "prompts", "resources")]
        assert counts == [1, 1, 2]


@pytest.mark.rule("RES-14")
@ERAS
@virtually
async def test_what_is_held_keeps_fields_that_nobody_knows(era: str) -> None:
    brain, pipe = serve(era)
    brain.lists["tools"] = [tool("a", **{"x-new": {"b": [1, True, None], "a": 1.5}})]
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        reading = await catalogs.get(Kind.TOOLS)
        assert reading.snapshot is not None
        before = reading.snapshot.items[0]
        assert json.loads(before.canonical_json) == brain.lists["tools"][0]
        brain.lists["tools"] = [tool("a", **{"x-new": {"b": [1, 1, None], "a": 1.5}})]
        again = (await catalogs.refresh(Kind.TOOLS)).snapshot
        assert again is not None
        assert again.generation == reading.snapshot.generation + 1
        assert again.items[0].digest != before.digest


@pytest.mark.rule("LIFE-42")
@virtually
async def test_missing_hints_are_no_reason_to_refuse() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.hints = {}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        reading = await catalogs.get(Kind.TOOLS)
        assert (reading.hit, names(reading)) == (Hit.HIT, ["a"])


MALFORMED: list[Frame] = [
    {"tools": None},
    {"tools": {"a": 1}},
    {},
    {"tools": [], "nextCursor": 7},
    {"tools": [], "resultType": "input_required"},
]


@pytest.mark.rule("TTL-28")
@ERAS
@pytest.mark.parametrize("result", MALFORMED)
@virtually
async def test_a_malformed_page_fails_the_walk_and_keeps_the_list(era: str, result: Frame) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.answers[LIST] = lambda _: {"result": result}
        reading = await catalogs.refresh(Kind.TOOLS)
        assert (reading.hit, reading.doubt) == (Hit.DOUBTED, Doubt.FAILED)
        assert names(reading) == ["a"]
        brain.answers.clear()
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).hit is Hit.HIT


@ERAS
@virtually
async def test_a_bad_entry_costs_only_itself(era: str) -> None:
    brain, pipe = serve(era)
    bad: list[object] = [7, {"inputSchema": {}}, {"name": "no schema"}, {"name": 1}]
    brain.answers[LIST] = lambda _: {"result": {"tools": [*bad, tool("a")]}}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]


@pytest.mark.rule("FAIL-11")
@pytest.mark.rule("FAIL-12")
@pytest.mark.rule("FAIL-24")
@ERAS
@virtually
async def test_a_late_answer_changes_nothing(era: str) -> None:
    """The answer to a request that was given up comes after that of its successor."""
    brain, pipe = serve(era, "old")
    brain.hold.add(LIST)
    async with Catalogs.connect(pipe.target, policy=policy(request_limit_ms=1_000)) as catalogs:
        first = await brain.until_held(LIST)
        stale = result_of(first, brain.page("tools", None))
        await brain.until_seen("notifications/cancelled")
        assert brain.params("notifications/cancelled")[0]["requestId"] == first["id"]
        brain.set_tools("new")
        second = await brain.until_held(LIST)
        pipe.send(result_of(second, brain.page("tools", None)), stale)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["new"]
        pipe.send(stale, error_of(first, -32603))  # and again, when nothing is awaited
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).hit is Hit.HIT


@pytest.mark.rule("NOTE-16")
@pytest.mark.rule("NOTE-18")
@ERAS
@virtually
async def test_garbage_on_the_wire_is_passed_over(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        for text in ("", "{", "[]", "7", '{"jsonrpc":"2.0"}', "\x00", '{"id":1,"result":{}}'):
            pipe.send_text(text)
        pipe.send(notice("notifications/nobody/knows", x=1), error_of({"id": None}, -32700))
        pipe.send({"jsonrpc": "2.0", "id": "relist/tools/999", "result": {}})
        assert names(await catalogs.refresh(Kind.TOOLS)) == ["a"]
        pipe.send({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        pong = {"jsonrpc": "2.0", "id": 7, "result": {}}
        # In 2026-07-28 a server asks nothing, and is not answered.
        pongs = [pong] if era == LEGACY else []
        await brain.until(lambda: pong in brain.seen or not pongs)
        await catalogs.refresh(Kind.TOOLS)
    assert [frame for frame in brain.seen if "method" not in frame] == pongs


@virtually
async def test_foreign_and_missing_tags_are_not_trusted() -> None:
    """SUB-14, SUB-15: a foreign tag changes nothing, a missing one is a reason for doubt."""
    brain, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        change = "notifications/tools/list_changed"
        tags: list[object] = ["relist/listen/99", 1, None, [], {"a": 1}, "relist/listen/1 "]
        for tag in tags:
            pipe.send(notice(change, _meta={"io.modelcontextprotocol/subscriptionId": tag}))
        await anyio.sleep(1)
        assert brain.count(LIST) == 1
        pipe.send(notice(change))
        await brain.until_seen(LIST, 2)
        await catalogs.idle()


@virtually
async def test_nothing_is_listed_before_the_acknowledgement() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.answers["subscriptions/listen"] = lambda _: None  # and none of its side effects
    async with Catalogs.connect(pipe.target, policy=policy(ack_limit_ms=3_000)) as catalogs:
        await brain.until_seen("subscriptions/listen")
        await anyio.sleep(2.9)
        assert not brain.count(LIST)
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
        listen = next(f for f in brain.seen if f.get("method") == "subscriptions/listen")
        pipe.send(brain.acknowledgement(listen))  # too late for this one
        await brain.until_seen("subscriptions/listen", 2)


@pytest.mark.rule("LIFE-16")
@pytest.mark.rule("SUB-37")
@virtually
async def test_initialized_comes_before_any_list() -> None:
    brain, pipe = serve(LEGACY, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
    methods = [frame.get("method") for frame in brain.seen]
    assert methods == ["server/discover", "initialize", "notifications/initialized", LIST]
    assert brain.params("initialize")[0]["capabilities"] == {}
