"""What resources contain, on live sessions: kept, doubted by updates, never mixed up with lists."""

from collections.abc import AsyncGenerator

import anyio
import pytest
from mcp import MCPError
from mcp_types import ReadResourceResult, TextResourceContents

from relist import inputs as i
from relist.errors import ImpossibleAct
from relist.values import Kind
from relist_mcp import Catalogs, Credentials, Rejected
from relist_mcp.contents import NEWS_MAX
from relist_mcp.exchange import now_ms
from support.brain import LEGACY, MODERN, Brain, Frame, error_of
from support.live import ERAS, policy, serve, serve_http
from support.loops import everywhere, virtually
from support.pipe import Pipe

rule = pytest.mark.rule
READ, LISTS = "resources/read", "resources/list"
SUBSCRIBE, UNSUBSCRIBE, LISTEN = (
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
)


def serve_resources(era: str, *uris: str) -> tuple[Brain, Pipe]:
    """A server with these resources, whose updates can be had."""
    brain, pipe = serve(era)
    brain.lists = {"resources": [{"name": uri, "uri": uri} for uri in uris]}
    brain.subscribe = True
    return brain, pipe


def text(result: ReadResourceResult) -> str:
    """Which read this is: the server counts them."""
    (content,) = result.contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def watched(catalogs: Catalogs, *uris: str) -> None:
    """Wait until updates of exactly these would be heard."""
    while True:
        updates = catalogs.session.updates
        if updates.held | {topic for topic in updates.listen.granted if isinstance(topic, str)} == {
            *uris
        }:
            return
        await catalogs._loop.moved()


async def first(updates: AsyncGenerator[str]) -> str:
    """The next resource that changed."""
    return await anext(updates)


# --- kept -----------------------------------------------------------------------------------------


@rule("RES-08")
@everywhere
async def test_a_read_is_kept_for_as_long_as_the_server_said() -> None:
    brain, pipe = serve_resources(MODERN, "x://1")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        for uri, found in (("x://1", "read 1"), ("x://1", "read 1"), ("x://1/", "read 2")):
            assert text(await catalogs.read_resource(uri)) == found
    assert brain.count(READ) == 2


@rule("TTL-06")
@virtually
async def test_a_lifetime_ends_and_a_missing_one_is_over_at_once() -> None:
    brain, pipe = serve_resources(MODERN, "x://1")
    brain.hints["ttlMs"] = 5_000
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert text(await catalogs.read_resource("x://1")) == "read 1"
        await anyio.sleep(4.9)
        assert text(await catalogs.read_resource("x://1")) == "read 1"
        await anyio.sleep(0.2)
        for count, wrong in enumerate((None, "x", -1, 1.5, True), start=2):
            brain.hints["ttlMs"] = wrong
            assert text(await catalogs.read_resource("x://1")) == f"read {count}"
        del brain.hints["ttlMs"]
        assert text(await catalogs.read_resource("x://1")) == "read 7"


@everywhere
async def test_a_lifetime_means_nothing_from_a_legacy_server() -> None:
    brain, pipe = serve_resources(LEGACY, "x://1")
    contents = [{"uri": "x://1", "text": "x"}]
    brain.answers[READ] = lambda _: {"result": {"contents": contents, "ttlMs": 60_000}}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.read_resource("x://1")
        await catalogs.read_resource("x://1")
    assert brain.count(READ) == 2


@rule("RES-13")
@rule("CALL-24")
@ERAS
@everywhere
async def test_what_is_not_listed_may_be_read(era: str) -> None:
    brain, pipe = serve_resources(era)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert text(await catalogs.read_resource("x://elsewhere")) == "read 1"
    assert [params["uri"] for params in brain.params(READ)] == ["x://elsewhere"]


@pytest.mark.parametrize("result", [{}, {"contents": 5}, {"contents": [{}], "ttlMs": 60_000}])
@everywhere
async def test_a_result_of_the_wrong_shape_is_an_error_and_not_kept(result: Frame) -> None:
    brain, pipe = serve_resources(MODERN, "x://1")
    brain.answers[READ] = lambda _: {"result": result}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        for _ in range(2):
            with pytest.raises(MCPError, match="malformed"):
                await catalogs.read_resource("x://1")
    assert brain.count(READ) == 2


