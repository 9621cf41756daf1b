"""The live client over HTTP: streams that end, answers that are none, sessions given back."""

import socket
from collections.abc import AsyncIterator, Callable

import anyio
import anyio.abc
import httpx2
import pytest

from relist.machine import Hit
from relist.values import Doubt, Kind, ListenPhase
from relist_mcp import Catalogs, Http
from support.brain import LEGACY, MODERN, Brain, Frame, error_of
from support.live import ERAS, LIST, names, policy, serve_http
from support.loops import run_really, virtually
from support.web import Fault, Web

# The SDK leaves the generators of httpx2 unfinished, which trio minds: specs/sdk-notes.md.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")


# --- the GET stream -------------------------------------------------------------------------------


@pytest.mark.rule("CAP-07")
@pytest.mark.rule("NOTE-14")
@pytest.mark.rule("NOTE-25")
@virtually
async def test_without_a_get_stream_there_is_no_coverage_but_a_list() -> None:
    brain, web = serve_http(LEGACY, "a")
    web.with_get = False
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        started_s = anyio.current_time()
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
        assert anyio.current_time() - started_s < 0.1
        await catalogs.idle()
        assert catalogs.session.listen.phase is ListenPhase.OFF
        assert not catalogs.session.catalog(Kind.TOOLS).vouched
        await anyio.sleep(61)  # so the list has a lifetime
        assert catalogs.read(Kind.TOOLS).hit is Hit.EXPIRED
        assert (await catalogs.get(Kind.TOOLS)).hit is Hit.HIT
        assert brain.count(LIST) == 2


@virtually
async def test_without_a_session_nobody_waits_for_a_stream() -> None:
    _, web = serve_http(LEGACY, "a")
    web.with_session = False
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        started_s = anyio.current_time()
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
        await catalogs.idle()
        assert anyio.current_time() - started_s < 0.1
    assert not web.verbs("GET") + web.verbs("DELETE")


@pytest.mark.rule("REC-04")
@pytest.mark.parametrize("how", ["end", "cut"])
@virtually
async def test_a_get_stream_that_ends_is_opened_again(how: str) -> None:
    brain, web = serve_http(LEGACY, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        getattr(web.streams[0], how)()
        await anyio.sleep(0.001)
        assert catalogs.read(Kind.TOOLS).doubt is Doubt.UNCOVERED
        await brain.until(lambda: len(web.streams) == 2)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["b"]
        assert catalogs.session.catalog(Kind.TOOLS).vouched


@virtually
async def test_a_get_stream_is_asked_for_until_it_is_granted() -> None:
    """The SDK gives it up after two failures; a server may be busy for longer."""
    _, web = serve_http(LEGACY, "a")
    web.fault = lambda request, _: (
        httpx2.Response(503, headers={"retry-after": "100"}) if request.method == "GET" else None
    )
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
        await anyio.sleep(600)
        assert 5 <= len(web.verbs("GET")) <= 8
        web.fault = lambda _, __: None
        await anyio.sleep(101)
        await catalogs.idle()
        assert catalogs.session.catalog(Kind.TOOLS).vouched


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, text="<html>hello</html>"),
        httpx2.Response(204),
        httpx2.Response(404),
        httpx2.Response(302, headers={"location": "http://elsewhere.test/"}),
        httpx2.Response(302, headers={"location": "//@@@@???"}),
    ],
)
@virtually
async def test_what_is_no_stream_is_not_relied_on(answer: httpx2.Response) -> None:
    brain, web = serve_http(LEGACY, "a")
    web.fault = lambda request, _: answer if request.method == "GET" else None
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        with anyio.fail_after(20):
            await catalogs.get(Kind.TOOLS)
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
        assert not catalogs.session.catalog(Kind.TOOLS).vouched
        assert brain.count("initialize") == 1


@pytest.mark.rule("NOTE-15")
@virtually
async def test_a_notice_counts_on_the_stream_of_an_answer_too() -> None:
    brain, web = serve_http(LEGACY, "a")
    web.with_get = False
    brain.hold.add(LIST)
    web.streaming.add(LIST)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        request = await brain.until_held(LIST)
        old = brain.answer(request)
        assert old is not None
        await brain.until(lambda: request["id"] in web.bodies)
        brain.hold.clear()
        brain.set_tools("b")
        web.bodies[request["id"]].send(brain.change())
        web.bodies[request["id"]].send(old)
        await brain.until_seen(LIST, 2)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["b"]


# --- streams that break ---------------------------------------------------------------------------


