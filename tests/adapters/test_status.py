"""What operators are told of a live server, in one value."""

import json
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver import MCPServer

from relist.machine import Hit
from relist.surface import Lag
from relist.values import (
    Carrier,
    Channel,
    Doubt,
    Era,
    Kind,
    LinkPhase,
    ListenPhase,
    Parked,
    Phase,
    Scope,
)
from relist_mcp import Catalogs, Http, Stdio
from relist_mcp.events import Cause, Outcome
from relist_mcp.identity import NOBODY_YET, TEXT_MAX, Identity, address_of, identity_in, plain
from relist_mcp.targets import Target
from support.brain import LEGACY, MODERN, SUBSCRIPTION
from support.live import ERAS, LIST, policy, serve, serve_http
from support.loops import everywhere, virtually

rule = pytest.mark.rule
STAMP = "io.modelcontextprotocol/serverInfo"


@rule("OBS-09")
@ERAS
@everywhere
async def test_the_status_says_how_everything_stands(era: str) -> None:
    _, pipe = serve(era, "a", "b", "c", page_size=2)
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        surface = catalogs.tools.surface()
        assert surface is not None
        surface.adopted(2)
        await catalogs.idle()
        status = catalogs.status()
    assert status.server == Identity("", "scripted", "1")
    link, listen, tools = status.link, status.listen, status.of(Kind.TOOLS)
    assert (link.phase, link.epoch, link.version) == (LinkPhase.LIVE, 1, era)
    assert link.era is (Era.MODERN if era == MODERN else Era.LEGACY)
    assert (link.failures, link.next_try_in_ms, link.reconnects) == (0, None, 0)
    carrier = Carrier.SUBSCRIPTION if era == MODERN else Carrier.PIPE
    assert (listen.phase, listen.carrier) == (ListenPhase.OPEN, carrier)
    assert listen.granted == (Channel.TOOLS,)
    assert (tools.phase, tools.hit, tools.doubt, tools.parked) == (Phase.FRESH, Hit.HIT, None, None)
    assert (tools.generation, tools.count, tools.ambiguous) == (1, 3, 0)
    assert tools.scope is (Scope.PUBLIC if era == MODERN else Scope.PRIVATE)
    assert tools.vouched
    assert tools.covered
    assert tools.walks == {Outcome.CHANGED: 1}
    assert tools.last_walk is not None
    assert (tools.last_walk.cause, tools.last_walk.outcome) == (Cause.FIRST, Outcome.CHANGED)
    assert (tools.last_walk.pages, tools.last_walk.entries) == (2, 3)
    assert tools.lag == Lag(0, 2, 3)
    assert status.of(Kind.PROMPTS).hit is Hit.UNSUPPORTED


@virtually
async def test_times_are_from_now() -> None:
    _, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        await anyio.sleep(5)
        tools = catalogs.status().of(Kind.TOOLS)
        assert (tools.age_ms, tools.expires_in_ms) == (5_000, 3_595_000)
        assert tools.last_walk is not None
        assert tools.last_walk.ended_ms_ago == 5_000
        await anyio.sleep(3_600)
        tools = catalogs.status().of(Kind.TOOLS)
        assert (tools.expires_in_ms, tools.hit) == (0, Hit.EXPIRED)


@virtually
async def test_a_walk_under_way_and_one_to_come_are_shown() -> None:
    brain, pipe = serve(MODERN, "a", "b", page_size=1)
    rules = policy(jitter_percent=0, backoff_base_ms=4_000)
    async with Catalogs.connect(pipe.target, policy=rules) as catalogs:
        await catalogs.idle()
        brain.hold.add(LIST)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(catalogs.tools.refresh)
            pipe.reply(await brain.until_held(LIST))
            held = await brain.until_held(LIST)
            assert catalogs.status().of(Kind.TOOLS).open_pages == 1
            error = {"code": -32603, "message": "scripted"}
            pipe.send({"jsonrpc": "2.0", "id": held["id"], "error": error})
        tools = catalogs.status().of(Kind.TOOLS)
        assert (tools.open_pages, tools.doubt, tools.failures) == (None, Doubt.FAILED, 1)
        assert (tools.hit, tools.next_walk_in_ms) == (Hit.DOUBTED, 4_000)
        assert tools.walks == {Outcome.CHANGED: 1, Outcome.FAILED: 1}


@virtually
async def test_a_lazy_list_is_walked_by_nobody_but_who_asks() -> None:
    brain, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy(lazy=True)) as catalogs:
        await catalogs.tools.get()
        pipe.send(brain.change())
        while (tools := catalogs.status().of(Kind.TOOLS)).doubt is None:
            await anyio.lowlevel.checkpoint()
        assert (tools.phase, tools.next_walk_in_ms) == (Phase.STALE, None)


@virtually
async def test_what_is_parked_or_lost_says_so() -> None:
    brain, pipe = serve(MODERN, "a")
    rules = policy(jitter_percent=0, backoff_base_ms=4_000)
    async with Catalogs.connect(pipe.target, policy=rules) as catalogs:
        await catalogs.idle()
        brain.answers[LIST] = lambda _: {"error": {"code": -32600, "message": "scripted"}}
        await catalogs.tools.refresh()
        tools = catalogs.status().of(Kind.TOOLS)
        assert (tools.parked, tools.next_walk_in_ms) == (Parked.REQUEST, None)
        pipe.cut()
        while catalogs.status().link.phase is LinkPhase.LIVE:
            await anyio.lowlevel.checkpoint()
        link = catalogs.status().link
        assert (link.phase, link.failures) == (LinkPhase.WAITING, 1)
        assert link.next_try_in_ms == 4_000
        del brain.answers[LIST]
        await catalogs.idle()
        assert (catalogs.status().link.epoch, catalogs.status().link.reconnects) == (2, 1)


