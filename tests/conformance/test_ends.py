"""The ends with real processes and sockets: order, cuts, limits, and nothing left behind."""

import json
import os
import socket
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.abc
import httpx2
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream

from conformance.scripted_client import ScriptedDriver
from relist_conformance import wire
from relist_conformance.ends import ChannelOutput, Closed, End, Heard, Opened, Received
from relist_conformance.ends.http import HttpHub
from relist_conformance.ends.memory import MemoryLink
from relist_conformance.errors import ConformanceError, DriverError
from relist_conformance.outputs import SSE, Finish, Reset, Send, Status
from relist_conformance.play import Stage, open_stage, play
from relist_conformance.script import load_cases

pytestmark = pytest.mark.anyio
MIB = 1 << 20
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}
GONE = {"type": "http.disconnect"}
JSON_TYPE = {"content-type": "application/json"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Heards:
    """An end of a stage and what it hears."""

    def __init__(self, end: End, heard: MemoryObjectReceiveStream[Heard]) -> None:
        self.end, self.heard = end, heard

    async def next(self) -> Heard:
        with anyio.fail_after(20):
            return await self.heard.receive()

    async def opened(self) -> str:
        item = await self.next()
        assert isinstance(item, Opened)
        return item.channel

    def perform(self, *outputs: ChannelOutput) -> None:
        for output in outputs:
            self.end.perform(output)


@asynccontextmanager
async def an_end(transport: str, stage: Stage | None = None) -> AsyncGenerator[Heards, None]:
    to_test, heard = anyio.create_memory_object_stream[Heard](100)
    with to_test, heard:
        if stage is not None:
            async with await stage.end(transport, "token", to_test.send) as end:
                yield Heards(end, heard)
        else:
            async with (
                open_stage() as own,
                await own.end(transport, "token", to_test.send) as end,
            ):
                yield Heards(end, heard)


@asynccontextmanager
async def a_relay(target: Mapping[str, Any]) -> AsyncGenerator[anyio.abc.Process, None]:
    async with await anyio.open_process(
        target["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            with anyio.CancelScope(shield=True):
                assert process.stdin
                await process.stdin.aclose()
                with anyio.fail_after(20):
                    await process.wait()


async def a_line(process: anyio.abc.Process) -> Any:
    assert process.stdout
    lines = BufferedByteReceiveStream(process.stdout)
    with anyio.fail_after(20):
        return json.loads(await lines.receive_until(b"\n", MIB))


async def send_for_ever(stream: anyio.abc.ByteSendStream) -> None:
    while True:
        await stream.send(b"x" * MIB)


# --- stdio ---


async def test_a_relay_carries_lines_both_ways_and_ends_with_its_input() -> None:
    async with an_end("stdio") as heards:
        async with a_relay(heards.end.target) as relay:
            assert relay.stdin
            channel = await heards.opened()
            await relay.stdin.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n\nnonsense\n')
            assert await heards.next() == Received(channel, PING)
            assert await heards.next() == Received(channel, wire.Unreadable("nonsense"))
            heards.perform(Send(channel, PONG))
            assert await a_line(relay) == PONG
        assert relay.returncode == 0
        assert await heards.next() == Closed(channel)


async def test_a_cut_ends_the_relay_process_after_what_was_sent() -> None:
    async with an_end("stdio") as heards, a_relay(heards.end.target) as relay:
        channel = await heards.opened()
        heards.perform(Send(channel, PONG), Reset(channel), Send(channel, PONG))
        assert await a_line(relay) == PONG
        with anyio.fail_after(20):
            assert await relay.wait() == 0


async def test_each_relay_is_a_channel_of_its_own() -> None:
    async with (
        an_end("stdio") as heards,
        a_relay(heards.end.target),
        a_relay(heards.end.target),
    ):
        assert await heards.opened() != await heards.opened()


async def test_a_line_that_never_ends_hangs_up_on_its_sender_alone() -> None:
    async with an_end("stdio") as heards:
        async with a_relay(heards.end.target) as relay:
            channel = await heards.opened()
            assert relay.stdin
            with pytest.raises(anyio.BrokenResourceError):
                await send_for_ever(relay.stdin)
            assert await heards.next() == Closed(channel)
        async with a_relay(heards.end.target):
            await heards.opened()


async def test_a_stranger_on_the_relay_port_is_ignored() -> None:
    async with an_end("stdio") as heards:
        port = int(heards.end.target["command"][-2])
        for said in (b"", b"wrong token\n", b"x" * 1_000, b"\xff\n"):
            async with await anyio.connect_tcp("127.0.0.1", port) as stranger:
                await stranger.send(said or b"\n")
                with anyio.fail_after(20):
                    assert [part async for part in stranger] == []
        async with a_relay(heards.end.target):
            await heards.opened()


async def test_a_relay_that_comes_too_late_fails_to_start() -> None:
    async with an_end("stdio") as heards:
        target = heards.end.target
    async with await anyio.open_process(target["command"], stdin=subprocess.PIPE) as process:
        with anyio.fail_after(20):
            assert await process.wait() == 1


async def test_the_relay_loads_nothing_but_the_standard_library() -> None:
    async with an_end("stdio") as heards:
        command = heards.end.target["command"]
    assert command[1:3] == ["-I", "-S"]


# --- HTTP ---


@asynccontextmanager
async def requesting(
    heards: Heards, method: str = "POST", **more: Any
) -> AsyncGenerator[tuple[str, list[httpx2.Response | Exception], anyio.Event], None]:
    """A request under way: its channel, the place for its answer, and when that is there."""
    box: list[httpx2.Response | Exception] = []
    done = anyio.Event()

    async def run() -> None:
        try:
            box.append(await client.request(method, heards.end.target["url"], **more))
        except httpx2.TransportError as error:
            box.append(error)
        done.set()

    async with httpx2.AsyncClient(timeout=None) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        channel = await heards.opened()
        if method == "POST":
            assert isinstance(await heards.next(), Received)
        yield channel, box, done
        tasks.cancel_scope.cancel()


async def answer_to(heards: Heards, *outputs: Any, method: str = "POST") -> Any:
    async with requesting(heards, method, json=PING if method == "POST" else None) as (
        channel,
        box,
        done,
    ):
        heards.perform(*(make(channel) for make in outputs))
        with anyio.fail_after(20):
            await done.wait()
    return box[0]


async def test_an_answer_is_plain_json_or_a_stream() -> None:
    async with an_end("http") as heards:
        plain = await answer_to(heards, lambda c: Status(c, 400, {"x-it": "y", **JSON_TYPE}, PONG))
        assert (plain.status_code, plain.headers["x-it"], plain.json()) == (400, "y", PONG)
        stream = await answer_to(
            heards,
            lambda c: Status(c, 200, {"content-type": SSE}),
            lambda c: Send(c, {}, ": kept\n\n", bare=True),
            lambda c: Send(c, PONG),
            Finish,
        )
        assert stream.headers["content-type"] == SSE
        assert stream.text.startswith(": kept\n\nevent: message\n")
        assert json.loads(stream.text.split("data: ")[1]) == PONG
        begun = (
            lambda c: Status(c, 200, {"content-type": SSE}),
            lambda c: Send(c, {}, ": x\n", True),
        )
        assert (await answer_to(heards, *begun, Finish)).text == ": x\n"
        empty = await answer_to(heards, lambda c: Status(c, 405), method="GET")
        assert (empty.status_code, empty.content) == (405, b"")


async def test_a_cut_stream_breaks_in_the_middle() -> None:
    async with an_end("http") as heards:
        begin = (lambda c: Status(c, 200, {"content-type": SSE}), lambda c: Send(c, PONG))
        cut = await answer_to(heards, *begin, Reset)
        assert isinstance(cut, httpx2.RemoteProtocolError)
        assert (await answer_to(heards, lambda c: Status(c, 202))).status_code == 202


async def test_a_client_that_leaves_closes_its_channel() -> None:
    async with an_end("http") as heards:
        async with requesting(heards, json=PING) as (channel, _, _):
            heards.perform(Status(channel, 200, {"content-type": SSE}))
        assert await heards.next() == Closed(channel)


async def test_what_is_not_for_the_play_is_refused() -> None:
    async with an_end("http") as heards, httpx2.AsyncClient() as client:
        url = str(heards.end.target["url"])
        far = await client.post(url, json=PING, headers={"origin": "https://example.com"})
        assert far.status_code == 403
        assert (await client.put(url, json=PING)).status_code == 405
        assert (await client.post(url.replace("token", "other"), json=PING)).status_code == 404
        assert heards.heard.statistics().current_buffer_used == 0
        near = {"origin": "http://localhost:1234"}
        async with requesting(heards, json=PING, headers=near):
            pass


async def test_a_body_too_long_is_unreadable() -> None:
    body = b" " * MIB * 3
    async with (
        an_end("http") as heards,
        httpx2.AsyncClient() as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(partial(client.post, heards.end.target["url"], content=body))
        channel = await heards.opened()
        received = await heards.next()
        assert isinstance(received, Received)
        assert isinstance(received.message, wire.Unreadable)
        assert received.message.text == f"a message of {MIB + 1} bytes"  # no more of it was kept
        heards.perform(Status(channel, 400))


async def test_a_client_that_leaves_within_its_body_is_not_heard() -> None:
    heard: list[Heard] = []
    parts = iter(({"type": "http.request", "body": b"{", "more_body": True}, GONE))

    async def hear(item: Heard) -> None:
        heard.append(item)

    async def receive() -> dict[str, Any]:
        return next(parts)

    async def send(_: object) -> None:
        raise AssertionError("nobody is there")

    hub = HttpHub(0)
    async with hub.open_end("token", hear):
        posted = {"type": "http", "method": "POST", "path": "/token/mcp", "headers": []}
        await hub(posted, receive, send)
    assert heard == []
    assert next(parts, None) is None


async def test_a_port_in_use_is_named_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConformanceError, match=f"port {port} on 127.0.0.1: .*in use"):
            async with open_stage(port):
                pass
    with pytest.raises(ConformanceError, match="port 99999"):
        async with open_stage(99_999):
            pass


async def test_no_answer_waits_for_the_one_before_to_be_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Asyncio turns Nagle's algorithm off only where it sees that a socket is TCP."""
    protocols: set[int] = set()
    real = socket.socket.listen

    def listen(sock: socket.socket, backlog: int) -> None:
        protocols.add(sock.proto)
        real(sock, backlog)

    monkeypatch.setattr(socket.socket, "listen", listen)
    async with an_end("http"):
        assert protocols == {socket.IPPROTO_TCP}


async def test_a_chosen_port_is_used_and_given_back() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for _ in range(2):
        async with open_stage(port) as stage, an_end("http", stage) as heards:
            assert f":{port}/" in heards.end.target["url"]
    async with open_stage(port):
        pass  # never used, and given back all the same


# --- memory ---


async def test_memory_connections_carry_copies() -> None:
    async with an_end("memory") as heards:
        link = heards.end
        assert isinstance(link, MemoryLink)
        receive, send = await link.connect()
        with receive, send:
            channel = await heards.opened()
            message = dict(PING)
            await send.send(message)
            heard = await heards.next()
            message["method"] = "changed"
            assert heard == Received(channel, PING)
            heards.perform(Send(channel, PONG), Finish(channel), Send(channel, PONG))
            assert [found async for found in receive] == [PONG]


async def test_a_memory_client_that_closes_is_heard() -> None:
    async with an_end("memory") as heards:
        assert isinstance(heards.end, MemoryLink)
        receive, send = await heards.end.connect()
        channel = await heards.opened()
        send.close()
        receive.close()
        assert await heards.next() == Closed(channel)


# --- plays ---


class DeadDriver:
    """A driver that is of no use."""

    async def ask(self, op: str, fields: Mapping[str, object]) -> Mapping[str, object]:
        raise DriverError("driver 'x' exited with code 3")


async def test_a_dead_driver_is_the_outcome() -> None:
    played = await play(load_cases()[0], "2025-11-25", "stdio", DeadDriver())
    assert (played.outcome.word, played.verdict) == ("harness_error", None)
    assert played.outcome.reason == "driver 'x' exited with code 3"


async def test_a_cancelled_play_leaves_nothing_behind() -> None:
    case = next(case for case in load_cases() if case.id == "paging:every-page")
    for transport in case.transports:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(play, case, "2025-11-25", transport, ScriptedDriver(tasks))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert not _children()


def _children() -> list[str]:
    """The process ids that our own process has started and that still run (where /proc says so)."""
    path = f"/proc/self/task/{os.getpid()}/children"
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        return file.read().split()
