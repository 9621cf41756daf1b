"""The live client over HTTP, against a scripted server without sockets, in virtual time."""

from collections.abc import Callable

import anyio
import httpx2
import pytest

from relist.machine import Hit
from relist.values import Doubt, Kind, LinkPhase, ListenPhase
from relist_mcp import Catalogs
from support.brain import LEGACY, MODERN, Frame, tool
from support.live import ERAS, LIST, names, policy, serve_http
from support.loops import everywhere, virtually
from support.web import Fault, Stream, Web

# The SDK leaves the generators of httpx2 unfinished, which trio minds: specs/sdk-notes.md.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")


@ERAS
@everywhere
async def test_a_notice_leads_to_the_new_list(era: str) -> None:
    brain, web = serve_http(era, "a", "b", "c", page_size=2)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a", "b", "c"]
        await catalogs.idle()
        brain.set_tools("d")
        web.change()
        await brain.until_seen(LIST, 3)
        await catalogs.idle()
        reading = catalogs.read(Kind.TOOLS)
        assert (reading.hit, names(reading)) == (Hit.HIT, ["d"])
        assert catalogs.session.listen.phase is ListenPhase.OPEN


@pytest.mark.rule("DISC-35")
@ERAS
@virtually
async def test_answers_on_streams_are_answers(era: str) -> None:
    brain, web = serve_http(era, "a")
    web.streaming |= {LIST, "server/discover", "initialize"}
    web.with_session = False  # the header of an answer on a stream is not scripted
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
        assert brain.count(LIST) == 1


@ERAS
@virtually
async def test_a_page_on_a_stream_may_be_large(era: str) -> None:
    """The SDK's own limit for one event is a mebibyte, which a thousand tools may exceed."""
    brain, web = serve_http(era)
    brain.lists["tools"] = [tool(f"t{n}", description="x" * 2_000) for n in range(1_000)]
    brain.page_size = 1_000
    web.streaming.add(LIST)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert len(names(await catalogs.get(Kind.TOOLS))) == 1_000


@pytest.mark.rule("AUTH-02")
@pytest.mark.rule("LIFE-06")
@pytest.mark.rule("LIFE-07")
@pytest.mark.rule("LIFE-11")
@pytest.mark.rule("LIFE-22")
@pytest.mark.rule("LIFE-23")
@ERAS
@virtually
async def test_headers_are_those_of_the_era(era: str) -> None:
    _, web = serve_http(era, "a", "zoë\r\n")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        await catalogs.call_tool("zoë\r\n", {})
    last = next(headers for _, frame, headers in web.requests if frame.get("method") == LIST)
    assert last["mcp-protocol-version"] == era
    assert last["authorization"] == "Bearer s3cret"
    assert last["accept-encoding"] == "identity"
    assert last.get("mcp-method") == (LIST if era == MODERN else None)
    assert ("mcp-session-id" in last) is (era == LEGACY)
    call = next(h for _, frame, h in web.requests if frame.get("method") == "tools/call")
    assert call.get("mcp-name") == ("=?base64?em/DqwYNCg==?=" if era == MODERN else None) or (
        era == MODERN and call["mcp-name"].startswith("=?base64?")
    )


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
@ERAS
@virtually
async def test_a_refusal_of_credentials_parks_the_link(era: str, status: int) -> None:
    _, web = serve_http(era, "a")
    web.fault = lambda _, __: httpx2.Response(status)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS
        await catalogs.idle()
        assert catalogs.session.link.phase is LinkPhase.PARKED
        asked = len(web.requests)
        await anyio.sleep(3_600)
        assert len(web.requests) == asked


