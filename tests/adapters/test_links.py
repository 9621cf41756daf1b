"""The live client on an in-memory pipe: eras, subscriptions, lost and slow servers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from relist.machine import Hit
from relist.values import Channel, Doubt, Kind, LinkPhase, ListenPhase, Phase
from relist_mcp import Catalogs, Streams
from support.brain import LEGACY, MODERN, Brain, Frame, error_of, notice, result_of
from support.live import ERAS, LIST, connections, names, policy, serve
from support.loops import everywhere, virtually
from support.pipe import Pipe

LISTEN = "subscriptions/listen"

# --- which era ------------------------------------------------------------------------------------


@virtually
async def test_silence_on_discovery_means_legacy() -> None:
    brain, pipe = serve(LEGACY, "a")
    brain.answers["server/discover"] = lambda _: None
    async with Catalogs.connect(pipe.target, policy=policy(probe_limit_ms=2_000)) as catalogs:
        started_s = anyio.current_time()
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
        assert 2 <= anyio.current_time() - started_s < 2.1
        assert not brain.count("notifications/cancelled")  # negotiation is never cancelled


@pytest.mark.parametrize(
    ("supported", "era"),
    [([MODERN], MODERN), ([LEGACY, "2099-01-01"], LEGACY), (["1999-01-01"], None)],
)
@virtually
async def test_an_unsupported_version_names_those_it_has(
    supported: list[str], era: str | None
) -> None:
    brain, pipe = serve(era or MODERN, "a")
    refused: list[Frame] = []

    def discover(frame: Frame) -> Frame:
        if refused:
            return {"result": brain.discovery()}
        refused.append(frame)
        error = {"code": -32022, "message": "no", "data": {"supported": supported}}
        return {"error": error}

    brain.answers["server/discover"] = discover
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        reading = await catalogs.get(Kind.TOOLS)
        await catalogs.idle()
        if era is None:
            assert reading.hit is Hit.MISS
            assert catalogs.session.link.phase is LinkPhase.REFUSED
            assert not brain.count(LIST) + brain.count("initialize")
        else:
            assert (names(reading), catalogs.session.link.version) == (["a"], era)


@pytest.mark.parametrize(
    "greeting", [{}, {"protocolVersion": 7}, {"protocolVersion": "1999-01-01"}]
)
@virtually
async def test_a_greeting_of_no_use_leads_to_no_listing(greeting: Frame) -> None:
    brain, pipe = serve(LEGACY, "a")
    brain.answers["initialize"] = lambda _: {"result": greeting}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS
    assert not brain.count(LIST) + brain.count("notifications/initialized")


# --- the subscription -----------------------------------------------------------------------------


def _end_by_result(brain: Brain, pipe: Pipe) -> None:
    pipe.send(result_of(brain.listens[-1], {"resultType": "complete"}))


def _end_by_error(brain: Brain, pipe: Pipe) -> None:
    pipe.send(error_of(brain.listens[-1], -32603))


def _end_by_cancel(brain: Brain, pipe: Pipe) -> None:
    pipe.send(notice("notifications/cancelled", requestId=brain.listens[-1]["id"]))


@pytest.mark.rule("SUB-25")
@pytest.mark.parametrize("end", [_end_by_result, _end_by_error, _end_by_cancel])
@virtually
async def test_a_subscription_that_ends_is_asked_for_again(end: Any) -> None:
    """Coverage is lost at once; after the new acknowledgement the kind is listed again."""
    brain, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")  # nobody is told
        end(brain, pipe)
        await anyio.sleep(0.001)
        assert catalogs.read(Kind.TOOLS).doubt is Doubt.UNCOVERED
        await brain.until_seen(LISTEN, 2)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["b"]
        ids = [frame["id"] for frame in brain.seen if frame.get("method") == LISTEN]
        assert len(set(ids)) == 2
        end(brain, pipe)  # and the new one is known by its own id
        await brain.until_seen(LISTEN, 3)


@virtually
async def test_the_end_of_another_subscription_is_nothing_to_us() -> None:
    brain, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        for request_id in ("relist/listen/77", "relist/tools/1", 1, None):
            pipe.send(notice("notifications/cancelled", requestId=request_id))
        await anyio.sleep(60)
        assert brain.count(LISTEN) == 1
        assert catalogs.session.listen.phase is ListenPhase.OPEN


@virtually
async def test_a_server_without_subscriptions_is_listed_all_the_same() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.answers[LISTEN] = lambda _: {"error": {"code": -32601, "message": "no"}}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
        await catalogs.idle()
        assert brain.count(LISTEN) == 1


@pytest.mark.rule("SUB-07")
@virtually
async def test_what_was_not_granted_is_not_relied_on() -> None:
    brain, pipe = serve(MODERN, "a")
    brain.lists["prompts"] = [{"name": "p"}]
    pipe.grant = {"toolsListChanged": True, "promptsListChanged": False}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        pipe.send(brain.change(Channel.PROMPTS))
        await anyio.sleep(10)
        assert brain.count("prompts/list") == 1
        assert catalogs.session.listen.granted == {Channel.TOOLS}


# --- lost and slow --------------------------------------------------------------------------------


@pytest.mark.rule("FAIL-22")
@ERAS
@everywhere
async def test_a_lost_server_is_found_again_and_listed_anew(era: str) -> None:
    brain, pipe = serve(era, "a")
    quick = policy(backoff_base_ms=2, backoff_max_ms=8)
    async with Catalogs.connect(pipe.target, policy=quick) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        pipe.refusals = 3
        pipe.cut()
        await brain.until(lambda: pipe.opened == 2)
        await catalogs.idle()
        reading = catalogs.read(Kind.TOOLS)
        assert (reading.hit, names(reading)) == (Hit.HIT, ["b"])


@ERAS
@virtually
async def test_a_lost_server_is_doubted_at_once(era: str) -> None:
    _, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        pipe.refusals = 1_000_000
        pipe.cut()
        await anyio.sleep(0.001)
        reading = catalogs.read(Kind.TOOLS)
        assert (reading.hit, reading.doubt) == (Hit.DOUBTED, Doubt.DISCONNECTED)
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]  # returns: the link failed again
        await anyio.sleep(3_600)
        assert len(connections(catalogs)) == 0  # none is kept for those that failed


@ERAS
@virtually
async def test_a_server_that_is_not_there_yet_is_waited_for(era: str) -> None:
    _, pipe = serve(era, "a")
    pipe.refusals = 4
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]


@ERAS
@virtually
async def test_a_server_that_never_answers_a_list_is_tried_again(era: str) -> None:
    brain, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.hold.add(LIST)
        started_s = anyio.current_time()
        reading = await catalogs.refresh(Kind.TOOLS)  # returns after one limit
        assert (reading.hit, reading.doubt, names(reading)) == (Hit.DOUBTED, Doubt.FAILED, ["a"])
        assert anyio.current_time() - started_s == pytest.approx(30, abs=0.1)
        brain.hold.clear()
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).hit is Hit.HIT


@ERAS
@virtually
async def test_a_server_that_answers_nothing_at_all_is_given_up(era: str) -> None:
    brain, pipe = serve(era, "a")
    brain.hold |= {"server/discover", "initialize"}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS
        assert pipe.opened == 1
        brain.hold.clear()
        await catalogs.idle()
        assert pipe.opened == 2
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]


@ERAS
@virtually
async def test_a_server_that_takes_nothing_is_given_up(era: str) -> None:
    """Nobody reads the pipe: frames wait, and only so many of them."""
    _, pipe = serve(era, "a")
    pipe.deaf = True
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS
        pipe.deaf = False
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]


@virtually
async def test_a_transport_that_does_not_open_is_given_up() -> None:
    _, pipe = serve(MODERN, "a")
    hung: list[int] = []

    @asynccontextmanager
    async def slow() -> AsyncGenerator[Any]:
        if not hung:
            hung.append(1)
            await anyio.sleep_forever()
        async with pipe.target.connect() as streams:
            yield streams

    async with Catalogs.connect(Streams(slow), policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
        await anyio.sleep(5)
        assert len(connections(catalogs)) == 1


@ERAS
@virtually
async def test_a_walk_that_was_cut_is_not_cancelled_on_the_next_link(era: str) -> None:
    brain, pipe = serve(era, "a")
    brain.hold.add(LIST)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await brain.until_held(LIST)
        pipe.cut()
        brain.hold.clear()
        await brain.until(lambda: pipe.opened == 2)
        await catalogs.idle()
    assert not brain.count("notifications/cancelled")


@pytest.mark.rule("CALL-25")
@ERAS
@virtually
async def test_an_error_told_in_a_result_is_a_result(era: str) -> None:
    brain, pipe = serve(era, "a")
    content = [{"type": "text", "text": "no such city"}]
    brain.answers["tools/call"] = lambda _: {"result": {"content": content, "isError": True}}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        assert (await catalogs.call_tool("a", {})).is_error
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).doubt is None


@ERAS
@virtually
async def test_calls_wait_for_the_link_and_end_with_it(era: str) -> None:
    brain, pipe = serve(era, "a")
    pipe.refusals = 1
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        result = await catalogs.call_tool("a", {"x": 1})
        assert result.content[0].type == "text"
        assert brain.params("tools/call")[0]["arguments"] == {"x": 1}
        assert catalogs.session.catalog(Kind.TOOLS).phase is not Phase.DISCONNECTED