@virtually
async def test_notices_are_counted_and_late_answers_too() -> None:
    brain, pipe = serve(MODERN, "a")
    rules = policy(request_limit_ms=500)
    async with Catalogs.connect(pipe.target, policy=rules) as catalogs:
        await catalogs.idle()
        pipe.send(brain.change(), brain.change(), brain.change())
        await brain.until_seen(LIST, 2)
        await catalogs.idle()
        brain.hold.add(LIST)
        await catalogs.tools.refresh()
        late = await brain.until_held(LIST)
        brain.hold.clear()
        pipe.reply(late)
        await catalogs.tools.refresh()
        status = catalogs.status()
    assert (status.of(Kind.TOOLS).notices, status.of(Kind.TOOLS).merged) == (3, 2)
    assert status.of(Kind.TOOLS).walks[Outcome.TIMED_OUT] == 1
    assert status.late == 1


@ERAS
@virtually
async def test_the_status_is_plain_data_too(era: str) -> None:
    _, pipe = serve(era, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        before = json.loads(json.dumps(catalogs.status().as_dict()))
        assert before["link"]["phase"] in ("opening", "probing")
        assert before["server"] == {"address": "", "name": "", "version": ""}
        await catalogs.idle()
        data: dict[str, Any] = json.loads(json.dumps(catalogs.status().as_dict()))
    assert data["link"]["capabilities"] == {
        "kinds": ["tools"],
        "channels": ["tools"],
        "subscribe": False,
    }
    tools = next(kind for kind in data["kinds"] if kind["kind"] == "tools")
    assert (tools["phase"], tools["walks"]) == ("fresh", {"changed": 1})
    assert tools["last_walk"]["outcome"] == "changed"
    assert tools["lag"] == {"generations": None, "offered": 0, "listed": 1}


# --- who the server is ----------------------------------------------------------------------------

EVIL = "scripted\x1b[31m\u202e\n" + "x" * 500


@rule("OBS-06")
@ERAS
@virtually
async def test_what_a_server_says_of_itself_is_plain_and_short(era: str) -> None:
    brain, pipe = serve(era, "a")
    info = {"name": EVIL, "version": ["1"]}
    answers = {
        LEGACY: ("initialize", {**brain.greeting(), "serverInfo": info}),
        MODERN: ("server/discover", {**brain.discovery(), "_meta": {STAMP: info}}),
    }
    method, result = answers[era]
    brain.answers[method] = lambda _: {"result": result}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        server = catalogs.status().server
        assert server.name.startswith("scripted?")
        assert server.name.isprintable()
        assert len(server.name) == TEXT_MAX
        assert server.version == ""
        brain.hold.add("server/discover")
        pipe.cut()
        await brain.until_held("server/discover")
        assert catalogs.status().link.epoch == 2
        assert catalogs.status().server == NOBODY_YET  # it may be another one


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({}, NOBODY_YET),
        ({"serverInfo": None}, NOBODY_YET),
        ({"serverInfo": "a"}, NOBODY_YET),
        ({"_meta": 1, "serverInfo": {"name": "a", "version": "1"}}, Identity("", "a", "1")),
        ({"_meta": {STAMP: {"name": "b"}}, "serverInfo": {"name": "a"}}, Identity("", "b", "")),
        ({"_meta": {SUBSCRIPTION: "1"}}, NOBODY_YET),
    ],
)
def test_who_a_server_is_stands_in_its_first_result(
    result: dict[str, Any], expected: Identity
) -> None:
    assert identity_in(result) == expected


def test_plain_is_plain() -> None:
    assert plain("acme-server 1.0_b+c/d@e") == "acme-server 1.0_b+c/d@e"
    assert plain('a"b\\c\tdé') == "a?b?c?d?"
    assert plain(7) == ""


@rule("OBS-06")
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Http("https://user:s3cret@a.test/s3cret?key=s3cret#s3cret"), "a.test"),
        (Http("http://a.test:8080/mcp"), "a.test:8080"),
        (Http("http://a.test:s3cret/"), ""),
        (Http("http://[s3cret"), ""),
        (Stdio(["bin/server", "--token", "s3cret"], {"TOKEN": "s3cret"}), "server"),
    ],
    ids=str,
)
def test_an_address_holds_nothing_secret(target: Target, expected: str) -> None:
    assert address_of(target) == expected


@virtually
async def test_the_address_of_an_endpoint_is_known_before_it_answers() -> None:
    _, web = serve_http(MODERN, "a")
    web.down = True
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert catalogs.status().server.address == address_of(web.target) != ""


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@everywhere
async def test_a_server_of_the_sdk_says_who_it_is(era: str) -> None:
    server = MCPServer("real", version="1.2")
    rules = policy() if era == MODERN else policy(modern_versions=())
    async with Catalogs.connect(server, policy=rules) as catalogs:
        await catalogs.idle()
        assert catalogs.status().server == Identity("", "real", "1.2")