@rule("RES-11")
@rule("RES-12")
@pytest.mark.parametrize("code", [-32602, -32002])
@ERAS
@everywhere
async def test_not_found_brings_a_walk_where_it_is_listed(era: str, code: int) -> None:
    brain, pipe = serve_resources(era, "x://1")
    brain.answers[READ] = lambda frame: {"error": error_of(frame, code)["error"]}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        for uri, walks in (("x://unlisted", 1), ("x://1", 2)):
            with pytest.raises(Rejected) as caught:
                await catalogs.read_resource(uri)
            assert (caught.value.code, caught.value.kind) == (code, Kind.RESOURCES)
            await catalogs.idle()
            assert brain.count(LISTS) == walks


# --- whose it is ----------------------------------------------------------------------------------


@rule("RES-10")
@rule("AUTH-03")
@pytest.mark.parametrize("scope", ["public", "private", None, 5, []])
@everywhere
async def test_what_is_private_is_not_shown_to_somebody_else(scope: object) -> None:
    brain, pipe = serve_resources(MODERN, "x://1")
    brain.hints["cacheScope"] = scope
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.read_resource("x://1")
        catalogs.change_credentials(Credentials(partition="other"))
        assert ("x://1" in catalogs._contents._contents) is (scope == "public")
        found = text(await catalogs.read_resource("x://1"))
    assert found == ("read 1" if scope == "public" else "read 2")


@rule("RES-10")
@everywhere
async def test_a_read_for_one_user_that_ends_under_another_is_not_kept() -> None:
    brain, web = serve_http(MODERN)
    brain.lists = {"resources": []}
    brain.hold.add(READ)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_or_lost, catalogs, "x://1")
            await brain.until_held(READ)
            brain.hold.clear()
            catalogs.change_credentials(Credentials(partition="other"))
        assert text(await catalogs.read_resource("x://1")) == "read 2"


async def _read_or_lost(catalogs: Catalogs, uri: str) -> None:
    with pytest.raises(MCPError):
        await catalogs.read_resource(uri)


# --- updates --------------------------------------------------------------------------------------


@rule("STATE-15")
@rule("RES-01")
@rule("RES-03")
@rule("RES-04")
@rule("RES-06")
@ERAS
@everywhere
async def test_an_update_concerns_one_resource_and_no_list(era: str) -> None:
    brain, pipe = serve_resources(era, "x://1", "x://2")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        catalogs.subscribe("x://1")
        await watched(catalogs, "x://1")
        for uri in ("x://1", "x://2"):
            await catalogs.read_resource(uri)
        updates = catalogs.updates()
        pipe.send(brain.update("x://1"))
        assert await first(updates) == "x://1"
        again, other = brain.count(READ) + 1, brain.count(READ) + (era == LEGACY)
        assert text(await catalogs.read_resource("x://1")) == f"read {again}"
        assert text(await catalogs.read_resource("x://2")) == f"read {1 + other}" or era == MODERN
        assert brain.count(READ) == (3 if era == MODERN else 4)
        assert catalogs.resources.read().doubt is None
        await catalogs.idle()
    assert brain.count(LISTS) == 1
    if era == LEGACY:
        assert brain.params(SUBSCRIBE) == [{"uri": "x://1"}]
    else:
        wanted = [params["notifications"] for params in brain.params(LISTEN)]
        assert {"resourceSubscriptions": ["x://1"]} in wanted
    await updates.aclose()


@rule("RES-06")
@everywhere
async def test_an_update_counts_although_it_was_not_fed_yet() -> None:
    _, pipe = serve_resources(MODERN)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        catalogs.subscribe("x://1")
        await watched(catalogs, "x://1")
        await catalogs.read_resource("x://1")
        serial = catalogs.session.updates.listen.stream
        catalogs.tell(i.UpdateHeard("x://1", serial, now_ms()))
        assert text(await catalogs.read_resource("x://1")) == "read 2"


