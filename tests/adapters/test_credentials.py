"""Credentials that fail, are renewed, or are somebody else's; what of them is ever shown."""

import logging
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.stdio import StdioServerParameters

import relist_mcp.targets
from relist.machine import Hit
from relist.values import Kind, LinkPhase, Parked
from relist_mcp import Catalogs, Credentials, Http, NeedsCredentials, Stdio
from support.brain import LEGACY, MODERN, Frame
from support.live import ERAS, LIST, names, policy, serve, serve_http
from support.loops import everywhere, virtually
from support.web import Fault, Web

rule = pytest.mark.rule
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")


def token(name: str, **more: Any) -> Credentials:
    return Credentials(headers={"authorization": f"Bearer {name}"}, **more)


def guard(web: Web, *good: str, methods: frozenset[str] = frozenset()) -> None:
    """Let in only these tokens; if methods are named, only there."""

    def fault(request: httpx2.Request, frame: Frame) -> Fault:
        watched = not methods or frame.get("method") in methods
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        return httpx2.Response(401) if watched and shown not in good else None

    web.fault = fault


def http(web: Web) -> Http:
    return Http("http://scripted.test/mcp", transport=lambda: web)


@rule("FAIL-04")
@ERAS
@virtually
async def test_one_event_and_no_retry_until_credentials_change(era: str) -> None:
    _, web = serve_http(era, "a")
    guard(web, "good")
    async with Catalogs.connect(http(web), policy=policy(), credentials=token("bad")) as catalogs:
        needs = catalogs.needs_credentials()
        assert await anext(needs) == NeedsCredentials(frozenset())
        asked = len(web.requests)
        with anyio.move_on_after(3_600) as waited:
            await anext(needs)
        assert waited.cancelled_caught
        assert len(web.requests) == asked
        catalogs.change_credentials(token("good"))
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
        await needs.aclose()


@rule("FAIL-04")
@ERAS
@virtually
async def test_refused_lists_are_one_event_however_many(era: str) -> None:
    brain, web = serve_http(era, "a")
    brain.lists["prompts"] = [{"name": "p"}]
    guard(web, methods=frozenset({LIST, "prompts/list"}))
    async with Catalogs.connect(http(web), policy=policy(), credentials=token("t")) as catalogs:
        await catalogs.idle()
        told: list[NeedsCredentials] = []
        with anyio.move_on_after(3_600):
            async for needed in catalogs.needs_credentials():
                told.append(needed)
        assert told == [NeedsCredentials(frozenset({Kind.TOOLS, Kind.PROMPTS}))]
        assert catalogs.session.catalog(Kind.TOOLS).pacing.parked is Parked.AUTHORIZATION


@virtually
async def test_a_slow_listener_hears_of_each_failure() -> None:
    """New credentials that fail at once are a new event, even if nobody looked in between."""
    _, web = serve_http(MODERN, "a")
    guard(web)
    async with Catalogs.connect(http(web), policy=policy(), credentials=token("1")) as catalogs:
        needs = catalogs.needs_credentials()
        await anext(needs)
        for number in ("2", "3"):
            catalogs.change_credentials(token(number))
            await anyio.sleep(60)  # refused again by now
            assert await anext(needs) == NeedsCredentials(frozenset())
        await needs.aclose()


@rule("AUTH-03", "AUTH-12")
@ERAS
@virtually
async def test_what_was_private_is_unreadable_at_once(era: str) -> None:
    brain, web = serve_http(era, "a")
    brain.hints["cacheScope"] = "private"
    async with Catalogs.connect(http(web), policy=policy(), credentials=token("1")) as catalogs:
        await catalogs.get(Kind.TOOLS)
        brain.set_tools("b")
        catalogs.change_credentials(token("2"))
        moved = catalogs._loop.moved
        await moved()
        assert catalogs.read(Kind.TOOLS).hit is Hit.MISS
        assert names(await catalogs.get(Kind.TOOLS)) == ["b"]
        shown = {headers["authorization"] for headers in web.verbs("POST")[-2:]}
        assert shown == {"Bearer 2"}


@virtually
async def test_a_renewed_token_keeps_the_partition() -> None:
    brain, web = serve_http(MODERN, "a")
    brain.hints["cacheScope"] = "private"
    first, second = token("1", partition="me"), token("2", partition="me")
    async with Catalogs.connect(http(web), policy=policy(), credentials=first) as catalogs:
        await catalogs.idle()
        catalogs.change_credentials(second)
        await catalogs._loop.moved()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
        await catalogs.idle()
        assert web.verbs("POST")[-1]["authorization"] == "Bearer 2"


@rule("AUTH-04", "AUTH-09")
def test_partitions_are_digests_that_tell_credentials_apart() -> None:
    secrets = [
        Credentials(),
        token("a"),
        token("b"),
        Credentials(env={"authorization": "Bearer a"}),
        Credentials(auth=httpx2.BasicAuth("u", "p")),
        Credentials(auth=httpx2.BasicAuth("u", "p")),
    ]
    partitions = [one.partition for one in secrets]
    assert len(set(partitions)) == len(partitions)
    assert partitions[0] == ""
    assert token("a").partition == partitions[1]
    assert not any("Bearer" in repr(one) or "Bearer" in one.partition for one in secrets)


@rule("AUTH-10")
@everywhere
async def test_a_process_gets_its_credentials_in_its_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[StdioServerParameters] = []
    _, pipe = serve(LEGACY, "a")

    def start(server: StdioServerParameters) -> AbstractAsyncContextManager[Any]:
        seen.append(server)
        return pipe.target.connect()

    monkeypatch.setattr(relist_mcp.targets, "stdio_client", start)
    target = Stdio(["server", "--quiet"], {"A": "1", "KEY": "0"})
    shown = Credentials(env={"KEY": "1"})
    async with Catalogs.connect(target, policy=policy(), credentials=shown) as catalogs:
        await catalogs.get(Kind.TOOLS)
    assert (seen[0].command, seen[0].args) == ("server", ["--quiet"])
    assert seen[0].env == {"A": "1", "KEY": "1"}


@rule("OBS-06")
@virtually
async def test_no_credential_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    _, web = serve_http(MODERN, "a")
    guard(web, "c4nary-2")
    with caplog.at_level(logging.DEBUG, "relist_mcp"):
        first = token("c4nary-1")
        async with Catalogs.connect(http(web), policy=policy(), credentials=first) as catalogs:
            await catalogs.idle()
            assert catalogs.session.link.phase is LinkPhase.PARKED
            catalogs.change_credentials(token("c4nary-2"))
            await catalogs.get(Kind.TOOLS)
            assert "c4nary" not in repr(catalogs.session)
    assert caplog.text
    assert "c4nary" not in caplog.text