@pytest.mark.rule("SUB-25")
@pytest.mark.rule("SUB-33")
@pytest.mark.rule("SUB-37")
@virtually
async def test_a_subscription_that_is_cut_is_asked_for_again() -> None:
    brain, web = serve_http(MODERN, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        stream = web.bodies[brain.listens[0]["id"]]
        stream.prime("6", 60_000)
        stream.send_bytes(b'id: 7\ndata: {"jsonrpc": "2.0", "method": "notific')
        stream.cut()
        await anyio.sleep(0.001)  # and not only after the SDK has tried to resume it
        assert catalogs.read(Kind.TOOLS).doubt is Doubt.UNCOVERED
        await brain.until_seen("subscriptions/listen", 2)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["b"]
    assert not web.verbs("GET")


@pytest.mark.rule("SUB-18")
@virtually
async def test_a_subscription_is_cancelled_by_closing_its_stream() -> None:
    brain, web = serve_http(MODERN, "a")
    brain.answers["subscriptions/listen"] = lambda _: None
    web.streaming.add("subscriptions/listen")
    brain.hold.add("subscriptions/listen")
    async with Catalogs.connect(web.target, policy=policy(ack_limit_ms=2_000)) as catalogs:
        web.brain.acknowledgement = lambda *_: {}  # type: ignore[method-assign]
        assert names(await catalogs.get(Kind.TOOLS)) == ["a"]
        await anyio.sleep(3)
        first = next(iter(web.bodies.values()))
        assert not first.open
    assert not brain.count("notifications/cancelled")


async def resumed(brain: Brain, web: Web, retry_ms: int) -> Frame:
    """The list request whose answer is cut, and is to be sent on the second stream instead."""
    request = await brain.until_held(LIST)
    await brain.until(lambda: request["id"] in web.bodies)
    assert len(web.streams) == 1
    web.bodies[request["id"]].prime("41", retry_ms)
    web.bodies[request["id"]].cut()
    await brain.until(lambda: len(web.streams) == 2)
    assert web.verbs("GET")[1]["last-event-id"] == "41"
    return request


@pytest.mark.rule("FAIL-14")
@virtually
async def test_an_answer_that_is_cut_in_the_legacy_era_is_resumed() -> None:
    """The SDK does so by a GET, which is not *the* GET stream; the core just waits."""
    brain, web = serve_http(LEGACY, "a")
    brain.hold.add(LIST)
    web.streaming.add(LIST)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        request = await resumed(brain, web, 5_000)
        answer = brain.answer(request)
        assert answer is not None
        web.streams[1].send(answer)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["a"]
        assert (brain.count(LIST), len(web.streams)) == (1, 2)
        assert catalogs.session.listen.phase is ListenPhase.OPEN  # the resumed one is over


@virtually
async def test_a_resumed_answer_may_be_an_error() -> None:
    """And is taken for what it is, not for the cut that went before."""
    brain, web = serve_http(LEGACY, "a")
    brain.hold.add(LIST)
    web.streaming.add(LIST)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        request = await resumed(brain, web, 1_000)
        web.streams[1].send(error_of(request, -32601))
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).hit is Hit.UNSUPPORTED


@pytest.mark.rule("FAIL-13")
@ERAS
@virtually
async def test_an_answer_that_is_cut_for_good_is_a_failure(era: str) -> None:
    brain, web = serve_http(era, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.hold.add(LIST)
        web.streaming.add(LIST)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(catalogs.refresh, Kind.TOOLS)
            request = await brain.until_held(LIST)
            await brain.until(lambda: request["id"] in web.bodies)
            web.bodies[request["id"]].cut()
        assert catalogs.read(Kind.TOOLS).doubt is Doubt.FAILED
        brain.hold.clear()
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).hit is Hit.HIT


@pytest.mark.rule("FAIL-11")
@pytest.mark.rule("FAIL-24")
@ERAS
@virtually
async def test_requests_that_are_given_up_are_let_go_of(era: str) -> None:
    """Else each would keep a connection of the pool until none is left."""
    brain, web = serve_http(era, "a")
    brain.hold.add(LIST)
    web.streaming.add(LIST)
    async with Catalogs.connect(web.target, policy=policy(request_limit_ms=1_000)):
        await brain.until_seen(LIST, 4)
        lists = [body for key, body in web.bodies.items() if "tools" in key]
        assert [body.open for body in lists] == [False, False, False, True]
        assert brain.count("notifications/cancelled") == (3 if era == LEGACY else 0)


@ERAS
@virtually
async def test_a_late_answer_changes_nothing(era: str) -> None:
    brain, web = serve_http(era, "old")
    brain.hold.add(LIST)
    async with Catalogs.connect(web.target, policy=policy(request_limit_ms=1_000)) as catalogs:
        first = await brain.until_held(LIST)
        second = await brain.until_held(LIST)
        web.release(first)
        brain.set_tools("new")
        web.release(second)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["new"]