@ERAS
@virtually
async def test_credentials_that_expire_park_the_catalog(era: str) -> None:
    _, web = serve_http(era, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        web.fault = lambda _, __: httpx2.Response(401)
        reading = await catalogs.refresh(Kind.TOOLS)
        assert (reading.hit, names(reading)) == (Hit.DOUBTED, ["a"])
        asked = len(web.requests)
        await catalogs.idle()
        await anyio.sleep(3_600)
        assert len(web.requests) == asked
        web.fault = lambda _, __: None
        assert (await catalogs.refresh(Kind.TOOLS)).hit is Hit.HIT  # one more try, when asked


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("era", "method"),
    [
        *((era, method) for era in (MODERN, LEGACY) for method in ("server/discover", LIST)),
        (MODERN, "subscriptions/listen"),
        (LEGACY, "initialize"),
    ],
)
@virtually
async def test_retry_after_is_honoured(era: str, method: str, status: int) -> None:
    _, web = serve_http(era, "a")
    times: list[float] = []

    def busy(_: httpx2.Request, frame: Frame) -> Fault:
        if frame.get("method") != method:
            return None
        times.append(anyio.current_time())
        if len(times) > 1:
            return None
        return httpx2.Response(status, headers={"Retry-After": "120"})

    web.fault = busy
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
    assert 120 <= times[1] - times[0] < 121


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 503])
@virtually
async def test_a_failed_probe_says_nothing_about_the_era(status: int) -> None:
    """LIFE-35: none of these is a reason to fall back to the handshake."""
    brain, web = serve_http(MODERN, "a")
    web.fault = lambda _, __: httpx2.Response(status)
    async with Catalogs.connect(web.target, policy=policy()):
        await anyio.sleep(100)
    assert not brain.count("initialize")
    assert all(frame.get("method") == "server/discover" for _, frame, _ in web.requests)


@virtually
async def test_a_probe_that_breaks_off_says_nothing_about_the_era() -> None:
    brain, web = serve_http(MODERN, "a")
    web.streaming.add("server/discover")
    brain.hold.add("server/discover")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        probe = await brain.until_held("server/discover")
        await brain.until(lambda: probe["id"] in web.bodies)
        web.bodies[probe["id"]].cut()
        web.streaming.clear()
        brain.hold.clear()
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
    assert not brain.count("initialize")


@virtually
async def test_a_probe_whose_answer_is_cut_says_nothing_about_the_era() -> None:
    brain, web = serve_http(MODERN, "a")
    cut: list[Stream] = []

    def once(_: httpx2.Request, frame: Frame) -> Fault:
        if frame.get("method") != "server/discover" or cut:
            return None
        cut.append(Stream(lambda _: None))
        cut[0].send_bytes(b'{"jsonrpc": "2.0", "id"')
        cut[0].cut()
        return httpx2.Response(200, headers={"content-type": "application/json"}, stream=cut[0])

    web.fault = once
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
    assert not brain.count("initialize")


@pytest.mark.parametrize("code", [None, -32600, -32601])
@virtually
async def test_a_probe_refused_as_unknown_proves_legacy(code: int | None) -> None:
    brain, web = serve_http(LEGACY, "a")
    brain.answers["server/discover"] = lambda _: None
    web.fault = lambda _, frame: (
        web.refusal(400 if code else 404, code)
        if frame.get("method") == "server/discover"
        else None
    )
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]


@virtually
async def test_a_probe_refused_for_its_version_is_corrected() -> None:
    _, web = serve_http(LEGACY, "a")
    error = {"code": -32022, "message": "no", "data": {"supported": [LEGACY]}}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    web.fault = lambda _, frame: (
        httpx2.Response(400, json=body) if frame.get("method") == "server/discover" else None
    )
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]


# --- lost servers and sessions --------------------------------------------------------------------


@ERAS
@virtually
async def test_a_server_that_is_down_is_waited_for(era: str) -> None:
    _, web = serve_http(era, "a")
    web.down = True
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.MISS
        await anyio.sleep(30)
        web.down = False
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]


@ERAS
@virtually
async def test_one_failed_exchange_is_no_lost_link(era: str) -> None:
    brain, web = serve_http(era, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        epoch = catalogs.session.link.epoch
        failed: list[int] = []

        def once(_: httpx2.Request, frame: Frame) -> Fault:
            if frame.get("method") != LIST or failed:
                return None
            failed.append(1)
            return httpx2.ConnectError("scripted")

        web.fault = once
        reading = await catalogs.refresh(Kind.TOOLS)
        assert (reading.doubt, names(reading)) == (Doubt.FAILED, ["a"])
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).hit is Hit.HIT
        assert catalogs.session.link.epoch == epoch
        assert brain.count("server/discover") == 1