@rule("RES-05")
@everywhere
async def test_an_update_of_what_lies_below_counts() -> None:
    brain, pipe = serve_resources(MODERN)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        catalogs.subscribe("x://dir")
        await watched(catalogs, "x://dir")
        await catalogs.read_resource("x://dir")
        updates = catalogs.updates()
        pipe.send(brain.update("x://dir/a"))
        assert await first(updates) == "x://dir/a"
        assert text(await catalogs.read_resource("x://dir")) == "read 2"
    await updates.aclose()


@rule("RES-07")
@rule("SUB-39")
@ERAS
@everywhere
async def test_subscriptions_are_made_again_and_what_they_covered_is_doubted(era: str) -> None:
    brain, pipe = serve_resources(era)
    async with Catalogs.connect(pipe.target, policy=policy(backoff_base_ms=1)) as catalogs:
        catalogs.subscribe("x://1")
        await watched(catalogs, "x://1")
        await catalogs.read_resource("x://1")
        await catalogs.read_resource("x://2")
        before, updates = brain.count(READ), catalogs.updates()
        pipe.cut()
        assert await first(updates) == "x://1"
        await brain.until(lambda: pipe.opened == 2)
        await watched(catalogs, "x://1")
        await catalogs.read_resource("x://1")
        assert brain.count(READ) == before + 1
    asked = brain.params(SUBSCRIBE if era == LEGACY else LISTEN)
    named = [one for one in asked if "x://1" in str(one)]
    assert len(named) == 2
    await updates.aclose()


@ERAS
@everywhere
async def test_what_is_wanted_no_more_is_not_heard_of(era: str) -> None:
    brain, pipe = serve_resources(era)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        catalogs.subscribe("x://1")
        catalogs.subscribe("x://2")
        await watched(catalogs, "x://1", "x://2")
        catalogs.unsubscribe("x://1")
        await watched(catalogs, "x://2")
        updates = catalogs.updates()
        pipe.send(brain.update("x://1"), brain.update("x://2"))
        assert await first(updates) == "x://2"
    if era == LEGACY:
        assert brain.params(UNSUBSCRIBE) == [{"uri": "x://1"}]
    await updates.aclose()


@rule("RES-19")
@ERAS
@everywhere
async def test_what_is_listed_no_more_stays_subscribed_to(era: str) -> None:
    brain, pipe = serve_resources(era, "x://1", "x://2")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        catalogs.subscribe("x://1")
        await watched(catalogs, "x://1")
        brain.lists = {"resources": [{"name": "x://2", "uri": "x://2"}]}
        snapshot = (await catalogs.resources.refresh()).snapshot
        assert snapshot is not None
        assert [item.key for item in snapshot.items] == ["x://2"]
        updates = catalogs.updates()
        pipe.send(brain.update("x://1"))
        assert await first(updates) == "x://1"
    assert brain.params(UNSUBSCRIBE) == []
    await updates.aclose()


@everywhere
async def test_too_many_subscriptions_are_the_caller_s_mistake() -> None:
    _, pipe = serve_resources(MODERN)
    async with Catalogs.connect(pipe.target, policy=policy(subscriptions_max=1)) as catalogs:
        catalogs.subscribe("x://1")
        catalogs.subscribe("x://1")
        with pytest.raises(ImpossibleAct, match="subscriptions_max"):
            catalogs.subscribe("x://2")
        await watched(catalogs, "x://1")


@rule("RES-17")
@ERAS
@everywhere
async def test_an_update_that_nobody_asked_for_has_no_effect(era: str) -> None:
    brain, pipe = serve_resources(era)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        catalogs.subscribe("x://1")
        await watched(catalogs, "x://1")
        await catalogs.read_resource("x://9")
        count, updates = brain.count(READ), catalogs.updates()
        pipe.send(brain.update("x://9"), brain.update("x://1"))
        assert await first(updates) == "x://1"
        await catalogs.read_resource("x://9")
        assert brain.count(READ) == count + (era == LEGACY)
    await updates.aclose()