# --- answers that are no answers ------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        lambda: httpx2.Response(
            200, text="<html>hello</html>", headers={"content-type": "text/html"}
        ),
        lambda: httpx2.Response(200, content=b"{", headers={"content-type": "application/json"}),
        lambda: httpx2.Response(200, content=b"7", headers={"content-type": "application/json"}),
        lambda: httpx2.Response(200, json=[]),
        lambda: httpx2.Response(202),
        lambda: httpx2.Response(204),
        lambda: httpx2.Response(307, headers={"location": "http://elsewhere.test/mcp"}),
        lambda: httpx2.Response(307, headers={"location": "//@@@@???"}),
        lambda: httpx2.Response(
            200,
            stream=httpx2.ByteStream(b"no gzip"),
            headers={"content-encoding": "gzip", "content-type": "application/json"},
        ),
        lambda: httpx2.DecodingError("scripted"),
        lambda: httpx2.Response(
            500, content=b"{" * 2_000_000, headers={"content-type": "application/json"}
        ),
        lambda: httpx2.Response(
            400, content=b'{"error": 7}', headers={"content-type": "application/json"}
        ),
        lambda: httpx2.ReadTimeout("scripted"),
        lambda: httpx2.RemoteProtocolError("scripted"),
    ],
)
@ERAS
@virtually
async def test_an_answer_of_no_use_costs_one_walk(era: str, answer: Callable[[], Fault]) -> None:
    """And nothing more: the transport of the SDK survives each of them."""
    _, web = serve_http(era, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        epoch = catalogs.session.link.epoch
        web.fault = lambda _, frame: answer() if frame.get("method") == LIST else None
        reading = await catalogs.refresh(Kind.TOOLS)
        assert (reading.doubt, names(reading)) == (Doubt.FAILED, ["a"])
        web.fault = lambda _, __: None
        await catalogs.idle()
        assert catalogs.read(Kind.TOOLS).hit is Hit.HIT
        assert catalogs.session.link.epoch == epoch


@ERAS
@virtually
async def test_a_redirect_within_the_origin_is_followed(era: str) -> None:
    brain, web = serve_http(era, "a")
    web.fault = lambda request, _: (
        None
        if request.url.path.endswith("/")
        else httpx2.Response(307, headers={"location": "/mcp/"})
    )
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        web.change()
        await brain.until_seen(LIST, 2)
        await catalogs.idle()
        assert names(catalogs.read(Kind.TOOLS)) == ["b"]
        assert catalogs.session.catalog(Kind.TOOLS).vouched


@pytest.mark.parametrize("status", [200, 500])
@ERAS
@virtually
async def test_a_body_without_end_is_cut(
    era: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, web = serve_http(era, "a")
    monkeypatch.setattr("relist_mcp.observed.BODY_MAX", 10_000)
    monkeypatch.setattr("relist_mcp.observed.ERROR_BODY_MAX", 10_000)
    sent: list[int] = []

    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                sent.append(1)
                yield b" " * 1_000

    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        web.fault = lambda _, frame: (
            httpx2.Response(status, headers={"content-type": "application/json"}, stream=Endless())
            if frame.get("method") == LIST
            else None
        )
        reading = await catalogs.refresh(Kind.TOOLS)
        assert (reading.doubt, names(reading)) == (Doubt.FAILED, ["a"])
        assert len(sent) < 100


def test_idle_connections_are_probed() -> None:
    """So a half-open one is found dead; nothing else tells that no notice comes any more."""

    async def connect() -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            port = listener.extra(anyio.abc.SocketAttribute.local_port)

            async def answer(stream: anyio.abc.SocketStream) -> None:
                async with stream:
                    await stream.receive()
                    await stream.send(b"HTTP/1.1 204 x\r\n\r\n")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, answer)
                client = httpx2.AsyncClient(transport=Http("").transport())
                async with client, client.stream("GET", f"http://127.0.0.1:{port}/") as response:
                    stream = response.extensions["network_stream"]
                    sock = stream.get_extra_info("socket")
                    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                tasks.cancel_scope.cancel()

    run_really(connect)


# --- closing --------------------------------------------------------------------------------------


@virtually
async def test_a_session_is_given_back() -> None:
    _, web = serve_http(LEGACY, "a")
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        assert web.sessions == {"session-1"}
    assert not web.sessions
    assert not any(stream.open for stream in web.streams)


@virtually
async def test_a_session_that_cannot_be_given_back_holds_nobody_up_for_long() -> None:
    _, web = serve_http(LEGACY, "a")
    handle = web.handle_async_request

    async def hang(request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            await anyio.sleep_forever()
        return await handle(request)

    web.handle_async_request = hang  # type: ignore[method-assign]
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        left_s = anyio.current_time()
    assert anyio.current_time() - left_s < 5
