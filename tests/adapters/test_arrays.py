"""Arrays of messages: 2025-03-26 has them, and only it; the SDK takes none (specs/sdk-notes.md)."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest

from relist.machine import Hit
from relist.values import Kind
from relist_mcp import Catalogs
from relist_mcp.arrays import ARRAYS_VERSION, Apart
from support.brain import LEGACY, Brain, Frame, notice, result_of
from support.live import LIST, names, policy, serve, serve_http
from support.loops import everywhere, virtually

pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning"),
    pytest.mark.rule("LIFE-10"),
]
PROMPTS = "prompts/list"


def speak(brain: Brain, version: str = ARRAYS_VERSION) -> None:
    """Agree on this version."""
    brain.answers["initialize"] = lambda _: {
        "result": {**brain.greeting(), "protocolVersion": version}
    }


@everywhere
async def test_an_array_of_notices_on_a_pipe_is_heard() -> None:
    brain, pipe = serve(LEGACY, "a")
    speak(brain)
    brain.lists["prompts"] = []
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        prompts_changed = notice("notifications/prompts/list_changed")
        pipe.send_text(json.dumps([{"id": []}, brain.change(), 7, [], prompts_changed]))
        await brain.until(lambda: brain.count(LIST) == brain.count(PROMPTS) == 2)
        await catalogs.idle()
        assert names(catalogs.tools.read()) == ["b"]


@everywhere
async def test_an_array_of_answers_on_a_pipe_holds_an_answer_to_each() -> None:
    brain, pipe = serve(LEGACY, "a")
    speak(brain)
    brain.lists["prompts"] = [{"name": "p"}]
    brain.hold |= {LIST, PROMPTS}
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        tools, prompts = await brain.until_held(LIST), await brain.until_held(PROMPTS)
        pipe.send_text(json.dumps([brain.answer(prompts), brain.answer(tools)]))
        await catalogs.idle()
        assert (names(catalogs.tools.read()), names(catalogs.prompts.read())) == (["a"], ["p"])


@virtually
async def test_other_versions_have_no_arrays() -> None:
    brain, pipe = serve(LEGACY, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()
        pipe.send_text(json.dumps([brain.change()]))
        await anyio.sleep(60)
        assert brain.count(LIST) == 1


@everywhere
async def test_an_array_of_notices_on_the_get_stream_is_heard() -> None:
    brain, web = serve_http(LEGACY, "a")
    speak(brain)
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        await catalogs.idle()
        brain.set_tools("b")
        event = f"id: 3\ndata: {json.dumps([brain.change(), brain.change()])}\n\n".encode()
        web.streams[0].send_bytes(event[:20])
        web.streams[0].send_bytes(event[20:])
        await brain.until_seen(LIST, 2)
        await catalogs.idle()
        assert names(catalogs.tools.read()) == ["b"]


@pytest.mark.parametrize("streaming", [True, False])
@everywhere
async def test_an_array_with_the_answer_over_http_is_the_answer(streaming: bool) -> None:
    """Answers to other requests have no business there."""
    brain, web = serve_http(LEGACY, "a")
    speak(brain)

    def answered(request: httpx2.Request, frame: Frame) -> httpx2.Response | None:
        if frame.get("method") != LIST:
            return None
        foreign = result_of({"id": "relist/tools/99"}, {"tools": []})
        body = json.dumps([foreign, brain.take(frame)])
        headers = {"content-type": "application/json"}
        if streaming:
            headers, body = {"content-type": "text/event-stream"}, f"data: {body}\n\n"
        return httpx2.Response(200, headers=headers, content=body.encode())

    web.fault = answered
    async with Catalogs.connect(web.target, policy=policy()) as catalogs:
        reading = await catalogs.tools.get()
        assert (reading.hit, names(reading), brain.count(LIST)) == (Hit.HIT, ["a"], 1)
        assert catalogs.session.link.version == ARRAYS_VERSION
        assert catalogs.session.catalog(Kind.TOOLS).pacing.failures == 0


# --- bodies ---------------------------------------------------------------------------------------


class Chunks(httpx2.AsyncByteStream):
    """A body that comes in chunks of this size."""

    def __init__(self, body: bytes, size: int) -> None:
        self.chunks = [body[at : at + size] for at in range(0, len(body), size)]
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk

    async def aclose(self) -> None:
        self.closed = True


async def apart(body: bytes, size: int = 1_000, limit: int = 1_000, **more: Any) -> bytes:
    """The body, taken apart; its parts are never larger than it says."""
    chunks = Chunks(body, size)
    stream = Apart(chunks, 1, limit, **{"events": True, **more})
    parts = [part async for part in stream]
    await stream.aclose()
    assert chunks.closed
    return b"".join(parts)


STREAM = (
    b": hello\n\nid: 1\ndata: {}\n\nevent: message\r\nid: 2\r\ndata: [1,\r\ndata:2]\r\n\r\n"
    b"data: [\r\rid: 3\nretry: 5\ndata:[]\n\ndata: [{}]\r\n\r\nid: 4\ndata: {"
)
APART = (
    b": hello\n\nid: 1\ndata: {}\n\nevent: message\nid: 2\ndata: 1\n\nevent: message\nid: 2\n"
    b"data: 2\n\ndata: [\r\rid: 4\ndata: {"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@virtually
async def test_events_are_taken_apart_however_they_come(size: int) -> None:
    """What holds no array is passed on as it is, also the last event that is cut."""
    assert events(await apart(STREAM, size)) == events(APART)


def events(stream: bytes) -> list[bytes]:
    """The events of a stream; how many blank lines stand between them means nothing."""
    return re.split(rb"(?:\r\n|\n|\r(?!\n)){2,}", stream)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b'{"a": [1]}', b'{"a": [1]}'),
        (b' [{"id": 2}, {"id": 1}]', b'{"id": 1}'),
        (b'[{"id": 2}]', b'[{"id": 2}]'),
        (b"[{}", b"[{}"),
        (b"[" * 5_000, b"[" * 5_000),
        (b"", b""),
    ],
)
@virtually
async def test_of_an_array_of_answers_one_is_kept(body: bytes, kept: bytes) -> None:
    assert await apart(body, 2, 10_000, events=False) == kept


@pytest.mark.parametrize("events", [True, False])
@virtually
async def test_what_is_too_long_is_passed_on(events: bool) -> None:
    body = b"data: [" + b"1," * 1_000 + b"1]\n\n"
    assert await apart(body, 10, 100, events=events) == body
