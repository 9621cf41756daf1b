"""``Catalogs.attach`` to a client that talks HTTP, through the SDK's own transport."""

from functools import partial

import anyio
import httpx2
import pytest
from mcp.shared.inbound import encode_header_value

from relist.machine import Hit
from relist.values import Doubt, Kind, LinkPhase, ListenPhase
from relist_mcp import Catalogs
from support.brain import LEGACY, MODERN
from support.live import ERAS, LIST, names, policy, serve_http
from support.loops import everywhere, virtually
from support.owned import (
    attached,
    by_each_owner,
    fastmcp_client,
    over_http,
    owned,
    until_listed,
    until_phase,
)

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

LISTEN = "subscriptions/listen"


@ERAS
@by_each_owner
async def test_lists_and_notices_over_http(owner: str, era: str) -> None:
    brain, web = serve_http(era, "a", "b", page_size=1)
    async with owned(owner, era, partial(over_http, web)) as client:
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            assert names(await catalogs.tools.get()) == ["a", "b"]
            await brain.until(lambda: web.streams or era == MODERN)
            brain.set_tools("c", "d", "e")
            web.change()
            await until_listed(catalogs, "c", "d", "e")
            assert catalogs.session.catalog(Kind.TOOLS).vouched is (era == MODERN)
            asked = [head for _, frame, head in web.requests if frame.get("method") == LIST]
            assert {head["mcp-protocol-version"] for head in asked} == {era}
            assert {head.get("mcp-method") for head in asked} == {LIST if era == MODERN else None}
            assert not web.verbs("DELETE")
        if era == MODERN:  # ours is given up
            (stream,) = (web.bodies[listen["id"]] for listen in brain.listens)
            await brain.until(lambda: not stream.open)


@everywhere
async def test_a_subscription_that_is_cut_is_made_again() -> None:
    brain, web = serve_http(MODERN, "a")
    rules = policy(backoff_base_ms=1, backoff_max_ms=4, uncovered_grace_ms=0)
    async with attached("client", MODERN, partial(over_http, web), rules) as catalogs:
        await catalogs.idle()
        assert catalogs.session.listen.phase is ListenPhase.OPEN
        brain.set_tools("b")
        web.bodies[brain.listens[-1]["id"]].cut()
        await until_listed(catalogs, "b")
        await catalogs.idle()
        assert catalogs.session.listen.phase is ListenPhase.OPEN
        assert brain.count(LISTEN) == 2


@pytest.mark.parametrize("status", [401, 429, 503])
@virtually
async def test_whatever_http_refuses_is_tried_again_after_a_backoff(status: int) -> None:
    brain, web = serve_http(MODERN, "a")
    async with attached("client", MODERN, partial(over_http, web), policy()) as catalogs:
        await catalogs.idle()
        web.fault = lambda _, frame: (
            httpx2.Response(status) if frame.get("method") == LIST else None
        )
        brain.set_tools("b")
        web.change()
        while catalogs.tools.read().doubt is None:
            await catalogs._loop.moved()
        await anyio.sleep(5)
        assert catalogs.tools.read().doubt is Doubt.NOTICED
        web.fault = lambda _, __: None
        await until_listed(catalogs, "b")


@virtually
async def test_a_session_that_the_server_has_forgotten_is_lost() -> None:
    _, web = serve_http(LEGACY, "a")
    async with attached("session", LEGACY, partial(over_http, web), policy()) as catalogs:
        await catalogs.idle()
        web.fault = lambda _, frame: httpx2.Response(404) if frame.get("method") == LIST else None
        reading = await catalogs.tools.refresh()
        assert reading.hit is Hit.DOUBTED
        await until_phase(catalogs, LinkPhase.CLOSED)


def test_a_session_that_is_forgotten_is_not_asked_again_until_its_client_has_another() -> None:
    async def meet() -> None:
        brain, web = serve_http(LEGACY, "a")
        client = fastmcp_client(partial(over_http, web), LEGACY)
        rules = policy(backoff_base_ms=1, backoff_max_ms=4)
        async with client:
            attaching = Catalogs.attach(client, policy=rules)
            catalogs = await attaching.__aenter__()
            await catalogs.idle()
            brain.answers[LIST] = lambda _: None
            web.fault = lambda _, frame: (
                httpx2.Response(404) if frame.get("method") == LIST else None
            )
            await catalogs.tools.refresh()
            asked, epoch = len(web.requests), catalogs.session.link.epoch
            while catalogs.session.link.epoch < epoch + 3:
                await catalogs._loop.moved()
            assert len(web.requests) == asked
        del brain.answers[LIST]
        web.fault = lambda _, __: None
        brain.set_tools("b")
        async with client:
            await until_listed(catalogs, "b")
            await attaching.__aexit__(None, None, None)

    anyio.run(meet)


@ERAS
@virtually
async def test_headers_of_an_application_go_along(era: str) -> None:
    brain, web = serve_http(era, "a")
    brain.answers["vendor/x"] = lambda _: {"result": {}}
    async with attached("client", era, partial(over_http, web), policy()) as catalogs:
        given = {"mcp-param-x": "1", "mcp-method": "mine"}
        await catalogs.request("vendor/x", {}, name="ü", headers=given)
        ((_, _, sent),) = (one for one in web.requests if one[1].get("method") == "vendor/x")
        assert (sent["mcp-param-x"], sent["mcp-method"]) == ("1", "mine")
        assert sent["mcp-protocol-version"] == era
        assert sent.get("mcp-name") == (encode_header_value("ü") if era == MODERN else None)