# --- races ----------------------------------------------------------------------------------------


@rule("RES-06")
@pytest.mark.parametrize("order", ["before", "after", "much later"])
@everywhere
async def test_a_read_that_an_update_crosses_is_not_kept(order: str) -> None:
    brain, pipe = serve_resources(MODERN)
    brain.hold.add(READ)
    found: list[str] = []

    async def read() -> None:
        found.append(text(await catalogs.read_resource("x://1")))

    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        catalogs.subscribe("x://1")
        await watched(catalogs, "x://1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            request = await brain.until_held(READ)
            brain.hold.clear()
            answer, update = brain.answer(request), brain.update("x://1")
            assert answer is not None
            updates = catalogs.updates()
            if order == "before":
                pipe.send(update, answer)
            elif order == "after":
                pipe.send(answer, update)
            else:
                pipe.send(update)
                await first(updates)
                pipe.send(answer)
        if order == "after":
            await first(updates)
        assert found == ["read 1"]
        assert text(await catalogs.read_resource("x://1")) == "read 2"
        assert text(await catalogs.read_resource("x://1")) == "read 2"
    await updates.aclose()


@everywhere
async def test_an_update_of_something_else_is_no_matter_to_a_read_under_way() -> None:
    brain, pipe = serve_resources(MODERN)
    brain.hold.add(READ)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        catalogs.subscribe("x://2")
        await watched(catalogs, "x://2")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(catalogs.read_resource, "x://1")
            request = await brain.until_held(READ)
            pipe.send(brain.update("x://2"))
            pipe.reply(request)
        assert text(await catalogs.read_resource("x://1")) == "read 1"


# --- the news -------------------------------------------------------------------------------------


@everywhere
async def test_who_is_slow_hears_of_each_resource_once() -> None:
    brain, pipe = serve_resources(MODERN)
    heard: list[str] = []
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        catalogs.subscribe("x://dir")
        await watched(catalogs, "x://dir")
        updates = catalogs.updates()
        told = ("x://dir/a", "x://dir/b", "x://dir/a", "x://dir")
        pipe.send(*(brain.update(uri) for uri in told))
        while "x://dir" not in heard:
            heard.append(await first(updates))
    assert len(heard) <= len(told)
    assert heard[-2:] == ["x://dir/a", "x://dir"]
    assert [uri async for uri in updates] == []
    await updates.aclose()


@everywhere
async def test_of_too_many_what_was_subscribed_to_is_told_instead() -> None:
    brain, pipe = serve_resources(MODERN)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        catalogs.subscribe("x://dir")
        await watched(catalogs, "x://dir")
        updates = catalogs.updates()
        for number in range(2 * NEWS_MAX):
            pipe.send(brain.update(f"x://dir/{number}"))
        last = f"x://dir/{2 * NEWS_MAX - 1}"
        while last not in catalogs._contents._news:
            await catalogs._loop.moved()
        assert len(catalogs._contents._news) <= NEWS_MAX + 2
        heard = [await first(updates)]
        while "x://dir" not in heard:
            heard.append(await first(updates))
    assert last in heard
    assert len(heard) <= NEWS_MAX + 2
    await updates.aclose()


@ERAS
@everywhere
async def test_a_uri_that_cannot_be_put_on_the_wire_ends_no_link(era: str) -> None:
    """The SDK's transports end with it, and a subscription would be made again on each link."""
    _, pipe = serve_resources(era, "x://1")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        for ask in (
            lambda: catalogs.read_resource("x://\ud800"),
            lambda: catalogs.request(READ, {"uri": "x://\ud800"}),
            lambda: catalogs.request(READ, {"uri": float("nan")}),
        ):
            with pytest.raises(ImpossibleAct) as caught:
                await ask()
            assert "\ud800" not in str(caught.value)
        with pytest.raises(ImpossibleAct):
            catalogs.subscribe("x://\ud800")
        await catalogs.read_resource("x://1")
        assert pipe.opened == 1