@ERAS
@virtually
async def test_a_restarted_server_is_listed_anew(era: str) -> None:
    """It goes away for a minute with all its streams and sessions."""
    brain, web = serve_http(era, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        web.down = True
        web.sessions.clear()
        for stream in (*web.streams, *web.bodies.values()):
            stream.cut()
        await anyio.sleep(0.001)
        assert catalogs.read(Kind.TOOLS).doubt is Doubt.UNCOVERED
        await anyio.sleep(60)
        brain.set_tools("b")
        web.down = False
        await anyio.sleep(120)
        await catalogs.idle()
        reading = catalogs.read(Kind.TOOLS)
        assert (reading.hit, names(reading)) == (Hit.HIT, ["b"])
        assert catalogs.session.listen.phase is ListenPhase.OPEN


@pytest.mark.parametrize("by", ["POST", "GET"])
@virtually
async def test_a_lost_session_is_begun_anew_without_its_id(by: str) -> None:
    """LIFE-12. The new session is initialized before anything is listed; nothing is deleted."""
    brain, web = serve_http(LEGACY, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        if by == "GET":
            web.forget_sessions()  # the stream ends, and its successor is refused
        else:
            web.sessions.clear()
            await catalogs.refresh(Kind.TOOLS)
        await brain.until_seen("initialize", 2)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["b"]
        assert brain.count("initialize") == 2
        again = [h for _, f, h in web.requests if f.get("method") == "initialize"][1]
        assert "mcp-session-id" not in again
        assert not web.verbs("DELETE")
        assert brain.count("notifications/cancelled") == 0
    assert len(web.verbs("DELETE")) == 1  # that of the second session


@pytest.mark.rule("CAP-20")
@virtually
async def test_a_404_for_an_unknown_method_ends_no_session() -> None:
    brain, web = serve_http(LEGACY, "a")
    brain.lists["prompts"] = []
    web.fault = lambda _, frame: (
        web.refusal(404, -32601) if frame.get("method") == "prompts/list" else None
    )
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        assert (await catalogs.get(Kind.PROMPTS)).hit is Hit.UNSUPPORTED
        await catalogs.idle()
        assert brain.count("initialize") == 1


@virtually
async def test_a_session_that_keeps_expiring_is_tried_less_and_less_often() -> None:
    brain, web = serve_http(LEGACY, "a")
    web.fault = lambda _, frame: web.refusal(404, -32600) if frame.get("method") == LIST else None
    async with Catalogs.connect(web.target, policy=policy()):
        await anyio.sleep(600)
    assert 5 < brain.count("initialize") < 30


@pytest.mark.parametrize(
    "fault",
    [
        lambda _: httpx2.ConnectError("scripted"),
        lambda _: httpx2.Response(500),
        lambda web: web.refusal(404, -32600),
    ],
)
@virtually
async def test_an_initialized_that_was_not_accepted_began_no_session(
    fault: Callable[[Web], Fault],
) -> None:
    brain, web = serve_http(LEGACY, "a")
    failed: list[int] = []

    def once(_: httpx2.Request, frame: Frame) -> Fault:
        if frame.get("method") != "notifications/initialized" or failed:
            return None
        failed.append(1)
        return fault(web)

    web.fault = once
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await brain.until_seen("initialize", 2)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]


@virtually
async def test_an_initialized_that_is_never_answered_blocks_nothing_for_ever() -> None:
    brain, web = serve_http(LEGACY, "a")
    hung: list[int] = []
    handle = web.handle_async_request

    async def hang_once(request: httpx2.Request) -> httpx2.Response:
        if b"notifications/initialized" in request.content and not hung:
            hung.append(1)
            await anyio.sleep_forever()
        return await handle(request)

    web.handle_async_request = hang_once  # type: ignore[method-assign]
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        started_s = anyio.current_time()
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
        assert brain.count("initialize") == 2
        assert anyio.current_time() - started_s < 15
